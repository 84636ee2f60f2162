#!/usr/bin/env python3
# ===- golden-frequencies.py - frequencies to 40 digits --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: golden-frequencies.py > golden-frequencies.txt
#
# Computes the frequencies f_i of every scaling in decimal numbers of 60 digits,
# from the formulas of the papers and of the models' code. It shares nothing with
# the compiler, whose frequencies a unit test compares with the output. Each case
# has two lines: the fields of #posenc.frequencies, and the attention factor
# followed by the frequencies.
#
# To add a scaling, add a function with its formula to SCALINGS and its cases to
# CASES, and draw random parameters in draw().

import random
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, getcontext

getcontext().prec = 60
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459231")
ONE = Decimal(1)


def powers(d, base):
    """b^(-2i/d). Su et al., RoFormer (arXiv 2104.09864), section 3.2.2."""
    return [base ** (Decimal(-2 * i) / d) for i in range(d // 2)]


def linear(d, b, factor):
    """f_i / s. Chen et al., Position Interpolation (arXiv 2306.15595)."""
    return ONE, [f / factor for f in powers(d, b)]


def llama3(d, b, factor, low_freq_factor, high_freq_factor, original_max_position):
    """apply_scaling() of Meta's llama-models; transformers,
    _compute_llama3_parameters()."""
    result = []
    for f in powers(d, b):
        wavelength = 2 * PI / f
        if wavelength > original_max_position / low_freq_factor:
            f = f / factor
        elif wavelength >= original_max_position / high_freq_factor:
            smooth = original_max_position / wavelength - low_freq_factor
            smooth /= high_freq_factor - low_freq_factor
            f = (1 - smooth) * f / factor + smooth * f
        result.append(f)
    return ONE, result


def yarn(d, b, factor, original_max_position, beta_fast=Decimal(32), beta_slow=ONE,
         truncate=True, attention_factor=None, mscale=None, mscale_all_dim=None,
         ext_factor=ONE, attn_factor=ONE):
    """Peng et al., YaRN (arXiv 2309.00071), section 3.2 and equation 22;
    transformers, _compute_yarn_parameters(). ext_factor and attn_factor are those
    of vLLM and ggml."""
    def pair_of(rotations):
        turns = original_max_position / (rotations * 2 * PI)
        return d * turns.ln() / (2 * b.ln())

    def magnitude(weight):
        return ONE if factor <= 1 else weight * factor.ln() / 10 + 1

    low, high = pair_of(beta_fast), pair_of(beta_slow)
    if truncate:
        low = low.to_integral_value(ROUND_FLOOR)
        high = high.to_integral_value(ROUND_CEILING)
    low, high = max(low, Decimal(0)), min(high, Decimal(d - 1))
    if low == high:
        high += Decimal("0.001")
    result = []
    for i, f in enumerate(powers(d, b)):
        ramp = min(max((i - low) / (high - low), Decimal(0)), ONE)
        extrapolation = (1 - ramp) * ext_factor
        result.append(f / factor * (1 - extrapolation) + f * extrapolation)
    if attention_factor is None:
        # ggml multiplies cosines and sines only if frequencies are extrapolated.
        attention_factor = attn_factor
        if ext_factor != 0:
            attention_factor *= (
                magnitude(mscale) / magnitude(mscale_all_dim)
                if mscale is not None and mscale_all_dim is not None else magnitude(ONE))
    return attention_factor, result


def ntk(d, b, factor, mixed_b=None):
    """The base b s^(d/(d-2)) of bloc97's NTK-aware scaling. With mixed_b, Su's
    mixed form: vLLM, NTKScalingRotaryEmbedding."""
    if mixed_b is None:
        return ONE, powers(d, b * factor ** (Decimal(d) / (d - 2)))
    a = factor.ln() / (Decimal(d) / 2) ** mixed_b
    return ONE, [f / (a * Decimal(i + 1) ** mixed_b).exp()
                 for i, f in enumerate(powers(d, b))]


def dynamic(d, b, factor, max_position, length):
    """transformers, _compute_dynamic_ntk_parameters()."""
    scale = factor * max(length, max_position) / max_position - (factor - 1)
    return ONE, powers(d, b * scale ** (Decimal(d) / (d - 2)))


def longrope(d, b, short_factors, long_factors, original_max_position, length,
             factor=ONE, attention_factor=None):
    """Ding et al., LongRoPE (arXiv 2402.13753); transformers,
    _compute_longrope_parameters()."""
    divisors = long_factors if length > original_max_position else short_factors
    if attention_factor is None:
        attention_factor = (
            ONE if factor <= 1
            else (1 + factor.ln() / original_max_position.ln()).sqrt())
    return attention_factor, [f / e for f, e in zip(powers(d, b), divisors)]


def proportional(d, b, rotated_pairs, factor=ONE):
    """transformers, _compute_proportional_rope_parameters() (Gemma 4)."""
    return ONE, [f / factor if i < rotated_pairs else Decimal(0)
                 for i, f in enumerate(powers(d, b))]


def divisors(d, b, values):
    """f_i / c_i, ggml's freq_factors."""
    return ONE, [f / c for f, c in zip(powers(d, b), values)]


def explicit(d, b, values, attention_factor=ONE):
    return attention_factor, list(values)


def geometric(d, b, shift, scale=ONE):
    """get_timing_signal_1d() of tensor2tensor, with shift 1; diffusers,
    get_timestep_embedding(), whose shift is downscale_freq_shift."""
    pairs = d // 2
    if pairs == 1:
        return ONE, [scale]
    return ONE, [scale * (-i * b.ln() / (pairs - shift)).exp() for i in range(pairs)]


def unscaled(d, b):
    return ONE, powers(d, b)


SCALINGS = [unscaled, linear, llama3, yarn, ntk, dynamic, longrope, proportional,
            divisors, explicit, geometric]

LONG = [1.0, 2.3, 4.1, 8.7, 16.3, 32.9, 64.7, 127.1]
LLAMA3 = dict(low_freq_factor=1, high_freq_factor=4, original_max_position=8192)
YARN = dict(factor=4, original_max_position=4096)
LISTS = dict(short_factors=[1] * 8, long_factors=LONG, original_max_position=4096)
# Scaling, base, and parameters for a dimension of 16.
CASES = [
    (unscaled, 1e4, {}),
    (linear, 1e4, dict(factor=3)),
    (llama3, 5e5, dict(factor=8, **LLAMA3)),
    # Equal factors: nothing is interpolated.
    (llama3, 5e5, dict(factor=8, low_freq_factor=4, high_freq_factor=4,
                       original_max_position=8192)),
    (yarn, 1e4, YARN),
    (yarn, 1e4, dict(YARN, truncate=False, mscale=0.5, mscale_all_dim=2)),
    (yarn, 1e4, dict(YARN, ext_factor=0.5, attn_factor=1.5)),
    (yarn, 1e4, dict(YARN, ext_factor=0, attn_factor=1.5)),
    # One weight is ignored, and so are both beside an attention factor.
    (yarn, 1e4, dict(YARN, mscale=0.707)),
    (yarn, 1e4, dict(YARN, mscale_all_dim=0.707)),
    (yarn, 1e4, dict(YARN, mscale=0.5, mscale_all_dim=2, attention_factor=0.75)),
    # Factors up to 1 have no attention factor.
    (yarn, 1e4, dict(YARN, factor=0.5)),
    # Equal ends of the ramp: a step within the pairs, and one before them.
    (yarn, 1e4, dict(YARN, beta_fast=32, beta_slow=32, truncate=False)),
    (yarn, 1e4, dict(YARN, beta_fast=4096, beta_slow=4096, truncate=False)),
    # A pair is within such a step, which is 0.001 pairs wide.
    (yarn, 1e4, dict(YARN, beta_fast=20.6267, beta_slow=20.6267, truncate=False)),
    # The end of the ramp is clamped to d - 1.
    (yarn, 1e4, dict(factor=4, original_max_position=1e9, beta_fast=1e6)),
    (ntk, 1e4, dict(factor=4)),
    (ntk, 1e4, dict(factor=4, mixed_b=0.625)),
    (ntk, 1e4, dict(factor=4, mixed_b=1)),
    (dynamic, 1e4, dict(factor=2, max_position=4096, length=16384)),
    # No longer than the training.
    (dynamic, 1e4, dict(factor=2, max_position=4096, length=4096)),
    (dynamic, 1e4, dict(factor=2, max_position=4096, length=100)),
    (longrope, 1e4, dict(LISTS, length=8192, factor=32)),
    (longrope, 1e4, dict(LISTS, length=4096, factor=32)),
    (longrope, 1e4, dict(LISTS, length=4097)),
    (longrope, 1e4, dict(LISTS, length=8192, factor=32, attention_factor=1.25)),
    (proportional, 1e6, dict(rotated_pairs=2, factor=8)),
    (proportional, 1e6, dict(rotated_pairs=8)),
    (divisors, 1e4, dict(values=LONG)),
    (explicit, 1e4, dict(values=[0.1, 0, -2.5, 1, 2, 3, 4, 5], attention_factor=1.5)),
    (geometric, 1e4, dict(shift=1)),
    (geometric, 1e4, dict(shift=0)),
    (geometric, 2e4, dict(shift=0.5, scale=1000)),
]


def draw(scaling, dim, rng):
    """Returns random parameters."""
    def real(low, high):
        return round(rng.uniform(low, high), 4)

    def reals():
        return [real(0.5, 50) for _ in range(dim // 2)]

    def some(**optional):
        return {key: value for key, value in optional.items() if rng.random() < 0.5}

    length = float(rng.choice([1024, 4096, 8192, 32768]))
    factor = real(0.5, 40)
    low = real(0.5, 3)
    if scaling is linear:
        return dict(factor=factor)
    if scaling is llama3:
        return dict(factor=factor, low_freq_factor=low, high_freq_factor=real(low, 9),
                    original_max_position=length)
    if scaling is yarn:
        return dict(factor=factor, original_max_position=length,
                    **some(beta_fast=real(8, 90)), **some(beta_slow=real(0.2, 7)),
                    **some(truncate=False), **some(mscale=real(0.2, 2)),
                    **some(mscale_all_dim=real(0.2, 2)), **some(ext_factor=real(0, 1)),
                    **some(attn_factor=real(0.5, 2)))
    if scaling is ntk:
        return dict(factor=factor, **some(mixed_b=real(0.2, 2)))
    if scaling is dynamic:
        return dict(factor=factor, max_position=length, length=real(1, 1e6))
    if scaling is longrope:
        return dict(short_factors=reals(), long_factors=reals(),
                    original_max_position=length, length=real(1, 2 * length),
                    **some(factor=factor), **some(attention_factor=real(0.5, 2)))
    if scaling is proportional:
        return dict(rotated_pairs=rng.randint(1, dim // 2), **some(factor=factor))
    if scaling is divisors:
        return dict(values=reals())
    if scaling is explicit:
        return dict(values=reals(), **some(attention_factor=real(0.5, 2)))
    if scaling is geometric:
        return dict(shift=real(-1, 1.5), **some(scale=real(0.1, 1000)))
    return {}


def spell(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(map(spell, value)) + "]"
    return str(int(value)) if value == int(value) else repr(value)


def exact(value):
    if isinstance(value, bool):
        return value
    return [Decimal(v) for v in value] if isinstance(value, list) else Decimal(value)


def show(scaling, dim, base, parameters):
    fields = ", ".join(f"{key} = {spell(value)}" for key, value in parameters.items())
    rule = "" if scaling is unscaled else f", scaling = #posenc.{scaling.__name__}<{fields}>"
    print(f"dim = {dim}, base = {spell(base)}{rule}")
    attention, frequencies = scaling(
        dim, Decimal(base), **{key: exact(value) for key, value in parameters.items()})
    print(*(f"{+value:.39e}" for value in [attention, *frequencies]))


def main():
    for scaling, base, parameters in CASES:
        show(scaling, 16, base, parameters)
    rng = random.Random(1)
    for scaling in SCALINGS:
        for _ in range(8):
            dim = rng.choice([4, 6, 10, 16, 32])
            show(scaling, dim, round(10 ** rng.uniform(1.5, 7), 2), draw(scaling, dim, rng))


main()
