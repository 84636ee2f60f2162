# ===- _torch_scalars.py - numbers of PyTorch as expressions ---------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Tensors of PyTorch that have expressions in place of memory: mostly single numbers, but
also few elements, such as a row of a captured tensor, whose operations are unrolled.

Types and shapes are those of tensors of the device 'meta', so that promotion is PyTorch's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from .._errors import Error
from ._score_graph import Node, name_in_frameworks, name_type
from ._trace import Trace, refuse_branch

# Elements of captured tensors that one operation may read for a pair.
MAX_ELEMENTS = 256
# Operators of attention-gym.
_APPROXIMATE = {"approx::tanh": "tanh"}
# Operators that ask for a number of Python.
_READS = ("_local_scalar_dense", "is_nonzero", "equal", "item")
# Arguments by name that rules read, or that do not change the numbers of a result.
_KEYWORDS = frozenset((
    "alpha", "approximate", "assume_unique", "beta", "decimals", "device", "dim", "dtype",
    "eps", "fill_value", "implicit", "invert", "keepdim", "layout", "max", "memory_format",
    "min", "nan", "neginf", "non_blocking", "out_int32", "pin_memory", "posinf", "right",
    "rounding_mode", "side", "sorter", "threshold", "value"))


class Scalar(torch.Tensor):
    """A tensor without memory, which has an expression for each element."""

    nodes: np.ndarray
    of: Trace
    is_view: bool

    @staticmethod
    def __new__(cls, nodes: Node | np.ndarray, trace: Trace, device, is_view=False):
        array = make_nodes([nodes], ()) if isinstance(nodes, Node) else nodes
        dtype = next(iter(array.flat)).dtype if array.size else "f32"
        self = torch.Tensor._make_wrapper_subclass(
            cls, array.shape, dtype=getattr(torch, name_in_frameworks(dtype)),
            device=device)
        self.nodes, self.of, self.is_view = array, trace, is_view
        return self

    __torch_function__: Any = torch._C._disabled_torch_function_impl

    @property
    def node(self) -> Node:
        """The expression of a single number."""
        return self.nodes.item()

    def __repr__(self, **_):
        return f"Scalar({self.dtype}, {tuple(self.shape)})"

    def tolist(self):
        return [self.item()] if not self.dim() else [one.tolist() for one in self]

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), keywords=None):
        keywords = keywords or {}
        first = next(one for one in torch.utils._pytree.tree_leaves(
            (arguments, keywords)) if isinstance(one, cls))
        name = function._schema.name
        name = _APPROXIMATE.get(name, name.removeprefix("aten::"))
        if name in _READS:
            return _read(arguments[0])
        is_in_place = not has_rule(name) and name.endswith("_") and isinstance(
            arguments[0], cls)
        name = name[:-1] if is_in_place else name
        if not has_rule(name):
            raise Error(f"{function._schema.name} has no expression of scalars")
        unknown = keywords.keys() - _KEYWORDS
        if unknown:
            raise Error(f"{function._schema.name} has no expression of scalars with the "
                        f"argument {min(unknown)}")
        operands = Operands(first.of, function, arguments, keywords)
        operands.infer()
        result = evaluate(name, operands)
        if isinstance(result, tuple):
            return tuple(cls(one, first.of, first.device) for one in result)
        if not is_in_place:
            return cls(result, first.of, first.device, function.is_view)
        if arguments[0].is_view:
            raise Error(f"{function._schema.name} changes a view of another tensor; write "
                        "a new tensor instead")
        graph = first.of.graph
        arguments[0].nodes = make_nodes(
            [graph.convert(one, operands.dtype) for one in result.flat], result.shape)
        return arguments[0]


def _read(value) -> Any:
    """Returns a number that is known when a function is traced."""
    if isinstance(value, Scalar) and value.nodes.size == 1:
        node = value.nodes.flat[0]
        if node.op == "constant":
            return node.payload
    refuse_branch()


def make_nodes(nodes: Sequence[Node], shape: tuple[int, ...]) -> np.ndarray:
    """Returns an array of nodes."""
    result = np.empty(len(nodes), object)
    result[:] = nodes
    return result.reshape(shape)


class Operands:
    """The arguments of an operator, and the type and shape of its result."""

    dtype: str
    shape: tuple[int, ...] = ()

    def __init__(self, trace: Trace, function, arguments: tuple, keywords: dict):
        self.trace, self.graph, self.function = trace, trace.graph, function
        self.arguments, self.keywords = arguments, keywords
        self.common_type: str | None = None

    def infer(self) -> None:
        """Finds the type and the shape of the result."""
        if self.function.namespace != "aten":
            self.dtype = self.arguments[0].node.dtype
            return
        arguments, keywords = torch.utils._pytree.tree_map(
            to_meta, (self.arguments, self.keywords))
        result = self.function(*arguments, **keywords)
        if isinstance(result, (tuple, list)) and result:
            result = result[0]
        if not isinstance(result, torch.Tensor):
            raise Error(f"{self.function._schema.name} does not give a tensor")
        self.dtype, self.shape = name_type(result.dtype), tuple(result.shape)
        check_size(self.function._schema.name, self.shape)

    def number(self, index: int, name: str = "", default: Any = None) -> Any:
        """Returns an argument that is no tensor."""
        if index < len(self.arguments):
            return self.arguments[index]
        return self.keywords.get(name, default)

    def named(self, name: str) -> Any:
        """Returns an argument by its name in the operator's schema."""
        for number, argument in enumerate(self.function._schema.arguments):
            if argument.name == name:
                default = argument.default_value if argument.has_default_value() else None
                return self.number(number, name, default)
        return None

    def node(self, index: int, dtype: str | None = None) -> Node:
        return self.to_node(self.arguments[index], dtype or self.dtype)

    def own(self, index: int) -> Node:
        """Returns a number in the type that it has."""
        return self.arguments[index]

    def to_node(self, value, dtype: str) -> Node:
        if isinstance(value, Node):
            return self.graph.convert(value, dtype)
        return self.graph.constant(value, dtype)

    def nodes(self, value, dtype: str | None = None) -> np.ndarray:
        """Returns the elements of a tensor, in a type or their own."""
        if not isinstance(value, torch.Tensor):
            return make_nodes([self.to_node(value, dtype or self.dtype)], ())
        array = to_nodes(self.trace, value)
        if dtype is None:
            return array
        return make_nodes([self.graph.convert(one, dtype) for one in array.flat],
                          array.shape)

    def map(self, rule: Callable[[Operands], Node]) -> np.ndarray:
        """Applies a rule of single numbers to each element of the broadcast arguments."""
        self.common_type = _find_common_type(self.arguments)
        arrays = {number: to_nodes(self.trace, one)
                  for number, one in enumerate(self.arguments)
                  if isinstance(one, torch.Tensor)}
        named = {name: to_nodes(self.trace, one) for name, one in self.keywords.items()
                 if isinstance(one, torch.Tensor)}
        results = []
        shape = np.broadcast_shapes(*(one.shape for one in (*arrays.values(),
                                                            *named.values())))
        wide = {number: np.broadcast_to(one, shape) for number, one in arrays.items()}
        wide_named = {name: np.broadcast_to(one, shape) for name, one in named.items()}
        for at in np.ndindex(shape):
            element = Operands(self.trace, self.function, tuple(
                wide[number][at] if number in wide else one
                for number, one in enumerate(self.arguments)), {
                    **self.keywords, **{name: one[at] for name, one in wide_named.items()}})
            element.dtype, element.common_type = self.dtype, self.common_type
            results.append(rule(element))
        nodes = make_nodes(results, shape)
        # The result of, say, new_zeros has a shape of its own.
        return np.broadcast_to(nodes, self.shape) if self.shape != shape else nodes


def check_size(what: str, shape: tuple[int, ...]) -> None:
    count = int(np.prod(shape))
    if count > MAX_ELEMENTS:
        raise Error(f"{what} has a result of the shape {shape}, which is {count} numbers "
                    f"for each pair of a query and a key, expected at most {MAX_ELEMENTS}")


def to_meta(value):
    """Returns a tensor with the type and the shape of another one."""
    if isinstance(value, torch.Tensor):
        return torch.empty(value.shape, dtype=value.dtype, device="meta")
    return torch.device("meta") if isinstance(value, torch.device) else value


def _find_common_type(arguments: tuple) -> str | None:
    """Returns the type in which two operands are compared."""
    if len(arguments) < 2 or not all(isinstance(one, (torch.Tensor, int, float))
                                     for one in arguments[:2]):
        return None
    return name_type(torch.result_type(*map(to_meta, arguments[:2])))


# ===----------------------------------------------------------------------===#
# Captured tensors
# ===----------------------------------------------------------------------===#


def to_index(trace: Trace, index) -> Node:
    """Returns an index of a captured tensor."""
    if isinstance(index, Scalar):
        node = index.node
    elif isinstance(index, torch.Tensor):
        node = load(trace, index, ())
    else:
        node = trace.graph.constant(index, "i64")
    if not node.is_integer or node.dtype == "u8":
        why = ", which PyTorch takes for a mask" if node.dtype == "u8" else ""
        raise Error(f"a captured tensor is indexed by a number of type {node.dtype}{why}; "
                    "convert it to torch.int64")
    return node


def load(trace: Trace, array: torch.Tensor, indices: Sequence[Any]) -> Node:
    """Returns the element of a captured tensor."""
    nodes = [to_index(trace, index) for index in indices]
    if len(nodes) != array.dim():
        raise Error(f"a captured tensor of {array.dim()} dimensions is used with "
                    f"{len(nodes)} indices, where a single number is needed")
    return trace.load(array, tuple(nodes))


def to_nodes(trace: Trace, array: torch.Tensor) -> np.ndarray:
    """Returns all elements of a tensor, whose shape becomes part of the expression."""
    if isinstance(array, Scalar):
        return array.nodes
    if not array.dim():
        return make_nodes([load(trace, array, ())], ())
    trace.reads_sizes = True
    shape = tuple(map(int, array.shape))
    check_size("an operation of a captured tensor", shape)
    return make_nodes([load(trace, array, at) for at in itertools.product(
        *map(range, shape))], shape)


# ===----------------------------------------------------------------------===#
# Rules
# ===----------------------------------------------------------------------===#

# Rules of single numbers, which are applied to each element, and others. `_torch_rules`
# and `_torch_shapes` fill them.
ELEMENTWISE: dict[str, Callable[[Operands], Node]] = {}
SHAPED: dict[str, Callable[[Operands], Any]] = {}


def has_rule(name: str) -> bool:
    return name in ELEMENTWISE or name in SHAPED


def evaluate(name: str, operands: Operands) -> Any:
    """Returns the nodes of a result, or of several."""
    if name in SHAPED:
        return SHAPED[name](operands)
    return operands.map(ELEMENTWISE[name])
