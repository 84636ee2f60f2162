#!/usr/bin/env python3
# ===- make-ropes.py - ropes of many head sizes, types and pairings --------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# make-ropes.py PAIRING DTYPE:LAST,... MODULE TABLE: writes ropes as MLIR, and
# as a C table of `struct Case`: for each type, all even head sizes up to LAST
# and some odd ones, whose last element is not rotated.

import sys

FUNCTION = """
func.func @{name}(%x: tensor<?x2x{dim}x{dtype}>, %p: tensor<?xi64>)
    -> tensor<?x2x{dim}x{dtype}> {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x2x{dim}x{dtype}>
  %e = tensor.empty(%n) : tensor<?x2x{dim}x{dtype}>
  %r = posenc.rope {pairing} #posenc.frequencies<dim = {even}, base = 10000.0>
    ins(%x : tensor<?x2x{dim}x{dtype}>) positions(%p : tensor<?xi64>) dims = [0]
    outs(%e : tensor<?x2x{dim}x{dtype}>)
  return %r : tensor<?x2x{dim}x{dtype}>
}}
"""

pairing, dtypes = sys.argv[1], sys.argv[2].split(",")
with open(sys.argv[3], "w", encoding="ascii") as module, open(
    sys.argv[4], "w", encoding="ascii"
) as table:
    for dtype, last in (item.split(":") for item in dtypes):
        for dim in range(2, int(last) + 1):
            if dim % 2 == 1 and dim not in (3, 5, 17, 67):
                continue
            name = f"{dtype}_{dim}"
            module.write(FUNCTION.format(
                name=name, pairing=pairing, dtype=dtype, dim=dim,
                even=dim - dim % 2))
            table.write(f'{{"{name}", {int(pairing != "half")}, '
                        f"{dtype.upper()}, {dim}, "
                        f"(Function)ropes_{name}, ropes_{name}_dl}},\n")
