# ===- conftest.py - a small model and its formulas ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""A small model of the Llama family, its kernels, and its formulas in f64."""

import os

import numpy as np
import pytest

import posenc

HEADS, KEY_HEADS, DIM, BASE = 4, 2, 32, 10000.0
CONFIG = {
    "model_type": "llama", "num_attention_heads": HEADS, "num_key_value_heads": KEY_HEADS,
    "head_dim": DIM, "hidden_size": HEADS * DIM, "rope_theta": BASE,
    "max_position_embeddings": 4096, "torch_dtype": "float32",
}


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """A cache of compiled code for these tests, unless the environment has one."""
    if "POSENC_CACHE" not in os.environ:
        os.environ["POSENC_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def kernels(cache):
    return posenc.compile(CONFIG)


def rotate(x, positions, base=BASE, sign=1):
    """Rotates [batch, tokens, heads, channels] in f64, halves paired."""
    x = np.asarray(x, np.float64)
    half = x.shape[-1] // 2
    angles = np.asarray(positions, np.float64)[..., None, None] * (
        sign * base ** (-np.arange(half) / half))
    cos, sin = np.cos(angles), np.sin(angles)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def attend(q, k, v, first=0):
    """Causal attention of rotated q and k in f64. `first` is the index of the first
    query among the keys."""
    group = q.shape[2] // k.shape[2]
    k, v = (np.repeat(np.asarray(x, np.float64), group, axis=2) for x in (k, v))
    scores = np.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(q.shape[-1])
    i, j = np.arange(q.shape[1])[:, None] + first, np.arange(k.shape[1])
    scores = np.where(j <= i, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("bhij,bjhd->bihd", weights, v)


def make_inputs(batch=2, tokens=7, seed=0, dtype=np.float32):
    """Returns q, k, v and positions."""
    random = np.random.default_rng(seed)

    def make(heads):
        return random.standard_normal((batch, tokens, heads, DIM)).astype(dtype)

    positions = np.arange(tokens)[None].repeat(batch, 0) + 5
    return make(HEADS), make(KEY_HEADS), make(KEY_HEADS), positions


def is_close(actual, expected, bound=2e-6):
    """Whether the largest error, relative to the largest value, is within a bound."""
    actual = np.asarray(actual, np.float64)
    return np.max(np.abs(actual - expected)) <= bound * np.max(np.abs(expected))


def check_rope(kernels):
    """Checks the rotation of the small model."""
    q, k, _, positions = make_inputs()
    q_out, k_out = kernels.rope(q, k, positions)
    assert is_close(q_out, rotate(q, positions)) and is_close(k_out, rotate(k, positions))
