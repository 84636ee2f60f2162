#!/usr/bin/env python3
# ===- make-gpu-model.py - a model of attention on a GPU --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: make-gpu-model.py                 writes the tables of gpu-model.md
#        make-gpu-model.py --check [PAGE]  fails if they are out of date
#        make-gpu-model.py --trips LOG     compares the round trips in a log of
#                                          the fake driver with those of TRIPS
#        make-gpu-model.py --merge LOG KEYS  the same for kernels that merge the
#                                          splits of KEYS keys
#
# The page has the tables between the comments `<!-- table NAME -->` and
# `<!-- end -->`. A table is a function in TABLES that returns its lines.

import os
import re
import sys

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpu-model.md")
TABLE = re.compile(r"(<!-- table (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)

# Cycles of an H200, measured with kernels written by hand: what a block of 192
# queries and 128 channels takes besides its tiles, a tile of 80 keys, and a
# round trip to memory, which is 500 to 900.
FIXED_CYCLES, TILE_CYCLES, TRIP_CYCLES = 9900, 2208, 700
TILE_KEYS = 80

# Kernel on cuda:sm_90a, round trips of a thread before and now, and those that
# read lengths, slopes or sinks, before queries or after.
TRIPS = [
    ("full_bf16_attention_sm_90a", 8, 1, 0),
    ("causal_bf16_attention_sm_90a", 8, 1, 0),
    ("head_major_attention_sm_90a", 4, 1, 0),
    ("head_192_attention_sm_90a", 12, 1, 0),
    ("soft_cap_attention_sm_90a", 16, 1, 0),
    ("rotated_queries_attention_sm_90a", 24, 1, 0),
    ("rotated_last_attention_sm_90a", 16, 1, 0),
    ("alibi_attention_sm_90a", 5, 3, 2),
    ("sinks_attention_sm_90a", 6, 3, 2),
    ("ragged_attention_sm_90a", 9, 6, 5),
]

# Queries and keys of heads of 128 channels, whether they are causal, and the
# TFLOP/s that were measured on an H200: of the kernel written by hand, and of
# cuDNN.
ATTENTION = [
    (512, False, 420, 458),
    (1024, False, 539, 527),
    (2048, False, 587, 578),
    (8192, False, 654, 608),
    (16384, False, 671, 596),
    (1024, True, 435, 394),
    (2048, True, 475, 458),
    (8192, True, 621, 531),
    (16384, True, 655, 559),
]

# Decode of an H200 with 8 key heads of 128 channels in bf16: sequences, keys, and the
# TB/s of cuDNN, which were measured, or None.
DECODE = [
    (1, 2048, None),
    (1, 8192, None),
    (1, 32768, 3.3),
    (16, 8192, 4.3),
    (64, 2048, 4.2),
    (64, 8192, 4.4),
]
MULTIPROCESSORS, WARPS, KEY_HEADS, KEY_BYTES = 132, 4, 8, 512
# Bytes per microsecond of the GPU and of a multiprocessor, and of a warp that has two
# tiles of 32 keys under way for a round trip at 1,755 MHz; microseconds until a block has
# its first tile, and of a kernel that merges KV splits, besides its round trips.
GPU_RATE, MULTIPROCESSOR_RATE = 4.5e6, 1e5
TRIP_TIME = TRIP_CYCLES / 1755
WARP_RATE = 2 * 32 * KEY_BYTES / TRIP_TIME
START_TIME, MERGE_TIME = 4, 2
# Keys of a KV split and of a group of them. A thread loads those of a group at once: first
# the log-sum-exps and outputs of the first group, then the log-sum-exps of four others at
# a time, then the log-sum-exps and outputs of two at a time. Outputs of splits that
# several warps have computed are a trip after the log-sum-exps, which have their places.
SPLIT_KEYS, GROUP_KEYS = 256, 2048
GROUPS_OF_SUMS, GROUPS_OF_OUTPUTS = 4, 2
# Keys of the table of merges.
MERGE = [256, 2048, 8192, 32768, 131072]


def get_cycles(keys, is_causal, trips):
    """Returns the cycles of a block; the mean of all blocks if it is causal."""
    tiles = -(-keys // TILE_KEYS)
    if is_causal:
        tiles = (tiles + 1) / 2
    # The kernel written by hand has one trip, which is part of FIXED_CYCLES.
    return FIXED_CYCLES + TILE_CYCLES * tiles + TRIP_CYCLES * (trips - 1)


def make_trips():
    lines = ["| kernel | trips before | trips | of them for other than queries |",
             "|---|---:|---:|---:|"]
    return lines + [f"| `{name}` | {before} | {now} | {others} |"
                    for name, before, now, others in TRIPS]


def make_attention():
    lines = ["| tokens | by hand | cuDNN | with eight trips | loss, % |",
             "|---|---:|---:|---:|---:|"]
    for keys, is_causal, rate, peer in ATTENTION:
        share = get_cycles(keys, is_causal, 1) / get_cycles(keys, is_causal, 8)
        lines.append(f"| {keys:,}{', causal' if is_causal else ''} | {rate} | {peer} | "
                     f"{rate * share:.0f} | {100 * (1 - share):.0f} |")
    return lines


def count_merge_trips(keys):
    """Returns the trips of a thread that merges a row: lengths come first."""
    others = -(-keys // GROUP_KEYS) - 1
    return 3 + -(-others // GROUPS_OF_SUMS) + 2 * -(-others // GROUPS_OF_OUTPUTS)


def get_merge_time(trips):
    return MERGE_TIME + trips * TRIP_TIME


def make_merge():
    lines = ["| keys | KV splits | trips before | µs | trips | µs |",
             "|---:|---:|---:|---:|---:|---:|"]
    for keys in MERGE:
        splits = -(-keys // SPLIT_KEYS)
        # A log-sum-exp of a split was loaded twice, and then its outputs.
        before, now = 1 + 3 * splits, count_merge_trips(keys)
        lines.append(f"| {keys:,} | {splits} | {before:,} | {get_merge_time(before):.0f} | "
                     f"{now} | {get_merge_time(now):.0f} |")
    return lines


def get_block_time(sequences, keys):
    """Returns the blocks with work, and the microseconds: each block adds 2,048 keys, and
    starts after the one before has ended."""
    splits = -(-keys // 2048)
    blocks = sequences * KEY_HEADS * splits
    busy = min(blocks, MULTIPROCESSORS)
    rate = min(MULTIPROCESSOR_RATE, GPU_RATE / busy)
    time = START_TIME + min(keys, 2048) * KEY_BYTES / rate
    # The splits of a row were merged one after the other, in two loops.
    merge = get_merge_time(1 + 2 * splits) if splits > 1 else 0
    return blocks, -(-blocks // MULTIPROCESSORS) * time + merge


def get_warp_time(sequences, keys):
    """The same of warps that add a split each, one after the other without a pause."""
    splits = sequences * KEY_HEADS * -(-keys // SPLIT_KEYS)
    workers = MULTIPROCESSORS * WARPS
    counts = [splits // workers + (i < splits % workers) for i in range(workers)]
    own = counts[::MULTIPROCESSORS]
    rate = min(MULTIPROCESSOR_RATE, sum(count > 0 for count in own) * WARP_RATE)
    bytes_of_split = SPLIT_KEYS * KEY_BYTES
    time = max(splits * bytes_of_split / GPU_RATE, sum(own) * bytes_of_split / rate,
               max(own) * bytes_of_split / WARP_RATE)
    merge = get_merge_time(count_merge_trips(keys))
    return min(splits, MULTIPROCESSORS), START_TIME + time + merge


def make_decode():
    lines = ["| sequences | keys | MB | blocks before | µs | TB/s | blocks | µs | TB/s "
             "| cuDNN, TB/s |",
             "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for sequences, keys, peer in DECODE:
        size = sequences * KEY_HEADS * keys * KEY_BYTES
        cells = [f"{sequences} | {keys:,} | {size / 1e6:,.0f}"]
        for blocks, time in [get_block_time(sequences, keys), get_warp_time(sequences, keys)]:
            cells.append(f"{blocks:,} | {time:.0f} | {size / time / 1e6:.1f}")
        lines.append(f"| {' | '.join(cells)} | {peer or '-'} |")
    return lines


TABLES = {"trips": make_trips, "attention": make_attention, "decode": make_decode,
          "merge": make_merge}


def compare_trips(path):
    """Prints the kernels of TRIPS whose trips in a log differ."""
    with open(path, encoding="utf-8") as file:
        found = re.findall(r"^ran (\S+) .* trips (\d+) ", file.read(), re.M)
    wrong = 0
    for name, _, now, _ in TRIPS:
        most = max((int(trips) for other, trips in found if other == name), default=None)
        if most != now:
            print(f"{name}: {'no' if most is None else most} trips, expected {now}")
            wrong += 1
    print(f"{len(TRIPS)} kernels, {wrong} different")
    return wrong > 0


def compare_merge(path, keys):
    """Prints the trips of kernels of a log that merge KV splits, if they differ."""
    with open(path, encoding="utf-8") as file:
        found = re.findall(r"^ran \S+_merge_splits .* trips (\d+) ", file.read(), re.M)
    expected = count_merge_trips(keys)
    wrong = [int(trips) for trips in found if int(trips) != expected]
    print(f"{len(found)} merges of {keys} keys, expected {expected} trips, different: {wrong}")
    return not found or bool(wrong)


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--merge"]:
        sys.exit(compare_merge(arguments[1], int(arguments[2])))
    if arguments[:1] == ["--trips"]:
        sys.exit(compare_trips(arguments[1]))
    is_check = arguments[:1] == ["--check"]
    page = arguments[1] if len(arguments) > 1 else PAGE
    with open(page, encoding="utf-8") as file:
        text = file.read()
    new = TABLE.sub(lambda match: match.group(1) + "\n".join(TABLES[match.group(2)]())
                    + "\n" + match.group(3), text)
    if is_check and new != text:
        sys.exit(f"{page} is out of date: run docs/make-gpu-model.py")
    if not is_check:
        with open(page, "w", encoding="utf-8") as file:
            file.write(new)


main()
