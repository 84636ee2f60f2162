# ===- programs.py - compiles functions and calls them ---------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Compiles modules to libraries, calls their C entry points on NumPy arrays and
compares the results with expected ones and with each other: for several targets,
in place where the signature allows it, and with another order of the tasks."""

import ctypes
import itertools
import json
import platform
import subprocess

import numpy as np

TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i32": np.int32,
         "i64": np.int64, "bf16": np.uint16}
TARGETS = ["host"] + ["x86-64-v3"] * (platform.machine() == "x86_64")
BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
PARALLEL_FOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, BODY, ctypes.c_void_p,
                                ctypes.c_int64)


@PARALLEL_FOR
def backwards(_, body, arg, count):
    for i in reversed(range(count)):
        body(arg, i)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


class Library:
    """A compiled module; `call` runs its function `f`."""

    def __init__(self, path, prefix):
        self.code = ctypes.CDLL(path)
        self.prefix = prefix
        metadata = getattr(self.code, prefix + "_metadata")
        metadata.restype = ctypes.c_char_p
        self.functions = json.loads(metadata())["functions"]
        self.function, = (one for one in self.functions if one["name"] == "f")

    def symbol(self, name):
        return getattr(self.code, f"{self.prefix}_{name}")

    def in_place(self):
        names = [one["name"] for one in self.function["inputs"]]
        return [names.index(one["in_place"]) if "in_place" in one else None
                for one in self.function["outputs"]]

    def call(self, arrays, runs_in_place=False):
        arrays = [array.copy() for array in arrays]
        sizes = {}
        for one, array in zip(self.function["inputs"], arrays):
            sizes.update(zip(one["shape"], array.shape))
        outputs = []
        for one, source in zip(self.function["outputs"], self.in_place()):
            if runs_in_place and source is not None:
                outputs.append(arrays[source])
                continue
            shape = [eval(dim, {}, sizes) if isinstance(dim, str) else dim
                     for dim in one["shape"]]
            outputs.append(np.full(shape, 77, TYPES[one["dtype"]]))
        numbers = [ctypes.c_int64(sizes[name]) for name in self.function["sizes"]]
        arguments = [ctypes.c_void_p(array.ctypes.data) for array in arrays + outputs]
        arguments += numbers
        memory = None
        if hasattr(self.code, f"{self.prefix}_f_workspace"):
            measure = self.symbol("f_workspace")
            measure.restype = ctypes.c_int64
            memory = np.full(measure(*numbers), 77, np.uint8)
            arguments.append(ctypes.c_void_p(memory.ctypes.data))
        code = self.symbol("f")(*arguments)
        assert code == 0, f"the entry point returned {code}"
        return outputs


class Suite:
    def __init__(self, tool, folder):
        self.tool, self.folder = tool, folder
        self.count = self.wrong = 0
        self.libraries = {}

    def compile(self, name, text, target):
        """Returns the library of a module, which is compiled once for all its sizes. Every
        eighth library is optimized, for each target in turn: the others test no less of
        Posenc, and are compiled in a third of the time."""
        if (text, target) in self.libraries:
            return self.libraries[text, target]
        source = f"{self.folder}/{name}.mlir"
        with open(source, "w", encoding="ascii") as file:
            file.write(text)
        path = f"{self.folder}/lib{name}.so"
        level = 3 if len(self.libraries) % 16 in (0, 9) else 0
        subprocess.run([self.tool, source, "--no-warnings", "--target=" + target,
                        f"--opt-level={level}", "-o", path], check=True)
        library = self.libraries[text, target] = Library(path, name)
        return library

    def check(self, name, text, arrays, expected, limit, may_be_in_place=None):
        """`limit` bounds each error relative to the largest expected number.
        `may_be_in_place` is the expected result of Library.in_place(). Returns the
        results of the first target."""
        self.count += 1
        problems, results = [], []
        for number, target in enumerate(TARGETS):
            library = self.compile(f"p{self.count}_{number}", text, target)
            if may_be_in_place and library.in_place() != may_be_in_place:
                problems.append(f"in place {library.in_place()}")
            for is_reversed, runs_in_place in itertools.product((False, True), repeat=2):
                library.symbol("set_parallel_for")(backwards if is_reversed else None, None)
                results.append(library.call(arrays, runs_in_place))
        for result, wanted in zip(results[0], expected):
            scale = max(np.max(abs(np.asarray(wanted, np.float64)), initial=0), 1e-30)
            if result.dtype == np.uint16:
                result = from_bf16(result)
            error = np.max(abs(result.astype(np.float64) - wanted), initial=0) / scale
            if not error <= limit:
                problems.append(f"error {error}")
        for other in results[1:]:
            if any(one.tobytes() != two.tobytes() for one, two in zip(results[0], other)):
                problems.append("bits differ")
                break
        if problems:
            self.wrong += 1
            print(f"{name}: {', '.join(problems)}")
        return results[0]

    def finish(self):
        print(f"{self.count} programs, {self.wrong} wrong")
