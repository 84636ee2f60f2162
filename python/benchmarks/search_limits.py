# ===- search_limits.py - programs that do not end -------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The seconds that a program of a search may take. run-searches.py waits longer for a batch
(GRACE), so that a compiler or a kernel that hangs is reported before the batch is ended.
"""

import contextlib
import faulthandler
import os
import signal

# Twice this is less than the seconds of a program, of which some compile twice. A variable
# of the environment shortens it for tests.
COMPILER_SECONDS = float(os.environ.get("POSENC_SEARCH_SECONDS", 50))
# The import of Inductor, which each program of torch.compile waits for, takes 15 s alone.
PROGRAM_SECONDS = 2.4 * COMPILER_SECONDS
# For the search of a smaller program. The wrong one is printed before.
SHRINK_SECONDS = 600


@contextlib.contextmanager
def end_search():
    """Ends the whole search with 1 if the context takes too long, after a trace that names
    the call. Works in native code, too."""
    faulthandler.dump_traceback_later(PROGRAM_SECONDS, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def limit_child():
    """Lets a signal end this process, the child of a search, if it takes too long."""
    signal.setitimer(signal.ITIMER_REAL, PROGRAM_SECONDS)


def extend_limit():
    """Gives a process that has a limit the seconds of SHRINK_SECONDS."""
    if any(signal.getitimer(signal.ITIMER_REAL)):
        signal.setitimer(signal.ITIMER_REAL, SHRINK_SECONDS)


def describe_status(status):
    """Says how a child ended, by the status of os.waitpid()."""
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return "the process does not end"
    return f"the process ended with status {status}"
