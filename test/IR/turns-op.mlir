//===- turns-op.mlir - syntax of turns and of its users -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-roundtrip | FileCheck %s
// RUN: posenc-opt %s --mlir-print-op-generic | posenc-opt | FileCheck %s
// RUN: posenc-opt %s --emit-bytecode | posenc-opt | FileCheck %s

#dynamic = #posenc.frequencies<dim = 8, scaling = #posenc.dynamic<factor = 2, max_position = 4096>>
#longrope = #posenc.frequencies<dim = 8, scaling = #posenc.longrope<short_factors = [1, 1, 1, 1], long_factors = [1, 2, 4, 8], original_max_position = 4096>>

// CHECK: #[[$DYNAMIC:.+]] = #posenc.frequencies<dim = 8, base = 1.000000e+04, scaling = #posenc.dynamic<factor = 2.000000e+00, max_position = 4.096000e+03>>
// CHECK: #[[$LONGROPE:.+]] = #posenc.frequencies<dim = 8, base = 1.000000e+04, scaling = #posenc.longrope<short_factors = [1.000000e+00, 1.000000e+00, 1.000000e+00, 1.000000e+00], long_factors = [1.000000e+00, 2.000000e+00, 4.000000e+00, 8.000000e+00], original_max_position = 4.096000e+03>>

// CHECK-LABEL: func @sources(
// CHECK: posenc.turns #[[$DYNAMIC]] length(%{{.*}} : i64){{$}}
// CHECK: posenc.turns #[[$LONGROPE]] length(%{{.*}} : tensor<i64>){{$}}
// CHECK: posenc.turns values(%{{.*}} : tensor<4xf32>){{$}}
// CHECK: posenc.turns values(%{{.*}} : tensor<4xf64>){{$}}
func.func @sources(%n: i64, %m: tensor<i64>, %f: tensor<4xf32>, %g: tensor<4xf64>) {
  %0:2 = posenc.turns #dynamic length(%n : i64)
  %1:2 = posenc.turns #longrope length(%m : tensor<i64>)
  %2:2 = posenc.turns values(%f : tensor<4xf32>)
  %3:2 = posenc.turns values(%g : tensor<4xf64>)
  return
}

// CHECK-LABEL: func @users(
// CHECK: posenc.sincos #[[$DYNAMIC]] positions(%{{.*}} : tensor<?xi64>) turns(%[[H:.*]], %[[L:.*]] : tensor<4xi64>, tensor<4xi64>) outs(
// CHECK: posenc.rope half #[[$DYNAMIC]] ins(%{{.*}} : tensor<?x2x8xf32>) positions(%{{.*}} : tensor<?xi64>) turns(%[[H]], %[[L]] : tensor<4xi64>, tensor<4xi64>) dims = [0] outs(
// CHECK: posenc.kv_append
// CHECK-SAME: turns(%[[H]], %[[L]] : tensor<4xi64>, tensor<4xi64>)
// CHECK: posenc.attention
// CHECK-SAME: turns(%[[H]], %[[L]] : tensor<4xi64>, tensor<4xi64>)
func.func @users(%high: tensor<4xi64>, %low: tensor<4xi64>, %p: tensor<?xi64>, %t: tensor<?x4xf32>, %x: tensor<?x2x8xf32>, %k: tensor<?x?x2x8xf32>) {
  %0:2 = posenc.sincos #dynamic positions(%p : tensor<?xi64>) turns(%high, %low : tensor<4xi64>, tensor<4xi64>)
    outs(%t, %t : tensor<?x4xf32>, tensor<?x4xf32>)
  %1 = posenc.rope half #dynamic ins(%x : tensor<?x2x8xf32>) positions(%p : tensor<?xi64>) turns(%high, %low : tensor<4xi64>, tensor<4xi64>) dims = [0]
    outs(%x : tensor<?x2x8xf32>)
  %2:2 = posenc.kv_append rotation = <pairing = half, frequencies = #dynamic>
    ins(%k, %k : tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>) lengths(%p : tensor<?xi64>) turns(%high, %low : tensor<4xi64>, tensor<4xi64>)
    outs(%k, %k : tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>)
  %3 = posenc.attention query_rotation = <pairing = half, frequencies = #dynamic>
    ins(%k, %k, %k : tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>) turns(%high, %low : tensor<4xi64>, tensor<4xi64>)
    outs(%k : tensor<?x?x2x8xf32>)
  return
}

// Ropes by equal turns are merged; ropes by different ones are not.
// RUN: posenc-opt %s --posenc-fuse-ropes | FileCheck %s --check-prefix=FUSE
// FUSE-LABEL: func @merge(
// FUSE-COUNT-1: posenc.rope half #{{.*}} ins(%arg4, %arg5 :
// FUSE: posenc.rope half #{{.*}} ins(%arg6 :
// FUSE-NEXT: return
func.func @merge(%a: tensor<4xi64>, %b: tensor<4xi64>, %c: tensor<4xi64>, %p: tensor<?xi64>, %x: tensor<?x2x8xf32>, %y: tensor<?x2x8xf32>, %z: tensor<?x2x8xf32>)
    -> (tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>) {
  %0 = posenc.rope half #dynamic ins(%x : tensor<?x2x8xf32>) positions(%p : tensor<?xi64>) turns(%a, %b : tensor<4xi64>, tensor<4xi64>) dims = [0] outs(%x : tensor<?x2x8xf32>)
  %1 = posenc.rope half #dynamic ins(%y : tensor<?x2x8xf32>) positions(%p : tensor<?xi64>) turns(%a, %b : tensor<4xi64>, tensor<4xi64>) dims = [0] outs(%y : tensor<?x2x8xf32>)
  %2 = posenc.rope half #dynamic ins(%z : tensor<?x2x8xf32>) positions(%p : tensor<?xi64>) turns(%a, %c : tensor<4xi64>, tensor<4xi64>) dims = [0] outs(%z : tensor<?x2x8xf32>)
  return %0, %1, %2 : tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>
}

// A rope of a rope composes if both have the same turns.
// RUN: posenc-opt %s --canonicalize | FileCheck %s --check-prefix=FOLD
// FOLD-LABEL: func @compose(
// FOLD: %[[P:.*]] = arith.addi
// FOLD: %[[X:.*]] = posenc.rope {{.*}} positions(%[[P]] :
// FOLD: posenc.rope {{.*}} ins(%[[X]] :
// FOLD: return
func.func @compose(%a: tensor<4xi64>, %b: tensor<4xi64>, %c: tensor<4xi64>, %p: tensor<?xi64>, %x: tensor<?x2x8xf32>) -> tensor<?x2x8xf32> {
  %0 = posenc.rope half #dynamic ins(%x : tensor<?x2x8xf32>) positions(%p : tensor<?xi64>) turns(%a, %b : tensor<4xi64>, tensor<4xi64>) dims = [0] outs(%x : tensor<?x2x8xf32>)
  %1 = posenc.rope half #dynamic ins(%0 : tensor<?x2x8xf32>) positions(%p : tensor<?xi64>) turns(%a, %b : tensor<4xi64>, tensor<4xi64>) dims = [0] outs(%0 : tensor<?x2x8xf32>)
  %2 = posenc.rope half #dynamic ins(%1 : tensor<?x2x8xf32>) positions(%p : tensor<?xi64>) turns(%a, %c : tensor<4xi64>, tensor<4xi64>) dims = [0] outs(%1 : tensor<?x2x8xf32>)
  return %2 : tensor<?x2x8xf32>
}
