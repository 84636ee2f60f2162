#!/usr/bin/env python3
# ===- long-flags.py - rejection of very long flags ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# long-flags.py PROGRAM INPUT: passes flags of up to a megabyte in total. A single
# argument has at most 128 KiB on Linux.

import subprocess
import sys

program, source = sys.argv[1:]
for flags in (
    ["--" + "x" * 131000],
    ["-" + "o" * 131000],
    ["--emit" + "t" * 131000 + "=posenc"],
    ["--" + "y" * 131000] * 8,
    ["--kernel" + "s" * (130000 + i) for i in range(8)],
):
    result = subprocess.run([program, source, "-o", "x.so"] + flags,
                            capture_output=True, text=True)
    assert result.returncode == 2, result.returncode
    assert result.stdout == "", result.stdout
    assert "unknown option" in result.stderr, result.stderr
    assert len(result.stderr) < 300, len(result.stderr)
# A very long value is rejected, too.
result = subprocess.run(
    [program, source, "-o", "x.so", "--target=" + "z" * 131000],
    capture_output=True, text=True)
assert result.returncode == 2, result.returncode
