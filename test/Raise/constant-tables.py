#!/usr/bin/env python3
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a module with rotations by constant tables, as exporters fold them.

    constant-tables.py [ROWS]

Frequencies, angles, cosines and sines are those of transformers in f32.
"""

import math
import struct
import sys

DIM = 16
BASE = 10000


def f32(number):
    return struct.unpack("f", struct.pack("f", number))[0]


def move(number, units):
    """Returns the number of f32 that is so many units in the last place larger."""
    return struct.unpack("f", struct.pack("i", struct.unpack(
        "i", struct.pack("f", number))[0] + units))[0]


def frequencies(base=BASE):
    return [f32(1 / f32(base ** f32(2 * i / DIM))) for i in range(DIM // 2)]


def angles(rows, scale=None, first=0):
    positions = [f32(first + row) for row in range(rows)]
    if scale:
        positions = [f32(position * f32(scale)) for position in positions]
    return [[f32(p * f) for f in frequencies()] for p in positions]


def table(function, angles, factor=1):
    return [[f32(f32(function(angle)) * f32(factor)) for angle in row] for row in angles]


def constant(name, rows, dtype="f32"):
    packed = b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)
    text = f"dense<\"0x{packed.hex().upper()}\"> : tensor<{len(rows)}x{len(rows[0])}xf32>"
    return f"  %{name} = arith.constant {text}\n"


def rotation(name, cos, sin, first=0, rows=None, pairing="half"):
    """Returns a function that rotates by `rows` rows from the row `first` on."""
    total, width = len(cos), len(cos[0])
    rows = rows or total - first
    x, t = f"tensor<{rows}x{DIM}xf32>", f"tensor<{rows}x{width}xf32>"
    full = " full_tables" if width == DIM else ""
    text = f"func.func @{name}(%x: {x}) -> {x} {{\n"
    text += constant("ct", cos) + constant("st", sin)
    for short in "cs":
        text += (f"  %{short} = tensor.extract_slice %{short}t[{first}, 0] [{rows}, {width}]"
                 f" [1, 1] : tensor<{total}x{width}xf32> to {t}\n")
    return text + (
        f"  %y = posenc.rotate {pairing}{full} ins(%x : {x}) tables(%c, %s : {t}) "
        f"dims = [0] outs(%x : {x})\n  return %y : {x}\n}}\n\n")


def gathered(name, cos, sin):
    """Returns a function that rotates by the rows that positions select."""
    total, width = len(cos), len(cos[0])
    x, t = f"tensor<{total}x{DIM}xf32>", f"tensor<{total}x{width}xf32>"
    text = f"func.func @{name}(%x: {x}, %p: tensor<{total}xi64>) -> {x} {{\n"
    text += constant("ct", cos) + constant("st", sin)
    return text + f"""  %e = tensor.empty() : {t}
  %c, %s = linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0)>,
      affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%p : tensor<{total}xi64>) outs(%e, %e : {t}, {t}) {{
  ^bb0(%pi: i64, %o0: f32, %o1: f32):
    %row = arith.index_cast %pi : i64 to index
    %lane = linalg.index 1 : index
    %c0 = tensor.extract %ct[%row, %lane] : {t}
    %s0 = tensor.extract %st[%row, %lane] : {t}
    linalg.yield %c0, %s0 : f32, f32
  }} -> ({t}, {t})
  %y = posenc.rotate half ins(%x : {x}) tables(%c, %s : {t}) dims = [0] outs(%x : {x})
  return %y : {x}
}}

"""


def angle_table(name, angles):
    """Returns a function with a constant table of angles."""
    rows, width = len(angles), len(angles[0])
    x, t = f"tensor<{rows}x{DIM}xf32>", f"tensor<{rows}x{width}xf32>"
    return f"func.func @{name}(%x: {x}) -> {x} {{\n" + constant("a", angles) + (
        f"  %c = math.cos %a : {t}\n  %s = math.sin %a : {t}\n"
        f"  %y = posenc.rotate half ins(%x : {x}) tables(%c, %s : {t}) "
        f"dims = [0] outs(%x : {x})\n  return %y : {x}\n}}\n\n")


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    a = angles(rows)
    cos, sin = table(math.cos, a), table(math.sin, a)
    double = [[row + row for row in rows] for rows in (cos, sin)]
    text = rotation("halves", cos, sin)
    text += rotation("full", *double)
    text += rotation("later_rows", cos, sin, first=3)
    text += gathered("gathered", cos, sin)
    text += angle_table("angles", a)
    text += rotation("factor", table(math.cos, a, 1.25), table(math.sin, a, 1.25))
    # A power of two scales angles without rounding: frequencies are scaled.
    b = angles(rows, scale=0.25)
    text += rotation("quarters", table(math.cos, b), table(math.sin, b))
    # Near misses.
    for name, row, lane in (("changed_sine", 40, 5), ("changed_last", rows - 1, 0)):
        changed = [list(numbers) for numbers in sin]
        changed[row][lane] = move(changed[row][lane], 3)
        text += rotation(name, cos, changed)
    changed = [list(numbers) for numbers in a]
    changed[40][5] = move(changed[40][5], 1)
    text += angle_table("changed_angle", changed)
    b = angles(rows, scale=0.3)
    text += rotation("scaled", table(math.cos, b), table(math.sin, b))
    b = angles(rows, first=2)
    text += rotation("first_row", table(math.cos, b), table(math.sin, b))
    text += rotation("one_row", cos[:1], sin[:1])
    text += rotation("other_rows", cos, sin[::-1])
    print(text)


if __name__ == "__main__":
    main()
