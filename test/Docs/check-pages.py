#!/usr/bin/env python3
# ===- check-pages.py - checks links and tables of Markdown pages ----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: check-pages.py ROOT
#
# Checks every relative link of every Markdown page below ROOT: the file or
# folder must exist and have the heading that the anchor names. Links to other
# sites are not checked. Every table has rows.

import os
import re
import sys

LINK = re.compile(r"\]\(([^)\s]+)\)")
# The line below the header of a table, without a row behind it.
EMPTY_TABLE = re.compile(r"^(\|.*\|)\n\|[-:| ]+\|\n(?!\|)", re.M)
SKIPPED = ("build", ".git")


def pages(root):
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(SKIPPED)]
        for name in sorted(names):
            if name.endswith(".md"):
                yield os.path.join(folder, name)


def text_of(page):
    """Returns the page without code blocks, where brackets are no links."""
    with open(page, encoding="utf-8") as file:
        text = re.sub(r"^```.*?^```$", "", file.read(), flags=re.M | re.S)
    return text


def anchors(page):
    """Returns the anchors of the headings, as GitHub generates them."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text_of(page), re.M):
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        name = name.replace(" ", "-")
        unique, count = name, 0
        while unique in found:
            count += 1
            unique = f"{name}-{count}"
        found.add(unique)
    return found


def check(root):
    for page in pages(root):
        where = os.path.relpath(page, root)
        for table in EMPTY_TABLE.finditer(text_of(page) + "\n"):
            yield f"{where}: {table[1]}: the table has no rows"
        code = r"`[^`\n]*`"
        for link in LINK.findall(re.sub(code, "", text_of(page))):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = os.path.normpath(
                os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(target):
                yield f"{where}: {link}: there is no such file"
            elif anchor and anchor not in anchors(target):
                yield f"{where}: {link}: there is no such heading"


def main():
    problems = sorted(check(sys.argv[1]))
    print("\n".join(problems) or "all links and tables are valid")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
