# ===- stack.py - what functions take of the stack ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Says whether the frames of x86 assembly are at most so many bytes together:
stack.py FILE BYTES."""

import re
import sys

text = open(sys.argv[1]).read()
frames = [int(size) for size in re.findall(r"subq\s+\$(\d+), %rsp", text)]
print("frames", len(frames), "fit" if sum(frames) <= int(sys.argv[2]) else
      f"are {sum(frames)}")
