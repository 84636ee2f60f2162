# ===- _trace_numpy.py - functions of NumPy as expressions -----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Traces a `score_mod` or `mask_mod` of NumPy: it is called once, with scalars that
record operators of Python and functions of NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._errors import Error
from . import _numpy_functions  # noqa: F401 (it adds rules of functions)
from ._captures import replace_arrays
from ._numpy_scalars import Captured, Scalar, to_scalar
from ._score_graph import Node
from ._trace import Trace


def trace_numpy(function: Callable, trace: Trace, names: tuple[str, ...]) -> Node:
    """Calls a function with the arguments of a pair and returns its result."""
    graph = trace.graph
    # Arrays are replaced, as NumPy asks an index for its value.
    wrapped: dict[int, Captured] = {}

    def wrap(array) -> Captured:
        return wrapped.setdefault(id(array), Captured(trace, array))

    traced = replace_arrays(function, wrap)
    result = traced(*(Scalar(trace, graph.argument(
        name, graph.score_dtype if name == "score" else "i64")) for name in names))
    if isinstance(result, np.ndarray) and result.dtype == object and result.size == 1:
        result = result.item()
    scalar = to_scalar(trace, result)
    if scalar is not None:
        return scalar.node
    if isinstance(result, bool):
        return graph.constant(result, "i1")
    if isinstance(result, (int, float)):
        return graph.constant(result, graph.score_dtype)
    raise Error(f"expected a single number as the result, got a {type(result).__name__}")
