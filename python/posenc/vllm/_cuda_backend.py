# ===- _cuda_backend.py - attention backend of vLLM on CUDA ----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""An attention backend of vLLM in the place of FLASH_ATTN.

It is a subclass of that backend with the same cache and the same metadata, so it calls
that backend for each batch and each layer that it does not support.
"""

from __future__ import annotations

import torch
from vllm.v1.attention.backends.flash_attn import FlashAttentionBackend, FlashAttentionImpl

from .._dtypes import FRAMEWORK_NAMES
from ._layer import LayerImpl
from ._support import find_cuda_obstacle


class CudaBackend(FlashAttentionBackend):
    """FLASH_ATTN with another implementation."""

    @staticmethod
    def get_impl_cls():
        return CudaBackendImpl


class CudaBackendImpl(LayerImpl, FlashAttentionImpl):
    """The attention of a layer. Kernels are compiled for the device of the first call."""

    def find_obstacle(self, config, attn_type, kv_cache_dtype):
        return find_cuda_obstacle(config, kv_cache_dtype)

    def is_left(self, metadata):
        return (isinstance(metadata.causal, torch.Tensor)
                or metadata.mm_prefix_query_range_tensor is not None
                or metadata.rswa_prefix_lens is not None)

    def split_cache(self, kv_cache):
        # [blocks, key heads, slots, 2 * dim] in any order of its dimensions in memory.
        kind = getattr(torch, FRAMEWORK_NAMES[self.kernels.cache.dtype])
        return kv_cache.view(kind).split(self.head_size, dim=-1)
