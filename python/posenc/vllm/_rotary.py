# ===- _rotary.py - rotary embedding of vLLM -------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""vLLM's rotary embedding by kernels, in place as vLLM's operator."""

from __future__ import annotations

import torch
from vllm.model_executor.custom_op import op_registry_oot
from vllm.model_executor.layers.rotary_embedding.base import RotaryEmbedding

from .._dtypes import name_of
from ..functional import rope
from ._kernels import compile_rotation


def _view(x: torch.Tensor, head_size: int) -> torch.Tensor:
    return x.view(x.shape[0], -1, head_size)


@torch.library.custom_op("posenc_vllm::rotate_by_table", mutates_args=("query", "key"))
def rotate_by_table(positions: torch.Tensor, query: torch.Tensor, key: torch.Tensor,
                    table: torch.Tensor, head_size: int, rotary_dim: int,
                    pairing: str) -> None:
    """Rotates by the rows of a table of cosines and sines."""
    q, k = _view(query, head_size), _view(key, head_size)
    rotate = compile_rotation(head_size, rotary_dim, name_of(query.dtype),
                              name_of(table.dtype), pairing)
    rotate(q, k, positions, table, out=(q, k))


@torch.library.custom_op("posenc_vllm::rotate_exactly", mutates_args=("query", "key"))
def rotate_exactly(positions: torch.Tensor, query: torch.Tensor, key: torch.Tensor,
                   head_size: int, rotary_dim: int, theta: float, pairing: str) -> None:
    """Rotates by exact angles."""
    q, k = _view(query, head_size)[None], _view(key, head_size)[None]
    rope(q, k, positions[None], theta=theta, rotary_dim=rotary_dim, pairing=pairing,
         out=(q, k))


@rotate_by_table.register_fake
def _(positions, query, key, table, head_size, rotary_dim, pairing):
    return None


@rotate_exactly.register_fake
def _(positions, query, key, head_size, rotary_dim, theta, pairing):
    return None


class _Rotation(RotaryEmbedding):
    """The class itself. Subclasses, which have scalings or other positions, stay
    vLLM's."""

    def forward_native(self, positions, query, key=None):
        pairing = "half" if self.is_neox_style else "interleaved"
        if key is None or positions.dim() != 1:
            return super().forward_native(positions, query, key)
        self._rotate(positions, query, key, pairing)
        return query, key

    def forward_cpu(self, positions, query, key=None):
        if key is None or positions.dim() != 1:
            return super().forward_cpu(positions, query, key)
        return self.forward_native(positions, query, key)


class TableRotation(_Rotation):
    def _rotate(self, positions, query, key, pairing):
        table = self._match_cos_sin_cache_dtype(query)
        rotate_by_table(positions, query, key, table, self.head_size, self.rotary_dim,
                        pairing)


class ExactRotation(_Rotation):
    def _rotate(self, positions, query, key, pairing):
        rotate_exactly(positions, query, key, self.head_size, self.rotary_dim,
                       float(self.base), pairing)


def register_rotary_embedding(rotation: str) -> None:
    """Makes vLLM create one of the classes in the place of `RotaryEmbedding`."""
    name = RotaryEmbedding.__name__
    if name not in op_registry_oot:  # Another plug-in, or this one before.
        RotaryEmbedding.register_oot(
            TableRotation if rotation == "table" else ExactRotation, name=name)
