# ===- test_flex_jax.py - flex_attention with JAX and NumPy --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""`flex_attention` with functions of JAX and of NumPy, compared with dense attention."""

import numpy as np
import pytest

import posenc
from posenc._flex import _plan

HEADS, DIM, TOKENS = 4, 16, 70


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setitem(_plan.compile_options, "opt_level", 0)


def make(seed, tokens=TOKENS):
    random = np.random.default_rng(seed)
    return random.standard_normal((2, HEADS, tokens, DIM)).astype(np.float32)


def attend(xp, q, k, v, score_mod, mask_mod):
    """Dense attention by a module of array functions."""
    scores = xp.einsum("bhid,bhjd->bhij", q, k) / DIM ** 0.5
    b, h, i, j = np.ogrid[tuple(slice(size) for size in scores.shape)]
    scores = score_mod(scores, b, h, i, j)
    scores = xp.where(mask_mod(b, h, i, j), scores, -np.inf)
    weights = xp.exp(scores - scores.max(-1, keepdims=True))
    weights = weights / weights.sum(-1, keepdims=True)
    return xp.einsum("bhij,bhjd->bhid", weights, v)


def make_functions(xp, tokens=TOKENS):
    random = np.random.default_rng(9)
    bias = xp.asarray(random.standard_normal((HEADS, 2 * tokens)).astype(np.float32))
    document = xp.asarray(np.sort(random.integers(0, 4, tokens)).astype(np.int32))

    def score_mod(s, b, h, i, j):
        s = xp.tanh(s / 20) * 20 + bias[h, abs(i - j)] + xp.where(i > j, 0.5, s * 0.1)
        s = s + (i - j) % 5 - (i - j) // 4 + s ** 2 * 0.1 + xp.clip(s, -1, 1)
        return s + bias[1][j] + xp.floor(s) - xp.maximum(s, bias[h, i])

    def mask_mod(b, h, i, j):
        same = document[i] == document[j]
        return (same & (i >= j)) | (j % 7 == 3) | ~(i + j > 3)

    return score_mod, mask_mod


def compare(actual, expected, bound=2e-5):
    difference = np.asarray(actual, np.float64) - np.asarray(expected)
    assert np.linalg.norm(difference) < bound * np.linalg.norm(expected)


def test_numpy():
    q, k, v = (make(seed) for seed in range(3))
    functions = make_functions(np)
    output = posenc.flex_attention(q, k, v, functions[0], mask_mod=functions[1])
    expected = attend(np, *(x.astype(np.float64) for x in (q, k, v)), *functions)
    assert isinstance(output, np.ndarray) and output.dtype == np.float32
    compare(output, expected)


def test_numpy_errors():
    q = make(0)
    table = np.zeros((3, 3))
    for function, text in (
            (lambda s, b, h, i, j: s if i > j else -s, "cannot decide an `if`"),
            (lambda s, b, h, i, j: np.interp(s, [0, 1], [0, 1]), "numpy.interp has no"),
            (lambda s, b, h, i, j: s + table[i], "single number is needed"),
            (lambda s, b, h, i, j: s + table[i, j, 0], "has 3 indices"),
            (lambda s, b, h, i, j: s + table[s, j], "indexed by integers only"),
            (lambda s, b, h, i, j: "s", "got a str")):
        with pytest.raises(posenc.Error, match=text) as error:
            posenc.flex_attention(q, q, q, function)
        assert "score_mod" in str(error.value)


def test_numbers_of_python_change():
    q = make(0)
    outputs = []
    for size in (3, 3, 9):
        outputs.append(posenc.flex_attention(
            q, q, q, mask_mod=lambda b, h, i, j, size=size: abs(i - j) < size))
    assert np.array_equal(outputs[0], outputs[1])
    assert not np.array_equal(outputs[0], outputs[2])


def test_jax():
    jax = pytest.importorskip("jax")
    q, k, v = (jax.numpy.asarray(make(seed)) for seed in range(3))
    functions = make_functions(jax.numpy)
    output = posenc.flex_attention(q, k, v, functions[0], mask_mod=functions[1])
    expected = attend(np, *(np.asarray(x, np.float64) for x in (q, k, v)),
                      *make_functions(np))
    assert isinstance(output, jax.Array)
    compare(output, expected)
    with pytest.raises(posenc.Error, match="test_flex_jax.py:.*cannot decide an `if`"):
        posenc.flex_attention(q, q, q, lambda s, b, h, i, j: s if i > j else -s)


def test_jax_lengths_compile_once(monkeypatch):
    jax = pytest.importorskip("jax")
    texts = []
    original = _plan.compile_on_use
    monkeypatch.setattr(_plan, "compile_on_use", lambda text, **options: (
        texts.append(text), original(text, **options))[1])
    for tokens in (40, 70, 100):
        q = jax.numpy.asarray(make(0, tokens))
        # The arrays that functions capture have other sizes, too.
        functions = make_functions(jax.numpy, tokens)
        output = posenc.flex_attention(q, q, q, functions[0], mask_mod=functions[1])
        wide = np.asarray(q, np.float64)
        compare(output, attend(np, wide, wide, wide, *make_functions(np, tokens)))
    assert len(texts) <= 1  # None if another test has compiled it.


def test_jax_gradients():
    jax = pytest.importorskip("jax")
    pytest.importorskip("jax_tvm_ffi")
    q, k, v = (jax.numpy.asarray(make(seed)) for seed in range(3))
    bias = jax.numpy.asarray(make(3)[0, :, :, 0])
    document = jax.numpy.arange(TOKENS) // 30

    def score_mod(bias):
        return lambda s, b, h, i, j: jax.numpy.tanh(s) * 3 + bias[h, abs(i - j)]

    def mask_mod(b, h, i, j):
        return (document[i] == document[j]) & (i >= j)

    def own(q, k, v, bias):
        return (posenc.flex_attention(q, k, v, score_mod(bias),
                                      mask_mod=mask_mod) ** 2).sum()

    def dense(q, k, v, bias):
        return (attend(jax.numpy, q, k, v, score_mod(bias), mask_mod) ** 2).sum()

    expected = jax.grad(dense, range(4))(q, k, v, bias)
    for function in (jax.grad(own, range(4)), jax.jit(jax.grad(own, range(4)))):
        for one, other in zip(function(q, k, v, bias), expected):
            compare(one, other)
