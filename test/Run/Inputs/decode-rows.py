#!/usr/bin/env python3
# ===- decode-rows.py - bits of decode for caches of any size ---------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""usage: decode-rows.py [--fault] MODULE FOLDER POSENC_RUN [OPTION...]

Runs `hidden` of decode-forms.mlir on sequences in caches of several sizes, alone and
together. Prints the comparisons of the bits and those that differ. Unused slots of
the caches are infinite or NaN. With --fault, a value of a key that the last sequence
sees is another one in each call but the first.
"""

import pathlib
import subprocess
import sys

import numpy

HAS_FAULT = sys.argv[1] == "--fault"
MODULE, FOLDER, RUN, *OPTIONS = sys.argv[1 + HAS_FAULT:]
LENGTHS = [2100, 2048, 2]
QUERIES, HEADS, KEY_HEADS, CHANNELS = 2, 4, 2, 64


def fill(random, capacity):
    """Returns a cache of all sequences."""
    cache = numpy.full((len(LENGTHS), KEY_HEADS, capacity, CHANNELS), numpy.nan,
                       numpy.float16)
    cache[:, :, ::3] = numpy.inf
    for sequence, length in zip(cache, LENGTHS):
        rows = random.standard_normal((KEY_HEADS, length, CHANNELS), numpy.float32)
        sequence[:, :length] = rows[:, :capacity]
    return cache


def call(*arrays):
    """Returns the bits of the result, which must be close to the reference."""
    command = [RUN, MODULE, "--function=hidden", *OPTIONS, "--reference",
               "--max-rel=1e-3"]
    for number, values in enumerate(arrays):
        path = pathlib.Path(FOLDER, f"row-{number}.npy")
        numpy.save(path, numpy.ascontiguousarray(values))
        command.append(f"--input=@{path}")
    path = pathlib.Path(FOLDER, "row-result.npy")
    subprocess.run([*command, f"--output=@{path}"], check=True,
                   stdout=subprocess.DEVNULL)
    return numpy.load(path).view(numpy.uint16)


def main():
    random = numpy.random.default_rng(0)
    lengths = numpy.array(LENGTHS, numpy.int64)
    queries = random.standard_normal(
        (len(LENGTHS), QUERIES, HEADS, CHANNELS)).astype(numpy.float16)
    keys, values = fill(random, 4300), fill(random, 4300)
    expected = call(queries, keys, values, lengths)
    if HAS_FAULT:
        keys[-1, 0, 0, 0] += 1
    count = different = 0
    for first, capacity in [(0, 2100), (0, 2112), (1, 2048), (2, 2), (2, 4300)]:
        rows = slice(first, None)
        bits = call(queries[rows], keys[rows, :, :capacity],
                    values[rows, :, :capacity], lengths[rows])
        count += 1
        if (bits != expected[rows]).any():
            different += 1
            print(f"different: {capacity} slots, from sequence {first} on")
    print(f"{count} comparisons, {different} different")


main()
