# ===- kernel_library.py - libraries of kernels from Python -----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Calls libraries of posenc-compile without the Python package, and writes tables."""

import ctypes
import json
import pathlib
import re
import time

# DLPack's code and bits of the element types.
KINDS = {"f16": (2, 16), "f32": (2, 32), "f64": (2, 64), "bf16": (4, 16),
         "i32": (0, 32), "i64": (0, 64), "f8E4M3FN": (10, 8)}


class DlTensor(ctypes.Structure):
    """DLTensor of dlpack.h."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]


class Library:
    """A library of posenc-compile, called through DLPack tensors."""

    def __init__(self, path):
        path = pathlib.Path(path).resolve()
        self.library = ctypes.CDLL(str(path))
        self.prefix = re.sub(r"\W", "_", re.sub(r"^lib", "", path.stem))
        metadata = getattr(self.library, f"{self.prefix}_metadata")
        metadata.restype = ctypes.c_char_p
        self.functions = {function["name"]: function for function in
                          json.loads(metadata().decode())["functions"]}

    def get_workspace_bytes(self, name, tensors):
        """Returns the bytes that a call needs on the device; None if the function
        has no workspace there."""
        function = self.functions[name]
        if "cuda_workspace" not in function:
            return None
        sizes = {}
        for argument, (_, _, shape) in zip(function["inputs"], tensors):
            sizes.update(zip(argument["shape"], shape))
        entry = getattr(self.library, function["cuda_workspace"])
        entry.restype = ctypes.c_int64
        return entry(*(ctypes.c_int64(sizes[size]) for size in function["sizes"]))

    def prepare(self, name, tensors, device, stream, workspace=None):
        """Returns a function that calls `name` on tensors, inputs before outputs;
        each is (address, type, shape). On a GPU, `stream` returns the stream of a
        call."""
        function = self.functions[name]
        suffix = "_cuda" if device == "cuda" else "_dl"
        entry = getattr(self.library, f"{self.prefix}_{name}{suffix}")
        structs, arguments = [], []
        for address, dtype, shape in tensors:
            code, bits = KINDS[dtype]
            sizes = (ctypes.c_int64 * len(shape))(*shape)
            structs.append(DlTensor(address, 2 if device == "cuda" else 1, 0,
                                    len(shape), code, bits, 1, sizes, None, 0))
            arguments.append(ctypes.byref(structs[-1]))
        if ("cuda_workspace" if device == "cuda" else "workspace") in function:
            arguments.append(ctypes.c_void_p(workspace))
        message = ctypes.create_string_buffer(512)
        last = [message, ctypes.c_size_t(len(message))]

        def call():
            streams = [ctypes.c_void_p(stream())] if device == "cuda" else []
            if entry(*arguments, *streams, *last):
                raise RuntimeError(f"{name}: {message.value.decode()}")

        # The arguments refer to these.
        call.structs = structs
        return call


class Table:
    """A file to which lines are appended, so that it can be read when the program has
    been killed."""

    def __init__(self, path):
        self.path = path

    def write(self, line):
        print(line, flush=True)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(line + "\n")


def first_line(error):
    lines = str(error).strip().splitlines()
    return lines[0][:120] if lines else type(error).__name__


def time_calls(torch, device, call, count):
    """Returns the seconds of each of `count` calls on a device of PyTorch."""
    if device == "cpu":
        begin = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - begin) / count
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    # The device is busy with this one while the host enqueues the others.
    call()
    start.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / count
