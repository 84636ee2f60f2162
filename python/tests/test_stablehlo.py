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


def test_symbolic_attention():
    b, s = export.symbolic_shape("b, s")

    def function(q, k, v):
        tokens = q.shape[1]
        angles = jnp.arange(tokens)[:, None] * 10000.0 ** (-jnp.arange(0, 16, 2) / 16)
        angles = jnp.concatenate([angles, angles], -1)
        cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
        return jax.nn.dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v,
                                            is_causal=True)

    shapes = [jax.ShapeDtypeStruct((b, s, *shape[2:]), jnp.float32) for shape in SHAPES]
    exported = export.export(jax.jit(function))(*shapes)
    module = posenc.import_stablehlo(exported)
    kernels = posenc.compile(module, opt_level=0)
    random = np.random.default_rng(0)
    for sizes in ((2, 9), (1, 1), (3, 4)):
        arrays = [random.standard_normal((*sizes, *shape[2:])).astype(np.float32)
                  for shape in SHAPES]
        np.testing.assert_allclose(kernels.main(*arrays), function(*arrays), rtol=1e-5,
                                   atol=2e-6)
    with pytest.raises(posenc.Error, match="dimension 1 of in1 is 2"):
        kernels.main(arrays[0], arrays[1][:, :2], arrays[2])


def test_symbolic_sizes():
    b, s, n = export.symbolic_shape("b, s, n", constraints=["s >= 2"])

    def function(x, y, weights):
        half = y.shape[0] // 2
        x = (x @ weights).reshape(*x.shape[:2], 2, 8)
        x = jnp.where(jnp.tril(jnp.ones((x.shape[1],) * 2)), x.sum((2, 3))[:, None], 0.0)
        return x, y[:half] * x.shape[1], y[half:]

    shapes = ((b, s, 4), (2 * n, s), (4, 16))
    exported = export.export(jax.jit(function))(
        *(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes))
    kernels = posenc.compile(posenc.import_stablehlo(exported), opt_level=0)
    random = np.random.default_rng(0)
    for sizes in ((2, 5, 3), (1, 2, 1)):
        shapes = ((*sizes[:2], 4), (2 * sizes[2], sizes[1]), (4, 16))
        arrays = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
        for got, expected in zip(kernels.main(*arrays), function(*arrays), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    # Sizes that the export does not allow.
    for shapes in (((2, 1, 4), (2, 1), (4, 16)), ((2, 5, 4), (3, 5), (4, 16)),
                   ((2, 5, 4), (2, 6), (4, 16)), ((2, 5, 4), (0, 5), (4, 16))):
        with pytest.raises(posenc.Error):
            kernels.main(*(np.zeros(shape, np.float32) for shape in shapes))


def test_loops_free_their_buffers():
    def function(x, n):
        y = jax.lax.fori_loop(0, 4, lambda i, x: jnp.cumsum(x @ x, 0) * 0.1 + i, x)
        return jax.lax.while_loop(lambda c: c[1] < n, lambda c: (c[0] * 2, c[1] + 1), (y, 0))[0]

    shapes = (jax.ShapeDtypeStruct((256, 256), jnp.float32), jax.ShapeDtypeStruct((), jnp.int32))
    exported = export.export(jax.jit(function))(*shapes)
    kernels = posenc.compile(posenc.import_stablehlo(exported), opt_level=0)
    array = np.random.default_rng(0).standard_normal((256, 256)).astype(np.float32) / 16
    np.testing.assert_allclose(kernels.main(array, np.array(3, np.int32)), function(array, 3),
                               rtol=1e-4, atol=1e-4)

    def get_resident_bytes():
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096

    for _ in range(3):
        kernels.main(array, np.array(3, np.int32))
    before = get_resident_bytes()
    for _ in range(40):
        kernels.main(array, np.array(3, np.int32))
    # One leaked buffer of a call is 256 KiB.
    assert get_resident_bytes() - before < 5 << 20


@pytest.mark.parametrize("precision", ["hf_f32", "exact"])
def test_angles(precision):
    def rotate_from(x, first):
        frequencies = 1 / 10000.0 ** (jnp.arange(0, 16, 2, dtype=jnp.float32) / 16)
        angles = (first + jnp.arange(9))[:, None].astype(jnp.float32) * frequencies
        angles = jnp.concatenate([angles, angles], -1)
        return rotate(x, jnp.cos(angles)[None, :, None], jnp.sin(angles)[None, :, None])

    exported = export.export(jax.jit(rotate_from))(
        jax.ShapeDtypeStruct(SHAPES[0], jnp.float32), jax.ShapeDtypeStruct((), jnp.int32))
    kernels = posenc.compile(posenc.import_stablehlo(exported), precision=precision,
                             opt_level=0)
    x = np.ones(SHAPES[0], np.float32)
    first = np.array(8192, np.int32)
    got = np.asarray(kernels.main(x, first))
    # Without rounding, in f64. All elements of x are 1.
    angles = (8192 + np.arange(9))[:, None] / 10000.0 ** (np.arange(0, 16, 2) / 16)
    exact = np.concatenate([np.cos(angles) - np.sin(angles),
                            np.cos(angles) + np.sin(angles)], -1)[None, :, None]
    rounded = rotate_from(x, first)
    # JAX's power may be one unit in the last place off.
    assert abs(got - rounded).max() < 2e-3
    assert (abs(got - exact).max() < 1e-6) == (precision == "exact")


def test_errors():
    with pytest.raises(TypeError, match="expected a jax.export.Exported"):
        posenc.import_stablehlo(attend)
    with pytest.raises(posenc.Error, match="not an artifact"):
        posenc.import_stablehlo(b"nothing")
    exported = export.export(jax.jit(jnp.sin), platforms=["cpu", "tpu"])(
        jax.ShapeDtypeStruct((4,), jnp.float32))
    with pytest.raises(posenc.Error, match="cpu, tpu: export it for one platform"):
        posenc.import_stablehlo(exported)
    exported = export.export(jax.jit(jnp.sort))(jax.ShapeDtypeStruct((4,), jnp.float32))
    with pytest.raises(posenc.Error, match="'stablehlo.sort'"):
        posenc.compile(posenc.import_stablehlo(exported))
