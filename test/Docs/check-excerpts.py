#!/usr/bin/env python3
# ===- check-excerpts.py - code on a page is that of the sources ------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: check-excerpts.py PAGE ROOT
#
# A code block after the comment `<!-- from FILE -->` must be lines of the file ROOT/FILE.
# Prints the blocks that are not, and exits with 1 if there are any.

import pathlib
import re
import sys

# A block may contain fences that are indented.
BLOCK = re.compile(r"^<!-- from (\S+) -->\n```\S*\n(.*?\n)```$", re.M | re.S)


def main():
    page, root = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    wrong = 0
    for name, block in blocks:
        text = (root / name).read_text(encoding="utf-8")
        if "\n" + block not in "\n" + text:
            first = block.split("\n")[0]
            print(f"{page.name}: the block '{first}' is not in {name}")
            wrong += 1
    print(f"{len(blocks)} blocks, {wrong} wrong")
    return 1 if wrong or not blocks else 0


if __name__ == "__main__":
    sys.exit(main())
