# ===- _bridges.py - sets what is imported when it is used -----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Sets the variables of `_later`. The package imports this module first."""

from __future__ import annotations

from types import ModuleType

from . import _later


def _load_operators() -> ModuleType:
    from . import _operators

    return _operators


def _load_jax() -> ModuleType:
    from . import _jax

    return _jax


def _load_jax_targets() -> ModuleType:
    from . import _jax_targets

    return _jax_targets


def _load_torch_block_mask() -> ModuleType:
    from ._flex import _torch_block_mask

    return _torch_block_mask


_later.load_operators = _load_operators
_later.load_jax = _load_jax
_later.load_jax_targets = _load_jax_targets
_later.load_torch_block_mask = _load_torch_block_mask
