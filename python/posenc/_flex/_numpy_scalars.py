# ===- _numpy_scalars.py - scalars of NumPy as expressions -----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Scalars and captured arrays that record operators of Python and functions of NumPy.
Types are those of NumPy's scalars."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .._errors import Error
from . import _functions, _rules
from ._numbers import Number
from ._score_graph import Graph, Node, name_in_frameworks, name_type
from ._trace import Trace, refuse_branch

# Names of NumPy for operations of `_rules` and `_functions`.
_OPERATIONS = {
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: name for name in _rules.UNARY if name not in
       ("neg", "abs", "round", "asin", "acos", "atan", "asinh", "acosh", "atanh", "rsqrt",
        "erf", "erfc", "sigmoid")},
    **{name: name for name in (
        "bitwise_and", "bitwise_or", "bitwise_xor", "cbrt", "copysign", "deg2rad", "divide",
        "fmax", "fmin", "fmod", "heaviside", "hypot", "ldexp", "logaddexp", "logaddexp2",
        "maximum", "minimum", "power", "rad2deg", "reciprocal", "remainder", "sign",
        "square", "add")},
    "absolute": "abs", "arctan2": "atan2", "degrees": "rad2deg", "fabs": "abs",
    "float_power": "power", "floor_divide": "divide_floor", "invert": "bitwise_not",
    "left_shift": "shift_left", "multiply": "mul", "negative": "neg",
    "radians": "deg2rad", "right_shift": "shift_right", "rint": "round",
    "subtract": "sub", "true_divide": "divide"}
_TESTS: dict[str, Callable[[Number], Any]] = {
    "isnan": Number.is_nan, "isinf": _functions.is_infinite,
    "signbit": _functions.is_negative}
_COMPARE = {"equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le",
            "greater": "gt", "greater_equal": "ge"}
_LOGICAL = {"logical_and": "bitwise_and", "logical_or": "bitwise_or",
            "logical_xor": "bitwise_xor"}
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
        return Scalar(self.trace, self.trace.graph.convert(self.node, name_type(dtype)))

    def clip(self, low=None, high=None) -> Any:
        return np.clip(self, low, high)

    def __bool__(self):
        refuse_branch()

    __int__ = __float__ = __index__ = __bool__  # type: ignore[assignment]
    __round__ = __floor__ = __ceil__ = __trunc__ = __len__ = __iter__ = __bool__

    def item(self, *_):
        refuse_branch()

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __getitem__(self, index):
        if index not in ((), Ellipsis):
            raise Error("a number is indexed, which has no dimensions")
        return self

    def squeeze(self) -> Scalar:
        return self

    def any(self) -> Any:
        return np.not_equal(self, 0)

    all = any

    def sum(self) -> Scalar:
        return self

    max = min = mean = prod = sum
    T = property(squeeze)

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
        rule = FUNCTIONS.get(function)
        if rule is None and function in _OF_ARRAYS:
            return _call_on_elements(function, arguments, keywords)
        if rule is None:
            raise Error(f"numpy.{function.__name__} has no expression of scalars")
        return rule(self.trace, *arguments, **keywords)


# Rules of functions of NumPy that are not of class ufunc. `_numpy_functions` fills it.
FUNCTIONS: dict[Any, Callable[..., Any]] = {}
# Functions that NumPy applies to arrays of objects.
_OF_ARRAYS = frozenset((np.stack, np.concatenate, np.dot, np.vdot, np.inner, np.outer,
                        np.cumsum, np.array_equal, np.atleast_1d, np.expand_dims))


def _define_operators() -> None:
    for name, function in _OPERATORS.items():
        ufunc = getattr(np, function)
        setattr(Scalar, f"__{name}__", lambda x, y, f=ufunc: f(x, y))
        if name not in ("eq", "ne", "lt", "le", "gt", "ge"):
            setattr(Scalar, f"__r{name}__", lambda x, y, f=ufunc: f(y, x))


_define_operators()


class Captured(np.lib.mixins.NDArrayOperatorsMixin):
    """An array that a function captures, whose elements are read by index."""

    def __init__(self, trace: Trace, array, indices: tuple = ()):
        self._trace, self._array = trace, array
        # By dimension of the array; a slice if it is whole.
        self._indices = indices or (slice(None),) * array.ndim
        self.dtype = array.dtype
        self.ndim = sum(isinstance(one, slice) for one in self._indices)

    @property
    def shape(self) -> tuple[int, ...]:
        self._trace.reads_sizes = True
        return tuple(size for size, one in zip(self._array.shape, self._indices)
                     if isinstance(one, slice))

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        return bool(read(self))

    def __int__(self) -> int:
        return int(read(self))

    def __float__(self) -> float:
        return float(read(self))

    def __index__(self) -> int:
        return operator.index(read(self))

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        used = [one for one in index if one is not Ellipsis]
        if len(used) > self.ndim:
            raise Error(f"a captured array of {self._array.ndim} dimensions has "
                        f"{self._array.ndim - self.ndim + len(used)} indices")
        if not all(isinstance(one, (int, np.integer, Scalar, Captured))
                   or (isinstance(one, slice) and one == slice(None)) for one in used):
            if any(isinstance(one, Scalar) for one in (*used, *self._indices)):
                raise Error("captured arrays are indexed by integers and by ':' only in "
                            "functions of scores")
            return self._keep(read(self)[index])
        whole = [slice(None)] * (self.ndim - len(used))
        at = next((number for number, one in enumerate(index) if one is Ellipsis),
                  len(index))
        rest = iter([*index[:at], *whole, *index[at + 1:]])
        indices = tuple(next(rest) if isinstance(one, slice) else one
                        for one in self._indices)
        if any(isinstance(one, slice) for one in indices):
            return Captured(self._trace, self._array, indices)
        nodes = []
        for one in indices:
            node = to_node(self._trace, one, "i64") if not isinstance(
                one, Scalar) else one.node
            if not node.is_integer:
                raise Error("captured arrays are indexed by integers only")
            nodes.append(node)
        return Scalar(self._trace, self._trace.load(self._array, tuple(nodes)))

    def __getattr__(self, name: str):
        value = getattr(read(self), name)
        if callable(value):
            return lambda *arguments, **keywords: self._keep(value(*arguments, **keywords))
        return self._keep(value)

    def _keep(self, value):
        """Returns an array that is made of captured ones as if it were one of them."""
        if isinstance(value, np.ndarray) and value.dtype != object:
            return Captured(self._trace, np.ascontiguousarray(value))
        return value

    def __array_ufunc__(self, function, method, *inputs, **keywords):
        if method == "__call__" and not keywords and all(
                not one.ndim for one in inputs if isinstance(one, (Scalar, Captured))):
            return _call(self._trace, function, inputs)
        result = getattr(function, method)(*(
            read(one) if isinstance(one, Captured) else
            _wrap(one) if isinstance(one, Scalar) else one for one in inputs), **keywords)
        return self._keep(result)

    def __array_function__(self, function, types, arguments, keywords):
        if function in FUNCTIONS and any(isinstance(one, Scalar) for one in arguments):
            return FUNCTIONS[function](self._trace, *arguments, **keywords)
        return self._keep(_call_on_elements(function, arguments, keywords))

    def __array__(self, *arguments, **keywords):
        return np.asarray(read(self), *arguments, **keywords)


# Elements of a captured array that one operation may read for a pair.
_MAX_ELEMENTS = 256


def read(captured: Captured):
    """Returns a part of a captured array for operations of all of its elements, which are
    expressions if the index has one."""
    if not any(isinstance(one, Scalar) for one in captured._indices):
        captured._trace.reads_values = True
        return captured._array[captured._indices]
    shape = captured.shape
    if math.prod(shape) > _MAX_ELEMENTS:
        raise Error(f"a part of a captured array, of the shape {shape}, is used where a "
                    f"single number is needed, or at most {_MAX_ELEMENTS}")
    result = np.empty(shape, object)
    for at in np.ndindex(shape):
        result[at] = captured[at]
    return result


def _wrap(scalar: Scalar) -> np.ndarray:
    result = np.empty((), object)
    result[()] = scalar
    return result


def _call_on_elements(function: Callable, arguments, keywords):
    """Calls a function of arrays, whose elements are expressions."""
    def convert(value):
        if isinstance(value, Captured):
            return read(value)
        if isinstance(value, Scalar):
            return _wrap(value)
        if type(value) in (list, tuple):
            return type(value)(map(convert, value))
        return value

    return function(*convert(tuple(arguments)),
                    **{name: convert(one) for name, one in keywords.items()})


def _type_of(node: Node) -> np.dtype:
    name = name_in_frameworks(node.dtype)
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def to_scalar(trace: Trace, value: Any) -> Any:
    """Returns an operand that has a type of its own; None for numbers of Python."""
    if isinstance(value, Scalar):
        return value
    if isinstance(value, Captured):
        if value.ndim:
            raise Error(f"a captured array of the shape {value.shape} is used where a "
                        "single number is needed")
        return Scalar(value._trace, value._trace.load(value._array, ())) if (
            not value._array.ndim) else value
    if isinstance(value, np.generic):
        return Scalar(trace, trace.graph.constant(value.item(), name_type(value.dtype)))
    if isinstance(value, np.ndarray) and not value.ndim:
        return Scalar(trace, trace.load(value, ()))
    return None


def to_node(trace: Trace, value, dtype: str) -> Node:
    scalar = to_scalar(trace, value)
    if scalar is not None:
        return trace.graph.convert(scalar.node, dtype)
    if isinstance(value, np.ndarray) and value.dtype == object and value.size == 1:
        return to_node(trace, value.item(), dtype)
    if not isinstance(value, (bool, int, float)):
        raise Error(f"a {type(value).__name__} is used where a single number is needed")
    return trace.graph.constant(value, dtype)


def _sample(trace: Trace, value):
    """Returns a number of the type of an operand."""
    scalar = to_scalar(trace, value)
    return value if scalar is None else _type_of(scalar.node).type(1)


def infer_type(trace: Trace, function: Callable, inputs) -> str:
    with np.errstate(all="ignore"):
        return name_type(np.asarray(function(*(
            _sample(trace, value) for value in inputs))).dtype)


def _call(trace: Trace, function: Callable, inputs) -> Any:
    graph, name = trace.graph, function.__name__
    if name in _COMPARE or name in _TESTS or name == "isfinite":
        samples = [_sample(trace, value) for value in inputs]
        dtype = name_type(np.result_type(*samples))
        nodes = [to_node(trace, value, dtype) for value in inputs]
        if name in _COMPARE:
            return Scalar(trace, graph.compare(_COMPARE[name], dtype, *nodes))
        return Scalar(trace, _test(graph, name, nodes[0]))
    if name == "divmod":
        return tuple(_call(trace, one, inputs) for one in (np.floor_divide, np.remainder))
    if name in ("positive", "conjugate"):
        return to_scalar(trace, inputs[0])
    if name in _LOGICAL or name == "logical_not":
        nodes = [to_node(trace, value, own_type(trace, value)) for value in inputs]
        if name == "logical_not":
            return Scalar(trace, graph.negate(graph.to_bool(nodes[0])))
        return Scalar(trace, _rules.logical(graph, _LOGICAL[name], *nodes))
    dtype = infer_type(trace, function, inputs)
    nodes = [to_node(trace, value, dtype) for value in inputs]
    if name not in _OPERATIONS:
        raise Error(f"numpy.{name} has no expression of scalars")
    return Scalar(trace, _rules.compute(graph, _OPERATIONS[name], dtype, nodes))


def own_type(trace: Trace, value) -> str:
    scalar = to_scalar(trace, value)
    return "i1" if scalar is None else scalar.node.dtype


def _test(graph: Graph, name: str, x: Node) -> Node:
    number = Number(graph, x.dtype, x)
    if name == "signbit" and not x.is_float:
        return number < 0
    if name == "isfinite":
        return (abs(number) < math.inf) if x.is_float else graph.constant(True, "i1")
    return _TESTS[name](number) if x.is_float else graph.constant(False, "i1")
