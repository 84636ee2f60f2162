# ===- _later.py - modules that are imported when they are used ------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Modules above this one that those below call, such as the operators of PyTorch.

They import frameworks, which takes seconds, so they are imported at the first call. They
also import the modules that call them. So that imports have one direction, a caller
imports this module, and `_bridges` sets its variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Each imports a module and returns it.
load_operators: Callable[[], Any]  # _operators, of PyTorch
load_jax: Callable[[], Any]  # _jax
load_jax_targets: Callable[[], Any]  # _jax_targets
load_torch_block_mask: Callable[[], Any]  # _flex._torch_block_mask
