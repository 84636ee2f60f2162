# ===- _stablehlo.py - functions that JAX exports ---------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Functions that JAX exports, as MLIR for `posenc.compile`."""

from __future__ import annotations

from typing import Any

from ._errors import Error


def import_stablehlo(exported: Any) -> str:
    """Returns the module of StableHLO that `jax.export` made, for `posenc.compile`.

    exported: a `jax.export.Exported`, or the bytes of its `serialize()`, which need JAX

    The module has one function, `main`, with the arrays of the function's arguments, flattened,
    without those that it does not use.
    Rotary embeddings and attention in it become fused kernels when it is compiled. Sizes may
    be symbolic, as of `jax.export.symbolic_shape`: calls check that the sizes of their arrays
    fit the shapes and constraints of the export.

    Raises Error for bytes that are no export, and for an export for several platforms.

        exported = jax.export.export(jax.jit(function))(*arguments)
        kernels = posenc.compile(posenc.import_stablehlo(exported))
        kernels.main(*arrays)
    """
    if isinstance(exported, (bytes, bytearray)):
        try:
            from jax import export
        except ImportError:
            raise Error("an artifact of jax.export is read by JAX, which is not "
                        "installed: pip install jax") from None
        try:
            exported = export.deserialize(bytearray(exported))
        except Exception as error:  # Of its reader of flatbuffers.
            raise Error(f"not an artifact of jax.export: {error}") from None
    if not callable(getattr(exported, "mlir_module", None)):
        raise TypeError("expected a jax.export.Exported or its bytes, got "
                        f"{type(exported).__name__}")
    platforms = getattr(exported, "platforms", ())
    if len(platforms) > 1:
        raise Error(f"the export is for {', '.join(platforms)}: export it for one platform")
    return exported.mlir_module()
