# ===- dot-loops.py - what loops of products of pairs are made of ----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Reads x86-64 assembly of a kernel and finds the innermost loops with products
of pairs of bf16. A step, of which a loop may have several, has 16 of them on 8
words that are broadcast and two vectors, and stores nothing: what it would store
is a spill.

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
            sys.exit(f"a loop of {counts}")
        for parts in body:
            # The last operand is the one that is written.
            if parts and parts[0].startswith("v") and parts[1].endswith(")"):
                sys.exit(f"a spill: {' '.join(parts)}")
    print(f"loops {loops}")


main()
