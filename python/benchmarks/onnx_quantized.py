# ===- onnx_quantized.py - how operators of codes are drawn ----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Generators of operators of quantized models, which this module adds to GENERATORS.

Codes that are not elements of inputs and results, such as u16, are made and read by nodes
that are drawn together."""

import math

import numpy as np
from onnx import TensorProto

from onnx_graphs import Skip, operator

CODES = {"u8": (TensorProto.UINT8, 0, 255), "i8": (TensorProto.INT8, -128, 127),
         "u16": (TensorProto.UINT16, 0, 65535), "i16": (TensorProto.INT16, -32768, 32767),
         "u4": (TensorProto.UINT4, 0, 15), "i4": (TensorProto.INT4, -8, 7)}
# Quotients of the numbers of inputs by these are exact, except for the last.
SCALES = [.125, .25, .5, 1, 2, .1]


def draw_integers(g, low, high, shape):
    """Integers of a range, its ends among them."""
    rng = np.random.default_rng(g.rng.getrandbits(32))
    x = rng.integers(low, high + 1, shape)
    ends = rng.choice([low, high, low + 1, (low + high + 1) // 2], shape)
    return np.where(rng.random(shape) < .2, ends, x)


def draw_codes(g, kind, shape):
    """A constant of codes."""
    proto, low, high = CODES[kind]
    return g.tensor(proto, draw_integers(g, low, high, shape))


def draw_scales(g, shape, kind="f32", choices=SCALES):
    rng = np.random.default_rng(g.rng.getrandbits(32))
    return g.constant(np.asarray(rng.choice(choices, shape),
                                 np.float16 if kind == "f16" else np.float32))


def draw_form(g, shape, has_blocks):
    """The shape of scales, the axis and the size of blocks."""
    forms = ["tensor"]
    if shape and g.opset >= 13:
        forms.append("axis")
    if shape and g.opset >= 21 and has_blocks and min(shape) > 0:
        forms.append("blocks")
    form = g.rng.choice(forms)
    if form == "tensor":
        return (), None, None
    axis = g.rng.randrange(len(shape))
    signed = axis - len(shape) if g.rng.random() < .4 else axis
    if form == "axis":
        return (shape[axis],), signed, None
    size = g.rng.choice([n for n in range(1, shape[axis] + 1) if shape[axis] % n == 0])
    return (*shape[:axis], shape[axis] // size, *shape[axis + 1:]), signed, size


def draw_kind(g):
    return g.rng.choice(["u8", "i8"] + ["u16", "i16", "u4", "i4"] * (g.opset >= 21))


def dequantize(g, codes, shape, kind):
    """A node that dequantizes codes in some form, and its inputs but the codes."""
    form, axis, size = draw_form(g, shape, True)
    inputs = [draw_scales(g, form)]
    if g.rng.random() < .6:
        inputs.append(draw_codes(g, kind, form))
    node = g.node("DequantizeLinear", [codes, *inputs], 1, axis=axis, block_size=size)
    return node, inputs


@operator("QuantizeLinear", since=10)
def quantize_linear(g, op):
    a = g.pick({"f32", "f16"} if g.opset >= 19 else {"f32"}, exact=True, finite=True)
    form, axis, size = draw_form(g, a.shape, True)
    kind = draw_kind(g)
    inputs = [a, draw_scales(g, form, a.type)]
    dtype = None
    if g.rng.random() < .7 or g.opset < 21 and kind != "u8":
        inputs.append(draw_codes(g, kind, form))
    elif kind != "u8":
        dtype = CODES[kind][0]
    node = g.node(op, inputs, 1, axis=axis, block_size=size, output_dtype=dtype)
    if kind == "u8" and g.rng.random() < .4:
        return g.emit_nodes([node], inputs, exact=True)
    back, more = dequantize(g, node.output[0], a.shape, kind)
    g.emit_nodes([node, back], [*inputs, *more])


@operator("DequantizeLinear", since=10)
def dequantize_linear(g, op):
    if g.rng.random() < .5:
        a = g.pick({"i8", "u8"})
        node, inputs = dequantize(g, a, a.shape, a.type)
        return g.emit_nodes([node], [a, *inputs])
    if g.rng.random() < .3:
        a = g.pick({"i32"})
        return g.emit(op, [a, draw_scales(g, ())])
    kind, shape = draw_kind(g), g.draw_shape()
    codes = draw_codes(g, kind, shape)
    node, inputs = dequantize(g, codes, shape, kind)
    return g.emit_nodes([node], [codes, *inputs])


@operator("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(g, op):
    a = g.pick({"f32"}, finite=True)
    if a.array.size == 0:
        raise Skip("the range of nothing")
    node = g.node(op, [a], 3)
    back = g.node("DequantizeLinear", node.output, 1)
    # The scale is a result, too.
    g.emit_nodes([node, back], [a], names=[node.output[1], back.output[0]])


def draw_factor(g, shape, kind):
    """Nodes and inputs that make codes of 8 bits: a constant, an input, or computed."""
    if g.rng.random() < .4:
        a = g.add_input(kind, shape)
        return a, [], [a]
    if g.rng.random() < .5:
        a = draw_codes(g, kind, shape)
        return a, [], [a]
    a = g.add_input("f32", shape)
    if not np.isfinite(a.array).all():
        raise Skip("infinite")
    inputs = [a, draw_scales(g, ()), draw_codes(g, kind, ())]
    node = g.node("QuantizeLinear", inputs, 1)
    return node.output[0], [node], inputs


def draw_factors(g):
    m, k, n = (g.rng.choice([1, 2, 3, 5, 17, 33]) for _ in range(3))
    batch = tuple(g.rng.choice([1, 2, 3]) for _ in range(g.rng.choice([0, 0, 1])))
    kinds = [g.rng.choice(["u8", "i8"]) for _ in range(2)]
    a, nodes, inputs = draw_factor(g, (*batch, m, k), kinds[0])
    b, more, others = draw_factor(g, (*batch[:g.rng.randint(0, 1)], k, n), kinds[1])
    return a, b, nodes + more, inputs + others, (*batch, m, n), kinds


@operator("MatMulInteger", since=10)
def matmul_integer(g, op):
    a, b, nodes, inputs, shape, kinds = draw_factors(g)
    forms = [(), (1,)], [(), (1,), (shape[-1],)]
    zeros = []
    for kind, choices in zip(kinds, forms):
        if g.rng.random() < .3:
            zeros.append(None)
            continue
        zeros.append(draw_codes(g, kind, g.rng.choice(choices)))
    while zeros and zeros[-1] is None:
        zeros.pop()
    node = g.node(op, [a, b, *zeros], 1)
    g.emit_nodes([*nodes, node], [*inputs, *zeros])


@operator("QLinearMatMul", since=10)
def qlinear_matmul(g, op):
    a, b, nodes, inputs, shape, kinds = draw_factors(g)
    kind = g.rng.choice(["u8", "i8"])
    scales = [draw_scales(g, form, choices=[.125, .25, .5, 2]) for form in
              ((), g.rng.choice([(), (shape[-1],)]), ())]
    columns = scales[1].shape
    zeros = [draw_codes(g, each, form) for each, form in
             ((kinds[0], ()), (kinds[1], columns), (kind, ()))]
    node = g.node(op, [a, scales[0], zeros[0], b, scales[1], zeros[1], scales[2],
                       zeros[2]], 1)
    back, more = dequantize(g, node.output[0], shape, kind)
    g.emit_nodes([*nodes, node, back], [*inputs, *scales, *zeros, *more])


# Operators of ONNX Runtime --------------------------------------------------------------


@operator("com.microsoft.MatMulNBits")
def matmul_nbits(g, op):
    bits, size = g.rng.choice([4, 4, 8]), g.rng.choice([16, 32, 64])
    k, n = g.rng.choice([16, 32, 48, 64, 100, 128]), g.rng.choice([1, 2, 5, 16, 33, 64])
    count = -(-k // size)
    shape = [g.rng.choice([1, 2, 3, 9]) for _ in range(g.rng.randint(1, 2))]
    a = g.add_input("f32", (*shape, k))
    if not np.isfinite(a.array).all():
        raise Skip("infinite")
    codes = draw_codes(g, "u8", (n, count, size * bits // 8))
    rows = [(n, count), (n * count,)]
    scales = draw_scales(g, g.rng.choice(rows))
    zeros = bias = None
    draw = g.rng.random()
    if draw < .5:
        width = -(-count * bits // 8)
        zeros = draw_codes(g, "u8", g.rng.choice([(n, width), (n * width,)]))
    elif draw < .65:
        zeros = g.constant(draw_integers(g, 0, 15, g.rng.choice(rows)).astype(
            np.float32) / 2)
    if g.rng.random() < .3:
        bias = g.constant(g.draw_numbers("f32", (n,)))
    inputs = [a, codes, scales, zeros, None, bias]
    while inputs[-1] is None:
        inputs.pop()
    g.emit(op, inputs, K=k, N=n, bits=bits, block_size=size,
           accuracy_level=g.rng.choice([None, 0, 1]))


@operator("com.microsoft.GatherBlockQuantized")
def gather_block_quantized(g, op):
    size, blocks = g.rng.choice([16, 32]), g.rng.choice([1, 2, 3])
    rows, columns = g.rng.choice([1, 3, 9]), size * blocks
    kind = g.rng.choice(["u8", "u8", "u4", "i4"])
    bits = g.rng.choice([4, 8]) if kind == "u8" else 4
    width = columns * bits // 8 if kind == "u8" else columns
    data = draw_codes(g, kind, (rows, width))
    shape = g.draw_shape(g.rng.choice([1, 2]))
    if math.prod(shape) == 0:
        raise Skip("empty")
    indices = g.constant(draw_integers(g, -rows, rows - 1, shape).astype(
        g.rng.choice([np.int64, np.int32])))
    zeros = []
    if g.rng.random() < .5:
        packed = -(-blocks * bits // 8) if kind == "u8" else blocks
        zeros = [draw_codes(g, kind, (rows, packed))]
    g.emit(op, [data, indices, draw_scales(g, (rows, blocks)), *zeros], block_size=size,
           gather_axis=0, quantize_axis=g.rng.choice([1, -1]),
           bits=bits if kind == "u8" else None)
