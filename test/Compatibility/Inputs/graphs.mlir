// A layer whose weights are in a file and whose intermediate tensors are in a workspace, with a
// mask, a scalar and results of f16; a size that is data; indices that are inputs.
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>
#scalar = affine_map<(i, j) -> ()>
func.func @layer(%x: tensor<?x32xf32>, %kept: tensor<?xi1>, %scale: f32, %w: tensor<32x32xf32>)
    -> (tensor<?x32xf16> {posenc.name = "y"}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x32xf32>
  %e = tensor.empty(%n) : tensor<?x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x32xf32>) -> tensor<?x32xf32>
  %p = linalg.matmul ins(%x, %w : tensor<?x32xf32>, tensor<32x32xf32>)
      outs(%f : tensor<?x32xf32>) -> tensor<?x32xf32>
  %h = tensor.empty(%n) : tensor<?x32xf16>
  %r = linalg.generic {indexing_maps = [#id, #rows, #scalar, #id],
                       iterator_types = ["parallel", "parallel"]}
      ins(%p, %kept, %scale : tensor<?x32xf32>, tensor<?xi1>, f32)
      outs(%h : tensor<?x32xf16>) {
  ^bb0(%a: f32, %k: i1, %s: f32, %o: f16):
    %m = arith.mulf %a, %s : f32
    %c = arith.select %k, %m, %zero : f32
    %t = math.tanh %c : f32
    %u = arith.truncf %t : f32 to f16
    linalg.yield %u : f16
  } -> tensor<?x32xf16>
  return %r : tensor<?x32xf16>
}

func.func @take(%x: tensor<?xf32>, %t: tensor<1xi64>) -> (tensor<?xf32> {posenc.name = "y"}) {
  %c0 = arith.constant 0 : index
  %v = tensor.extract %t[%c0] : tensor<1xi64>
  %n = arith.index_cast %v : i64 to index
  %r = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
  return %r : tensor<?xf32>
}

func.func @embed(%ids: tensor<?xi64>, %table: tensor<?x8xf64>)
    -> (tensor<?x8xf64> {posenc.name = "rows"}) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %ids, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x8xf64>
  %r = linalg.generic {indexing_maps = [#rows, #id], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<?xi64>) outs(%e : tensor<?x8xf64>) {
  ^bb0(%id: i64, %o: f64):
    %i = arith.index_cast %id : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %table[%i, %j] : tensor<?x8xf64>
    linalg.yield %v : f64
  } -> tensor<?x8xf64>
  return %r : tensor<?x8xf64>
}
