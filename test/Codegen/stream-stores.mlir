//===- stream-stores.mlir - non-temporal stores of large results ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-compile %s --emit=vector --target=x86-64-v4 -o - | FileCheck %s

// Non-temporal stores: the result is large, aligned, and at run time not the
// input that it may alias.
// CHECK-LABEL: func.func @add(
// CHECK-SAME:    %{{.*}}: memref<?x64xf32, strided<[?, 1]>> {{.*}}, %{{.*}}: memref<?x64xf32, strided<[?, 1]>> {{.*}}, %[[O:[a-z0-9]*]]: memref<?x64xf32
// CHECK:         %[[LARGE:.*]] = arith.cmpi uge, %{{.*}}, %c{{[0-9]+}} : index
// CHECK:         memref.extract_aligned_pointer_as_index %[[O]]
// CHECK:         arith.cmpi ne
// CHECK:         scf.if
// CHECK:           vector.store {{.*}} {alignment = 64 : i64, nontemporal = true}
// CHECK:         } else {
// CHECK-NOT:       nontemporal
// CHECK:           vector.transfer_write
func.func @add(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %r = linalg.add ins(%x, %y : tensor<?x64xf32>, tensor<?x64xf32>) outs(%x : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// Exponentials that are read again stay in the scratch memory of a row; the
// output is written once.
// CHECK-LABEL: func.func @softmax(
// CHECK:         memref.alloca() {{.*}} : memref<1x64xf32>
// CHECK:         scf.if
// CHECK:           vector.store {{.*}} nontemporal = true
func.func @softmax(%x: tensor<?x64xf32>, %o: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %r = linalg.softmax dimension(1) ins(%x : tensor<?x64xf32>) outs(%o : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// Rows of dynamic size are in the output, which stays in the cache.
// CHECK-LABEL: func.func @softmax_of_long_rows(
// CHECK-NOT:     nontemporal
// CHECK:         return
func.func @softmax_of_long_rows(%x: tensor<?x?xf32>, %o: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = linalg.softmax dimension(1) ins(%x : tensor<?x?xf32>) outs(%o : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
