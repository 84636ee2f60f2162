# ===- _functions.py - named functions of numbers ---------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Functions that several frameworks have, made of operations that have a derivative.

They are written such that no derivative is NaN where that of PyTorch is finite: an operand
is replaced before an operation would be infinite, not its result. At points without a
derivative, theirs is PyTorch's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ._numbers import Number, Operand
from ._score_graph import Graph, Node

# ===----------------------------------------------------------------------===#
# Activations
# ===----------------------------------------------------------------------===#


def relu(x: Number) -> Number:
    return x.make(0).where(x <= 0, x)


def hardtanh(x: Number, low: Operand = -1, high: Operand = 1) -> Number:
    """Has no slope at the bounds, other than `clamp`."""
    return x.make(low).where(x <= low, x.make(high).where(x >= high, x))


def log_sigmoid(x: Number) -> Number:
    return x.call("minimum", 0) - (-abs(x)).call("exp").call("log1p")


def elu(x: Number, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Number:
    below = x.make(0).where(x > 0, x)
    return (x * scale).where(x > 0, (below * input_scale).call("expm1") * (alpha * scale))


def celu(x: Number, alpha: float = 1) -> Number:
    return elu(x, alpha, 1, 1 / alpha)


def selu(x: Number) -> Number:
    return elu(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


def leaky_relu(x: Number, slope: Operand = 0.01) -> Number:
    return x.where(x > 0, x * slope)


def softplus(x: Number, beta: float = 1, threshold: float = 20) -> Number:
    scaled = x * beta
    small = x.make(0).where(scaled > threshold, scaled)
    return x.where(scaled > threshold, small.call("exp").call("log1p") / beta)


def mish(x: Number) -> Number:
    return x * softplus(x).call("tanh")


def hardsigmoid(x: Number) -> Number:
    return hardtanh(x + 3, 0, 6) / 6


def hardswish(x: Number) -> Number:
    return x * hardtanh(x + 3, 0, 6) / 6


def softshrink(x: Number, bound: float = 0.5) -> Number:
    return (x - bound).where(x > bound, (x + bound).where(x < -bound, 0))


def hardshrink(x: Number, bound: float = 0.5) -> Number:
    return x.make(0).where(x.both(x >= -bound, x <= bound), x)


def threshold(x: Number, bound: float, value: float) -> Number:
    return x.make(value).where(x <= bound, x)


def gelu(x: Number, approximate: str = "none") -> Number:
    if approximate == "tanh":
        inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
        return x * 0.5 * (inner.call("tanh") + 1)
    return x * 0.5 * ((x * math.sqrt(0.5)).call("erf") + 1)


# ===----------------------------------------------------------------------===#
# Exponentials and logarithms
# ===----------------------------------------------------------------------===#


def _difference(x: Number, y: Number) -> Number:
    """Minus the distance; 0 of equal infinities."""
    return -abs(x.make(0).where(x.equals(y), x - y))


def logaddexp(x: Number, y: Number) -> Number:
    return x.call("maximum", y) + _difference(x, y).call("exp").call("log1p")


def logaddexp2(x: Number, y: Number) -> Number:
    return x.call("maximum", y) + (
        _difference(x, y).call("exp2").call("log1p") / math.log(2))


def xlogy(x: Number, y: Number, op: str = "log") -> Number:
    """x log(y), which is 0 for x = 0 and any y that is a number."""
    bound = 0 if op == "log" else -1
    is_outside = x.either(y <= bound, y.equals(math.inf))
    safe = y.make(bound + 1).where(x.both(x.equals(0), is_outside), y)
    return x * safe.call(op)


def logit(x: Number, eps: float | None = None) -> Number:
    if eps is not None:
        x = clamp(x, eps, 1 - eps)
    return (x / (1 - x)).call("log")


def entr(x: Number) -> Number:
    is_inside = x > 0
    inside = x.where(is_inside, 1)
    outside = x.make(0).where(x.equals(0), x.make(-math.inf).where(x < 0, x))
    return (-x * inside.call("log")).where(is_inside, outside)


def ldexp(x: Number, exponent: Number) -> Number:
    return x * exponent.call("exp2")


# ===----------------------------------------------------------------------===#
# Others
# ===----------------------------------------------------------------------===#


def clamp(x: Number, low: Operand | None, high: Operand | None) -> Number:
    """Constant bounds have no derivative, and the number has one if it equals them."""
    for bound, op, order in ((low, "maximum", "lt"), (high, "minimum", "gt")):
        if bound is None:
            continue
        limit = x.make(bound)
        if limit.node.op == "constant" and x.node.is_float:
            x = limit.where(x.compare(order, limit), x)
        else:
            x = x.call(op, limit)
    return x


def hypot(x: Number, y: Number) -> Number:
    return (x * x + y * y).call("sqrt")


def sinc(x: Number) -> Number:
    is_zero = x.equals(0)
    angle = x.make(1).where(is_zero, x) * math.pi
    return x.make(1).where(is_zero, angle.call("sin") / angle)


def fmax(x: Number, y: Number) -> Number:
    return x.where(x.either(x >= y, y.is_nan()), y)


def fmin(x: Number, y: Number) -> Number:
    return x.where(x.either(x <= y, y.is_nan()), y)


def heaviside(x: Number, value: Number) -> Number:
    return value.where(x.equals(0), x.make(1).where(x > 0, 0))


def frac(x: Number) -> Number:
    return x - x.call("trunc")


def nan_to_num(x: Number, nan: float | None = None, posinf: float | None = None,
               neginf: float | None = None) -> Number:
    if not x.node.is_float:
        return x
    largest = _LARGEST[x.dtype]
    result = x.make(nan or 0.0).where(x.is_nan(), x)
    result = x.make(largest if posinf is None else posinf).where(
        x.equals(math.inf), result)
    return x.make(-largest if neginf is None else neginf).where(
        x.equals(-math.inf), result)


_LARGEST = {"f64": 1.7976931348623157e308, "f32": 3.4028234663852886e38, "f16": 65504.0,
            "bf16": 3.3895313892515355e38}


def addcmul(x: Number, y: Number, z: Number, value: float = 1) -> Number:
    return x + y * z * value


def addcdiv(x: Number, y: Number, z: Number, value: float = 1) -> Number:
    return x + y / z * value


def lerp(x: Number, y: Number, weight: Number) -> Number:
    return x + weight * (y - x)


def angle(x: Number) -> Number:
    return x.make(math.pi).where(x < 0, x.make(0).where(x >= 0, x))


def is_infinite(x: Number, sign: int = 0) -> Node:
    """Whether a number is infinite: of a sign, or, for 0, of any."""
    return (x if sign > 0 else -x if sign < 0 else abs(x)).equals(math.inf)


def is_negative(x: Number) -> Node:
    """Whether the bit of the sign is set."""
    return x.make(1).call("copysign", x) < 0


# By name: functions of numbers of the result's type, and of options that are numbers of
# Python.
NAMED: dict[str, Callable[..., Number]] = {
    "addcdiv": addcdiv, "addcmul": addcmul, "angle": angle, "celu": celu,
    "deg2rad": lambda x: x * (math.pi / 180), "elu": elu, "fmax": fmax, "fmin": fmin,
    "frac": frac, "gelu": gelu, "hardshrink": hardshrink, "hardsigmoid": hardsigmoid,
    "hardswish": hardswish, "hardtanh": hardtanh, "heaviside": heaviside, "hypot": hypot,
    "ldexp": ldexp, "leaky_relu": leaky_relu, "lerp": lerp, "log_sigmoid": log_sigmoid,
    "logaddexp": logaddexp, "logaddexp2": logaddexp2, "logit": logit, "mish": mish,
    "nan_to_num": nan_to_num, "rad2deg": lambda x: x * (180 / math.pi), "relu": relu,
    "relu6": lambda x: hardtanh(x, 0, 6), "selu": selu,
    "silu": lambda x: x * x.call("sigmoid"), "sinc": sinc, "softplus": softplus,
    "softshrink": softshrink, "special_entr": entr,
    "special_xlog1py": lambda x, y: xlogy(x, y, "log1p"), "threshold": threshold,
    "xlogy": xlogy,
}


def call(graph: Graph, name: str, dtype: str, nodes: list[Node], *options: Any,
         **named: Any) -> Node:
    """Returns a function of `NAMED` of nodes, as a type."""
    return NAMED[name](*(Number(graph, dtype, node) for node in nodes), *options,
                       **named).node
