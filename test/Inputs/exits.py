# ===- exits.py - a command must end with a certain exit code --------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# exits.py [--tries=N] CODE COMMAND...: what the command prints goes through. With
# --tries, a command that exits with 0 instead runs again, N times at most: for faults
# that depend on the order of threads.

import subprocess
import sys

arguments = sys.argv[1:]
tries = 1
if arguments[0].startswith("--tries="):
    tries = int(arguments.pop(0).removeprefix("--tries="))
expected, *command = arguments
for _ in range(tries):
    code = subprocess.run(command, timeout=120).returncode
    if code != 0:
        break
if code != int(expected):
    sys.exit(f"exit code {code} instead of {expected}: {command}")
