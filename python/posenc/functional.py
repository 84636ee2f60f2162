# ===- functional.py - functions without a config --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Functions for those without a config: rotations, attention and its caches. Kernels are
compiled at the first call with their parameters, such as the numbers of heads and
channels and the type, and kept for later ones."""

from __future__ import annotations

from ._attend import append, attention, decode
from ._rope import rope

__all__ = ["append", "attention", "decode", "rope"]

for _function in (append, attention, decode, rope):
    _function.__module__ = __name__  # It is printed by help().
