# ===- _tiles.py - operations of tiles of pairs ----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Writes what gradients compute of a tile of queries and keys, as operations of linalg on
tensors: scores, weights, and the gradients of scores. They are tiles of functions that are
written here rather than by the dialect: gradients (`_gradient`) and `_max_scores`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ._mlir import RegionWriter
from ._module import Signature, Types, find_names
from ._score_graph import Node

# Queries and keys of a tile. Their scores and their rows stay in the cache of level 2.
QUERIES, KEYS = 128, 64


class Expressions(NamedTuple):
    score: Node | None
    where: Node | None
    # Of the score by the one before; None: 1 without a score, else 0.
    derivative: Node | None


class TileWriter:
    """Writes operations of the tiles of a signature. Names of values are those of the loops
    around them: `%m` and `%n` are the numbers of queries and keys of a tile, which begin at
    `%i0` and `%j0`, in the sequence `%b` and the heads `%h` and `%key_head`."""

    def __init__(self, of: Signature, expressions: Expressions):
        self.of, self.types, self.expressions = of, Types.make(of), expressions
        self.sum = of.sum_dtype
        self.row = f"tensor<?x{of.dim}x{of.dtype}>"
        self.value_row = f"tensor<?x{of.value_dim}x{of.dtype}>"
        result = self.sum if of.is_partial else of.dtype
        self.row_result = f"tensor<?x{of.dim}x{result}>"
        self.value_row_result = f"tensor<?x{of.value_dim}x{result}>"
        self.key_result, self.value_result = (
            f"tensor<?x{of.key_heads}x?x{width}x{result}>"
            for width in (of.dim, of.value_dim))
        self.sums = f"tensor<?x{of.dim}x{self.sum}>"
        self.value_sums = f"tensor<?x{of.value_dim}x{self.sum}>"
        self.tile = f"tensor<?x?x{self.sum}>"
        self.narrow_tile = f"tensor<?x?x{of.dtype}>"
        self.vector = f"tensor<?x{self.sum}>"
        self.lse = f"tensor<?x{of.heads}x?x{self.sum}>"
        dims = f"?x{of.heads}x?x"
        self.query = f"tensor<{dims}{of.dim}x{of.dtype}>"
        self.query_sums = f"tensor<{dims}{of.dim}x{self.sum}>"
        self.output = f"tensor<{dims}{of.value_dim}x{of.dtype}>"

    def constants(self) -> list[str]:
        """Defines what all functions begin with: numbers and sizes."""
        of = self.of
        scale = of.dim ** -0.5 if of.scale is None else of.scale
        infinity = "0xFF800000" if self.sum == "f32" else "0xFFF0000000000000"
        return [
            *(f"%c{n} = arith.constant {n} : index" for n in range(4)),
            "%true = arith.constant true",
            f"%zero = arith.constant 0.0 : {self.sum}",
            f"%minus_infinity = arith.constant {infinity} : {self.sum}",
            f"%scale = arith.constant {scale:.17e} : {self.sum}",
            f"%query_step = arith.constant {QUERIES} : index",
            f"%key_step = arith.constant {KEYS} : index",
            f"%batch = tensor.dim %query, %c0 : {self.types.query}",
            f"%queries = tensor.dim %query, %c2 : {self.types.query}",
            f"%keys = tensor.dim %key, %c2 : {self.types.key}",
            "%query_tiles = arith.ceildivui %queries, %query_step : index",
            "%key_tiles = arith.ceildivui %keys, %key_step : index"]

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
                    kind: str, body: Sequence[str], last: str,
                    init: str | None = None) -> list[str]:
        """An operation of each pair of a tile. `operands` have a name, a type and the
        name of an element; those of vectors are one for each query. `%element` is that
        of the tile `init`."""
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
        empty = [f"{result}_init = tensor.empty(%m, %n) : {kind}"] if init is None else []
        return [
            *empty,
            f"{result} = linalg.generic {{indexing_maps = [{', '.join(maps)}, "
            'affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}',
            f"  ins({names} : {kinds}) outs({init or result + '_init'} : {kind}) {{",
            f"^bb0({arguments}, %element: {element}):", *(f"  {line}" for line in lines),
            f"  linalg.yield {last} : {element}", f"}} -> {kind}"]

    def pair(self) -> list[str]:
        """Defines the query and the key of an element of a tile."""
        return ["%row = linalg.index 0 : index", "%column = linalg.index 1 : index",
                "%i = arith.addi %row, %i0 : index",
                "%j = arith.addi %column, %j0 : index"]

    def weights(self, result: str) -> list[str]:
        """The weights p of a tile; 0 for hidden keys."""
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
        # Where the weight is 0, as for hidden keys, the other factors may be infinite or
        # NaN.
        body = [f"%is_zero = arith.cmpf oeq, %p, %zero : {self.sum}",
                f"%centered = arith.subf %dp, %d : {self.sum}",
                f"%weighted = arith.mulf %p, %centered : {self.sum}",
                f"%outer = arith.select %is_zero, %zero, %weighted : {self.sum}"]
        last = "%outer"
        if is_inner:
            derivative = self.expressions.derivative
            if derivative is not None:
                operands.append(("%scores", self.tile, "%s"))
                lines, factor = self.region(derivative, "d")
                body += [f"%scaled = arith.mulf %s, %scale : {self.sum}", *lines,
                         f"%chained = arith.mulf %outer, {factor} : {self.sum}",
                         f"%kept = arith.select %is_zero, %zero, %chained : {self.sum}"]
                last = "%kept"
            body.append(f"%inner = arith.mulf {last}, %scale : {self.sum}")
            last = "%inner"
        return self.elementwise(result, operands, kind, body, last)

    def query_rows(self) -> list[str]:
        """Takes the rows of the queries from `%i0`, in the head `%h`."""
        def take(result: str, source: str, kind: str, width: int, row: str) -> str:
            return (f"{result} = tensor.extract_slice {source}[%b, %h, %i0, 0] [1, 1, %m, "
                    f"{width}] [1, 1, 1, 1] : {kind} to {row}")

        def take_vector(result: str, source: str) -> str:
            return (f"{result} = tensor.extract_slice {source}[%b, %h, %i0] [1, 1, %m] "
                    f"[1, 1, 1] : {self.lse} to {self.vector}")

        return [
            f"%m = affine.min affine_map<(d0)[s0] -> ({QUERIES}, s0 - d0)>(%i0)"
            "[%queries]",
            take("%q", "%query_", self.query, self.of.dim, self.row),
            take("%g", "%grad_output_", self.output, self.of.value_dim, self.value_row),
            take_vector("%row_lse", "%lse_"), take_vector("%row_delta", "%delta")]

    def key_rows(self) -> list[str]:
        def take(result: str, source: str, kind: str, width: int, row: str) -> str:
            return (f"{result} = tensor.extract_slice {source}[%b, %key_head, %j0, 0] "
                    f"[1, 1, %n, {width}] [1, 1, 1, 1] : {kind} to {row}")

        return [
            f"%n = affine.min affine_map<(d0)[s0] -> ({KEYS}, s0 - d0)>(%j0)[%keys]",
            take("%k", "%key", self.types.key, self.of.dim, self.row),
            take("%v", "%value", self.types.value, self.of.value_dim, self.value_row),
            *self.keep_finite("%finite_k", "%k", "%n", self.row)]

    def finite_query_rows(self) -> list[str]:
        """Defines the rows that `product` gets for the gradients of keys."""
        return [*self.keep_finite("%finite_q", "%q", "%m", self.row),
                *self.keep_finite("%finite_g", "%g", "%m", self.value_row)]

    def keep_finite(self, result: str, source: str, size: str, kind: str) -> list[str]:
        """Sets elements of rows that are not finite to 0. A hidden pair has the factor 0,
        whose product with them would be NaN. Where they are visible, the factor is NaN."""
        if self.expressions.where is None:
            return [f"{result} = tensor.cast {source} : {kind} to {kind}"]
        infinity = "0x7F800000" if self.sum == "f32" else "0x7FF0000000000000"
        element = self.of.dtype
        wide = ([] if element == self.sum else
                [f"  %wide = arith.extf %x : {element} to {self.sum}"])
        return [
            f"{result}_init = tensor.empty({size}) : {kind}",
            f"{result} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, "
            "affine_map<(i, j) -> (i, j)>], "
            'iterator_types = ["parallel", "parallel"]}',
            f"  ins({source} : {kind}) outs({result}_init : {kind}) {{",
            f"^bb0(%x: {element}, %element: {element}):", *wide,
            f"  %size = math.absf {'%wide' if wide else '%x'} : {self.sum}",
            f"  %infinity = arith.constant {infinity} : {self.sum}",
            f"  %is_finite = arith.cmpf olt, %size, %infinity : {self.sum}",
            f"  %nothing = arith.constant 0.0 : {element}",
            f"  %finite = arith.select %is_finite, %x, %nothing : {element}",
            f"  linalg.yield %finite : {element}", f"}} -> {kind}"]

    def zeros(self, result: str, size: str, kind: str) -> list[str]:
        return [f"{result}_empty = tensor.empty({size}) : {kind}",
                f"{result} = linalg.fill ins(%zero : {self.sum}) outs({result}_empty : "
                f"{kind}) -> {kind}"]

    def tile_weights(self) -> list[str]:
        return [*self.zeros("%zeros", "%m, %n", self.tile),
                *self.scores("%scores", "%q", "%k", self.row),
                *self.scores("%products", "%g", "%v", self.value_row),
                *self.weights("%weights")]

    def if_visible(self, inits: Sequence[tuple[str, str]], body: Sequence[str],
                   last: Sequence[str]) -> tuple[list[str], list[str]]:
        """Computes a tile unless no pair of it is visible. `inits` have values and types,
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
