# ===- test_jax_transformations.py - jit, vmap and grad of JAX -------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Calls under jax.jit, jax.vmap, jax.grad and jax.export."""

import contextlib
import gc
import json
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import posenc
from conftest import (CONFIG, DIM, HEADS, KEY_HEADS, attend, is_close, make_inputs,
                      rotate)

jax = pytest.importorskip("jax")
pytest.importorskip("jax_tvm_ffi")
ml_dtypes = pytest.importorskip("ml_dtypes")
jnp = jax.numpy

# `scale` is x * factor + count where the mask is set, and 0 elsewhere. `between` has a
# number between its arrays.
MODULE = """
#id = affine_map<(i, j) -> (i, j)>
func.func @scale(%m: tensor<?x8xi1>, %x: tensor<?x8xf32>, %o: tensor<?x8xf32>,
                 %factor: f32, %count: i64) -> tensor<?x8xf32> {
  %n = arith.sitofp %count : i64 to f32
  %zero = arith.constant 0.0 : f32
  %r = linalg.generic {indexing_maps = [#id, #id, #id],
                       iterator_types = ["parallel", "parallel"]}
    ins(%m, %x : tensor<?x8xi1>, tensor<?x8xf32>) outs(%o : tensor<?x8xf32>) {
  ^bb0(%b: i1, %a: f32, %c: f32):
    %y = arith.mulf %a, %factor : f32
    %z = arith.addf %y, %n : f32
    %w = arith.select %b, %z, %zero : f32
    linalg.yield %w : f32
  } -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}
func.func @between(%x: tensor<?x8xf32>, %n: i64, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  return %y : tensor<?x8xf32>
}
"""
DYNAMIC = {**CONFIG, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}


@pytest.fixture(autouse=True)
def has_x64(request):
    """JAX without types of 64 bits, which is its default, or with them."""
    flag = getattr(request, "param", False)
    is_set = jax.config.jax_enable_x64 == flag
    with contextlib.nullcontext() if is_set else jax.enable_x64(flag):
        yield flag


with_and_without_x64 = pytest.mark.parametrize("has_x64", [False, True], indirect=True,
                                               ids=["x32", "x64"])


def stack(count, **options):
    """Returns the inputs of `count` calls, stacked: q, k, v and positions."""
    calls = [make_inputs(seed=seed, **options) for seed in range(count)]
    q, k, v, positions = map(np.stack, zip(*calls))
    return q, k, v, positions + 3 * np.arange(count)[:, None, None]


# ===----------------------------------------------------------------------===#
# jit
# ===----------------------------------------------------------------------===#


@with_and_without_x64
def test_jit(kernels):
    q, k, v, positions = make_inputs(tokens=19)
    rotated = rotate(q, positions), rotate(k, positions)
    q_out, k_out = jax.jit(kernels.rope)(q, k, positions)
    assert isinstance(q_out, jax.Array) and q_out.dtype == np.float32
    assert is_close(q_out, rotated[0]) and is_close(k_out, rotated[1])
    # The check detects a position that is off by one.
    assert not is_close(q_out, rotate(q, positions + 1))
    o = jax.jit(kernels.attention)(q, k, v, positions)
    assert is_close(o, attend(*rotated, v), 1e-5)
    cos, sin = jax.jit(kernels.sincos)(positions[0])
    angles = positions[0][:, None] * 10000.0 ** (-np.arange(DIM // 2) / (DIM // 2))
    assert is_close(cos, np.cos(angles), 1e-7) and is_close(sin, np.sin(angles), 1e-7)


def test_several_shapes_and_calls(kernels):
    @jax.jit
    def layer(q, k, v, positions):
        q, k = kernels.rope(2 * q, k, positions)
        q, _ = kernels.rope(q, k, -positions)
        return kernels.attention(q, k, v, positions) + 1

    for tokens in (1, 7, 12):
        q, k, v, positions = make_inputs(tokens=tokens)
        expected = attend(rotate(2 * q, positions),
                          rotate(rotate(k, positions), positions), v) + 1
        assert is_close(layer(q, k, v, positions), expected, 1e-5)
    empty = make_inputs(tokens=0)
    assert layer(*empty).shape == (2, 0, HEADS, DIM)


def test_decode_in_a_loop(kernels):
    q, k, v, _ = make_inputs(tokens=19)
    tokens = np.arange(19)[None].repeat(2, 0)
    rotated = rotate(k, tokens).astype(np.float32)
    k_cache, v_cache = (x.transpose(0, 2, 1, 3) for x in (rotated, v))

    def step(_, inputs):
        query, length = inputs
        lengths = jnp.stack([length, length - 3])
        return None, kernels.decode(query[:, None], k_cache, v_cache, lengths)

    steps = jnp.arange(11, 15)
    _, results = jax.jit(lambda q: jax.lax.scan(step, None, (q, steps)))(
        q.transpose(1, 0, 2, 3)[11:15])
    for i, o in enumerate(results):
        for row, length in enumerate((11 + i, 8 + i)):
            query = rotate(q[row:row + 1, 11 + i:12 + i], [[length - 1]])
            expected = attend(query, rotated[row:row + 1, :length],
                              v[row:row + 1, :length], first=length - 1)
            assert is_close(o[row:row + 1], expected, 1e-5)


@with_and_without_x64
@pytest.mark.parametrize("traced", [(0,), (1,), (2,), (0, 2), (1, 2)])
@pytest.mark.parametrize("make", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
def test_inputs_that_are_not_traced(kernels, traced, make):
    q, k, _, positions = make_inputs()
    inputs = [q, k, positions]

    @jax.jit
    def call(*some):
        mixed = list(map(make, inputs))
        for index, value in zip(traced, some):
            mixed[index] = value
        return kernels.rope(*mixed)

    q_out, k_out = call(*(inputs[index] for index in traced))
    assert isinstance(q_out, jax.Array)
    assert is_close(q_out, rotate(q, positions)) and is_close(k_out, rotate(k, positions))


def test_an_array_is_a_constant_and_an_input(kernels):
    """JAX must not take the constant of 64 bits for the input, which it narrows."""
    q, k, _, positions = make_inputs()
    call = jax.jit(lambda q: kernels.rope(q, k, positions)[0])
    assert is_close(call(q), rotate(q, positions))
    # The first function and its constants still live.
    again = jax.jit(lambda positions: kernels.rope(q, k, positions)[0])(positions)
    assert is_close(again, call(q))


def test_functional():
    q, k, _, positions = make_inputs()
    call = jax.jit(lambda q, k, p: posenc.functional.rope(q, k, p, theta=5e5))
    assert is_close(call(q, k, positions)[0], rotate(q, positions, 5e5))


# ===----------------------------------------------------------------------===#
# Types, numbers and workspaces
# ===----------------------------------------------------------------------===#


@with_and_without_x64
@pytest.mark.parametrize("name, bound", [("bfloat16", 2.0 ** -8), ("float16", 2.0 ** -11),
                                         ("float64", 1e-14)])
def test_types(name, bound):
    kernels = posenc.compile(CONFIG, dtype=name, kernels=["rope"], opt_level=0)
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    q, k, _, positions = make_inputs()
    q, k = q.astype(dtype), k.astype(dtype)
    # As constants they keep their type if JAX has no f64.
    q_out, _ = jax.jit(lambda positions: kernels.rope(q, k, positions))(positions)
    assert q_out.dtype == dtype and is_close(q_out, rotate(q, positions), bound)


@pytest.mark.parametrize("cache_dtype", ["f8e4m3", "f8e5m2", "i8"])
def test_eight_bit_caches(cache_dtype):
    kernels = posenc.compile(CONFIG, kernels=["append", "decode"],
                             cache_dtype=cache_dtype, opt_level=0)
    names = {"f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}
    dtype = getattr(ml_dtypes, names.get(cache_dtype, ""), np.int8)
    cache = np.zeros((2, KEY_HEADS, 8, DIM), dtype), np.ones((2, KEY_HEADS, 8), "f4")
    q, k, v, _ = make_inputs(tokens=5)
    lengths = np.full(2, 5)
    caches = jax.jit(kernels.append)(k, v, lengths, *cache, *cache)
    assert caches[0].dtype == dtype
    o = jax.jit(kernels.decode)(q[:, 4:], *caches, lengths)
    positions = np.arange(5)[None].repeat(2, 0)
    expected = attend(rotate(q, positions), rotate(k, positions), v)[:, 4:]
    assert is_close(o, expected, 0.2 if cache_dtype == "f8e5m2" else 0.1)
    # The same bits as without JAX.
    out = tuple(np.copy(x) for x in (*cache, *cache))
    kernels.append(k, v, lengths, *out, out=out)
    assert np.array_equal(np.asarray(caches[0]).view(np.int8), out[0].view(np.int8))
    assert np.array_equal(caches[1], out[1])


def test_block_tables_stay_narrow():
    kernels = posenc.compile(CONFIG, kernels=["attention_paged"], opt_level=0)
    q, k, v, _ = make_inputs(batch=1, tokens=7)
    tokens = np.arange(7)[None]
    pages = [np.zeros((3, KEY_HEADS, 4, DIM), np.float32) for _ in "kv"]
    for page, x in zip(pages, (rotate(k, tokens), v)):
        rows = x[0].transpose(1, 0, 2)
        page[2], page[0, :, :3] = rows[:, :4], rows[:, 4:]
    o = jax.jit(kernels.attention_paged)(
        q[0], tokens[0], *pages, np.array([[2, 0]], np.int32), np.array([0, 7]),
        np.array([7]))
    assert is_close(o, attend(rotate(q, tokens), rotate(k, tokens), v)[0], 1e-5)


@with_and_without_x64
def test_a_module():
    """Numbers, bool, bytes in place of it, and an array of which the shape is read."""
    kernels = posenc.compile(MODULE, opt_level=0, no_warnings=True)
    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    mask = x % 3 == 0
    expected = np.where(mask, x * 1.5 + 4, 0)
    for m in (mask, mask.astype(np.uint8)):
        o = jax.jit(kernels.scale, static_argnums=(3, 4))(m, x, x, 1.5, 4)
        assert np.array_equal(o, expected)
    call = jax.jit(lambda m, x: kernels.scale(m, x, None, np.float32(1.5), 4))
    assert np.array_equal(call(mask, x), expected)
    o = jax.vmap(lambda x: kernels.scale(mask, x, None, 1.5, 4))(np.stack([x, x + 1, -x]))
    assert np.array_equal(o[1], np.where(mask, x * 1.5 + 5.5, 0))
    with pytest.raises(posenc.Error, match="factor is traced by JAX, but numbers"):
        jax.jit(kernels.scale)(mask, x, x, 1.5, 4)
    for number, integer, message in (("1.5", 4, "factor is a str, expected a number"),
                                     (1.5, 4.5, "count is a float, expected an integer")):
        with pytest.raises(posenc.Error, match=message):
            jax.jit(lambda x: kernels.scale(mask, x, x, number, integer))(x)
    with pytest.raises(posenc.Error, match="factor exceeds the largest f64"):
        kernels.scale(mask, x, x, 10**400, 4)
    with pytest.raises(posenc.Error, match="cannot pass a number between arrays"):
        jax.jit(lambda x: kernels.between(x, 1, x))(x)


def test_length_as_an_input():
    kernels = posenc.compile(DYNAMIC, rope_length="input", kernels="rope", opt_level=0)
    q, k, _, positions = make_inputs()
    for length in (100, 9000):
        expected = kernels.rope(q, k, positions, length)[0]
        o = jax.jit(kernels.rope, static_argnums=3)(q, k, positions, length)[0]
        assert np.array_equal(o, expected)
    assert not is_close(o, rotate(q, positions))

    def loss(q):
        return jnp.sum(kernels.rope(q, k, positions, 9000)[0] * expected)

    assert is_close(jax.grad(loss)(q), q)


def test_workspace():
    kernels = posenc.compile(CONFIG, kernels=["attention"], stack_limit=16384)
    assert "workspace" in kernels.metadata["functions"][0]
    q, k, v, positions = make_inputs(tokens=19)
    expected = attend(rotate(q, positions), rotate(k, positions), v)
    assert is_close(jax.jit(kernels.attention)(q, k, v, positions), expected, 1e-5)


# ===----------------------------------------------------------------------===#
# vmap
# ===----------------------------------------------------------------------===#


@pytest.mark.parametrize("axes", [(0, 0, 0), (0, None, None), (None, 0, 0), (2, -1, 1),
                                  (None, None, 0)], ids=str)
@pytest.mark.parametrize("order", ["vmap", "jit of vmap", "vmap of jit"])
def test_vmap(kernels, axes, order):
    q, k, _, positions = stack(3)
    inputs, rows = [], []
    for x, axis in zip((q, k, positions), axes):
        inputs.append(x[0] if axis is None else np.moveaxis(x, 0, axis))
        rows.append(x[:1].repeat(3, 0) if axis is None else x)
    rope = jax.jit(kernels.rope) if order == "vmap of jit" else kernels.rope
    mapped = jax.vmap(rope, axes, (1, 0))
    mapped = jax.jit(mapped) if order == "jit of vmap" else mapped
    q_out, k_out = mapped(*inputs)
    assert is_close(np.moveaxis(q_out, 1, 0), rotate(rows[0], rows[2]))
    assert is_close(k_out, rotate(rows[1], rows[2]))


@with_and_without_x64
def test_nested_vmap(kernels):
    q, k, v, positions = stack(6)
    q, positions = (x.reshape(2, 3, *x.shape[1:]) for x in (q, positions))
    k, v = k[::3], v[::3]
    call = jax.vmap(jax.vmap(kernels.attention, (0, None, None, 0)))
    o = call(q, k, v, positions)
    for i, j in np.ndindex(2, 3):
        expected = attend(rotate(q[i, j], positions[i, j]),
                          rotate(k[i], positions[i, j]), v[i])
        assert is_close(o[i, j], expected, 1e-5)


def count_loops(function, *inputs):
    return str(jax.make_jaxpr(function)(*inputs)).count(" scan[")


def test_the_mapped_axis_is_merged(kernels):
    """Calls are merged if there is a batch. Other functions are called in a loop."""
    q, k, v, positions = stack(3)
    assert count_loops(jax.vmap(kernels.attention), q, k, v, positions) == 0
    assert count_loops(jax.vmap(kernels.sincos), positions[:, 0]) == 1
    cos, _ = jax.vmap(kernels.sincos)(positions[:, 0])
    frequencies = 10000.0 ** (-np.arange(DIM // 2) / (DIM // 2))
    assert is_close(cos, np.cos(positions[:, 0, :, None] * frequencies), 1e-7)
    none = jax.vmap(kernels.rope)(q[:0], k[:0], positions[:0])
    assert none[0].shape == (0, 2, 7, HEADS, DIM)


def test_several_axes_of_positions():
    """The batch is not the first dimension of all inputs."""
    config = {**CONFIG, "model_type": "qwen2_vl",
              "rope_scaling": {"type": "default", "mrope_section": [4, 6, 6]}}
    kernels = posenc.compile(config, kernels="rope", opt_level=0)
    q, k, _, positions = stack(3)
    positions = np.stack([positions, positions + 9, 2 * positions], axis=1)
    mapped = jax.vmap(kernels.rope)
    assert count_loops(mapped, q, k, positions) == 0
    q_out, k_out = mapped(q, k, positions)
    for i in range(3):
        expected = kernels.rope(q[i], k[i], positions[i])
        assert np.array_equal(q_out[i], expected[0])
        assert np.array_equal(k_out[i], expected[1])


def test_calls_whose_length_matters_are_not_merged():
    kernels = posenc.compile(DYNAMIC, kernels="rope", opt_level=0)
    q, k, _, positions = stack(2)
    positions[1] += 6000
    q_out, _ = jax.vmap(kernels.rope)(q, k, positions)
    for i in range(2):
        assert np.array_equal(q_out[i], kernels.rope(q[i], k[i], positions[i])[0])
    merged = kernels.rope(*(x.reshape(4, *x.shape[2:]) for x in (q, k, positions)))[0]
    assert not is_close(merged[:2], rotate(q[0], positions[0]))


# ===----------------------------------------------------------------------===#
# grad
# ===----------------------------------------------------------------------===#


@with_and_without_x64
@pytest.mark.parametrize("order", ["grad", "jit of grad", "grad of jit"])
def test_gradient(kernels, order):
    q, k, v, positions = make_inputs()
    rope = jax.jit(kernels.rope) if order == "grad of jit" else kernels.rope

    def loss(q, k):
        q, k = rope(q, k, positions)
        return jnp.vdot(q, weights) + jnp.vdot(k, v)

    weights = make_inputs(seed=1)[0]
    gradient = jax.grad(loss, (0, 1))
    gradient = jax.jit(gradient) if order == "jit of grad" else gradient
    q_gradient, k_gradient = gradient(q, k)
    assert is_close(q_gradient, rotate(weights, positions, sign=-1))
    assert is_close(k_gradient, rotate(v, positions, sign=-1))


def test_gradient_of_one_input(kernels):
    q, k, _, positions = make_inputs()
    gradient = jax.grad(lambda q: jax.checkpoint(kernels.rope)(q, k, positions)[0].sum())
    assert is_close(gradient(q), rotate(np.ones(q.shape), positions, sign=-1))


@with_and_without_x64
def test_gradient_and_vmap(kernels):
    q, k, _, positions = stack(3)
    weights = jnp.asarray(stack(4)[0][1:])
    # JAX rejects arrays of NumPy as constants of functions with gradients.
    q, k, positions = jnp.asarray(q), jnp.asarray(k), jnp.asarray(positions)

    def loss(q, k, positions, weights):
        return jnp.vdot(kernels.rope(q, k, positions)[0], weights)

    def total(q):
        return jax.vmap(loss)(q, k, positions, weights).sum()

    expected = rotate(weights, positions, sign=-1)
    mapped = jax.vmap(jax.grad(loss))(q, k, positions, weights)
    assert is_close(mapped, expected) and is_close(jax.grad(total)(q), expected)
    assert is_close(jax.jit(jax.grad(total))(q), expected)


@pytest.mark.parametrize("has_x64", [True], indirect=True)
def test_gradients_by_differences():
    """Also of the second order, and with a factor."""
    from jax import test_util

    config = {**CONFIG, "rope_scaling": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}}
    kernels = posenc.compile(config, kernels="rope", dtype="f64", opt_level=0)
    q, k, _, positions = make_inputs(batch=1, tokens=3, dtype=np.float64)
    test_util.check_grads(
        lambda q, k: [x ** 2 for x in kernels.rope(q, k, positions)], (q, k), order=2,
        modes=["rev"])


def test_gradients_that_are_refused(kernels):
    q, k, v, positions = make_inputs()

    def loss(q, call=kernels.attention):
        return call(q, k, v, positions).sum()

    for gradient in (jax.grad(loss), jax.jit(jax.grad(loss)), jax.grad(jax.jit(loss))):
        with pytest.raises(posenc.Error, match="attention: has no gradient: apply"):
            gradient(q)
    stopped = jax.grad(lambda q: loss(jax.lax.stop_gradient(q)) + 2 * q.sum())(q)
    assert np.all(stopped == 2)
    dynamic = posenc.compile(DYNAMIC, kernels="rope", opt_level=0)
    with pytest.raises(posenc.Error, match="compile with rope_length=N"):
        jax.grad(lambda q: dynamic.rope(q, k, positions)[0].sum())(q)


def test_a_function_of_a_module_that_is_called_rope():
    """It may be anything, so it has no gradient, and calls are not merged."""
    kernels = posenc.compile(MODULE.replace("@scale", "@rope"), opt_level=0,
                             no_warnings=True)
    x, mask = np.ones((2, 3, 8), np.float32), np.ones((3, 8), bool)

    def call(x):
        return kernels.rope(mask, x, x, 2.0, 1)

    assert np.all(jax.vmap(call)(x) == 3) and count_loops(jax.vmap(call), x) == 1
    with pytest.raises(posenc.Error, match="rope: has no gradient"):
        jax.grad(lambda x: call(x).sum())(x[0])


# ===----------------------------------------------------------------------===#
# Errors, threads and lifetime
# ===----------------------------------------------------------------------===#


@pytest.mark.parametrize("change, message", [
    (lambda q, k, p: (q[0], k, p), "rope: q has 3 dimensions, expected 4"),
    (lambda q, k, p: (q, k[:, :5], p),
     "rope: dimension 1 of k is 5, but dimension 1 of q is 7"),
    (lambda q, k, p: (q[..., :8], k, p), "rope: dimension 3 of q is 8, expected 32"),
    (lambda q, k, p: (q.astype(np.float16), k, p),
     "rope: q has elements of type float16, expected float32"),
    (lambda q, k, p: (q, k, p.astype(np.int16)),
     "rope: positions has elements of type int16, expected int64"),
    (lambda q, k, p: (q, k, np.asarray(p.shape[0] * ["a"])),
     "rope: positions has elements of type <U1, expected int64"),
    (lambda q, k, p: (q, k, None), "rope: positions is a NoneType, expected an array"),
    (lambda q, k, p: (q, [1.0], p), "rope: k is a list, expected an array"),
])
def test_errors_while_tracing(kernels, change, message):
    q, k, _, positions = make_inputs()
    with pytest.raises(posenc.Error, match=message):
        jax.eval_shape(lambda *inputs: kernels.rope(*change(*inputs)), q, k, positions)
    if "is a " not in message and "<U1" not in message:
        # The kernel has the same text.
        with pytest.raises(posenc.Error, match=message):
            kernels.rope(*change(q, k, positions))


def test_errors_of_outputs_and_frameworks(kernels):
    q, k, _, positions = make_inputs()
    out = q.copy(), k.copy()
    with pytest.raises(posenc.Error, match="leave out `out`"):
        jax.jit(lambda positions: kernels.rope(q, k, positions, out=out))(positions)
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(k)
    with pytest.raises(posenc.Error, match="q is a ndarray, expected a tensor of PyTorch"):
        jax.jit(lambda positions: kernels.rope(q, tensor, positions))(positions)
    with pytest.raises(posenc.Error, match="k is a .*Tracer, expected a tensor of PyTorch"):
        jax.jit(lambda k: kernels.rope(torch.from_numpy(q), k, positions))(k)


def test_errors_of_the_kernel(kernels):
    """Errors that depend on values reach the user when the call runs."""
    q, k, v, _ = make_inputs(tokens=8)
    caches = [x.transpose(0, 2, 1, 3) for x in (k, v)]
    with pytest.raises(jax.errors.JaxRuntimeError,
                       match=r"decode: lengths\[1\] is 9, expected 0 to 8"):
        jax.block_until_ready(
            jax.jit(kernels.decode)(q[:, :1], *caches, np.array([1, 9])))


def test_threads_trace_at_once():
    kernels = posenc.compile(CONFIG, kernels="rope", opt_level=0, rope_length=77)
    inputs = [make_inputs(tokens=3 + i // 2, seed=i) for i in range(6)]
    right = []

    def work(q, k, _, positions):
        expected = rotate(q, positions)
        q, k, positions = map(jnp.asarray, (q, k, positions))
        right.append(is_close(jax.jit(kernels.rope)(q, k, positions)[0], expected))
        q_out, _ = jax.vmap(kernels.rope)(q[:, None], k[:, None], positions[:, None])
        right.append(is_close(q_out[:, 0], expected))

    threads = [threading.Thread(target=work, args=one) for one in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 12


def test_code_outlives_its_object():
    q, k, _, positions = make_inputs()
    call = jax.jit(posenc.compile(CONFIG, kernels="rope", opt_level=0).rope).lower(
        q, k, positions).compile()
    gc.collect()
    positions = jnp.asarray(positions)
    assert is_close(call(jnp.asarray(q), jnp.asarray(k), positions)[0],
                    rotate(q, positions))


def test_equal_kernels_have_one_target():
    q, k, _, positions = make_inputs()

    def find_name(**options):
        kernels = posenc.compile(CONFIG, kernels="rope", opt_level=0, **options)
        text = jax.jit(kernels.rope).lower(q, k, positions).as_text()
        return re.search(r"@(posenc_rope_\w+)", text)[1]

    assert find_name() == find_name() != find_name(pairing="interleaved")


def test_kernels_without_a_source():
    """Those of a loaded library. Nothing is known of what their names mean."""
    from posenc._compiler import CompiledCode
    from posenc._kernels import make_kernels

    q, k, _, positions = make_inputs()
    for base in (1e4, 5e5):
        source = json.dumps({**CONFIG, "rope_theta": base}).encode()
        rope = make_kernels(CompiledCode("config.json", source, ["--kernels=rope"])).rope
        q_out, _ = jax.jit(rope)(q, k, positions)
        assert is_close(q_out, rotate(q, positions, base))
        assert count_loops(jax.vmap(rope), q[None], k[None], positions[None]) == 1
        with pytest.raises(posenc.Error, match="rope: has no gradient"):
            jax.grad(lambda q: rope(q, k, positions)[0].sum())(q)


# ===----------------------------------------------------------------------===#
# export
# ===----------------------------------------------------------------------===#


def test_export(kernels, tmp_path):
    """A program of any batch and length. Another process compiles the same kernels and
    traces them once, which makes the target."""
    pytest.importorskip("flatbuffers")
    q, k, v, positions = make_inputs()
    narrow = positions.astype(np.int32)
    sizes = jax.export.symbolic_shape("batch, tokens")
    shapes = [jax.ShapeDtypeStruct((*sizes, *x.shape[2:]), x.dtype)
              for x in (q, k, v, narrow)]
    rope = jax.jit(kernels.attention)
    with pytest.raises(ValueError, match="posenc_attention_") as error:
        jax.export.export(rope)(*shapes)
    name = re.search(r"@(posenc_attention_\w+)", str(error.value))[1]
    check = jax.export.DisabledSafetyCheck.custom_call(name)
    program = jax.export.export(rope, disabled_checks=[check])(*shapes)
    expected = attend(rotate(q, positions), rotate(k, positions), v)
    assert is_close(program.call(q, k, v, narrow), expected, 1e-5)
    (tmp_path / "program").write_bytes(program.serialize())
    np.savez(tmp_path / "data.npz", q, k, v, narrow,
             kernels.attention(q, k, v, positions))
    code = (f"import jax, numpy, posenc, sys\n"
            f"kernels = posenc.compile({CONFIG!r})\n"
            f"program = jax.export.deserialize(open(sys.argv[1], 'rb').read())\n"
            f"*inputs, expected = numpy.load(sys.argv[2]).values()\n"
            f"jax.eval_shape(kernels.attention, *inputs)\n"
            f"assert numpy.array_equal(program.call(*inputs), expected)\n")
    subprocess.run([sys.executable, "-c", code, tmp_path / "program",
                    tmp_path / "data.npz"], check=True)
