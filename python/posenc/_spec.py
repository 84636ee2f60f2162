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
from collections.abc import Mapping, Sequence


# The compiler writes this in the documentation of a function whose frequencies depend on
# the length in a call.
_LENGTH_DEPENDENT = "frequencies depend on the length"


def is_of_config(spec: str | None) -> bool:
    """Whether kernels are those of a config, so that their names say what they do. A
    module's own function may do anything, whatever it is called."""
    return spec is not None and json.loads(spec)["name"].endswith(".json")


def write_spec(name: str, source: bytes, flags: Sequence[str],
               files: Mapping[str, bytes], functions: Sequence[Mapping],
               on_use: bool) -> str:
    """Returns the string for what is compiled to `functions`, of which their names and
    documentation are read. It has no paths, so it is the same in processes that read
    the same files, and can be compiled where they do not exist. `files` are flags whose
    values are such paths. `on_use`: functions are compiled when they are used."""
    is_config = name.endswith(".json")
    return json.dumps({
        "name": "config.json" if is_config else "module.mlir", "flags": flags,
        "source": _encode(source), "on_use": on_use,
        "files": {flag: _encode(content) for flag, content in files.items()},
        "length_dependent": [
            function["name"] for function in functions
            if is_config and _LENGTH_DEPENDENT in function.get("doc", "")]})


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode()


def has_gradient(spec: str | None, name: str) -> bool:
    """Whether a function is a rotation, whose gradient is a rotation, too."""
    return is_of_config(spec) and (name == "rope" or name.startswith("rope_"))


def is_length_dependent(spec: str, name: str) -> bool:
    """Whether the frequencies of a function follow from the largest position of a call,
    so that positions with the other sign do not rotate back."""
    return name in json.loads(spec)["length_dependent"]


def find_batch(argument: Mapping) -> int | None:
    """Returns the dimension of an argument that is the batch."""
    shape = argument.get("shape", [])
    return shape.index("batch") if "batch" in shape else None


def is_computed_by_element(spec: str, name: str) -> bool:
    """Whether a function computes the results of each element of a batch on its own."""
    return is_of_config(spec) and not is_length_dependent(spec, name)


# The error of such frequencies where a gradient is asked for, after a function's name.
LENGTH_WITHOUT_GRADIENT = (
    "the frequencies depend on the length of the sequences, so the gradient is not "
    "known: compile with rope_length=N")


def is_length_dependent_scaling(scaling: Mapping | None) -> bool:
    """As `is_length_dependent`, of the scaling of `posenc.torch.rope`. Its kernels are
    not known where PyTorch traces a gradient."""
    scaling = scaling or {}
    name = scaling.get("rope_type") or scaling.get("type")
    if name == "dynamic":  # With alpha, the frequencies are the same for all lengths.
        return scaling.get("alpha") is None
    return name in ("longrope", "su")
