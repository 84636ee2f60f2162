#!/usr/bin/env python3
# ===- attention.py - attention beside that of PyTorch -------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Measures `posenc.functional.attention` beside scaled_dot_product_attention on one
thread: Gflop/s, where causal attention counts half, and the largest error from f64.

    taskset -c 1 python python/benchmarks/attention.py --dtype bfloat16

Both are called in turn with results of their own; times are medians."""

import argparse
import os
import statistics
import time

os.environ["OMP_NUM_THREADS"] = "1"

import torch

import posenc.functional


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", default="100,512,1024,2048")
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--key-heads", type=int, default=8)
    parser.add_argument("--channels", type=int, default=128)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--repeats", type=int, default=9)
    return parser.parse_args()


def measure(functions: list, repeats: int) -> list[float]:
    """Returns the median seconds of functions, which are called in turn."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for function, seconds in zip(functions, times):
            start = time.perf_counter()
            function()
            seconds.append(time.perf_counter() - start)
    return [statistics.median(seconds) for seconds in times]


def main() -> None:
    options = parse()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dtype = getattr(torch, options.dtype)
    dense = torch.nn.functional.scaled_dot_product_attention
    print("tokens  causal  posenc  torch  times as fast  error  of torch")
    for tokens in map(int, options.tokens.split(",")):
        tensors = [torch.randn(1, tokens, heads, options.channels).to(dtype)
                   for heads in (options.heads, options.key_heads, options.key_heads)]
        swapped = [tensor.transpose(1, 2) for tensor in tensors]
        for causal in (False, True):
            def ours() -> torch.Tensor:
                return posenc.functional.attention(*tensors, causal=causal)

            def theirs() -> torch.Tensor:
                return dense(*swapped, is_causal=causal, enable_gqa=True)

            right = dense(*[tensor.double() for tensor in swapped], is_causal=causal,
                          enable_gqa=True)
            errors = [(result - right).abs().max().item()
                      for result in (ours().transpose(1, 2), theirs())]
            mine, other = measure([ours, theirs], options.repeats)
            flops = 4 * options.heads * options.channels * tokens * tokens
            flops *= .5 if causal else 1
            print(f"{tokens:6}  {'yes' if causal else 'no':6}  {flops / mine / 1e9:6.0f}"
                  f"  {flops / other / 1e9:5.0f}  {other / mine:13.2f}"
                  f"  {errors[0]:5.0e}  {errors[1]:8.0e}", flush=True)


main()
