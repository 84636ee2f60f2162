// Queries and keys that are scaled before their product become operands of
// posenc.attention.
//
// RUN: posenc-opt --posenc-raise --split-input-file %s | FileCheck %s
// RUN: %python %S/compare-raised.py posenc-run %s
// RUN: %python %S/compare-raised.py posenc-run %s --fault

// Keys are scaled behind a transposition, as torch.export decomposes
// scaled_dot_product_attention: by the root of the scale, which is f64.
// CHECK-LABEL: func @roots
//  CHECK-SAME: (%[[Q:.*]]: tensor<2x4x6x8xf32>, %[[K:.*]]: tensor<2x4x6x8xf32>, %[[V:.*]]: tensor<2x4x6x8xf32>,
//       CHECK: posenc.attention scale = 0.353553{{.*}} ins(%[[Q]], %[[K]], %[[V]] :
//   CHECK-NOT: linalg.batch_matmul
#s = affine_map<(b, h, i, j) -> (b, h, i, j)>
#ij = affine_map<(b, h, i, j) -> (i, j)>
#row = affine_map<(b, h, i, j) -> (b, h, i)>
#kept = affine_map<(b, h, i, j) -> (b, h, i, 0)>
func.func @roots(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %bias: tensor<6x6xf32>) -> tensor<2x4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %low64 = arith.constant 0xFFF0000000000000 : f64
  %true = arith.constant true
  %root = arith.constant 0.59460355750136051 : f64
  %zeros = arith.constant dense<0.0> : tensor<2x4x6x6xf32>
  %qe = tensor.empty() : tensor<2x4x6x8xf32>
  %qs = linalg.generic {indexing_maps = [#s, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q : tensor<2x4x6x8xf32>) outs(%qe : tensor<2x4x6x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.truncf %root : f64 to f32
    %y = arith.mulf %a, %r : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x8xf32>
  %ke = tensor.empty() : tensor<2x4x8x6xf32>
  %kt = linalg.transpose ins(%k : tensor<2x4x6x8xf32>) outs(%ke : tensor<2x4x8x6xf32>) permutation = [0, 1, 3, 2]
  %ks = linalg.generic {indexing_maps = [#s, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kt : tensor<2x4x8x6xf32>) outs(%ke : tensor<2x4x8x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.truncf %root : f64 to f32
    %y = arith.mulf %a, %r : f32
    linalg.yield %y : f32
  } -> tensor<2x4x8x6xf32>
  %q3 = tensor.collapse_shape %qs [[0, 1], [2], [3]] : tensor<2x4x6x8xf32> into tensor<8x6x8xf32>
  %k3 = tensor.collapse_shape %ks [[0, 1], [2], [3]] : tensor<2x4x8x6xf32> into tensor<8x8x6xf32>
  %v3 = tensor.collapse_shape %v [[0, 1], [2], [3]] : tensor<2x4x6x8xf32> into tensor<8x6x8xf32>
  %se = tensor.empty() : tensor<8x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<8x6x6xf32>) -> tensor<8x6x6xf32>
  %s3 = linalg.batch_matmul ins(%q3, %k3 : tensor<8x6x8xf32>, tensor<8x8x6xf32>) outs(%sz : tensor<8x6x6xf32>) -> tensor<8x6x6xf32>
  %s4 = tensor.expand_shape %s3 [[0, 1], [2], [3]] output_shape [2, 4, 6, 6] : tensor<8x6x6xf32> into tensor<2x4x6x6xf32>
  %e4 = tensor.empty() : tensor<2x4x6x6xf32>
  %l = linalg.generic {indexing_maps = [#s, #ij, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s4, %bias : tensor<2x4x6x6xf32>, tensor<6x6xf32>) outs(%e4 : tensor<2x4x6x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %y = arith.addf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %re = tensor.empty() : tensor<2x4x6xf32>
  %rl = linalg.fill ins(%low : f32) outs(%re : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %m = linalg.generic {indexing_maps = [#s, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%l : tensor<2x4x6x6xf32>) outs(%rl : tensor<2x4x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %y = arith.maximumf %a, %o : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %x = linalg.generic {indexing_maps = [#s, #row, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%l, %m : tensor<2x4x6x6xf32>, tensor<2x4x6xf32>) outs(%e4 : tensor<2x4x6x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %y = math.exp %d : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %te = tensor.empty() : tensor<2x4x6x1xf32>
  %tz = linalg.fill ins(%zero : f32) outs(%te : tensor<2x4x6x1xf32>) -> tensor<2x4x6x1xf32>
  %t = linalg.generic {indexing_maps = [#s, #kept], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x : tensor<2x4x6x6xf32>) outs(%tz : tensor<2x4x6x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %y = arith.addf %a, %o : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x1xf32>
  // Rows without keys.
  %ne = tensor.empty() : tensor<2x4x6x1xi1>
  %nt = linalg.fill ins(%true : i1) outs(%ne : tensor<2x4x6x1xi1>) -> tensor<2x4x6x1xi1>
  %n = linalg.generic {indexing_maps = [#s, #kept], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%l : tensor<2x4x6x6xf32>) outs(%nt : tensor<2x4x6x1xi1>) {
  ^bb0(%a: f32, %o: i1):
    %w = arith.extf %a : f32 to f64
    %c = arith.cmpf oeq, %w, %low64 : f64
    %y = arith.andi %c, %o : i1
    linalg.yield %y : i1
  } -> tensor<2x4x6x1xi1>
  %p = linalg.generic {indexing_maps = [#kept, #s, #s, #kept, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%n, %zeros, %x, %t : tensor<2x4x6x1xi1>, tensor<2x4x6x6xf32>, tensor<2x4x6x6xf32>, tensor<2x4x6x1xf32>) outs(%e4 : tensor<2x4x6x6xf32>) {
  ^bb0(%c: i1, %z: f32, %a: f32, %b: f32, %o: f32):
    %d = arith.divf %a, %b : f32
    %y = arith.select %c, %z, %d : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %p3 = tensor.collapse_shape %p [[0, 1], [2], [3]] : tensor<2x4x6x6xf32> into tensor<8x6x6xf32>
  %oe = tensor.empty() : tensor<8x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<8x6x8xf32>) -> tensor<8x6x8xf32>
  %o3 = linalg.batch_matmul ins(%p3, %v3 : tensor<8x6x6xf32>, tensor<8x6x8xf32>) outs(%oz : tensor<8x6x8xf32>) -> tensor<8x6x8xf32>
  %o4 = tensor.expand_shape %o3 [[0, 1], [2], [3]] output_shape [2, 4, 6, 8] : tensor<8x6x8xf32> into tensor<2x4x6x8xf32>
  return %o4 : tensor<2x4x6x8xf32>
}

// -----

// Only the transposed keys are scaled, by the root of a constant that the graph
// computes, and the factor is the first operand.
// CHECK-LABEL: func @root_of_constant
//       CHECK: posenc.attention scale = 0.353553
//   CHECK-NOT: linalg.softmax
#all = affine_map<(h, d, j) -> (h, d, j)>
#none = affine_map<(h, d, j) -> ()>
#scalar = affine_map<() -> ()>
func.func @root_of_constant(%q: tensor<4x?x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>) -> tensor<4x?x8xf32> {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %n = tensor.dim %q, %c1 : tensor<4x?x8xf32>
  %m = tensor.dim %k, %c1 : tensor<4x?x8xf32>
  %width = arith.constant dense<8.0> : tensor<f32>
  %re = tensor.empty() : tensor<f32>
  %root = linalg.generic {indexing_maps = [#scalar, #scalar], iterator_types = []} ins(%width : tensor<f32>) outs(%re : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %y = math.rsqrt %a : f32
    linalg.yield %y : f32
  } -> tensor<f32>
  %ke = tensor.empty(%m) : tensor<4x8x?xf32>
  %kt = linalg.transpose ins(%k : tensor<4x?x8xf32>) outs(%ke : tensor<4x8x?xf32>) permutation = [0, 2, 1]
  %ks = linalg.generic {indexing_maps = [#none, #all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%root, %kt : tensor<f32>, tensor<4x8x?xf32>) outs(%ke : tensor<4x8x?xf32>) {
  ^bb0(%r: f32, %a: f32, %o: f32):
    %y = arith.mulf %r, %a : f32
    linalg.yield %y : f32
  } -> tensor<4x8x?xf32>
  %se = tensor.empty(%n, %m) : tensor<4x?x?xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %s = linalg.batch_matmul ins(%q, %ks : tensor<4x?x8xf32>, tensor<4x8x?xf32>) outs(%sz : tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<4x?x?xf32>) outs(%se : tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %oe = tensor.empty(%n) : tensor<4x?x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x?x8xf32>) -> tensor<4x?x8xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x?x?xf32>, tensor<4x?x8xf32>) outs(%oz : tensor<4x?x8xf32>) -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// -----

// Keys of one token may be repeated for all, so that they are repeated for the
// heads of a group, too, and values with them.
// CHECK-LABEL: func @broadcast_tokens
//       CHECK: posenc.attention {{.*}} : tensor<2x4x6x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>)
//   CHECK-NOT: linalg.softmax
#many = affine_map<(b, g, r, j, d) -> (b, g, r, j, d)>
func.func @broadcast_tokens(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x2x?x8xf32>) -> tensor<8x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %k, %c2 : tensor<2x2x?x8xf32>
  %m = tensor.dim %v, %c2 : tensor<2x2x?x8xf32>
  %re = tensor.empty(%m) : tensor<2x2x2x?x8xf32>
  %kr = linalg.generic {indexing_maps = [#many], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} outs(%re : tensor<2x2x2x?x8xf32>) {
  ^bb0(%o: f32):
    %b = linalg.index 0 : index
    %g = linalg.index 1 : index
    %j = linalg.index 3 : index
    %d = linalg.index 4 : index
    %one = arith.cmpi eq, %n, %c1 : index
    %at = arith.select %one, %c0, %j : index
    %y = tensor.extract %k[%b, %g, %at, %d] : tensor<2x2x?x8xf32>
    linalg.yield %y : f32
  } -> tensor<2x2x2x?x8xf32>
  %vr = linalg.generic {indexing_maps = [#many], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} outs(%re : tensor<2x2x2x?x8xf32>) {
  ^bb0(%o: f32):
    %b = linalg.index 0 : index
    %g = linalg.index 1 : index
    %j = linalg.index 3 : index
    %d = linalg.index 4 : index
    %y = tensor.extract %v[%b, %g, %j, %d] : tensor<2x2x?x8xf32>
    linalg.yield %y : f32
  } -> tensor<2x2x2x?x8xf32>
  %k4 = tensor.collapse_shape %kr [[0], [1, 2], [3], [4]] : tensor<2x2x2x?x8xf32> into tensor<2x4x?x8xf32>
  %te = tensor.empty(%m) : tensor<2x4x8x?xf32>
  %kt = linalg.transpose ins(%k4 : tensor<2x4x?x8xf32>) outs(%te : tensor<2x4x8x?xf32>) permutation = [0, 1, 3, 2]
  %q3 = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x4x6x8xf32> into tensor<8x6x8xf32>
  %k3 = tensor.collapse_shape %kt [[0, 1], [2], [3]] : tensor<2x4x8x?xf32> into tensor<8x8x?xf32>
  %v3 = tensor.collapse_shape %vr [[0, 1, 2], [3], [4]] : tensor<2x2x2x?x8xf32> into tensor<8x?x8xf32>
  %se = tensor.empty(%m) : tensor<8x6x?xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<8x6x?xf32>) -> tensor<8x6x?xf32>
  %s = linalg.batch_matmul ins(%q3, %k3 : tensor<8x6x8xf32>, tensor<8x8x?xf32>) outs(%sz : tensor<8x6x?xf32>) -> tensor<8x6x?xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<8x6x?xf32>) outs(%se : tensor<8x6x?xf32>) -> tensor<8x6x?xf32>
  %oe = tensor.empty() : tensor<8x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<8x6x8xf32>) -> tensor<8x6x8xf32>
  %o = linalg.batch_matmul ins(%p, %v3 : tensor<8x6x?xf32>, tensor<8x?x8xf32>) outs(%oz : tensor<8x6x8xf32>) -> tensor<8x6x8xf32>
  return %o : tensor<8x6x8xf32>
}
