#!/usr/bin/env python3
# ===- count-skips.py - instructions of tiles that documents hide -----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""usage: count-skips.py [--fault] FOLDER POSENC_RUN

Runs 192 queries of the last of one and of eight documents of 384 keys on the fake driver,
on sm_80 and on sm_90a. Both calls have the same visible tiles. The instructions of the
second one, and an eighth of those of the bounds, which all queries of eight documents
share, must be at most 1.15 times those of the first. With --fault, all keys are of one
document.
"""

import os
import pathlib
import re
import subprocess
import sys

DOCUMENT = 384


def count(arch, documents, folder, run):
    """Returns the warp instructions of a call by kernel."""
    keys = documents * DOCUMENT
    log = folder / f"log-{arch}-{documents}"
    log.unlink(missing_ok=True)
    module = pathlib.Path(__file__).with_name("skips.mlir")
    subprocess.run(
        [run, module, "--function=documents", "--device=cuda:0", "--opt-level=0",
         "--input=1x192x1x64xbf16=random:seed=1", f"--input=1x{keys}x1x64xbf16=random:seed=2",
         f"--input=1x{keys}x1x64xbf16=random:seed=3", f"--input={keys}xi64={'0' if '--fault' in sys.argv else 'iota'}"],
        check=True, capture_output=True,
        env={**os.environ, "POSENC_FAKE_CUDA_SM": str(arch), "POSENC_FAKE_CUDA_LOG": str(log)},
    )
    counts = re.findall(r"^ran (\S+) .* instructions (\d+) ", log.read_text(), re.M)
    return {kernel: int(number) for kernel, number in counts}


def main():
    folder, run = pathlib.Path(sys.argv[-2]), sys.argv[-1]
    failed = 0
    for arch in 80, 90:
        one, eight = (count(arch, documents, folder, run) for documents in (1, 8))
        kernel = next(kernel for kernel in one if "attention" in kernel)
        bounds = eight["documents_key_bounds"]
        failed += eight[kernel] + bounds / 8 > 1.15 * one[kernel]
        print(f"{kernel}: {one[kernel]} instructions, with hidden tiles {eight[kernel]}, "
              f"and {bounds} for bounds")
    print(f"{failed} with too many instructions")


main()
