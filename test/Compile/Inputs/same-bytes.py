#!/usr/bin/env python3
# ===- same-bytes.py - outputs compared across surroundings ----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# same-bytes.py PROGRAM INPUT...: compiles each to every kind of output in
# several folders, locales and environments.

import os
import shutil
import subprocess
import sys

program, *sources = sys.argv[1:]
KINDS = ["posenc.mlir", "linalg.mlir", "vector.mlir", "llvm.mlir",
         "llvm-ir.ll", "asm.s", "obj.o", "static.a", "shared.so"]
SURROUNDINGS = [
    ("first", {}),
    ("second", {}),
    ("a folder/of another name", {}),
    ("c", {"LC_ALL": "C", "LANG": "C"}),
    ("german", {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8",
                "LC_NUMERIC": "de_DE.UTF-8"}),
    ("utf8", {"LC_ALL": "C.UTF-8"}),
    ("environment", {"HOME": "/", "USER": "someone", "TZ": "Asia/Tokyo",
                     "SOURCE_DATE_EPOCH": "1", "OMP_NUM_THREADS": "1",
                     "TERM": "dumb", "COLUMNS": "20"}),
    ("empty", None),
]


def compile_all(source, folder, environment):
    os.makedirs(folder)
    # Under the same name, at another place.
    name = "in" + os.path.splitext(source)[1]
    shutil.copy(source, os.path.join(folder, name))
    full = {**os.environ, **environment} if environment is not None else {
        # Where the sanitizers are told what is no leak.
        name: value for name, value in os.environ.items()
        if name == "ASAN_OPTIONS"}
    outputs = {}
    for kind in KINDS:
        stem, suffix = kind.split(".")
        subprocess.run(
            [program, name, "-o", f"x.{suffix}", f"--emit={stem}",
             "--target=x86-64-v3", "--header=x.h"],
            check=True, cwd=folder, env=full)
        for output in (f"x.{suffix}", "x.h"):
            path = os.path.join(folder, output)
            if os.path.exists(path):
                with open(path, "rb") as file:
                    outputs[kind, output] = file.read()
    assert outputs["shared.so", "x.h"]
    return outputs


for source in sources:
    stem = os.path.basename(source)
    expected = None
    for folder, environment in SURROUNDINGS:
        outputs = compile_all(source, os.path.join(stem, folder), environment)
        expected = expected or outputs
        for key in expected:
            assert outputs[key] == expected[key], (stem, folder, key)
    here = os.getcwd().encode()
    for key, content in expected.items():
        assert here not in content, f"{key} names the folder"
print(len(KINDS), "kinds of", len(sources), "inputs are the same")
