//===- axes-attr.mlir - position axes -------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-roundtrip --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s --mlir-print-op-generic \
// RUN:   | posenc-opt --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s --emit-bytecode \
// RUN:   | posenc-opt --mlir-print-local-scope | FileCheck %s

// CHECK: func.func private @contiguous() attributes {test.attr = #posenc.axes<contiguous, [16, 24, 24]>}
func.func private @contiguous() attributes {test.attr = #posenc.axes<contiguous, [16, 24, 24]>}

// CHECK: func.func private @interleaved() attributes {test.attr = #posenc.axes<interleaved, [24, 20, 20]>}
func.func private @interleaved() attributes {test.attr = #posenc.axes<interleaved, [24, 20, 20]>}

// CHECK: func.func private @axial() attributes {test.attr = #posenc.axes<axial, [16, 56]>}
func.func private @axial() attributes {test.attr = #posenc.axes<axial, [16, 56]>}

// CHECK: func.func private @eight() attributes {test.attr = #posenc.axes<contiguous, [1, 2, 3, 4, 5, 6, 7, 8]>}
func.func private @eight() attributes {test.attr = #posenc.axes<contiguous, [1, 2, 3, 4, 5, 6, 7, 8]>}

// CHECK: func.func private @greatest() attributes {test.attr = #posenc.axes<axial, [32768, 1]>}
func.func private @greatest() attributes {test.attr = #posenc.axes<axial, [32768, 1]>}
