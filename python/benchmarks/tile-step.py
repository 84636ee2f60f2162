#!/usr/bin/env python3
# ===- tile-step.py - predicted cycles of a step of attention with AMX -----===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Compiles attention for a CPU with AMX and gives the straight-line code of a step
to llvm-mca. The machine needs no AMX.

The scheduling model knows the ports of vector instructions. It does not know that a
TDPBF16PS occupies the tile unit for 16 cycles, nor that port 5 takes no FMA of 512
bits meanwhile. So its cycles are a prediction to compare two codes by.

    python python/benchmarks/tile-step.py [--dim=128] [--sinks] [--rows=16]
        [--assembly=FILE --function=NAME...]

With 16 rows, the step is that of decode.
"""

import argparse
import pathlib
import re
import subprocess
import tempfile

HEADS, KEY_HEADS = 32, 8


def get_module(dim, sinks):
    query, key = (f"tensor<?x?x{n}x{dim}xbf16>" for n in (HEADS, KEY_HEADS))
    argument = f", %s: tensor<{HEADS}xf32>" if sinks else ""
    group = f"sinks(%s : tensor<{HEADS}xf32>) " if sinks else ""
    return f"""
func.func @f(%q: {query}, %k: {key}, %v: {key}{argument}, %o: {query}) -> {query} {{
  %r = posenc.attention ins(%q, %k, %v : {query}, {key}, {key}) {group}outs(%o : {query})
  return %r : {query}
}}
"""


def get_blocks(assembly):
    """Yields the label and the instructions of each block without branches."""
    label, block = "", []
    for line in assembly.splitlines():
        text = line.split("#")[0].strip()
        name = re.fullmatch(r"([.\w$]+):", text)
        if name or re.match(r"j\w+\s|ret", text):
            yield label, block
            label, block = name[1] if name else label + "+", []
        elif text and not text.startswith("."):
            block.append(text)
    yield label, block


def count(block, word):
    return sum(word in line for line in block)


def find_step(assembly, rows):
    """Returns the shortest block with products and exponentials of so many rows."""
    steps = [
        block
        for _, block in get_blocks(assembly)
        if count(block, "vreduceps") == 2 * rows and count(block, "tdpbf16ps") > 0
    ]
    return min(steps, key=len)


def predict(block, mca):
    command = [mca, "-mtriple=x86_64", "-mcpu=sapphirerapids", "-iterations=100"]
    output = subprocess.run(
        command, input="\n".join(block), text=True, check=True, capture_output=True
    ).stdout
    return int(re.search(r"Total Cycles:\s*(\d+)", output)[1]) / 100


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--sinks", action="store_true")
    parser.add_argument("--rows", type=int, default=32, choices=(16, 32))
    parser.add_argument("--compiler", default="posenc-compile")
    parser.add_argument("--mca", default="llvm-mca-22")
    parser.add_argument("--assembly", help="code of another compiler instead")
    parser.add_argument("--function", nargs="*", help="its blocks, joined to a step")
    options = parser.parse_args()
    if options.assembly:
        blocks = dict(get_blocks(pathlib.Path(options.assembly).read_text()))
        step = [line for name in options.function for line in blocks[name]]
    else:
        with tempfile.TemporaryDirectory() as folder:
            source, target = (pathlib.Path(folder) / name for name in ("f.mlir", "f.s"))
            source.write_text(get_module(options.dim, options.sinks))
            subprocess.run(
                [options.compiler, source, "--target=sapphirerapids", "--emit=asm", "-o", target],
                check=True,
            )
            step = find_step(target.read_text(), options.rows)
    cycles = predict(step, options.mca)
    products = count(step, "tdpbf16ps")
    print(
        f"{len(step)} instructions, {products} products, {cycles:.0f} cycles predicted, "
        f"{16 * products / cycles:.2f} of the tile unit"
    )


if __name__ == "__main__":
    main()
