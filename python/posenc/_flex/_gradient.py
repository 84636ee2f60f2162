# ===- _gradient.py - gradients of attention as loops over tiles -----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Writes the gradients of attention: loops over tiles whose scores are computed again
from the log-sum-exp.

With s = scale q k, s' = score_mod(s), p = exp(s' - lse) and D = sum(o do) - dlse,

    dv = p^T do        ds' = p (do v^T - D)        ds = ds' score_mod'(s) scale
    dq = ds k          dk = ds^T q                 dx = ds' d score_mod / dx

for captured elements x. A task computes rows of dq, or of dk and dv, alone and in order, so
that results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ._derivative import Derivatives
from ._graph import FLOATS, Graph, Node
from ._mlir import RegionWriter
from ._module import (
    Signature, Types, find_names, write_argument, write_arguments, write_array_sizes)

# Queries and keys of a tile. Their scores and their rows stay in the cache of level 2.
_QUERIES, _KEYS = 128, 64

GRADIENT = "gradient"


def name_array_gradient(number: int) -> str:
    """Returns the name of the function for the gradient of a captured array."""
    return f"{GRADIENT}_captured{number}"


class _Expressions(NamedTuple):
    score: Node | None
    where: Node | None
    # Of the score by the one before; None: 1 without a score, else 0.
    derivative: Node | None


class _Writer:
    """Writes the functions of a signature."""

    def __init__(self, of: Signature, expressions: _Expressions):
        self.of, self.types, self.expressions = of, Types.make(of), expressions
        self.sum = of.sum_dtype
        self.row = f"tensor<?x{of.dim}x{of.dtype}>"
        self.value_row = f"tensor<?x{of.value_dim}x{of.dtype}>"
        self.sums = f"tensor<?x{of.dim}x{self.sum}>"
        self.value_sums = f"tensor<?x{of.value_dim}x{self.sum}>"
        self.tile = f"tensor<?x?x{self.sum}>"
        self.narrow_tile = f"tensor<?x?x{of.dtype}>"
        self.vector = f"tensor<?x{self.sum}>"
        self.lse = f"tensor<?x{of.heads}x?x{self.sum}>"
        dims = f"?x{of.heads}x?x"
        self.query = f"tensor<{dims}{of.dim}x{of.dtype}>"
        self.output = f"tensor<{dims}{of.value_dim}x{of.dtype}>"

    # ===------------------------------------------------------------------===#
    # Operations of tiles
    # ===------------------------------------------------------------------===#

    def region(self, root: Node, prefix: str) -> tuple[list[str], str]:
        """Returns operations that compute an expression of a pair, and the name of the
        result. They use `%b`, `%h`, `%i`, `%j`, and `%scaled`, the score before
        score_mod."""
        names = [f"%captured{number}" for number in range(len(self.of.arrays))]
        writer = RegionWriter(
            {"batch": "%b", "head": "%h", "query": "%i", "key": "%j",
             "score": "%scaled"}, list(zip(names, self.types.arrays)), prefix)
        last = writer.write(root)
        return writer.lines, last

    def product(self, result: str, left: str, right: str, init: str, maps: str,
                kinds: tuple[str, str, str]) -> list[str]:
        """A product of tiles with sums of the accumulator type."""
        a, b = (kind.split("x")[-1].rstrip(">") for kind in kinds[:2])
        lines = [f"^bb0(%x: {a}, %y: {b}, %z: {self.sum}):"]
        names = ["%x", "%y"]
        for number, kind in enumerate((a, b)):
            if kind != self.sum:
                wide = f"%wide{number}"
                lines.append(f"  {wide} = arith.extf {names[number]} : {kind} to "
                             f"{self.sum}")
                names[number] = wide
        return [
            f"{result} = linalg.generic {{indexing_maps = [{maps}],",
            '  iterator_types = ["parallel", "parallel", "reduction"]}',
            f"  ins({left}, {right} : {kinds[0]}, {kinds[1]}) outs({init} : {kinds[2]}) {{",
            *lines, f"  %p = arith.mulf {names[0]}, {names[1]} : {self.sum}",
            f"  %w = arith.addf %z, %p : {self.sum}",
            f"  linalg.yield %w : {self.sum}", f"}} -> {kinds[2]}"]

    _SCORES = ("affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, "
               "affine_map<(m, n, k) -> (m, n)>")
    _ROWS = ("affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, "
             "affine_map<(m, n, k) -> (m, n)>")
    _COLUMNS = ("affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, "
                "affine_map<(m, n, k) -> (m, n)>")

    def scores(self, result: str, left: str, right: str, kind: str) -> list[str]:
        return self.product(result, left, right, "%zeros", self._SCORES,
                            (kind, kind, self.tile))

    def elementwise(self, result: str, operands: Sequence[tuple[str, str, str]],
                    kind: str, body: Sequence[str], last: str) -> list[str]:
        """An operation of each pair of a tile. `operands` have a name, a type and the
        name of an element; those of vectors are one for each query."""
        maps = ["affine_map<(i, j) -> (i)>" if of == self.vector else
                "affine_map<(i, j) -> (i, j)>" for _, of, _ in operands]
        element = kind.split("x")[-1].rstrip(">")
        arguments = ", ".join(f"{name}: {self.sum}" for *_, name in operands)
        names = ", ".join(name for name, *_ in operands)
        kinds = ", ".join(of for _, of, _ in operands)
        lines = [*self.pair(), *body] if {"%i", "%j"} & find_names(body) else [*body]
        if element != self.sum:
            lines.append(f"%narrow = arith.truncf {last} : {self.sum} to {element}")
            last = "%narrow"
        return [
            f"{result}_init = tensor.empty(%m, %n) : {kind}",
            f"{result} = linalg.generic {{indexing_maps = [{', '.join(maps)}, "
            'affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}',
            f"  ins({names} : {kinds}) outs({result}_init : {kind}) {{",
            f"^bb0({arguments}, %element: {element}):", *(f"  {line}" for line in lines),
            f"  linalg.yield {last} : {element}", f"}} -> {kind}"]

    def pair(self) -> list[str]:
        """Defines the query and the key of an element of a tile."""
        return ["%row = linalg.index 0 : index", "%column = linalg.index 1 : index",
                "%i = arith.addi %row, %i0 : index",
                "%j = arith.addi %column, %j0 : index"]

    def weights(self, result: str) -> list[str]:
        """The weights p of a tile; 0 for keys that are not seen."""
        body = [f"%scaled = arith.mulf %s, %scale : {self.sum}"]
        score, where = self.expressions.score, self.expressions.where
        last = "%scaled"
        if score is not None:
            lines, last = self.region(score, "s")
            body += lines
        # Without a visible key, the log-sum-exp is minus infinity, and so are scores.
        body += [f"%nothing = arith.cmpf oeq, %l, %minus_infinity : {self.sum}",
                 f"%base = arith.select %nothing, %zero, %l : {self.sum}",
                 f"%below = arith.subf {last}, %base : {self.sum}",
                 f"%power = math.exp %below : {self.sum}"]
        last = "%power"
        if where is not None:
            lines, seen = self.region(where, "w")
            body += [*lines,
                     f"%weight = arith.select {seen}, %power, %zero : {self.sum}"]
            last = "%weight"
        return self.elementwise(result, [("%scores", self.tile, "%s"),
                                         ("%row_lse", self.vector, "%l")], self.tile,
                                body, last)

    def score_gradient(self, result: str, kind: str, is_inner: bool) -> list[str]:
        """The gradient of the scores of a tile: before score_mod, times the scale, if
        `is_inner`, else after it."""
        operands = [("%weights", self.tile, "%p"), ("%products", self.tile, "%dp"),
                    ("%row_delta", self.vector, "%d")]
        body = [f"%centered = arith.subf %dp, %d : {self.sum}",
                f"%outer = arith.mulf %p, %centered : {self.sum}"]
        # Where the weight is 0, the derivative may be infinite or NaN.
        last = "%outer"
        if is_inner:
            derivative = self.expressions.derivative
            if derivative is not None:
                operands.append(("%scores", self.tile, "%s"))
                lines, factor = self.region(derivative, "d")
                body += [f"%scaled = arith.mulf %s, %scale : {self.sum}", *lines,
                         f"%chained = arith.mulf %outer, {factor} : {self.sum}",
                         f"%is_zero = arith.cmpf oeq, %p, %zero : {self.sum}",
                         f"%kept = arith.select %is_zero, %zero, %chained : {self.sum}"]
                last = "%kept"
            body.append(f"%inner = arith.mulf {last}, %scale : {self.sum}")
            last = "%inner"
        return self.elementwise(result, operands, kind, body, last)

    # ===------------------------------------------------------------------===#
    # Loops
    # ===------------------------------------------------------------------===#

    def query_rows(self) -> list[str]:
        """Takes the rows of the queries from `%i0`, in the head `%h`."""
        def take(result: str, source: str, kind: str, width: int, row: str) -> str:
            return (f"{result} = tensor.extract_slice {source}[%b, %h, %i0, 0] [1, 1, %m, "
                    f"{width}] [1, 1, 1, 1] : {kind} to {row}")

        def take_vector(result: str, source: str) -> str:
            return (f"{result} = tensor.extract_slice {source}[%b, %h, %i0] [1, 1, %m] "
                    f"[1, 1, 1] : {self.lse} to {self.vector}")

        return [
            f"%m = affine.min affine_map<(d0)[s0] -> ({_QUERIES}, s0 - d0)>(%i0)"
            "[%queries]",
            take("%q", "%query_", self.query, self.of.dim, self.row),
            take("%g", "%grad_output_", self.output, self.of.value_dim, self.value_row),
            take_vector("%row_lse", "%lse_"), take_vector("%row_delta", "%delta")]

    def key_rows(self) -> list[str]:
        def take(result: str, source: str, kind: str, width: int, row: str) -> str:
            return (f"{result} = tensor.extract_slice {source}[%b, %key_head, %j0, 0] "
                    f"[1, 1, %n, {width}] [1, 1, 1, 1] : {kind} to {row}")

        return [
            f"%n = affine.min affine_map<(d0)[s0] -> ({_KEYS}, s0 - d0)>(%j0)[%keys]",
            take("%k", "%key", self.types.key, self.of.dim, self.row),
            take("%v", "%value", self.types.value, self.of.value_dim, self.value_row)]

    def zeros(self, result: str, size: str, kind: str) -> list[str]:
        return [f"{result}_empty = tensor.empty({size}) : {kind}",
                f"{result} = linalg.fill ins(%zero : {self.sum}) outs({result}_empty : "
                f"{kind}) -> {kind}"]

    def tile_weights(self) -> list[str]:
        return [*self.zeros("%zeros", "%m, %n", self.tile),
                *self.scores("%scores", "%q", "%k", self.row),
                *self.scores("%products", "%g", "%v", self.value_row),
                *self.weights("%weights")]

    def if_seen(self, inits: Sequence[tuple[str, str]], body: Sequence[str],
                last: Sequence[str]) -> tuple[list[str], list[str]]:
        """Computes a tile unless no pair of it is seen. `inits` have values and types,
        which are the results of tiles without pairs. Returns operations and the names of
        the results."""
        where = self.expressions.where
        if where is None:
            return list(body), list(last)
        kinds = ", ".join(kind for _, kind in inits)
        lines, seen = self.region(where, "w")
        names = (["%next"] if len(inits) == 1 else
                 [f"%next#{number}" for number in range(len(inits))])
        count = f":{len(inits)}" if len(inits) > 1 else ""
        return [
            "%none = arith.constant 0 : i32",
            "%any_empty = tensor.empty() : tensor<i32>",
            "%any_zero = linalg.fill ins(%none : i32) outs(%any_empty : tensor<i32>) -> "
            "tensor<i32>",
            "%tile_shape = tensor.empty(%m, %n) : tensor<?x?xi8>",
            "%any = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, "
            'affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}',
            "  ins(%tile_shape : tensor<?x?xi8>) outs(%any_zero : tensor<i32>) {",
            "^bb0(%unused: i8, %before: i32):",
            *(f"  {line}" for line in (*self.pair(), *lines)),
            f"  %one = arith.extui {seen} : i1 to i32",
            "  %either = arith.ori %one, %before : i32",
            "  linalg.yield %either : i32", "} -> tensor<i32>",
            "%any_value = tensor.extract %any[] : tensor<i32>",
            "%is_any = arith.cmpi ne, %any_value, %none : i32",
            f"%next{count} = scf.if %is_any -> ({kinds}) {{",
            *(f"  {line}" for line in body),
            f"  scf.yield {', '.join(last)} : {kinds}", "} else {",
            f"  scf.yield {', '.join(name for name, _ in inits)} : {kinds}", "}"], names

    def finish(self, result: str, source: str, size: str, wide: str,
               kind: str) -> tuple[list[str], str]:
        """Rounds rows of sums to the type of results. Returns operations and the name of
        the result."""
        if wide == kind:
            return [], source
        element = self.of.dtype
        return [
            f"{result}_init = tensor.empty({size}) : {kind}",
            f"{result} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, "
            "affine_map<(i, j) -> (i, j)>], "
            'iterator_types = ["parallel", "parallel"]}',
            f"  ins({source} : {wide}) outs({result}_init : {kind}) {{",
            f"^bb0(%x: {self.sum}, %element: {element}):",
            f"  %narrow = arith.truncf %x : {self.sum} to {element}",
            f"  linalg.yield %narrow : {element}", f"}} -> {kind}"], result

    def query_pass(self) -> list[str]:
        """The loop over queries that computes dq."""
        of = self.of
        tile, (after,) = self.if_seen(
            [("%sum", self.sums)],
            [*self.tile_weights(), *self.score_gradient("%ds", self.narrow_tile, True),
             *self.product("%next_sum", "%ds", "%k", "%sum", self._ROWS,
                           (self.narrow_tile, self.row, self.sums))], ["%next_sum"])
        rounding, rows = self.finish("%rows", "%sums", "%m", self.sums, self.row)
        return [
            f"%grad_query = scf.forall (%b, %h, %t) in (%batch, {of.heads}, "
            f"%query_tiles) shared_outs(%out = %grad_query_empty) -> ({self.query}) {{",
            "  %i0 = arith.muli %t, %query_step : index",
            f"  %group = arith.constant {of.heads // of.key_heads} : index",
            "  %key_head = arith.divui %h, %group : index",
            *(f"  {line}" for line in self.query_rows()),
            *(f"  {line}" for line in self.zeros("%sum0", "%m", self.sums)),
            "  %sums = scf.for %j0 = %c0 to %keys step %key_step iter_args(%sum = %sum0) "
            f"-> ({self.sums}) {{",
            *(f"    {line}" for line in (*self.key_rows(), *tile)),
            f"    scf.yield {after} : {self.sums}", "  }",
            *(f"  {line}" for line in rounding), "  scf.forall.in_parallel {",
            f"    tensor.parallel_insert_slice {rows} into %out[%b, %h, %i0, 0] "
            f"[1, 1, %m, {of.dim}] [1, 1, 1, 1] : {self.row} into {self.query}",
            "  }", "}"]

    def key_pass(self) -> list[str]:
        """The loop over keys that computes dk and dv."""
        of, types = self.of, self.types
        kinds = f"{self.sums}, {self.value_sums}"
        weights = "%weights" if of.dtype == self.sum else "%narrow_weights"
        narrow = [] if of.dtype == self.sum else self.elementwise(
            weights, [("%weights", self.tile, "%p")], self.narrow_tile, [], "%p")
        tile, after = self.if_seen(
            [("%sum", self.sums), ("%value_sum", self.value_sums)],
            [*self.tile_weights(), *narrow,
             *self.score_gradient("%ds", self.narrow_tile, True),
             *self.product("%key_sum", "%ds", "%q", "%sum", self._COLUMNS,
                           (self.narrow_tile, self.row, self.sums)),
             *self.product("%next_value_sum", weights, "%g", "%value_sum", self._COLUMNS,
                           (self.narrow_tile, self.value_row, self.value_sums))],
            ["%key_sum", "%next_value_sum"])
        rounding, rows = self.finish("%rows", "%sums#0", "%n", self.sums, self.row)
        value_rounding, value_rows = self.finish(
            "%value_rows", "%sums#1", "%n", self.value_sums, self.value_row)
        return [
            f"%key_gradients:2 = scf.forall (%b, %key_head, %t) in (%batch, "
            f"{of.key_heads}, %key_tiles) shared_outs(%out = %grad_key_empty, %value_out = "
            f"%grad_value_empty) -> ({types.key}, {types.value}) {{",
            "  %j0 = arith.muli %t, %key_step : index",
            f"  %group = arith.constant {of.heads // of.key_heads} : index",
            "  %first_head = arith.muli %key_head, %group : index",
            "  %end_head = arith.addi %first_head, %group : index",
            *(f"  {line}" for line in self.key_rows()),
            *(f"  {line}" for line in self.zeros("%sum0", "%n", self.sums)),
            *(f"  {line}" for line in self.zeros("%value_sum0", "%n", self.value_sums)),
            "  %sums:2 = scf.for %h = %first_head to %end_head step %c1 iter_args("
            f"%head_sum = %sum0, %head_value_sum = %value_sum0) -> ({kinds}) {{",
            "    %of_head:2 = scf.for %i0 = %c0 to %queries step %query_step iter_args("
            f"%sum = %head_sum, %value_sum = %head_value_sum) -> ({kinds}) {{",
            *(f"      {line}" for line in (*self.query_rows(), *tile)),
            f"      scf.yield {', '.join(after)} : {kinds}", "    }",
            f"    scf.yield %of_head#0, %of_head#1 : {kinds}", "  }",
            *(f"  {line}" for line in (*rounding, *value_rounding)),
            "  scf.forall.in_parallel {",
            f"    tensor.parallel_insert_slice {rows} into %out[%b, %key_head, %j0, 0] "
            f"[1, 1, %n, {of.dim}] [1, 1, 1, 1] : {self.row} into {types.key}",
            f"    tensor.parallel_insert_slice {value_rows} into %value_out[%b, %key_head, "
            f"%j0, 0] [1, 1, %n, {of.value_dim}] [1, 1, 1, 1] : {self.value_row} into "
            f"{types.value}", "  }", "}"]

    # ===------------------------------------------------------------------===#
    # Functions
    # ===------------------------------------------------------------------===#

    def delta(self) -> list[str]:
        """The products of outputs with their gradients, less the gradient of lse."""
        wide, names = [], ["%x", "%y"]
        if self.of.dtype != self.sum:
            wide = [f"  %wide{n} = arith.extf {name} : {self.of.dtype} to {self.sum}"
                    for n, name in enumerate(names)]
            names = ["%wide0", "%wide1"]
        return [
            f"%delta_empty = tensor.empty(%batch, %queries) : {self.lse}",
            "%delta_init = linalg.generic {indexing_maps = ["
            "affine_map<(b, h, i) -> (b, h, i)>, affine_map<(b, h, i) -> (b, h, i)>], "
            'iterator_types = ["parallel", "parallel", "parallel"]}',
            f"  ins(%grad_lse_ : {self.lse}) outs(%delta_empty : {self.lse}) {{",
            f"^bb0(%x: {self.sum}, %element: {self.sum}):",
            f"  %opposite = arith.negf %x : {self.sum}",
            f"  linalg.yield %opposite : {self.sum}", f"}} -> {self.lse}",
            "%delta = linalg.generic {indexing_maps = ["
            "affine_map<(b, h, i, d) -> (b, h, i, d)>, "
            "affine_map<(b, h, i, d) -> (b, h, i, d)>, "
            "affine_map<(b, h, i, d) -> (b, h, i)>], "
            'iterator_types = ["parallel", "parallel", "parallel", "reduction"]}',
            f"  ins(%output_, %grad_output_ : {self.output}, {self.output}) "
            f"outs(%delta_init : {self.lse}) {{",
            f"^bb0(%x: {self.of.dtype}, %y: {self.of.dtype}, %z: {self.sum}):", *wide,
            f"  %p = arith.mulf {names[0]}, {names[1]} : {self.sum}",
            f"  %w = arith.addf %z, %p : {self.sum}",
            f"  linalg.yield %w : {self.sum}", f"}} -> {self.lse}"]

    def function(self, name: str, results: Sequence[tuple[str, str, str]],
                 body: Sequence[str]) -> str:
        """Writes a function of query, key, value, output, lse, their gradients and the
        captured arrays. `results` have a name, a type and a value."""
        of, types = self.of, self.types
        scale = of.dim ** -0.5 if of.scale is None else of.scale
        listed = [*write_arguments(of, types),
                  *(write_argument(name, kind) for name, kind in (
                      ("output", types.output), ("lse", types.lse),
                      ("grad_output", types.output), ("grad_lse", types.lse))),
                  *(write_argument(f"captured{number}", kind)
                    for number, kind in enumerate(types.arrays))]
        casts = [f"%{name}_ = tensor.cast %{name} : {kind} to {wide}"
                 for name, kind, wide in (
                     ("query", types.query, self.query),
                     ("output", types.output, self.output),
                     ("lse", types.lse, self.lse),
                     ("grad_output", types.output, self.output),
                     ("grad_lse", types.lse, self.lse))]
        infinity = "0xFF800000" if self.sum == "f32" else "0xFFF0000000000000"
        head = [
            *(f"%c{n} = arith.constant {n} : index" for n in range(4)),
            "%true = arith.constant true",
            f"%zero = arith.constant 0.0 : {self.sum}",
            f"%minus_infinity = arith.constant {infinity} : {self.sum}",
            f"%scale = arith.constant {scale:.17e} : {self.sum}",
            f"%query_step = arith.constant {_QUERIES} : index",
            f"%key_step = arith.constant {_KEYS} : index",
            f"%batch = tensor.dim %query, %c0 : {types.query}",
            f"%queries = tensor.dim %query, %c2 : {types.query}",
            f"%keys = tensor.dim %key, %c2 : {types.key}",
            "%query_tiles = arith.ceildivui %queries, %query_step : index",
            "%key_tiles = arith.ceildivui %keys, %key_step : index", *casts,
            *write_array_sizes(of, types, find_names(body)), *self.delta()]
        returned = ", ".join(f'{kind} {{posenc.name = "{result}"}}'
                             for result, kind, _ in results)
        values = ", ".join(value for *_, value in results)
        kinds = ", ".join(kind for _, kind, _ in results)
        arguments_text = ",\n    ".join(listed)
        text = "\n  ".join([*head, *body, f"return {values} : {kinds}"])
        return f"""
func.func @{name}(
    {arguments_text})
    -> ({returned}) {{
  {text}
}}
"""

    def gradient(self) -> str:
        """The function of the gradients of query, key and value."""
        types = self.types
        body = [
            f"%grad_query_empty = tensor.empty(%batch, %queries) : {self.query}",
            *self.query_pass(),
            f"%grad_query_ = tensor.cast %grad_query : {self.query} to {types.query}",
            f"%grad_key_empty = tensor.empty(%batch, %keys) : {types.key}",
            f"%grad_value_empty = tensor.empty(%batch, %keys) : {types.value}",
            *self.key_pass()]
        return self.function(GRADIENT, [
            ("grad_query", types.query, "%grad_query_"),
            ("grad_key", types.key, "%key_gradients#0"),
            ("grad_value", types.value, "%key_gradients#1")], body)

    def array_gradient(self, number: int, loads: Sequence[tuple[Node, Node]]) -> str:
        """The function of the gradient of a captured array, in f64. Its elements may be
        those of any pairs, so a single task adds in order."""
        of, rank = self.of, self.of.arrays[number][1]
        kind = f"tensor<{'?x' * rank}f64>"
        names = [f"%captured{n}" for n in range(len(of.arrays))]
        writer = RegionWriter(
            {"batch": "%b", "head": "%h", "query": "%i", "key": "%j",
             "score": "%scaled"}, list(zip(names, self.types.arrays)), "x")
        before = "%pair_sum"
        for count, (load, derivative) in enumerate(loads):
            indices = ", ".join(writer.write_clamped_indices(load))
            factor = writer.write_as_float(derivative, self.sum)
            part, old, new = (f"%{name}{count}" for name in ("part", "old", "new"))
            writer.lines += [
                f"{part} = arith.mulf %outer, {factor} : {self.sum}",
                f"{part}_kept = arith.select %is_zero, %zero, {part} : {self.sum}",
                f"{part}_wide = arith.extf {part}_kept : f32 to f64"
                if self.sum == "f32" else
                f"{part}_wide = arith.addf {part}_kept, %wide_zero : f64",
                f"{old} = tensor.extract {before}[{indices}] : {kind}",
                f"{new} = arith.addf {old}, {part}_wide : f64",
                f"%array{count} = tensor.insert {new} into {before}[{indices}] : {kind}"]
            before = f"%array{count}"
        lines = list(writer.lines)
        sizes = ", ".join(f"%captured{number}_size{dim}" for dim in range(rank))
        pair = [
            "%i = arith.addi %row, %i0 : index", "%j = arith.addi %column, %j0 : index",
            f"%outer = tensor.extract %outers[%row, %column] : {self.tile}",
            f"%p = tensor.extract %weights[%row, %column] : {self.tile}",
            f"%is_zero = arith.cmpf oeq, %p, %zero : {self.sum}",
            f"%s = tensor.extract %scores[%row, %column] : {self.tile}",
            f"%scaled = arith.mulf %s, %scale : {self.sum}", *lines,
            f"scf.yield {before} : {kind}"]
        tile = [
            *self.tile_weights(), *self.score_gradient("%outers", self.tile, False),
            "%of_tile = scf.for %row = %c0 to %m step %c1 iter_args(%row_sum = %sum) -> "
            f"({kind}) {{",
            "  %of_row = scf.for %column = %c0 to %n step %c1 iter_args(%pair_sum = "
            f"%row_sum) -> ({kind}) {{", *(f"    {line}" for line in pair), "  }",
            f"  scf.yield %of_row : {kind}", "}"]
        loops = [("%b", "%c0", "%batch", "%c1"), ("%h", "%c0", "%heads", "%c1"),
                 ("%i0", "%c0", "%queries", "%query_step"),
                 ("%j0", "%c0", "%keys", "%key_step")]
        guarded, (last,) = self.if_seen([("%sum", kind)], tile, ["%of_tile"])
        inner = [*self.query_rows(), *self.key_rows(), *guarded]
        for depth, (index, begin, end, step) in reversed(list(enumerate(loops))):
            given = "%sum" if depth == 3 else f"%sum{depth}"
            init = "%array_init" if depth == 0 else f"%sum{depth - 1}"
            extra = ([f"%group = arith.constant {of.heads // of.key_heads} : index",
                      "%key_head = arith.divui %h, %group : index"] if depth == 1 else [])
            result = last if depth == 3 else f"%after{depth + 1}"
            inner = [
                f"%after{depth} = scf.for {index} = {begin} to {end} step {step} "
                f"iter_args({given} = {init}) -> ({kind}) {{",
                *(f"  {line}" for line in (*extra, *inner)),
                f"  scf.yield {result} : {kind}", "}"]
        body = [
            f"%heads = arith.constant {of.heads} : index",
            f"%array_empty = tensor.empty({sizes}) : {kind}",
            "%wide_zero = arith.constant 0.0 : f64",
            f"%array_init = linalg.fill ins(%wide_zero : f64) outs(%array_empty : "
            f"{kind}) -> {kind}", *inner]
        return self.function(name_array_gradient(number), [
            (f"grad_captured{number}", kind, "%after0")], body)


def write_gradients(of: Signature, graph: Graph, score: Node | None,
                    where: Node | None) -> str:
    """Returns the functions of gradients, for query, key and value and for each captured
    array of floats that the score depends on."""
    derivatives = None if score is None else Derivatives(graph, score)
    derivative = None
    if derivatives is not None:
        derivative = derivatives.score or graph.constant(0, of.sum_dtype)
        if derivative.op == "constant" and derivative.payload == 1:
            derivative = None
    writer = _Writer(of, _Expressions(score, where, derivative))
    text = writer.gradient()
    for number in find_differentiable(derivatives):
        assert derivatives is not None
        text += writer.array_gradient(number, [
            pair for pair in derivatives.loads if pair[0].payload == number])
    return text


def find_differentiable(derivatives: Derivatives | None) -> list[int]:
    """Returns the numbers of the captured arrays that have gradients."""
    if derivatives is None:
        return []
    return sorted({load.payload for load, _ in derivatives.loads if load.dtype in FLOATS})
