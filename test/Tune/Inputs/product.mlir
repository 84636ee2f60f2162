func.func @product(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %o: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%f : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

func.func @accumulate(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %c: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

func.func @swapped(%a: tensor<301x75xf32>, %b: tensor<100x301xf32>, %o: tensor<75x100xf32>) -> tensor<75x100xf32> {
  %one = arith.constant 1.0 : f32
  %f = linalg.fill ins(%one : f32) outs(%o : tensor<75x100xf32>) -> tensor<75x100xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>,
                                        affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<301x75xf32>, tensor<100x301xf32>) outs(%f : tensor<75x100xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  } -> tensor<75x100xf32>
  return %r : tensor<75x100xf32>
}

func.func @narrow(%a: tensor<75x301xbf16>, %b: tensor<301x100xbf16>, %o: tensor<75x100xbf16>) -> tensor<75x100xbf16> {
  %zero = arith.constant 0.0 : bf16
  %f = linalg.fill ins(%zero : bf16) outs(%o : tensor<75x100xbf16>) -> tensor<75x100xbf16>
  %r = linalg.matmul ins(%a, %b : tensor<75x301xbf16>, tensor<301x100xbf16>) outs(%f : tensor<75x100xbf16>) -> tensor<75x100xbf16>
  return %r : tensor<75x100xbf16>
}

func.func @wider(%a: tensor<75x301xf64>, %b: tensor<301x100xf64>, %o: tensor<75x100xf64>) -> tensor<75x100xf64> {
  %zero = arith.constant 0.0 : f64
  %f = linalg.fill ins(%zero : f64) outs(%o : tensor<75x100xf64>) -> tensor<75x100xf64>
  %r = linalg.matmul ins(%a, %b : tensor<75x301xf64>, tensor<301x100xf64>) outs(%f : tensor<75x100xf64>) -> tensor<75x100xf64>
  return %r : tensor<75x100xf64>
}

func.func @shallow(%a: tensor<19x7xf32>, %b: tensor<7x100xf32>) -> tensor<19x100xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<19x100xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<19x100xf32>) -> tensor<19x100xf32>
  %r = linalg.matmul ins(%a, %b : tensor<19x7xf32>, tensor<7x100xf32>) outs(%f : tensor<19x100xf32>) -> tensor<19x100xf32>
  return %r : tensor<19x100xf32>
}

// A matrix that the caller has packed.
func.func @panels(%a: tensor<?x301xf32>, %b: tensor<4x301x32xf32>) -> tensor<?x100xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x301xf32>
  %w = tensor.empty() : tensor<301x100xf32>
  %u = linalg.unpack %b outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [32] into %w : tensor<4x301x32xf32> -> tensor<301x100xf32>
  %e = tensor.empty(%m) : tensor<?x100xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x100xf32>) -> tensor<?x100xf32>
  %r = linalg.matmul ins(%a, %u : tensor<?x301xf32>, tensor<301x100xf32>) outs(%f : tensor<?x100xf32>) -> tensor<?x100xf32>
  return %r : tensor<?x100xf32>
}

// Words of two codes, with blocks of 64.
func.func @codes(%a: tensor<?x8x64xf32>, %c: tensor<8x32x64xi32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : i32
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x8x64xf32>
  %first = tensor.extract_slice %a[0, 0, 0] [%m, 8, 32] [1, 1, 2] : tensor<?x8x64xf32> to tensor<?x8x32xf32>
  %second = tensor.extract_slice %a[0, 0, 1] [%m, 8, 32] [1, 1, 2] : tensor<?x8x64xf32> to tensor<?x8x32xf32>
  %e = tensor.empty(%m) : tensor<?x8x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8x64xf32>) -> tensor<?x8x64xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, b, n, k) -> (m, b, k)>, affine_map<(m, b, n, k) -> (m, b, k)>,
                                        affine_map<(m, b, n, k) -> (b, k, n)>, affine_map<(m, b, n, k) -> (m, b, n)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%first, %second, %c : tensor<?x8x32xf32>, tensor<?x8x32xf32>, tensor<8x32x64xi32>) outs(%f : tensor<?x8x64xf32>) {
  ^bb0(%x: f32, %y: f32, %word: i32, %sum: f32):
    %low = arith.shli %word, %c16 : i32
    %low_float = arith.sitofp %low : i32 to f32
    %next = math.fma %x, %low_float, %sum : f32
    %high_float = arith.sitofp %word : i32 to f32
    %last = math.fma %y, %high_float, %next : f32
    linalg.yield %last : f32
  } -> tensor<?x8x64xf32>
  %g = tensor.empty(%m) : tensor<?x64xf32>
  %h = linalg.fill ins(%zero : f32) outs(%g : tensor<?x64xf32>) -> tensor<?x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, b) -> (m, b, n)>, affine_map<(m, n, b) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p : tensor<?x8x64xf32>) outs(%h : tensor<?x64xf32>) {
  ^bb0(%x: f32, %sum: f32):
    %next = arith.addf %x, %sum : f32
    linalg.yield %next : f32
  } -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}
