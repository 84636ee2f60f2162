# ===- phases.py - exact frequencies, cos and sin --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Computes frequencies in decimal arithmetic with 110 digits, and the cos and sin of
position x frequency, whose range is reduced exactly in integer arithmetic."""

import decimal
import math
from decimal import Decimal

import numpy as np

from formats import Real

decimal.getcontext().prec = 110
BITS = 256  # fractional bits of a phase in turns


def _arctan_of_inverse(n):
    total, power, k = Decimal(0), Decimal(1) / n, 1
    while abs(power) > Decimal(10) ** -115:
        total += power / k if k % 4 == 1 else -power / k
        power, k = power / (n * n), k + 2
    return total


# Machin's formula.
PI = 4 * (4 * _arctan_of_inverse(5) - _arctan_of_inverse(239))


def real(number):
    """Returns a float in a form that MLIR parses to the same value."""
    return repr(float(number)) if "e" not in repr(float(number)) else (
        f"{float(number):.17e}")


class Scaling:
    """No scaling; the base class of the others."""

    def text(self):
        return ""

    def apply(self, frequencies, dim, base):
        return frequencies

    def attention_factor(self):
        return Decimal(1)

    def fields(self, **values):
        texts = []
        for name, value in values.items():
            if isinstance(value, bool):
                texts.append(f"{name} = {'true' if value else 'false'}")
            elif value is not None:
                texts.append(f"{name} = {real(value)}")
        return ", ".join(texts)


class Linear(Scaling):
    def __init__(self, factor):
        self.factor = factor

    def text(self):
        return f"#posenc.linear<{self.fields(factor=self.factor)}>"

    def apply(self, frequencies, dim, base):
        return [f / Decimal(self.factor) for f in frequencies]


class Llama3(Scaling):
    def __init__(self, factor, low, high, length):
        self.factor, self.low, self.high, self.length = factor, low, high, length

    def text(self):
        return "#posenc.llama3<" + self.fields(
            factor=self.factor, low_freq_factor=self.low,
            high_freq_factor=self.high,
            original_max_position=self.length) + ">"

    def apply(self, frequencies, dim, base):
        factor, low, high, length = map(
            Decimal, (self.factor, self.low, self.high, self.length))

        def scale(f):
            wavelength = 2 * PI / f
            if wavelength > length / low:
                return f / factor
            if wavelength < length / high:
                return f
            smooth = (length / wavelength - low) / (high - low)
            return (1 - smooth) * f / factor + smooth * f
        return [scale(f) for f in frequencies]


class Yarn(Scaling):
    def __init__(self, factor, length, beta_fast=None, beta_slow=None,
                 truncate=None, attention_factor=None, mscale=None,
                 mscale_all_dim=None):
        self.factor, self.length = factor, length
        self.beta_fast, self.beta_slow = beta_fast, beta_slow
        self.truncate, self.given = truncate, attention_factor
        self.mscale, self.mscale_all_dim = mscale, mscale_all_dim

    def text(self):
        return "#posenc.yarn<" + self.fields(
            factor=self.factor, original_max_position=self.length,
            beta_fast=self.beta_fast, beta_slow=self.beta_slow,
            truncate=self.truncate, attention_factor=self.given,
            mscale=self.mscale, mscale_all_dim=self.mscale_all_dim) + ">"

    def apply(self, frequencies, dim, base):
        factor, length = Decimal(self.factor), Decimal(self.length)

        def corrected(rotations):
            return dim * (length / (2 * PI * Decimal(rotations))).ln() / (
                2 * base.ln())
        low = corrected(32 if self.beta_fast is None else self.beta_fast)
        high = corrected(1 if self.beta_slow is None else self.beta_slow)
        if self.truncate is not False:
            low, high = Decimal(math.floor(low)), Decimal(math.ceil(high))
        low, high = max(low, Decimal(0)), min(high, Decimal(dim - 1))
        if low == high:
            high += Decimal("0.001")
        scaled = []
        for i, f in enumerate(frequencies):
            ramp = min(max((i - low) / (high - low), Decimal(0)), Decimal(1))
            scaled.append(f / factor * ramp + f * (1 - ramp))
        return scaled

    def attention_factor(self):
        def g(mscale):
            if self.factor <= 1:
                return Decimal(1)
            return Decimal("0.1") * Decimal(mscale) * Decimal(
                self.factor).ln() + 1
        if self.given is not None:
            return Decimal(self.given)
        if self.mscale is not None and self.mscale_all_dim is not None:
            return g(self.mscale) / g(self.mscale_all_dim)
        return g(1)


class Explicit(Scaling):
    def __init__(self, values, attention_factor=None):
        self.values, self.given = values, attention_factor

    def text(self):
        values = ", ".join(real(value) for value in self.values)
        factor = self.fields(attention_factor=self.given)
        return f"#posenc.explicit<values = [{values}]" + (
            ", " + factor if factor else "") + ">"

    def apply(self, frequencies, dim, base):
        return [Decimal(value) for value in self.values]

    def attention_factor(self):
        return Decimal(1 if self.given is None else self.given)


class Axes:
    """The assignment of pairs to position axes. `pairs` returns, for each pair, its
    axis, and the pair number and the dimension in the exponent of its frequency."""

    def __init__(self, layout, sections):
        self.layout, self.sections = layout, sections

    def text(self):
        return f"#posenc.axes<{self.layout}, [{', '.join(map(str, self.sections))}]>"

    def pairs(self):
        n, total = len(self.sections), sum(self.sections)
        owner = [a for a, size in enumerate(self.sections) for _ in range(size)]
        if self.layout == "interleaved":
            def axis(i):
                return i % n if i < n * self.sections[i % n] else 0
            return [(axis(i), i, 2 * total) for i in range(total)]
        if self.layout == "contiguous":
            return [(owner[i], i, 2 * total) for i in range(total)]
        restarted = [i for size in self.sections for i in range(size)]
        return [(a, restarted[i], 2 * self.sections[a])
                for i, a in enumerate(owner)]


class Frequencies:
    """The attribute #posenc.frequencies, with `dim / 2` pairs."""

    def __init__(self, dim, base=None, scaling=None, axes=None):
        self.dim, self.base = dim, base
        self.scaling, self.axes = scaling or Scaling(), axes
        base = Decimal(10000.0 if base is None else base)
        pairs = axes.pairs() if axes else [(0, i, dim) for i in range(dim // 2)]
        # A scaling applies to the pair numbers and the dimension of the exponent.
        tables = {}
        for d in {d for _, _, d in pairs}:
            plain = [base ** (Decimal(-2 * i) / d) for i in range(d // 2)]
            tables[d] = self.scaling.apply(plain, d, base)
        self.axis = [a for a, _, _ in pairs]
        self.values = [tables[d][i] for _, i, d in pairs]
        self.turns = [int((f / (2 * PI) * 2**BITS).to_integral_value())
                      for f in self.values]
        factor = self.scaling.attention_factor()
        self.factor = Real(str(factor))

    def text(self):
        texts = [f"dim = {self.dim}"]
        if self.base is not None:
            texts.append(f"base = {real(self.base)}")
        if self.scaling.text():
            texts.append(f"scaling = {self.scaling.text()}")
        return f"#posenc.frequencies<{', '.join(texts)}>"

    def cos_sin(self, positions):
        """Returns cos and sin [positions..., pairs]. With axes, the first dimension of
        the positions is the axis."""
        positions = np.asarray(positions)
        if self.axes is None:
            positions = positions[None]
        shape = positions.shape[1:]
        cos = np.empty((len(self.turns),) + shape, Real)
        sin = np.empty_like(cos)
        known = {}
        for i, turns in enumerate(self.turns):
            axis = self.axis[i]
            if axis not in known:
                known[axis] = np.unique(positions[axis], return_inverse=True)
            unique, where = known[axis]
            c, s = _cos_sin(unique.tolist(), turns)
            cos[i], sin[i] = c[where].reshape(shape), s[where].reshape(shape)
        return np.moveaxis(cos, 0, -1), np.moveaxis(sin, 0, -1)


def _cos_sin(positions, turns):
    quarter = 1 << (BITS - 2)
    quarters, mantissas, exponents = [], [], []
    for position in positions:
        phase = position * turns & ((1 << BITS) - 1)
        nearest = (phase + quarter // 2) >> (BITS - 2)
        rest = phase - (nearest << (BITS - 2))
        shift = max(rest.bit_length() - 62, 0)
        quarters.append(nearest & 3)
        mantissas.append(rest >> shift)
        exponents.append(shift - BITS)
    rest = np.ldexp(np.array(mantissas, np.int64).astype(Real),
                    np.array(exponents, np.int32))
    angle = rest * (2 * Real(str(PI)))
    c, s = np.cos(angle), np.sin(angle)
    number = np.array(quarters, np.int64)
    cos = np.select([number == 0, number == 1, number == 2], [c, -s, -c], s)
    sin = np.select([number == 0, number == 1, number == 2], [s, c, -s], -c)
    return cos, sin
