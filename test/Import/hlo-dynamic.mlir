// Dynamic StableHLO: sizes are values of the arguments, which assertions compare.
//
// RUN: posenc-opt %s --posenc-import-hlo --split-input-file | FileCheck %s

// Equal sizes are one value, and reshapes keep their groups.
// CHECK-LABEL: func public @main
//  CHECK-SAME: (%[[X:.*]]: tensor<?x?x64xf32>, %[[Y:.*]]: tensor<?x?xf32>) -> tensor<?x?x4x16xf32>
//   CHECK-DAG: %[[B:.*]] = tensor.dim %[[X]], %c0
//   CHECK-DAG: %[[S:.*]] = tensor.dim %[[X]], %c1
//   CHECK-DAG: %[[OTHER:.*]] = tensor.dim %[[Y]], %c0
//       CHECK: %[[SAME:.*]] = arith.cmpi eq, %[[OTHER]], %[[B]]
//       CHECK: cf.assert %[[SAME]], "the first size of y is not that of x"
//       CHECK: tensor.expand_shape %[[X]] {{\[\[}}0], [1], [2, 3]] output_shape [%[[B]], %[[S]], 4, 16]
//       CHECK: tensor.empty(%[[B]], %[[S]])
//   CHECK-NOT: stablehlo
//   CHECK-NOT: from_elements
//   CHECK-NOT: func private
module @jit_f attributes {jax.uses_shape_polymorphism = true} {
  func.func public @main(%x: tensor<?x?x64xf32>, %y: tensor<?x?xf32>) -> tensor<?x?x4x16xf32> {
    %b = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?x64xf32>) -> tensor<i32>
    %s = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?x64xf32>) -> tensor<i32>
    %other = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
    %same = stablehlo.compare EQ, %other, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%same, %other, %b) {error_message = "the first size of y (= {0}) is not that of x (= {1}). Using the following: nothing", has_side_effect = true} : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()
    %r = call @wrapped(%b, %s, %x, %y) : (tensor<i32>, tensor<i32>, tensor<?x?x64xf32>, tensor<?x?xf32>) -> tensor<?x?x4x16xf32>
    return %r : tensor<?x?x4x16xf32>
  }
  func.func private @wrapped(%b: tensor<i32> {jax.global_constant = "b"}, %s: tensor<i32> {jax.global_constant = "s"}, %x: tensor<?x?x64xf32>, %y: tensor<?x?xf32>) -> tensor<?x?x4x16xf32> {
    %four = stablehlo.constant dense<4> : tensor<1xi32>
    %sixteen = stablehlo.constant dense<16> : tensor<1xi32>
    %0 = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.reshape %s : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.concatenate %0, %1, %four, %sixteen, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %3 = stablehlo.dynamic_reshape %x, %2 : (tensor<?x?x64xf32>, tensor<4xi32>) -> tensor<?x?x4x16xf32>
    %4 = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
    %5 = stablehlo.reshape %4 : (tensor<i32>) -> tensor<1xi32>
    %6 = stablehlo.concatenate %5, %1, %four, %sixteen, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %7 = stablehlo.dynamic_broadcast_in_dim %one, %6, dims = [] : (tensor<f32>, tensor<4xi32>) -> tensor<?x?x4x16xf32>
    %8 = stablehlo.add %3, %7 : tensor<?x?x4x16xf32>
    return %8 : tensor<?x?x4x16xf32>
  }
}

// -----

// The half of a multiple: division rounds down as JAX spells it out, and twice
// the half is the size.
// CHECK-LABEL: func @half
//       CHECK: %[[N:.*]] = tensor.dim
//       CHECK: %[[H:.*]] = arith.divsi %[[N]], %c2
//       CHECK: %[[REST:.*]] = arith.remsi %[[N]], %c2
//       CHECK: %[[EVEN:.*]] = arith.cmpi eq, %[[REST]], %c0
//       CHECK: cf.assert %[[EVEN]]
//       CHECK: %[[SLICE:.*]] = tensor.extract_slice %{{.*}}[%[[H]]] [%[[H]]] [1]
//       CHECK: return %[[SLICE]]
func.func @half(%x: tensor<?xf32>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %q = stablehlo.divide %n, %two : tensor<i32>
  %sign = stablehlo.sign %n : tensor<i32>
  %differs = stablehlo.compare NE, %sign, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %rest = stablehlo.remainder %n, %two : tensor<i32>
  %odd = stablehlo.compare NE, %rest, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %both = stablehlo.and %differs, %odd : tensor<i1>
  %less = stablehlo.subtract %q, %one : tensor<i32>
  %half = stablehlo.select %both, %less, %q : tensor<i1>, tensor<i32>
  %even = stablehlo.compare EQ, %rest, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%even) {error_message = "an odd size", has_side_effect = true} : (tensor<i1>) -> ()
  %start = stablehlo.reshape %half : (tensor<i32>) -> tensor<1xi32>
  %sizes = stablehlo.reshape %half : (tensor<i32>) -> tensor<1xi32>
  %y = "stablehlo.dynamic_gather"(%x, %start, %sizes) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], start_index_map = [0]>, indices_are_sorted = true}> : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// A while that counts is a loop, whose invariant values are not carried.
// CHECK-LABEL: func @loop
//  CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[W:.*]]: tensor<4xf32>)
//       CHECK: %[[R:.*]] = scf.for %{{.*}} = %c0 to %c3 step %c1 iter_args(%[[A:.*]] = %[[X]])
//       CHECK:   %[[SUM:.*]] = arith.addf %[[A]], %[[W]]
//       CHECK:   scf.yield %[[SUM]]
//       CHECK: return %[[R]]
func.func @loop(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %0:3 = stablehlo.while(%weights = %w, %i = %zero, %a = %x) : tensor<4xf32>, tensor<i32>, tensor<4xf32>
  cond {
    %less = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %sum = stablehlo.add %a, %weights : tensor<4xf32>
    stablehlo.return %weights, %next, %sum : tensor<4xf32>, tensor<i32>, tensor<4xf32>
  }
  return %0#2 : tensor<4xf32>
}

// -----

// A bound that is not constant is a while.
// CHECK-LABEL: func @unknown
//       CHECK: scf.while
//       CHECK: scf.condition
func.func @unknown(%n: tensor<i32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.while(%i = %zero) : tensor<i32>
  cond {
    %less = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next : tensor<i32>
  }
  return %0 : tensor<i32>
}

// -----

// So is one whose number of iterations is beyond 64 bits.
// CHECK-LABEL: func @lowest
//       CHECK: scf.while
//       CHECK: scf.condition
func.func @lowest() -> tensor<i64> {
  %start = stablehlo.constant dense<-9223372036854775808> : tensor<i64>
  %end = stablehlo.constant dense<2147483647> : tensor<i64>
  %one = stablehlo.constant dense<1> : tensor<i64>
  %0 = stablehlo.while(%i = %start) : tensor<i64>
  cond {
    %less = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i64>
    stablehlo.return %next : tensor<i64>
  }
  return %0 : tensor<i64>
}

// -----

// The convolution that cuts an image into patches is a product.
// CHECK-LABEL: func @patches
//       CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0], [1, 2], [3, 4], [5]] output_shape [2, 4, 8, 4, 8, 3]
//       CHECK: linalg.generic
//  CHECK-SAME:   "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"
func.func @patches(%x: tensor<2x32x32x3xf32>, %w: tensor<8x8x3x5xf32>) -> tensor<2x4x4x5xf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [8, 8]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x32x32x3xf32>, tensor<8x8x3x5xf32>) -> tensor<2x4x4x5xf32>
  return %y : tensor<2x4x4x5xf32>
}

// -----

// Integers of dynamic sizes are compared by element: MLIR folds these to
// constants of dynamic sizes.
// CHECK-LABEL: func @same
//   CHECK-NOT: dense<
//       CHECK: linalg.generic
//       CHECK: linalg.generic
//       CHECK: return
func.func @same(%x: tensor<?xi32>) -> (tensor<?xi1>, tensor<?xi32>) {
  %0 = stablehlo.compare EQ, %x, %x, SIGNED : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi1>
  %1 = stablehlo.xor %x, %x : tensor<?xi32>
  return %0, %1 : tensor<?xi1>, tensor<?xi32>
}

// -----

// The sizes of tensors of unsigned integers are known.
// CHECK-LABEL: func @rows_of_bytes
//       CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0, 1]]
func.func @rows_of_bytes(%x: tensor<?xui8>) -> tensor<?x1xui8> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xui8>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %shape = stablehlo.concatenate %n1, %one, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %0 = stablehlo.dynamic_reshape %x, %shape : (tensor<?xui8>, tensor<2xi32>) -> tensor<?x1xui8>
  return %0 : tensor<?x1xui8>
}
