# ===- __init__.py - attention with functions of scores --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""`flex_attention`: attention whose scores and masks are functions of Python.

`_calls` checks a call. `_plan` traces its functions, by `_trace_torch`, `_trace_numpy` or
`_trace_jax`, to expressions (`_score_graph`) and compiles a module for them
(`_module`, `_gradient`), whose regions `_mlir` writes.
"""

from ._attention import flex_attention
from ._block_mask import BlockMask, and_masks, create_block_mask, noop_mask, or_masks

__all__ = ["BlockMask", "and_masks", "create_block_mask", "flex_attention", "noop_mask",
           "or_masks"]

for _function in (flex_attention, create_block_mask, and_masks, or_masks, noop_mask):
    _function.__module__ = "posenc"
