# ===- _module.py - attention with expressions as a module -----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""MLIR of attention whose scores and mask are expressions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ._checks import write_checks
from ._fusion import Fused
from ._mlir import RegionWriter
from ._score_graph import Node, collect

_NAME = re.compile(r"%\w+")


class Signature(NamedTuple):
    """What a function is compiled for, besides its expressions. Tensors are [batch,
    heads, tokens, channels]."""

    heads: int
    key_heads: int
    dim: int  # channels of queries and keys
    value_dim: int
    dtype: str
    scale: float | None  # None: the channels' number to the power -1/2
    tokens: int | None  # the number of queries if it is fixed, for decoding
    # Whether there are as many queries as keys. Posenc aligns the last query with the
    # last key, PyTorch the first ones, which is then the same.
    is_square: bool
    arrays: tuple[tuple[str, int], ...]  # types and ranks of captured arrays
    fused: Fused | None = None
    # Whether the keys are a part of all keys, so that results are merged with others.
    # They are in the accumulator type then, and so is the query of attention.
    is_partial: bool = False
    # Whether calls check the indices of captured arrays that functions compute.
    is_checked: bool = False

    @property
    def sum_dtype(self) -> str:
        """The type of scores and of the log-sum-exp."""
        return "f64" if self.dtype == "f64" else "f32"


class Types(NamedTuple):
    """The MLIR types of a function's tensors."""

    query: str
    key: str
    value: str
    output: str
    lse: str
    arrays: tuple[str, ...]

    @classmethod
    def make(cls, of: Signature, is_wide: bool = False) -> Types:
        """`is_wide`: query and output are in the accumulator type."""
        tokens = of.tokens or "?"
        dtype = of.sum_dtype if is_wide else of.dtype
        return cls(
            f"tensor<?x{of.heads}x{tokens}x{of.dim}x{dtype}>",
            f"tensor<?x{of.key_heads}x?x{of.dim}x{of.dtype}>",
            f"tensor<?x{of.key_heads}x?x{of.value_dim}x{of.dtype}>",
            f"tensor<?x{of.heads}x{tokens}x{of.value_dim}x{dtype}>",
            f"tensor<?x{of.heads}x{tokens}x{of.sum_dtype}>",
            tuple(f"tensor<{'?x' * rank}{dtype}>" for dtype, rank in of.arrays))


def write_argument(name: str, kind: str, sizes: Sequence[str] = ()) -> str:
    listed = ", ".join(f'"{size}"' for size in sizes)
    further = f", posenc.sizes = [{listed}]" if sizes else ""
    return f'%{name}: {kind} {{posenc.name = "{name}"{further}}}'


def write_arguments(of: Signature, types: Types) -> list[str]:
    """Returns the arguments that all functions of a signature begin with."""
    sizes = ("batch",) if of.tokens else ("batch", "queries")
    return [write_argument("query", types.query, sizes),
            write_argument("key", types.key, ("batch", "keys")),
            write_argument("value", types.value, ("batch", "keys"))]


def write_array_sizes(of: Signature, types: Types, used: set[str]) -> list[str]:
    """Returns operations that define the sizes of captured arrays that are used."""
    lines = []
    for number, (kind, (_, rank)) in enumerate(zip(types.arrays, of.arrays)):
        for dim in range(rank):
            array = f"%captured{number}"
            names = f"{array}_size{dim}", f"{array}_last{dim}"
            if used.intersection(names):
                lines += [f"{array}_dim{dim} = arith.constant {dim} : index",
                          f"{names[0]} = tensor.dim {array}, {array}_dim{dim} : {kind}",
                          f"{names[1]} = arith.subi {names[0]}, %c1 : index"]
    return lines


def find_names(lines: Sequence[str]) -> set[str]:
    """Returns the names that operations use or define."""
    return set(_NAME.findall("\n".join(lines)))


def _write_region(root: Node | None, kind: str, of: Signature,
                  arguments: Mapping[str, str], result: str) -> list[str]:
    """Returns the lines of a region, or none without an expression."""
    if root is None:
        return []
    names = [f"%captured{number}" for number in range(len(of.arrays))]
    writer = RegionWriter(arguments, list(zip(names, Types.make(of).arrays)), kind[0])
    last = writer.write(root)
    lines = list(writer.lines)
    if not of.is_square and any("%at" in find_names([line]) for line in lines):
        lines.insert(0, "%at = arith.subi %i, %offset : index")
    listed = "%s, %b, %h, %i, %j" if kind == "score" else "%b, %h, %i, %j"
    return [f"{kind}({listed}) {{", *(f"  {line}" for line in lines),
            f"  posenc.yield {last} : {result}", "}"]


def write_attention(of: Signature, score: Node | None, where: Node | None,
                    name: str = "attention") -> str:
    """Returns a function of query, key, value, the inputs of `of.fused` and the captured
    arrays, which returns the output and the log-sum-exp."""
    types = Types.make(of, of.is_partial)
    further = of.fused.get_inputs(of.dim, of.dtype) if of.fused else []
    arguments = {"batch": "%b", "head": "%h", "query": "%i" if of.is_square else "%at",
                 "key": "%j", "score": "%s"}
    regions = [*_write_region(score, "score", of, arguments, of.sum_dtype),
               *_write_region(where, "where", of, arguments, "i1")]
    listed = [*write_arguments(of, types), *(
        write_argument(name, kind, () if of.tokens and "queries" in sizes else sizes)
        for name, kind, sizes in further), *(
        write_argument(f"captured{number}", kind)
        for number, kind in enumerate(types.arrays))]
    sizes = "%batch" if of.tokens else "%batch, %queries"
    checks = write_checks(
        [(f"%captured{number}", kind) for number, kind in enumerate(types.arrays)],
        {"batch": "%batch", "head": "%heads", "query": "%queries", "key": "%keys"},
        score, where) if of.is_checked else []
    if "%heads" in find_names(checks):
        checks.insert(0, f"%heads = arith.constant {of.heads} : index")
    head = [
        "%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index",
        "%c2 = arith.constant 2 : index",
        f"%batch = tensor.dim %query, %c0 : {types.query}",
        f"%queries = tensor.dim %query, %c2 : {types.query}",
        f"%keys = tensor.dim %key, %c2 : {types.key}",
        "%offset = arith.subi %keys, %queries : index",
        f"%output_ = tensor.empty({sizes}) : {types.output}",
        f"%lse_ = tensor.empty({sizes}) : {types.lse}",
        *write_array_sizes(of, types, find_names([*regions, *checks])), *checks]
    attributes = ["query_layout = head_major", "key_layout = head_major",
                  *(of.fused.write_attributes() if of.fused else [])]
    if of.scale is not None:
        attributes.append(f"scale = {of.scale:.17e}")
    operands = [f"  {name}(%{name} : {kind})" for name, kind, _ in further]
    body = "\n  ".join([
        *head,
        f"%output, %lse = posenc.attention {' '.join(attributes)}",
        f"  ins(%query, %key, %value : {types.query}, {types.key}, {types.value})",
        *operands,
        f"  outs(%output_, %lse_ : {types.output}, {types.lse})",
        *(f"  {line}" for line in regions),
        f"return %output, %lse : {types.output}, {types.lse}"])
    arguments_text = ",\n    ".join(listed)
    return f"""
func.func @{name}(
    {arguments_text})
    -> ({types.output} {{posenc.name = "output"}},
        {types.lse} {{posenc.name = "lse"}}) {{
  {body}
}}
"""


def find_ranges(score: Node | None,
                where: Node | None) -> list[tuple[int, int, str]]:
    """Returns the dimensions of captured arrays that are indexed by an argument alone:
    the number of the array, that of the dimension, and the argument."""
    return sorted({(node.payload, dim, index.payload)
                   for node in collect(score, where) if node.op == "load"
                   for dim, index in enumerate(node.operands) if index.op == "argument"})
