# ===- builder.py - builds functions and their expected results ------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Builds the MLIR of a function and computes the values of its tensors."""

import numpy as np

from formats import BF16, F16, F32, F64, I32, I64, INDEX, Format, Real
from model import Value


class Dynamic(int):
    """A dynamic size. Dimensions with the same object have the same size."""


class Tensor:
    """An SSA value: its type, and its value as a Value or an array of integers."""

    def __init__(self, name, kind, shape, value):
        self.name, self.kind, self.shape, self.value = name, kind, list(shape), value

    def type(self):
        return type_text(self.kind, self.shape)


def type_text(kind, shape):
    dims = ["?" if isinstance(d, Dynamic) else str(d) for d in shape]
    return f"tensor<{'x'.join(dims + [kind.name])}>"


def sizes(shape):
    return tuple(int(d) for d in shape)


class Function:
    """One public function. `arguments` are pairs of the type and the stored array;
    a scalar is an array of rank 0."""

    def __init__(self, name, random):
        self.name, self.random = name, random
        self.arguments, self.tensors, self.lines = [], [], []
        self.header, self.results, self.numbers = [], [], 0
        self.notes = {"strided": True}

    def chance(self, probability):
        return self.random.random() < probability

    def pick(self, *choices):
        return choices[self.random.integers(len(choices))]

    def size(self, size):
        """Makes a size static or dynamic at random."""
        return Dynamic(size) if self.chance(0.5) else int(size)

    def new_name(self):
        self.numbers += 1
        return f"%v{self.numbers}"

    def emit(self, line):
        self.lines.append("  " + line)

    def argument(self, kind, shape, stored, value=None):
        stored = np.ascontiguousarray(stored, kind.storage).reshape(sizes(shape))
        if value is None:
            value = (Value(kind, kind.decode(stored)) if isinstance(kind, Format)
                     else stored.astype(np.int64))
        tensor = Tensor(f"%a{len(self.arguments)}", kind, shape, value)
        self.arguments.append((kind, stored))
        self.header.append(f"{tensor.name}: {tensor.type()}")
        self.tensors.append(tensor)
        return tensor

    def scalar(self, kind, number):
        name = f"%a{len(self.arguments)}"
        self.arguments.append((kind, np.array(number, kind.storage)))
        self.header.append(f"{name}: {kind.name}")
        return Tensor(name, kind, [], np.array(number, np.int64))

    def floats(self, kind, shape, mode=None):
        """Adds an argument with random numbers. `mode` is `normal`, `dyadic` (few
        digits), `wide` (all magnitudes), or `ties` (sums and products with few
        digits lie halfway between two numbers of a 16-bit type)."""
        mode = mode or self.pick("normal", "normal", "dyadic", "wide")
        shape_ = sizes(shape)
        if mode == "dyadic":
            numbers = self.random.integers(-128, 129, shape_) / Real(16)
        elif mode == "ties":
            # Odd integers with as many digits as the type.
            digits = min(kind.digits, 11)
            numbers = self.random.integers(1 << (digits - 1), 1 << digits, shape_) | 1
            numbers = numbers * self.random.choice([-1, 1], shape_)
            numbers = numbers / Real(1 << (digits - 1))
        else:
            numbers = self.random.standard_normal(shape_).astype(Real)
            if mode == "wide":
                span = 6 if kind is F16 else 20
                numbers = np.ldexp(numbers, self.random.integers(-span, span, shape_))
        return self.argument(kind, shape, kind.encode(np.asarray(numbers, Real)))

    def destination(self, kind, shape, like=None):
        """Returns a destination operand: `like`, an argument, or an empty tensor."""
        if like is not None and self.chance(0.5):
            return like
        if self.chance(0.5) or not self.knows_sizes(shape):
            # Its elements must not be read, so they are NaNs.
            shape_ = sizes(shape)
            stored = np.full(shape_, 0x7FC1) if kind is BF16 else np.full(
                shape_, np.nan)
            return self.argument(kind, shape, stored)
        return self.empty(kind, shape)

    def knows_sizes(self, shape):
        return all(any(e is d for t in self.tensors for e in t.shape)
                   for d in shape if isinstance(d, Dynamic))

    def dim(self, size):
        """Returns the operand of a size: a number, or a tensor.dim."""
        if not isinstance(size, Dynamic):
            return str(size)
        tensor, n = next((t, n) for t in self.tensors
                         for n, e in enumerate(t.shape) if e is size)
        number, name = self.new_name(), self.new_name()
        self.emit(f"{number} = arith.constant {n} : index")
        self.emit(f"{name} = tensor.dim {tensor.name}, {number} : {tensor.type()}")
        return name

    def empty(self, kind, shape):
        operands = [self.dim(d) for d in shape if isinstance(d, Dynamic)]
        name = self.new_name()
        self.emit(f"{name} = tensor.empty({', '.join(operands)}) : "
                  f"{type_text(kind, shape)}")
        return Tensor(name, kind, shape, None)

    def result(self, kind, shape, value, name=None):
        tensor = Tensor(name or self.new_name(), kind, shape, value)
        self.tensors.append(tensor)
        return tensor

    def give(self, *tensors):
        self.results += tensors

    def text(self):
        types = ", ".join(t.type() for t in self.results)
        names = ", ".join(t.name for t in self.results)
        return "\n".join(
            [f"func.func @{self.name}({', '.join(self.header)}) -> ({types}) {{"]
            + self.lines + [f"  return {names} : {types}", "}", ""])


FLOATS = (F32, F32, BF16, BF16, F16, F64)
POSITIONS = (I64, I64, I32, INDEX)
