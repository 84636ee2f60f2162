#!/usr/bin/env python3
# ===- torch-rotary.py - compares PyTorch's rotary embedding ---------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""usage: torch-rotary.py BENCH.json TABLE.md

Times the rotary embedding of q and k by torch.compile, with precomputed cos and
sin, and appends a table that compares it with the times in BENCH.json. Up to
MAX_GRAPH_TOKENS tokens use a CUDA graph and data in the L2 cache, like those of
posenc. Exits with 77 without PyTorch or without a GPU that it supports.
"""

import json
import statistics
import sys

from kernel_library import Table

TOKENS = [1, 8, 32, 128, 4096, 32768]
MAX_GRAPH_TOKENS = 128
LAUNCHES = 100
REPETITIONS = 9


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


try:
    import torch
except Exception as error:  # A broken installation may raise anything.
    skip(f"no PyTorch: {error}")
if not torch.cuda.is_available():
    skip("PyTorch has no GPU")


def rotate_half(x):
    left, right = x.chunk(2, dim=-1)
    return torch.cat((-right, left), dim=-1)


def apply_rotary(q, k, cos, sin):
    cos, sin = cos.unsqueeze(2), sin.unsqueeze(2)
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def make_inputs(tokens):
    """Returns q and k as [batch, token, head, dim], and cos and sin."""
    generator = torch.Generator(device="cuda").manual_seed(7)

    def make(*shape):
        values = torch.randn(*shape, device="cuda", generator=generator)
        return values.to(torch.bfloat16)

    frequencies = 5e5 ** (-torch.arange(0, 128, 2, device="cuda").double() / 128)
    angles = torch.arange(tokens, device="cuda").double()[:, None] * frequencies
    angles = torch.cat((angles, angles), dim=-1)[None]
    return (make(1, tokens, 32, 128), make(1, tokens, 8, 128),
            angles.cos().bfloat16(), angles.sin().bfloat16())


def measure(run, launches):
    """Returns the median seconds of one launch on the device."""
    times = []
    for _ in range(REPETITIONS):
        run()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1e3 / launches)
    return statistics.median(times)


def make_graph(call, launches):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(launches):
            call()
    return graph


def measure_torch(function, tokens):
    if tokens <= MAX_GRAPH_TOKENS:
        inputs = make_inputs(tokens)
        function(*inputs)
        graph = make_graph(lambda: function(*inputs), LAUNCHES)
        return measure(lambda: [graph.replay() for _ in range(5)], 5 * LAUNCHES)
    # Uses several copies in turn, which exceed the L2 cache.
    l2_bytes = getattr(torch.cuda.get_device_properties(0), "L2_cache_size",
                       64 << 20)
    one = make_inputs(tokens)
    size = 2 * sum(x.numel() * x.element_size() for x in one[:2])
    copies = [one] + [tuple(x.clone() for x in one)
                      for _ in range(max(1, 4 * l2_bytes // size))]
    function(*one)
    # One graph for all copies: each call gets its own result tensors, which the
    # allocator would reuse between separate graphs.
    graph = make_graph(lambda: [function(*inputs) for inputs in copies], 1)
    return measure(lambda: [graph.replay() for _ in range(10)],
                   10 * len(copies))


def read_ours(path):
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    return {case["name"].split("/cuda:")[0]: case["p50_seconds"]
            for case in report["benchmarks"] if "p50_seconds" in case}


def main():
    ours = read_ours(sys.argv[1])
    lines = [
        "",
        f"PyTorch {torch.__version__}: q * cos + rotate_half(q) * sin through "
        "torch.compile, with",
        "precomputed cos and sin; posenc computes them. bf16, 32 + 8 heads of 128.",
        "",
        "| tokens | PyTorch us | posenc us | PyTorch / posenc |",
        "|---:|---:|---:|---:|",
    ]
    try:
        function = torch.compile(apply_rotary, dynamic=False, fullgraph=True)
        function(*make_inputs(TOKENS[0]))
    except Exception as error:
        skip(f"torch.compile: {str(error).splitlines()[0][:200]}")
    table = Table(sys.argv[2])
    for line in lines:
        table.write(line)
    for tokens in TOKENS:
        name = f"rope/half-out/bf16/1x{tokens}x32+8x128"
        seconds = measure_torch(function, tokens)
        mine = ours.get(name)
        beside = (f"{mine * 1e6:.2f} | {seconds / mine:.2f}" if mine
                  else "- | -")
        table.write(f"| {tokens} | {seconds * 1e6:.2f} | {beside} |")


main()
