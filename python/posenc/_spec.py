# ===- _spec.py - what kernels were compiled from --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""What kernels were compiled from: `Kernels._spec`, which says what functions do."""

from __future__ import annotations

import base64
import json


def is_of_config(spec: str | None) -> bool:
    """Whether kernels are those of a config, so that their names say what they do. A
    module's own function may do anything, whatever it is called."""
    return spec is not None and json.loads(spec)["name"].endswith(".json")


def has_gradient(spec: str | None, name: str) -> bool:
    """Whether a function is a rotation, whose gradient is a rotation, too."""
    return is_of_config(spec) and (name == "rope" or name.startswith("rope_"))


def is_length_dependent(spec: str) -> bool:
    """Whether the frequencies of a config follow from the largest position of a call,
    so that positions with the other sign do not rotate back."""
    fields = json.loads(spec)
    if any(flag.startswith("--rope-length=") for flag in fields["flags"]):
        return False
    return has_length_scaling(base64.b64decode(fields["source"]).decode(errors="replace"))


# The error of such frequencies where a gradient is asked for, after a function's name.
LENGTH_WITHOUT_GRADIENT = ("the frequencies depend on the length of the sequences, so the "
                           "gradient is not known: compile with rope_length=N")


def has_length_scaling(config: str) -> bool:
    """Whether the text of a config names a scaling that depends on the length."""
    return any(f'"{name}"' in config for name in ("dynamic", "longrope", "su"))
