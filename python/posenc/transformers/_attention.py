# ===- _attention.py - attention of transformers ---------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The attention "posenc" of transformers, and its masks.

It takes keys and values as transformers caches them, so it copies nothing. Padding and
other masks are those that "sdpa" gets.
"""

from __future__ import annotations

import sys

import torch
import transformers
from transformers.masking_utils import (
    AttentionMaskInterface, causal_mask_function, sdpa_mask)

from .._compile import compile
from .._dtypes import name_of
from .._errors import Error
from .._kernels import Kernels
from .._torch_state import constant_number, constant_size, is_recorded
from ..torch import innermost, register
from .._once import once

_SOFT_CAP = """
    score(%s, %b, %h, %i, %j) {{
      %x = arith.divf %s, %cap : {0}
      %t = math.tanh %x : {0}
      %y = arith.mulf %t, %cap : {0}
      posenc.yield %y : {0}
    }}"""


def _write_attention(name: str, tokens: str, order: str, has_mask: bool, heads: int,
                     key_heads: int, dim: int, value_dim: int, dtype: str, scale: float,
                     has_sinks: bool, soft_cap: float | None) -> str:
    """Returns a function of MLIR. Queries and results are token by token, as the
    projections have them; keys and values are head by head, as caches have them."""
    query = f"tensor<?x{tokens}x{heads}x{dim}x{dtype}>"
    key = f"tensor<?x{key_heads}x?x{dim}x{dtype}>"
    value = f"tensor<?x{key_heads}x?x{value_dim}x{dtype}>"
    result = f"tensor<?x{tokens}x{heads}x{value_dim}x{dtype}>"
    score = "f64" if dtype == "f64" else "f32"
    mask, sinks = f"tensor<?x1x{tokens}x?xi1>", f"tensor<{heads}x{score}>"
    further, operands = "", ""
    if has_mask:
        further += f', %m: {mask} {{posenc.name = "mask"}}'
        operands += f" mask(%m : {mask})"
    if has_sinks:
        further += f', %sinks: {sinks} {{posenc.name = "sinks"}}'
        operands += f" sinks(%sinks : {sinks})"
    sizes = "%batch" + (", %tokens" if tokens == "?" else "")
    region = _SOFT_CAP.format(score) if soft_cap is not None else ""
    return f"""
func.func @{name}(%q: {query} {{posenc.name = "q"}}, %k: {key} {{posenc.name = "k"}},
    %v: {value} {{posenc.name = "v"}}{further})
    -> ({result} {{posenc.name = "o"}}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cap = arith.constant {soft_cap or 1.0:.17e} : {score}
  %batch = tensor.dim %q, %c0 : {query}
  %tokens = tensor.dim %q, %c1 : {query}
  %o = tensor.empty({sizes}) : {result}
  %r = posenc.attention {order} scale = {scale:.17e} key_layout = head_major
    ins(%q, %k, %v : {query}, {key}, {value}){operands}
    outs(%o : {result}){region}
  return %r : {result}
}}
"""


@once
def _compile_attention(*key) -> Kernels:
    """Functions for one and for several queries, with a mask and without."""
    text = "".join(
        _write_attention(*function, *key)
        for function in (
            ("prefill", "?", "causal", False), ("all", "?", "", False),
            ("masked", "?", "", True), ("decode", "1", "", False),
            ("decode_masked", "1", "", True)))
    return compile(text, no_warnings=True)


@once
def _compile_window(window: int, *key) -> Kernels:
    """`prefill` of a sliding window."""
    order = f"causal window_left = {window - 1}"
    return compile(_write_attention("prefill", "?", order, False, *key), no_warnings=True)


def _find_kernels(window: int | None, *key) -> Kernels:
    return _compile_window(window, *key) if window else _compile_attention(*key)


@once
def _find_function(name: str, *key):
    return _find_kernels(*key)[name]


@torch.compiler.assume_constant_result
def _find_operator(*key) -> str:
    """Returns the string that means the kernels to `posenc::call`. A compiled model has
    it as a constant."""
    return register(_find_kernels(*key))


def attention(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor,
              value: torch.Tensor, attention_mask: torch.Tensor | None,
              dropout: float = 0.0, scaling: float | None = None,
              softcap: float | None = None, is_causal: bool | None = None,
              s_aux: torch.Tensor | None = None, **options) -> tuple[torch.Tensor, None]:
    """The attention function that transformers calls. Without a mask it is causal if
    the module is, and a single query sees all keys.

    query: [batch, heads, tokens, channels]
    key, value: [batch, key heads, keys, channels]
    attention_mask: bool[batch, 1, tokens, keys], True where a query sees a key
    scaling: the factor of the products (default: the channels' number to the power -1/2)
    softcap: the bound of scores, by tanh
    s_aux: [heads], logits of sinks

    Returns [batch, tokens, heads, channels], and None for the weights.
    """
    if dropout:
        raise Error("attention 'posenc' has no dropout: call model.eval()")
    if options.get("position_bias") is not None:
        raise Error("attention 'posenc' has no 'position_bias': use 'eager' or 'sdpa' "
                    "for this model")
    if torch.is_grad_enabled() and not is_recorded() and (
            query.requires_grad or key.requires_grad or value.requires_grad):
        raise Error("attention 'posenc' has no gradients: call the model under "
                    "torch.no_grad(), or train it with 'sdpa'")
    batch, tokens = key.shape[0], query.shape[2]
    if is_causal is None:
        is_causal = getattr(module, "is_causal", True)
    window = getattr(attention_mask, "_posenc_window", None)
    mask = None if window else attention_mask
    if mask is not None:
        _check_mask(module, mask)
    elif is_causal and tokens > key.shape[2]:
        raise Error(f"attention 'posenc' is causal, but has {tokens} queries and "
                    f"{key.shape[2]} keys: pass a mask")
    elif attention_mask is None and is_causal and 1 < tokens < key.shape[2]:
        # transformers leaves out the mask if these are the first tokens of a static
        # cache, whose other keys are empty. To the kernel they would be the last tokens.
        key, value = key[:, :, :tokens], value[:, :, :tokens]
    if tokens == 1:
        name = "decode" if mask is None else "decode_masked"
    elif mask is not None:
        name = "masked"
    else:
        name = "prefill" if is_causal or window else "all"
    # Kernels have these as constants, so a graph of dynamic sizes has them, too.
    heads, key_heads, dim, value_dim = map(constant_size, (
        query.shape[1], key.shape[1], query.shape[3], value.shape[3]))
    scale = dim ** -0.5 if scaling is None else constant_number(scaling)
    kernels = (window, heads, key_heads, dim, value_dim, name_of(query.dtype), scale,
               s_aux is not None, None if softcap is None else constant_number(softcap))
    if query.shape[0] != batch:
        query = query.expand(batch, -1, -1, -1)  # Some models learn one for all.
    inputs = [query.transpose(1, 2), key, value]
    if mask is not None:
        mask = mask[..., :key.shape[2]]
        inputs.append(mask.expand(batch, 1, tokens, key.shape[2]))
    inputs = list(map(innermost, inputs))
    if s_aux is not None:
        dtype = torch.float64 if query.dtype == torch.float64 else torch.float32
        inputs.append(s_aux.detach().to(dtype).contiguous())
    if is_recorded():
        return torch.ops.posenc.call(inputs, _find_operator(*kernels), name)[0], None
    return _find_function(name, *kernels)(*inputs), None


# ===----------------------------------------------------------------------===#
# Masks
# ===----------------------------------------------------------------------===#


# Files of models that do not support "sdpa", but only pass masks on.
_PASS_ON = ("modeling_gemma2", "modeling_gpt_oss")


@once
def _has_masks_of_bool(kind: type) -> bool:
    """Whether what the models of a layer's file do with masks is right for masks of
    bool, as in those that support "sdpa"."""
    if kind.__module__.split(".")[-1] in _PASS_ON:
        return True
    members = vars(sys.modules[kind.__module__]).values()
    return all(member._supports_sdpa for member in members
               if isinstance(member, type) and member.__module__ == kind.__module__
               and issubclass(member, transformers.PreTrainedModel))


def _check_mask(module: torch.nn.Module, mask: torch.Tensor) -> None:
    if mask.dtype != torch.bool:
        raise Error(f"attention 'posenc' has masks of bool, got {mask.dtype}")
    if mask.shape[1] != 1:
        raise Error("attention 'posenc' has one mask for all heads, got "
                    f"{mask.shape[1]}")
    # Masks of `make_mask` that are as they were are right for all models.
    if (not is_recorded() and not hasattr(mask, "_is_of_posenc")
            and not _has_masks_of_bool(type(module))):
        raise Error("attention 'posenc' has masks of bool, but "
                    f"{type(module).__name__} changes them as masks of floats: use "
                    "'eager' for this model")


class _Window(torch.Tensor):
    """The mask of a causal sliding window, [batch, 1, queries, keys], without memory.
    The last query sees the last key. What is done with it is done with the mask."""

    _posenc_window: int
    # What is read from the tensor itself.
    _GETTERS = (torch.Tensor.stride, torch.Tensor.size, torch.Tensor.dim,
                *(getattr(torch.Tensor, name).__get__ for name in
                  ("shape", "dtype", "device", "layout", "ndim", "requires_grad")))

    @staticmethod
    def make(window: int, *sizes: int) -> _Window:
        one = torch.ones((1, 1, 1, 1), dtype=torch.bool)
        result = one.expand(sizes).as_subclass(_Window)
        result._posenc_window = window
        return result

    def _to_mask(self) -> torch.Tensor:
        _, _, queries, keys = self.shape
        row = torch.arange(keys - queries, keys)[:, None]
        key = torch.arange(keys)
        mask = (key <= row) & (key > row - self._posenc_window)
        return mask.expand(self.shape)

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        with torch._C.DisableTorchFunctionSubclass():
            if function not in cls._GETTERS:
                arguments, options = torch.utils._pytree.tree_map_only(
                    cls, cls._to_mask, (arguments, options))
            return function(*arguments, **(options or {}))


def _is_sliding(mask_function, window: int, last: int, keys: torch.Tensor) -> bool:
    """Whether a mask function of transformers, which has a local size, is a causal
    window. The others are chunks, which differ in one of any two rows."""
    zero = torch.zeros(1, dtype=torch.int64)
    rows = torch.tensor([[last - 1], [last]])
    expected = (keys <= rows) & (keys > rows - window)
    actual = mask_function(zero, zero, rows, keys)
    return torch.equal(actual.expand_as(expected), expected)


def make_mask(batch_size: int, q_length: int, kv_length: int, q_offset: int = 0,
              kv_offset: int = 0, mask_function=causal_mask_function,
              attention_mask: torch.Tensor | None = None, local_size: int | None = None,
              allow_is_causal_skip: bool = True, **options) -> torch.Tensor | None:
    """As `sdpa_mask`, the mask [batch, 1, queries, keys] or None, but there are no
    masks of sliding windows without padding. Those of long prompts would be large."""
    last = q_offset + q_length - 1
    is_free = allow_is_causal_skip and not is_recorded()
    if (is_free and local_size is not None and q_length > 1 and kv_length >= local_size
            and isinstance(last, int) and last == kv_offset + kv_length - 1
            and (attention_mask is None or bool(
                attention_mask.shape[1] > last and attention_mask[:, kv_offset:].all()))
            and _is_sliding(mask_function, local_size, last,
                            torch.arange(kv_length) + kv_offset)):
        return _Window.make(local_size, batch_size, 1, q_length, kv_length)
    mask = sdpa_mask(
        batch_size, q_length, kv_length, q_offset, kv_offset, mask_function,
        attention_mask, local_size, allow_is_causal_skip, **options)
    if mask is None or (is_free and q_length == 1 and mask.all()):
        # The keys in the cache of a sliding window are those that the next query sees.
        return None
    if not is_recorded():
        vars(mask)["_is_of_posenc"] = True
    return mask


transformers.AttentionInterface.register("posenc", attention)
AttentionMaskInterface.register("posenc", make_mask)
