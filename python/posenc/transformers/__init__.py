# ===- __init__.py - models of transformers --------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Models of transformers on kernels of Posenc, on the CPU or a CUDA device, without
gradients.

    import posenc.transformers
    model.set_attn_implementation("posenc")   # attention only, of any model
    posenc.transformers.enable(model)         # and rotations, where supported, and Cache
    posenc.transformers.warmup(model)         # compiles before the first call

The import registers the attention "posenc". `Cache` appends keys and values in place.
"""

from __future__ import annotations

import warnings
from typing import TypeVar

import transformers

from .._errors import Error
from ._attention import attention
from ._cache import Cache, restore_cache, use_cache
from ._rotations import replace_rotations, restore_rotations
from ._support import find_obstacle
from ._warmup import warmup

__all__ = ["Cache", "attention", "disable", "enable", "warmup"]

_Model = TypeVar("_Model", bound=transformers.PreTrainedModel)


def enable(model: _Model, precision: str = "exact") -> _Model:
    """Runs a model's attention on Posenc, and its rotations if they are of a known kind:
    one module of rotary embeddings, whose tables and pairing (of halves or of
    neighbours) are compared with the kernels'. Others are left as they are, with a
    warning; so is the attention of models such as Falcon, which transformers cannot
    replace, and of those whose layers have inputs that the kernels do not. `generate`
    uses a Cache where it would use a DynamicCache. Returns the model.

    precision: "exact", or "hf_f32" for angles rounded as transformers rounds them, so
        that results are those of "eager" within the rounding of attention

    Raises Error for another precision. What a model keeps is a warning.
    """
    if precision not in ("exact", "hf_f32"):
        raise Error(f"unknown precision '{precision}': expected 'exact' or 'hf_f32'")
    obstacle = find_obstacle(model)
    if obstacle is None:
        model.set_attn_implementation("posenc")
        if model.config._attn_implementation != "posenc":
            obstacle = "it is not one that transformers can replace"
    if obstacle is not None:
        warnings.warn(f"{type(model).__name__} keeps its attention: {obstacle}",
                      stacklevel=2)
    use_cache(model)
    reason = replace_rotations(model, precision)
    if reason:
        warnings.warn(f"{type(model).__name__} keeps its rotations: {reason}",
                      stacklevel=2)
    return model


def disable(model: _Model, attention: str = "sdpa") -> _Model:
    """Undoes `enable`: the model has its rotations and caches again. Returns the model.

    attention: the attention of transformers that it has then, such as "eager". Errors for
        an unknown one are those of transformers
    """
    model.set_attn_implementation(attention)
    restore_cache(model)
    restore_rotations(model)
    return model
