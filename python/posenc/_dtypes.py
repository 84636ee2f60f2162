# ===- _dtypes.py - names of element types ---------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The names of element types: those of kernels, and those of frameworks."""

from __future__ import annotations

from ._errors import Error

# The name in metadata: the name in NumPy, PyTorch and JAX.
FRAMEWORK_NAMES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16",
    "i64": "int64", "i32": "int32", "index": "int64", "i8": "int8", "i1": "bool", "u8": "uint8",
    "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2",
}
# DLPack's type code and bits of types that NumPy does not export by DLPack.
DLPACK_CODES = {"bfloat16": (4, 16), "float8_e4m3fn": (10, 8), "float8_e5m2": (12, 8)}
_NAMES = {name: own for own, name in FRAMEWORK_NAMES.items() if own != "index"}
_seen: dict = {}


def name_of(dtype) -> str:
    """Returns the kernels' name of a type: of "float32", numpy.float32,
    torch.float32 or "f32", it is "f32"."""
    try:
        name = _seen.get(dtype)
    except TypeError:  # It is a list or another object without a hash.
        return _find_name(dtype)
    if name is None:
        name = _seen[dtype] = _find_name(dtype)
    return name


def _find_name(dtype) -> str:
    if isinstance(dtype, str):
        name = dtype
    elif isinstance(dtype, type):
        name = dtype.__name__
    else:
        name = getattr(dtype, "name", None) or str(dtype)
        if not getattr(dtype, "isnative", True):
            raise Error(f"kernels have no type '{dtype}' of another byte order")
    name = str(name).removeprefix("torch.")
    if name in FRAMEWORK_NAMES:
        return name
    if name not in _NAMES:
        raise Error(f"kernels have no type '{dtype}': expected one of "
                    f"{', '.join(_NAMES)}")
    return _NAMES[name]


# The compiler's names in its options, where they differ from those in metadata.
_OPTION_NAMES = {"f8E4M3FN": "f8e4m3", "f8E5M2": "f8e5m2"}


def option_of(dtype) -> str:
    """Returns the name of a type in the compiler's options. Other text is returned as
    it is: the compiler knows which names an option takes."""
    try:
        name = name_of(dtype)
    except Error:
        if isinstance(dtype, str):
            return dtype
        raise
    return _OPTION_NAMES.get(name, name)
