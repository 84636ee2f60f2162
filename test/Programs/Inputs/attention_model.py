# ===- attention_model.py - model of attention and kv_append ---------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""A model of attention that computes one sequence after the other, without
tiling."""

import numpy as np

import model
from formats import BF16, F16, F32, F64, Real
from model import Value

EPS = {F64: 2.0**-52, F32: 2.0**-23, F16: 2.0**-10, BF16: 2.0**-7}
RELATIVE = {F64: 1e-14, F32: 2e-6, F16: 1e-3, BF16: 8e-3}


class Rotation:
    """The attribute #posenc.rotation."""

    def __init__(self, pairing, frequencies, offset):
        self.pairing, self.frequencies, self.offset = pairing, frequencies, offset

    def text(self):
        axes = self.frequencies.axes
        return (f"#posenc.rotation<pairing = {self.pairing}, "
                f"frequencies = {self.frequencies.text()}"
                + (f", offset = {self.offset}" if self.offset else "")
                + (f", axes = {axes.text()}" if axes else "") + ">")

    def apply(self, rows, positions):
        """Rotates rows [tokens, heads, dim] by positions [tokens] or [axes, tokens]."""
        cos, sin = (t[:, None] * self.frequencies.factor
                    for t in self.frequencies.cos_sin(positions))
        first, second = model.pair_elements(self.pairing, self.offset,
                                       self.frequencies.dim)
        a, b = rows[..., first], rows[..., second]
        rotated = rows.astype(Real)
        rotated[..., first] = a * cos - b * sin
        rotated[..., second] = b * cos + a * sin
        return rotated


def normed(rows, weight, eps):
    mean = (rows * rows).mean(axis=-1, keepdims=True)
    return rows * weight / np.sqrt(mean + Real(eps))


class Sequence:
    """One sequence of a batch: its queries, keys and values [tokens, heads, dim],
    its positions, and its mask [heads, queries, keys]."""

    def __init__(self, batch, q, k, v, query_positions=None, key_positions=None,
                 mask=None):
        self.batch, self.q, self.k, self.v = batch, q, k, v
        self.query_positions, self.key_positions = query_positions, key_positions
        self.mask = mask


class Attention:
    """The attributes of an attention op. The functions `score(s, b, h, i, j)` and
    `where(b, h, i, j)` take arrays that broadcast to [heads, queries, keys]."""

    # faults.py changes these.
    scale_fault, subtracts_max = 1, True

    def __init__(self, kind, **given):
        self.kind, self.causal, self.left, self.right = kind, False, None, None
        self.scale = self.query_rotation = self.key_rotation = None
        self.query_norm = self.key_norm = self.eps = self.sinks = None
        self.score = self.where = None
        self.__dict__.update(given)

    def evaluate(self, sequence):
        """Returns the output [queries, heads, dim] and the log-sum-exp
        [queries, heads], each with its error bound."""
        q, k, v = sequence.q, sequence.k, sequence.v
        queries = np.arange(len(q)) + len(k) - len(q)
        keys = np.arange(len(k))
        if self.query_norm is not None:
            q = normed(q, self.query_norm, self.eps)
        if self.key_norm is not None:
            k = normed(k, self.key_norm, self.eps)
        if self.query_rotation:
            at = queries if sequence.query_positions is None else sequence.query_positions
            q = self.query_rotation.apply(q, at)
        if self.key_rotation:
            at = keys if sequence.key_positions is None else sequence.key_positions
            k = self.key_rotation.apply(k, at)
        work = Real if self.kind is F64 else np.float64
        q, k, v = (x.astype(work) for x in (q, k, v))
        heads, group = q.shape[1], q.shape[1] // k.shape[1]
        scale = work(self.scale if self.scale is not None else 1 / np.sqrt(
            work(q.shape[2]))) * self.scale_fault
        # Scores of masked keys may be anything.
        with np.errstate(invalid="ignore", over="ignore"):
            scores = scale * np.stack([q[:, h] @ k[:, h // group].T
                                       for h in range(heads)])
        h = np.arange(heads)[:, None, None]
        i, j = queries[None, :, None], keys[None, None, :]
        plain = self.score is None and self.sinks is None
        if self.score:
            scores = self.score(scores, sequence.batch, h, i, j)
        if sequence.mask is not None:
            scores = scores + sequence.mask.astype(work)
        visible = np.broadcast_to(scores > -np.inf, scores.shape)
        if self.causal:
            visible = visible & (j <= i)
        if self.left is not None:
            visible = visible & (i - self.left <= j)
        if self.right is not None:
            visible = visible & (j <= i + self.right)
        if self.where:
            visible = visible & self.where(sequence.batch, h, i, j)
        return self._average(scores, visible, v, group, plain)

    def _average(self, scores, visible, v, group, plain):
        work, heads = scores.dtype.type, len(scores)
        hidden = np.where(visible, scores, -np.inf)
        sink = (np.full((heads, 1), -np.inf) if self.sinks is None
                else self.sinks[:, None]).astype(work)
        highest = np.maximum(hidden.max(axis=-1, initial=-np.inf), sink)
        shift = np.where(np.isfinite(highest), highest, 0)
        if not self.subtracts_max:
            shift = np.zeros_like(shift)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            weights = np.exp(hidden - shift[..., None])
            total = weights.sum(axis=-1) + np.exp(sink - shift)
            if not self.subtracts_max:
                weights = weights.astype(np.float32)
                total = total.astype(np.float32)
            logs = shift + np.log(total)
            p = np.where(total[..., None] > 0, weights / total[..., None], 0)
        used = visible.any(axis=(0, 1))
        clean = np.where(used[:, None, None], v, 0)
        of_head = [clean[:, h // group] for h in range(heads)]
        output = np.stack([p[h] @ of_head[h] for h in range(heads)])
        size = np.stack([p[h] @ abs(of_head[h]) for h in range(heads)])
        # The documented bound is for scores with a standard deviation of 4. The
        # rounding errors of larger scores are larger.
        eps = 2.0**-52 if self.kind is F64 else 2.0**-23
        excess = np.where(p > 0, 8 * eps * np.maximum(
            abs(np.where(visible, scores, 0)) - 16, 0), 0)
        spread = (p * excess).sum(axis=-1)
        carried = np.stack([(p[h] * (excess[h] + spread[h][:, None]))
                            @ abs(of_head[h]) for h in range(heads)])
        largest = np.array([abs(x).max(initial=0) for x in of_head])[:, None, None]
        error = 8 * EPS[self.kind] * size + 64 * eps * largest + carried
        log_error = 64 * eps * np.maximum(1, abs(np.where(
            np.isfinite(logs), logs, 0))) + spread
        # Queries that see no key have the exact result 0.
        error = np.where(total[..., None] > 0, error, 0)
        # With equal scores of 2^n keys, the average of values with few digits is
        # exact.
        count = visible.sum(axis=-1)
        level = np.where(visible, scores == 0, True).all(axis=-1) & plain
        power = (count & (count - 1) == 0) & (count > 0)
        has_few_digits = np.array([(x * 2.0**14 == np.rint(x * 2.0**14)).all()
                        and abs(x).sum(axis=0).max(initial=0) < 2.0**9
                        if self.kind is F16 else
                        (x * 2.0**8 == np.rint(x * 2.0**8)).all()
                        and abs(x).sum(axis=0).max(initial=0) < 2.0**15
                        for x in of_head])[:, None]
        exact = (level & power & has_few_digits)[..., None]
        output = model.rounded(self.kind, output, error, exact)
        logs = Value(F64 if self.kind is F64 else F32, logs, log_error)
        return (output.map(lambda x: np.moveaxis(x, 0, 1)), logs.map(np.transpose))


def append(kind, rows, weight, eps, rotation, positions):
    """Returns the rows [tokens, heads, dim] that are appended for new keys."""
    rows = Value(kind, rows)
    if weight is not None:
        ref = normed(rows.ref, weight, eps)
        unit = 2.0**-52 if kind is F64 else 2.0**-23
        rows = Value(kind, ref, 6 * unit * abs(ref))
    if rotation is None:
        if weight is None:
            return rows
        return Value(kind, rows.ref, rows.err
                     + model.row_units(kind) * kind.ulp(abs(rows.ref)))
    rotated = model.rope(rows, rotation.frequencies, positions, [0],
                         rotation.pairing, rotation.offset)
    if weight is None:
        return rotated
    # The norm also rounds elements outside of the rotary window.
    return Value(kind, rotated.ref, np.maximum(
        rotated.err, rows.err + model.row_units(kind) * kind.ulp(abs(rows.ref))))
