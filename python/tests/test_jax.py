# ===- test_jax.py - calls on arrays of JAX --------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Arrays of JAX as inputs and results, outside of its transformations."""

import sys

import numpy as np
import pytest

import posenc
from conftest import CONFIG, DIM, attend, is_close, make_inputs, rotate

jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.fixture(params=[False, True], ids=["x32", "x64"], autouse=True)
def has_x64(request):
    """JAX without and with types of 64 bits; its default is without."""
    with jax.enable_x64(request.param):
        yield request.param


def test_rope(kernels, has_x64):
    q, k, _, positions = make_inputs()
    assert jnp.asarray(positions).dtype == (np.int64 if has_x64 else np.int32)
    q_out, k_out = kernels.rope(*map(jnp.asarray, (q, k, positions)))
    assert isinstance(q_out, jax.Array) and is_close(q_out, rotate(q, positions))
    assert is_close(jnp.sum(k_out), np.sum(rotate(k, positions)), 1e-4)


def test_positions_of_32_bits(kernels):
    """They are widened wherever they are among the inputs, of any framework."""
    q, k, _, positions = make_inputs()
    narrow = jnp.asarray(positions, jnp.int32)
    expected = rotate(q, positions)
    assert is_close(kernels.rope(jnp.asarray(q), jnp.asarray(k), narrow)[0], expected)
    q_out, _ = kernels.rope(q, k, narrow)
    assert isinstance(q_out, np.ndarray) and is_close(q_out, expected)
    out = np.empty_like(q), np.empty_like(k)
    assert kernels.rope(q, k, narrow, out=out)[0] is out[0]
    assert is_close(out[0], expected)
    cos, _ = kernels.sincos(narrow[0])
    angles = positions[0][:, None] * 10000.0 ** (-np.arange(DIM // 2) / (DIM // 2))
    assert isinstance(cos, jax.Array) and is_close(cos, np.cos(angles), 1e-7)
    assert is_close(kernels.rope(jnp.asarray(q), jnp.asarray(k),
                                 positions.astype(np.int32))[0], expected)
    with pytest.raises(posenc.Error, match="positions has elements of type int16"):
        kernels.rope(jnp.asarray(q), jnp.asarray(k), narrow.astype(jnp.int16))


def test_attention(kernels):
    q, k, v, positions = make_inputs(tokens=19)
    o = kernels.attention(*map(jnp.asarray, (q, k, v, positions)))
    expected = attend(rotate(q, positions), rotate(k, positions), v)
    assert is_close(o, expected, 1e-5)


def test_bf16():
    kernels = posenc.compile(CONFIG, kernels="rope", dtype=jnp.bfloat16, opt_level=0)
    q, k, _, positions = make_inputs()
    q, k = jnp.asarray(q, jnp.bfloat16), jnp.asarray(k, jnp.bfloat16)
    q_out, _ = kernels.rope(q, k, jnp.asarray(positions))
    assert q_out.dtype == jnp.bfloat16
    assert is_close(q_out.astype(np.float32), rotate(q.astype(np.float32), positions),
                    2.0 ** -8)


def test_f64_is_not_rounded():
    """JAX without 64-bit types has arrays of f64 nevertheless, made with them."""
    kernels = posenc.compile(CONFIG, kernels="rope", dtype="f64", opt_level=0)
    q, k, _, positions = make_inputs(dtype=np.float64)
    with jax.enable_x64(True):
        arrays = jnp.asarray(q), jnp.asarray(k)
    q_out, _ = kernels.rope(*arrays, jnp.asarray(positions))
    assert q_out.dtype == np.float64 and is_close(q_out, rotate(q, positions), 1e-14)


def test_results_are_not_copied(kernels):
    q, k, _, positions = make_inputs()
    seen = []
    from posenc import _frameworks

    backend = _frameworks.find_backend(jnp.asarray(q), "q")
    finish = backend.finish

    def watch(tensor, dtype):
        result = finish(tensor, dtype)
        seen.append(tensor.data_ptr() == result.unsafe_buffer_pointer())
        return result

    backend.finish = watch
    try:
        kernels.rope(*map(jnp.asarray, (q, k, positions)))
    finally:
        backend.finish = finish
    assert seen == [True, True]


def test_errors(kernels):
    q, k, _, positions = map(jnp.asarray, make_inputs())
    with pytest.raises(posenc.Error, match="output q_out is immutable"):
        kernels.rope(q, k, positions, out=(q, k))
    with pytest.raises(posenc.Error, match="dimension 1 of k is 5"):
        kernels.rope(q, k[:, :5], positions)


def test_the_bridge_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax_tvm_ffi", None)
    q, k, _, positions = make_inputs()
    kernels = posenc.compile(CONFIG, kernels="rope", opt_level=0)
    kernels.rope(*map(jnp.asarray, (q, k, positions)))
    with pytest.raises(posenc.Error, match="rope: .* needs the package jax-tvm-ffi"):
        jax.jit(kernels.rope)(q, k, positions)
