# ===- _rotations.py - rotations of a compiled graph ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Finds rotary embeddings in a graph of ATen's operators."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import torch
from torch.fx import Node

from .._dtypes import name_of
from .._rope import FLOATS
from ._graph import (
    Lanes, NoMatch, aten, find_lanes, get_argument, get_shape, get_value, have_same_shape,
    insert, is_call, is_last, is_number, is_same, name_sizes, peel)
from ._kernels import Rotation, find_kernels

# Operations of one tensor that compute each element from that of the same index.
_ELEMENTWISE = (aten.cos.default, aten.sin.default, aten.neg.default,
                aten._to_copy.default, torch.ops.prims.convert_element_type.default)
_VIEWS = (aten.view.default, aten._unsafe_view.default, aten.reshape.default)


class Match(NamedTuple):
    x: Any
    cos: Any  # one element for each pair
    sin: Any
    pairing: str


def _find_joined(node: Any) -> Any:
    """Returns the two parts of a tensor, and whether they alternate, as those of `stack`
    do, instead of being halves."""
    node = peel(node)
    if is_call(node, aten.cat.default) and is_last(node, get_argument(node, 1, "dim", 0)):
        parts = list(node.args[0])
        if len(parts) == 2 and is_same(get_shape(parts[0])[-1], get_shape(parts[1])[-1]):
            return parts, False
    if is_call(node, *_VIEWS):
        pairs = peel(node.args[0])
        shape = get_shape(pairs)
        if len(shape) != len(get_shape(node)) + 1 or not have_same_shape(
                shape[:-2], get_shape(node)[:-1]):
            return None
        if is_call(pairs, aten.stack.default) and len(pairs.args[0]) == 2:
            dim = get_argument(pairs, 1, "dim", 0) % len(shape)
            if dim >= len(shape) - 2:
                return list(pairs.args[0]), dim == len(shape) - 1
        if is_call(pairs, aten.cat.default) and len(pairs.args[0]) == 2 and is_last(
                pairs, get_argument(pairs, 1, "dim", 0)) and all(
                is_call(one, aten.unsqueeze.default) and is_last(one, one.args[1])
                for one in pairs.args[0]):
            return [one.args[0] for one in pairs.args[0]], True
    return None


def _find_doubled(node: Any) -> tuple[Node, bool] | None:
    """Returns the tensor whose elements a tensor has twice, and whether equal elements
    are neighbours."""
    node = peel(node)
    joined = _find_joined(node)
    if joined is not None:
        (first, second), alternate = joined
        return (first, alternate) if peel(first) is peel(second) else None
    if is_call(node, *_VIEWS):  # repeat_interleave
        wide = peel(node.args[0])
        shape = get_shape(wide)
        if not is_call(wide, aten.expand.default) or len(shape) != len(
                get_shape(node)) + 1 or not have_same_shape(shape[:-2],
                                                            get_shape(node)[:-1]):
            return None
        narrow = get_shape(wide.args[0])
        if shape[-1] == 2 and len(narrow) == len(shape) and narrow[-1] == 1 and (
                have_same_shape(narrow[:-1], shape[:-1])) and is_call(
                wide.args[0], aten.unsqueeze.default):
            return wide.args[0].args[0], True
    return None


def _halve(graph: torch.fx.Graph, table: Any) -> tuple[Node, bool] | None:
    """Returns the elements of a table that differ, and whether equal ones were
    neighbours. The table is a function of each element of a tensor that has all elements
    twice."""
    node: Any = table
    while True:
        node = peel(node)
        doubled = _find_doubled(node)
        if doubled is not None:
            count = get_shape(table)[-1] // 2
            start, step, end = (0, 2, 2 * count) if doubled[1] else (0, 1, count)
            dim = len(get_shape(table)) - 1
            return insert(graph, aten.slice.Tensor, table, dim, start, end,
                          step), doubled[1]
        if not isinstance(node, Node) or node.op != "call_function" or not node.args:
            return None
        arguments: Any = node.args
        source = arguments[0]
        if is_call(node, *_ELEMENTWISE):
            node = source
        elif is_call(node, aten.mul.Tensor, aten.mul.Scalar, aten.div.Tensor):
            if not is_number(arguments[1]) and get_shape(arguments[1]) != ():
                return None
            node = source
        elif is_call(node, aten.unsqueeze.default) and arguments[1] % len(
                get_shape(node)) < len(get_shape(source)):
            node = source
        elif is_call(node, aten.expand.default) and get_shape(source)[-1:] == (
                get_shape(node)[-1:]):
            node = source
        elif is_call(node, aten.slice.Tensor) and not is_last(
                source, get_argument(node, 1, "dim", 0)):
            node = source
        elif is_call(node, aten.transpose.int) and not any(
                is_last(node, dim) for dim in arguments[1:3]):
            node = source
        elif is_call(node, aten.index.Tensor) and len(arguments[1]) < len(
                get_shape(source)):
            node = source  # Rows of a table.
        else:
            return None


def _get_products(node: Any) -> Any:
    node = peel(node)
    if not is_call(node, aten.mul.Tensor):
        return None
    return [peel(one) for one in node.args]


def _find_negated(node: Any) -> Any:
    node = peel(node)
    return peel(node.args[0]) if is_call(node, aten.neg.default) else None


def _match_rotated(graph: torch.fx.Graph, node: Any) -> Match | None:
    """x * cos + cat(-x2, x1) * sin"""
    if get_argument(node, 2, "alpha", 1) != 1 or len(node.args) < 2:
        return None
    products = [_get_products(one) for one in node.args[:2]]
    if None in products:
        return None
    for first, second in (products, products[::-1]):
        for rotated, sin in (second, second[::-1]):
            joined = _find_joined(rotated)
            if joined is None:
                continue
            (negated, other), alternate = joined
            is_minus = is_call(node, aten.sub.Tensor)
            if is_minus and first is not products[0]:
                continue
            inner = _find_negated(other if is_minus else negated)
            if inner is None:
                continue
            x2, x1 = find_lanes(inner), find_lanes(negated if is_minus else other)
            if is_minus:
                x2, x1 = find_lanes(negated), find_lanes(inner)
            for x, cos in (first, first[::-1]):
                if _are_parts(x, x1, x2, alternate):
                    return _match_tables(graph, x, cos, sin, alternate)
    return None


def _are_parts(x: Any, x1: Lanes | None, x2: Lanes | None, alternate: bool) -> bool:
    """Whether two values are the halves of a tensor, or its even and odd channels."""
    whole = find_lanes(x)
    if whole is None or x1 is None or x2 is None or whole.size % 2:
        return False
    half = whole.size // 2
    offset, step = (1, 2) if alternate else (half, 1)
    return x1 == Lanes(whole.source, whole.start, half, whole.step * step) and (
        x2 == Lanes(whole.source, whole.start + offset * whole.step, half,
                    whole.step * step))


def _match_tables(graph, x: Any, cos: Any, sin: Any, alternate: bool) -> Match:
    tables = []
    for name, table in (("cos", cos), ("sin", sin)):
        if not isinstance(table, Node) or not have_same_shape(get_shape(table)[-1:],
                                                              get_shape(x)[-1:]):
            raise NoMatch(f"{name} is not a table as wide as the rotated channels")
        half = _halve(graph, table)
        if half is None:
            raise NoMatch(f"nothing in the graph shows that {name} has the same elements "
                          "for both channels of a pair")
        if half[1] != alternate:
            raise NoMatch(f"equal elements of {name} are not those of the channels that "
                          "are rotated together")
        tables.append(half[0])
    cos, sin = tables
    return Match(x, cos, sin, "interleaved" if alternate else "half")


def _match_halves(node: Any) -> Match | None:
    """cat(x1 * cos - x2 * sin, x2 * cos + x1 * sin)"""
    joined = _find_joined(node)
    if joined is None:
        return None
    (first, second), alternate = joined
    first, second = peel(first), peel(second)
    if not (is_call(first, aten.sub.Tensor) and is_call(second, aten.add.Tensor)) or any(
            get_argument(one, 2, "alpha", 1) != 1 for one in (first, second)):
        return None
    products = [_get_products(one) for one in (*first.args[:2], *second.args[:2])]
    if None in products:
        return None
    for x1, cos in (products[0], products[0][::-1]):
        for x2, sin in (products[1], products[1][::-1]):
            for a, b in ((products[2], products[3]), (products[3], products[2])):
                if _is_pair(a, x2, cos) and _is_pair(b, x1, sin):
                    x = _find_whole(find_lanes(x1), find_lanes(x2), alternate)
                    if x is not None:
                        return Match(x, cos, sin,
                                     "interleaved" if alternate else "half")
    return None


def _is_pair(products: list, x: Any, table: Any) -> bool:
    """Whether factors are a value, perhaps sliced again, and a table."""
    return any(b is table and isinstance(a, Node) and (
        a is x or find_lanes(a) == find_lanes(x)) for a, b in (products, products[::-1]))


def _find_whole(x1: Lanes | None, x2: Lanes | None, alternate: bool) -> Any:
    """Returns the tensor whose parts two values are."""
    if x1 is None or x2 is None or x1.source is not x2.source:
        return None
    whole = Lanes(x1.source, 0, 2 * x1.size, 1)
    if get_shape(x1.source)[-1] != whole.size:
        return None
    return x1.source if _are_parts(x1.source, x1, x2, alternate) else None


def _align(graph: torch.fx.Graph, table: Any, x: Any, heads: int) -> Any:
    """Returns a table [batch, tokens, pairs] of one [batch, tokens, pairs] with a
    dimension 1 for the heads."""
    rank = len(get_shape(table))
    for _ in range(4 - rank):
        table = insert(graph, aten.unsqueeze.default, table, 0)
    table = insert(graph, aten.squeeze.dim, table, heads)
    sizes = name_sizes(graph, x)
    return insert(graph, aten.expand.default, table,
                  [sizes[0], sizes[3 - heads], get_shape(table)[-1]])


def _find_heads(x: Any, *tables: Any) -> int:
    """Returns the dimension that tables do not have."""
    shape = get_shape(x)
    if len(shape) != 4:
        raise NoMatch(f"it rotates a tensor of {len(shape)} dimensions, expected 4")
    for dim in (1, 2):
        if isinstance(shape[dim], int) and all(
                _get_size(table, dim) == 1 for table in tables):
            return dim
    raise NoMatch("the dimension of heads is not constant, or tables differ by head")


def _get_size(table: Any, dim: int):
    shape = get_shape(table)
    dim -= 4 - len(shape)
    return 1 if dim < 0 else shape[dim]


def _check(node: Any, match: Match) -> None:
    values = [get_value(one) for one in (node, match.x, match.cos, match.sin)]
    result, x, cos, sin = values
    if result is None or x is None or cos is None or sin is None:
        raise NoMatch("the types of its tensors are not known")
    if any(value.device.type != "cpu" for value in values if value is not None):
        raise NoMatch(f"it is on the device '{x.device}', and only graphs on the CPU are "
                      "replaced")
    if result.dtype != x.dtype:
        raise NoMatch(f"x is of {x.dtype} and the result of {result.dtype}")
    if cos.dtype != sin.dtype or not {name_of(x.dtype), name_of(cos.dtype)} <= set(FLOATS):
        raise NoMatch(f"it has tensors of {x.dtype}, {cos.dtype} and {sin.dtype}")
    if not have_same_shape(result.shape, x.shape) or max(cos.dim(), sin.dim()) > 4:
        raise NoMatch("its tables have more elements than x")
    pairs = x.shape[-1] // 2
    if any(value.dim() == 0 or value.shape[-1] != pairs for value in (cos, sin)):
        raise NoMatch("its tables do not have an element for each pair of channels")


def find_rotation(graph: torch.fx.Graph, node: Any) -> Match | None:
    """Returns the rotation whose result a node is."""
    if is_call(node, aten.add.Tensor, aten.sub.Tensor):
        match = _match_rotated(graph, node)
    elif is_call(node, aten.cat.default, *_VIEWS):
        match = _match_halves(node)
    else:
        return None
    if match is not None:
        _check(node, match)
    return match


def _find_padded(node: Any, match: Match) -> tuple[Node, Node] | None:
    """Returns the concatenation of rotated channels and the others of a head, and the
    tensor of all of them."""
    window = peel(match.x)
    whole = window.args[0] if is_call(window, aten.slice.Tensor) else None
    lanes, all_lanes = find_lanes(window), find_lanes(whole)
    if whole is None or lanes is None or all_lanes is None or len(node.users) != 1 or (
            lanes.step != 1 or lanes[:2] != all_lanes[:2]):
        return None
    rest = Lanes(lanes.source, lanes.start + lanes.size, all_lanes.size - lanes.size, 1)
    user, = node.users
    if is_call(user, aten.cat.default) and len(user.args[0]) == 2 and (
            user.args[0][0] is node) and is_last(
            user, get_argument(user, 1, "dim", 0)) and (
            find_lanes(user.args[0][1]) == rest):
        return user, whole
    return None


def replace_rotation(graph: torch.fx.Graph, node: Any, match: Match) -> str:
    """Replaces a rotation and returns what it is. New nodes are before the one that they
    replace."""
    heads = _find_heads(match.x, match.cos, match.sin)
    x, replaced = match.x, node
    padded = _find_padded(node, match)
    if padded is not None:
        replaced, x = padded
    shape, value = get_shape(x), get_value(x)
    pairs = get_shape(match.cos)[-1]
    assert value is not None
    of = Rotation(match.pairing, int(shape[heads]), int(shape[-1]), int(pairs),
                  name_of(value.dtype), name_of(get_value(match.cos).dtype))
    kernels = find_kernels(of)
    with graph.inserting_before(replaced):
        tables = [_align(graph, table, x, heads) for table in (match.cos, match.sin)]
        rows = insert(graph, aten.transpose.int, x, 1, 2) if heads == 1 else x
        results = graph.call_function(torch.ops.posenc.call.default,
                                      ([rows, *tables], kernels, "rotate"))
        result: Any = graph.call_function(operator.getitem, (results, 0))
        result.meta["val"] = torch.empty_like(rows.meta["val"],
                                              memory_format=torch.contiguous_format)
        results.meta["val"] = [result.meta["val"]]
        if heads == 1:
            result = insert(graph, aten.transpose.int, result, 1, 2)
    replaced.replace_all_uses_with(result)
    return (f"{of.pairing} pairs of {2 * of.pairs} of {of.dim} channels, {of.heads} heads, "
            f"{of.dtype}")
