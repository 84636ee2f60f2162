# ===- _kernels.py - kernels of a compiled graph ----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The functions that stand for rotations and attentions of a graph."""

from __future__ import annotations

from typing import NamedTuple

from .._compile import compile
from .._once import once
from .._operators import register


class Rotation(NamedTuple):
    pairing: str  # "half" or "interleaved"
    heads: int
    dim: int
    pairs: int
    dtype: str
    table_dtype: str


class Attention(NamedTuple):
    heads: int
    key_heads: int
    dim: int
    value_dim: int
    dtype: str
    scale: float
    is_causal: bool = False
    soft_cap: float | None = None
    has_mask: bool = False  # bool [batch, 1, queries, keys]
    # The types of tensors [batch, heads or 1, queries, keys] that are added to scores,
    # and whether they have heads.
    biases: tuple[tuple[str, bool], ...] = ()
    has_lse: bool = False  # a second result [batch, queries, heads] of f32 or f64


def write_rotation(of: Rotation) -> str:
    x = f"tensor<?x?x{of.heads}x{of.dim}x{of.dtype}>"
    table = f"tensor<?x?x{of.pairs}x{of.table_dtype}>"
    return f"""
func.func @rotate(%x: {x}, %cos: {table}, %sin: {table}) -> {x} {{
  %r = posenc.rotate {of.pairing} ins(%x : {x}) tables(%cos, %sin : {table})
    dims = [0, 1] outs(%x : {x})
  return %r : {x}
}}
"""


def write_attention(of: Attention) -> str:
    sums = "f64" if of.dtype == "f64" else "f32"
    q = f"tensor<?x?x{of.heads}x{of.dim}x{of.dtype}>"
    k = f"tensor<?x{of.key_heads}x?x{of.dim}x{of.dtype}>"
    v = f"tensor<?x{of.key_heads}x?x{of.value_dim}x{of.dtype}>"
    o = f"tensor<?x?x{of.heads}x{of.value_dim}x{of.dtype}>"
    results = {"o": o}
    if of.has_lse:
        results["lse"] = f"tensor<?x?x{of.heads}x{sums}>"
    sizes = {"q": ("batch", "queries"), "k": ("batch", "keys"), "v": ("batch", "keys")}
    kinds = {"q": q, "k": k, "v": v}
    mask = "tensor<?x1x?x?xi1>"
    operands = ""
    if of.has_mask:
        kinds["mask"] = mask
        operands = f"mask(%mask : {mask})"
    for number, (dtype, has_heads) in enumerate(of.biases):
        kinds[f"bias{number}"] = f"tensor<?x{of.heads if has_heads else 1}x?x?x{dtype}>"
    arguments = ",\n    ".join(
        f'%{name}: {kind} {{posenc.name = "{name}"' + (
            ", posenc.sizes = [" + ", ".join(f'"{one}"' for one in sizes[name]) + "]"
            if name in sizes else "") + "}" for name, kind in kinds.items())
    lines, last = [], "%s"
    if of.soft_cap is not None:
        lines += [f"%cap = arith.constant {of.soft_cap:.17e} : {sums}",
                  f"%quotient = arith.divf %s, %cap : {sums}",
                  f"%bounded = math.tanh %quotient : {sums}",
                  f"%capped = arith.mulf %bounded, %cap : {sums}"]
        last = "%capped"
    if of.biases:
        lines.append("%row = arith.subi %i, %offset : index")
    for number, (dtype, has_heads) in enumerate(of.biases):
        name = f"%bias{number}"
        lines.append(f"{name}_read = tensor.extract {name}[%b, "
                     f"{'%h' if has_heads else '%c0'}, %row, %j] : {kinds[name[1:]]}")
        read = f"{name}_read"
        if dtype != sums:
            lines.append(f"{name}_wide = arith.extf {read} : {dtype} to {sums}")
            read = f"{name}_wide"
        lines.append(f"{name}_sum = arith.addf {last}, {read} : {sums}")
        last = f"{name}_sum"
    region = "" if not lines else " score(%s, %b, %h, %i, %j) {\n      " + "\n      ".join(
        [*lines, f"posenc.yield {last} : {sums}"]) + "\n    }"
    returned = ", ".join(f'{kind} {{posenc.name = "{name}"}}'
                         for name, kind in results.items())
    empty = "\n  ".join(f"%{name}_ = tensor.empty(%batch, %queries) : {kind}"
                        for name, kind in results.items())
    values = ", ".join(f"%{name}" for name in results)
    outs = ", ".join(f"%{name}_" for name in results)
    types = ", ".join(results.values())
    return f"""
func.func @attention(
    {arguments})
    -> ({returned}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %q, %c0 : {q}
  %queries = tensor.dim %q, %c1 : {q}
  %keys = tensor.dim %k, %c2 : {k}
  %offset = arith.subi %keys, %queries : index
  {empty}
  {values} = posenc.attention {"causal" if of.is_causal else ""}
    key_layout = head_major scale = {of.scale:.17e}
    ins(%q, %k, %v : {q}, {k}, {v}) {operands}
    outs({outs} : {types}){region}
  return {values} : {types}
}}
"""


@once
def find_kernels(of: Rotation | Attention) -> str:
    """Compiles a function and returns the string that means it to `posenc::call`."""
    text = write_rotation(of) if isinstance(of, Rotation) else write_attention(of)
    return register(compile(text, no_warnings=True))
