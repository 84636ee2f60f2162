# ===- _numbers.py - expressions with operators -----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Nodes of one type with the operators of Python, in which `_functions` is written."""

from __future__ import annotations

from typing import Union

from ._score_graph import Graph, Node

Operand = Union["Number", float]


class Number:
    """A node of a type. Operators convert Python's numbers to this type, and comparisons
    are nodes of the type i1."""

    __slots__ = ("graph", "dtype", "node")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, graph: Graph, dtype: str, node: Node):
        self.graph, self.dtype = graph, dtype
        self.node = graph.convert(node, dtype)

    def make(self, value: Operand) -> Number:
        """Returns an operand as a number of this type."""
        node = (value.node if isinstance(value, Number)
                else self.graph.constant(value, self.dtype))
        return Number(self.graph, self.dtype, node)

    def call(self, op: str, *others: Operand) -> Number:
        """Applies an operation of nodes."""
        nodes = [self.make(one).node for one in others]
        return Number(self.graph, self.dtype,
                      self.graph.apply(op, self.dtype, self.node, *nodes))

    def compare(self, op: str, other: Operand) -> Node:
        return self.graph.compare(op, self.dtype, self.node, self.make(other).node)

    def where(self, condition: Node, other: Operand) -> Number:
        """Returns this number if a condition holds, else another one."""
        return Number(self.graph, self.dtype, self.graph.select(
            condition, self.node, self.make(other).node))

    def both(self, one: Node, other: Node) -> Node:
        return self.graph.make("bitwise_and", (one, other), "i1")

    def either(self, one: Node, other: Node) -> Node:
        return self.graph.make("bitwise_or", (one, other), "i1")

    def is_nan(self) -> Node:
        return self.compare("ne", self)

    def __add__(self, other: Operand) -> Number:
        return self.call("add", other)

    def __radd__(self, other: Operand) -> Number:
        return self.make(other).call("add", self)

    def __sub__(self, other: Operand) -> Number:
        return self.call("sub", other)

    def __rsub__(self, other: Operand) -> Number:
        return self.make(other).call("sub", self)

    def __mul__(self, other: Operand) -> Number:
        return self.call("mul", other)

    def __rmul__(self, other: Operand) -> Number:
        return self.make(other).call("mul", self)

    def __truediv__(self, other: Operand) -> Number:
        return self.call("divide", other)

    def __rtruediv__(self, other: Operand) -> Number:
        return self.make(other).call("divide", self)

    def __neg__(self) -> Number:
        return self.call("neg")

    def __abs__(self) -> Number:
        return self.call("abs")

    def __gt__(self, other: Operand) -> Node:
        return self.compare("gt", other)

    def __lt__(self, other: Operand) -> Node:
        return self.compare("lt", other)

    def __ge__(self, other: Operand) -> Node:
        return self.compare("ge", other)

    def __le__(self, other: Operand) -> Node:
        return self.compare("le", other)

    def equals(self, other: Operand) -> Node:
        return self.compare("eq", other)
