# ===- check-peers.py - counters of peers that take a millisecond ----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    cases = {case["name"]: case for case in json.load(file)["benchmarks"]}


def expect(condition, message):
    if not condition:
        sys.exit(str(message))


# 32 heads of 128 channels; 4 operations per channel and (query, key) pair.
full = cases["peer-millisecond/full/f32/1x32x32+8x128/threads:1"]
causal = cases["peer-millisecond/causal/f32/1x32x32+8x128/threads:1"]
decode = cases["peer-millisecond/rotated/f32/1x8x256x128/threads:1"]
for case, pairs in ((full, 32 * 32), (causal, 32 * 33 / 2)):
    rate = 1e3 * pairs * 32 * 4 * 128
    expect(abs(case["flops_per_second"] / rate - 1) < 1e-6, case)
    expect("bytes_per_second" not in case, case)
    expect(case["label"] == "limit: fma", case)
    fraction = case["flops_per_second"] / case["limit"]
    expect(0.3 < case["fraction_of_limit"] / fraction < 3, case)
rate = 1e3 * 2 * 8 * 256 * 128 * 4
expect(abs(decode["bytes_per_second"] / rate - 1) < 1e-6, decode)
expect("read" in decode["label"], decode)
for ours, peer in (("attention/full/f32/1x32x32+8x128/threads:1", full),
                   ("decode/rotated/f32/1x8x256x128/threads:1", decode)):
    # The ratio of the fractions of the two limits.
    ratio = cases[ours]["fraction_of_limit"] / peer["fraction_of_limit"]
    expect(abs(peer["time_over_posenc"] / ratio - 1) < 1e-3, (ours, peer))
expect("time_over_posenc" not in causal, causal)
