# ===- __init__.py - stand-in for PyTorch, in NumPy ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# The functions of PyTorch that peers.py calls for attention. Arguments that
# scaled_dot_product_attention would reject are errors. STAND_IN_FAULT selects a
# fault: `scale`, `causal` and `heads` give wrong results; `old` is a version
# without scaled_dot_product_attention.

import contextlib
import os
import types

import numpy

__version__ = "2.5.0"
float32, bfloat16 = "float32", "bfloat16"
FAULT = os.environ.get("STAND_IN_FAULT", "")


class Tensor:
    def __init__(self, array, dtype):
        self.array, self.dtype = array, dtype
        self.shape = array.shape

    def to(self, dtype):
        assert dtype in (float32, bfloat16)
        array = self.array
        if dtype == bfloat16:
            bits = array.view(numpy.uint32)
            bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000
            array = bits.astype(numpy.uint32).view(numpy.float32)
        return Tensor(array, dtype)

    def float(self):
        return Tensor(self.array, float32)

    def numpy(self):
        assert self.dtype == float32, "NumPy has no bfloat16"
        return self.array

    def __getitem__(self, index):
        return Tensor(self.array[index], self.dtype)


def from_numpy(array):
    assert array.dtype == numpy.float32 and array.flags.c_contiguous
    return Tensor(array, float32)


def set_num_threads(count):
    assert count == 1


def no_grad():
    return contextlib.nullcontext()


def attend(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False):
    assert attn_mask is None and dropout_p == 0.0
    assert query.dtype == key.dtype == value.dtype
    # Keys and values must have as many heads as queries.
    assert query.shape[:2] == key.shape[:2] == value.shape[:2]
    assert query.shape[3] == key.shape[3] and key.shape[2] == value.shape[2]
    scores = query.array @ key.array.swapaxes(2, 3)
    scores = scores / query.shape[3] ** (0.45 if FAULT == "scale" else 0.5)
    if is_causal and FAULT != "causal":
        # PyTorch's causal mask is aligned to the first key.
        scores = numpy.where(numpy.tri(*scores.shape[2:], dtype=bool), scores,
                             -numpy.inf)
    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
    result = weights @ value.array / weights.sum(axis=-1, keepdims=True)
    if FAULT == "heads":
        result = result[:, ::-1].copy()
    return Tensor(result.astype(numpy.float32), float32).to(query.dtype)


nn = types.SimpleNamespace(functional=types.SimpleNamespace())
if FAULT != "old":
    nn.functional.scaled_dot_product_attention = attend
