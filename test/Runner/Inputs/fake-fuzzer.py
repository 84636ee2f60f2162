#!/usr/bin/env python3
# ===- fake-fuzzer.py - stands for posenc-fuzz ------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# The door `good` has no faults. A search on `bad` reports seven inputs, whose texts say what
# happens when they run alone.

import os
import sys
import time

door = next((a[len("--door="):] for a in sys.argv if a.startswith("--door=")), None)
if door is None:
    sys.exit("error: no door; --door=NAME is one of: good bad")
flags = dict(a[1:].split("=", 1) for a in sys.argv[1:] if a.startswith("-") and "=" in a)
paths = [a for a in sys.argv[1:] if not a.startswith("-")]
if "max_total_time" in flags:
    print("#100\tINITED cov: 7 ft: 8\n#2000\tDONE   cov: 70 ft: 80 corp: 9")
    time.sleep(int(flags["max_total_time"]))
    names = ("fine", "wrong", "known", "bounds", "bounds", "inner", "outer") if door == "bad" else ()
    for number, name in enumerate(names):
        with open(f"{flags['artifact_prefix']}crash-{number}", "w") as file:
            file.write(name)
elif paths and os.path.isfile(paths[0]):
    with open(paths[0]) as file:
        what = file.read()
    if what == "wrong":
        print("posenc-fuzz: wrong: reading fails without an error")
    elif what == "known":
        print("    #3 0x1 in mlir::tensor::FromElementsOp::parse(mlir::OpAsmParser&) /lib.so")
    elif what == "bounds":
        print("==1==ERROR: AddressSanitizer: heap-buffer-overflow on address")
        print("    #0 0x1 in memcpy /lib.so\n    #1 0x2 in mlir::posenc::readIt(int) /a.cpp:3")
    elif what in ("inner", "outer"):
        # A known function of MLIR that this project called, and one that called it.
        print("==1==ERROR: AddressSanitizer: SEGV on unknown address")
        own = "#1 0x2 in mlir::posenc::AttentionOp::verify() /a.cpp:3"
        upstream = "#2 0x1 in mlir::linalg::GenericOp::parse(mlir::OpAsmParser&) (/lib.so)"
        frames = (upstream, own) if what == "inner" else (own, upstream)
        print("".join(f"    {frame}\n" for frame in frames))
    sys.exit(0 if what == "fine" else 77)
