//===- FrequencyAttrs.td - frequencies and their scalings --*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_FREQUENCYATTRS_TD
#define POSENC_IR_FREQUENCYATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "posenc/IR/PosencInterfaces.td"
include "posenc/IR/PosencEnums.td"

class Posenc_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<PosencDialect, name, traits> {
  let mnemonic = attrMnemonic;
}

/// A scaling rule: `#posenc.<mnemonic><key = value, ...>`.
class Posenc_Scaling<string name, string attrMnemonic,
                     list<string> overridden = []>
    : Posenc_Attr<name, attrMnemonic, [
        DeclareAttrInterfaceMethods<Posenc_FrequencyScalingInterface,
                                    overridden>]> {
  let hasCustomAssemblyFormat = 1;
}

class Posenc_Real<string desc> : AttrParameter<"::mlir::FloatAttr", desc>;
class Posenc_OptionalReal<string desc>
    : OptionalParameter<"::mlir::FloatAttr", desc>;

def Posenc_LinearScalingAttr : Posenc_Scaling<"LinearScaling", "linear"> {
  let summary = "position interpolation: divides every frequency by a factor";
  let description = [{
    `f_i = b^(-2i/d) / factor`, `att = 1`.

    ```mlir
    #posenc.linear<factor = 4.000000e+00>
    ```

    Constraints:
    - (linear_c1) `factor` is finite and positive.
    - (linear_c2) `factor` is at least 2^-64.
  }];
  let parameters = (ins Posenc_Real<"the divisor">:$factor);
}

def Posenc_Llama3ScalingAttr : Posenc_Scaling<"Llama3Scaling", "llama3"> {
  let summary = "scaling by wavelength of Llama 3.1";
  let description = [{
    With the wavelength `lam = 2*pi/f_i` of the unscaled frequency and
    `L = original_max_position`: `f_i / factor` if
    `lam > L/low_freq_factor`; `f_i` if `lam < L/high_freq_factor`; else
    `(1-s)*f_i/factor + s*f_i` with
    `s = (L/lam - low_freq_factor) / (high_freq_factor - low_freq_factor)`.
    `att = 1`.

    ```mlir
    #posenc.llama3<factor = 8.000000e+00, low_freq_factor = 1.000000e+00, high_freq_factor = 4.000000e+00, original_max_position = 8.192000e+03>
    ```

    Constraints:
    - (llama3_c1) `factor` is finite and positive.
    - (llama3_c2) `low_freq_factor` and `high_freq_factor` are finite and
      positive, and the low one is not above the high one.
    - (llama3_c3) `original_max_position` is finite and positive.
    - (llama3_c4) `factor` is at least 2^-64.
  }];
  let parameters = (ins
    Posenc_Real<"the divisor of low frequencies">:$factor,
    Posenc_Real<"low-frequency bound">:$low_freq_factor,
    Posenc_Real<"high-frequency bound">:$high_freq_factor,
    Posenc_Real<"context length of pretraining">:$original_max_position);
}

def Posenc_YarnScalingAttr
    : Posenc_Scaling<"YarnScaling", "yarn",
                     ["computeAttentionFactor", "withUnitAttentionFactor"]> {
  let summary = "YaRN: interpolation by parts and an attention factor";
  let description = [{
    With `L = original_max_position`, `s = factor` and
    `corr(r) = d*ln(L/(2*pi*r)) / (2*ln b)`:
    `low = max(corr(beta_fast), 0)`, `high = min(corr(beta_slow), d-1)`, where
    `truncate` (the default) first rounds low down and high up; if they are
    equal, `high` is raised by 0.001. Then
    `ramp_i = clamp((i-low)/(high-low), 0, 1)` and
    `f_i = (f_i/s)*(1 - e_i) + f_i*e_i` with `e_i = ext_factor*(1-ramp_i)`.

    `att` is `attention_factor` if given; else, with
    `g(s,m) = 1 if s <= 1 else 0.1*m*ln(s) + 1`, it is `attn_factor` times
    `g(s,mscale)/g(s,mscale_all_dim)` if both are given, else times `g(s,1)`.
    With `ext_factor = 0` it is `attn_factor` alone.
    Source: Peng et al., YaRN (2023), in the parameterisation of
    `transformers`; `ext_factor` and `attn_factor` are those of ggml (where the
    factor is `1/freq_scale`), and `extrapolation_factor` and `attn_factor` of
    vLLM. Both are 1 in `transformers`.

    ```mlir
    #posenc.yarn<factor = 4.000000e+00, original_max_position = 4.096000e+03>
    ```

    Constraints:
    - (yarn_c1) `factor` is finite and positive.
    - (yarn_c2) `beta_fast` and `beta_slow` are finite and positive, and
      `beta_fast` is not below `beta_slow`.
    - (yarn_c3) `original_max_position` is finite and positive.
    - (yarn_c4) the base is greater than 1.
    - (yarn_c5) `attention_factor`, `mscale` and `mscale_all_dim` are finite
      and positive where given.
    - (yarn_c6) `factor` is at least 2^-64.
    - (yarn_c7) `ext_factor` is between 0 and 1.
    - (yarn_c8) `attn_factor` is finite and positive.
  }];
  let parameters = (ins
    Posenc_Real<"context extension">:$factor,
    Posenc_Real<"context length of pretraining">:$original_max_position,
    Posenc_Real<"rotations above which frequencies are unchanged, default 32">:$beta_fast,
    Posenc_Real<"rotations below which frequencies are divided, default 1">:$beta_slow,
    AttrParameter<"bool", "whether the bounds are rounded to pair indices">:$truncate,
    Posenc_OptionalReal<"factor of cos and sin">:$attention_factor,
    Posenc_OptionalReal<"`m` in the numerator of `att`">:$mscale,
    Posenc_OptionalReal<"`m` in the denominator of `att`">:$mscale_all_dim,
    Posenc_OptionalReal<"weight of the unscaled frequencies, default 1">:$ext_factor,
    Posenc_OptionalReal<"factor of the derived `att`, default 1">:$attn_factor);
}

def Posenc_ExplicitScalingAttr : Posenc_Scaling<"ExplicitScaling", "explicit",
                                             ["computeAttentionFactor",
                                              "withUnitAttentionFactor",
                                              "isIndexedByPair"]> {
  let summary = "explicit frequencies";
  let description = [{
    `f_i = values[i]`; the base is ignored. `att = attention_factor`, 1 if
    absent.

    ```mlir
    #posenc.explicit<values = [1.000000e+00, 2.500000e-01]>
    ```

    Constraints:
    - (explicit_c1) there is one value for each of the `d/2` pairs.
    - (explicit_c2) every value is finite.
    - (explicit_c3) `attention_factor` is finite and positive where given.
  }];
  let parameters = (ins
    AttrParameter<"::mlir::DenseF64ArrayAttr", "radians per position">:$values,
    Posenc_OptionalReal<"factor of cos and sin">:$attention_factor);
}

def Posenc_NtkScalingAttr : Posenc_Scaling<"NtkScaling", "ntk"> {
  let summary = "NTK-aware scaling: a larger base, for a fixed factor";
  let description = [{
    `f_i = b'^(-2i/d)` with `b' = b * factor^(d/(d-2))`, which leaves the first
    frequency unchanged and divides the last by `factor`. With `mixed_b` it is
    `f_i = b^(-2i/d) / factor^(((i+1)/(d/2))^mixed_b)` instead. `att = 1`.
    Source: the NTK-aware interpolation published by bloc97 (2023); `mixed_b` is
    that of vLLM, whose form without it equals `mixed_b = 1` here.

    ```mlir
    #posenc.ntk<factor = 4.000000e+00>
    ```

    Constraints:
    - (ntk_c1) `factor` is finite and at least 2^-64.
    - (ntk_c2) without `mixed_b`, the rotary dimension is at least 4.
    - (ntk_c3) `mixed_b` is finite and positive where given.
    - (ntk_c4) the changed base is between 2^-64 and 2^1023.
  }];
  let parameters = (ins
    Posenc_Real<"context extension">:$factor,
    Posenc_OptionalReal<"exponent of the mixed form">:$mixed_b);
}

def Posenc_DynamicScalingAttr
    : Posenc_Scaling<"DynamicScaling", "dynamic",
                     ["dependsOnLength", "withLength"]> {
  let summary = "NTK-aware scaling by the length of the sequence";
  let description = [{
    With `M = max_position` and `n = max(length, M)`:
    `f_i = b'^(-2i/d)`, `b' = b * (factor*n/M - (factor - 1))^(d/(d-2))`. Up to
    the length `M` nothing is scaled. `att = 1`. Without `length`, it is known at
    run time, and `posenc.turns` computes the frequencies. Source: emozilla's
    dynamic NTK (2023), in the form of `transformers`.

    ```mlir
    #posenc.dynamic<factor = 2.000000e+00, max_position = 4.096000e+03, length = 1.638400e+04>
    ```

    Constraints:
    - (dynamic_c1) `factor` is finite and at least 2^-64.
    - (dynamic_c2) `max_position` is finite and positive, and so is `length`
      where given.
    - (dynamic_c3) the rotary dimension is at least 4.
    - (dynamic_c4) the changed base is between 2^-64 and 2^1023; without
      `length`, it is for every length up to 2^63.
  }];
  let parameters = (ins
    Posenc_Real<"factor of lengths beyond the maximum">:$factor,
    Posenc_Real<"length up to which nothing is scaled">:$max_position,
    Posenc_OptionalReal<"length of the sequences">:$length);
}

def Posenc_LongropeScalingAttr : Posenc_Scaling<"LongropeScaling", "longrope",
                                             ["computeAttentionFactor",
                                              "withUnitAttentionFactor",
                                              "isIndexedByPair",
                                              "dependsOnLength",
                                              "withLength"]> {
  let summary = "a divisor for each pair, from one of two lists by the length";
  let description = [{
    `f_i = b^(-2i/d) / e_i`, where `e` is `long_factors` if `length` is above
    `original_max_position`, else `short_factors`. `att` is `attention_factor`
    if given; else, with `s = factor` and `L = original_max_position`, it is
    `sqrt(1 + ln(s)/ln(L))`, and 1 if `s <= 1` or `factor` is absent. Without
    `length`, it is known at run time, and `posenc.turns` chooses the list.
    Source: Ding et al., LongRoPE (2024), in the form of `transformers`.

    ```mlir
    #posenc.longrope<short_factors = [1.000000e+00, 1.000000e+00], long_factors = [2.000000e+00, 8.000000e+00], original_max_position = 4.096000e+03, length = 8.192000e+03, factor = 3.200000e+01>
    ```

    Constraints:
    - (longrope_c1) each list has one number for each of the `d/2` pairs.
    - (longrope_c2) the numbers of the lists are finite and at least 2^-64.
    - (longrope_c3) `original_max_position` is finite and greater than 1;
      `length` is finite and positive where given.
    - (longrope_c4) `factor` and `attention_factor` are finite and positive
      where given.
  }];
  let parameters = (ins
    AttrParameter<"::mlir::DenseF64ArrayAttr", "divisors up to the original length">:$short_factors,
    AttrParameter<"::mlir::DenseF64ArrayAttr", "divisors beyond the original length">:$long_factors,
    Posenc_Real<"context length of pretraining">:$original_max_position,
    Posenc_OptionalReal<"length of the sequences">:$length,
    Posenc_OptionalReal<"context extension, for `att`">:$factor,
    Posenc_OptionalReal<"factor of cos and sin">:$attention_factor);
  let extraClassDeclaration = [{
    /// Returns the list that the length selects.
    ::mlir::DenseF64ArrayAttr getSelectedFactors() const;
  }];
}

def Posenc_ProportionalScalingAttr
    : Posenc_Scaling<"ProportionalScaling", "proportional",
                     ["isIndexedByPair"]> {
  let summary = "rotates the first pairs of the whole head only";
  let description = [{
    `f_i = b^(-2i/d) / factor` for `i < rotated_pairs`, else 0, so that the other
    pairs are multiplied by 1. In contrast to a smaller rotary dimension, pairs
    and exponents are those of the whole head. `att = 1`. Source: Gemma 4 in
    `transformers`, where `rotated_pairs` is half of the head dimension times
    `partial_rotary_factor`, rounded down.

    ```mlir
    #posenc.proportional<rotated_pairs = 2>
    ```

    Constraints:
    - (proportional_c1) `rotated_pairs` is between 1 and `d/2`.
    - (proportional_c2) `factor` is finite and at least 2^-64.
  }];
  let parameters = (ins
    AttrParameter<"int64_t", "number of pairs that rotate">:$rotated_pairs,
    Posenc_Real<"divisor of the frequencies, default 1">:$factor);
}

def Posenc_DivisorsScalingAttr : Posenc_Scaling<"DivisorsScaling", "divisors",
                                             ["isIndexedByPair"]> {
  let summary = "a divisor for each pair";
  let description = [{
    `f_i = b^(-2i/d) / values[i]`, `att = 1`. Source: `freq_factors` of ggml.

    ```mlir
    #posenc.divisors<values = [1.000000e+00, 8.000000e+00]>
    ```

    Constraints:
    - (divisors_c1) there is one value for each of the `d/2` pairs.
    - (divisors_c2) every value is finite and at least 2^-64.
  }];
  let parameters = (ins
    AttrParameter<"::mlir::DenseF64ArrayAttr", "divisors of the frequencies">:$values);
}

def Posenc_GeometricScalingAttr
    : Posenc_Scaling<"GeometricScaling", "geometric"> {
  let summary = "a geometric sequence that ends at a chosen exponent";
  let description = [{
    `f_i = scale * b^(-i/(n - shift))` for the `n = d/2` pairs; the only
    frequency of a single pair is `scale`. With `shift = 0` and `scale = 1`,
    these are the unscaled frequencies; with `shift = 1`, the last frequency is
    `scale/b`. `scale` is 1 if absent. It multiplies every angle. `att = 1`.

    | source | base | attributes |
    |---|---|---|
    | tensor2tensor | `max_timescale/min_timescale` | `shift = 1, scale = min_timescale` |
    | fairseq, M2M, XGLM, Whisper | 10000 | `shift = 1` |
    | diffusers | `max_period` | `shift = downscale_freq_shift, scale = scale` |
    | ggml, DiT | `max_period` | `shift = 0` |

    ```mlir
    #posenc.geometric<shift = 1.000000e+00>
    ```

    Constraints:
    - (geometric_c1) `shift` is finite and, if there is more than one pair, less
      than the number of pairs.
    - (geometric_c2) `scale` is finite and positive where given.
    - (geometric_c3) no frequency exceeds 2^64.
  }];
  let parameters = (ins
    Posenc_Real<"number of pairs by which the divisor of the exponent is reduced">:$shift,
    Posenc_OptionalReal<"factor of all angles, default 1">:$scale);
}

def Posenc_FrequenciesAttr : Posenc_Attr<"Frequencies", "frequencies"> {
  let summary = "the frequencies of a rotary or sinusoidal encoding";
  let description = [{
    `f_i = base^(-2i/dim)` for `i < dim/2`, changed by `scaling` if there is
    one. `base` is 10000 if absent.

    ```mlir
    #posenc.frequencies<dim = 128, base = 5.000000e+05>
    ```

    `precision` is `exact` if absent: angles are as in real arithmetic. With
    `hf_f32`, frequencies are computed in f32 in the order of operations of
    `transformers`, each correctly rounded, and the angle is the f32 product of
    the position, rounded to f32, and the frequency; cos and sin of this angle are
    as exact as any. Checkpoints were trained with these angles; their cos and
    sin are off by up to 0.0076 in the 64 positions up to 131,071 (`base = 10000`,
    `dim = 128`).

    ```mlir
    #posenc.frequencies<dim = 128, base = 5.000000e+05, precision = hf_f32>
    ```

    Constraints:
    - (frequencies_c1) `dim` is even, positive and at most 65536.
    - (frequencies_c2) `base` is finite and positive.
    - (frequencies_c3) `scaling` is a scaling rule.
    - (frequencies_c4) `base` is at least 2^-64.
    - (frequencies_c5) with `hf_f32`, `scaling` is one that `transformers` has,
      with a length if it depends on one: none, linear, dynamic, yarn without
      `ext_factor` and `attn_factor`, longrope, llama3, proportional, or an
      explicit list.
  }];
  let parameters = (ins
    AttrParameter<"int64_t", "rotary dimension, twice the number of pairs">:$dim,
    Posenc_Real<"rope theta">:$base,
    OptionalParameter<"::mlir::Attribute", "the scaling rule">:$scaling,
    DefaultValuedParameter<"::mlir::posenc::Precision",
                           "::mlir::posenc::Precision::Exact",
                           "how angles are computed">:$precision);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Returns the scaling rule, or null.
    FrequencyScalingInterface getScalingRule() const;
    int64_t getNumPairs() const { return getDim() / 2; }
    /// Whether angles are rounded to f32.
    bool roundsAngles() const {
      return getPrecision() == ::mlir::posenc::Precision::HfF32;
    }
    /// Returns the frequencies in radians per position, one per pair; numbers of
    /// f32 if angles are rounded to f32.
    ::llvm::SmallVector<::posenc::BigFloat> computeFrequencies() const;
    /// Returns the frequencies of an axis with `pairs` pairs whose exponents
    /// restart at 0.
    ::llvm::SmallVector<::posenc::BigFloat>
    computeAxisFrequencies(int64_t pairs) const;
    /// Returns the attention factor, which multiplies cos and sin.
    ::posenc::BigFloat computeAttentionFactor() const;
    /// Whether the attention factor is exactly 1.
    bool hasUnitAttentionFactor() const;
    /// Returns the same frequencies with an attention factor of 1.
    FrequenciesAttr withUnitAttentionFactor() const;
    /// Whether the frequencies depend on a length that is only known at run
    /// time; `posenc.turns` then computes them.
    bool dependsOnLength() const;
    /// Returns the same frequencies for a length that is known.
    FrequenciesAttr withLength(double length) const;
  }];
}

def Posenc_XposAttr : Posenc_Attr<"Xpos", "xpos"> {
  let summary = "the factor of XPos, which decays with the position";
  let description = [{
    Pair `i` at position `p` has the factor `zeta_i^((p - origin) / base)` with
    `zeta_i = (2i/d + gamma) / (1 + gamma)` (Sun et al., 2022, "A Length-
    Extrapolatable Transformer", where `base = 512` and `gamma = 0.4`). With
    `reciprocal`, the factor is the reciprocal of it: queries have one and keys
    the other, so that scores decay with their distance. An `origin` in the middle
    of the sequence keeps both factors near 1; it cancels in the scores.

    ```mlir
    #posenc.xpos<base = 5.120000e+02, gamma = 4.000000e-01, reciprocal = true>
    ```

    Constraints:
    - (xpos_c1) `base` is finite and at least 1.
    - (xpos_c2) `gamma` is finite and positive.
  }];
  let parameters = (ins
    Posenc_Real<"positions per power of zeta">:$base,
    Posenc_Real<"the flatness of the decay">:$gamma,
    AttrParameter<"int64_t", "the position with a factor of 1">:$origin,
    AttrParameter<"bool", "whether the factor is the reciprocal">:$reciprocal);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Returns the base-2 logarithms of the factors of `pairs` pairs, per
    /// position.
    ::llvm::SmallVector<::posenc::BigFloat> computeExponents(int64_t pairs) const;
  }];
}

#endif // POSENC_IR_FREQUENCYATTRS_TD
