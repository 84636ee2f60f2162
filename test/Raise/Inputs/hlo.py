# ===- hlo.py - functions of StableHLO as text ------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Builds functions of StableHLO in its generic form."""

import dataclasses
import math

INFINITY = float("inf")
# Bits of minus infinity.
LOWEST_BITS = {"f16": "0xFC00", "bf16": "0xFF80", "f32": "0xFF800000",
               "f64": "0xFFF0000000000000"}


@dataclasses.dataclass
class Value:
    name: str
    shape: tuple
    element: str

    @property
    def type(self):
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.element}>"


def is_float(element):
    return "f" in element


def array(numbers):
    numbers = ", ".join(map(str, numbers))
    return f"array<i64: {numbers}>" if numbers else "array<i64>"


class Function:
    """A function, with a method for each operation that the spellings need."""

    def __init__(self, name, random):
        self.name, self.random = name, random
        self.arguments, self.fills, self.lines, self.results = [], [], [], []
        self.count = 0

    def argument(self, shape, element, fill="random"):
        value = Value(f"%a{len(self.arguments)}", tuple(shape), element)
        self.arguments.append(value)
        self.fills.append(fill)
        return value

    def get_inputs(self, seed=1):
        """Returns the arguments of posenc-run."""
        for number, (value, fill) in enumerate(zip(self.arguments, self.fills)):
            shape = "x".join(map(str, (*value.shape, value.element)))
            suffix = f":seed={seed + number}" if fill == "random" else ""
            yield f"--input={shape}={fill}{suffix}"

    def __str__(self):
        arguments = ", ".join(f"{value.name}: {value.type}" for value in self.arguments)
        types = ", ".join(value.type for value in self.results)
        names = ", ".join(value.name for value in self.results)
        body = "\n".join(f"  {line}" for line in self.lines)
        return (f"func.func public @{self.name}({arguments}) -> ({types}) {{\n{body}\n"
                f"  return {names} : {types}\n}}\n")

    def op(self, name, operands, shape, element, attributes="", region=""):
        value = Value(f"%{self.count}", tuple(shape), element)
        self.count += 1
        attributes = f" <{{{attributes}}}>" if attributes else ""
        self.lines.append(
            f'{value.name} = "stablehlo.{name}"({", ".join(one.name for one in operands)})'
            f'{attributes}{region} : ({", ".join(one.type for one in operands)}) -> {value.type}')
        return value

    # Constants and indices.

    def constant(self, number, shape, element):
        """A number in all elements, as a constant or a broadcast of one."""
        if is_float(element):
            text = LOWEST_BITS[element] if number == -INFINITY else f"{number:e}"
        else:
            text = {True: "true", False: "false"}[number] if element == "i1" else str(number)
        whole = tuple(shape)
        if whole and self.random.random() < 0.5:
            return self.broadcast(self.constant(number, (), element), whole, ())
        value = Value("", whole, element)
        return self.op("constant", [], whole, element,
                       f"value = dense<{text}> : {value.type}")

    def list(self, numbers, element):
        shape = (len(numbers),)
        text = ", ".join(f"{number:e}" if is_float(element) else str(number)
                         for number in numbers)
        return self.op("constant", [], shape, element,
                       f"value = dense<[{text}]> : {Value('', shape, element).type}")

    def iota(self, shape, dim, element="i32"):
        if len(shape) > 1 and self.random.random() < 0.5:
            return self.broadcast(self.iota((shape[dim],), 0, element), shape, (dim,))
        return self.op("iota", [], shape, element, f"iota_dimension = {dim} : i64")

    # Elementwise operations.

    def unary(self, name, x):
        return self.op(name, [x], x.shape, x.element)

    def binary(self, name, x, y):
        assert x.type == y.type, (name, x, y)
        return self.op(name, [x, y], x.shape, x.element)

    def scaled(self, x, number, name="multiply"):
        operands = [x, self.constant(number, x.shape, x.element)]
        if name == "multiply" and self.random.random() < 0.3:
            operands.reverse()
        return self.binary(name, *operands)

    def convert(self, x, element):
        return x if x.element == element else self.op("convert", [x], x.shape, element)

    def compare(self, direction, x, y):
        return self.op("compare", [x, y], x.shape, "i1",
                       f"comparison_direction = #stablehlo<comparison_direction {direction}>")

    def select(self, condition, x, y):
        assert x.type == y.type and condition.shape == x.shape
        return self.op("select", [condition, x, y], x.shape, x.element)

    # Moves.

    def broadcast(self, x, shape, dims):
        return self.op("broadcast_in_dim", [x], shape, x.element,
                       f"broadcast_dimensions = {array(dims)}")

    def reshape(self, x, shape):
        assert math.prod(shape) == math.prod(x.shape)
        return x if x.shape == tuple(shape) else self.op("reshape", [x], shape, x.element)

    def transpose(self, x, permutation):
        if list(permutation) == list(range(len(x.shape))):
            return x
        return self.op("transpose", [x], [x.shape[dim] for dim in permutation], x.element,
                       f"permutation = {array(permutation)}")

    def slice(self, x, dim, start, limit, stride=1):
        starts, limits, strides = [0] * len(x.shape), list(x.shape), [1] * len(x.shape)
        starts[dim], limits[dim], strides[dim] = start, limit, stride
        shape = [-(-(limit - start) // stride)
                 for start, limit, stride in zip(starts, limits, strides)]
        return self.op("slice", [x], shape, x.element,
                       f"start_indices = {array(starts)}, limit_indices = {array(limits)}, "
                       f"strides = {array(strides)}")

    def concatenate(self, parts, dim):
        shape = list(parts[0].shape)
        shape[dim] = sum(part.shape[dim] for part in parts)
        return self.op("concatenate", parts, shape, parts[0].element, f"dimension = {dim} : i64")

    def stack(self, parts, dim):
        shape = list(parts[0].shape)
        shape.insert(dim, 1)
        return self.concatenate([self.reshape(part, shape) for part in parts], dim)

    # Reductions and products.

    def reduce(self, name, x, dim, start):
        shape = list(x.shape)
        del shape[dim]
        scalar = Value("", (), x.element).type
        region = (f" ({{ ^bb0(%x: {scalar}, %y: {scalar}): %r = \"stablehlo.{name}\"(%x, %y) : "
                  f"({scalar}, {scalar}) -> {scalar} \"stablehlo.return\"(%r) : ({scalar}) -> () }})")
        origin = self.op("constant", [], (), x.element,
                         f"value = dense<{start}> : {scalar}")
        return self.op("reduce", [x, origin], shape, x.element,
                       f"dimensions = {array([dim])}", region)

    def contract(self, x, x_labels, y, y_labels, labels, element=None):
        """An einsum of two tensors, with a letter for each dimension."""
        if self.random.random() < 0.25:
            x, x_labels, y, y_labels = y, y_labels, x, x_labels
        assert all(x.shape[x_labels.index(label)] == y.shape[y_labels.index(label)]
                   for label in x_labels if label in y_labels), (x_labels, x, y_labels, y)
        batch = [label for label in x_labels if label in y_labels and label in labels]
        summed = [label for label in x_labels if label in y_labels and label not in labels]
        free = [label for label in x_labels + y_labels if label not in batch + summed]
        sizes = dict(zip(x_labels + y_labels, x.shape + y.shape))

        def dims(of, which):
            return str([of.index(label) for label in which])

        order = batch + free
        product = self.op(
            "dot_general", [x, y], [sizes[label] for label in order], element or x.element,
            "dot_dimension_numbers = #stablehlo.dot<"
            f"lhs_batching_dimensions = {dims(x_labels, batch)}, "
            f"rhs_batching_dimensions = {dims(y_labels, batch)}, "
            f"lhs_contracting_dimensions = {dims(x_labels, summed)}, "
            f"rhs_contracting_dimensions = {dims(y_labels, summed)}>")
        return self.order(product, "".join(order), labels)

    def order(self, x, labels, wanted):
        return self.transpose(x, [labels.index(label) for label in wanted])
