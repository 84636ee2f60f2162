# ===- _torch_rules.py - operators of numbers of PyTorch --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The rules of PyTorch's operators whose results have an element for each element of their
operands."""

from __future__ import annotations

from collections.abc import Callable

from . import _functions, _rules
from ._numbers import Number
from ._score_graph import COMPARISONS, FLOATS, Node
from ._torch_scalars import ELEMENTWISE, Operands

# Operators that return their first operand, or a number that it only has the type of.
_SAME = ("alias", "clone", "lift_fresh", "positive", "contiguous", "lift", "real", "conj",
         "_conj", "_to_copy", "resolve_conj", "resolve_neg", "conj_physical")
_FILLED = {"zeros_like": 0, "ones_like": 1, "new_zeros": 0, "new_ones": 1, "empty_like": 0,
           "full_like": None, "new_full": None}
_LOGICAL = {"logical_and": "bitwise_and", "logical_or": "bitwise_or",
            "logical_xor": "bitwise_xor"}
_BITS = {"__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor"}
# Names of PyTorch for operations of `_rules`, and the number of their operands.
_OPERATIONS = {
    **{name: (name, 1) for name in (*_rules.UNARY, "bitwise_not", "reciprocal", "sign",
                                    "square")},
    **{name: (name, 2) for name in ("atan2", "copysign", "fmod", "remainder")},
    "__lshift__": ("shift_left", 2), "__rshift__": ("shift_right", 2),
    "arctan": ("atan", 1), "bitwise_left_shift": ("shift_left", 2),
    "bitwise_right_shift": ("shift_right", 2), "floor_divide": ("divide_floor", 2),
    "sgn": ("sign", 1), "special_erf": ("erf", 1), "special_erfc": ("erfc", 1),
    "special_expit": ("sigmoid", 1)}
# Operators as functions of `_functions`: the number of their operands and the names of
# their options, in order.
_NAMED: dict[str, tuple[int, tuple[str, ...]]] = {
    "addcdiv": (3, ("value",)), "addcmul": (3, ("value",)), "angle": (1, ()),
    "celu": (1, ("alpha",)), "deg2rad": (1, ()),
    "elu": (1, ("alpha", "scale", "input_scale")), "fmax": (2, ()), "fmin": (2, ()),
    "frac": (1, ()), "gelu": (1, ("approximate",)), "hardshrink": (1, ("lambd",)),
    "hardsigmoid": (1, ()), "hardswish": (1, ()),
    "hardtanh": (1, ("min_val", "max_val")), "heaviside": (2, ()), "hypot": (2, ()),
    "ldexp": (2, ()), "leaky_relu": (1, ("negative_slope",)), "lerp": (3, ()),
    "logaddexp": (2, ()), "logaddexp2": (2, ()), "logit": (1, ("eps",)), "mish": (1, ()),
    "nan_to_num": (1, ("nan", "posinf", "neginf")), "rad2deg": (1, ()), "relu": (1, ()),
    "relu6": (1, ()), "silu": (1, ()), "sinc": (1, ()),
    "softplus": (1, ("beta", "threshold")), "softshrink": (1, ("lambd",)),
    "special_entr": (1, ()), "special_xlog1py": (2, ()),
    "threshold": (1, ("threshold", "value")), "xlogy": (2, ())}


def _operation(op: str, count: int) -> Callable[[Operands], Node]:
    return lambda o: _rules.compute(o.graph, op, o.dtype,
                                    [o.node(number) for number in range(count)])


def _binary(name: str) -> Callable[[Operands], Node]:
    def rule(o: Operands) -> Node:
        right = o.node(1)
        alpha = o.number(2, "alpha", 1)
        if alpha != 1:
            right = o.graph.apply("mul", o.dtype, right, o.graph.constant(alpha, o.dtype))
        if o.dtype == "i1" and name in ("add", "maximum", "mul", "minimum"):
            op = "bitwise_or" if name in ("add", "maximum") else "bitwise_and"
            return _rules.logical(o.graph, op, o.node(0), right)
        return o.graph.apply(name, o.dtype, o.node(0), right)

    return rule


def _compare(name: str) -> Callable[[Operands], Node]:
    def rule(o: Operands) -> Node:
        dtype = o.common_type or o.dtype
        return o.graph.compare(name, dtype, o.node(0, dtype), o.node(1, dtype))

    return rule


def _where(o: Operands) -> Node:
    return o.graph.select(o.node(0, "i1"), o.node(1), o.node(2))


def _masked_fill(o: Operands) -> Node:
    return o.graph.select(o.node(1, "i1"), o.node(2), o.node(0))


def _divide(o: Operands) -> Node:
    return _rules.divide(o.graph, o.dtype, o.node(0), o.node(1),
                         o.keywords.get("rounding_mode"))


def _clamp(o: Operands) -> Node:
    low, high = (o.number(index, name) for index, name in ((1, "min"), (2, "max")))
    return _rules.clamp(o.graph, o.dtype, o.node(0),
                        *(None if one is None else o.to_node(one, o.dtype)
                          for one in (low, high)))


def _power(o: Operands) -> Node:
    # A constant exponent keeps its fraction: the result has the type of the base.
    exponent = o.arguments[1]
    is_number = not isinstance(exponent, Node)
    node = o.graph.make("constant", dtype="f64", payload=float(exponent)) \
        if is_number and o.dtype in FLOATS else o.node(1)
    return o.graph.power(o.dtype, o.node(0), node)


def _negate(o: Operands) -> Node:
    return o.graph.negate(o.graph.to_bool(o.own(0)))


def _logical(name: str) -> Callable[[Operands], Node]:
    return lambda o: _rules.logical(o.graph, name, o.node(0, "i1"), o.node(1, "i1"))


def _fill(value) -> Callable[[Operands], Node]:
    def rule(o: Operands) -> Node:
        number = value if value is not None else o.arguments[-1]
        return o.to_node(number, o.dtype)

    return rule


def _name(name: str, count: int, options: tuple[str, ...]) -> Callable[[Operands], Node]:
    """Returns the rule of a function of `_functions`."""
    def rule(o: Operands) -> Node:
        operands = [o.node(number) for number in range(count)]
        values = [o.named(option) for option in options]
        return _functions.call(o.graph, name, o.dtype, operands, *values)

    return rule


def _first(o: Operands) -> Number:
    x = o.own(0)
    return Number(o.graph, x.dtype, x)


def _test(test: Callable[[Number], Node]) -> Callable[[Operands], Node]:
    """Tests a float. Integers are finite."""
    def rule(o: Operands) -> Node:
        return test(_first(o)) if o.own(0).is_float else o.graph.constant(False, "i1")

    return rule


def _is_negative(o: Operands) -> Node:
    x = _first(o)
    return _functions.is_negative(x) if x.node.is_float else x < 0


def _make_rules() -> dict[str, Callable[[Operands], Node]]:
    rules: dict[str, Callable[[Operands], Node]] = {
        "where": _where, "masked_fill": _masked_fill, "clamp": _clamp, "pow": _power,
        "div": _divide, "true_divide": _divide, "logical_not": _negate,
        "rsub": lambda o: _binary("sub")(_swap(o)),
        "clamp_min": lambda o: _rules.clamp(o.graph, o.dtype, o.node(0), o.node(1), None),
        "clamp_max": lambda o: _rules.clamp(o.graph, o.dtype, o.node(0), None, o.node(1)),
        "detach": lambda o: o.graph.detach(o.node(0)),
        "signbit": _is_negative, "isnan": _test(Number.is_nan),
        "isinf": _test(_functions.is_infinite),
        "isposinf": _test(lambda x: _functions.is_infinite(x, 1)),
        "isneginf": _test(lambda x: _functions.is_infinite(x, -1))}
    rules.update({name: lambda o: o.node(0) for name in _SAME})
    rules.update({name: _fill(value) for name, value in _FILLED.items()})
    rules.update({name: _operation(*form) for name, form in _OPERATIONS.items()})
    rules.update({"round": _round, "copy": lambda o: o.node(1), "fill": _fill(None),
                  "zero": _fill(0)})
    rules.update({name: _binary(name) for name in _rules.BINARY})
    rules.update({name: _binary(op) for name, op in _BITS.items()})
    rules.update({name: _compare(name) for name in COMPARISONS})
    rules.update({name: _logical(op) for name, op in _LOGICAL.items()})
    rules.update({name: _name(name, *form) for name, form in _NAMED.items()})
    return rules


def _round(o: Operands) -> Node:
    decimals = o.number(1, "decimals", 0)
    if not decimals:
        return _rules.unary(o.graph, "round", o.dtype, o.node(0))
    power = o.graph.constant(10.0 ** abs(decimals), o.dtype)
    order = ("mul", "divide") if decimals > 0 else ("divide", "mul")
    scaled = o.graph.apply("round", o.dtype, o.graph.apply(
        order[0], o.dtype, o.node(0), power))
    return o.graph.apply(order[1], o.dtype, scaled, power)


def _swap(o: Operands) -> Operands:
    swapped = Operands(o.trace, o.function, (
        o.arguments[1], o.arguments[0], *o.arguments[2:]), o.keywords)
    swapped.dtype = o.dtype
    return swapped


ELEMENTWISE.update(_make_rules())
