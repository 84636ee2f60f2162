//===- rope-through-linalg.mlir - stages of the lowering of a rope --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Between the posenc and vector stages, the rows of a rope are linalg tiles.

// RUN: posenc-opt %s --posenc-to-cpu --mlir-print-ir-after-all -o /dev/null 2>&1 | FileCheck %s

// CHECK: IR Dump After PosencTilePositionsPass
// CHECK: scf.forall
// CHECK: posenc.rope {{.*}}tensor<
// CHECK: IR Dump After PosencBufferizeKernelsPass
// CHECK: posenc.rope {{.*}}memref<
// CHECK: IR Dump After PosencDecomposeRotationsPass
// CHECK-NOT: posenc.rope
// CHECK: linalg.generic
// CHECK-NOT: posenc.rope
// CHECK: IR Dump After PosencVectorizeTilesPass
// CHECK-NOT: linalg.generic
// CHECK: vector.load {{.*}} : memref<{{.*}}>, vector<8xf32>
// CHECK-NOT: linalg.generic
// CHECK: IR Dump After

func.func @rope(%x: tensor<?x8x64xf32>, %p: tensor<?xi64>) -> tensor<?x8x64xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 64>
    ins(%x : tensor<?x8x64xf32>) positions(%p : tensor<?xi64>) dims = [0]
    outs(%x : tensor<?x8x64xf32>)
  return %r : tensor<?x8x64xf32>
}
