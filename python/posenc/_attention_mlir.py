# ===- _attention_mlir.py - attention functions in MLIR --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""MLIR of attention without rotations, and of its caches, from their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ._errors import Error

# Factors of scores are constants of f32 (of f64 for f64).
_SMALLEST, _LARGEST = 2.0 ** -126, 2.0 ** 127


class Attention(NamedTuple):
    """The parameters of an attention function. Integer types are "i32" or "i64"."""

    heads: int
    key_heads: int
    dim: int  # channels of queries and keys
    value_dim: int
    dtype: str  # of queries and results
    key_dtype: str  # of keys and values
    scale: float | None = None
    causal: bool = False
    left: int | None = None  # keys before the query that it sees
    right: int | None = None
    soft_cap: float | None = None
    # "batch": [batch, tokens, heads, dim]; "ragged": [tokens, heads, dim]
    queries: str = "batch"
    tokens: int | None = None  # queries per sequence, if their number is fixed
    # "batch" and "ragged" as queries; "cache": [batch, key heads, capacity, dim], or
    # pages in place of the batch
    keys: str = "batch"
    query_list: str | None = None  # the type of cu_seqlens of ragged queries
    key_list: str | None = None  # the type of that of the keys, if it is another list
    lengths: str | None = None  # the type of the numbers of keys in caches
    block_table: str | None = None
    slopes: int = 0  # dimensions of ALiBi's slopes; 0 if there are none
    has_mask: bool = False
    has_sinks: bool = False
    has_lse: bool = False
    # The scales of keys and values of i8 or f8: "rows" is one for each token and head of
    # a cache, "tensor" one for all keys and one for all values
    scales: str | None = None

    @property
    def sum_dtype(self) -> str:
        """The type of scores, sinks, slopes and the log-sum-exp."""
        return "f64" if self.dtype == "f64" else "f32"


def _write_argument(name: str, kind: str, sizes: Sequence[str] = ()) -> str:
    listed = ", ".join(f'"{size}"' for size in sizes)
    further = f", posenc.sizes = [{listed}]" if sizes else ""
    return f'%{name}: {kind} {{posenc.name = "{name}"{further}}}'


def _write_scales(scales: str, key_heads: int) -> str:
    """Returns the type of the scales of the keys, or of the values, of a cache."""
    return {"rows": f"tensor<?x{key_heads}x?xf32>", "tensor": "tensor<1x1x1xf32>"}[scales]


def _check_factor(what: str, value: float) -> None:
    if not _SMALLEST <= value <= _LARGEST:
        raise Error(f"{what} is {value}, expected a positive number within the range of "
                    "f32")


def _write_score(spec: Attention) -> str:
    """Returns the region that changes scores: soft cap first, then the bias."""
    if spec.soft_cap is None and not spec.slopes:
        return ""
    kind, lines, last = spec.sum_dtype, [], "%s"
    if spec.soft_cap is not None:
        lines += [f"%cap = arith.constant {spec.soft_cap:.17e} : {kind}",
                  f"%quotient = arith.divf %s, %cap : {kind}",
                  f"%bounded = math.tanh %quotient : {kind}",
                  f"%capped = arith.mulf %bounded, %cap : {kind}"]
        last = "%capped"
    if spec.slopes:
        where, shape = (("%h", f"{spec.heads}") if spec.slopes == 1 else
                        ("%b, %h", f"?x{spec.heads}"))
        lines += [f"%slope = tensor.extract %alibi_slopes[{where}] : "
                  f"tensor<{shape}x{kind}>",
                  "%before = arith.subi %i, %j : index",
                  "%after = arith.subi %j, %i : index",
                  "%apart = arith.maxsi %before, %after : index",
                  "%integer = arith.index_cast %apart : index to i64",
                  f"%relative = arith.sitofp %integer : i64 to {kind}",
                  f"%bias = arith.mulf %slope, %relative : {kind}",
                  f"%biased = arith.subf {last}, %bias : {kind}"]
        last = "%biased"
    body = "\n      ".join([*lines, f"posenc.yield {last} : {kind}"])
    return f"\n    score(%s, %b, %h, %i, %j) {{\n      {body}\n    }}"


def write_attention(spec: Attention, name: str = "attention") -> str:
    """Returns a function. Its inputs are those of q, k, v, k_scales, v_scales, mask,
    alibi_slopes, sinks, lengths, block_table, cu_seqlens (or cu_seqlens_q and
    cu_seqlens_k) that `spec` has, in this order; its results are o and, if `spec` has it,
    lse."""
    sums, tokens = spec.sum_dtype, spec.tokens or "?"
    if spec.scale is not None:
        _check_factor("softmax_scale", spec.scale)
    if spec.soft_cap is not None:
        _check_factor("softcap", spec.soft_cap)
    rows = f"?x{tokens}x" if spec.queries == "batch" else "?x"
    q = f"tensor<{rows}{spec.heads}x{spec.dim}x{spec.dtype}>"
    o = f"tensor<{rows}{spec.heads}x{spec.value_dim}x{spec.dtype}>"
    lse = f"tensor<{rows}{spec.heads}x{sums}>"
    shape, key_sizes = {"batch": (f"?x?x{spec.key_heads}", ("batch", "keys")),
                        "ragged": (f"?x{spec.key_heads}", ("keys",)),
                        "cache": (f"?x{spec.key_heads}x?", ("batch", "capacity")),
                        }[spec.keys]
    if spec.block_table:
        key_sizes = ("pages", "page_size")
    k, v = (f"tensor<{shape}x{dim}x{spec.key_dtype}>" for dim in (spec.dim, spec.value_dim))
    query_sizes = ("batch", "tokens") if spec.queries == "batch" else ("tokens",)
    arguments = [
        _write_argument("q", q, query_sizes[:1] if spec.tokens else query_sizes),
        _write_argument("k", k, key_sizes), _write_argument("v", v)]
    operands = []

    def add(name: str, kind: str, sizes: Sequence[str] = ()) -> None:
        arguments.append(_write_argument(name, kind, sizes))

    if spec.scales:
        kind = _write_scales(spec.scales, spec.key_heads)
        add("k_scales", kind)
        add("v_scales", kind)
        operands.append(f"key_scales(%k_scales : {kind}) value_scales(%v_scales : {kind})")
    if spec.has_mask:
        kind = f"tensor<?x1x{tokens}x?xi1>"
        add("mask", kind)
        operands.append(f"mask(%mask : {kind})")
    if spec.slopes:
        add("alibi_slopes", f"tensor<{'?x' * (spec.slopes - 1)}{spec.heads}x{sums}>")
    if spec.has_sinks:
        kind = f"tensor<{spec.heads}x{sums}>"
        add("sinks", kind)
        operands.append(f"sinks(%sinks : {kind})")
    if spec.lengths:
        kind = f"tensor<?x{spec.lengths}>"
        add("cache_seqlens", kind, ("batch",))
        operands.append(f"lengths(%cache_seqlens : {kind})")
    if spec.block_table:
        kind = f"tensor<?x?x{spec.block_table}>"
        add("block_table", kind, ("batch", "max_pages"))
        operands.append(f"block_table(%block_table : {kind})")
    if spec.query_list:
        kinds = [f"tensor<?x{spec.query_list}>"]
        names = ["cu_seqlens" if spec.key_list is None else "cu_seqlens_q"]
        add(names[0], kinds[0], ("batch_plus_1",))
        if spec.key_list:
            names.append("cu_seqlens_k")
            kinds.append(f"tensor<?x{spec.key_list}>")
            add(names[1], kinds[1], ("batch_plus_1",))
        elif spec.keys == "ragged":
            names, kinds = 2 * names, 2 * kinds
        lists = ", ".join(f"%{name}" for name in names)
        operands.append(f"cu_seqlens({lists} : {', '.join(kinds)})")
    order = ["causal"] if spec.causal else []
    order += [f"{name} = {value}" for name, value in (
        ("window_left", spec.left), ("window_right", spec.right)) if value is not None]
    if spec.scale is not None:
        order.append(f"scale = {spec.scale:.17e}")
    if spec.keys == "cache":
        order.append("key_layout = head_major")
    sizes = "%size0, %size1" if rows == "?x?x" else "%size0"
    results = {"o": o, "lse": lse} if spec.has_lse else {"o": o}
    listed = ",\n    ".join(arguments)
    returned = ", ".join(f'{kind} {{posenc.name = "{result}"}}'
                         for result, kind in results.items())
    empty = "\n  ".join(f"%{result}_ = tensor.empty({sizes}) : {kind}"
                        for result, kind in results.items())
    values = ", ".join(f"%{result}" for result in results)
    types = ", ".join(results.values())
    outs = ", ".join(f"%{result}_" for result in results)
    return f"""
func.func @{name}(
    {listed})
    -> ({returned}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %size0 = tensor.dim %q, %c0 : {q}
  %size1 = tensor.dim %q, %c1 : {q}
  {empty}
  {values} = posenc.attention {" ".join(order)}
    ins(%q, %k, %v : {q}, {k}, {v}) {" ".join(operands)}
    outs({outs} : {types}){_write_score(spec)}
  return {values} : {types}
}}
"""


class Append(NamedTuple):
    """The parameters of a function that appends to caches or to pages. Tokens have a
    list of slots, or else the lengths of the caches give these."""

    key_heads: int
    dim: int
    value_dim: int
    dtype: str
    cache_dtype: str
    rank: int  # of the new keys and values
    lengths: str | None = None  # the type of the lengths
    slots: str | None = None  # the type of the slots
    # The scales of caches of i8 or f8, as in Attention: those of "rows" are computed and
    # written, that of a "tensor" is given
    scales: str | None = None


def write_append(spec: Append) -> str:
    """Returns the function `append` of k, v, slots or lengths, k_cache, v_cache and, if
    `spec` has them, k_scales and v_scales. Its results are caches and computed scales."""
    rows, names = (("?x", ("tokens",)) if spec.rank == 3 else
                   ("?x?x", ("batch", "tokens")))
    k, v = (f"tensor<{rows}{spec.key_heads}x{dim}x{spec.dtype}>"
            for dim in (spec.dim, spec.value_dim))
    outs = {f"{name}_cache": f"tensor<?x{spec.key_heads}x?x{dim}x{spec.cache_dtype}>"
            for name, dim in (("k", spec.dim), ("v", spec.value_dim))}
    given, operands = {}, []
    if spec.scales:
        kind = _write_scales(spec.scales, spec.key_heads)
        scales = {"k_scales": kind, "v_scales": kind}
        if spec.scales == "rows":
            outs |= scales
        else:
            given = scales
            operands = [f"key_scales(%k_scales : {kind}) value_scales(%v_scales : {kind})"]
    places = (("slots", f"tensor<{rows}{spec.slots}>") if spec.slots else
              ("cache_seqlens", f"tensor<?x{spec.lengths}>"))
    operands += [f"{'slots' if spec.slots else 'lengths'}(%{places[0]} : {places[1]})"]
    cache_sizes = ("pages", "page_size") if spec.slots else ("batch", "capacity")
    listed = ",\n    ".join([
        _write_argument("k", k, names), _write_argument("v", v), _write_argument(*places),
        *(_write_argument(name, kind, cache_sizes if name == "k_cache" else ())
          for name, kind in (outs | given).items())])
    kinds = ", ".join(outs.values())
    returned = ", ".join(f'{kind} {{posenc.name = "{name}_out"}}'
                         for name, kind in outs.items())
    values = ", ".join(f"%r#{number}" for number in range(len(outs)))
    return f"""
func.func @append(
    {listed})
    -> ({returned}) {{
  %r:{len(outs)} = posenc.kv_append cache_layout = head_major
    ins(%k, %v : {k}, {v}) {" ".join(operands)}
    outs({", ".join(f"%{name}" for name in outs)} : {kinds})
  return {values} : {kinds}
}}
"""
