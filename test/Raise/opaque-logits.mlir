// A remark names the operation whose results are the logits.
//
// RUN: posenc-opt %s --posenc-import-hlo --posenc-raise --remarks-filter=posenc -o %t 2>&1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=LEFT --input-file=%t
// LEFT-NOT: posenc.

func.func private @mask(tensor<2x6x6xf16>) -> tensor<2x6x6xf16>

// CHECK: Function=external {{.*}}"'linalg.batch_matmul' looks like attention, but the logits are results of a call of '@mask', which has no body, not products of queries and keys"
func.func @external(%q: tensor<2x6x16xf16>, %k: tensor<2x6x16xf16>, %v: tensor<2x6x16xf16>) -> tensor<2x6x16xf16> {
  %zero = stablehlo.constant dense<0.0> : tensor<f16>
  %d = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x6x16xf16>, tensor<2x6x16xf16>) -> tensor<2x6x6xf16>
  %l = func.call @mask(%d) : (tensor<2x6x6xf16>) -> tensor<2x6x6xf16>
  %e = stablehlo.exponential %l : tensor<2x6x6xf16>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x6x6xf16>, tensor<f16>) -> tensor<2x6xf16>
  %sw = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<2x6xf16>) -> tensor<2x6x6xf16>
  %p = stablehlo.divide %e, %sw : tensor<2x6x6xf16>
  %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x6x6xf16>, tensor<2x6x16xf16>) -> tensor<2x6x16xf16>
  return %o : tensor<2x6x16xf16>
}

// CHECK: Function=distances {{.*}}the logits are results of 'linalg.generic', not products of queries and keys
func.func @distances(%x: tensor<2x6x6x16xf32>, %v: tensor<2x6x16xf32>) -> tensor<2x6x16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %l = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x6x6x16xf32>, tensor<f32>) -> tensor<2x6x6xf32>
  %e = stablehlo.exponential %l : tensor<2x6x6xf32>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x6x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  %sw = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<2x6xf32>) -> tensor<2x6x6xf32>
  %p = stablehlo.divide %e, %sw : tensor<2x6x6xf32>
  %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x6x6xf32>, tensor<2x6x16xf32>) -> tensor<2x6x16xf32>
  return %o : tensor<2x6x16xf32>
}
