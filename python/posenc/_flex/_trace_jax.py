# ===- _trace_jax.py - functions of JAX as expressions ---------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Traces a `score_mod` or `mask_mod` of JAX, by `jax.make_jaxpr`.

JAX writes the remainder of integers, their rounded quotient and negative indices by
several operations, which have the sizes of arrays as constants. They become one
operation again here, so that expressions do not depend on sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from .._errors import Error
from . import _rules
from ._captures import replace_arrays
from ._numbers import Number
from ._score_graph import CARRIED, COMPARISONS, Graph, Node, name_in_frameworks, name_type
from ._trace import Trace, refuse_branch

# Names of JAX for operations of `_rules`.
_OPERATIONS = {
    **{name: name for name in _rules.UNARY if name not in ("sigmoid", "round")},
    **{name: name for name in ("add", "sub", "mul", "atan2", "cbrt", "clamp", "shift_left",
                               "shift_right_logical", "sign", "square")},
    "add_any": "add", "and": "bitwise_and", "logistic": "sigmoid", "max": "maximum",
    "min": "minimum", "not": "bitwise_not", "or": "bitwise_or", "pow": "power",
    "rem": "fmod", "shift_right_arithmetic": "shift_right", "xor": "bitwise_xor"}
# Reductions, which single numbers are left as they are by.
_REDUCTIONS = ("reduce_sum", "reduce_max", "reduce_min", "reduce_and", "reduce_or",
               "reduce_prod", "cumsum", "cumprod", "cummax", "cummin")
# Operations of one operand that change no single number.
_SAME = ("copy", "reshape", "broadcast_in_dim", "squeeze",
         "reduce_precision", "optimization_barrier", "copy_p", "real")
# Types with the same bits.
_SIGNED = {"u8": "i8", "u32": "i32"}
# The parameter of operations that have a function.
_FUNCTIONS = ("jaxpr", "call_jaxpr", "fun_jaxpr")


class _View:
    """A captured array of which some dimensions have an index."""

    def __init__(self, array, indices: Sequence[Node | None]):
        self.array, self.indices = array, tuple(indices)

    def take(self, index: Sequence[Node | None]) -> _View:
        """Sets indices of the dimensions that have none."""
        rest = iter(index)
        return _View(self.array, [next(rest) if one is None else one
                                  for one in self.indices])


def _strip(graph: Graph, node: Node, size: int) -> Node:
    """Returns an index without what JAX adds for negative ones: select(x < 0, x + size,
    x), in this order or another."""
    if node.op != "select":
        return node
    condition, wrapped, index = node.operands
    zero, whole = (graph.constant(value, index.dtype) for value in (0, size))
    is_negative = graph.compare("lt", index.dtype, index, zero)
    return index if condition is is_negative and wrapped is graph.apply(
        "add", index.dtype, index, whole) else node


def _find_remainder(graph: Graph, node: Node) -> Node:
    """Returns the remainder with the sign of the divisor, or the quotient rounded down,
    if a node is what JAX makes of it."""
    if node.op != "select" or not node.is_integer:
        return node
    dtype, (_, changed, value) = node.dtype, node.operands
    if value.op not in ("fmod", "divide_trunc"):
        return node
    x, y = value.operands
    zero = graph.constant(0, dtype)
    if value.op == "fmod":
        signs = [graph.compare("lt", dtype, one, zero) for one in (value, y)]
        rest, expected = value, graph.apply("add", dtype, value, y)
        result = graph.apply("remainder", dtype, x, y)
    else:
        signs = [_rules.sign(graph, dtype, one) for one in (x, y)]
        rest = graph.apply("fmod", dtype, x, y)
        expected = graph.apply("sub", dtype, value, graph.constant(1, dtype))
        result = graph.apply("floor_divide", dtype, x, y)
    differ = graph.compare("ne", signs[0].dtype, *signs)
    wrong = graph.make("bitwise_and", (differ, graph.compare("ne", dtype, rest, zero)),
                       "i1")
    return result if node is graph.select(wrong, expected, value) and (
        changed is expected) else node


class _Interpreter:
    """Computes the values of a jaxpr as nodes, or as views of captured arrays."""

    def __init__(self, trace: Trace):
        self.trace, self.graph = trace, trace.graph

    def run(self, jaxpr, constants: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, constants))
        values.update(zip(jaxpr.invars, inputs))

        def read(variable):
            if hasattr(variable, "val"):  # It is a literal.
                return self.constant(variable.val, variable.aval.dtype)
            return values[variable]

        for equation in jaxpr.eqns:
            results = self.evaluate(equation, [read(one) for one in equation.invars])
            values.update(zip(equation.outvars, results))
        return [read(one) for one in jaxpr.outvars]

    def constant(self, value, dtype) -> Node | _View:
        if np.ndim(value):
            return _View(value, [None] * np.ndim(value))
        return self.graph.constant(np.asarray(value).item(), name_type(dtype))

    def number(self, value) -> Node:
        """Returns a value that is a single number."""
        if isinstance(value, Node):
            return value
        if None in value.indices:
            raise Error(f"a captured array of the shape {tuple(value.array.shape)} is "
                        "used where a single number is needed")
        return self.trace.load(value.array, value.indices)

    def evaluate(self, equation, inputs: list[Any]) -> list[Any]:
        name, parameters = equation.primitive.name, equation.params
        for key in _FUNCTIONS:
            if key in parameters:
                inner = parameters[key]
                closed = getattr(inner, "jaxpr", inner)
                constants = getattr(inner, "consts", ())
                return [self.simplify(one) for one in
                        self.run(closed, list(map(self.capture, constants)), inputs)]
        if not inputs or any(isinstance(one, _View) and None in one.indices
                             for one in inputs):
            return self.evaluate_arrays(equation, inputs)
        if name == "cond" and len(parameters["branches"]) == 2:
            return self.choose(parameters["branches"], inputs)
        if name in ("cond", "while", "scan"):
            refuse_branch()
        shape = equation.outvars[0].aval.shape
        if shape and name not in ("broadcast_in_dim", "reshape"):
            raise Error(f"{name} gives an array of the shape {shape}, but functions of "
                        "scores are for single pairs")
        dtype = name_type(equation.outvars[0].aval.dtype)
        return [self.simplify(self.apply(name, parameters, dtype,
                                         list(map(self.number, inputs))))]

    def choose(self, branches, inputs: list[Any]) -> list[Any]:
        """Evaluates both branches of a condition."""
        condition = self.graph.to_bool(self.number(inputs[0]))
        otherwise, chosen = (self.run(one.jaxpr, list(map(self.capture, one.consts)),
                                      inputs[1:]) for one in branches)
        return [self.graph.select(condition, self.number(one), self.number(other))
                for one, other in zip(chosen, otherwise)]

    def evaluate_arrays(self, equation, inputs: list[Any]) -> list[Any]:
        """Takes a part of a captured array, or computes an array of captured ones."""
        known = [self.find_value(one, variable) for one, variable in zip(
            inputs, equation.invars)]
        is_known = all(one is not None for one in known)
        if inputs and isinstance(inputs[0], _View):
            try:
                return [self.view(equation.primitive.name, equation.params, inputs[0],
                                  inputs[1:])]
            except Error:
                if not is_known:
                    raise
        if not is_known:
            raise Error(f"{equation.primitive.name} of a captured array has no expression "
                        "of scalars")
        bound: Any = equation.primitive.get_bind_params(equation.params)
        functions, parameters = bound if isinstance(bound, tuple) else ((), bound)
        results = equation.primitive.bind(*functions, *known, **parameters)
        return [_View(one, [None] * np.ndim(one)) for one in (
            results if equation.primitive.multiple_results else [results])]

    def find_value(self, value, variable) -> Any:
        """Returns a captured array, or a constant; None for other expressions."""
        if isinstance(value, Node):
            return (np.asarray(value.payload, variable.aval.dtype)
                    if value.op == "constant" else None)
        return value.array if all(one is None for one in value.indices) else None

    def capture(self, value) -> Node | _View:
        return _View(value, [None] * np.ndim(value))

    def simplify(self, value):
        return _find_remainder(self.graph, value) if isinstance(value, Node) else value

    def view(self, name: str, parameters: dict, view: _View, rest: list[Any]) -> _View:
        """Takes a part of a captured array: whole dimensions, or single indices."""
        sizes = [size for size, one in zip(view.array.shape, view.indices) if one is None]
        if name == "dynamic_slice":
            starts: list[Any] = [self.number(one) for one in rest]
            widths = parameters["slice_sizes"]
        elif name == "slice" and parameters["strides"] is None:
            starts = [self.graph.constant(one, "i64")
                      for one in parameters["start_indices"]]
            widths = [end - start for start, end in zip(parameters["start_indices"],
                                                        parameters["limit_indices"])]
        elif name == "squeeze":
            return view
        elif name == "convert_element_type" or name in _SAME:
            raise Error(f"a captured array is used as a whole by {name}; convert the "
                        "element, or the array outside of the function")
        else:
            raise Error(f"{name} of a captured array has no expression of scalars")
        index: list[Node | None] = []
        for start, width, size in zip(starts, widths, sizes):
            if width == size and size != 1:
                index.append(None)
            elif width == 1:
                index.append(_strip(self.graph, start, size))
            else:
                raise Error(f"{width} elements of a captured array are read at once, "
                            "expected single ones")
        return view.take(index)

    def apply(self, name: str, parameters: dict, dtype: str, nodes: list[Node]) -> Node:
        graph = self.graph
        if name in _OPERATIONS:
            return _rules.compute(graph, _OPERATIONS[name], dtype, nodes)
        if name in COMPARISONS:
            return graph.compare(name, nodes[0].dtype, *nodes)
        if name in _SAME:
            return nodes[0]
        if name == "stop_gradient":
            return graph.detach(nodes[0])
        if name == "convert_element_type":
            return graph.convert(nodes[0], dtype)
        if name == "div":
            return _rules.compute(graph, "divide" if nodes[0].is_float else "divide_trunc",
                                  dtype, nodes)
        if name == "integer_pow":
            return graph.power(dtype, nodes[0],
                               graph.constant(parameters["y"], "f64"))
        if name in _REDUCTIONS:
            return nodes[0]
        if name == "bitcast_convert_type" and nodes[0].dtype not in CARRIED:
            return graph.make("bitcast", (nodes[0],), _SIGNED.get(dtype, dtype))
        if name == "round":
            return self.round(parameters, dtype, nodes[0])
        if name == "is_finite":
            return abs(Number(graph, nodes[0].dtype, nodes[0])) < float("inf")
        if name == "select_n" and len(nodes) == 3:
            condition, if_false, if_true = nodes
            return graph.select(condition, if_true, if_false)
        raise Error(f"the operation {name} of JAX has no expression of scalars")

    def round(self, parameters: dict, dtype: str, x: Node) -> Node:
        if int(parameters["rounding_method"]) == 1:  # to even
            return self.graph.apply("round", dtype, x)
        # Away from zero: the sign times floor(|x| + 1/2).
        graph, half = self.graph, self.graph.constant(0.5, dtype)
        size = graph.apply("add", dtype, graph.apply("abs", dtype, x), half)
        return graph.apply("mul", dtype, _rules.sign(graph, dtype, x),
                           graph.apply("floor", dtype, size))


def trace_jax(function: Callable, trace: Trace, names: tuple[str, ...]) -> Node:
    """Calls a function with tracers of a pair and returns its result."""
    # Sizes of arrays are constants of JAX's expressions.
    trace.reads_sizes = True
    count = len(trace.arrays)
    try:
        return _trace_with_inputs(function, trace, names)
    except Exception:
        # The function may read elements, which are no numbers if arrays are inputs.
        trace.forget(count)
        trace.reads_values = True
    try:
        return _trace(function, trace, names)
    except (jax.errors.ConcretizationTypeError,
            jax.errors.TracerBoolConversionError) as error:
        try:
            refuse_branch()
        except Error as refusal:  # With the line of the function.
            raise refusal.with_traceback(error.__traceback__) from None


def _trace_with_inputs(function: Callable, trace: Trace, names: tuple[str, ...]) -> Node:
    """Traces a function whose captured arrays are inputs."""
    arrays: dict[int, Any] = {}

    def find(array):
        return array if isinstance(array, np.ndarray) else arrays.setdefault(
            id(array), array)

    replace_arrays(function, find)

    def call(inputs, *pair):
        known = dict(zip(arrays, inputs))
        return replace_arrays(function, lambda array: known.get(id(array), array))(*pair)

    return _trace(call, trace, names, tuple(arrays.values()))


def _trace(function: Callable, trace: Trace, names: tuple[str, ...],
           arrays: tuple | None = None) -> Node:
    graph = trace.graph
    dtypes = [graph.score_dtype if name == "score" else "i32" for name in names]
    pair = [jax.ShapeDtypeStruct((), name_in_frameworks(dtype)) for dtype in dtypes]
    inputs = [] if arrays is None else [[
        jax.ShapeDtypeStruct(one.shape, one.dtype) for one in arrays]]
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*inputs, *pair)
    if getattr(shape, "shape", None) != ():
        raise Error("expected a single number as the result")
    interpreter = _Interpreter(trace)
    arguments = [graph.argument(name, dtype) for name, dtype in zip(names, dtypes)]
    result, = interpreter.run(closed.jaxpr, list(map(interpreter.capture, closed.consts)),
                              [*map(interpreter.capture, arrays or ()), *arguments])
    return interpreter.number(result)
