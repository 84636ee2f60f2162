#!/usr/bin/env python3
# ===- make-model-types.py - the table of model types -----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

"""make-model-types.py PAGE COMPILER [--update]: compares the list of model types in a
page, between the comments `model types` and `end of model types`, with the output of
`posenc-compile --list-models`, or replaces it. Exits with 1 if they differ."""

import re
import subprocess
import sys

LIST = re.compile(r"(<!-- model types -->\n)(.*?)(<!-- end of model types -->)",
                  re.DOTALL)
TITLES = {
    "half, rope, attention, decode": "half pairing",
    "interleaved, rope, attention, decode": "interleaved pairing",
    "half, rope, attention": "half pairing, encoders: no `decode`",
    "interleaved, rope, attention": "interleaved pairing, encoders: no `decode`",
    "half, rope": "half pairing, `sincos` and `rope` only",
    "interleaved, rope": "interleaved pairing, `sincos` and `rope` only",
    "bias, attention, decode": "a bias of the scores instead of a rotation",
}


def make_list(compiler):
    types = {}
    listing = subprocess.run([compiler, "--list-models"], check=True,
                             capture_output=True, text=True).stdout
    for line in listing.splitlines():
        name, kind = line.split(": ")
        types.setdefault(kind, []).append(f"`{name}`")
    text = f"{sum(map(len, types.values()))} types are known:\n\n"
    for kind, title in TITLES.items():
        if kind in types:
            text += f"- {title}: {' '.join(types.pop(kind))}\n"
    assert not types, types
    return text


def main():
    page, compiler, *flags = sys.argv[1:]
    with open(page, encoding="utf-8") as file:
        text = file.read()
    updated, count = LIST.subn(
        lambda match: match[1] + make_list(compiler) + match[3], text)
    if count != 1:
        sys.exit(f"{page}: expected one list of model types, found {count}")
    if "--update" in flags:
        with open(page, "w", encoding="utf-8") as file:
            file.write(updated)
    elif updated != text:
        sys.exit(f"{page}: the model types are not those of posenc-compile: "
                 "run `make docs`")


main()
