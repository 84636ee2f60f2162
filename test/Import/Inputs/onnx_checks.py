# ===- onnx_checks.py - runs ONNX models and compares results --------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Runs ONNX models by `posenc-run` and compares the results with arrays. A script that
imports it has the arguments POSENC-RUN FOLDER."""

import subprocess
import sys

import numpy as np
from onnx_model import tensor, write

RUN, FOLDER = sys.argv[1:]
KINDS = {np.dtype(kind): name for kind, name in
         [(np.float32, "f32"), (np.float16, "f16"), (np.int64, "i64"), (np.int32, "i32"),
          (np.int16, "i16"), (np.int8, "i8"), (np.uint16, "u16"), (np.uint8, "u8"),
          (bool, "bool")]}
random = np.random.default_rng(7)
programs = wrong = 0


def floats(*shape):
    return random.standard_normal(shape).astype(np.float32)


def constant(name, array):
    return tensor(name, KINDS[array.dtype], array.shape, raw=array.tobytes())


def ints(name, *values):
    return constant(name, np.array(values, np.int64))


def run(name, nodes, inputs, constants, results, opset=23, dims=None):
    """`inputs` are arrays by name; `dims` has the declared shapes that are not
    static."""
    global programs
    programs += 1
    shapes = {key: (KINDS[array.dtype], (dims or {}).get(key, array.shape))
              for key, array in inputs.items()}
    path = f"{FOLDER}/{name}.onnx"
    write(path, nodes, shapes, results, constants, opset=opset)
    arguments = []
    for key, array in inputs.items():
        np.save(f"{FOLDER}/{key}.npy", array)
        arguments.append(f"--input=@{FOLDER}/{key}.npy")
    arguments += [f"--output=@{FOLDER}/{result}.npy" for result in results]
    return subprocess.run([RUN, path, "--function=main", "--opt-level=0", *arguments],
                          capture_output=True, text=True)


def refuse(name, nodes, inputs, constants, message, **keywords):
    """Checks that a call is an error with this message."""
    global wrong
    done = run(name, nodes, inputs, constants, ["y0"], **keywords)
    if done.returncode != 1 or message not in done.stderr:
        wrong += 1
        print(f"{name}: exit code {done.returncode}, {done.stderr.strip()}")


def check(name, nodes, inputs, constants, expected, **keywords):
    """`expected` are the results `y0`, `y1`, …"""
    global wrong
    results = [f"y{number}" for number in range(len(expected))]
    done = run(name, nodes, inputs, constants, results, **keywords)
    if done.returncode:
        wrong += 1
        print(f"{name}: {done.stderr.strip()}")
        return
    for result, array in zip(results, expected):
        got = np.load(f"{FOLDER}/{result}.npy")
        if got.shape != array.shape or \
                not np.allclose(got, array, rtol=1e-4, atol=1e-5, equal_nan=True):
            wrong += 1
            print(f"{name}: {result} of shape {got.shape} differs from {array.shape}")


def finish():
    print(f"{programs} models, {wrong} wrong")
