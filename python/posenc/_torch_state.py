# ===- _torch_state.py - what PyTorch does with calls ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Whether PyTorch records calls, and whether a tensor has a tangent."""

from __future__ import annotations

import torch

_PROXY = torch._C._TorchDispatchModeKey.PROXY


def is_traced() -> bool:
    """Whether torch.jit.trace or make_fx records operators. Calls of kernels that are
    not operators would be missing in the record."""
    return (torch.jit.is_tracing()
            or torch._C._get_dispatch_mode(_PROXY) is not None)


def is_recorded() -> bool:
    """Whether operators become parts of a graph, also by torch.compile or
    torch.export."""
    return torch.compiler.is_compiling() or is_traced()


def has_tangent(tensor: torch.Tensor) -> bool:
    """Whether a tensor has a tangent, for derivatives in forward mode. While
    torch.compile traces such a derivative, any tensor counts."""
    forward_ad = torch.autograd.forward_ad
    return forward_ad._current_level >= 0 and (
        torch.compiler.is_compiling() or forward_ad.unpack_dual(tensor).tangent is not None)
