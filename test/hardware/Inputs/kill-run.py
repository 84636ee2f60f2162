# ===- kill-run.py - kills a run of posenc-on-gpu in a form ----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""usage: kill-run.py TABLE COMMAND...

Kills the command by SIGKILL after its table has a row and a process of another form runs.
Prints the last line of the table, and the number of processes of forms that are left."""

import pathlib
import subprocess
import sys
import time

TABLE = pathlib.Path(sys.argv[1])
LIMIT = 120


def find_forms(parent):
    """Returns the processes that `parent` has started, or those in its list."""
    path = pathlib.Path(f"/proc/{parent}/task/{parent}/children")
    return [int(number) for number in path.read_text(encoding="utf-8").split()]


def is_alive(number):
    try:
        status = pathlib.Path(f"/proc/{number}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def wait(condition):
    end = time.monotonic() + LIMIT
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)


process = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL)
wait(lambda: TABLE.exists() and "| right |" in TABLE.read_text(encoding="utf-8"))
wait(lambda: find_forms(process.pid))
forms = find_forms(process.pid)
process.kill()
process.wait()
wait(lambda: not any(map(is_alive, forms)))
print(TABLE.read_text(encoding="utf-8").splitlines()[-1])
print(sum(map(is_alive, forms)), "processes of", len(forms))
