# ===- test_stablehlo.py - functions that JAX exports -----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""posenc.import_stablehlo."""

import numpy as np
import pytest

import posenc

jax = pytest.importorskip("jax")
jnp = jax.numpy
export = pytest.importorskip("jax.export")

SHAPES = ((2, 9, 4, 16), (2, 9, 2, 16), (2, 9, 2, 16))


def rotate(x, cos, sin):
    first, second = jnp.split(x, 2, axis=-1)
    return x * cos + jnp.concatenate([-second, first], -1) * sin


def attend(q, k, v):
    angles = jnp.arange(9)[:, None] * 10000.0 ** (-jnp.arange(0, 16, 2) / 16)[None]
    angles = jnp.concatenate([angles, angles], -1)
    cos, sin = jnp.cos(angles)[None, :, None], jnp.sin(angles)[None, :, None]
    return jax.nn.dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v,
                                        is_causal=True)


def export_attention():
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in SHAPES]
    return export.export(jax.jit(attend))(*shapes)


@pytest.mark.parametrize("is_serialized", [False, True])
def test_an_exported_attention(is_serialized):
    exported = export_attention()
    if is_serialized:
        pytest.importorskip("flatbuffers")
        exported = bytes(exported.serialize())
    kernels = posenc.compile(posenc.import_stablehlo(exported), opt_level=0)
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in SHAPES]
    np.testing.assert_allclose(kernels.main(*arrays), attend(*arrays), rtol=1e-5, atol=2e-6)


def test_errors():
    with pytest.raises(TypeError, match="expected a jax.export.Exported"):
        posenc.import_stablehlo(attend)
    with pytest.raises(posenc.Error, match="not an artifact"):
        posenc.import_stablehlo(b"nothing")
    (size,) = export.symbolic_shape("n")
    exported = export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((size,), jnp.float32))
    with pytest.raises(posenc.Error, match="symbolic"):
        posenc.import_stablehlo(exported)
    exported = export.export(jax.jit(jnp.sort))(jax.ShapeDtypeStruct((4,), jnp.float32))
    with pytest.raises(posenc.Error, match="'stablehlo.sort'"):
        posenc.compile(posenc.import_stablehlo(exported))
