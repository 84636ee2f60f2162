# ===- _once.py - results that are computed once ---------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Results that are computed once."""

from __future__ import annotations

import functools
import threading

_lock = threading.RLock()


def once(function):
    """Caches results; two threads do not compute the same one."""
    cached = functools.lru_cache(maxsize=None)(function)

    @functools.wraps(function)
    def call(*arguments):
        with _lock:
            return cached(*arguments)

    return call
