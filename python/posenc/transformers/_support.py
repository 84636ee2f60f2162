# ===- _support.py - models that the attention does not fit ----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Which models the attention "posenc" is wrong for, by the code of their layers."""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any

import torch
import transformers

from .._once import once

# What layers pass to their attention that the kernels do not have: a bias of each pair
# of tokens, keys that an index selects, and sinks of each query.
UNKNOWN_INPUTS = ("position_bias", "indices", "block_indices", "sinks")

# Files of models that do not support "sdpa", but only pass masks on.
_PASS_ON = ("modeling_gemma2", "modeling_gpt_oss")


@once
def has_masks_of_bool(kind: type, config: type) -> bool:
    """Whether what the models of a layer's file do with masks is right for masks of
    bool, as in those that support "sdpa". Files may have models of other configs, such
    as encoders of audio."""
    if kind.__module__.split(".")[-1] in _PASS_ON:
        return True
    models: list[Any] = [
        member for member in vars(sys.modules[kind.__module__]).values()
        if isinstance(member, type) and member.__module__ == kind.__module__
        and issubclass(member, transformers.PreTrainedModel)]
    same = [model for model in models if model.config_class is config]
    return all(model._supports_sdpa for model in same or models)


def get_config_type(module: torch.nn.Module) -> type:
    return type(getattr(module, "config", None))


@once
def _find_obstacle(kind: type, config: type) -> str | None:
    """Returns why the attention is wrong for layers of a type."""
    try:
        source = inspect.getsource(kind.forward)  # type: ignore[attr-defined]
    except (OSError, TypeError):
        return None
    call = re.search(r"= attention_interface\((.*?)\n        \)", source, re.S)
    if call is None:
        return None
    for name in UNKNOWN_INPUTS:
        if re.search(rf"\b{name}=", call[1]):
            return f"{kind.__name__} has '{name}', which the kernels do not"
    # Either a keyword, or the argument after the module, q, k and v.
    mask = re.search(r"attention_mask=([^,]+),", call[1]) or re.match(
        r"(?:\s*[^,=]+,){4}\s*([^,=]+),", call[1])
    if mask is not None and not re.fullmatch(r"(\w+_)?attention_mask|causal_mask|None",
                                             mask[1].strip()):
        return f"{kind.__name__} has a mask of its own, '{mask[1].strip()}'"
    if (re.search(r"^ +attention_mask = ", source, re.M)
            and not has_masks_of_bool(kind, config)):
        return f"{kind.__name__} changes masks as masks of floats"
    return None


def find_obstacle(model: torch.nn.Module) -> str | None:
    """Returns why the attention is wrong for a layer of a model, if it is."""
    kinds = {(type(module), get_config_type(module)): None for module in model.modules()}
    return next(filter(None, (_find_obstacle(*kind) for kind in kinds)), None)
