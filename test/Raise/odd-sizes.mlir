// Sizes that the verifiers accept and that no tensor has are no reason to crash.
//
// RUN: posenc-opt --posenc-raise --split-input-file %s | FileCheck %s

// The number of a dimension that the tensor does not have.
// CHECK-LABEL: func @missing_dim
//   CHECK-NOT: posenc.rotate
func.func @missing_dim(%t: tensor<?x8xf32>, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c4 = arith.constant 4 : index
  %n = tensor.dim %t, %c4 : tensor<?x8xf32>
  %m = tensor.dim %x, %c4 : tensor<?x8xf32>
  %same = arith.cmpi eq, %m, %n : index
  cf.assert %same, "sizes differ"
  %x0 = tensor.extract_slice %x[0, 0] [%n, 4] [1, 1] : tensor<?x8xf32> to tensor<?x4xf32>
  %x1 = tensor.extract_slice %x[0, 4] [%n, 4] [1, 1] : tensor<?x8xf32> to tensor<?x4xf32>
  %neg = arith.negf %x1 : tensor<?x4xf32>
  %r = tensor.concat dim(1) %neg, %x0 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>
  %a = arith.mulf %x, %t : tensor<?x8xf32>
  %b = arith.mulf %r, %t : tensor<?x8xf32>
  %y = arith.addf %a, %b : tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// Numbers of lanes whose product overflows.
// CHECK-LABEL: func @many_lanes
//   CHECK-NOT: posenc.rotate
func.func @many_lanes(%x: tensor<2x4611686018427387904x4xf32>, %y: tensor<2x8xf32>) -> (tensor<2x4611686018427387904x4xf32>, tensor<2x8xf32>) {
  %a = arith.addf %x, %x : tensor<2x4611686018427387904x4xf32>
  %c0 = arith.constant 0 : index
  %first = tensor.extract %a[%c0, %c0, %c0] : tensor<2x4611686018427387904x4xf32>
  %s = tensor.splat %first : tensor<2x8xf32>
  %b = arith.addf %y, %s : tensor<2x8xf32>
  return %a, %b : tensor<2x4611686018427387904x4xf32>, tensor<2x8xf32>
}

// -----

// A slice whose end is beyond 64 bits.
// CHECK-LABEL: func @far_insert
//   CHECK-NOT: posenc.rotate
func.func @far_insert(%x: tensor<4x8xf32>, %z: tensor<?x8xf32>, %w: tensor<4611686018427387904x8xf32>) -> tensor<?x8xf32> {
  %r = tensor.insert_slice %w into %z[0, 0] [4611686018427387904, 8] [4, 1] : tensor<4611686018427387904x8xf32> into tensor<?x8xf32>
  %y = arith.addf %r, %r : tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// Indices that overflow.
#both = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func @far_rows
func.func @far_rows(%x: tensor<4x8xf32>, %t: tensor<?x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %c = linalg.generic {indexing_maps = [#both], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<4x8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %far = arith.constant 9223372036854775807 : index
    %farther = arith.constant 4611686018427387904 : index
    %a = arith.addi %i, %far : index
    %b = arith.muli %a, %farther : index
    %d = arith.divui %b, %farther : index
    %small = arith.cmpi slt, %d, %b : index
    %row = arith.select %small, %d, %i : index
    %v = tensor.extract %t[%row, %j] : tensor<?x8xf32>
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %x0 = tensor.extract_slice %x[0, 0] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
  %x1 = tensor.extract_slice %x[0, 4] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
  %neg = arith.negf %x1 : tensor<4x4xf32>
  %r = tensor.concat dim(1) %neg, %x0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  %a = arith.mulf %x, %c : tensor<4x8xf32>
  %b = arith.mulf %r, %c : tensor<4x8xf32>
  %y = arith.addf %a, %b : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
