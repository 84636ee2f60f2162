//===- rotation-attr-invalid.mlir - errors of rotations -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-diagnostics --split-input-file

// A negative offset.
// expected-error @+1 {{expected an offset that is not negative, got -1 (rotation_c1)}}
func.func private @f() attributes {test.attr = #posenc.rotation<pairing = half, frequencies = <dim = 8>, offset = -1>}

// -----

// Too few sections.
// expected-error @+1 {{sections add up to 3 pairs of 4 (rotation_c2)}}
func.func private @f() attributes {test.attr = #posenc.rotation<pairing = half, frequencies = <dim = 8>, axes = <contiguous, [1, 2]>>}

// -----

// No frequencies.
// expected-error @+1 {{missing parameter 'frequencies'}}
func.func private @f() attributes {test.attr = #posenc.rotation<pairing = half>}

// -----

// No pairing.
// expected-error @+1 {{missing parameter 'pairing'}}
func.func private @f() attributes {test.attr = #posenc.rotation<frequencies = <dim = 8>>}

// -----

// An unknown pairing.
// expected-error @+1 {{expected one of [half, interleaved] for which lanes of the window pair up, got: third}}
func.func private @f() attributes {test.attr = #posenc.rotation<pairing = third, frequencies = <dim = 8>>}

// -----

// Frequencies of another kind.
// expected-error @+1 {{invalid kind of attribute specified}}
func.func private @f() attributes {test.attr = #posenc.rotation<pairing = half, frequencies = #posenc.linear<factor = 2>>}

// -----

// Axes of another kind.
// expected-error @+1 {{expected '<'}}
func.func private @f() attributes {test.attr = #posenc.rotation<pairing = half, frequencies = <dim = 8>, axes = 4>}

// -----

// Frequencies that are wrong.
// expected-error @+1 {{expected an even rotary dimension between 2 and 65536, got 7 (frequencies_c1)}}
func.func private @f() attributes {test.attr = #posenc.rotation<pairing = half, frequencies = <dim = 7>>}

// -----

// An unknown parameter.
// expected-error @+1 {{unknown parameter 'inverse'}}
func.func private @f() attributes {test.attr = #posenc.rotation<pairing = half, frequencies = <dim = 8>, inverse = true>}

// -----

// A parameter that is given twice.
// expected-error @+1 {{parameter 'offset' is given twice}}
func.func private @f() attributes {test.attr = #posenc.rotation<pairing = half, frequencies = <dim = 8>, offset = 0, offset = 0>}
