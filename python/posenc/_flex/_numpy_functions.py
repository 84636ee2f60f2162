# ===- _numpy_functions.py - functions of NumPy --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The rules of NumPy's functions that are written in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._errors import Error
from . import _functions, _rules
from ._numpy_scalars import FUNCTIONS, Captured, Scalar, infer_type, own_type, read, to_node
from ._score_graph import FLOATS, name_type
from ._trace import Trace


def _where(trace: Trace, condition, *values) -> Scalar:
    if len(values) != 2:
        raise Error("numpy.where needs a condition and two values")
    dtype = infer_type(trace, lambda x, y: np.where(True, x, y), values)
    graph = trace.graph
    chosen = graph.to_bool(to_node(trace, condition, own_type(trace, condition)))
    return Scalar(trace, graph.select(
        chosen, *(to_node(trace, value, dtype) for value in values)))


def _clip(trace: Trace, x, a_min=None, a_max=None, **others) -> Scalar:
    low, high = others.pop("min", a_min), others.pop("max", a_max)
    if others:
        raise Error(f"numpy.clip with {min(others)} has no expression of scalars")
    bounds = [one for one in (low, high) if one is not None]
    dtype = infer_type(trace, lambda *values: sum(values[1:], values[0]), [x, *bounds])
    return Scalar(trace, _rules.clamp(
        trace.graph, dtype, to_node(trace, x, dtype),
        *(None if one is None else to_node(trace, one, dtype) for one in (low, high))))


def _round(trace: Trace, x, decimals=0, out=None) -> Scalar:
    if decimals or out is not None:
        raise Error("numpy.round with decimals has no expression of scalars")
    return np.rint(x) if x.node.is_float else x


def _is_in(trace: Trace, element, test_elements, assume_unique=False, invert=False,
           **_) -> Scalar:
    tests = (np.ravel(read(test_elements)) if isinstance(test_elements, Captured)
             else np.ravel(test_elements))
    found: Any = np.not_equal(element, element) & False
    for one in tests:
        found = found | (element == one)
    return ~found if invert else found


def _same(trace: Trace, x, *_, **__) -> Scalar:
    return x


def _fill(value) -> Callable[..., Scalar]:
    def rule(trace: Trace, x, fill_value=None, dtype=None, **_) -> Scalar:
        number = fill_value if value is None else value
        kind = x.node.dtype if dtype is None else name_type(np.dtype(dtype))
        return Scalar(trace, to_node(trace, number, kind))

    return rule


def _sinc(trace: Trace, x) -> Scalar:
    dtype = x.node.dtype if x.node.dtype in FLOATS else "f64"
    return Scalar(trace, _functions.call(trace.graph, "sinc", dtype, [x.node]))


def _nan_to_num(trace: Trace, x, copy=True, nan=0.0, posinf=None, neginf=None) -> Scalar:
    return Scalar(trace, _functions.call(trace.graph, "nan_to_num", x.node.dtype, [x.node],
                                         nan, posinf, neginf))


def _take(trace: Trace, array, index, axis=None, **_) -> Any:
    if array.ndim != 1:
        raise Error("numpy.take of an array of several dimensions has no expression of "
                    "scalars")
    return array[index]


def _close(trace: Trace, x, y, rtol=1e-5, atol=1e-8, **_) -> Scalar:
    return abs(x - y) <= atol + rtol * abs(y)


def _select(trace: Trace, conditions, values, default=0) -> Scalar:
    result = default
    for condition, value in reversed(list(zip(conditions, values))):
        result = np.where(condition, value, result)
    return result


_MORE: dict[Any, Any] = {
    np.where: _where, np.clip: _clip, np.round: _round, np.around: _round,
    np.isin: _is_in, np.sinc: _sinc, np.nan_to_num: _nan_to_num,
    np.zeros_like: _fill(0), np.ones_like: _fill(1), np.full_like: _fill(None),
    np.any: lambda trace, x, *_, **__: x.any(), np.all: lambda trace, x, *_, **__: x.any(),
    np.take: _take, np.isclose: _close, np.select: _select,
    **dict.fromkeys(
        (np.sum, np.max, np.min, np.mean, np.prod, np.squeeze, np.real, np.copy), _same)}
FUNCTIONS.update(_MORE)
