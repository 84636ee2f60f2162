//===- scaling-attrs-invalid.mlir - errors of scaling rules ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-diagnostics --split-input-file

// linear: factor = 0.0.
// expected-error @+1 {{expected a finite, positive factor (linear_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.linear<factor = 0.0>>}

// -----

// linear: factor = -4.0.
// expected-error @+1 {{expected a finite, positive factor (linear_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.linear<factor = -4.0>>}

// -----

// linear: factor = 0x7FF0000000000000.
// expected-error @+1 {{expected a finite, positive factor (linear_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.linear<factor = 0x7FF0000000000000>>}

// -----

// linear: factor = 0x7FF8000000000000.
// expected-error @+1 {{expected a finite, positive factor (linear_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.linear<factor = 0x7FF8000000000000>>}

// -----

// linear: a factor below 2^-64, so that no fraction bit of a frequency is left.
// expected-error @+1 {{expected a factor of at least 2^-64 (linear_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.linear<factor = 5.0e-20>>}

// -----

// llama3: the same.
// expected-error @+1 {{expected a factor of at least 2^-64 (llama3_c4)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.llama3<factor = 5.0e-20, low_freq_factor = 1.0, high_freq_factor = 4.0, original_max_position = 8192.0>>}

// -----

// yarn: the same.
// expected-error @+1 {{expected a factor of at least 2^-64 (yarn_c6)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 5.0e-20, original_max_position = 4096.0>>}

// -----

// linear: no factor.
// expected-error @+1 {{missing parameter 'factor'}}
func.func private @f() attributes {test.attr = #posenc.linear<>}

// -----

// linear: an unknown key.
// expected-error @+1 {{unknown parameter 'low'}}
func.func private @f() attributes {test.attr = #posenc.linear<factor = 4.0, low = 4.0>}

// -----

// llama3: factor = 0.0.
// expected-error @+1 {{expected a finite, positive factor (llama3_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.llama3<factor = 0.0, low_freq_factor = 1.0, high_freq_factor = 4.0, original_max_position = 8192.0>>}

// -----

// llama3: factor = -8.0.
// expected-error @+1 {{expected a finite, positive factor (llama3_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.llama3<factor = -8.0, low_freq_factor = 1.0, high_freq_factor = 4.0, original_max_position = 8192.0>>}

// -----

// llama3: factor = 0x7FF0000000000000.
// expected-error @+1 {{expected a finite, positive factor (llama3_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.llama3<factor = 0x7FF0000000000000, low_freq_factor = 1.0, high_freq_factor = 4.0, original_max_position = 8192.0>>}

// -----

// llama3: factor = 0x7FF8000000000000.
// expected-error @+1 {{expected a finite, positive factor (llama3_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.llama3<factor = 0x7FF8000000000000, low_freq_factor = 1.0, high_freq_factor = 4.0, original_max_position = 8192.0>>}

// -----

// llama3: the low bound.
// expected-error @+1 {{expected 0 < low_freq_factor <= high_freq_factor, both finite (llama3_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.llama3<factor = 8.0, low_freq_factor = 0.0, high_freq_factor = 4.0, original_max_position = 8192.0>>}

// -----

// llama3: the low bound.
// expected-error @+1 {{expected 0 < low_freq_factor <= high_freq_factor, both finite (llama3_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.llama3<factor = 8.0, low_freq_factor = -1.0, high_freq_factor = 4.0, original_max_position = 8192.0>>}

// -----

// llama3: the low bound.
// expected-error @+1 {{expected 0 < low_freq_factor <= high_freq_factor, both finite (llama3_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.llama3<factor = 8.0, low_freq_factor = 0x7FF8000000000000, high_freq_factor = 4.0, original_max_position = 8192.0>>}

// -----

// llama3: the high bound.
// expected-error @+1 {{expected 0 < low_freq_factor <= high_freq_factor, both finite (llama3_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.llama3<factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 0.0, original_max_position = 8192.0>>}

// -----

// llama3: the high bound.
// expected-error @+1 {{expected 0 < low_freq_factor <= high_freq_factor, both finite (llama3_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.llama3<factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 0x7FF0000000000000, original_max_position = 8192.0>>}

// -----

// llama3: the high bound.
// expected-error @+1 {{expected 0 < low_freq_factor <= high_freq_factor, both finite (llama3_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.llama3<factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 0.5, original_max_position = 8192.0>>}

// -----

// llama3: the high bound.
// expected-error @+1 {{expected 0 < low_freq_factor <= high_freq_factor, both finite (llama3_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.llama3<factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 0x7FF8000000000000, original_max_position = 8192.0>>}

// -----

// llama3: original_max_position = 0.0.
// expected-error @+1 {{expected a finite, positive original_max_position (llama3_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.llama3<factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 4.0, original_max_position = 0.0>>}

// -----

// llama3: original_max_position = -8192.0.
// expected-error @+1 {{expected a finite, positive original_max_position (llama3_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.llama3<factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 4.0, original_max_position = -8192.0>>}

// -----

// llama3: original_max_position = 0x7FF0000000000000.
// expected-error @+1 {{expected a finite, positive original_max_position (llama3_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.llama3<factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 4.0, original_max_position = 0x7FF0000000000000>>}

// -----

// llama3: original_max_position = 0x7FF8000000000000.
// expected-error @+1 {{expected a finite, positive original_max_position (llama3_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.llama3<factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 4.0, original_max_position = 0x7FF8000000000000>>}

// -----

// llama3: no factor.
// expected-error @+1 {{missing parameter 'factor'}}
func.func private @f() attributes {test.attr = #posenc.llama3<low_freq_factor = 1.0, high_freq_factor = 1.0, original_max_position = 1.0>}

// -----

// llama3: no low_freq_factor.
// expected-error @+1 {{missing parameter 'low_freq_factor'}}
func.func private @f() attributes {test.attr = #posenc.llama3<factor = 1.0, high_freq_factor = 1.0, original_max_position = 1.0>}

// -----

// llama3: no high_freq_factor.
// expected-error @+1 {{missing parameter 'high_freq_factor'}}
func.func private @f() attributes {test.attr = #posenc.llama3<factor = 1.0, low_freq_factor = 1.0, original_max_position = 1.0>}

// -----

// llama3: no original_max_position.
// expected-error @+1 {{missing parameter 'original_max_position'}}
func.func private @f() attributes {test.attr = #posenc.llama3<factor = 1.0, low_freq_factor = 1.0, high_freq_factor = 1.0>}

// -----

// yarn: factor = 0.0.
// expected-error @+1 {{expected a finite, positive factor (yarn_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 0.0, original_max_position = 4096.0>>}

// -----

// yarn: factor = -4.0.
// expected-error @+1 {{expected a finite, positive factor (yarn_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = -4.0, original_max_position = 4096.0>>}

// -----

// yarn: factor = 0x7FF0000000000000.
// expected-error @+1 {{expected a finite, positive factor (yarn_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 0x7FF0000000000000, original_max_position = 4096.0>>}

// -----

// yarn: factor = 0x7FF8000000000000.
// expected-error @+1 {{expected a finite, positive factor (yarn_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 0x7FF8000000000000, original_max_position = 4096.0>>}

// -----

// yarn: beta_fast = 0.5.
// expected-error @+1 {{expected 0 < beta_slow <= beta_fast, both finite (yarn_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, beta_fast = 0.5>>}

// -----

// yarn: beta_fast = 0.0.
// expected-error @+1 {{expected 0 < beta_slow <= beta_fast, both finite (yarn_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, beta_fast = 0.0>>}

// -----

// yarn: beta_slow = 0.0.
// expected-error @+1 {{expected 0 < beta_slow <= beta_fast, both finite (yarn_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, beta_slow = 0.0>>}

// -----

// yarn: beta_slow = -1.0.
// expected-error @+1 {{expected 0 < beta_slow <= beta_fast, both finite (yarn_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, beta_slow = -1.0>>}

// -----

// yarn: beta_slow = 33.0.
// expected-error @+1 {{expected 0 < beta_slow <= beta_fast, both finite (yarn_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, beta_slow = 33.0>>}

// -----

// yarn: beta_fast = 0x7FF0000000000000.
// expected-error @+1 {{expected 0 < beta_slow <= beta_fast, both finite (yarn_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, beta_fast = 0x7FF0000000000000>>}

// -----

// yarn: beta_slow = 0x7FF8000000000000.
// expected-error @+1 {{expected 0 < beta_slow <= beta_fast, both finite (yarn_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, beta_slow = 0x7FF8000000000000>>}

// -----

// yarn: original_max_position = 0.0.
// expected-error @+1 {{expected a finite, positive original_max_position (yarn_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 0.0>>}

// -----

// yarn: original_max_position = -1.0.
// expected-error @+1 {{expected a finite, positive original_max_position (yarn_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = -1.0>>}

// -----

// yarn: original_max_position = 0x7FF0000000000000.
// expected-error @+1 {{expected a finite, positive original_max_position (yarn_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 0x7FF0000000000000>>}

// -----

// yarn: original_max_position = 0x7FF8000000000000.
// expected-error @+1 {{expected a finite, positive original_max_position (yarn_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 0x7FF8000000000000>>}

// -----

// yarn: base = 1.0.
// expected-error @+1 {{expected a base greater than 1 (yarn_c4)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = 1.0, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0>>}

// -----

// yarn: base = 0.5.
// expected-error @+1 {{expected a base greater than 1 (yarn_c4)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, base = 0.5, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0>>}

// -----

// yarn: attention_factor = 0.0.
// expected-error @+1 {{expected attention_factor, mscale and mscale_all_dim to be finite and positive (yarn_c5)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, attention_factor = 0.0>>}

// -----

// yarn: attention_factor = -1.0.
// expected-error @+1 {{expected attention_factor, mscale and mscale_all_dim to be finite and positive (yarn_c5)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, attention_factor = -1.0>>}

// -----

// yarn: attention_factor = 0x7FF0000000000000.
// expected-error @+1 {{expected attention_factor, mscale and mscale_all_dim to be finite and positive (yarn_c5)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, attention_factor = 0x7FF0000000000000>>}

// -----

// yarn: attention_factor = 0x7FF8000000000000.
// expected-error @+1 {{expected attention_factor, mscale and mscale_all_dim to be finite and positive (yarn_c5)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, attention_factor = 0x7FF8000000000000>>}

// -----

// yarn: mscale = 0.0.
// expected-error @+1 {{expected attention_factor, mscale and mscale_all_dim to be finite and positive (yarn_c5)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, mscale = 0.0>>}

// -----

// yarn: mscale = -1.0.
// expected-error @+1 {{expected attention_factor, mscale and mscale_all_dim to be finite and positive (yarn_c5)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, mscale = -1.0>>}

// -----

// yarn: mscale = 0x7FF0000000000000.
// expected-error @+1 {{expected attention_factor, mscale and mscale_all_dim to be finite and positive (yarn_c5)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, mscale = 0x7FF0000000000000>>}

// -----

// yarn: mscale = 0x7FF8000000000000.
// expected-error @+1 {{expected attention_factor, mscale and mscale_all_dim to be finite and positive (yarn_c5)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, mscale = 0x7FF8000000000000>>}

// -----

// yarn: mscale_all_dim = 0.0.
// expected-error @+1 {{expected attention_factor, mscale and mscale_all_dim to be finite and positive (yarn_c5)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, mscale_all_dim = 0.0>>}

// -----

// yarn: mscale_all_dim = -1.0.
// expected-error @+1 {{expected attention_factor, mscale and mscale_all_dim to be finite and positive (yarn_c5)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, mscale_all_dim = -1.0>>}

// -----

// yarn: mscale_all_dim = 0x7FF0000000000000.
// expected-error @+1 {{expected attention_factor, mscale and mscale_all_dim to be finite and positive (yarn_c5)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, mscale_all_dim = 0x7FF0000000000000>>}

// -----

// yarn: mscale_all_dim = 0x7FF8000000000000.
// expected-error @+1 {{expected attention_factor, mscale and mscale_all_dim to be finite and positive (yarn_c5)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, mscale_all_dim = 0x7FF8000000000000>>}

// -----

// yarn: truncate is a word.
// expected-error @+1 {{expected 'false'}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, truncate = 1>>}

// -----

// yarn: truncate is not a boolean.
// expected-error @+1 {{expected 'false'}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, truncate = maybe>>}

// -----

// yarn: truncate is given twice.
// expected-error @+1 {{parameter 'truncate' is given twice}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, truncate = true, truncate = false>>}

// -----

// yarn: no original_max_position.
// expected-error @+1 {{missing parameter 'original_max_position'}}
func.func private @f() attributes {test.attr = #posenc.yarn<factor = 4.0>}

// -----

// yarn: no factor.
// expected-error @+1 {{missing parameter 'factor'}}
func.func private @f() attributes {test.attr = #posenc.yarn<original_max_position = 4096.0>}

// -----

// yarn: an unknown key.
// expected-error @+1 {{unknown parameter 'extrapolation_factor'}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0, extrapolation_factor = 1.0>>}

// -----

// explicit: [] for two pairs.
// expected-error @+1 {{expected 2 values, got 0 (explicit_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.explicit<values = []>>}

// -----

// explicit: [1.0] for two pairs.
// expected-error @+1 {{expected 2 values, got 1 (explicit_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.explicit<values = [1.0]>>}

// -----

// explicit: [1.0, 0.5, 0.25] for two pairs.
// expected-error @+1 {{expected 2 values, got 3 (explicit_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.explicit<values = [1.0, 0.5, 0.25]>>}

// -----

// explicit: [1.0, 0.5, 0.25, 0.125] for two pairs.
// expected-error @+1 {{expected 2 values, got 4 (explicit_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.explicit<values = [1.0, 0.5, 0.25, 0.125]>>}

// -----

// explicit: a value of 0x7FF0000000000000.
// expected-error @+1 {{expected finite values (explicit_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.explicit<values = [1.0, 0x7FF0000000000000]>>}

// -----

// explicit: a value of 0xFFF0000000000000.
// expected-error @+1 {{expected finite values (explicit_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.explicit<values = [1.0, 0xFFF0000000000000]>>}

// -----

// explicit: a value of 0x7FF8000000000000.
// expected-error @+1 {{expected finite values (explicit_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.explicit<values = [1.0, 0x7FF8000000000000]>>}

// -----

// explicit: a value of 1.0e999.
// expected-error @+1 {{expected finite values (explicit_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.explicit<values = [1.0, 1.0e999]>>}

// -----

// explicit: attention_factor = 0.0.
// expected-error @+1 {{expected a finite, positive attention_factor (explicit_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.explicit<values = [1.0, 0.5], attention_factor = 0.0>>}

// -----

// explicit: attention_factor = -1.0.
// expected-error @+1 {{expected a finite, positive attention_factor (explicit_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.explicit<values = [1.0, 0.5], attention_factor = -1.0>>}

// -----

// explicit: attention_factor = 0x7FF0000000000000.
// expected-error @+1 {{expected a finite, positive attention_factor (explicit_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.explicit<values = [1.0, 0.5], attention_factor = 0x7FF0000000000000>>}

// -----

// explicit: attention_factor = 0x7FF8000000000000.
// expected-error @+1 {{expected a finite, positive attention_factor (explicit_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.explicit<values = [1.0, 0.5], attention_factor = 0x7FF8000000000000>>}

// -----

// explicit: no values.
// expected-error @+1 {{missing parameter 'values'}}
func.func private @f() attributes {test.attr = #posenc.explicit<attention_factor = 1.0>}

// -----

// explicit: no list.
// expected-error @+1 {{expected '['}}
func.func private @f() attributes {test.attr = #posenc.explicit<values = 1.0>}

// -----

// explicit: no number.
// expected-error @+1 {{expected floating point literal}}
func.func private @f() attributes {test.attr = #posenc.explicit<values = [1.0, x]>}

// -----

// explicit: two signs.
// expected-error @+1 {{expected floating point literal}}
func.func private @f() attributes {test.attr = #posenc.explicit<values = [--1]>}

// -----

// explicit: a sign alone.
// expected-error @+1 {{expected floating point literal}}
func.func private @f() attributes {test.attr = #posenc.explicit<values = [-]>}

// -----

// explicit: a comma too many.
// expected-error @+1 {{expected floating point literal}}
func.func private @f() attributes {test.attr = #posenc.explicit<values = [1.0,]>}

// -----

// yarn: a negative ext_factor.
// expected-error @+1 {{expected an ext_factor between 0 and 1 (yarn_c7)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4, original_max_position = 4096, ext_factor = -1>>}

// -----

// yarn: an ext_factor above 1.
// expected-error @+1 {{expected an ext_factor between 0 and 1 (yarn_c7)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4, original_max_position = 4096, ext_factor = 1.5>>}

// -----

// yarn: an attn_factor of 0.
// expected-error @+1 {{expected a finite, positive attn_factor (yarn_c8)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.yarn<factor = 4, original_max_position = 4096, attn_factor = 0>>}

// -----

// ntk: a factor of 0.
// expected-error @+1 {{expected a finite factor of at least 2^-64 (ntk_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.ntk<factor = 0>>}

// -----

// ntk: a single pair.
// expected-error @+1 {{expected a rotary dimension of at least 4, got 2 (ntk_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 2, scaling = #posenc.ntk<factor = 2>>}

// -----

// ntk: a negative mixed_b.
// expected-error @+1 {{expected a finite, positive mixed_b (ntk_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.ntk<factor = 2, mixed_b = -1>>}

// -----

// ntk: a base beyond the range.
// expected-error @+1 {{expected the base times the factor to be between 2^-64 and 2^1023 (ntk_c4)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.ntk<factor = 1.0e300>>}

// -----

// dynamic: a factor of 0.
// expected-error @+1 {{expected a finite factor of at least 2^-64 (dynamic_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.dynamic<factor = 0, max_position = 4096, length = 8192>>}

// -----

// dynamic: no length up to which nothing is scaled.
// expected-error @+1 {{expected finite, positive max_position and length (dynamic_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.dynamic<factor = 2, max_position = 0, length = 8192>>}

// -----

// dynamic: a length of 0.
// expected-error @+1 {{expected finite, positive max_position and length (dynamic_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.dynamic<factor = 2, max_position = 4096, length = 0>>}

// -----

// dynamic: a single pair.
// expected-error @+1 {{expected a rotary dimension of at least 4, got 2 (dynamic_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 2, scaling = #posenc.dynamic<factor = 2, max_position = 4096, length = 8192>>}

// -----

// dynamic: a base beyond the range.
// expected-error @+1 {{expected the scaled base to be between 2^-64 and 2^1023 (dynamic_c4)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.dynamic<factor = 1.0e300, max_position = 4096, length = 8192>>}

// -----

// longrope: a short list.
// expected-error @+1 {{expected 2 short_factors, got 1 (longrope_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.longrope<short_factors = [1.0], long_factors = [1.0, 2.0], original_max_position = 4096, length = 8192>>}

// -----

// longrope: a long list of three.
// expected-error @+1 {{expected 2 long_factors, got 3 (longrope_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.longrope<short_factors = [1.0, 2.0], long_factors = [1.0, 2.0, 3.0], original_max_position = 4096, length = 8192>>}

// -----

// longrope: a divisor of 0.
// expected-error @+1 {{expected finite long_factors of at least 2^-64 (longrope_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.longrope<short_factors = [1.0, 2.0], long_factors = [1.0, 0.0], original_max_position = 4096, length = 8192>>}

// -----

// longrope: an original length of 1.
// expected-error @+1 {{expected a finite original_max_position greater than 1, and a finite, positive length (longrope_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.longrope<short_factors = [1.0, 2.0], long_factors = [1.0, 2.0], original_max_position = 1, length = 8192>>}

// -----

// longrope: a length of 0.
// expected-error @+1 {{expected a finite original_max_position greater than 1, and a finite, positive length (longrope_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.longrope<short_factors = [1.0, 2.0], long_factors = [1.0, 2.0], original_max_position = 4096, length = 0>>}

// -----

// longrope: an attention_factor of 0.
// expected-error @+1 {{expected factor and attention_factor to be finite and positive (longrope_c4)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.longrope<short_factors = [1.0, 2.0], long_factors = [1.0, 2.0], original_max_position = 4096, length = 8192, attention_factor = 0>>}

// -----

// proportional: no pairs.
// expected-error @+1 {{expected between 1 and 2 rotated_pairs, got 0 (proportional_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.proportional<rotated_pairs = 0>>}

// -----

// proportional: too many pairs.
// expected-error @+1 {{expected between 1 and 2 rotated_pairs, got 3 (proportional_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.proportional<rotated_pairs = 3>>}

// -----

// proportional: a factor of 0.
// expected-error @+1 {{expected a finite factor of at least 2^-64 (proportional_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.proportional<rotated_pairs = 1, factor = 0>>}

// -----

// divisors: one of two.
// expected-error @+1 {{expected 2 values, got 1 (divisors_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.divisors<values = [1.0]>>}

// -----

// divisors: a negative one.
// expected-error @+1 {{expected finite values of at least 2^-64 (divisors_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 4, scaling = #posenc.divisors<values = [1.0, -1.0]>>}

// -----

// geometric: a shift of the number of pairs.
// expected-error @+1 {{expected a shift below the number of pairs, 4, got 4.000000e+00 (geometric_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 8, scaling = #posenc.geometric<shift = 4>>}

// -----

// geometric: a shift that is not finite.
// expected-error @+1 {{expected a finite shift (geometric_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 8, scaling = #posenc.geometric<shift = 0xFFF0000000000000>>}

// -----

// geometric: a shift that is not a number.
// expected-error @+1 {{expected a finite shift (geometric_c1)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 2, scaling = #posenc.geometric<shift = 0x7FF8000000000000>>}

// -----

// geometric: a scale of 0.
// expected-error @+1 {{expected a finite, positive scale (geometric_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 8, scaling = #posenc.geometric<shift = 1, scale = 0>>}

// -----

// geometric: an infinite scale.
// expected-error @+1 {{expected a finite, positive scale (geometric_c2)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 8, scaling = #posenc.geometric<shift = 1, scale = 0x7FF0000000000000>>}

// -----

// geometric: a scale beyond 2^64.
// expected-error @+1 {{expected frequencies of at most 2^64, got 2^6.500000e+01; reduce scale or shift, or raise base (geometric_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 8, scaling = #posenc.geometric<shift = 1, scale = 36893488147419103232.0>>}

// -----

// geometric: with a base of 1/4, the last frequency is 2^(2*3/(4-3.5)) times the scale.
// expected-error @+1 {{expected frequencies of at most 2^64, got 2^7.200000e+01; reduce scale or shift, or raise base (geometric_c3)}}
func.func private @f() attributes {test.attr = #posenc.frequencies<dim = 8, base = 0.25, scaling = #posenc.geometric<shift = 3.5, scale = 1152921504606846976>>}

// -----

// geometric: no shift.
// expected-error @+1 {{missing parameter 'shift'}}
func.func private @f() attributes {test.attr = #posenc.geometric<scale = 1>}

// -----

// geometric: axial axes restart the exponents, so each axis needs more pairs than the shift.
func.func @f(%p: tensor<2x?xi64>, %t: tensor<?x4xf32>) {
  // expected-error @+1 {{'posenc.sincos' op expected a shift below the number of pairs, 2, got 2.500000e+00 (geometric_c1)}}
  %c, %s = posenc.sincos #posenc.frequencies<dim = 8, scaling = #posenc.geometric<shift = 2.5>> axes <axial, [2, 2]>
    positions(%p : tensor<2x?xi64>) outs(%t, %t : tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

// geometric: the same in a rotation.
// expected-error @+1 {{expected a shift below the number of pairs, 2, got 2.500000e+00 (geometric_c1)}}
func.func private @f() attributes {test.attr = #posenc.rotation<pairing = half, frequencies = <dim = 8, scaling = #posenc.geometric<shift = 2.5>>, axes = <axial, [2, 2]>>}
