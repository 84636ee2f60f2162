#!/usr/bin/env python3
# ===- make-model-types.py - the tables of model types and keys -------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

"""make-model-types.py PAGE COMPILER [--update]: compares the list of model types and the
table of keys in a page, between comments such as `model types` and `end of model types`,
with the output of `posenc-compile --list-models` and `--list-keys`, or replaces them.
Exits with 1 if they differ."""

import re
import subprocess
import sys

TITLES = {
    "half, rope, attention, decode": "half pairing",
    "interleaved, rope, attention, decode": "interleaved pairing",
    "half, rope, attention": "half pairing, encoders: no `decode`",
    "interleaved, rope, attention": "interleaved pairing, encoders: no `decode`",
    "half, rope": "half pairing, `sincos` and `rope` only",
    "interleaved, rope": "interleaved pairing, `sincos` and `rope` only",
    "bias, attention, decode": "a bias of the scores instead of a rotation",
}


def run(compiler, flag):
    return subprocess.run([compiler, flag], check=True, capture_output=True,
                          text=True).stdout.splitlines()


def make_list(compiler):
    types = {}
    for line in run(compiler, "--list-models"):
        name, kind = line.split(": ")
        types.setdefault(kind, []).append(f"`{name}`")
    text = f"{sum(map(len, types.values()))} types are known:\n\n"
    for kind, title in TITLES.items():
        if kind in types:
            text += f"- {title}: {' '.join(types.pop(kind))}\n"
    assert not types, types
    return text


def quote(names):
    """Quotes the names of types after "read for" and "error for"."""
    return re.sub(r"(?<=for )[^;]+", lambda match: re.sub(r"[\w-]+", r"`\g<0>`",
                                                          match[0]), names)


def make_table(compiler):
    text = "| key | what it does | no effect | model types |\n|---|---|---|---|\n"
    for line in run(compiler, "--list-keys"):
        key, effect, neutral, types = line.split(" | ")
        effect, neutral = (re.sub(r"'(\w+)'", r"`\1`", text)
                           for text in (effect, neutral))
        neutral = re.sub(r"\b(true|false|[01])\b", r"`\1`", neutral)
        text += f"| `{key}` | {effect} | {neutral} | {quote(types)} |\n"
    return text


PARTS = {"model types": make_list, "keys": make_table}


def main():
    page, compiler, *flags = sys.argv[1:]
    with open(page, encoding="utf-8") as file:
        text = file.read()
    for name, make in PARTS.items():
        part = re.compile(rf"(<!-- {name} -->\n)(.*?)(<!-- end of {name} -->)", re.DOTALL)
        updated, count = part.subn(lambda match, make=make: match[1] + make(compiler)
                                   + match[3], text)
        if count != 1:
            sys.exit(f"{page}: expected one part with the {name}, found {count}")
        if "--update" not in flags and updated != text:
            sys.exit(f"{page}: the {name} are not those of posenc-compile: run `make docs`")
        text = updated
    if "--update" in flags:
        with open(page, "w", encoding="utf-8") as file:
            file.write(text)


main()
