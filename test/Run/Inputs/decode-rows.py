#!/usr/bin/env python3
# ===- decode-rows.py - bits of decode for caches of any size ---------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""usage: decode-rows.py [--fault] MODULE FOLDER POSENC_RUN [OPTION...]

Runs `hidden`, `wide` and `server` of decode-forms.mlir on sequences in caches of several
sizes, alone and together, on fake GPUs of several numbers of multiprocessors. Prints the
comparisons of the bits and those that differ.
Unused slots of the caches of `hidden` and, in the second call, of `wide` are infinite or
NaN. With --fault, there are two comparisons of `hidden` and of `server` and one of short
sequences, and keys that the last sequence of `hidden` and all of the others see have other
values in each call but the first.
"""

import itertools
import os
import pathlib
import subprocess
import sys

import numpy

HAS_FAULT = sys.argv[1] == "--fault"
MODULE, FOLDER, RUN, *OPTIONS = sys.argv[1 + HAS_FAULT:]
LENGTHS = [2100, 2048, 2]
QUERIES, HEADS, KEY_HEADS, CHANNELS = 2, 4, 2, 64
# Other warps compute a KV split in each call.
MULTIPROCESSORS = itertools.cycle(["132", "1", "5"])
# The largest relative errors, for f16 and bf16.
LIMITS = {"hidden": 1e-3, "wide": 4e-3, "server": 4e-3}


def fill(random, capacity, lengths):
    """Returns a cache of sequences."""
    cache = numpy.full((len(lengths), KEY_HEADS, capacity, CHANNELS), numpy.nan,
                       numpy.float16)
    cache[:, :, ::3] = numpy.inf
    for sequence, length in zip(cache, lengths):
        rows = random.standard_normal((KEY_HEADS, length, CHANNELS), numpy.float32)
        sequence[:, :length] = rows[:, :capacity]
    return cache


def call(function, *arrays, multiprocessors=None, has_reference=True, module=MODULE):
    """Returns the bits of the result, which must be close to the reference."""
    command = [RUN, module, f"--function={function}", *OPTIONS]
    if has_reference:
        command += ["--reference", f"--max-rel={LIMITS[function]}"]
    for number, values in enumerate(arrays):
        path = pathlib.Path(FOLDER, f"row-{number}.npy")
        numpy.save(path, numpy.ascontiguousarray(values))
        command.append(f"--input=@{path}")
    path = pathlib.Path(FOLDER, "row-result.npy")
    command.append(f"--output=@{path}")
    if function == "server":
        command.append(f"--output=@{path.with_name('row-sums.npy')}")
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "POSENC_FAKE_CUDA_MULTIPROCESSORS":
                        multiprocessors or next(MULTIPROCESSORS)})
    return numpy.load(path).view(numpy.uint16)


def choose(calls):
    """Returns the calls, or with a fault the first and the last of five."""
    return calls[::4] if HAS_FAULT else calls


def compare(random):
    """Compares the sequences of `hidden` in caches of several sizes."""
    lengths = numpy.array(LENGTHS, numpy.int64)
    queries = random.standard_normal(
        (len(LENGTHS), QUERIES, HEADS, CHANNELS)).astype(numpy.float16)
    keys, values = (fill(random, 4300, LENGTHS) for _ in range(2))
    expected = call("hidden", queries, keys, values, lengths)
    if HAS_FAULT:
        keys[-1, 0, 0, 0] += 1
    calls = [(0, 2100), (0, 2112), (1, 2048), (2, 2), (2, 4300)]
    for first, capacity in choose(calls):
        rows = slice(first, None)
        bits = call("hidden", queries[rows], keys[rows, :, :capacity],
                    values[rows, :, :capacity], lengths[rows])
        yield (f"{capacity} slots, from sequence {first} on",
               numpy.array_equal(bits, expected[rows]))


def compare_short(random):
    """Compares 70 sequences of `hidden`, which are more than twice the 32 that a warp looks
    at together, with some of them alone."""
    capacity = 300
    lengths = numpy.arange(70, dtype=numpy.int64) * 5 % 41
    lengths[[31, 32, 50, 68]] = 257, 299, 300, 280
    queries = random.standard_normal(
        (len(lengths), QUERIES, HEADS, CHANNELS)).astype(numpy.float16)
    keys, values = (fill(random, capacity, lengths) for _ in range(2))

    def run(rows, multiprocessors, has_reference=True):
        return call("hidden", queries[rows], keys[rows], values[rows], lengths[rows],
                    multiprocessors=multiprocessors, has_reference=has_reference)

    last = slice(66, None)
    expected = run(last, "5")
    if HAS_FAULT:
        keys[last, 0, 0, 0] += 1
    all_rows = run(slice(None), "132")
    yield "short sequences, the last ones", numpy.array_equal(all_rows[last], expected)
    if HAS_FAULT:
        return
    yield ("short sequences, 31 to 33",
           numpy.array_equal(all_rows[31:34], run(slice(31, 34), "5")))
    # The reference rejects lengths beyond the capacity; other sequences keep their bits.
    too_long = [32, 69]
    lengths[too_long] = 1000, 301
    others = numpy.delete(numpy.arange(70), too_long)
    yield ("short sequences, one multiprocessor",
           numpy.array_equal(all_rows[others],
                             run(slice(None), "1", has_reference=False)[others]))


def compare_wide(random):
    """Compares heads of 256 channels with unused slots that are zeros and others."""
    length, shape = 50, (1, 1, 60, 256)
    queries = random.standard_normal((1, 1, 4, 256), numpy.float32)
    keys, values = (random.standard_normal(shape, numpy.float32) for _ in range(2))
    results = []
    for unused in [0, numpy.nan]:
        for cache in (keys, values):
            cache[:, :, length:] = unused
            cache[:, :, length::3] = numpy.inf if unused else 0
        if unused != 0 and HAS_FAULT:
            keys[0, 0, 0, 0] += 1
        bits = [(array.view(numpy.uint32) >> 16).astype(numpy.uint16)
                for array in (queries, keys, values)]
        results.append(call("wide", *bits, numpy.array([length])))
    yield "heads of 256 channels", numpy.array_equal(*results)


def compare_ragged(random):
    """Compares the sequences of `server` alone and in other batches. Sequences 0, 1 and 4
    have few queries, and sequence 3 more; pages and their order differ."""
    counts, lengths = [1, 4, 0, 9, 2], [2100, 2049, 9, 2200, 300]
    pages, width, page = 300, 70, 32
    starts = numpy.cumsum([0, *counts])

    def make(*shape):
        """Returns normally distributed bf16 as u2."""
        values = random.standard_normal(shape, numpy.float32)
        return (values.view(numpy.uint32) >> 16).astype(numpy.uint16)

    queries = make(starts[-1], 8, CHANNELS)
    keys, values = (make(pages, 2, page, CHANNELS) for _ in range(2))
    table = random.permutation(pages)[:5 * 60].reshape(5, 60)
    table = numpy.concatenate([table, table[::-1, :width - 60]], 1).astype(numpy.int32)

    def run(chosen, pages_of_table, rest=0, multiprocessors=None):
        """Returns the results of the chosen sequences, before `rest` more tokens."""
        rows_of_table = numpy.pad(table[chosen], ((0, 0), (0, max(pages_of_table - width, 0))))
        rows = numpy.concatenate([queries[starts[s]:starts[s + 1]] for s in chosen]
                                 + [queries[:rest]])
        offsets = numpy.cumsum([0] + [counts[s] for s in chosen])
        bits = call("server", rows, keys, values, rows_of_table[:, :pages_of_table],
                    offsets, numpy.array([lengths[s] for s in chosen]),
                    numpy.zeros((len(rows), 8), numpy.float32),
                    multiprocessors=multiprocessors)
        return bits[:offsets[-1]]

    expected = run(range(5), width)
    if HAS_FAULT:
        keys[table[:, 0]] ^= 0x40
    calls = [([0], 66, 0), ([1], width, 3), ([4, 1], 65, 0), ([3, 0], 69, 7),
             ([4, 4, 4, 4, 4, 0], width, 0)]
    for chosen, pages_of_table, rest in choose(calls):
        bits = run(chosen, pages_of_table, rest)
        wanted = numpy.concatenate([expected[starts[s]:starts[s + 1]] for s in chosen])
        yield (f"ragged sequences {chosen}, {pages_of_table} pages",
               numpy.array_equal(bits, wanted))
    if not HAS_FAULT:
        # There is no memory for all KV splits of such a table.
        yield "a wide table", numpy.array_equal(run(range(5), 12300, 0, "1"), expected)


def compare_zeros():
    """Compares f32 sequences whose last split has results of -0, which the sum of their
    group keeps only if no empty state is added to them. Which warp has the split differs."""
    module = pathlib.Path(FOLDER, "zeros.mlir")
    q, k = "tensor<?x1x2x64xf32>", "tensor<?x1x?x64xf32>"
    module.write_text(
        f"func.func @zeros(%q: {q}, %k: {k}, %v: {k}, %n: tensor<?xi64>) -> {q} {{\n"
        f"  %r = posenc.attention causal scale = 1.0 key_layout = head_major\n"
        f"    ins(%q, %k, %v : {q}, {k}, {k}) lengths(%n : tensor<?xi64>) outs(%q : {q})\n"
        f"  return %r : {q}\n}}\n")
    sequences, tokens = 8, 2560
    queries = numpy.zeros((sequences, 1, 2, 64), numpy.float32)
    keys, values = numpy.zeros((2, sequences, 1, tokens, 64), numpy.float32)
    queries[..., 0] = 1
    # Exponentials of other scores, times these values, are less than any number.
    keys[:, :, :2048, 0], keys[:, :, 2048:2304, 0], keys[:, :, 2304:, 0] = 54, 40, 100
    values[:, :, :2304], values[:, :, 2304] = -1e-30, -1.4e-45
    lengths = numpy.full(sequences, tokens, numpy.int64)
    one, many = (call("zeros", queries, keys, values, lengths, multiprocessors=count,
                      has_reference=False, module=module) for count in ("1", "132"))
    yield "zeros with a sign", numpy.array_equal(one, many) and bool(many.any())


def main():
    random = numpy.random.default_rng(0)
    count = different = 0
    # The kernels for sm_90a have no f32.
    zeros = [] if HAS_FAULT or os.environ.get("POSENC_FAKE_CUDA_SM") != "80" else compare_zeros()
    for what, is_equal in [*compare(random), *compare_ragged(random),
                           *compare_wide(random), *compare_short(random), *zeros]:
        count += 1
        if not is_equal:
            different += 1
            print(f"different: {what}")
    print(f"{count} comparisons, {different} different")


main()
