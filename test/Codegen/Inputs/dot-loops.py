# ===- dot-loops.py - checks loops of bf16 dot products --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Reads x86-64 assembly of a kernel and finds the innermost loops with bf16 dot
products. A loop has one or more steps of 16 dot products, of 8 broadcast words with
two vectors. It must not store anything, since that would be a spill.

usage: dot-loops.py FILE.s"""

import os
import runpy
import sys

find_loops = runpy.run_path(
    os.path.join(os.path.dirname(__file__), "inner-loops.py"), run_name="loops"
)["find_loops"]


def main():
    lines = open(sys.argv[1]).read().split("\n")
    loops = 0
    for begin, end in find_loops(lines):
        body = [line.split(None, 1) for line in lines[begin + 1 : end + 1]]
        names = [parts[0] for parts in body if parts]
        if "vdpbf16ps" not in names:
            continue
        loops += 1
        expected = {"vdpbf16ps": 16, "vbroadcastss": 8, "vmovaps": 2}
        counts = {name: names.count(name) for name in expected}
        steps = counts["vdpbf16ps"] // expected["vdpbf16ps"]
        if counts != {name: steps * count for name, count in expected.items()}:
            sys.exit(f"expected multiples of {expected} in a loop, found {counts}")
        for parts in body:
            # The last operand is the destination.
            if parts and parts[0].startswith("v") and parts[1].endswith(")"):
                sys.exit(f"a spill: {' '.join(parts)}")
    print(f"loops {loops}")


main()
