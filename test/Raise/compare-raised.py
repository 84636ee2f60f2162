#!/usr/bin/env python3
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs each function of a file with and without posenc-raise and compares the
results. Modules of the file are separated by lines `// -----`.

    compare-raised.py POSENC-RUN FILE [--precision=P] [--limit=L] [--fault]

With --precision, tables become frequencies of that precision. --limit replaces the
absolute and relative tolerance of the type. With --fault, the functions run on other
inputs after raising, and all comparisons have to fail.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

FUNCTION = re.compile(r"func\.func @(\w+)\(([^)]*)\) -> (\([^)]*\)|\S+)")
TYPE = re.compile(r"tensor<([^>]*)>")
DYNAMIC = 5
TOLERANCE = {"f32": 2e-5, "f64": 1e-12, "bf16": 2e-2, "f16": 3e-3}


def get_inputs(arguments, seed):
    for number, text in enumerate(TYPE.findall(arguments)):
        *sizes, element = text.split("x")
        shape = "x".join(str(DYNAMIC) if size == "?" else size
                         for size in sizes + [element])
        fill = "iota" if element.startswith("i") else \
            f"random:seed={seed + number}"
        yield f"--input={shape}={fill}"


def run(posenc_run, path, name, flags):
    command = [posenc_run, str(path), f"--function={name}", "--opt-level=0",
               *flags]
    return subprocess.run(command, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


def main():
    posenc_run, source, *rest = sys.argv[1:]
    fault = "--fault" in rest
    flags = [flag for flag in rest if flag.startswith("--precision=")]
    limits = [flag[len("--limit="):] for flag in rest if flag.startswith("--limit=")]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        module = pathlib.Path(folder) / "module.mlir"
        for text in pathlib.Path(source).read_text().split("// -----"):
            module.write_text(text)
            for name, arguments, results in FUNCTION.findall(text):
                files = [f"@{folder}/{number}.npy"
                         for number in range(results.count("tensor<"))]
                element = TYPE.findall(arguments)[0].split("x")[-1]
                limit = limits[0] if limits else TOLERANCE[element]
                before = run(posenc_run, module, name,
                             ["--raise=no", *get_inputs(arguments, 1),
                              *(f"--output={file}" for file in files)])
                after = run(posenc_run, module, name,
                            [*flags,
                             *get_inputs(arguments, 50 if fault else 1),
                             *(f"--expected_output={file}" for file in files),
                             f"--atol={limit}", f"--rtol={limit}"])
                is_equal = before.returncode == 0 and after.returncode == 0
                if before.returncode != 0 or after.returncode not in (0, 3):
                    print(before.stdout, after.stdout)
                print(f"{name}: {'equal' if is_equal else 'DIFFERENT'}")
                failed += is_equal == fault
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
