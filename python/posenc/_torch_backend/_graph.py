# ===- _graph.py - values of graphs of ATen ---------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""What matchers ask of the nodes of a graph of ATen's operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

aten = torch.ops.aten
_END = 1 << 62  # Slices without an end have a larger one.


class NoMatch(Exception):
    """Says why operations that look like a rotation or an attention are left alone."""


def is_call(node: Any, *targets) -> bool:
    return isinstance(node, Node) and node.op == "call_function" and node.target in targets


def get_value(node: Any) -> Any:
    """Returns the fake tensor of a node, or None."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    return value if isinstance(value, torch.Tensor) else None


def get_shape(node: Any) -> tuple:
    value = get_value(node)
    return () if value is None else tuple(value.shape)


def is_same(a, b) -> bool:
    """Whether two sizes are equal, whatever the values of symbols."""
    return bool(statically_known_true(a == b))


def have_same_shape(a: Sequence, b: Sequence) -> bool:
    return len(a) == len(b) and all(map(is_same, a, b))


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def get_argument(node: Any, number: int, name: str, default=None):
    if len(node.args) > number:
        return node.args[number]
    return node.kwargs.get(name, default)


def is_last(node: Any, dim) -> bool:
    """Whether a dimension of an argument is the last one."""
    return isinstance(dim, int) and dim % max(len(get_shape(node)), 1) == len(
        get_shape(node)) - 1


def peel(node: Any) -> Any:
    """Returns the value before operations that change neither shape nor elements."""
    while True:
        if not isinstance(node, Node) or node.op != "call_function" or not node.args:
            return node
        source = node.args[0]
        if is_call(node, aten.clone.default, aten.alias.default, aten.detach.default,
                   aten.contiguous.default):
            node = source
        elif is_call(node, aten.view.default, aten._unsafe_view.default,
                     aten.reshape.default, aten.expand.default, aten.slice.Tensor) and (
                have_same_shape(get_shape(node), get_shape(source))
                and get_argument(node, 4, "step", 1) == 1):
            node = source
        elif is_call(node, aten._to_copy.default) and _is_plain_copy(node):
            node = source
        else:
            return node


def _is_plain_copy(node: Any) -> bool:
    before, after = get_value(node.args[0]), get_value(node)
    return before is not None and after is not None and (
        before.dtype == after.dtype and before.device == after.device)


class Lanes(NamedTuple):
    """Channels `start`, `start + step`, … of the last dimension of a tensor."""

    source: Any
    start: int
    size: int
    step: int


def find_lanes(node: Any) -> Lanes | None:
    """Returns the channels of a larger tensor that a value has; those of slices of
    slices are of the first tensor."""
    node = peel(node)
    shape = get_shape(node)
    if not shape or not isinstance(shape[-1], int):
        return None
    whole = Lanes(node, 0, shape[-1], 1)
    part = None
    source: Any = None
    if is_call(node, aten.slice.Tensor):
        source = node.args[0]
        start, step = get_argument(node, 2, "start") or 0, get_argument(node, 4, "step", 1)
        if is_last(source, get_argument(node, 1, "dim", 0)) and isinstance(start, int) and (
                isinstance(step, int) and isinstance(get_shape(source)[-1], int)):
            size = get_shape(source)[-1]
            part = (start + size if start < 0 else start), step
    elif getattr(node, "op", "") == "call_function" and (
            getattr(node.target, "__name__", "") == "getitem"):
        split, number = node.args
        if is_call(split, aten.split.Tensor) and is_last(
                split.args[0], get_argument(split, 2, "dim", 0)) and (
                isinstance(split.args[1], int)):
            source, part = split.args[0], (number * split.args[1], 1)
        elif is_call(split, aten.split_with_sizes.default) and is_last(
                split.args[0], get_argument(split, 2, "dim", 0)) and all(
                isinstance(size, int) for size in split.args[1]):
            source, part = split.args[0], (sum(split.args[1][:number]), 1)
        elif is_call(split, aten.unbind.int):
            part, source = _find_selected(split.args[0],
                                          get_argument(split, 1, "dim", 0), number)
    elif is_call(node, aten.select.int) and isinstance(node.args[2], int):
        part, source = _find_selected(*node.args)
    if part is None:
        return whole
    start, step = part
    outer = find_lanes(source)
    if outer is None:
        return None
    return Lanes(outer.source, outer.start + start * outer.step, shape[-1],
                 outer.step * step)


def _find_selected(pairs: Any, dim: int, number: int):
    """`x.view(…, n, 2)[…, i]` has every second channel of x; `x.view(…, 2, n)[…, i, :]`
    has a half."""
    pairs = peel(pairs)
    shape = get_shape(pairs)
    if not is_call(pairs, aten.view.default, aten.reshape.default,
                   aten._unsafe_view.default):
        return None, None
    source = pairs.args[0]
    if len(shape) != len(get_shape(source)) + 1 or not have_same_shape(
            shape[:-2], get_shape(source)[:-1]):
        return None, None
    dim, size = dim % len(shape), shape[dim]
    number = number + size if number < 0 else number
    if dim == len(shape) - 1:
        return (number, size), source
    if dim == len(shape) - 2 and isinstance(shape[-1], int):
        return (number * shape[-1], 1), source
    return None, None


def name_sizes(graph: torch.fx.Graph, node: Any) -> list:
    """Returns the sizes of a tensor for arguments of operators. Symbols are computed
    where the graph is being extended."""
    sizes: list[Any] = []
    for dim, size in enumerate(get_shape(node)):
        if not isinstance(size, int):
            symbol = size
            size = insert(graph, aten.sym_size.int, node, dim, value=symbol)
        sizes.append(size)
    return sizes


def insert(graph: torch.fx.Graph, target, *arguments, value=None) -> Any:
    """Extends a graph. The fake value of the node is computed from those of arguments
    unless it is given."""
    node = graph.call_function(target, arguments)
    if value is None:
        value = target(*torch.fx.node.map_arg(
            arguments, lambda one: one.meta["val"]))
    node.meta["val"] = value
    return node
