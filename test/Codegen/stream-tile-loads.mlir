//===- stream-tile-loads.mlir - packed AMX tiles past the L1 cache --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-stream-tile-loads | FileCheck %s

// Of four tiles, only the right operands with contiguous rows are streamed: alone, and
// beside another tile.
// CHECK-LABEL: llvm.func @right
// CHECK: %[[A:.*]] = llvm.call_intrinsic "llvm.x86.tileloadd64.internal"
// CHECK: %[[B:.*]] = llvm.call_intrinsic "llvm.x86.tileloaddt164.internal"
// CHECK: %[[C:.*]] = llvm.call_intrinsic "llvm.x86.tileloaddt164.internal"
// CHECK: %[[D:.*]] = llvm.call_intrinsic "llvm.x86.tileloadd64.internal"
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"({{.*}}, %[[A]], %[[B]])
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"({{.*}}, %[[A]], %[[C]])
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"({{.*}}, %[[A]], %[[D]])
llvm.func @right(%p: !llvm.ptr, %sum: !llvm.x86_amx) {
  %rows = llvm.mlir.constant(16 : i16) : i16
  %bytes = llvm.mlir.constant(64 : i16) : i16
  %s64 = llvm.mlir.constant(64 : i64) : i64
  %s128 = llvm.mlir.constant(128 : i64) : i64
  %s192 = llvm.mlir.constant(192 : i64) : i64
  %a = llvm.call_intrinsic "llvm.x86.tileloadd64.internal"(%rows, %bytes, %p, %s64) : (i16, i16, !llvm.ptr, i64) -> !llvm.x86_amx
  %b = llvm.call_intrinsic "llvm.x86.tileloadd64.internal"(%rows, %bytes, %p, %s64) : (i16, i16, !llvm.ptr, i64) -> !llvm.x86_amx
  %c = llvm.call_intrinsic "llvm.x86.tileloadd64.internal"(%rows, %bytes, %p, %s128) : (i16, i16, !llvm.ptr, i64) -> !llvm.x86_amx
  %d = llvm.call_intrinsic "llvm.x86.tileloadd64.internal"(%rows, %bytes, %p, %s192) : (i16, i16, !llvm.ptr, i64) -> !llvm.x86_amx
  %0 = llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"(%rows, %bytes, %bytes, %sum, %a, %b) : (i16, i16, i16, !llvm.x86_amx, !llvm.x86_amx, !llvm.x86_amx) -> !llvm.x86_amx
  %1 = llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"(%rows, %bytes, %bytes, %0, %a, %c) : (i16, i16, i16, !llvm.x86_amx, !llvm.x86_amx, !llvm.x86_amx) -> !llvm.x86_amx
  %2 = llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"(%rows, %bytes, %bytes, %1, %a, %d) : (i16, i16, i16, !llvm.x86_amx, !llvm.x86_amx, !llvm.x86_amx) -> !llvm.x86_amx
  llvm.call_intrinsic "llvm.x86.tilestored64.internal"(%rows, %bytes, %p, %s64, %2) : (i16, i16, !llvm.ptr, i64, !llvm.x86_amx) -> ()
  llvm.return
}
