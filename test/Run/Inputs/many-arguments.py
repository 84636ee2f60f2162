# ===- many-arguments.py - a function of many tensors ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# many-arguments.py COUNT: prints a function whose result i is argument i plus
# argument COUNT - 1 - i.
# many-arguments.py COUNT LIBRARY [WRONG]: calls it, and expects these results; with
# WRONG, of which one differs.

import ctypes
import sys

count = int(sys.argv[1])
if len(sys.argv) == 2:
    tensor = "tensor<2x3xf32>"
    arguments = ", ".join(f"%a{i}: {tensor}" for i in range(count))
    types = ", ".join([tensor] * count)
    print(f"func.func @sums({arguments}) -> ({types}) {{")
    for i in range(count):
        print(f"  %r{i} = arith.addf %a{i}, %a{count - 1 - i} : {tensor}")
    results = ", ".join(f"%r{i}" for i in range(count))
    print(f"  return {results} : {types}\n}}")
    sys.exit()
Elements = ctypes.c_float * 6
arguments = [Elements(*(100 * i + j for j in range(6))) for i in range(count)]
results = [Elements() for _ in range(count)]
assert ctypes.CDLL(sys.argv[2]).x_sums(*arguments, *results) == 0
if len(sys.argv) > 3:
    results[count // 2][5] += 1
for i, result in enumerate(results):
    assert list(result) == [100 * (count - 1) + 2 * j for j in range(6)], i
