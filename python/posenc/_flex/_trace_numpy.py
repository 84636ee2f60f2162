# ===- _trace_numpy.py - functions of NumPy as expressions -----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Traces a `score_mod` or `mask_mod` of NumPy: it is called once, with scalars that
record operators of Python and functions of NumPy. Types are those of NumPy's scalars."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .._dtypes import FRAMEWORK_NAMES, name_of
from .._errors import Error
from . import _rules
from ._captures import replace_arrays
from ._graph import Graph, Node
from ._trace import Trace, refuse_branch

_UNARY = {"negative": "neg", "absolute": "abs", "fabs": "abs", "rint": "round",
          "arctan": "atan", **{name: name for name in _rules.UNARY if name not in
                               ("neg", "abs", "round", "atan", "rsqrt", "erf")}}
_BINARY = {"add": "add", "subtract": "sub", "multiply": "mul", "maximum": "maximum",
           "minimum": "minimum", "bitwise_and": "bitwise_and",
           "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor"}
_COMPARE = {"equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le",
            "greater": "gt", "greater_equal": "ge"}
_LOGICAL = {"logical_and": "bitwise_and", "logical_or": "bitwise_or",
            "logical_xor": "bitwise_xor"}
_SHIFTS = {"left_shift": "shift_left", "right_shift": "shift_right"}
# Names of NumPy's functions for operators of Python.
_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "power",
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "left_shift", "rshift": "right_shift", "eq": "equal", "ne": "not_equal",
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}


class Scalar:
    """A number with an expression."""

    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, trace: Trace, node: Node):
        self.trace, self.node = trace, node

    @property
    def dtype(self) -> np.dtype:
        return _type_of(self.node)

    shape: tuple = ()
    ndim = 0

    def astype(self, dtype, **_) -> Scalar:
        return Scalar(self.trace, self.trace.graph.convert(self.node, name_of(dtype)))

    def clip(self, low=None, high=None) -> Scalar:
        return _clip(self.trace, self, low, high)

    def __bool__(self):
        refuse_branch()

    __int__ = __float__ = __index__ = __bool__  # type: ignore[assignment]

    def __neg__(self):
        return np.negative(self)

    def __pos__(self):
        return self

    def __abs__(self):
        return np.absolute(self)

    def __invert__(self):
        return np.invert(self)

    def __array__(self, *_, **__):
        raise Error("an argument is used as an array of NumPy by a function that has no "
                    "expression of scalars")

    def __array_ufunc__(self, function, method, *inputs, **keywords):
        if method != "__call__" or keywords:
            raise Error(f"numpy.{function.__name__} with keywords or methods has no "
                        "expression of scalars")
        return _call(self.trace, function, inputs)

    def __array_function__(self, function, types, arguments, keywords):
        rule = _FUNCTIONS.get(function)
        if rule is None:
            raise Error(f"numpy.{function.__name__} has no expression of scalars")
        return rule(self.trace, *arguments, **keywords)


def _define_operators() -> None:
    for name, function in _OPERATORS.items():
        ufunc = getattr(np, function)
        setattr(Scalar, f"__{name}__", lambda x, y, f=ufunc: f(x, y))
        if name not in ("eq", "ne", "lt", "le", "gt", "ge"):
            setattr(Scalar, f"__r{name}__", lambda x, y, f=ufunc: f(y, x))


_define_operators()


class _Captured(np.lib.mixins.NDArrayOperatorsMixin):
    """An array that a function captures, whose elements are read by index."""

    def __init__(self, trace: Trace, array, indices: tuple = ()):
        self._trace, self._array, self._indices = trace, array, indices
        self.dtype = array.dtype
        self.ndim = array.ndim - len(indices)

    @property
    def shape(self) -> tuple[int, ...]:
        self._trace.reads_sizes = True
        return self._array.shape[len(self._indices):]

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        return bool(_read(self))

    def __int__(self) -> int:
        return int(_read(self))

    def __float__(self) -> float:
        return float(_read(self))

    def __index__(self) -> int:
        return operator.index(_read(self))

    def __getitem__(self, index):
        indices = self._indices + (index if isinstance(index, tuple) else (index,))
        if len(indices) > self._array.ndim:
            raise Error(f"a captured array of {self._array.ndim} dimensions has "
                        f"{len(indices)} indices")
        if len(indices) < self._array.ndim:
            return _Captured(self._trace, self._array, indices)
        nodes = []
        for one in indices:
            node = _to_node(self._trace, one, "i64") if not isinstance(
                one, Scalar) else one.node
            if not node.is_integer:
                raise Error("captured arrays are indexed by integers only")
            nodes.append(node)
        return Scalar(self._trace, self._trace.load(self._array, tuple(nodes)))

    def __getattr__(self, name: str):
        return getattr(_read(self), name)

    def __array_ufunc__(self, function, method, *inputs, **keywords):
        if method == "__call__" and not keywords and all(
                not one.ndim for one in inputs if isinstance(one, (Scalar, _Captured))):
            return _call(self._trace, function, inputs)
        result = getattr(function, method)(*(
            _read(one) if isinstance(one, _Captured) else one for one in inputs),
            **keywords)
        return _Captured(self._trace, result) if isinstance(result, np.ndarray) else result

    def __array__(self, *arguments, **keywords):
        return np.asarray(_read(self), *arguments, **keywords)


def _read(captured: _Captured):
    """Returns a part of a captured array, for operations without arguments of pairs."""
    if any(isinstance(one, Scalar) for one in captured._indices):
        raise Error(f"a captured array of {captured._array.ndim} dimensions is used with "
                    f"{len(captured._indices)} indices, where a single number is needed")
    captured._trace.reads_values = True
    return captured._array[captured._indices]


def _type_of(node: Node) -> np.dtype:
    name = FRAMEWORK_NAMES[node.dtype]
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def _to_scalar(trace: Trace, value: Any) -> Any:
    """Returns an operand that has a type of its own; None for numbers of Python."""
    if isinstance(value, Scalar):
        return value
    if isinstance(value, _Captured):
        if value.ndim:
            raise Error(f"a captured array of the shape {value.shape} is used where a "
                        "single number is needed")
        return value[()] if value._indices == () else value
    if isinstance(value, np.generic):
        return Scalar(trace, trace.graph.constant(value.item(), name_of(value.dtype)))
    if isinstance(value, np.ndarray) and not value.ndim:
        return Scalar(trace, trace.load(value, ()))
    return None


def _to_node(trace: Trace, value, dtype: str) -> Node:
    scalar = _to_scalar(trace, value)
    if scalar is not None:
        return trace.graph.convert(scalar.node, dtype)
    if not isinstance(value, (bool, int, float)):
        raise Error(f"a {type(value).__name__} is used where a single number is needed")
    return trace.graph.constant(value, dtype)


def _sample(trace: Trace, value):
    """Returns a number of the type of an operand."""
    scalar = _to_scalar(trace, value)
    return value if scalar is None else _type_of(scalar.node).type(1)


def _infer_type(trace: Trace, function: Callable, inputs) -> str:
    with np.errstate(all="ignore"):
        return name_of(np.asarray(function(*(
            _sample(trace, value) for value in inputs))).dtype)


def _call(trace: Trace, function: Callable, inputs) -> Scalar:
    graph, name = trace.graph, function.__name__
    if name in _COMPARE or name in ("isnan", "isinf"):
        samples = [_sample(trace, value) for value in inputs]
        dtype = name_of(np.result_type(*samples))
        nodes = [_to_node(trace, value, dtype) for value in inputs]
        if name in _COMPARE:
            return Scalar(trace, graph.compare(_COMPARE[name], dtype, *nodes))
        return Scalar(trace, _test(graph, name, nodes[0]))
    if name in _LOGICAL or name == "logical_not":
        nodes = [_to_node(trace, value, _own_type(trace, value)) for value in inputs]
        if name == "logical_not":
            return Scalar(trace, graph.negate(graph.to_bool(nodes[0])))
        return Scalar(trace, _rules.logical(graph, _LOGICAL[name], *nodes))
    dtype = _infer_type(trace, function, inputs)
    nodes = [_to_node(trace, value, dtype) for value in inputs]
    return Scalar(trace, _apply(graph, name, dtype, nodes))


def _own_type(trace: Trace, value) -> str:
    scalar = _to_scalar(trace, value)
    return "i1" if scalar is None else scalar.node.dtype


def _test(graph: Graph, name: str, x: Node) -> Node:
    if not x.is_float:
        return graph.constant(False, "i1")
    if name == "isnan":
        return graph.compare("ne", x.dtype, x, x)
    infinity = graph.constant(float("inf"), x.dtype)
    return graph.compare("eq", x.dtype, graph.apply("abs", x.dtype, x), infinity)


def _apply(graph: Graph, name: str, dtype: str, nodes: list[Node]) -> Node:
    if name in _UNARY:
        return _rules.unary(graph, _UNARY[name], dtype, nodes[0])
    if name in _BINARY:
        return graph.apply(_BINARY[name], dtype, *nodes)
    if name in _SHIFTS:
        return _rules.shift(graph, _SHIFTS[name], dtype, *nodes)
    if name in ("divide", "true_divide"):
        return _rules.divide(graph, dtype, nodes[0], nodes[1])
    if name == "floor_divide":
        return _rules.divide(graph, dtype, nodes[0], nodes[1], "floor")
    if name == "remainder":
        return _rules.remainder(graph, dtype, *nodes)
    if name == "fmod":
        return _rules.fmod(graph, dtype, *nodes)
    if name == "power":
        return graph.power(dtype, *nodes)
    if name == "invert":
        return graph.make("bitwise_not", (nodes[0],), dtype)
    if name == "square":
        return graph.apply("mul", dtype, nodes[0], nodes[0])
    if name == "reciprocal":
        return graph.apply("divide", dtype, graph.constant(1, dtype), nodes[0])
    if name == "sign":
        return _rules.sign(graph, dtype, nodes[0])
    raise Error(f"numpy.{name} has no expression of scalars")


def _where(trace: Trace, condition, *values) -> Scalar:
    if len(values) != 2:
        raise Error("numpy.where needs a condition and two values")
    dtype = _infer_type(trace, lambda x, y: np.where(True, x, y), values)
    graph = trace.graph
    chosen = graph.to_bool(_to_node(trace, condition, _own_type(trace, condition)))
    return Scalar(trace, graph.select(
        chosen, *(_to_node(trace, value, dtype) for value in values)))


def _clip(trace: Trace, x, a_min=None, a_max=None, **others) -> Scalar:
    low, high = others.pop("min", a_min), others.pop("max", a_max)
    if others:
        raise Error(f"numpy.clip with {min(others)} has no expression of scalars")
    bounds = [one for one in (low, high) if one is not None]
    dtype = _infer_type(trace, lambda *values: sum(values[1:], values[0]), [x, *bounds])
    return Scalar(trace, _rules.clamp(
        trace.graph, dtype, _to_node(trace, x, dtype),
        *(None if one is None else _to_node(trace, one, dtype) for one in (low, high))))


_FUNCTIONS: dict[Any, Callable[..., Scalar]] = {np.where: _where, np.clip: _clip}


def trace_numpy(function: Callable, trace: Trace, names: tuple[str, ...]) -> Node:
    """Calls a function with the arguments of a pair and returns its result."""
    graph = trace.graph
    # Arrays are replaced, as NumPy asks an index for its value.
    wrapped: dict[int, _Captured] = {}

    def wrap(array) -> _Captured:
        return wrapped.setdefault(id(array), _Captured(trace, array))

    traced = replace_arrays(function, wrap)
    result = traced(*(Scalar(trace, graph.argument(
        name, graph.score_dtype if name == "score" else "i64")) for name in names))
    scalar = _to_scalar(trace, result)
    if scalar is not None:
        return scalar.node
    if isinstance(result, bool):
        return graph.constant(result, "i1")
    if isinstance(result, (int, float)):
        return graph.constant(result, graph.score_dtype)
    raise Error(f"expected a single number as the result, got a {type(result).__name__}")
