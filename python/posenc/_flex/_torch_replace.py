# ===- _torch_replace.py - PyTorch's flex_attention replaced ---------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""`posenc.torch.replace_flex_attention`."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.attention import flex_attention as module

from .._errors import CompileWarning, Error
from . import _torch_compile
from ._attention import flex_attention
from ._block_mask import create_block_mask

_original = module.flex_attention
_original_create = module.create_block_mask
_reported: set[str] = set()


def _report(error: Error) -> None:
    text = f"PyTorch's own kernel is used: {error}"
    if text not in _reported:
        _reported.add(text)
        warnings.warn(text, CompileWarning, stacklevel=3)


@functools.wraps(_original)
def _replaced(query, key, value, *arguments, **keywords):
    if torch.compiler.is_dynamo_compiling():
        # Calls that are not supported become PyTorch's where they are differentiated.
        return flex_attention(query, key, value, *arguments, **keywords)
    try:
        return flex_attention(query, key, value, *arguments, **keywords)
    except Error as error:
        _report(error)
        return _original(query, key, value, *arguments, **keywords)


@functools.wraps(_original_create)
def _replaced_create(*arguments, **keywords):
    if torch.compiler.is_dynamo_compiling():
        return _original_create(*arguments, **keywords)
    return create_block_mask(*arguments, **keywords)


def _exchange(old: Any, new: Any) -> None:
    """Binds the names of all modules that mean an object to another one."""
    for one in list(sys.modules.values()):
        if one is None or getattr(one, "__name__", "").startswith("posenc."):
            continue
        for name, value in list(vars(one).items()) if hasattr(one, "__dict__") else ():
            if value is old:
                setattr(one, name, new)


def _exchange_compiled(function: Callable | None) -> None:
    """Sets what transformers calls in place of its own compiled flex_attention."""
    used = sys.modules.get("transformers.integrations.flex_attention")
    wrapper = getattr(used, "WrappedFlexAttention", None)
    if wrapper is None:
        return
    original = wrapper.__dict__.get("_posenc_original") or (wrapper.__init__,
                                                            wrapper.__call__)
    wrapper._posenc_original = original
    if function is None:
        wrapper.__init__, wrapper.__call__ = original
        wrapper._is_flex_compiled = False
    else:
        wrapper.__init__ = lambda self, training: None
        wrapper.__call__ = lambda self: function


def replace_flex_attention(enable: bool = True) -> None:
    """Makes PyTorch's own `flex_attention` and `create_block_mask` call those of Posenc,
    in all modules that are loaded, transformers among them, and in graphs of
    torch.compile. Calls that Posenc does not support are made by PyTorch, with a warning
    that says why.

    enable: False restores PyTorch's functions

    There are no errors.
    """
    pairs = [(_original, _replaced), (_original_create, _replaced_create)]
    for old, new in pairs:
        _exchange(*((old, new) if enable else (new, old)))
    _exchange_compiled(_replaced if enable else None)
    _torch_compile.set_replaces_all(enable)
