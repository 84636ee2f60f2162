#!/usr/bin/env python3
# ===- compare-output.py - compares the output of two compilers ------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: compare-output.py OLD NEW [INPUT…] [--emit=KIND[:TARGET],…]
#                          [--rename OLD=NEW,…] [-j N]
#
# Compiles each input by the posenc-compile of two folders and compares their output byte
# by byte, for changes that only move or rename code. Without INPUT these are the files
# *.json and *.mlir of the examples and of the tests' inputs. Errors are output, too, less
# the folder of the compiler. --rename replaces texts in the output of the old compiler,
# such as names of kernels. Prints each pair that differs, and as its last line how many
# are equal. Exits with 1 if one differs, or if not one compiled.

import argparse
import concurrent.futures
import glob
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KINDS = ["llvm:x86-64-v3", "llvm:x86-64-v4+avx512bf16", "llvm:sapphirerapids",
         "ptx:cuda:sm_80", "ptx:cuda:sm_90a", "spirv:vulkan"]
INPUTS = ["examples/configs/*.json", "examples/*.mlir", "test/Integration/Inputs/*.mlir",
          "test/Run/Inputs/*.mlir", "test/Target/Inputs/*.mlir", "test/hardware/Inputs/*.mlir"]


def compile_input(folder, path, kind):
    """Returns the exit code, the output and the messages of one compilation."""
    emit, _, target = kind.partition(":")
    command = [os.path.join(folder, "posenc-compile"), path, f"--emit={emit}", "-o", "-"]
    if target:
        command.append(f"--target={target}")
    run = subprocess.run(command, capture_output=True, check=False)
    return run.returncode, run.stdout, run.stderr.replace(os.fsencode(folder), b"")


def rename(result, names):
    """Returns a result of compile_input with the texts of `names`, "OLD=NEW,…", replaced."""
    code, *texts = result
    for pair in filter(None, names.split(",")):
        old, _, new = pair.partition("=")
        texts = [text.replace(os.fsencode(old), os.fsencode(new)) for text in texts]
    return code, *texts


def compare(options, path, kind):
    """Returns whether the compilers agree, and the exit code of the old one."""
    old, new = (compile_input(folder, path, kind) for folder in (options.old, options.new))
    return rename(old, options.rename) == new, old[0]


def main():
    parser = argparse.ArgumentParser(description="compares the output of two compilers")
    parser.add_argument("old", help="folder of the old posenc-compile")
    parser.add_argument("new", help="folder of the new posenc-compile")
    parser.add_argument("inputs", nargs="*")
    parser.add_argument("--emit", default=",".join(KINDS))
    parser.add_argument("--rename", default="", metavar="OLD=NEW,...")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    inputs = options.inputs or sorted(
        path for pattern in INPUTS for path in glob.glob(os.path.join(ROOT, pattern)))
    cases = [(path, kind) for path in inputs for kind in options.emit.split(",")]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda case: compare(options, *case), cases))
    for (path, kind), (equal, _) in zip(cases, results, strict=True):
        if not equal:
            print(f"{os.path.relpath(path, ROOT)} --emit={kind}: differs")
    equal = sum(result[0] for result in results)
    compiled = sum(code == 0 for _, code in results)
    print(f"{equal} of {len(cases)} equal; {compiled} compiled, the others are errors")
    return 0 if equal == len(cases) and compiled else 1


if __name__ == "__main__":
    sys.exit(main())
