# ===- linear.py - compilations take time that is linear in the graph -------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""linear.py POSENC-COMPILE FOLDER [--fault]: compiles graphs of n and of 4 n nodes, and
checks that the larger one takes at most MAX_RATIO times the CPU time of the smaller one.

Times are those of the CPU, the least of two for the smaller graph, and a pair that is not
linear is measured up to three times more, so that other work on the machine does not
matter. The time of a graph of size 1 is subtracted: a linear compiler has a ratio of 4, and
one whose time grows with the square has 16. With --fault, the time of a loop whose steps grow with the cube of n is
measured instead, which must fail, also beside other work on the machine."""

import os
import sys
import time

import large_graphs

MAX_RATIO = 8
# A size at which the graph takes some hundredths of a second more than one of size 1.
SIZES = {"relu": 300, "branches": 150, "matmul": 64, "attention": 24, "layers": 5,
         "names": 64, "constants": 150, "sizes": 24, "stablehlo": 1000, "linalg": 150,
         "fan": 12, "transposes": 150, "rotations": 20, "norms": 24, "inputs": 64,
         "shapes": 40, "slices": 30}
# Stages whose time that of later ones would hide.
STAGES = {"attention": "posenc", "layers": "posenc", "matmul": "tiled", "names": "llvm",
          "sizes": "vector"}
# Less than this is noise of the machine.
MIN_SECONDS = 0.05

compiler, folder = sys.argv[1:3]
fault = "--fault" in sys.argv[3:]


def get_seconds(kind, n):
    if fault:
        begin = time.process_time()
        for _ in range(n ** 3 // 1000):
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
    return min(get_seconds(kind, n) for _ in range(2))


wrong = 0
for kind, n in ({"relu": 1000} if fault else SIZES).items():
    base = get_least(kind, 0 if fault else 1)
    small, large = get_least(kind, n) - base, get_seconds(kind, 4 * n) - base
    # A measurement beside other work of the machine is repeated.
    for _ in range(3):
        if large <= MAX_RATIO * max(small, MIN_SECONDS):
            break
        small = max(small, get_seconds(kind, n) - base)
        large = min(large, get_seconds(kind, 4 * n) - base)
    if large > MAX_RATIO * max(small, MIN_SECONDS):
        wrong += 1
        print(f"{kind}: {n} takes {small:.2f} s, and {4 * n} takes {large:.2f} s")
print(f"{wrong} kinds of graphs are not linear")
