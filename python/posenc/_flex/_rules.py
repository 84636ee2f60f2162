# ===- _rules.py - operations made of others -------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Operations that several frameworks have, as expressions. `dtype` is the type of the
result, to which operands are converted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .._errors import Error
from . import _functions
from ._numbers import Number
from ._score_graph import FLOATS, Graph, Node

# The operations of one number and of two that frameworks agree about, but for names.
UNARY = ("neg", "abs", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh",
         "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
         "asinh", "acosh", "atanh", "erf", "erfc", "sigmoid", "floor", "ceil", "round",
         "trunc")
BINARY = ("add", "sub", "mul", "maximum", "minimum", "bitwise_and", "bitwise_or",
          "bitwise_xor")


def unary(graph: Graph, op: str, dtype: str, x: Node) -> Node:
    if op in ("floor", "ceil", "round", "trunc") and dtype not in FLOATS:
        return graph.convert(x, dtype)
    return graph.apply(op, dtype, x)


def divide(graph: Graph, dtype: str, x: Node, y: Node,
           rounding: str | None = None) -> Node:
    """Division, of integers only with a rounding: "floor" or "trunc"."""
    if dtype in FLOATS:
        if rounding == "floor":
            return _floor_divide_floats(graph, dtype, x, y)
        quotient = graph.apply("divide", dtype, x, y)
        return graph.apply("trunc", dtype, quotient) if rounding else quotient
    _check_divisor(y)
    return graph.apply("floor_divide" if rounding == "floor" else "divide_trunc", dtype,
                       x, y)


def _check_divisor(y: Node) -> None:
    if y.op == "constant" and y.payload == 0:
        raise Error("an integer is divided by 0")


def _floor_divide_floats(graph: Graph, dtype: str, x: Node, y: Node) -> Node:
    x, y = graph.convert(x, dtype), graph.convert(y, dtype)
    exact = graph.apply("sub", dtype, x, remainder(graph, dtype, x, y))
    return graph.apply("round", dtype, graph.apply("divide", dtype, exact, y))


def remainder(graph: Graph, dtype: str, x: Node, y: Node) -> Node:
    """The remainder with the sign of the divisor."""
    if dtype not in FLOATS:
        _check_divisor(y)
        return graph.apply("remainder", dtype, x, y)
    rest = graph.apply("fmod", dtype, x, y)
    zero = graph.constant(0, dtype)
    y = graph.convert(y, dtype)
    differ = graph.make("bitwise_xor", (graph.compare("lt", dtype, rest, zero),
                                        graph.compare("lt", dtype, y, zero)), "i1")
    is_nonzero = graph.compare("ne", dtype, rest, zero)
    wrong = graph.make("bitwise_and", (differ, is_nonzero), "i1")
    return graph.select(wrong, graph.apply("add", dtype, rest, y), rest)


def fmod(graph: Graph, dtype: str, x: Node, y: Node) -> Node:
    """The remainder with the sign of the dividend."""
    if dtype not in FLOATS:
        _check_divisor(y)
    return graph.apply("fmod", dtype, x, y)


def clamp(graph: Graph, dtype: str, x: Node, low: Node | None,
          high: Node | None) -> Node:
    bounds = (None if one is None else Number(graph, dtype, one) for one in (low, high))
    return _functions.clamp(Number(graph, dtype, x), *bounds).node


def sign(graph: Graph, dtype: str, x: Node) -> Node:
    x = graph.convert(x, dtype)
    zero, one = graph.constant(0, dtype), graph.constant(1, dtype)
    negative = graph.select(graph.compare("lt", dtype, x, zero),
                            graph.constant(-1, dtype), zero)
    return graph.select(graph.compare("gt", dtype, x, zero), one, negative)


def logical(graph: Graph, op: str, x: Node, y: Node) -> Node:
    """op: "bitwise_and", "bitwise_or" or "bitwise_xor" of two truth values."""
    return graph.make(op, (graph.to_bool(x), graph.to_bool(y)), "i1")


def _apply(op: str) -> Callable[..., Node]:
    return lambda graph, dtype, *nodes: graph.apply(op, dtype, *nodes)


def _unary(op: str) -> Callable[..., Node]:
    return lambda graph, dtype, x: unary(graph, op, dtype, x)


def _square(graph: Graph, dtype: str, x: Node) -> Node:
    return graph.apply("mul", dtype, x, x)


def _reciprocal(graph: Graph, dtype: str, x: Node) -> Node:
    return graph.apply("divide", dtype, graph.constant(1, dtype), x)


# What each framework has under a name of its own: functions of a graph, the type of the
# result, and nodes.
OPERATIONS: dict[str, Callable[..., Node]] = {
    **{op: _unary(op) for op in UNARY},
    **{op: _apply(op) for op in (*BINARY, "atan2", "copysign", "cbrt")},
    "bitwise_not": lambda graph, dtype, x: graph.make("bitwise_not", (x,), dtype),
    "clamp": lambda graph, dtype, low, x, high: clamp(graph, dtype, x, low, high),
    "divide": divide,
    "divide_floor": lambda graph, dtype, x, y: divide(graph, dtype, x, y, "floor"),
    "divide_trunc": lambda graph, dtype, x, y: divide(graph, dtype, x, y, "trunc"),
    "fmod": fmod,
    "power": lambda graph, dtype, x, y: graph.power(dtype, x, y),
    "reciprocal": _reciprocal,
    "remainder": remainder,
    "shift_left": _apply("shift_left"),
    "shift_right": _apply("shift_right"),
    "shift_right_logical": _apply("shift_right_logical"),
    "sign": sign,
    "square": _square,
}


def compute(graph: Graph, op: str, dtype: str, nodes: Sequence[Node]) -> Node:
    """Returns the result of an operation of `OPERATIONS` or `_functions`."""
    if op in OPERATIONS:
        return OPERATIONS[op](graph, dtype, *nodes)
    return _functions.call(graph, op, dtype, list(nodes))
