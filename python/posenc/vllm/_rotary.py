# ===- _rotary.py - rotary embedding of vLLM -------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""vLLM's rotary embedding by kernels, in place as vLLM's operator."""

from __future__ import annotations

import weakref
from concurrent.futures import Future

import torch
from vllm.config import get_current_vllm_config
from vllm.model_executor.custom_op import op_registry_oot
from vllm.model_executor.layers.rotary_embedding.base import RotaryEmbedding

from .._dtypes import name_of
from .._errors import Error
from ..functional import rope
from ._background import start
from ._kernels import compile_rotation, measure
from ._options import get_rotation
from ._report import fall_back


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


# The rotations of the models of this process.
_made: weakref.WeakSet[_Rotation] = weakref.WeakSet()


def describe() -> str:
    """Returns what rotates queries and keys, and why others are left to vLLM. Waits for
    what is being compiled."""
    for one in list(_made):
        one.finish()
    obstacles = sorted({one.obstacle for one in _made if one.obstacle is not None})
    return get_rotation() + "".join(f" (vLLM's: {one})" for one in obstacles)


class _Rotation(RotaryEmbedding):
    """The class itself. Subclasses, which have scalings or other positions, stay
    vLLM's."""

    obstacle: str | None = None
    _refusal: Error | None = None  # if POSENC_VLLM=require

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.pairing = "half" if self.is_neox_style else "interleaved"
        # While the model is loaded rather than at the first token.
        self._task: Future | None = self._prepare()
        _made.add(self)

    def finish(self) -> None:
        """Waits for the compilation."""
        task, self._task = self._task, None
        if task is not None:
            try:
                task.result()
            except Error as error:
                self._fall_back(error)
        if self._refusal is not None:
            raise self._refusal

    def _fall_back(self, error: Error) -> None:
        try:
            self.obstacle = fall_back("a rotation", f"there are no kernels: {error}")
        except Error as refusal:
            # vLLM ignores errors where it asks for the key of its cached graphs.
            self._refusal = refusal

    def _is_left(self, positions, key) -> bool:
        # A graph that is cached has been asked before.
        if not torch.compiler.is_compiling():
            self.finish()
        return self.obstacle is not None or key is None or positions.dim() != 1

    def forward_native(self, positions, query, key=None):
        if self._is_left(positions, key):
            return super().forward_native(positions, query, key)
        self._rotate(positions, query, key)
        return query, key

    def forward_cpu(self, positions, query, key=None):
        if self._is_left(positions, key):
            return super().forward_cpu(positions, query, key)
        return self.forward_native(positions, query, key)


class TableRotation(_Rotation):
    def _prepare(self):
        dtype = name_of(self.dtype)
        return start(compile_rotation, self.head_size, self.rotary_dim, dtype, dtype,
                     self.pairing)

    def _rotate(self, positions, query, key):
        table = self._match_cos_sin_cache_dtype(query)
        rotate_by_table(positions, query, key, table, self.head_size, self.rotary_dim,
                        self.pairing)


class ExactRotation(_Rotation):
    def _prepare(self):
        # Kernels have numbers of heads. Layers whose numbers are not the model's compile
        # theirs at the first token.
        config = get_current_vllm_config()
        model, parallel = config.model_config, config.parallel_config
        sizes = [model.get_num_attention_heads(parallel), model.get_num_kv_heads(parallel)]
        x, y = (torch.zeros(1, heads * self.head_size, dtype=self.dtype, device="cpu")
                for heads in sizes)
        positions = torch.zeros(1, dtype=torch.int64, device="cpu")
        return start(measure, self._rotate, positions, x, y)

    def _rotate(self, positions, query, key):
        rotate_exactly(positions, query, key, self.head_size, self.rotary_dim,
                       float(self.base), self.pairing)


def register_rotary_embedding(rotation: str) -> None:
    """Makes vLLM create one of the classes in the place of `RotaryEmbedding`."""
    name = RotaryEmbedding.__name__
    if name not in op_registry_oot:  # Another plug-in, or this one before.
        RotaryEmbedding.register_oot(
            TableRotation if rotation == "table" else ExactRotation, name=name)
