//===- split-empty-tensors.mlir - few uses of one empty tensor ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s \
// RUN:   --pass-pipeline='builtin.module(func.func(posenc-split-empty-tensors))' \
// RUN:   | FileCheck %s

// CHECK-LABEL: func.func @many
// CHECK: %[[FIRST:.*]] = tensor.empty(%[[N:.*]])
// CHECK-NEXT: %[[SECOND:.*]] = tensor.empty(%[[N]])
// CHECK-NEXT: %[[THIRD:.*]] = tensor.empty(%[[N]])
// CHECK-NEXT: call @use(%[[FIRST]], %[[FIRST]]
// CHECK: linalg.fill {{.*}} outs(%[[SECOND]]
// CHECK: scf.for
// CHECK-NEXT: linalg.fill {{.*}} outs(%[[THIRD]]
// CHECK: return
func.func @many(%n: index, %f: f32) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty(%n) : tensor<?xf32>
  call @use(%e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e)
    : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) -> ()
  %0 = linalg.fill ins(%f : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %1 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %0) -> tensor<?xf32> {
    %2 = linalg.fill ins(%f : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    scf.yield %2 : tensor<?xf32>
  }
  return %1 : tensor<?xf32>
}

// CHECK-LABEL: func.func @few
// CHECK: tensor.empty
// CHECK-NOT: tensor.empty
// CHECK: return
func.func @few(%n: index, %f: f32) {
  %e = tensor.empty(%n) : tensor<?xf32>
  call @use(%e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e, %e)
    : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) -> ()
  return
}

// Zeros are written again, behind the operations that use the first ones. The
// operation in the loop has a tensor in the block of the loop.
// CHECK-LABEL: func.func @zeros
// CHECK-SAME: (%[[N:.*]]: index, %[[X:.*]]: tensor<?xf32>)
// CHECK: %[[EMPTY:.*]] = tensor.empty(%[[N]])
// CHECK: %[[OTHER:.*]] = tensor.empty(%[[N]])
// CHECK: %[[FIRST:.*]] = linalg.fill {{.*}} outs(%[[EMPTY]]
// CHECK-NEXT: call @use(%[[FIRST]], %[[FIRST]]
// CHECK-NEXT: %[[SECOND:.*]] = linalg.fill {{.*}} outs(%[[OTHER]]
// CHECK-NEXT: scf.for {{.*}} iter_args(%{{.*}} = %[[SECOND]])
// CHECK-NEXT: linalg.add {{.*}} outs(%[[SECOND]]
func.func @zeros(%n: index, %x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %z = linalg.fill ins(%f : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  call @use(%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z)
    : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) -> ()
  %1 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %z) -> tensor<?xf32> {
    %2 = linalg.add ins(%a, %x : tensor<?xf32>, tensor<?xf32>) outs(%z : tensor<?xf32>) -> tensor<?xf32>
    scf.yield %2 : tensor<?xf32>
  }
  return %1 : tensor<?xf32>
}

// A loop whose iterations write zeros is repeated with its body.
// CHECK-LABEL: func.func @loop
// CHECK-COUNT-2: vector.transfer_write
// CHECK: return
func.func @loop() {
  %c0 = arith.constant 0 : index
  %v = arith.constant dense<0.0> : vector<8xf32>
  %e = tensor.empty() : tensor<64xf32>
  %l = scf.forall (%i) = (0) to (64) step (8) shared_outs(%s = %e) -> (tensor<64xf32>) {
    %p = tensor.extract_slice %s[%i] [8] [1] : tensor<64xf32> to tensor<8xf32>
    %w = vector.transfer_write %v, %p[%c0] {in_bounds = [true]} : vector<8xf32>, tensor<8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %w into %s[%i] [8] [1] : tensor<8xf32> into tensor<64xf32>
    }
  }
  %z = tensor.cast %l : tensor<64xf32> to tensor<?xf32>
  call @use(%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z)
    : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) -> ()
    %r0 = tensor.extract %l[%c0] : tensor<64xf32>  %r1 = tensor.extract %l[%c0] : tensor<64xf32>  %r2 = tensor.extract %l[%c0] : tensor<64xf32>  %r3 = tensor.extract %l[%c0] : tensor<64xf32>  %r4 = tensor.extract %l[%c0] : tensor<64xf32>  %r5 = tensor.extract %l[%c0] : tensor<64xf32>  %r6 = tensor.extract %l[%c0] : tensor<64xf32>  %r7 = tensor.extract %l[%c0] : tensor<64xf32>
    %r8 = tensor.extract %l[%c0] : tensor<64xf32>  %r9 = tensor.extract %l[%c0] : tensor<64xf32>  %r10 = tensor.extract %l[%c0] : tensor<64xf32>  %r11 = tensor.extract %l[%c0] : tensor<64xf32>  %r12 = tensor.extract %l[%c0] : tensor<64xf32>  %r13 = tensor.extract %l[%c0] : tensor<64xf32>  %r14 = tensor.extract %l[%c0] : tensor<64xf32>  %r15 = tensor.extract %l[%c0] : tensor<64xf32>
    %r16 = tensor.extract %l[%c0] : tensor<64xf32>  %r17 = tensor.extract %l[%c0] : tensor<64xf32>  %r18 = tensor.extract %l[%c0] : tensor<64xf32>  %r19 = tensor.extract %l[%c0] : tensor<64xf32>  %r20 = tensor.extract %l[%c0] : tensor<64xf32>  %r21 = tensor.extract %l[%c0] : tensor<64xf32>  %r22 = tensor.extract %l[%c0] : tensor<64xf32>  %r23 = tensor.extract %l[%c0] : tensor<64xf32>
    %r24 = tensor.extract %l[%c0] : tensor<64xf32>  %r25 = tensor.extract %l[%c0] : tensor<64xf32>  %r26 = tensor.extract %l[%c0] : tensor<64xf32>  %r27 = tensor.extract %l[%c0] : tensor<64xf32>  %r28 = tensor.extract %l[%c0] : tensor<64xf32>  %r29 = tensor.extract %l[%c0] : tensor<64xf32>  %r30 = tensor.extract %l[%c0] : tensor<64xf32>  %r31 = tensor.extract %l[%c0] : tensor<64xf32>
  call @use(%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z)
    : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) -> ()
  return
}

// A tensor that is computed from an argument is not computed again.
// CHECK-LABEL: func.func @computed
// CHECK-COUNT-1: linalg.add
// CHECK-NOT: linalg.add
// CHECK: return
func.func @computed(%x: tensor<?xf32>, %e: tensor<?xf32>) {
  %z = linalg.add ins(%x, %x : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  call @use(%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z)
    : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) -> ()
  call @use(%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z)
    : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) -> ()
  return
}

// In a loop, 8 users share a tensor.
// CHECK-LABEL: func.func @nested
// CHECK: scf.for
// CHECK-NEXT: tensor.empty
// CHECK-NEXT: tensor.empty
// CHECK-NOT: tensor.empty
// CHECK: return
func.func @nested(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %e = tensor.empty(%n) : tensor<?xf32>
    func.call @use_one(%e) : (tensor<?xf32>) -> ()
    func.call @use_one(%e) : (tensor<?xf32>) -> ()
    func.call @use_one(%e) : (tensor<?xf32>) -> ()
    func.call @use_one(%e) : (tensor<?xf32>) -> ()
    func.call @use_one(%e) : (tensor<?xf32>) -> ()
    func.call @use_one(%e) : (tensor<?xf32>) -> ()
    func.call @use_one(%e) : (tensor<?xf32>) -> ()
    func.call @use_one(%e) : (tensor<?xf32>) -> ()
    func.call @use_one(%e) : (tensor<?xf32>) -> ()
  }
  return
}

func.func private @use_one(tensor<?xf32>)
func.func private @use(
  tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
