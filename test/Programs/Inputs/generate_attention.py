# ===- generate_attention.py - random attention and KV caches --------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Prefill and decode attention of padded, ragged and paged batches, and
kv_append."""

import numpy as np

import attention_model
import generate_rope
from attention_model import Attention, Sequence, Rotation
from builder import FLOATS, Dynamic, sizes
from formats import BF16, F16, F32, F64, I1, I32, I64, Real, sums_of
from model import Value
from phases import real

HEAD_DIMS = (8, 16, 24, 32, 40, 64, 64, 80, 128, 20, 34)


def rotation(f, dim, with_axes=False):
    rotary = dim if f.chance(0.6) else 2 * int(f.random.integers(1, dim // 2 + 1))
    freqs = generate_rope.frequencies(f, rotary, with_axes)
    # The documented bounds do not cover the scores of large factors.
    while not 0.2 <= freqs.factor <= 1.6:
        freqs = generate_rope.frequencies(f, rotary, with_axes)
    offset = f.pick(0, int(f.random.integers(0, dim - rotary + 1)), dim - rotary)
    return Rotation(f.pick("half", "interleaved"), freqs, offset)


def key_count(f, limit):
    """Returns a number of keys, often a power of two or near one: tiles and KV splits
    end there."""
    near = f.pick(16, 32, 64, 128, 256, 512, 1024)
    count = f.pick(near, near + int(f.random.integers(-3, 4)),
                   int(f.random.integers(1, limit + 1)))
    return int(min(max(count, 0), limit))


class Generator:
    """Generates one attention op: draws its features and operands and emits it."""

    def __init__(self, f, form):
        self.f, self.form = f, form
        self.kind = kind = f.pick(F32, F32, F32, BF16, F16, F64)
        self.slow = kind is F64
        self.dim = int(f.pick(*HEAD_DIMS))
        self.value_dim = self.dim if f.chance(0.75) else int(f.pick(*HEAD_DIMS))
        self.batch = f.size(int(f.random.integers(1, 4)))
        is_decode = form in ("decode", "paged")
        self.key_heads = int(f.random.integers(1, 4))
        self.heads = self.key_heads * int(f.pick(1, 1, 2, 3, 4, 5, 8))
        limit = 150 if self.slow else 1300 if is_decode else 300
        self.keys = f.size(max(key_count(f, limit), 1))
        self.queries = f.size(int(f.random.integers(1, 9)) if is_decode else int(
            f.pick(f.random.integers(1, 9), f.random.integers(9, 100),
                   min(int(self.keys), 100))))
        self.mode = f.pick("normal", "normal", "zero", "some zero", "spikes",
                           "integers")
        self.attributes, self.operands, self.region = [], [], None

    def layout(self, rows, heads, dim, layout, batch):
        lead = [] if batch is None else [batch]
        return lead + ([heads, rows, dim] if layout == "head_major"
                       else [rows, heads, dim])

    def rows_of(self, tensor, layout):
        """Returns the elements as [batch, tokens, heads, dim], or [tokens, heads, dim]
        of ragged tensors."""
        return (np.swapaxes(tensor.value.ref, -3, -2) if layout == "head_major"
                else tensor.value.ref)

    def numbers(self, shape, role):
        """Draws queries ("q"), keys ("k") or values ("v"). Depending on the mode,
        scores have a standard deviation of about 1, are zero, or are integers
        that differ by up to hundreds."""
        f = self.f
        shape = sizes(shape)
        if role == "v":
            if f.chance(0.5):
                return f.random.integers(-128, 129, shape) / Real(16)
            return f.random.standard_normal(shape).astype(Real)
        x = f.random.standard_normal(shape).astype(Real)
        if role == "q" and self.mode in ("zero", "some zero"):
            x[f.random.random(shape[:-1]) < (1 if self.mode == "zero" else 0.6)] = 0
        if self.mode in ("spikes", "integers"):
            # Only one element is not zero, so scores are integers: all are small,
            # or those of a few keys are far above all others.
            x = np.zeros(shape, Real)
            x[..., 0] = 1
            if role == "k":
                x[..., 0] = f.random.integers(-3, 4, shape[:-1])
                if self.mode == "spikes":
                    some = f.random.random(shape[:-1]) < f.pick(0.002, 0.01, 0.1)
                    x[..., 0][some] = f.random.choice([-200, 100, 120, 240], some.sum())
        return x

    def tensor(self, shape, role, used=None):
        numbers = self.numbers(shape, role)
        if used is not None:
            # Keys and values that must not be read are NaNs.
            numbers = np.where(used, numbers, np.nan)
        return self.f.argument(self.kind, shape, self.kind.encode(numbers))

    def masks(self):
        f = self.f
        if f.chance(0.6):
            self.attributes.append("causal")
        for name in ("left", "right"):
            if f.chance(0.2):
                size = int(f.pick(0, 1, 7, 31, 64, 200))
                self.attributes.append(f"window_{name} = {size}")
                setattr(self, name, size)
        self.causal = "causal" in self.attributes

    def choose(self):
        """Draws the attributes and operands that all forms have in common."""
        f, kind = self.f, self.kind
        self.left = self.right = self.scale = None
        self.masks()
        exact = self.mode in ("spikes", "integers")
        if exact or f.chance(0.2):
            self.scale = 1.0 if exact else 0.75 / self.dim**0.5
            self.attributes.append(f"scale = {real(self.scale)}")
        self.query_norm = self.key_norm = self.eps = None
        self.query_rotation = self.key_rotation = None
        if not exact and f.chance(0.5):
            self.query_rotation = rotation(f, self.dim)
            self.key_rotation = self.query_rotation if f.chance(0.8) else None
            self.attributes.append(f"query_rotation = {self.query_rotation.text()}")
            if self.key_rotation:
                self.attributes.append(f"key_rotation = {self.key_rotation.text()}")
        norms = [n for n in ("query_norm", "key_norm") if not exact and f.chance(0.15)]
        if norms:
            self.eps = f.pick(1e-6, 1e-5)
            self.attributes.append(f"norm_eps = {real(self.eps)}")
        for name in norms:
            weight = f.floats(kind, [self.dim], "normal")
            setattr(self, name, weight.value.ref)
            self.operands.append(f"{name}({weight.name} : {weight.type()})")
        self.sinks = None
        if f.chance(0.2):
            sinks = f.floats(sums_of(kind), [self.heads], "normal")
            self.sinks = sinks.value.ref
            self.operands.append(f"sinks({sinks.name} : {sinks.type()})")

    def plain(self, **given):
        """Resets all attributes but the given ones."""
        for name in ("left", "right", "scale", "query_norm", "key_norm", "eps",
                     "query_rotation", "key_rotation", "sinks"):
            setattr(self, name, None)
        self.causal = False
        self.__dict__.update(given)

    def regions(self):
        """Draws the score and where regions: returns their text, and sets `score` and
        `where` to the functions that they compute."""
        f, kind = self.f, sums_of(self.kind).name
        self.score = self.where = None
        if self.region:
            return self.region()
        text = []
        if self.mode in ("normal", "some zero") and f.chance(0.35):
            text.append(f.pick(self.soft_cap, self.alibi, self.relative,
                               self.table)(kind))
        if f.chance(0.2):
            text.append(f.pick(self.stripes, self.blocks)())
        return "\n".join(text)

    def soft_cap(self, kind):
        cap = self.f.pick(4.0, 20.0)
        self.score = lambda s, b, h, i, j: cap * np.tanh(s / cap)
        return f"""    score(%s, %b, %h, %i, %j) {{
      %cap = arith.constant {cap} : {kind}
      %x = arith.divf %s, %cap : {kind}
      %t = math.tanh %x : {kind}
      %y = arith.mulf %t, %cap : {kind}
      posenc.yield %y : {kind}
    }}"""

    def alibi(self, kind):
        heads = self.heads
        n = 1 << (heads.bit_length() - 1)
        slopes = np.array([2.0 ** (-8 * (h + 1) / n) if h < n else
                           2.0 ** (-4 * (2 * (h - n) + 1) / n)
                           for h in range(heads)])
        self.score = lambda s, b, h, i, j: s - slopes[h] * abs(i - j)
        return f"""    score(%s, %b, %h, %i, %j) {{
      %bias = posenc.alibi(%h, %i, %j) heads = {heads} : {kind}
      %y = arith.addf %s, %bias : {kind}
      posenc.yield %y : {kind}
    }}"""

    def relative(self, kind):
        self.score = lambda s, b, h, i, j: s + ((j - i) % 8) * 0.25 - 0.5 * (h == b)
        integer = "i64" if kind == "f64" else "i32"
        return f"""    score(%s, %b, %h, %i, %j) {{
      %d = arith.subi %j, %i : index
      %seven = arith.constant 7 : index
      %m = arith.andi %d, %seven : index
      %n = arith.index_cast %m : index to {integer}
      %x = arith.sitofp %n : {integer} to {kind}
      %quarter = arith.constant 0.25 : {kind}
      %bias = arith.mulf %x, %quarter : {kind}
      %is = arith.cmpi eq, %h, %b : index
      %half = arith.constant -0.5 : {kind}
      %zero = arith.constant 0.0 : {kind}
      %z = arith.select %is, %half, %zero : {kind}
      %u = arith.addf %s, %bias : {kind}
      %y = arith.addf %u, %z : {kind}
      posenc.yield %y : {kind}
    }}"""

    def table(self, kind):
        f = self.f
        both, count, longest = f.chance(0.5), int(f.pick(8, 32)), int(f.pick(40, 128))
        table = f.floats(F64 if kind == "f64" else F32, [count, self.heads], "normal")

        def bucket(relative):
            n = count // 2 if both else count
            r = abs(relative) if both else np.maximum(-relative, 0)
            first = np.where(both & (relative > 0), n, 0)
            e = n // 2
            # Integer arithmetic finds exact powers.
            def large(x):
                return min(n - 1, e + sum(
                    1 for m in range(1, n - e) if x ** (n - e) * e**m >= longest**m * e ** (n - e)))
            unique, where = np.unique(r, return_inverse=True)
            rows = np.array([int(x) if x < e else large(int(x))
                             for x in unique], np.int64)[where].reshape(r.shape)
            return first + rows
        values = np.asarray(table.value.ref)
        self.score = lambda s, b, h, i, j: s + values[bucket(j - i), h].astype(s.dtype)
        return f"""    score(%s, %b, %h, %i, %j) {{
      %d = arith.subi %j, %i : index
      %n = posenc.t5_bucket {'bidirectional ' if both else ''}%d buckets = {count} max_distance = {longest} : index
      %bias = tensor.extract {table.name}[%n, %h] : {table.type()}
      %y = arith.addf %s, %bias : {kind}
      posenc.yield %y : {kind}
    }}"""

    def stripes(self):
        self.where = lambda b, h, i, j: ((i - j) % 4 != 1) & (h >= 0)
        return """    where(%b, %h, %i, %j) {
      %d = arith.subi %i, %j : index
      %three = arith.constant 3 : index
      %one = arith.constant 1 : index
      %m = arith.andi %d, %three : index
      %y = arith.cmpi ne, %m, %one : index
      posenc.yield %y : i1
    }"""

    def blocks(self):
        """Masks all but the first keys; their number depends on the sequence and the
        head."""
        limit = int(self.f.pick(1, 20, 64, 256, 300))
        self.where = lambda b, h, i, j: (j < limit + b + h) & (i == i)
        return f"""    where(%b, %h, %i, %j) {{
      %limit = arith.constant {limit} : index
      %u = arith.addi %limit, %b : index
      %v = arith.addi %u, %h : index
      %y = arith.cmpi slt, %j, %v : index
      posenc.yield %y : i1
    }}"""

    def positions(self, rotation, grid, name):
        """Adds an operand of positions at random, and returns its value or None."""
        if rotation is None or not self.f.chance(0.5):
            return None
        given = generate_rope.positions_argument(
            self.f, grid, None, self.f.pick(I64, I32))
        self.operands.append(f"{name}({given.name} : {given.type()})")
        return given.value

    def float_mask(self, shape):
        f = self.f
        numbers = f.random.standard_normal(sizes(shape)).astype(Real)
        if self.mode != "normal":
            numbers[:] = 0
        hidden = f.random.random(sizes(shape)) < 0.3
        numbers[hidden] = -np.inf
        if f.chance(0.4):
            # Any byte but 0 is true.
            truth = np.where(hidden, 0, f.random.choice([1, 1, 255], hidden.shape))
            mask = f.argument(I1, shape, truth)
            self.operands.append(f"mask({mask.name} : {mask.type()})")
            return np.where(hidden, -np.inf, 0).astype(Real)
        kind = f.pick(F32, self.kind) if self.kind is not F64 else F32
        mask = f.argument(kind, shape, kind.encode(numbers))
        self.operands.append(f"mask({mask.name} : {mask.type()})")
        return mask.value.ref

    def emit(self, q, k, v, out_shape, sequences):
        """Emits the op. `sequences` has, for each sequence, a Sequence and the index of
        its rows in the output."""
        f, kind = self.f, self.kind
        regions = self.regions()
        op = Attention(kind, **{n: getattr(self, n) for n in (
            "causal", "left", "right", "scale", "query_rotation", "key_rotation",
            "query_norm", "key_norm", "eps", "sinks", "score", "where")})
        wants_logs = f.chance(0.25)
        inits = [f.destination(kind, out_shape)]
        if wants_logs:
            inits.append(f.destination(sums_of(kind), out_shape[:-1]))
        names, left = generate_rope.results_of(f, inits)
        f.emit(f"{left} = posenc.attention {' '.join(self.attributes)} "
               f"{generate_rope_ins(q, k, v)} {' '.join(self.operands)} "
               f"outs({generate_rope.list_of(inits)})\n{regions}")
        head_major = self.query_layout == "head_major"
        swap = (lambda x, n: np.swapaxes(x, -n, -n + 1)) if head_major else (
            lambda x, n: x)
        shape = sizes(out_shape)
        ref, err = np.zeros(shape, Real), np.zeros(shape, Real)
        logs = np.full(shape[:-1], -np.inf).astype(Real)
        if self.sinks is not None:
            swap(logs, 2)[...] = self.sinks
        log_err = np.where(np.isfinite(logs), 2.0**-20 * np.maximum(1, abs(logs)), 0)
        for sequence, rows in sequences:
            output, log = op.evaluate(sequence)
            swap(ref, 3)[rows], swap(err, 3)[rows] = output.ref, output.err
            swap(logs, 2)[rows], swap(log_err, 2)[rows] = log.ref, log.err
        relative = attention_model.RELATIVE[kind]
        f.notes["sums"] = True
        f.notes["dots"] = kind is BF16
        f.give(f.result(kind, out_shape, Value(kind, ref, err, relative), names[0]))
        if wants_logs:
            f.give(f.result(sums_of(kind), out_shape[:-1],
                            Value(sums_of(kind), logs, log_err), names[1]))


def generate_rope_ins(q, k, v):
    return f"ins({generate_rope.list_of([q, k, v])})"


def layouts(g):
    g.query_layout, g.key_layout = (g.f.pick("token_major", "head_major")
                                    for _ in range(2))
    g.attributes += [f"query_layout = {g.query_layout}",
                     f"key_layout = {g.key_layout}"]


def batched(f, form):
    """Attention of a padded batch, with or without lengths."""
    g = Generator(f, form)
    layouts(g)
    batch, queries, keys = g.batch, g.queries, g.keys
    lengths = None
    if form == "decode" or f.chance(0.25):
        counts = np.array([key_count(f, int(keys)) for _ in range(batch)])
        if f.chance(0.5):
            counts[-1] = keys
    else:
        counts = None
    q = g.tensor(g.layout(queries, g.heads, g.dim, g.query_layout, batch), "q")
    shape = g.layout(keys, g.key_heads, g.dim, g.key_layout, batch)
    used = None
    if counts is not None:
        used = np.arange(int(keys))[None, :] < counts[:, None]
        used = used[:, None, :, None] if g.key_layout == "head_major" else (
            used[:, :, None, None])
    k = g.tensor(shape, "k", used)
    v = g.tensor(shape[:-1] + [g.value_dim], "v", used)
    g.choose()
    query_positions = g.positions(g.query_rotation, [batch, queries], "query_positions")
    key_positions = g.positions(g.key_rotation, [batch, keys], "key_positions")
    if counts is not None:
        lengths = f.argument(f.pick(I64, I32), [batch], counts)
        g.operands.append(f"lengths({lengths.name} : {lengths.type()})")
    else:
        counts = np.full(int(batch), int(keys))
    mask = None
    if f.chance(0.15):
        mask = g.float_mask([f.pick(1, batch), f.pick(1, g.heads), queries, keys])
    qs, ks, vs = g.rows_of(q, g.query_layout), g.rows_of(k, g.key_layout), g.rows_of(
        v, g.key_layout)
    sequences = []
    for b in range(int(batch)):
        n = int(counts[b])
        sequences.append((Sequence(
            b, qs[b], ks[b][:n], vs[b][:n],
            None if query_positions is None else query_positions[b],
            None if key_positions is None else key_positions[b][:n],
            None if mask is None else mask[b % mask.shape[0]][..., :n]), (b,)))
    g.emit(q, k, v, g.layout(queries, g.heads, g.value_dim, g.query_layout, batch),
           sequences)


def prefill(f):
    batched(f, "prefill")


def decode(f):
    batched(f, "decode")


def ragged(f):
    """Attention of a ragged batch. Queries and keys have the same cu_seqlens or
    their own; the last tokens may belong to no sequence."""
    g = Generator(f, "ragged")
    layouts(g)
    same_starts = f.chance(0.5)

    def draw_starts(limit):
        counts = f.random.integers(0, limit, int(g.batch))
        start = np.concatenate([[0], np.cumsum(counts)])
        return start, f.size(int(start[-1]) + int(f.pick(0, 0, 3)))
    limit = 40 if g.slow else f.pick(9, 80)
    starts, tokens = draw_starts(limit)
    key_starts, key_tokens = (starts, tokens) if same_starts else draw_starts(
        40 if g.slow else f.pick(9, 300))
    q = g.tensor(g.layout(tokens, g.heads, g.dim, g.query_layout, None), "q")
    shape = g.layout(key_tokens, g.key_heads, g.dim, g.key_layout, None)
    used = np.arange(int(key_tokens)) < key_starts[-1]
    used = used[None, :, None] if g.key_layout == "head_major" else used[:, None, None]
    k, v = g.tensor(shape, "k", used), g.tensor(shape[:-1] + [g.value_dim], "v", used)
    g.choose()
    query_positions = g.positions(g.query_rotation, [tokens], "query_positions")
    key_positions = g.positions(g.key_rotation, [key_tokens], "key_positions")
    kind, length = f.pick(I64, I32), f.size(int(g.batch) + 1)
    cu = f.argument(kind, [length], starts)
    key_cu = cu if same_starts else f.argument(kind, [length], key_starts)
    g.operands.append(f"cu_seqlens({generate_rope.list_of([cu, key_cu])})")
    qs, ks, vs = g.rows_of(q, g.query_layout), g.rows_of(k, g.key_layout), g.rows_of(
        v, g.key_layout)
    sequences = []
    for b in range(int(g.batch)):
        rows = slice(starts[b], starts[b + 1])
        keys = slice(key_starts[b], key_starts[b + 1])
        sequences.append((Sequence(
            b, qs[rows], ks[keys], vs[keys],
            None if query_positions is None else query_positions[rows],
            None if key_positions is None else key_positions[keys]), (rows,)))
    g.emit(q, k, v, g.layout(tokens, g.heads, g.value_dim, g.query_layout, None),
           sequences)


def cached(f):
    """Attention to KV caches or pages, with padded or ragged queries."""
    g = Generator(f, "paged")
    layouts(g)
    is_ragged, is_paged = f.chance(0.5), f.chance(0.7)
    batch, capacity = int(g.batch), int(g.keys)
    counts = np.array([key_count(f, capacity) for _ in range(batch)])
    if is_ragged:
        limit = 30 if g.slow else f.pick(3, 10, 60)
        starts = np.concatenate([[0], np.cumsum(f.random.integers(0, limit, batch))])
        tokens = f.size(int(starts[-1]) + int(f.pick(0, 2)))
    else:
        tokens = g.queries
    page = int(f.pick(1, 8, 16, 48, 64)) if is_paged else capacity
    # Every sequence has its own pages, in random order. Some pages are unused.
    columns = -(-capacity // page)
    pages = batch * columns + int(f.random.integers(0, 3)) if is_paged else batch
    table = f.random.permutation(pages)[: batch * columns].reshape(batch, columns)
    if not is_paged:
        table = np.arange(batch)[:, None]
    slots = table[:, np.arange(capacity) // page], np.arange(capacity) % page
    used = np.zeros((pages, page), bool)
    for b in range(batch):
        used[slots[0][b][: counts[b]], slots[1][: counts[b]]] = True
    used = used[:, None, :, None] if g.key_layout == "head_major" else (
        used[:, :, None, None])
    q = g.tensor(g.layout(tokens, g.heads, g.dim, g.query_layout,
                          None if is_ragged else g.batch), "q")
    pages_size = f.size(pages) if is_paged else (Dynamic(batch) if is_ragged else g.batch)
    shape = g.layout(f.size(page) if is_paged else g.keys, g.key_heads, g.dim,
                     g.key_layout, pages_size)
    k, v = g.tensor(shape, "k", used), g.tensor(shape[:-1] + [g.value_dim], "v", used)
    g.choose()
    query_positions = g.positions(g.query_rotation, [tokens] if is_ragged else [
        g.batch, tokens], "query_positions")
    lengths_size = pages_size if not is_paged else (
        f.size(batch) if is_ragged else g.batch)
    lengths = f.argument(f.pick(I64, I32), [lengths_size], counts)
    g.operands.append(f"lengths({lengths.name} : {lengths.type()})")
    if is_ragged:
        cu = f.argument(f.pick(I64, I32), [f.size(batch + 1)], starts)
        g.operands.append(f"cu_seqlens({cu.name} : {cu.type()})")
    if is_paged:
        stored = table.copy()
        # Table elements beyond the length of a sequence are no valid pages.
        unused = np.arange(columns)[None] * page >= counts[:, None]
        stored[unused] = -7
        block_table = f.argument(f.pick(I64, I32), [lengths_size, f.size(columns)],
                                 stored)
        g.operands.append(f"block_table({block_table.name} : {block_table.type()})")
    mask = None
    if not is_ragged and f.chance(0.25):
        longest = f.size(int(counts.max(initial=0)) + int(f.pick(0, 0, 5)))
        mask = g.float_mask([f.pick(1, g.batch), f.pick(1, g.heads), tokens,
                             longest if is_paged else g.keys])
    qs, ks, vs = g.rows_of(q, g.query_layout), g.rows_of(k, g.key_layout), g.rows_of(
        v, g.key_layout)
    sequences = []
    for b in range(batch):
        n = int(counts[b])
        at = slots[0][b][:n], slots[1][:n]
        rows = slice(starts[b], starts[b + 1]) if is_ragged else b
        sequences.append((Sequence(
            b, qs[rows], ks[at], vs[at],
            None if query_positions is None else query_positions[rows], None,
            None if mask is None else mask[b % mask.shape[0]][..., :n]), (rows,)))
    g.emit(q, k, v, g.layout(tokens, g.heads, g.value_dim, g.query_layout,
                             None if is_ragged else g.batch), sequences)


def append(f):
    """kv_append to caches by lengths, or to slots of caches or pages."""
    kind = f.pick(*FLOATS)
    heads, dim = int(f.random.integers(1, 5)), int(f.pick(*HEAD_DIMS))
    value_dim = dim if f.chance(0.7) else int(f.pick(*HEAD_DIMS))
    by_lengths = f.chance(0.5)
    is_ragged = not by_lengths and f.chance(0.5)
    batch, tokens = f.size(int(f.random.integers(1, 4))), f.size(int(
        f.pick(1, f.random.integers(1, 30))))
    capacity = f.size(int(tokens) + int(f.random.integers(0, 40)))
    layout, cache_layout = (f.pick("token_major", "head_major") for _ in range(2))
    with_axes = f.chance(0.15)
    rotated = rotation(f, dim, with_axes) if f.chance(0.7) else None
    if rotated:
        with_axes = rotated.frequencies.axes is not None

    def shape(rows, width, order, lead):
        return lead + ([heads, rows, width] if order == "head_major"
                       else [rows, heads, width])
    lead = [] if is_ragged else [batch]
    mode = f.pick("normal", "ties", "ties", "wide")
    k = f.floats(kind, shape(tokens, dim, layout, lead), mode)
    v = f.floats(kind, shape(tokens, value_dim, layout, lead), mode)
    cache_batch = batch if by_lengths else f.size(int(f.random.integers(1, 4)))
    if not by_lengths:
        needed = int(tokens) * (1 if is_ragged else int(batch))
        if needed > int(cache_batch) * int(capacity):
            capacity = f.size(needed)
    caches = [f.floats(kind, shape(capacity, width, cache_layout, [cache_batch]), "normal")
              for width in (dim, value_dim)]
    attributes = [f"layout = {layout}", f"cache_layout = {cache_layout}"]
    operands, weight, eps = [], None, None
    if f.chance(0.25):
        eps = f.pick(1e-6, 1e-5)
        attributes.append(f"norm_eps = {real(eps)}")
        norm = f.floats(kind, [dim], "normal")
        weight = norm.value.ref
        operands.append(f"norm({norm.name} : {norm.type()})")
    grid = lead + [tokens]
    count = int(tokens)
    batches = 1 if is_ragged else int(batch)
    if by_lengths:
        lengths = np.array([int(f.random.integers(0, int(capacity) + 1))
                            for _ in range(batches)])
        slots = lengths[:, None] - count + np.arange(count)
        rows = np.where(slots < 0, -1, slots + np.arange(batches)[:, None] * int(capacity))
    else:
        total = int(cache_batch) * int(capacity)
        rows = f.random.permutation(total)[: batches * count].reshape(batches, count)
        rows[f.random.random(rows.shape) < 0.1] = -int(f.pick(1, 5))
    positions = None
    if rotated:
        attributes.append(f"rotation = {rotated.text()}")
        positions = slots if by_lengths else None
        if not by_lengths or with_axes or f.chance(0.5):
            given = generate_rope.positions_argument(
                f, grid, rotated.frequencies.axes, f.pick(I64, I32))
            operands.insert(0, f"positions({given.name} : {given.type()})")
            positions = given.value
            if is_ragged:
                positions = positions[..., None, :]
    if by_lengths:
        given = f.argument(f.pick(I64, I32), [batch], lengths)
        operands.append(f"lengths({given.name} : {given.type()})")
    else:
        given = f.argument(f.pick(I64, I32), grid, rows)
        operands.append(f"slots({given.name} : {given.type()})")
    names, left = generate_rope.results_of(f, caches)
    f.emit(f"{left} = posenc.kv_append {' '.join(attributes)} "
           f"ins({generate_rope.list_of([k, v])}) {' '.join(operands)} "
           f"outs({generate_rope.list_of(caches)})")
    for n, (new, cache) in enumerate(zip((k, v), caches)):
        # The expected contents of the cache, in its layout.
        ref, err = cache.value.ref.copy(), cache.value.err.copy()
        source = new.value.ref.reshape((batches,) + new.value.ref.shape[-3:])
        if layout == "head_major":
            source = np.swapaxes(source, 1, 2)
        for b in range(batches):
            made = Value(kind, source[b])
            if n == 0:
                at = None if positions is None else positions[..., b, :]
                made = attention_model.append(kind, source[b], weight, eps, rotated, at)
            for t in range(count):
                if rows[b, t] < 0:
                    continue
                page, slot = divmod(int(rows[b, t]), int(capacity))
                at = (page, slice(None), slot) if cache_layout == "head_major" else (
                    page, slot)
                ref[at], err[at] = made.ref[t], made.err[t]
        f.give(f.result(kind, cache.shape, Value(kind, ref, err), names[n]))
