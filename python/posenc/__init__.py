# ===- __init__.py - kernels for positional encodings in Python ------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Kernels for positional encodings and the attention that uses them.

    import numpy as np, posenc
    k = posenc.compile("config.json", dtype="f32")   # of a Hugging Face model
    q, key = k.rope(q, key, positions)               # NumPy, PyTorch or JAX arrays
    help(k)                                          # the functions and their shapes

`posenc.functional` has functions without a config, `posenc.torch` operators for
PyTorch with gradients, `posenc.transformers` an attention for transformers.
`posenc.configs` is the folder of the example configs.
"""

import pathlib

from . import _bridges  # noqa: F401 (it sets what others import later)
from ._errors import CompileError, CompileWarning, Error
from ._array import Array
from ._kernels import Kernels
from ._compile import compile, load
from ._sharding import divide
from ._stablehlo import import_stablehlo
from . import functional
from ._flex import (
    BlockMask, and_masks, create_block_mask, flex_attention, noop_mask, or_masks)

__all__ = ["Array", "BlockMask", "CompileError", "CompileWarning", "Error", "Kernels",
           "and_masks", "compile", "configs", "create_block_mask", "divide",
           "flex_attention", "functional", "import_stablehlo", "load", "noop_mask",
           "or_masks"]


def _find_configs() -> pathlib.Path:
    """Returns the folder of the example configs, which is in the repository where the
    package is not installed."""
    folder = pathlib.Path(__file__).resolve().parent
    installed = folder / "configs"
    return installed if installed.exists() else folder.parents[1] / "examples" / "configs"


configs = _find_configs()


def __getattr__(name: str) -> str:
    # Of the installed package, which is looked for when it is asked for.
    if name == "__version__":
        import importlib.metadata

        return importlib.metadata.version("posenc")
    raise AttributeError(f"module 'posenc' has no attribute '{name}'")
