# ===- _ring_call.py - attention to a part of the keys -----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Calls for a part of a sequence's keys, whose results are merged with those of others.
Functions of scores get positions in the sequence in place of indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._dtypes import name_of
from ._calls import prepare
from ._fusion import is_torch
from ._plan import Call


class RingOptions(NamedTuple):
    """The keywords of `ring_attention`."""

    score_mod: Callable | None
    mask_mod: Callable | None
    is_causal: bool
    scale: float | None
    enable_gqa: bool


def prepare_part(query, key, value, positions, key_positions,
                 options: RingOptions) -> Call:
    """Returns the call of a part of the keys, with their positions."""
    score_mod, mask_mod, is_causal, scale, enable_gqa = options
    score = mask = None
    if score_mod is not None:
        def score(s, b, h, i, j):
            return score_mod(s, b, h, positions[b, i], key_positions[b, j])
    if mask_mod is not None or is_causal:
        def mask(b, h, i, j):
            at, key_at = positions[b, i], key_positions[b, j]
            if mask_mod is None:
                return key_at <= at
            seen = mask_mod(b, h, at, key_at)
            return seen & (key_at <= at) if is_causal else seen
    call = prepare(query, key, value, score, None, mask, scale, enable_gqa)
    # On CPUs, keys and values of 16 bits are converted when they are loaded, so that
    # attention of wider queries takes no longer and gives results that are not rounded.
    is_partial = (name_of(query.dtype) in ("bf16", "f16")
                  and not (is_torch(query) and query.is_cuda))
    # An error of one process would leave the others waiting for it.
    return call._replace(signature=call.signature._replace(
        is_partial=is_partial, is_checked=False))


def replace_query(call: Call, query: Any) -> Call:
    """Returns the call with another array of queries."""
    return call._replace(inputs=[query, *call.inputs[1:]])
