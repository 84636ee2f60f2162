# ===- __init__.py - models of transformers --------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Models of transformers on kernels of Posenc, on the CPU and without gradients.

    import posenc.transformers
    model.set_attn_implementation("posenc")   # attention only, of any model
    posenc.transformers.enable(model)         # and rotations, where supported, and Cache

The import registers the attention "posenc". `Cache` appends keys and values in place.
"""

from __future__ import annotations

import torch

from ._attention import attention
from ._cache import Cache, use_cache
from ._rotations import replace_rotations

__all__ = ["Cache", "attention", "enable"]


def enable(model: torch.nn.Module, precision: str = "exact") -> torch.nn.Module:
    """Runs a model's attention on Posenc, and its rotations if they are of the usual
    kind: one module of rotary embeddings, whose tables and pairing (of halves or of
    neighbours) are compared with the kernels'. Others are left as they are. `generate`
    uses a Cache. Returns the model.

    precision: "exact", or "hf_f32" for angles rounded as transformers rounds them, so
        that results are those of "eager" within the rounding of attention
    """
    model.set_attn_implementation("posenc")
    use_cache(model)
    replace_rotations(model, precision)
    return model
