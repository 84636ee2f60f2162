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
from vllm.config import get_current_vllm_config
from vllm.logger import init_logger
from vllm.v1.attention.backend import AttentionType
from vllm.v1.attention.backends.flash_attn import FlashAttentionBackend, FlashAttentionImpl

from .._dtypes import FRAMEWORK_NAMES
from .._errors import Error
from ._backend import find_cache, list_operands
from ._kernels import Layer
from ._layer import LayerKernels
from ._support import find_cuda_obstacle

logger = init_logger("vllm.posenc")


class CudaBackend(FlashAttentionBackend):
    """FLASH_ATTN with another implementation."""

    @staticmethod
    def get_impl_cls():
        return CudaBackendImpl


def _needs_flash_attention(metadata) -> bool:
    """Whether a batch has a mask that kernels of Posenc do not have."""
    return (isinstance(metadata.causal, torch.Tensor)
            or metadata.mm_prefix_query_range_tensor is not None
            or metadata.rswa_prefix_lens is not None)


class CudaBackendImpl(FlashAttentionImpl):
    """The attention of a layer."""

    def __init__(self, num_heads, head_size, scale, num_kv_heads, alibi_slopes,
                 sliding_window, kv_cache_dtype, logits_soft_cap=None,
                 attn_type=AttentionType.DECODER, kv_sharing_target_layer_name=None,
                 sinks=None):
        super().__init__(num_heads, head_size, scale, num_kv_heads, alibi_slopes,
                         sliding_window, kv_cache_dtype, logits_soft_cap, attn_type,
                         kv_sharing_target_layer_name, sinks)
        config = get_current_vllm_config()
        self.obstacle = find_cuda_obstacle(config, kv_cache_dtype)
        layer = Layer(
            num_heads, num_kv_heads, head_size, self.scale, sliding_window,
            float(self.logits_soft_cap) or None, alibi_slopes is not None,
            sinks is not None)
        if self.obstacle is None:
            try:
                # Kernels are compiled for the device of the first call.
                self.kernels = LayerKernels(
                    layer, find_cache(kv_cache_dtype, config.model_config),
                    attn_type in (AttentionType.ENCODER, AttentionType.ENCODER_ONLY))
            except Error as error:
                self.obstacle = f"there are no kernels: {error}"
        if self.obstacle is None:
            logger.info_once("Attention runs kernels of Posenc.")
        else:
            logger.info_once("Attention keeps FLASH_ATTN: %s.", self.obstacle)

    def _split(self, kv_cache: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Returns views of keys and values, [blocks, key heads, slots, dim], of a tensor
        [blocks, key heads, slots, 2 * dim] in any order of its dimensions in memory."""
        if self.kernels.is_encoder:
            return ()
        kind = getattr(torch, FRAMEWORK_NAMES[self.kernels.cache.dtype])
        return kv_cache.view(kind).split(self.head_size, dim=-1)

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output,
                output_scale=None, output_block_scale=None):
        if (self.obstacle is not None or attn_metadata is None
                or output_scale is not None or output_block_scale is not None
                or _needs_flash_attention(attn_metadata)):
            return super().forward(layer, query, key, value, kv_cache, attn_metadata,
                                   output, output_scale, output_block_scale)
        self.kernels.attend(layer, query, key, value, self._split(kv_cache),
                            list_operands(self), attn_metadata, output)
        return output

    def do_kv_cache_update(self, layer, key, value, kv_cache, slot_mapping):
        if self.obstacle is not None:
            super().do_kv_cache_update(layer, key, value, kv_cache, slot_mapping)
            return
        self.kernels.append(layer, key, value, self._split(kv_cache), slot_mapping)
