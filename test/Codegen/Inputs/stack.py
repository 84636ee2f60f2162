# ===- stack.py - checks the size of stack frames --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""stack.py FILE BYTES: checks that the stack frames in x86 assembly are at most BYTES
in total."""

import re
import sys

text = open(sys.argv[1]).read()
frames = [int(size) for size in re.findall(r"subq\s+\$(\d+), %rsp", text)]
print("frames", len(frames), "fit" if sum(frames) <= int(sys.argv[2]) else
      f"are {sum(frames)}")
