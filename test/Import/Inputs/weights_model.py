# ===- weights_model.py - a small model with weights -------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""A model whose table is also read as a matrix, and what the tests of weights share.
The first arguments of the program are posenc-compile and posenc-run."""

import json
import pathlib
import struct
import subprocess
import sys

import numpy as np
from onnx_model import node, tensor, write

COMPILE, RUN = sys.argv[1:3]
_counts = {"checks": 0, "wrong": 0}
random = np.random.default_rng(5)

# A table that is read by rows and, transposed, as a matrix; matrices whose columns do
# and do not fill their panels; and a small constant.
emb, w1, w2, bias = (random.standard_normal(shape).astype(np.float32)
                     for shape in ((300, 64), (64, 100), (64, 100), (64,)))
ids = np.arange(7) * 41


def check(name, passes, detail=""):
    _counts["checks"] += 1
    if not passes:
        _counts["wrong"] += 1
        print(f"{name}: wrong {detail}")


def finish():
    print(f"{_counts['checks']} checks, {_counts['wrong']} wrong")


def write_model(path, table):
    initializers = [tensor(name, "f32", array.shape, raw=array.tobytes()) for name, array
                    in (("emb", table), ("w1", w1), ("w2", w2), ("bias", bias))]
    write(path, [node("Gather", ["emb", "ids"], ["x"]),
                 node("MatMul", ["x", "w1"], ["h"]),
                 node("Gemm", ["h", "w2", "bias"], ["g"], transB=1),
                 node("Transpose", ["emb"], ["t"], perm=[1, 0]),
                 node("MatMul", ["g", "t"], ["y"])],
          {"ids": ("i64", ["n"])}, ["y"], initializers)


def get_reference():
    return (emb[ids].astype(float) @ w1 @ w2.T + bias) @ emb.T


def compile(output, *flags, model="model.onnx"):
    return subprocess.run([COMPILE, model, "-o", output, "--threads=none",
                           "--opt-level=0", *flags], capture_output=True, text=True)


def call(library, *inputs):
    inputs = [f"--input={one}" for one in inputs or ["@ids.npy"]]
    return subprocess.run([RUN, library, *inputs, "--output=@y.npy"],
                          capture_output=True, text=True)


def result(library, *inputs):
    done = call(library, *inputs)
    check(f"{library} runs", done.returncode == 0, done.stderr)
    return pathlib.Path("y.npy").read_bytes()


def split(content):
    """Returns the bytes of the header, its JSON, and those behind it."""
    size, = struct.unpack("<Q", content[:8])
    return size, json.loads(content[8:8 + size]), content[8 + size:]
