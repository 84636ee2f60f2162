# ===- _frameworks.py - arrays of NumPy, PyTorch and JAX -------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""What depends on the framework of an array: allocation and DLPack.

TVM FFI passes arrays of most types as DLPack tensors by itself. This module adds
what it lacks: arrays of NumPy that NumPy does not export (bf16, f8, read-only
ones), and results as immutable arrays of JAX. Inputs that JAX traces have no memory:
_jax.py makes calls of them.
"""

from __future__ import annotations

import ctypes
import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm_ffi

from ._devices import is_on_cuda
from ._dtypes import DLPACK_CODES, FRAMEWORK_NAMES
from ._errors import Error

# Bytes: what JAX needs to take an array without a copy, and a cache line.
_ALIGNMENT = 64
# The offset of the type code in a Tensor of TVM FFI: an object header of 24 bytes,
# then DLPack's data, device and number of dimensions.
_CODE_OFFSET = 24 + 8 + 8 + 4


class Backend:
    """How arrays of one framework are allocated, checked and passed."""

    def __init__(self, name: str, empty: Callable[[tuple, str], Any], *,
                 like: Callable[[Any], Any] | None = None,
                 check: Callable[[Any, Sequence], bool | None] | None = None,
                 check_out: Callable[[Any, Sequence], None] | None = None,
                 mark: Callable[[Sequence], None] | None = None,
                 finish: Callable[[Any, str], Any] | None = None, mutable: bool = True,
                 wide: Any = np.dtype(np.int64),
                 scratch: Callable[[int], Any] | None = None,
                 run: Callable[[Callable, Sequence], None] | None = None):
        self.name = name
        self.empty = empty  # of a shape and a type of the metadata
        self.like = like  # of another array; None if that is no faster
        # Of the function and all inputs, before a call. True if it is one for
        # `Function.call_other`.
        self.check = check
        # Of the function and the outputs that `out` has, unless they are inputs.
        self.check_out = check_out or (lambda function, outputs: None)
        # Of all outputs that `out` has, before a call: notes that they change.
        self.mark = mark
        self.finish = finish  # converts what `empty` made, of a type, to a result
        self.mutable = mutable
        self.wide = wide  # the type of integers of 64 bits
        # On CUDA devices: `scratch` makes a workspace of bytes, and `run` calls a
        # function of TVM FFI with arguments.
        self.scratch, self.run = scratch, run


# ===----------------------------------------------------------------------===#
# NumPy
# ===----------------------------------------------------------------------===#


def _ml_dtype(name: str):
    try:
        import ml_dtypes
    except ImportError:
        raise Error(f"NumPy has no type {name}: install ml_dtypes, or pass arrays of "
                    "PyTorch or JAX") from None
    return np.dtype(getattr(ml_dtypes, name))


class _NumpyTypes(dict):
    """NumPy's type of each type of the metadata."""

    def __missing__(self, key: str):
        name = FRAMEWORK_NAMES[key]
        dtype = _ml_dtype(name) if name in DLPACK_CODES else np.dtype(name)
        self[key] = dtype
        return dtype


_numpy_types = _NumpyTypes()


def _empty_numpy(shape: tuple, dtype: str, empty=np.empty, types=_numpy_types):
    return empty(shape, types[dtype])


class _Alias:
    """Memory of an array as NumPy's array interface describes it."""

    def __init__(self, array: np.ndarray, typestr: str):
        self.array = array
        self.__array_interface__ = {
            "version": 3, "shape": array.shape, "strides": array.strides,
            "typestr": typestr, "data": (array.__array_interface__["data"][0], False)}


def _import_as(array: np.ndarray, code: int, import_=tvm_ffi.from_dlpack,
               byte_at=ctypes.c_uint8.from_address, offset=_CODE_OFFSET):
    """Returns a tensor on the memory of an array of integers, with another type code of
    DLPack. The descriptor is the tensor's own."""
    tensor = import_(array)
    byte_at(tensor.__chandle__() + offset).value = code
    return tensor


@functools.cache
def _check_layout() -> None:
    """Raises an error unless tensors of TVM FFI have the layout that `_import_as`
    needs."""
    for dtype, code, bits in (("u1", 1, 8), ("i2", 0, 16), ("f4", 2, 32), ("f8", 2, 64)):
        tensor = tvm_ffi.from_dlpack(np.zeros((2, 3), dtype))
        address = tensor.__chandle__() + _CODE_OFFSET
        if bytes((ctypes.c_uint8 * 4).from_address(address)) != bytes([code, bits, 1, 0]):
            raise Error("arrays of NumPy and JAX with bf16 and f8 need another version "
                        f"of apache-tvm-ffi than {tvm_ffi.__version__}")


class _ExoticTypes(dict):
    """Of each type of NumPy: None, or the type code and the unsigned integers of a
    type that NumPy does not export."""

    def __missing__(self, dtype: np.dtype):
        value = None
        if dtype.name in DLPACK_CODES:
            _check_layout()
            code, bits = DLPACK_CODES[dtype.name]
            value = code, np.dtype(f"u{bits // 8}")
        self[dtype] = value
        return value


_exotic_types = _ExoticTypes()


def _view_numpy(array: np.ndarray, types=_exotic_types):
    """Returns a tensor on the memory of an array that NumPy does not export, and other
    arrays as they are."""
    exotic = types[array.dtype]
    if exotic is None:
        if array.flags.writeable:
            return array
        return tvm_ffi.from_dlpack(np.asarray(_Alias(array, array.dtype.str)))
    code, integers = exotic
    try:
        return _import_as(array.view(integers), code)
    except BufferError:  # It is read-only.
        return _import_as(np.asarray(_Alias(array, integers.str)), code)


def view_arrays(values: Sequence) -> list:
    """Returns the arguments of a call with views of its arrays of NumPy, one view for
    each array."""
    views: dict[int, Any] = {}
    result = []
    for value in values:
        if isinstance(value, np.ndarray):
            key = id(value)
            view = views.get(key)
            if view is None:
                view = views[key] = _view_numpy(value)
            value = view
        result.append(value)
    return result


NUMPY = Backend("NumPy", _empty_numpy)
# Of DTensors, whose calls are those of operators.
_DIVIDED = Backend("PyTorch", _empty_numpy, check=lambda function, inputs: True)
# Of arrays of other frameworks on CUDA devices, whose calls are others.
_ON_CUDA = Backend("DLPack", _empty_numpy, check=lambda function, inputs: True)


def widen(value):
    """Returns an array of integers of 64 bits for one of 32, with its elements in order.
    Other values are returned as they are."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is not None and isinstance(value, torch.Tensor):
        if value.dtype != torch.int32:
            return value
        return value.to(torch.int64, memory_format=torch.contiguous_format)
    if getattr(value, "dtype", None) != np.int32:
        return value
    if jax is not None and isinstance(value, jax.Array):
        with jax.enable_x64(True):
            return jax.lax.convert_element_type(value, np.int64)
    # Of NumPy or CuPy.
    return value.astype(np.int64, order="C") if hasattr(value, "astype") else value


# ===----------------------------------------------------------------------===#
# PyTorch
# ===----------------------------------------------------------------------===#


def _find_increment_versions(torch) -> Callable[[Sequence], None]:
    """Returns increment_version of torch.autograd.graph for several tensors, without
    its overhead if this version of PyTorch has the same below it."""
    increment: Any = getattr(torch._C, "_increment_version", None)
    with torch.inference_mode(False):  # Other tensors have no version.
        tensor = torch.empty(0, device="cpu")
    try:
        increment((tensor,))
    except TypeError:
        pass
    if tensor._version == 1:
        return increment

    def increment_each(tensors: Sequence) -> None:
        for tensor in tensors:
            torch.autograd.graph.increment_version(tensor)

    return increment_each


def make_torch_backend(device: Any = None) -> Backend:
    """Returns the backend of tensors on the CPU, or on a CUDA device."""
    import torch

    from ._torch_state import has_tangent, is_in_forward_mode, is_traced

    types = {own: getattr(torch, name) for own, name in FRAMEWORK_NAMES.items()}
    is_on_cpu = device is None
    place = torch.device("cpu") if is_on_cpu else device
    is_recording = torch.is_grad_enabled

    def empty(shape: tuple, dtype: str, empty=torch.empty):
        return empty(shape, dtype=types[dtype], device=place)

    def scratch(size: int, empty=torch.empty, dtype=torch.uint8):
        return empty(size, dtype=dtype, device=place)

    def run(call: Callable, arguments: Sequence) -> None:
        call(*arguments)

    def refuse_negative(function, what: str) -> None:
        # Its memory has the opposite of its elements.
        raise Error(f"{function.name}: {what} has the negative bit: call its method "
                    "resolve_neg()")

    def refuse_tangents(function, values: Sequence) -> None:
        for value in values:
            if isinstance(value, torch.Tensor) and has_tangent(value):
                raise Error(f"{function.name}: an array has a tangent, and calls have no "
                            "derivatives in forward mode")

    def check(function, inputs: Sequence, tensor=torch.Tensor) -> bool:
        if is_traced():
            return True  # The operator is recorded.
        if is_on_cpu:
            first = inputs[function.first_tensor]
            if isinstance(first, tensor) and first.is_cuda:
                return True
        if is_in_forward_mode():
            refuse_tangents(function, inputs)
        has_gradients = is_recording()
        for index in function.float_inputs:
            value = inputs[index]
            if not isinstance(value, tensor):
                continue
            if value.is_neg():
                refuse_negative(function, function.inputs[index]["name"])
            if has_gradients and value.requires_grad:
                raise Error(
                    f"{function.name}: an input requires a gradient, which this call "
                    f"does not record: {function.suggest_operator()}, or call it under "
                    "torch.no_grad()")
        return False

    def check_out(function, outputs: Sequence) -> None:
        if any(output.is_neg() for output in outputs):
            refuse_negative(function, "an array of `out`")
        if is_recording() and any(output.requires_grad for output in outputs):
            raise Error(
                f"{function.name}: an array of `out` requires a gradient, which this "
                "call does not record: call it under torch.no_grad()")
        if is_in_forward_mode():
            refuse_tangents(function, outputs)

    def like(tensor, empty=torch.empty_like, order=torch.contiguous_format):
        return empty(tensor, memory_format=order)

    return Backend("PyTorch", empty, like=like, check=check, check_out=check_out,
                   mark=_find_increment_versions(torch), wide=torch.int64,
                   scratch=scratch, run=run)


# ===----------------------------------------------------------------------===#
# JAX
# ===----------------------------------------------------------------------===#


def _empty_aligned(shape: tuple, dtype: str):
    """Returns a tensor of TVM FFI whose memory JAX takes without a copy."""
    name = FRAMEWORK_NAMES[dtype]
    code, bits = DLPACK_CODES.get(name, (None, None))
    kind = np.dtype(f"u{bits // 8}" if bits else name)
    size = math.prod(shape) * kind.itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    array = memory[start:start + size].view(kind).reshape(shape)
    if code is None:
        return tvm_ffi.from_dlpack(array)
    _check_layout()
    return _import_as(array, code)


def _make_jax_backend() -> Backend:
    import jax

    tracer, array, narrow = jax.core.Tracer, jax.Array, np.dtype(np.int32)
    has_gpu = jax.default_backend() == "gpu"

    def check(function, inputs: Sequence) -> bool:
        for value in inputs:
            if isinstance(value, tracer):
                return True
            if has_gpu and is_on_cuda(inputs[function.first_tensor]):
                return True
            if isinstance(value, array):
                value.block_until_ready()
        for index in function.wide_inputs:
            value = inputs[index]
            if isinstance(value, array) and value.dtype == narrow:
                return True
        return False

    def finish(tensor, dtype: str, convert=jax.dlpack.from_dlpack):
        if not FRAMEWORK_NAMES[dtype].endswith("64"):
            return convert(tensor)
        with jax.enable_x64(True):  # Otherwise the result would be rounded to f32.
            return convert(tensor)

    return Backend("JAX", _empty_aligned, check=check, finish=finish, mutable=False)


def is_of_jax(value) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array)


def is_divided(value) -> bool:
    """Whether an array of JAX is on several devices."""
    jax = sys.modules.get("jax")
    return (jax is not None and isinstance(value, jax.Array)
            and not isinstance(value, jax.core.Tracer)
            and len(value.sharding.device_set) > 1)


def is_for_jax(function, inputs: Sequence) -> bool:
    """Whether an input is one that only a call by _jax.py takes. It may be any input;
    the check of the backend is made if the first one is an array of JAX."""
    jax = sys.modules.get("jax")
    if jax is None or not any(isinstance(value, jax.Array) for value in inputs):
        return False
    check = _once("jax", _make_jax_backend).check
    return check is not None and bool(check(function, inputs))


# ===----------------------------------------------------------------------===#
# Types
# ===----------------------------------------------------------------------===#

# The backend of each type of array that was seen. PyTorch and JAX are not imported
# until one of their arrays is.
backends: dict[type, Backend] = {np.ndarray: NUMPY}
_made: dict[str, Backend] = {}


def _once(name: str, make: Callable[[], Backend]) -> Backend:
    if name not in _made:
        _made[name] = make()
    return _made[name]


def is_dtensor(value) -> bool:
    """Whether an array is a DTensor of PyTorch."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(value, module.DTensor)


def refuse_meta(value, what: str) -> None:
    """Raises an error for a tensor of PyTorch's device 'meta'. `check_memory` does so, too,
    but after what takes such an array was compiled."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor) and value.is_meta:
        raise Error(f"{what} is on the device 'meta', expected the CPU")


def check_memory(value, what: str, dtype: str, operator_call: str,
                 on_cuda: bool = False) -> None:
    """Raises an error for an array that DLPack does not pass. `dtype` is the type that
    its elements should have, and `operator_call` says what to do under torch.func.
    `on_cuda`: the call is for a CUDA device."""
    find_backend(value, what)
    torch = sys.modules.get("torch")
    if isinstance(value, np.ndarray):
        kind = value.dtype
        known = kind.kind in "biufc" and kind.isnative
        if not known and _exotic_types[kind] is None:
            order = "" if kind.isnative else " of another byte order"
            raise Error(f"{what} has elements of type {kind}{order}, expected {dtype}")
    elif torch is not None and isinstance(value, torch.Tensor):
        if is_dtensor(value):
            raise Error(f"{what} is a DTensor, but other inputs are not: distribute them, "
                        "too")
        if value.device.type != ("cuda" if on_cuda else "cpu"):
            raise Error(f"{what} is on the device '{value.device}', expected "
                        f"{'a CUDA device' if on_cuda else 'the CPU'}")
        if value.layout is not torch.strided:
            raise Error(f"{what} has the layout {value.layout}, expected a dense tensor")
        if torch._C._functorch.is_functorch_wrapped_tensor(value):
            raise Error(f"{what} is a tensor of torch.func, which has no memory of its "
                        f"own: {operator_call}")


def find_backend(value, what: str) -> Backend:
    """Returns the backend of an array; `what` names it in an error."""
    kind = type(value)
    if kind in backends:
        return backends[kind]
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if isinstance(value, np.ndarray):
        backend = NUMPY
    elif torch is not None and kind.__name__ == "DTensor" and is_dtensor(value):
        backend = _DIVIDED
    elif torch is not None and isinstance(value, torch.Tensor):
        plain = kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__
        if not plain:
            raise Error(f"{what} is a {kind.__name__}, a tensor without memory of its "
                        "own: use the operators of posenc.torch, which take such tensors")
        backend = _once("torch", make_torch_backend)
    elif jax is not None and isinstance(value, jax.Array):
        backend = _once("jax", _make_jax_backend)
    elif hasattr(value, "__dlpack__"):
        if is_on_cuda(value):
            return _ON_CUDA
        backend = NUMPY  # Results are arrays of NumPy.
    else:
        raise Error(f"{what} is a {kind.__name__}, expected an array of NumPy, PyTorch "
                    "or JAX, or another with __dlpack__")
    backends[kind] = backend
    return backend
