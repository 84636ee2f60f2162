# ===- _torch_compile.py - flex_attention in graphs of PyTorch -------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""What torch.compile records of `flex_attention`.

It records PyTorch's own higher-order operator, which it knows to trace functions for, and
whose arguments are the graphs of these and the tensors that they capture. Where PyTorch
differentiates that operator, the operator `posenc::flex_attention` takes its place, so
that no later stage sees functions.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._C import DispatchKey
from torch._higher_order_ops.flex_attention import flex_attention as recorded_operator
from torch.nn.attention.flex_attention import _create_empty_block_mask, _identity

from .._errors import Error
from ._block_mask import WHOLE, BlockMask, Blocks, make_table
from ._calls import find_max_scores, find_signature, run, widen
from ._plan import Call, make_traced_plan
from ._score_graph import Graph
from ._torch_scalars import Scalar, load
from ._trace import Trace
from ._trace_torch import trace_torch

# The option that marks calls of `posenc.flex_attention` in graphs.
_MARK = "POSENC"
# PyTorch's option for the largest scores.
_WITH_MAX = "OUTPUT_MAX"
_FLOATS = (float, torch.SymFloat)
# Whether those of PyTorch's flex_attention are replaced, too.
_replaces_all = False


def call_recorded(query, key, value, score_mod: Callable | None, block_mask,
                  mask_mod: Callable | None, scale: float | None, with_max: bool):
    """Returns the output, the log-sum-exp and the largest scores (None unless `with_max`)
    of a call that torch.compile traces."""
    own = None
    if block_mask is not None:
        own = block_mask.mask_mod
    if (mask_mod is not None and block_mask is not None
            and not isinstance(block_mask, BlockMask)):
        # A mask_mod of PyTorch's operator does not hold for full blocks.
        score_mod = _hide(score_mod, mask_mod)
    elif own is not None and mask_mod is not None:
        first, second = own, mask_mod

        def both(batch, head, query_index, key_index):
            return (first(batch, head, query_index, key_index)
                    & second(batch, head, query_index, key_index))

        own = both
    elif own is None:
        own = mask_mod
    if block_mask is None or isinstance(block_mask, BlockMask):
        blocks = _create_empty_block_mask(query, key).as_tuple()
    else:
        blocks = block_mask.as_tuple()
    if own is not None:
        blocks = blocks[:-1] + (own,)
    output, lse, max_scores = recorded_operator(
        query, key, value, _identity if score_mod is None else score_mod, blocks,
        query.shape[-1] ** -0.5 if scale is None else scale,
        {_MARK: True, _WITH_MAX: with_max})
    return (output, lse * math.log(2),
            max_scores * math.log(2) if with_max else None)


def _hide(score_mod: Callable | None, mask_mod: Callable) -> Callable:
    """Returns a score_mod that gives minus infinity where a mask_mod hides a key."""
    score_of = _identity if score_mod is None else score_mod

    def hidden(score, batch, head, query_index, key_index):
        seen = mask_mod(batch, head, query_index, key_index)
        return torch.where(seen, score_of(score, batch, head, query_index, key_index),
                           -float("inf"))

    return hidden


def _wrap(trace: Trace, function: Callable, buffers: Sequence[Any],
          tensors: Sequence[torch.Tensor]) -> Callable:
    """Returns a function of a pair, of a graph with further inputs. Numbers among these
    are elements, so that operations of them are part of the expression. Floats of Python
    have the type of scores, since they do not decide the type of a result."""
    inputs: list[Any] = list(tensors)
    for number, (buffer, tensor) in enumerate(zip(buffers, tensors)):
        if tensor.dim() == 0:
            node = load(trace, tensor, ())
            if isinstance(buffer, _FLOATS):
                node = trace.graph.convert(node, trace.graph.score_dtype)
            inputs[number] = Scalar(node, trace, trace.device)
    return lambda *pair: function(*pair, *inputs)


def _to_tensors(buffers: Sequence[Any], device) -> list[torch.Tensor]:
    """Returns captured tensors; numbers that the graph keeps symbolic become tensors."""
    return [buffer if isinstance(buffer, torch.Tensor) else
            # A product of a float is an operation that PyTorch makes one of a tensor; it
            # would make others constants of the graph.
            torch.ones((), dtype=torch.float64, device=device).mul(buffer)
            if isinstance(buffer, _FLOATS) else
            torch.full((), buffer, device=device, dtype=torch.int64)
            for buffer in buffers]


def _call(query, key, value, score_mod, block_mask, scale, score_buffers, mask_buffers,
          with_max: bool):
    """Calls the operators for the arguments of the recorded one."""
    dtype = "f64" if query.dtype == torch.float64 else "f32"
    trace = Trace(Graph(dtype), query.device)
    given = score_buffers, mask_buffers
    buffers = [_to_tensors(one, query.device) for one in given]
    *_, query_size, key_size, mask_mod = block_mask
    blocks = None
    if min(query_size, key_size) < WHOLE:
        table = make_table(-(-block_mask[1] // key_size), *block_mask[2:6])
        blocks = Blocks(table, query_size, key_size)
    plan = make_traced_plan(
        trace_torch, _wrap(trace, score_mod, given[0], buffers[0]),
        _wrap(trace, mask_mod, given[1], buffers[1]), blocks, trace)
    known = {id(one) for one in (*buffers[0], *buffers[1])}
    known.add(id(blocks and blocks.table))
    if any(id(array) not in known for array in trace.arrays):
        raise Error("flex_attention: an operation of captured tensors alone is within a "
                    "function of scores; compute it outside")
    if key.shape[0] != query.shape[0]:
        key, value = (one.expand(query.shape[0], *one.shape[1:]) for one in (key, value))
    signature = find_signature(plan, query, key, value, scale)
    call = Call(plan, signature, [query, key, value, *map(widen, trace.arrays)])
    output, lse = run(call)
    return output, lse, find_max_scores(call) if with_max else torch.zeros_like(lse)


# PyTorch's operator takes integers that a graph keeps symbolic. Floats, which
# torch.compile makes symbolic when a second value comes, are taken, too.
_module = sys.modules[type(recorded_operator).__module__]
_validate = getattr(_module, "validate_subgraph_args_types", None)


def _validate_inputs(inputs: Sequence[Any]) -> None:
    assert _validate is not None
    _validate(tuple(one for one in inputs if not isinstance(one, _FLOATS)))


if _validate is not None:
    setattr(_module, "validate_subgraph_args_types", _validate_inputs)
_original = recorded_operator.py_kernels[DispatchKey.Autograd]


def _differentiate(query, key, value, score_mod, block_mask, scale, kernel_options,
                   score_mod_other_buffers=(), mask_mod_other_buffers=()):
    is_marked = kernel_options.get(_MARK, False)
    if is_marked or _replaces_all:
        try:
            output, lse, max_scores = _call(
                query, key, value, score_mod, block_mask, scale, score_mod_other_buffers,
                mask_mod_other_buffers, kernel_options.get(_WITH_MAX, False))
            # PyTorch's operator has logarithms to the base 2.
            return output, lse * (1 / math.log(2)), max_scores * (1 / math.log(2))
        except Error:
            if not _replaces_all:
                raise
    return _original(query, key, value, score_mod, block_mask, scale, kernel_options,
                     score_mod_other_buffers, mask_mod_other_buffers)


recorded_operator.py_kernels[DispatchKey.Autograd] = _differentiate
recorded_operator._dispatch_cache.clear()


def set_replaces_all(replaces_all: bool) -> None:
    """Sets whether graphs' calls of PyTorch's flex_attention are calls of this one."""
    global _replaces_all
    _replaces_all = replaces_all
