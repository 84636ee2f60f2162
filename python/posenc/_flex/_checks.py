# ===- _checks.py - indices that leave captured arrays ----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Writes the checks of indices that functions of scores compute: a call whose function
would read an element that a captured array does not have is an error, also where the mask
hides the pair, as in PyTorch.

Kernels move indices into bounds, so checks are apart from attention: loops over the
batches, heads, queries and keys that an index depends on. Where an interval that follows
from the sizes says that the indices are in bounds, these loops do not run. Indices that
depend on the score are not checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ._mlir import RegionWriter
from ._score_graph import Node, collect, is_nonnegative

_WIDE = ("i32", "i64")
# The order of loops. The first one is parallel, and the last one often reads neighbours.
_ORDER = ("query", "batch", "head", "key", "score")


class _Check(NamedTuple):
    """An index of a captured array."""

    array: str
    dim: int
    rank: int
    node: Node


def _find_checks(roots: Sequence[Node | None]) -> dict[tuple[str, ...], list[_Check]]:
    """Returns the indices that have to be checked, by the arguments that they depend on.
    Those that are an argument are checked when the array is known."""
    found: dict[tuple[str, ...], list[_Check]] = {}
    for node in collect(*roots):
        for dim, index in enumerate(node.operands if node.op == "load" else ()):
            used = {one.payload for one in collect(index) if one.op == "argument"}
            names = tuple(sorted(used, key=_ORDER.index))
            if index.op != "argument" and "score" not in names:
                found.setdefault(names, []).append(_Check(
                    f"%captured{node.payload}", dim, len(node.operands), index))
    return found


class _Intervals:
    """Writes the smallest and the largest value that integers may have, as indices. Each is
    of all values of the arguments, though they may depend on each other."""

    def __init__(self, writer: RegionWriter, sizes: Mapping[str, str]):
        self._writer, self._sizes = writer, sizes

    def _emit(self, op: str, *names: str) -> str:
        return self._writer.emit(f"arith.{op} {', '.join(names)}", "index")

    def constant(self, value: int) -> str:
        return self._writer.constant(value, "index")

    def _all(self, op: str, names: Sequence[str]) -> str:
        result = names[0]
        for name in names[1:]:
            result = self._emit(op, result, name)
        return result

    def write(self, node: Node) -> tuple[str, str] | None:
        """Returns None if nothing is known of the values."""
        if node.dtype not in _WIDE:
            return None
        if node.op == "argument":
            last = self._emit("subi", self._sizes[node.payload], self.constant(1))
            return self.constant(0), last
        if node.op == "constant":
            return (self.constant(node.payload),) * 2
        if node.op == "convert" and node.operands[0].dtype == "i64" != node.dtype:
            return None
        parts = [self.write(one) for one in node.operands[node.op == "select":]]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) or not known:
            return None
        return self._combine(node, known)

    def _combine(self, node: Node, parts: list[tuple[str, str]]) -> tuple[str, str] | None:
        (low, high), (other_low, other_high) = parts[0], parts[-1]
        op, last = node.op, node.operands[-1]
        if op == "convert":
            return low, high
        if op == "add":
            return (self._emit("addi", low, other_low),
                    self._emit("addi", high, other_high))
        if op == "sub":
            return (self._emit("subi", low, other_high),
                    self._emit("subi", high, other_low))
        if op in ("maximum", "minimum"):
            name = {"maximum": "maxsi", "minimum": "minsi"}[op]
            return self._emit(name, low, other_low), self._emit(name, high, other_high)
        if op == "select":
            return self._emit("minsi", low, other_low), self._emit("maxsi", high, other_high)
        if op in ("neg", "abs"):
            zero = self.constant(0)
            ends = self._emit("subi", zero, high), self._emit("subi", zero, low)
            return ends if op == "neg" else (zero, self._emit("maxsi", high, ends[1]))
        if op == "mul":
            products = [self._emit("muli", one, other) for one in parts[0]
                        for other in parts[1]]
            return self._all("minsi", products), self._all("maxsi", products)
        if last.op != "constant" or last.payload <= 0:
            return None
        if op == "floor_divide":
            divisor = other_low
            return (self._emit("floordivsi", low, divisor),
                    self._emit("floordivsi", high, divisor))
        if op == "remainder":
            return self.constant(0), self.constant(last.payload - 1)
        return None


def _write_in_bounds(writer: RegionWriter, check: _Check, low: str,
                     high: str | None = None) -> str:
    """Writes whether indices from `low` to `high` are in bounds."""
    size = f"{check.array}_size{check.dim}"
    fits = writer.emit(f"arith.cmpi slt, {high or low}, {size}", "index")
    if high is None and is_nonnegative(check.node):
        return fits
    # Negative indices count from the end.
    first = writer.emit(f"arith.subi {writer.constant(0, 'index')}, {size}", "index")
    begins = writer.emit(f"arith.cmpi sge, {low}, {first}", "index")
    return writer.emit(f"arith.andi {fits}, {begins}", "i1")


def _describe(check: _Check) -> str:
    of = (f"index {check.dim} of a captured array of {check.rank} dimensions"
          if check.rank > 1 else "the index of a captured array")
    return f'"{of} is out of its bounds"'


def _write_condition(writer: RegionWriter, check: _Check) -> str:
    name = writer.write(check.node)
    at = writer.emit(f"arith.index_cast {name}", f"{writer.carry(check.node)} to index")
    return _write_in_bounds(writer, check, at)


def write_checks(arrays: Sequence[tuple[str, str]], sizes: Mapping[str, str],
                 *roots: Node | None) -> list[str]:
    """Returns operations that check the indices of expressions. `arrays` is as in
    `RegionWriter`, and `sizes` has the names of the sizes of arguments."""
    lines: list[str] = []
    for number, (names, checks) in enumerate(_find_checks(roots).items()):
        outer = RegionWriter({}, arrays, f"check{number}_")
        if not names:
            for check in checks:
                holds = _write_condition(outer, check)
                outer.lines.append(f"cf.assert {holds}, {_describe(check)}")
            lines += outer.lines
            continue
        loops = _write_loops(f"check{number}", arrays, names,
                             [sizes[name] for name in names], checks)
        intervals = _Intervals(outer, sizes)
        both = [intervals.write(check.node) for check in checks]
        if None in both:
            lines += loops
            continue
        fails = outer.constant(False, "i1")
        for check, ends in zip(checks, both):
            holds = _write_in_bounds(outer, check, *(ends or ()))
            fails = outer.emit(f"arith.select {holds}, {fails}, "
                               f"{outer.constant(True, 'i1')}", "i1")
        lines += [*outer.lines, f"scf.if {fails} {{", *(f"  {one}" for one in loops), "}"]
    return lines


def _write_loops(prefix: str, arrays: Sequence[tuple[str, str]], names: Sequence[str],
                 counts: Sequence[str], checks: Sequence[_Check]) -> list[str]:
    """Writes a reduction to the number of the first check that fails, for each value of
    the first argument, which run in parallel, and the assertions on these numbers."""
    arguments = {name: f"%{prefix}_at{number}" for number, name in enumerate(names)}
    inner = RegionWriter(arguments, arrays, f"{prefix}_in")
    first = f"%{prefix}_first"
    for number, check in reversed(list(enumerate(checks))):
        holds = _write_condition(inner, check)
        own = inner.emit(f"arith.minsi {first}, {inner.constant(number, 'i64')}", "i64")
        first = inner.emit(f"arith.select {holds}, {first}, {own}", "i64")
    dims = ", ".join(f"d{number}" for number in range(len(names)))
    maps = ", ".join(f"affine_map<({dims}) -> (d{number})>"
                     for number in (*range(len(names)), 0))
    kinds = ", ".join(['"parallel"', *['"reduction"'] * (len(names) - 1)])
    inputs = [f"%{prefix}_of{number}" for number in range(len(names))]
    rows = "tensor<?xi64>"
    lines = [
        *(f"{one} = tensor.empty({count}) : tensor<?xi1>"
          for one, count in zip(inputs, counts)),
        f"%{prefix}_none = arith.constant {len(checks)} : i64",
        f"%{prefix}_empty = tensor.empty({counts[0]}) : {rows}",
        f"%{prefix}_init = linalg.fill ins(%{prefix}_none : i64) outs(%{prefix}_empty : "
        f"{rows}) -> {rows}",
        f"%{prefix}_rows = linalg.generic {{indexing_maps = [{maps}], iterator_types = "
        f"[{kinds}]}}",
        f"  ins({', '.join(inputs)} : {', '.join(['tensor<?xi1>'] * len(inputs))}) "
        f"outs(%{prefix}_init : {rows}) {{",
        f"^bb0({''.join(f'%{prefix}_x{number}: i1, ' for number in range(len(names)))}"
        f"%{prefix}_first: i64):",
        *(f"  {name} = linalg.index {number} : index"
          for number, name in enumerate(arguments.values())),
        *(f"  {line}" for line in inner.lines),
        f"  linalg.yield {first} : i64", f"}} -> {rows}",
        f"%{prefix}_end = tensor.empty() : tensor<i1>",
        f"%{prefix}_done = linalg.generic {{indexing_maps = [affine_map<(d0) -> (d0)>, "
        'affine_map<(d0) -> ()>], iterator_types = ["reduction"]}',
        f"  ins(%{prefix}_rows : {rows}) outs(%{prefix}_end : tensor<i1>) {{",
        f"^bb0(%{prefix}_row: i64, %{prefix}_unused: i1):"]
    for number, check in enumerate(checks):
        lines += [f"  %{prefix}_n{number} = arith.constant {number} : i64",
                  f"  %{prefix}_holds{number} = arith.cmpi ne, %{prefix}_row, "
                  f"%{prefix}_n{number} : i64",
                  f"  cf.assert %{prefix}_holds{number}, {_describe(check)}"]
    return [*lines, f"  linalg.yield %{prefix}_unused : i1", "} -> tensor<i1>"]
