# ===- _backend.py - attention backend of vLLM -----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""An attention backend of vLLM for CPUs.

It is a subclass of CPU_ATTN, which it calls for layers that it does not support. Kernels
get keys and values as views of vLLM's cache.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from vllm import envs
from vllm.config import get_layers_from_vllm_config
from vllm.model_executor.layers.attention import Attention
from vllm.v1.attention.backend import (
    AttentionMetadataBuilder, AttentionType, MultipleOf)
from vllm.v1.attention.backends.cpu_attn import (
    CPUAttentionBackend, CPUAttentionBackendImpl, CPUAttentionMetadata,
    CPUAttentionMetadataBuilder)
from vllm.v1.kv_cache_interface import AttentionSpec

from .._errors import Error
from ._cache import QUANTIZED, count_scale_bytes, has_row_scales, split
from ._layer import LayerImpl
from ._platform import NAME
from ._support import find_faster, find_obstacle


class Backend(CPUAttentionBackend):
    """The backend's classes, and what it supports."""

    @staticmethod
    def get_name() -> str:
        return NAME

    supported_kv_cache_dtypes = [*CPUAttentionBackend.supported_kv_cache_dtypes, *QUANTIZED]

    @classmethod
    def customize_spec(cls, spec: AttentionSpec) -> AttentionSpec:
        # Scales of tokens and heads are a part of the cache.
        cache = QUANTIZED.get(spec.kv_quant_mode.name.lower())
        if cache is None or spec.state_content_bytes is not None:
            return spec
        return replace(spec, state_content_bytes=(
            spec.head_size + spec.head_size_v + count_scale_bytes(cache)))

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec=None):
        # vLLM's kernels, which some layers may keep, need multiples of 16.
        return [MultipleOf(16)]

    @classmethod
    def supports_sink(cls) -> bool:
        return True

    @staticmethod
    def get_impl_cls():
        return BackendImpl

    @staticmethod
    def get_builder_cls():
        return MetadataBuilder


class ConnectorBackend(Backend):
    """The backend of layers whose blocks a KV connector moves. It knows the order of their
    elements by the name of vLLM's backend, whose kernels they run."""

    get_name = staticmethod(CPUAttentionBackend.get_name)


class MetadataBuilder(CPUAttentionMetadataBuilder):
    """Builds vLLM's metadata, without the schedule of its kernels if no layer uses
    them."""

    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        AttentionMetadataBuilder.__init__(self, kv_cache_spec, layer_names, vllm_config,
                                          device)
        # vLLM's class refuses caches that its own kernels do not have.
        if self._find_obstacle() is not None:
            super().__init__(kv_cache_spec, layer_names, vllm_config, device)

    def _find_obstacle(self) -> str | None:
        layers = get_layers_from_vllm_config(self.vllm_config, Attention, self.layer_names)
        for layer in layers.values():
            if not isinstance(layer.impl, BackendImpl):
                return "it has another implementation"
            if layer.impl.obstacle is not None:
                return layer.impl.obstacle
        return None

    def build(self, common_prefix_len, common_attn_metadata, fast_build=False):
        if self._find_obstacle() is not None:
            return super().build(common_prefix_len, common_attn_metadata, fast_build)
        common = common_attn_metadata
        is_mixed = isinstance(common.causal, torch.Tensor)
        return CPUAttentionMetadata(
            num_actual_tokens=common.num_actual_tokens,
            max_query_len=common.max_query_len, query_start_loc=common.query_start_loc,
            max_seq_len=common.max_seq_len, seq_lens=common.seq_lens,
            block_table=common.block_table_tensor, slot_mapping=common.slot_mapping,
            scheduler_metadata=None, causal=False if is_mixed else common.causal,
            dynamic_causal=common.causal if is_mixed else None)


class BackendImpl(LayerImpl, CPUAttentionBackendImpl):
    """The attention of a layer."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        is_encoder = self.attn_type in (AttentionType.ENCODER, AttentionType.ENCODER_ONLY)
        # Without a cache that only Posenc's kernels have, nothing waits for them here.
        if (not is_encoder and has_row_scales(self.kv_cache_dtype)
                and self.obstacle is not None):
            raise Error(f"vLLM's kernels for CPUs have no caches '{self.kv_cache_dtype}', "
                        f"and Posenc's cannot run: {self.obstacle}")

    def find_obstacle(self, config, attn_type, kv_cache_dtype):
        return find_obstacle(config, attn_type, kv_cache_dtype)

    def find_faster(self, config, attn_type, kv_cache_dtype, layer):
        return find_faster(config, attn_type, kv_cache_dtype, layer)

    def describe_rotation(self):
        return envs.environment_variables["POSENC_VLLM_ROPE"]()

    def prepare(self, config, attn_type):
        # While the model is loaded rather than at the first token.
        masks = [attn_type == AttentionType.DECODER]
        if config.model_config.is_diffusion:
            masks = [True, False]
        return self.kernels.prepare(config.model_config.dtype, masks)

    def split_cache(self, kv_cache):
        return split(kv_cache, self.head_size, self.kernels.cache)
