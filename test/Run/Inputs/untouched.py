# ===- untouched.py - results after a position outside of the table ---------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""untouched.py LIBRARY: calls absolute_gpt2 with and without a position outside of the
table, and in place, and prints the status and whether the result was written."""

import ctypes
import sys

import numpy as np

library = ctypes.CDLL(sys.argv[1])
x, table = np.ones((2, 3, 768), np.float32), np.ones((1024, 768), np.float32)


def call(position, result):
    positions = np.zeros((2, 3), np.int64)
    positions[1, 2] = position
    old = result.copy()
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (x, table, positions, result)]
    status = library.absolute_gpt2(*pointers, ctypes.c_int64(2), ctypes.c_int64(3))
    same = np.array_equal(result, old)
    state = "written" if (result == 2).all() else "as before" if same else "wrong"
    print(f"position {position}: status {status}, result {state}")


for number in (1023, 1024, -1, 2**40):
    call(number, np.full_like(x, 7))
call(1024, x)
call(1023, x)
