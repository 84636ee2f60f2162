# ===- hlo_programs.py - random programs of StableHLO ----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Programs of StableHLO that hlo-search.py compiles: values with their types, and operations
with their text. hlo_elementwise.py, hlo_moves.py and hlo_reductions.py draw operations, and
say what each computes of arrays of NumPy."""

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
        return (f'{self.result.name} = "stablehlo.{self.name}"({names}){attributes}'
                f"{self.region} : ({types}) -> {self.result.type(sizes)}")


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
        body = "".join(f"  {op.text(sizes)}\n" for op in operations)
        return (f"module {{\nfunc.func public @main({head}) -> ({types}) {{\n{body}"
                f"  return {names} : {types}\n}}\n}}\n")


class Skip(Exception):
    """An operation that cannot be drawn here."""


OPERATIONS = {}


def operation(function):
    OPERATIONS[function.__name__] = function
    return function


def units(count):
    """Returns a bound of errors: for each element, so many units in the last place of the
    result. Functions of f32, in which f16 and bf16 are computed, may give 0 for numbers below
    its normal ones."""
    def bound(expected, element, *_):
        eps = float(ml_dtypes.finfo(DTYPES[element]).eps)
        tiny = max(float(ml_dtypes.finfo(DTYPES[element]).smallest_subnormal),
                   2.0 ** -126 if element != "f64" else 2.0 ** -1022)
        with np.errstate(all="ignore"):
            return count * np.maximum(np.abs(np.nan_to_num(expected)) * eps, tiny)
    return bound
