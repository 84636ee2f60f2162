# ===- raised.py - what posenc-raise finds in graphs ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Counts the rotations and attentions that are found in each graph of folders.

    python python/benchmarks/raised.py build/bin/posenc-compile FOLDER...

Graphs are ONNX models, and MLIR of linalg, StableHLO or TTIR. The table has, for each,
the tensors that are rotated, the attentions, softmax that remains, and the error or why
something that looks like one of them was left alone.
"""

import pathlib
import re
import subprocess
import sys
import tempfile


def inspect(compiler, path, folder):
    """Returns the columns of a graph."""
    output = pathlib.Path(folder) / "raised.mlir"
    done = subprocess.run(
        [compiler, str(path), "--emit=posenc", "--remarks", "-o", str(output)],
        capture_output=True, text=True)
    if done.returncode:
        error = next((line for line in done.stderr.splitlines() if "error: " in line), "?")
        return ["", "", "", error.split("error: ")[-1]]
    text = output.read_text(encoding="utf-8")
    # One operation may rotate several tensors.
    rotated = sum(match.count("%") for match in
                  re.findall(r"posenc\.(?:rotate|rope) [^(]*ins\(([^:]*):", text))
    reasons = sorted(set(re.findall(r"looks like [^\"]*", done.stderr)))
    return [rotated, text.count("posenc.attention"), text.count("linalg.softmax"),
            "; ".join(reasons)]


def main():
    compiler, *folders = sys.argv[1:]
    print("| graph | rotations | attentions | softmax left | left alone |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for source in folders:
            for path in sorted(pathlib.Path(source).rglob("*")):
                if path.suffix in (".mlir", ".onnx"):
                    columns = inspect(compiler, path, folder)
                    print("|", path.name, "|", " | ".join(map(str, columns)), "|")


if __name__ == "__main__":
    main()
