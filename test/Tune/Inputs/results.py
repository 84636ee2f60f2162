# ===- results.py - no choice changes a result -----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# results.py POSENC_RUN MODULE TUNING: runs the functions of the module with
# files of choices for the CPU that the file TUNING is for.

import json
import subprocess
import sys

run, module, tuned = sys.argv[1:]
with open(tuned, encoding="ascii") as file:
    tuning = json.load(file)

# All ways through the code are taken, by tensors of some ten KiB.
variants = [
    {},
    {"prefetch_distance": 0, "stream_from": 0, "block_positions": 1},
    {"prefetch_distance": 64, "prefetch_from": 0, "stream_from": 1},
    {"prefetch_distance": 1024, "prefetch_from": 4096, "stream_from": 0},
    {"prefetch_distance": 65536, "prefetch_from": 0, "stream_from": 8192},
    {"stream_tables_from": 1, "stream_from": 0},
    {"stream_tables_from": 0},
    {"block_positions": 4, "block_below": 16384},
    {"block_positions": 16, "block_below": 512, "prefetch_from": 0},
    {"block_positions": 16, "block_below": 511},
    # Blocks that are taken in streams.
    {"block_positions": 32, "block_below": 65536, "prefetch_from": 0},
    {"block_positions": 32, "block_below": 65536, "stream_from": 1},
    {"block_positions": 13, "block_below": 65536, "prefetch_from": 0},
]
calls = {
    "rope": ["--input=37x2x64xf32=random:seed=3", "--input=37xi64=random"],
    "small": ["--input=5x1x16xbf16=random:seed=4", "--input=5xi32=iota"],
    "table": ["--input=37xi64=random", "--input=37x64xf32=random"],
}
# Two whole blocks, and one of which the last place has fewer rows.
calls["wide"] = ["--input=75x32x128xf32=random:seed=5", "--input=75xi64=random"]
# Of two rows the last of four places has but one.
calls["apart"] = ["--input=7x75x128xf32=random:seed=6", "--input=75xi64=random"]
with open(module, encoding="ascii") as file:
    text = file.read()
for function, inputs in calls.items():
    if f"@{function}(" not in text:
        continue
    command = [run, module, "--function=" + function] + inputs
    expected = subprocess.check_output(command, text=True)
    assert "hash" in expected, expected
    for choices in variants:
        tuning["choices"] = choices
        with open("variant.json", "w", encoding="ascii") as file:
            json.dump(tuning, file)
        actual = subprocess.check_output(
            command + ["--tuning=variant.json"], text=True
        )
        if actual != expected:
            sys.exit(f"{function} with {choices}: {actual} is not {expected}")
