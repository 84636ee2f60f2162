# ===- _trace.py - what a trace records ------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""What traces of functions of PyTorch, NumPy and JAX have in common."""

from __future__ import annotations

import linecache
import os
from types import TracebackType
from typing import Any, NoReturn

from .._errors import Error
from ._score_graph import CARRIED, Graph, Node, name_type

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Types of captured arrays that kernels read.
_READABLE = ("f64", "f32", "f16", "bf16", "i64", "i32", "i8", "i1")
# Others, as arrays of these types.
WIDENED = {name: "int" + carrier[1:] for carrier, name in CARRIED.values()}


class Trace:
    """The expressions of functions and the arrays that these capture, in the order in
    which they are read.

    `reads_sizes` is whether a function asks for the shape of a captured array, and
    `reads_values` whether it asks for elements, which are constants of the expression."""

    def __init__(self, graph: Graph, device: Any = "cpu"):
        self.graph, self.device = graph, device
        self.arrays: list[Any] = []
        self.dtypes: list[str] = []
        self.reads_sizes = self.reads_values = False
        self._numbers: dict[int, int] = {}

    def forget(self, first: int) -> None:
        """Forgets the arrays from a number on."""
        del self.arrays[first:], self.dtypes[first:]
        self._numbers = {id(array): number for number, array in enumerate(self.arrays)}

    def load(self, array, indices: tuple[Node, ...]) -> Node:
        dtype = _read_type(array)
        number = self._numbers.get(id(array))
        if number is None:
            number = self._numbers[id(array)] = len(self.arrays)
            self.arrays.append(array)
            self.dtypes.append(CARRIED[dtype][0] if dtype in CARRIED else dtype)
        return self.graph.load(number, indices, dtype)


def _read_type(array) -> str:
    dtype = name_type(array.dtype)
    if dtype not in _READABLE and dtype not in CARRIED:
        raise Error(f"a captured array has elements of type {dtype}, expected one of "
                    f"{', '.join(_READABLE)}")
    return dtype


def refuse_branch() -> NoReturn:
    raise Error("the value of an argument is not known when the function is traced: it "
                "cannot decide an `if`, a loop or `and`, or be converted to a number of "
                "Python; use `where`, `&`, `|` and `~`")


def locate(function, error: BaseException) -> str:
    """Returns "FILE:LINE: " and the text of the line of a user's function, or of what it
    calls, where an error was raised; if there is none, the function's name."""
    found: TracebackType | None = None
    skipped = _PACKAGE + os.sep
    trace = error.__traceback__
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if not path.startswith(skipped) and not _is_of_framework(path):
            found = trace
        trace = trace.tb_next
    if found is not None:
        path, line = found.tb_frame.f_code.co_filename, found.tb_lineno
    elif hasattr(function, "__code__"):
        path, line = function.__code__.co_filename, function.__code__.co_firstlineno
    else:
        return f"{getattr(function, '__qualname__', function)}: "
    text = linecache.getline(path, line).strip()
    return f"{path}:{line}: " + (f"`{text}`: " if text else "")


def _is_of_framework(path: str) -> bool:
    parts = path.split(os.sep)
    return any(name in parts for name in ("torch", "jax", "jax_src", "numpy")) and (
        "site-packages" in parts or "dist-packages" in parts)
