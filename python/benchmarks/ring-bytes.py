#!/usr/bin/env python3
# ===- ring-bytes.py - bytes that attention across devices moves -------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Counts the bytes that `posenc.torch.ring_attention` sends, next to the model of
docs/scaling.md. With --tables, prints the tables of that page."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from typing import NamedTuple

POSITION, SUM = 8, 4  # bytes of a position, and of an element of sums
LINKS = {"NVLink 4": 450e9, "InfiniBand NDR": 50e9}  # bytes per second and direction
FLOPS = 500e12  # per second and device


class Model(NamedTuple):
    """The attention of a model. Heads have `dim` channels of `bytes`."""

    heads: int = 32
    key_heads: int = 8
    dim: int = 128
    bytes: int = 2
    layers: int = 32

    @property
    def kv(self) -> int:
        """Bytes of keys and values of a token in a layer."""
        return 2 * self.key_heads * self.dim * self.bytes

    def ring(self, tokens: int, devices: int) -> float:
        """Bytes that a device sends in the forward of a layer."""
        return (devices - 1) * tokens / devices * (self.kv + POSITION)

    def ring_backward(self, tokens: int, devices: int) -> float:
        """Keys and values travel once more, and the sums of their gradients take a last
        step to be home."""
        sums = 2 * self.key_heads * self.dim * SUM
        return self.ring(tokens, devices) + tokens * sums

    def all_gather(self, tokens: int, devices: int) -> float:
        return (devices - 1) * tokens / devices * self.kv

    def ulysses(self, tokens: int, devices: int) -> float:
        """All-to-all of queries, keys, values and outputs. Key heads are copied where
        there are more devices."""
        heads = 2 * self.heads + 2 * max(self.key_heads, devices)
        return ((devices - 1) / devices * tokens / devices * heads * self.dim * self.bytes)

    def both(self, tokens: int, devices: int, node: int) -> float:
        """Bytes that a device sends to other nodes: all-to-all within a node, a ring of
        nodes."""
        nodes = devices // node
        keys = self.kv / min(node, self.key_heads)
        return (nodes - 1) * tokens / nodes * (keys + POSITION)

    def flops(self, tokens: int, devices: int) -> float:
        """Of a causal layer, divided evenly."""
        return 2 * tokens * tokens * self.heads * self.dim / devices


def work(rank: int, size: int, port: int, arguments) -> None:
    import torch
    import torch.distributed as dist

    import posenc.torch

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=size)
    sent = [0]
    exchange = dist.batch_isend_irecv

    def count(operations):
        sent[0] += sum(one.tensor.numel() * one.tensor.element_size()
                       for one in operations if one.op is dist.isend)
        return exchange(operations)

    dist.batch_isend_irecv = count
    model = Model(arguments.heads, arguments.key_heads, arguments.dim)
    shapes = [(1, heads, arguments.tokens // size, model.dim)
              for heads in (model.heads, model.key_heads, model.key_heads)]
    inputs = [torch.randn(shape).bfloat16().requires_grad_() for shape in shapes]
    output = posenc.torch.ring_attention(*inputs, enable_gqa=True)
    forward = sent[0]
    output.sum().backward()
    if rank == 0:
        for name, counted, predicted in (
                ("forward", forward, model.ring(arguments.tokens, size)),
                ("backward", sent[0] - forward,
                 model.ring_backward(arguments.tokens, size))):
            print(f"| {size} | {name} | {predicted:,.0f} | {counted:,} |", flush=True)
    dist.barrier()
    dist.destroy_process_group()


def count_bytes(arguments) -> None:
    import torch

    print("| processes | | predicted | counted |", "|---|---|---|---|", sep="\n",
          flush=True)
    for size in arguments.processes:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        # The server of processes imports PyTorch once.
        context = torch.multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["torch.distributed", "posenc.torch"])
        torch.multiprocessing.start_processes(work, (size, port, arguments), size,
                                              start_method="forkserver")


def write(bytes_sent: float) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if bytes_sent >= factor:
            number = bytes_sent / factor
            return f"{number:.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"
    return f"{bytes_sent:.0f} B"


def print_tables() -> None:
    model, tokens = Model(), 1 << 20
    print("| devices | ring | all-gather | Ulysses | nodes of 8 |", "|---|---|---|---|---|",
          sep="\n")
    for devices in (2, 4, 8, 32, 128, 1024):
        ulysses = write(model.ulysses(tokens, devices)) if devices <= model.heads else "–"
        both = write(model.both(tokens, devices, 8)) if devices > 8 else "–"
        print(f"| {devices} | {write(model.ring(tokens, devices))} | "
              f"{write(model.all_gather(tokens, devices))} | {ulysses} | {both} |")
    print("\n| devices | links | arithmetic | ring | Ulysses | nodes of 8 |",
          "|---|---|---|---|---|---|", sep="\n")
    for devices, link in ((8, "NVLink 4"), (32, "InfiniBand NDR"),
                          (128, "InfiniBand NDR"), (1024, "InfiniBand NDR")):
        times = [model.flops(tokens, devices) / FLOPS] + [
            one / LINKS[link] for one in (
                model.ring(tokens, devices), model.ulysses(tokens, devices),
                model.both(tokens, devices, 8))]
        cells = [f"{time * 1e3:.3g} ms" for time in times]
        if devices > model.heads:
            cells[2] = "–"
        if devices == 8:
            cells[3] = "–"
        print(f"| {devices} | {link} | {' | '.join(cells)} |")
    print("\n| devices | cache | ring | all-gather | Ulysses |", "|---|---|---|---|---|",
          sep="\n")
    for devices in (8, 32, 128, 1024):
        own = tokens / devices
        rows = (2 * model.heads + 2 * model.key_heads) * model.dim * model.bytes
        # Two blocks, and the results of two steps in f32.
        ring = own * (rows + 2 * (model.kv + POSITION) + 2 * model.heads * (
            model.dim + 1) * SUM)
        gather = own * rows + tokens * model.kv
        cells = [model.layers * own * model.kv, ring, gather, 2 * own * rows]
        texts = [f"{one / 2**30:.3g} GiB" for one in cells]
        if devices > model.heads:
            texts[3] = "–"
        print(f"| {devices} | {' | '.join(texts)} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--tokens", type=int, default=512, help="of the whole sequence")
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--key-heads", type=int, default=2)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--tables", action="store_true", help="print predictions only")
    arguments = parser.parse_args()
    if arguments.tables:
        print_tables()
    else:
        count_bytes(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
