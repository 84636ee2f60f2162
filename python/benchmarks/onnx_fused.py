# ===- onnx_fused.py - how fused operators of ONNX Runtime are drawn -------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Generators of fused operators of ONNX Runtime, which this module adds to GENERATORS.
ONNX Runtime is their only judge."""

import numpy as np

from onnx_graphs import Skip, operator

EPSILONS = [None, .125, 1e-3]


def draw(g, shape, kind="f32", dynamic=.5):
    """An input of finite numbers."""
    value = g.add_input(kind, tuple(shape), dynamic)
    if not np.isfinite(value.array).all():
        raise Skip("infinite")
    return value


def draw_constant(g, *shape):
    """Finite numbers that are constant."""
    array = g.draw_numbers("f32", shape)
    if not np.isfinite(array).all():
        raise Skip("infinite")
    return g.constant(array)


def maybe(g, make):
    return make() if g.rng.random() < .5 else None


@operator("com.microsoft.FusedMatMul")
def fused_matmul(g, op):
    m, k, n = (g.rng.choice([1, 2, 3, 5, 17]) for _ in range(3))
    batch = [g.rng.choice([1, 2, 3]) for _ in range(g.rng.choice([0, 1, 2]))]
    flags = {f"trans{part}": g.rng.choice([None, 0, 1]) for part in "AB"}
    left = [*batch, *((k, m) if flags["transA"] else (m, k))]
    right = [*batch, *((n, k) if flags["transB"] else (k, n))]
    for part, shape in (("A", left), ("B", right)):
        if batch and g.rng.random() < .2:
            # The rows come before the batch.
            flags[f"transBatch{part}"] = 1
            shape.insert(0, shape.pop(-2))
    g.emit(op, [draw(g, left), draw(g, right)], alpha=g.rng.choice([None, .5, -2.0]),
           **flags)


@operator("com.microsoft.BiasGelu", "com.microsoft.FastGelu", "com.microsoft.QuickGelu",
          "com.microsoft.Gelu")
def gelu(g, op):
    a = g.pick({"f32"}, rank=lambda r: r > 0, finite=True)
    inputs = [a]
    if op.endswith("BiasGelu") or op.endswith("FastGelu") and g.rng.random() < .5:
        inputs.append(draw(g, a.shape[-1:]))
    alpha = g.rng.choice([None, 1.0, .5]) if op.endswith("QuickGelu") else None
    g.emit(op, inputs, alpha=alpha)


@operator("com.microsoft.SkipLayerNormalization",
          "com.microsoft.SkipSimplifiedLayerNormalization")
def skip_norm(g, op):
    shape = [g.rng.choice([1, 2, 3, 5]) for _ in range(g.rng.choice([2, 3]) - 1)]
    width = g.rng.choice([1, 2, 7, 16, 33])
    shape.append(width)
    skip = list(shape)
    if len(shape) == 3 and g.rng.random() < .3:
        skip = g.rng.choice([[1, *shape[1:]], shape[1:]])
    inputs = [draw(g, shape), draw(g, skip), draw_constant(g, width)]
    if "Simplified" not in op:
        inputs.append(maybe(g, lambda: draw_constant(g, width)))
    inputs.append(maybe(g, lambda: draw_constant(g, width)))
    while inputs[-1] is None:
        inputs.pop()
    results = g.rng.choice([1, 4])
    g.emit(op, inputs, results=results, hidden=(1, 2), epsilon=g.rng.choice(EPSILONS))


@operator("SimplifiedLayerNormalization")
def simplified_norm(g, op):
    # Rounded numbers near zero would be enlarged.
    a = g.pick({"f32"}, rank=lambda r: r > 0, finite=True, exact=True)
    if a.array.size == 0:
        raise Skip("the mean of nothing")
    g.emit(op, [a, draw(g, a.shape[-1:])], axis=g.rng.choice([None, -1]),
           epsilon=g.rng.choice(EPSILONS))


@operator("com.microsoft.EmbedLayerNormalization")
def embed_norm(g, op):
    batch, tokens, words, width = (g.rng.choice([1, 2, 3, 5]) for _ in range(4))
    has_segments = g.rng.random() < .5

    def draw_indices(count):
        rng = np.random.default_rng(g.rng.getrandbits(32))
        return g.constant(np.asarray(rng.integers(0, count, (batch, tokens)), np.int32))

    inputs = [draw_indices(words), draw_indices(2) if has_segments else None,
              draw_constant(g, words, width), draw_constant(g, tokens + 2, width),
              draw_constant(g, 2, width) if has_segments else None,
              draw_constant(g, width), draw_constant(g, width)]
    g.emit(op, inputs, results=2, hidden=(1,), epsilon=g.rng.choice(EPSILONS))


@operator("com.microsoft.FusedConv")
def fused_conv(g, op):
    images, channels, filters = (g.rng.choice([1, 2, 3]) for _ in range(3))
    kernel = [g.rng.choice([1, 2, 3]) for _ in range(2)]
    size = [side + g.rng.choice([0, 1, 4]) for side in kernel]
    inputs = [draw(g, (images, channels, *size)), draw_constant(g, filters, channels,
                                                               *kernel)]
    if g.rng.random() < .6:
        inputs.append(draw_constant(g, filters))
    activation, parameters = g.rng.choice([
        ("Relu", None), ("Tanh", None), ("Sigmoid", None), ("LeakyRelu", [.25]),
        ("Clip", [-1.0, 2.0]), ("HardSigmoid", [.25, .5])])
    g.emit(op, inputs, activation=activation, activation_params=parameters,
           strides=g.rng.choice([None, [1, 2], [2, 1]]),
           pads=g.rng.choice([None, [1, 0, 2, 1]]))


@operator("com.microsoft.RotaryEmbedding")
def rotary_embedding(g, op):
    batch, tokens, heads = (g.rng.choice([1, 2, 3]) for _ in range(3))
    size, rows = g.rng.choice([4, 8, 16]), 12
    is_partial = g.rng.random() < .3
    rotated = size // 2 if is_partial else size
    is_flat = is_partial or g.rng.random() < .5
    a = draw(g, (batch, tokens, heads * size) if is_flat else (batch, heads, tokens, size),
             dynamic=0)
    shape = g.rng.choice([(1,), (batch, tokens)])
    rng = np.random.default_rng(g.rng.getrandbits(32))
    positions = g.constant(np.asarray(rng.integers(0, rows - tokens, shape), np.int64))
    tables = [draw_constant(g, rows, rotated // 2) for _ in range(2)]
    g.emit(op, [a, positions, *tables], interleaved=g.rng.choice([None, 0, 1]),
           num_heads=heads if is_partial else None,
           rotary_embedding_dim=rotated if is_partial else None)
