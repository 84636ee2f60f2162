# ===- _torch_shapes.py - operators of few elements of PyTorch --------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The rules of PyTorch's operators that change a shape, reduce a dimension, or read
elements of captured tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from .._errors import Error
from . import _functions, _rules
from ._numbers import Number
from ._score_graph import FLOATS, Graph, Node
from ._torch_scalars import SHAPED, Operands, Scalar, load, make_nodes

# ===----------------------------------------------------------------------===#
# Shapes
# ===----------------------------------------------------------------------===#


def _reshape(o: Operands) -> np.ndarray:
    return o.nodes(o.arguments[0]).reshape(o.shape)


def _expand(o: Operands) -> np.ndarray:
    return np.broadcast_to(o.nodes(o.arguments[0]), o.shape)


def _slice(o: Operands) -> np.ndarray:
    nodes, dim = o.nodes(o.arguments[0]), o.named("dim")
    index = [slice(None)] * nodes.ndim
    index[dim] = slice(o.named("start"), o.named("end"), o.named("step"))
    return nodes[tuple(index)]


def _select(o: Operands) -> np.ndarray:
    return np.asarray(o.nodes(o.arguments[0]).take(o.named("index"), o.named("dim")),
                      object)


def _permute(o: Operands) -> np.ndarray:
    return o.nodes(o.arguments[0]).transpose(o.named("dims"))


def _transpose(o: Operands) -> np.ndarray:
    return o.nodes(o.arguments[0]).swapaxes(o.named("dim0"), o.named("dim1"))


def _unbind(o: Operands) -> tuple[np.ndarray, ...]:
    moved = np.moveaxis(o.nodes(o.arguments[0]), o.named("dim"), 0)
    return tuple(np.asarray(one, object) for one in moved)


def _stack(o: Operands) -> np.ndarray:
    return np.stack([o.nodes(one, o.dtype) for one in o.arguments[0]], o.named("dim"))


def _concatenate(o: Operands) -> np.ndarray:
    return np.concatenate([o.nodes(one, o.dtype) for one in o.arguments[0]],
                          o.named("dim"))


# ===----------------------------------------------------------------------===#
# Reductions
# ===----------------------------------------------------------------------===#


def _find_dims(o: Operands, count: int) -> list[int]:
    dims = o.named("dim")
    if isinstance(dims, int):
        dims = [dims]
    return [dim % count for dim in dims] if dims and count else list(range(count))


def _group(o: Operands, nodes: np.ndarray) -> np.ndarray:
    """Returns an array whose rows are reduced to one element each."""
    dims = _find_dims(o, nodes.ndim)
    kept = [dim for dim in range(nodes.ndim) if dim not in dims]
    count = int(np.prod([nodes.shape[dim] for dim in dims]))
    return nodes.transpose([*kept, *dims]).reshape(-1, count)


def _reduce(o: Operands, combine: Callable[[list[Node]], Node],
            dtype: str | None = None) -> np.ndarray:
    rows = _group(o, o.nodes(o.arguments[0], dtype))
    return make_nodes([combine(list(row)) for row in rows], o.shape)


def _fold(o: Operands, op: str, dtype: str, start: Any) -> Callable[[list[Node]], Node]:
    def combine(nodes: list[Node]) -> Node:
        result = nodes[0] if nodes else o.graph.constant(start, dtype)
        for one in nodes[1:]:
            result = o.graph.apply(op, dtype, result, one)
        return result

    return combine


def _sum(o: Operands) -> np.ndarray:
    return _reduce(o, _fold(o, "add", o.dtype, 0), o.dtype)


def _mean(o: Operands) -> np.ndarray:
    add = _fold(o, "add", o.dtype, 0)
    return _reduce(o, lambda nodes: (
        Number(o.graph, o.dtype, add(nodes)) / len(nodes)).node, o.dtype)


def _all_or_any(op: str) -> Callable[[Operands], np.ndarray]:
    def rule(o: Operands) -> np.ndarray:
        def combine(nodes: list[Node]) -> Node:
            result = o.graph.constant(op == "bitwise_and", "i1")
            for number, one in enumerate(map(o.graph.to_bool, nodes)):
                result = _rules.logical(o.graph, op, result, one) if number else one
            return result

        return _reduce(o, combine)

    return rule


def _count_nonzero(o: Operands) -> np.ndarray:
    add = _fold(o, "add", o.dtype, 0)
    return _reduce(o, lambda nodes: add(
        [o.graph.convert(o.graph.to_bool(one), o.dtype) for one in nodes]))


def _extremum(op: str, order: str) -> Callable[[Operands], Any]:
    """The largest or the smallest elements, of a dimension with their indices."""
    def rule(o: Operands) -> Any:
        if isinstance(o.number(1), torch.Tensor):  # Two tensors.
            return o.map(lambda e: e.graph.apply(op, e.dtype, e.node(0), e.node(1)))
        values = _reduce(o, _fold(o, op, o.dtype, 0), o.dtype)
        if "dim" not in o.function._overloadname or op not in _PAIRED:
            return values
        return values, _find_positions(o, order)

    return rule


# Names of operators with indices in their results.
_PAIRED = ("maximum", "minimum")


def _find_positions(o: Operands, order: str) -> np.ndarray:
    """Returns the indices of the first largest or smallest elements."""
    def combine(nodes: list[Node]) -> Node:
        best, index = nodes[0], o.graph.constant(0, "i64")
        for number, one in enumerate(nodes[1:], 1):
            better = o.graph.compare(order, one.dtype, one, best)
            best = o.graph.select(better, one, best)
            index = o.graph.select(better, o.graph.constant(number, "i64"), index)
        return index

    return _reduce(o, combine)


def _take_extremum(op: str) -> Callable[[Operands], np.ndarray]:
    return lambda o: _reduce(o, _fold(o, op, o.dtype, 0), o.dtype)


def _shift_exponents(o: Operands, nodes: list[Node]) -> tuple[list[Number], Number]:
    """Returns numbers less the largest one, and this, which has no derivative."""
    numbers = [Number(o.graph, o.dtype, one) for one in nodes]
    largest = numbers[0]
    for one in numbers[1:]:
        largest = largest.call("maximum", one)
    largest = Number(o.graph, o.dtype, o.graph.detach(largest.node))
    largest = largest.make(0).where(_functions.is_infinite(largest), largest)
    return [one - largest for one in numbers], largest


def _add(numbers: list[Number]) -> Number:
    result = numbers[0]
    for one in numbers[1:]:
        result = result + one
    return result


def _log_sum_exp(o: Operands) -> np.ndarray:
    def combine(nodes: list[Node]) -> Node:
        numbers, largest = _shift_exponents(o, nodes)
        return (_add([one.call("exp") for one in numbers]).call("log") + largest).node

    return _reduce(o, combine, o.dtype)


def _softmax(is_log: bool) -> Callable[[Operands], np.ndarray]:
    def rule(o: Operands) -> np.ndarray:
        nodes = np.atleast_1d(o.nodes(o.arguments[0], o.dtype))
        dim = o.named("dim") % nodes.ndim
        moved = np.moveaxis(nodes, dim, -1)
        results = []
        for at in np.ndindex(moved.shape[:-1]):
            numbers, _ = _shift_exponents(o, list(moved[at]))
            powers = [one.call("exp") for one in numbers]
            total = _add(powers)
            results += [(one - total.call("log") if is_log else power / total).node
                        for one, power in zip(numbers, powers)]
        return np.moveaxis(make_nodes(results, moved.shape), -1, dim).reshape(o.shape)

    return rule


def _norm(o: Operands) -> np.ndarray:
    order = o.named("ord")
    if order not in (1, 2):
        raise Error(f"a norm of the order {order} has no expression of scalars, expected 1 "
                    "or 2")

    def combine(nodes: list[Node]) -> Node:
        numbers = [Number(o.graph, o.dtype, one) for one in nodes]
        if order == 1:
            return _add([abs(one) for one in numbers]).node
        return _add([one * one for one in numbers]).call("sqrt").node

    return _reduce(o, combine, o.dtype)


def _accumulate(op: str) -> Callable[[Operands], np.ndarray]:
    def rule(o: Operands) -> np.ndarray:
        nodes = np.atleast_1d(o.nodes(o.arguments[0], o.dtype))
        moved = np.moveaxis(nodes.copy(), o.named("dim") % nodes.ndim, 0)
        for number in range(1, len(moved)):
            for at in np.ndindex(moved.shape[1:]):
                moved[(number, *at)] = o.graph.apply(
                    op, o.dtype, moved[(number - 1, *at)], moved[(number, *at)])
        return np.moveaxis(moved, 0, o.named("dim") % nodes.ndim).reshape(o.shape)

    return rule


def _product(o: Operands) -> np.ndarray:
    """Products of vectors and matrices: of the last dimension and the one before it."""
    left, right = (o.nodes(one, o.dtype) for one in o.arguments[:2])
    rows = left.reshape((1,) * (2 - left.ndim) + left.shape)
    columns = right[:, None] if right.ndim == 1 else right
    result = np.empty((*rows.shape[:-1], columns.shape[-1]), object)
    add = _fold(o, "add", o.dtype, 0)
    for *batch, row, column in np.ndindex(result.shape):
        result[(*batch, row, column)] = add([
            o.graph.apply("mul", o.dtype, x, y)
            for x, y in zip(rows[(*batch, row)], columns[(*batch, slice(None), column)])])
    return result.reshape(o.shape)


# ===----------------------------------------------------------------------===#
# Elements of tensors
# ===----------------------------------------------------------------------===#


def _choose(graph: Graph, nodes: np.ndarray, index: Node) -> np.ndarray:
    """Returns the part of an array at an index of its first dimension."""
    if not index.is_integer:
        raise Error(f"a tensor is indexed by a number of type {index.dtype}, expected "
                    "integers")
    if index.op == "constant":
        return np.asarray(nodes[index.payload], object)
    result, size = np.asarray(nodes[-1], object), len(nodes)
    for number in reversed(range(size - 1)):
        is_here = graph.make("bitwise_or", tuple(
            graph.compare("eq", index.dtype, index, graph.constant(one, index.dtype))
            for one in (number, number - size)), "i1")
        result = make_nodes([graph.select(is_here, one, other) for one, other in zip(
            np.asarray(nodes[number], object).flat, result.flat)], result.shape)
    return result


def choose(array: Scalar, index) -> torch.Tensor:
    """Indexes a tensor of expressions by numbers of Python, ranges, and expressions."""
    index = index if isinstance(index, tuple) else (index,)
    if not any(isinstance(one, Scalar) and one.node.op != "constant" for one in index):
        return array[index]
    if any(one is Ellipsis for one in index):
        raise Error("'...' and an expression do not index a tensor that a function makes")
    # Ranges stay, and expressions are applied afterwards, from the last dimension on.
    part: Any = array[
        tuple(slice(None) if isinstance(one, Scalar) else one for one in index)]
    nodes, left = part.nodes, [one for one in index if not isinstance(one, int)]
    for dim, one in reversed(list(enumerate(left))):
        if isinstance(one, Scalar):
            nodes = _choose(array.of.graph, np.moveaxis(nodes, dim, 0), one.node)
    return Scalar(nodes, array.of, array.device)


def _index(o: Operands) -> np.ndarray:
    array, indices = o.arguments
    given = [one for one in indices if one is not None]
    if not all(isinstance(one, torch.Tensor) and not one.dim() for one in given):
        raise Error("tensors are indexed by single numbers only in functions of scores")
    if not isinstance(array, Scalar):
        return make_nodes([load(o.trace, array, indices)], ())
    nodes = array.nodes
    for dim in reversed(range(len(indices))):
        if indices[dim] is not None:
            index = o.nodes(indices[dim]).item()
            nodes = _choose(o.graph, np.moveaxis(nodes, dim, 0), index)
    return nodes.reshape(o.shape)


def _read_all(o: Operands, array, dim: int, index: np.ndarray,
              find: Callable[[tuple[int, ...]], tuple[Any, list[Any]]]) -> np.ndarray:
    """Reads an element of an array for each element of the result. `find` returns the
    index of `dim` and the other ones."""
    results = []
    for at in np.ndindex(o.shape):
        where, others = find(at)
        indices = [*others[:dim], Scalar(where, o.trace, o.trace.device), *others[dim:]]
        if isinstance(array, Scalar):
            part = array.nodes[(*others[:dim], slice(None), *others[dim:])]
            results.append(_choose(o.graph, part, where).item())
        else:
            results.append(load(o.trace, array, indices))
    return make_nodes(results, o.shape)


def _gather(o: Operands) -> np.ndarray:
    array, index = o.arguments[0], o.nodes(o.named("index"))
    dim = o.named("dim") % max(array.dim(), 1)
    return _read_all(o, array, dim, index, lambda at: (
        index[at], [one for number, one in enumerate(at) if number != dim]))


def _index_select(o: Operands) -> np.ndarray:
    array, index = o.arguments[0], np.atleast_1d(o.nodes(o.named("index")))
    dim = o.named("dim") % max(array.dim(), 1)
    return _read_all(o, array, dim, index, lambda at: (
        index[at[dim]], [one for number, one in enumerate(at) if number != dim]))


def _embedding(o: Operands) -> np.ndarray:
    index = o.nodes(o.named("indices"))
    return _read_all(o, o.arguments[0], 0, index, lambda at: (index[at[:-1]], [at[-1]]))


def _take(o: Operands) -> np.ndarray:
    """An index of the elements in order."""
    array, index = o.arguments[0], o.nodes(o.arguments[1])
    if array.dim() != 1:
        raise Error(f"take of a captured tensor of {array.dim()} dimensions has no "
                    "expression of scalars; index its dimensions")
    return _read_all(o, array, 0, index, lambda at: (index[at], []))


def _is_in(o: Operands) -> np.ndarray:
    elements, tests = o.arguments[:2]
    common = [one if isinstance(one, torch.Tensor) else torch.tensor(one)
              for one in (elements, tests)]
    dtype = max((o.nodes(one).flat[0].dtype for one in common if one.numel()),
                key=lambda one: (one in FLOATS, one))
    values = list(o.nodes(common[1], dtype).flat)
    results = []
    for node in o.nodes(common[0], dtype).flat:
        found = o.graph.constant(False, "i1")
        for number, value in enumerate(values):
            is_equal = o.graph.compare("eq", dtype, node, value)
            found = is_equal if not number else _rules.logical(
                o.graph, "bitwise_or", found, is_equal)
        results.append(o.graph.negate(found) if o.named("invert") else found)
    return make_nodes(results, o.shape)


def _bucketize(o: Operands) -> np.ndarray:
    """The number of boundaries below a number, or not above it."""
    is_search = o.function._schema.name.endswith("searchsorted")
    boundaries, value = o.arguments[:2] if is_search else o.arguments[1::-1]
    if boundaries.dim() != 1 or o.named("sorter") is not None:
        raise Error("boundaries have one dimension and are sorted in functions of scores")
    order = "le" if o.named("right") or o.named("side") == "right" else "lt"
    limits, values = o.nodes(boundaries), o.nodes(value, None if isinstance(
        value, torch.Tensor) else "f64" if isinstance(value, float) else "i64")
    add = _fold(o, "add", o.dtype, 0)
    results = []
    for node in values.flat:
        dtype = max((node.dtype, *(one.dtype for one in limits[:1])),
                    key=lambda one: (one in FLOATS, one))
        results.append(add([o.graph.convert(o.graph.compare(
            order, dtype, one, node), o.dtype) for one in limits]))
    return make_nodes(results, o.shape)


def _log_sigmoid(o: Operands) -> tuple[np.ndarray, np.ndarray]:
    result = o.map(lambda e: _functions.call(e.graph, "log_sigmoid", e.dtype, [e.node(0)]))
    return result, make_nodes([], (0,))


def _make_rules() -> dict[str, Callable[[Operands], Any]]:
    rules: dict[str, Callable[[Operands], Any]] = {
        "slice": _slice, "select": _select, "permute": _permute, "transpose": _transpose,
        "t": lambda o: o.nodes(o.arguments[0]).T, "unbind": _unbind, "stack": _stack,
        "cat": _concatenate, "sum": _sum, "mean": _mean,
        "prod": lambda o: _reduce(o, _fold(o, "mul", o.dtype, 1), o.dtype),
        "any": _all_or_any("bitwise_or"), "all": _all_or_any("bitwise_and"),
        "count_nonzero": _count_nonzero, "amax": _take_extremum("maximum"),
        "amin": _take_extremum("minimum"), "max": _extremum("maximum", "gt"),
        "min": _extremum("minimum", "lt"),
        "argmax": lambda o: _find_positions(o, "gt"),
        "argmin": lambda o: _find_positions(o, "lt"), "logsumexp": _log_sum_exp,
        "_softmax": _softmax(False), "_log_softmax": _softmax(True),
        "linalg_vector_norm": _norm, "cumsum": _accumulate("add"),
        "cumprod": _accumulate("mul"), "index": _index, "gather": _gather,
        "index_select": _index_select, "embedding": _embedding, "take": _take,
        "isin": _is_in, "bucketize": _bucketize, "searchsorted": _bucketize,
        "log_sigmoid_forward": _log_sigmoid}
    rules.update(dict.fromkeys(
        ("view", "reshape", "_unsafe_view", "_reshape_alias", "unsqueeze", "squeeze"), _reshape))
    rules.update(dict.fromkeys(("expand", "broadcast_to"), _expand))
    rules.update(dict.fromkeys(("dot", "vdot", "mv", "mm", "bmm"), _product))
    return rules


SHAPED.update(_make_rules())
