# ===- ring-balance.py - work of the processes of ring attention ------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""CPU time of each process of a causal ring attention, with tokens in order and in zig-zag
order.

    python python/benchmarks/ring-balance.py --sizes 2 4

prints the milliseconds of each process, the best of several calls, and the largest divided
by the mean, by which the slowest process delays the others.
"""

import argparse
import os
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing


def divide(order, tokens, rank, size):
    if order == "in order":
        return torch.arange(tokens).chunk(size)[rank]
    parts = torch.arange(tokens).chunk(2 * size)
    return torch.cat([parts[rank], parts[2 * size - 1 - rank]])


def work(rank, size, path, options):
    import posenc.torch

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank,
                            world_size=size)
    for order in ("in order", "zig-zag"):
        positions = divide(order, options.tokens, rank, size)
        q, k, v = (torch.randn(1, heads, len(positions), 64) for heads in (8, 2, 2))
        times = []
        for _ in range(options.repeats + 1):
            dist.barrier()
            start = time.process_time()
            posenc.torch.ring_attention(q, k, v, positions=positions, enable_gqa=True)
            times.append((time.process_time() - start) * 1e3)
        everyone = [None] * size
        dist.all_gather_object(everyone, min(times[1:]))
        if rank == 0:
            listed = ", ".join(f"{one:.0f}" for one in everyone)
            print(f"| {size} | {order} | {listed} | "
                  f"{max(everyone) * size / sum(everyone):.2f} |", flush=True)
    dist.barrier()
    dist.destroy_process_group()
    # A thread of gloo may still run, and its destructor would abort.
    os._exit(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print("| processes | tokens | ms of each | largest / mean |\n|---|---|---|---|")
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(work, (size, os.path.join(folder, "group"), options),
                                        nprocs=size)


if __name__ == "__main__":
    main()
