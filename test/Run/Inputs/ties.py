# ===- ties.py - numbers whose products with 1.5 may be ties ---------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Writes all numbers of bf16 and f16 whose products with 1.5 are normal, and these
products, rounded with ties to even and, as a control, with ties to odd."""

import numpy as np

FORMATS = {"bf16": (np.uint16, 8, -126), "f16": (np.float16, 11, -14)}


def decode(bits, name):
    if name == "f16":
        return bits.view(np.float16).astype(np.float64)
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def encode(values, name):
    if name == "f16":
        return values.astype(np.float16)
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


for name, (storage, digits, exponent) in FORMATS.items():
    bits = np.arange(1 << 16, dtype=np.uint16)
    x = decode(bits, name)
    with np.errstate(invalid="ignore"):
        keep = (abs(x) >= 2.0**exponent) & (abs(x) * 1.5 < 2.0 ** (1 - exponent))
    bits, x = bits[keep], x[keep]
    bits, x = bits[: len(bits) // 64 * 64], x[: len(bits) // 64 * 64]
    exact = 1.5 * x
    unit = 2.0 ** (np.frexp(exact)[1] - digits)
    even = np.rint(exact / unit) * unit
    tie = abs(exact - even) == unit / 2
    assert tie.mean() > 0.3
    odd = np.where(tie, 2 * exact - even, even)
    for role, stored in (("x", bits.view(storage)), ("even", encode(even, name)),
                         ("odd", encode(odd, name))):
        np.save(f"{name}-{role}.npy", stored.reshape(-1, 16, 4))
    np.save(f"{name}-positions.npy", np.zeros(len(x) // 64, np.int64))
