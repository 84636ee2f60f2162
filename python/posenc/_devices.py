# ===- _devices.py - where arrays are --------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The devices that arrays are on, as DLPack has them."""

from __future__ import annotations

import sys

CPU, CUDA, MANAGED = 1, 2, 13  # Types of devices of DLPack.


def locate(value) -> tuple[int, int] | None:
    """Returns the type and the number of an array's device, as DLPack has them; None if
    it has none. Managed memory counts as that of its CUDA device."""
    try:
        kind, index = value.__dlpack_device__()
    except Exception:  # It is no array, or one without memory.
        return None
    return CUDA if kind == MANAGED else int(kind), int(index)


def find_device(value) -> int | None:
    """Returns the number of the CUDA device of an array; None if it is on none."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return value.device.index if value.is_cuda else None
    device = locate(value)
    return device[1] if device is not None and device[0] == CUDA else None


def is_on_cuda(value) -> bool:
    return find_device(value) is not None
