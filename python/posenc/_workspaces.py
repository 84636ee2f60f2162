# ===- _workspaces.py - memory of calls ---------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The workspaces of a function on CPUs, which are kept from one call to the next: new
memory is cleared by the system, page by page, which takes a tenth of the time of a prefill
of some models."""

from __future__ import annotations

import numpy as np


class Workspaces:
    """Memory that calls take and give back. Calls of several threads at a time have one
    each. A call that needs much less releases what larger calls left, so the memory of a
    prefill is not kept while tokens are generated."""

    # A workspace serves calls that need at least this fraction of it.
    _MIN_USED = 1 / 4

    def __init__(self) -> None:
        self._spare: list[np.ndarray] = []

    def take(self, size: int) -> np.ndarray:
        """Returns at least `size` bytes, whose contents are unknown."""
        try:
            memory = self._spare.pop()
        except IndexError:
            return np.empty(size, np.uint8)
        if memory.nbytes * self._MIN_USED <= size <= memory.nbytes:
            return memory
        del memory  # Released before other memory is taken.
        return np.empty(size, np.uint8)

    def give(self, memory: np.ndarray) -> None:
        """Keeps the memory of a call that has ended."""
        self._spare.append(memory)
