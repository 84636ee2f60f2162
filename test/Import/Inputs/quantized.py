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
from onnx_model import node


def pack(codes, bits):
    """Packs codes of the last dimension into bytes, the first one in the lowest bits."""
    parts = 8 // bits
    pad = -codes.shape[-1] % parts
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, pad)])
    split = codes.reshape(*codes.shape[:-1], -1, parts).astype(np.uint8)
    return np.bitwise_or.reduce(split << np.arange(parts, dtype=np.uint8) * bits, -1,
                                dtype=np.uint8)


def make_weight(depth, columns, block, bits, zeros):
    """Returns the inputs behind the first one of MatMulNBits, and the matrix."""
    blocks = -(-depth // block)
    codes = random.integers(0, 1 << bits, (columns, blocks, block))
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


# Products, with partial blocks and panels, few and many rows.
for number, (rows, depth, columns, block, bits, zeros, level) in enumerate([
        (1, 128, 64, 32, 4, None, 0), (3, 64, 70, 16, 4, "codes", 1),
        (7, 96, 130, 64, 4, "floats", 2), (5, 256, 64, 256, 8, "codes", 3),
        (6, 40, 33, 32, 8, None, 4), (8, 128, 64, 64, 2, "codes", 0)]):
    a, bias = floats(2, rows, depth), floats(columns)
    inputs, matrix = make_weight(depth, columns, block, bits, zeros)
    names = [*inputs, *([] if "z" in inputs else [""]), "", "bias"]
    keys = dict(K=depth, N=columns, bits=bits, block_size=block, accuracy_level=level)
    if number == 1:  # Older files have one dimension.
        inputs["s"], inputs["z"] = inputs["s"].ravel(), inputs["z"].ravel()
    check(f"nbits{number}", [
        node("MatMulNBits", ["a", *inputs], ["y0"], "com.microsoft", **keys),
        node("MatMulNBits", ["a", *names], ["y1"], "com.microsoft", **keys)], {"a": a},
        [constant("bias", bias), *(constant(*item) for item in inputs.items())],
        [a @ matrix, a @ matrix + bias], dims={"a": ["n", rows if number % 2 else "m",
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
finish()
