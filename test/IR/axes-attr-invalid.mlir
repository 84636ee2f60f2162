//===- axes-attr-invalid.mlir - errors of axes ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-diagnostics --split-input-file

// 1 sections.
// expected-error @+1 {{expected between 2 and 8 sections, got 1 (axes_c1)}}
func.func private @f() attributes {test.attr = #posenc.axes<contiguous, [8]>}

// -----

// 9 sections.
// expected-error @+1 {{expected between 2 and 8 sections, got 9 (axes_c1)}}
func.func private @f() attributes {test.attr = #posenc.axes<contiguous, [1, 1, 1, 1, 1, 1, 1, 1, 1]>}

// -----

// A section of 0.
// expected-error @+1 {{expected sections between 1 and 32768, got 0 (axes_c2)}}
func.func private @f() attributes {test.attr = #posenc.axes<axial, [8, 0]>}

// -----

// A section of -1.
// expected-error @+1 {{expected sections between 1 and 32768, got -1 (axes_c2)}}
func.func private @f() attributes {test.attr = #posenc.axes<axial, [8, -1]>}

// -----

// A section of 32769.
// expected-error @+1 {{expected sections between 1 and 32768, got 32769 (axes_c2)}}
func.func private @f() attributes {test.attr = #posenc.axes<axial, [8, 32769]>}

// -----

// A section of 9223372036854775807.
// expected-error @+1 {{expected sections between 1 and 32768, got 9223372036854775807 (axes_c2)}}
func.func private @f() attributes {test.attr = #posenc.axes<axial, [8, 9223372036854775807]>}

// -----

// A section of -9223372036854775808.
// expected-error @+1 {{expected sections between 1 and 32768, got -9223372036854775808 (axes_c2)}}
func.func private @f() attributes {test.attr = #posenc.axes<axial, [8, -9223372036854775808]>}

// -----

// More than 64 bits.
// expected-error @+2 {{integer value too large}}
// expected-error @+1 {{failed to parse Posenc_AxesAttr parameter 'sections' which is to be a `::llvm::ArrayRef<int64_t>`}}
func.func private @f() attributes {test.attr = #posenc.axes<axial, [8, 99999999999999999999]>}

// -----

// No section.
// expected-error @+2 {{expected integer value}}
// expected-error @+1 {{failed to parse Posenc_AxesAttr parameter 'sections' which is to be a `::llvm::ArrayRef<int64_t>`}}
func.func private @f() attributes {test.attr = #posenc.axes<axial, []>}

// -----

// No list.
// expected-error @+1 {{expected ','}}
func.func private @f() attributes {test.attr = #posenc.axes<axial>}

// -----

// An unknown layout.
// expected-error @+2 {{expected one of [contiguous, interleaved, axial] for how several position axes share the pairs, got: diagonal}}
// expected-error @+1 {{failed to parse Posenc_AxesAttr parameter 'layout' which is to be a `::mlir::posenc::AxisLayout`}}
func.func private @f() attributes {test.attr = #posenc.axes<diagonal, [8, 8]>}

// -----

// No layout.
// expected-error @+2 {{expected keyword for how several position axes share the pairs}}
// expected-error @+1 {{failed to parse Posenc_AxesAttr parameter 'layout' which is to be a `::mlir::posenc::AxisLayout`}}
func.func private @f() attributes {test.attr = #posenc.axes<[8, 8]>}

// -----

// A section with a fraction.
// expected-error @+2 {{expected integer value}}
// expected-error @+1 {{failed to parse Posenc_AxesAttr parameter 'sections' which is to be a `::llvm::ArrayRef<int64_t>`}}
func.func private @f() attributes {test.attr = #posenc.axes<axial, [8.0, 8]>}

// -----

// Three arguments.
// expected-error @+1 {{expected '>'}}
func.func private @f() attributes {test.attr = #posenc.axes<axial, [8, 8], [8, 8]>}
