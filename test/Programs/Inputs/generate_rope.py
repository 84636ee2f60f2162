# ===- generate_rope.py - random ropes and tables --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Random rope, rotate, sincos and sinusoidal ops."""

import numpy as np

import model
from builder import FLOATS, POSITIONS, sizes
from formats import BF16, F16, F32, F64, I32
from phases import Axes, Explicit, Frequencies, Linear, Llama3, Yarn

DIMS = (2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 34, 48, 64, 66, 80, 96, 128, 160, 256)
# Attention factors. Those of few digits give ties of 16-bit types; 1 plus an odd
# number of half units of bf16 or f16 is a tie itself.
FACTORS = (1.5, 0.75, 1.25, 0.5, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-11,
           1 + 3 * 2.0**-11, 1.1, 2.0)


def axes_of(f, pairs):
    count = int(f.random.integers(2, min(5, pairs) + 1))
    cuts = np.sort(f.random.choice(np.arange(1, pairs), count - 1, replace=False))
    sections = np.diff(np.concatenate([[0], cuts, [pairs]]))
    return Axes(f.pick("contiguous", "interleaved", "axial"),
                [int(size) for size in sections])


def frequencies(f, dim, with_axes=False):
    base = f.pick(None, None, 5e5, 1e6, 100.0, 1.5, 12345.678)
    axes = axes_of(f, dim // 2) if with_axes and dim >= 4 else None
    scalings = [None, None, None,
                Linear(f.pick(4.0, 8.0, 2.5)),
                Llama3(8.0, 1.0, 4.0, f.pick(8192.0, 64.0)),
                Yarn(f.pick(4.0, 40.0, 1.0), f.pick(4096.0, 131072.0, 1000.0),
                     beta_fast=f.pick(None, 32.0, 8.0),
                     beta_slow=f.pick(None, 1.0, 2.0),
                     truncate=f.pick(None, True, False),
                     attention_factor=f.pick(None, None, *FACTORS),
                     mscale=f.pick(None, 0.707), mscale_all_dim=f.pick(None, 1.0))]
    if axes is None or axes.layout != "axial":
        values = f.random.uniform(-1, 1, dim // 2) * f.pick(1.0, 100.0)
        values[f.random.random(dim // 2) < 0.2] = 0
        scalings += 2 * [Explicit([float(v) for v in values],
                                  f.pick(None, *FACTORS))]
    scaling = f.pick(*scalings)
    return Frequencies(dim, base, scaling, axes)


def position_numbers(f, kind, shape):
    """Draws positions: consecutive, small, arbitrary, zero, or near powers of two."""
    count = int(np.prod(shape, dtype=np.int64))
    top = 2**31 - 1 if kind is I32 else f.pick(2**31, 2**40, 2**62)
    mode = f.pick("row", "row", "row", "small", "any", "zeros", "some zeros", "edges")
    if mode == "row":
        first = int(f.random.integers(-top // 2, top // 2)) if f.chance(0.3) else int(
            f.random.integers(-100, 5000))
        numbers = first + np.arange(count)
    elif mode == "edges":
        # Near the positions beyond which a phase needs more digits.
        near = f.random.choice([2**31, -(2**31), 2**32, -(2**32), 2**33, 0], count)
        numbers = near + f.random.integers(-3, 4, count)
        if kind is I32:
            numbers = np.clip(numbers, -(2**31), 2**31 - 1)
    elif mode == "any":
        numbers = f.random.integers(-top, top, count)
    else:
        numbers = f.random.integers(-50, 5000, count)
        if mode == "zeros":
            numbers[:] = 0
        elif mode == "some zeros":
            numbers[f.random.random(count) < 0.5] = 0
    return np.asarray(numbers, np.int64).reshape(shape)


def positions_argument(f, grid, axes, kind=None):
    kind = kind or f.pick(*POSITIONS)
    shape = ([len(axes.sections)] if axes else []) + list(grid)
    return f.argument(kind, shape, position_numbers(f, kind, sizes(shape)))


def grid_sizes(f, rank, limit):
    """Draws the sizes of the leading dimensions: one of them is up to `limit`, and
    rarely one is 0."""
    shape = [int(f.random.integers(1, 5)) for _ in range(rank)]
    shape[f.random.integers(rank)] = int(f.random.integers(1, limit))
    if f.chance(0.03):
        shape[f.random.integers(rank)] = 0
    return shape


def head(f, dim):
    """Returns the size of a head and the offset of its rotary window."""
    if f.chance(0.6):
        return dim, 0
    size = dim + int(f.random.integers(1, 24))
    return size, f.pick(0, int(f.random.integers(0, size - dim + 1)), size - dim)


def frequencies_text(freqs):
    axes = f" axes {freqs.axes.text()}" if freqs.axes else ""
    return freqs.text() + axes


def list_of(tensors):
    names = ", ".join(t.name for t in tensors)
    types = ", ".join(t.type() for t in tensors)
    return f"{names} : {types}"


def results_of(f, tensors):
    """Returns the names of an op's results, and the text that declares them."""
    name = f.new_name()
    if len(tensors) == 1:
        return [name], name
    return [f"{name}#{n}" for n in range(len(tensors))], f"{name}:{len(tensors)}"


def emit_rope(f, tensors, freqs, positions, dims, pairing, offset, inverse):
    inits = [f.destination(t.kind, t.shape, t) for t in tensors]
    names, left = results_of(f, tensors)
    f.emit(f"{left} = posenc.rope {pairing} {'inverse ' if inverse else ''}"
           f"{frequencies_text(freqs)} ins({list_of(tensors)}) "
           f"positions({positions.name} : "
           f"{positions.type() if positions.shape else positions.kind.name}) "
           f"dims = [{', '.join(map(str, dims))}] offset = {offset} "
           f"outs({list_of(inits)})")
    given = []
    for name, tensor in zip(names, tensors):
        numbers = positions.value
        if not positions.shape:
            numbers = numbers + np.arange(int(tensor.shape[dims[0]]))
        value = model.rope(tensor.value, freqs, numbers, dims, pairing, offset,
                           inverse)
        given.append(f.result(tensor.kind, tensor.shape, value, name))
    return given


def rope(f, limit=300):
    """A rope of one to three tensors of equal rank, with positions for some of the
    dimensions."""
    kind = f.pick(*FLOATS)
    freqs = frequencies(f, int(f.pick(*DIMS)), f.chance(0.25))
    rank = int(f.random.integers(2, 6))
    grid = grid_sizes(f, rank - 1, limit)
    scalar = freqs.axes is None and f.chance(0.2)
    count = 1 if scalar else int(f.random.integers(1, rank))
    dims = [int(d) for d in f.random.permutation(rank - 1)[:count]]
    if f.chance(0.7):
        dims.sort()
    shape = [f.size(d) for d in grid]
    if scalar:
        number = position_numbers(f, I32, (1,))[0]
        positions = f.scalar(f.pick(*POSITIONS), number)
    else:
        positions = positions_argument(f, [shape[d] for d in dims], freqs.axes)
    mode = f.pick("normal", "wide", "ties", "ties")
    pairing, tensors = f.pick("half", "interleaved"), []
    head_dim, offset = head(f, freqs.dim)
    for _ in range(int(f.pick(1, 1, 2, 3))):
        own = [d if n in dims else f.size(int(f.random.integers(1, 5)))
               for n, d in enumerate(shape)]
        if not tensors:
            own = list(shape)
        tensors.append(f.floats(kind, own + [max(head_dim, offset + freqs.dim)], mode))
    given = emit_rope(f, tensors, freqs, positions, dims, pairing, offset,
                      f.chance(0.2))
    if f.chance(0.15):
        # A second rope, which the compiler may fold into the first.
        again = positions if scalar or f.chance(0.5) else positions_argument(
            f, [shape[d] for d in dims], freqs.axes, positions.kind)
        small = np.abs(again.value).max(initial=0) < 2**61 and np.abs(
            positions.value).max(initial=0) < 2**61
        if small:
            given = emit_rope(f, given, freqs, again, dims, pairing, offset,
                              f.chance(0.5))
    f.give(*given)


def sincos(f, limit=300):
    kind = f.pick(*FLOATS)
    freqs = frequencies(f, int(f.pick(*DIMS)), f.chance(0.25))
    scalar = freqs.axes is None and f.chance(0.3)
    grid = [f.size(d) for d in grid_sizes(f, 1 if scalar else int(
        f.random.integers(1, 4)), limit)]
    positions = (f.scalar(f.pick(*POSITIONS), position_numbers(f, I32, (1,))[0])
                 if scalar else positions_argument(f, grid, freqs.axes))
    shape = grid + [freqs.dim // 2]
    inits = [f.destination(kind, shape) for _ in range(2)]
    names, left = results_of(f, inits)
    f.emit(f"{left} = posenc.sincos {frequencies_text(freqs)} "
           f"positions({positions.name} : "
           f"{positions.type() if positions.shape else positions.kind.name}) "
           f"outs({list_of(inits)})")
    numbers = positions.value
    if scalar:
        numbers = numbers + np.arange(int(grid[0]))
    values = model.tables(kind, freqs, numbers)
    f.give(*(f.result(kind, shape, v, n) for v, n in zip(values, names)))


def sinusoidal(f, limit=300):
    kind = f.pick(*FLOATS)
    freqs = frequencies(f, int(f.pick(*DIMS)))
    scalar = f.chance(0.4)
    grid = [f.size(d) for d in grid_sizes(f, 1 if scalar else int(
        f.random.integers(1, 4)), limit)]
    positions = (f.scalar(f.pick(*POSITIONS), position_numbers(f, I32, (1,))[0])
                 if scalar else positions_argument(f, grid, None))
    shape, order = grid + [freqs.dim], f.pick("interleaved", "sin_cos", "cos_sin")
    init = f.destination(kind, shape)
    name = f.new_name()
    f.emit(f"{name} = posenc.sinusoidal {order} {freqs.text()} "
           f"positions({positions.name} : "
           f"{positions.type() if positions.shape else positions.kind.name}) "
           f"outs({list_of([init])})")
    numbers = positions.value
    if scalar:
        numbers = numbers + np.arange(int(grid[0]))
    f.give(f.result(kind, shape, model.sinusoidal(kind, freqs, numbers, order), name))


def rotate(f, limit=300):
    """A rotation by tables with random numbers. Those of few digits make every second
    sum of 16-bit types a tie."""
    kind = f.pick(*FLOATS)
    narrow = {F64: (F64, F32, F16, BF16)}.get(kind, (F32, F32, F16, BF16))
    table = f.pick(*narrow)
    dim, rank = int(f.pick(*DIMS)), int(f.random.integers(2, 6))
    grid = grid_sizes(f, rank - 1, limit)
    dims = [int(d) for d in f.random.permutation(rank - 1)[
        :int(f.random.integers(1, rank))]]
    shape = [f.size(d) for d in grid]
    head_dim, offset = head(f, dim)
    mode = f.pick("dyadic", "dyadic", "normal", "ties")
    x = [f.floats(kind, shape + [head_dim], f.pick("ties", "dyadic", "normal"))]
    if f.chance(0.3):
        own = [d if n in dims else f.size(int(f.random.integers(1, 5)))
               for n, d in enumerate(shape)]
        x.append(f.floats(kind, own + [head_dim], "normal"))
    rows = [shape[d] for d in dims] + [dim // 2]
    cos, sin = (f.floats(table, rows, mode) for _ in range(2))
    pairing, inverse = f.pick("half", "interleaved"), f.chance(0.2)
    inits = [f.destination(t.kind, t.shape, t) for t in x]
    names, left = results_of(f, x)
    f.emit(f"{left} = posenc.rotate {pairing} {'inverse ' if inverse else ''}"
           f"ins({list_of(x)}) tables({cos.name}, {sin.name} : {cos.type()}) "
           f"dims = [{', '.join(map(str, dims))}] offset = {offset} "
           f"outs({list_of(inits)})")
    for name, tensor in zip(names, x):
        value = model.rotate(tensor.value, cos.value, sin.value, dims, pairing,
                             offset, inverse)
        f.give(f.result(kind, tensor.shape, value, name))
