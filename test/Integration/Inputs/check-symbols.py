#!/usr/bin/env python3
# ===- check-symbols.py - checks the symbols of a library ------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# check-symbols.py --cc CC --tools DIR [--prefix=X --functions=F,...]
#                  [--no-libgomp] FILE...
# Checks that the undefined symbols of each object or shared library are from
# libc or libgomp, not from libm (some symbols are in libc and libm; those are
# allowed), except for the weak function that sets an error of TVM FFI. A shared
# library must need no other library, and must export only its own entry points.

import argparse
import os
import subprocess
import sys


def run(*command):
    return subprocess.run(command, check=True, capture_output=True,
                          text=True).stdout


class Checker:
    def __init__(self, arguments):
        self.arguments = arguments
        self.libc = self.provided("libc.so.6")
        self.libgomp = self.provided("libgomp.so.1")
        self.libm = self.provided("libm.so.6") - self.libc
        self.errors = 0
        # Guards against empty lists.
        for name, symbols in (("memcpy", self.libc), ("cosf", self.libm),
                              ("GOMP_parallel", self.libgomp)):
            if name not in symbols:
                sys.exit(f"expected {name} in a system library")

    def tool(self, name, *options):
        return run(os.path.join(self.arguments.tools, name), *options)

    def symbols(self, path, *options):
        """Yields the unversioned name and the type letter of each symbol."""
        for line in self.tool("llvm-nm", "--format=posix", *options,
                              path).splitlines():
            name, letter = line.split()[:2]
            yield name.split("@")[0], letter

    def provided(self, library):
        path = run(self.arguments.cc, f"-print-file-name={library}").strip()
        return {name for name, _ in
                self.symbols(path, "-D", "--defined-only")}

    def error(self, path, text):
        print(f"{path}: {text}")
        self.errors += 1

    def check(self, path):
        shared = path.endswith(".so")
        undefined = {name for name, letter in self.symbols(
            path, *(["-D"] if shared else []), "--undefined-only")
            if (name, letter) != ("TVMFFIErrorSetRaisedFromCStr", "w")}
        undefined.discard("_GLOBAL_OFFSET_TABLE_")
        allowed = self.libc | (set() if self.arguments.no_libgomp
                               else self.libgomp)
        for name in sorted(undefined & self.libm):
            self.error(path, f"{name} is a function of libm")
        for name in sorted(undefined - self.libm - allowed):
            self.error(path, f"{name} is in no allowed library")
        if shared:
            self.check_shared(path)

    def check_shared(self, path):
        dynamic = self.tool("llvm-readelf", "-d", path).splitlines()
        for line in dynamic:
            if "(NEEDED)" in line:
                needed = line[line.index("[") + 1:line.index("]")]
                if needed != "libc.so.6" and (
                        needed != "libgomp.so.1" or self.arguments.no_libgomp):
                    self.error(path, f"needs {needed}")
            if "PATH)" in line or "TEXTREL" in line:
                self.error(path, line.strip())
        if not any("SYMBOLIC" in line for line in dynamic):
            self.error(path, "is not symbolic")
        prefix = self.arguments.prefix
        expected = {f"{prefix}_metadata", f"{prefix}_set_parallel_for"}
        for name in self.arguments.functions.split(","):
            expected |= {f"{prefix}_{name}", f"{prefix}_{name}_dl",
                         f"{prefix}_{name}_output_sizes", f"__tvm_ffi_{prefix}_{name}"}
        exported = {name for name, _ in
                    self.symbols(path, "-D", "--defined-only")}
        # Functions with a workspace also export its size.
        expected |= {name + "_workspace" for name in expected} & exported
        for name in sorted(exported ^ expected):
            self.error(path, f"{name} is " + (
                "exported" if name in exported else "not exported"))
        segments = self.tool("llvm-readelf", "-lW", path).splitlines()
        for line in segments:
            fields = line.split()
            if fields[:1] == ["GNU_STACK"] and "RWE" in "".join(fields[6:]):
                self.error(path, "has an executable stack")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", required=True)
    parser.add_argument("--tools", required=True)
    parser.add_argument("--prefix", default="")
    parser.add_argument("--functions", default="")
    parser.add_argument("--no-libgomp", action="store_true")
    parser.add_argument("files", nargs="+")
    checker = Checker(parser.parse_args())
    for path in checker.arguments.files:
        checker.check(path)
    print(f"{len(checker.arguments.files)} files, {checker.errors} errors")
    return 1 if checker.errors else 0


if __name__ == "__main__":
    sys.exit(main())
