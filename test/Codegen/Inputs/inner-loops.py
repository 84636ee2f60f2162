# ===- inner-loops.py - checks the loops over rows -------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Reads x86-64 assembly of a kernel and finds the innermost loops that rotate rows:
those with vector products and stores to memory other than the stack. They must not
divide, call, gather, or spill to the stack. (They load the cos and sin table from
there.)

usage: inner-loops.py FILE.s"""

import re
import sys

LABEL = re.compile(r"^(\.L\w+):")
JUMP = re.compile(r"^\s+j\w+\s+(\.L\w+)")
STORE = re.compile(
    r"^\s+(?:vmov\w+|vcvtps2ph\s+\$\d+,)\s+%[xyz]mm\d+, (-?\w*\([^)]*\))"
)
FORBIDDEN = re.compile(r"^\s+(call|v?i?div|v?p?gather)\w*\s")


def find_loops(lines):
    """Returns the innermost loops, as ranges of lines."""
    labels, loops = {}, []
    for number, line in enumerate(lines):
        if match := LABEL.match(line):
            labels[match[1]] = number
        elif (match := JUMP.match(line)) and match[1] in labels:
            loops.append((labels[match[1]], number))
    return [
        (begin, end)
        for begin, end in loops
        if not any(
            begin <= other[0] and other[1] <= end and other != (begin, end)
            for other in loops
        )
    ]


def main():
    lines = open(sys.argv[1]).read().split("\n")
    # rbp is a general register in functions without a frame pointer.
    has_frame = any(re.match(r"\s+movq\s+%rsp, %rbp", line) for line in lines)

    def is_stack(operand):
        return "%rsp" in operand or (has_frame and "(%rbp" in operand)

    numbers = dict(rows=0, prefetched=0, streamed=0)
    for begin, end in find_loops(lines):
        body = lines[begin : end + 1]
        stores = [match[1] for line in body if (match := STORE.match(line))]
        products = [line for line in body if re.match(r"\s+vf?n?m(ul|add|sub)", line)]
        if not products or all(map(is_stack, stores)):
            continue
        numbers["rows"] += 1
        numbers["prefetched"] += any(
            re.search("prefetcht[01]", line) for line in body
        )
        numbers["streamed"] += any("vmovnt" in line for line in body)
        for line in body:
            if FORBIDDEN.match(line):
                sys.exit(f"in a loop over rows: {line.strip()}")
        for store in stores:
            if is_stack(store):
                sys.exit(f"a spill in a loop over rows: {store}")
    print(" ".join(f"{name} {number}" for name, number in numbers.items()))


if __name__ == "__main__":
    main()
