#!/usr/bin/env python3
# ===- measure-calls.py - the time of a call from Python -------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Prints the time of `rope` of one token from Python, in microseconds: the median
# of repetitions of 2,000 calls (--calls), taken in turn. Beside it, what ctypes needs
# for the same entry point, and what NumPy and PyTorch need for an addition.

import argparse
import ctypes
import importlib.util
import json
import statistics
import time

import numpy as np

import posenc
from posenc._compiler import CompiledCode

CONFIG = {"model_type": "llama", "num_attention_heads": 32, "num_key_value_heads": 8,
          "head_dim": 128, "hidden_size": 4096, "rope_theta": 500000.0}
REPETITIONS = 15


def make_ctypes_cases(q, k, positions):
    """Calls of the plain entry point: with pointers made before, and made anew."""
    code = CompiledCode("config.json", json.dumps(CONFIG).encode(),
                        ["--kernels=rope", "--dtype=f32"])
    entry = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 5,
                             *[ctypes.c_int64] * 2)(code.symbol("posenc_rope"))
    entry.code = code  # Lives as long.
    pointers = [x.ctypes.data for x in (q, k, positions, q, k)]

    def anew():
        entry(q.ctypes.data, k.ctypes.data, positions.ctypes.data, q.ctypes.data,
              k.ctypes.data, 1, 1)

    return {"ctypes, unchecked, pointers at hand": lambda: entry(*pointers, 1, 1),
            "ctypes, unchecked, pointers of arrays": anew}


def make_cases():
    q, k = np.ones((1, 1, 32, 128), np.float32), np.ones((1, 1, 8, 128), np.float32)
    positions = np.zeros((1, 1), np.int64)
    kernels = posenc.compile(CONFIG, kernels="rope", dtype="f32")
    rope, out = kernels.rope, (q, k)
    cases = {"NumPy, in place": lambda: rope(q, k, positions, out=out),
             "NumPy, new results": lambda: rope(q, k, positions)}
    if importlib.util.find_spec("ml_dtypes"):
        import ml_dtypes

        bf16 = posenc.compile(CONFIG, kernels="rope", dtype="bf16").rope
        a, b = q.astype(ml_dtypes.bfloat16), k.astype(ml_dtypes.bfloat16)
        cases["NumPy, bf16, in place"] = lambda: bf16(a, b, positions, out=(a, b))
    if importlib.util.find_spec("torch"):
        import torch

        tensors = [torch.from_numpy(x.copy()) for x in (q, k, positions)]
        torch_out = tensors[0], tensors[1]
        cases["PyTorch, in place"] = lambda: rope(*tensors, out=torch_out)
        cases["PyTorch, new results"] = lambda: rope(*tensors)
        from posenc.torch import operators

        operator = operators(kernels).rope
        cases["PyTorch, operator"] = lambda: operator(*tensors)
        cases["torch.add(q, q, out=r)"] = (
            lambda a=tensors[0], r=torch.empty_like(tensors[0]): torch.add(a, a, out=r))
        cases["torch.empty"] = lambda: torch.empty((1, 1, 32, 128))
    if importlib.util.find_spec("jax"):
        import jax

        jax.config.update("jax_enable_x64", True)
        arrays = [jax.numpy.asarray(x) for x in (q, k, positions)]
        cases["JAX, new results"] = lambda: rope(*arrays)
        if importlib.util.find_spec("jax_tvm_ffi"):
            jitted = jax.jit(rope)
            cases["JAX, under jit"] = lambda: jitted(*arrays)
    cases.update(make_ctypes_cases(q, k, positions))
    cases["numpy.add(q, q, out=r)"] = (
        lambda r=np.empty_like(q): np.add(q, q, out=r))
    return cases


def main():
    parser = argparse.ArgumentParser(description="Measures calls of `rope` from Python.")
    parser.add_argument("--calls", type=int, default=2000, help="calls per repetition")
    calls = parser.parse_args().calls
    cases = make_cases()
    times = {name: [] for name in cases}
    for _ in range(REPETITIONS):
        for name, call in cases.items():
            start = time.perf_counter()
            for _ in range(calls):
                call()
            times[name].append((time.perf_counter() - start) / calls * 1e6)
    for name, values in times.items():
        print(f"{name:40} {statistics.median(values):6.2f} µs")


if __name__ == "__main__":
    main()
