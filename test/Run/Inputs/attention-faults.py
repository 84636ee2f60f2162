#!/usr/bin/env python3
# ===- attention-faults.py - faults in the PTX of attention are found -------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""usage: attention-faults.py TABLE.md LIBRARY.so FOLDER POSENC_RUN

Runs functions of attention-forms.mlir on the driver that executes PTX, without and with
each fault in their PTX. Prints what reports the fault: the driver or a wrong result.
Fails if a fault is not in the PTX, or is no row of the table in TABLE.md.
"""

import os
import pathlib
import subprocess
import sys

import numpy

TABLE, LIBRARY, FOLDER, RUN = sys.argv[1:]
# The shapes of queries, and of keys and values: more than two tiles, so that stages
# are used again.
SHAPES = {"causal_bf16": ((1, 300, 4, 128), (1, 300, 2, 128)),
          "holes": ((1, 20, 1, 64), (1, 1030, 1, 64))}
# The architecture, a name, the text of the instruction, what replaces it, and the
# function if it is not @causal_bf16.
FAULTS = [
    (80, "no wait for the copies", "cp.async.wait_group \t0;", ""),
    (80, "no barrier", "bar.sync \t0;", ""),
    (80, "values not transposed", "x4.trans.shared", "x4.shared"),
    (80, "keys transposed", "m8n8.x4.shared.b16", "m8n8.x4.trans.shared.b16"),
    (80, "minima of scores in place of maxima", "max.f32", "min.f32"),
    (90, "no wait for products", "wgmma.wait_group.sync.aligned 0;", ""),
    (90, "no wait for scores", "wgmma.wait_group.sync.aligned 1;", ""),
    (90, "no fence before products", "wgmma.fence.sync.aligned;", ""),
    (90, "no fence of mbarriers", "fence.mbarrier_init.release.cluster;", ""),
    (90, "no fence of queries", "fence.proxy.async.shared::cta;", ""),
    (90, "no masked pairs in headers", ", 3, 0, %p", ", 0, 0, %p", "holes"),
]


def call(function, arch, edit):
    """Returns the result, or the error."""
    path = pathlib.Path(FOLDER, "result.npy")
    path.unlink(missing_ok=True)
    environment = dict(os.environ, POSENC_FAKE_CUDA_SM=str(arch))
    if edit:
        environment["POSENC_FAKE_CUDA_EDIT"] = edit
    files = [f"--input=@{FOLDER}/{function}.{name}.npy" for name in "qkv"]
    done = subprocess.run(
        [RUN, LIBRARY, f"--function={function}", "--device=cuda:0", *files,
         f"--output=@{path}"], capture_output=True, text=True, check=False,
        env=environment)
    if done.returncode:
        return done.stderr
    if edit and done.stderr:
        sys.exit(done.stderr)
    return numpy.load(path)


def main():
    pathlib.Path(FOLDER).mkdir(exist_ok=True)
    random = numpy.random.default_rng(1)
    for function, (query, key) in SHAPES.items():
        for name, shape in [("q", query), ("k", key), ("v", key)]:
            values = random.standard_normal(shape, numpy.float32)
            numpy.save(pathlib.Path(FOLDER, f"{function}.{name}.npy"),
                       (values.view(numpy.uint32) >> 16).astype(numpy.uint16))
    right = {}
    table = pathlib.Path(TABLE).read_text(encoding="utf-8")
    missed = 0
    for arch, name, old, new, *others in FAULTS:
        function = others[0] if others else "causal_bf16"
        if f"| sm_{arch}: {name} |" not in table:
            sys.exit(f"{TABLE} has no row of sm_{arch}: {name}")
        if (function, arch) not in right:
            right[function, arch] = call(function, arch, "")
        result = call(function, arch, f"{old}=>{new}")
        if isinstance(result, str):
            found = result.strip().splitlines()[0]
        elif numpy.array_equal(result, right[function, arch]):
            found = "NOT FOUND"
            missed += 1
        else:
            found = "wrong result"
        print(f"sm_{arch}, {name}: {found}")
    print(f"{len(FAULTS)} faults, {missed} missed")


main()
