# ===- hlo_moves.py - operations of StableHLO that move elements ----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Operations of random programs that move elements, or make them of indices and numbers."""

import math

import numpy as np

from hlo_programs import (
    DTYPES, FLOATS, INTEGERS, SIZES, Dim, Skip, Value, array_text, operation)

@operation
def iota(p):
    element = p.rng.choice(["f32", "i32", "i64", "i8", "f16", "ui8"])
    rank = p.rng.choice([1, 2, 3])
    dims = tuple(Dim(p.rng.choice([1, 3, 5, 8])) for _ in range(rank))
    dim = p.rng.randrange(rank)

    def compute(sizes):
        shape = tuple(one.size(sizes) for one in dims)
        index = np.arange(shape[dim]).reshape([-1 if i == dim else 1 for i in range(rank)])
        return np.broadcast_to(index, shape).astype(DTYPES[element])
    p.add("iota", [], element, dims, compute, f"iota_dimension = {dim} : i64")


@operation
def constant(p):
    element = p.rng.choice([*FLOATS, *INTEGERS, "i1"])
    dims = tuple(Dim(p.rng.choice([1, 2, 3, 5])) for _ in range(p.rng.choice([0, 1, 2])))
    value = Value("%c", element, dims)
    p.fills[value.name] = p.rng.choice(["numbers", "special"])
    p.rng_seed = p.rng.randrange(1 << 30)
    p.constant(p.draw_numbers(value, SIZES[0], 0), element)


@operation
def broadcast(p):
    x = p.any()
    rank = len(x.dims) + p.rng.choice([0, 1, 1, 2])
    if rank > 4 or not rank:
        raise Skip
    places = sorted(p.rng.sample(range(rank), len(x.dims)))
    dims = [Dim(p.rng.choice([1, 2, 3, 6])) for _ in range(rank)]
    for place, dim in zip(places, x.dims):
        dims[place] = Dim(p.rng.choice([1, 4, 5])) if dim == Dim(1) else dim
    if any(not dim.is_static for dim in dims):
        shape = make_shape(p, dims)
        operands, name = [x, shape], "dynamic_broadcast_in_dim"
    else:
        operands, name = [x], "broadcast_in_dim"

    def compute(sizes, a, *_):
        shape = [dim.size(sizes) for dim in dims]
        inner = [1] * rank
        for place, size in zip(places, a.shape):
            inner[place] = size
        return np.broadcast_to(a.reshape(inner), shape)
    p.add(name, operands, x.element, dims, compute,
          f"broadcast_dimensions = {array_text(places)}")


def make_shape(p, dims):
    """A tensor with the sizes of dimensions, computed from those of values."""
    parts = []
    for dim in dims:
        if dim.is_static:
            parts.append(p.constant([dim.constant], "i32"))
            continue
        owner = next((value, at) for value in reversed(p.values())
                     for at, one in enumerate(value.dims) if one == dim)
        size = p.add("get_dimension_size", [owner[0]], "i32", (),
                     lambda sizes, a, at=owner[1]: np.int32(a.shape[at]),
                     f"dimension = {owner[1]} : i64")
        parts.append(p.add("reshape", [size], "i32", (Dim(1),),
                           lambda sizes, a: a.reshape(1)))
    if len(parts) == 1:
        return parts[0]
    return p.add("concatenate", parts, "i32", (Dim(len(parts)),),
                 lambda sizes, *all: np.concatenate(all), "dimension = 0 : i64")


@operation
def reshape(p):
    x = p.any()
    dims = list(x.dims)
    way = p.rng.choice(["insert", "merge", "split", "drop", "flat"])
    if way == "insert" and len(dims) < 4:
        dims.insert(p.rng.randint(0, len(dims)), Dim(1))
    elif way == "drop" and Dim(1) in dims:
        dims.remove(Dim(1))
    elif way == "split":
        places = [i for i, dim in enumerate(dims) if dim.is_static and dim.constant in (4, 8)]
        if not places or len(dims) > 3:
            raise Skip
        at = p.rng.choice(places)
        dims[at:at + 1] = [Dim(2), Dim(dims[at].constant // 2)]
    elif way == "merge" and len(dims) >= 2:
        at = p.rng.randrange(len(dims) - 1)
        if not (dims[at].is_static and dims[at + 1].is_static):
            raise Skip
        dims[at:at + 2] = [Dim(dims[at].constant * dims[at + 1].constant)]
    elif way == "flat" and x.is_static:
        dims = [Dim(math.prod(dim.constant for dim in dims))]
    else:
        raise Skip
    operands, name = [x], "reshape"
    if any(not dim.is_static for dim in dims):
        operands, name = [x, make_shape(p, dims)], "dynamic_reshape"
    p.add(name, operands, x.element, dims,
          lambda sizes, a, *_: a.reshape([dim.size(sizes) for dim in dims]))


@operation
def transpose(p):
    x = p.any(min_rank=2)
    order = list(range(len(x.dims)))
    p.rng.shuffle(order)
    p.add("transpose", [x], x.element, [x.dims[i] for i in order],
          lambda sizes, a: a.transpose(order), f"permutation = {array_text(order)}")


@operation
def slice_(p):
    x = p.any(min_rank=1)
    if not x.is_static:
        raise Skip
    starts, limits, strides = [], [], []
    for dim in x.dims:
        start = p.rng.randint(0, dim.constant) if p.rng.random() < 0.5 else 0
        limit = p.rng.randint(start, dim.constant) if p.rng.random() < 0.5 else dim.constant
        starts.append(start)
        limits.append(limit)
        strides.append(p.rng.choice([1, 1, 1, 2, 3]))
    dims = [Dim(-(-(b - a) // s)) for a, b, s in zip(starts, limits, strides)]
    p.add("slice", [x], x.element, dims,
          lambda sizes, a: a[tuple(map(slice, starts, limits, strides))],
          f"start_indices = {array_text(starts)}, limit_indices = {array_text(limits)}, "
          f"strides = {array_text(strides)}")


@operation
def concatenate(p):
    x = p.any(min_rank=1)
    dim = p.rng.randrange(len(x.dims))
    parts = [x]
    for _ in range(p.rng.choice([1, 1, 2])):
        parts.append(p.pick(
            lambda one: one.element == x.element and len(one.dims) == len(x.dims) and all(
                i == dim or one.dims[i] == x.dims[i] for i in range(len(x.dims))),
            lambda: p.argument(x.element, [p.draw_dim() if i == dim else one
                                           for i, one in enumerate(x.dims)]), 0.4))
    total = parts[0].dims[dim]
    for part in parts[1:]:
        total = total + part.dims[dim]
    p.add("concatenate", parts, x.element,
          [total if i == dim else one for i, one in enumerate(x.dims)],
          lambda sizes, *all: np.concatenate(all, dim), f"dimension = {dim} : i64")


@operation
def pad(p):
    x = p.any(min_rank=1)
    low, high, dims = [], [], []
    for dim in x.dims:
        lowest = -(dim.constant // 2) if dim.is_static else 0
        low.append(p.rng.randint(lowest, 3))
        high.append(p.rng.randint(lowest, 3))
        dims.append(Dim(dim.constant + low[-1] + high[-1], dim.symbols))
    fill = p.constant(p.rng.choice([0, 1, 3]), x.element)

    def compute(sizes, a, b):
        for axis, (before, after) in enumerate(zip(low, high)):
            end = a.shape[axis] + min(after, 0)
            index = [slice(None)] * a.ndim
            index[axis] = slice(max(-before, 0), end)
            a = a[tuple(index)]
        result = np.full([n + max(x, 0) + max(y, 0) for n, x, y in zip(a.shape, low, high)],
                         b, a.dtype)
        result[tuple(slice(max(x, 0), max(x, 0) + n) for n, x in zip(a.shape, low))] = a
        return result
    p.add("pad", [x, fill], x.element, dims, compute,
          f"edge_padding_low = {array_text(low)}, edge_padding_high = {array_text(high)}, "
          f"interior_padding = {array_text([0] * len(dims))}")


@operation
def reverse(p):
    x = p.any(min_rank=1)
    dims = sorted(p.rng.sample(range(len(x.dims)), p.rng.randint(1, len(x.dims))))
    p.add("reverse", [x], x.element, x.dims, lambda sizes, a: np.flip(a, dims),
          f"dimensions = {array_text(dims)}")


def draw_starts(p, x, counts):
    """An index for each dimension, of which some are outside."""
    element = p.rng.choice(["i32", "i64", "i8", "ui8"])
    return [p.argument(element, (), fill=str(p.rng.choice([0, 3, 9]))) for _ in x.dims]


def clamp_starts(starts, shape, counts):
    return [int(min(max(int(s), 0), n - c)) for s, n, c in zip(starts, shape, counts)]


@operation
def dynamic_slice(p):
    x = p.any(min_rank=1)
    if not x.is_static or not all(dim.constant for dim in x.dims):
        raise Skip
    counts = [p.rng.randint(1, dim.constant) for dim in x.dims]
    starts = draw_starts(p, x, counts)

    def compute(sizes, a, *at):
        at = clamp_starts(at, a.shape, counts)
        return a[tuple(slice(s, s + c) for s, c in zip(at, counts))]
    p.add("dynamic_slice", [x, *starts], x.element, map(Dim, counts), compute,
          f"slice_sizes = {array_text(counts)}")


@operation
def dynamic_update_slice(p):
    x = p.any(min_rank=1)
    if not x.is_static or not all(dim.constant for dim in x.dims):
        raise Skip
    counts = [p.rng.randint(1, dim.constant) for dim in x.dims]
    dims = tuple(map(Dim, counts))
    y = p.pick(lambda one: one.element == x.element and one.dims == dims,
               lambda: p.argument(x.element, dims))
    starts = draw_starts(p, x, counts)

    def compute(sizes, a, b, *at):
        at, result = clamp_starts(at, a.shape, counts), a.copy()
        result[tuple(slice(s, s + c) for s, c in zip(at, counts))] = b
        return result
    p.add("dynamic_update_slice", [x, y, *starts], x.element, x.dims, compute)


@operation
def gather(p):
    """Rows along one dimension, whose indices are clamped."""
    x = p.any(min_rank=1)
    dim = p.rng.randrange(len(x.dims))
    if not all(one.is_static and one.constant for one in x.dims):
        raise Skip
    element = p.rng.choice(["i32", "i64", "i8", "ui8"])
    lists = p.draw_dims(p.rng.choice([1, 1, 2]))
    indices = p.argument(element, (*lists, Dim(1)),
                         fill=str(p.rng.choice([x.dims[dim].constant + 1, 3])))
    rest = [i for i in range(len(x.dims)) if i != dim]
    dims = [*lists, *(x.dims[i] for i in rest)]
    counts = [1 if i == dim else one.constant for i, one in enumerate(x.dims)]
    offsets = list(range(len(lists), len(dims)))

    def compute(sizes, a, at):
        at = np.clip(at[..., 0].astype(np.int64), 0, a.shape[dim] - 1)
        return np.moveaxis(np.take(a, at, dim), range(dim, dim + at.ndim), range(at.ndim))
    p.add("gather", [x, indices], x.element, dims, compute,
          "dimension_numbers = #stablehlo.gather<"
          + (f"offset_dims = {offsets}, " if offsets else "")
          + f"collapsed_slice_dims = [{dim}], start_index_map = [{dim}], "
          f"index_vector_dim = {len(lists)}>, slice_sizes = {array_text(counts)}, "
          "indices_are_sorted = false")
