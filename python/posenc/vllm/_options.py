# ===- _options.py - options of the plug-in for vLLM -----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The environment variables of the plug-in."""

from __future__ import annotations

import os

from .._errors import Error

_ROTATIONS = ("table", "exact", "off")
# The values of POSENC_VLLM, by what they mean.
_MODES = {"on": ("on", "1", "true", "yes", ""), "off": ("off", "0", "false", "no"),
          "force": ("force",), "require": ("require",), "cuda": ("cuda",)}


def get_rotation() -> str:
    """Returns what rotates queries and keys."""
    rotation = os.environ.get("POSENC_VLLM_ROPE") or _ROTATIONS[0]
    if rotation not in _ROTATIONS:
        raise Error(f"POSENC_VLLM_ROPE is '{rotation}', expected one of "
                    f"{', '.join(_ROTATIONS)}")
    return rotation


def get_mode() -> str:
    """Returns a key of `_MODES`."""
    value = os.environ.get("POSENC_VLLM", "")
    for mode, values in _MODES.items():
        if value.strip().lower() in values:
            return mode
    listed = ", ".join(one for values in _MODES.values() for one in values if one)
    raise Error(f"POSENC_VLLM is '{value}', expected one of {listed}")
