# ===- attention.py - compares attention of configs with NumPy -------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""attention.py POSENC-RUN CONFIG: the config is that of gemma2.json. What its
functions mean is written down here once more, so that neither the module made
of a config nor the reference is taken for granted."""

import subprocess
import sys

import numpy as np

HEADS, KEY_HEADS, DIM, BASE = 4, 2, 32, 10000.0
WINDOW, SCALE, CAP = 6, 24**-0.5, 5.0
TOKENS, FIRST = 19, 5


def rotate(x, positions):
    angles = positions[..., None, None] * BASE ** (-2.0 * np.arange(DIM // 2) / DIM)
    cos, sin = np.cos(angles), np.sin(angles)
    a, b = x[..., : DIM // 2], x[..., DIM // 2 :]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def attend(q, k, v, tokens, window):
    """Attention of [batch, token, head, channel]. `tokens` are the token indices
    of the queries."""
    k, v = (np.repeat(x, HEADS // KEY_HEADS, axis=2) for x in (k, v))
    scores = np.einsum("bihd,bjhd->bhij", q, k) * SCALE
    scores = CAP * np.tanh(scores / CAP)
    i, j = tokens[:, None, :, None], np.arange(k.shape[1])
    scores = np.where((j <= i) & (j > i - window), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("bhij,bjhd->bihd", weights, v)


def check(function, inputs, expected, *flags, code=0):
    arguments = [sys.argv[1], sys.argv[2], "--function=" + function, "--opt-level=0",
                 *flags]
    for number, array in enumerate(inputs):
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        np.save(f"{number}.npy", np.ascontiguousarray(array))
        arguments.append(f"--input=@{number}.npy")
    np.save("expected.npy", expected.astype(np.float32))
    arguments.append("--expected_output=@expected.npy")
    result = subprocess.run(arguments, capture_output=True, text=True)
    assert result.returncode == code, (arguments, result)
    if code == 0:
        assert " rel " in result.stdout, result


random = np.random.default_rng(3)


def make(*shape):
    return random.standard_normal(shape).astype(np.float32).astype(np.float64)


q = make(2, TOKENS, HEADS, DIM)
k, v = make(2, TOKENS, KEY_HEADS, DIM), make(2, TOKENS, KEY_HEADS, DIM)
tokens = np.arange(TOKENS)[None].repeat(2, axis=0)
positions = tokens + FIRST
everything = TOKENS

# Rotating queries and keys by the same angle changes only the rounding.
inputs = [q, k, v, positions]
rotated = rotate(q, positions), rotate(k, positions)
for name, window in (
    ("attention", WINDOW),
    ("attention_sliding_attention", WINDOW),
    ("attention_full_attention", everything),
):
    check(name, inputs, attend(*rotated, v, tokens, window))
    # Control: a window of one key less gives other results.
    check(name, inputs, attend(*rotated, v, tokens, window - 1), code=3)
# The last valid key is that of the query itself. Keys beyond it are not read.
lengths = np.array([11, 3])
last = lengths[:, None] - 1
one = q[:, :1]
cache = rotate(k, tokens)
beyond = tokens >= lengths[:, None]
rows = {}
for name, keys in (("rotated", cache), ("raw", k), ("values", v)):
    rows[name] = np.where(beyond[..., None, None], np.nan, keys).transpose(0, 2, 1, 3)
for name, window in (
    ("decode", WINDOW),
    ("decode_sliding_attention", WINDOW),
    ("decode_full_attention", everything),
):
    expected = attend(rotate(one, last), cache, v, last, window)
    for kind in ("rotated", "raw"):
        inputs = [one, rows[kind], rows["values"], lengths]
        check(name, inputs, expected, "--k-cache=" + kind)
    # Control: raw keys in a cache of rotated keys give other results.
    inputs = [one, rows["raw"], rows["values"], lengths]
    check(name, inputs, expected, code=3)
print("ok")
