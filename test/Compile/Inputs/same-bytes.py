#!/usr/bin/env python3
# ===- same-bytes.py - outputs compared across environments ----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# same-bytes.py PROGRAM INPUT...: compiles each input to every kind of output in
# several folders, locales and environments, and compares the outputs. In all but
# the first, one run with --save-temps gives most of the kinds. The first input is
# compiled in each of the surroundings, and the others, which take longer, in fewer
# that differ in several ways at once.

import os
import shutil
import subprocess
import sys

program, *sources = sys.argv[1:]
# The kinds of output, as --emit and suffix, with the names of the same files
# from --save-temps of a shared library.
KINDS = {"posenc.mlir": "x.posenc.mlir", "linalg.mlir": None,
         "vector.mlir": "x.vector.mlir", "llvm.mlir": "x.llvm.mlir",
         "llvm-ir.ll": "x.ll", "asm.s": "x.s", "obj.o": "x.o",
         "static.a": None, "shared.so": "x.so"}
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
MERGED = [
    SURROUNDINGS[0],
    ("a folder/of another name", {}),
    ("german", {**SURROUNDINGS[4][1], **SURROUNDINGS[6][1]}),
    ("empty", None),
]


def compile_all(source, folder, environment, at_once):
    os.makedirs(folder)
    # The name is the same in every folder, as it is part of diagnostics.
    name = "in" + os.path.splitext(source)[1]
    shutil.copy(source, os.path.join(folder, name))
    full = {**os.environ, **environment} if environment is not None else {
        # Tells the sanitizers which leaks to ignore.
        name: value for name, value in os.environ.items()
        if name == "ASAN_OPTIONS"}
    outputs = {}

    def keep(kind, output):
        path = os.path.join(folder, output)
        if not os.path.exists(path):
            return False
        with open(path, "rb") as file:
            outputs[kind, os.path.splitext(output)[1]] = file.read()
        return True

    def compile_one(*options):
        subprocess.run(
            [program, name, "--target=x86-64-v3", *options],
            check=True, cwd=folder, env=full)

    for kind, temporary in KINDS.items():
        stem, suffix = kind.split(".")
        if at_once and temporary:
            continue
        compile_one("-o", f"x.{suffix}", f"--emit={stem}")
        keep(kind, f"x.{suffix}")
        keep(kind, "x.h")
    if at_once:
        compile_one("-o", "x.so", "--save-temps")
        for kind, temporary in KINDS.items():
            assert not temporary or keep(kind, temporary), kind
        keep("shared.so", "x.h")
    assert outputs["shared.so", ".h"]
    return outputs


for number, source in enumerate(sources):
    stem = os.path.basename(source)
    expected = None
    for folder, environment in MERGED if number else SURROUNDINGS:
        outputs = compile_all(source, os.path.join(stem, folder), environment,
                              at_once=expected is not None)
        expected = expected or outputs
        for kind in KINDS:
            assert any(key[0] == kind for key in outputs), kind
        for key in outputs:
            assert outputs[key] == expected[key], (stem, folder, key)
    here = os.getcwd().encode()
    for key, content in expected.items():
        assert here not in content, f"{key} names the folder"
print(len(KINDS), "kinds of", len(sources), "inputs are the same")
