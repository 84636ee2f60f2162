# ===- generate_known.py - functions for known kinds of faults -------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Functions that each aim at one kind of fault, which random functions may miss:
ties, which must be rounded to even in all code paths; the bounds of YaRN; key tiles
at the causal diagonal; KV splits with very different maxima, or with sinks; and
masks that end at the end of memory."""

import numpy as np

import generate_mixture
import generate_rope
import model
from attention_model import Sequence
from builder import Dynamic
from formats import BF16, F16, F32, F64, I64, Real
from generate_attention import Generator
from generate_rope import list_of
from model import Value
from phases import Explicit, Frequencies, Yarn


def factor_only(dim, factor):
    return Frequencies(dim, None, Explicit([1.0] * (dim // 2), factor))


def all_numbers(f, kind, shape):
    """Adds an argument that cycles through all numbers of a 16-bit type whose product
    with 1.5 is a normal number."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    values = kind.decode(bits.view(kind.storage))
    smallest = Real(2) ** (kind.min_exponent + 2)
    with np.errstate(invalid="ignore"):
        bits = bits[(abs(values) < kind.max / 4) & (abs(values) > smallest)]
    count = int(np.prod([int(d) for d in shape]))
    return f.argument(kind, shape, np.resize(bits, count).view(kind.storage))


def rope_ties(kind):
    """Rotates by position 0 with the attention factor 1.5: every second product lies
    halfway between two numbers."""
    def make(f):
        grid = [Dynamic(2), Dynamic(170), Dynamic(3)]
        positions = f.argument(I64, grid[:2], np.zeros((2, 170)))
        for pairing, dim in (("half", 64), ("interleaved", 64), ("half", 66)):
            x = all_numbers(f, kind, grid + [dim])
            f.give(*generate_rope.emit_rope(f, [x], factor_only(dim, 1.5), positions,
                                            [0, 1], pairing, 0, False))
    return make


def rotate_ties(kind):
    """Rotates by tables whose cos is 1.5 and whose sin is 0."""
    def make(f):
        rows = [Dynamic(500)]
        for pairing, dim in (("half", 64), ("interleaved", 34)):
            x = all_numbers(f, kind, rows + [3, dim])
            cos, sin = (f.argument(F32, rows + [dim // 2], np.full((500, dim // 2), n))
                        for n in (1.5, 0.0))
            name = f.new_name()
            f.emit(f"{name} = posenc.rotate {pairing} ins({list_of([x])}) "
                   f"tables({cos.name}, {sin.name} : {cos.type()}) dims = [0] "
                   f"outs({list_of([f.destination(kind, x.shape, x)])})")
            f.give(f.result(kind, x.shape, model.rotate(
                x.value, cos.value, sin.value, [0], pairing, 0), name))
    return make


def table_ties(kind):
    """Tables whose cos at position 0 is 1 plus an odd number of half units."""
    def make(f):
        zeros = f.argument(I64, [Dynamic(40)], np.zeros(40))
        for units in (1, 3, 5, 7):
            freqs = factor_only(34, 1 + units * 2.0 ** -kind.digits)
            for order in ("interleaved", "sin_cos"):
                shape = [zeros.shape[0], 34]
                name = f.new_name()
                f.emit(f"{name} = posenc.sinusoidal {order} {freqs.text()} "
                       f"positions({zeros.name} : {zeros.type()}) "
                       f"outs({list_of([f.empty(kind, shape)])})")
                f.give(f.result(kind, shape, model.sinusoidal(
                    kind, freqs, zeros.value, order), name))
            shape = [zeros.shape[0], 17]
            inits = [f.empty(kind, shape) for _ in range(2)]
            names, left = generate_rope.results_of(f, inits)
            f.emit(f"{left} = posenc.sincos {freqs.text()} "
                   f"positions({zeros.name} : {zeros.type()}) outs({list_of(inits)})")
            for name, value in zip(names, model.tables(kind, freqs, zeros.value)):
                f.give(f.result(kind, shape, value, name))
    return make


def equal_columns(f):
    """bf16 tables with equal columns. All must be rounded alike, including the last of
    an odd number of columns, which is not computed in a pair."""
    positions = f.argument(I64, [Dynamic(70)], np.arange(70) // 2)
    for pairs in (17, 31, 1):
        freqs = Frequencies(2 * pairs, None, Explicit([1.0] * pairs, 1 + 2.0**-8))
        shape = [positions.shape[0], pairs]
        inits = [f.empty(BF16, shape) for _ in range(2)]
        names, left = generate_rope.results_of(f, inits)
        f.emit(f"{left} = posenc.sincos {freqs.text()} "
               f"positions({positions.name} : {positions.type()}) outs({list_of(inits)})")
        for name, value in zip(names, model.tables(BF16, freqs, positions.value)):
            f.give(f.result(BF16, shape, value, name))
    f.notes["equal columns"] = True


def edges(kind):
    """Positions around those beyond which a phase needs more digits, consecutive and
    shuffled."""
    def make(f):
        centers = [c * s for c in (2**31, 2**32, 2**33, 2**40) for s in (1, -1)] + [0]
        numbers = np.concatenate([np.arange(c - 33, c + 34) for c in centers])
        given = [f.argument(I64, [Dynamic(len(numbers))], order)
                 for order in (numbers, f.random.permutation(numbers))]
        freqs = Frequencies(16, 500.0)
        for positions in given:
            rows = positions.shape[0]
            x = f.floats(kind, [rows, 2, 16], "normal")
            f.give(*generate_rope.emit_rope(f, [x], freqs, positions, [0], "half", 0, False))
            name, init = f.new_name(), f.empty(kind, [rows, 16])
            f.emit(f"{name} = posenc.sinusoidal sin_cos {freqs.text()} "
                   f"positions({positions.name} : {positions.type()}) "
                   f"outs({list_of([init])})")
            f.give(f.result(kind, init.shape, model.sinusoidal(
                kind, freqs, positions.value, "sin_cos"), name))
        for center in (2**31, -(2**31), 2**32):
            first = f.scalar(I64, center - 40)
            x = f.floats(kind, [80, 2, 16], "normal")
            f.give(*generate_rope.emit_rope(f, [x], freqs, first, [0], "half", 0, False))
    return make


def algebra(kind):
    """Ropes of ropes, forward and inverse, with and without an attention factor: the
    compiler may fold two into one."""
    def make(f):
        first, second = (f.argument(I64, [Dynamic(30)], f.random.integers(-99, 999, 30))
                         for _ in range(2))
        second.shape = first.shape
        f.header[-1] = f"{second.name}: {second.type()}"
        for factor in (1.0, 1.5):
            freqs = factor_only(16, factor)
            for inverses in ((False, False), (False, True), (True, False), (True, True)):
                for positions in ((first, second), (first, first)):
                    x = f.floats(kind, [first.shape[0], 2, 16], "normal")
                    given = [x]
                    for at, inverse in zip(positions, inverses):
                        given = generate_rope.emit_rope(f, given, freqs, at, [0], "half",
                                                        0, inverse)
                    f.give(*given)
    return make


def conversion_ties(kind):
    """arith.truncf of f32 numbers halfway between two numbers, and of their
    neighbours."""
    def make(f):
        shape = [Dynamic(333), 48]
        odd = f.random.integers(1 << (kind.digits - 1), 1 << kind.digits,
                                (333, 48)) * 2 + 1
        exponent = f.random.integers(-10, 10, odd.shape) - kind.digits
        numbers = np.ldexp((odd * f.random.choice([-1, 1], odd.shape)).astype(Real),
                           exponent)
        numbers *= 1 + f.random.integers(-1, 2, odd.shape) * Real(2) ** -23
        x = f.argument(F32, shape, F32.encode(numbers))
        f.give(generate_mixture.convert(f, x, kind))
        # The same before a rope, with which the truncation may be fused.
        y = generate_mixture.convert(f, x, kind)
        zeros = f.argument(I64, shape[:1], np.zeros(333))
        f.give(*generate_rope.emit_rope(f, [y], factor_only(48, 1.5), zeros, [0],
                                        "half", 0, False))
    return make


def double_rounding(kind):
    """arith.truncf of f64 numbers near a tie, which a rounding to f32 would turn into
    a tie."""
    def make(f):
        shape = [Dynamic(100), 48]
        odd = f.random.integers(1 << (kind.digits - 1), 1 << kind.digits,
                                (100, 48)) * 2 + 1
        numbers = np.ldexp(odd.astype(Real), f.random.integers(-10, 10, odd.shape)
                           - kind.digits)
        numbers *= 1 + f.random.integers(-1, 2, odd.shape) * Real(2) ** -45
        f.give(generate_mixture.convert(f, f.argument(F64, shape, F64.encode(numbers)),
                                        kind))
    return make


def append_ties(kind):
    """kv_append with a rotation by position 0 and the attention factor 1.5."""
    def make(f):
        batch, tokens, slots = Dynamic(3), Dynamic(90), Dynamic(100)
        lengths = np.array([90, 100, 95])
        k, v = (all_numbers(f, kind, [batch, tokens, 4, 64]) for _ in range(2))
        caches = [f.floats(kind, [batch, 4, slots, 64], "normal") for _ in range(2)]
        freqs = factor_only(64, 1.5)
        positions = f.argument(I64, [batch, tokens], np.zeros((3, 90)))
        given = f.argument(I64, [batch], lengths)
        names, left = generate_rope.results_of(f, caches)
        f.emit(f"{left} = posenc.kv_append cache_layout = head_major rotation = "
               f"#posenc.rotation<pairing = half, frequencies = {freqs.text()}> "
               f"ins({list_of([k, v])}) positions({positions.name} : {positions.type()}) "
               f"lengths({given.name} : {given.type()}) outs({list_of(caches)})")
        rotated = model.rope(k.value, freqs, positions.value, [0, 1], "half", 0)
        for name, cache, rows in zip(names, caches, (rotated, v.value)):
            ref, err = cache.value.ref.copy(), cache.value.err.copy()
            for b, n in enumerate(lengths):
                ref[b, :, n - 90 : n] = np.swapaxes(rows.ref[b], 0, 1)
                err[b, :, n - 90 : n] = np.swapaxes(rows.err[b], 0, 1)
            f.give(f.result(kind, cache.shape, Value(kind, ref, err), name))
    return make


def attention(f, kind, queries, lengths, dim, mode, causal=False, region=None,
              keys=None, heads=2, sink=None, masked=False):
    """Attention to KV caches with the given lengths. `keys` changes the first elements
    of a sequence's keys; `sink` is the sink of all heads."""
    g = Generator(f, "decode")
    g.kind, g.dim, g.value_dim, g.mode = kind, dim, dim, mode
    g.slow, g.heads, g.key_heads = False, heads, 1
    g.batch, g.queries = Dynamic(len(lengths)), queries
    g.keys, g.query_layout, g.key_layout = Dynamic(max(lengths)), "token_major", "head_major"
    g.attributes = ["key_layout = head_major", "scale = 1.0"] + ["causal"] * causal
    g.plain(causal=causal, scale=1.0)
    if sink is not None:
        sinks = f.argument(F32, [heads], F32.encode(np.full(heads, Real(sink))))
        g.sinks = sinks.value.ref
        g.operands.append(f"sinks({sinks.name} : {sinks.type()})")
    if region:
        g.region = lambda: region(g)
    used = np.arange(max(lengths))[None, None, :, None] < np.array(lengths)[
        :, None, None, None]
    q = g.tensor([g.batch, queries, heads, dim], "q")
    shape = [g.batch, 1, g.keys, dim]
    numbers = g.numbers(shape, "k")
    if keys is not None:
        numbers[...] = 0
        for b in range(len(lengths)):
            keys(numbers[b, 0, :, 0], b)
    k = f.argument(kind, shape, kind.encode(np.where(used, numbers, np.nan)))
    v = f.random.integers(-128, 129, [len(lengths), 1, max(lengths), dim]) / Real(16)
    v = f.argument(kind, shape, kind.encode(np.where(used, v, np.nan)))
    given = f.argument(I64, [g.batch], np.array(lengths))
    g.operands.append(f"lengths({given.name} : {given.type()})")
    mask = None
    if masked:
        mask = g.float_mask([1, heads, queries, g.keys])
    sequences = [(Sequence(b, q.value.ref[b], k.value.ref[b, 0, :n, None],
                           v.value.ref[b, 0, :n, None],
                           mask=mask if mask is None else mask[0][..., :n]), (b,))
                 for b, n in enumerate(lengths)]
    g.emit(q, k, v, [g.batch, queries, heads, dim], sequences)


def attention_ties(kind, queries, dim):
    """Averages of 2^n values, some of which lie halfway between two numbers."""
    def make(f):
        attention(f, kind, queries, [1, 2, 4, 8, 16, 32, 64, 256, 512, 1024], dim, "zero")
    return make


def causal_tiles(queries):
    """Multi-token decode with many numbers of keys: the causal diagonal crosses key
    tiles at every offset."""
    def make(f):
        attention(f, F32, queries, list(range(queries, 150)), 16, "integers", True)
        attention(f, F32, queries, list(range(queries, 300, 5)), 64, "zero", True)
    return make


def splits(queries, dim):
    """One score far above the others, in each KV split in turn; scores that rise or
    fall from split to split; and a mask that leaves the last splits empty."""
    def make(f):
        lengths = [1280, 1280, 1280, 1280, 1280, 1100, 513, 300]

        def dominant_key(numbers, b):
            numbers[...] = -100 if b % 2 else 0
            numbers[min(7 + 256 * b, lengths[b] - 1)] = 150
        attention(f, F32, queries, lengths, dim, "spikes", keys=dominant_key)

        def slope(numbers, b):
            numbers[...] = np.arange(len(numbers)) // 128 * (-30 if b % 2 else 30)
        attention(f, F32, queries, lengths, dim, "spikes", keys=slope)
        attention(f, F32, queries, lengths, dim, "normal", region=first_keys)
    return make


def split_sinks(queries, dim):
    """A sink that outweighs all keys: counted in more than one KV split, it would
    halve the results."""
    def make(f):
        attention(f, F32, queries, [1280, 1100, 513, 300], dim, "zero", sink=6.5)
    return make


def padded_masks(queries, heads):
    """Masks that end at the end of memory, with fewer queries than vector lanes."""
    def make(f):
        attention(f, F32, queries, [40, 300, 77], 32, "zero", heads=heads, masked=True)
    return make


def first_keys(g):
    g.where = lambda b, h, i, j: (j < 200 + b) & (i == i) & (h >= 0)
    return """    where(%b, %h, %i, %j) {
      %limit = arith.constant 200 : index
      %u = arith.addi %limit, %b : index
      %y = arith.cmpi slt, %j, %u : index
      posenc.yield %y : i1
    }"""


def yarn(base, length, dim):
    def make(f):
        freqs = Frequencies(dim, base, Yarn(40.0, length))
        positions = f.argument(I64, [Dynamic(60)], np.arange(60) * 977)
        inits = [f.empty(F32, [positions.shape[0], dim // 2]) for _ in range(2)]
        names, left = generate_rope.results_of(f, inits)
        f.emit(f"{left} = posenc.sincos {freqs.text()} positions({positions.name} : "
               f"{positions.type()}) outs({list_of(inits)})")
        for name, value in zip(names, model.tables(F32, freqs, positions.value)):
            f.give(f.result(F32, inits[0].shape, value, name))
    return make


TABLES = [make(kind) for kind in (BF16, F16) for make in (
    rope_ties, rotate_ties, conversion_ties, append_ties)] + [table_ties(F16), equal_columns,
    edges(F32), edges(BF16), edges(F64), algebra(F32), algebra(BF16),
    double_rounding(BF16), double_rounding(F16),
    # YaRN with its upper bound beyond the last pair, with both bounds at an end,
    # and with neither.
    yarn(1e4, 131072.0, 64), yarn(1.5, 4096.0, 16), yarn(1e6, 100.0, 64),
    yarn(1e4, 4096.0, 128)]
ATTENTION = [attention_ties(BF16, 1, 64), attention_ties(F16, 1, 64),
             attention_ties(BF16, 16, 40), attention_ties(F16, 3, 40),
             causal_tiles(2), causal_tiles(3), causal_tiles(8),
             splits(1, 64), splits(2, 32), split_sinks(1, 64), split_sinks(3, 32),
             padded_masks(1, 3), padded_masks(3, 3), padded_masks(5, 1),
             padded_masks(19, 2)]
