# ===- _kernels.py - kernels of vLLM's attention layers --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The kernels of an attention layer and of its cache."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from .._attention_mlir import Append, Attention, write_append, write_attention
from .._compile import compile
from .._once import once
from ._metrics import record_compilation


class Layer(NamedTuple):
    """What the kernels of a layer depend on. Layers that are equal share them."""

    heads: int
    key_heads: int
    dim: int
    scale: float
    window: int | None  # tokens that a query sees, itself included
    soft_cap: float | None
    has_slopes: bool
    has_sinks: bool


class Cache(NamedTuple):
    """The elements of the cache of a layer."""

    dtype: str
    # None, or the scales of i8 and f8: "rows" is one for each token and head, "tensor" one
    # for all keys and one for all values
    scales: str | None = None


def measure(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function that compiles a kernel, and records its time."""
    start = time.perf_counter()
    result = function(*arguments)
    record_compilation(time.perf_counter() - start)
    return result


def _compile_function(text: str, name: str) -> Callable[..., Any]:
    return measure(compile, text)[name]


@once
def compile_attention(layer: Layer, dtype: str, cache: Cache,
                      causal: bool) -> Callable[..., Any]:
    """Returns the function of q, k, v, k_scales and v_scales, slopes and sinks if there
    are any, the lengths of the sequences, the block table and cu_seqlens. k and v are views
    of the cache, and so are scales of rows."""
    side = None if layer.window is None else layer.window - 1
    spec = Attention(
        layer.heads, layer.key_heads, layer.dim, layer.dim, dtype, cache.dtype,
        scale=layer.scale, causal=causal, left=side, right=None if causal else side,
        soft_cap=layer.soft_cap, queries="ragged", keys="cache", query_list="i32",
        lengths="i32", block_table="i32", slopes=int(layer.has_slopes),
        has_sinks=layer.has_sinks, scales=cache.scales)
    return _compile_function(write_attention(spec), "attention")


@once
def compile_encoder(layer: Layer, dtype: str) -> Callable[..., Any]:
    """Returns the function of q, k, v, slopes and sinks if there are any, and cu_seqlens.
    There is no cache, and all tokens of a sequence see each other."""
    side = None if layer.window is None else layer.window - 1
    spec = Attention(
        layer.heads, layer.key_heads, layer.dim, layer.dim, dtype, dtype,
        scale=layer.scale, left=side, right=side, soft_cap=layer.soft_cap,
        queries="ragged", keys="ragged", query_list="i32", slopes=int(layer.has_slopes),
        has_sinks=layer.has_sinks)
    return _compile_function(write_attention(spec), "attention")


@once
def compile_append(key_heads: int, dim: int, dtype: str,
                   cache: Cache) -> Callable[..., Any]:
    """Returns the function of k, v, slots and the views of the cache, which it writes, and
    of the scales of a tensor."""
    spec = Append(key_heads, dim, dim, dtype, cache.dtype, rank=3, slots="i64",
                  scales=cache.scales)
    return _compile_function(write_append(spec), "append")


@once
def compile_rotation(dim: int, rotary_dim: int, dtype: str, table_dtype: str,
                     pairing: str) -> Callable[..., Any]:
    """Returns the function of q, k, positions and vLLM's table, which rotates the first
    channels of q and k. A row of the table has the cosines of a position, then its
    sines."""
    half = rotary_dim // 2
    x, rows = f"tensor<?x?x{dim}x{dtype}>", f"tensor<?x{half}x{table_dtype}>"
    table = f"tensor<?x{rotary_dim}x{table_dtype}>"
    maps = "affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>"
    read = """
  %{name} = linalg.generic {{indexing_maps = [{maps}],
      iterator_types = ["parallel", "parallel"]}}
      ins(%positions : tensor<?xi64>) outs(%empty : {rows}) {{
  ^bb0(%position: i64, %unused: {table_dtype}):
    %row = arith.index_cast %position : i64 to index
    %pair = linalg.index 1 : index
    %first = arith.constant {first} : index
    %column = arith.addi %pair, %first : index
    %element = tensor.extract %table[%row, %column] : {table}
    linalg.yield %element : {table_dtype}
  }} -> {rows}"""
    reads = "".join(
        read.format(name=name, first=first, maps=maps, rows=rows, table=table,
                    table_dtype=table_dtype)
        for name, first in (("cos", 0), ("sin", half)))
    turns = "".join(f"""
  %{name}_out = posenc.rotate {pairing} ins(%{name} : {x})
    tables(%cos, %sin : {rows}) dims = [0] outs(%{name} : {x})""" for name in "qk")
    return _compile_function(f"""
func.func @rotate(%q: {x} {{posenc.name = "q"}}, %k: {x} {{posenc.name = "k"}},
    %positions: tensor<?xi64> {{posenc.name = "positions"}},
    %table: {table} {{posenc.name = "table"}})
    -> ({x} {{posenc.name = "q_out"}}, {x} {{posenc.name = "k_out"}}) {{
  %c0 = arith.constant 0 : index
  %tokens = tensor.dim %positions, %c0 : tensor<?xi64>
  %empty = tensor.empty(%tokens) : {rows}{reads}{turns}
  return %q_out, %k_out : {x}, {x}
}}
""", "rotate")
