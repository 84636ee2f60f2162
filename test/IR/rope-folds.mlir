//===- rope-folds.mlir - folds of posenc.rope -----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --canonicalize --split-input-file \
// RUN:   --mlir-print-local-scope | FileCheck %s

#f = #posenc.frequencies<dim = 16, base = 1.000000e+04>

//===----------------------------------------------------------------------===//
// rope(x, 0) = x
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @zero(
// CHECK-SAME:    %[[X:.*]]: tensor<4x16xf32>, %[[Y:.*]]: tensor<4x2x16xf32>)
// CHECK-NEXT:    return %[[X]], %[[Y]]
func.func @zero(%x: tensor<4x16xf32>, %y: tensor<4x2x16xf32>) -> (tensor<4x16xf32>, tensor<4x2x16xf32>) {
  %p = arith.constant dense<0> : tensor<4xi64>
  %r:2 = posenc.rope half inverse #f ins(%x, %y : tensor<4x16xf32>, tensor<4x2x16xf32>) positions(%p : tensor<4xi64>) dims = [0]
    outs(%x, %y : tensor<4x16xf32>, tensor<4x2x16xf32>)
  return %r#0, %r#1 : tensor<4x16xf32>, tensor<4x2x16xf32>
}

// Not folded: the row index is added to a scalar position.
// CHECK-LABEL: func.func @not_scalar_zero(
// CHECK:         posenc.rope
func.func @not_scalar_zero(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %p = arith.constant 0 : i64
  %r = posenc.rope half #f ins(%x : tensor<4x16xf32>) positions(%p : i64) dims = [0] outs(%x : tensor<4x16xf32>)
  return %r : tensor<4x16xf32>
}

// CHECK-LABEL: func.func @not_some_zeros(
// CHECK:         posenc.rope
func.func @not_some_zeros(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %p = arith.constant dense<[0, 0, 0, 1]> : tensor<4xi64>
  %r = posenc.rope half #f ins(%x : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  return %r : tensor<4x16xf32>
}

// CHECK-LABEL: func.func @not_memref(
// CHECK:         posenc.rope
func.func @not_memref(%x: memref<4x16xf32>, %p: memref<4xi64>, %y: memref<4x16xf32>) {
  posenc.rope half #f ins(%x : memref<4x16xf32>) positions(%p : memref<4xi64>) dims = [0] outs(%y : memref<4x16xf32>)
  return
}

// -----

#y = #posenc.frequencies<dim = 16, base = 1.000000e+04,
  scaling = #posenc.yarn<factor = 4.000000e+00, original_max_position = 4.096000e+03>>

// rope(x, 0) = att*x.
// CHECK-LABEL: func.func @not_zero_with_factor(
// CHECK:         posenc.rope
func.func @not_zero_with_factor(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %p = arith.constant dense<0> : tensor<4xi64>
  %r = posenc.rope half #y ins(%x : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  return %r : tensor<4x16xf32>
}

//===----------------------------------------------------------------------===//
// A rope and its inverse
//===----------------------------------------------------------------------===//

// This holds for any attention factor.
// CHECK-LABEL: func.func @forward_inverse(
// CHECK-SAME:    %[[X:.*]]: tensor<4x16xf32>
// CHECK-NEXT:    return %[[X]]
func.func @forward_inverse(%x: tensor<4x16xf32>, %p: tensor<4xi64>) -> tensor<4x16xf32> {
  %0 = posenc.rope half #y ins(%x : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  %1 = posenc.rope half inverse #y ins(%0 : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%0 : tensor<4x16xf32>)
  return %1 : tensor<4x16xf32>
}

// CHECK-LABEL: func.func @inverse_forward(
// CHECK-SAME:    %[[X:.*]]: tensor<4x16xf32>
// CHECK-NEXT:    return %[[X]]
func.func @inverse_forward(%x: tensor<4x16xf32>, %p: i32) -> tensor<4x16xf32> {
  %0 = posenc.rope half inverse #y ins(%x : tensor<4x16xf32>) positions(%p : i32) dims = [0] outs(%x : tensor<4x16xf32>)
  %1 = posenc.rope half #y ins(%0 : tensor<4x16xf32>) positions(%p : i32) dims = [0] outs(%0 : tensor<4x16xf32>)
  return %1 : tensor<4x16xf32>
}

// CHECK-LABEL: func.func @not_other_pairing(
// CHECK-COUNT-2: posenc.rope
func.func @not_other_pairing(%x: tensor<4x16xf32>, %p: tensor<4xi64>) -> tensor<4x16xf32> {
  %0 = posenc.rope half #y ins(%x : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  %1 = posenc.rope interleaved inverse #y ins(%0 : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%0 : tensor<4x16xf32>)
  return %1 : tensor<4x16xf32>
}

// CHECK-LABEL: func.func @not_swapped(
// CHECK-COUNT-2: posenc.rope
func.func @not_swapped(%x: tensor<4x16xf32>, %y: tensor<4x16xf32>, %p: tensor<4xi64>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %0:2 = posenc.rope half #y ins(%x, %y : tensor<4x16xf32>, tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x, %y : tensor<4x16xf32>, tensor<4x16xf32>)
  %1:2 = posenc.rope half inverse #y ins(%0#1, %0#0 : tensor<4x16xf32>, tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x, %y : tensor<4x16xf32>, tensor<4x16xf32>)
  return %1#0, %1#1 : tensor<4x16xf32>, tensor<4x16xf32>
}

// Not composed: two ropes multiply by att^2, one by att.
// CHECK-LABEL: func.func @not_composed_with_factor(
// CHECK-COUNT-2: posenc.rope
func.func @not_composed_with_factor(%x: tensor<4x16xf32>, %p: tensor<4xi64>, %q: tensor<4xi64>) -> tensor<4x16xf32> {
  %0 = posenc.rope half #y ins(%x : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  %1 = posenc.rope half #y ins(%0 : tensor<4x16xf32>) positions(%q : tensor<4xi64>) dims = [0] outs(%0 : tensor<4x16xf32>)
  return %1 : tensor<4x16xf32>
}

// -----

#f = #posenc.frequencies<dim = 16, base = 1.000000e+04>

//===----------------------------------------------------------------------===//
// rope(rope(x, p), q) = rope(x, p+q)
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @compose(
// CHECK-SAME:    %[[X:.*]]: tensor<?x16xf32>, %[[P:.*]]: tensor<?xi64>, %[[Q:.*]]: tensor<?xi64>)
// CHECK-NEXT:    %[[SUM:.*]] = arith.addi %[[P]], %[[Q]] : tensor<?xi64>
// CHECK-NEXT:    %[[R:.*]] = posenc.rope half <{{.*}}> ins(%[[X]] : {{.*}}) positions(%[[SUM]] : tensor<?xi64>)
// CHECK-NEXT:    return %[[R]]
func.func @compose(%x: tensor<?x16xf32>, %p: tensor<?xi64>, %q: tensor<?xi64>) -> tensor<?x16xf32> {
  %0 = posenc.rope half #f ins(%x : tensor<?x16xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x16xf32>)
  %1 = posenc.rope half #f ins(%0 : tensor<?x16xf32>) positions(%q : tensor<?xi64>) dims = [0] outs(%x : tensor<?x16xf32>)
  return %1 : tensor<?x16xf32>
}

// The sum of positions is computed in i64.
// CHECK-LABEL: func.func @compose_i32_and_index(
// CHECK-SAME:    %[[X:.*]]: tensor<4x16xf32>, %[[P:.*]]: tensor<4xi32>, %[[Q:.*]]: tensor<4xindex>)
// CHECK-DAG:     %[[PW:.*]] = arith.extsi %[[P]] : tensor<4xi32> to tensor<4xi64>
// CHECK-DAG:     %[[QW:.*]] = arith.index_cast %[[Q]] : tensor<4xindex> to tensor<4xi64>
// CHECK:         %[[D:.*]] = arith.subi %[[PW]], %[[QW]] : tensor<4xi64>
// CHECK-NEXT:    posenc.rope half inverse <{{.*}}> ins(%[[X]] : {{.*}}) positions(%[[D]] : tensor<4xi64>)
func.func @compose_i32_and_index(%x: tensor<4x16xf32>, %p: tensor<4xi32>, %q: tensor<4xindex>) -> tensor<4x16xf32> {
  %0 = posenc.rope half inverse #f ins(%x : tensor<4x16xf32>) positions(%p : tensor<4xi32>) dims = [0] outs(%x : tensor<4x16xf32>)
  %1 = posenc.rope half #f ins(%0 : tensor<4x16xf32>) positions(%q : tensor<4xindex>) dims = [0] outs(%x : tensor<4x16xf32>)
  return %1 : tensor<4x16xf32>
}

// CHECK-LABEL: func.func @compose_inverses(
// CHECK:         %[[SUM:.*]] = arith.addi
// CHECK-NEXT:    posenc.rope half inverse <{{.*}}> ins({{.*}}) positions(%[[SUM]] :
func.func @compose_inverses(%x: tensor<4x16xf32>, %p: tensor<4xi64>, %q: tensor<4xi64>) -> tensor<4x16xf32> {
  %0 = posenc.rope half inverse #f ins(%x : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  %1 = posenc.rope half inverse #f ins(%0 : tensor<4x16xf32>) positions(%q : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  return %1 : tensor<4x16xf32>
}

// CHECK-LABEL: func.func @not_compose_scalars(
// CHECK-COUNT-2: posenc.rope
func.func @not_compose_scalars(%x: tensor<4x16xf32>, %p: i64, %q: i64) -> tensor<4x16xf32> {
  %0 = posenc.rope half #f ins(%x : tensor<4x16xf32>) positions(%p : i64) dims = [0] outs(%x : tensor<4x16xf32>)
  %1 = posenc.rope half #f ins(%0 : tensor<4x16xf32>) positions(%q : i64) dims = [0] outs(%x : tensor<4x16xf32>)
  return %1 : tensor<4x16xf32>
}

// CHECK-LABEL: func.func @not_compose_other_types(
// CHECK-NOT:     arith
// CHECK-COUNT-2: posenc.rope
func.func @not_compose_other_types(%x: tensor<4x16xf32>, %p: tensor<?xi32>, %q: tensor<4xi32>) -> tensor<4x16xf32> {
  %0 = posenc.rope half #f ins(%x : tensor<4x16xf32>) positions(%p : tensor<?xi32>) dims = [0] outs(%x : tensor<4x16xf32>)
  %1 = posenc.rope half #f ins(%0 : tensor<4x16xf32>) positions(%q : tensor<4xi32>) dims = [0] outs(%x : tensor<4x16xf32>)
  return %1 : tensor<4x16xf32>
}

// Not composed: the inner rotation has other users.
// CHECK-LABEL: func.func @not_compose_used(
// CHECK-COUNT-2: posenc.rope
func.func @not_compose_used(%x: tensor<4x16xf32>, %p: tensor<4xi64>, %q: tensor<4xi64>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %0 = posenc.rope half #f ins(%x : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  %1 = posenc.rope half #f ins(%0 : tensor<4x16xf32>) positions(%q : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  return %0, %1 : tensor<4x16xf32>, tensor<4x16xf32>
}

//===----------------------------------------------------------------------===//
// Unused results
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @drop_unused(
// CHECK-SAME:    %[[X:.*]]: tensor<4x16xf32>, %[[Y:.*]]: tensor<4x2x16xf32>, %[[P:.*]]: tensor<4xi64>)
// CHECK-NEXT:    %[[R:.*]] = posenc.rope half <{{.*}}> ins(%[[Y]] : tensor<4x2x16xf32>) positions(%[[P]] : tensor<4xi64>) dims = [0] outs(%[[Y]] : tensor<4x2x16xf32>)
// CHECK-NEXT:    return %[[R]]
func.func @drop_unused(%x: tensor<4x16xf32>, %y: tensor<4x2x16xf32>, %p: tensor<4xi64>) -> tensor<4x2x16xf32> {
  %0:2 = posenc.rope half #f ins(%x, %y : tensor<4x16xf32>, tensor<4x2x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x, %y : tensor<4x16xf32>, tensor<4x2x16xf32>)
  return %0#1 : tensor<4x2x16xf32>
}

//===----------------------------------------------------------------------===//
// Graph regions
//===----------------------------------------------------------------------===//

// An operation that is its own input is not folded.
// CHECK-LABEL: module @cycle
// CHECK: %[[A:.*]] = posenc.rope half <{{.*}}> ins(%[[A]] :
module @cycle {
  %zero = arith.constant dense<0> : tensor<4xi64>
  %o = tensor.empty() : tensor<4x16xf32>
  %a = posenc.rope half #f ins(%a : tensor<4x16xf32>) positions(%zero : tensor<4xi64>) dims = [0] outs(%o : tensor<4x16xf32>)
  %d = bufferization.to_buffer %a : tensor<4x16xf32> to memref<4x16xf32>
  memref.dealloc %d : memref<4x16xf32>
}

// -----

//===----------------------------------------------------------------------===//
// Cached keys move to other positions: the attention factors cancel.
//===----------------------------------------------------------------------===//

#y = #posenc.frequencies<dim = 16, base = 1.000000e+04,
  scaling = #posenc.yarn<factor = 4.000000e+00, original_max_position = 4.096000e+03, mscale = 1.000000e+00, mscale_all_dim = 2.000000e+00>>

// CHECK-LABEL: func.func @rerotate_with_factor(
// CHECK-SAME:    %[[X:.*]]: tensor<4x16xf32>, %[[P:.*]]: tensor<4xi64>, %[[Q:.*]]: tensor<4xi64>)
// CHECK-NEXT:    %[[D:.*]] = arith.subi %[[P]], %[[Q]]
// CHECK-NEXT:    %[[R:.*]] = posenc.rope half inverse <dim = 16, base = 1.000000e+04, scaling = #posenc.yarn<factor = 4.000000e+00, original_max_position = 4.096000e+03, attention_factor = 1.000000e+00>>
// CHECK-SAME:      ins(%[[X]] : tensor<4x16xf32>) positions(%[[D]] : tensor<4xi64>)
// CHECK-NEXT:    return %[[R]]
func.func @rerotate_with_factor(%x: tensor<4x16xf32>, %p: tensor<4xi64>, %q: tensor<4xi64>) -> tensor<4x16xf32> {
  %0 = posenc.rope half inverse #y ins(%x : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  %1 = posenc.rope half #y ins(%0 : tensor<4x16xf32>) positions(%q : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  return %1 : tensor<4x16xf32>
}

// -----

#l = #posenc.frequencies<dim = 8, scaling = #posenc.longrope<short_factors = [1, 1, 1, 1], long_factors = [1, 2, 4, 8], original_max_position = 4096, length = 8192, factor = 32>>
#e = #posenc.frequencies<dim = 8, scaling = #posenc.explicit<values = [1, 2, 3, 4], attention_factor = 2.0>>

// CHECK-LABEL: func.func @rerotate_longrope(
// CHECK:         posenc.rope half <dim = 8, base = 1.000000e+04, scaling = #posenc.longrope<short_factors = [1.000000e+00, 1.000000e+00, 1.000000e+00, 1.000000e+00], long_factors = [1.000000e+00, 2.000000e+00, 4.000000e+00, 8.000000e+00], original_max_position = 4.096000e+03, length = 8.192000e+03>>
// CHECK-NEXT:    return
func.func @rerotate_longrope(%x: tensor<4x8xf32>, %p: tensor<4xi64>, %q: tensor<4xi32>) -> tensor<4x8xf32> {
  %0 = posenc.rope half #l ins(%x : tensor<4x8xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x8xf32>)
  %1 = posenc.rope half inverse #l ins(%0 : tensor<4x8xf32>) positions(%q : tensor<4xi32>) dims = [0] outs(%x : tensor<4x8xf32>)
  return %1 : tensor<4x8xf32>
}

// On several position axes, the positions of each are subtracted.
// CHECK-LABEL: func.func @rerotate_axes(
// CHECK:         arith.subi %{{.*}} : tensor<2x4xi64>
// CHECK:         posenc.rope half <dim = 8, base = 1.000000e+04, scaling = #posenc.explicit<values = [1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]>> axes <contiguous, [1, 3]>
// CHECK-NEXT:    return
func.func @rerotate_axes(%x: tensor<4x8xf32>, %p: tensor<2x4xi64>, %q: tensor<2x4xi64>) -> tensor<4x8xf32> {
  %0 = posenc.rope half #e axes #posenc.axes<contiguous, [1, 3]> ins(%x : tensor<4x8xf32>) positions(%p : tensor<2x4xi64>) dims = [0] outs(%x : tensor<4x8xf32>)
  %1 = posenc.rope half inverse #e axes #posenc.axes<contiguous, [1, 3]> ins(%0 : tensor<4x8xf32>) positions(%q : tensor<2x4xi64>) dims = [0] outs(%x : tensor<4x8xf32>)
  return %1 : tensor<4x8xf32>
}

// -----

//===----------------------------------------------------------------------===//
// A rope of a row of a sinusoidal table is another row.
//===----------------------------------------------------------------------===//

#f = #posenc.frequencies<dim = 8, base = 1.000000e+04>

// CHECK-LABEL: func.func @shift_sin_cos(
// CHECK-SAME:    %[[P:.*]]: tensor<4xi64>, %[[K:.*]]: tensor<4xi64>,
// CHECK-NEXT:    %[[Q:.*]] = arith.subi %[[P]], %[[K]]
// CHECK-NEXT:    posenc.sinusoidal sin_cos <dim = 8, base = 1.000000e+04> positions(%[[Q]] : tensor<4xi64>)
// CHECK-NEXT:    return
func.func @shift_sin_cos(%p: tensor<4xi64>, %k: tensor<4xi64>, %t: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = posenc.sinusoidal sin_cos #f positions(%p : tensor<4xi64>) outs(%t : tensor<4x8xf32>)
  %1 = posenc.rope half #f ins(%0 : tensor<4x8xf32>) positions(%k : tensor<4xi64>) dims = [0] outs(%t : tensor<4x8xf32>)
  return %1 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @shift_cos_sin_inverse(
// CHECK-NEXT:    %[[Q:.*]] = arith.subi
// CHECK-NEXT:    posenc.sinusoidal cos_sin {{.*}} positions(%[[Q]] :
// CHECK-NEXT:    return
func.func @shift_cos_sin_inverse(%p: tensor<4xi64>, %k: tensor<4xi64>, %t: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = posenc.sinusoidal cos_sin #f positions(%p : tensor<4xi64>) outs(%t : tensor<4x8xf32>)
  %1 = posenc.rope half inverse #f ins(%0 : tensor<4x8xf32>) positions(%k : tensor<4xi64>) dims = [0] outs(%t : tensor<4x8xf32>)
  return %1 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @shift_interleaved_inverse(
// CHECK-NEXT:    %[[Q:.*]] = arith.addi
// CHECK-NEXT:    posenc.sinusoidal interleaved {{.*}} positions(%[[Q]] :
// CHECK-NEXT:    return
func.func @shift_interleaved_inverse(%p: tensor<4xi64>, %k: tensor<4xi64>, %t: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = posenc.sinusoidal interleaved #f positions(%p : tensor<4xi64>) outs(%t : tensor<4x8xf32>)
  %1 = posenc.rope interleaved inverse #f ins(%0 : tensor<4x8xf32>) positions(%k : tensor<4xi64>) dims = [0] outs(%t : tensor<4x8xf32>)
  return %1 : tensor<4x8xf32>
}

// Not folded: pairs of another order.
// CHECK-LABEL: func.func @not_shifted_other_pairs(
// CHECK:         posenc.rope
func.func @not_shifted_other_pairs(%p: tensor<4xi64>, %k: tensor<4xi64>, %t: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = posenc.sinusoidal interleaved #f positions(%p : tensor<4xi64>) outs(%t : tensor<4x8xf32>)
  %1 = posenc.rope half #f ins(%0 : tensor<4x8xf32>) positions(%k : tensor<4xi64>) dims = [0] outs(%t : tensor<4x8xf32>)
  return %1 : tensor<4x8xf32>
}

// Not folded: a row of padding stays zero.
// CHECK-LABEL: func.func @not_shifted_padding(
// CHECK:         posenc.rope
func.func @not_shifted_padding(%p: tensor<4xi64>, %k: tensor<4xi64>, %t: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = posenc.sinusoidal sin_cos #f padding_position = 1 positions(%p : tensor<4xi64>) outs(%t : tensor<4x8xf32>)
  %1 = posenc.rope half #f ins(%0 : tensor<4x8xf32>) positions(%k : tensor<4xi64>) dims = [0] outs(%t : tensor<4x8xf32>)
  return %1 : tensor<4x8xf32>
}

// Not folded: the tables have other frequencies.
// CHECK-LABEL: func.func @not_shifted_other_frequencies(
// CHECK:         posenc.rope
func.func @not_shifted_other_frequencies(%p: tensor<4xi64>, %k: tensor<4xi64>, %t: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = posenc.sinusoidal sin_cos #f positions(%p : tensor<4xi64>) outs(%t : tensor<4x8xf32>)
  %1 = posenc.rope half #posenc.frequencies<dim = 8, base = 5.0e+05> ins(%0 : tensor<4x8xf32>) positions(%k : tensor<4xi64>) dims = [0] outs(%t : tensor<4x8xf32>)
  return %1 : tensor<4x8xf32>
}
