# ===- npy.py - makes, shows and damages .npy files ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# npy.py show FILE            its header and its elements as unsigned integers
# npy.py make FILE DESCR SHAPE HEX   a file with those bytes; HEX may be empty
# npy.py flip FILE OUT INDEX BIT     the same file with one bit changed
# npy.py set FILE OUT INDEX BITS     the same file with one element changed

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
