# ===- npy.py - creates, prints and damages .npy files ---------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# npy.py show FILE                   prints the header and the elements as integers
# npy.py make FILE DESCR SHAPE HEX   creates a file with these bytes
# npy.py flip FILE OUT INDEX BIT     copies a file with one bit flipped
# npy.py set FILE OUT INDEX BITS     copies a file with one element replaced

import ast
import struct
import sys


def read(path):
    data = open(path, "rb").read()
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    end = 10 + struct.unpack("<H", data[8:10])[0]
    return ast.literal_eval(data[10:end].decode()), data[:end], data[end:]


command, path = sys.argv[1:3]
if command == "show":
    header, _, body = read(path)
    size = int(header["descr"][2:])
    numbers = [
        int.from_bytes(body[i : i + size], "little")
        for i in range(0, len(body), size)
    ]
    print(header["descr"], header["fortran_order"], header["shape"], numbers)
elif command == "make":
    descr, shape, text = sys.argv[3:6]
    header = str({"descr": descr, "fortran_order": False,
                  "shape": ast.literal_eval(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)))
        file.write(header.encode() + bytes.fromhex(text))
else:
    out, index, number = sys.argv[3], int(sys.argv[4]), int(sys.argv[5], 0)
    header, start, body = read(path)
    size = int(header["descr"][2:])
    element = slice(index * size, (index + 1) * size)
    bits = int.from_bytes(body[element], "little") ^ 1 << number
    if command == "set":
        bits = number
    changed = bytearray(body)
    changed[element] = bits.to_bytes(size, "little")
    open(out, "wb").write(start + changed)
