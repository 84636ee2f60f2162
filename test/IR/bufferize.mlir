//===- bufferize.mlir - one-shot bufferization ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --mlir-print-local-scope \
// RUN:   --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" \
// RUN:   --cse --canonicalize | FileCheck %s

// The result is the buffer of the destination, without allocation or copy.
// CHECK-LABEL: func @sincos(
// CHECK-SAME: %[[P:[^:]+]]: memref<?xi64>, %[[C:[^:]+]]: memref<?x4xf32>, %[[S:[^:]+]]: memref<?x4xf32>
// CHECK-NEXT: posenc.sincos {{.*}} positions(%[[P]] : memref<?xi64>) outs(%[[C]], %[[S]] : memref<?x4xf32>, memref<?x4xf32>)
// CHECK-NEXT: return %[[C]], %[[S]]
func.func @sincos(%p: tensor<?xi64>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %r:2 = posenc.sincos <dim = 8> positions(%p : tensor<?xi64>) outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return %r#0, %r#1 : tensor<?x4xf32>, tensor<?x4xf32>
}

// CHECK-LABEL: func @sincos_axes(
// CHECK-SAME: %[[P:[^:]+]]: memref<2x?xi64>, %[[C:[^:]+]]: memref<?x4xf32>, %[[S:[^:]+]]: memref<?x4xf32>
// CHECK-NEXT: posenc.sincos {{.*}} axes <axial, [2, 2]> positions(%[[P]] : memref<2x?xi64>) outs(%[[C]], %[[S]] :
// CHECK-NEXT: return
func.func @sincos_axes(%p: tensor<2x?xi64>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %r:2 = posenc.sincos <dim = 8> axes <axial, [2, 2]> positions(%p : tensor<2x?xi64>)
    outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return %r#0, %r#1 : tensor<?x4xf32>, tensor<?x4xf32>
}

// CHECK-LABEL: func @sinusoidal(
// CHECK-SAME: %[[T:[^:]+]]: memref<?x8xf32>, %[[P:[^:]+]]: i64
// CHECK-NEXT: posenc.sinusoidal sin_cos {{.*}} positions(%[[P]] : i64) outs(%[[T]] : memref<?x8xf32>)
// CHECK-NEXT: return %[[T]]
func.func @sinusoidal(%t: tensor<?x8xf32>, %p: i64) -> tensor<?x8xf32> {
  %r = posenc.sinusoidal sin_cos <dim = 8> positions(%p : i64) outs(%t : tensor<?x8xf32>)
  return %r : tensor<?x8xf32>
}

// CHECK-LABEL: func @rotate(
// CHECK-SAME: %[[X:[^:]+]]: memref<?x8xf32>, %[[C:[^:]+]]: memref<?x2xf32>, %[[O:[^:]+]]: memref<?x8xf32>
// CHECK-NEXT: posenc.rotate half inverse ins(%[[X]] : memref<?x8xf32>) tables(%[[C]], %[[C]] : memref<?x2xf32>) dims = [0] offset = 4 outs(%[[O]] : memref<?x8xf32>) {test.note}
// CHECK-NEXT: return %[[O]]
func.func @rotate(%x: tensor<?x8xf32>, %c: tensor<?x2xf32>, %o: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %r = posenc.rotate half inverse ins(%x : tensor<?x8xf32>) tables(%c, %c : tensor<?x2xf32>) dims = [0] offset = 4
    outs(%o : tensor<?x8xf32>) {test.note}
  return %r : tensor<?x8xf32>
}

// A tensor is rotated in place.
// CHECK-LABEL: func @rotate_in_place(
// CHECK-SAME: %[[X:[^:]+]]: memref<?x8xf32>, %[[C:[^:]+]]: memref<?x4xf32>
// CHECK-NEXT: posenc.rotate half ins(%[[X]] : memref<?x8xf32>) tables(%[[C]], %[[C]] : {{.*}}) dims = [0] outs(%[[X]] : memref<?x8xf32>)
// CHECK-NEXT: return %[[X]]
func.func @rotate_in_place(%x: tensor<?x8xf32>, %c: tensor<?x4xf32>) -> tensor<?x8xf32> {
  %r = posenc.rotate half ins(%x : tensor<?x8xf32>) tables(%c, %c : tensor<?x4xf32>) dims = [0]
    outs(%x : tensor<?x8xf32>)
  return %r : tensor<?x8xf32>
}

// CHECK-LABEL: func @rope_in_place(
// CHECK-SAME: %[[Q:[^:]+]]: memref<?x4x8xbf16>, %[[K:[^:]+]]: memref<?x2x8xbf16>, %[[P:[^:]+]]: memref<?xi64>
// CHECK-NEXT: posenc.rope interleaved {{.*}} ins(%[[Q]], %[[K]] : {{.*}}) positions(%[[P]] : memref<?xi64>) dims = [0] outs(%[[Q]], %[[K]] :
// CHECK-NEXT: return %[[Q]], %[[K]]
func.func @rope_in_place(%q: tensor<?x4x8xbf16>, %k: tensor<?x2x8xbf16>, %p: tensor<?xi64>)
    -> (tensor<?x4x8xbf16>, tensor<?x2x8xbf16>) {
  %r:2 = posenc.rope interleaved <dim = 8> ins(%q, %k : tensor<?x4x8xbf16>, tensor<?x2x8xbf16>)
    positions(%p : tensor<?xi64>) dims = [0] outs(%q, %k : tensor<?x4x8xbf16>, tensor<?x2x8xbf16>)
  return %r#0, %r#1 : tensor<?x4x8xbf16>, tensor<?x2x8xbf16>
}

// Two tensors of the same type are rotated in place as well.
// CHECK-LABEL: func @rope_in_place_like(
// CHECK-SAME: %[[Q:[^:]+]]: memref<?x8xf32>, %[[K:[^:]+]]: memref<?x8xf32>, %[[P:[^:]+]]: i64
// CHECK-NEXT: posenc.rope half {{.*}} ins(%[[Q]], %[[K]] : {{.*}}) positions(%[[P]] : i64) dims = [0] outs(%[[Q]], %[[K]] :
// CHECK-NEXT: return %[[Q]], %[[K]]
func.func @rope_in_place_like(%q: tensor<?x8xf32>, %k: tensor<?x8xf32>, %p: i64) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %r:2 = posenc.rope half <dim = 8> ins(%q, %k : tensor<?x8xf32>, tensor<?x8xf32>)
    positions(%p : i64) dims = [0] outs(%q, %k : tensor<?x8xf32>, tensor<?x8xf32>)
  return %r#0, %r#1 : tensor<?x8xf32>, tensor<?x8xf32>
}

// Elements of a destination are not read, so it is not copied, even with later uses.
// CHECK-LABEL: func @destination_is_not_read(
// CHECK-SAME: %[[X:[^:]+]]: memref<?x8xf32>, %[[P:[^:]+]]: i64, %[[O:[^:]+]]: memref<?x8xf32>
// CHECK: %[[A:.+]] = memref.alloc
// CHECK-NOT: memref.copy
// CHECK: posenc.rope {{.*}} ins(%[[X]] : {{.*}} outs(%[[A]] :
// CHECK: return %[[A]], %[[O]]
func.func @destination_is_not_read(%x: tensor<?x8xf32>, %p: i64, %o: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %r = posenc.rope half <dim = 8> ins(%x : tensor<?x8xf32>) positions(%p : i64) dims = [0] outs(%o : tensor<?x8xf32>)
  return %r, %o : tensor<?x8xf32>, tensor<?x8xf32>
}

// An input that has later uses or is not writable is not overwritten.
// CHECK-LABEL: func @input_lives_on(
// CHECK-SAME: %[[X:[^:]+]]: memref<?x8xf32>
// CHECK: %[[A:.+]] = memref.alloc
// CHECK: posenc.rope {{.*}} ins(%[[X]] : {{.*}} outs(%[[A]] :
// CHECK: return %[[A]], %[[X]]
func.func @input_lives_on(%x: tensor<?x8xf32>, %p: i64) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %r = posenc.rope half <dim = 8> ins(%x : tensor<?x8xf32>) positions(%p : i64) dims = [0] outs(%x : tensor<?x8xf32>)
  return %r, %x : tensor<?x8xf32>, tensor<?x8xf32>
}

// CHECK-LABEL: func @input_is_constant(
// CHECK-SAME: %[[X:[^:]+]]: memref<?x8xf32>
// CHECK: %[[A:.+]] = memref.alloc
// CHECK: posenc.rope {{.*}} ins(%[[X]] : {{.*}} outs(%[[A]] :
func.func @input_is_constant(%x: tensor<?x8xf32> {bufferization.writable = false}, %p: i64) -> tensor<?x8xf32> {
  %r = posenc.rope half <dim = 8> ins(%x : tensor<?x8xf32>) positions(%p : i64) dims = [0] outs(%x : tensor<?x8xf32>)
  return %r : tensor<?x8xf32>
}

// A tensor is not rotated into the input of another one, which may be read after
// the write.
// CHECK-LABEL: func @crossed(
// CHECK-SAME: %[[Q:[^:]+]]: memref<?x8xf32>, %[[K:[^:]+]]: memref<?x8xf32>
// CHECK-DAG: %[[A:.+]] = memref.alloc
// CHECK-DAG: %[[B:.+]] = memref.alloc
// CHECK: posenc.rope {{.*}} ins(%[[Q]], %[[K]] : {{.*}} outs(%{{alloc.*}}, %{{alloc.*}} :
func.func @crossed(%q: tensor<?x8xf32>, %k: tensor<?x8xf32>, %p: i64) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %r:2 = posenc.rope half <dim = 8> ins(%q, %k : tensor<?x8xf32>, tensor<?x8xf32>)
    positions(%p : i64) dims = [0] outs(%k, %q : tensor<?x8xf32>, tensor<?x8xf32>)
  return %r#0, %r#1 : tensor<?x8xf32>, tensor<?x8xf32>
}

// CHECK-LABEL: func @one_input_twice(
// CHECK-SAME: %[[Q:[^:]+]]: memref<?x8xf32>, %[[O:[^:]+]]: memref<?x8xf32>
// CHECK: %[[A:.+]] = memref.alloc
// CHECK: posenc.rope {{.*}} ins(%[[Q]], %[[Q]] : {{.*}} outs(%[[A]], %[[O]] :
func.func @one_input_twice(%q: tensor<?x8xf32>, %o: tensor<?x8xf32>, %p: i64) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %r:2 = posenc.rope half <dim = 8> ins(%q, %q : tensor<?x8xf32>, tensor<?x8xf32>)
    positions(%p : i64) dims = [0] outs(%q, %o : tensor<?x8xf32>, tensor<?x8xf32>)
  return %r#0, %r#1 : tensor<?x8xf32>, tensor<?x8xf32>
}

// Tables are not overwritten, and both tables do not share a buffer.
// CHECK-LABEL: func @over_its_tables(
// CHECK-SAME: %[[X:[^:]+]]: memref<4x4xf32>, %[[T:[^:]+]]: memref<4x4xf32>
// CHECK: memref.copy
// CHECK: posenc.rotate
func.func @over_its_tables(%x: tensor<4x4xf32>, %t: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %c = tensor.extract_slice %t[0, 0] [4, 2] [1, 1] : tensor<4x4xf32> to tensor<4x2xf32>
  %r = posenc.rotate half ins(%x : tensor<4x4xf32>) tables(%c, %c : tensor<4x2xf32>) dims = [0] outs(%t : tensor<4x4xf32>)
  return %r : tensor<4x4xf32>
}

// CHECK-LABEL: func @both_tables_in_one(
// CHECK-SAME: %[[T:[^:]+]]: memref<4x4xf32>
// CHECK: %[[A:.+]] = memref.alloc
// CHECK: posenc.sincos {{.*}} outs(%[[T]], %[[A]] :
func.func @both_tables_in_one(%t: tensor<4x4xf32>, %p: i64) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %r:2 = posenc.sincos <dim = 8> positions(%p : i64) outs(%t, %t : tensor<4x4xf32>, tensor<4x4xf32>)
  return %r#0, %r#1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// One table is a slice of a larger buffer, so the layouts of the tables differ.
// CHECK-LABEL: func @table_in_a_buffer(
// CHECK-SAME: %[[T:[^:]+]]: memref<4x8xf32>, %[[C:[^:]+]]: memref<4x4xf32>
// CHECK-NOT: memref.alloc
// CHECK: %[[S:.+]] = memref.subview %[[T]][0, 4]
// CHECK: posenc.sincos {{.*}} outs(%[[C]], %[[S]] : memref<4x4xf32>, memref<4x4xf32, strided<[8, 1], offset: 4>>)
// CHECK-NOT: memref.copy
// CHECK: return %[[C]], %[[T]]
func.func @table_in_a_buffer(%t: tensor<4x8xf32>, %c: tensor<4x4xf32>, %p: i64) -> (tensor<4x4xf32>, tensor<4x8xf32>) {
  %s = tensor.extract_slice %t[0, 4] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
  %r:2 = posenc.sincos <dim = 8> positions(%p : i64) outs(%c, %s : tensor<4x4xf32>, tensor<4x4xf32>)
  %0 = tensor.insert_slice %r#1 into %t[0, 4] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<4x8xf32>
  return %r#0, %0 : tensor<4x4xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: func @tables_of_different_layouts(
// CHECK: posenc.rotate half ins(%{{[^ ]+}} : memref<4x8xf32>)
// CHECK-SAME: tables(%{{[^ ]+}}, %{{[^ ]+}} : memref<4x4xf32, strided<[8, 1]>>, memref<4x4xf32, strided<[8, 1], offset: 4>>)
func.func @tables_of_different_layouts(%x: tensor<4x8xf32>, %t: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %c = tensor.extract_slice %t[0, 0] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
  %s = tensor.extract_slice %t[0, 4] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
  %r = posenc.rotate half ins(%x : tensor<4x8xf32>) tables(%c, %s : tensor<4x4xf32>) dims = [0] outs(%x : tensor<4x8xf32>)
  return %r : tensor<4x8xf32>
}

// In place on a slice of a larger tensor.
// CHECK-LABEL: func @slice(
// CHECK-SAME: %[[X:[^:]+]]: memref<?x8xf32>
// CHECK: %[[S:.+]] = memref.subview %[[X]]
// CHECK-NOT: memref.alloc
// CHECK: posenc.rope {{.*}} ins(%[[S]] : {{.*}} outs(%[[S]] :
// CHECK-NOT: memref.copy
// CHECK: return %[[X]]
func.func @slice(%x: tensor<?x8xf32>, %n: index, %p: i64) -> tensor<?x8xf32> {
  %s = tensor.extract_slice %x[%n, 0] [4, 8] [1, 1] : tensor<?x8xf32> to tensor<4x8xf32>
  %r = posenc.rope half <dim = 8> ins(%s : tensor<4x8xf32>) positions(%p : i64) dims = [0] outs(%s : tensor<4x8xf32>)
  %i = tensor.insert_slice %r into %x[%n, 0] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<?x8xf32>
  return %i : tensor<?x8xf32>
}

// Operations on memrefs are unchanged.
// CHECK-LABEL: func @memrefs(
// CHECK-NEXT: posenc.rope half {{.*}} ins(%{{.+}} : memref<?x8xf32>) positions(%{{.+}} : memref<?xi64>) dims = [0] outs(%{{.+}} : memref<?x8xf32>)
// CHECK-NEXT: return
func.func @memrefs(%x: memref<?x8xf32>, %p: memref<?xi64>) {
  posenc.rope half <dim = 8> ins(%x : memref<?x8xf32>) positions(%p : memref<?xi64>) dims = [0] outs(%x : memref<?x8xf32>)
  return
}
