#!/usr/bin/env python3
# ===- latent-rows.py - bits of latent attention for caches of any size -----===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""usage: latent-rows.py [--fault] MODULE FOLDER POSENC_RUN [OPTION...]

Runs `four_16` of latent-forms.mlir on sequences in caches of several sizes, alone and
together. Unused slots of the caches are infinite or NaN. Prints the comparisons of the
bits of outputs and log-sum-exps, and those that differ. With --fault, there are two
comparisons, and a key that all queries of the last sequence see has another value in each
call but the first.
"""

import pathlib
import subprocess
import sys

import numpy

HAS_FAULT = sys.argv[1] == "--fault"
MODULE, FOLDER, RUN, *OPTIONS = sys.argv[1 + HAS_FAULT:]
LENGTHS = numpy.array([2114, 70, 5])
QUERIES, HEADS, CHANNELS, VALUES = 4, 16, 576, 512


def call(queries, cache, lengths):
    """Returns the bits of the results, which must be close to the reference."""
    count = len(lengths)
    command = [RUN, MODULE, "--function=four_16", *OPTIONS, "--reference",
               "--max-rel=1e-3"]
    for number, values in enumerate([
            queries, cache, lengths,
            numpy.zeros((count, QUERIES, HEADS, VALUES), numpy.float16),
            numpy.zeros((count, QUERIES, HEADS), numpy.float32)]):
        path = pathlib.Path(FOLDER, f"latent-{number}.npy")
        numpy.save(path, numpy.ascontiguousarray(values))
        command.append(f"--input=@{path}")
    paths = [pathlib.Path(FOLDER, f"latent-{name}.npy") for name in ("out", "sums")]
    command += [f"--output=@{path}" for path in paths]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    output, sums = map(numpy.load, paths)
    return output.view(numpy.uint16), sums.view(numpy.uint32)


def main():
    random = numpy.random.default_rng(0)
    queries = random.standard_normal(
        (len(LENGTHS), QUERIES, HEADS, CHANNELS), numpy.float32).astype(numpy.float16)
    cache = numpy.full((len(LENGTHS), 1, 2300, CHANNELS), numpy.nan, numpy.float16)
    cache[:, :, ::3] = numpy.inf
    for sequence, length in zip(cache, LENGTHS):
        sequence[:, :length] = random.standard_normal((length, CHANNELS), numpy.float32)
    expected = call(queries, cache, LENGTHS)
    if HAS_FAULT:
        cache[-1, 0, 0, 0] += 1
    count = different = 0
    calls = [(0, 2114), (0, 2200), (1, 70), (2, 5), (2, 2300)]
    for first, capacity in calls[::3] if HAS_FAULT else calls:
        rows = slice(first, None)
        results = call(queries[rows], cache[rows, :, :capacity], LENGTHS[rows])
        count += 1
        if not all(numpy.array_equal(bits, right[rows])
                   for bits, right in zip(results, expected)):
            different += 1
            print(f"different: {capacity} slots, from sequence {first} on")
    print(f"{count} comparisons, {different} different")


main()
