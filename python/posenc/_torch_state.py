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
from torch.autograd import forward_ad

_PROXY = torch._C._TorchDispatchModeKey.PROXY
_is_tracing, _get_mode = torch._C._is_tracing, torch._C._get_dispatch_mode


def is_traced() -> bool:
    """Whether torch.jit.trace or make_fx records operators. Calls of kernels that are
    not operators would be missing in the record."""
    return _is_tracing() or _get_mode(_PROXY) is not None


def is_recorded() -> bool:
    """Whether operators become parts of a graph, also by torch.compile or
    torch.export."""
    return torch.compiler.is_compiling() or is_traced()


def is_captured() -> bool:
    """Whether a CUDA graph records the current stream, so that nothing may wait for
    values on the device."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def is_in_forward_mode() -> bool:
    """Whether tensors may have tangents, for derivatives in forward mode."""
    return forward_ad._current_level >= 0


def has_tangent(tensor: torch.Tensor) -> bool:
    """Whether a tensor has a tangent, in forward mode. While torch.compile traces, any
    tensor counts."""
    return (torch.compiler.is_compiling()
            or forward_ad.unpack_dual(tensor).tangent is not None)


def constant_size(size: int) -> int:
    """Returns a size that torch.compile is to take for a constant, though sizes are
    dynamic: int() would keep the symbol."""
    return len(range(size))


def constant_number(number: float) -> float:
    """Returns a number that torch.compile is to take for a constant, as
    `constant_size`."""
    return float.fromhex(number.hex())
