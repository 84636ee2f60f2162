# ===- _plan.py - kernels of score_mod and mask_mod ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Expressions of functions, and the kernels that are compiled for them.

Functions with equal code and captured values share a plan, of which a call only needs
the captured arrays. A plan has one kernel for each `Signature`, which does not depend on
lengths.
"""

from __future__ import annotations

import contextlib
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._compile import compile_on_use
from .._errors import Error
from .._fork import Lock
from .._kernels import Kernels
from .._sharding import declare
from ._block_mask import FULL, PARTIAL, Blocks
from ._captures import Captures
from ._gradient import write_gradients
from ._lru import recent
from ._max_scores import write_max_scores
from ._module import Signature, find_ranges, write_attention
from ._score_graph import ARGUMENTS, Graph, Node, collect
from ._sharding import make_declaration
from ._trace import Trace, locate

# Traces a function of some of `ARGUMENTS`.
Tracer = Callable[[Callable, Trace, tuple[str, ...]], Node]

# By the key of functions; None where the shapes of their arrays belong to the key.
_plans: OrderedDict[Any, tuple[Plan, list[int]] | None] = OrderedDict()
_MAX_PLANS = 1024
# A kernel takes 0.3 MB, and 1 MB more with gradients. Others are freed unless they are in
# use.
_MAX_KERNELS = 256
# Options of `compile` for all kernels.
compile_options: dict[str, Any] = {}
_lock = Lock()


class Plan:
    """The expressions of a score_mod and a mask_mod."""

    def __init__(self, graph: Graph, score: Node | None, where: Node | None,
                 dtypes: Sequence[str], ranks: Sequence[int]):
        self.graph, self.score, self.where = graph, score, where
        self.arrays = tuple(zip(dtypes, ranks))
        self.ranges = find_ranges(score, where)
        nodes = collect(score, where)
        self.uses_query = any(node.op == "argument" and node.payload == "query"
                              for node in nodes)
        # Plans do not keep kernels, so that there is a bound of their number.
        self._texts: dict[Signature, str] = {}

    def find_kernels(self, signature: Signature) -> Kernels:
        text = self._texts.get(signature)
        if text is None:
            text = self._texts[signature] = self.write(signature)
        return declare(compile_text(text), lambda: make_declaration(
            signature, self.score, self.where, self.find_kernels))

    def write(self, signature: Signature) -> str:
        """Returns the module of a signature."""
        text = write_attention(signature, self.score, self.where)
        if signature.fused is None:
            text += write_gradients(signature, self.graph, self.score, self.where)
            text += write_max_scores(signature, self.score, self.where)
        return text


@recent(_MAX_KERNELS)
def compile_text(text: str) -> Kernels:
    """Returns the kernels of a module, which are compiled when they are used."""
    return compile_on_use(text, **compile_options)


def make_plan(tracer: Tracer, score_mod: Callable | None, mask_mod: Callable | None,
              blocks: Blocks | None, score_dtype: str, device: Any,
              further: Callable | None = None) -> tuple[Plan, list[Any]]:
    """Returns the plan of functions and the arrays of a call. A pair is visible if its block
    and the mask_mod `further` show it. Functions that capture objects whose value is not
    known to be that of an earlier call are traced again."""
    captures = Captures((score_mod, mask_mod, further))
    key: Any = None
    if captures.key is not None:
        sizes = blocks and (blocks.query_size, blocks.key_size, blocks.table.shape[:2])
        key = (tracer, captures.key, score_dtype, sizes, read_settings(tracer))
        found = _plans.get(key)
        if found is None and key in _plans:
            key = key, tuple(tuple(array.shape) for array in captures.arrays)
            found = _plans.get(key)
        if found is not None:
            plan, numbers = found
            with contextlib.suppress(KeyError):  # Another thread may have dropped it.
                _plans.move_to_end(key)
            return plan, [blocks.table if blocks and number < 0 else
                          captures.arrays[number] for number in numbers]
    trace = Trace(Graph(score_dtype), device)
    # Functions of other frameworks read arrays of NumPy unseen.
    trace.reads_values = not tracer.__module__.endswith("_trace_numpy") and any(
        isinstance(array, np.ndarray) for array in captures.arrays)
    plan = make_traced_plan(tracer, score_mod, mask_mod, blocks, trace, further)
    sources = _find_sources(trace, captures, blocks)
    if key is not None and sources is not None and not trace.reads_values:
        with _lock:
            while len(_plans) >= _MAX_PLANS:
                _plans.popitem(last=False)
            if trace.reads_sizes and key[0] is tracer:
                _plans[key] = None
                key = key, tuple(tuple(array.shape) for array in captures.arrays)
            _plans[key] = plan, sources
    return plan, trace.arrays


def read_settings(tracer: Tracer) -> Any:
    """Returns the settings of a framework that the types of expressions depend on."""
    read = getattr(sys.modules[tracer.__module__], "read_settings", None)
    return read and read()


def make_traced_plan(tracer: Tracer, score_mod: Callable | None,
                     mask_mod: Callable | None, blocks: Blocks | None,
                     trace: Trace, further: Callable | None = None) -> Plan:
    """Traces functions. The arrays of `trace` are those of the call."""
    graph = trace.graph
    score = score_mod and _trace(tracer, score_mod, trace, ARGUMENTS, "score_mod")
    where = mask_mod and _trace(tracer, mask_mod, trace, ARGUMENTS[1:], "mask_mod")
    if score is not None:
        score = graph.convert(score, graph.score_dtype)
    if where is not None:
        where = graph.to_bool(where)
    if blocks is not None:
        where = _add_blocks(trace, blocks, where)
    if further is not None:
        holds = graph.to_bool(_trace(tracer, further, trace, ARGUMENTS[1:], "mask_mod"))
        where = holds if where is None else graph.make("bitwise_and", (where, holds), "i1")
    if score is not None and score.op == "argument" and score.payload == "score":
        score = None
    if where is not None and where.op == "constant" and where.payload:
        where = None
    return Plan(graph, score, where, trace.dtypes,
                [len(array.shape) for array in trace.arrays])


def _trace(tracer: Tracer, function: Callable, trace: Trace, names: tuple[str, ...],
           what: str) -> Node:
    try:
        return tracer(function, trace, names)
    except Error as error:
        raise Error(f"{locate(function, error)}{what}: {error}") from None
    except Exception as error:
        raise Error(f"{locate(function, error)}{what}: {type(error).__name__}: {error}"
                    ) from error


def _find_sources(trace: Trace, captures: Captures,
                  blocks: Blocks | None) -> list[int] | None:
    """Returns the numbers of a trace's arrays among those captured, or None if the
    functions have made one of them."""
    numbers = {id(array): number for number, array in enumerate(captures.arrays)}
    if blocks is not None:
        numbers[id(blocks.table)] = -1
    if any(id(array) not in numbers for array in trace.arrays):
        return None
    return [numbers[id(array)] for array in trace.arrays]


def _add_blocks(trace: Trace, blocks: Blocks, where: Node | None) -> Node:
    """A key is visible if its block is full, or if it is partial and the mask_mod holds."""
    graph = trace.graph
    indices = [graph.argument(name, "i32") if size != 1 else graph.constant(0, "i32")
               for name, size in zip(("batch", "head"), blocks.table.shape)]
    for name, size in (("query", blocks.query_size), ("key", blocks.key_size)):
        indices.append(graph.apply("floor_divide", "i32", graph.argument(name, "i32"),
                                   graph.constant(size, "i32")))
    state = trace.load(blocks.table, tuple(indices))
    is_full = graph.compare("ge", "i8", state, graph.constant(FULL, "i8"))
    is_partial = graph.compare("eq", "i8", state, graph.constant(PARTIAL, "i8"))
    if where is not None:
        is_partial = graph.make("bitwise_and", (is_partial, where), "i1")
    return graph.make("bitwise_or", (is_full, is_partial), "i1")


class Call(NamedTuple):
    """The kernels of a call and their inputs."""

    plan: Plan
    signature: Signature
    inputs: list[Any]

    def find_kernels(self) -> Kernels:
        return self.plan.find_kernels(self.signature)
