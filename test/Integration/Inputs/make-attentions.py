#!/usr/bin/env python3
# ===- make-attentions.py - attentions of many head sizes and forms --------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# make-attentions.py MODULE TABLE: writes causal attentions with two query heads
# and one key head as MLIR, and as a C table of `struct Case`.

import sys

# Key and value head sizes of each form.
DIMS = {
    "prefill": [(1, 3), (8, 8), (13, 7), (24, 33), (40, 16), (67, 67)],
    "rotated": [(18, 5), (64, 24)],
    "decode": [(8, 16), (13, 13), (64, 40), (67, 2)],
    "multitoken": [(8, 16), (64, 40)],
    "paged": [(8, 8), (13, 5)],
    "pageddecode": [(9, 8), (32, 16)],
    "pagedmultitoken": [(32, 16)],
    "ragged": [(7, 13), (16, 16)],
    "raggedpages": [(8, 24)],
}

FUNCTION = """
func.func @{name}({arguments}) -> {o} {{
  %c0 = arith.constant 0 : index
  {sizes}
  %e = tensor.empty({given}) : {o}
  %r = posenc.attention causal{flags} ins(%q, %k, %v : {q}, {k}, {v}){groups}
    outs(%e : {o})
  return %r : {o}
}}
"""


def make(name, form, dtype, dim, value_dim):
    is_ragged = form.startswith("ragged")
    static = {"decode": 1, "pageddecode": 1, "multitoken": 5,
              "pagedmultitoken": 3}
    tokens = str(static.get(form, "?"))
    rows = "?" if is_ragged else f"?x{tokens}"
    key_rows = "?" if form == "ragged" else "?x?"
    q, o = (f"tensor<{rows}x2x{d}x{dtype}>" for d in (dim, value_dim))
    k, v = (f"tensor<{key_rows}x1x{d}x{dtype}>" for d in (dim, value_dim))
    groups, flags = "", ""
    arguments = f"%q: {q}, %k: {k}, %v: {v}"
    if form == "ragged":
        groups = " cu_seqlens(%x, %y : tensor<?xi32>, tensor<?xi32>)"
        arguments += ", %x: tensor<?xi32>, %y: tensor<?xi32>"
    elif form == "raggedpages":
        groups = (" lengths(%x : tensor<?xi32>) block_table(%y : tensor<?x?xi32>)"
                  " cu_seqlens(%z : tensor<?xi32>)")
        arguments += (", %x: tensor<?xi32>, %y: tensor<?x?xi32>,"
                      " %z: tensor<?xi32>")
    elif form.startswith("paged"):
        groups = " lengths(%x : tensor<?xi32>) block_table(%y : tensor<?x?xi32>)"
        arguments += ", %x: tensor<?xi32>, %y: tensor<?x?xi32>"
    if form == "rotated":
        rotation = ("<pairing = half, frequencies = #posenc.frequencies<dim = "
                    f"{dim}, base = 10000.0>>")
        flags = f" query_rotation = {rotation} key_rotation = {rotation}"
    sizes = f"%n = tensor.dim %q, %c0 : {q}"
    given = "%n"
    if rows == "?x?":
        sizes += (f"\n  %c1 = arith.constant 1 : index"
                  f"\n  %t = tensor.dim %q, %c1 : {q}")
        given += ", %t"
    return FUNCTION.format(**locals())


with open(sys.argv[1], "w", encoding="ascii") as module, open(
    sys.argv[2], "w", encoding="ascii"
) as table:
    for dtype in ("f32", "bf16"):
        for form, dims in DIMS.items():
            for dim, value_dim in dims:
                name = f"{form}_{dtype}_{dim}_{value_dim}"
                module.write(make(name, form, dtype, dim, value_dim))
                table.write(f'{{"{name}", {form.upper()}, {dtype.upper()}, '
                            f"{dim}, {value_dim}, "
                            f"(Function)attentions_{name}_dl}},\n")
