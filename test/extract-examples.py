# ===- extract-examples.py - MLIR examples of a Markdown page --------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===-----------------------------------------------------------------------===#
#
# Prints every ```mlir block of a page as a separate module, for posenc-opt
# --split-input-file. A block with an attribute becomes a module with it.

import re
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        page = file.read()
    examples = re.findall(r"^```mlir\n(.*?)^```$", page,
                          re.MULTILINE | re.DOTALL)
    modules = []
    for example in examples:
        if example.startswith("#"):
            example = f"module attributes {{test.attr = {example.strip()}}} {{}}\n"
        modules.append(example)
    print(f"// {len(modules)} examples")
    print("\n// -----\n\n".join(modules), end="")


if __name__ == "__main__":
    main()
