# ===- jax_devices.py - calls on several devices of JAX ---------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Calls under `jax.jit` whose arrays are divided among 2 and 4 devices of the host. Prints
a line of JSON for each: the collective operations that XLA compiled, and the largest
difference from one device, relative to the largest value."""

import contextlib
import json
import os
import re

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import posenc
import posenc.jax
from posenc._flex import _plan

BATCH, TOKENS, HEADS, KEY_HEADS, DIM = 4, 8, 8, 4, 16
CONFIG = {
    "model_type": "llama", "num_attention_heads": HEADS, "num_key_value_heads": KEY_HEADS,
    "head_dim": DIM, "hidden_size": HEADS * DIM, "rope_theta": 10000.0,
    "max_position_embeddings": 4096}
_COLLECTIVE = re.compile(
    r"all-gather|all-to-all|collective-permute|all-reduce|reduce-scatter")
# Dimensions that the axis of the mesh divides.
WHOLE, FIRST, SECOND, THIRD = PartitionSpec(), *(
    PartitionSpec(*(None,) * number, "x") for number in range(3))


def make(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), jnp.float32)


def make_meshes():
    return {count: Mesh(np.array(jax.devices()[:count]), ("x",)) for count in (2, 4)}


def measure(actual, expected):
    actual, expected = (np.asarray(one, np.float64) for one in (actual, expected))
    return float(np.max(np.abs(actual - expected)) / max(np.max(np.abs(expected)), 1e-30))


def place(mesh, arrays, specs):
    return [jax.device_put(one, NamedSharding(mesh, spec))
            for one, spec in zip(arrays, specs)]


def report(name, mesh, function, arrays, specs):
    """Compares a call of divided arrays with a call of whole ones."""
    expected = jax.tree.leaves(jax.jit(function)(*arrays))
    placed = place(mesh, arrays, specs)
    # In a mesh that is set, how arrays are divided is a part of their types.
    is_explicit = jax.sharding.AxisType.Explicit in mesh.axis_types
    with jax.set_mesh(mesh) if is_explicit else contextlib.nullcontext():
        compiled = jax.jit(function).lower(*placed).compile()
        actual = jax.tree.leaves(compiled(*placed))
    print(json.dumps({
        "name": name, "devices": mesh.size,
        "collectives": sorted(set(_COLLECTIVE.findall(compiled.as_text()))),
        "specs": [str(one.sharding.spec) for one in actual],
        "difference": max(map(measure, actual, expected))}), flush=True)


def run_config(mesh):
    kernels = posenc.compile(CONFIG, dtype="f32", opt_level=0)
    q, k = make(BATCH, TOKENS, HEADS, DIM), make(BATCH, TOKENS, KEY_HEADS, DIM, seed=1)
    positions = jnp.arange(TOKENS)[None].repeat(BATCH, 0) + 3
    cache, lengths = k.swapaxes(1, 2), jnp.arange(BATCH) + 3
    heads = THIRD, THIRD, WHOLE
    report("rope batch", mesh, kernels.rope, (q, k, positions), (FIRST,) * 3)
    report("rope tokens", mesh, kernels.rope, (q, k, positions), (SECOND,) * 3)
    report("rope heads", mesh, kernels.rope, (q, k, positions), heads)
    report("rope gradient", mesh, jax.grad(
        lambda q, k, p: (kernels.rope(q, k, p)[0] ** 2 * q).sum()),
        (q, k, positions), (SECOND,) * 3)
    explicit = jax.make_mesh((mesh.size,), ("x",), devices=mesh.devices,
                             axis_types=(jax.sharding.AxisType.Explicit,))
    report("explicit rope", explicit, kernels.rope, (q, k, positions), heads)
    report("explicit gradient", explicit, jax.grad(
        lambda q, k, p: (kernels.rope(q, k, p)[0] ** 2).sum()), (q, k, positions), heads)
    report("rope vmap", mesh, jax.vmap(kernels.rope, (0, 0, None)),
           (q[None], k[None], positions), (PartitionSpec(None, *THIRD),) * 2 + (WHOLE,))
    report("sincos", mesh, kernels.sincos, (positions[0],), (FIRST,))
    report("attention batch", mesh, kernels.attention, (q, k, k, positions), (FIRST,) * 4)
    report("attention heads", mesh, kernels.attention, (q, k, k, positions),
           (THIRD, *heads))
    report("attention tokens", mesh, kernels.attention, (q, k, k, positions),
           (SECOND,) * 4)
    report("decode batch", mesh, kernels.decode, (q[:, :1], cache, cache, lengths),
           (FIRST,) * 4)
    report("decode heads", mesh, kernels.decode, (q[:, :1], cache, cache, lengths),
           (THIRD, SECOND, SECOND, WHOLE))
    dynamic = posenc.compile({**CONFIG, "rope_scaling": {
        "rope_type": "dynamic", "factor": 2.0}}, dtype="f32", opt_level=0, kernels="rope",
        no_warnings=True)
    # The frequencies follow from the largest position of all devices.
    far = positions * 2000
    report("dynamic batch", mesh, dynamic.rope, (q, k, far), (FIRST,) * 3)
    report("dynamic heads", mesh, dynamic.rope, (q, k, far), heads)


def run_functional(mesh):
    q, k = make(BATCH, TOKENS, HEADS, DIM), make(BATCH, TOKENS, KEY_HEADS, DIM, seed=1)
    slopes, lengths = make(HEADS, seed=2), jnp.arange(BATCH) + 3
    cache = k.swapaxes(1, 2)
    functions = posenc.functional

    def attention(q, k, slopes):
        return functions.attention(q, k, k, causal=True, theta=10000.0, sinks=slopes,
                                   alibi_slopes=slopes, return_lse=True)

    def decode(q, cache, lengths):
        return functions.decode(q, cache, cache, lengths, theta=10000.0)

    def append(k, cache, lengths):
        return functions.append(k, k, cache, cache, lengths)

    report("functional.attention batch", mesh, attention, (q, k, slopes),
           (FIRST, FIRST, WHOLE))
    report("functional.attention heads", mesh, attention, (q, k, slopes),
           (THIRD, THIRD, FIRST))
    report("one key head", mesh, functions.attention, (q, k[:, :, :1], k[:, :, :1]),
           (THIRD, WHOLE, WHOLE))
    report("too few key heads", mesh, functions.attention,
           (q, k[:, :, ::3], k[:, :, ::3]), (THIRD, WHOLE, WHOLE))
    report("functional.decode batch", mesh, decode, (q[:, :2], cache, lengths),
           (FIRST,) * 3)
    report("functional.decode heads", mesh, decode, (q[:, :2], cache, lengths),
           (THIRD, SECOND, WHOLE))
    report("functional.append heads", mesh, append, (k[:, :1], cache, lengths),
           (THIRD, SECOND, WHOLE))


def run_flex(mesh):
    q, k = make(BATCH, HEADS, TOKENS, DIM), make(BATCH, KEY_HEADS, TOKENS, DIM, seed=1)
    bias = make(HEADS, TOKENS, seed=2)
    document = jnp.asarray(np.random.default_rng(3).integers(0, 3, (BATCH, TOKENS)),
                           jnp.int32)

    def attend(q, k, bias, document, slope=0.0):
        return posenc.flex_attention(
            q, k, k, lambda s, b, h, i, j: s + bias[h, j] + (slope and slope * h),
            enable_gqa=True,
            mask_mod=lambda b, h, i, j: (document[b, i] == document[b, j]) & (i >= j))

    def differentiate(*arrays):
        return jax.grad(lambda *some: (attend(*some, document=arrays[3]) ** 2).sum(),
                        (0, 1, 2))(*arrays[:3])

    arrays = q, k, bias, document
    by_heads = SECOND, SECOND, FIRST, WHOLE
    report("flex batch", mesh, attend, arrays, (FIRST, FIRST, WHOLE, FIRST))
    report("flex heads", mesh, attend, arrays, by_heads)
    report("flex gradient", mesh, differentiate, arrays, by_heads)
    explicit = jax.make_mesh((mesh.size,), ("x",), devices=mesh.devices,
                             axis_types=(jax.sharding.AxisType.Explicit,))
    report("explicit flex gradient", explicit, differentiate, arrays, by_heads)
    report("flex heads by number", mesh, lambda *all: attend(*all, slope=0.5), arrays,
           by_heads)
    long = make(HEADS + 8, TOKENS, seed=2)
    report("flex long array", mesh, attend, (q, k, long, document), by_heads)


def check_eager(mesh):
    """Without `jax.jit`, divided arrays are an error."""
    q = jax.device_put(make(BATCH, TOKENS, HEADS, DIM), NamedSharding(mesh, FIRST))
    try:
        posenc.functional.attention(q, q, q)
    except posenc.Error as error:
        assert "q is divided among devices: call the function under jax.jit" in str(error)
    else:
        raise AssertionError("expected an error")


def zigzag(count):
    """Returns the tokens of all devices: one part from each end of the sequence."""
    parts = np.arange(4 * TOKENS).reshape(2 * count, -1)
    return np.concatenate([parts[[rank, 2 * count - 1 - rank]].ravel()
                           for rank in range(count)])


def norm(actual, expected):
    actual, expected = (np.asarray(one, np.float64) for one in (actual, expected))
    return float(np.linalg.norm(actual - expected) / np.linalg.norm(expected))


def attend_dense(q, k, bias):
    """Causal attention in f64, whose values are the keys, and its log-sum-exp."""
    q, k, bias = (np.asarray(one, np.float64) for one in (q, k, bias))
    k = k.repeat(HEADS // KEY_HEADS, 1)
    i, j = np.ogrid[:q.shape[2], :q.shape[2]]
    scores = np.einsum("bhid,bhjd->bhij", q, k) / DIM ** 0.5 + bias[:, i - j]
    weights = np.exp(np.where(i >= j, scores, -np.inf))
    sums = weights.sum(-1)
    return np.einsum("bhij,bhjd->bhid", weights, k) / sums[..., None], np.log(sums)


def run_ring(mesh, dtype=jnp.float32, order="zigzag"):
    """Compares attention of a divided sequence with that of the whole one in f64, and
    gradients with those of one device."""
    tokens = 4 * TOKENS
    q, k = (make(2, heads, tokens, DIM, seed=heads).astype(dtype)
            for heads in (HEADS, KEY_HEADS))
    bias, factors = make(HEADS, tokens, seed=5), make(2, HEADS, tokens, DIM, seed=6)
    places = zigzag(mesh.size) if order == "zigzag" else np.arange(tokens)

    def score_mod(bias):
        return lambda s, b, h, i, j: s + bias[h, jnp.abs(i - j)]

    def ring(q, k, bias, positions):
        return posenc.jax.ring_attention(
            q, k, k, axis_name="x", score_mod=score_mod(bias), enable_gqa=True,
            positions=None if order == "shards" else positions, return_lse=True)

    def whole(q, k, bias, _):
        return posenc.flex_attention(
            q, k, k, score_mod(bias), mask_mod=lambda b, h, i, j: i >= j,
            enable_gqa=True, return_lse=True)

    divided = jax.shard_map(ring, mesh=mesh, in_specs=(THIRD, THIRD, WHOLE, FIRST),
                            out_specs=THIRD)
    arrays = place(mesh, (q[:, :, places], k[:, :, places], bias, jnp.asarray(places)),
                   (THIRD, THIRD, WHOLE, FIRST))
    compiled = jax.jit(divided).lower(*arrays).compile()
    output, lse = compiled(*arrays)
    expected = [one[:, :, places] for one in attend_dense(q, k, bias)]

    def differentiate(function, arrays, factors):
        return jax.jit(jax.grad(
            lambda *some: sum(one.sum() for one in jax.tree.map(
                lambda one, by: one * by, function(*some, arrays[3]), factors)),
            (0, 1, 2)))(*arrays[:3])

    both = factors, factors[..., 0]
    actual = differentiate(divided, arrays, tuple(one[:, :, places] for one in both))
    wanted = differentiate(whole, (q, k, bias, None), both)
    wanted = [one[:, :, places] for one in wanted[:2]] + [wanted[2]]
    print(json.dumps({
        "name": f"ring {order} {jnp.dtype(dtype)}", "devices": mesh.size,
        "collectives": sorted(set(_COLLECTIVE.findall(compiled.as_text()))),
        "specs": [str(output.sharding.spec)],
        "rounding": norm(jnp.asarray(expected[0], dtype), expected[0]),
        "difference": norm(output, expected[0]), "lse": norm(lse, expected[1]),
        "gradients": list(map(norm, actual, wanted))}), flush=True)


if __name__ == "__main__":
    _plan.compile_options["opt_level"] = 0
    meshes = make_meshes()
    for mesh in meshes.values():
        run_config(mesh)
        run_ring(mesh)
    run_ring(meshes[4], order="shards")
    run_ring(meshes[4], jnp.bfloat16)
    run_functional(meshes[4])
    check_eager(meshes[4])
    run_flex(meshes[4])
