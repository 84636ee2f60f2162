# ===- _cache.py - caches of vLLM's attention layers -----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The cache of a layer as the arrays that kernels take.

vLLM has one tensor for a layer, [blocks, key heads, slots, content]. In these bytes, each
head of a block has the keys of its slots first, then the values of its slots, as in
CPU_ATTN. Scales of keys and then of values follow, if each token and head has its own.
"""

from __future__ import annotations

import torch

from .._dtypes import FRAMEWORK_NAMES
from ._kernels import Cache

# By vLLM's names. Its own kernels for CPUs do not have scales of rows.
QUANTIZED = {"int8_per_token_head": Cache("i8", "rows"),
             "fp8_per_token_head": Cache("f8E4M3FN", "rows"),
             "fp8": Cache("f8E4M3FN", "tensor"), "fp8_e4m3": Cache("f8E4M3FN", "tensor"),
             "fp8_e5m2": Cache("f8E5M2", "tensor")}


def has_row_scales(kv_cache_dtype: str) -> bool:
    """Whether each token and head has a scale, by vLLM's name of the cache's type."""
    return QUANTIZED.get(kv_cache_dtype, Cache("")).scales == "rows"


def count_scale_bytes(cache: Cache) -> int:
    """Returns the bytes of the scales of a token and a head."""
    return 2 * torch.float32.itemsize if cache.scales == "rows" else 0


def split(kv_cache: torch.Tensor, dim: int, cache: Cache) -> tuple[torch.Tensor, ...]:
    """Returns views of keys and values, [blocks, key heads, slots, dim], and of their
    scales [blocks, key heads, slots], if there are any."""
    blocks, heads, slots, _ = kv_cache.shape
    kind = getattr(torch, FRAMEWORK_NAMES[cache.dtype])
    rows = kv_cache.view(blocks, heads, -1)
    size = slots * dim
    views = [part.unflatten(-1, (slots, dim)).view(kind)
             for part in (rows[..., :size], rows[..., size:2 * size])]
    if cache.scales == "rows":
        views += rows[..., 2 * size:].view(torch.float32).split(slots, dim=-1)
    return tuple(views)
