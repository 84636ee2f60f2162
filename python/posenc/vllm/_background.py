# ===- _background.py - kernels that are compiled while a model loads -------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Compilation beside what the process does otherwise, such as reading weights."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

from .._fork import Lock

_lock = Lock()
_pool: ThreadPoolExecutor | None = None
_process = 0  # A process that was forked has no threads of the pool.


def _find_cpus() -> set[int]:
    """Returns the CPUs of all threads of the process: vLLM binds each thread of PyTorch to
    a CPU of its own, the one that loads the model, too."""
    torch.ones(1 << 17).add_(1)  # Starts the threads of PyTorch.
    cpus = os.sched_getaffinity(0)
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):  # It has ended.
            cpus |= os.sched_getaffinity(int(thread))
    return cpus


def _bind(cpus: set[int]) -> None:
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, cpus)


def start(function: Callable[..., Any], *arguments: Any) -> Future:
    """Calls a function in a thread, of which there is one for each CPU of the process."""
    global _pool, _process
    with _lock:
        if _pool is None or _process != os.getpid():
            cpus = _find_cpus()
            _pool = ThreadPoolExecutor(len(cpus), "posenc-compile", _bind, (cpus,))
            _process = os.getpid()
        return _pool.submit(function, *arguments)


def stop() -> None:
    """Ends the threads when their work is done."""
    global _pool
    with _lock:
        pool, _pool = _pool, None
    if pool is not None and _process == os.getpid():
        pool.shutdown()
