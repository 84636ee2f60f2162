# ===- check-report.py - checks the JSON report of posenc-on-gpu -----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# usage: check-report.py REPORT.json CASES.txt

import json
import math
import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    report = json.load(file)
with open(sys.argv[2], encoding="utf-8") as file:
    lines = [line.split() for line in file if line.strip() and line[0] != "#"]


def expect(condition, message):
    if not condition:
        sys.exit(message)


context = report["context"]
expect({"date", "num_cpus", "posenc_version", "device", "device_l2_bytes",
        "cuda_driver_version"} <= set(context), context)
cases = report["benchmarks"]
expect(lines and [case["name"] for case in cases] ==
       [line[0] + "/cuda:0" for line in lines], [case["name"] for case in cases])
NAME = re.compile(r"[a-z]+/[a-z-]+/(f32|f16|bf16)/[0-9x+]+/cuda:0")
for case, line in zip(cases, lines):
    name = case["name"]
    expect(NAME.fullmatch(name), f"unexpected form of the name: {name}")
    for counter in ("real_time", "bytes_per_second", "limit",
                    "fraction_of_limit", "p50_seconds", "p99_seconds"):
        expect(case[counter] > 0 and math.isfinite(case[counter]),
               f"{name}: {counter} is {case[counter]}")
    expect(case["p50_seconds"] <= case["p99_seconds"], f"{name}: {case}")
    is_graph = "graph" in line
    expect(case["iterations"] == 5 * (3 if is_graph else 1), f"{name}: {case}")
    limit = "fill" if name.startswith("sinusoidal") else "copy"
    expect(case["label"] == f"limit: {limit}" + ", in a graph" * is_graph, case)
    # Without a graph, the copies fill the L2 cache four times.
    fill_all = case["copies"] * case["bytes_per_second"] * case["p50_seconds"]
    expect(is_graph or fill_all > 3.9 * context["device_l2_bytes"],
           f"{name}: {fill_all} bytes in all copies, expected 4 times the L2 cache")
