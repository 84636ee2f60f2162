# ===- _layer.py - attention of a layer in vLLM ----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Calls of the kernels of an attention layer, with what vLLM's backends get."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from .._dtypes import name_of
from ._kernels import Cache, Layer, compile_append, compile_attention, compile_encoder


class LayerKernels:
    """The kernels of a layer. They are compiled when they are first asked for."""

    def __init__(self, layer: Layer, cache: Cache, is_encoder: bool):
        self.layer, self.cache, self.is_encoder = layer, cache, is_encoder
        self.functions: dict = {}

    def prepare(self, dtype: torch.dtype, causal: bool) -> None:
        """Compiles what `attend` and `append` call."""
        self._find_attention(dtype, causal)
        if not self.is_encoder:
            self._find_append(dtype)

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
        attend = self._find_attention(query.dtype, metadata.causal)
        if self.is_encoder:
            attend(query[:tokens], key[:tokens], value[:tokens], *further,
                   metadata.query_start_loc, out=output[:tokens])
            return
        attend(query[:tokens], *views, *self._get_scales(of), *further,
               metadata.seq_lens, metadata.block_table, metadata.query_start_loc,
               out=output[:tokens])

    def append(self, of, key: torch.Tensor, value: torch.Tensor,
               views: Sequence[torch.Tensor], slots: torch.Tensor) -> None:
        """Writes new keys and values into the slots of the cache."""
        if self.is_encoder:
            return
        tokens = slots.shape[0]
        self._find_append(key.dtype)(
            key[:tokens], value[:tokens], slots, *views, *self._get_scales(of),
            out=tuple(views))
