# ===- measured.py - memory and time of a process -----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Runs a command, and says how much memory and time it takes."""

import pathlib
import resource
import subprocess
import sys
import time

MIB = 1 << 20


def get_anonymous_bytes(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in text.splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    return 0


def run(command):
    """Runs a command. Returns its peak of anonymous memory, CPU and elapsed seconds."""
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = 0
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            peak = max(peak, get_anonymous_bytes(process.pid))
            time.sleep(0.01)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        sys.exit(f"{command[0]}: exit status {process.returncode}")
    return (peak, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime,
            time.monotonic() - start)
