#!/usr/bin/env python3
# ===- damage-vulkan.py - a library whose Vulkan code is damaged ------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""damage-vulkan.py FROM.so TO.so flip|short|long: copies a library, and damages
its Vulkan kernels: flips a bit, or changes the number of words in their header or
their number of bytes in the metadata."""

import re
import sys


def main():
    source, target, how = sys.argv[1:]
    with open(source, "rb") as file:
        data = bytearray(file.read())
    begin = data.index(b"PSNV")
    assert data.count(b"PSNV") == 1
    if how == "flip":
        data[begin + 4000] ^= 16
    elif how == "short":
        data[begin + 8] ^= 1
    else:
        # Replaces the first digit, which keeps the length of the text.
        digits = re.search(rb'"vulkan":\{"bytes":(\d)', data)
        data[digits.start(1)] = ord("9")
    with open(target, "wb") as file:
        file.write(data)


if __name__ == "__main__":
    main()
