# ===- _calls.py - calls of flex_attention ---------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Checks of the arguments of `flex_attention`, what a call computes, and the call."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from .._devices import is_on_cuda
from .._dtypes import FRAMEWORK_NAMES, name_of
from .._errors import Error
from .._rope import FLOATS
from ._block_mask import BlockMask, Blocks, and_masks, find_blocks
from ._fusion import is_torch
from ._max_scores import MAX_SCORES
from ._module import Signature
from ._plan import Call, Plan, make_plan
from ._trace import WIDENED

NAME = "flex_attention"
# So many queries use a kernel that reads keys once, which is compiled for their number.
_DECODED = 8
_FLOAT_NAMES = tuple(FRAMEWORK_NAMES[dtype] for dtype in FLOATS)


def refuse(message: str) -> NoReturn:
    raise Error(f"{NAME}: {message}")


def _is_jax(array) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(array, jax.Array)


def _find_tracer(query):
    """Returns the tracer of functions of the framework of an array."""
    if is_torch(query):
        from ._trace_torch import trace_torch

        return trace_torch
    if _is_jax(query):
        from ._trace_jax import trace_jax

        return trace_jax
    from ._trace_numpy import trace_numpy

    return trace_numpy


# ===----------------------------------------------------------------------===#
# Checks
# ===----------------------------------------------------------------------===#


def check_tensors(query, key, value, enable_gqa: bool) -> None:
    for name, array in (("query", query), ("key", key), ("value", value)):
        if not hasattr(array, "shape") or not hasattr(array, "dtype"):
            refuse(f"{name} is a {type(array).__name__}, expected an array of NumPy, "
                    "PyTorch or JAX")
        if len(array.shape) != 4:
            refuse(f"{name} has {len(array.shape)} dimensions, expected [batch, heads, "
                    "tokens, channels]")
        if str(array.dtype).removeprefix("torch.") not in _FLOAT_NAMES:
            refuse(f"{name} has elements of type {name_of(array.dtype)}, expected "
                    f"{' or '.join(FLOATS)}")
        if is_torch(array) != is_torch(query):
            refuse(f"{name} is a {type(array).__name__} and query a "
                    f"{type(query).__name__}, expected arrays of one framework")
        _check_layout(name, array)
        if array.dtype != query.dtype:
            refuse(f"{name} has elements of type {name_of(array.dtype)} and query of "
                    f"{name_of(query.dtype)}, expected the same")
        if not array.shape[1] or not array.shape[3]:
            refuse(f"{name} has the shape {tuple(array.shape)}, expected at least one "
                    "head and one channel")
        if is_torch(array) and sys.modules["torch"]._C._functorch.is_batchedtensor(array):
            refuse("has no rule for torch.vmap: make the mapped dimension a part of the "
                    "batch")
    if key.shape[:3] != value.shape[:3]:
        refuse(f"key has the shape {tuple(key.shape)} and value {tuple(value.shape)}, "
                "expected the same but for the channels")
    if query.shape[3] != key.shape[3]:
        refuse(f"query has {query.shape[3]} channels and key {key.shape[3]}, expected as "
                "many")
    heads, key_heads = query.shape[1], key.shape[1]
    if heads != key_heads and not enable_gqa:
        refuse(f"query has {heads} heads and key {key_heads}: pass enable_gqa=True for "
                "several query heads of a key head")
    if heads % key_heads:
        refuse(f"query has {heads} heads and key {key_heads}, expected a multiple of "
                "those of the key")
    if query.shape[0] != key.shape[0] and key.shape[0] != 1:
        refuse(f"query has a batch of {query.shape[0]} and key one of {key.shape[0]}, "
                "expected as many, or 1")


def _check_layout(name: str, array) -> None:
    torch: Any = sys.modules.get("torch")
    if is_torch(array) and array.layout != torch.strided:
        refuse(f"{name} has the layout {array.layout}, expected torch.strided")


def _check_mask(query, key, mask) -> None:
    """Raises an error for a block mask of other lengths, as PyTorch does."""
    if not hasattr(mask, "mask_mod"):
        refuse(f"block_mask is a {type(mask).__name__}, expected a BlockMask; functions "
                "are passed as mask_mod")
    blocks = None if isinstance(mask, BlockMask) else mask.BLOCK_SIZE
    if blocks is not None and min(blocks) >= 1 << 30:
        return
    sizes = tuple(mask.seq_lengths)
    expected = query.shape[2], key.shape[2]
    if sizes != expected:
        refuse(f"block_mask is for {sizes[0]} queries and {sizes[1]} keys, but there are "
                f"{expected[0]} and {expected[1]}: create one for these lengths, or pass "
                "its function as mask_mod")
    for name, size, own in (("batch", query.shape[0], mask.shape[0]),
                            ("number of heads", query.shape[1], mask.shape[-3])):
        if own not in (1, size):
            refuse(f"block_mask is for a {name} of {own}, but that of query is {size}")


def _check_arrays(plan: Plan, arrays: Sequence[Any], query, key) -> None:
    """Raises an error for captured arrays that are too small for the indices of a
    call, and for those on another device."""
    for array in arrays:
        _check_layout("a captured tensor", array)
        if 0 in array.shape:
            refuse(f"a captured array has the shape {tuple(array.shape)}, expected "
                    "elements")
        if is_torch(query) and array.device != query.device:
            refuse(f"a captured tensor is on the device '{array.device}', but query is on "
                    f"'{query.device}'")
    sizes = {"batch": query.shape[0], "head": query.shape[1], "query": query.shape[2],
             "key": key.shape[2]}
    for number, dim, name in plan.ranges:
        shape = arrays[number].shape
        if shape[dim] < sizes[name]:
            refuse(f"dimension {dim} of a captured array of the shape {tuple(shape)} is "
                    f"indexed by the {name} index, which goes up to {sizes[name] - 1}")


# ===----------------------------------------------------------------------===#
# Calls
# ===----------------------------------------------------------------------===#


def _make_contiguous(array):
    """Returns an array of NumPy whose elements of the last dimension are adjacent, as
    kernels need them. Other frameworks' arrays are copied later if need be."""
    if isinstance(array, np.ndarray) and array.ndim and (
            array.strides[-1] != array.itemsize):
        return np.ascontiguousarray(array)
    return array


def widen(array):
    """Returns a captured array with elements of a type that kernels read."""
    name = str(array.dtype).removeprefix("torch.")
    if name not in WIDENED:
        return _make_contiguous(array)
    wide = WIDENED[name]
    return array.to(getattr(sys.modules["torch"], wide)) if is_torch(array) else (
        array.astype(wide))


def _find_mask(block_mask, mask_mod) -> tuple[Callable | None, Blocks | None,
                                               Callable | None]:
    """Returns the mask_mod of a call, the blocks that it has, and a further mask_mod,
    which also holds for full blocks."""
    if block_mask is None:
        return mask_mod, None, None
    own, blocks = block_mask.mask_mod, find_blocks(block_mask)
    if mask_mod is None or blocks is not None:
        return own, blocks, mask_mod
    return and_masks(own, mask_mod), None, None


def prepare(query, key, value, score_mod: Callable | None, block_mask,
            mask_mod: Callable | None, scale: float | None,
            enable_gqa: bool) -> Call:
    """Checks the arguments of a call and finds what it computes."""
    check_tensors(query, key, value, enable_gqa)
    if block_mask is not None:
        _check_mask(query, key, block_mask)
    for name, function in (("score_mod", score_mod), ("mask_mod", mask_mod)):
        if function is not None and not callable(function):
            refuse(f"{name} is a {type(function).__name__}, expected a function")
    mask, blocks, further = _find_mask(block_mask, mask_mod)
    dtype = name_of(query.dtype)
    device = query.device if is_torch(query) else "cpu"
    try:
        plan, arrays = make_plan(
            _find_tracer(query), score_mod, mask, blocks,
            "f64" if dtype == "f64" else "f32", device, further)
    except Error as error:
        raise Error(f"{NAME}: {error}") from None
    _check_arrays(plan, arrays, query, key)
    if key.shape[0] != query.shape[0]:
        key, value = (_expand(array, query.shape[0]) for array in (key, value))
    signature = find_signature(plan, query, key, value, scale)
    return Call(plan, signature, [*map(_make_contiguous, (query, key, value)),
                                  *map(widen, arrays)])


def find_signature(plan: Plan, query, key, value, scale) -> Signature:
    """Returns what the function of a call is compiled for."""
    try:
        is_finite = scale is None or math.isfinite(scale)
    except TypeError:
        is_finite = False
    if not is_finite:
        refuse(f"scale is {scale!r}, expected a finite number")
    if scale is not None and float(scale) == int(query.shape[3]) ** -0.5:
        scale = None
    tokens = query.shape[2]
    return Signature(
        int(query.shape[1]), int(key.shape[1]), int(query.shape[3]), int(value.shape[3]),
        name_of(query.dtype), None if scale is None else float(scale),
        tokens if _is_decoded(tokens) else None,
        not plan.uses_query or bool(tokens == key.shape[2]), plan.arrays,
        is_checked=_is_checked(query))


def _is_checked(query) -> bool:
    """Whether indices of captured arrays are checked. JAX moves them into bounds, and
    kernels for GPUs cannot report them."""
    if is_torch(query):
        return not query.is_cuda
    return isinstance(query, np.ndarray) or not (_is_jax(query) or is_on_cuda(query))


def _is_decoded(tokens) -> bool:
    # A size that torch.export keeps symbolic is not asked for its value.
    return isinstance(tokens, int) and 1 <= tokens <= _DECODED


def _expand(array, batch):
    if is_torch(array):
        return array.expand(batch, *array.shape[1:])
    numpy: Any = np
    if not isinstance(array, np.ndarray):
        import jax.numpy as numpy
    return numpy.broadcast_to(array, (batch, *array.shape[1:]))


def run(call: Call):
    """Returns the output and the log-sum-exp."""
    kernels = call.find_kernels()
    if _is_jax(call.inputs[0]):
        from . import _jax_operator

        return _jax_operator.call(kernels, call.inputs)
    if not is_torch(call.inputs[0]):
        return kernels["attention"](*call.inputs)
    from ._torch_operator import call_operator

    return call_operator(kernels, call.inputs)


def find_max_scores(call: Call):
    """Returns the largest score of each query, which has no gradient."""
    kernels, inputs = call.find_kernels(), call.inputs
    if _is_jax(inputs[0]):
        import jax

        return kernels[MAX_SCORES](*map(jax.lax.stop_gradient, inputs))
    if not is_torch(inputs[0]):
        return kernels[MAX_SCORES](*inputs)
    from ._torch_operator import call_max_scores

    return call_max_scores(kernels, inputs)
