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
from ._cache import QUANTIZED, has_row_scales

_FLOATS = ("f32", "bf16", "f16")


def find_obstacle(config: VllmConfig, attn_type: str, kv_cache_dtype: str) -> str | None:
    """Returns why a layer keeps vLLM's attention, or None. Layers that share a cache
    get the same answer, as the two backends order its elements differently."""
    dtype = config.model_config.dtype
    if attn_type in (AttentionType.ENCODER, AttentionType.ENCODER_ONLY):
        kv_cache_dtype = "auto"  # There is no cache.
    if is_quantized_kv_cache(kv_cache_dtype) and kv_cache_dtype not in QUANTIZED:
        return f"quantized caches ('{kv_cache_dtype}') are not supported"
    if name_of(dtype) not in _FLOATS:
        return f"elements of type {dtype} are not supported"
    if (dtype == torch.bfloat16 and torch.cpu._is_amx_tile_supported()
            and not has_row_scales(kv_cache_dtype)):
        return "this CPU has AMX, which vLLM's bf16 kernels use and Posenc's do not"
    if config.kv_transfer_config is not None:
        return "KV connectors move blocks in the order of elements of vLLM's kernels"
    if config.model_config.is_diffusion:
        return "diffusion models have causal and bidirectional sequences in one batch"
    return None


def find_cuda_obstacle(config: VllmConfig, kv_cache_dtype: str) -> str | None:
    """Returns why a layer keeps FLASH_ATTN, or None."""
    if is_quantized_kv_cache(kv_cache_dtype) and kv_cache_dtype not in QUANTIZED:
        return f"quantized caches ('{kv_cache_dtype}') are not supported"
    if config.parallel_config.decode_context_parallel_size > 1:
        return "decode context parallelism is not supported"
    return None
