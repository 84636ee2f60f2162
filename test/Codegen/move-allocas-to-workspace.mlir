//===- move-allocas-to-workspace.mlir - stack to workspace ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --allow-unregistered-dialect --pass-pipeline="builtin.module(func.func(posenc-move-allocas-to-workspace))" | FileCheck %s

// Each buffer becomes an argument before the task arguments. Small buffers and
// those in loops stay on the stack.
// CHECK-LABEL: func.func @kernel
// CHECK-SAME: (%{{.*}}: memref<4xf32>, %[[A:.*]]: memref<256xi8>, %[[B:.*]]: memref<4032xi8>, %{{.*}}: index, %{{.*}}: index)
// CHECK-SAME: scratch_bytes = [256, 4032]
// CHECK: memref.view %[[A]][%{{.*}}][] : memref<256xi8> to memref<8x8xf32>
// CHECK: memref.alloca() : memref<63xf32>
// CHECK: memref.view %[[B]][%{{.*}}][] : memref<4032xi8> to memref<500xindex>
// CHECK: scf.for
// CHECK: memref.alloca() : memref<100xf32>
func.func @kernel(%x: memref<4xf32>, %task: index, %total: index) attributes {posenc.kernel = #posenc.kernel<tasks = true, workspace = true>} {
  %a = memref.alloca() {alignment = 64 : i64} : memref<8x8xf32>
  %small = memref.alloca() : memref<63xf32>
  %b = memref.alloca() : memref<500xindex>
  "test.use"(%a, %small, %b) : (memref<8x8xf32>, memref<63xf32>, memref<500xindex>) -> ()
  %c1 = arith.constant 1 : index
  scf.for %i = %task to %total step %c1 {
    %c = memref.alloca() : memref<100xf32>
    "test.use"(%c) : (memref<100xf32>) -> ()
  }
  return
}

// Without task arguments, the buffers are the last arguments.
// CHECK-LABEL: func.func @whole(
// CHECK-SAME: %{{.*}}: memref<4xf32>, %{{.*}}: memref<448xi8>)
func.func @whole(%x: memref<4xf32>) attributes {posenc.kernel = #posenc.kernel<workspace = true>} {
  %a = memref.alloca() : memref<101xf32>
  "test.use"(%a) : (memref<101xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @other
// CHECK: memref.alloca() : memref<1000xf32>
func.func @other(%x: memref<4xf32>) {
  %a = memref.alloca() : memref<1000xf32>
  "test.use"(%a) : (memref<1000xf32>) -> ()
  return
}
