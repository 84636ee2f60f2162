# ===- test_dtensors.py - calls with DTensors --------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The comparisons of dtensors.py in 2 and 4 processes."""

import pytest

pytest.importorskip("torch")

import dtensors
import posenc
from test_ring import spawn


@pytest.mark.parametrize("size", [2, 4])
def test_processes(size):
    spawn(dtensors.compare, size)


def test_divide():
    kernels = posenc.compile(dtensors.SINUSOIDAL)
    assert posenc.divide(kernels, "tokens") is kernels
    with pytest.raises(posenc.Error, match="no function has a size 'rows': there are tok"):
        posenc.divide(kernels, "rows")
    with pytest.raises(posenc.Error, match="expected kernels that posenc.compile has made"):
        posenc.divide(posenc.compile(dtensors.CONFIG, dtype="f32", kernels="rope"), "batch")
