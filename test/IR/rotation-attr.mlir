//===- rotation-attr.mlir - rotations as attributes -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-roundtrip --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s --emit-bytecode \
// RUN:   | posenc-opt --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s | FileCheck %s --check-prefix=ALIAS

// Equal rotations share one alias.
// ALIAS: #frequencies = #posenc.frequencies<dim = 64, base = 1.000000e+04>
// ALIAS: #rotation = #posenc.rotation<pairing = half, frequencies = #frequencies>

// CHECK: @half() attributes {test.attr = #posenc.rotation<pairing = half, frequencies = <dim = 64, base = 1.000000e+04>>}
// ALIAS: @half() attributes {test.attr = #rotation}
func.func private @half() attributes {test.attr = #posenc.rotation<pairing = half, frequencies = #posenc.frequencies<dim = 64>>}

// Parameters in any order; the default offset is 0.
// CHECK: @any_order() attributes {test.attr = #posenc.rotation<pairing = half, frequencies = <dim = 64, base = 1.000000e+04>>}
// ALIAS: @any_order() attributes {test.attr = #rotation}
func.func private @any_order() attributes {test.attr = #posenc.rotation<offset = 0, frequencies = <dim = 64>, pairing = half>}

// CHECK: @offset() attributes {test.attr = #posenc.rotation<pairing = interleaved, frequencies = <dim = 64, base = 5.000000e+05>, offset = 128>}
func.func private @offset() attributes {test.attr = #posenc.rotation<pairing = interleaved, frequencies = <dim = 64, base = 500000>, offset = 128>}

// CHECK: @axes() attributes {test.attr = #posenc.rotation<pairing = half, frequencies = <dim = 128, base = 1.000000e+04, scaling = #posenc.linear<factor = 4.000000e+00>>, axes = <contiguous, [16, 24, 24]>>}
func.func private @axes() attributes {test.attr = #posenc.rotation<pairing = half, frequencies = <dim = 128, scaling = #posenc.linear<factor = 4>>, axes = #posenc.axes<contiguous, [16, 24, 24]>>}
