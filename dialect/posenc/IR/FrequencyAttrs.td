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

def Posenc_YarnScalingAttr : Posenc_Scaling<"YarnScaling", "yarn",
                                         ["computeAttentionFactor"]> {
  let summary = "YaRN: interpolation by parts and an attention factor";
  let description = [{
    With `L = original_max_position`, `s = factor` and
    `corr(r) = d*ln(L/(2*pi*r)) / (2*ln b)`:
    `low = max(corr(beta_fast), 0)`, `high = min(corr(beta_slow), d-1)`, where
    `truncate` (the default) first rounds low down and high up; if they are
    equal, `high` is raised by 0.001. Then
    `ramp_i = clamp((i-low)/(high-low), 0, 1)` and
    `f_i = (f_i/s)*ramp_i + f_i*(1-ramp_i)`.

    `att` is `attention_factor` if given; else, with
    `g(s,m) = 1 if s <= 1 else 0.1*m*ln(s) + 1`, it is
    `g(s,mscale)/g(s,mscale_all_dim)` if both are given, else `g(s,1)`.
    Source: Peng et al., YaRN (2023), in the parameterisation of
    `transformers`.

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
  }];
  let parameters = (ins
    Posenc_Real<"context extension">:$factor,
    Posenc_Real<"context length of pretraining">:$original_max_position,
    Posenc_Real<"rotations above which frequencies are unchanged, default 32">:$beta_fast,
    Posenc_Real<"rotations below which frequencies are divided, default 1">:$beta_slow,
    AttrParameter<"bool", "whether the bounds are rounded to pair indices">:$truncate,
    Posenc_OptionalReal<"factor of cos and sin">:$attention_factor,
    Posenc_OptionalReal<"`m` in the numerator of `att`">:$mscale,
    Posenc_OptionalReal<"`m` in the denominator of `att`">:$mscale_all_dim);
}

def Posenc_ExplicitScalingAttr : Posenc_Scaling<"ExplicitScaling", "explicit",
                                             ["computeAttentionFactor"]> {
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

def Posenc_FrequenciesAttr : Posenc_Attr<"Frequencies", "frequencies"> {
  let summary = "the frequencies of a rotary or sinusoidal encoding";
  let description = [{
    `f_i = base^(-2i/dim)` for `i < dim/2`, changed by `scaling` if there is
    one. `base` is 10000 if absent.

    ```mlir
    #posenc.frequencies<dim = 128, base = 5.000000e+05>
    ```

    Constraints:
    - (frequencies_c1) `dim` is even, positive and at most 65536.
    - (frequencies_c2) `base` is finite and positive.
    - (frequencies_c3) `scaling` is a scaling rule.
    - (frequencies_c4) `base` is at least 2^-64.
  }];
  let parameters = (ins
    AttrParameter<"int64_t", "rotary dimension, twice the number of pairs">:$dim,
    Posenc_Real<"rope theta">:$base,
    OptionalParameter<"::mlir::Attribute", "the scaling rule">:$scaling);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Returns the scaling rule, or null.
    FrequencyScalingInterface getScalingRule() const;
    int64_t getNumPairs() const { return getDim() / 2; }
    /// Returns the frequencies in radians per position, one per pair.
    ::llvm::SmallVector<::posenc::BigFloat> computeFrequencies() const;
    /// Returns the frequencies of an axis with `pairs` pairs whose exponents
    /// restart at 0.
    ::llvm::SmallVector<::posenc::BigFloat>
    computeAxisFrequencies(int64_t pairs) const;
    /// Returns the attention factor, which multiplies cos and sin.
    ::posenc::BigFloat computeAttentionFactor() const;
    /// Whether the attention factor is exactly 1.
    bool hasUnitAttentionFactor() const;
  }];
}

#endif // POSENC_IR_FREQUENCYATTRS_TD
