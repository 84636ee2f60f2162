# ===- _mlir.py - expressions as MLIR --------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Writes expressions of a pair as operations of `arith`, `math` and `tensor`.

No operation is undefined for any element of a captured array: integer divisions check
their divisor, indices are moved into the bounds of the array, and floats that become
integers into the range of these.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from ._score_graph import CARRIED, FLOATS, INTEGERS, Node, collect, is_nonnegative

_COMPARE = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_FLOAT_COMPARE = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt",
                  "ge": "oge"}
_FLOAT_BINARY = {"add": "addf", "sub": "subf", "mul": "mulf", "divide": "divf",
                 "maximum": "maximumf", "minimum": "minimumf", "fmod": "remf"}
_INTEGER_BINARY = {"add": "addi", "sub": "subi", "mul": "muli", "maximum": "maxsi",
                   "minimum": "minsi", "bitwise_and": "andi", "bitwise_or": "ori",
                   "bitwise_xor": "xori", "shift_left": "shli", "shift_right": "shrsi",
                   "shift_right_logical": "shrui"}
_MATH = {"abs": "absf", "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log",
         "log2": "log2", "log10": "log10", "log1p": "log1p", "tanh": "tanh",
         "sqrt": "sqrt", "rsqrt": "rsqrt", "cbrt": "cbrt", "sin": "sin", "cos": "cos",
         "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh",
         "cosh": "cosh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh",
         "erf": "erf", "erfc": "erfc", "floor": "floor", "ceil": "ceil",
         "round": "roundeven", "trunc": "trunc"}
_MATH_BINARY = {"pow": "powf", "atan2": "atan2", "copysign": "copysign"}
_DIVISIONS = {"divide_trunc": "divsi", "floor_divide": "floordivsi", "fmod": "remsi"}
# Operations of an index whose result is the same as that of narrower integers, unless
# these overflow, which no index of a sequence's tokens does.
_WIDE = ("i32", "i64")
_INDEX_BINARY = {"add": "addi", "sub": "subi", "maximum": "maxsi", "minimum": "minsi"}


# Operations whose result may be outside of a type that another one carries.
_WRAPPING = ("add", "sub", "mul", "neg", "abs", "bitwise_not", "shift_left", "convert",
             "divide_trunc", "floor_divide")


def _carry(dtype: str) -> str:
    """Returns the type of kernels in which numbers of a type are."""
    return CARRIED[dtype][0] if dtype in CARRIED else dtype


def write_float(value: float, dtype: str) -> str:
    """Returns a constant of a type; not a decimal number if it is not finite."""
    if value - value == 0:
        return f"{value:.17e}"
    code, bits = {"f64": ("d", "Q"), "f32": ("f", "I"), "f16": ("e", "H"),
                  "bf16": ("f", "I")}[dtype]
    pattern, = struct.unpack(bits, struct.pack(code, value))
    width = struct.calcsize(bits) * 2
    return f"0x{pattern:0{width}X}"[:6 if dtype == "bf16" else None]


class RegionWriter:
    """Writes the operations of a region. `arguments` has the SSA names of the arguments:
    an index for each integer, and the score. `arrays` are the names and types of
    captured arrays; `NAME_sizeN` and `NAME_lastN` are the size of their dimension N and
    its last index."""

    def __init__(self, arguments: Mapping[str, str], arrays: Sequence[tuple[str, str]],
                 prefix: str):
        self.lines: list[str] = []
        self._arguments, self._arrays, self._prefix = arguments, arrays, prefix
        self._names: dict[tuple[int, str], str] = {}
        self._made: dict[str, str] = {}

    def emit(self, text: str, kind: str) -> str:
        """Adds an operation, unless it is there already."""
        return self._add(f"{text} : {kind}")

    def _add(self, line: str) -> str:
        name = self._made.get(line)
        if name is None:
            name = self._made[line] = f"%{self._prefix}{len(self._made)}"
            self.lines.append(f"{name} = {line}")
        return name

    def constant(self, value, kind: str) -> str:
        if kind == "i1":
            return self._add(f"arith.constant {'true' if value else 'false'}")
        text = write_float(value, kind) if kind in FLOATS else str(value)
        return self.emit(f"arith.constant {text}", kind)

    def carry(self, node: Node) -> str:
        """Returns the type in which kernels have a number."""
        return _carry(node.dtype)

    def write(self, node: Node) -> str:
        """Returns the name of a value."""
        key = id(node), node.dtype
        if key not in self._names:
            self._names[key] = self._write(node)
        return self._names[key]

    def _write(self, node: Node) -> str:
        name = self._write_value(node)
        if node.dtype in CARRIED and node.op in _WRAPPING:
            return self._wrap(name, node.dtype)
        return name

    def _write_value(self, node: Node) -> str:
        op, kind, operands = node.op, _carry(node.dtype), node.operands
        if op == "argument":
            name = self._arguments[node.payload]
            return name if node.is_float else self.emit(
                f"arith.index_cast {name}", f"index to {kind}")
        if op == "constant":
            return self.constant(node.payload, kind)
        if op == "load":
            return self._load(node)
        if op == "detach":
            return self.write(operands[0])
        if op == "convert":
            return self._convert(operands[0], kind)
        if op == "select":
            names = ", ".join(self.write(one) for one in operands)
            return self.emit(f"arith.select {names}", kind)
        if op == "bitcast":
            return self.emit(f"arith.bitcast {self.write(operands[0])}",
                             f"{operands[0].dtype} to {kind}")
        if op in _COMPARE:
            return self._compare(op, *operands)
        if kind in ("f16", "bf16"):
            return self._write_narrow(node)
        if kind in FLOATS:
            return self._write_float(op, kind, [self.write(one) for one in operands])
        return self._write_integer(node, kind)

    def _wrap(self, name: str, dtype: str) -> str:
        """Takes the low bits of a number of the carrying type."""
        kind, bits = CARRIED[dtype][0], INTEGERS[dtype]
        if dtype.startswith("u"):
            return self.emit(f"arith.andi {name}, {self.constant(2 ** bits - 1, kind)}",
                             kind)
        count = self.constant(INTEGERS[kind] - bits, kind)
        high = self.emit(f"arith.shli {name}, {count}", kind)
        return self.emit(f"arith.shrsi {high}, {count}", kind)

    # ===------------------------------------------------------------------===#
    # Floats
    # ===------------------------------------------------------------------===#

    def _write_narrow(self, node: Node) -> str:
        """Operations of 16 bits are those of f32, rounded."""
        wide = [self.emit(f"arith.extf {self.write(one)}", f"{node.dtype} to f32")
                for one in node.operands]
        return self.emit(f"arith.truncf {self._write_float(node.op, 'f32', wide)}",
                         f"f32 to {node.dtype}")

    def _write_float(self, op: str, kind: str, names: Sequence[str]) -> str:
        if op in _FLOAT_BINARY:
            return self.emit(f"arith.{_FLOAT_BINARY[op]} {', '.join(names)}", kind)
        if op == "neg":
            return self.emit(f"arith.negf {names[0]}", kind)
        if op in _MATH_BINARY:
            return self.emit(f"math.{_MATH_BINARY[op]} {', '.join(names)}", kind)
        if op == "sigmoid":
            one = self.constant(1.0, kind)
            power = self.emit("math.exp " + self.emit(f"arith.negf {names[0]}", kind), kind)
            divisor = self.emit(f"arith.addf {one}, {power}", kind)
            return self.emit(f"arith.divf {one}, {divisor}", kind)
        return self.emit(f"math.{_MATH[op]} {names[0]}", kind)

    # ===------------------------------------------------------------------===#
    # Integers
    # ===------------------------------------------------------------------===#

    def _compare(self, op: str, left: Node, right: Node) -> str:
        names, kind = f"{self.write(left)}, {self.write(right)}", _carry(left.dtype)
        if kind in FLOATS:
            return self.emit(f"arith.cmpf {_FLOAT_COMPARE[op]}, {names}", kind)
        return self.emit(f"arith.cmpi {_COMPARE[op]}, {names}", kind)

    def _write_integer(self, node: Node, kind: str) -> str:
        op, operands = node.op, node.operands
        if op == "bitwise_not":
            ones = self.constant(True if kind == "i1" else -1, kind)
            return self.emit(f"arith.xori {self.write(operands[0])}, {ones}", kind)
        if op == "neg":
            return self.emit(f"arith.subi {self.constant(0, kind)}, "
                             f"{self.write(operands[0])}", kind)
        if op == "abs":
            return self.emit(f"math.absi {self.write(operands[0])}", kind)
        if op.startswith("shift_"):
            return self._shift(node, kind)
        if op in _DIVISIONS or op == "remainder":
            return self._divide(op, kind, *operands)
        names = ", ".join(self.write(one) for one in operands)
        return self.emit(f"arith.{_INTEGER_BINARY[op]} {names}", kind)

    def _shift(self, node: Node, kind: str) -> str:
        """Shifts by negative counts, or by the type's width or more, leave the sign, or
        nothing."""
        value, count = node.operands
        width, op = INTEGERS[kind], _INTEGER_BINARY[node.op]
        name, last = self.write(value), self.constant(width - 1, kind)
        leaves_nothing = node.op != "shift_right"
        if count.op == "constant":
            bits = count.payload
            if not 0 <= bits < width:
                if leaves_nothing:
                    return self.constant(0, kind)
                bits = width - 1
            return self.emit(f"arith.{op} {name}, {self.constant(bits, kind)}", kind)
        bits = self.write(count)
        is_outside = self.emit(f"arith.cmpi ugt, {bits}, {last}", kind)
        safe = self.emit(f"arith.select {is_outside}, {last}, {bits}", kind)
        shifted = self.emit(f"arith.{op} {name}, {safe}", kind)
        if not leaves_nothing:
            return shifted
        zero = self.constant(0, kind)
        return self.emit(f"arith.select {is_outside}, {zero}, {shifted}", kind)

    def _divide(self, op: str, kind: str, left: Node, right: Node) -> str:
        x = self.write(left)
        if right.op == "constant" and right.payload > 0:
            y = self.write(right)
            if op == "remainder":
                return self._finish_remainder(
                    self.emit(f"arith.remsi {x}, {y}", kind), y, kind,
                    is_nonnegative(left))
            name = "divsi" if is_nonnegative(left) and op == "floor_divide" else \
                _DIVISIONS[op]
            return self.emit(f"arith.{name} {x}, {y}", kind)
        # A division by 0, and that of the smallest number by -1, would end the process.
        y = self.write(right)
        zero, one = self.constant(0, kind), self.constant(1, kind)
        is_zero = self.emit(f"arith.cmpi eq, {y}, {zero}", kind)
        is_minus = self.emit(f"arith.cmpi eq, {y}, {self.constant(-1, kind)}", kind)
        either = self.emit(f"arith.ori {is_zero}, {is_minus}", "i1")
        safe = self.emit(f"arith.select {either}, {one}, {y}", kind)
        if op == "remainder":
            rest = self.emit(f"arith.remsi {x}, {safe}", kind)
            return self._finish_remainder(rest, safe, kind, False)
        if op == "fmod":
            return self.emit(f"arith.remsi {x}, {safe}", kind)
        quotient = self.emit(f"arith.{_DIVISIONS[op]} {x}, {safe}", kind)
        opposite = self.emit(f"arith.subi {zero}, {x}", kind)
        return self.emit(f"arith.select {is_minus}, {opposite}, {quotient}", kind)

    def _finish_remainder(self, rest: str, divisor: str, kind: str,
                          is_right: bool) -> str:
        """Gives a remainder the sign of the divisor."""
        if is_right:
            return rest
        zero = self.constant(0, kind)
        signs = self.emit(f"arith.xori {rest}, {divisor}", kind)
        differ = self.emit(f"arith.cmpi slt, {signs}, {zero}", kind)
        is_nonzero = self.emit(f"arith.cmpi ne, {rest}, {zero}", kind)
        wrong = self.emit(f"arith.andi {differ}, {is_nonzero}", "i1")
        moved = self.emit(f"arith.addi {rest}, {divisor}", kind)
        return self.emit(f"arith.select {wrong}, {moved}, {rest}", kind)

    # ===------------------------------------------------------------------===#
    # Conversions
    # ===------------------------------------------------------------------===#

    def _convert(self, node: Node, kind: str) -> str:
        name, source = self.write(node), _carry(node.dtype)
        if source == kind:
            return name
        if source in FLOATS and kind in FLOATS:
            return self._convert_float(name, source, kind)
        if source in FLOATS:
            return self._to_integer(name, source, kind)
        if kind in FLOATS:
            if kind in ("f16", "bf16"):
                return self._convert_float(self._to_float(name, source, "f32"), "f32",
                                           kind)
            return self._to_float(name, source, kind)
        if kind == "i1":
            return self.emit(f"arith.cmpi ne, {name}, {self.constant(0, source)}", source)
        if source == "i1":
            return self.emit(f"arith.extui {name}", f"i1 to {kind}")
        op = "extsi" if INTEGERS[source] < INTEGERS[kind] else "trunci"
        return self.emit(f"arith.{op} {name}", f"{source} to {kind}")

    def _to_float(self, name: str, source: str, kind: str) -> str:
        op = "uitofp" if source == "i1" else "sitofp"
        return self.emit(f"arith.{op} {name}", f"{source} to {kind}")

    def _convert_float(self, name: str, source: str, kind: str) -> str:
        widths = {"f64": 3, "f32": 2, "f16": 1, "bf16": 1}
        if widths[source] == widths[kind]:
            name, source = self._convert_float(name, source, "f32"), "f32"
        op = "extf" if widths[source] < widths[kind] else "truncf"
        return self.emit(f"arith.{op} {name}", f"{source} to {kind}")

    def _to_integer(self, name: str, source: str, kind: str) -> str:
        if kind == "i1":
            zero = self.constant(0.0, source)
            return self.emit(f"arith.cmpf une, {name}, {zero}", source)
        if source != "f64":
            name = self._convert_float(name, source, "f64")
        bits = INTEGERS[kind]
        low, high = -2.0 ** (bits - 1), 2.0 ** (bits - 1) - 1
        if bits == 64:
            high = 2.0 ** 63 - 1024
        is_number = self.emit(f"arith.cmpf oeq, {name}, {name}", "f64")
        name = self.emit(f"arith.select {is_number}, {name}, {self.constant(0.0, 'f64')}",
                         "f64")
        name = self.emit(f"arith.maximumf {name}, {self.constant(low, 'f64')}", "f64")
        name = self.emit(f"arith.minimumf {name}, {self.constant(high, 'f64')}", "f64")
        return self.emit(f"arith.fptosi {name}", f"f64 to {kind}")

    # ===------------------------------------------------------------------===#
    # Captured arrays
    # ===------------------------------------------------------------------===#

    def _load(self, node: Node) -> str:
        array, kind = self._arrays[node.payload]
        return self.emit(f"tensor.extract {array}[{', '.join(self.write_indices(node))}]",
                         kind)

    def write_indices(self, load: Node) -> list[str]:
        """Returns the indices of the element that a node loads."""
        array, _ = self._arrays[load.payload]
        return [self._write_index(one, array, number)
                for number, one in enumerate(load.operands)]

    def write_clamped_indices(self, load: Node) -> list[str]:
        """As `write_indices`, for an element that is written: both bounds of each index
        are operations, which the compiler proves."""
        array, _ = self._arrays[load.payload]
        zero = self.constant(0, "index")
        return [self.emit("arith.minsi " + self.emit(f"arith.maxsi {index}, {zero}",
                                                     "index")
                          + f", {array}_last{number}", "index")
                for number, index in enumerate(self.write_indices(load))]

    def write_as_float(self, node: Node, kind: str) -> str:
        """Returns a float as another type of floats."""
        name = self.write(node)
        return name if node.dtype == kind else self._convert_float(name, node.dtype, kind)

    def _write_index(self, node: Node, array: str, dim: int) -> str:
        """Returns an index that is in the bounds of an array. The indices of a pair are
        checked when the array is known."""
        index = self.write_as_index(node)
        if node.op == "argument" or (node.op == "constant" and node.payload == 0):
            return index  # No array is empty.
        size = f"{array}_size{dim}"
        if not is_nonnegative(node):
            zero = self.constant(0, "index")
            is_negative = self.emit(f"arith.cmpi slt, {index}, {zero}", "index")
            wrapped = self.emit(f"arith.addi {index}, {size}", "index")
            index = self.emit(f"arith.select {is_negative}, {wrapped}, {index}", "index")
        if not is_nonnegative(node) or any(one.op == "remainder" for one in collect(node)):
            # The compiler's interval of a remainder has negative numbers, by which it
            # would refuse sizes.
            index = self.emit(f"arith.maxsi {index}, {self.constant(0, 'index')}", "index")
        return self.emit(f"arith.minsi {index}, {array}_last{dim}", "index")

    def write_as_index(self, node: Node) -> str:
        """Returns an integer as an index. Sums and quotients of indices stay indices, so
        that the compiler finds the elements that a tile reads."""
        op, operands = node.op, node.operands
        if op == "argument":
            return self._arguments[node.payload]
        if op == "constant":
            return self.constant(node.payload, "index")
        if op == "convert" and operands[0].is_integer:
            if operands[0].dtype in _WIDE and node.dtype in _WIDE:
                return self.write_as_index(operands[0])
        if op in _INDEX_BINARY and node.dtype in _WIDE:
            names = ", ".join(self.write_as_index(one) for one in operands)
            return self.emit(f"arith.{_INDEX_BINARY[op]} {names}", "index")
        if (op == "floor_divide" and operands[1].op == "constant"
                and operands[1].payload > 0 and node.dtype in _WIDE):
            name = "divsi" if is_nonnegative(operands[0]) else "floordivsi"
            return self.emit(f"arith.{name} {self.write_as_index(operands[0])}, "
                             f"{self.constant(operands[1].payload, 'index')}", "index")
        return self.emit(f"arith.index_cast {self.write(node)}",
                         f"{_carry(node.dtype)} to index")
