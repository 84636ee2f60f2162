# ===- _torch_scalars.py - numbers of PyTorch as expressions ---------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Tensors of PyTorch that have an expression in place of memory, and the rules of its
operators. Types are those of tensors of the device 'meta', so that promotion is PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .._dtypes import FRAMEWORK_NAMES, name_of
from .._errors import Error
from . import _rules
from ._graph import COMPARISONS, Node
from ._trace import Trace, refuse_branch

# Operators that return their first operand, or a number that it only has the type of.
_SAME = ("alias", "clone", "lift_fresh", "positive", "contiguous", "view",
         "lift")
_FILLED = {"zeros_like": 0, "ones_like": 1, "new_zeros": 0, "new_ones": 1,
           "full_like": None, "new_full": None}
_LOGICAL = {"logical_and": "bitwise_and", "logical_or": "bitwise_or",
            "logical_xor": "bitwise_xor"}
_BITS = {"__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor"}
_SHIFTS = {"bitwise_left_shift": "shift_left", "bitwise_right_shift": "shift_right",
           "__lshift__": "shift_left", "__rshift__": "shift_right"}
# Arguments by name that rules read, or that do not change the numbers of a result.
_KEYWORDS = frozenset((
    "alpha", "approximate", "beta", "decimals", "device", "dtype", "fill_value", "layout",
    "max", "memory_format", "min", "non_blocking", "pin_memory", "rounding_mode",
    "threshold"))
_UNARY = {"arctan": "atan", "special_erf": "erf", "special_expit": "sigmoid"}
# An operator of attention-gym.
_APPROXIMATE = {"approx::tanh": "tanh"}


class Scalar(torch.Tensor):
    """A tensor without dimensions and memory, which has an expression."""

    node: Node
    of: Trace

    @staticmethod
    def __new__(cls, node: Node, trace: Trace, device):
        self = torch.Tensor._make_wrapper_subclass(
            cls, (), dtype=getattr(torch, FRAMEWORK_NAMES[node.dtype]), device=device)
        self.node, self.of = node, trace
        return self

    __torch_function__: Any = torch._C._disabled_torch_function_impl

    def __repr__(self, **_):
        return f"Scalar({self.dtype})"

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), keywords=None):
        keywords = keywords or {}
        first = next(one for one in torch.utils._pytree.tree_leaves(
            (arguments, keywords)) if isinstance(one, cls))
        name = function._schema.name
        name = _APPROXIMATE.get(name, name.removeprefix("aten::"))
        if name in ("_local_scalar_dense", "is_nonzero", "equal"):
            refuse_branch()
        rule = _RULES.get(name)
        is_in_place = rule is None and name.endswith("_") and isinstance(
            arguments[0], cls)
        if is_in_place:
            rule = _RULES.get(name[:-1])
        if rule is None:
            raise Error(f"{function._schema.name} has no expression of scalars")
        unknown = keywords.keys() - _KEYWORDS
        if unknown:
            raise Error(f"{function._schema.name} has no expression of scalars with the "
                        f"argument {min(unknown)}")
        operands = _Operands(first.of, arguments, keywords)
        operands.dtype = (_infer_type(function, arguments, keywords)
                          if function.namespace == "aten" else first.node.dtype)
        node = rule(operands)
        if is_in_place:
            arguments[0].node = first.of.graph.convert(node, operands.dtype)
            return arguments[0]
        return cls(node, first.of, first.device)


class _Operands:
    """The operands of an operator, and the type of its result."""

    dtype: str

    def __init__(self, trace: Trace, arguments: tuple, keywords: dict):
        self.trace, self.graph = trace, trace.graph
        self.arguments, self.keywords = arguments, keywords

    def number(self, index: int, name: str = "", default: Any = None) -> Any:
        if index < len(self.arguments):
            return self.arguments[index]
        return self.keywords.get(name, default)

    def node(self, index: int, dtype: str | None = None) -> Node:
        return self.to_node(self.arguments[index], dtype or self.dtype)

    def to_node(self, value, dtype: str) -> Node:
        graph = self.graph
        if isinstance(value, Scalar):
            return graph.convert(value.node, dtype)
        if isinstance(value, torch.Tensor):
            return graph.convert(load(self.trace, value, ()), dtype)
        return graph.constant(value, dtype)


def _to_meta(value):
    """Returns a tensor with the type and the shape of another one."""
    if isinstance(value, torch.Tensor):
        return torch.empty(value.shape, dtype=value.dtype, device="meta")
    return torch.device("meta") if isinstance(value, torch.device) else value


def _infer_type(function, arguments, keywords) -> str:
    """Returns the type of an operator's result, which must be a single number."""
    arguments, keywords = torch.utils._pytree.tree_map(_to_meta, (arguments, keywords))
    result = function(*arguments, **keywords)
    if not isinstance(result, torch.Tensor) or result.dim():
        raise Error(f"{function._schema.name} does not give one number, but functions "
                    "of scores are for single pairs")
    return name_of(result.dtype)


def _find_common_type(operands: _Operands) -> str:
    """Returns the type in which two operands are compared."""
    left, right = operands.arguments[:2]
    return name_of(torch.result_type(*map(_to_meta, (left, right))))


def load(trace: Trace, array: torch.Tensor, indices: tuple) -> Node:
    """Returns the element of a captured tensor."""
    graph, nodes = trace.graph, []
    for index in indices:
        if isinstance(index, Scalar):
            node = index.node
        elif isinstance(index, torch.Tensor):
            node = load(trace, index, ())
        else:
            node = graph.constant(index, "i64")
        if not node.is_integer:
            raise Error(f"a captured tensor is indexed by a number of type {node.dtype}, "
                        "expected integers")
        nodes.append(node)
    if len(nodes) != array.dim():
        raise Error(f"a captured tensor of {array.dim()} dimensions is used with "
                    f"{len(nodes)} indices, where a single number is needed")
    return trace.load(array, tuple(nodes))


# ===----------------------------------------------------------------------===#
# Rules
# ===----------------------------------------------------------------------===#


def _unary(name: str) -> Callable[[_Operands], Node]:
    return lambda o: _rules.unary(o.graph, name, o.dtype, o.node(0))


def _binary(name: str) -> Callable[[_Operands], Node]:
    def rule(o: _Operands) -> Node:
        right = o.node(1)
        alpha = o.number(2, "alpha", 1)
        if alpha != 1:
            right = o.graph.apply("mul", o.dtype, right, o.graph.constant(alpha, o.dtype))
        if o.dtype == "i1" and name in ("add", "maximum", "mul", "minimum"):
            op = "bitwise_or" if name in ("add", "maximum") else "bitwise_and"
            return _rules.logical(o.graph, op, o.node(0), right)
        return o.graph.apply(name, o.dtype, o.node(0), right)

    return rule


def _compare(name: str) -> Callable[[_Operands], Node]:
    def rule(o: _Operands) -> Node:
        dtype = _find_common_type(o)
        return o.graph.compare(name, dtype, o.node(0, dtype), o.node(1, dtype))

    return rule


def _where(o: _Operands) -> Node:
    return o.graph.select(o.node(0, "i1"), o.node(1), o.node(2))


def _masked_fill(o: _Operands) -> Node:
    return o.graph.select(o.node(1, "i1"), o.node(2), o.node(0))


def _divide(o: _Operands) -> Node:
    return _rules.divide(o.graph, o.dtype, o.node(0), o.node(1),
                         o.keywords.get("rounding_mode"))


def _clamp(o: _Operands) -> Node:
    low, high = (o.number(index, name) for index, name in ((1, "min"), (2, "max")))
    return _rules.clamp(o.graph, o.dtype, o.node(0),
                        *(None if one is None else o.to_node(one, o.dtype)
                          for one in (low, high)))


def _power(o: _Operands) -> Node:
    # A constant exponent keeps its fraction: the result has the type of the base.
    exponent = o.arguments[1]
    is_number = not isinstance(exponent, torch.Tensor)
    node = o.graph.make("constant", dtype="f64", payload=float(exponent)) \
        if is_number and o.dtype.startswith(("f", "b")) else o.node(1)
    return o.graph.power(o.dtype, o.node(0), node)


def _negate(o: _Operands) -> Node:
    return o.graph.negate(o.graph.to_bool(o.to_node(o.arguments[0],
                                                    o.arguments[0].node.dtype)))


def _invert(o: _Operands) -> Node:
    return o.graph.make("bitwise_not", (o.node(0),), o.dtype)


def _logical(name: str) -> Callable[[_Operands], Node]:
    return lambda o: _rules.logical(o.graph, name, o.node(0, "i1"), o.node(1, "i1"))


def _fill(value) -> Callable[[_Operands], Node]:
    def rule(o: _Operands) -> Node:
        number = value if value is not None else o.arguments[-1]
        return o.to_node(number, o.dtype)

    return rule


def _index(o: _Operands) -> Node:
    array, indices = o.arguments
    if isinstance(array, Scalar):
        raise Error("a number is indexed, which has no dimensions")
    return load(o.trace, array, tuple(indices))


def _test(name: str) -> Callable[[_Operands], Node]:
    def rule(o: _Operands) -> Node:
        graph, x = o.graph, o.arguments[0].node
        if not x.is_float:
            return graph.constant(False, "i1")
        if name == "isnan":
            return graph.compare("ne", x.dtype, x, x)
        size = graph.apply("abs", x.dtype, x)
        return graph.compare("eq", x.dtype, size, graph.constant(float("inf"), x.dtype))

    return rule


def _make_rules() -> dict[str, Callable[[_Operands], Node]]:
    rules: dict[str, Callable[[_Operands], Node]] = {
        "where": _where, "masked_fill": _masked_fill, "index": _index, "clamp": _clamp,
        "pow": _power, "div": _divide, "true_divide": _divide,
        "logical_not": _negate, "bitwise_not": _invert,
        "floor_divide": lambda o: _rules.divide(o.graph, o.dtype, o.node(0), o.node(1),
                                                "floor"),
        "remainder": lambda o: _rules.remainder(o.graph, o.dtype, o.node(0), o.node(1)),
        "fmod": lambda o: _rules.fmod(o.graph, o.dtype, o.node(0), o.node(1)),
        "rsub": lambda o: _binary("sub")(_swap(o)),
        "clamp_min": lambda o: _rules.clamp(o.graph, o.dtype, o.node(0), o.node(1), None),
        "clamp_max": lambda o: _rules.clamp(o.graph, o.dtype, o.node(0), None, o.node(1)),
        "relu": lambda o: _rules.clamp(o.graph, o.dtype, o.node(0),
                                       o.graph.constant(0, o.dtype), None),
        "sigmoid": lambda o: _rules.sigmoid(o.graph, o.dtype, o.node(0)),
        "silu": lambda o: o.graph.apply("mul", o.dtype, o.node(0), _rules.sigmoid(
            o.graph, o.dtype, o.node(0))),
        "sign": lambda o: _rules.sign(o.graph, o.dtype, o.node(0)),
        "softplus": lambda o: _rules.softplus(
            o.graph, o.dtype, o.node(0), o.number(1, "beta", 1),
            o.number(2, "threshold", 20)),
        "square": lambda o: o.graph.apply("mul", o.dtype, o.node(0), o.node(0)),
        "reciprocal": lambda o: o.graph.apply("divide", o.dtype,
                                              o.graph.constant(1, o.dtype), o.node(0)),
        "gelu": lambda o: _rules.gelu(o.graph, o.dtype, o.node(0),
                                      o.keywords.get("approximate", "none")),
        "detach": lambda o: o.graph.detach(o.node(0)),
        "isnan": _test("isnan"), "isinf": _test("isinf"), "_to_copy": lambda o: o.node(0),
        "lerp": lambda o: o.graph.apply(
            "add", o.dtype, o.node(0), o.graph.apply(
                "mul", o.dtype, o.node(2),
                o.graph.apply("sub", o.dtype, o.node(1), o.node(0))))}
    rules.update({name: lambda o: o.node(0) for name in _SAME})
    rules.update({name: _fill(value) for name, value in _FILLED.items()})
    rules.update({name: _unary(name) for name in _rules.UNARY})
    rules.update({"round": _round, "copy": lambda o: o.node(1), "fill": _fill(None),
                  "zero": _fill(0)})
    rules.update({name: _binary(name) for name in _rules.BINARY})
    rules.update({name: _binary(op) for name, op in _BITS.items()})
    rules.update({name: _compare(name) for name in COMPARISONS})
    rules.update({name: _logical(op) for name, op in _LOGICAL.items()})
    rules.update({name: _shift(op) for name, op in _SHIFTS.items()})
    rules.update({name: rules.get(op) or _unary(op) for name, op in _UNARY.items()})
    return rules


def _round(o: _Operands) -> Node:
    decimals = o.number(1, "decimals", 0)
    if not decimals:
        return _rules.unary(o.graph, "round", o.dtype, o.node(0))
    power = o.graph.constant(10.0 ** abs(decimals), o.dtype)
    order = ("mul", "divide") if decimals > 0 else ("divide", "mul")
    scaled = o.graph.apply("round", o.dtype, o.graph.apply(
        order[0], o.dtype, o.node(0), power))
    return o.graph.apply(order[1], o.dtype, scaled, power)


def _swap(o: _Operands) -> _Operands:
    swapped = _Operands(o.trace, (o.arguments[1], o.arguments[0],
                                   *o.arguments[2:]), o.keywords)
    swapped.dtype = o.dtype
    return swapped


def _shift(op: str) -> Callable[[_Operands], Node]:
    return lambda o: _rules.shift(o.graph, op, o.dtype, o.node(0), o.node(1))


_RULES = _make_rules()
