# ===- xla_calls.py - custom calls without XLA -----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Calls the targets of custom calls as XLA does on a GPU, by the structures of
xla/ffi/api/c_api.h: with buffers, a stream and the number of a device. JAX for CPUs has
the targets, but nothing that calls them."""

import contextlib
import ctypes
import re
import types

import jax
import jax_tvm_ffi
import numpy as np

_pointer, _size = ctypes.c_void_p, ctypes.c_size_t
_HEAD = [("struct_size", _size), ("extension", _pointer)]
_TYPES = {"bool": 1, "int32": 4, "int64": 5, "uint8": 6, "float32": 11}
_NAMES = {"i32": "int32", "i64": "int64", "ui8": "uint8", "f32": "float32", "i1": "bool"}


class _Version(ctypes.Structure):
    _fields_ = [*_HEAD, ("major", ctypes.c_int), ("minor", ctypes.c_int)]


class _Metadata(ctypes.Structure):
    _fields_ = [("struct_size", _size), ("version", _Version), ("traits", ctypes.c_uint32),
                ("state", ctypes.c_int64)]


class _Extension(ctypes.Structure):
    _fields_ = [("struct_size", _size), ("kind", ctypes.c_int), ("next", _pointer),
                ("metadata", _pointer)]


class _Buffer(ctypes.Structure):
    _fields_ = [*_HEAD, ("dtype", ctypes.c_int), ("data", _pointer),
                ("rank", ctypes.c_int64), ("dims", _pointer)]


class _List(ctypes.Structure):
    """Arguments or results. `types` are 1, for buffers."""

    _fields_ = [*_HEAD, ("size", ctypes.c_int64), ("types", _pointer),
                ("values", _pointer)]


class _Attributes(ctypes.Structure):
    _fields_ = [*_HEAD, ("size", ctypes.c_int64), ("types", _pointer),
                ("names", _pointer), ("values", _pointer)]


class _Frame(ctypes.Structure):
    _fields_ = [*_HEAD, ("api", _pointer), ("context", _pointer), ("stage", ctypes.c_int),
                ("arguments", _List), ("results", _List), ("attributes", _Attributes),
                ("future", _pointer)]


class _Answer(ctypes.Structure):
    """The arguments of functions of the interface that return one value in the last
    field."""

    _fields_ = [*_HEAD, ("first", _pointer), ("second", _pointer)]


_Function = ctypes.CFUNCTYPE(_pointer, ctypes.POINTER(_Answer))
# The functions of XLA_FFI_Api; only these are called.
_FUNCTIONS = 18
_ERROR_CREATE, _STREAM_GET, _DEVICE_GET = 0, 4, 17


class _Api(ctypes.Structure):
    _fields_ = [*_HEAD, ("version", _Version), ("internal", _pointer),
                ("functions", _Function * _FUNCTIONS)]


class Target:
    """A target that was registered."""

    def __init__(self, capsule):
        get = ctypes.PYFUNCTYPE(_pointer, ctypes.py_object, ctypes.c_char_p)(
            ("PyCapsule_GetPointer", ctypes.pythonapi))
        self._handler = ctypes.CFUNCTYPE(_pointer, ctypes.POINTER(_Frame))(
            get(capsule, None))

    def get_traits(self) -> int:
        metadata = _Metadata(ctypes.sizeof(_Metadata))
        metadata.version.struct_size = ctypes.sizeof(_Version)
        extension = _Extension(ctypes.sizeof(_Extension), 1, None,
                               ctypes.addressof(metadata))
        api = _Api(ctypes.sizeof(_Api))
        frame = _Frame(ctypes.sizeof(_Frame), ctypes.addressof(extension),
                       ctypes.addressof(api))
        assert not self._handler(frame)
        return metadata.traits

    def __call__(self, arguments, results, stream=None, device=0):
        """Calls with arrays that have `address`, `shape` and `dtype`. Raises the error of
        the call."""
        errors = []

        def create_error(answer):
            errors.append(ctypes.string_at(answer[0].first).decode())
            return 1

        def get_stream(answer):
            answer[0].second = stream

        def get_device(answer):
            ctypes.c_int32.from_address(
                ctypes.addressof(answer[0]) + _Answer.second.offset).value = device

        api = _Api(ctypes.sizeof(_Api))
        for index, function in ((_ERROR_CREATE, create_error), (_STREAM_GET, get_stream),
                                (_DEVICE_GET, get_device)):
            api.functions[index] = _Function(function)
        kept = [api]

        def make_list(arrays):
            count = len(arrays)
            buffers = []
            for array in arrays:
                dims = (ctypes.c_int64 * max(len(array.shape), 1))(*array.shape)
                buffers.append(_Buffer(
                    ctypes.sizeof(_Buffer), None, _TYPES[np.dtype(array.dtype).name],
                    array.address.value, len(array.shape), ctypes.addressof(dims)))
                kept.append(dims)
            kinds = (ctypes.c_int * max(count, 1))(*[1] * count)
            values = (_pointer * max(count, 1))(*map(ctypes.addressof, buffers))
            kept.extend((buffers, kinds, values))
            return _List(ctypes.sizeof(_List), None, count, ctypes.addressof(kinds),
                         ctypes.addressof(values))

        frame = _Frame(ctypes.sizeof(_Frame), None, ctypes.addressof(api), 1, 3,
                       make_list(arguments), make_list(results))
        if self._handler(frame):
            raise RuntimeError(errors[-1])


@contextlib.contextmanager
def record_targets():
    """Gives a dictionary of the targets for CUDA that are registered meanwhile."""
    targets, register = {}, jax_tvm_ffi.register_ffi_target

    def record(name, *arguments, platform, **options):
        capsule = register(name, *arguments, platform=platform, **options)
        if platform == "gpu":
            targets[name] = Target(capsule)
        return capsule

    jax_tvm_ffi.register_ffi_target = record
    try:
        yield targets
    finally:
        jax_tvm_ffi.register_ffi_target = register


@contextlib.contextmanager
def pretend_devices(*indices):
    """JAX has CUDA devices of these numbers, as far as lowering sees."""
    get = jax.local_devices
    devices = [types.SimpleNamespace(platform="gpu", process_index=0,
                                     local_hardware_id=index) for index in indices]
    jax.local_devices = lambda *arguments, backend=None, **options: (
        devices if backend == "cuda" else get(*arguments, backend=backend, **options))
    try:
        yield
    finally:
        jax.local_devices = get


def lower(function, *inputs) -> str:
    """Returns the StableHLO of a function for CUDA."""
    return jax.jit(function).trace(*inputs).lower(lowering_platforms=("cuda",)).as_text()


def read_calls(text: str) -> list[tuple[str, list, list]]:
    """Returns the custom calls of Posenc in StableHLO: the name, and the shapes and types
    of operands and results."""
    found = re.findall(r"@(posenc_\w+)\(.* : \((.*)\) -> (.*)", text)
    return [(name, *map(_read_types, kinds)) for name, *kinds in found]


def _read_types(text: str) -> list[tuple[tuple[int, ...], str]]:
    result = []
    for kind in re.findall(r"tensor<([^>]*)>", text):
        *sizes, dtype = kind.split("x")
        result.append((tuple(map(int, sizes)), _NAMES[dtype]))
    return result
