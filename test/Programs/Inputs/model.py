# ===- model.py - what operations mean, with the errors that they may have -===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Results in arithmetic of 64 digits, each with the largest error that it may
have. An error of 0 says that the result is known to the bit."""

import numpy as np

from formats import BF16, F16, F32, F64, Real, sums_of


class Value:
    """Numbers of a type, the largest error of each, and that of all together
    relative to the Frobenius norm, or None."""

    def __init__(self, kind, ref, err=None, relative=None):
        self.relative = relative
        self.kind, self.ref = kind, np.asarray(ref, Real)
        self.err = (np.zeros(self.ref.shape, Real) if err is None
                    else np.broadcast_to(np.asarray(err, Real), self.ref.shape))

    def map(self, move):
        """The same numbers, elsewhere."""
        return Value(self.kind, move(self.ref), move(self.err))


def rounded(kind, ref, err, exact):
    """A result: to the bit the rounding of `ref` where `exact`, else within
    `err`."""
    nearest = kind.round(ref)
    return Value(kind, np.where(exact, nearest, ref), np.where(exact, 0, err))


def stays_exact(kind, values):
    """Where a value that is formed in the type of the sums is not rounded
    there."""
    return sums_of(kind).holds(values)


def has_few_digits(kind, values):
    """Where Real, and the sums of a short type, hold products with them."""
    return (F16 if kind is F64 else F32).holds(values)


# An exactly rounded table or product is within half a unit; SEMANTICS allows a
# hundredth for the rounding of f32 before.
ONCE = Real("0.51")


def beyond_error(factor, positions):
    """What SEMANTICS allows more where positions are beyond 2^31."""
    return abs(factor) * np.where(
        abs(positions) > 2.0**31, abs(positions) * Real(2) ** -94, 0)


def table_error(kind, ref, factor, positions):
    """The bound of cos and sin, `positions` broadcast to the table."""
    beyond = beyond_error(factor, positions)
    units = 1 if factor == 1 else 2
    if kind is F64:
        return units * kind.ulp(abs(ref)) + Real(2) ** -60 + beyond
    if kind is F32:
        return units * kind.ulp(abs(ref)) + Real(2) ** -61 + beyond
    # The bound of f32 next to zero, where a table of 16 bits may be finer.
    return ONCE * kind.ulp(abs(ref)) + Real(2) ** -61 + beyond


def tables(kind, frequencies, positions):
    """cos and sin as tables of a type."""
    cos, sin = frequencies.cos_sin(positions)
    factor = frequencies.factor
    # With axes any of the positions of a row.
    if frequencies.axes is not None:
        positions = np.abs(positions).max(axis=0)
    largest = np.asarray(positions, Real)[..., None]

    def table(values):
        # Tables of bf16 need not be formed in f32, where 1 is a factor of all.
        exact = (cos == 1) & (sin == 0) & has_few_digits(kind, factor) & (
            (factor == 1) | (kind is not BF16))
        return rounded(kind, values * factor,
                       table_error(kind, values * factor, factor, largest), exact)
    return table(cos), table(sin)


def lanes_of(pairing, offset, dim):
    """The lanes of the first and of the second numbers of the pairs."""
    i = np.arange(dim // 2)
    if pairing == "half":
        return offset + i, offset + dim // 2 + i
    return offset + 2 * i, offset + 2 * i + 1


def rotate_pairs(x, cos, sin, pairing, offset, units, magnitude):
    """Rotates by cos and sin, Values of [..., pairs] that broadcast with the
    rows of x. The error is `units` of the pair's length x `magnitude`."""
    kind = x.kind
    first, second = lanes_of(pairing, offset, 2 * cos.ref.shape[-1])
    ref, err = x.ref.copy(), x.err.copy()
    length = magnitude * np.hypot(x.ref[..., first], x.ref[..., second])
    for lanes, others, sign in ((first, second, -1), (second, first, 1)):
        a, b = x.ref[..., lanes], x.ref[..., others]
        products = a * cos.ref, sign * b * sin.ref
        total = products[0] + products[1]
        carried = (abs(cos.ref) * x.err[..., lanes]
                   + abs(sin.ref) * x.err[..., others]
                   + abs(a) * cos.err + abs(b) * sin.err)
        exact = carried == 0
        for number in (*products, total):
            exact &= stays_exact(kind, number)
        # With a sine of zero there is one product, rounded once if the type is
        # that of the sums.
        if kind is F32 or kind is F64:
            exact |= (carried == 0) & (sin.ref == 0) & has_few_digits(kind, cos.ref)
        with np.errstate(invalid="ignore"):
            own = units * kind.ulp(np.maximum(abs(total), length + carried))
        result = rounded(kind, total, own + carried, exact)
        ref[..., lanes], err[..., lanes] = result.ref, result.err
    return Value(kind, ref, err)


def row_units(kind):
    return Real(4) if kind in (F32, F64) else ONCE


def indexed(array, rank, dims):
    """[positions..., pairs] broadcast to a tensor's rank: dimension n of the
    positions is dimension dims[n] of the tensor."""
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
    # The factor is part of the tables, whose entries are known to the bit only
    # at position 0 and where it has few digits.
    tiny = np.where(at_zero & has_few_digits(x.kind, factor), 0, Real(2) ** -400)
    table = [Value(x.kind, factor * t, beyond + tiny) for t in (cos, sin)]
    return rotate_pairs(x, *table, pairing, offset, row_units(x.kind), factor)


def rotate(x, cos, sin, dims, pairing, offset, inverse=False):
    """By tables, whose errors are carried on."""
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
    """None, or what is wrong with a result."""
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
        return f"the relative error is {distance / norm:.3g} of {value.relative:.3g}"
    score = np.where(wrong, np.nan_to_num(error / np.maximum(value.err, Real(2) ** -300),
                                          nan=np.inf), -1)
    at = np.unravel_index(np.argmax(score), wrong.shape)
    return (f"{wrong.sum()} of {wrong.size} are wrong, the worst at "
            f"{[int(i) for i in at]}: {actual[at]:.12g}, expected "
            f"{value.ref[at]:.12g}"
            + (f" within {value.err[at]:.3g}" if value.err[at] else " to the bit"))
