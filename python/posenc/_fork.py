# ===- _fork.py - forks while other threads compile --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Keeps os.fork() from copying locks that other threads hold."""

from __future__ import annotations

import os
import threading


class _ForkGate:
    """Entered by threads that hold locks which a fork must not copy, such as those of
    LLVM: in the child nobody would release them. Any number of threads may be inside,
    and os.fork() waits until they have left."""

    def __init__(self):
        self._condition = threading.Condition()
        self._inside: list[int] = []  # The threads, as often as they have entered.
        self._forking: list[int] = []  # The threads that are in os.fork().

    def __enter__(self) -> None:
        thread = threading.get_ident()
        with self._condition:
            # A fork already waits for a thread that is inside, and may be one of a
            # signal handler of this thread.
            while self._forking and thread not in self._inside + self._forking:
                self._condition.wait()
            self._inside.append(thread)

    def __exit__(self, *exception) -> None:
        with self._condition:
            self._inside.remove(threading.get_ident())
            self._condition.notify_all()

    def before_fork(self) -> None:
        """Keeps the condition locked during the fork."""
        thread = threading.get_ident()
        self._condition.acquire()
        self._forking.append(thread)
        while any(other != thread for other in self._inside):
            self._condition.wait()

    def after_in_parent(self) -> None:
        self._forking.remove(threading.get_ident())
        self._condition.notify_all()
        self._condition.release()

    def after_in_child(self) -> None:
        """In the child there are no other threads, and the lock is not used again."""
        thread = threading.get_ident()
        self._condition = threading.Condition()
        self._inside = [other for other in self._inside if other == thread]
        self._forking = []


fork_gate = _ForkGate()
os.register_at_fork(before=fork_gate.before_fork,
                    after_in_parent=fork_gate.after_in_parent,
                    after_in_child=fork_gate.after_in_child)
