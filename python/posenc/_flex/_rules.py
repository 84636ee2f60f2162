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

import math

from .._errors import Error
from ._graph import FLOATS, Graph, Node

# The operations of one number and of two that frameworks agree about, but for names.
UNARY = ("neg", "abs", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh",
         "sqrt", "rsqrt", "sin", "cos", "tan", "atan", "erf", "floor", "ceil", "round",
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
    x = graph.convert(x, dtype)
    if low is not None:
        x = graph.apply("maximum", dtype, x, low)
    return x if high is None else graph.apply("minimum", dtype, x, high)


def sigmoid(graph: Graph, dtype: str, x: Node) -> Node:
    one = graph.constant(1, dtype)
    power = graph.apply("exp", dtype, graph.apply("neg", dtype, x))
    return graph.apply("divide", dtype, one, graph.apply("add", dtype, one, power))


def sign(graph: Graph, dtype: str, x: Node) -> Node:
    x = graph.convert(x, dtype)
    zero, one = graph.constant(0, dtype), graph.constant(1, dtype)
    negative = graph.select(graph.compare("lt", dtype, x, zero),
                            graph.constant(-1, dtype), zero)
    return graph.select(graph.compare("gt", dtype, x, zero), one, negative)


def softplus(graph: Graph, dtype: str, x: Node, beta: float = 1.0,
             threshold: float = 20.0) -> Node:
    x = graph.convert(x, dtype)
    scaled = graph.apply("mul", dtype, x, graph.constant(beta, dtype))
    curve = graph.apply("log1p", dtype, graph.apply("exp", dtype, scaled))
    smooth = graph.apply("divide", dtype, curve, graph.constant(beta, dtype))
    is_large = graph.compare("gt", dtype, scaled, graph.constant(threshold, dtype))
    return graph.select(is_large, x, smooth)


def gelu(graph: Graph, dtype: str, x: Node, approximate: str) -> Node:
    def scale(value: float, y: Node) -> Node:
        return graph.apply("mul", dtype, y, graph.constant(value, dtype))

    x = graph.convert(x, dtype)
    if approximate == "tanh":
        cube = graph.power(dtype, x, graph.constant(3, "f64"))
        inner = graph.apply("add", dtype, x, scale(0.044715, cube))
        curve = graph.apply("tanh", dtype, scale(math.sqrt(2 / math.pi), inner))
    else:
        curve = graph.apply("erf", dtype, scale(math.sqrt(0.5), x))
    return graph.apply("mul", dtype, scale(0.5, x), graph.apply(
        "add", dtype, graph.constant(1, dtype), curve))


def shift(graph: Graph, op: str, dtype: str, x: Node, count: Node) -> Node:
    """Shifts by a constant number of bits; op: "shift_left" or "shift_right"."""
    if count.op != "constant" or count.payload < 0:
        raise Error("bits are shifted by constants that are not negative only")
    return graph.apply(op, dtype, x, count)


def logical(graph: Graph, op: str, x: Node, y: Node) -> Node:
    """op: "bitwise_and", "bitwise_or" or "bitwise_xor" of two truth values."""
    return graph.make(op, (graph.to_bool(x), graph.to_bool(y)), "i1")


