# ===- _max_scores.py - the largest scores of queries -----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Writes the function of the largest score of each query, after score_mod and mask_mod:
loops over tiles of keys. Without a visible key it is minus infinity."""

from __future__ import annotations

from ._module import Signature, find_names, write_argument, write_arguments, write_array_sizes
from ._score_graph import Node
from ._tiles import KEYS, Expressions, TileWriter

MAX_SCORES = "max_scores"


class _Writer(TileWriter):
    def __init__(self, of: Signature, expressions: Expressions):
        super().__init__(of, expressions)
        self.maxima = f"tensor<?x{KEYS}x{self.sum}>"

    def tile_maxima(self) -> list[str]:
        """Merges the scores of a tile with `%max`, element by element. Hidden keys have
        minus infinity."""
        body = [f"%scaled = arith.mulf %s, %scale : {self.sum}"]
        score, where = self.expressions.score, self.expressions.where
        last = "%scaled"
        if score is not None:
            lines, last = self.region(score, "s")
            body += lines
        if where is not None:
            lines, seen = self.region(where, "w")
            body += [*lines, f"%shown = arith.select {seen}, {last}, %minus_infinity : "
                             f"{self.sum}"]
            last = "%shown"
        body.append(f"%larger = arith.maximumf %element, {last} : {self.sum}")
        return [
            f"%part = tensor.extract_slice %max[0, 0] [%m, %n] [1, 1] : {self.maxima} to "
            f"{self.tile}",
            *self.elementwise("%larger_part", [("%scores", self.tile, "%s")], self.tile,
                              body, "%larger", init="%part"),
            "%next_max = tensor.insert_slice %larger_part into %max[0, 0] [%m, %n] [1, 1] "
            f": {self.tile} into {self.maxima}"]

    def row_maxima(self) -> list[str]:
        """The largest elements of the rows of `%maxima`."""
        return [
            f"%row_empty = tensor.empty(%m) : {self.vector}",
            f"%row_init = linalg.fill ins(%minus_infinity : {self.sum}) outs(%row_empty : "
            f"{self.vector}) -> {self.vector}",
            "%row_max = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, "
            'affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}',
            f"  ins(%maxima : {self.maxima}) outs(%row_init : {self.vector}) {{",
            f"^bb0(%x: {self.sum}, %y: {self.sum}):",
            f"  %z = arith.maximumf %x, %y : {self.sum}",
            f"  linalg.yield %z : {self.sum}", f"}} -> {self.vector}"]

    def loops(self) -> list[str]:
        """The loop over queries. A tile of maxima has a column for each key of a tile of
        keys, so that its operations are those of vectors."""
        of = self.of
        tile, (after,) = self.if_visible(
            [("%max", self.maxima)],
            [*self.zeros("%zeros", "%m, %n", self.tile),
             *self.scores("%scores", "%q", "%k", self.row), *self.tile_maxima()],
            ["%next_max"])
        size, query, *_ = self.query_rows()
        key_size, key, *_ = self.key_rows()
        return [
            f"%max_scores = scf.forall (%b, %h, %t) in (%batch, {of.heads}, %query_tiles) "
            f"shared_outs(%out = %max_scores_empty) -> ({self.lse}) {{",
            "  %i0 = arith.muli %t, %query_step : index",
            f"  %group = arith.constant {of.heads // of.key_heads} : index",
            "  %key_head = arith.divui %h, %group : index", f"  {size}", f"  {query}",
            f"  %max_empty = tensor.empty(%m) : {self.maxima}",
            f"  %max_init = linalg.fill ins(%minus_infinity : {self.sum}) outs(%max_empty : "
            f"{self.maxima}) -> {self.maxima}",
            "  %maxima = scf.for %j0 = %c0 to %keys step %key_step iter_args(%max = "
            f"%max_init) -> ({self.maxima}) {{",
            *(f"    {line}" for line in (key_size, key, *tile)),
            f"    scf.yield {after} : {self.maxima}", "  }",
            *(f"  {line}" for line in self.row_maxima()),
            "  scf.forall.in_parallel {",
            "    tensor.parallel_insert_slice %row_max into %out[%b, %h, %i0] [1, 1, %m] "
            f"[1, 1, 1] : {self.vector} into {self.lse}", "  }", "}"]

    def function(self) -> str:
        of, types = self.of, self.types
        body = self.loops()
        listed = ",\n    ".join([*write_arguments(of, types), *(
            write_argument(f"captured{number}", kind)
            for number, kind in enumerate(types.arrays))])
        text = "\n  ".join([
            *self.constants(),
            *write_array_sizes(of, types, find_names(body)),
            f"%query_ = tensor.cast %query : {types.query} to {self.query}",
            f"%max_scores_empty = tensor.empty(%batch, %queries) : {self.lse}", *body,
            f"return %max_scores : {self.lse}"])
        return f"""
func.func @{MAX_SCORES}(
    {listed})
    -> ({self.lse} {{posenc.name = "max_scores"}}) {{
  {text}
}}
"""


def write_max_scores(of: Signature, score: Node | None, where: Node | None) -> str:
    """Returns the function of the largest scores, of query, key, value and the captured
    arrays, for all lengths."""
    of = of._replace(tokens=None, fused=None)
    return _Writer(of, Expressions(score, where, None)).function()
