#!/usr/bin/env python3
# ===- check-links.py - checks what the tools link -------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# check-links.py --tools DIR [--runtime] FILE...: checks that each file links
# only the shared libraries of MLIR and LLVM and contains no copy of MLIR or
# LLVM (which would duplicate every TypeID). With --runtime, the files must link
# neither.

import argparse
import os
import re
import subprocess
import sys

SYSTEM = r"lib(stdc\+\+|m|gcc_s|c|dl|pthread)\.so\.\d+|ld-linux-.*"
ALLOWED = re.compile(
    SYSTEM + r"|lib(Posenc|posenc_runtime)\.so\.\d+(\.\d+)?|lib(MLIR|LLVM)\.so\.22\.1"
    r"|lib(mpfr|gmp|jemalloc)\.so\.\d+")
RUNTIME = re.compile(SYSTEM)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", required=True)
    parser.add_argument("--runtime", action="store_true")
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()

    def tool(name, *options):
        return subprocess.run(
            [os.path.join(arguments.tools, name), *options], check=True,
            capture_output=True, text=True).stdout

    errors = 0
    for path in arguments.files:
        name = os.path.basename(path)
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]",
                            tool("llvm-readelf", "-d", path))
        allowed = RUNTIME if arguments.runtime else ALLOWED
        for library in needed:
            if not allowed.fullmatch(library):
                print(f"{name}: needs {library}")
                errors += 1
        if not arguments.runtime:
            for library in ("libMLIR.so.22.1", "libLLVM.so.22.1"):
                if library not in needed:
                    print(f"{name}: does not need {library}")
                    errors += 1
        # Weak symbols are templates and inline functions.
        symbols = tool("llvm-nm", "-C", "--defined-only", path)
        for letter, symbol in re.findall(r"^[0-9a-f]+ ([A-Z]) (.*)$", symbols,
                                         re.MULTILINE):
            owner = re.sub(r"^(vtable|typeinfo|typeinfo name|guard variable) "
                           r"for |^mlir::detail::TypeIDResolver<", "", symbol)
            if letter not in "WVU" and re.match(r"(mlir|llvm|clang)::", owner) \
                    and not owner.startswith("mlir::posenc::"):
                print(f"{name}: defines {symbol}")
                errors += 1
    print(f"{len(arguments.files)} files, {errors} errors")
    return 1 if errors else 0


sys.exit(main())
