#!/usr/bin/env python3
# ===- workspaces.py - workspaces of growing calls -------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""usage: workspaces.py LIBRARY FUNCTION [SIZE...]

Asks a CUDA library for the workspace of calls of a function whose sizes are around those
given, where `+` is one that grows. Memory for a call serves all that are not larger, so
workspaces must not shrink. Prints the number of calls, and those that need less than the
one before.
"""

import ctypes
import sys

AROUND = [*range(1, 40), *range(1000, 1600), *range(5350, 5400), *range(65500, 65540)]


def main():
    path, function, *sizes = sys.argv[1:]
    get_workspace = getattr(ctypes.CDLL(path), f"{function}_cuda_workspace")
    get_workspace.restype = ctypes.c_int64
    before, shrunk, growing = 0, [], list(AROUND)
    for size in growing:
        bytes_ = get_workspace(*(ctypes.c_int64(size if one == "+" else int(one))
                                 for one in sizes))
        if bytes_ < before:
            shrunk.append(size)
        before = bytes_
    print(f"{len(growing)} calls, {before} bytes for the last, shrunk: {shrunk}")


main()
