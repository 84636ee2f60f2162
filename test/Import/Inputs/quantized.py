# ===- quantized.py - operators on codes against NumPy ---------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""quantized.py POSENC-RUN FOLDER: runs models with quantized weights and activations, and
compares the results with those of the formulas in f64."""

import numpy as np
from onnx_checks import check, constant, finish, floats, random, refuse
from onnx_model import node, tensor


def pack(codes, bits):
    """Packs codes of the last dimension into bytes, the first one in the lowest bits."""
    parts = 8 // bits
    pad = -codes.shape[-1] % parts
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, pad)])
    split = codes.reshape(*codes.shape[:-1], -1, parts).astype(np.uint8)
    return np.bitwise_or.reduce(split << np.arange(parts, dtype=np.uint8) * bits, -1,
                                dtype=np.uint8)


def make_weight(depth, columns, block, bits, zeros, largest=False):
    """Returns the inputs behind the first one of MatMulNBits, and the matrix. `largest`: of
    the first block, all codes are."""
    blocks = -(-depth // block)
    codes = random.integers(0, 1 << bits, (columns, blocks, block))
    if largest:
        codes[:, 0] = (1 << bits) - 1
    scales = (random.random((columns, blocks)) + 0.1).astype(np.float32) / (1 << bits)
    inputs = {"b": pack(codes, bits), "s": scales}
    zero = np.full((columns, blocks), 1 << (bits - 1))
    if zeros == "codes":
        zero = random.integers(0, 1 << bits, (columns, blocks))
        inputs["z"] = pack(zero, bits)
    elif zeros == "floats":
        zero = (random.random((columns, blocks)) * (1 << bits)).astype(np.float32)
        inputs["z"] = zero
    matrix = (codes - zero[..., None]) * scales.astype(float)[..., None]
    return inputs, matrix.reshape(columns, -1)[:, :depth].T


def round_rows(a, block):
    """Returns the rows that products of level 4 multiply: integers from -127 to 127 times the
    scale of a block. Checks their error, which docs/numerics.md bounds."""
    rows, depth = a.shape
    blocks = -(-depth // block)
    padded = np.pad(a, ((0, 0), (0, -depth % block))).reshape(rows, blocks, block)
    largest = abs(padded).max(-1, keepdims=True)
    small = largest < np.float32(2)**-100
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(small, np.float32(0), np.float32(127) / largest)
        integers = np.clip(np.rint(padded * factor), -127, 127)
        scale = np.where(small, np.float32(0), largest / np.float32(127))
        rounded = integers * scale.astype(float)
    kept = (np.isfinite(largest) & ~small)[..., 0]
    assert (abs(rounded - padded)[kept] <= (largest * (1 / 254 + 2.0**-22))[kept]).all()
    return rounded.reshape(rows, blocks * block)[:, :depth]


# Products, with partial blocks and panels, few and many rows.
for number, (rows, depth, columns, block, bits, zeros, level) in enumerate([
        (1, 128, 64, 32, 4, None, 0), (3, 64, 70, 16, 4, "codes", 1),
        (7, 96, 130, 64, 4, "floats", 2), (5, 512, 64, 512, 8, "codes", 3),
        (6, 40, 33, 32, 8, None, 4), (8, 128, 64, 64, 2, "codes", 0),
        (1, 96, 65, 32, 4, None, 4), (17, 64, 64, 16, 4, "codes", 4),
        (9, 130, 70, 64, 4, "floats", 4), (4, 256, 64, 128, 8, "codes", 4),
        (2, 64, 70, 16, 2, "codes", 4), (0, 64, 64, 32, 4, None, 4),
        # Several cache blocks of rows.
        (20, 6144, 3, 64, 4, None, 0)]):
    a, bias = floats(2, rows, depth), floats(columns)
    inputs, matrix = make_weight(depth, columns, block, bits, zeros, level == 4)
    names = [*inputs, *([] if "z" in inputs else [""]), "", "bias"]
    keys = dict(K=depth, N=columns, bits=bits, block_size=block, accuracy_level=level)
    if number == 1:  # Older files have one dimension.
        inputs["s"], inputs["z"] = inputs["s"].ravel(), inputs["z"].ravel()
    if level == 4:
        # Rows of one number, zeros, numbers that count as zeros, and special ones.
        flat = a.reshape(-1, depth)
        flat[:1], flat[1:2, :block], flat[2:3, :block] = 3, 0, 1e-36
        flat[3:4, 5], flat[4:5, 7] = np.inf, np.nan
    left = round_rows(a.reshape(-1, depth), block).reshape(a.shape) if level == 4 else a
    with np.errstate(invalid="ignore"):
        product = left @ matrix
    check(f"nbits{number}", [
        node("MatMulNBits", ["a", *inputs], ["y0"], "com.microsoft", **keys),
        node("MatMulNBits", ["a", *names], ["y1"], "com.microsoft", **keys)], {"a": a},
        [constant("bias", bias), *(constant(*item) for item in inputs.items())],
        [product, product + bias], dims={"a": ["n", rows if number % 2 else "m",
                                                     depth]})

# Rows at indices: the weight of an output layer, and others.
indices = np.array([[3, -1], [0, 12]], np.int64)
for bits, zeros in ((4, None), (4, "codes"), (8, "codes"), (2, None)):
    inputs, matrix = make_weight(64, 13, 16, bits, zeros)
    inputs["b"] = inputs["b"].reshape(13, -1)
    check(f"rows{bits}{zeros}", [
        node("GatherBlockQuantized", ["b", "i", *list(inputs)[1:]], ["y0"],
             "com.microsoft", bits=bits, block_size=16, quantize_axis=-1)],
        {"i": indices}, [constant(*item) for item in inputs.items()],
        [matrix.T[indices]], dims={"i": ["n", 2]})
inputs, _ = make_weight(64, 13, 16, 4, None)
refuse("row", [
    node("GatherBlockQuantized", ["b", "i", "s"], ["y0"], "com.microsoft", block_size=16)],
    {"i": np.array([13])},
    [constant("b", inputs["b"].reshape(13, -1)), constant("s", inputs["s"])],
    "i[0] is 13, expected at least -13 and at most 12")


def quantize(x, scale, zero, kind):
    bounds = np.iinfo(kind)
    return np.clip(np.rint((x / scale).astype(np.float32)) + zero, bounds.min,
                   bounds.max).astype(kind)


# Codes of all types, of whole tensors, along an axis, and in blocks.
x = floats(4, 6, 5) * 4
row = (random.random(6) + 0.1).astype(np.float32)
for kind in (np.int8, np.uint8, np.int16, np.uint16):
    bounds = np.iinfo(kind)
    one, zero = np.float32(0.02), np.array(bounds.max // 3, kind)
    zeros = random.integers(bounds.min // 2, bounds.max // 2, 6).astype(kind)
    blocks = (random.random((4, 3, 5)) / 16 + 0.01).astype(np.float32)
    wide = blocks.repeat(2, 1)
    column = (slice(None), None)
    codes = [quantize(x, one, int(zero), kind), quantize(x, row[column], zeros[column], kind),
             quantize(x, wide, 0, kind)]
    outputs = [(codes[0] - float(zero)) * one,
               (codes[1] - zeros[column].astype(float)) * row[column], codes[2] * wide]
    number = {np.int8: 3, np.uint8: 2, np.int16: 5, np.uint16: 4}[kind]
    check(f"linear-{kind.__name__}", [
        node("QuantizeLinear", ["x", "one", "zero"], ["a"]),
        node("DequantizeLinear", ["a", "one", "zero"], ["y0"]),
        node("QuantizeLinear", ["x", "row", "zeros"], ["b"], axis=-2),
        node("Transpose", ["b"], ["c"], perm=[1, 0, 2]),
        node("DequantizeLinear", ["c", "row", "zeros"], ["y1"], axis=0),
        node("QuantizeLinear", ["x", "blocks"], ["d"], block_size=2, output_dtype=number),
        node("DequantizeLinear", ["d", "blocks"], ["y2"], block_size=2)], {"x": x},
        [constant("one", np.array(one)), constant("zero", zero), constant("row", row),
         constant("zeros", zeros), constant("blocks", blocks)],
        [outputs[0], outputs[1].transpose(1, 0, 2), outputs[2]],
        dims={"x": ["n", 6, "m"]} if kind is np.int8 else None)

# Without a zero point or a type, codes are unsigned bytes. Integers of 32 bits have a scale.
half = np.array([-1, 0.5, 1.5, 2.5, 254.5, 256, np.nan], np.float32)
check("halves", [
    node("QuantizeLinear", ["x", "one"], ["a"]), node("DequantizeLinear", ["a", "one"], ["y0"]),
    node("DequantizeLinear", ["wide", "one"], ["y1"])], {"x": half},
    [constant("one", np.array(1, np.float32)), constant("wide", np.array([7, -9], np.int32))],
    [np.array([0, 0, 2, 2, 254, 255, 0]), np.array([7, -9])])

# ONNX Runtime's quantizer writes one scale as a tensor of rank 1, and its zero point as one of
# rank 0: of biases, and of weights and activations of models without channels.
bias, x = np.array([70, -90, 5], np.int32), floats(4, 3)
scale, zero = np.array([0.02], np.float32), np.array(7, np.uint8)
codes = quantize(x, scale[0], 7, np.uint8)
check("ranks", [
    node("DequantizeLinear", ["bias", "scale", "none"], ["y0"]),
    node("QuantizeLinear", ["x", "scale", "zero"], ["a"]),
    node("DequantizeLinear", ["a", "scale", "zero"], ["y1"]),
    node("DequantizeLinear", ["a", "scalar", "zeros"], ["y2"])], {"x": x},
    [constant("bias", bias), constant("scale", scale), constant("none", np.array(0, np.int32)),
     constant("zero", zero), constant("scalar", scale[0]), constant("zeros", zero[None])],
    [bias * 0.02, *[(codes - 7.0) * scale[0]] * 2], dims={"x": ["n", 3]})
refuse("ranks", [node("QuantizeLinear", ["x", "row", "zero"], ["a"]),
                 node("DequantizeLinear", ["a", "row", "zero"], ["y0"])], {"x": x},
       [constant("row", np.ones(3, np.float32)), constant("zero", zero)],
       "scale and zero point differ in shape")

# Constants with 4 bits, which have two codes in a byte, and products that read codes.
a = floats(3, 24)
for kind, low in (("u4", 0), ("i4", -8)):
    codes = random.integers(low, low + 16, (24, 10))
    scales, zeros = (random.random((3, 10)) + 0.1).astype(np.float32), \
        random.integers(low, low + 16, (3, 10))
    w = (codes - zeros.repeat(8, 0)) * scales.repeat(8, 0).astype(float)
    check(f"four-{kind}", [
        node("DequantizeLinear", ["w", "s", "z"], ["v"], axis=0, block_size=8),
        node("Identity", ["v"], ["y0"]), node("MatMul", ["a", "v"], ["y1"])], {"a": a},
        [tensor("w", kind, codes.shape, raw=pack((codes & 15).reshape(-1), 4).tobytes()),
         tensor("z", kind, zeros.shape, raw=pack((zeros & 15).reshape(-1), 4).tobytes()),
         constant("s", scales)], [w, a @ w], dims={"a": ["n", 24]})
for name, scale, zero, axis in (
        ("one", np.float32(0.25), np.int8(-3), 1), ("columns", None, None, 1),
        ("rows", None, None, 0)):
    codes = random.integers(-128, 128, (24, 70)).astype(np.int8)
    if scale is None:
        shape = codes.shape[axis]
        scale = (random.random(shape) / 8).astype(np.float32)
        zero = random.integers(-128, 128, shape).astype(np.int8)
    lead = (slice(None), None) if axis == 0 else ()
    w = (codes - zero[lead].astype(float)) * scale[lead]
    check(f"eight-{name}", [
        node("DequantizeLinear", ["w", "s", "z"], ["v"], axis=axis),
        node("MatMul", ["a", "v"], ["y0"]),
        node("DequantizeLinear", ["t", "s", "z"], ["u"], axis=1 - axis),
        node("Gemm", ["a", "u"], ["y1"], transB=1)], {"a": a},
        [constant("w", codes), constant("t", np.ascontiguousarray(codes.T)),
         constant("s", np.array(scale)), constant("z", np.array(zero))], [a @ w, a @ w],
        dims={"a": ["n", 24]})

# A batch of matrices: a scale for each, for their columns, or for blocks.
x = floats(2, 1, 3, 16)
for kind, low, axis, block in (("i8", -128, 0, 0), ("i8", -128, 2, 0), ("u8", 0, -1, 0),
                               ("i4", -8, 1, 8), ("u8", 0, 1, 4), ("i8", -128, 1, 0)):
    bits = int(kind[1:])
    codes = random.integers(low, low + (1 << bits), (3, 16, 10))
    shape = (3, 16 // block, 10) if block else codes.shape[axis]
    scales = (random.random(shape) / (1 << bits)).astype(np.float32)
    zeros = random.integers(low, low + (1 << bits), shape)
    spread = (lambda x: x.repeat(block, 1)) if block else \
        lambda x: x.reshape([-1 if i == axis % 3 else 1 for i in range(3)])
    w = (codes - spread(zeros)) * spread(scales).astype(float)
    raw = [pack((a & (1 << bits) - 1).reshape(-1), bits).tobytes() for a in (codes, zeros)]
    check(f"batch-{kind}-{axis}-{block}", [
        node("DequantizeLinear", ["w", "s", "z"], ["v"], axis=axis,
             **({"block_size": block} if block else {})),
        node("MatMul", ["x", "v"], ["y0"]), node("MatMul", ["row", "v"], ["y1"]),
        node("Transpose", ["v"], ["t"], perm=[0, 2, 1]), node("Transpose", ["t"], ["u"],
                                                              perm=[0, 2, 1]),
        node("MatMul", ["x", "u"], ["y2"]), node("Identity", ["v"], ["y3"])],
        {"x": x, "row": x[0, 0, 0]},
        [tensor("w", kind, codes.shape, raw=raw[0]),
         tensor("z", kind, zeros.shape, raw=raw[1]), constant("s", scales)],
        [x @ w, x[0, 0, 0] @ w, x @ w, w], dims={"x": ["n", 1, "m", 16]})

# Images of bytes: moved, divided by 255 and convolved; quantized results; products.
image = random.integers(0, 256, (2, 9, 12, 3)).astype(np.uint8)
kernel, scale, zero = floats(4, 3, 3, 4), np.float32(0.05), np.uint8(131)
pixels = image.transpose(0, 3, 1, 2)
windows = (pixels / 255.0).reshape(2, 3, 3, 3, 3, 4)
convolved = np.einsum("nchiwj,ocij->nohw", windows, kernel)
flat = image.reshape(18, 36)
weight = random.integers(-128, 128, (36, 5)).astype(np.int8)
matrix = random.integers(0, 256, (36, 5)).astype(np.uint8)
wide = floats(5, 3) * 20 + 120
check("images", [
    node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]), node("Cast", ["t"], ["f"], to=1),
    node("Div", ["f", "full"], ["d"]), node("Conv", ["d", "k"], ["c"], strides=[3, 4]),
    node("QuantizeLinear", ["c", "s", "z"], ["y0"]), node("Identity", ["c"], ["y1"]),
    node("Reshape", ["x", "flat"], ["r"]),
    node("MatMulInteger", ["r", "w", "z"], ["y2"]),
    node("DequantizeLinear", ["m", "s", "z"], ["y3"]),
    node("Slice", ["x", "from", "to"], ["y4"]), node("Concat", ["t", "t"], ["y5"], axis=1),
    node("Cast", ["x"], ["y6"], to=7), node("Cast", ["wide"], ["y7"], to=2),
    node("MatMulInteger", ["r", "m"], ["y8"]), node("Cast", ["x"], ["y9"], to=9)],
    {"x": image, "m": matrix, "wide": wide},
    [constant("full", np.float32(255)), constant("k", kernel), constant("s", scale),
     constant("z", zero), constant("w", weight), constant("flat", np.array([-1, 36])),
     constant("from", np.array([1])), constant("to", np.array([2]))],
    [np.clip(np.rint(convolved.astype(np.float32) / scale) + 131, 0, 255).astype(np.uint8),
     convolved, (flat.astype(np.int32) - 131) @ weight.astype(np.int32),
     (matrix.astype(float) - 131) * scale, image[1:2], np.concatenate([pixels] * 2, 1),
     image.astype(np.int64), wide.astype(np.uint8), flat.astype(np.int32) @ matrix, image != 0],
    dims={"x": ["n", 9, 12, 3]})

# Products of codes.
for left, right in ((np.uint8, np.int8), (np.int8, np.uint8), (np.uint8, np.uint8)):
    p, q = quantize(floats(3, 24), 0.02, 50, left), quantize(floats(24, 10), 0.02, 90, right)
    zeros = random.integers(0, 100, 10).astype(right)
    sums = (p.astype(int) - 50) @ (q.astype(int) - zeros)
    check(f"integers-{left.__name__}-{right.__name__}", [
        node("QuantizeLinear", ["x", "s", "zero"], ["a"]),
        node("MatMulInteger", ["a", "q", "zero", "zeros"], ["y0"]),
        node("MatMulInteger", ["a", "q"], ["y1"]),
        node("QLinearMatMul", ["a", "s", "zero", "q", "row", "zeros", "t", "zero"], ["b"]),
        node("DequantizeLinear", ["b", "t", "zero"], ["y2"])],
        {"x": ((p.astype(float) - 50) * 0.02).astype(np.float32)},
        [constant("s", np.array(0.02, np.float32)), constant("zero", np.array(50, left)),
         constant("q", q), constant("zeros", zeros), constant("t", np.array(4, np.float32)),
         constant("row", np.linspace(0.1, 0.3, 10, dtype=np.float32))],
        [sums, p.astype(int) @ q.astype(int),
         (quantize(sums * 0.02 * np.linspace(0.1, 0.3, 10), 4, 50, left) - 50.0) * 4])
# Extremes, one zero point and one for each row or column, and several blocks of the depth.
for rows, depth, columns in ((1, 5, 3), (17, 37, 70), (2, 1030, 65), (0, 8, 8)):
    for left, right in ((np.uint8, np.int8), (np.int8, np.int8)):
        p, q = (random.choice([np.iinfo(kind).min, np.iinfo(kind).max, 3], shape).astype(kind)
                for kind, shape in ((left, (rows, depth)), (right, (depth, columns))))
        zeros = np.array(np.iinfo(left).max, left), \
            random.choice([-128, 127], columns).astype(right)
        each = random.integers(0, 100, rows).astype(left)
        low = -128 if left is np.int8 else 0
        check(f"bytes{rows}-{left.__name__}", [
            node("QuantizeLinear", ["x", "one", "low"], ["a"]),
            node("MatMulInteger", ["a", "q", "zero", "zeros"], ["y0"]),
            node("MatMulInteger", ["a", "q", "each", "first"], ["y1"])],
            {"x": (p.astype(np.float32) - low)},
            [constant("one", np.array(1, np.float32)), constant("low", np.array(low, left)),
             constant("q", q), constant("zero", zeros[0]), constant("zeros", zeros[1]),
             constant("each", each), constant("first", zeros[1][:1])],
            [(p.astype(int) - int(zeros[0])) @ (q.astype(int) - zeros[1]),
             (p.astype(int) - each.astype(int)[:, None]) @ (q.astype(int) - int(zeros[1][0]))],
            dims={"x": ["n", depth]})
# More zero points or scales than rows or columns would add rows or columns.
codes = [constant("q", np.ones((4, 1), np.int8)), constant("zero", np.array(1, np.int8)),
         constant("s", np.array(1, np.float32))]
for name, wrong_points in (("row", np.ones(5, np.int8)), ("row", np.ones((1, 4), np.int8)),
                           ("column", np.ones(5, np.int8))):
    for right in ("q", "p"):
        zeros = ["zeros"] if name == "row" else ["", "zeros"]
        refuse(f"zeros-{name}", [node("MatMulInteger", ["a", right, *zeros], ["y0"])],
               {"a": np.ones((1, 4), np.int8), "p": np.ones((4, 1), np.int8)},
               [*codes, constant("zeros", wrong_points)],
               f"expected one zero point, or one for each {name}")
refuse("scales", [node("QLinearMatMul", ["a", "s", "zero", "q", "row", "zero", "s", "zero"],
                       ["y0"])], {"a": np.ones((1, 4), np.int8)},
       [*codes, constant("row", np.ones(5, np.float32))],
       "expected one scale, or one for each row or column")

for number, x in enumerate([floats(3, 9), abs(floats(7)) + 1, np.zeros(3, np.float32)]):
    low, high = min(x.min(), 0), max(x.max(), 0)
    scale = np.float32(high - low) / np.float32(255) if high > low else np.float32(1)
    zero = np.clip(np.rint(-low / scale), 0, 255).astype(np.uint8)
    codes = quantize(x, scale, int(zero), np.uint8)
    check(f"dynamic{number}", [
        node("DynamicQuantizeLinear", ["x"], ["a", "y0", "z"]),
        node("DequantizeLinear", ["a", "y0", "z"], ["y1"])], {"x": x}, [],
        [np.array(scale), (codes - float(zero)) * scale])
finish()
