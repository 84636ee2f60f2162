# ===- _torch_rope.py - rotations of PyTorch without a config --------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""`posenc.torch.rope`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch

from ._compile import write_json
from ._operators import OPTIONS, check_inputs, prepare_sharding
from ._rope import write_scaling


def rope(q: torch.Tensor, k: torch.Tensor, positions: torch.Tensor, *,
         theta: float = 10000.0, scaling: Mapping[str, Any] | None = None,
         pairing: str = "half", rotary_dim: int | None = None,
         precision: str = "exact",
         max_position_embeddings: int = 2048) -> tuple[torch.Tensor, torch.Tensor]:
    """As `posenc.functional.rope`, with derivatives of any order, in reverse and forward
    mode. Returns q and k, rotated, new tensors.

    Raises Error for arguments that are no tensors, and as `posenc.functional.rope`. There
    are no derivatives where frequencies depend on the length.
    """
    check_inputs("rope", ("q", "k", "positions"), (q, k, positions))
    options = _write_options(theta, scaling, pairing, rotary_dim, precision,
                             max_position_embeddings)
    prepare_sharding()
    return torch.ops.posenc.rope(q, k, positions, options, "rope")


@torch.compiler.assume_constant_result
def _write_options(theta: float, scaling: Mapping[str, Any] | None, *others) -> str:
    text = write_scaling(scaling)
    return OPTIONS + write_json([theta, text and json.loads(text), *others])
