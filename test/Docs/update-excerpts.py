#!/usr/bin/env python3
# ===- update-excerpts.py - updates the IR in the documentation ------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: update-excerpts.py PAGE SOURCE_ROOT COMPILER [--update]
#
# A comment describes the contents of the code block after it:
#
#   <!-- excerpt STAGE COUNT `text` -->
#
# STAGE is a value of posenc-compile --emit. The block has COUNT lines of that
# output, from the first line that contains the text. Compares every block with
# the current output of posenc-compile, or replaces it with --update.

import difflib
import os
import re
import subprocess
import sys
import tempfile

COMMAND = ["examples/configs/llama-3.1-8b.json", "--kernels=rope",
           "--dtype=f32", "--target=x86-64-v3"]
WIDTH = 104
EXCERPT = re.compile(
    r"(<!-- excerpt (\w+) (\d+) `(.*?)` -->\n```\w+\n)(.*?)(^```$)",
    re.MULTILINE | re.DOTALL)


def compile_stage(root, compiler, stage):
    """Returns the lines that posenc-compile --emit=STAGE writes."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "out")
        subprocess.run(
            [compiler, os.path.join(root, COMMAND[0]), *COMMAND[1:], f"--emit={stage}",
             "-o", output], check=True)
        with open(output, encoding="utf-8") as file:
            return file.read().splitlines()


def cut(lines, count, text):
    """Returns `count` lines from the first one that contains `text`, without their
    common indentation."""
    begin = next((i for i, line in enumerate(lines) if text in line), None)
    if begin is None:
        sys.exit(f"no line contains '{text}'")
    lines = [line.expandtabs(4) for line in lines[begin:begin + count]]
    margin = min(len(line) - len(line.lstrip()) for line in lines if line)
    return "".join(shorten(line[margin:]) + "\n" for line in lines)


def shorten(line):
    return line if len(line) <= WIDTH else line[:WIDTH - 2].rstrip() + " …"


def main():
    page, root, compiler, *update = sys.argv[1:]
    stages = {}

    def replace(match):
        head, stage, count, text, _, fence = match.groups()
        if stage not in stages:
            stages[stage] = compile_stage(root, compiler, stage)
        return head + cut(stages[stage], int(count), text) + fence

    with open(page, encoding="utf-8") as file:
        old = file.read()
    new = EXCERPT.sub(replace, old)
    if not stages:
        sys.exit(f"{page} has no excerpt")
    if update:
        with open(page, "w", encoding="utf-8") as file:
            file.write(new)
    elif new != old:
        sys.stdout.writelines(difflib.unified_diff(
            old.splitlines(True), new.splitlines(True), "page", "compiler"))
        sys.exit("run `make docs`, which writes the excerpts")
    print(f"{len(EXCERPT.findall(new))} excerpts of {len(stages)} stages")


if __name__ == "__main__":
    main()
