#!/usr/bin/env python3
# ===- check-files.py - licence headers, ends of lines, sizes --------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: check-files.py ROOT [FILE...]
#
# Checks the given files, or all below ROOT:
#   - source files have the licence header;
#   - text files end with one line break, and lines have no trailing whitespace, tabs
#     (except in makefiles) or carriage returns;
#   - C++ and Python files have 800 lines at most.
# Prints what is wrong, and exits with 1 if anything is.

import os
import sys

SOURCES = (".c", ".cmake", ".cpp", ".def", ".h", ".py", ".sh", ".S", ".td")
TEXTS = (*SOURCES, ".json", ".md", ".mlir", ".test", ".toml", ".txt", ".yaml", ".yml")
# Trailing spaces are allowed in tests: they are parts of FileCheck's patterns.
PATTERNS = (".mlir", ".test")
# Folders that are not of the sources, by the start of their names.
SKIPPED = ("build", ".git", ".cache", ".mypy", ".ruff", ".venv", "__pycache__", "install")
KEPT = (".github",)
LICENCE = "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
MAX_LINES = 800


def find_files(root):
    for folder, folders, names in os.walk(root):
        # test/install is a folder of tests, DIR/install of an installed copy.
        at_root = os.path.samefile(folder, root)
        folders[:] = sorted(
            name for name in folders
            if name in KEPT or not name.startswith(SKIPPED)
            or (name == "install" and not at_root))
        for name in sorted(names):
            yield os.path.join(folder, name)


def check(path):
    """Yields a pair of a line number and a message for each fault of a file."""
    if not path.endswith(TEXTS) or os.path.islink(path):
        return
    with open(path, "rb") as file:
        data = file.read()
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        yield 1, f"expected UTF-8: {error}"
        return
    lines = text.split("\n")
    if path.endswith(SOURCES) and text and LICENCE not in "\n".join(lines[:12]):
        yield 1, "expected the licence header of the other files"
    if text and (not text.endswith("\n") or text.endswith("\n\n")):
        yield len(lines), "expected one line break at the end"
    if path.endswith((".cpp", ".h", ".py")) and len(lines) > MAX_LINES + 1:
        yield MAX_LINES + 1, f"expected {MAX_LINES} lines at most; split the file"
    for number, line in enumerate(lines, 1):
        if "\r" in line:
            yield number, "carriage return"
        elif line != line.rstrip() and not path.endswith(PATTERNS):
            yield number, "trailing whitespace"
        if "\t" in line and not path.endswith(PATTERNS):
            yield number, "tab"


def main():
    root, *files = sys.argv[1:]
    count = 0
    for path in files or find_files(root):
        for number, message in check(path):
            print(f"{os.path.relpath(path, root)}:{number}: {message}")
            count += 1
    if not count:
        print("all files are in order")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
