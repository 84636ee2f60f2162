# ===- check-report.py - a report of the suite has all counters ------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# check-report.py REPORT.json NAMES: checks the counters of the report's cases,
# and that they are the cases of the file NAMES, in the same order.

import json
import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    report = json.load(file)
with open(sys.argv[2], encoding="utf-8") as file:
    names = file.read().split()

NAME = re.compile(r"[a-z0-9-]+/[a-z0-9-]+/(f32|f16|bf16)/[0-9x+]+/threads:\d+")


def expect(condition, message):
    if not condition:
        sys.exit(message)


context = report["context"]
expect({"date", "num_cpus", "posenc_version"} <= set(context), context)
cases = report["benchmarks"]
expect(names and [case["name"] for case in cases] == names,
       f"the cases are {[case['name'] for case in cases]}")
hashes = {}
for case in cases:
    name = case["name"]
    expect(NAME.fullmatch(name),
           f"expected family/variant/dtype/shape/threads:N, got {name}")
    expect(not case.get("error_occurred"), f"{name}: {case}")
    expect(case["iterations"] >= 11, f"{name}: too few samples")
    p50, p99 = case["p50_seconds"], case["p99_seconds"]
    expect(0 < p50 <= p99, f"{name}: {p50} and {p99} seconds")
    family = name.split("/")[0]
    isProduct = name.startswith("linalg/matmul")
    rate = ("flops_per_second" if family == "attention" or isProduct else
            "bytes_per_second")
    for counter in (rate, "limit", "fraction_of_limit"):
        expect(case[counter] > 0, f"{name}: {counter} is {case[counter]}")
    hasFlops = (family in ("rope", "attention") or isProduct or
                name.startswith("linalg/norm-rope"))
    hasBytes = family != "attention" and not isProduct
    expect(("flops_per_second" in case) == hasFlops and
           ("bytes_per_second" in case) == hasBytes,
           f"{name}: {sorted(case)}")
    # The median of the ratios is close to the ratio of the medians.
    ratio = case["fraction_of_limit"] * case["limit"] / case[rate]
    expect(0.01 < ratio < 100, f"{name}: fraction / (rate / limit) is {ratio}")
    # Attention with a score_mod or a window is compared with plain attention.
    # Variants for narrower vectors are not.
    word = name.split("/")[1]
    isModified = "-" in word and not word.endswith(("-avx2", "-256"))
    expect(("tile_time_over_plain" in case) == (
        family == "attention" and isModified), f"{name}: {sorted(case)}")
    expect(0.05 < case.get("tile_time_over_plain", 1) < 20, f"{name}: {case}")
    label = re.fullmatch("(hash [0-9a-f]{16}), limit: ([a-z ]+)",
                         case["label"])
    expect(label, case["label"])
    kinds = {"sinusoidal": ("memset",), "attention": ("fma",),
             "decode": ("read", "prefetched read"),
             "linalg": ("fma", "read", "prefetched read", "memcpy",
                        "streaming copy", "loop")}.get(family, (
                 "memcpy", "streaming copy") if "-out" in name else ("loop",))
    expect(label[2] in kinds, f"{name}: {label[2]}")
    # The time that Google Benchmark reports is the mean of the kernel's
    # samples, without the limit's, so at least half of the median.
    seconds = case["real_time"] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}[
        case["time_unit"]]
    expect(seconds > p50 / 2.1, f"{name}: {seconds} is less than {p50}")
    # The hash does not depend on the number of threads.
    hashes.setdefault(name.rsplit("/", 1)[0], set()).add(label[1])
expect(all(len(values) == 1 for values in hashes.values()), hashes)

# Bytes and operations follow from the shape.
channels = 256 * 40 * 128
for case in cases:
    if case["name"].startswith(("rope/half/f32/1x256x32+8x128",
                                "rope/half-strided/f32/256x32+8x128",
                                "rope/half-out/f32/1x256x32+8x128")):
        moved = case["bytes_per_second"] * case["p50_seconds"]
        expect(abs(moved - 2 * 4 * channels) < 1,
               f"{case['name']}: {moved} bytes")
    # Heads of 320 bytes, of which 128 are rotated: two cache lines.
    if case["name"].startswith("rope/half-window/f32"):
        moved = case["bytes_per_second"] * case["p50_seconds"]
        expect(abs(moved - 2 * 128 * 256 * 64) < 1, f"{moved} bytes")
    # 128 channels, all (query, key) pairs or those of the causal mask.
    if case["name"].startswith("attention/full/f32/1x128x"):
        done = case["flops_per_second"] * case["p50_seconds"]
        expect(abs(done - 32 * 4 * 128 * 128 * 128) < 1e3, f"{done} operations")
    if case["name"].startswith("attention/causal/f32/1x128x"):
        done = case["flops_per_second"] * case["p50_seconds"]
        expect(abs(done - 32 * 4 * 128 * 128 * 129 / 2) < 1e3,
               f"{done} operations")
    # A window of 8 keys, fewer for the first queries.
    if case["name"].startswith("attention/causal-window/f32/1x32x"):
        done = case["flops_per_second"] * case["p50_seconds"]
        expect(abs(done - 32 * 4 * 128 * (32 * 8 - 28)) < 1e3,
               f"{done} operations")
    # A mask that is causal.
    if case["name"].startswith("attention/causal-where/f32/1x32x"):
        done = case["flops_per_second"] * case["p50_seconds"]
        expect(abs(done - 32 * 4 * 128 * 32 * 33 / 2) < 1e3, f"{done} operations")
    # Keys and values are read once.
    if case["name"].startswith("decode/rotated/bf16/1x8x256x128"):
        moved = case["bytes_per_second"] * case["p50_seconds"]
        expect(abs(moved - 2 * 2 * 8 * 256 * 128) < 1, f"{moved} bytes")
    # A table is only written.
    if case["name"].startswith("sinusoidal/interleaved/bf16/256x512"):
        moved = case["bytes_per_second"] * case["p50_seconds"]
        expect(abs(moved - 256 * 512 * 2) < 1, f"{moved} bytes")
