#!/usr/bin/env python3
# ===- run-reproducers.py - runs the reproducers of docs/upstream.md -------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: run-reproducers.py PAGE TOOLS FOLDER
#
# Writes each code block with a RUN line to a file in FOLDER, runs the command with
# the tools of LLVM in TOOLS, and compares its output with the CHECK lines of the block.

import os
import re
import subprocess
import sys

BLOCK = re.compile(r"^### (.*?)$|^```mlir\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUN = re.compile(r"// RUN: (.*)\n")


def main():
    page, tools, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    environment = {**os.environ, "PATH": tools + os.pathsep + os.environ["PATH"]}
    with open(page, encoding="utf-8") as file:
        text = file.read()
    title, count, failures = "", 0, []
    for heading, block in BLOCK.findall(text):
        title = heading or title
        run = RUN.match(block)
        if not run:
            continue
        count += 1
        path = os.path.join(folder, f"{count}.mlir")
        with open(path, "w", encoding="utf-8") as file:
            file.write(block)
        command = (f"{run[1].replace('%s', path)} > {path}.out 2>&1 && "
                   f"FileCheck --input-file={path}.out {path}")
        if subprocess.run(command, shell=True, env=environment, check=False).returncode:
            failures.append(title)
    print("\n".join(f"{title}: upstream has changed" for title in failures)
          or f"{count} reproducers")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
