# ===- dlpack.py - a library called on NumPy arrays ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Creates DLTensors of NumPy arrays and calls a kernel library with them."""

import ctypes

import numpy as np

DL_INT, DL_FLOAT, DL_BFLOAT = 0, 2, 4


class DLTensor(ctypes.Structure):
    """DLPack's tensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def make_tensor(array):
    """Returns a view of an array. uint16 stands for bf16, which NumPy lacks."""
    kind = {"f": DL_FLOAT, "i": DL_INT, "u": DL_BFLOAT}[array.dtype.kind]
    dims = ctypes.c_int64 * array.ndim
    strides = [stride // array.itemsize for stride in array.strides]
    return DLTensor(
        array.ctypes.data, 1, 0, array.ndim, kind, 8 * array.itemsize, 1,
        dims(*array.shape), dims(*strides), 0)


def exported_tensor(capsule):
    """Returns the tensor in a capsule of array.__dlpack__(), which owns it."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype = ctypes.c_void_p
    get.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return DLTensor.from_address(get(capsule, b"dltensor"))


class Library:
    """The functions of a library on DLPack tensors."""

    def __init__(self, path, prefix):
        self.library = ctypes.CDLL(path)
        self.prefix = prefix

    def call_tensors(self, function, tensors):
        """Calls a function and returns its code and its error message."""
        message = ctypes.create_string_buffer(200)
        entry = getattr(self.library, f"{self.prefix}_{function}_dl")
        entry.restype = ctypes.c_int32
        pointers = [ctypes.byref(tensor) for tensor in tensors]
        code = entry(*pointers, message, ctypes.c_size_t(len(message)))
        return code, message.value.decode()

    def call(self, function, *arrays):
        """A call that must succeed, inputs then outputs."""
        result = self.call_tensors(function, [make_tensor(a) for a in arrays])
        assert result == (0, ""), result


def to_bf16(values):
    """The nearest bf16, as bits."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    bits = bits + 0x7FFF + ((bits >> 16) & 1)
    return (bits >> 16).astype(np.uint16)


def to_f64(array):
    """The values of an array, which are bf16 if its type is uint16."""
    if array.dtype == np.uint16:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64)
