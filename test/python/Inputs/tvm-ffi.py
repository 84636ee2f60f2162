# ===- tvm-ffi.py - a library called through apache-tvm-ffi ----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""tvm-ffi.py LIBRARY: the library is that of Mistral 7B in f32, prefix `x`."""

import sys

import numpy as np
import tvm_ffi

from dlpack import Library


def main():
    module = tvm_ffi.load_module(sys.argv[1])
    random = np.random.default_rng(7)
    q = random.standard_normal((2, 7, 32, 128)).astype(np.float32)
    k = random.standard_normal((2, 7, 8, 128)).astype(np.float32)
    positions = random.integers(0, 32768, (2, 7))
    expected = [np.empty_like(q), np.empty_like(k)]
    Library(sys.argv[1], "x").call("rope", q, k, positions, *expected)
    actual = [np.zeros_like(q), np.zeros_like(k)]
    module.x_rope(*map(tvm_ffi.from_dlpack, [q, k, positions, *actual]))
    assert all((a == b).all() for a, b in zip(actual, expected))
    try:
        module.x_rope(*map(tvm_ffi.from_dlpack,
                           [q, k[:, :6].copy(), positions, *actual]))
    except ValueError as error:
        print(error)
    print("ok")


main()
