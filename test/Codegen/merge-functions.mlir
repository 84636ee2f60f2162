//===- merge-functions.mlir - equal functions are merged ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-merge-functions | FileCheck %s
// RUN: posenc-opt %s --posenc-merge-functions --posenc-merge-functions \
// RUN:   | FileCheck %s

memref.global "private" constant @w0 : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
memref.global "private" constant @w1 : memref<4xf32> = dense<[5.0, 6.0, 7.0, 8.0]>
memref.global "private" constant @table : memref<4xf32> = dense<[9.0, 8.0, 7.0, 6.0]>

// Weights of each layer are passed; the table that all read is not.
// CHECK-LABEL: func.func @model
// CHECK: %[[W0:.*]] = memref.get_global @w0
// CHECK: call @layer0(%{{.*}}, %[[W0]]) : (memref<4xf32>, memref<4xf32>) -> ()
// CHECK: %[[W1:.*]] = memref.get_global @w1
// CHECK: call @layer0(%{{.*}}, %[[W1]]) : (memref<4xf32>, memref<4xf32>) -> ()
// CHECK: call @negative(%{{.*}}) : (memref<4xf32>) -> ()
// CHECK: %[[AGAIN:.*]] = memref.get_global @w0
// CHECK: call @layer0(%{{.*}}, %[[AGAIN]])
func.func @model(%x: memref<4xf32>) {
  call @layer0(%x) : (memref<4xf32>) -> ()
  call @layer1(%x) : (memref<4xf32>) -> ()
  call @negative(%x) : (memref<4xf32>) -> ()
  call @layer0(%x) : (memref<4xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @layer0
// CHECK-SAME: (%[[X:.*]]: memref<4xf32>, %[[W:.*]]: memref<4xf32>)
// CHECK: %[[TABLE:.*]] = memref.get_global @table
// CHECK-NOT: memref.get_global
// CHECK: memref.load %[[W]]
// CHECK-NOT: @layer1
func.func private @layer0(%x: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %w = memref.get_global @w0 : memref<4xf32>
  %t = memref.get_global @table : memref<4xf32>
  %a = memref.load %w[%c0] : memref<4xf32>
  %b = memref.load %t[%c0] : memref<4xf32>
  %c = arith.mulf %a, %b : f32
  memref.store %c, %x[%c0] : memref<4xf32>
  return
}
func.func private @layer1(%x: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %w = memref.get_global @w1 : memref<4xf32>
  %t = memref.get_global @table : memref<4xf32>
  %a = memref.load %w[%c0] : memref<4xf32>
  %b = memref.load %t[%c0] : memref<4xf32>
  %c = arith.mulf %a, %b : f32
  memref.store %c, %x[%c0] : memref<4xf32>
  return
}

// One attribute differs.
// CHECK-LABEL: func.func private @negative
// CHECK: memref.get_global @w1
func.func private @negative(%x: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %w = memref.get_global @w1 : memref<4xf32>
  %t = memref.get_global @table : memref<4xf32>
  %a = memref.load %w[%c0] : memref<4xf32>
  %b = memref.load %t[%c0] : memref<4xf32>
  %c = arith.mulf %a, %b fastmath<contract> : f32
  memref.store %c, %x[%c0] : memref<4xf32>
  return
}

// Functions that call merged ones are merged, too, and pass the globals on.
// CHECK-LABEL: func.func @nested
// CHECK: %[[N0:.*]] = memref.get_global @w0
// CHECK: call @outer0(%{{.*}}, %[[N0]])
// CHECK: %[[N1:.*]] = memref.get_global @w1
// CHECK: call @outer0(%{{.*}}, %[[N1]])
func.func @nested(%x: memref<4xf32>) {
  call @outer0(%x) : (memref<4xf32>) -> ()
  call @outer1(%x) : (memref<4xf32>) -> ()
  return
}
// CHECK-LABEL: func.func private @outer0
// CHECK-SAME: (%[[X:.*]]: memref<4xf32>, %[[W:.*]]: memref<4xf32>)
// CHECK-NEXT: call @layer0(%[[X]], %[[W]])
// CHECK-NOT: @outer1
func.func private @outer0(%x: memref<4xf32>) {
  call @layer0(%x) : (memref<4xf32>) -> ()
  return
}
func.func private @outer1(%x: memref<4xf32>) {
  call @layer1(%x) : (memref<4xf32>) -> ()
  return
}

// Operands are compared, and functions stay whose names other operations use, or that
// call themselves.
// CHECK-LABEL: func.func @others
// CHECK: call @first
// CHECK: call @second
// CHECK: constant @kept1
// CHECK: call @even
func.func @others(%a: f32, %b: f32) -> (f32, f32, () -> ()) {
  %0 = call @first(%a, %b) : (f32, f32) -> f32
  %1 = call @second(%a, %b) : (f32, f32) -> f32
  %2 = constant @kept1 : () -> ()
  call @kept0() : () -> ()
  call @even() : () -> ()
  return %0, %1, %2 : f32, f32, () -> ()
}
func.func private @first(%a: f32, %b: f32) -> f32 {
  %0 = arith.subf %a, %b : f32
  return %0 : f32
}
func.func private @second(%a: f32, %b: f32) -> f32 {
  %0 = arith.subf %b, %a : f32
  return %0 : f32
}
// CHECK: func.func private @kept0
// CHECK: func.func private @kept1
func.func private @kept0() { return }
func.func private @kept1() { return }
// CHECK: func.func private @even
// CHECK: func.func private @odd
func.func private @even() {
  call @odd() : () -> ()
  return
}
func.func private @odd() {
  call @even() : () -> ()
  return
}
