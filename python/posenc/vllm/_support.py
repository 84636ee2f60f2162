# ===- _support.py - layers that keep vLLM's attention ---------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Which attention layers keep the kernels of vLLM, and why."""

from __future__ import annotations

from vllm.config import VllmConfig
from vllm.utils.torch_utils import is_quantized_kv_cache
from vllm.v1.attention.backend import AttentionType

from .._dtypes import name_of
from ._cache import QUANTIZED, has_row_scales
from ._kernels import Layer
from ._speed import find_slower

_FLOATS = ("f32", "bf16", "f16")


def find_obstacle(config: VllmConfig, attn_type: str, kv_cache_dtype: str) -> str | None:
    """Returns why a layer cannot run Posenc's kernels, or None. Layers that share a
    cache get the same answer, as the two backends order its elements differently."""
    dtype = config.model_config.dtype
    kv_cache_dtype = _ignore_missing(attn_type, kv_cache_dtype)
    if is_quantized_kv_cache(kv_cache_dtype) and kv_cache_dtype not in QUANTIZED:
        return f"quantized caches ('{kv_cache_dtype}') are not supported"
    if name_of(dtype) not in _FLOATS:
        return f"elements of type {dtype} are not supported"
    if config.kv_transfer_config is not None:
        return "KV connectors move blocks in the order of elements of vLLM's kernels"
    return None


def find_faster(config: VllmConfig, attn_type: str, kv_cache_dtype: str,
                layer: Layer) -> str | None:
    """Returns why vLLM's kernels are faster for a layer that both support, or None.
    Layers that share a cache get the same answer."""
    # vLLM's wheel for CUDA does not need this module.
    from vllm.v1.attention.backends.cpu_attn import _get_attn_isa

    kv_cache_dtype = _ignore_missing(attn_type, kv_cache_dtype)
    if has_row_scales(kv_cache_dtype):
        return None
    try:
        isa = _get_attn_isa(config.model_config.dtype, config.cache_config.block_size,
                            layer.dim, kv_cache_dtype)
    except NotImplementedError:
        return None
    has_window = layer.window is not None
    if isa != "amx" or find_slower(layer.dim, has_window) is None:
        return None
    return ("vLLM's kernels for AMX are faster for "
            + ("windows" if has_window else f"heads of {layer.dim} channels"))


def _ignore_missing(attn_type: str, kv_cache_dtype: str) -> str:
    """Returns the type of the cache; "auto" for encoders, which have none."""
    is_encoder = attn_type in (AttentionType.ENCODER, AttentionType.ENCODER_ONLY)
    return "auto" if is_encoder else kv_cache_dtype


def find_cuda_obstacle(config: VllmConfig, kv_cache_dtype: str) -> str | None:
    """Returns why a layer keeps FLASH_ATTN, or None."""
    if is_quantized_kv_cache(kv_cache_dtype) and kv_cache_dtype not in QUANTIZED:
        return f"quantized caches ('{kv_cache_dtype}') are not supported"
    if config.parallel_config.decode_context_parallel_size > 1:
        return "decode context parallelism is not supported"
    return None
