//===- frequency-attrs.mlir - frequencies and their scaling rules ---------===//
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
// RUN: posenc-opt %s | FileCheck %s --check-prefix=ALIAS

// CHECK: func.func private @plain() attributes {test.attr = #posenc.frequencies<dim = 128, base = 5.000000e+05>}
func.func private @plain() attributes {test.attr = #posenc.frequencies<dim = 128, base = 5.000000e+05>}

// The base is 10000 if absent, and printed.
// CHECK: func.func private @default_base() attributes {test.attr = #posenc.frequencies<dim = 2, base = 1.000000e+04>}
func.func private @default_base() attributes {test.attr = #posenc.frequencies<dim = 2>}

// Reals may be written without a fraction.
// CHECK: func.func private @integer_base() attributes {test.attr = #posenc.frequencies<dim = 128, base = 5.000000e+05>}
func.func private @integer_base() attributes {test.attr = #posenc.frequencies<dim = 128, base = 500000>}

// Keys may be in any order.
// CHECK: func.func private @any_order() attributes {test.attr = #posenc.frequencies<dim = 16, base = 1.000000e+04, scaling = #posenc.linear<factor = 2.500000e+00>>}
func.func private @any_order() attributes {test.attr = #posenc.frequencies<scaling = #posenc.linear<factor = 2.5>, base = 10000.0, dim = 16>}

// CHECK: func.func private @greatest_dim() attributes {test.attr = #posenc.frequencies<dim = 65536, base = 1.000000e+04>}
func.func private @greatest_dim() attributes {test.attr = #posenc.frequencies<dim = 65536, base = 1.000000e+04>}

// CHECK: func.func private @inexact_base() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.000000e-01>}
func.func private @inexact_base() attributes {test.attr = #posenc.frequencies<dim = 4, base = 0.1>}

// Reals are printed and parsed without loss.
// CHECK: func.func private @all_digits() attributes {test.attr = #posenc.frequencies<dim = 4, base = 10000.000000000002>}
func.func private @all_digits() attributes {test.attr = #posenc.frequencies<dim = 4, base = 10000.000000000002>}

// CHECK: func.func private @small_base() attributes {test.attr = #posenc.frequencies<dim = 4, base = 5.4210108624275222E-20>}
func.func private @small_base() attributes {test.attr = #posenc.frequencies<dim = 4, base = 5.4210108624275222E-20>}

// A hexadecimal literal has the bits of the real.
// CHECK: func.func private @hex_base() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.000000e+04>}
func.func private @hex_base() attributes {test.attr = #posenc.frequencies<dim = 4, base = 0x40C3880000000000>}

// CHECK: func.func private @linear() attributes {test.attr = #posenc.frequencies<dim = 16, base = 1.000000e+04, scaling = #posenc.linear<factor = 4.000000e+00>>}
func.func private @linear() attributes {test.attr = #posenc.frequencies<dim = 16, base = 1.000000e+04, scaling = #posenc.linear<factor = 4.000000e+00>>}

// CHECK: func.func private @llama3() attributes {test.attr = #posenc.frequencies<dim = 16, base = 1.000000e+04, scaling = #posenc.llama3<factor = 8.000000e+00, low_freq_factor = 1.000000e+00, high_freq_factor = 4.000000e+00, original_max_position = 8.192000e+03>>}
func.func private @llama3() attributes {test.attr = #posenc.frequencies<dim = 16, base = 1.000000e+04, scaling = #posenc.llama3<factor = 8.000000e+00, low_freq_factor = 1.000000e+00, high_freq_factor = 4.000000e+00, original_max_position = 8.192000e+03>>}

// Equal bounds are legal and occur in published configs.
// CHECK: func.func private @llama3_any_order() attributes {test.attr = #posenc.frequencies<dim = 16, base = 1.000000e+04, scaling = #posenc.llama3<factor = 8.000000e+00, low_freq_factor = 1.000000e+00, high_freq_factor = 1.000000e+00, original_max_position = 8.192000e+03>>}
func.func private @llama3_any_order() attributes {test.attr = #posenc.frequencies<dim = 16, base = 1.000000e+04, scaling = #posenc.llama3<original_max_position = 8192, high_freq_factor = 1, low_freq_factor = 1.0, factor = 8>>}

// CHECK: func.func private @yarn() attributes {test.attr = #posenc.frequencies<dim = 16, base = 1.000000e+04, scaling = #posenc.yarn<factor = 4.000000e+00, original_max_position = 4.096000e+03>>}
func.func private @yarn() attributes {test.attr = #posenc.frequencies<dim = 16, base = 1.000000e+04, scaling = #posenc.yarn<factor = 4.000000e+00, original_max_position = 4.096000e+03>>}

// Defaults are not printed.
// CHECK: func.func private @yarn_defaults() attributes {test.attr = #posenc.frequencies<dim = 16, base = 1.000000e+04, scaling = #posenc.yarn<factor = 4.000000e+00, original_max_position = 4.096000e+03>>}
func.func private @yarn_defaults() attributes {test.attr = #posenc.frequencies<dim = 16, base = 1.000000e+04, scaling = #posenc.yarn<factor = 4, original_max_position = 4096, beta_fast = 32, beta_slow = 1, truncate = true>>}

// CHECK: func.func private @yarn_all() attributes {test.attr = #posenc.frequencies<dim = 16, base = 1.000000e+04, scaling = #posenc.yarn<factor = 4.000000e+01, original_max_position = 4.096000e+03, beta_fast = 1.600000e+01, beta_slow = 2.000000e+00, truncate = false, attention_factor = 1.250000e+00, mscale = 7.070000e-01, mscale_all_dim = 1.000000e+00>>}
func.func private @yarn_all() attributes {test.attr = #posenc.frequencies<dim = 16, base = 1.000000e+04, scaling = #posenc.yarn<factor = 4.000000e+01, original_max_position = 4.096000e+03, beta_fast = 1.600000e+01, beta_slow = 2.000000e+00, truncate = false, attention_factor = 1.250000e+00, mscale = 7.070000e-01, mscale_all_dim = 1.000000e+00>>}

// CHECK: func.func private @yarn_equal_betas() attributes {test.attr = #posenc.frequencies<dim = 16, base = 1.000000e+04, scaling = #posenc.yarn<factor = 4.000000e+01, original_max_position = 4.096000e+03, beta_fast = 1.000000e+00>>}
func.func private @yarn_equal_betas() attributes {test.attr = #posenc.frequencies<dim = 16, base = 1.000000e+04, scaling = #posenc.yarn<factor = 4.000000e+01, original_max_position = 4.096000e+03, beta_fast = 1.000000e+00>>}

// Frequencies may be negative or zero.
// CHECK: func.func private @explicit() attributes {test.attr = #posenc.frequencies<dim = 6, base = 1.000000e+04, scaling = #posenc.explicit<values = [1.000000e+00, -2.500000e-01, 0.000000e+00]>>}
func.func private @explicit() attributes {test.attr = #posenc.frequencies<dim = 6, base = 1.000000e+04, scaling = #posenc.explicit<values = [1.000000e+00, -2.500000e-01, 0.000000e+00]>>}

// CHECK: func.func private @explicit_attention() attributes {test.attr = #posenc.frequencies<dim = 2, base = 1.000000e+04, scaling = #posenc.explicit<values = [1.000000e+00], attention_factor = 1.125000e+00>>}
func.func private @explicit_attention() attributes {test.attr = #posenc.frequencies<dim = 2, base = 1.000000e+04, scaling = #posenc.explicit<values = [1.000000e+00], attention_factor = 1.125000e+00>>}

// CHECK: func.func private @geometric() attributes {test.attr = #posenc.frequencies<dim = 16, base = 1.000000e+04, scaling = #posenc.geometric<shift = 1.000000e+00>>}
func.func private @geometric() attributes {test.attr = #posenc.frequencies<dim = 16, scaling = #posenc.geometric<shift = 1>>}

// The exponents of a single pair do not depend on the shift.
// CHECK: func.func private @geometric_one_pair() attributes {test.attr = #posenc.frequencies<dim = 2, base = 1.000000e+04, scaling = #posenc.geometric<shift = 1.000000e+00, scale = 5.000000e-01>>}
func.func private @geometric_one_pair() attributes {test.attr = #posenc.frequencies<dim = 2, base = 1.000000e+04, scaling = #posenc.geometric<scale = 0.5, shift = 1>>}

// CHECK: func.func private @geometric_negative_shift() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.000000e+04, scaling = #posenc.geometric<shift = -1.000000e+00>>}
func.func private @geometric_negative_shift() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.geometric<shift = -1>>}

// A rule is verified with the dimension and the base of its frequencies.
// CHECK: func.func private @scaling_alone() attributes {test.attr = #posenc.linear<factor = -1.000000e+00>}
func.func private @scaling_alone() attributes {test.attr = #posenc.linear<factor = -1.000000e+00>}

// CHECK: func.func private @not_finite() attributes {test.attr = #posenc.explicit<values = [0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000]>}
func.func private @not_finite() attributes {test.attr = #posenc.explicit<values = [0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000]>}

// CHECK: func.func private @signs() attributes {test.attr = #posenc.explicit<values = [-1.000000e+00, -1.500000e+00, -2.500000e+00, -0.000000e+00, 1.000000e+00]>}
func.func private @signs() attributes {test.attr = #posenc.explicit<values = [-1, -1.5, - 2.5, -0.0, 1.]>}

// CHECK: func.func private @no_values() attributes {test.attr = #posenc.explicit<values = []>}
func.func private @no_values() attributes {test.attr = #posenc.explicit<values = []>}

// CHECK: func.func private @pairing() attributes {test.attr = #posenc<pairing half>}
func.func private @pairing() attributes {test.attr = #posenc<pairing half>}

// CHECK: func.func private @order() attributes {test.attr = #posenc<order sin_cos>}
func.func private @order() attributes {test.attr = #posenc<order sin_cos>}

// Shared frequencies are printed once, as an alias.
// ALIAS: #[[$F:frequencies[0-9]+]] = #posenc.frequencies<dim = 8, base = 1.000000e+04>
// ALIAS: func @shared
// ALIAS-COUNT-2: posenc.sinusoidal sin_cos #[[$F]] positions
// CHECK-LABEL: func @shared(
// CHECK-COUNT-2: posenc.sinusoidal sin_cos <dim = 8, base = 1.000000e+04> positions
func.func @shared(%t: memref<4x8xf32>, %p: memref<4xi64>) {
  posenc.sinusoidal sin_cos <dim = 8> positions(%p : memref<4xi64>) outs(%t : memref<4x8xf32>)
  posenc.sinusoidal sin_cos <dim = 8> positions(%p : memref<4xi64>) outs(%t : memref<4x8xf32>)
  return
}

// Each of these scalings is printed as it is written.
// CHECK: func.func private @ntk() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.000000e+04, scaling = #posenc.ntk<factor = 4.000000e+00>>}
func.func private @ntk() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.000000e+04, scaling = #posenc.ntk<factor = 4.000000e+00>>}
// CHECK: func.func private @ntk_mixed() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.000000e+04, scaling = #posenc.ntk<factor = 4.000000e+00, mixed_b = 6.250000e-01>>}
func.func private @ntk_mixed() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.000000e+04, scaling = #posenc.ntk<factor = 4.000000e+00, mixed_b = 6.250000e-01>>}
// CHECK: func.func private @dynamic() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.000000e+04, scaling = #posenc.dynamic<factor = 2.000000e+00, max_position = 4.096000e+03, length = 1.638400e+04>>}
func.func private @dynamic() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.000000e+04, scaling = #posenc.dynamic<factor = 2.000000e+00, max_position = 4.096000e+03, length = 1.638400e+04>>}
// CHECK: func.func private @longrope() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.000000e+04, scaling = #posenc.longrope<short_factors = [1.000000e+00, 1.500000e+00], long_factors = [2.000000e+00, 8.000000e+00], original_max_position = 4.096000e+03, length = 8.192000e+03, factor = 3.200000e+01, attention_factor = 1.250000e+00>>}
func.func private @longrope() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.000000e+04, scaling = #posenc.longrope<short_factors = [1.000000e+00, 1.500000e+00], long_factors = [2.000000e+00, 8.000000e+00], original_max_position = 4.096000e+03, length = 8.192000e+03, factor = 3.200000e+01, attention_factor = 1.250000e+00>>}
// CHECK: func.func private @proportional() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.000000e+04, scaling = #posenc.proportional<rotated_pairs = 1>>}
func.func private @proportional() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.000000e+04, scaling = #posenc.proportional<rotated_pairs = 1>>}
// CHECK: func.func private @proportional_factor() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.000000e+04, scaling = #posenc.proportional<rotated_pairs = 1, factor = 8.000000e+00>>}
func.func private @proportional_factor() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.000000e+04, scaling = #posenc.proportional<rotated_pairs = 1, factor = 8.000000e+00>>}
// CHECK: func.func private @divisors() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.000000e+04, scaling = #posenc.divisors<values = [1.000000e+00, 8.000000e+00]>>}
func.func private @divisors() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.000000e+04, scaling = #posenc.divisors<values = [1.000000e+00, 8.000000e+00]>>}
// CHECK: func.func private @yarn_ggml() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.000000e+04, scaling = #posenc.yarn<factor = 4.000000e+00, original_max_position = 4.096000e+03, ext_factor = 5.000000e-01, attn_factor = 2.000000e+00>>}
func.func private @yarn_ggml() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.000000e+04, scaling = #posenc.yarn<factor = 4.000000e+00, original_max_position = 4.096000e+03, ext_factor = 5.000000e-01, attn_factor = 2.000000e+00>>}
