# ===- check-limit.py - a case has the expected limit and work -------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# check-limit.py NAME LIMIT bytes|flops WORK: checks that the report on stdin
# has one case, with this name, this limit, and WORK bytes or operations per
# call.

import json
import sys

name, limit, unit, work = sys.argv[1:]
case, = json.load(sys.stdin)["benchmarks"]
rate = case.get(f"{unit}_per_second", 0)
# The median of the ratios is close to the ratio of the medians.
ratio = case["fraction_of_limit"] * case["limit"] / rate if rate else 1
problems = {
    "name": case["name"] != name,
    "kind": not case["label"].split("limit: ")[1].endswith(limit),
    "unit": (unit == "flops") == ("bytes_per_second" in case),
    "limit": not case["limit"] > 0,
    "work": abs(rate * case["p50_seconds"] / float(work) - 1) > 1e-6,
    "fraction": not 0.01 < ratio < 100,
}
if any(problems.values()):
    sys.exit(f"{[name for name in problems if problems[name]]}: {case}")
