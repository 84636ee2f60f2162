# ===- _support.py - layers that keep vLLM's attention ---------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Which attention layers keep the kernels of vLLM, and why."""

from __future__ import annotations

import torch
from vllm.config import VllmConfig
from vllm.utils.torch_utils import is_quantized_kv_cache
from vllm.v1.attention.backend import AttentionType

from .._dtypes import name_of
from ._cache import QUANTIZED

_FLOATS = ("f32", "bf16", "f16")


def find_obstacle(config: VllmConfig, attn_type: str, kv_cache_dtype: str) -> str | None:
    """Returns why a layer keeps vLLM's attention, or None. Layers that share a cache
    get the same answer, as the two backends order its elements differently."""
    dtype = config.model_config.dtype
    if attn_type != AttentionType.DECODER:
        name = getattr(attn_type, "value", attn_type)
        return f"attention of the type '{name}' is not supported"
    is_quantized = is_quantized_kv_cache(kv_cache_dtype)
    if is_quantized and kv_cache_dtype not in QUANTIZED:
        return f"quantized caches ('{kv_cache_dtype}') are not supported"
    if name_of(dtype) not in _FLOATS:
        return f"elements of type {dtype} are not supported"
    # vLLM's kernels do not have the quantized caches of Posenc's.
    if dtype == torch.bfloat16 and not is_quantized and torch.cpu._is_amx_tile_supported():
        return "this CPU has AMX, which vLLM's bf16 kernels use and Posenc's do not"
    if config.kv_transfer_config is not None:
        return "KV connectors move blocks in the order of elements of vLLM's kernels"
    if config.model_config.is_diffusion:
        return "diffusion models have causal and bidirectional sequences in one batch"
    return None
