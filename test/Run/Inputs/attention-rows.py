#!/usr/bin/env python3
# ===- attention-rows.py - a row's bits depend on that row alone ------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""usage: attention-rows.py FUNCTION,... LIBRARY.so FOLDER POSENC_RUN [OPTION...]

Runs functions of attention-forms.mlir in LIBRARY on a batch, on each sequence, on
chunks of its queries and on its first tokens, and compares the bits of each query's
result. Prints the comparisons and those that differ. With --device=cuda:N among the
options, calls of up to 16 queries are compared with one another only.
"""

import pathlib
import subprocess
import sys

import numpy

FUNCTIONS, LIBRARY, FOLDER, RUN, *OPTIONS = sys.argv[1:]
# Chunks of different tiles, and of parts of a tile.
CHUNKS = [1, 17, 64, 70, 129]
TOKENS = 200
# The most queries that may have another kernel on GPUs.
FEW = 16 if any(option.startswith("--device=cuda") for option in OPTIONS) else 0
CALLERS = {
    # Query heads, key heads, channels, and whether they are bf16.
    "full_bf16": (4, 4, 128, True),
    "full_f16": (4, 1, 64, False),
    "causal_bf16": (4, 2, 128, True),
    "window": (4, 2, 64, True),
    "both_windows": (2, 2, 64, False),
    "causal_region": (4, 2, 128, True),
    "soft_cap": (2, 1, 256, True),
    "alibi": (6, 2, 64, True),
    "rotated_interleaved": (4, 1, 64, False),
    # Of wide-attention.mlir.
    "window_320": (2, 1, 320, True),
}
# Those whose first queries do not see later keys.
CAUSAL = ["causal_bf16", "window", "causal_region", "soft_cap", "alibi", "window_320"]


def make(shape, is_bf16, random):
    """Returns normally distributed numbers, bf16 as u2."""
    values = random.standard_normal(shape, numpy.float32)
    if is_bf16:
        return (values.view(numpy.uint32) >> 16).astype(numpy.uint16)
    return values.astype(numpy.float16)


def call(function, *arrays):
    """Returns the bits of the function's result."""
    command = [RUN, LIBRARY, f"--function={function}", *OPTIONS]
    for number, values in enumerate(arrays):
        path = pathlib.Path(FOLDER, f"{number}.npy")
        numpy.save(path, numpy.ascontiguousarray(values))
        command.append(f"--input=@{path}")
    path = pathlib.Path(FOLDER, "result.npy")
    done = subprocess.run(command + [f"--output=@{path}"], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return numpy.load(path).view(numpy.uint16)


class Comparison:
    """Counts comparisons of results."""

    def __init__(self):
        self.number = self.different = 0

    def add(self, what, rows, expected):
        self.number += 1
        if not numpy.array_equal(rows, expected):
            self.different += 1
            wrong = numpy.argwhere((rows != expected).any(axis=(-1, -2)))
            print(f"different: {what}, first in query {wrong[0].tolist()}")


def compare_sequences(comparison, random):
    for function, (heads, key_heads, dim, is_bf16) in CALLERS.items():
        if function not in FUNCTIONS.split(","):
            continue
        q = make((2, TOKENS, heads, dim), is_bf16, random)
        k, v = (make((2, TOKENS, key_heads, dim), is_bf16, random)
                for _ in range(2))
        both = call(function, q, k, v)
        for i in range(2):
            one = slice(i, i + 1)
            comparison.add(f"{function}, sequence {i}",
                           call(function, q[one], k[one], v[one]), both[one])
        few = call(function, q[:, -FEW:], k, v) if FEW else None
        for count in CHUNKS:
            comparison.add(f"{function}, last {count} queries",
                           call(function, q[:, -count:], k, v),
                           (few if count <= FEW else both)[:, -count:])
            if function in CAUSAL and count > FEW:
                comparison.add(f"{function}, first {count} tokens",
                               call(function, q[:, :count], k[:, :count],
                                    v[:, :count]), both[:, :count])


def compare_ragged(comparison, random):
    """Compares sequences of a ragged batch with the same ones in another order, and
    each one alone."""
    lengths = [130, 1, 69]
    q = make((TOKENS, 4, 64), True, random)
    k, v = (make((TOKENS, 2, 64), True, random) for _ in range(2))
    starts = numpy.cumsum([0] + lengths)
    rows = call("ragged", q, k, v, starts.astype(numpy.int64))
    for i, length in enumerate(lengths):
        one = slice(starts[i], starts[i + 1])
        comparison.add(f"ragged, sequence {i}",
                       call("ragged", q[one], k[one], v[one],
                            numpy.array([0, length], numpy.int64)), rows[one])
    order = [2, 0, 1]
    index = numpy.concatenate(
        [numpy.arange(starts[i], starts[i + 1]) for i in order])
    starts = numpy.cumsum([0] + [lengths[i] for i in order])
    comparison.add("ragged, another order",
                   call("ragged", q[index], k[index], v[index],
                        starts.astype(numpy.int64)), rows[index])


def main():
    pathlib.Path(FOLDER).mkdir(exist_ok=True)
    random = numpy.random.default_rng(1)
    comparison = Comparison()
    compare_sequences(comparison, random)
    if "ragged" in FUNCTIONS.split(","):
        compare_ragged(comparison, random)
    print(f"{comparison.number} comparisons, {comparison.different} different")


main()
