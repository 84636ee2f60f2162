#!/usr/bin/env python3
# ===- flex.py - flex_attention beside that of PyTorch ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Measures `posenc.flex_attention` on the public variants of FlexAttention: the error
from f64, the time to compile, and the time of a call beside PyTorch's compiled
flex_attention and scaled_dot_product_attention with a mask.

    python python/benchmarks/flex.py --tokens 2048 --threads 1 --dtype float32
    python python/benchmarks/flex.py --backward --tokens 1024

Systems are called in turn; times are medians, errors relative to the norm. PyTorch's
flex_attention has no backward on CPUs, so that of dense attention under torch.compile
takes its place."""

import argparse
import os
import pathlib
import statistics
import sys
import time


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--variants", default="", help="names, separated by commas")
    parser.add_argument("--no-flex", action="store_true",
                        help="without PyTorch's flex_attention")
    return parser.parse_args()


OPTIONS = parse()
os.environ["OMP_NUM_THREADS"] = str(OPTIONS.threads)
os.environ.setdefault("POSENC_CACHE", "off")  # Times of compilation are wanted.
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

import torch  # noqa: E402
from flex_variants import attend_dense, make_variants  # noqa: E402
from torch.nn.attention.flex_attention import (  # noqa: E402
    create_block_mask, flex_attention)

import posenc  # noqa: E402

torch.set_num_threads(OPTIONS.threads)
torch._dynamo.config.recompile_limit = 100


def measure(functions: dict) -> dict[str, float]:
    """Returns milliseconds of functions, which are called in turn."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(OPTIONS.repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(one) * 1e3 for name, one in times.items()}


def first_call(function) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def get_error(actual: torch.Tensor, expected: torch.Tensor) -> float:
    return ((actual.double() - expected).norm() / expected.norm()).item()


def make_mask(variant, query: torch.Tensor) -> torch.Tensor:
    """Returns what scaled_dot_product_attention adds to scores, or its mask. It has
    biases that do not depend on scores only."""
    ones = torch.zeros(1, query.shape[1], *2 * [query.shape[2]])
    b, h, i, j = (torch.arange(size).reshape(
        [-1 if dim == one else 1 for one in range(4)]) for dim, size in
        enumerate(ones.shape))
    if variant.score_mod is not None:
        bias = variant.score_mod(ones, b, h, i, j).expand(ones.shape)
        if variant.mask_mod is not None:
            bias = torch.where(variant.mask_mod(b, h, i, j), bias, -torch.inf)
        return bias.to(query.dtype)
    return variant.mask_mod(b, h, i, j)


def run(name: str, variant) -> dict[str, float]:
    shape = (1, OPTIONS.heads, OPTIONS.tokens, OPTIONS.channels)
    dtype = getattr(torch, OPTIONS.dtype)
    query, key, value = (torch.randn(shape).to(dtype) for _ in range(3))
    factor = torch.randn(shape).to(dtype)
    inputs = [one.requires_grad_(OPTIONS.backward) for one in (query, key, value)]

    def differentiate(function):
        output = function(*inputs)
        return (lambda: torch.autograd.grad(output, inputs, factor, retain_graph=True))

    def own(*arrays):
        return posenc.flex_attention(*arrays, variant.score_mod,
                                     mask_mod=variant.mask_mod)

    functions, row = {}, {}
    row["compile"] = first_call(lambda: own(*inputs))
    wide = [one.detach().double().requires_grad_() for one in inputs]
    expected, _ = attend_dense(*wide, *variant)
    if OPTIONS.backward:
        functions["posenc"] = differentiate(own)
        row["compile"] += first_call(functions["posenc"])
        gradients = torch.autograd.grad(expected, wide, factor.double())
        row["error"] = max(map(get_error, functions["posenc"](), gradients))
        dense = torch.compile(lambda *arrays: attend_dense(*arrays, *variant)[0])
        functions["dense"] = differentiate(dense)
        row["dense_compile"] = first_call(functions["dense"])
    else:
        functions["posenc"] = lambda: own(*inputs)
        row["error"] = get_error(own(*inputs), expected)
        if not OPTIONS.no_flex:
            blocks = None if variant.mask_mod is None else create_block_mask(
                variant.mask_mod, None, None, *2 * [OPTIONS.tokens], device="cpu")
            compiled = torch.compile(flex_attention)
            functions["flex"] = lambda: compiled(*inputs, variant.score_mod, blocks)
            try:
                row["flex_compile"] = first_call(functions["flex"])
            except torch._inductor.exc.InductorError:
                del functions["flex"]  # Its C++ is not valid for some functions.
    depends = name in ("soft_cap", "squared_relu", "temperature", "checkerboard")
    if not depends:
        options = {} if variant == (None, None) else (
            {"attn_mask": make_mask(variant, query)})

        def sdpa(*arrays):
            return torch.nn.functional.scaled_dot_product_attention(*arrays, **options)

        functions["sdpa"] = differentiate(sdpa) if OPTIONS.backward else (
            lambda: sdpa(*inputs))
    return {**row, **measure(functions)}


def main() -> None:
    print(f"{OPTIONS.dtype}, {OPTIONS.heads} heads of {OPTIONS.channels}, "
          f"{OPTIONS.tokens} tokens, {OPTIONS.threads} threads, PyTorch "
          f"{torch.__version__}{', backward' if OPTIONS.backward else ''}")
    other = "dense" if OPTIONS.backward else "flex"
    print(f"{'':20} {'error':>8} {'compile':>8} {other:>8} {'posenc':>9} {other:>9} "
          f"{'SDPA':>9}   {other} / posenc, SDPA / posenc")
    variants = make_variants(OPTIONS.tokens, OPTIONS.heads)
    for name, variant in variants.items():
        if OPTIONS.variants and name not in OPTIONS.variants.split(","):
            continue
        torch.manual_seed(0)
        row = run(name, variant)

        def cell(key: str, width: int, form: str, row=row) -> str:
            return f"{row[key]:{width}{form}}" if key in row else "-".rjust(width)

        ratios = [f"{row[key] / row['posenc']:5.2f}" if key in row else "    -"
                  for key in (other, "sdpa")]
        print(f"{name:20} {row['error']:8.1e} {row['compile']:7.1f}s "
              f"{cell(other + '_compile', 7, '.1f')}s {row['posenc']:7.1f}ms "
              f"{cell(other, 7, '.1f')}ms {cell('sdpa', 7, '.1f')}ms   "
              f"{'  '.join(ratios)}", flush=True)


if __name__ == "__main__":
    main()
