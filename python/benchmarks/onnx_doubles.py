# ===- onnx_doubles.py - ONNX models in f64 ---------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Evaluates an ONNX model in f64: its weights are dequantized, and every tensor of floats
is f64. Operators of ONNX are those of onnx.reference, those of ONNX Runtime are here."""

import numpy as np
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def get(node, name, default):
    value = getattr(node, name, None)
    return default if value is None else value


def unpack(codes, bits):
    """Splits bytes to codes, the lowest bits first, along the last dimension."""
    codes = np.asarray(codes)
    parts = [codes >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*codes.shape[:-1], -1).astype(float)


def dequantize(codes, scales, zeros, bits, size):
    """Rows of codes, whose blocks of `size` have a scale each."""
    count = -(-codes.shape[-1] // size)
    scales = np.asarray(scales, float).reshape(*codes.shape[:-1], count)
    if zeros is None:
        zeros = 1 << bits - 1
    else:
        zeros = np.asarray(zeros)
        zeros = unpack(zeros.reshape(*codes.shape[:-1], -1), bits)[..., :count] \
            if zeros.dtype == np.uint8 else zeros.reshape(scales.shape)
        zeros = np.repeat(zeros, size, -1)[..., :codes.shape[-1]]
    return (codes - zeros) * np.repeat(scales, size, -1)[..., :codes.shape[-1]]


class MatMulNBits(OpRun):
    op_domain = "com.microsoft"

    def _run(self, x, codes, scales, zeros=None, g_idx=None, bias=None, **_):
        bits, columns = get(self, "bits", 4), self.N
        codes = unpack(codes.reshape(columns, -1), bits)[:, :self.K]
        matrix = dequantize(codes, scales, zeros, bits, self.block_size)
        return (x @ matrix.T + (0 if bias is None else bias),)


class GatherBlockQuantized(OpRun):
    op_domain = "com.microsoft"

    def _run(self, data, indices, scales, zeros=None, **_):
        bits = get(self, "bits", 4)
        assert data.dtype == np.uint8 and get(self, "gather_axis", 0) == 0
        table = dequantize(unpack(data, bits), scales, zeros, bits,
                           get(self, "block_size", 128))
        return (table[indices],)


def normalize(x, weight, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


class SimplifiedLayerNormalization(OpRun):
    op_domain = ""

    def _run(self, x, weight, **_):
        return (normalize(x, weight, get(self, "epsilon", 1e-5)),)


class SkipSimplifiedLayerNormalization(OpRun):
    op_domain = "com.microsoft"

    def _run(self, x, skip, weight, bias=None, **_):
        total = x + skip + (0 if bias is None else bias)
        # The second and the third result are for gradients, and not read.
        result = normalize(total, weight, get(self, "epsilon", 1e-5))
        return (result, total, total, total)[:len(self.onnx_node.output)]


class LayerNormalization(OpRun):
    """That of onnx.reference computes in f32."""

    op_domain = ""

    def _run(self, x, weight, bias=None, **_):
        axes = tuple(range(get(self, "axis", -1) % x.ndim, x.ndim))
        rest = x - x.mean(axes, keepdims=True)
        rest /= np.sqrt((rest * rest).mean(axes, keepdims=True) +
                        get(self, "epsilon", 1e-5))
        return (rest * weight + (0 if bias is None else bias),)


class GatherElements(OpRun):
    """That of onnx.reference fails for some shapes."""

    op_domain = ""

    def _run(self, data, indices, **_):
        axis = get(self, "axis", 0) % data.ndim
        part = data[tuple(slice(None) if dim == axis else slice(size)
                          for dim, size in enumerate(indices.shape))]
        return (np.take_along_axis(part, indices % data.shape[axis], axis),)


def rotate(x, positions, cos, sin, is_interleaved):
    """Rotates (batch, tokens, heads, channels)."""
    cos, sin = (table[positions][:, :, None] for table in (cos, sin))
    size = 2 * cos.shape[-1]
    part, rest = x[..., :size], x[..., size:]
    low, high = (part[..., ::2], part[..., 1::2]) if is_interleaved \
        else np.split(part, 2, -1)
    pairs = [low * cos - high * sin, high * cos + low * sin]
    part = np.stack(pairs, -1).reshape(part.shape) if is_interleaved \
        else np.concatenate(pairs, -1)
    return np.concatenate([part, rest], -1)


class RotaryEmbedding(OpRun):
    op_domain = "com.microsoft"

    def _run(self, x, positions, cos, sin, **_):
        is_flat = x.ndim == 3
        batch, tokens = (x.shape[0], x.shape[1 if is_flat else 2])
        heads = get(self, "num_heads", 0) or x.shape[-1] // (2 * cos.shape[-1])
        y = x.reshape(batch, tokens, heads, -1) if is_flat else x.swapaxes(1, 2)
        if positions.size == 1:
            positions = positions.reshape(1, 1) + np.arange(tokens)
        positions = np.broadcast_to(positions, (batch, tokens))
        y = rotate(y, positions, cos, sin, get(self, "interleaved", 0))
        return (y.reshape(x.shape) if is_flat else y.swapaxes(1, 2),)


class GroupQueryAttention(OpRun):
    op_domain = "com.microsoft"

    def _run(self, q, k, v, past_k, past_v, seqlens_k, total, cos=None, sin=None,
             positions=None, bias=None, sinks=None, k_scale=None, v_scale=None,
             q_norm=None, k_norm=None, **_):
        heads, kv_heads = self.num_heads, self.kv_num_heads
        batch, tokens = q.shape[:2]
        if k is None or k.size == 0:
            size = q.shape[-1] // (heads + 2 * kv_heads)
            q, k, v = np.split(q, [heads * size, (heads + kv_heads) * size], -1)
        q, k, v = (x.reshape(batch, tokens, count, -1) for x, count in
                   ((q, heads), (k, kv_heads), (v, kv_heads)))
        epsilon = get(self, "qk_norm_epsilon", 1e-6)
        q, k = (x if weight is None else normalize(x, weight, epsilon)
                for x, weight in ((q, q_norm), (k, k_norm)))
        lengths = np.asarray(seqlens_k).reshape(-1) + 1
        first = lengths - tokens
        assert (first == past_k.shape[2]).all(), "caches as long as their contents"
        at = first[:, None] + np.arange(tokens)
        if get(self, "do_rotary", 0):
            form = get(self, "rotary_interleaved", 0)
            q, k = (rotate(x, at if positions is None else positions, cos, sin, form)
                    for x in (q, k))
        k, v = (np.concatenate([past, x.swapaxes(1, 2)], 2)
                for past, x in ((past_k, k), (past_v, v)))
        wide_k, wide_v = (np.repeat(x, heads // kv_heads, 1) for x in (k, v))
        scale = get(self, "scale", 0) or q.shape[-1] ** -.5
        scores = q.swapaxes(1, 2) @ wide_k.swapaxes(2, 3) * scale
        cap = get(self, "softcap", 0)
        scores = np.tanh(scores / cap) * cap if cap else scores
        scores = scores if bias is None else scores + bias
        behind = at[:, None, :, None] - np.arange(k.shape[2])
        window = get(self, "local_window_size", -1)
        seen = (behind >= 0) & ((window < 0) | (behind < window))
        scores = np.where(seen, scores, -np.inf)
        highest = scores.max(-1, keepdims=True)
        weights = np.exp(scores - highest)
        total = weights.sum(-1, keepdims=True)
        if sinks is not None:
            total = total + np.exp(np.reshape(sinks, (-1, 1, 1)) - highest)
        y = (weights / total @ wide_v).swapaxes(1, 2).reshape(batch, tokens, -1)
        return y, k, v


OPERATORS = [MatMulNBits, GatherBlockQuantized, SimplifiedLayerNormalization,
             SkipSimplifiedLayerNormalization, LayerNormalization, GatherElements,
             RotaryEmbedding, GroupQueryAttention]


def widen_tensor(tensor):
    if tensor.data_type in FLOATS:
        array = numpy_helper.to_array(tensor).astype(float)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def widen(graph):
    """Makes all floats of a graph f64."""
    for tensor in graph.initializer:
        widen_tensor(tensor)
    for value in [*graph.input, *graph.output]:
        if value.type.tensor_type.elem_type in FLOATS:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    del graph.value_info[:]
    for number, node in enumerate(graph.node):
        # The evaluator would pass a result without name for inputs without name.
        for place, name in enumerate(node.output):
            node.output[place] = name or f"unused.{number}.{place}"
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                widen(attribute.g)
            elif attribute.type == AttributeProto.TENSOR:
                widen_tensor(attribute.t)
            elif attribute.name == "value_float":
                value = helper.make_tensor("", TensorProto.DOUBLE, [], [attribute.f])
                attribute.CopyFrom(helper.make_attribute("value", value))
            elif node.op_type == "Cast" and attribute.name == "to" and \
                    attribute.i in FLOATS:
                attribute.i = TensorProto.DOUBLE


class Doubles:
    """A model of which all tensors of floats are f64; `model` is changed."""

    def __init__(self, model):
        widen(model.graph)
        self.evaluator = ReferenceEvaluator(model, new_ops=OPERATORS)
        self.names = [value.name for value in model.graph.output]

    def run(self, feeds):
        """Returns the results by name."""
        wide = {name: array.astype(float) if array.dtype.kind == "f" else array
                for name, array in feeds.items()}
        return dict(zip(self.names, self.evaluator.run(None, wide)))
