# ===- formats.py - element types and their rounding -----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Floating-point formats on arrays of np.longdouble, and integer types."""

import numpy as np

Real = np.longdouble
assert np.finfo(Real).nmant >= 63, "the model needs a long double with 64 binary digits"


class Format:
    """A binary floating-point type with `digits` binary digits. `storage` is the
    NumPy type of its values, or uint16 for the bits of bf16."""

    def __init__(self, name, digits, min_exponent, storage, c_size):
        self.name, self.digits, self.min_exponent = name, digits, min_exponent
        self.storage, self.bits = np.dtype(storage), 8 * c_size
        self.max = Real(2) ** (1 - min_exponent) * (2 - Real(2) ** (1 - digits))

    def __repr__(self):
        return self.name

    def ulp(self, magnitude):
        """The unit in the last place at a magnitude."""
        exponent = np.frexp(np.asarray(magnitude, Real))[1] - 1
        # frexp gives no useful exponent of zero, infinity and NaN.
        exponent = np.where(np.isfinite(magnitude) & (magnitude != 0), exponent,
                            self.min_exponent)
        exponent = np.maximum(exponent, self.min_exponent)
        return np.ldexp(Real(1), exponent - self.digits + 1)

    def round(self, values):
        """Rounds to nearest, ties to even."""
        values = np.asarray(values, Real)
        unit = self.ulp(abs(values))
        with np.errstate(invalid="ignore"):
            nearest = np.rint(values / unit) * unit
        return np.where(abs(nearest) > self.max, np.copysign(Real(np.inf), values),
                        nearest)

    def holds(self, values):
        """Whether the type represents each value exactly."""
        return (self.round(values) == values) | np.isnan(values)

    def is_tie(self, values):
        """Whether each value lies halfway between two numbers of the type."""
        halves = np.asarray(values, Real) / self.ulp(abs(values)) * 2
        return np.isfinite(values) & (np.rint(halves) == halves) & (
            np.fmod(abs(halves), 2) == 1)

    def decode(self, stored):
        if self.name == "bf16":
            stored = (stored.astype(np.uint32) << 16).view(np.float32)
        with np.errstate(invalid="ignore"):
            return stored.astype(Real)

    def encode(self, values):
        """Rounds values to the type and returns their stored form."""
        values = self.round(values)
        if self.name == "bf16":
            bits = values.astype(np.float32).view(np.uint32) >> 16
            return bits.astype(np.uint16)
        return values.astype(self.storage)


F64 = Format("f64", 53, -1022, np.float64, 8)
F32 = Format("f32", 24, -126, np.float32, 4)
F16 = Format("f16", 11, -14, np.float16, 2)
BF16 = Format("bf16", 8, -126, np.uint16, 2)


class Integer:
    """An integer type; `index` has 64 bits."""

    def __init__(self, name, storage):
        self.name, self.storage = name, np.dtype(storage)

    def __repr__(self):
        return self.name


I64, I32 = Integer("i64", np.int64), Integer("i32", np.int32)
INDEX, I1 = Integer("index", np.int64), Integer("i1", np.uint8)


def sums_of(kind):
    """Returns the type in which products and sums of a type are computed."""
    return F64 if kind is F64 else F32
