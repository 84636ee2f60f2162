# ===- from-every-row.py - posenc-tune ends near the best row --------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# from-every-row.py BIN MODULE [SECONDS]: starts posenc-tune from the row of
# every measured CPU family, SECONDS each (120 by default), and compares the
# results and the rows themselves on cases of the suite. Exits with 3 if the speed
# of a search's result is below 0.93 of the best row's. Not part of the tests, as
# it needs an otherwise idle machine and about ten minutes.

import json
import math
import os
import subprocess
import sys
import tempfile

bin, module = sys.argv[1:3]
budget = sys.argv[3] if len(sys.argv) > 3 else "120"
FAMILIES = ["znver3", "znver4", "znver5"]
FILTER = (
    "^(rope/half/(f32|bf16)/1x[0-9]{5}x32|rope/half/bf16/1x[0-9]{5,}x8x64"
    "|rope/half-bhsd/bf16|rope/half-strided/f32"
    "|decode/rotated/f32|decode/rotated-token-major/bf16)"
)


def call(tool, *arguments):
    return subprocess.run(
        [os.path.join(bin, tool), *arguments], check=True, text=True,
        stdout=subprocess.PIPE,
    ).stdout


def suite(*arguments):
    return call(
        "posenc-bench", "--suite", "--threads=1",
        "--benchmark_filter=" + FILTER, *arguments,
    )


folder = tempfile.mkdtemp()
files = {}
for family in FAMILIES:
    # Without time to search, posenc-tune writes the row that it starts from.
    for name, seconds in [("row", "0.001"), ("search", budget)]:
        file = os.path.join(folder, f"{name}-{family}.json")
        text = call(
            "posenc-tune", module, "-o", file, "--start=" + family,
            "--budget=" + seconds,
        )
        files[f"{name} {family}"] = file
    print(f"from {family}: {text.splitlines()[-1]}", flush=True)

baseline = os.path.join(folder, "baseline")
suite("--verify", "--keep-libraries=" + baseline, "--tuning=" + files["row znver5"])
means = {}
for name, file in files.items():
    report = os.path.join(folder, "bench.json")
    suite("--tuning=" + file, "--baseline=" + baseline, "--benchmark_out=" + report)
    with open(report, encoding="utf-8") as opened:
        rows = json.load(opened)["benchmarks"]
    assert all(row["same_bits_as_baseline"] == 1 for row in rows), name
    speeds = [row["speed_over_baseline"] for row in rows]
    means[name] = math.exp(sum(map(math.log, speeds)) / len(speeds))
    print(f"{name}: {means[name]:.3f} of znver5's row:",
          " ".join(f"{speed:.2f}" for speed in speeds), flush=True)
best = max(mean for name, mean in means.items() if name.startswith("row"))
worst = min(mean for name, mean in means.items() if name.startswith("search"))
print(f"the worst search ends at {worst / best:.3f} of the best row")
sys.exit(0 if worst >= 0.93 * best else 3)
