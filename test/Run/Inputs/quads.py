# ===- quads.py - products of bytes by NumPy -------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""quads.py FOLDER: writes words of four bytes, and the sums of their products."""

import pathlib
import sys

import numpy as np

folder = pathlib.Path(sys.argv[1])
random = np.random.default_rng(1)
# Half of the bytes are the extremes of signed or unsigned ones.
a = random.integers(0, 256, (32, 64), np.uint8)
b = random.integers(0, 256, (64, 32), np.uint8)
for x in (a, b):
    x[random.random(x.shape) < 0.5] = random.choice(np.array([0, 127, 128, 255], np.uint8))
a[0], b[:, 0], a[1], b[:, 1] = 255, 127, 127, 255
sums = random.integers(-2**31, 2**31, (32, 32)).astype(np.int32)
np.save(folder / "a.npy", a.view(np.int32))
np.save(folder / "b.npy", np.ascontiguousarray(b.T).view(np.int32).T.copy())
np.save(folder / "s.npy", sums)
signed = a.view(np.int8).astype(np.int64), b.view(np.int8).astype(np.int64)
for name, x, y in (("us", a.astype(np.int64), signed[1]), ("su", signed[0], b.astype(np.int64))):
    np.save(folder / f"{name}.npy", (sums + x @ y).astype(np.int32))
