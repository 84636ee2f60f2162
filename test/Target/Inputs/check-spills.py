#!/usr/bin/env python3
# ===- check-spills.py - ptxas' statistics of kernels ----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Assembles the kernels of a module for each architecture that ptxas knows:

    check-spills.py POSENC_COMPILE PTXAS MODULE.mlir ARCH...

Fails if a kernel spills, uses local memory or causes a warning, and if ptxas
supports none of the architectures.
"""

import re
import subprocess
import sys


def assemble(compiler, ptxas, module, arch):
    """Returns the output of ptxas for each kernel, or None if it does not support
    the architecture."""
    ptx = f"forms.{arch}.ptx"
    subprocess.run([compiler, module, "-o", ptx, f"--target=cuda:{arch}"], check=True)
    result = subprocess.run(
        [ptxas, "-v", f"-arch={arch}", ptx, "-o", f"forms.{arch}.cubin"],
        capture_output=True,
        text=True,
        check=False,
    )
    if "is not defined for option 'gpu-name'" in result.stderr:
        return None
    if result.returncode != 0 or "warning" in result.stderr:
        sys.exit(f"{arch}: {result.stderr}")
    return re.split(r"Compiling entry function", result.stderr)[1:]


def main():
    compiler, ptxas, module, *archs = sys.argv[1:]
    done = 0
    for arch in archs:
        kernels = assemble(compiler, ptxas, module, arch)
        if kernels is None:
            print(f"ptxas does not know {arch}")
            continue
        for text in kernels:
            name = text.split("'")[1]
            match = re.search(
                r"(\d+) bytes stack frame, (\d+) bytes spill stores, "
                r"(\d+) bytes spill loads",
                text,
            )
            if not match or any(int(number) for number in match.groups()):
                sys.exit(f"{arch}: '{name}' spills: {text}")
            done += 1
    if not done:
        sys.exit("no kernel was assembled")
    print(f"{done} kernels without spills")


if __name__ == "__main__":
    main()
