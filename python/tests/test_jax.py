# ===- test_jax.py - calls on arrays of JAX --------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Arrays of JAX as inputs and results."""

import numpy as np
import pytest

import posenc
from conftest import CONFIG, is_close, make_inputs, rotate

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)
jnp = jax.numpy


def test_rope(kernels):
    q, k, _, positions = make_inputs()
    q_out, k_out = kernels.rope(*map(jnp.asarray, (q, k, positions)))
    assert isinstance(q_out, jax.Array) and is_close(q_out, rotate(q, positions))
    assert is_close(jnp.sum(k_out), np.sum(rotate(k, positions)), 1e-4)


def test_bf16():
    kernels = posenc.compile(CONFIG, kernels="rope", dtype=jnp.bfloat16, opt_level=0)
    q, k, _, positions = make_inputs()
    q, k = jnp.asarray(q, jnp.bfloat16), jnp.asarray(k, jnp.bfloat16)
    q_out, _ = kernels.rope(q, k, jnp.asarray(positions))
    assert q_out.dtype == jnp.bfloat16
    assert is_close(q_out.astype(np.float64), rotate(q.astype(np.float64), positions),
                    2.0 ** -8)


def test_results_are_not_copied(kernels):
    q, k, _, positions = make_inputs()
    seen = []
    finish = jax.dlpack.from_dlpack
    from posenc import _frameworks

    backend = _frameworks.find_backend(jnp.asarray(q), "q")

    def watch(tensor):
        result = finish(tensor)
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
    with pytest.raises(posenc.Error, match="rope: an input is traced by JAX"):
        jax.jit(kernels.rope)(q, k, positions)
