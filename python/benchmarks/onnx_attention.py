# ===- onnx_attention.py - how attention is drawn --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Generators of attention and rotations, which this module adds to GENERATORS.

Rows that an operator leaves undefined, such as those of padding, are no results: a Where
that belongs to the nodes of the operator replaces them by zeros."""

import numpy as np

from onnx_fused import draw
from onnx_graphs import Skip, operator


def draw_kind(g):
    return g.rng.choice(["f32", "f32", "f32", "f16"])


def draw_table(g, kind, *shape):
    array = g.draw_numbers(kind, shape)
    if not np.isfinite(array).all():
        raise Skip("infinite")
    return g.constant(array)


def draw_integers(g, low, high, shape, kind=np.int64):
    rng = np.random.default_rng(g.rng.getrandbits(32))
    return np.asarray(rng.integers(low, high + 1, shape), kind)


def add_integers(g, array):
    """Integers that are constant, or an input."""
    if g.rng.random() < .5:
        return g.constant(array)
    value = g.add_input("i32" if array.dtype == np.int32 else "i64", array.shape)
    value.array = array
    return value


def draw_bools(g, shape):
    """Visible keys. Each row sees the first one: rows without keys differ by judge."""
    bits = draw_integers(g, 0, 1, shape).astype(np.bool_)
    bits[..., :1] = True
    value = g.add_input("bool", shape)
    value.array = bits
    return value


def broadcast(g, shape):
    """The shape with some dimensions of size 1."""
    return [1 if g.rng.random() < .3 else size for size in shape]


def keep_rows(g, node, inputs, kept):
    """Emits the node whose first result is (batch, tokens, width), of which the rows where
    `kept` is false are undefined, and other results that are not."""
    if kept.all():
        return g.emit_nodes([node], inputs)
    condition = g.constant(kept[..., None])
    zero = g.constant(np.zeros((), inputs[0].array.dtype))
    where = g.node("Where", [condition, node.output[0], zero], 1)
    names = [name for name in [where.output[0], *node.output[1:]] if name]
    return g.emit_nodes([node, where], [*inputs, condition, zero], names=names)


@operator("RotaryEmbedding", since=23)
def rotary_embedding(g, op):
    batch, tokens, heads = (g.rng.choice([1, 2, 3]) for _ in range(3))
    kind, size, rows = draw_kind(g), g.rng.choice([2, 4, 8, 16]), 12
    rotated = size // 2 if g.rng.random() < .4 and size > 2 else size
    is_flat = g.rng.random() < .5
    shape = (batch, tokens, heads * size) if is_flat else (batch, heads, tokens, size)
    inputs = [draw(g, shape, kind, dynamic=g.rng.choice([0, .3]) * (not is_flat))]
    has_positions = g.rng.random() < .6
    table = (rows,) if has_positions else (batch, tokens)
    inputs += [draw_table(g, kind, *table, rotated // 2) for _ in range(2)]
    if has_positions:
        inputs.append(add_integers(g, draw_integers(g, 0, rows - 1, (batch, tokens))))
    dim = rotated if rotated < size else g.rng.choice([None, 0])
    g.emit(op, inputs, interleaved=g.rng.choice([None, 0, 1]), rotary_embedding_dim=dim,
           num_heads=heads if is_flat or g.rng.random() < .3 else None)


@operator("Attention", since=23)
def attention(g, op):
    batch, kv_heads, group = (g.rng.choice([1, 1, 2, 3]) for _ in range(3))
    heads, kind = kv_heads * group, draw_kind(g)
    size, values = g.rng.choice([1, 4, 8]), g.rng.choice([1, 4, 8])
    tokens, new = g.rng.choice([1, 2, 5]), g.rng.choice([1, 2, 5, 17])
    past = g.rng.choice([None, None, 0, 1, 3])
    keys = new + (past or 0)
    is_flat = g.rng.random() < .4

    def draw_heads(count, rows, width):
        shape = (batch, rows, count * width) if is_flat else (batch, count, rows, width)
        return draw(g, shape, kind, dynamic=0 if is_flat else .2)

    inputs = [draw_heads(heads, tokens, size), draw_heads(kv_heads, new, size),
              draw_heads(kv_heads, new, values)]
    mask = None
    if g.rng.random() < .5:
        shape = broadcast(g, (batch, heads, tokens))[g.rng.randint(0, 2):]
        shape = tuple(shape) + (keys,)
        mask = draw_bools(g, shape) if g.rng.random() < .5 else draw(g, shape, kind)
    inputs.append(mask)
    has_past = past is not None
    if has_past:
        inputs += [draw(g, (batch, kv_heads, past, width), kind, dynamic=.3)
                   for width in (size, values)]
    elif g.opset >= 24 and g.rng.random() < .4:
        inputs += [None, None, add_integers(g, draw_integers(g, 1, keys, (batch,)))]
    while inputs[-1] is None:
        inputs.pop()
    flags = {"q_num_heads": heads, "kv_num_heads": kv_heads} if is_flat else {}
    g.emit(op, inputs, results=3 if has_past else 1, scale=g.rng.choice([None, .25, 1.0]),
           is_causal=g.rng.choice([None, 0, 1]),
           softcap=g.rng.choice([None, None, 0.0, 2.0]), **flags)


def draw_masks(g, batch, heads, tokens, keys, is_causal):
    """Returns the mask of padding, as lengths or as bits, and what is added to the
    scores; each may be None."""
    padding = score_bias = None
    choice = g.rng.random()
    if choice < .2 and not is_causal:
        padding = add_integers(g, draw_integers(g, 1, keys, (batch,), np.int32))
    elif choice < .4:
        bits = draw_integers(g, 0, 1, (batch, keys), np.int32)
        bits[:, 0] = 1
        padding = add_integers(g, bits)
    if (padding is None or padding.rank == 1) and g.rng.random() < .4:
        score_bias = draw(g, (g.rng.choice([1, batch]), g.rng.choice([1, heads]), tokens,
                              keys), dynamic=0)
    return padding, score_bias


@operator("com.microsoft.MultiHeadAttention")
def multi_head_attention(g, op):
    batch, heads = (g.rng.choice([1, 2, 3]) for _ in range(2))
    size, values = g.rng.choice([1, 4, 8]), g.rng.choice([4, 8])
    tokens, new = g.rng.choice([1, 2, 5]), g.rng.choice([1, 2, 5, 17])
    past = g.rng.choice([None, None, 0, 1, 3])
    is_causal = g.rng.random() < .4
    is_cross = past is None and g.rng.random() < .3
    if is_causal or past is not None:
        new = tokens
    keys = new + (past or 0)
    inputs = [draw(g, (batch, tokens, heads * size), dynamic=0)]
    for width in (size, values):
        shape = (batch, heads, new, width) if is_cross else (batch, new, heads * width)
        inputs.append(draw(g, shape, dynamic=0))
    bias = None
    if not is_cross and g.rng.random() < .4:
        bias = draw_table(g, "f32", heads * (2 * size + values))
    inputs.append(bias)
    inputs += draw_masks(g, batch, heads, tokens, keys, is_causal)
    if past is not None:
        inputs += [draw(g, (batch, heads, past, width), dynamic=0)
                   for width in (size, values)]
    while inputs[-1] is None:
        inputs.pop()
    g.emit(op, inputs, results=3 if past is not None else 1, num_heads=heads,
           scale=g.rng.choice([None, .25]), unidirectional=int(is_causal),
           mask_filter_value=g.rng.choice([None, -1e4]))


@operator("com.microsoft.Attention")
def packed_attention(g, op):
    batch, heads = (g.rng.choice([1, 2, 3]) for _ in range(2))
    tokens, width = g.rng.choice([1, 2, 5]), g.rng.choice([1, 3, 8])
    size = g.rng.choice([1, 4, 8])
    values = g.rng.choice([size, size, 4])
    columns = heads * (2 * size + values)
    inputs = [draw(g, (batch, tokens, width), dynamic=.3), draw_table(g, "f32", width,
                                                                      columns)]
    inputs.append(draw_table(g, "f32", columns) if g.rng.random() < .7 else None)
    is_causal = g.rng.random() < .4
    padding, score_bias = draw_masks(g, batch, heads, tokens, tokens, is_causal)
    inputs += [padding, None, score_bias]
    while inputs[-1] is None:
        inputs.pop()
    sizes = [heads * size, heads * size, heads * values]
    g.emit(op, inputs, num_heads=heads, scale=g.rng.choice([None, .25]),
           unidirectional=int(is_causal),
           qkv_hidden_sizes=sizes if values != size else g.rng.choice([None, sizes]))


@operator("com.microsoft.GroupQueryAttention")
def group_query_attention(g, op):
    batch, kv_heads, group = (g.rng.choice([1, 2, 3]) for _ in range(3))
    size, kind = g.rng.choice([8, 16]), draw_kind(g)
    heads = kv_heads * group
    is_first = g.rng.random() < .4
    tokens = g.rng.choice([1, 2, 5])
    buffer = g.rng.choice([0, 1, 5, 9])
    if is_first:
        # Shorter sequences are padded on the right.
        lengths = draw_integers(g, 1, tokens, (batch,))
        lengths[g.rng.randrange(batch)] = tokens
    else:
        # Several new tokens with past ones are for a single sequence.
        tokens = tokens if batch == 1 else 1
        lengths = draw_integers(g, tokens, max(buffer, tokens) + 1, (batch,))
    total = int(lengths.max())
    if is_first:
        total = tokens
    kept = np.arange(tokens)[None] < lengths[:, None] if is_first else \
        np.ones((batch, tokens), np.bool_)
    is_packed = g.rng.random() < .3
    width = (heads + 2 * kv_heads if is_packed else heads) * size
    inputs = [draw(g, (batch, tokens, width), kind, dynamic=0)]
    for _ in range(2):
        inputs.append(None if is_packed else
                      draw(g, (batch, tokens, kv_heads * size), kind, dynamic=0))
    inputs += [draw(g, (batch, kv_heads, buffer, size), kind, dynamic=0) for _ in range(2)]
    inputs += [add_integers(g, (lengths - 1).astype(np.int32)),
               g.constant(np.asarray(g.rng.choice([total, [total]]), np.int32))]
    rotates = g.rng.random() < .6
    inputs += [draw_table(g, kind, 24, size // 2) for _ in range(2)] if rotates else \
        [None, None]
    # In first calls, ONNX Runtime reads the first position only.
    has_positions = rotates and total != tokens and g.rng.random() < .3
    inputs.append(add_integers(g, draw_integers(g, 0, 23, (batch, tokens)))
                  if has_positions else None)
    bias = None
    if g.rng.random() < .3:
        bias = draw(g, (g.rng.choice([1, batch]), g.rng.choice([1, heads]), tokens, total),
                    kind, dynamic=0)
    inputs.append(bias)
    inputs.append(draw_table(g, kind, heads) if g.rng.random() < .3 else None)
    while inputs[-1] is None:
        inputs.pop()
    node = g.node(op, inputs, 3, num_heads=heads, kv_num_heads=kv_heads,
                  do_rotary=int(rotates) if rotates else g.rng.choice([None, 0]),
                  rotary_interleaved=g.rng.choice([None, 0, 1]) if rotates else None,
                  scale=g.rng.choice([None, .25]), softcap=g.rng.choice([None, 5.0]),
                  smooth_softmax=g.rng.choice([None, None, 0, 1]),
                  local_window_size=g.rng.choice([None, None, 1, 2, 4]))
    keep_rows(g, node, inputs, kept)
