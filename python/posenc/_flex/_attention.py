# ===- _attention.py - flex_attention --------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""`posenc.flex_attention` and its options."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .._array import Array
from .._errors import Error
from . import _fusion
from ._calls import NAME, check_tensors, find_max_scores, prepare, refuse, run
from ._fusion import is_torch
from ._plan import Call

_warned: set[str] = set()


class AuxOutput(NamedTuple):
    """What `return_aux` asks for, where PyTorch has no type for it."""

    lse: Any = None
    max_scores: Any = None


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
        key is visible; no block mask is needed, since kernels skip hidden tiles by themselves
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
        refuse("expected return_lse or return_aux, got both")
    with_max = return_aux is not None and bool(getattr(return_aux, "max_scores", False))
    if kernel_options:
        _warn_once(f"{NAME}: kernel_options are for PyTorch's kernels and are ignored")
    query, key, value = _apply_autocast((query, key, value))
    options = _fusion.Options(rotation, positions, key_positions, query_norm, key_norm,
                              norm_eps)
    is_recorded = (is_torch(query)
                   and sys.modules["torch"].compiler.is_dynamo_compiling())
    fused = None
    if not options.is_empty():
        check_tensors(query, key, value, enable_gqa)
        _check_options(options, query)
        if not is_recorded and not with_max and not _needs_gradient(
                query, key, value, query_norm, key_norm):
            fused = _fusion.find_fused(options, query)
        if fused is None:
            query, key = _fusion.apply(options, query, key)
    if is_recorded:
        from ._torch_compile import call_recorded

        check_tensors(query, key, value, enable_gqa)
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
        raise Error(f"{NAME}: {error}") from None


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
