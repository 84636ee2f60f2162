# ===- _speed.py - where the kernels of vLLM are faster --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Where vLLM's kernels are faster than Posenc's. All that is known is of bf16 on CPUs with
AMX, for which vLLM has kernels if blocks have a multiple of 32 tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Measured(NamedTuple):
    """Speeds of Posenc's kernels, divided by those of vLLM's kernels with AMX: the lowest
    and the highest of the shapes that were measured. None was not measured."""

    cpu: str
    dim: int  # of heads of up to so many channels
    has_window: bool
    prefill: tuple[float, float] | None
    decode: tuple[float, float] | None

    @property
    def is_slower(self) -> bool:
        """Whether Posenc's kernels are slower for all shapes of prefill or of decode."""
        return any(both is not None and both[1] < 1 for both in (self.prefill, self.decode))


# `python python/benchmarks/vllm-kernels.py --table` prints such rows.
MEASURED: tuple[Measured, ...] = (
    Measured("Intel Xeon with AMX", 128, False, (1.00, 1.38), None),
    Measured("Intel Xeon with AMX", 256, False, (0.55, 0.73), None),
    Measured("Intel Xeon with AMX", 256, True, None, (0.34, 0.62)),
)


def find_slower(dim: int, has_window: bool,
                rows: Sequence[Measured] | None = None) -> Measured | None:
    """Returns the row by which vLLM's kernels with AMX are faster; None if there is
    none. Heads that are wider than those of all rows are as the widest of them."""
    rows = sorted((row for row in (MEASURED if rows is None else rows)
                   if row.has_window == has_window), key=lambda row: row.dim)
    row = next((row for row in rows if row.dim >= dim), rows[-1] if rows else None)
    return row if row is not None and row.is_slower else None
