# ===- dot-loops.py - checks the loops of micro-kernels --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Reads x86-64 assembly of a kernel and finds the innermost loops with products: bf16
dot products, or the instruction NAME. A loop has one or more steps of ROWS broadcast
values (8 by default), each multiplied by VECTORS vectors (2 by default). It must not
store anything, since that would be a spill. Prints the numbers of loops and of their
`lea`.

usage: dot-loops.py FILE.s [NAME ROWS [VECTORS]]"""

import os
import runpy
import sys

find_loops = runpy.run_path(
    os.path.join(os.path.dirname(__file__), "inner-loops.py"), run_name="loops"
)["find_loops"]


def main():
    lines = open(sys.argv[1]).read().split("\n")
    product, *counts = sys.argv[2:] or ["vdpbf16ps"]
    rows, vectors = (*map(int, counts), *(8, 2)[len(counts) :])
    loops = leas = 0
    for begin, end in find_loops(lines):
        body = [line.split(None, 1) for line in lines[begin + 1 : end + 1]]
        names = [parts[0] for parts in body if parts]
        if product not in names:
            continue
        loops += 1
        leas += sum(name.startswith("lea") for name in names)
        expected = {
            product: vectors * rows,
            "vbroadcastss": rows,
            "vmovaps": vectors,
        }
        counts = {name: names.count(name) for name in expected}
        steps = counts[product] // expected[product]
        if counts != {name: steps * count for name, count in expected.items()}:
            sys.exit(f"expected multiples of {expected} in a loop, found {counts}")
        for parts in body:
            # The last operand is the destination.
            if parts and parts[0].startswith("v") and parts[1].endswith(")"):
                sys.exit(f"a spill: {' '.join(parts)}")
    print(f"loops {loops} lea {leas}")


main()
