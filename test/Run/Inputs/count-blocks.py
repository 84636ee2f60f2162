#!/usr/bin/env python3
# ===- count-blocks.py - blocks that calls of attention launch --------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""usage: count-blocks.py [--decode] [--fault] LIBRARY FOLDER POSENC_RUN

Calls attention_paged and attention_ragged of a model with 32 heads and 8 key heads of 128
channels on the fake driver, and compares the blocks of each launch with those that have
work: at most one more for each key head and sequence, and as many as 132 multiprocessors
hold at once. With --decode, makes only the first calls, of one query in each sequence. With
--fault, there may be an eighth of these blocks.
"""

import os
import pathlib
import re
import subprocess
import sys

import numpy

HEADS, KEY_HEADS, DIM, PAGE = 32, 8, 128, 16
MULTIPROCESSORS, BLOCK_ROWS = 132, 48
# As kKeysPerSplit and getMaxRaggedDecodedQueries(4).
SPLIT, FEW = 256, 4
DECODE = [(1, 1000)] * 64
# Pages in a row of the table, or None for ragged keys, and the queries and keys of each
# sequence.
CALLS = [
    (128, DECODE),
    (512, DECODE),
    (8192, DECODE),
    (8192, [*DECODE, (8192, 8192)]),
    (512, [(1, 100), (300, 300), (3, 5000), (0, 0), (5, 70)]),
    (None, [(100, 100)] * 15 + [(0, 0), (1000, 1000)]),
]


def divide(count, step):
    return -(-count // step)


def count_useful(sequences):
    """Returns the blocks with work of each kernel, and how many a multiprocessor holds."""
    few = [(queries, keys) for queries, keys in sequences if 0 < queries <= FEW]
    many = [queries for queries, _ in sequences if queries > FEW]
    return {
        "decode": (KEY_HEADS * sum(divide(keys, SPLIT) for _, keys in few), 1),
        # A block merges 512 channels.
        "merge_splits": (sum(queries for queries, _ in few) * HEADS * DIM // 512, 16),
        "attention": (KEY_HEADS * sum(divide(queries, BLOCK_ROWS) for queries in many), 1),
    }


def call(pages, sequences, library, folder, run):
    """Returns the launches of a call: names of kernels and numbers of blocks."""
    starts = numpy.cumsum([0] + [queries for queries, _ in sequences])
    tokens = starts[-1]
    numpy.save(folder / "starts.npy", starts)
    numpy.save(folder / "lengths.npy", numpy.array([keys for _, keys in sequences]))
    inputs = [f"{tokens}x{HEADS}x{DIM}xbf16=0"]
    if pages is None:
        inputs += [f"{tokens}x{KEY_HEADS}x{DIM}xbf16=0"] * 2
        inputs += [f"{tokens}xi64=iota", f"@{folder}/starts.npy"]
    else:
        inputs += [f"{tokens}xi64=iota"]
        inputs += [f"1x{KEY_HEADS}x{PAGE}x{DIM}xbf16=0"] * 2
        inputs += [f"{len(sequences)}x{pages}xi32=0", f"@{folder}/starts.npy",
                   f"@{folder}/lengths.npy"]
    log = folder / "log"
    log.unlink(missing_ok=True)
    name = "attention_ragged" if pages is None else "attention_paged"
    subprocess.run(
        [run, library, f"--function={name}", "--device=cuda:0",
         *(f"--input={text}" for text in inputs)],
        check=True, capture_output=True,
        env={**os.environ, "POSENC_FAKE_CUDA_LOG": str(log), "POSENC_FAKE_CUDA_SKIP": "_"},
    )
    pattern = rf"^launch {name}_((?:attention|merge)\S*) (\d+)x1x1 "
    return re.findall(pattern, log.read_text(), re.M)


def main():
    library, folder, run = sys.argv[-3:]
    folder = pathlib.Path(folder)
    failed = 0
    for pages, sequences in CALLS[:3] if "--decode" in sys.argv else CALLS:
        print(f"{len(sequences)} sequences, {pages} pages:", end="")
        useful = count_useful(sequences)
        for kernel, blocks in call(pages, sequences, library, folder, run):
            kind = next(kind for kind in useful if kind in kernel)
            count, held = useful[kind]
            limit = count + (len(sequences) + 1) * KEY_HEADS + held * MULTIPROCESSORS
            limit //= 8 if "--fault" in sys.argv else 1
            print(f" {kernel} {blocks} of {count},", end="")
            failed += int(blocks) > limit
        print()
    print(f"{failed} launches with too many blocks")


main()
