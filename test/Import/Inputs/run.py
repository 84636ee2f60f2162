# ===- run.py - ONNX models against NumPy ----------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""run.py POSENC-RUN FOLDER: runs models of several operators each, with sizes that
are static or not, and compares the results with NumPy's."""

import numpy as np
from onnx_checks import check, constant, finish, floats, ints, random, refuse
from onnx_model import node, tensor


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rotate(x, cos, sin, interleaved):
    """x is (batch, tokens, heads, dim), tables are (batch, tokens, pairs)."""
    y, pairs = x.copy(), cos.shape[-1]
    first = slice(0, 2 * pairs, 2) if interleaved else slice(0, pairs)
    second = slice(1, 2 * pairs, 2) if interleaved else slice(pairs, 2 * pairs)
    a, b, c, s = x[..., first], x[..., second], cos[:, :, None], sin[:, :, None]
    y[..., first], y[..., second] = a * c - b * s, b * c + a * s
    return y


def attend(q, k, v, visible, cap=0.0):
    """All are (batch, heads, tokens, dim); `visible` is broadcast to the scores."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat(group, 1), v.repeat(group, 1)
    scores = q @ k.swapaxes(2, 3) / np.sqrt(np.float32(q.shape[3]))
    scores = cap * np.tanh(scores / cap) if cap else scores
    return softmax(np.where(visible, scores, -np.inf)) @ v


# A condition that follows from sizes chooses rows of one constant or another, and one that
# is known chooses a branch.
short, long, x = floats(4, 3), floats(9, 3), floats(8)
branch = lambda value: {"nodes": [], "inputs": {}, "outputs": ["t"],
                        "initializers": [constant("t", value)]}
picks = np.array([3, -1])
other = {"nodes": [node("Neg", ["x"], ["u"])], "inputs": {}, "outputs": ["u"]}
# Both branches of the inner If have the names of the outer one's branches.
for _ in range(7):
    other = {"nodes": [node("If", ["yes"], ["u"], then_branch=other,
                            else_branch=branch(short))], "inputs": {}, "outputs": ["u"]}
pi, ones = np.float32(3.14), np.ones((2, 3), np.float32)
for count in (4, 5):
    part, table = x[:count], long if count > 4 else short
    check(f"if{count}", [
        node("Shape", ["x"], ["shape"]), node("Squeeze", ["shape"], ["n"]),
        node("Greater", ["n", "four"], ["isLong"]),
        node("If", ["isLong"], ["table"], then_branch=branch(long),
             else_branch=branch(short)),
        node("Gather", ["table", "picks"], ["y0"]),
        node("If", ["yes"], ["y1"], then_branch=other, else_branch=branch(short)),
        # Scalars, constants of equal elements, and integers that a shape follows from.
        node("Not", ["isLong"], ["isShort"]),
        node("If", ["isShort"], ["scale"], then_branch=branch(np.float32(2 * pi)),
             else_branch=branch(pi)),
        node("Mul", ["x", "scale"], ["y2"]),
        node("If", ["isLong"], ["equal"], then_branch=branch(ones),
             else_branch=branch(3 * ones[:1])),
        node("ReduceSum", ["equal"], ["y3"], keepdims=0),
        node("If", ["isLong"], ["target"], then_branch=branch(np.array([5, 1])),
             else_branch=branch(np.array([2, 2]))),
        node("Reshape", ["x", "target"], ["y4"])],
        {"x": part}, [tensor("four", "i64", [], [4]), ints("picks", *picks),
                      tensor("yes", "bool", [], [True])],
        [table[picks], -part, part * pi * (2 if count == 4 else 1),
         np.float32(6 if count > 4 else 9),
         part.reshape((5, 1) if count > 4 else (2, 2))], dims={"x": ["n"]})

# Elementwise operators and broadcasting of static and dynamic sizes.
x, row, column = floats(3, 5, 8), floats(8), floats(5, 1)
gelu = x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3))) / 2
check("elementwise", [
    node("Mul", ["x", "row"], ["a"]), node("Add", ["a", "column"], ["b"]),
    node("Sigmoid", ["b"], ["c"]), node("Gelu", ["x"], ["d"], approximate="tanh"),
    node("Where", ["m", "c", "d"], ["y0"]), node("Greater", ["x", "row"], ["y1"]),
    node("Not", ["m"], ["y2"]), node("Pow", ["x", "two"], ["y3"]),
    node("Clip", ["x", "", "two"], ["y4"])],
    {"x": x, "row": row, "column": column, "m": x > 0},
    [tensor("two", "f32", [], [2.0])],
    [np.where(x > 0, 1 / (1 + np.exp(-(x * row + column))), gelu), x > row, x <= 0,
     x ** 2, np.minimum(x, 2)],
    dims={"x": ["b", "s", 8], "column": ["s", 1], "m": ["b", "s", 8]})

# Powers of zeros and infinities, and the bounds that Clip has in this opset.
x = np.array([np.inf, -np.inf, -0.0, 0, 4], np.float32)
end = np.finfo(np.float32).max
check("edges", [node("Pow", ["x", "half"], ["y0"]), node("Clip", ["x"], ["y1"])],
      {"x": x}, [tensor("half", "f32", [], [-0.5])],
      [np.float32([0, 0, np.inf, np.inf, 0.5]), np.float32([end, -end, 0, 0, 4])], opset=9)

# Integers, whose division and remainder round as ONNX says.
a, b = np.array([-7, 7, -8, 9], np.int64), np.array([2, -2, 3, 1], np.int64)
check("integers", [
    node("Div", ["a", "b"], ["y0"]), node("Mod", ["a", "b"], ["y1"]),
    node("Mod", ["a", "b"], ["y2"], fmod=1), node("Cast", ["a"], ["y3"], to=1),
    node("CumSum", ["a", "axis"], ["y4"])],
    {"a": a, "b": b}, [tensor("axis", "i64", [], [0])],
    [np.trunc(a / b), np.mod(a, b), np.fmod(a, b), a.astype(np.float32), np.cumsum(a)])

# Sums along rows whose summands depend on their index.
x = floats(2, 100)
check("sums", [node("CumSum", ["x", "axis"], ["y0"], reverse=1)], {"x": x},
      [tensor("axis", "i64", [], [1])], [np.cumsum(x[:, ::-1], 1)[:, ::-1]])

# Sizes that follow from shapes: heads are split and merged.
x, weight, bias = floats(2, 3, 16), floats(16, 16), floats(16)
y = (x @ weight.T + bias).reshape(2, 3, 4, 4).transpose(0, 2, 1, 3)
check("sizes", [
    node("Shape", ["x"], ["all"]), node("Gather", ["all", "zero"], ["batch"], axis=0),
    node("Unsqueeze", ["batch", "axes"], ["one"]),
    node("Concat", ["one", "rest"], ["split"], axis=0),
    node("Reshape", ["x", "flat"], ["rows"]),
    node("Gemm", ["rows", "w", "bias"], ["product"], transB=1),
    node("Reshape", ["product", "split"], ["heads"]),
    node("Transpose", ["heads"], ["y0"], perm=[0, 2, 1, 3]),
    node("Slice", ["all", "axes", "two"], ["part"]),
    node("ConstantOfShape", ["part"], ["y1"]),
    node("Gather", ["all", "step"], ["tokens"]),
    node("Range", ["zero", "tokens", "step"], ["y2"])],
    {"x": x}, [constant("w", weight), constant("bias", bias), ints("axes", 0),
               ints("rest", -1, 4, 4), ints("flat", -1, 16), ints("two", 2),
               tensor("zero", "i64", [], [0]), tensor("step", "i64", [], [1])],
    [y, np.zeros((2, 3)), np.arange(3)], dims={"x": ["b", "s", 16]})

# Moves.
x = floats(2, 6, 5)
check("moves", [
    node("Slice", ["x", "starts", "ends", "axes", "steps"], ["y0"]),
    node("Split", ["x"], ["left", "y1"], axis=1, num_outputs=2),
    node("Concat", ["left", "x"], ["y2"], axis=-2),
    node("Slice", ["x", "last", "low", "axis", "back"], ["y3"]),
    node("Tile", ["x", "repeats"], ["y4"]), node("Pad", ["x", "pads"], ["y5"]),
    node("Trilu", ["x"], ["y6"], upper=0), node("Expand", ["left", "wide"], ["y7"])],
    {"x": x}, [ints("starts", 1, -3), ints("ends", (1 << 63) - 1, -1),
               ints("axes", 1, 2), ints("steps", 2, 1), ints("last", -1),
               ints("low", -(1 << 63)), ints("axis", 1), ints("back", -1),
               ints("repeats", 1, 2, 3), ints("pads", 0, 1, 0, 0, 0, -2),
               ints("wide", 3, 1, 1, 1)],
    [x[:, 1::2, -3:-1], x[:, 3:], np.concatenate([x[:, :3], x], 1), x[:, ::-1],
     np.tile(x, (1, 2, 3)), np.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :, :3], np.tril(x),
     np.broadcast_to(x[:, :3], (3, 2, 3, 5))])

# A bound that is negative for some sizes counts from the end then.
for tokens in (3, 9):
    x = floats(tokens, 2)
    check(f"bounds{tokens}", [
        node("Shape", ["x"], ["size"], end=1), node("Sub", ["size", "five"], ["start"]),
        node("Slice", ["x", "start", "size"], ["y0"])], {"x": x}, [ints("five", 5)],
        [x[tokens - 5:tokens]], dims={"x": ["n", 2]})

# Sizes that are 1 at run time are expanded to the size of another input, and so
# are computed sizes that are at most 1.
for size, wide in ((1, 7), (1, 0), (1, 1), (7, 7)):
    x = floats(size, 3)
    check(f"expand{size}-{wide}", [
        node("Shape", ["like"], ["wide"], end=1),
        node("Concat", ["wide", "three"], ["shape"], axis=0),
        node("Expand", ["x", "shape"], ["y0"])],
        {"x": x, "like": floats(wide)}, [ints("three", 3)],
        [np.broadcast_to(x, (wide, 3))], dims={"x": ["n", 3], "like": ["m"]})
biases = floats(2, 1, 8)
causal = [node("Shape", ["x"], ["size"], start=1, end=2),
          node("Sub", ["one", "size"], ["row"]), node("Max", ["zero", "row"], ["r"]),
          node("Sub", ["eight", "size"], ["column"]),
          node("Max", ["zero", "column"], ["c"]),
          node("Slice", ["biases", "r", "end", "one"], ["rows"]),
          node("Slice", ["rows", "c", "end", "two"], ["part"]),
          node("Add", ["x", "part"], ["y0"])]
numbers = [constant("biases", biases), ints("zero", 0), ints("one", 1), ints("two", 2),
           ints("eight", 8), ints("end", (1 << 63) - 1)]
for tokens in (0, 1, 5, 8):
    x = floats(2, tokens, tokens)
    check(f"biases{tokens}", causal, {"x": x}, numbers, [x + biases[:, :, 8 - tokens:]],
          dims={"x": [2, "t", "t"]})
refuse("biases9", causal, {"x": floats(2, 9, 9)}, numbers, "is 9, expected 8",
       dims={"x": [2, "t", "t"]})

# Sizes that do not agree are errors of the call.
x, y = floats(5, 2), floats(7, 2)
both = {"x": ["n", 2], "y": ["m", 2]}
shape = node("Shape", ["y"], ["shape"])
for size in (5, 1):
    refuse(f"add{size}", [node("Add", ["x", "y"], ["y0"])], {"x": x[:size], "y": y}, [],
           f"size 'n' is {size} in input 'x' (dimension 0) but 7 in input 'y' (dimension 0)",
           dims=both)
refuse("expand", [shape, node("Expand", ["x", "shape"], ["y0"])], {"x": x, "y": y}, [],
       "dimension 0 of x is 5, expected dimension 0 of y, which is 7", dims=both)
refuse("expand-short", [shape, node("Expand", ["x", "shape"], ["y0"])],
       {"x": y, "y": x}, [], "dimension 0 of x is 7, expected dimension 0 of y",
       dims=both)
refuse("expand-constant", [shape, node("Expand", ["x", "shape"], ["y0"])],
       {"x": x, "y": y}, [], "dimension 0 of y is 7, expected 5",
       dims={"x": [5, 2], "y": ["m", 2]})
refuse("reshape", [shape, node("Reshape", ["x", "shape"], ["y0"])], {"x": x, "y": y}, [],
       "is 5 in input 'x' (dimension 0) but 7 in input 'y'", dims=both)
# A computed 0 is that dimension of the input, which cannot be empty then.
joined = node("Concat", ["shape0", "minus"], ["target"], axis=0)
first = node("Shape", ["y"], ["shape0"], start=0, end=1)
rows = [first, joined, node("Reshape", ["x", "target"], ["y0"])]
tail = [ints("minus", 1, 2)]
check("reshape-computed", rows, {"x": x, "y": y[:5]}, tail, [x.reshape(5, 1, 2)], dims=both)
check("reshape-empty", rows, {"x": x[:0], "y": y[:0]}, tail, [x[:0].reshape(0, 1, 2)],
      dims=both)
refuse("reshape-zero", rows, {"x": x, "y": y[:0]}, tail, "is 5 in input 'x'", dims=both)
refuse("split", [node("Split", ["x", "parts"], ["y0", "z"])], {"x": y}, [
    ints("parts", 3, 3)], "dimension 0 of x is 7, expected 6", dims=both)
refuse("squeeze", [node("Squeeze", ["x", "zero"], ["y0"])], {"x": x}, [ints("zero", 0)],
       "dimension 0 of x is 5, expected 1", dims=both)
refuse("matmul", [node("MatMul", ["x", "y"], ["y0"])], {"x": floats(2, 3), "y": y}, [],
       "is 3 in input 'x' (dimension 1) but 7 in input 'y' (dimension 0)",
       dims={"x": [2, "k"], "y": ["m", 2]})
refuse("conv", [node("Conv", ["x", "w"], ["y0"], strides=[2])], {"x": floats(1, 1, 2)}, [
    constant("w", floats(1, 1, 3))], "dimension 2 of x is 2, expected at least 3",
       dims={"x": [1, 1, "n"]})
indices = np.zeros((3, 4), np.int64)
refuse("elements", [node("GatherElements", ["x", "i"], ["y0"])], {"x": x, "i": indices},
       [], "dimension 1 of i is 4, expected at most dimension 1 of x, which is 2",
       dims={"x": ["n", "c"], "i": ["m", "d"]})
refuse("batches", [node("GatherND", ["x", "i"], ["y0"], batch_dims=1)],
       {"x": x, "i": indices[:, :1]}, [],
       "is 5 in input 'x' (dimension 0) but 3 in input 'i' (dimension 0)",
       dims={"x": ["n", 2], "i": ["m", 1]})
for size, width, message in ((1, 2, "is 3 in input 'i' (dimension 0) but 1 in input 'u'"),
                             (3, 1, "dimension 1 of u is 1, expected 2")):
    refuse(f"scatter{size}", [node("ScatterND", ["x", "i", "u"], ["y0"])],
           {"x": x, "i": indices[:, :1], "u": floats(size, width)}, [], message,
           dims={"x": ["n", 2], "i": ["m", 1], "u": ["k", "c"]})

# Reads and writes at indices.
table, picks = floats(9, 4), np.array([[0, -1], [3, 8]], np.int64)
pairs = np.array([[0, 1], [2, -1]], np.int64)
written = table.copy()
written[[1, 7]] = table[:2]
check("gather", [
    node("Gather", ["table", "picks"], ["y0"]),
    node("Gather", ["table", "picks"], ["y1"], axis=0),
    node("GatherND", ["table", "pairs"], ["y2"]),
    node("Slice", ["table", "from", "to"], ["rows"]),
    node("ScatterND", ["table", "places", "rows"], ["y3"]),
    node("GatherElements", ["table", "picks"], ["y4"], axis=0)],
    {"table": table, "picks": picks, "pairs": pairs},
    [ints("from", 0), ints("to", 2),
     constant("places", np.array([[1], [7]], np.int64))],
    [table[picks], table[picks], table[[0, 2], [1, -1]], written,
     np.take_along_axis(table[:, :2], picks % 9, 0)], dims={"table": ["n", 4]})

# Indices out of range are errors of the call: those that are elements of an input,
# as they are or as other integers, before anything is written.
rows = {"table": ["n", 4], "i": ["a", "b"]}
narrow = [node("Cast", ["i"], ["wide"], to=7), node("Unsqueeze", ["wide", "zero"], ["j"])]
for index in (9, -10, 1 << 40):
    picks = np.array([[0, -9], [8, index]], np.int64)
    message = f"i[1, 1] is {index}, expected at least -9 and at most 8"
    refuse(f"gather{index}", [node("Gather", ["table", "i"], ["y0"])],
           {"table": table, "i": picks}, [], message, dims=rows)
    refuse(f"elements{index}", [node("GatherElements", ["table", "i"], ["y0"])],
           {"table": table, "i": picks}, [], message, dims=rows)
    if index < 1 << 32:
        refuse(f"cast{index}", [*narrow, node("Gather", ["table", "j"], ["y0"])],
               {"table": table, "i": picks.astype(np.int32)}, [ints("zero", 0)], message,
               dims=rows)
    # The second index of a pair is that of a column.
    for pair, fits in (([8, -4], True), ([-9, 3], True), ([0, 4], False),
                       ([index, 0], False)):
        pair = np.array([[1, 2], pair], np.int64)
        inputs = {"table": table, "i": pair, "u": floats(2)}
        dims = {"table": ["n", 4], "i": ["a", 2], "u": ["a"]}
        written = table.copy()
        if fits:
            written[tuple(pair.T)] = inputs["u"]
        for op, names, result in (
                ("GatherND", ["table", "i"], table[tuple(pair.T)] if fits else None),
                ("ScatterND", ["table", "i", "u"], written)):
            given = {key: inputs[key] for key in names}
            nodes = [node(op, names, ["y0"], name="some")]
            if fits:
                check(f"{op}-fits", nodes, given, [], [result], dims=dims)
            else:
                refuse(f"{op}{index}", nodes, given, [],
                       f"assertion failed: {op} 'some': an index is out of range",
                       dims=dims)
# Computed indices, and those of a row of a table of positions.
for shift, fits in ((1, True), (2, False), (-10, False)):
    nodes = [node("Add", ["i", "shift"], ["j"]), node("Gather", ["table", "j"], ["y0"])]
    picks = np.array([[0, 7]], np.int64)
    given = {"table": table, "i": picks}
    if fits:
        check("shifted", nodes, given, [ints("shift", shift)], [table[picks + shift]],
              dims=rows)
    else:
        refuse("shifted", nodes, given, [ints("shift", shift)],
               "assertion failed: Gather 'y0': an index is out of range", dims=rows)
for position in (-1, 9):
    refuse("position", [node("RotaryEmbedding", ["x", "cos", "cos", "p"], ["y0"])],
           {"x": floats(1, 2, 1, 8), "p": np.array([[position]], np.int64)},
           [constant("cos", table)],
           f"p[0, 0] is {position}, expected at least 0 and at most 8",
           dims={"x": [1, 2, "s", 8], "p": [1, "s"]})
# Indices that follow from sizes need no check, or are checked with the sizes.
size = node("Shape", ["table"], ["size"], end=1)
numbers = [tensor("zero", "i64", [], [0]), tensor("one", "i64", [], [1]), ints("axis", 0)]
check("range", [
    size, node("Squeeze", ["size", "axis"], ["count"]),
    node("Range", ["zero", "count", "one"], ["all"]),
    node("Unsqueeze", ["all", "axis"], ["row"]), node("Gather", ["table", "row"], ["y0"]),
    node("Sub", ["size", "one"], ["last"]), node("Concat", ["axis", "last"], ["ends"], axis=0),
    node("Gather", ["table", "ends"], ["y1"])],
    {"table": table}, numbers, [table[None], table[[0, -1]]], dims=rows)
refuse("constant", [node("Gather", ["table", "picks"], ["y0"])], {"table": table},
       [ints("picks", 0, 9)], "dimension 0 of table is 9, expected at least 10", dims=rows)

# Reductions and norms.
x, scale = floats(2, 7, 16), floats(16)
mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
check("norms", [
    node("ReduceMean", ["x", "last"], ["y0"]),
    node("ReduceMax", ["x", "last"], ["y1"], keepdims=0),
    node("Softmax", ["x"], ["y2"]),
    node("RMSNormalization", ["x", "scale"], ["y3"], epsilon=1e-6),
    node("LayerNormalization", ["x", "scale", "scale"], ["y4"], epsilon=1e-6),
    node("SkipSimplifiedLayerNormalization", ["x", "x", "scale"],
         ["y5", "", "", "y6"], "com.microsoft", epsilon=1e-6)],
    {"x": x}, [ints("last", -1), constant("scale", scale)],
    [mean, x.max(-1), softmax(x),
     x / np.sqrt((x ** 2).mean(-1, keepdims=True) + 1e-6) * scale,
     (x - mean) / np.sqrt(variance + 1e-6) * scale + scale,
     2 * x / np.sqrt((4 * x ** 2).mean(-1, keepdims=True) + 1e-6) * scale, 2 * x],
    dims={"x": ["b", "s", 16]})

# The type of RMS norms is that of the weight.
narrow = x.astype(np.float16)
rms = narrow / np.sqrt((narrow.astype(np.float32) ** 2).mean(-1, keepdims=True) + 1e-5)
check("weight-type", [
    node("RMSNormalization", ["x", "scale"], ["y0"]),
    node("SimplifiedLayerNormalization", ["x", "scale"], ["y1"])],
    {"x": narrow}, [constant("scale", scale)], [rms * scale] * 2)

# Before opset 13, all dimensions from the axis on are one.
x = floats(2, 3, 4)
rows = x.reshape(2, 12)
check("flattened", [
    node("Softmax", ["x"], ["y0"]), node("LogSoftmax", ["x"], ["y1"], axis=-2),
    node("Hardmax", ["x"], ["y2"]), node("LogSoftmax", ["x"], ["y3"], axis=2)],
    {"x": x}, [],
    [softmax(rows).reshape(x.shape), np.log(softmax(rows)).reshape(x.shape),
     np.eye(12)[rows.argmax(1)].reshape(x.shape), np.log(softmax(x))],
    opset=11, dims={"x": ["b", 3, "d"]})

# Reductions of no dimension keep what is done to each element.
x = floats(3, 4)
check("no-axes", [
    *(node(op, ["x"], [f"y{number}"], noop_with_empty_axes=1) for number, op in
      enumerate(["ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSumExp",
                 "ReduceMean"])),
    node("ReduceLogSum", ["y0", "none"], ["y5"], noop_with_empty_axes=1),
    node("ReduceLogSumExp", ["x", "last"], ["y6"], keepdims=0),
    node("ReduceLogSum", ["y0"], ["y7"], keepdims=0)],
    {"x": x}, [ints("none"), ints("last", -1)],
    [x ** 2, abs(x), abs(x), x, x, np.log(x ** 2), np.log(np.exp(x).sum(1)),
     np.log((x ** 2).sum())], dims={"x": ["n", 4]})

# Indices of extrema, of which NaN is one, and the pooling of text by them.
x = np.array([[1, np.nan, 3, np.nan], [2, 5, 5, 1], [4, 0, 4, 0]], np.float32)
tokens, states = random.integers(0, 99, (3, 5)), floats(3, 5, 4)
check("extrema", [
    node("ArgMax", ["x"], ["y0"], axis=1, keepdims=0),
    node("ArgMin", ["x"], ["y1"], axis=-1, select_last_index=1),
    node("ArgMax", ["tokens"], ["y2"]),
    node("ArgMax", ["tokens"], ["last"], axis=1, keepdims=0),
    node("Shape", ["tokens"], ["size"], end=1), node("Squeeze", ["size"], ["count"]),
    node("Range", ["zero", "count", "one"], ["all"]),
    node("Unsqueeze", ["all", "end"], ["sequences"]),
    node("Unsqueeze", ["last", "end"], ["places"]),
    node("Concat", ["sequences", "places"], ["pairs"], axis=-1),
    node("GatherND", ["states", "pairs"], ["y3"])],
    {"x": x, "tokens": tokens, "states": states},
    [tensor("zero", "i64", [], [0]), tensor("one", "i64", [], [1]), ints("end", -1)],
    [np.array([1, 1, 0]), np.array([[3], [3], [3]]), tokens.argmax(0)[None],
     states[np.arange(3), tokens.argmax(1)]],
    dims={"x": ["b", "n"], "tokens": ["b", "s"], "states": ["b", "s", 4]})
refuse("no-extremum", [node("ArgMax", ["x"], ["y0"], axis=1)], {"x": floats(2, 0)}, [],
      "dimension 1 of x is 0, expected at least 1", dims={"x": ["b", "n"]})

# Integers that are known while importing wrap around as their type does.
x = floats(5)
for kind in (np.int8, np.int32, np.int64):
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    a, b = np.array([low, high, -7, 100], kind), np.array([-1, 2, 3, -100], kind)
    with np.errstate(over="ignore"):
        quotients = np.array([low, high // 2, -2, -1], kind)
        check(f"wrap-{kind.__name__}", [
            *(node(op, ["a", "b"], [f"y{number}"]) for number, op in
              enumerate(["Add", "Sub", "Mul", "Div", "Mod"])),
            node("Neg", ["a"], ["y5"]), node("Abs", ["a"], ["y6"]),
            node("ReduceProd", ["a"], ["y7"], keepdims=0),
            node("Mod", ["a", "b"], ["y8"], fmod=1), node("Cast", ["y2"], ["y9"], to=7)],
            {"x": x}, [constant("a", a), constant("b", b)],
            [a + b, a - b, a * b, quotients, np.mod(a, b), -a, abs(a),
             np.prod(a, dtype=kind), np.fmod(a, b), (a * b).astype(np.int64)])
large = np.array([1 << 31, 300, -129, 3], np.int64)
check("narrow", [
    node("Cast", ["large"], ["y0"], to=6), node("Less", ["y0", "seven"], ["y1"]),
    node("Cast", ["large"], ["byte"], to=3), node("Cast", ["byte"], ["y2"], to=7),
    node("Shape", ["x"], ["size"]), node("Mul", ["size", "huge"], ["product"]),
    node("Less", ["product", "zero"], ["y3"]), node("Cast", ["size"], ["narrow"], to=6),
    node("Mul", ["narrow", "seven"], ["y4"])], {"x": x},
    [constant("large", large), tensor("seven", "i32", [], [7]),
     tensor("huge", "i64", [], [1 << 61]), tensor("zero", "i64", [], [0])],
    [large.astype(np.int32), np.array([True, False, True, True]),
     large.astype(np.int8), np.array([True]), np.array([35])], dims={"x": ["n"]})
refuse("wide", [
    node("Shape", ["x"], ["size"]), node("Cast", ["size"], ["narrow"], to=6),
    node("Mul", ["narrow", "huge"], ["y0"])], {"x": x},
    [tensor("huge", "i32", [], [1 << 30])],
    "dimension 0 of x * 1073741824 is 5368709120, expected at most 2147483647",
    dims={"x": ["n"]})

# Parts without elements, and numbers at their limits.
x, huge, low = floats(3, 4), (1 << 63) - 1, -1 << 63
for kind, dims in (("static", {}), ("dynamic", {"x": ["n", "m"]})):
    check(f"empty-{kind}", [
        node("Split", ["x", "parts"], ["y0", "y1"], axis=1),
        node("Pad", ["x", "crop"], ["y2"]), node("Pad", ["x", "beyond"], ["y3"]),
        node("Slice", ["x", "four", "huge", "one"], ["y4"]),
        node("Slice", ["x", "minus", "low", "one", "low"], ["y5"]),
        node("Slice", ["x", "zero", "huge", "one", "huge"], ["y6"]),
        node("Trilu", ["x", "huge"], ["y7"], upper=0), node("Trilu", ["x", "low"], ["y8"]),
        node("Range", ["first", "end", "end"], ["y9"])],
        {"x": x}, [ints("parts", 4, 0), ints("crop", 0, -4, 0, 2),
                   ints("beyond", 0, 3, 0, -5), ints("four", 4), ints("huge", huge),
                   ints("one", 1), ints("minus", -1), ints("low", low), ints("zero", 0),
                   tensor("first", "i64", [], [low]), tensor("end", "i64", [], [huge])],
        [x, x[:, 4:], np.zeros((3, 2)), np.zeros((3, 2)), x[:, 4:], x[:, 3:], x[:, :1],
         x, x, np.array([low, -1, huge - 1])], dims=dims)
x, rows = floats(0, 4), floats(2, 4)
for kind, dims in (("static", {}), ("dynamic", {"x": ["n", 4]})):
    check(f"zero-{kind}", [
        node("Slice", ["x", "one", "three", "one"], ["y0"]),
        node("Split", ["x"], ["y1", "y2"], axis=1, num_outputs=2),
        node("Concat", ["x", "x"], ["y3"], axis=1),
        node("Concat", ["x", "rows", "x"], ["y4"], axis=0),
        node("Pad", ["x", "pads"], ["y5"]), node("Tile", ["rows", "repeats"], ["y6"]),
        node("ReduceLogSumExp", ["x", "zero"], ["y7"])],
        {"x": x}, [constant("rows", rows), ints("one", 1), ints("three", 3),
                   ints("pads", 1, 1, 0, 0), ints("repeats", 0, 3), ints("zero", 0)],
        [x[:, 1:3], x[:, :2], x[:, 2:], np.zeros((0, 8)), rows, np.zeros((1, 5)),
         np.zeros((0, 12)), np.full((1, 4), -np.inf)], dims=dims)
refuse("small", [node("Pad", ["x", "crop"], ["y0"])], {"x": floats(2)},
      [ints("crop", -3, 0)], "dimension 0 of x - 3 is -1, expected at least 0", dims={"x": ["n"]})
refuse("uneven", [node("Split", ["x"], ["y0", "rest"])], {"x": floats(5)}, [],
      "dimension 0 of x is 5, expected", opset=13, dims={"x": ["n"]})

# Ones at indices, and on a diagonal.
picks, pair = np.array([[0, -1, 5], [2, 3, -9]], np.int64), floats(2)
where = (np.arange(4) == np.where(picks < 0, picks + 4, picks)[..., None])
check("ones", [
    node("OneHot", ["picks", "depth", "pair"], ["y0"]),
    node("OneHot", ["picks", "depth", "pair"], ["y1"], axis=0),
    node("EyeLike", ["picks"], ["y2"], k=1),
    node("EyeLike", ["picks"], ["y3"], dtype=9, k=-1)],
    {"picks": picks, "pair": pair}, [ints("depth", 4)],
    [pair[where.astype(int)], pair[np.moveaxis(where, 2, 0).astype(int)],
     np.eye(2, 3, 1), np.eye(2, 3, -1)], dims={"picks": ["b", "n"]})

# Constant batches of matrices, whose panels are packed: as many as the other operand has, and
# fewer, whose matrices belong to its inner dimensions.
left, heads = floats(2, 3, 5, 17), floats(3, 17, 70)
turned = np.ascontiguousarray(heads.transpose(0, 2, 1))
check("batches", [
    node("MatMul", ["a", "w"], ["y0"]), node("MatMul", ["one", "w"], ["y1"]),
    node("Transpose", ["t"], ["u"], perm=[0, 2, 1]), node("MatMul", ["a", "u"], ["y2"]),
    node("Unsqueeze", ["w", "first"], ["w4"]), node("MatMul", ["a", "w4"], ["y3"]),
    node("MatMul", ["a", "both"], ["y4"]), node("MatMul", ["a", "each"], ["y5"])],
    {"a": left, "one": left[1]},
    [constant("w", heads), constant("t", turned), ints("first", 0),
     constant("both", np.stack([heads, -heads])), constant("each", heads[:1, None])],
    [left @ heads, left[1] @ heads, left @ heads, left @ heads,
     left @ np.stack([heads, -heads]), left @ heads[0]],
    dims={"a": ["b", 3, "n", 17], "one": [3, "n", 17]})

# Integers that are negative become 0.
for kind in (np.int8, np.int32, np.int64):
    bounds = np.iinfo(kind)
    x = np.array([bounds.min, -1, 0, 1, bounds.max], kind)
    check(f"relu-{kind.__name__}", [node("Relu", ["x"], ["y0"])], {"x": x}, [],
          [np.maximum(x, 0)], opset=14, dims={"x": ["n"]})
refuse("relu", [node("Relu", ["x"], ["y0"])], {"x": np.ones(2, np.int32)}, [],
       "expected floats", opset=13)

# Other activations.
x = floats(3, 4) * 4
exponential = np.exp(np.minimum(x, 0))
check("activations", [
    node("Selu", ["x"], ["y0"]), node("Celu", ["x"], ["y1"], alpha=2.0),
    node("ThresholdedRelu", ["x"], ["y2"], alpha=0.5), node("Mish", ["x"], ["y3"]),
    node("Mean", ["x", "y0", "y1"], ["y4"]), node("Mod", ["x", "y0"], ["y5"])],
    {"x": x}, [],
    [1.0507010 * np.where(x < 0, 1.6732632 * (exponential - 1), x),
     np.where(x < 0, 2 * (np.sqrt(exponential) - 1), x), np.where(x > 0.5, x, 0),
     x * np.tanh(np.log1p(np.exp(x))),
     (x + 1.0507010 * np.where(x < 0, 1.6732632 * (exponential - 1), x) +
      np.where(x < 0, 2 * (np.sqrt(exponential) - 1), x)) / 3,
     np.mod(x, 1.0507010 * np.where(x < 0, 1.6732632 * (exponential - 1), x))],
    opset=28, dims={"x": ["n", 4]})

# Products with broadcast batches, and convolutions.
a, b = floats(2, 3, 4, 5), floats(3, 5, 6)
image, patch, kernel = floats(2, 3, 8, 8), floats(6, 3, 4, 4), floats(6, 1, 3, 3)
patches = np.einsum("nchiwj,ocij->nohw", image.reshape(2, 3, 2, 4, 2, 4), patch)
padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
deep = sum(kernel[None, :, 0, i, j, None, None] *
           padded[:, :, i:i + 8:2, j:j + 8:2].repeat(2, 1)
           for i in range(3) for j in range(3))
check("products", [
    node("MatMul", ["a", "b"], ["y0"]), node("MatMul", ["a", "vector"], ["y1"]),
    node("Conv", ["image", "patch"], ["y2"], strides=[4, 4]),
    node("Conv", ["image", "kernel"], ["y3"], strides=[2, 2], group=3,
         pads=[1, 1, 1, 1])],
    {"a": a, "b": b, "image": image},
    [constant("vector", b[0, :, 0]), constant("patch", patch),
     constant("kernel", kernel)],
    [a @ b, a @ b[0, :, 0], patches, deep], dims={"a": ["n", 3, "m", 5]})

# Products and sums that ONNX Runtime's optimizers fuse.
def layer_norm(x, weight, bias, epsilon):
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt((centered ** 2).mean(-1, keepdims=True) + epsilon) * \
        weight + bias


slope = np.where(patches < 0, np.float32(0.1) * patches, patches)
check("fused-products", [
    node("FusedMatMul", ["at", "bt"], ["y0"], "com.microsoft", transA=1, transB=1,
         alpha=0.25),
    node("FusedConv", ["image", "patch"], ["y1"], "com.microsoft", strides=[4, 4],
         activation="Relu"),
    node("FusedConv", ["image", "patch"], ["y2"], "com.microsoft", strides=[4, 4],
         activation="LeakyRelu", activation_params=[0.1]),
    node("FusedMatMul", ["ab", "bt"], ["y3"], "com.microsoft", transBatchA=1, transB=1)],
    {"at": a.swapaxes(2, 3), "bt": b.swapaxes(1, 2), "image": image,
     "ab": np.moveaxis(a, -2, 0).copy()},
    [constant("patch", patch)], [a @ b / 4, np.maximum(patches, 0), slope, a @ b],
    dims={"at": ["n", 3, 5, "m"], "ab": ["m", "n", 3, 5]})
words, segments = random.integers(0, 9, (2, 5)), random.integers(0, 2, (2, 5))
tables, weight, bias = [floats(9, 16), floats(7, 16), floats(2, 16)], floats(16), floats(16)
total = tables[0][words] + tables[1][:5] + tables[2][segments]
kernel, offset = floats(16, 48), floats(48)
x = layer_norm(total, weight, bias, 1e-12)
q, k, v = np.split((x @ kernel + offset).reshape(2, 5, 3, 2, 8).transpose(2, 0, 3, 1, 4), 3)
visible = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], bool)[:, None, None]
heads = lambda x: x.swapaxes(1, 2).reshape(2, 5, 16)
check("encoder", [
    node("EmbedLayerNormalization", ["words", "segments", "t0", "t1", "t2", "w", "b"],
         ["y0", "", "y1"], "com.microsoft", epsilon=1e-12),
    node("Attention", ["y0", "kernel", "offset", "mask"], ["y2"], "com.microsoft",
         num_heads=2),
    node("Attention", ["y0", "kernel", "offset"], ["y3"], "com.microsoft",
         num_heads=2, unidirectional=1, qkv_hidden_sizes=[16, 16, 16]),
    node("EmbedLayerNormalization", ["words", "", "t0", "t1", "", "w", "b"], ["y4"],
         "com.microsoft", epsilon=1e-12)],
    {"words": words, "segments": segments, "mask": 2 * visible[:, 0, 0].astype(np.int32) - 1},
    [constant(f"t{i}", table) for i, table in enumerate(tables)] +
    [constant("w", weight), constant("b", bias), constant("kernel", kernel),
     constant("offset", offset)],
    [x, total, heads(attend(q[0], k[0], v[0], visible)),
     heads(attend(q[0], k[0], v[0], np.tri(5, dtype=bool))),
     layer_norm(tables[0][words] + tables[1][:5], weight, bias, 1e-12)],
    dims={name: ["n", "s"] for name in ("words", "segments", "mask")})

# Rotations and attention.
batch, tokens, past = 2, 5, 4
q, k, v = floats(2, 5, 64), floats(2, 5, 32), floats(2, 5, 32)
angles = np.outer(np.arange(32), 0.1 ** np.arange(8)).astype(np.float32)
positions = np.array([np.arange(5), np.arange(5) + 3], np.int64)
cos, sin = np.cos(angles), np.sin(angles)
heads = lambda x, n: x.reshape(*x.shape[:2], n, -1)
rq, rk = (rotate(heads(x, n), cos[positions], sin[positions], i)
          for x, n, i in ((q, 4, False), (k, 2, True)))
causal = np.tri(5, dtype=bool)
o = attend(*(x.swapaxes(1, 2) for x in (rq, rk, heads(v, 2))), causal, 2.0)
check("attention", [
    node("RotaryEmbedding", ["q", "cos", "sin", "p"], ["rq"], num_heads=4),
    node("RotaryEmbedding", ["k", "p", "cos", "sin"], ["rk"], "com.microsoft",
         interleaved=1),
    node("Attention", ["rq", "rk", "v"], ["y0"], q_num_heads=4, kv_num_heads=2,
         is_causal=1, softcap=2.0)],
    {"q": q, "k": k, "v": v, "p": positions}, [constant("cos", cos), constant("sin", sin)],
    [o.swapaxes(1, 2).reshape(2, 5, 64)],
    dims={"q": ["b", "s", 64], "k": ["b", "s", 32], "v": ["b", "s", 32],
          "p": ["b", "s"]})

# Past keys; a mask; queries that are not aligned to the end of the keys.
q, k, v, pk, pv = (floats(2, n, t, 16) for n, t in
                   ((4, 3), (2, 3), (2, 3), (2, past), (2, past)))
keys, values = np.concatenate([pk, k], 2), np.concatenate([pv, v], 2)
mask = random.random((2, 1, 3, 7)) < 0.7
mask[..., 0] = True
check("cache", [
    node("Attention", ["q", "k", "v", "mask", "pk", "pv"], ["y0", "y1", "y2"],
         is_causal=1),
    node("Attention", ["k", "y1", "y2"], ["y3"], is_causal=1)],
    {"q": q, "k": k, "v": v, "mask": mask, "pk": pk, "pv": pv}, [],
    [attend(q, keys, values, mask & np.tri(3, 7, past, dtype=bool)), keys, values,
     attend(k, keys, values, np.tri(3, 7, dtype=bool))],
    dims={"q": ["b", 4, "s", 16], "k": ["b", 2, "s", 16], "v": ["b", 2, "s", 16],
          "pk": ["b", 2, "p", 16], "pv": ["b", 2, "p", 16]})

# A decoding step over sequences of different lengths, with rotations.
q, k, v, pk, pv = floats(2, 1, 64), floats(2, 1, 32), floats(2, 1, 32), \
    floats(2, 2, 8, 16), floats(2, 2, 8, 16)
lengths = np.array([3, 7], np.int32)  # The position of the new token.
rq, rk = (rotate(heads(x, n), cos[lengths[:, None]], sin[lengths[:, None]], False)
          .swapaxes(1, 2) for x, n in ((q, 4), (k, 2)))
keys, values = (np.concatenate([x, np.zeros_like(x[:, :, :1])], 2) for x in (pk, pv))
for sequence, length in enumerate(lengths):
    keys[sequence, :, length] = rk[sequence, :, 0]
    values[sequence, :, length] = v[sequence].reshape(2, 16)
visible = np.arange(9) <= lengths[:, None, None, None]
o = attend(rq, keys, values, visible).swapaxes(1, 2).reshape(2, 1, 64)
check("group", [
    node("GroupQueryAttention", ["q", "k", "v", "pk", "pv", "lengths", "total", "cos",
                                 "sin"], ["y0", "nk", "nv"], "com.microsoft",
         num_heads=4, kv_num_heads=2, do_rotary=1)],
    {"q": q, "k": k, "v": v, "pk": pk, "pv": pv, "lengths": lengths,
     "total": np.array([8], np.int32)}, [constant("cos", cos), constant("sin", sin)],
    [o])
# The heads of queries and keys are normalized before that.
weights = [floats(16), floats(16)]
norm = lambda x, weight: x / np.sqrt((x ** 2).mean(-1, keepdims=True) + 1e-6) * weight
q, k, v = floats(2, 5, 64), floats(2, 5, 32), floats(2, 5, 32)
heads = [x.reshape(2, 5, -1, 16).swapaxes(1, 2) for x in (q, k, v)]
o = attend(norm(heads[0], weights[0]), norm(heads[1], weights[1]), heads[2],
           np.tri(5, dtype=bool))
check("normalized", [
    node("GroupQueryAttention", ["q", "k", "v", "", "", "lengths", "total", *[""] * 7,
                                 "wq", "wk"], ["y0"], "com.microsoft", num_heads=4,
         kv_num_heads=2)],
    {"q": q, "k": k, "v": v, "lengths": np.array([4, 4], np.int32),
     "total": np.array([5], np.int32)},
    [constant("wq", weights[0]), constant("wk", weights[1])],
    [o.swapaxes(1, 2).reshape(2, 5, 64)])
# Products, diagonals, transposes and sums by an equation.
equations = ["bqhd,bkhd->bhqk", "bhqk, bkhd -> bqhd", "bsd,dhk->bshk", "bqhd,bkhd",
             "bshc,bshc->bhs", "bqhd->hd", "...hd,...kd->...hk", "bqhd,hd,bk->qk",
             "bqhq->hqb", "bqhd,bkhd->", "bqhd,bqhe->bqhde"]
x = floats(2, 3, 4, 5)
others = [floats(2, 6, 4, 5), floats(2, 6, 4, 5), floats(5, 4, 2), floats(2, 6, 4, 5),
          floats(2, 3, 4, 5), None, floats(1, 3, 6, 5), floats(4, 5), None,
          floats(2, 1, 4, 5), floats(2, 3, 4, 2)]
inputs, nodes, results = {"x": x, "bk": floats(2, 6), "square": floats(2, 3, 4, 3),
                          "p": floats(2, 4, 3, 6), "s": floats(2, 3, 5)}, [], []
for i, (equation, other) in enumerate(zip(equations, others)):
    names = ["p" if "bhqk," in equation else "s" if "bsd" in equation else
             "square" if "q->" in equation else "x"]
    if other is not None:
        inputs[f"x{i}"] = other
        names.append(f"x{i}")
    names += ["bk"] * equation.count(",bk-")
    nodes.append(node("Einsum", names, [f"y{i}"], equation=equation))
    results.append(np.einsum(equation.replace(" ", ""), *(inputs[n] for n in names)))
check("einsum", nodes, inputs, [], results)
check("einsum-dynamic", nodes, inputs, [], results,
      dims={name: [f"{name}{i}" for i in range(array.ndim)]
            for name, array in inputs.items() if 1 not in array.shape})
half, matrix = floats(3, 40).astype(np.float16), floats(40, 7).astype(np.float16)
product = np.einsum("ij,jk->ik", half.astype(np.float32), matrix.astype(np.float32))
check("einsum-half", [node("Einsum", ["x", "m"], ["y0"], equation="ij,jk->ik")],
      {"x": half}, [constant("m", matrix)], [product.astype(np.float16)], opset=12)
for equation, message in [("ij,jk->ik", "has 2 operands instead of 1"),
                          ("ij->k", "no operand has dimension 'k'"),
                          ("ij->ii", "has dimension 'i' twice"),
                          ("ijk->i", "3 dimensions for operand 0, which has 2"),
                          ("...ijk->i", "fewer dimensions than letters"),
                          ("......i->i", "two '...'"), ("i.->i", "expected letters"),
                          ("...i->i", "the result needs '...'")]:
    refuse("einsum-refused", [node("Einsum", ["x"], ["y0"], equation=equation)],
           {"x": floats(2, 3)}, [], message)
refuse("einsum-missing", [node("Einsum", ["x", ""], ["y0"], equation="i,j->ij")],
       {"x": floats(2)}, [], "input 1 is missing")
ranks = {"x": floats(*[1] * 9), "z": floats(*[1] * 16), "w": floats(1, 1)}
refuse("einsum-ranks", [node("Einsum", ["x", "x", "z", "w"], ["y0"],
                             equation="abcdefghi,jklmnopqr,abcdefghijklmnop,qr->")],
       ranks, [], "more than 16 dimensions")
refuse("eye-codes", [node("EyeLike", ["x"], ["y0"], dtype=2)], {"x": floats(2, 2)}, [],
       "is not supported")
# A tensor with one element becomes one of dynamic sizes, which must be 1, and back.
shapes = [node("ReduceProd", ["x"], ["p"], keepdims=0), node("Shape", ["x"], ["s"]),
          node("Add", ["s", "less"], ["t"]), node("Reshape", ["p", "t"], ["y0"])]
minus, none = ints("less", -2), constant("none", np.zeros(0, np.int64))
check("one", shapes, {"x": floats(3) * 0 + 2}, [minus], [np.full(1, 8, np.float32)],
      dims={"x": ["n"]})
refuse("not-one", shapes, {"x": floats(4)}, [minus], "is 4, expected 3",
       dims={"x": ["n"]})
refuse("not-scalar", [node("Reshape", ["x", "none"], ["y0"])], {"x": floats(2)}, [none],
       "is 2, expected 1", dims={"x": ["n"]})
# One row whose sum starts with one element.
row, matrix, start = floats(1, 2), floats(2, 3), floats(1, 1)
check("row", [node("Gemm", ["row", "matrix", "start"], ["y0"])],
      {"row": row, "matrix": matrix, "start": start}, [], [row @ matrix + start], opset=8,
      dims={"matrix": [2, "n"]})
finish()
