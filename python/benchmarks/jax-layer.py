# ===- jax-layer.py - a layer in JAX and in Posenc --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Times a layer of Llama, jitted by JAX and imported from its StableHLO, in turns.

    taskset -c 0 python python/benchmarks/jax-layer.py

The layer has a hidden size of 1,024, 16 heads for queries and 4 for keys and values, of 64
each, an MLP of 2,816, and random weights in f32, which are constants or arguments. Both
use one thread. The table has medians in milliseconds.
"""

import argparse
import os
import statistics
import time

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

import posenc

HIDDEN, HEADS, GROUPS, DIM, MLP = 1024, 16, 4, 64, 2816
SHAPES = [(HIDDEN, HEADS * DIM), (HIDDEN, GROUPS * DIM), (HIDDEN, GROUPS * DIM),
          (HEADS * DIM, HIDDEN), (HIDDEN, MLP), (HIDDEN, MLP), (MLP, HIDDEN)]


def rms(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def layer(x, *weights):
    tokens = x.shape[1]
    to_q, to_k, to_v, to_out, to_gate, to_up, to_down = weights
    angles = jnp.arange(tokens)[:, None] * 10000.0 ** (-jnp.arange(0, DIM, 2) / DIM)
    angles = jnp.concatenate([angles, angles], -1)[:, None]
    cos, sin = jnp.cos(angles), jnp.sin(angles)

    def rotate(x):
        first, second = jnp.split(x, 2, -1)
        return x * cos + jnp.concatenate([-second, first], -1) * sin

    h = rms(x)
    q, k, v = ((h @ one).reshape(1, tokens, -1, DIM) for one in (to_q, to_k, to_v))
    h = jax.nn.dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
    x = x + h.reshape(1, tokens, -1) @ to_out
    h = rms(x)
    return x + (jax.nn.silu(h @ to_gate) * (h @ to_up)) @ to_down


def measure(functions, rounds):
    """Returns the median milliseconds of each function, which are called in turns."""
    times = [[] for _ in functions]
    for number in range(rounds + 2):
        for function, all_times in zip(functions, times):
            start = time.perf_counter()
            function()
            if number >= 2:
                all_times.append(1e3 * (time.perf_counter() - start))
    return [statistics.median(all_times) for all_times in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    random = np.random.default_rng(0)
    x = random.standard_normal((1, options.tokens, HIDDEN)).astype(np.float32)
    weights = [(random.standard_normal(shape) / shape[0] ** 0.5).astype(np.float32)
               for shape in SHAPES]
    constant = jax.jit(lambda x: layer(x, *map(jnp.asarray, weights)))
    cases = [("constants", constant, (x,)), ("arguments", jax.jit(layer), (x, *weights))]
    print("| weights | JAX, ms | Posenc, ms | difference |\n|---|---|---|---|", flush=True)
    for name, function, arrays in cases:
        exported = export.export(function)(*arrays)
        kernels = posenc.compile(posenc.import_stablehlo(exported))
        device = [jax.device_put(array) for array in arrays]
        expected = np.asarray(function(*device))
        difference = abs(np.asarray(kernels.main(*arrays)) - expected).max()
        difference /= abs(expected).max()
        for _ in range(options.repeats):
            ours, theirs = measure([lambda: kernels.main(*arrays),
                                    lambda: function(*device).block_until_ready()],
                                   options.rounds)
            print(f"| {name} | {theirs:.0f} | {ours:.0f} | {difference:.1e} |", flush=True)


if __name__ == "__main__":
    main()
