# ===- _cuda.py - arrays on CUDA devices -----------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Arrays on CUDA devices: what they are compiled for, results, and streams.

Kernels run in the stream that the framework of the first input has as its current one.
PyTorch's is known to TVM FFI, and CuPy's is asked for here. Other arrays have none:
their calls use the default stream, for which `__dlpack__` makes it wait, and wait for
the results, since nothing else keeps the inputs until then.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tvm_ffi

from ._compiler import open_library
from ._devices import CPU, CUDA, find_device, locate
from ._dtypes import DLPACK_CODES, FRAMEWORK_NAMES
from ._errors import Error
from ._frameworks import Backend, make_torch_backend
from ._once import once

_LEGACY_STREAM = 1  # The default stream, as `__dlpack__` takes it.
_NOT_INITIALIZED = 3  # A CUresult. It is that of all calls in a forked process.
# The oldest architecture that there is code for, and those that have instructions which
# later ones lack.
_OLDEST, _EXACT = 75, (90, 100)


def _describe(device: tuple[int, int]) -> str:
    kind, index = device
    return ("the CPU" if kind == CPU else f"the CUDA device {index}" if kind == CUDA
            else f"a device of type {kind} of DLPack")


def check_devices(function, values: Sequence, arguments: Sequence[dict]) -> None:
    """Raises an error unless all arrays are on the device of the first one."""
    first, where = "", None
    for value, argument in zip(values, arguments):
        if argument["kind"] != "tensor" or argument.get("shape_only"):
            continue
        device = locate(value)
        if where is None:
            first, where = argument["name"], device
        elif device is not None and device != where:
            raise Error(f"{function.name}: {argument['name']} is on {_describe(device)}, "
                        f"but {first} is on {_describe(where)}: move them to one "
                        "device") from None


# ===----------------------------------------------------------------------===#
# Targets
# ===----------------------------------------------------------------------===#


class _Facts(ctypes.Structure):
    """posenc_cuda_facts of posenc/runtime/cuda.h."""

    _fields_ = [("name", ctypes.c_char * 256), ("arch", ctypes.c_int32),
                ("memory_bytes", ctypes.c_uint64)]


@once
def _query(index: int) -> _Facts:
    runtime = open_library("libposenc_runtime.so")
    runtime.posenc_last_error.restype = ctypes.c_char_p
    facts = _Facts()
    if runtime.posenc_cuda_query_device(ctypes.c_int32(index), ctypes.byref(facts)):
        raise Error(runtime.posenc_last_error().decode(errors="replace"))
    return facts


def find_target(index: int, what: str) -> str:
    """Returns the target for a CUDA device. `what` is on it."""
    try:
        facts = _query(index)
    except Error as error:
        raise Error(f"{what} is on the CUDA device {index}: {error}") from None
    if facts.arch < _OLDEST:
        raise Error(
            f"{what} is on the CUDA device {index}, which has compute capability "
            f"{facts.arch / 10}: there is code for {_OLDEST / 10} and newer only")
    return f"cuda:sm_{facts.arch}{'a' if facts.arch in _EXACT else ''}"


def find_target_ahead(index: int | None) -> str | None:
    """Returns the target for what will be called on a CUDA device. None on the CPU, and
    without a driver, as in a trace: then the call finds its target."""
    if index is None:
        return None
    try:
        _query(index)
    except Error:
        return None
    return find_target(index, "a tensor")


# ===----------------------------------------------------------------------===#
# Memory
# ===----------------------------------------------------------------------===#


class _Driver:
    """The functions of the CUDA driver that memory needs, in the primary context of a
    device."""

    def __init__(self, index: int):
        # It has been opened for the architecture of the device.
        self._library = ctypes.CDLL("libcuda.so.1")
        device = ctypes.c_int()
        self._context = ctypes.c_void_p()
        self._call("cuInit", ctypes.c_uint(0))
        self._call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(index))
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)

    def _call(self, name: str, *arguments) -> None:
        code = getattr(self._library, name)(*arguments)
        if code == _NOT_INITIALIZED:
            raise Error(f"CUDA: {name}: this process was forked from one that had used "
                        "CUDA, so that it cannot: start processes by 'spawn'")
        if code:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(code, ctypes.byref(text))
            raise Error(f"CUDA: {name}: "
                        f"{(text.value or b'unknown error').decode()} ({code})")

    @contextlib.contextmanager
    def _current(self) -> Iterator[None]:
        old = ctypes.c_void_p()
        self._call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self._call("cuCtxPopCurrent_v2", ctypes.byref(old))

    def allocate(self, size: int) -> int:
        """Allocates memory in the order of the default stream."""
        address = ctypes.c_uint64()
        with self._current():
            self._call("cuMemAllocAsync", ctypes.byref(address),
                       ctypes.c_size_t(max(size, 1)), None)
        return address.value

    def free(self, address: int) -> None:
        with self._current():
            self._call("cuMemFreeAsync", ctypes.c_uint64(address), None)

    def wait(self) -> None:
        """Waits for the default stream."""
        with self._current():
            self._call("cuStreamSynchronize", None)


_find_driver = once(_Driver)


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _ManagedTensor(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p)]


# The tensors that DLPack's consumers have, by their addresses. There is no lock: the
# garbage collector may call `_delete` in any thread, at any place.
_managed: dict[int, tuple] = {}


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _delete(address: int) -> None:
    _, _, driver, memory = _managed.pop(address)
    with contextlib.suppress(Error):  # The driver may have been shut down.
        driver.free(memory)


# The codes and bits of types in DLPack.
_CODES = {"bool": (6, 8), "uint8": (1, 8), **DLPACK_CODES,
          **{f"{name}{bits}": (code, bits) for name, code in (("int", 0), ("float", 2))
             for bits in (8, 16, 32, 64)}}


# Attributes of ctypes.pythonapi are shared, and jax.ffi.pycapsule sets their types.
_make_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p,
    ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))


class _Exporter:
    """An array that has a capsule for `__dlpack__`."""

    def __init__(self, device: tuple[int, int], export: Callable[..., Any]):
        self._device, self._export = device, export

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(self, **options):
        return self._export(**options)


def _empty(index: int, shape: tuple, dtype: str) -> tvm_ffi.Tensor:
    """Returns a tensor of TVM FFI on a device. `dtype` is a type of frameworks."""
    driver = _find_driver(index)
    code, bits = _CODES[dtype]
    address = driver.allocate(math.prod(shape) * bits // 8)
    sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    managed = _ManagedTensor(
        _DLTensor(address, CUDA, index, len(shape), code, bits, 1,
                  ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64)), None, 0),
        None, ctypes.cast(_delete, ctypes.c_void_p))
    _managed[ctypes.addressof(managed)] = managed, sizes, driver, address
    return tvm_ffi.from_dlpack(_Exporter(
        (CUDA, index),
        lambda **_: _make_capsule(ctypes.addressof(managed), b"dltensor", None)))


# ===----------------------------------------------------------------------===#
# Frameworks
# ===----------------------------------------------------------------------===#


def _export(value, stream: int):
    """Returns a tensor of TVM FFI for an array, which a stream may read; numbers and
    other values as they are."""
    device = locate(value)
    if device is None or isinstance(value, tvm_ffi.Tensor):
        return value

    def export(**options):
        if device[0] == CUDA:
            options["stream"] = stream
        try:
            return value.__dlpack__(**options)
        except TypeError:  # It is of an earlier version of DLPack.
            return value.__dlpack__(**{key: one for key, one in options.items()
                                       if key == "stream"})

    return tvm_ffi.from_dlpack(_Exporter(device, export))


def _run_in(index: int, stream: int, call: Callable, arguments: Sequence) -> None:
    """Calls a function of TVM FFI in a stream, the address of a CUstream."""
    tensors = [_export(value, stream or _LEGACY_STREAM) for value in arguments]
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", index), stream):
        call(*tensors)


def is_of_cupy(value) -> bool:
    return type(value).__module__.split(".")[0] == "cupy"


def put_like(array, value: np.ndarray):
    """Returns an array of NumPy as one that a call with `array` takes: of CuPy, on its
    device, if that is one of CuPy. JAX puts it where it calls."""
    if not is_of_cupy(array):
        return value
    cupy = sys.modules["cupy"]
    with cupy.cuda.Device(find_device(array)):
        return cupy.asarray(value)


@once
def _make_cupy_backend(index: int) -> Backend:
    import cupy  # type: ignore[import-not-found]

    def empty(shape: tuple, dtype: str):
        with cupy.cuda.Device(index):
            return cupy.empty(shape, FRAMEWORK_NAMES[dtype])

    def scratch(size: int):
        with cupy.cuda.Device(index):
            return cupy.empty(size, "uint8")

    def run(call: Callable, arguments: Sequence) -> None:
        with cupy.cuda.Device(index):
            stream = cupy.cuda.get_current_stream().ptr
        _run_in(index, stream, call, arguments)

    return Backend("CuPy", empty, scratch=scratch, run=run)


def _run_and_wait(index: int, call: Callable, arguments: Sequence) -> None:
    _run_in(index, 0, call, arguments)
    _find_driver(index).wait()


def _make_dlpack_backend(name: str, index: int, **options) -> Backend:
    return Backend(
        name, lambda shape, dtype: _empty(index, shape, FRAMEWORK_NAMES[dtype]),
        scratch=lambda size: _empty(index, (size,), "uint8"),
        run=functools.partial(_run_and_wait, index), **options)


@once
def _make_jax_backend(index: int) -> Backend:
    import jax

    def check(function, inputs: Sequence, tracer=jax.core.Tracer) -> bool:
        return any(isinstance(value, tracer) for value in inputs)

    def finish(tensor, dtype: str):
        with jax.enable_x64(True):  # Otherwise 64 bits would be rounded to 32.
            return jax.dlpack.from_dlpack(tensor)

    return _make_dlpack_backend("JAX", index, check=check, finish=finish, mutable=False)


_make_other_backend = once(functools.partial(_make_dlpack_backend, "DLPack"))
_torch_backends: dict[Any, Backend] = {}


def find_cuda_backend(value, what: str) -> Backend:
    """As `find_backend`, of an array on a CUDA device."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is not None and isinstance(value, torch.Tensor):
        backend = _torch_backends.get(value.device)
        if backend is None:
            backend = _torch_backends[value.device] = make_torch_backend(value.device)
        return backend
    device = locate(value)
    if device is None or device[0] != CUDA:
        raise Error(f"{what} is not on a CUDA device")
    if is_of_cupy(value):
        return _make_cupy_backend(device[1])
    if jax is not None and isinstance(value, jax.Array):
        return _make_jax_backend(device[1])
    return _make_other_backend(device[1])
