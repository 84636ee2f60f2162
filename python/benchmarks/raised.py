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


def count_found(text):
    """Returns the numbers of rotated tensors and of attentions in the text of a module."""
    # One operation may rotate several tensors.
    rotated = sum(match.count("%") for match in
                  re.findall(r"posenc\.(?:rotate|rope) [^(]*ins\(([^:]*):", text))
    return rotated, text.count("posenc.attention")


def compare(result, expected):
    """Returns the largest difference of two arrays of NumPy, relative to the largest
    expected number. It is NaN if a number is, and raises ValueError for two shapes."""
    if result.shape != expected.shape:
        raise ValueError(f"shape {result.shape}, expected {expected.shape}")
    if not expected.size:
        return 0.0
    difference = abs(result.astype(float) - expected.astype(float)).max()
    return float(difference / max(abs(expected.astype(float)).max(), 1e-30))


def judge(found, expected, difference, tolerance):
    """Returns the columns for the rotations and attentions that are found, for the
    verdict on a row of a table, and for the difference, and whether the row is right."""
    columns = [f"{one} of {other}" for one, other in zip(found, expected, strict=True)]
    # A NaN is not close.
    is_close, is_found = difference <= tolerance, tuple(found) == tuple(expected)
    faults = ["WRONG"] * (not is_close) + ["NOT FOUND"] * (not is_found)
    return ([*columns, ", ".join(faults) or "agrees", f"{difference:.1e}"],
            is_close and is_found)


def inspect(compiler, path, folder):
    """Returns the columns of a graph."""
    output = pathlib.Path(folder) / "raised.mlir"
    done = subprocess.run(
        [compiler, str(path), "--emit=posenc", "--remarks", "-o", str(output)],
        capture_output=True, text=True)
    if done.returncode:
        error = next((line for line in done.stderr.splitlines() if "error: " in line),
                     f"exit code {done.returncode}")
        return ["", "", "", error.split("error: ")[-1]]
    text = output.read_text(encoding="utf-8")
    reasons = sorted(set(re.findall(r"looks like [^\"]*", done.stderr)))
    return [*count_found(text), text.count("linalg.softmax"), "; ".join(reasons)]


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
