# ===- hlo_programs.py - random programs of StableHLO ----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Programs of StableHLO that hlo-search.py compiles: values with their types, operations
with their text, and what each computes of arrays of NumPy."""

import dataclasses
import math
import random

import ml_dtypes
import numpy as np

DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
          "f64": np.float64, "i8": np.int8, "i32": np.int32,
          "i64": np.int64, "i1": np.bool_, "ui8": np.uint8}
FLOATS = ["f32", "f32", "f32", "f16", "bf16", "f64"]
INTEGERS = ["i8", "i32", "i32", "i64", "ui8"]
# Sizes of the symbols of dynamic dimensions, for three calls.
SIZES = [{"a": 3, "b": 5}, {"a": 0, "b": 1}, {"a": 1, "b": 70}]
# Bits of the floats that text has no numbers for.
BITS = {"f32": np.uint32, "f16": np.uint16, "bf16": np.uint16, "f64": np.uint64}


def is_float(element):
    return element in BITS


def is_integer(element):
    return not is_float(element) and element != "i1"


def bits_of(element):
    return np.iinfo(DTYPES[element]).bits


@dataclasses.dataclass(frozen=True)
class Dim:
    """A constant and a sum of symbols, such as a + b + 2."""
    constant: int
    symbols: tuple = ()

    def __add__(self, other):
        return Dim(self.constant + other.constant,
                   tuple(sorted(self.symbols + other.symbols)))

    def size(self, sizes):
        return self.constant + sum(sizes[symbol] for symbol in self.symbols)

    @property
    def is_static(self):
        return not self.symbols


@dataclasses.dataclass
class Value:
    name: str
    element: str
    dims: tuple

    def shape(self, sizes):
        return tuple(dim.size(sizes) for dim in self.dims)

    def type(self, sizes=None):
        """The type as text; sizes of symbols make it static."""
        dims = "".join(f"{dim.size(sizes) if sizes or dim.is_static else '?'}x"
                       for dim in self.dims)
        return f"tensor<{dims}{self.element}>"

    @property
    def is_static(self):
        return all(dim.is_static for dim in self.dims)


@dataclasses.dataclass
class Operation:
    """`compute` takes the sizes and the operands' arrays. `error` of them is the bound of
    an element's error, absolute; None: the result is exact."""
    name: str
    operands: list
    result: Value
    attributes: str
    region: str
    compute: object
    error: object = None

    def text(self, sizes=None):
        attributes = f" <{{{self.attributes}}}>" if self.attributes else ""
        types = ", ".join(one.type(sizes) for one in self.operands)
        names = ", ".join(one.name for one in self.operands)
        if callable(self.attributes):
            attributes = f" <{{{self.attributes(sizes)}}}>"
        lines = [f'{self.result.name} = "stablehlo.{self.name}"({names}){attributes}'
                 f"{self.region} : ({types}) -> {self.result.type(sizes)}"]
        return lines


def array_text(numbers):
    numbers = ", ".join(map(str, numbers))
    return f"array<i64: {numbers}>" if numbers else "array<i64>"


def literal(x, element):
    """A number in the text of a constant."""
    if is_float(element):
        width = 2 * np.dtype(DTYPES[element]).itemsize
        return f"0x{int(np.asarray(x, DTYPES[element]).view(BITS[element])):0{width}X}"
    return str(bool(x)).lower() if element == "i1" else str(int(x))


def dense(array, element):
    if array.ndim == 0:
        return literal(array[()], element)
    if array.size == 0:
        return ""
    return "[" + ", ".join(dense(np.asarray(one), element) for one in array) + "]"


def cast(x, element):
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(DTYPES[element])


class Program:
    def __init__(self, seed, length, kinds):
        self.rng = random.Random(seed)
        self.arguments, self.operations = [], []
        self.fills = {}
        self.is_dynamic = self.rng.random() < 0.5
        names = [name for name in kinds if name in OPERATIONS]
        for _ in range(8 * length):
            if len(self.operations) >= length:
                break
            before = len(self.operations), len(self.arguments)
            try:
                OPERATIONS[self.rng.choice(names)](self)
            except Skip:
                del self.operations[before[0]:]
                del self.arguments[before[1]:]

    # Values.

    def values(self):
        return self.arguments + [op.result for op in self.operations]

    def draw_dim(self):
        if self.is_dynamic and self.rng.random() < 0.4:
            return Dim(0, (self.rng.choice("ab"),))
        return Dim(self.rng.choice([1, 2, 3, 3, 4, 5, 7, 8, 17, 33] if self.rng.random() < 0.96
                                   else [0]))

    def draw_dims(self, rank=None):
        rank = self.rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4]) if rank is None else rank
        dims = tuple(self.draw_dim() for _ in range(rank))
        if math.prod(max(dim.size(sizes) for sizes in SIZES) for dim in dims) > 30000:
            raise Skip
        return dims

    def argument(self, element, dims, fill=None):
        value = Value(f"%a{len(self.arguments)}", element, tuple(dims))
        self.arguments.append(value)
        self.fills[value.name] = fill or self.rng.choice(["numbers", "numbers", "special"])
        return value

    def pick(self, test=lambda value: True, make=None, chance=0.25):
        """A value that passes the test, or a new argument."""
        found = [value for value in self.values() if test(value)]
        if found and self.rng.random() >= chance:
            # Later values are likelier, so that programs are deep.
            return found[-1 - min(self.rng.randrange(len(found)),
                                  self.rng.randrange(len(found)))]
        if make is None:
            raise Skip
        return make()

    def any(self, elements=None, rank=None, min_rank=0):
        elements = elements or FLOATS + INTEGERS + ["i1"]

        def make():
            wanted = self.rng.choice([n for n in (1, 2, 2, 3, 4) if n >= min_rank]) \
                if rank is None and min_rank else rank
            return self.argument(self.rng.choice(elements), self.draw_dims(wanted))

        return self.pick(lambda value: value.element in elements and
                         len(value.dims) >= min_rank and rank in (None, len(value.dims)), make)

    def like(self, value, element=None):
        """Another value of the type of a value, or with another element type."""
        element = element or value.element
        return self.pick(lambda one: one.element == element and one.dims == value.dims,
                         lambda: self.argument(element, value.dims), 0.3)

    def add(self, name, operands, element, dims, compute, attributes="", region="", error=None):
        value = Value(f"%{len(self.operations)}", element, tuple(dims))
        if any(math.prod(value.shape(sizes)) > 30000 for sizes in SIZES):
            raise Skip
        self.operations.append(Operation(name, list(operands), value, attributes, region,
                                         compute, error))
        return value

    def constant(self, array, element, dims=None):
        array = np.asarray(array, DTYPES[element])
        dims = tuple(Dim(n) for n in array.shape) if dims is None else dims
        value = Value("", element, dims)
        return self.add("constant", [], element, dims, lambda sizes: array,
                        f"value = dense<{dense(array, element)}> : {value.type()}")

    # Numbers.

    def draw_numbers(self, value, sizes, number):
        """The array of an argument for one of the calls."""
        rng = np.random.default_rng([number, *value.name.encode(),
                                     self.rng_seed & 0xFFFFFFFF])
        shape, element = value.shape(sizes), value.element
        fill = self.fills[value.name]
        if element == "i1":
            return np.asarray(rng.random(shape) < 0.5)
        if is_float(element):
            x = rng.standard_normal(shape) * rng.choice([0.1, 1, 1, 30])
            if fill == "special":
                table = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, 2.5, -1.5,
                                  127.5, -128.7, 255.9, 3e9, -3e9, 1e-30, 65504, 2**31])
                x = np.where(rng.random(shape) < 0.5, rng.choice(table, shape), x)
            return cast(x, element)
        info = np.iinfo(DTYPES[element])
        if fill.isdigit():
            x = rng.integers(-1 if info.min else 0, int(fill) + 1, shape)
            return np.asarray(x).astype(DTYPES[element])
        x = np.asarray(rng.integers(max(info.min, -20), min(info.max, 20), shape,
                                    endpoint=True))
        if fill == "special":
            table = np.array([info.min, info.min + 1, info.max, info.max - 1, 0, 1,
                              -1 if info.min else 3, 7, 8], object).astype(DTYPES[element])
            x = np.where(rng.random(shape) < 0.5, rng.choice(table, shape), x)
        return x.astype(DTYPES[element])

    def inputs(self, number, seed):
        self.rng_seed = seed
        return [self.draw_numbers(value, SIZES[number], number) for value in self.arguments]

    # Text.

    def needed(self, operations):
        """The arguments and operations that the results of operations need."""
        names = {op.result.name for op in operations}
        kept = []
        for op in reversed(self.operations):
            if op.result.name in names or op in operations:
                kept.append(op)
                names |= {value.name for value in op.operands}
        return [value for value in self.arguments if value.name in names], kept[::-1]

    def source(self, results, arguments, operations, sizes=None):
        """The module; with sizes, a static one."""
        head = ", ".join(f"{value.name}: {value.type(sizes)}" for value in arguments)
        types = ", ".join(op.result.type(sizes) for op in results)
        names = ", ".join(op.result.name for op in results)
        body = "".join(f"  {line}\n" for op in operations for line in op.text(sizes))
        return (f"module {{\nfunc.func public @main({head}) -> ({types}) {{\n{body}"
                f"  return {names} : {types}\n}}\n}}\n")


class Skip(Exception):
    """An operation that cannot be drawn here."""


OPERATIONS = {}


def operation(function):
    OPERATIONS[function.__name__] = function
    return function


# Errors of results. Each returns an absolute bound for each element.


def units(count):
    """So many units in the last place of the result. Functions of f32, in which f16 and bf16
    are computed, may give 0 for numbers below its normal ones."""
    def bound(expected, element, *_):
        eps = float(ml_dtypes.finfo(DTYPES[element]).eps)
        tiny = max(float(ml_dtypes.finfo(DTYPES[element]).smallest_subnormal),
                   2.0 ** -126 if element != "f64" else 2.0 ** -1022)
        with np.errstate(all="ignore"):
            return count * np.maximum(np.abs(np.nan_to_num(expected)) * eps, tiny)
    return bound


# Elementwise operations.

UNARY_FLOATS = {
    "negate": (np.negative, None), "abs": (np.abs, None), "ceil": (np.ceil, None),
    "floor": (np.floor, None), "sqrt": (np.sqrt, units(1)), "cosine": (np.cos, units(4)),
    "sine": (np.sin, units(4)), "tan": (np.tan, units(6)), "exponential": (np.exp, units(4)),
    "exponential_minus_one": (np.expm1, units(4)), "log": (np.log, units(4)),
    "log_plus_one": (np.log1p, units(4)), "rsqrt": (lambda x: 1 / np.sqrt(x), units(4)),
    "cbrt": (np.cbrt, units(4)), "tanh": (np.tanh, units(8)),
    "logistic": (lambda x: 1 / (1 + np.exp(-x)), units(8)),
    "round_nearest_even": (np.rint, None),
    "round_nearest_afz": (lambda x: np.copysign(np.where(
        np.abs(x) % 1 == 0.5, np.ceil(np.abs(x)), np.rint(np.abs(x))), x), None),
    "sign": (lambda x: np.where(x == 0, x, np.sign(x)), None)}


@operation
def unary(p):
    x = p.any(FLOATS)
    name = p.rng.choice(sorted(UNARY_FLOATS))
    function, error = UNARY_FLOATS[name]
    # f64 is judged by f64.
    if x.element == "f64" and error:
        error = units(16)

    def compute(sizes, a):
        with np.errstate(all="ignore"):
            return function(a.astype(np.float64))
    p.add(name, [x], x.element, x.dims, compute, error=error)


def popcount(a):
    bits = np.dtype(a.dtype).itemsize * 8
    return np.array([bin(int(n) & (1 << bits) - 1).count("1") for n in a.ravel()],
                    np.int64).reshape(a.shape)


def leading_zeros(a):
    bits = np.dtype(a.dtype).itemsize * 8
    return np.array([bits - (int(n) & (1 << bits) - 1).bit_length() for n in a.ravel()],
                    np.int64).reshape(a.shape)


@operation
def unary_integer(p):
    x = p.any(INTEGERS)
    table = {"negate": np.negative, "not": np.invert, "popcnt": popcount,
             "count_leading_zeros": leading_zeros}
    if x.element != "ui8":
        table.update(abs=np.abs, sign=np.sign)
    name = p.rng.choice(sorted(table))

    def compute(sizes, a):
        with np.errstate(all="ignore"):
            return table[name](a)
    p.add(name, [x], x.element, x.dims, compute)


def by_element(function, *arrays):
    """Applies a function of Python's integers to each element, wrapped."""
    info = np.iinfo(arrays[0].dtype)
    numbers = [function(*map(int, one)) for one in zip(*(x.ravel() for x in arrays))]
    wrapped = [(n - info.min) % (1 << info.bits) + info.min for n in numbers]
    return np.array(wrapped, arrays[0].dtype).reshape(arrays[0].shape)


def divide_integers(x, y):
    """Towards zero; -1 for a divisor of 0."""
    if y == 0:
        return -1
    return abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)


def remainder_integers(x, y):
    """With the sign of the dividend; the dividend for a divisor of 0."""
    return x if y == 0 else abs(x) % abs(y) * (-1 if x < 0 else 1)


def shift(name, a, b):
    bits = np.iinfo(a.dtype).bits

    def one(x, amount):
        amount = min(amount % (1 << bits), bits)
        if name == "shift_left":
            return x << amount
        return (x if name == "shift_right_arithmetic" else x % (1 << bits)) >> amount
    return by_element(one, a, b)


def maximum(a, b):
    return np.where(np.isnan(a) | np.isnan(b), np.nan, np.maximum(a, b))


def minimum(a, b):
    return np.where(np.isnan(a) | np.isnan(b), np.nan, np.minimum(a, b))


@operation
def binary(p):
    x = p.any(FLOATS)
    y = p.like(x)
    table = {"add": (np.add, None), "subtract": (np.subtract, None),
             "multiply": (np.multiply, None), "divide": (np.divide, None),
             "maximum": (maximum, None), "minimum": (minimum, None),
             "remainder": (np.fmod, None), "atan2": (np.arctan2, units(8))}
    name = p.rng.choice(sorted(table))
    function, error = table[name]

    def compute(sizes, a, b):
        with np.errstate(all="ignore"):
            return function(a.astype(np.float64), b.astype(np.float64))
    p.add(name, [x, y], x.element, x.dims, compute, error=error)


@operation
def binary_integer(p):
    x = p.any(INTEGERS)
    y = p.like(x)
    names = ["add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and",
             "or", "xor", "shift_left", "shift_right_logical"]
    if x.element != "ui8":
        names.append("shift_right_arithmetic")
    name = p.rng.choice(names)
    table = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply,
             "divide": lambda a, b: by_element(divide_integers, a, b),
             "remainder": lambda a, b: by_element(remainder_integers, a, b),
             "maximum": np.maximum, "minimum": np.minimum, "and": np.bitwise_and,
             "or": np.bitwise_or, "xor": np.bitwise_xor}

    def compute(sizes, a, b):
        with np.errstate(all="ignore"):
            return shift(name, a, b) if name.startswith("shift") else table[name](a, b)
    p.add(name, [x, y], x.element, x.dims, compute)


@operation
def binary_bool(p):
    x = p.any(["i1"])
    y = p.like(x)
    table = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor,
             "add": np.logical_or, "multiply": np.logical_and, "maximum": np.logical_or,
             "minimum": np.logical_and}
    name = p.rng.choice([*table, "not"])
    if name == "not":
        p.add(name, [x], "i1", x.dims, lambda sizes, a: ~a)
    else:
        p.add(name, [x, y], "i1", x.dims, lambda sizes, a, b: table[name](a, b))


@operation
def compare(p):
    x = p.any()
    y = p.like(x)
    table = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal,
             "GT": np.greater, "GE": np.greater_equal}
    name = p.rng.choice(sorted(table))
    p.add("compare", [x, y], "i1", x.dims, lambda sizes, a, b: table[name](a, b),
          f"comparison_direction = #stablehlo<comparison_direction {name}>")


@operation
def is_finite(p):
    x = p.any(FLOATS)
    p.add("is_finite", [x], "i1", x.dims,
          lambda sizes, a: np.isfinite(a.astype(np.float64)))


@operation
def select(p):
    x = p.any()
    condition, y = p.like(x, "i1"), p.like(x)
    p.add("select", [condition, x, y], x.element, x.dims,
          lambda sizes, c, a, b: np.where(c, a, b))


@operation
def clamp(p):
    x = p.any([*FLOATS, *INTEGERS])
    bounds = p.rng.choice([(-1, 1), (0, 6), (2, 2)])
    if x.element == "ui8":
        bounds = (1, 200)
    low, high = (p.constant(bound, x.element) for bound in bounds)

    def compute(sizes, a, b, c):
        if b.dtype.kind in "iu":
            return np.minimum(np.maximum(a, b), c)
        return minimum(maximum(a.astype(float), b.astype(float)), c.astype(float))
    p.add("clamp", [low, x, high], x.element, x.dims, compute)


def to_integer(a, element):
    """The nearest integer of the type, and 0 for NaN."""
    info = np.iinfo(DTYPES[element])
    numbers = [0 if math.isnan(x) else info.max if x >= info.max else
               info.min if x <= info.min else int(x) for x in a.astype(float).ravel().tolist()]
    return np.array(numbers, object).reshape(a.shape).astype(DTYPES[element])


def round_integer(n, digits):
    """An integer with so many significant binary digits, to nearest even."""
    extra = abs(n).bit_length() - digits
    if extra <= 0:
        return n
    half, rest = 1 << extra - 1, abs(n) & (1 << extra) - 1
    low = abs(n) >> extra
    low += rest > half or rest == half and low & 1
    return (low << extra) * (1 if n > 0 else -1)


DIGITS = {"f32": 24, "f16": 11, "bf16": 8, "f64": 53}


@operation
def convert(p):
    x = p.any()
    element = p.rng.choice(sorted({*FLOATS, *INTEGERS, "i1"} - {x.element}))

    def compute(sizes, a):
        if element == "i1":
            return a != 0
        if is_float(x.element) and is_integer(element):
            return to_integer(a, element)
        if is_integer(x.element) and is_float(element):
            numbers = [float(round_integer(int(n), DIGITS[element])) for n in a.ravel()]
            return np.array(numbers, np.float64).reshape(a.shape)
        return cast(a, element)
    p.add("convert", [x], element, x.dims, compute)


# Moves.


@operation
def iota(p):
    element = p.rng.choice(["f32", "i32", "i64", "i8", "f16", "ui8"])
    rank = p.rng.choice([1, 2, 3])
    dims = tuple(Dim(p.rng.choice([1, 3, 5, 8])) for _ in range(rank))
    dim = p.rng.randrange(rank)

    def compute(sizes):
        shape = tuple(one.size(sizes) for one in dims)
        index = np.arange(shape[dim]).reshape([-1 if i == dim else 1 for i in range(rank)])
        return np.broadcast_to(index, shape).astype(DTYPES[element])
    p.add("iota", [], element, dims, compute, f"iota_dimension = {dim} : i64")


@operation
def constant(p):
    element = p.rng.choice([*FLOATS, *INTEGERS, "i1"])
    dims = tuple(Dim(p.rng.choice([1, 2, 3, 5])) for _ in range(p.rng.choice([0, 1, 2])))
    value = Value("%c", element, dims)
    p.fills[value.name] = p.rng.choice(["numbers", "special"])
    p.rng_seed = p.rng.randrange(1 << 30)
    p.constant(p.draw_numbers(value, SIZES[0], 0), element)


@operation
def broadcast(p):
    x = p.any()
    rank = len(x.dims) + p.rng.choice([0, 1, 1, 2])
    if rank > 4 or not rank:
        raise Skip
    places = sorted(p.rng.sample(range(rank), len(x.dims)))
    dims = [Dim(p.rng.choice([1, 2, 3, 6])) for _ in range(rank)]
    for place, dim in zip(places, x.dims):
        dims[place] = Dim(p.rng.choice([1, 4, 5])) if dim == Dim(1) else dim
    if any(not dim.is_static for dim in dims):
        shape = make_shape(p, dims)
        operands, name = [x, shape], "dynamic_broadcast_in_dim"
    else:
        operands, name = [x], "broadcast_in_dim"

    def compute(sizes, a, *_):
        shape = [dim.size(sizes) for dim in dims]
        inner = [1] * rank
        for place, size in zip(places, a.shape):
            inner[place] = size
        return np.broadcast_to(a.reshape(inner), shape)
    p.add(name, operands, x.element, dims, compute,
          f"broadcast_dimensions = {array_text(places)}")


def make_shape(p, dims):
    """A tensor with the sizes of dimensions, computed from those of values."""
    parts = []
    for dim in dims:
        if dim.is_static:
            parts.append(p.constant([dim.constant], "i32"))
            continue
        owner = next((value, at) for value in reversed(p.values())
                     for at, one in enumerate(value.dims) if one == dim)
        size = p.add("get_dimension_size", [owner[0]], "i32", (),
                     lambda sizes, a, at=owner[1]: np.int32(a.shape[at]),
                     f"dimension = {owner[1]} : i64")
        parts.append(p.add("reshape", [size], "i32", (Dim(1),),
                           lambda sizes, a: a.reshape(1)))
    if len(parts) == 1:
        return parts[0]
    return p.add("concatenate", parts, "i32", (Dim(len(parts)),),
                 lambda sizes, *all: np.concatenate(all), "dimension = 0 : i64")


@operation
def reshape(p):
    x = p.any()
    dims = list(x.dims)
    way = p.rng.choice(["insert", "merge", "split", "drop", "flat"])
    if way == "insert" and len(dims) < 4:
        dims.insert(p.rng.randint(0, len(dims)), Dim(1))
    elif way == "drop" and Dim(1) in dims:
        dims.remove(Dim(1))
    elif way == "split":
        places = [i for i, dim in enumerate(dims) if dim.is_static and dim.constant in (4, 8)]
        if not places or len(dims) > 3:
            raise Skip
        at = p.rng.choice(places)
        dims[at:at + 1] = [Dim(2), Dim(dims[at].constant // 2)]
    elif way == "merge" and len(dims) >= 2:
        at = p.rng.randrange(len(dims) - 1)
        if not (dims[at].is_static and dims[at + 1].is_static):
            raise Skip
        dims[at:at + 2] = [Dim(dims[at].constant * dims[at + 1].constant)]
    elif way == "flat" and x.is_static:
        dims = [Dim(math.prod(dim.constant for dim in dims))]
    else:
        raise Skip
    operands, name = [x], "reshape"
    if any(not dim.is_static for dim in dims):
        operands, name = [x, make_shape(p, dims)], "dynamic_reshape"
    p.add(name, operands, x.element, dims,
          lambda sizes, a, *_: a.reshape([dim.size(sizes) for dim in dims]))


@operation
def transpose(p):
    x = p.any(min_rank=2)
    order = list(range(len(x.dims)))
    p.rng.shuffle(order)
    p.add("transpose", [x], x.element, [x.dims[i] for i in order],
          lambda sizes, a: a.transpose(order), f"permutation = {array_text(order)}")


@operation
def slice_(p):
    x = p.any(min_rank=1)
    if not x.is_static:
        raise Skip
    starts, limits, strides = [], [], []
    for dim in x.dims:
        start = p.rng.randint(0, dim.constant) if p.rng.random() < 0.5 else 0
        limit = p.rng.randint(start, dim.constant) if p.rng.random() < 0.5 else dim.constant
        starts.append(start)
        limits.append(limit)
        strides.append(p.rng.choice([1, 1, 1, 2, 3]))
    dims = [Dim(-(-(b - a) // s)) for a, b, s in zip(starts, limits, strides)]
    p.add("slice", [x], x.element, dims,
          lambda sizes, a: a[tuple(map(slice, starts, limits, strides))],
          f"start_indices = {array_text(starts)}, limit_indices = {array_text(limits)}, "
          f"strides = {array_text(strides)}")


@operation
def concatenate(p):
    x = p.any(min_rank=1)
    dim = p.rng.randrange(len(x.dims))
    parts = [x]
    for _ in range(p.rng.choice([1, 1, 2])):
        parts.append(p.pick(
            lambda one: one.element == x.element and len(one.dims) == len(x.dims) and all(
                i == dim or one.dims[i] == x.dims[i] for i in range(len(x.dims))),
            lambda: p.argument(x.element, [p.draw_dim() if i == dim else one
                                           for i, one in enumerate(x.dims)]), 0.4))
    total = parts[0].dims[dim]
    for part in parts[1:]:
        total = total + part.dims[dim]
    p.add("concatenate", parts, x.element,
          [total if i == dim else one for i, one in enumerate(x.dims)],
          lambda sizes, *all: np.concatenate(all, dim), f"dimension = {dim} : i64")


@operation
def pad(p):
    x = p.any(min_rank=1)
    low, high, dims = [], [], []
    for dim in x.dims:
        least = -(dim.constant // 2) if dim.is_static and not dim.symbols else 0
        low.append(p.rng.randint(least, 3))
        high.append(p.rng.randint(least, 3))
        dims.append(Dim(dim.constant + low[-1] + high[-1], dim.symbols))
    fill = p.constant(p.rng.choice([0, 1, 3]), x.element)

    def compute(sizes, a, b):
        for axis, (before, after) in enumerate(zip(low, high)):
            end = a.shape[axis] + min(after, 0)
            index = [slice(None)] * a.ndim
            index[axis] = slice(max(-before, 0), end)
            a = a[tuple(index)]
        result = np.full([n + max(x, 0) + max(y, 0) for n, x, y in zip(a.shape, low, high)],
                         b, a.dtype)
        result[tuple(slice(max(x, 0), max(x, 0) + n) for n, x in zip(a.shape, low))] = a
        return result
    p.add("pad", [x, fill], x.element, dims, compute,
          f"edge_padding_low = {array_text(low)}, edge_padding_high = {array_text(high)}, "
          f"interior_padding = {array_text([0] * len(dims))}")


@operation
def reverse(p):
    x = p.any(min_rank=1)
    dims = sorted(p.rng.sample(range(len(x.dims)), p.rng.randint(1, len(x.dims))))
    p.add("reverse", [x], x.element, x.dims, lambda sizes, a: np.flip(a, dims),
          f"dimensions = {array_text(dims)}")


def draw_starts(p, x, counts):
    """An index for each dimension, of which some are outside."""
    element = p.rng.choice(["i32", "i64", "i8", "ui8"])
    return [p.argument(element, (), fill=str(p.rng.choice([0, 3, 9]))) for _ in x.dims]


def clamp_starts(starts, shape, counts):
    return [int(min(max(int(s), 0), n - c)) for s, n, c in zip(starts, shape, counts)]


@operation
def dynamic_slice(p):
    x = p.any(min_rank=1)
    if not x.is_static or not all(dim.constant for dim in x.dims):
        raise Skip
    counts = [p.rng.randint(1, dim.constant) for dim in x.dims]
    starts = draw_starts(p, x, counts)

    def compute(sizes, a, *at):
        at = clamp_starts(at, a.shape, counts)
        return a[tuple(slice(s, s + c) for s, c in zip(at, counts))]
    p.add("dynamic_slice", [x, *starts], x.element, map(Dim, counts), compute,
          f"slice_sizes = {array_text(counts)}")


@operation
def dynamic_update_slice(p):
    x = p.any(min_rank=1)
    if not x.is_static or not all(dim.constant for dim in x.dims):
        raise Skip
    counts = [p.rng.randint(1, dim.constant) for dim in x.dims]
    dims = tuple(map(Dim, counts))
    y = p.pick(lambda one: one.element == x.element and one.dims == dims,
               lambda: p.argument(x.element, dims))
    starts = draw_starts(p, x, counts)

    def compute(sizes, a, b, *at):
        at, result = clamp_starts(at, a.shape, counts), a.copy()
        result[tuple(slice(s, s + c) for s, c in zip(at, counts))] = b
        return result
    p.add("dynamic_update_slice", [x, y, *starts], x.element, x.dims, compute)


@operation
def gather(p):
    """Rows along one dimension, whose indices are clamped."""
    x = p.any(min_rank=1)
    dim = p.rng.randrange(len(x.dims))
    if not all(one.is_static and one.constant for one in x.dims):
        raise Skip
    element = p.rng.choice(["i32", "i64", "i8", "ui8"])
    lists = p.draw_dims(p.rng.choice([1, 1, 2]))
    indices = p.argument(element, (*lists, Dim(1)),
                         fill=str(p.rng.choice([x.dims[dim].constant + 1, 3])))
    rest = [i for i in range(len(x.dims)) if i != dim]
    dims = [*lists, *(x.dims[i] for i in rest)]
    counts = [1 if i == dim else one.constant for i, one in enumerate(x.dims)]
    offsets = list(range(len(lists), len(dims)))

    def compute(sizes, a, at):
        at = np.clip(at[..., 0].astype(np.int64), 0, a.shape[dim] - 1)
        return np.moveaxis(np.take(a, at, dim), range(dim, dim + at.ndim), range(at.ndim))
    p.add("gather", [x, indices], x.element, dims, compute,
          "dimension_numbers = #stablehlo.gather<"
          + (f"offset_dims = {offsets}, " if offsets else "")
          + f"collapsed_slice_dims = [{dim}], start_index_map = [{dim}], "
          f"index_vector_dim = {len(lists)}>, slice_sizes = {array_text(counts)}, "
          "indices_are_sorted = false")


# Reductions and products.

COMBINERS = {"add": (np.add, 0), "multiply": (np.multiply, 1), "maximum": (maximum, None),
             "minimum": (minimum, None), "and": (np.bitwise_and, -1), "or": (np.bitwise_or, 0)}


def sum_error(count, terms, element):
    """The rounding of a sum of so many terms, by the sum of their absolute values."""
    eps = float(ml_dtypes.finfo(DTYPES[element]).eps)
    tiny = float(ml_dtypes.finfo(DTYPES[element]).smallest_normal)
    return (count + 2) * (eps * terms + tiny)


@operation
def reduce(p):
    x = p.any(min_rank=1)
    dims = sorted(p.rng.sample(range(len(x.dims)), p.rng.randint(1, len(x.dims))))
    names = ["add", "maximum", "minimum", "multiply"]
    if x.element == "i1":
        names = ["and", "or", "maximum", "minimum"]
    elif is_integer(x.element):
        names += ["and", "or"]
    name = p.rng.choice(names)
    info = None if is_float(x.element) or x.element == "i1" else np.iinfo(DTYPES[x.element])
    neutral = {"add": 0, "multiply": 1, "or": 0,
               "and": True if x.element == "i1" else info and (-1 if info.min else info.max),
               "maximum": info.min if info else False if x.element == "i1" else -np.inf,
               "minimum": info.max if info else True if x.element == "i1" else np.inf}[name]
    if p.rng.random() < 0.25 and x.element != "i1":
        neutral = 3
    init = p.constant(neutral, x.element)
    scalar = f"tensor<{x.element}>"
    axes = tuple(dims)

    def compute(sizes, a, b):
        if a.dtype == bool:
            return (np.logical_and if name in ("and", "minimum") else np.logical_or).reduce(
                a, axes, initial=bool(b))
        if is_float(x.element):
            wide, start = a.astype(np.float64), float(b)
            with np.errstate(all="ignore"):
                if name == "add":
                    return wide.sum(axes) + start
                if name == "multiply":
                    return wide.prod(axes) * start
                function = np.maximum if name == "maximum" else np.minimum
                return function.reduce(wide, axes, initial=start)
        with np.errstate(all="ignore"):
            function = {"maximum": np.maximum, "minimum": np.minimum}.get(name) or \
                COMBINERS[name][0]
            return function.reduce(a, axes, dtype=a.dtype, initial=b)

    def error(expected, element, sizes, a, b):
        if not is_float(element) or name in ("maximum", "minimum"):
            return None
        wide = np.abs(a.astype(np.float64))
        count = math.prod(a.shape[i] for i in axes)
        with np.errstate(all="ignore"):
            if name == "multiply":
                bound = sum_error(count, np.abs(expected), element)
                # A product may overflow or underflow on its way.
                large = np.maximum(wide, 1).prod(axes) * max(1, abs(float(b)))
                small = np.minimum(np.where(wide == 0, 1, wide), 1).prod(axes)
                limit = float(ml_dtypes.finfo(DTYPES[element]).max) / 8
                least = float(ml_dtypes.finfo(DTYPES[element]).smallest_normal) * 8
                return np.where((large > limit) | (small < least), np.inf, bound)
            terms = wide.sum(axes) + abs(float(b))
            return limit_sum(terms, sum_error(count, terms, element), element)
    p.add("reduce", [x, init], x.element,
          [one for i, one in enumerate(x.dims) if i not in dims], compute,
          f"dimensions = {array_text(dims)}",
          f" ({{\n  ^bb0(%u: {scalar}, %v: {scalar}):\n"
          f'    %w = "stablehlo.{name}"(%u, %v) : ({scalar}, {scalar}) -> {scalar}\n'
          f'    "stablehlo.return"(%w) : ({scalar}) -> ()\n  }})', error)


def limit_sum(terms, bound, element):
    """A sum whose terms may overflow on their way may be anything."""
    largest = float(ml_dtypes.finfo(DTYPES[element]).max) / 8
    return np.where((terms > largest) & np.isfinite(terms), np.inf, bound)


@operation
def dot_general(p):
    x = p.any(["f32", "f32", "f16", "bf16", "f64", "i8", "i32", "i64", "ui8"], min_rank=1)
    batch = p.rng.randint(0, min(2, len(x.dims) - 1))
    order = list(range(len(x.dims)))
    p.rng.shuffle(order)
    number = p.rng.choice([1, 1, 1, 2]) if len(x.dims) - batch > 1 else 1
    left_batch, left_sum = order[:batch], order[batch:batch + number]
    kept = [i for i in range(len(x.dims)) if i not in left_batch + left_sum]
    free = [p.draw_dim() for _ in range(p.rng.choice([0, 1, 1, 2]))]
    if len(free) + batch + len(kept) > 4 or len(free) + batch + number > 4:
        raise Skip
    # The dimensions of the other operand, in any order.
    roles = [("batch", i) for i in left_batch] + [("sum", i) for i in left_sum] + \
        [("free", i) for i in range(len(free))]
    if p.rng.random() < 0.6:
        p.rng.shuffle(roles)
    dims = tuple(free[i] if kind == "free" else x.dims[i] for kind, i in roles)
    if any(math.prod(dim.size(sizes) for dim in dims) > 30000 for sizes in SIZES):
        raise Skip
    y = p.pick(lambda one: one.element == x.element and one.dims == dims,
               lambda: p.argument(x.element, dims))
    right_batch = [roles.index(("batch", i)) for i in left_batch]
    right_sum = [roles.index(("sum", i)) for i in left_sum]
    right_free = [roles.index(("free", i)) for i in range(len(free))]
    right_free.sort()
    wider = {"f16": ["f16", "f32"], "bf16": ["bf16", "f32"], "i8": ["i8", "i32"],
             "ui8": ["ui8"]}
    element = p.rng.choice(wider.get(x.element, [x.element]))
    result = [x.dims[i] for i in left_batch] + [x.dims[i] for i in kept] + \
        [dims[i] for i in right_free]

    def einsum(a, b):
        left = list(range(a.ndim))
        right = [100] * b.ndim
        for i, j in zip(left_batch + left_sum, right_batch + right_sum):
            right[j] = i
        for place, j in enumerate(right_free):
            right[j] = 20 + place
        return np.einsum(a, left, b, right, left_batch + kept + [right[j] for j in right_free])

    def compute(sizes, a, b):
        with np.errstate(all="ignore"):
            if is_float(element):
                return einsum(a.astype(np.float64), b.astype(np.float64))
            return einsum(a.astype(DTYPES[element]), b.astype(DTYPES[element]))

    def error(expected, element, sizes, a, b):
        if not is_float(element):
            return None
        with np.errstate(all="ignore"):
            terms = einsum(np.abs(a.astype(np.float64)), np.abs(b.astype(np.float64)))
        count = math.prod(a.shape[i] for i in left_sum)
        return limit_sum(terms, sum_error(count, terms, element), element)
    p.add("dot_general", [x, y], element, result, compute,
          "dot_dimension_numbers = #stablehlo.dot<"
          f"lhs_batching_dimensions = {left_batch}, rhs_batching_dimensions = {right_batch}, "
          f"lhs_contracting_dimensions = {left_sum}, "
          f"rhs_contracting_dimensions = {right_sum}>", error=error)


# Spellings that the compiler looks for.


@operation
def softmax(p):
    x = p.any(["f32", "f16", "bf16"], min_rank=1)
    before = p.fills.copy()
    dim = len(x.dims) - 1
    kept = x.dims[:-1]
    scalar = f"tensor<{x.element}>"

    def region(name):
        return (f" ({{\n  ^bb0(%u: {scalar}, %v: {scalar}):\n"
                f'    %w = "stablehlo.{name}"(%u, %v) : ({scalar}, {scalar}) -> {scalar}\n'
                f'    "stablehlo.return"(%w) : ({scalar}) -> ()\n  }})')

    def spread(value):
        places = array_text(range(dim))
        operands, name = [value], "broadcast_in_dim"
        if not x.is_static:
            operands, name = [value, make_shape(p, x.dims)], "dynamic_broadcast_in_dim"
        return p.add(name, operands, x.element, x.dims,
                     lambda sizes, a, *_: np.broadcast_to(a[..., None], x.shape(sizes)),
                     f"broadcast_dimensions = {places}")

    def reduce_error(expected, element, sizes, a, b):
        terms = np.abs(a.astype(np.float64)).sum(-1)
        return limit_sum(terms, sum_error(a.shape[-1], terms, element), element)
    low = p.constant(-np.inf, x.element)
    zero = p.constant(0, x.element)
    top = p.add("reduce", [x, low], x.element, kept,
                lambda sizes, a, b: np.maximum.reduce(a.astype(float), -1, initial=-np.inf),
                f"dimensions = {array_text([dim])}", region("maximum"))
    moved = p.add("subtract", [x, spread(top)], x.element, x.dims,
                  lambda sizes, a, b: a.astype(float) - b.astype(float))
    exp = p.add("exponential", [moved], x.element, x.dims,
                lambda sizes, a: np.exp(a.astype(float)), error=units(4))
    total = p.add("reduce", [exp, zero], x.element, kept,
                  lambda sizes, a, b: a.astype(float).sum(-1),
                  f"dimensions = {array_text([dim])}", region("add"), reduce_error)
    p.add("divide", [exp, spread(total)], x.element, x.dims,
          lambda sizes, a, b: a.astype(float) / b.astype(float))
    p.fills = {**before, **p.fills}
