//===- frequency-attrs-invalid.mlir - errors of frequencies ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-diagnostics --split-input-file

// dim = 0.
// expected-error @+1 {{expected an even rotary dimension between 2 and 65536, got 0 (frequencies_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 0>}

// -----

// dim = 3.
// expected-error @+1 {{expected an even rotary dimension between 2 and 65536, got 3 (frequencies_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 3>}

// -----

// dim = -2.
// expected-error @+1 {{expected an even rotary dimension between 2 and 65536, got -2 (frequencies_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = -2>}

// -----

// dim = -128.
// expected-error @+1 {{expected an even rotary dimension between 2 and 65536, got -128 (frequencies_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = -128>}

// -----

// dim = 65538.
// expected-error @+1 {{expected an even rotary dimension between 2 and 65536, got 65538 (frequencies_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 65538>}

// -----

// dim = 65537.
// expected-error @+1 {{expected an even rotary dimension between 2 and 65536, got 65537 (frequencies_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 65537>}

// -----

// dim = 9223372036854775806.
// expected-error @+1 {{expected an even rotary dimension between 2 and 65536, got 9223372036854775806 (frequencies_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 9223372036854775806>}

// -----

// dim = -9223372036854775808.
// expected-error @+1 {{expected an even rotary dimension between 2 and 65536, got -9223372036854775808 (frequencies_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = -9223372036854775808>}

// -----

// More than 64 bits.
// expected-error @+1 {{integer value too large}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 99999999999999999999999>}

// -----

// A dim with a fraction.
// expected-error @+1 {{expected integer value}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 128.0>}

// -----

// The base: zero.
// expected-error @+1 {{expected a finite, positive base (frequencies_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = 0.0>}

// -----

// The base: zero, written without a fraction.
// expected-error @+1 {{expected a finite, positive base (frequencies_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = 0>}

// -----

// The base: minus zero.
// expected-error @+1 {{expected a finite, positive base (frequencies_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = -0.0>}

// -----

// The base: negative.
// expected-error @+1 {{expected a finite, positive base (frequencies_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = -10000.0>}

// -----

// The base: negative, written without a fraction.
// expected-error @+1 {{expected a finite, positive base (frequencies_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = -1>}

// -----

// The base: infinite.
// expected-error @+1 {{expected a finite, positive base (frequencies_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = 0x7FF0000000000000>}

// -----

// The base: minus infinite.
// expected-error @+1 {{expected a finite, positive base (frequencies_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = 0xFFF0000000000000>}

// -----

// The base: not a number.
// expected-error @+1 {{expected a finite, positive base (frequencies_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = 0x7FF8000000000000>}

// -----

// The base: a signalling one.
// expected-error @+1 {{expected a finite, positive base (frequencies_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = 0x7FF0000000000001>}

// -----

// The base: larger than any double.
// expected-error @+1 {{expected a finite, positive base (frequencies_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.0e999>}

// -----

// The base: below 2^-64, so that no fraction bit of a frequency is left.
// expected-error @+1 {{expected a base of at least 2^-64 (frequencies_c4)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = 5.0e-20>}

// -----

// The base: smaller than any double.
// expected-error @+1 {{expected a finite, positive base (frequencies_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.0e-999>}

// -----

// An integer beyond 64 bits.
// expected-error @+1 {{integer is too large; write a real}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = 99999999999999999999>}

// -----

// A typed real.
// expected-error @+1 {{expected '>'}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.0 : f32>}

// -----

// No number.
// expected-error @+1 {{expected floating point literal}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = inf>}

// -----

// No number.
// expected-error @+1 {{expected floating point literal}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = "10000.0">}

// -----

// A hexadecimal literal of more than 64 bits.
// expected-error @+1 {{hexadecimal float constant out of range for type}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = 0x7FF00000000000000>}

// -----

// A negative hexadecimal literal.
// expected-error @+1 {{hexadecimal float literal should not have a leading minus}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = -0x40C3880000000000>}

// -----

// Not a scaling rule.
// expected-error @+1 {{expected a scaling rule, got 4.000000e+00 : f64 (frequencies_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = 4.0 : f64>}

// -----

// Not a scaling rule.
// expected-error @+1 {{expected a scaling rule, got #posenc.axes<axial, [1, 1]> (frequencies_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.axes<axial, [1, 1]>>}

// -----

// Not a scaling rule.
// expected-error @+1 {{expected a scaling rule, got "yarn" (frequencies_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = "yarn">}

// -----

// Not a scaling rule.
// expected-error @+1 {{expected a scaling rule, got #posenc.frequencies<dim = 4, base = 1.000000e+04> (frequencies_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.frequencies<dim = 4>>}

// -----

// Not a scaling rule.
// expected-error @+1 {{expected a scaling rule, got {factor = 4.000000e+00 : f64} (frequencies_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = {factor = 4.0 : f64}>}

// -----

// Not a scaling rule.
// expected-error @+1 {{expected a scaling rule, got unit (frequencies_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = unit>}

// -----

// Keys.
// expected-error @+1 {{unknown parameter 'theta'}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, theta = 10000.0>}

// -----

// A key is given twice.
// expected-error @+1 {{parameter 'dim' is given twice}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, dim = 4>}

// -----

// A key is given twice.
// expected-error @+1 {{parameter 'base' is given twice}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = 2.0, base = 2.0>}

// -----

// No dim.
// expected-error @+1 {{missing parameter 'dim'}}
func.func private @f() attributes {test.attr = #posenc.frequencies<base = 10000.0>}

// -----

// Nothing.
// expected-error @+1 {{missing parameter 'dim'}}
func.func private @f() attributes {test.attr = #posenc.frequencies<>}

// -----

// No list at all.
// expected-error @+1 {{expected '<'}}
func.func private @f() attributes {test.attr = #posenc.frequencies}

// -----

// No value.
// expected-error @+1 {{expected '='}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim>}

// -----

// No key.
// expected-error @+1 {{expected valid keyword}}
func.func private @f() attributes {test.attr = #posenc.frequencies<128>}

// -----

// No comma.
// expected-error @+1 {{expected '>'}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4 base = 2.0>}

// -----

// No attribute of the dialect.
// expected-error @+1 {{unknown attribute `frequency` in dialect `posenc`}}
func.func private @f() attributes {test.attr = #posenc.frequency<dim = 4>}

// -----

// An unknown pairing.
// expected-error @+2 {{expected one of [half, interleaved] for which lanes of the window pair up, got: quarter}}
// expected-error @+1 {{failed to parse Posenc_PairingAttr parameter 'value' which is to be a `::mlir::posenc::Pairing`}}
func.func private @f() attributes {test.attr = #posenc<pairing quarter>}

// -----

// An unknown order.
// expected-error @+2 {{expected one of [interleaved, sin_cos, cos_sin] for the order of sines and cosines in a sinusoidal row, got: cos}}
// expected-error @+1 {{failed to parse Posenc_TableOrderAttr parameter 'value' which is to be a `::mlir::posenc::TableOrder`}}
func.func private @f() attributes {test.attr = #posenc<order cos>}
