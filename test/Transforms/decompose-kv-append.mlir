//===- decompose-kv-append.mlir - kv_append becomes a loop ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-decompose-kv-append --canonicalize --cse \
// RUN:   --split-input-file --mlir-print-local-scope | FileCheck %s

// The slot is the position. A token whose slot is outside of the cache is not
// written.
// CHECK-LABEL: func.func @lengths(
// CHECK-SAME:    %[[K:.*]]: tensor<?x?x8x128xf16>, %[[V:.*]]: tensor<?x?x8x128xf16>, %[[N:.*]]: tensor<?xi64>, %[[KC:.*]]: tensor<?x8x?x128xf16>, %[[VC:.*]]: tensor
// CHECK:         %[[T:.*]] = tensor.dim %[[K]], %c1
// CHECK:         scf.forall (%[[I:.*]], %[[J:.*]]) in (%{{.*}}, %[[T]]) shared_outs(%[[KO:.*]] = %[[KC]], %[[VO:.*]] = %[[VC]])
// CHECK:           tensor.extract %[[N]][%[[I]]]
// CHECK:           %[[FIRST:.*]] = arith.subi %{{.*}}, %[[T]]
// CHECK:           %[[GIVEN:.*]] = arith.addi %[[FIRST]], %[[J]]
// CHECK:           %[[LEAST:.*]] = arith.maxsi %[[GIVEN]], %c0
// CHECK:           %[[EXISTS:.*]] = arith.minsi %{{.*}}, %c1
// CHECK:           %[[ROOM:.*]] = arith.subi %[[SIZE:.*]], %[[LEAST]]
// CHECK:           %[[MORE:.*]] = arith.maxsi %[[ROOM]], %c0
// CHECK:           %[[COUNT:.*]] = arith.minsi %[[EXISTS]], %[[MORE]]
// CHECK:           %[[LAST:.*]] = arith.subi %[[SIZE]], %[[COUNT]]
// CHECK:           %[[SLOT:.*]] = arith.minsi %[[LEAST]], %[[LAST]]
// CHECK:           tensor.extract_slice %[[K]][%[[I]], %[[J]], 0, 0] [1, %[[COUNT]], 8, 128]
// CHECK:           linalg.transpose
// CHECK:           tensor.extract_slice %[[V]][%[[I]], %[[J]], 0, 0] [1, %[[COUNT]], 8, 128]
// CHECK:           posenc.rope half {{.*}} positions(%[[SLOT]] : index) dims = [1]
// CHECK:             tensor.parallel_insert_slice %{{.*}} into %[[KO]][%[[I]], 0, %[[SLOT]], 0] [1, 8, %[[COUNT]], 128]
// CHECK:             tensor.parallel_insert_slice %{{.*}} into %[[VO]][%[[I]], 0, %[[SLOT]], 0] [1, 8, %[[COUNT]], 128]
func.func @lengths(%k: tensor<?x?x8x128xf16>, %v: tensor<?x?x8x128xf16>, %n: tensor<?xi64>, %kc: tensor<?x8x?x128xf16>, %vc: tensor<?x8x?x128xf16>) -> (tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>) {
  %r:2 = posenc.kv_append cache_layout = head_major
    rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 128, base = 5.000000e+05>>
    ins(%k, %v : tensor<?x?x8x128xf16>, tensor<?x?x8x128xf16>) lengths(%n : tensor<?xi64>)
    outs(%kc, %vc : tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>)
  return %r#0, %r#1 : tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>
}

// -----

// A slot selects a page and a row in it.
// CHECK-LABEL: func.func @slots(
// CHECK-SAME:    %[[K:.*]]: tensor<?x2x16xf32>, %[[S:.*]]: tensor<?xi32>, %[[C:.*]]: tensor<?x8x2x16xf32>)
// CHECK:         scf.forall (%[[J:.*]]) in
// CHECK:           tensor.extract %[[S]][%[[J]]]
// CHECK:           %[[SLOT:.*]] = arith.maxsi
// CHECK:           %[[QUOTIENT:.*]] = arith.divui %[[SLOT]], %c8
// CHECK:           %[[PAGE:.*]] = arith.minsi %[[QUOTIENT]]
// CHECK:           %[[REST:.*]] = arith.remui %[[SLOT]], %c8
// CHECK:           %[[ROW:.*]] = arith.minsi %[[REST]]
// CHECK:           tensor.extract_slice %[[K]][%[[J]], 0, 0]
// CHECK-NOT:       posenc.rope
// CHECK:             tensor.parallel_insert_slice %{{.*}}[%[[PAGE]], %[[ROW]], 0, 0]
func.func @slots(%k: tensor<?x2x16xf32>, %s: tensor<?xi32>, %c: tensor<?x8x2x16xf32>) -> (tensor<?x8x2x16xf32>, tensor<?x8x2x16xf32>) {
  %r:2 = posenc.kv_append ins(%k, %k : tensor<?x2x16xf32>, tensor<?x2x16xf32>) slots(%s : tensor<?xi32>)
    outs(%c, %c : tensor<?x8x2x16xf32>, tensor<?x8x2x16xf32>)
  return %r#0, %r#1 : tensor<?x8x2x16xf32>, tensor<?x8x2x16xf32>
}

// -----

// Rows are divided by the scales, which the heads of values have.
// CHECK-LABEL: func.func @given_scales(
// CHECK-SAME:    %[[K:.*]]: tensor<?x2x16xbf16>, %[[S:.*]]: tensor<?xi64>, %[[KS:.*]]: tensor<1x1x1xf32>, %[[VS:.*]]: tensor<1x2x1xf32>,
// CHECK:         scf.forall (%[[J:.*]]) in (%{{.*}}) shared_outs(%[[KO:.*]] = %{{.*}}, %[[VO:.*]] = %{{.*}})
// CHECK:           %[[ONE:.*]] = tensor.extract_slice %[[KS]][0, 0, 0] [1, 1, 1] [1, 1, 1] : tensor<1x1x1xf32> to tensor<f32>
// CHECK:           linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> ()>,
// CHECK-SAME:        ins(%{{.*}}, %[[ONE]] : tensor<2x?x16xf32>, tensor<f32>)
// CHECK:             %[[RATIO:.*]] = arith.divf
// CHECK:             %[[LESS:.*]] = arith.minimumf %[[RATIO]]
// CHECK:             %[[MORE:.*]] = arith.maximumf %[[LESS]]
// CHECK:             arith.truncf %[[MORE]] : f32 to f8E4M3FN
// CHECK:           %[[EACH:.*]] = tensor.extract_slice %[[VS]][0, 0, 0] [1, 2, 1] [1, 1, 1] : tensor<1x2x1xf32> to tensor<2xf32>
// CHECK:           linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0)>,
// CHECK-SAME:        ins(%{{.*}}, %[[EACH]] : tensor<2x?x16xf32>, tensor<2xf32>)
// CHECK-NOT:       math.absf
// CHECK:             tensor.parallel_insert_slice %{{.*}} into %[[KO]]
// CHECK:             tensor.parallel_insert_slice %{{.*}} into %[[VO]]
func.func @given_scales(%k: tensor<?x2x16xbf16>, %s: tensor<?xi64>, %ks: tensor<1x1x1xf32>, %vs: tensor<1x2x1xf32>, %kc: tensor<?x2x8x16xf8E4M3FN>, %vc: tensor<?x2x8x16xf8E4M3FN>) -> (tensor<?x2x8x16xf8E4M3FN>, tensor<?x2x8x16xf8E4M3FN>) {
  %r:2 = posenc.kv_append cache_layout = head_major
    ins(%k, %k : tensor<?x2x16xbf16>, tensor<?x2x16xbf16>) slots(%s : tensor<?xi64>)
    key_scales(%ks : tensor<1x1x1xf32>) value_scales(%vs : tensor<1x2x1xf32>)
    outs(%kc, %vc : tensor<?x2x8x16xf8E4M3FN>, tensor<?x2x8x16xf8E4M3FN>)
  return %r#0, %r#1 : tensor<?x2x8x16xf8E4M3FN>, tensor<?x2x8x16xf8E4M3FN>
}
