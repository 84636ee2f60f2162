# ===- _background.py - kernels that are compiled while a model loads -------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Compilation beside what the process does otherwise, such as reading weights."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from .._fork import Lock

_lock = Lock()
_pool: ThreadPoolExecutor | None = None
_process = 0  # A process that was forked has no threads of the pool.


def start(function: Callable[..., Any], *arguments: Any) -> Future:
    """Calls a function in a thread, of which there is one for each CPU of the process."""
    global _pool, _process
    with _lock:
        if _pool is None or _process != os.getpid():
            _pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)), "posenc-compile")
            _process = os.getpid()
        return _pool.submit(function, *arguments)


def stop() -> None:
    """Ends the threads when their work is done."""
    global _pool
    with _lock:
        pool, _pool = _pool, None
    if pool is not None and _process == os.getpid():
        pool.shutdown()
