#!/usr/bin/env python3
# ===- run-googletest.py - collects the reasons of skipped tests -----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: run-googletest.py EXECUTABLE ARGUMENTS...
#
# lit runs GoogleTest executables with this script. It passes on the output and the
# exit code, and appends the name and the reason of each skipped test to
# skipped.txt next to the executable, since lit's report has neither.

import os
import re
import subprocess
import sys

SKIP = re.compile(
    r"^\[ RUN +\] (\S+)$(?:(?!^\[ RUN).)*?: Skipped\n(.*?)^\[  SKIPPED \]",
    re.MULTILINE | re.DOTALL)


def main():
    command = sys.argv[1:]
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    sys.stdout.buffer.write(done.stdout)
    sys.stdout.flush()
    name = os.path.basename(command[0])
    lines = [f"{name}: {test}\t{' '.join(reason.split())}\n"
             for test, reason in SKIP.findall(
                 done.stdout.decode(errors="replace"))]
    if lines:
        path = os.path.join(os.path.dirname(command[0]), "skipped.txt")
        with open(path, "a", encoding="utf-8") as file:
            file.write("".join(lines))
    # lit shows exit codes but not signals.
    if done.returncode < 0:
        print(f"the executable was killed by signal {-done.returncode}")
        return 1
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
