// Operations that surround positional encodings in a model: norms, softmax, bias,
// residuals, conversions, matrix-vector products, and the sum with a table.
//   posenc-bench examples/linalg.mlir --function=rmsnorm \
//     --input=4096x4096xf32=random --input=4096xf32=random

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>
#map = affine_map<(b, s, d) -> (b, s, d)>
#row = affine_map<(b, s, d) -> (s, d)>

func.func @bias_silu(%a: tensor<?x4096xf32>, %w: tensor<4096xf32>) -> tensor<?x4096xf32> {
  %one = arith.constant 1.0 : f32
  %r = linalg.generic {indexing_maps = [#ij, #j, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%a, %w : tensor<?x4096xf32>, tensor<4096xf32>) outs(%a : tensor<?x4096xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    %m = arith.negf %s : f32
    %e = math.exp %m : f32
    %d = arith.addf %e, %one : f32
    %q = arith.divf %s, %d : f32
    linalg.yield %q : f32
  } -> tensor<?x4096xf32>
  return %r : tensor<?x4096xf32>
}
func.func @residual(%a: tensor<?x4096xf32>, %b: tensor<?x4096xf32>) -> tensor<?x4096xf32> {
  %r = linalg.add ins(%a, %b : tensor<?x4096xf32>, tensor<?x4096xf32>) outs(%a : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  return %r : tensor<?x4096xf32>
}
func.func @matvec(%a: tensor<4096x4096xf32>, %b: tensor<4096xf32>) -> tensor<4096xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
  %r = linalg.matvec ins(%a, %b : tensor<4096x4096xf32>, tensor<4096xf32>) outs(%f : tensor<4096xf32>) -> tensor<4096xf32>
  return %r : tensor<4096xf32>
}
func.func @vecmat(%b: tensor<4096xf32>, %a: tensor<4096x4096xf32>) -> tensor<4096xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
  %r = linalg.vecmat ins(%b, %a : tensor<4096xf32>, tensor<4096x4096xf32>) outs(%f : tensor<4096xf32>) -> tensor<4096xf32>
  return %r : tensor<4096xf32>
}
func.func @to_bf16(%a: tensor<?x4096xf32>, %o: tensor<?x4096xbf16>) -> tensor<?x4096xbf16> {
  %r = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<?x4096xf32>) outs(%o : tensor<?x4096xbf16>) {
  ^bb0(%x: f32, %p: bf16):
    %s = arith.truncf %x : f32 to bf16
    linalg.yield %s : bf16
  } -> tensor<?x4096xbf16>
  return %r : tensor<?x4096xbf16>
}
func.func @rmsnorm(%x: tensor<?x4096xf32>, %w: tensor<4096xf32>) -> tensor<?x4096xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 4096.0 : f32
  %eps = arith.constant 1.0e-6 : f32
  %rows = tensor.dim %x, %c0 : tensor<?x4096xf32>
  %e = tensor.empty(%rows) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<?x4096xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %q = arith.mulf %a, %a : f32
    %p = arith.addf %o, %q : f32
    linalg.yield %p : f32
  } -> tensor<?xf32>
  %out = tensor.empty(%rows) : tensor<?x4096xf32>
  %r = linalg.generic {indexing_maps = [#ij, #i, #j, #ij], iterator_types = ["parallel", "parallel"]}
    ins(%x, %s, %w : tensor<?x4096xf32>, tensor<?xf32>, tensor<4096xf32>) outs(%out : tensor<?x4096xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %m = arith.divf %b, %n : f32
    %m2 = arith.addf %m, %eps : f32
    %k = math.rsqrt %m2 : f32
    %y = arith.mulf %a, %k : f32
    %z = arith.mulf %y, %c : f32
    linalg.yield %z : f32
  } -> tensor<?x4096xf32>
  return %r : tensor<?x4096xf32>
}
func.func @softmax(%x: tensor<?x4096xf32>) -> tensor<?x4096xf32> {
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x4096xf32>
  %out = tensor.empty(%rows) : tensor<?x4096xf32>
  %r = linalg.softmax dimension(1) ins(%x : tensor<?x4096xf32>) outs(%out : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  return %r : tensor<?x4096xf32>
}
func.func @add_positions(%x: tensor<?x?x512xf32>, %p: tensor<?xi64>) -> tensor<?x?x512xf32> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<?x?x512xf32>
  %e = tensor.empty(%n) : tensor<?x512xf32>
  %t = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 512> positions(%p : tensor<?xi64>) outs(%e : tensor<?x512xf32>)
  %r = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %t : tensor<?x?x512xf32>, tensor<?x512xf32>) outs(%x : tensor<?x?x512xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x?x512xf32>
  return %r : tensor<?x?x512xf32>
}
