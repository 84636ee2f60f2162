#!/usr/bin/env python3
# ===- check-readmes.py - files that a README does not name ----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: check-readmes.py FOLDER
#
# The README of a folder with source files names each of them, by its name or by a
# pattern such as `Attention*.cpp`, and no others. Prints every file and every name that
# breaks this, here and in the folders below. Exits with 1 if there is one.

import fnmatch
import os
import re
import sys

NAME = re.compile(r"`([A-Za-z0-9*]+\.(?:cpp|h))`")


def check(top):
    """Yields a message for each file without a name, and each name without a file."""
    for folder, folders, files in os.walk(top):
        folders.sort()
        sources = sorted(name for name in files if name.endswith(".cpp"))
        readme = os.path.join(folder, "README.md")
        if not sources:
            continue
        if not os.path.exists(readme):
            yield f"{folder}: has no README.md"
            continue
        with open(readme, encoding="utf-8") as file:
            names = NAME.findall(file.read())
        for source in sources:
            if not any(fnmatch.fnmatch(source, name) for name in names):
                yield f"{readme}: does not name {source}"
        for name in names:
            if not fnmatch.filter(files, name):
                yield f"{readme}: names {name}, which is not there"


def main():
    found = list(check(sys.argv[1]))
    print("\n".join(found) or "all files are in a README")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
