#!/usr/bin/env python3
# ===- check-sentences.py - lengths of sentences ----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: check-sentences.py ROOT [FILE...]
#
# Checks that sentences of the given Markdown files, or of all below ROOT, have 40 words
# at most. Tables, code and headings are no sentences. A list of code spans counts as one
# word, and so does a number with the unit or sign behind it. The language reference is
# generated, and not among all files. Prints what is wrong, and exits with
# 1 if anything is.

import os
import re
import sys

MAX_WORDS = 40
# An item of a list begins a paragraph of its own, and so does a row of a table.
ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s")
LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*(?:\([^()]*\))?[^()]*\)|\[[^\]]*\])?")
# A sentence ends with a mark before a space and what may begin the next one: neither
# "e.g. cos" nor "1. x".
END = re.compile(r"(?<=[.!?])[)\"*_]*\s+(?=[A-Z0-9`\"(\[*_\u2018\u201c])")
CODES = re.compile(r"`code`(?:,? (?:and |or )?`code`)+")
NUMBER = re.compile(r"(\d) (?:%|µs|ms|s|ns|[KMGT]i?B|[GT]B/s|bytes|bits|FLOP\S*)(?=[\s,.;:)])")
WORD = re.compile(r"[^\W_]")


def split_paragraphs(text):
    """Yields the number of the first line and the text of each paragraph and item."""
    number, lines, fence = 0, [], None
    for at, line in enumerate([*text.split("\n"), ""], 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        is_code = fence is not None or mark is not None
        if mark and fence is None:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = None
        is_text = not (is_code or not line.strip() or re.match(r"\s*(\||#|<|$)", line))
        if lines and (not is_text or ITEM.match(line)):
            yield number, " ".join(lines)
            lines = []
        if is_text:
            number = number if lines else at
            item = ITEM.match(line)
            lines.append(line[item.end():].strip() if item else line.strip())


def check(path):
    """Yields a line, the number of words and the start of each sentence that is too long."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for number, paragraph in split_paragraphs(text):
        # A code span is one word, whatever its punctuation.
        paragraph = re.sub(r"(`+).+?\1", "`code`", LINK.sub(r"\1", paragraph))
        paragraph = NUMBER.sub(r"\1", CODES.sub("`code`", paragraph))
        for sentence in END.split(paragraph):
            words = [word for word in sentence.split() if WORD.search(word)]
            if len(words) > MAX_WORDS:
                yield number, len(words), " ".join(words[:8])


def find_files(root):
    reference = os.path.join(root, "dialect", "README.md")
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders
                            if not name.startswith((".", "build", "install", "venv")))
        yield from (os.path.join(folder, name) for name in sorted(names)
                    if name.endswith(".md") and os.path.join(folder, name) != reference)


def main():
    root, *files = sys.argv[1:]
    count = 0
    for path in files or find_files(root):
        for number, words, start in check(path):
            print(f"{os.path.relpath(path, root)}:{number}: a sentence of {words} words, "
                  f"expected {MAX_WORDS} at most: {start} ...")
            count += 1
    if not count:
        print("all sentences are short enough")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
