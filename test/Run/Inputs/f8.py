# ===- f8.py - f8 numbers from the definition of the formats ---------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# f8.py make DIR    writes all codes, and f32 numbers that are hard to round
# f8.py check DIR   checks the results of converting them

import bisect
import fractions
import math
import struct
import sys

# Exponent bits, fraction bits, bias, and whether there are infinities.
FORMATS = {"e4m3": (4, 3, 7, False), "e5m2": (5, 2, 15, True)}


def decode(name, code):
    exponent_bits, bits, bias, infinite = FORMATS[name]
    exponent = (code & 0x7F) >> bits
    fraction = code & ((1 << bits) - 1)
    sign = -1.0 if code & 0x80 else 1.0
    if infinite and exponent == (1 << exponent_bits) - 1:
        return math.nan if fraction else sign * math.inf
    if not infinite and code & 0x7F == 0x7F:
        return math.nan
    if exponent == 0:
        return sign * fraction * 2.0 ** (1 - bias - bits)
    return sign * (1 + fraction / (1 << bits)) * 2.0 ** (exponent - bias)


def finite(name):
    """Returns the non-negative numbers; the index of each is its code."""
    numbers = []
    for code in range(0x80):
        value = decode(name, code)
        if math.isnan(value) or math.isinf(value):
            break
        numbers.append(value)
    return numbers


def encode(name, value):
    """Rounds to the nearest number, ties to even codes."""
    sign = 0x80 if math.copysign(1, value) < 0 else 0
    numbers = finite(name)
    beyond = len(numbers)  # The code of infinity, or of NaN.
    if math.isnan(value):
        return None
    size = abs(value)
    # Rounds as if one more number followed the largest one.
    step = numbers[-1] - numbers[-2]
    grid = numbers + [numbers[-1] + step]
    if size >= grid[-1]:
        return sign | beyond
    above = bisect.bisect_left(grid, size)
    if grid[above] == size:
        return sign | above
    down = fractions.Fraction(size) - fractions.Fraction(grid[above - 1])
    up = fractions.Fraction(grid[above]) - fractions.Fraction(size)
    isUp = up < down or (up == down and above % 2 == 0)
    return sign | (above if isUp else above - 1)


def to_f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def neighbours(value):
    """Yields a number of f32 and its neighbours."""
    bits = struct.unpack("<i", struct.pack("<f", value))[0]
    for other in (bits - 1, bits, bits + 1):
        if other >= 0:
            yield struct.unpack("<f", struct.pack("<i", other))[0]


def hard(name):
    numbers = finite(name)
    step = numbers[-1] - numbers[-2]
    numbers += [numbers[-1] + step, numbers[-1] + 2 * step]
    middles = [(a + b) / 2 for a, b in zip(numbers, numbers[1:])]
    result = []
    for value in numbers + middles:
        for near in neighbours(value):
            result += [near, -near]
    return result + [math.inf, -math.inf, math.nan, 1e-45, 3e38, 1e-38]


def write(path, descr, data, count):
    header = str({"descr": descr, "fortran_order": False, "shape": (count,)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)))
        file.write(header.encode() + data)


def read(path):
    data = open(path, "rb").read()
    return data[10 + struct.unpack("<H", data[8:10])[0] :]


command, directory = sys.argv[1:]
if command == "make":
    write(f"{directory}/codes.npy", "|u1", bytes(range(256)), 256)
    for name in FORMATS:
        values = hard(name)
        data = struct.pack(f"<{len(values)}f", *values)
        write(f"{directory}/{name}-ties.npy", "<f4", data, len(values))
    sys.exit()
wrong = False
for name in FORMATS:
    wide = struct.unpack("<256f", read(f"{directory}/{name}-wide.npy"))
    for code, value in enumerate(wide):
        expected = decode(name, code)
        same = struct.pack("<f", value) == struct.pack("<f", expected)
        if not same and not (math.isnan(value) and math.isnan(expected)):
            print(f"{name}: code {code:#x} gives {value}, expected {expected}")
            wrong = True
    codes = read(f"{directory}/{name}-narrow.npy")
    values = hard(name)
    assert len(codes) == len(values)
    for value, code in zip(map(to_f32, values), codes):
        expected = encode(name, value)
        isNaN = math.isnan(decode(name, code))
        right = isNaN if expected is None else code == expected
        if not right:
            print(f"{name}: {value!r} gives {code:#x}, expected {expected}")
            wrong = True
    print(f"{name}: 256 codes widened, {len(values)} numbers rounded")
sys.exit(wrong)
