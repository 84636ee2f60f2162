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
#   <!-- lines STAGE `text` `text` ... -->
#
# The block has COUNT lines of the stage, from the first line that contains the text;
# or one line for each text, the first that contains it after the line before, with
# values, maps and registers renumbered. Compares every block with the current output
# of the tools, or replaces it with --update.
#
# A STAGE is a value of posenc-compile --emit, for the rotation. For the attention, it
# is `attention-posenc`, `attention-ptx`, or `attention-` and a pass of posenc-to-nvvm.

import difflib
import os
import re
import subprocess
import sys
import tempfile

CONFIG = "examples/configs/llama-3.1-8b.json"
ROPE = ["--kernels=rope", "--dtype=f32", "--target=x86-64-v3"]
ATTENTION = ["--kernels=attention", "--target=cuda:sm_90a"]
PASSES = ["posenc-nest-attention", "convert-posenc-attention-to-gpu"]
WIDTH = 104
EXCERPT = re.compile(
    r"(<!-- (excerpt|lines) ([\w-]+) (?:(\d+) )?(.*?) -->\n```\w+\n)(.*?)(^```$)",
    re.MULTILINE | re.DOTALL)
NAME = re.compile(r"([%#][a-z_]*?)_?(\d*)(?![\w.])")
REGISTERS = ("%", "%r", "%rd", "%p", "%arg")


class Stages:
    """The output of the tools for each stage."""

    def __init__(self, root, compiler):
        self.root, self.compiler = root, compiler
        self.stages = {}

    def get(self, stage):
        """Returns the lines of a stage."""
        if stage not in self.stages:
            with tempfile.TemporaryDirectory() as folder:
                self.make(stage, os.path.join(folder, "out"))
        return self.stages[stage]

    def make(self, stage, output):
        if not stage.startswith("attention-"):
            self.compile(output, *ROPE, f"--emit={stage}")
        elif stage == "attention-ptx":
            output += ".ptx"
            self.compile(output, *ATTENTION)
        else:
            self.compile(output, *ATTENTION, "--emit=posenc")
            if stage != "attention-posenc":
                self.run_passes(output)
                return
        with open(output, encoding="utf-8") as file:
            self.stages[stage] = file.read().splitlines()

    def compile(self, output, *options):
        subprocess.run([self.compiler, os.path.join(self.root, CONFIG), *options,
                        "-o", output], check=True)

    def run_passes(self, module):
        """Adds the stages after the passes."""
        tool = os.path.join(os.path.dirname(self.compiler), "posenc-opt")
        prints = [f"--mlir-print-ir-after={name}" for name in PASSES]
        done = subprocess.run(
            [tool, module, "--posenc-to-nvvm=chip=sm_90a", *prints, "-o", os.devnull],
            check=True, stderr=subprocess.PIPE, text=True)
        _, *parts = done.stderr.split("// -----// IR Dump After ")
        for name, part in zip(PASSES, parts, strict=True):
            assert f"({name})" in part.splitlines()[0], part.splitlines()[0]
            self.stages[f"attention-{name}"] = part.splitlines()


def find(lines, text, begin=0):
    for number in range(begin, len(lines)):
        if text in lines[number]:
            return number
    sys.exit(f"no line contains '{text}'")


def select(lines, texts):
    """Returns the first line that contains the first text, and so on."""
    number, selected = -1, []
    for text in texts:
        number = find(lines, text, number + 1)
        selected.append(lines[number])
    return selected


def renumber(lines):
    """Numbers values, maps and registers in the order in which they appear: other
    numbers would change with code that is not shown."""
    names, counts = {}, {}

    def rename(match):
        name, base = match.group(0), match.group(1)
        if base == "%c":  # A constant's number is its value.
            return name
        if name not in names:
            count = counts[base] = counts.get(base, -1) + 1
            if base in REGISTERS:
                names[name] = f"{base}{count}"
            else:
                names[name] = f"{base}_{count}" if count else base
        return names[name]

    return [NAME.sub(rename, re.sub(r"(%c\d+)_\d+\b", r"\1", line)) for line in lines]


def format_lines(lines):
    """Returns the lines without their common indentation."""
    lines = [line.expandtabs(4) for line in lines]
    margin = min(len(line) - len(line.lstrip()) for line in lines if line)
    return "".join(shorten(line[margin:]) + "\n" for line in lines)


def shorten(line):
    return line if len(line) <= WIDTH else line[:WIDTH - 2].rstrip() + " …"


def main():
    page, root, compiler, *update = sys.argv[1:]
    stages = Stages(root, compiler)

    def replace(match):
        head, kind, stage, count, texts, _, fence = match.groups()
        lines = stages.get(stage)
        texts = re.findall(r"`(.*?)`", texts, re.DOTALL)
        if kind == "excerpt":
            begin = find(lines, texts[0])
            lines = lines[begin:begin + int(count)]
        else:
            lines = renumber(select(lines, texts))
        return head + format_lines(lines) + fence

    with open(page, encoding="utf-8") as file:
        old = file.read()
    new = EXCERPT.sub(replace, old)
    count = len(EXCERPT.findall(old))
    if not count:
        sys.exit(f"{page} has no excerpt")
    if update:
        with open(page, "w", encoding="utf-8") as file:
            file.write(new)
    elif new != old:
        sys.stdout.writelines(difflib.unified_diff(
            old.splitlines(True), new.splitlines(True), "page", "compiler"))
        sys.exit("run `make docs`, which writes the excerpts")
    print(f"{count} excerpts")


if __name__ == "__main__":
    main()
