# ===- _fork.py - forks while other threads compile --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Keeps locks that other threads hold from staying locked in a forked process.

A fork waits for calls of the compiler, whose locks this package cannot reach. Its own
locks are replaced in the child, so nobody waits for a thread that waits for them.
"""

from __future__ import annotations

import _thread
import os
import threading
import weakref


class _ForkGate:
    """A context for calls of the compiler. Any number of threads may be inside, and
    os.fork() waits until the others have left. No thread may wait for another one
    inside, as that one might fork."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside: list[int] = []  # The threads, as often as they have entered.
        self._forking: list[int] = []  # The threads that are in os.fork().
        self._is_interrupted = False

    def __enter__(self) -> None:
        thread = threading.get_ident()
        with self._condition:
            # A thread that a fork waits for, or that forks itself, may enter again: a
            # signal handler runs within whatever its thread does.
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
            try:
                self._condition.wait()
            except KeyboardInterrupt:
                # Python would ignore an exception here, and fork at once.
                self._is_interrupted = True

    def after_in_parent(self) -> None:
        thread = threading.get_ident()
        if thread not in self._forking:
            return  # The fork had begun when another thread imported this module.
        self._forking.remove(thread)
        self._condition.notify_all()
        self._condition.release()
        if self._is_interrupted:
            self._is_interrupted = False
            _thread.interrupt_main()

    def after_in_child(self) -> None:
        """In the child, there are no other threads."""
        thread = threading.get_ident()
        self._condition = threading.Condition()
        self._inside = [other for other in self._inside if other == thread]
        self._forking = []
        self._is_interrupted = False


class Lock:
    """A lock that is free in a forked process, unless the thread that forked holds it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: int | None = None
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()
        self._owner = threading.get_ident()

    def __exit__(self, *exception) -> None:
        self._owner = None
        self._lock.release()

    def after_in_child(self) -> None:
        if self._owner != threading.get_ident():
            self._lock, self._owner = threading.Lock(), None


fork_gate = _ForkGate()
_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


def _after_in_child() -> None:
    fork_gate.after_in_child()
    for lock in list(_locks):
        lock.after_in_child()


os.register_at_fork(before=fork_gate.before_fork,
                    after_in_parent=fork_gate.after_in_parent,
                    after_in_child=_after_in_child)
