# ===- hlo_elementwise.py - elementwise operations of StableHLO -----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Elementwise operations of random programs, and what they compute of arrays of NumPy."""

import math

import numpy as np

from hlo_programs import (
    DTYPES, FLOATS, INTEGERS, cast, is_float, is_integer, operation, units)

UNARY_FLOATS = {
    "negate": (np.negative, None), "abs": (np.abs, None), "ceil": (np.ceil, None),
    "floor": (np.floor, None), "sqrt": (np.sqrt, units(1)), "cosine": (np.cos, units(4)),
    "sine": (np.sin, units(4)), "tan": (np.tan, units(6)), "exponential": (np.exp, units(4)),
    "exponential_minus_one": (np.expm1, units(4)), "log": (np.log, units(4)),
    "log_plus_one": (np.log1p, units(4)), "rsqrt": (lambda x: 1 / np.sqrt(x), units(4)),
    "cbrt": (np.cbrt, units(4)), "tanh": (np.tanh, units(8)),
    "logistic": (lambda x: 1 / (1 + np.exp(-x)), units(8)),
    "round_nearest_even": (np.rint, None),
    "round_nearest_afz": (lambda x: np.copysign(np.where(
        np.abs(x) % 1 == 0.5, np.ceil(np.abs(x)), np.rint(np.abs(x))), x), None),
    "sign": (lambda x: np.where(x == 0, x, np.sign(x)), None)}


@operation
def unary(p):
    x = p.any(FLOATS)
    name = p.rng.choice(sorted(UNARY_FLOATS))
    function, error = UNARY_FLOATS[name]
    # f64 is judged by f64.
    if x.element == "f64" and error:
        error = units(16)

    def compute(sizes, a):
        with np.errstate(all="ignore"):
            return function(a.astype(np.float64))
    p.add(name, [x], x.element, x.dims, compute, error=error)


def popcount(a):
    bits = np.dtype(a.dtype).itemsize * 8
    return np.array([bin(int(n) & (1 << bits) - 1).count("1") for n in a.ravel()],
                    np.int64).reshape(a.shape)


def leading_zeros(a):
    bits = np.dtype(a.dtype).itemsize * 8
    return np.array([bits - (int(n) & (1 << bits) - 1).bit_length() for n in a.ravel()],
                    np.int64).reshape(a.shape)


@operation
def unary_integer(p):
    x = p.any(INTEGERS)
    table = {"negate": np.negative, "not": np.invert, "popcnt": popcount,
             "count_leading_zeros": leading_zeros}
    if x.element != "ui8":
        table.update(abs=np.abs, sign=np.sign)
    name = p.rng.choice(sorted(table))

    def compute(sizes, a):
        with np.errstate(all="ignore"):
            return table[name](a)
    p.add(name, [x], x.element, x.dims, compute)


def by_element(function, *arrays):
    """Applies a function of Python's integers to each element, wrapped."""
    info = np.iinfo(arrays[0].dtype)
    numbers = [function(*map(int, one)) for one in zip(*(x.ravel() for x in arrays))]
    wrapped = [(n - info.min) % (1 << info.bits) + info.min for n in numbers]
    return np.array(wrapped, arrays[0].dtype).reshape(arrays[0].shape)


def divide_integers(x, y):
    """Towards zero; -1 for a divisor of 0."""
    if y == 0:
        return -1
    return abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)


def remainder_integers(x, y):
    """With the sign of the dividend; the dividend for a divisor of 0."""
    return x if y == 0 else abs(x) % abs(y) * (-1 if x < 0 else 1)


def shift(name, a, b):
    bits = np.iinfo(a.dtype).bits

    def one(x, amount):
        amount = min(amount % (1 << bits), bits)
        if name == "shift_left":
            return x << amount
        return (x if name == "shift_right_arithmetic" else x % (1 << bits)) >> amount
    return by_element(one, a, b)


def maximum(a, b):
    return np.where(np.isnan(a) | np.isnan(b), np.nan, np.maximum(a, b))


def minimum(a, b):
    return np.where(np.isnan(a) | np.isnan(b), np.nan, np.minimum(a, b))


@operation
def binary(p):
    x = p.any(FLOATS)
    y = p.like(x)
    table = {"add": (np.add, None), "subtract": (np.subtract, None),
             "multiply": (np.multiply, None), "divide": (np.divide, None),
             "maximum": (maximum, None), "minimum": (minimum, None),
             "remainder": (np.fmod, None), "atan2": (np.arctan2, units(8))}
    name = p.rng.choice(sorted(table))
    function, error = table[name]

    def compute(sizes, a, b):
        with np.errstate(all="ignore"):
            return function(a.astype(np.float64), b.astype(np.float64))
    p.add(name, [x, y], x.element, x.dims, compute, error=error)


@operation
def binary_integer(p):
    x = p.any(INTEGERS)
    y = p.like(x)
    names = ["add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and",
             "or", "xor", "shift_left", "shift_right_logical"]
    if x.element != "ui8":
        names.append("shift_right_arithmetic")
    name = p.rng.choice(names)
    table = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply,
             "divide": lambda a, b: by_element(divide_integers, a, b),
             "remainder": lambda a, b: by_element(remainder_integers, a, b),
             "maximum": np.maximum, "minimum": np.minimum, "and": np.bitwise_and,
             "or": np.bitwise_or, "xor": np.bitwise_xor}

    def compute(sizes, a, b):
        with np.errstate(all="ignore"):
            return shift(name, a, b) if name.startswith("shift") else table[name](a, b)
    p.add(name, [x, y], x.element, x.dims, compute)


@operation
def binary_bool(p):
    x = p.any(["i1"])
    y = p.like(x)
    table = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor,
             "add": np.logical_or, "multiply": np.logical_and, "maximum": np.logical_or,
             "minimum": np.logical_and}
    name = p.rng.choice([*table, "not"])
    if name == "not":
        p.add(name, [x], "i1", x.dims, lambda sizes, a: ~a)
    else:
        p.add(name, [x, y], "i1", x.dims, lambda sizes, a, b: table[name](a, b))


@operation
def compare(p):
    x = p.any()
    y = p.like(x)
    table = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal,
             "GT": np.greater, "GE": np.greater_equal}
    name = p.rng.choice(sorted(table))
    p.add("compare", [x, y], "i1", x.dims, lambda sizes, a, b: table[name](a, b),
          f"comparison_direction = #stablehlo<comparison_direction {name}>")


@operation
def is_finite(p):
    x = p.any(FLOATS)
    p.add("is_finite", [x], "i1", x.dims,
          lambda sizes, a: np.isfinite(a.astype(np.float64)))


@operation
def select(p):
    x = p.any()
    condition, y = p.like(x, "i1"), p.like(x)
    p.add("select", [condition, x, y], x.element, x.dims,
          lambda sizes, c, a, b: np.where(c, a, b))


@operation
def clamp(p):
    x = p.any([*FLOATS, *INTEGERS])
    bounds = p.rng.choice([(-1, 1), (0, 6), (2, 2)])
    if x.element == "ui8":
        bounds = (1, 200)
    low, high = (p.constant(bound, x.element) for bound in bounds)

    def compute(sizes, a, b, c):
        if b.dtype.kind in "iu":
            return np.minimum(np.maximum(a, b), c)
        return minimum(maximum(a.astype(float), b.astype(float)), c.astype(float))
    p.add("clamp", [low, x, high], x.element, x.dims, compute)


def to_integer(a, element):
    """The nearest integer of the type, and 0 for NaN."""
    info = np.iinfo(DTYPES[element])
    numbers = [0 if math.isnan(x) else info.max if x >= info.max else
               info.min if x <= info.min else int(x) for x in a.astype(float).ravel().tolist()]
    return np.array(numbers, object).reshape(a.shape).astype(DTYPES[element])


def round_integer(n, digits):
    """An integer with so many significant binary digits, to nearest even."""
    extra = abs(n).bit_length() - digits
    if extra <= 0:
        return n
    half, rest = 1 << extra - 1, abs(n) & (1 << extra) - 1
    low = abs(n) >> extra
    low += rest > half or rest == half and low & 1
    return (low << extra) * (1 if n > 0 else -1)


DIGITS = {"f32": 24, "f16": 11, "bf16": 8, "f64": 53}


@operation
def convert(p):
    x = p.any()
    element = p.rng.choice(sorted({*FLOATS, *INTEGERS, "i1"} - {x.element}))

    def compute(sizes, a):
        if element == "i1":
            return a != 0
        if is_float(x.element) and is_integer(element):
            return to_integer(a, element)
        if is_integer(x.element) and is_float(element):
            numbers = [float(round_integer(int(n), DIGITS[element])) for n in a.ravel()]
            return np.array(numbers, np.float64).reshape(a.shape)
        return cast(a, element)
    p.add("convert", [x], element, x.dims, compute)
