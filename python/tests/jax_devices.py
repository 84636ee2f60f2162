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

import json
import os
import re

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

import posenc  # noqa: E402
from posenc._flex import _plan  # noqa: E402

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
    report("flex heads by number", mesh, lambda *all: attend(*all, slope=0.5), arrays,
           by_heads)
    long = make(HEADS + 8, TOKENS, seed=2)
    report("flex long array", mesh, attend, (q, k, long, document), by_heads)


if __name__ == "__main__":
    _plan.compile_options["opt_level"] = 0
    meshes = make_meshes()
    for mesh in meshes.values():
        run_config(mesh)
    run_functional(meshes[4])
    run_flex(meshes[4])
