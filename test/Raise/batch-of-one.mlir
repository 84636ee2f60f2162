// Heads that share keys are found for a batch of 1, which has no dimension in
// index maps, in the order in which jax.nn.dot_product_attention writes them.
//
// RUN: posenc-opt %s --posenc-import-hlo --posenc-raise | FileCheck %s
// RUN: %python %S/compare-raised.py posenc-run %s
// RUN: %python %S/compare-raised.py posenc-run %s --fault

// CHECK-LABEL: func @grouped
//       CHECK: posenc.attention
//  CHECK-SAME:   tensor<1x8x6x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>
func.func @grouped(%q: tensor<1x8x6x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>) -> tensor<1x8x6x16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reshape %q : (tensor<1x8x6x16xf32>) -> tensor<1x8x2x3x16xf32>
  %1 = stablehlo.dot_general %0, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3] : (tensor<1x8x2x3x16xf32>, tensor<1x8x2x16xf32>) -> tensor<1x2x8x3x8xf32>
  %2 = stablehlo.transpose %1, dims = [3, 0, 1, 2, 4] : (tensor<1x2x8x3x8xf32>) -> tensor<3x1x2x8x8xf32>
  %3 = stablehlo.exponential %2 : tensor<3x1x2x8x8xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [4] : (tensor<3x1x2x8x8xf32>, tensor<f32>) -> tensor<3x1x2x8xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2, 3] : (tensor<3x1x2x8xf32>) -> tensor<3x1x2x8x8xf32>
  %6 = stablehlo.divide %3, %5 : tensor<3x1x2x8x8xf32>
  %7 = stablehlo.dot_general %v, %6, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4] : (tensor<1x8x2x16xf32>, tensor<3x1x2x8x8xf32>) -> tensor<1x2x16x3x8xf32>
  %8 = stablehlo.transpose %7, dims = [0, 4, 1, 3, 2] : (tensor<1x2x16x3x8xf32>) -> tensor<1x8x2x3x16xf32>
  %9 = stablehlo.reshape %8 : (tensor<1x8x2x3x16xf32>) -> tensor<1x8x6x16xf32>
  return %9 : tensor<1x8x6x16xf32>
}

// Heads 0, 2 and 4 share keys, so the heads are transposed first.
// CHECK-LABEL: func @strided
//       CHECK: linalg.transpose ins(%{{.*}} : tensor<1x8x3x2x16xf32>)
//       CHECK: posenc.attention
func.func @strided(%q: tensor<1x8x6x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>) -> tensor<1x8x6x16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %split = stablehlo.reshape %q : (tensor<1x8x6x16xf32>) -> tensor<1x8x3x2x16xf32>
  %0 = stablehlo.transpose %split, dims = [0, 1, 3, 2, 4] : (tensor<1x8x3x2x16xf32>) -> tensor<1x8x2x3x16xf32>
  %1 = stablehlo.dot_general %0, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3] : (tensor<1x8x2x3x16xf32>, tensor<1x8x2x16xf32>) -> tensor<1x2x8x3x8xf32>
  %2 = stablehlo.transpose %1, dims = [3, 0, 1, 2, 4] : (tensor<1x2x8x3x8xf32>) -> tensor<3x1x2x8x8xf32>
  %3 = stablehlo.exponential %2 : tensor<3x1x2x8x8xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [4] : (tensor<3x1x2x8x8xf32>, tensor<f32>) -> tensor<3x1x2x8xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2, 3] : (tensor<3x1x2x8xf32>) -> tensor<3x1x2x8x8xf32>
  %6 = stablehlo.divide %3, %5 : tensor<3x1x2x8x8xf32>
  %7 = stablehlo.dot_general %v, %6, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4] : (tensor<1x8x2x16xf32>, tensor<3x1x2x8x8xf32>) -> tensor<1x2x16x3x8xf32>
  %8 = stablehlo.transpose %7, dims = [0, 4, 3, 1, 2] : (tensor<1x2x16x3x8xf32>) -> tensor<1x8x3x2x16xf32>
  %9 = stablehlo.reshape %8 : (tensor<1x8x3x2x16xf32>) -> tensor<1x8x6x16xf32>
  return %9 : tensor<1x8x6x16xf32>
}
