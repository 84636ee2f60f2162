# ===- norms.py - compares norms of queries and keys with NumPy ------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""norms.py POSENC-RUN: attention and decode with --qk-norm, of models that norm
in different ways. The weights are a checkpoint's. How a model uses them is
written down here once more, in f64, so that neither the module made of a config
nor the reference is taken for granted."""

import json
import subprocess
import sys

import numpy as np

HEADS, KEY_HEADS, DIM, BASE = 6, 2, 32, 10000.0
TOKENS, FIRST = 19, 5


def rms(x, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


def norm_heads(x, weight, eps):
    return rms(x, eps) * weight


def norm_heads_plus_one(x, weight, eps):
    return rms(x, eps) * (1.0 + weight)


def norm_tokens(x, weight, eps):
    """All heads of a token together, as before the split into heads."""
    rows = x.reshape(*x.shape[:2], -1)
    return (rms(rows, eps) * weight).reshape(x.shape)


def norm_wrongly(x, weight, eps):
    """Control: OLMo's weights, but a mean per head."""
    return rms(x, eps) * weight.reshape(x.shape[2:])


# Keys of the config, the norm, its default epsilon, and whether the norm spans all
# heads of a token.
MODELS = {
    "qwen3": ({}, norm_heads, 1e-6, False),
    "exaone4": ({"rms_norm_eps": 0.03125}, norm_heads, 0.03125, False),
    "gemma3_text": ({"query_pre_attn_scalar": DIM, "rope_theta": BASE},
                    norm_heads_plus_one, 1e-6, False),
    "olmo2": ({}, norm_tokens, 1e-5, True),
    "olmoe": ({"rms_norm_eps": 0.5}, norm_tokens, 0.5, True),
}


def rotate(x, positions):
    angles = positions[..., None, None] * BASE ** (-2.0 * np.arange(DIM // 2) / DIM)
    cos, sin = np.cos(angles), np.sin(angles)
    a, b = x[..., : DIM // 2], x[..., DIM // 2 :]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def attend(q, k, v, tokens):
    """Attention of [batch, token, head, channel]. `tokens` are the token indices
    of the queries."""
    k, v = (np.repeat(x, HEADS // KEY_HEADS, axis=2) for x in (k, v))
    scores = np.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(DIM)
    i, j = tokens[:, None, :, None], np.arange(k.shape[1])
    scores = np.where(j <= i, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("bhij,bjhd->bihd", weights, v)


def round_to(array, dtype):
    """What a tensor of the type holds, in f64."""
    array = array.astype(np.float32)
    if dtype == "bf16":
        bits = array.view(np.uint32)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        array = np.where(np.isnan(array), array, bits.astype(np.uint32).view(np.float32))
    return array.astype(np.float64)


def save(path, array, dtype):
    if array.dtype == np.float64 and dtype == "f32":
        array = array.astype(np.float32)
    elif array.dtype == np.float64 and dtype == "bf16":
        bits = round_to(array, dtype).astype(np.float32).view(np.uint32)
        array = (bits >> 16).astype(np.uint16)
    np.save(path, np.ascontiguousarray(array))


def check(name, dtype, function, inputs, expected, *flags, code=0):
    arguments = [sys.argv[1], f"{name}.json", f"--function={function}",
                 f"--dtype={dtype}", "--qk-norm", "--opt-level=0", *flags]
    for number, array in enumerate(inputs):
        save(f"{number}.npy", array, dtype)
        arguments.append(f"--input=@{number}.npy")
    save("expected.npy", expected, dtype)
    arguments.append("--expected_output=@expected.npy")
    result = subprocess.run(arguments, capture_output=True, text=True)
    assert result.returncode == code, (arguments, result)
    if code == 0:
        assert " rel " in result.stdout, result


random = np.random.default_rng(3)


def check_model(name, dtype):
    keys, norm, eps, of_all = MODELS[name]
    with open(f"{name}.json", "w", encoding="utf-8") as file:
        json.dump({"model_type": name, "num_attention_heads": HEADS,
                   "num_key_value_heads": KEY_HEADS, "head_dim": DIM,
                   "hidden_size": HEADS * DIM, **keys}, file)

    def make(*shape):
        # Heads of different magnitudes have different means.
        scale = np.arange(1, shape[2] + 1)[:, None] if len(shape) == 4 else 1
        return round_to(scale * random.standard_normal(shape), dtype)

    q = make(2, TOKENS, HEADS, DIM)
    k, v = make(2, TOKENS, KEY_HEADS, DIM), make(2, TOKENS, KEY_HEADS, DIM)
    q_norm = make((HEADS if of_all else 1) * DIM)
    k_norm = make((KEY_HEADS if of_all else 1) * DIM)
    tokens = np.arange(TOKENS)[None].repeat(2, axis=0)
    positions = tokens + FIRST
    suffix = "_full_attention" if name in ("gemma3_text",) else ""
    if name == "exaone4":
        suffix = "_sliding_attention"  # Those of the other layers do not rotate.

    def attention(norm):
        return attend(rotate(norm(q, q_norm, eps), positions),
                      rotate(norm(k, k_norm, eps), positions), v, tokens)

    inputs = [q, k, v, positions, q_norm, k_norm]
    check(name, dtype, "attention" + suffix, inputs, attention(norm))
    if of_all:
        check(name, dtype, "attention" + suffix, inputs,
              attention(norm_wrongly), code=3)

    # The last valid key is that of the query itself. Keys beyond it are not read.
    lengths = np.array([11, 3])
    last = lengths[:, None] - 1
    one = q[:, :1]
    cache = round_to(rotate(norm(k, k_norm, eps), tokens), dtype)
    beyond = (tokens >= lengths[:, None])[..., None, None]
    hide = lambda x: np.where(beyond, np.nan, x).transpose(0, 2, 1, 3)
    query = rotate(norm(one, q_norm, eps), last)
    check(name, dtype, "decode" + suffix,
          [one, hide(cache), hide(v), lengths, q_norm],
          attend(query, cache, v, last))
    raw = rotate(norm(k, k_norm, eps), tokens)
    check(name, dtype, "decode" + suffix,
          [one, hide(k), hide(v), lengths, q_norm, k_norm],
          attend(query, raw, v, last), "--k-cache=raw")


for model in MODELS:
    check_model(model, "f32")
for model in ("qwen3", "gemma3_text", "olmo2"):
    check_model(model, "bf16")
# f64 attention is not fused, so it has other code.
for model in ("gemma3_text", "olmo2"):
    check_model(model, "f64")
print("ok")
