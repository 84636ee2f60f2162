# ===- _lru.py - results of the most recent calls ---------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Results of a function for the arguments that it was called with last."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable

from .._fork import Lock

_lock = Lock()


def recent(size: int) -> Callable:
    """Caches the results of a function of one argument, the last `size` that were asked
    for. Others are forgotten, and freed when nothing else refers to them. Threads that
    need the same result wait for each other; the others do not wait."""
    def decorate(function: Callable) -> Callable:
        results: OrderedDict = OrderedDict()
        locks: dict = {}

        def find(argument):
            result = results[argument]
            try:
                results.move_to_end(argument)
            except KeyError:  # Another thread has dropped it.
                pass
            return result

        @functools.wraps(function)
        def call(argument):
            try:
                return find(argument)
            except KeyError:
                pass
            with _lock:
                lock = locks.setdefault(argument, Lock())
            with lock:
                if argument in results:
                    return results[argument]
                result = function(argument)
                with _lock:
                    results[argument] = result
                    locks.pop(argument, None)
                    while len(results) > size:
                        results.popitem(last=False)
                return result

        call.results = results  # type: ignore[attr-defined]
        return call

    return decorate
