#!/usr/bin/env python3
# ===- host.py - target name of this machine -------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# host.py COMPILER INPUT: prints the name of this machine in the metadata. Fails
# unless --target=NAME gives the same bytes as `host`, which is the default.

import json
import subprocess
import sys

program, source = sys.argv[1:]


def compile_for(*arguments):
    result = subprocess.run(
        [program, source, "-o", "-", "--emit=obj", *arguments],
        check=True, capture_output=True)
    return result.stdout


code = compile_for()
begin = code.index(b'{"abi"')
metadata = json.loads(code[begin:code.index(b"\0", begin)])
[name] = metadata["targets"]
assert compile_for("--target=host") == code
assert compile_for("--target=" + name) == code, name
print(name)
