# ===- _layer.py - attention of a layer in vLLM ----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Calls of the kernels of an attention layer, with what vLLM's backends get, and what the
implementations of both backends have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future

import torch
from vllm.config import get_current_vllm_config
from vllm.utils.torch_utils import kv_cache_dtype_str_to_dtype
from vllm.v1.attention.backend import AttentionType

from .._dtypes import name_of
from .._errors import Error
from ._background import start, stop
from ._cache import QUANTIZED
from ._kernels import Cache, Layer, compile_append, compile_attention, compile_encoder
from ._options import get_mode
from ._report import fall_back, logger, report, summarize


class LayerKernels:
    """The kernels of a layer. They are compiled when they are first asked for."""

    def __init__(self, layer: Layer, cache: Cache, is_encoder: bool):
        self.layer, self.cache, self.is_encoder = layer, cache, is_encoder
        self.functions: dict = {}

    def prepare(self, dtype: torch.dtype, masks: Sequence[bool]) -> list[Future]:
        """Starts to compile what `attend` and `append` call: attention that is causal, or
        not, or both."""
        tasks = [start(self._find_attention, dtype, causal) for causal in masks]
        if not self.is_encoder:
            tasks.append(start(self._find_append, dtype))
        return tasks

    def _find_attention(self, dtype: torch.dtype, causal: bool) -> Callable:
        key = dtype, causal
        if key not in self.functions:
            kind = name_of(dtype)
            self.functions[key] = (
                compile_encoder(self.layer, kind) if self.is_encoder else
                compile_attention(self.layer, kind, self.cache, causal))
        return self.functions[key]

    def _find_append(self, dtype: torch.dtype) -> Callable:
        if dtype not in self.functions:
            self.functions[dtype] = compile_append(
                self.layer.key_heads, self.layer.dim, name_of(dtype), self.cache)
        return self.functions[dtype]

    def _get_scales(self, of) -> list[torch.Tensor]:
        """Returns vLLM's scales of all keys and of all values, if the cache has them."""
        if self.cache.scales != "tensor":
            return []
        return [scale.view(1, 1, 1) for scale in (of._k_scale, of._v_scale)]

    def attend(self, of, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
               views: Sequence[torch.Tensor], further: Sequence[torch.Tensor], metadata,
               output: torch.Tensor) -> None:
        """Writes the attention of a batch. `of` is vLLM's layer, `views` are those of its
        cache, and `further` are slopes and sinks."""
        tokens = metadata.num_actual_tokens
        query, output = query[:tokens], output[:tokens]
        if self.is_encoder:
            self._find_attention(query.dtype, metadata.causal)(
                query, key[:tokens], value[:tokens], *further, metadata.query_start_loc,
                out=output)
            return
        given = [*views, *self._get_scales(of), *further]
        is_causal = getattr(metadata, "dynamic_causal", None)
        if is_causal is None:
            self._find_attention(query.dtype, metadata.causal)(
                query, *given, metadata.seq_lens, metadata.block_table,
                metadata.query_start_loc, out=output)
            return
        # The sequences of each mask are a batch of their own.
        counts = metadata.query_start_loc.diff()
        for causal in (True, False):
            rows = is_causal[:len(counts)].bool() == causal
            if not rows.any():
                continue
            # There may be more tokens, which no sequence has.
            chosen = rows.repeat_interleave(counts).nonzero().flatten()
            starts = torch.cat([counts.new_zeros(1), counts[rows].cumsum(0)])
            part = self._find_attention(query.dtype, causal)(
                query[chosen], *given, metadata.seq_lens[rows], metadata.block_table[rows],
                starts.to(counts.dtype))
            output[chosen] = part

    def append(self, of, key: torch.Tensor, value: torch.Tensor,
               views: Sequence[torch.Tensor], slots: torch.Tensor) -> None:
        """Writes new keys and values into the slots of the cache."""
        if self.is_encoder:
            return
        tokens = slots.shape[0]
        self._find_append(key.dtype)(
            key[:tokens], value[:tokens], slots, *views, *self._get_scales(of),
            out=tuple(views))


def _find_cache(kv_cache_dtype: str, model_config) -> Cache:
    """Returns the elements of a cache, by vLLM's name of its type."""
    cache = QUANTIZED.get(kv_cache_dtype)
    if cache is not None:
        return cache
    # Other caches of bytes hold codes of formats of their own.
    dtype = kv_cache_dtype_str_to_dtype(kv_cache_dtype, model_config)
    if name_of(dtype) not in ("f32", "bf16", "f16"):
        raise Error(f"caches of elements '{dtype}' are not supported")
    return Cache(name_of(dtype))


class LayerImpl:
    """The attention of a layer, before a class of vLLM's among the bases of a class. The
    methods of that class run for a layer with an obstacle, and for each batch that
    `is_left` is true for."""

    is_reported = False
    kernels: LayerKernels

    def __init__(self, num_heads, head_size, scale, num_kv_heads, alibi_slopes,
                 sliding_window, kv_cache_dtype, logits_soft_cap=None,
                 attn_type=AttentionType.DECODER, kv_sharing_target_layer_name=None,
                 sinks=None):
        super().__init__(num_heads, head_size, scale, num_kv_heads, alibi_slopes,
                         sliding_window, kv_cache_dtype, logits_soft_cap, attn_type,
                         kv_sharing_target_layer_name, sinks)
        self._config = config = get_current_vllm_config()
        self._tasks: list[Future] = []
        self._obstacle = self.find_obstacle(config, attn_type, kv_cache_dtype)
        if self._obstacle is not None:
            if get_mode() == "require":
                fall_back("an attention layer", self._obstacle)
            return
        layer = Layer(
            num_heads, num_kv_heads, head_size, self.scale,
            sliding_window if sliding_window and sliding_window > 0 else None,
            float(self.logits_soft_cap) or None, alibi_slopes is not None,
            sinks is not None)
        if get_mode() != "force":
            self._obstacle = self.find_faster(config, attn_type, kv_cache_dtype, layer)
        if self._obstacle is not None:
            return
        try:
            self.kernels = LayerKernels(
                layer, _find_cache(kv_cache_dtype, config.model_config),
                attn_type in (AttentionType.ENCODER, AttentionType.ENCODER_ONLY))
        except Error as error:
            self._fall_back(error)
            return
        self._tasks = self.prepare(config, attn_type)

    def _fall_back(self, error: Error) -> None:
        self._obstacle = fall_back("an attention layer", f"there are no kernels: {error}")

    @property
    def obstacle(self) -> str | None:
        """Why the layer runs vLLM's kernels, or None. Waits for its compilation."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            try:
                task.result()
            except Error as error:
                self._fall_back(error)
                break
        return self._obstacle

    def process_weights_after_loading(self, act_dtype):
        """vLLM calls this for each layer of a model that is loaded, so the first call
        reports about all of them."""
        super().process_weights_after_loading(act_dtype)
        if self.is_reported:
            return
        layers = {name: layer for name, layer
                  in self._config.compilation_config.static_forward_context.items()
                  if not getattr(getattr(layer, "impl", None), "is_reported", False)}
        logger.info("%s", summarize(report(layers, self._config), self.describe_rotation()))
        stop()
        for layer in layers.values():
            if isinstance(getattr(layer, "impl", None), LayerImpl):
                layer.impl.is_reported = True

    def describe_rotation(self) -> str:
        """Returns what rotates queries and keys."""
        return "vLLM's"

    def find_obstacle(self, config, attn_type: str, kv_cache_dtype: str) -> str | None:
        """Returns why the layer cannot run Posenc's kernels, or None."""
        raise NotImplementedError

    def find_faster(self, config, attn_type: str, kv_cache_dtype: str,
                    layer: Layer) -> str | None:
        """Returns why vLLM's attention is faster for the layer, or None."""
        return None

    def prepare(self, config, attn_type: str) -> list[Future]:
        """Starts to compile kernels while the model is loaded."""
        return []

    def is_left(self, metadata) -> bool:
        """Whether a batch has a mask that kernels of Posenc do not have."""
        return False

    def split_cache(self, kv_cache: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Returns views of keys, values and scales in a cache."""
        raise NotImplementedError

    def _split(self, kv_cache: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return () if self.kernels.is_encoder else self.split_cache(kv_cache)

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output,
                output_scale=None, output_block_scale=None):
        if (self.obstacle is not None or attn_metadata is None
                or output_scale is not None or output_block_scale is not None
                or self.is_left(attn_metadata)):
            return super().forward(layer, query, key, value, kv_cache, attn_metadata,
                                   output, output_scale, output_block_scale)
        further = [] if self.alibi_slopes is None else [self.alibi_slopes]
        if self.sinks is not None:
            further.append(self.sinks.float())
        self.kernels.attend(layer, query, key, value, self._split(kv_cache), further,
                            attn_metadata, output)
        return output

    def do_kv_cache_update(self, layer, key, value, kv_cache, slot_mapping):
        if self.obstacle is not None:
            super().do_kv_cache_update(layer, key, value, kv_cache, slot_mapping)
            return
        self.kernels.append(layer, key, value, self._split(kv_cache), slot_mapping)
