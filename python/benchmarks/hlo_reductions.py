# ===- hlo_reductions.py - reductions and products of StableHLO -----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Reductions, products and softmax of random programs, with the bounds of their sums."""

import math

import ml_dtypes
import numpy as np

from hlo_elementwise import maximum, minimum
from hlo_moves import make_shape
from hlo_programs import (
    DTYPES, SIZES, Skip, array_text, is_float, is_integer, operation, units)

COMBINERS = {"add": (np.add, 0), "multiply": (np.multiply, 1), "maximum": (maximum, None),
             "minimum": (minimum, None), "and": (np.bitwise_and, -1), "or": (np.bitwise_or, 0)}


def sum_error(count, terms, element):
    """The rounding of a sum of so many terms, by the sum of their absolute values."""
    eps = float(ml_dtypes.finfo(DTYPES[element]).eps)
    tiny = float(ml_dtypes.finfo(DTYPES[element]).smallest_normal)
    return (count + 2) * (eps * terms + tiny)


@operation
def reduce(p):
    x = p.any(min_rank=1)
    dims = sorted(p.rng.sample(range(len(x.dims)), p.rng.randint(1, len(x.dims))))
    names = ["add", "maximum", "minimum", "multiply"]
    if x.element == "i1":
        names = ["and", "or", "maximum", "minimum"]
    elif is_integer(x.element):
        names += ["and", "or"]
    name = p.rng.choice(names)
    info = None if is_float(x.element) or x.element == "i1" else np.iinfo(DTYPES[x.element])
    neutral = {"add": 0, "multiply": 1, "or": 0,
               "and": True if x.element == "i1" else info and (-1 if info.min else info.max),
               "maximum": info.min if info else False if x.element == "i1" else -np.inf,
               "minimum": info.max if info else True if x.element == "i1" else np.inf}[name]
    if p.rng.random() < 0.25 and x.element != "i1":
        neutral = 3
    init = p.constant(neutral, x.element)
    scalar = f"tensor<{x.element}>"
    axes = tuple(dims)

    def compute(sizes, a, b):
        if a.dtype == bool:
            return (np.logical_and if name in ("and", "minimum") else np.logical_or).reduce(
                a, axes, initial=bool(b))
        if is_float(x.element):
            wide, start = a.astype(np.float64), float(b)
            with np.errstate(all="ignore"):
                if name == "add":
                    return wide.sum(axes) + start
                if name == "multiply":
                    return wide.prod(axes) * start
                function = np.maximum if name == "maximum" else np.minimum
                return function.reduce(wide, axes, initial=start)
        with np.errstate(all="ignore"):
            function = {"maximum": np.maximum, "minimum": np.minimum}.get(name) or \
                COMBINERS[name][0]
            return function.reduce(a, axes, dtype=a.dtype, initial=b)

    def error(expected, element, sizes, a, b):
        if not is_float(element) or name in ("maximum", "minimum"):
            return None
        wide = np.abs(a.astype(np.float64))
        count = math.prod(a.shape[i] for i in axes)
        with np.errstate(all="ignore"):
            if name == "multiply":
                bound = sum_error(count, np.abs(expected), element)
                # A product may overflow or underflow on its way.
                large = np.maximum(wide, 1).prod(axes) * max(1, abs(float(b)))
                small = np.minimum(np.where(wide == 0, 1, wide), 1).prod(axes)
                limit = float(ml_dtypes.finfo(DTYPES[element]).max) / 8
                smallest = float(ml_dtypes.finfo(DTYPES[element]).smallest_normal) * 8
                return np.where((large > limit) | (small < smallest), np.inf, bound)
            terms = wide.sum(axes) + abs(float(b))
            return limit_sum(terms, sum_error(count, terms, element), element)
    p.add("reduce", [x, init], x.element,
          [one for i, one in enumerate(x.dims) if i not in dims], compute,
          f"dimensions = {array_text(dims)}",
          f" ({{\n  ^bb0(%u: {scalar}, %v: {scalar}):\n"
          f'    %w = "stablehlo.{name}"(%u, %v) : ({scalar}, {scalar}) -> {scalar}\n'
          f'    "stablehlo.return"(%w) : ({scalar}) -> ()\n  }})', error)


def limit_sum(terms, bound, element):
    """A sum whose terms may overflow on their way may be anything."""
    largest = float(ml_dtypes.finfo(DTYPES[element]).max) / 8
    return np.where((terms > largest) & np.isfinite(terms), np.inf, bound)


@operation
def dot_general(p):
    x = p.any(["f32", "f32", "f16", "bf16", "f64", "i8", "i32", "i64", "ui8"], min_rank=1)
    batch = p.rng.randint(0, min(2, len(x.dims) - 1))
    order = list(range(len(x.dims)))
    p.rng.shuffle(order)
    number = p.rng.choice([1, 1, 1, 2]) if len(x.dims) - batch > 1 else 1
    left_batch, left_sum = order[:batch], order[batch:batch + number]
    kept = [i for i in range(len(x.dims)) if i not in left_batch + left_sum]
    free = [p.draw_dim() for _ in range(p.rng.choice([0, 1, 1, 2]))]
    if len(free) + batch + len(kept) > 4 or len(free) + batch + number > 4:
        raise Skip
    # The dimensions of the other operand, in any order.
    roles = [("batch", i) for i in left_batch] + [("sum", i) for i in left_sum] + \
        [("free", i) for i in range(len(free))]
    if p.rng.random() < 0.6:
        p.rng.shuffle(roles)
    dims = tuple(free[i] if kind == "free" else x.dims[i] for kind, i in roles)
    if any(math.prod(dim.size(sizes) for dim in dims) > 30000 for sizes in SIZES):
        raise Skip
    y = p.pick(lambda one: one.element == x.element and one.dims == dims,
               lambda: p.argument(x.element, dims))
    right_batch = [roles.index(("batch", i)) for i in left_batch]
    right_sum = [roles.index(("sum", i)) for i in left_sum]
    right_free = [roles.index(("free", i)) for i in range(len(free))]
    right_free.sort()
    wider = {"f16": ["f16", "f32"], "bf16": ["bf16", "f32"], "i8": ["i8", "i32"],
             "ui8": ["ui8"]}
    element = p.rng.choice(wider.get(x.element, [x.element]))
    result = [x.dims[i] for i in left_batch] + [x.dims[i] for i in kept] + \
        [dims[i] for i in right_free]

    def einsum(a, b):
        left = list(range(a.ndim))
        right = [100] * b.ndim
        for i, j in zip(left_batch + left_sum, right_batch + right_sum):
            right[j] = i
        for place, j in enumerate(right_free):
            right[j] = 20 + place
        return np.einsum(a, left, b, right, left_batch + kept + [right[j] for j in right_free])

    def compute(sizes, a, b):
        with np.errstate(all="ignore"):
            if is_float(element):
                return einsum(a.astype(np.float64), b.astype(np.float64))
            return einsum(a.astype(DTYPES[element]), b.astype(DTYPES[element]))

    def error(expected, element, sizes, a, b):
        if not is_float(element):
            return None
        with np.errstate(all="ignore"):
            terms = einsum(np.abs(a.astype(np.float64)), np.abs(b.astype(np.float64)))
        count = math.prod(a.shape[i] for i in left_sum)
        return limit_sum(terms, sum_error(count, terms, element), element)
    p.add("dot_general", [x, y], element, result, compute,
          "dot_dimension_numbers = #stablehlo.dot<"
          f"lhs_batching_dimensions = {left_batch}, rhs_batching_dimensions = {right_batch}, "
          f"lhs_contracting_dimensions = {left_sum}, "
          f"rhs_contracting_dimensions = {right_sum}>", error=error)


# Spellings that the compiler looks for.


@operation
def softmax(p):
    x = p.any(["f32", "f16", "bf16"], min_rank=1)
    before = p.fills.copy()
    dim = len(x.dims) - 1
    kept = x.dims[:-1]
    scalar = f"tensor<{x.element}>"

    def region(name):
        return (f" ({{\n  ^bb0(%u: {scalar}, %v: {scalar}):\n"
                f'    %w = "stablehlo.{name}"(%u, %v) : ({scalar}, {scalar}) -> {scalar}\n'
                f'    "stablehlo.return"(%w) : ({scalar}) -> ()\n  }})')

    def spread(value):
        places = array_text(range(dim))
        operands, name = [value], "broadcast_in_dim"
        if not x.is_static:
            operands, name = [value, make_shape(p, x.dims)], "dynamic_broadcast_in_dim"
        return p.add(name, operands, x.element, x.dims,
                     lambda sizes, a, *_: np.broadcast_to(a[..., None], x.shape(sizes)),
                     f"broadcast_dimensions = {places}")

    def reduce_error(expected, element, sizes, a, b):
        terms = np.abs(a.astype(np.float64)).sum(-1)
        return limit_sum(terms, sum_error(a.shape[-1], terms, element), element)
    low = p.constant(-np.inf, x.element)
    zero = p.constant(0, x.element)
    top = p.add("reduce", [x, low], x.element, kept,
                lambda sizes, a, b: np.maximum.reduce(a.astype(float), -1, initial=-np.inf),
                f"dimensions = {array_text([dim])}", region("maximum"))
    moved = p.add("subtract", [x, spread(top)], x.element, x.dims,
                  lambda sizes, a, b: a.astype(float) - b.astype(float))
    exp = p.add("exponential", [moved], x.element, x.dims,
                lambda sizes, a: np.exp(a.astype(float)), error=units(4))
    total = p.add("reduce", [exp, zero], x.element, kept,
                  lambda sizes, a, b: a.astype(float).sum(-1),
                  f"dimensions = {array_text([dim])}", region("add"), reduce_error)
    p.add("divide", [exp, spread(total)], x.element, x.dims,
          lambda sizes, a, b: a.astype(float) / b.astype(float))
    p.fills = {**before, **p.fills}
