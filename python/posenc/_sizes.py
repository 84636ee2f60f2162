# ===- _sizes.py - expressions of sizes in metadata ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Translates the expressions of sizes in metadata to Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_TOKEN = re.compile(r"\s*(\d+|[A-Za-z_]\w*|==|[-+*/%(),<?:])")


class _Translator:
    """Parses `sum`, `min(a, b)`, `(a < b ? c : d)` and so on. `/` and `%` round
    towards minus infinity, as `//` and `%` of Python."""

    def __init__(self, text: str, names: dict[str, str]):
        self.text, self.names = text, names
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

    def sum(self) -> str:
        result = self.product()
        while self.peek() in ("+", "-"):
            result += f" {self.take()} {self.product()}"
        return result

    def product(self) -> str:
        result = self.atom()
        while self.peek() in ("*", "/", "%"):
            operator = {"/": "//"}.get(self.peek(), self.peek())
            self.take()
            result += f" {operator} {self.atom()}"
        return result

    def atom(self) -> str:
        token = self.take()
        if token == "-":
            return f"-{self.atom()}"
        if token.isdigit():
            return token
        if token in ("min", "max") and self.peek() == "(":
            self.take()
            left = self.sum()
            self.take(",")
            right = self.sum()
            self.take(")")
            return f"{token}({left}, {right})"
        if token == "(":
            left = self.sum()
            if self.peek() in ("<", "=="):
                comparison = f"{left} {self.take()} {self.sum()}"
                self.take("?")
                yes = self.sum()
                self.take(":")
                no = self.sum()
                left = f"{yes} if {comparison} else {no}"
            self.take(")")
            return f"({left})"
        if token in self.names:
            return self.names[token]
        return self.fail()


def translate(size: int | str, names: dict[str, str]) -> str:
    """Returns the Python expression of a size. `names` has the expression of each
    size and scalar that it may name."""
    if isinstance(size, int):
        return str(size)
    if size in names:
        return names[size]
    translator = _Translator(size, names)
    result = translator.sum()
    if translator.tokens:
        translator.fail()
    return result


def evaluate(size: int | str, sizes: Mapping[str, Any], minimum: Callable = min,
             maximum: Callable = max):
    """Returns the value of a size, of the values of those that it may name."""
    names = {name: name for name in sizes}
    return eval(translate(size, names), {"min": minimum, "max": maximum}, dict(sizes))
