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

from contextvars import ContextVar
from typing import Any

import torch
import transformers
from transformers.masking_utils import (
    AttentionMaskInterface, causal_mask_function, sdpa_mask)
from transformers.utils import output_capturing

from .._attention_mlir import Attention, write_attention
from .._compile import compile
from .._cuda import find_target_ahead
from .._dtypes import name_of
from .._errors import Error
from .._kernels import Kernels
from .._once import once
from .._torch_state import (
    constant_number, constant_size, is_captured, is_recorded)
from .._operators import innermost, register
from ._support import UNKNOWN_INPUTS, get_config_type, has_masks_of_bool
from ._warmup import is_looking, postpone

# The outputs of layers that the caller of a model asked for, by their names.
_collected: ContextVar = getattr(
    output_capturing, "_active_collector", ContextVar("_collected", default=None))


def _make_spec(name: str, window: int | None, heads: int, key_heads: int, dim: int,
               value_dim: int, dtype: str, scale: float, has_sinks: bool,
               soft_cap: float | None) -> Attention:
    """Describes a function of one of these names. "decode" has a single query."""
    return Attention(
        heads, key_heads, dim, value_dim, dtype, dtype, scale=scale,
        causal=name == "prefill", left=window - 1 if window else None, soft_cap=soft_cap,
        tokens=1 if name.startswith("decode") else None, keys="cache",
        has_mask=name in ("masked", "decode_masked"), has_sinks=has_sinks)


@once
def _compile_attention(name: str, device: int | None, *key) -> Kernels:
    """Compiles a function for a CUDA device, or for the CPU."""
    return compile(write_attention(_make_spec(name, *key), name),
                   target=find_target_ahead(device), no_warnings=True)


@once
def _find_function(name: str, *key):
    return _compile_attention(name, *key)[name]


@torch.compiler.assume_constant_result
def _find_operator(*key) -> str:
    """Returns the string that means the kernels to `posenc::call`. A compiled model has
    it as a constant."""
    return register(_compile_attention(*key))


def _wants_weights(module: torch.nn.Module, options: dict) -> bool:
    """Whether the caller of a model asked for the weights of attention."""
    if options.get("output_attentions"):
        return True
    if is_recorded():
        return False  # What follows is not for graphs.
    return bool(getattr(getattr(module, "config", None), "output_attentions", False)
                or any("attentions" in name for name in _collected.get() or ()))


def attention(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor,
              value: torch.Tensor, attention_mask: torch.Tensor | None,
              dropout: float = 0.0, scaling: float | None = None,
              softcap: float | None = None, is_causal: bool | None = None,
              s_aux: torch.Tensor | None = None, **options: Any
              ) -> tuple[torch.Tensor, None]:
    """The attention function that transformers calls. Without a mask it is causal if
    the module is, and a single query sees all keys.

    query: [batch, heads, tokens, channels]
    key, value: [batch, key heads, keys, channels]
    attention_mask: bool[batch, 1, tokens, keys], True where a query sees a key
    dropout: 0
    scaling: the factor of the products (default: the channels' number to the power -1/2)
    softcap: the bound of scores, by tanh
    is_causal: whether a query sees later keys (default: what the module says)
    s_aux: [heads], logits of sinks
    options: what else transformers passes; `sliding_window` is used

    Returns [batch, tokens, heads, channels], and None for the weights. Raises Error for
    dropout, for tensors that need a gradient, for weights that are asked for
    (`output_attentions=True`), and for inputs that the kernels do not have, such as biases
    of positions.
    """
    if dropout:
        raise Error("attention 'posenc' has no dropout: call model.eval()")
    if _wants_weights(module, options):
        raise Error("attention 'posenc' does not compute the weights of keys: for "
                    "output_attentions=True use 'eager', by "
                    "model.set_attn_implementation('eager')")
    for name in UNKNOWN_INPUTS:
        if options.get(name) is not None:
            raise Error(f"attention 'posenc' has no '{name}': use 'eager' or 'sdpa' for "
                        "this model")
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
    device = query.device.index if query.is_cuda else None
    further = (heads, key_heads, dim, value_dim, name_of(query.dtype), scale,
               s_aux is not None, None if softcap is None else constant_number(softcap))
    # PyTorch 2.11 does not trace what asks for it.
    if not is_recorded() and is_looking():
        return _look(name, device, options.get("sliding_window"), query, value,
                     further), None
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
        kernels = _find_operator(name, device, window, *further)
        return torch.ops.posenc.call(inputs, kernels, name)[0], None
    return _find_function(name, device, window, *further)(*inputs), None


def _look(name: str, device: int | None, window: int | None, query: torch.Tensor,
          value: torch.Tensor, further: tuple) -> torch.Tensor:
    """Notes the functions of a call for `warmup`."""
    postpone(_compile_attention, name, device, None, *further)
    if name == "prefill" and window:  # Of prompts that are longer than the window.
        postpone(_compile_attention, name, device, window, *further)
    batch, heads, tokens, _ = query.shape
    return query.new_zeros((batch, tokens, heads, value.shape[3]))


# ===----------------------------------------------------------------------===#
# Masks
# ===----------------------------------------------------------------------===#


def _check_mask(module: torch.nn.Module, mask: torch.Tensor) -> None:
    if mask.dtype != torch.bool:
        raise Error(f"attention 'posenc' has masks of bool, got {mask.dtype}")
    if mask.shape[1] != 1:
        raise Error("attention 'posenc' has one mask for all heads, got "
                    f"{mask.shape[1]}")
    # Masks of `make_mask` that are as they were are right for all models.
    if (not is_recorded() and not hasattr(mask, "_is_of_posenc")
            and not has_masks_of_bool(type(module), get_config_type(module))):
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
    def make(window: int, device, *sizes: int) -> _Window:
        one = torch.ones((1, 1, 1, 1), dtype=torch.bool, device=device)
        result = one.expand(sizes).as_subclass(_Window)
        result._posenc_window = window
        return result

    def _to_mask(self) -> torch.Tensor:
        _, _, queries, keys = self.shape
        row = torch.arange(keys - queries, keys, device=self.device)[:, None]
        key = torch.arange(keys, device=self.device)
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
    zero = torch.zeros(1, dtype=torch.int64, device=keys.device)
    rows = torch.tensor([[last - 1], [last]], device=keys.device)
    expected = (keys <= rows) & (keys > rows - window)
    actual = mask_function(zero, zero, rows, keys)
    return torch.equal(actual.expand_as(expected), expected)


def make_mask(batch_size: int, q_length: int, kv_length: int, q_offset: int = 0,
              kv_offset: int = 0, mask_function=causal_mask_function,
              attention_mask: torch.Tensor | None = None, local_size: int | None = None,
              allow_is_causal_skip: bool = True, **options) -> torch.Tensor | None:
    """As `sdpa_mask`, the mask [batch, 1, queries, keys] or None, but there are no
    masks of sliding windows without padding. Those of long prompts would be large."""
    last, device = q_offset + q_length - 1, options.get("device", "cpu")
    # Looking at the values of a mask waits for them.
    is_free = allow_is_causal_skip and not is_recorded() and not is_captured()
    if (is_free and local_size is not None and q_length > 1 and kv_length >= local_size
            and isinstance(last, int) and last == kv_offset + kv_length - 1
            and (attention_mask is None or bool(
                attention_mask.shape[1] > last and attention_mask[:, kv_offset:].all()))
            and _is_sliding(mask_function, local_size, last,
                            torch.arange(kv_length, device=device) + kv_offset)):
        return _Window.make(local_size, device, batch_size, 1, q_length, kv_length)
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
