# ===- _captures.py - what functions capture -------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""What decides the expression of a function besides its arguments: its code, and the
values of the variables that it captures, of globals and of defaults.

Two functions with equal keys have the same expression. Arrays are in the key with their
type and rank only, since their elements are read when the kernel runs.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np

# Packages whose modules, classes and functions do not change.
_TRUSTED = ("torch", "numpy", "jax", "math", "cmath", "operator", "functools", "builtins",
            "typing", "posenc", "collections", "itertools", "_operator", "_functools")
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), np.dtype)


# Functions of Python by which code finds objects that it does not name, and the modules
# of NumPy and others whose functions give another number each time.
_HIDDEN = frozenset(("__import__", "eval", "exec", "globals", "locals", "random", "vars"))


class _UnknownError(Exception):
    """The value of an object cannot be compared."""


def is_array(value) -> bool:
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    return (isinstance(value, np.ndarray)
            or (torch is not None and isinstance(value, torch.Tensor))
            or (jax is not None and isinstance(value, jax.Array)))


def _is_trusted(module: str | None) -> bool:
    return module is not None and module.split(".")[0] in _TRUSTED


def _is_constant(value) -> bool:
    """Whether an object of a trusted package is one that does not change: a module, a
    class, or a function or operator that is not written in Python."""
    if isinstance(value, types.ModuleType):
        return _is_trusted(value.__name__)
    if isinstance(value, type):
        return _is_trusted(value.__module__)
    if type(value).__name__ in ("dtype", "device"):
        return _is_trusted(type(value).__module__)
    if isinstance(value, types.BuiltinFunctionType):
        # A method of an object, such as `table.get`, depends on the object.
        of = value.__self__
        return of is None or (isinstance(of, (types.ModuleType, type))
                              and _is_constant(of))
    return (isinstance(value, np.ufunc)
            or (callable(value) and _is_trusted(type(value).__module__)
                and type(value).__name__ in ("OpOverload", "OpOverloadPacket",
                                             "CustomOpDef", "PjitFunction", "ufunc",
                                             "custom_jvp")
                and _is_trusted(getattr(value, "__module__", "torch"))))


class Captures:
    """The key of functions, or None if they capture an object that has no value to
    compare, and the arrays that they capture, in the order of the key."""

    def __init__(self, functions: Any):
        self.arrays: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # Ids are those of objects that exist.
        try:
            self.key: Hashable | None = ("key", self._describe(functions))
            hash(self.key)
        except (_UnknownError, TypeError, RecursionError):
            self.key = None

    def _describe(self, value) -> Hashable:
        if isinstance(value, _PLAIN):
            return type(value), repr(value)
        if is_array(value):
            number = self._numbers.setdefault(id(value), len(self.arrays))
            if number == len(self.arrays):
                self.arrays.append(value)
            return "array", str(value.dtype), len(value.shape), number
        if isinstance(value, types.MethodType):
            return "method", self._describe(value.__func__), self._describe(value.__self__)
        if isinstance(value, types.FunctionType):
            return self._describe_function(value)
        if isinstance(value, functools.partial):
            return ("partial", self._describe(value.func),
                    self._describe(value.args), self._describe(value.keywords))
        if type(value) in (tuple, list):
            return type(value), *(self._describe(one) for one in value)
        if type(value) is dict:
            return "dict", *((self._describe(key), self._describe(one))
                             for key, one in value.items())
        if not _is_constant(value):
            raise _UnknownError
        self._kept.append(value)
        return "object", value

    def _describe_function(self, function: types.FunctionType) -> Hashable:
        if id(function) in self._seen:
            return "again", self._seen[id(function)]
        self._seen[id(function)] = len(self._seen)
        cells = []
        for cell in function.__closure__ or ():
            try:
                cells.append(self._describe(cell.cell_contents))
            except ValueError:  # It is empty.
                cells.append("empty")
        variables: tuple = ()
        if not _is_trusted(function.__module__):
            if not _names_all(function.__code__):
                raise _UnknownError
            variables = tuple((name, self._describe(function.__globals__[name]))
                              for name in _list_names(function.__code__)
                              if name in function.__globals__)
            variables += (self._describe(function.__dict__),)
        return ("function", function.__code__, tuple(cells), variables,
                self._describe(function.__defaults__),
                self._describe(function.__kwdefaults__))


@functools.lru_cache(maxsize=1024)
def _list_names(code: types.CodeType) -> tuple[str, ...]:
    """Returns the names that code, and functions that it defines, may look up."""
    names = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(dict.fromkeys(_list_names(constant)))
    return tuple(names)


@functools.lru_cache(maxsize=1024)
def _names_all(code: types.CodeType) -> bool:
    """Whether code, and functions that it defines, names the objects that it uses: it
    imports no other module than trusted ones, and does not look for names."""
    if not _HIDDEN.isdisjoint(code.co_names):
        return False
    if any(one.opname == "IMPORT_NAME" and not _is_trusted(one.argval)
           for one in dis.get_instructions(code)):
        return False
    return all(_names_all(constant) for constant in code.co_consts
               if isinstance(constant, types.CodeType))


def replace_arrays(function: Callable, replace: Callable[[Any], Any]) -> Callable:
    """Returns a copy of a function that captures `replace(array)` for each array."""
    return _replace(function, replace, {})


def _replace(value, replace: Callable[[Any], Any], copies: dict[int, Any]):
    if is_array(value):
        return replace(value)
    if id(value) in copies:
        return copies[id(value)]
    if isinstance(value, functools.partial):
        return functools.partial(
            _replace(value.func, replace, copies),
            *(_replace(one, replace, copies) for one in value.args),
            **{name: _replace(one, replace, copies)
               for name, one in value.keywords.items()})
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return type(value)(_replace(one, replace, copies) for one in value)
    if type(value) is dict:
        return {key: _replace(one, replace, copies) for key, one in value.items()}
    if isinstance(value, types.MethodType):
        return types.MethodType(_replace(value.__func__, replace, copies),
                                _Object(value.__self__, replace, copies))
    if (callable(value) and not isinstance(value, type)
            and isinstance(value.__call__, types.MethodType)):
        return _replace(value.__call__, replace, copies)
    if not isinstance(value, types.FunctionType) or (
            _is_trusted(value.__module__) and not value.__closure__):
        return value
    cells = tuple(types.CellType() for _ in value.__closure__ or ())
    variables = dict(value.__globals__)
    copy = types.FunctionType(value.__code__, variables, value.__name__,
                              value.__defaults__, cells or None)
    copies[id(value)] = copy
    copy.__kwdefaults__ = value.__kwdefaults__
    for cell, old in zip(cells, value.__closure__ or ()):
        for content in _read_cell(old):
            cell.cell_contents = _replace(content, replace, copies)
    if not _is_trusted(value.__module__):
        for name in _list_names(value.__code__):
            if name in variables:
                variables[name] = _replace(variables[name], replace, copies)
    copy.__defaults__ = _replace(value.__defaults__, replace, copies)
    return copy


class _Object:
    """An object of a method, whose attributes are replaced."""

    def __init__(self, of, replace: Callable[[Any], Any], copies: dict[int, Any]):
        self._of, self._replace, self._copies = of, replace, copies

    def __getattr__(self, name: str):
        value = getattr(self._of, name)
        if isinstance(value, types.MethodType) and value.__self__ is self._of:
            return types.MethodType(
                _replace(value.__func__, self._replace, self._copies), self)
        return _replace(value, self._replace, self._copies)


def _read_cell(cell: types.CellType) -> Iterator[Any]:
    try:
        yield cell.cell_contents
    except ValueError:  # It is empty.
        return
