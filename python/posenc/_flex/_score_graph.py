# ===- _score_graph.py - expressions of scores -----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Expressions of one pair of a query and a key: what `score_mod` and `mask_mod` compute.

Tracers build them, from functions of PyTorch, NumPy and JAX, and `_mlir` writes them.
Types are those of metadata ("f32", "i1"), and operands have the types that an operation
needs, so that nothing is converted implicitly.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from .._dtypes import FRAMEWORK_NAMES, name_of
from .._errors import Error

FLOATS = ("f64", "f32", "f16", "bf16")
# Bits of integers.
INTEGERS = {"i64": 64, "i32": 32, "i16": 16, "i8": 8, "u8": 8, "u16": 16, "u32": 32}
# Types that no kernel has: the type of kernels in which their numbers are, and their name
# in frameworks. Results wrap as those of their own type.
CARRIED = {"i16": ("i32", "int16"), "u8": ("i32", "uint8"), "u16": ("i32", "uint16"),
           "u32": ("i64", "uint32")}
_CARRIED_NAMES = {name: own for own, (_, name) in CARRIED.items()}

# Arguments of a score_mod, in order. A mask_mod has those after the first.
ARGUMENTS = ("score", "batch", "head", "query", "key")

# Functions that have no results of integers.
_OF_FLOATS = frozenset((
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh", "erf", "erfc",
    "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "rsqrt", "sigmoid", "sin", "sinh",
    "sqrt", "tan", "tanh"))

# The order of two numbers.
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_ORDER = {name: getattr(operator, name) for name in COMPARISONS}


def name_type(dtype) -> str:
    """Returns the name that a type of a framework has in expressions."""
    if isinstance(dtype, type):
        name = dtype.__name__
    else:
        name = getattr(dtype, "name", None) or str(dtype).removeprefix("torch.")
    return _CARRIED_NAMES.get(name) or name_of(dtype)


def name_in_frameworks(dtype: str) -> str:
    return CARRIED[dtype][1] if dtype in CARRIED else FRAMEWORK_NAMES[dtype]


class Node:
    """A value. `op` is one of:

    - "argument", whose payload is a name of `ARGUMENTS`; indices are not negative
    - "constant", whose payload is a number or a bool
    - "load": an element of the captured array with the number `payload`
    - "convert": the operand as another type
    - "select": the second or the third operand, as the first is true or false
    - "detach": the operand, which has no derivative here
    - a comparison, of the type i1
    - an operation of numbers or of bits, named as the functions of PyTorch
    """

    __slots__ = ("op", "operands", "dtype", "payload")

    def __init__(self, op: str, operands: tuple[Node, ...], dtype: str, payload: Any):
        self.op, self.operands = op, operands
        self.dtype, self.payload = dtype, payload

    @property
    def is_integer(self) -> bool:
        return self.dtype in INTEGERS

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS


def is_nonnegative(node: Node) -> bool:
    """Whether an integer is known not to be negative. Sums of indices do not wrap."""
    operands = node.operands
    if node.dtype.startswith("u") or node.dtype == "i1":
        return True
    if node.op == "argument":
        return node.is_integer
    if node.op == "constant":
        return node.payload >= 0
    if INTEGERS.get(node.dtype, 64) < 32 and node.op in ("add", "mul", "convert", "abs"):
        return False  # They wrap.
    if node.op == "detach":
        return is_nonnegative(operands[0])
    if node.op == "convert":
        return operands[0].dtype == "i1" or (
            operands[0].is_integer and is_nonnegative(operands[0]))
    if node.op in ("add", "mul", "minimum", "bitwise_or", "select"):
        return all(map(is_nonnegative, operands[-2:]))
    if node.op in ("maximum", "bitwise_and"):
        return any(map(is_nonnegative, operands))
    if node.op == "remainder":
        return is_nonnegative(operands[1])
    if node.op in ("floor_divide", "divide_trunc", "shift_right"):
        return all(map(is_nonnegative, operands))
    return node.op == "abs"


class Graph:
    """Makes nodes, each once."""

    def __init__(self, score_dtype: str):
        self.score_dtype = score_dtype
        self._nodes: dict[tuple, Node] = {}

    def make(self, op: str, operands: tuple[Node, ...] = (), dtype: str = "",
             payload: Any = None) -> Node:
        if op in _OF_FLOATS and dtype not in FLOATS:
            raise Error(f"{op} has no results of {name_in_frameworks(dtype)}: convert its "
                        "argument to floats first")
        # 0.0 equals -0.0, and 1 equals True.
        key = (op, *map(id, operands), dtype, repr(payload))
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = Node(op, operands, dtype, payload)
        return node

    def argument(self, name: str, dtype: str) -> Node:
        return self.make("argument", dtype=dtype, payload=name)

    def constant(self, value, dtype: str) -> Node:
        """Returns a number as a type, to which it is converted as by PyTorch."""
        if dtype == "i1":
            return self.make("constant", dtype=dtype, payload=bool(value))
        if dtype in FLOATS:
            return self.make("constant", dtype=dtype, payload=float(value))
        if not math.isfinite(value):
            raise Error(f"{value} is no integer")
        width = INTEGERS[dtype]
        low = 0 if dtype.startswith("u") else -(2 ** (width - 1))
        wrapped = (int(value) - low) % 2 ** width + low
        return self.make("constant", dtype=dtype, payload=wrapped)

    def load(self, number: int, indices: tuple[Node, ...], dtype: str) -> Node:
        """Returns an element of a captured array. Negative indices count from its end,
        and others must be in its bounds."""
        return self.make("load", indices, dtype, number)

    def convert(self, node: Node, dtype: str) -> Node:
        if node.dtype == dtype:
            return node
        if node.op == "constant":
            return self.constant(node.payload, dtype)
        return self.make("convert", (node,), dtype)

    def apply(self, op: str, dtype: str, *operands: Node) -> Node:
        """Applies an operation whose operands have the type of its result."""
        return self.make(op, tuple(self.convert(one, dtype) for one in operands), dtype)

    def compare(self, op: str, dtype: str, left: Node, right: Node) -> Node:
        """Compares numbers of a type. i1 is compared as numbers, too."""
        if dtype == "i1":
            dtype = "i32"
        if left.op == right.op == "constant" and dtype in INTEGERS:
            return self.constant(_ORDER[op](left.payload, right.payload), "i1")
        return self.make(op, (self.convert(left, dtype), self.convert(right, dtype)),
                         "i1")

    def to_bool(self, node: Node) -> Node:
        """Returns whether a number is not 0."""
        if node.dtype == "i1":
            return node
        return self.compare("ne", node.dtype, node, self.constant(0, node.dtype))

    def detach(self, node: Node) -> Node:
        """Returns a number without its derivative."""
        return self.make("detach", (node,), node.dtype) if node.is_float else node

    def negate(self, node: Node) -> Node:
        """Returns the opposite of an i1."""
        return self.make("bitwise_not", (node,), "i1")

    def select(self, condition: Node, left: Node, right: Node) -> Node:
        if condition.op == "constant":
            return left if condition.payload else right
        return self.make("select", (self.to_bool(condition), left, right), left.dtype)

    def power(self, dtype: str, base: Node, exponent: Node) -> Node:
        """Returns a power. Small constant exponents become products and roots."""
        value = exponent.payload if exponent.op == "constant" else None
        base = self.convert(base, dtype)
        if dtype in FLOATS and value in (0.5, -0.5):
            return self.apply("sqrt" if value > 0 else "rsqrt", dtype, base)
        if value is not None and value == int(value) and abs(value) <= 16:
            result = self.constant(1, dtype)
            factor, rest = base, abs(int(value))
            is_first = True
            while rest:
                if rest & 1:
                    result = factor if is_first else self.apply("mul", dtype, result,
                                                                factor)
                    is_first = False
                rest >>= 1
                if rest:
                    factor = self.apply("mul", dtype, factor, factor)
            if value >= 0:
                return result
            if dtype in FLOATS:
                return self.apply("divide", dtype, self.constant(1, dtype), result)
        if dtype not in FLOATS:
            # Exact, as it is rounded, up to 2 to the power 53.
            power = self.apply("pow", "f64", base, exponent)
            return self.convert(self.apply("round", "f64", power), dtype)
        return self.apply("pow", dtype, base, exponent)


def collect(*roots: Node | None) -> list[Node]:
    """Returns the nodes that values are made of, operands first."""
    found: dict[int, Node] = {}
    stack = [(root, False) for root in reversed(roots) if root is not None]
    while stack:
        node, is_done = stack.pop()
        if id(node) in found:
            continue
        if is_done:
            found[id(node)] = node
            continue
        stack.append((node, True))
        stack += [(operand, False) for operand in reversed(node.operands)]
    return list(found.values())
