# ===- onnx_operators.py - how operators of ONNX are drawn -----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Generators of the operators of ONNX, which this module adds to GENERATORS."""

import numpy as np
from onnx import helper, numpy_helper

from onnx_graphs import FLOATS, INTEGERS, PROTOS, SIZES, TYPES, Skip, Value, operator


@operator("Abs", "Neg", "Sign", "Relu", "Floor", "Ceil", "Round")
def exact_unary(g, op):
    kinds = {"f32", "f16", "f64"}
    if op in ("Abs", "Sign", "Neg") or op == "Relu" and g.opset >= 14:
        kinds |= {"i32", "i64", "i8"}
    g.emit(op, [g.pick(kinds, exact=True)], exact=True)


@operator("Exp", "Log", "Sqrt", "Reciprocal", "Sin", "Cos", "Tanh", "Sigmoid", "Erf",
          "Softplus", "Softsign", "HardSwish", "Mish", "Identity")
def unary(g, op):
    g.emit(op, [g.pick(FLOATS)], exact=op == "Identity")


@operator("Elu", "Celu", "LeakyRelu", "Selu", "HardSigmoid", "ThresholdedRelu", "Gelu")
def unary_with_attributes(g, op):
    attributes = {}
    if op == "Gelu":
        attributes["approximate"] = g.rng.choice(["none", "tanh", None])
    else:
        if g.rng.random() < .7:
            attributes["alpha"] = g.rng.choice([.5, 1.0, 2.0, .1])
        if op in ("Selu",) and g.rng.random() < .5:
            attributes["gamma"] = 1.5
        if op == "HardSigmoid" and g.rng.random() < .5:
            attributes["beta"] = .25
    g.emit(op, [g.pick({"f32"}, exact=op == "ThresholdedRelu")], **attributes)


@operator("Add", "Sub", "Mul", "Max", "Min", "Sum", "Mean", "PRelu")
def binary(g, op):
    kinds = {"f32", "f16", "f64"}
    if op in ("Add", "Sub", "Mul"):
        kinds |= {"i32", "i64"}
        if g.opset >= 14:
            kinds |= {"i8"}
    if op in ("Max", "Min") and g.opset >= 12:
        kinds |= {"i32", "i64", "i8"}
    a = g.pick(kinds, finite=op in ("Max", "Min"))
    b = g.partner(a)
    if op in ("Max", "Min") and not np.isfinite(b.array.astype(float)).all():
        raise Skip("NaN of extrema")
    order = [a, b] if op == "PRelu" or g.rng.random() < .5 else [b, a]
    if op in ("Max", "Min", "Sum", "Mean") and g.rng.random() < .3:
        order.append(g.partner(a))
    exact = op in ("Max", "Min")
    g.emit(op, order, exact=exact)


@operator("Div", "Mod", "Pow")
def division(g, op):
    kinds = {"f32", "f16", "f64", "i32", "i64"} if op != "Pow" else {"f32", "f64"}
    has_form = op == "Pow" and g.rng.random() < .4
    a = g.pick(kinds, exact=op == "Mod", finite=op != "Div" and not has_form)
    if has_form:
        # Exponents with a form of their own, of any base.
        exponent = g.rng.choice([-1, -.5, 0, 2, 3, 4])
        return g.emit(op, [a, g.constant(np.asarray(exponent, a.array.dtype))])
    b = g.partner(a)
    x, y = np.broadcast_arrays(a.array, b.array)
    attributes = {}
    if a.type in INTEGERS:
        info = np.iinfo(a.array.dtype)
        if (y == 0).any() or ((y == -1) & (x == info.min)).any():
            raise Skip("undefined")
        if op == "Div" and g.opset < 7:
            raise Skip("opset")
    elif op == "Mod":
        attributes["fmod"] = 1
        if not b.is_exact or not np.isfinite(y).all() or (y == 0).any():
            raise Skip("undefined")
    if op == "Mod" and a.type in INTEGERS and g.rng.random() < .4:
        attributes["fmod"] = 1
    if op == "Pow" and (x <= 0).any():
        raise Skip("undefined")
    return g.emit(op, [a, b], **attributes)


@operator("And", "Or", "Xor")
def logical(g, op):
    a = g.pick({"bool"})
    g.emit(op, [a, g.partner(a)], exact=True)


@operator("Not")
def negation(g, op):
    g.emit(op, [g.pick({"bool"})], exact=True)


@operator("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
def comparison(g, op):
    kinds = {"i32", "i64"} if op == "Equal" and g.opset < 11 else \
        {"f32", "f64"} if g.opset < 9 else {"f32", "i32", "i64", "f64"}
    a = g.pick(kinds, exact=True)
    b = g.partner(a)
    if not b.is_exact:
        raise Skip("rounded")
    g.emit(op, [a, b], exact=True)


@operator("IsNaN", since=9)
def is_nan(g, op):
    g.emit(op, [g.pick({"f32", "f16"}, exact=True)], exact=True)


@operator("IsInf", since=10)
def is_inf(g, op):
    g.emit(op, [g.pick({"f32"}, exact=True)], exact=True,
           detect_negative=g.rng.choice([None, 0, 1]),
           detect_positive=g.rng.choice([None, 0, 1]))


@operator("Where", since=9)
def where(g, op):
    a = g.pick({"f32", "i64", "i32", "f16"})
    b = g.partner(a)
    shape = np.broadcast_shapes(a.shape, b.shape)
    shape = tuple(1 if g.rng.random() < .3 else n for n in shape[g.rng.randint(0, 1):])
    condition = g.add_input("bool", shape)
    g.emit(op, [condition, *g.rng.sample([a, b], 2)], exact=True)


@operator("Cast")
def cast(g, op):
    a = g.pick(set(TYPES), exact=True, finite=True)
    to = g.rng.choice(sorted(TYPES))
    if a.type in FLOATS and to in (*INTEGERS, "u8"):
        info = np.iinfo(TYPES[to])
        x = np.trunc(a.array.astype(float))
        if ((x < info.min) | (x >= float(info.max))).any():
            raise Skip("undefined")
    g.emit(op, [a], exact=to in INTEGERS or to in ("bool", "u8", "f64") or
           a.type in ("i8", "bool", "u8"), to=PROTOS[to])


@operator("CastLike", since=15)
def cast_like(g, op):
    a = g.pick({"i32", "i64", "bool", "i8", "u8"})
    g.emit(op, [a, g.pick(set(TYPES))], exact=a.type in ("i8", "bool", "u8"))


@operator("Clip")
def clip(g, op):
    a = g.pick({"f32"} if g.opset < 12 else {"f32", "i64", "i32", "f16"})
    low, high = sorted(g.rng.sample(range(-20, 20), 2))
    low = g.rng.choice([low, None])
    high = g.rng.choice([high, None])
    if g.opset < 11:
        return g.emit(op, [a], exact=True, min=None if low is None else float(low),
                      max=None if high is None else float(high))
    dtype = a.array.dtype
    bounds = [None if x is None else g.constant(np.asarray(x, dtype)) for x in (low, high)]
    while bounds and bounds[-1] is None:
        bounds.pop()
    return g.emit(op, [a, *bounds], exact=True)


# Sums and extrema -------------------------------------------------------------------


@operator("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
          "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
def reduction(g, op):
    kinds = {"f32", "f64"}
    if op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceMean"):
        kinds |= {"i32", "i64"}
    a = g.pick(kinds, finite=True)
    axes = None if g.rng.random() < .2 else g.some_axes(a)
    if axes == []:
        axes = None
    if op in ("ReduceMax", "ReduceMin", "ReduceMean", "ReduceLogSum", "ReduceLogSumExp") and \
            a.array.size == 0:
        raise Skip("the maximum of nothing")
    if op == "ReduceLogSum" and (a.array <= 0).any():
        raise Skip("undefined")
    keep = g.rng.choice([None, 0, 1])
    since = 13 if op == "ReduceSum" else 18
    exact = op in ("ReduceMax", "ReduceMin")
    if g.opset < since:
        return g.emit(op, [a], exact=exact, axes=axes, keepdims=keep)
    inputs = [a] if axes is None else [a, g.indices(axes)]
    noop = g.rng.choice([None, 0, 1])
    if axes is None and g.rng.random() < .5:
        inputs = [a, g.indices([])]
    return g.emit(op, inputs, exact=exact, keepdims=keep, noop_with_empty_axes=noop)


@operator("ArgMax", "ArgMin")
def arg_extremum(g, op):
    a = g.pick({"f32", "i32", "f16"}, rank=lambda r: r > 0, exact=True, finite=True)
    g.emit(op, [a], exact=True, axis=g.rng.choice([None, g.axis(a)]),
           keepdims=g.rng.choice([None, 0, 1]),
           select_last_index=g.rng.choice([None, 0, 1]) if g.opset >= 12 else None)


@operator("Softmax", "LogSoftmax", "Hardmax")
def softmax(g, op):
    a = g.pick({"f32", "f64"}, rank=lambda r: r > 0, finite=True, exact=op == "Hardmax")
    g.emit(op, [a], axis=g.rng.choice([None, g.axis(a)]), exact=op == "Hardmax")


@operator("CumSum", since=11)
def cum_sum(g, op):
    a = g.pick({"f32", "i32", "i64"}, rank=lambda r: r > 0, finite=True)
    axis = g.constant(np.asarray(g.axis(a), np.int64))
    g.emit(op, [a, axis], exclusive=g.rng.choice([None, 1]), reverse=g.rng.choice([None, 1]))


@operator("MatMul")
def matmul(g, op):
    a = g.pick({"f32", "f64", "i32"} if g.opset >= 9 else {"f32"}, rank=lambda r: r > 0,
               finite=True)
    k, n = a.shape[-1], g.rng.choice(SIZES)
    shape = [k] if g.rng.random() < .2 else [k, n]
    if len(shape) == 2 and a.rank > 2 and g.rng.random() < .5:
        shape = [g.rng.choice([1, size]) for size in a.shape[:-2]] + shape
    if len(shape) == 2 and g.rng.random() < .2:
        shape = [g.rng.choice(SIZES)] * (a.rank <= 2) + shape
    b = g.add_input(a.type, tuple(shape))
    g.emit(op, [a, b])


@operator("Gemm")
def gemm(g, op):
    a = g.pick({"f32"}, rank=2, finite=True)
    trans_a, trans_b = g.rng.choice([None, 0, 1]), g.rng.choice([None, 0, 1])
    k, m = a.shape if trans_a else a.shape[::-1]
    n = g.rng.choice(SIZES)
    b = g.add_input("f32", (n, k) if trans_b else (k, n))
    inputs = [a, b]
    if g.opset < 11 or g.rng.random() < .7:
        shape = g.rng.choice([(m, n), (n,), (1, n), (m, 1), (1, 1), ()])
        inputs.append(g.add_input("f32", shape))
    g.emit(op, inputs, transA=trans_a, transB=trans_b, alpha=g.rng.choice([None, .5, 2.0]),
           beta=g.rng.choice([None, .25, 2.0]))


@operator("Einsum", since=12)
def einsum(g, op):
    """An equation of one to three operands, with an ellipsis, letters that are summed,
    repeated or broadcast, and with or without a result."""
    first = g.pick({"f32", "f64", "i32", "i64"}, finite=True)
    letters = g.rng.sample("abcdefgzABZ", 8)
    shared = first.shape[:g.rng.randint(0, first.rank)] if g.rng.random() < .3 else ()
    has_ellipsis = bool(shared) or g.rng.random() < .1
    sizes, terms, inputs = {}, [], [first]
    terms.append(letters[:first.rank - len(shared)])
    sizes.update(zip(terms[0], first.shape[len(shared):]))
    for i, one in enumerate(terms[0]):
        same = [x for x in terms[0][:i] if sizes[x] == sizes[one]]
        if same and g.rng.random() < .2:
            terms[0][i] = g.rng.choice(same)
    used = set(terms[0])
    for _ in range(g.rng.choice([0, 1, 1, 1, 2])):
        term = g.rng.sample(letters, g.rng.randint(0, 2))
        term += g.rng.sample(sorted(used), min(len(used), g.rng.randint(0, 3)))
        term = list(dict.fromkeys(term))
        g.rng.shuffle(term)
        for x in term:
            sizes.setdefault(x, g.rng.choice(SIZES))
        outer = tuple(g.rng.choice([n, 1]) for n in shared[g.rng.randint(0, len(shared)):])
        shape = outer + tuple(1 if g.rng.random() < .1 else sizes[x] for x in term)
        if np.prod(shape) > 4000 or len(term) + len(shared) > 6:
            raise Skip("too large")
        terms.append(term)
        inputs.append(g.add_input(first.type, shape))
        used |= set(term)
    if np.prod([sizes[x] for x in used]) * np.prod(shared) > 20000:
        raise Skip("too large")
    dots = "..." * has_ellipsis
    space = g.rng.choice(["", " "])
    text = (space + "," + space).join(dots + "".join(term) for term in terms)
    if g.rng.random() < .8:
        kept = g.rng.sample(sorted(used), g.rng.randint(0, min(len(used), 4)))
        text += space + "->" + dots + "".join(kept)
    g.emit(op, inputs, equation=text)


# Moves --------------------------------------------------------------------------------

ANY = {"f32", "i64", "i32", "f16", "bool", "u8"}


@operator("Transpose")
def transpose(g, op):
    a = g.pick(ANY)
    perm = list(range(a.rank))
    g.rng.shuffle(perm)
    g.emit(op, [a], exact=True, perm=g.rng.choice([perm, None]) if a.rank else None)


@operator("Reshape")
def reshape(g, op):
    a = g.pick(ANY)
    size, shape, left = a.array.size, [], a.array.size
    if size == 0 or g.rng.random() < .3:
        shape = [0] * a.rank
        if a.rank and g.rng.random() < .6:
            shape[g.rng.randrange(a.rank)] = -1 if size else 0
    else:
        while left > 1 and len(shape) < 3:
            factor = g.rng.choice([f for f in range(1, left + 1) if left % f == 0])
            shape.append(factor)
            left //= factor
        shape.append(left)
        if g.rng.random() < .6:
            shape[g.rng.randrange(len(shape))] = -1
    g.emit(op, [a, g.integers(shape)], exact=True,
           allowzero=g.rng.choice([None, 0]) if g.opset >= 14 else None)


@operator("Flatten")
def flatten(g, op):
    a = g.pick({"f32", "i64"} if g.opset >= 9 else {"f32"})
    g.emit(op, [a], exact=True,
           axis=g.rng.choice([None, g.rng.randint(0, a.rank)]) if a.rank else None)


@operator("Squeeze")
def squeeze(g, op):
    a = g.pick(ANY)
    ones = [i for i, n in enumerate(a.shape) if n == 1]
    axes = g.rng.sample(ones, g.rng.randint(1, len(ones))) if ones else None
    if g.rng.random() < .2:
        axes = None
    if g.opset < 13:
        return g.emit(op, [a], exact=True, axes=axes)
    return g.emit(op, [a] if axes is None else [a, g.indices(axes)], exact=True)


@operator("Unsqueeze")
def unsqueeze(g, op):
    a = g.pick(ANY, rank=lambda r: r < 4)
    axes = sorted(g.rng.sample(range(a.rank + 1), 1))
    if g.rng.random() < .4:
        axes = g.rng.sample(range(a.rank + 2), 2)
        axes = axes if g.opset >= 13 else sorted(axes)
    if g.opset < 13:
        return g.emit(op, [a], exact=True, axes=axes)
    if g.rng.random() < .4:
        axes = [x - a.rank - len(axes) for x in axes]
    return g.emit(op, [a, g.indices(axes)], exact=True)


@operator("Concat")
def concat(g, op):
    a = g.pick(ANY, rank=lambda r: r > 0)
    axis = g.axis(a)
    parts = [a]
    for _ in range(g.rng.randint(1, 2)):
        shape = list(a.shape)
        shape[axis] = g.rng.choice(SIZES)
        parts.append(g.add_input(a.type, tuple(shape)))
    g.rng.shuffle(parts)
    g.emit(op, parts, exact=True, axis=axis)


@operator("Split")
def split(g, op):
    a = g.pick(ANY, rank=lambda r: r > 0)
    axis = g.axis(a)
    size = a.shape[axis]
    cuts = sorted(g.rng.randint(0, size) for _ in range(g.rng.randint(0, 2)))
    parts = [int(x) for x in np.diff([0, *cuts, size])]
    keep_axis = g.rng.choice([axis, None]) if axis == 0 else axis
    if g.rng.random() < .4:
        count = g.rng.randint(1, 3)
        if size == 0 or g.opset < 18 and size % count:
            raise Skip("unequal parts")
        return g.emit(op, [a], exact=True, results=count, axis=keep_axis,
                      num_outputs=count if g.opset >= 18 else None)
    if g.opset < 13:
        return g.emit(op, [a], exact=True, results=len(parts), axis=keep_axis, split=parts)
    return g.emit(op, [a, g.integers(parts)], exact=True, results=len(parts),
                  axis=keep_axis)


@operator("Slice")
def slice_(g, op):
    a = g.pick(ANY, rank=lambda r: r > 0)
    axes = g.some_axes(a)
    starts, ends, steps = [], [], []
    for axis in axes:
        n = a.shape[axis]
        step = g.rng.choice([1, 1, 2, 3, -1, -2]) if g.opset >= 10 else 1
        start, end = g.rng.randint(-n - 2, n + 2), g.rng.randint(-n - 2, n + 2)
        if g.rng.random() < .2:
            end = 2**63 - 1 if step > 0 else -(2**63 - 1)
        starts.append(start)
        ends.append(end)
        steps.append(step)
    if g.opset < 10:
        return g.emit(op, [a], exact=True, axes=axes, starts=starts, ends=ends)
    kind = g.rng.choice([np.int64, np.int32])
    if kind is np.int32:
        ends = [max(-2**31, min(e, 2**31 - 1)) for e in ends]
    inputs = [a, g.integers(starts, kind), g.integers(ends, kind), g.indices(axes, kind)]
    if any(s != 1 for s in steps) or g.rng.random() < .3:
        inputs.append(g.indices(steps, kind))
    return g.emit(op, inputs, exact=True)


@operator("Pad")
def pad(g, op):
    kinds = {"f32"} if g.opset < 13 else {"f32", "i64", "i32", "f16"}
    a = g.pick(kinds, rank=lambda r: r > 0)
    mode = g.rng.choice(["constant", "constant", "edge", "reflect", None])
    low = -1 if g.rng.random() < .3 else 0
    pads = [g.rng.randint(low, 3) for _ in range(2 * a.rank)]
    if mode in ("edge", "reflect"):
        if min(a.shape) == 0:
            raise Skip("undefined")
        if mode == "reflect":
            pads = [min(p, a.shape[i % a.rank] - 1) for i, p in enumerate(pads)]
    if any(n + pads[i] < 0 or n + pads[a.rank + i] < 0 for i, n in enumerate(a.shape)):
        raise Skip("undefined")
    value = g.rng.choice([None, 2])
    if g.opset < 11:
        return g.emit(op, [a], exact=True, mode=mode, pads=pads,
                      value=None if value is None else float(value))
    inputs = [a, g.integers(pads)]
    if value is not None:
        inputs.append(g.constant(np.asarray(value, a.array.dtype)))
    return g.emit(op, inputs, exact=True, mode=mode)


@operator("Expand", since=8)
def expand(g, op):
    a = g.pick(ANY)
    shape = [g.rng.choice(SIZES) if n == 1 else g.rng.choice([1, n]) for n in a.shape]
    shape = [g.rng.choice(SIZES) for _ in range(g.rng.randint(0, 2))] + \
        shape[g.rng.randint(0, 1):]
    g.emit(op, [a, g.integers(shape)], exact=True)


@operator("Tile")
def tile(g, op):
    a = g.pick({"f32", "i64", "i32"})
    g.emit(op, [a, g.integers([g.rng.choice([0, 1, 1, 2, 3]) for _ in a.shape])], exact=True)


@operator("Trilu", since=14)
def trilu(g, op):
    a = g.pick({"f32", "i64", "f64"}, rank=lambda r: r >= 2)
    inputs = [a]
    if g.rng.random() < .7:
        k = g.rng.choice([-30, -2, -1, 0, 1, 2, 30, 2**63 - 1, -2**63])
        inputs.append(g.constant(np.asarray(k, np.int64)))
    g.emit(op, inputs, exact=True, upper=g.rng.choice([None, 0, 1]))


def draw_indices(g, size, shape):
    if size == 0 and np.prod(shape):
        raise Skip("no index")
    low = -size if g.opset >= 11 else 0
    rng = np.random.default_rng(g.rng.getrandbits(32))
    array = rng.integers(low, max(size, low + 1), shape)
    array = np.asarray(array, g.rng.choice([np.int64, np.int32]))
    if g.rng.random() < .5:
        return g.constant(array)
    name = g.name("x")
    value = Value(name, array, True)
    g.inputs.append(helper.make_tensor_value_info(name, PROTOS[value.type], array.shape))
    g.values.append(value)
    return value


@operator("Gather")
def gather(g, op):
    a = g.pick(ANY, rank=lambda r: r > 0)
    axis = g.axis(a)
    indices = draw_indices(g, a.shape[axis], g.draw_shape(g.rng.randint(0, 2)))
    g.emit(op, [a, indices], exact=True, axis=g.rng.choice([axis, None]) if axis == 0 else axis)


@operator("GatherElements", since=11)
def gather_elements(g, op):
    a = g.pick(ANY, rank=lambda r: r > 0)
    axis = g.axis(a)
    shape = [g.rng.randint(min(1, n), n) for n in a.shape]
    shape[axis] = g.rng.choice(SIZES)
    g.emit(op, [a, draw_indices(g, a.shape[axis], shape)], exact=True, axis=axis)


@operator("GatherND", since=11)
def gather_nd(g, op):
    a = g.pick(ANY, rank=lambda r: r > 0)
    depth = g.rng.randint(1, a.rank)
    if min(a.shape[:depth]) == 0:
        raise Skip("no index")
    shape = [*g.draw_shape(g.rng.randint(0, 2)), depth]
    rng = np.random.default_rng(g.rng.getrandbits(32))
    array = np.stack([rng.integers(-n, n, shape[:-1]) for n in a.shape[:depth]], -1)
    g.emit(op, [a, g.constant(array.astype(np.int64))], exact=True)


@operator("ScatterND", since=11)
def scatter_nd(g, op):
    a = g.pick({"f32", "i64"}, rank=lambda r: r > 0)
    depth = g.rng.randint(1, a.rank)
    cells = [np.asarray(x) for x in np.ndindex(*a.shape[:depth])]
    g.rng.shuffle(cells)
    chosen = cells[:g.rng.randint(0, min(5, len(cells)))]
    indices = np.asarray(chosen, np.int64).reshape(len(chosen), depth)
    updates = g.add_input(a.type, (len(chosen), *a.shape[depth:]))
    g.emit(op, [a, g.constant(indices), updates], exact=True)


@operator("OneHot", since=9)
def one_hot(g, op):
    depth = g.rng.randint(1, 6)
    indices = g.add_input(g.rng.choice(["i64", "i32"]), g.draw_shape(g.rng.randint(1, 2)))
    depth = g.constant(np.asarray(depth, np.int64))
    values = g.constant(np.asarray([-1, 4], g.rng.choice([np.float32, np.int64])))
    g.emit(op, [indices, depth, values], exact=True,
           axis=g.rng.choice([None, 0, -1, 1]))


@operator("EyeLike", since=9)
def eye_like(g, op):
    a = g.pick({"f32", "i64"}, rank=2)
    g.emit(op, [a], exact=True, k=g.rng.choice([None, -2, 0, 1]),
           dtype=g.rng.choice([None, PROTOS["f64"], PROTOS["i32"]]))


@operator("Shape", "Size")
def shape_of(g, op):
    a = g.pick({"f32", "i64"})
    attributes = {}
    if op == "Shape" and g.opset >= 15:
        attributes = {"start": g.rng.choice([None, 0, 1, -1, -9]),
                      "end": g.rng.choice([None, 0, 1, -1, 9])}
    g.emit(op, [a], exact=True, **attributes)


@operator("ConstantOfShape", since=9)
def constant_of_shape(g, op):
    value = None
    if g.rng.random() < .7:
        value = numpy_helper.from_array(np.asarray(
            [3], g.rng.choice([np.float32, np.int64, np.int32])))
    g.emit(op, [g.integers(g.draw_shape())], exact=True, value=value)


@operator("Range", since=11)
def range_(g, op):
    kind = g.rng.choice([np.int64, np.int32, np.float32])
    start, step = g.rng.randint(-9, 9), g.rng.choice([1, 2, -1, -3])
    end = start + step * g.rng.randint(-1, 6) + g.rng.choice([0, 1])
    g.emit(op, [g.constant(np.asarray(x, kind)) for x in (start, end, step)], exact=True)


@operator("Conv")
def conv(g, op):
    rank = g.rng.choice([1, 2])
    groups = g.rng.choice([1, 1, 2])
    channels, filters = groups * g.rng.randint(1, 3), groups * g.rng.randint(1, 3)
    kernel = [g.rng.randint(1, 3) for _ in range(rank)]
    x = g.add_input("f32", (g.rng.randint(0, 2), channels,
                            *(k + g.rng.randint(0, 5) for k in kernel)))
    w = g.add_input("f32", (filters, channels // groups, *kernel), dynamic=0)
    if not np.isfinite(x.array).all() or not np.isfinite(w.array).all():
        raise Skip("infinite")
    inputs = [x, w]
    if g.rng.random() < .5:
        inputs.append(g.add_input("f32", (filters,)))
    attributes = {"strides": [g.rng.randint(1, 2) for _ in kernel],
                  "pads": [g.rng.randint(0, 2) for _ in range(2 * rank)],
                  "dilations": [g.rng.randint(1, 2) for _ in kernel],
                  "kernel_shape": kernel}
    attributes = {k: v for k, v in attributes.items() if g.rng.random() < .6}
    if "pads" not in attributes and g.rng.random() < .3:
        attributes["auto_pad"] = g.rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
    g.emit(op, inputs, group=groups if groups > 1 else g.rng.choice([None, 1]), **attributes)


@operator("LayerNormalization", since=17)
def layer_normalization(g, op):
    a = g.pick({"f32"}, rank=lambda r: r > 0, finite=True)
    axis = g.axis(a)
    if min(a.shape) == 0:
        raise Skip("the mean of nothing")
    shape = a.shape[axis:]
    inputs = [a, g.add_input("f32", shape)]
    if g.rng.random() < .6:
        inputs.append(g.add_input("f32", shape))
    g.emit(op, inputs, axis=g.rng.choice([axis, None]) if axis == -1 else axis,
           epsilon=g.rng.choice([None, .125]))


@operator("RMSNormalization", since=23)
def rms_normalization(g, op):
    a = g.pick({"f32"}, rank=lambda r: r > 0, finite=True)
    axis = g.axis(a)
    if min(a.shape) == 0:
        raise Skip("the mean of nothing")
    g.emit(op, [a, g.add_input("f32", a.shape[axis:])], axis=axis,
           epsilon=g.rng.choice([None, .125]))


@operator("If")
def branches(g, op):
    """A branch that a constant chooses, or one of two constants that sizes choose."""
    size = g.size(g.rng.choice([0, 1, 7])) if g.opset >= 9 else None
    kind = g.rng.choice(["f32", "f16", "i64", "i32"])
    shape = g.draw_shape()
    if size is None:
        flag = g.constant(np.asarray(g.rng.random() < .5))
        value = g.pick({kind})
        flag = g.rng.choice([flag, g.emit("Not", [flag])[0]])
    else:
        limit = g.constant(np.asarray([g.rng.randint(0, 9)], np.int64))
        compare = g.rng.choice(["Less", "Greater", "Equal"])
        flag = g.emit(compare, g.rng.sample([size, limit], 2))[0]
    graphs, captured = [], []
    for _ in range(2):
        if shape and g.rng.random() < .5:
            shape = (g.rng.choice(SIZES), *shape[1:])
        array = g.draw_numbers(kind, shape)
        if g.rng.random() < .2:
            array = np.full(shape, 3, array.dtype)
        tensor = numpy_helper.from_array(array, "t")
        nodes, tensors = [], [tensor]
        if g.rng.random() < .5:
            nodes, tensors = [helper.make_node("Constant", [], ["t"], value=tensor)], []
        if size is None and g.rng.random() < .6:
            # The other branch has the same names.
            nodes = [helper.make_node("Abs", [value.name], ["u"]),
                     helper.make_node("Neg", ["u"], ["t"])]
            tensors, captured = [], [value]
        output = helper.make_tensor_value_info("t", PROTOS[kind], None)
        graphs.append(helper.make_graph(nodes, "branch", [], [output], tensors))
    g.emit(op, [flag], exact=True, captured=captured, then_branch=graphs[0],
           else_branch=graphs[1])


@operator("Dropout")
def dropout(g, op):
    g.emit(op, [g.pick({"f32"})], exact=True)
