# ===- _torch_block_mask.py - lazy block masks of PyTorch ------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Block masks that PyTorch takes for its own, whose blocks are made when they are used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.attention import flex_attention as module

from ._block_mask import BlockMask

_create = module.create_block_mask
# Attributes of PyTorch's block masks besides `seq_lengths` and `mask_mod`.
_BLOCKS = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices",
           "q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices",
           "dq_write_order", "dq_write_order_full", "dq_kv_order", "dq_kv_order_spt")


class TorchBlockMask(BlockMask, module.BlockMask):  # type: ignore[misc]
    """A lazy block mask. Its blocks have no size where it is used as an argument of
    `posenc.flex_attention`, which does not ask for them."""

    __module__ = "posenc"
    _blocks: Any = None

    def __init__(self, mask_mod: Callable, arguments: dict[str, Any]):
        BlockMask.__init__(self, mask_mod, arguments)

    @property
    def BLOCK_SIZE(self) -> tuple[int, int]:  # type: ignore[override]
        size = self._arguments["BLOCK_SIZE"]
        return (size, size) if isinstance(size, int) else tuple(size)

    def _find_blocks(self):
        if self._blocks is None:
            arguments = dict(self._arguments)
            if arguments["device"] is None:
                arguments["device"] = torch.get_default_device()
            self._blocks = _create(self.mask_mod, **arguments)
        return self._blocks

    def __getitem__(self, index):
        return self._find_blocks()[index]


def _make_property(name: str) -> property:
    return property(lambda self: getattr(self._find_blocks(), name, None))


for _name in _BLOCKS:
    setattr(TorchBlockMask, _name, _make_property(_name))
