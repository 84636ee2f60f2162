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

for captured elements x. A task computes rows of dq, or of dk and dv, or a part of dx, alone
and in order, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from ._derivative import Derivatives
from ._mlir import RegionWriter
from ._module import Signature, find_names, write_argument, write_arguments, write_array_sizes
from ._score_graph import FLOATS, Graph, Node
from ._tiles import Expressions, TileWriter

GRADIENT = "gradient"
# From so many key heads on, there is a task for each of them, which computes all gradients.
# With fewer, there are tasks for tiles of queries and of keys, with 1.4 times the work.
_MIN_HEADS = 8


def name_array_gradient(number: int) -> str:
    """Returns the name of the function for the gradient of a captured array."""
    return f"{GRADIENT}_captured{number}"


class _Writer(TileWriter):
    """Writes the functions of a signature."""

    def query_pass(self) -> list[str]:
        """The loop over queries that computes dq."""
        of, kind = self.of, self.query_sums
        tile, (after,) = self.if_visible(
            [("%sum", self.sums)],
            [*self.tile_weights(), *self.score_gradient("%ds", self.narrow_tile, True),
             *self.product("%next_sum", "%ds", "%finite_k", "%sum", self._ROWS,
                           (self.narrow_tile, self.row, self.sums))], ["%next_sum"])
        return [
            f"%grad_query = scf.forall (%b, %h, %t) in (%batch, {of.heads}, "
            f"%query_tiles) shared_outs(%out = %grad_query_empty) -> ({kind}) {{",
            "  %i0 = arith.muli %t, %query_step : index",
            f"  %group = arith.constant {of.heads // of.key_heads} : index",
            "  %key_head = arith.divui %h, %group : index",
            *(f"  {line}" for line in self.query_rows()),
            *(f"  {line}" for line in self.zeros("%sum0", "%m", self.sums)),
            "  %sums = scf.for %j0 = %c0 to %keys step %key_step iter_args(%sum = %sum0) "
            f"-> ({self.sums}) {{",
            *(f"    {line}" for line in (*self.key_rows(), *tile)),
            f"    scf.yield {after} : {self.sums}", "  }",
            "  scf.forall.in_parallel {",
            "    tensor.parallel_insert_slice %sums into %out[%b, %h, %i0, 0] "
            f"[1, 1, %m, {of.dim}] [1, 1, 1, 1] : {self.sums} into {kind}",
            "  }", "}"]

    def key_tile(self, with_queries: bool) -> tuple[list[str], list[str]]:
        """Adds the part of a tile to `%sum` and `%value_sum`, and also to `%query_sum` if
        `with_queries`. Returns operations and the names of the results."""
        of = self.of
        weights = "%weights" if of.dtype == self.sum else "%narrow_weights"
        narrow = [] if of.dtype == self.sum else self.elementwise(
            weights, [("%weights", self.tile, "%p")], self.narrow_tile, [], "%p")
        inits = [("%sum", self.sums), ("%value_sum", self.value_sums)]
        results = ["%next_sum", "%next_value_sum"]
        body = [
            *self.tile_weights(), *narrow,
            *self.score_gradient("%ds", self.narrow_tile, True),
            *self.finite_query_rows(),
            *self.product("%next_sum", "%ds", "%finite_q", "%sum", self._COLUMNS,
                          (self.narrow_tile, self.row, self.sums)),
            *self.product("%next_value_sum", weights, "%finite_g", "%value_sum", self._COLUMNS,
                          (self.narrow_tile, self.value_row, self.value_sums))]
        if with_queries:
            inits.append(("%query_sum", self.sums))
            results.append("%next_query_sum")
            body += self.product("%next_query_sum", "%ds", "%finite_k", "%query_sum",
                                 self._ROWS, (self.narrow_tile, self.row, self.sums))
        return self.if_visible(inits, body, results)

    def key_pass(self) -> list[str]:
        """The loop over keys that computes dk and dv."""
        of = self.of
        kinds = f"{self.sums}, {self.value_sums}"
        tile, after = self.key_tile(with_queries=False)
        rounding, rows = self.finish("%rows", "%sums#0", "%n", self.sums,
                                     self.row_result)
        value_rounding, value_rows = self.finish(
            "%value_rows", "%sums#1", "%n", self.value_sums, self.value_row_result)
        return [
            f"%key_gradients:2 = scf.forall (%b, %key_head, %t) in (%batch, "
            f"{of.key_heads}, %key_tiles) shared_outs(%out = %grad_key_empty, %value_out = "
            f"%grad_value_empty) -> ({self.key_result}, {self.value_result}) {{",
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
            f"[1, 1, %n, {of.dim}] [1, 1, 1, 1] : {self.row_result} into {self.key_result}",
            f"    tensor.parallel_insert_slice {value_rows} into %value_out[%b, %key_head, "
            f"%j0, 0] [1, 1, %n, {of.value_dim}] [1, 1, 1, 1] : {self.value_row_result} "
            f"into {self.value_result}", "  }", "}"]

    def whole_pass(self) -> list[str]:
        """A loop over key heads that computes dq, dk and dv at once, with 5 products of
        tiles instead of 7. Sums of dq are in the result."""
        of = self.of
        group = of.heads // of.key_heads
        queries = f"tensor<{group}x?x{of.dim}x{self.sum}>"
        keys, values = self.row_result, self.value_row_result
        outer_results = f"{self.query_sums}, {self.key_result}, {self.value_result}"
        kinds = f"{self.sums}, {self.value_sums}, {queries}"
        tile, after = self.key_tile(with_queries=True)
        rounding, rows = self.finish("%rows", "%sums#0", "%n", self.sums,
                                     self.row_result)
        value_rounding, value_rows = self.finish(
            "%value_rows", "%sums#1", "%n", self.value_sums, self.value_row_result)
        step = [
            *self.query_rows(),
            f"%query_sum = tensor.extract_slice %query_sums[%head, %i0, 0] [1, %m, {of.dim}]"
            f" [1, 1, 1] : {queries} to {self.sums}", *tile,
            f"%kept = tensor.insert_slice {after[2]} into %query_sums[%head, %i0, 0] "
            f"[1, %m, {of.dim}] [1, 1, 1] : {self.sums} into {queries}",
            f"scf.yield {after[0]}, {after[1]}, %kept : {kinds}"]
        outer = f"{queries}, {keys}, {values}"
        return [
            f"%gradients:3 = scf.forall (%b, %key_head) in (%batch, {of.key_heads}) "
            "shared_outs(%out = %grad_query_empty, %key_out = %grad_key_empty, %value_out = "
            f"%grad_value_empty) -> ({outer_results}) {{",
            f"  %group = arith.constant {group} : index",
            "  %first_head = arith.muli %key_head, %group : index",
            "  %query_slice = tensor.extract_slice %out[%b, %first_head, 0, 0] "
            f"[1, {group}, %queries, {of.dim}] [1, 1, 1, 1] : {self.query_sums} to "
            f"{queries}",
            f"  %query_zeros = linalg.fill ins(%zero : {self.sum}) outs(%query_slice : "
            f"{queries}) -> {queries}",
            *(f"  {name} = tensor.extract_slice {source}[%b, %key_head, 0, 0] "
              f"[1, 1, %keys, {width}] [1, 1, 1, 1] : {whole} to {kind}"
              for name, source, width, whole, kind in (
                  ("%key_slice", "%key_out", of.dim, self.key_result, keys),
                  ("%value_slice", "%value_out", of.value_dim, self.value_result, values))),
            "  %of_keys:3 = scf.for %j0 = %c0 to %keys step %key_step iter_args("
            "%all_queries = %query_zeros, %all_keys = %key_slice, %all_values = "
            f"%value_slice) -> ({outer}) {{",
            *(f"    {line}" for line in (
                *self.key_rows(), *self.zeros("%sum0", "%n", self.sums),
                *self.zeros("%value_sum0", "%n", self.value_sums))),
            "    %sums:3 = scf.for %head = %c0 to %group step %c1 iter_args(%head_sum = "
            "%sum0, %head_value_sum = %value_sum0, %head_queries = %all_queries) -> "
            f"({kinds}) {{",
            "      %h = arith.addi %first_head, %head : index",
            "      %of_head:3 = scf.for %i0 = %c0 to %queries step %query_step iter_args("
            "%sum = %head_sum, %value_sum = %head_value_sum, %query_sums = %head_queries) "
            f"-> ({kinds}) {{", *(f"        {line}" for line in step), "      }",
            f"      scf.yield %of_head#0, %of_head#1, %of_head#2 : {kinds}", "    }",
            *(f"    {line}" for line in (*rounding, *value_rounding)),
            f"    %next_keys = tensor.insert_slice {rows} into %all_keys[%j0, 0] [%n, "
            f"{of.dim}] [1, 1] : {self.row_result} into {keys}",
            f"    %next_values = tensor.insert_slice {value_rows} into %all_values[%j0, 0] "
            f"[%n, {of.value_dim}] [1, 1] : {self.value_row_result} into {values}",
            f"    scf.yield %sums#2, %next_keys, %next_values : {outer}", "  }",
            "  scf.forall.in_parallel {",
            "    tensor.parallel_insert_slice %of_keys#0 into %out[%b, %first_head, 0, 0] "
            f"[1, {group}, %queries, {of.dim}] [1, 1, 1, 1] : {queries} into "
            f"{self.query_sums}",
            "    tensor.parallel_insert_slice %of_keys#1 into %key_out[%b, %key_head, 0, 0]"
            f" [1, 1, %keys, {of.dim}] [1, 1, 1, 1] : {keys} into {self.key_result}",
            "    tensor.parallel_insert_slice %of_keys#2 into %value_out[%b, %key_head, 0, "
            f"0] [1, 1, %keys, {of.value_dim}] [1, 1, 1, 1] : {values} into "
            f"{self.value_result}", "  }", "}"]

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
        head = [*self.constants(), *casts,
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
        """The function of the gradients of query, in the accumulator type, and of key and
        value."""
        body = [f"%grad_query_empty = tensor.empty(%batch, %queries) : {self.query_sums}",
                f"%grad_key_empty = tensor.empty(%batch, %keys) : {self.key_result}",
                f"%grad_value_empty = tensor.empty(%batch, %keys) : {self.value_result}"]
        names = ["%grad_query", "%key_gradients#0", "%key_gradients#1"]
        if self.of.key_heads >= _MIN_HEADS:
            body += self.whole_pass()
            names = [f"%gradients#{number}" for number in range(3)]
        else:
            body += [*self.query_pass(), *self.key_pass()]
        kinds = self.query_sums, self.key_result, self.value_result
        return self.function(GRADIENT, list(zip(
            ("grad_query", "grad_key", "grad_value"), kinds, names)), body)

    def array_gradient(self, number: int, loads: Sequence[tuple[Node, Node]]) -> str:
        """The function of the gradient of a captured array, in f64. If a dimension is
        indexed by the head or the query alone, tasks compute parts of the gradient, and
        otherwise each head has sums of its own, which are added in order."""
        of, rank = self.of, self.of.arrays[number][1]
        owner, dim = _find_owner([load for load, _ in loads], of.heads)
        sizes = [f"%captured{number}_size{one}" for one in range(rank)]
        kind = f"tensor<{'?x' * rank}f64>"
        whole, part, whole_sizes = kind, kind, sizes
        offsets, widths = ["0"] * rank, list(sizes)
        if owner == "query":
            offsets[dim], widths[dim] = "%i0", "%m"
        elif owner == "head":
            offsets[dim], widths[dim] = "%h", "1"
            part = f"tensor<{'?x' * (rank - 1)}f64>"
        else:
            offsets, widths = ["%h", *offsets], ["1", *widths]
            whole = f"tensor<{of.heads}x{'?x' * rank}f64>"
        place = (f"[{', '.join(offsets)}] [{', '.join(widths)}] "
                 f"[{', '.join('1' for _ in widths)}]")
        loops = [("%b", "%c0", "%batch", "%c1"), ("%i0", "%c0", "%queries", "%query_step"),
                 ("%j0", "%c0", "%keys", "%key_step")]
        rows, of_head = self.query_rows(), [
            f"%group = arith.constant {of.heads // of.key_heads} : index",
            "%key_head = arith.divui %h, %group : index"]
        task, begin = f"(%h) in ({of.heads})", of_head
        inner_rows, extra = rows, []
        if owner == "query":
            task = "(%t) in (%query_tiles)"
            begin = ["%i0 = arith.muli %t, %query_step : index", rows[0]]
            loops[1] = "%h", "%c0", "%heads", "%c1"
            inner_rows, extra = rows[1:], of_head
        tile, last = self._array_tile(number, loads, owner, dim, part)
        inner, result = [*inner_rows, *self.key_rows()[:3], *tile], last
        for depth in (2, 1, 0):
            index, first, end, step = loops[depth]
            given = "%sum" if depth == 2 else f"%sum{depth}"
            init = "%slice" if depth == 0 else f"%sum{depth - 1}"
            inner = [
                f"%after{depth} = scf.for {index} = {first} to {end} step {step} "
                f"iter_args({given} = {init}) -> ({part}) {{",
                *(f"  {line}" for line in (*(extra if depth == 1 else []), *inner)),
                f"  scf.yield {result} : {part}", "}"]
            result = f"%after{depth}"
        body = [
            f"%heads = arith.constant {of.heads} : index",
            f"%array_empty = tensor.empty({', '.join(whole_sizes)}) : {whole}",
            "%wide_zero = arith.constant 0.0 : f64",
            f"%array_init = linalg.fill ins(%wide_zero : f64) outs(%array_empty : "
            f"{whole}) -> {whole}",
            f"%array = scf.forall {task} shared_outs(%out = %array_init) -> ({whole}) {{",
            *(f"  {line}" for line in begin),
            f"  %slice = tensor.extract_slice %out{place} : {whole} to {part}",
            *(f"  {line}" for line in inner), "  scf.forall.in_parallel {",
            f"    tensor.parallel_insert_slice %after0 into %out{place} : {part} into "
            f"{whole}", "  }", "}"]
        name = "%array"
        if owner is None:
            body += self._add_heads(rank, sizes, whole, kind)
            name = "%total"
        return self.function(name_array_gradient(number), [
            (f"grad_captured{number}", kind, name)], body)

    def _array_tile(self, number: int, loads: Sequence[tuple[Node, Node]],
                    owner: str | None, dim: int, kind: str) -> tuple[list[str], str]:
        """Adds what the pairs of a tile have to `%sum`, one by one."""
        of = self.of
        names = [f"%captured{n}" for n in range(len(of.arrays))]
        writer = RegionWriter(
            {"batch": "%b", "head": "%h", "query": "%i", "key": "%j",
             "score": "%scaled"}, list(zip(names, self.types.arrays)), "x")
        before = "%pair_sum"
        for count, (load, derivative) in enumerate(loads):
            indices = writer.write_clamped_indices(load)
            if owner == "query":
                indices[dim] = "%row"
            elif owner == "head":
                del indices[dim]
            at = ", ".join(indices)
            factor = writer.write_as_float(derivative, self.sum)
            part, old, new = (f"%{name}{count}" for name in ("part", "old", "new"))
            writer.lines += [
                f"{part} = arith.mulf %outer, {factor} : {self.sum}",
                f"{part}_kept = arith.select %is_zero, %zero, {part} : {self.sum}",
                f"{part}_wide = arith.extf {part}_kept : f32 to f64"
                if self.sum == "f32" else
                f"{part}_wide = arith.addf {part}_kept, %wide_zero : f64",
                f"{old} = tensor.extract {before}[{at}] : {kind}",
                f"{new} = arith.addf {old}, {part}_wide : f64",
                f"%array{count} = tensor.insert {new} into {before}[{at}] : {kind}"]
            before = f"%array{count}"
        pair = [
            "%i = arith.addi %row, %i0 : index", "%j = arith.addi %column, %j0 : index",
            f"%outer = tensor.extract %outers[%row, %column] : {self.tile}",
            f"%p = tensor.extract %weights[%row, %column] : {self.tile}",
            f"%is_zero = arith.cmpf oeq, %p, %zero : {self.sum}",
            f"%s = tensor.extract %scores[%row, %column] : {self.tile}",
            f"%scaled = arith.mulf %s, %scale : {self.sum}", *writer.lines,
            f"scf.yield {before} : {kind}"]
        tile = [
            *self.tile_weights(), *self.score_gradient("%outers", self.tile, False),
            "%of_tile = scf.for %row = %c0 to %m step %c1 iter_args(%row_sum = %sum) -> "
            f"({kind}) {{",
            "  %of_row = scf.for %column = %c0 to %n step %c1 iter_args(%pair_sum = "
            f"%row_sum) -> ({kind}) {{", *(f"    {line}" for line in pair), "  }",
            f"  scf.yield %of_row : {kind}", "}"]
        lines, (last,) = self.if_visible([("%sum", kind)], tile, ["%of_tile"])
        return lines, last

    def _add_heads(self, rank: int, sizes: Sequence[str], whole: str,
                   kind: str) -> list[str]:
        """Adds the sums of all heads."""
        dims = [f"d{one}" for one in range(rank)]
        domain = ", ".join([*dims, "h"])
        maps = (f"affine_map<({domain}) -> ({', '.join(['h', *dims])})>, "
                f"affine_map<({domain}) -> ({', '.join(dims)})>")
        iterators = ", ".join(['"parallel"'] * rank + ['"reduction"'])
        return [
            f"%total_empty = tensor.empty({', '.join(sizes)}) : {kind}",
            f"%total_init = linalg.fill ins(%wide_zero : f64) outs(%total_empty : {kind}) "
            f"-> {kind}",
            f"%total = linalg.generic {{indexing_maps = [{maps}], iterator_types = "
            f"[{iterators}]}}",
            f"  ins(%array : {whole}) outs(%total_init : {kind}) {{",
            "^bb0(%x: f64, %y: f64):", "  %z = arith.addf %y, %x : f64",
            "  linalg.yield %z : f64", f"}} -> {kind}"]


def _find_owner(loads: Sequence[Node], heads: int) -> tuple[str | None, int]:
    """Returns an argument that is the index of a dimension in all loads of an array, and
    this dimension."""
    for name in ("head", "query"):
        for dim in range(len(loads[0].operands)):
            indices = [load.operands[dim] for load in loads]
            while any(one.op == "convert" and one.operands[0].is_integer
                      for one in indices):
                indices = [one.operands[0] if one.op == "convert" else one
                           for one in indices]
            if (name == "query" or heads > 1) and all(
                    one.op == "argument" and one.payload == name for one in indices):
                return name, dim
    return None, 0


def write_gradients(of: Signature, graph: Graph, score: Node | None,
                    where: Node | None) -> str:
    """Returns the functions of gradients, for query, key and value and for each captured
    array of floats that the score depends on."""
    # Gradients have one kernel for all lengths. The bufferization refuses the loops of a
    # single query.
    of = of._replace(tokens=None)
    derivatives = None if score is None else Derivatives(graph, score)
    derivative = None
    if derivatives is not None:
        derivative = derivatives.score or graph.constant(0, of.sum_dtype)
        if derivative.op == "constant" and derivative.payload == 1:
            derivative = None
    writer = _Writer(of, Expressions(score, where, derivative))
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
