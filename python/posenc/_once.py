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

from ._fork import Lock

_lock = Lock()


def once(function):
    """Caches results. Threads that need the same one wait for each other; the others do
    not wait."""
    results: dict = {}
    locks: dict = {}

    @functools.wraps(function)
    def call(*arguments):
        if arguments in results:
            return results[arguments]
        with _lock:
            lock = locks.setdefault(arguments, Lock())
        with lock:
            if arguments not in results:
                results[arguments] = function(*arguments)
            return results[arguments]

    return call
