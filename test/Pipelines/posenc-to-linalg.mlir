//===- posenc-to-linalg.mlir - pipeline to linalg -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-to-linalg --mlir-print-local-scope | FileCheck %s \
// RUN:   --implicit-check-not='posenc.'

// Queries and keys share one table. In place, channels that are not rotated are
// not copied.
// CHECK-LABEL: func.func @rope(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x32x96xf32>, %[[K:.*]]: tensor<?x8x96xf32>, %[[P:[^:]*]]: tensor<?xi64>
// CHECK-NOT:     posenc.
// CHECK:         %[[T:.*]]:2 = linalg.generic
// CHECK-SAME:      ins(%[[P]],
// CHECK:         %[[RQ:.*]]:2 = linalg.generic
// CHECK-SAME:      ins(%{{.*}}, %{{.*}}, %[[T]]#0, %[[T]]#1 :
// CHECK-NOT:     tensor.extract_slice
// CHECK:         tensor.insert_slice %[[RQ]]#0 into %[[Q]][0, 0, 0]
// CHECK-NEXT:    %[[IQ:.*]] = tensor.insert_slice %[[RQ]]#1 into
// CHECK:         %[[RK:.*]]:2 = linalg.generic
// CHECK-SAME:      ins(%{{.*}}, %{{.*}}, %[[T]]#0, %[[T]]#1 :
// CHECK-NOT:     tensor.extract_slice
// CHECK:         tensor.insert_slice %[[RK]]#0 into %[[K]][0, 0, 0]
// CHECK-NEXT:    %[[IK:.*]] = tensor.insert_slice %[[RK]]#1 into
// CHECK-NEXT:    return %[[IQ]], %[[IK]]
func.func @rope(%q: tensor<?x32x96xf32>, %k: tensor<?x8x96xf32>, %p: tensor<?xi64>)
    -> (tensor<?x32x96xf32>, tensor<?x8x96xf32>) {
  %0 = posenc.rope half #posenc.frequencies<dim = 64, base = 1.000000e+04>
    ins(%q : tensor<?x32x96xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%q : tensor<?x32x96xf32>)
  %1 = posenc.rope half #posenc.frequencies<dim = 64, base = 1.000000e+04>
    ins(%k : tensor<?x8x96xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%k : tensor<?x8x96xf32>)
  return %0, %1 : tensor<?x32x96xf32>, tensor<?x8x96xf32>
}

// CHECK-LABEL: func.func @round_trip(
// CHECK-SAME:    %[[X:.*]]: tensor<4x16xf32>
// CHECK-NEXT:    return %[[X]]
func.func @round_trip(%x: tensor<4x16xf32>, %p: tensor<4xi64>) -> tensor<4x16xf32> {
  %0 = posenc.rope half #posenc.frequencies<dim = 16, base = 1.000000e+04>
    ins(%x : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%x : tensor<4x16xf32>)
  %1 = posenc.rope half inverse #posenc.frequencies<dim = 16, base = 1.000000e+04>
    ins(%0 : tensor<4x16xf32>) positions(%p : tensor<4xi64>) dims = [0] outs(%0 : tensor<4x16xf32>)
  return %1 : tensor<4x16xf32>
}

// CHECK-LABEL: func.func @sinusoidal(
// CHECK-NOT:     posenc.
// CHECK:         linalg.generic
// CHECK-COUNT-2: tensor.insert_slice
func.func @sinusoidal(%p: i64, %t: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 16, base = 1.000000e+04>
    positions(%p : i64) outs(%t : tensor<?x16xf32>)
  return %r : tensor<?x16xf32>
}
