# ===- _sizes.py - expressions of sizes in metadata ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Reads the expressions of sizes in metadata: as Python text, or their values."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_TOKEN = re.compile(r"\s*(\d+|[A-Za-z_]\w*(?:\[0\])?|==|[-+*/%(),<?:])")
# Operations whose text is not `(a kind b)`.
_TEXTS = {"min": "min({}, {})", "max": "max({}, {})", "negate": "-{}",
          "?": "({1} if {0} else {2})"}
_FUNCTIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul,
              "//": operator.floordiv, "%": operator.mod, "<": operator.lt,
              "==": operator.eq, "negate": operator.neg}


class _Reader:
    """Parses `sum`, `min(a, b)`, `(a < b ? c : d)` and so on. `/` and `%` round
    towards minus infinity, as `//` and `%` of Python. Makes what it returns of names,
    by `number`, and by `combine` of the kind and the operands of an operation."""

    def __init__(self, text: str, names: Mapping[str, Any], number: Callable,
                 combine: Callable):
        self.text, self.names, self.number, self.combine = text, names, number, combine
        self.tokens = _TOKEN.findall(text)
        if "".join(self.tokens) != re.sub(r"\s", "", text):
            self.fail()

    def fail(self):
        raise ValueError(f"unexpected size '{self.text}' in the metadata")

    def take(self, expected: str | None = None) -> str:
        if not self.tokens or (expected and self.tokens[0] != expected):
            self.fail()
        return self.tokens.pop(0)

    def peek(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def read(self):
        result = self.sum()
        if self.tokens:
            self.fail()
        return result

    def sum(self):
        result = self.product()
        while self.peek() in ("+", "-"):
            result = self.combine(self.take(), result, self.product())
        return result

    def product(self):
        result = self.atom()
        while self.peek() in ("*", "/", "%"):
            kind = self.take().replace("/", "//")
            result = self.combine(kind, result, self.atom())
        return result

    def atom(self):
        token = self.take()
        if token == "-":
            return self.combine("negate", self.atom())
        if token.isdigit():
            return self.number(token)
        if token in ("min", "max") and self.peek() == "(":
            self.take()
            left = self.sum()
            self.take(",")
            result = self.combine(token, left, self.sum())
            self.take(")")
            return result
        if token == "(":
            result = self.sum()
            if self.peek() in ("<", "=="):
                condition = self.combine(self.take(), result, self.sum())
                self.take("?")
                yes = self.sum()
                self.take(":")
                result = self.combine("?", condition, yes, self.sum())
            self.take(")")
            return result
        if token in self.names:
            return self.names[token]
        return self.fail()


def translate(size: int | str, names: Mapping[str, str]) -> str:
    """Returns the Python expression of a size. `names` has the expression of each
    size, scalar and element that it may name."""
    def combine(kind, *operands):
        return _TEXTS.get(kind, f"({{}} {kind} {{}})").format(*operands)

    return _Reader(str(size), names, str, combine).read()


def name_element(argument: str) -> str:
    """Returns the name, in sizes, of the only element of a tensor."""
    return f"{argument}[0]"


def read_element(array) -> int:
    """Returns the only element of an array of integers."""
    return operator.index(array.item())


def find_elements(sizes: Iterable[int | str]) -> list[str]:
    """Returns the names of the tensors whose only element some of the sizes depend on."""
    names = [token[:-3] for size in sizes for token in _TOKEN.findall(str(size))
             if token.endswith("[0]")]
    return list(dict.fromkeys(names))


def evaluate(size: int | str, sizes: Mapping[str, Any], minimum: Callable = min,
             maximum: Callable = max):
    """Returns the value of a size, of the values of those that it may name."""
    functions = {**_FUNCTIONS, "min": minimum, "max": maximum}

    # Values are computed last: a choice may guard a division.
    def combine(kind, *operands):
        if kind == "?":
            condition, yes, no = operands
            return lambda: yes() if condition() else no()
        return lambda: functions[kind](*[one() for one in operands])

    names = {name: lambda value=value: value for name, value in sizes.items()}
    return _Reader(str(size), names, lambda digits: lambda: int(digits), combine).read()()
