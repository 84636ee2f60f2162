#!/usr/bin/env python3
# ===- compile-alone.py - compiles files without precompiled headers -------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: compile-alone.py [-j JOBS] BUILD_DIR [REGEX]
#
# Parses each C++ file of compile_commands.json whose path matches REGEX without the
# precompiled header, which hides includes that the file lacks. Prints each file and
# the errors, and exits with 1 if there is one. All files take an hour of one core.

import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys

# The options that CMake adds for a precompiled header, with Clang.
HEADER = re.compile(r"-Xclang -include-pch -Xclang \S+ -Xclang -include -Xclang \S+")
OUTPUT = re.compile(r" -o \S+ -c ")


def parse(entry):
    """Returns the compiler's output, which is empty if the file is self-contained."""
    command = HEADER.sub("", OUTPUT.sub(" -fsyntax-only ", entry["command"]))
    result = subprocess.run(shlex.split(command), cwd=entry["directory"], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return result.stdout if result.returncode else ""


def main():
    parser = argparse.ArgumentParser(description="Compiles files without their PCH.")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("build")
    parser.add_argument("regex", nargs="?", default="")
    options = parser.parse_args()
    with open(os.path.join(options.build, "compile_commands.json"),
              encoding="utf-8") as file:
        entries = {entry["file"]: entry for entry in json.load(file)
                   if HEADER.search(entry["command"])
                   and re.search(options.regex, entry["file"])}
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for path, output in zip(entries, pool.map(parse, entries.values())):
            print(f"{'FAIL' if output else 'PASS'}: {path}\n{output}", end="", flush=True)
            failed += bool(output)
    print(f"{len(entries) - failed} self-contained, {failed} not")
    return 1 if failed or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
