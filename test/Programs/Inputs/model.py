# ===- model.py - model of the ops with error bounds -----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Computes results with 64 binary digits, each with an error bound. A bound of 0
means that the result must be exact to the bit."""

import numpy as np

from formats import BF16, F16, F32, F64, Real, sums_of


class Value:
    """Numbers of a type, the error bound of each, and a bound of the error relative
    to the Frobenius norm, or None."""

    def __init__(self, kind, ref, err=None, relative=None):
        self.relative = relative
        self.kind, self.ref = kind, np.asarray(ref, Real)
        self.err = (np.zeros(self.ref.shape, Real) if err is None
                    else np.broadcast_to(np.asarray(err, Real), self.ref.shape))

    def map(self, move):
        """Applies a function that only moves elements."""
        return Value(self.kind, move(self.ref), move(self.err))


def rounded(kind, ref, err, exact):
    """Returns a result that is `ref` rounded to the type where `exact`, and has the
    error bound `err` elsewhere."""
    nearest = kind.round(ref)
    return Value(kind, np.where(exact, nearest, ref), np.where(exact, 0, err))


def stays_exact(kind, values):
    """Whether the type of sums represents each value exactly."""
    return sums_of(kind).holds(values)


def has_few_digits(kind, values):
    """Whether products with each value are exact in Real and, for 16-bit types, in
    the type of sums."""
    return (F16 if kind is F64 else F32).holds(values)


# A correctly rounded result has an error of half a unit. docs/numerics.md allows
# a hundredth more for an earlier rounding to f32.
ONCE = Real("0.51")


def beyond_error(factor, positions):
    """Returns the additional error that docs/numerics.md allows beyond 2^31."""
    return abs(factor) * np.where(
        abs(positions) > 2.0**31, abs(positions) * Real(2) ** -94, 0)


def table_error(kind, ref, factor, positions):
    """Returns the error bound of cos and sin. `positions` broadcast to the table."""
    beyond = beyond_error(factor, positions)
    units = 1 if factor == 1 else 2
    if kind is F64:
        return units * kind.ulp(abs(ref)) + Real(2) ** -60 + beyond
    if kind is F32:
        return units * kind.ulp(abs(ref)) + Real(2) ** -61 + beyond
    # Near zero, a 16-bit type may be finer than the error of f32.
    return ONCE * kind.ulp(abs(ref)) + Real(2) ** -61 + beyond


def tables(kind, frequencies, positions):
    """Returns cos and sin tables of a type."""
    cos, sin = frequencies.cos_sin(positions)
    factor = frequencies.factor
    # With axes, the bound is that of the largest position of a row.
    if frequencies.axes is not None:
        positions = np.abs(positions).max(axis=0)
    largest = np.asarray(positions, Real)[..., None]

    def table(values):
        # Tables of bf16 are exact only without a factor, since they need not be
        # computed in f32.
        exact = (cos == 1) & (sin == 0) & has_few_digits(kind, factor) & (
            (factor == 1) | (kind is not BF16))
        return rounded(kind, values * factor,
                       table_error(kind, values * factor, factor, largest), exact)
    return table(cos), table(sin)


def pair_elements(pairing, offset, dim):
    """Returns the indices in a row of the first and the second element of each
    pair."""
    i = np.arange(dim // 2)
    if pairing == "half":
        return offset + i, offset + dim // 2 + i
    return offset + 2 * i, offset + 2 * i + 1


def rotate_pairs(x, cos, sin, pairing, offset, units, magnitude):
    """Rotates x by cos and sin, Values [..., pairs] that broadcast with the rows of
    x. The error bound is `units` units in the last place of the pair's length
    times `magnitude`."""
    kind = x.kind
    first, second = pair_elements(pairing, offset, 2 * cos.ref.shape[-1])
    ref, err = x.ref.copy(), x.err.copy()
    length = magnitude * np.hypot(x.ref[..., first], x.ref[..., second])
    for own, others, sign in ((first, second, -1), (second, first, 1)):
        a, b = x.ref[..., own], x.ref[..., others]
        products = a * cos.ref, sign * b * sin.ref
        total = products[0] + products[1]
        carried = (abs(cos.ref) * x.err[..., own]
                   + abs(sin.ref) * x.err[..., others]
                   + abs(a) * cos.err + abs(b) * sin.err)
        exact = carried == 0
        for number in (*products, total):
            exact &= stays_exact(kind, number)
        # With a sine of zero there is one product. It is rounded once if the
        # type is also that of sums.
        if kind is F32 or kind is F64:
            exact |= (carried == 0) & (sin.ref == 0) & has_few_digits(kind, cos.ref)
        with np.errstate(invalid="ignore"):
            rounding = units * kind.ulp(np.maximum(abs(total), length + carried))
        result = rounded(kind, total, rounding + carried, exact)
        ref[..., own], err[..., own] = result.ref, result.err
    return Value(kind, ref, err)


def row_units(kind):
    return Real(4) if kind in (F32, F64) else ONCE


def indexed(array, rank, dims):
    """Reshapes [positions..., pairs] so that it broadcasts with a tensor of rank
    `rank`: dimension n of the positions is dimension dims[n] of the tensor."""
    order = np.argsort(dims)
    array = np.transpose(array, list(order) + [array.ndim - 1])
    shape = [1] * rank
    for n in order:
        shape[dims[n]] = array.shape[list(order).index(n)]
    shape[-1] = array.shape[-1]
    return array.reshape(shape)


def rope(x, frequencies, positions, dims, pairing, offset, inverse=False):
    cos, sin = frequencies.cos_sin(positions)
    cos, sin = (indexed(t, x.ref.ndim, dims) for t in (cos, sin))
    if inverse:
        sin = -sin
        factor = 1 / frequencies.factor
    else:
        factor = frequencies.factor
    at_zero = (cos == 1) & (sin == 0)
    if frequencies.axes is not None:
        positions = np.abs(positions).max(axis=0)
    far = indexed(np.asarray(positions, Real)[..., None], x.ref.ndim, dims)
    beyond = beyond_error(factor, far)
    # The factor is part of the tables, whose elements are exact only at position
    # 0 and with a factor of few digits.
    tiny = np.where(at_zero & has_few_digits(x.kind, factor), 0, Real(2) ** -400)
    table = [Value(x.kind, factor * t, beyond + tiny) for t in (cos, sin)]
    return rotate_pairs(x, *table, pairing, offset, row_units(x.kind), factor)


def rotate(x, cos, sin, dims, pairing, offset, inverse=False):
    """Rotates by tables, whose errors are propagated."""
    cos, sin = (t.map(lambda a: indexed(a, x.ref.ndim, dims)) for t in (cos, sin))
    if inverse:
        sin = Value(sin.kind, -sin.ref, sin.err)
    magnitude = np.hypot(cos.ref, sin.ref)
    return rotate_pairs(x, cos, sin, pairing, offset, row_units(x.kind), magnitude)


def sinusoidal(kind, frequencies, positions, order):
    cos, sin = tables(kind, frequencies, positions)

    def arrange(c, s):
        if order == "interleaved":
            return np.stack([s, c], axis=-1).reshape(*c.shape[:-1], -1)
        return np.concatenate([s, c] if order == "sin_cos" else [c, s], axis=-1)
    return Value(kind, arrange(cos.ref, sin.ref), arrange(cos.err, sin.err))


def compare(stored, value):
    """Returns what is wrong with a result, or None."""
    actual = value.kind.decode(stored)
    with np.errstate(invalid="ignore"):
        error = abs(actual - value.ref)
        wrong = ~((error <= value.err) | (actual == value.ref)
                  | (np.isnan(actual) & np.isnan(value.ref)))
    if not wrong.any():
        finite = np.isfinite(value.ref)
        norm = np.sqrt((value.ref[finite] ** 2).sum())
        distance = np.sqrt((error[finite] ** 2).sum())
        if value.relative is None or distance <= value.relative * norm:
            return None
        return (f"the relative error is {distance / norm:.3g}, expected at most "
                f"{value.relative:.3g}")
    score = np.where(wrong, np.nan_to_num(error / np.maximum(value.err, Real(2) ** -300),
                                          nan=np.inf), -1)
    at = np.unravel_index(np.argmax(score), wrong.shape)
    return (f"{wrong.sum()} of {wrong.size} are wrong, the worst at "
            f"{[int(i) for i in at]}: {actual[at]:.12g}, expected "
            f"{value.ref[at]:.12g}"
            + (f" within {value.err[at]:.3g}" if value.err[at] else " to the bit"))
