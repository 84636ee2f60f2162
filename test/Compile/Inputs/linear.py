# ===- linear.py - compilations take time that is linear in the graph -------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""linear.py POSENC-COMPILE FOLDER [--fault]: compiles graphs of n and of 4 n nodes, and
checks that the larger one takes at most MAX_RATIO times the CPU time of the smaller one.

Each time is the least of three. The time of an empty graph is subtracted, so that a
linear compiler has a ratio of 4, and one whose time grows with the square has 16. With
--fault, the time of a loop of n * n steps is measured instead, which must fail."""

import os
import sys
import time

import large_graphs

MAX_RATIO = 8
# A size at which the graph takes some tenths of a second more than an empty one.
SIZES = {"relu": 1000, "branches": 300, "matmul": 48, "attention": 4, "layers": 1,
         "names": 64, "constants": 300, "sizes": 8, "stablehlo": 300, "linalg": 300}
# Stages before machine code, whose time would hide that of the searches.
STAGES = {"attention": "posenc", "layers": "vector", "matmul": "vector"}

compiler, folder = sys.argv[1:3]
fault = "--fault" in sys.argv[3:]


def get_seconds(kind, n):
    if fault:
        begin = time.process_time()
        for _ in range(n * n):
            pass
        return time.process_time() - begin
    path, _ = large_graphs.write(folder, kind, n)
    command = [compiler, path, "-o", os.path.join(folder, "graph.out"),
               "--emit=" + STAGES.get(kind, "obj")]
    seconds, _, error = large_graphs.measure(command)
    if error:
        print(f"{kind} of {n}: {error}")
        sys.exit(1)
    return seconds


def get_least(kind, n):
    return min(get_seconds(kind, n) for _ in range(3))


wrong = 0
for kind, n in ({"relu": 1000} if fault else SIZES).items():
    base = get_least(kind, 0 if fault else 1)
    small, large = get_least(kind, n) - base, get_least(kind, 4 * n) - base
    if large > MAX_RATIO * max(small, 0.02):
        wrong += 1
        print(f"{kind}: {n} takes {small:.2f} s, and {4 * n} takes {large:.2f} s")
print(f"{wrong} kinds of graphs are not linear")
