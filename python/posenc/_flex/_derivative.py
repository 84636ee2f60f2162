# ===- _derivative.py - derivatives of expressions -------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Derivatives of a score by its operands, by the chain rule from the result backwards.

Conventions are PyTorch's: operations that round have the derivative 0, `abs` has 0 at 0,
and equal operands of `maximum` and `minimum` have one half each.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .._errors import Error
from ._score_graph import Graph, Node, collect

_BY_RESULT = ("exp", "exp2", "sqrt", "rsqrt", "cbrt", "tanh", "expm1", "sigmoid")
_CONSTANT = ("detach", "floor", "ceil", "round", "trunc", "floor_divide",
             "bitcast")


class _Rules:
    """Arithmetic of one type."""

    def __init__(self, graph: Graph, dtype: str):
        self.graph, self.dtype = graph, dtype

    def number(self, value: float) -> Node:
        return self.graph.constant(value, self.dtype)

    def mul(self, x: Node, y: Node) -> Node:
        return self.graph.apply("mul", self.dtype, x, y)

    def div(self, x: Node, y: Node) -> Node:
        return self.graph.apply("divide", self.dtype, x, y)

    def add(self, x: Node, y: Node) -> Node:
        return self.graph.apply("add", self.dtype, x, y)

    def sub(self, x: Node, y: Node) -> Node:
        return self.graph.apply("sub", self.dtype, x, y)

    def neg(self, x: Node) -> Node:
        return self.graph.apply("neg", self.dtype, x)

    def call(self, op: str, x: Node) -> Node:
        return self.graph.apply(op, self.dtype, x)

    def if_order(self, op: str, x: Node, y: Node, yes: Node, no: Node) -> Node:
        return self.graph.select(self.graph.compare(op, self.dtype, x, y), yes, no)

    # The derivative of an operation `y` of its operands, times `d`, the derivative of
    # the result by `y`.

    def of(self, y: Node, d: Node) -> list[Node | None]:
        x = y.operands
        zero = self.number(0)
        if y.op in _CONSTANT:
            return [None] * len(x)
        if y.op in _BY_RESULT:
            return [self.mul(d, self._of_result(y))]
        if y.op in _BY_OPERAND:
            return [self.mul(d, _BY_OPERAND[y.op](self, x[0]))]
        if y.op in ("add", "sub"):
            return [d, d if y.op == "add" else self.neg(d)]
        if y.op == "neg":
            return [self.neg(d)]
        if y.op == "mul":
            return [self.mul(d, x[1]), self.mul(d, x[0])]
        if y.op == "divide":
            left = self.div(d, x[1])
            return [left, self.neg(self.mul(left, y))]
        if y.op == "fmod":
            quotient = self.call("trunc", self.div(x[0], x[1]))
            return [d, self.neg(self.mul(d, quotient))]
        if y.op in ("maximum", "minimum"):
            half = self.mul(d, self.number(0.5))
            op, other = ("gt", "lt") if y.op == "maximum" else ("lt", "gt")
            return [self.if_order(op, x[0], x[1], d, self.if_order(
                        other, x[0], x[1], zero, half)),
                    self.if_order(other, x[0], x[1], d, self.if_order(
                        op, x[0], x[1], zero, half))]
        if y.op == "pow":
            lower = self.graph.apply("pow", self.dtype, x[0],
                                     self.sub(x[1], self.number(1)))
            is_zero = self.mul(d, self.mul(y, self.call("log", x[0])))
            of_base = self.mul(d, self.mul(x[1], lower))
            return [self.if_order("eq", x[1], zero, zero, of_base),
                    self.if_order("eq", y, zero, zero, is_zero)]
        if y.op == "atan2":
            size = self.add(self.mul(x[0], x[0]), self.mul(x[1], x[1]))
            d = self.div(d, size)
            return [self.mul(d, x[1]), self.neg(self.mul(d, x[0]))]
        if y.op == "copysign":
            return [self.if_order("eq", x[0], zero, zero,
                                  self.mul(d, self.div(y, x[0]))), None]
        raise Error(f"{y.op} has no derivative here")

    def _of_result(self, y: Node) -> Node:
        one, half = self.number(1), self.number(0.5)
        if y.op == "sigmoid":
            return self.mul(y, self.sub(one, y))
        if y.op == "cbrt":
            return self.div(one, self.mul(self.number(3), self.mul(y, y)))
        if y.op == "exp":
            return y
        if y.op == "exp2":
            return self.mul(y, self.number(math.log(2)))
        if y.op == "expm1":
            return self.add(y, one)
        if y.op == "tanh":
            return self.sub(one, self.mul(y, y))
        if y.op == "sqrt":
            return self.div(half, y)
        return self.neg(self.mul(half, self.mul(y, self.mul(y, y))))  # rsqrt


_BY_OPERAND: dict[str, Callable[[_Rules, Node], Node]] = {
    "abs": lambda r, x: r.if_order("gt", x, r.number(0), r.number(1), r.if_order(
        "lt", x, r.number(0), r.number(-1), r.number(0))),
    "log": lambda r, x: r.div(r.number(1), x),
    "log2": lambda r, x: r.div(r.number(1 / math.log(2)), x),
    "log10": lambda r, x: r.div(r.number(1 / math.log(10)), x),
    "log1p": lambda r, x: r.div(r.number(1), r.add(r.number(1), x)),
    "sin": lambda r, x: r.call("cos", x),
    "cos": lambda r, x: r.neg(r.call("sin", x)),
    "tan": lambda r, x: r.add(r.number(1), r.mul(r.call("tan", x), r.call("tan", x))),
    "atan": lambda r, x: r.div(r.number(1), r.add(r.number(1), r.mul(x, x))),
    "asin": lambda r, x: r.call("rsqrt", r.sub(r.number(1), r.mul(x, x))),
    "acos": lambda r, x: r.neg(r.call("rsqrt", r.sub(r.number(1), r.mul(x, x)))),
    "sinh": lambda r, x: r.call("cosh", x),
    "cosh": lambda r, x: r.call("sinh", x),
    "asinh": lambda r, x: r.call("rsqrt", r.add(r.mul(x, x), r.number(1))),
    "acosh": lambda r, x: r.call("rsqrt", r.sub(r.mul(x, x), r.number(1))),
    "atanh": lambda r, x: r.div(r.number(1), r.sub(r.number(1), r.mul(x, x))),
    "erf": lambda r, x: r.mul(r.number(2 / math.sqrt(math.pi)),
                              r.call("exp", r.neg(r.mul(x, x)))),
    "erfc": lambda r, x: r.mul(r.number(-2 / math.sqrt(math.pi)),
                               r.call("exp", r.neg(r.mul(x, x)))),
}


class Derivatives:
    """The derivatives of a score by the score that it is made of, and by the elements of
    captured arrays that it reads. None where they are 0."""

    def __init__(self, graph: Graph, root: Node):
        self._graph = graph
        self._of: dict[int, Node] = {id(root): graph.constant(1, root.dtype)}
        nodes = collect(root)
        for node in reversed(nodes):
            d = self._of.get(id(node))
            if d is None or not node.is_float:
                continue
            for operand, part in zip(node.operands, self._derive(node, d)):
                if part is not None and operand.is_float:
                    self._add(operand, part)
        self.loads: list[tuple[Node, Node]] = [
            (node, self._of[id(node)]) for node in nodes
            if node.op == "load" and node.is_float and id(node) in self._of]
        self.score = next((self._of.get(id(node)) for node in nodes
                           if node.op == "argument" and node.payload == "score"), None)

    def _add(self, operand: Node, part: Node) -> None:
        before = self._of.get(id(operand))
        self._of[id(operand)] = part if before is None else self._graph.apply(
            "add", operand.dtype, before, part)

    def _derive(self, node: Node, d: Node) -> list[Node | None]:
        graph = self._graph
        if node.op in ("argument", "constant", "load"):
            return []
        if node.op == "convert":
            operand = node.operands[0]
            return [graph.convert(d, operand.dtype) if operand.is_float else None]
        if node.op == "select":
            zero = graph.constant(0, node.dtype)
            condition = node.operands[0]
            return [None, graph.select(condition, d, zero),
                    graph.select(condition, zero, d)]
        return _Rules(graph, node.dtype).of(node, d)
