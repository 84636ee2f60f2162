# ===- _attention.py - flex_attention --------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""`posenc.flex_attention`: checks, and what a call needs."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from .._array import Array
from .._cuda import is_on_cuda
from .._dtypes import FRAMEWORK_NAMES, name_of
from .._errors import Error
from .._kernels import Kernels
from .._rope import FLOATS
from . import _fusion
from ._block_mask import BlockMask, Blocks, and_masks, find_blocks
from ._fusion import is_torch
from ._max_scores import MAX_SCORES
from ._module import Signature
from ._plan import Plan, make_plan
from ._trace import WIDENED

_NAME = "flex_attention"
# So many queries use a kernel that reads keys once, which is compiled for their number.
_DECODED = 8
_FLOAT_NAMES = tuple(FRAMEWORK_NAMES[dtype] for dtype in FLOATS)
_warned: set[str] = set()


class AuxOutput(NamedTuple):
    """What `return_aux` asks for, where PyTorch has no type for it."""

    lse: Any = None
    max_scores: Any = None


def _refuse(message: str) -> NoReturn:
    raise Error(f"{_NAME}: {message}")


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


def _check_tensors(query, key, value, enable_gqa: bool) -> None:
    for name, array in (("query", query), ("key", key), ("value", value)):
        if not hasattr(array, "shape") or not hasattr(array, "dtype"):
            _refuse(f"{name} is a {type(array).__name__}, expected an array of NumPy, "
                    "PyTorch or JAX")
        if len(array.shape) != 4:
            _refuse(f"{name} has {len(array.shape)} dimensions, expected [batch, heads, "
                    "tokens, channels]")
        if str(array.dtype).removeprefix("torch.") not in _FLOAT_NAMES:
            _refuse(f"{name} has elements of type {name_of(array.dtype)}, expected "
                    f"{' or '.join(FLOATS)}")
        if is_torch(array) != is_torch(query):
            _refuse(f"{name} is a {type(array).__name__} and query a "
                    f"{type(query).__name__}, expected arrays of one framework")
        _check_layout(name, array)
        if array.dtype != query.dtype:
            _refuse(f"{name} has elements of type {name_of(array.dtype)} and query of "
                    f"{name_of(query.dtype)}, expected the same")
        if not array.shape[1] or not array.shape[3]:
            _refuse(f"{name} has the shape {tuple(array.shape)}, expected at least one "
                    "head and one channel")
        if is_torch(array) and sys.modules["torch"]._C._functorch.is_batchedtensor(array):
            _refuse("has no rule for torch.vmap: make the mapped dimension a part of the "
                    "batch")
    if key.shape[:3] != value.shape[:3]:
        _refuse(f"key has the shape {tuple(key.shape)} and value {tuple(value.shape)}, "
                "expected the same but for the channels")
    if query.shape[3] != key.shape[3]:
        _refuse(f"query has {query.shape[3]} channels and key {key.shape[3]}, expected as "
                "many")
    heads, key_heads = query.shape[1], key.shape[1]
    if heads != key_heads and not enable_gqa:
        _refuse(f"query has {heads} heads and key {key_heads}: pass enable_gqa=True for "
                "several query heads of a key head")
    if heads % key_heads:
        _refuse(f"query has {heads} heads and key {key_heads}, expected a multiple of "
                "those of the key")
    if query.shape[0] != key.shape[0] and key.shape[0] != 1:
        _refuse(f"query has a batch of {query.shape[0]} and key one of {key.shape[0]}, "
                "expected as many, or 1")


def _check_layout(name: str, array) -> None:
    torch: Any = sys.modules.get("torch")
    if is_torch(array) and array.layout != torch.strided:
        _refuse(f"{name} has the layout {array.layout}, expected torch.strided")


def _check_mask(query, key, mask) -> None:
    """Raises an error for a block mask of other lengths, as PyTorch does."""
    if not hasattr(mask, "mask_mod"):
        _refuse(f"block_mask is a {type(mask).__name__}, expected a BlockMask; functions "
                "are passed as mask_mod")
    blocks = None if isinstance(mask, BlockMask) else mask.BLOCK_SIZE
    if blocks is not None and min(blocks) >= 1 << 30:
        return
    sizes = tuple(mask.seq_lengths)
    expected = query.shape[2], key.shape[2]
    if sizes != expected:
        _refuse(f"block_mask is for {sizes[0]} queries and {sizes[1]} keys, but there are "
                f"{expected[0]} and {expected[1]}: create one for these lengths, or pass "
                "its function as mask_mod")
    for name, size, own in (("batch", query.shape[0], mask.shape[0]),
                            ("number of heads", query.shape[1], mask.shape[-3])):
        if own not in (1, size):
            _refuse(f"block_mask is for a {name} of {own}, but that of query is {size}")


def _check_arrays(plan: Plan, arrays: Sequence[Any], query, key) -> None:
    """Raises an error for captured arrays that are too small for the indices of a
    call, and for those on another device."""
    for array in arrays:
        _check_layout("a captured tensor", array)
        if 0 in array.shape:
            _refuse(f"a captured array has the shape {tuple(array.shape)}, expected "
                    "elements")
        if is_torch(query) and array.device != query.device:
            _refuse(f"a captured tensor is on the device '{array.device}', but query is on "
                    f"'{query.device}'")
    sizes = {"batch": query.shape[0], "head": query.shape[1], "query": query.shape[2],
             "key": key.shape[2]}
    for number, dim, name in plan.ranges:
        shape = arrays[number].shape
        if shape[dim] < sizes[name]:
            _refuse(f"dimension {dim} of a captured array of the shape {tuple(shape)} is "
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


class Call(NamedTuple):
    """The kernels of a call and their inputs."""

    plan: Plan
    signature: Signature
    inputs: list[Any]

    def find_kernels(self) -> Kernels:
        return self.plan.find_kernels(self.signature)


def prepare(query, key, value, score_mod: Callable | None, block_mask,
            mask_mod: Callable | None, scale: float | None,
            enable_gqa: bool) -> Call:
    """Checks the arguments of a call and finds what it computes."""
    _check_tensors(query, key, value, enable_gqa)
    if block_mask is not None:
        _check_mask(query, key, block_mask)
    for name, function in (("score_mod", score_mod), ("mask_mod", mask_mod)):
        if function is not None and not callable(function):
            _refuse(f"{name} is a {type(function).__name__}, expected a function")
    mask, blocks, further = _find_mask(block_mask, mask_mod)
    dtype = name_of(query.dtype)
    device = query.device if is_torch(query) else "cpu"
    try:
        plan, arrays = make_plan(
            _find_tracer(query), score_mod, mask, blocks,
            "f64" if dtype == "f64" else "f32", device, further)
    except Error as error:
        raise Error(f"{_NAME}: {error}") from None
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
        _refuse(f"scale is {scale!r}, expected a finite number")
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


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, UserWarning, stacklevel=4)


def _apply_autocast(arrays: Sequence[Any]) -> list[Any]:
    """Returns tensors in the type of torch.autocast, if it is active."""
    torch: Any = sys.modules.get("torch")
    first = arrays[0]
    # Others, such as "meta", have none. PyTorch 2.11 does not trace the function that
    # says so.
    kind = first.device.type if is_torch(first) else None
    if kind not in ("cpu", "cuda") or not torch.is_autocast_enabled(kind):
        return list(arrays)
    dtype = torch.get_autocast_dtype(kind)
    return [array.to(dtype) if is_torch(array) and array.dtype != torch.float64 else array
            for array in arrays]


def flex_attention(query: Array, key: Array, value: Array,
                   score_mod: Callable | None = None,
                   block_mask: Any = None, scale: float | None = None,
                   enable_gqa: bool = False, return_lse: bool = False,
                   kernel_options: Mapping[str, Any] | None = None, *,
                   return_aux: Any = None, mask_mod: Callable | None = None,
                   rotation: Mapping[str, Any] | None = None, positions: Any = None,
                   key_positions: Any = None, query_norm: Any = None,
                   key_norm: Any = None, norm_eps: float = 1e-6) -> Any:
    """Attention whose scores and mask are functions, with the arguments and the meaning of
    `torch.nn.attention.flex_attention.flex_attention` (PyTorch 2.6 to 2.15), as one kernel.

    query: [batch, heads, queries, channels]
    key, value: [batch or 1, key heads, keys, channels]; value may have other channels
    score_mod: a function of a score, batch, head, query index and key index, which
        returns the new score
    block_mask: of `posenc.create_block_mask`, or PyTorch's
    scale: the factor of scores (default: the channels' number to the power -1/2)
    enable_gqa: allows several query heads for a key head
    return_lse: returns (output, lse): lse [batch, heads, queries] is the logarithm of the
        sum of the weights, in f32 (f64 for f64)
    kernel_options: those of PyTorch are ignored, with a note
    return_aux: PyTorch's AuxRequest: returns (output, AuxOutput). max_scores is the largest
        score of each query after score_mod and mask, in the type of lse, without
        gradient; another kernel computes it

    mask_mod: a function of batch, head, query index and key index that tells whether the
        key is seen; no block mask is needed, since kernels skip hidden tiles by themselves
    rotation: rotates query and key: the keywords of `posenc.functional.rope`, such as
        {"theta": 500000.0}
    positions, key_positions: i64 [batch, tokens] of query and of key, for the rotation
        (default: their indices)
    query_norm, key_norm: [channels], the weights of an RMS norm of each head of query and
        of key, before the rotation; norm_eps is added to the mean of squares

    Functions are traced once for their code and what they capture: Python numbers are
    constants, and arrays and lengths inputs, so that other lengths and elements do not
    compile again. Sizes of captured arrays that a function asks for, and elements that it
    makes numbers of Python, are constants, too. Query 0 is aligned with key 0. Tensors have
    gradients, also captured ones.

    Returns the output [batch, heads, queries, channels of value]. Raises Error for arrays
    that do not fit each other, with the sizes; for what a function does that has no
    expression, with its line; and for an index that leaves a captured tensor.
    """
    if return_lse and return_aux is not None:
        _refuse("expected return_lse or return_aux, got both")
    with_max = return_aux is not None and bool(getattr(return_aux, "max_scores", False))
    if kernel_options:
        _warn_once(f"{_NAME}: kernel_options are for PyTorch's kernels and are ignored")
    query, key, value = _apply_autocast((query, key, value))
    options = _fusion.Options(rotation, positions, key_positions, query_norm, key_norm,
                              norm_eps)
    is_recorded = (is_torch(query)
                   and sys.modules["torch"].compiler.is_dynamo_compiling())
    fused = None
    if not options.is_empty():
        _check_tensors(query, key, value, enable_gqa)
        _check_options(options, query)
        if not is_recorded and not with_max and not _needs_gradient(
                query, key, value, query_norm, key_norm):
            fused = _fusion.find_fused(options, query)
        if fused is None:
            query, key = _fusion.apply(options, query, key)
    if is_recorded:
        from ._torch_compile import call_recorded

        _check_tensors(query, key, value, enable_gqa)
        output, lse, max_scores = call_recorded(query, key, value, score_mod, block_mask,
                                                mask_mod, scale, with_max)
    else:
        call = prepare(query, key, value, score_mod, block_mask, mask_mod, scale,
                       enable_gqa)
        if fused is not None:
            call = _fuse(call, fused, options)
        output, lse = run(call)
        max_scores = find_max_scores(call) if with_max else None
    if return_aux is not None:
        return output, _make_aux(lse if getattr(return_aux, "lse", False) else None,
                                 max_scores)
    return (output, lse) if return_lse else output


def _check_options(options: _fusion.Options, query) -> None:
    try:
        _fusion.check(options, query)
    except Error as error:
        raise Error(f"{_NAME}: {error}") from None


def _needs_gradient(*arrays) -> bool:
    """Whether gradients may be asked for. Kernels of norms and rotations have none."""
    if is_torch(arrays[0]):
        torch: Any = sys.modules["torch"]
        return torch.is_grad_enabled() and any(
            is_torch(one) and one.requires_grad for one in arrays)
    jax = sys.modules.get("jax")
    return jax is not None and any(isinstance(one, jax.core.Tracer) for one in arrays)


def _fuse(call: Call, fused: _fusion.Fused, options: _fusion.Options) -> Call:
    """Returns the call of a kernel that also normalizes and rotates."""
    query, key, value, *arrays = call.inputs
    return call._replace(
        signature=call.signature._replace(fused=fused),
        inputs=[query, key, value, *_fusion.make_inputs(options, query, key), *arrays])


def _make_aux(lse, max_scores):
    torch = sys.modules.get("torch")
    if torch is not None:
        from torch.nn.attention import flex_attention as module

        return getattr(module, "AuxOutput", AuxOutput)(
            lse=lse, max_scores=max_scores)
    return AuxOutput(lse, max_scores)


def write_mlir(query, key, value, score_mod: Callable | None = None,
               block_mask: Any = None, scale: float | None = None,
               enable_gqa: bool = False, *, mask_mod: Callable | None = None) -> str:
    """Returns the MLIR of a call of `flex_attention`, for posenc-compile: the function
    `attention`, whose inputs are query, key, value and the arrays that the functions
    capture, and those of its gradients."""
    call = prepare(query, key, value, score_mod, block_mask, mask_mod, scale, enable_gqa)
    return call.plan.write(call.signature)


flex_attention.mlir = write_mlir  # type: ignore[attr-defined]
