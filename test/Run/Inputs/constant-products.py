# ===- constant-products.py - products of bf16 with constant matrices -------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""constant-products.py OUT: prints functions that multiply a matrix of bf16 by another
one, in pairs: `argument_N` takes both, and `constant_N` has the second one as a constant.

Writes the second matrices to OUT-N.npy. The sizes have
partial tiles, panels, blocks and pairs; the last second matrix is transposed. There,
`lookup` takes rows of the matrix, and `tied` does both with the constant."""

import random
import sys

SIZES = [(45, 700, 70), (1, 64, 32), (33, 37, 300), (8, 1, 5), (64, 130, 96)]


def write_bf16(path, shape, bits):
    header = f"{{'descr': '<V2', 'fortran_order': False, 'shape': {shape}, }}"
    header = header.ljust(117) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") +
                   header.encode())
        file.write(b"".join(bit.to_bytes(2, "little") for bit in bits))


def make_bits(generator, count):
    """Numbers of both signs whose magnitudes are 2^-4 to 2."""
    return [generator.getrandbits(1) << 15 | generator.randrange(0x3D80, 0x4000)
            for _ in range(count)]


def to_text(bits):
    return "".join(bit.to_bytes(2, "little").hex() for bit in bits)


def write_batch(number, batch, m, k, n):
    """A product for each matrix of a batch."""
    bits = make_bits(random.Random(number), batch * k * n)
    write_bf16(f"{sys.argv[1]}-{number}.npy", (batch, k, n), bits)
    a, b, c = (f"tensor<{batch}x{rows}x{columns}xbf16>"
               for rows, columns in ((m, k), (k, n), (m, n)))
    constant = f'  %b = arith.constant dense<"0x{to_text(bits)}"> : {b}\n'
    for name, argument, definition in (("argument", f", %b: {b}", ""),
                                       ("constant", "", constant)):
        print(f"func.func @{name}_{number}(%a: {a}{argument}) -> {c} {{\n{definition}"
              "  %zero = arith.constant 0.0 : bf16\n"
              f"  %empty = tensor.empty() : {c}\n"
              f"  %none = linalg.fill ins(%zero : bf16) outs(%empty : {c}) -> {c}\n"
              f"  %0 = linalg.batch_matmul ins(%a, %b : {a}, {b}) "
              f"outs(%none : {c}) -> {c}\n  return %0 : {c}\n}}")


def write_functions(number, m, k, n, transposed):
    generator = random.Random(number)
    rows, columns = (n, k) if transposed else (k, n)
    bits = make_bits(generator, rows * columns)
    write_bf16(f"{sys.argv[1]}-{number}.npy", (rows, columns), bits)
    a, b, c = f"tensor<{m}x{k}xbf16>", f"tensor<{rows}x{columns}xbf16>", \
        f"tensor<{m}x{n}xbf16>"
    text = to_text(bits)
    second = "affine_map<(m, n, k) -> (n, k)>" if transposed else \
        "affine_map<(m, n, k) -> (k, n)>"
    maps = ("indexing_maps = [affine_map<(m, n, k) -> (m, k)>, " + second +
            ", affine_map<(m, n, k) -> (m, n)>]")
    constant = f'  %b = arith.constant dense<"0x{text}"> : {b}\n'
    product = ("  %zero = arith.constant 0.0 : bf16\n"
               f"  %empty = tensor.empty() : {c}\n"
               f"  %none = linalg.fill ins(%zero : bf16) outs(%empty : {c}) -> {c}\n"
               f"  %0 = linalg.matmul {maps} ins(%a, %b : {a}, {b}) "
               f"outs(%none : {c}) -> {c}\n")
    for name, argument, definition in (("argument", f", %b: {b}", ""),
                                       ("constant", "", constant)):
        print(f"func.func @{name}_{number}(%a: {a}{argument}) -> {c} {{\n{definition}"
              f"{product}  return %0 : {c}\n}}")
    if not transposed:
        return
    taken = f"tensor<7x{k}xbf16>"
    rows = (f"  %to = tensor.empty() : {taken}\n"
            "  %1 = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i)>, "
            "affine_map<(i, k) -> (i, k)>], iterator_types = [\"parallel\", "
            "\"parallel\"]} ins(%rows : tensor<7xindex>) "
            f"outs(%to : {taken}) {{\n"
            "  ^bb0(%row: index, %unused: bf16):\n"
            "    %k = linalg.index 1 : index\n"
            f"    %element = tensor.extract %b[%row, %k] : {b}\n"
            f"    linalg.yield %element : bf16\n  }} -> {taken}\n")
    print(f"func.func @lookup(%rows: tensor<7xindex>, %b: {b}) -> {taken} {{\n"
          f"{rows}  return %1 : {taken}\n}}")
    print(f"func.func @tied(%a: {a}, %rows: tensor<7xindex>) -> ({c}, {taken}) {{\n"
          f"{constant}{product}{rows}  return %0, %1 : {c}, {taken}\n}}")


for number, (m, k, n) in enumerate(SIZES):
    write_functions(number, m, k, n, transposed=number == len(SIZES) - 1)
write_batch(len(SIZES), 3, 9, 70, 40)
