// A norm, three projections, rope, causal attention, the output projection and a
// residual, as one function. The loops run one after another, and intermediate
// buffers are in a workspace that the caller provides.
//   posenc-bench examples/layer.mlir --input=512x1024xf32=random \
//     --input=1024xf32=random --input=1024x1024xf32=random \
//     --input=1024x256xf32=random --input=1024x256xf32=random \
//     --input=1024x1024xf32=random --input=1x512xi64=iota

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>
func.func @layer(%x: tensor<?x1024xf32>, %g: tensor<1024xf32>, %wq: tensor<1024x1024xf32>, %wk: tensor<1024x256xf32>, %wv: tensor<1024x256xf32>, %wo: tensor<1024x1024xf32>, %p: tensor<1x?xi64>) -> tensor<?x1024xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 1024.0 : f32
  %eps = arith.constant 1.0e-6 : f32
  %t = tensor.dim %x, %c0 : tensor<?x1024xf32>
  %e1 = tensor.empty(%t) : tensor<?xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?xf32>) -> tensor<?xf32>
  %ss = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<?x1024xf32>) outs(%f1 : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %q = arith.mulf %a, %a : f32
    %s = arith.addf %o, %q : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  %e2 = tensor.empty(%t) : tensor<?x1024xf32>
  %h = linalg.generic {indexing_maps = [#ij, #i, #j, #ij], iterator_types = ["parallel", "parallel"]}
    ins(%x, %ss, %g : tensor<?x1024xf32>, tensor<?xf32>, tensor<1024xf32>) outs(%e2 : tensor<?x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %m = arith.divf %b, %n : f32
    %m2 = arith.addf %m, %eps : f32
    %k = math.rsqrt %m2 : f32
    %y = arith.mulf %a, %k : f32
    %z = arith.mulf %y, %c : f32
    linalg.yield %z : f32
  } -> tensor<?x1024xf32>
  %fq = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x1024xf32>) -> tensor<?x1024xf32>
  %q0 = linalg.matmul ins(%h, %wq : tensor<?x1024xf32>, tensor<1024x1024xf32>) outs(%fq : tensor<?x1024xf32>) -> tensor<?x1024xf32>
  %ek = tensor.empty(%t) : tensor<?x256xf32>
  %fk = linalg.fill ins(%zero : f32) outs(%ek : tensor<?x256xf32>) -> tensor<?x256xf32>
  %k0 = linalg.matmul ins(%h, %wk : tensor<?x1024xf32>, tensor<1024x256xf32>) outs(%fk : tensor<?x256xf32>) -> tensor<?x256xf32>
  %v0 = linalg.matmul ins(%h, %wv : tensor<?x1024xf32>, tensor<1024x256xf32>) outs(%fk : tensor<?x256xf32>) -> tensor<?x256xf32>
  %q4 = tensor.expand_shape %q0 [[0, 1], [2, 3]] output_shape [1, %t, 16, 64] : tensor<?x1024xf32> into tensor<1x?x16x64xf32>
  %k4 = tensor.expand_shape %k0 [[0, 1], [2, 3]] output_shape [1, %t, 4, 64] : tensor<?x256xf32> into tensor<1x?x4x64xf32>
  %v4 = tensor.expand_shape %v0 [[0, 1], [2, 3]] output_shape [1, %t, 4, 64] : tensor<?x256xf32> into tensor<1x?x4x64xf32>
  %eq4 = tensor.empty(%t) : tensor<1x?x16x64xf32>
  %ek4 = tensor.empty(%t) : tensor<1x?x4x64xf32>
  %qr, %kr = posenc.rope half #posenc.frequencies<dim = 64> ins(%q4, %k4 : tensor<1x?x16x64xf32>, tensor<1x?x4x64xf32>)
     positions(%p : tensor<1x?xi64>) dims = [0, 1] outs(%eq4, %ek4 : tensor<1x?x16x64xf32>, tensor<1x?x4x64xf32>)
  %a4 = posenc.attention causal ins(%qr, %kr, %v4 : tensor<1x?x16x64xf32>, tensor<1x?x4x64xf32>, tensor<1x?x4x64xf32>) outs(%eq4 : tensor<1x?x16x64xf32>)
  %a2 = tensor.collapse_shape %a4 [[0, 1], [2, 3]] : tensor<1x?x16x64xf32> into tensor<?x1024xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x1024xf32>) -> tensor<?x1024xf32>
  %o = linalg.matmul ins(%a2, %wo : tensor<?x1024xf32>, tensor<1024x1024xf32>) outs(%fo : tensor<?x1024xf32>) -> tensor<?x1024xf32>
  %r = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
    ins(%x, %o : tensor<?x1024xf32>, tensor<?x1024xf32>) outs(%e2 : tensor<?x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %y = arith.addf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<?x1024xf32>
  return %r : tensor<?x1024xf32>
}
