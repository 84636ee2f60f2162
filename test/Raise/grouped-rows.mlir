// The heads of a group and the queries are the rows of one product, as PyTorch
// computes einsum("bqkgd,btkd->bkgqt").
//
// RUN: posenc-opt --posenc-raise --split-input-file %s | FileCheck %s
// RUN: %python %S/compare-raised.py posenc-run %s
// RUN: %python %S/compare-raised.py posenc-run %s --fault

// CHECK-LABEL: func @grouped
//       CHECK: posenc.attention scale = 1.000000e+00 ins(%{{.*}} : tensor<2x?x4x8xf32>, tensor<2x?x2x8xf32>, tensor<2x?x2x8xf32>)
//   CHECK-NOT: linalg.softmax
func.func @grouped(%q: tensor<2x?x2x2x8xf32>, %k: tensor<2x?x2x8xf32>, %v: tensor<2x?x2x8xf32>) -> tensor<2x?x2x2x8xf32> {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %two = arith.constant 2 : index
  %n = tensor.dim %q, %c1 : tensor<2x?x2x2x8xf32>
  %m = tensor.dim %k, %c1 : tensor<2x?x2x8xf32>
  %n2 = arith.muli %n, %two : index
  %qe = tensor.empty(%n) : tensor<2x2x2x?x8xf32>
  %qt = linalg.transpose ins(%q : tensor<2x?x2x2x8xf32>) outs(%qe : tensor<2x2x2x?x8xf32>) permutation = [0, 2, 3, 1, 4]
  %qr = tensor.collapse_shape %qt [[0, 1], [2, 3], [4]] : tensor<2x2x2x?x8xf32> into tensor<4x?x8xf32>
  %ke = tensor.empty(%m) : tensor<2x2x8x?xf32>
  %kt = linalg.transpose ins(%k : tensor<2x?x2x8xf32>) outs(%ke : tensor<2x2x8x?xf32>) permutation = [0, 2, 3, 1]
  %kr = tensor.collapse_shape %kt [[0, 1], [2], [3]] : tensor<2x2x8x?xf32> into tensor<4x8x?xf32>
  %se = tensor.empty(%n2, %m) : tensor<4x?x?xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %s = linalg.batch_matmul ins(%qr, %kr : tensor<4x?x8xf32>, tensor<4x8x?xf32>) outs(%sz : tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %s5 = tensor.expand_shape %s [[0, 1], [2, 3], [4]] output_shape [2, 2, 2, %n, %m] : tensor<4x?x?xf32> into tensor<2x2x2x?x?xf32>
  %pe = tensor.empty(%n, %m) : tensor<2x2x2x?x?xf32>
  %p = linalg.softmax dimension(4) ins(%s5 : tensor<2x2x2x?x?xf32>) outs(%pe : tensor<2x2x2x?x?xf32>) -> tensor<2x2x2x?x?xf32>
  %te = tensor.empty(%n, %m) : tensor<2x2x?x2x?xf32>
  %pt = linalg.transpose ins(%p : tensor<2x2x2x?x?xf32>) outs(%te : tensor<2x2x?x2x?xf32>) permutation = [0, 1, 3, 2, 4]
  %pr = tensor.collapse_shape %pt [[0, 1], [2, 3], [4]] : tensor<2x2x?x2x?xf32> into tensor<4x?x?xf32>
  %ve = tensor.empty(%m) : tensor<2x2x?x8xf32>
  %vt = linalg.transpose ins(%v : tensor<2x?x2x8xf32>) outs(%ve : tensor<2x2x?x8xf32>) permutation = [0, 2, 1, 3]
  %vr = tensor.collapse_shape %vt [[0, 1], [2], [3]] : tensor<2x2x?x8xf32> into tensor<4x?x8xf32>
  %oe = tensor.empty(%n2) : tensor<4x?x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x?x8xf32>) -> tensor<4x?x8xf32>
  %o = linalg.batch_matmul ins(%pr, %vr : tensor<4x?x?xf32>, tensor<4x?x8xf32>) outs(%oz : tensor<4x?x8xf32>) -> tensor<4x?x8xf32>
  %o5 = tensor.expand_shape %o [[0, 1], [2, 3], [4]] output_shape [2, 2, %n, 2, 8] : tensor<4x?x8xf32> into tensor<2x2x?x2x8xf32>
  %re = tensor.empty(%n) : tensor<2x?x2x2x8xf32>
  %r = linalg.transpose ins(%o5 : tensor<2x2x?x2x8xf32>) outs(%re : tensor<2x?x2x2x8xf32>) permutation = [0, 2, 1, 3, 4]
  return %r : tensor<2x?x2x2x8xf32>
}

// -----

// Rows that are split at another place remain the rows of one product. The
// channels of the values have dimensions of size 1 behind them.
// CHECK-LABEL: func @split_elsewhere
//       CHECK: posenc.attention
func.func @split_elsewhere(%q: tensor<4x3x2x8xf32>, %k: tensor<4x5x8xf32>, %v: tensor<4x5x8x1x1xf32>) -> tensor<4x2x3x8xf32> {
  %zero = arith.constant 0.0 : f32
  %qr = tensor.collapse_shape %q [[0], [1, 2], [3]] : tensor<4x3x2x8xf32> into tensor<4x6x8xf32>
  %ke = tensor.empty() : tensor<4x8x5xf32>
  %kt = linalg.transpose ins(%k : tensor<4x5x8xf32>) outs(%ke : tensor<4x8x5xf32>) permutation = [0, 2, 1]
  %se = tensor.empty() : tensor<4x6x5xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x6x5xf32>) -> tensor<4x6x5xf32>
  %s = linalg.batch_matmul ins(%qr, %kt : tensor<4x6x8xf32>, tensor<4x8x5xf32>) outs(%sz : tensor<4x6x5xf32>) -> tensor<4x6x5xf32>
  %s4 = tensor.expand_shape %s [[0], [1, 2], [3]] output_shape [4, 2, 3, 5] : tensor<4x6x5xf32> into tensor<4x2x3x5xf32>
  %pe = tensor.empty() : tensor<4x2x3x5xf32>
  %p = linalg.softmax dimension(3) ins(%s4 : tensor<4x2x3x5xf32>) outs(%pe : tensor<4x2x3x5xf32>) -> tensor<4x2x3x5xf32>
  %pr = tensor.collapse_shape %p [[0], [1, 2], [3]] : tensor<4x2x3x5xf32> into tensor<4x6x5xf32>
  %vr = tensor.collapse_shape %v [[0], [1], [2, 3, 4]] : tensor<4x5x8x1x1xf32> into tensor<4x5x8xf32>
  %oe = tensor.empty() : tensor<4x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %o = linalg.batch_matmul ins(%pr, %vr : tensor<4x6x5xf32>, tensor<4x5x8xf32>) outs(%oz : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %o4 = tensor.expand_shape %o [[0], [1, 2], [3]] output_shape [4, 3, 2, 8] : tensor<4x6x8xf32> into tensor<4x3x2x8xf32>
  %o3 = tensor.collapse_shape %o4 [[0], [1, 2], [3]] : tensor<4x3x2x8xf32> into tensor<4x6x8xf32>
  %r = tensor.expand_shape %o3 [[0], [1, 2], [3]] output_shape [4, 2, 3, 8] : tensor<4x6x8xf32> into tensor<4x2x3x8xf32>
  return %r : tensor<4x2x3x8xf32>
}
