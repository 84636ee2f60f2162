# ===- _array.py - the type of arrays --------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The type of arrays in type hints."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Array(Protocol):
    """An array of NumPy, PyTorch, JAX, CuPy or any other that implements DLPack, on the
    CPU or on a CUDA device. Its memory is not copied."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions, from the outermost to the innermost."""
        ...

    @property
    def dtype(self) -> Any:
        """The type of the elements, as an object of the framework."""
        ...

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


Array.__module__ = "posenc"  # It is printed by help().
