# ===- _errors.py - exceptions of the package ------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The exceptions and warnings of the package."""


class Error(ValueError):
    """A call or a compilation failed. The text is that of the C interface."""

    __module__ = "posenc"


class CompileError(Error):
    """The compiler rejected its input or its options."""

    __module__ = "posenc"


class CompileWarning(UserWarning):
    """The compiler warns, for example of a function that is slow."""

    __module__ = "posenc"
