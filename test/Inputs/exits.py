# ===- exits.py - a command must end with a certain exit code --------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# exits.py CODE COMMAND...: what the command prints goes through.

import subprocess
import sys

expected = int(sys.argv[1])
code = subprocess.run(sys.argv[2:], timeout=120).returncode
if code != expected:
    sys.exit(f"exit code {code} instead of {expected}: {sys.argv[2:]}")
