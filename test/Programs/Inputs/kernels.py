# ===- kernels.py - calls compiled libraries on guarded memory -------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Compiles modules, and calls their functions on tensors that end or begin at
inaccessible pages."""

import ctypes
import json
import mmap
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from formats import BF16, F16, F32, F64, I1, I32, I64, INDEX

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                      ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
CANARY = 0xA5
DL_CODES = {F64: 2, F32: 2, F16: 2, BF16: 4, I64: 0, I32: 0, INDEX: 0, I1: 6}
BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
PARALLEL_FOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, BODY, ctypes.c_void_p,
                                ctypes.c_int64)


class CompileError(Exception):
    pass


class Compiler:
    """Runs posenc-compile, and finds out its tuning fields."""

    def __init__(self, path, folder):
        self.path, self.folder = path, folder

    def run(self, *arguments):
        env = dict(os.environ, POSENC_CACHE="off")
        return subprocess.run([self.path, *arguments], capture_output=True,
                              text=True, env=env, timeout=300)

    def compile(self, module, library, *flags):
        result = self.run(module, "-o", library, *flags)
        if result.returncode != 0:
            raise CompileError(
                f"{self.path} {module} {' '.join(flags)} exited with "
                f"{result.returncode}:\n{result.stderr}")
        return library

    def tuning_fields(self, module, cpu):
        """Returns (name, minimum, maximum, multiple) of every tuning field. They are
        taken from the tool's diagnostics, so new fields are tested, too."""
        path = os.path.join(self.folder, "probe.json")

        def error_of(choices):
            with open(path, "w", encoding="ascii") as file:
                json.dump({"version": 1, "cpu": cpu, "choices": choices}, file)
            return self.run(module, "-o", os.path.join(self.folder, "probe.so"),
                            "--tuning=" + path).stderr
        names = re.search(r"expected (.*)", error_of({"no such choice": 1}))
        assert names, "expected the error of an unknown choice to list the known ones"
        fields = []
        for name in names[1].strip().split(", "):
            limits = re.search(r"(?:a multiple of (\d+)|an integer) from (\d+) to (\d+)",
                               error_of({name: -1}))
            assert limits, f"expected the error of an invalid {name} to contain its range"
            multiple, minimum, maximum = (int(text or 1) for text in limits.groups())
            fields.append((name, minimum, maximum, multiple))
        return fields

    def write_tuning(self, name, cpu, fields, random):
        """Writes a tuning file with the smallest value of each field, so that small
        tensors use the code for large ones, with small tiles. With `random`, some
        fields have random values."""
        choices = {}
        for field, minimum, maximum, multiple in fields:
            value = max(multiple, minimum)
            if random and random.random() < 0.3:
                value = [minimum, 64, 4096, 1 << int(random.integers(48)),
                         maximum][random.integers(5)]
            choices[field] = min(max(value // multiple * multiple, minimum), maximum)
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="ascii") as file:
            json.dump({"version": 1, "cpu": cpu, "choices": choices}, file)
        return path


class Guarded:
    """Memory between two inaccessible pages. It is never freed, since a process
    calls few kernels."""

    def __init__(self, size):
        page = mmap.PAGESIZE
        self.length = max((size + page - 1) // page, 1) * page
        no_file, private_anonymous = -1, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        base = LIBC.mmap(None, self.length + 2 * page, 0, private_anonymous,
                         no_file, 0)
        assert base != ctypes.c_void_p(-1).value
        self.base = base + page
        assert LIBC.mprotect(self.base, self.length,
                             mmap.PROT_READ | mmap.PROT_WRITE) == 0

    def bytes(self):
        return np.frombuffer(
            (ctypes.c_uint8 * self.length).from_address(self.base), np.uint8)


def place(array, random, at_end=True, strided=False):
    """Copies an array into guarded memory, with random strides if `strided`. Its
    last element ends, or its first begins, at an inaccessible page. Returns the
    copy and all bytes of the memory around it."""
    if strided and array.ndim > 1 and array.size:
        # Permutes all dimensions but the last, and pads each dimension.
        order = list(random.permutation(array.ndim - 1)) + [array.ndim - 1]
        more = random.integers(0, 3, array.ndim)
        padded = [array.shape[d] + int(more[n]) for n, d in enumerate(order)]
        used = tuple(slice(int(more[n]), None) if at_end else
                     slice(0, array.shape[d]) for n, d in enumerate(order))
    else:
        order, padded = list(range(array.ndim)), list(array.shape)
        used = tuple(slice(None) for _ in order)
    size = int(np.prod(padded, dtype=np.int64)) * array.itemsize
    memory = Guarded(size).bytes()
    memory[:] = CANARY
    region = memory[len(memory) - size:] if at_end else memory[:size]
    base = region.view(array.dtype).reshape(padded)
    view = base[used].transpose(np.argsort(order))
    view[...] = array
    return view, memory


class DLTensor(ctypes.Structure):
    """The struct DLTensor of DLPack."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def address(array):
    # `array.ctypes.data` is arbitrary for empty arrays.
    return array.__array_interface__["data"][0]


def dl_tensor(kind, array):
    dims = ctypes.c_int64 * array.ndim
    strides = dims(*(s // array.itemsize for s in array.strides))
    return DLTensor(address(array), 1, 0, array.ndim, DL_CODES[kind],
                    8 * array.itemsize, 1, dims(*array.shape), strides, 0)


SCALARS = {I64: ctypes.c_int64, INDEX: ctypes.c_int64, I32: ctypes.c_int32,
           F32: ctypes.c_float, F64: ctypes.c_double}


class Library:
    """A compiled library. `set_order` sets the order of its tasks: None for the
    library's own loop, "reversed", "random", or "threads"."""

    def __init__(self, path):
        self.handle = ctypes.CDLL(path)
        self.prefix = re.sub(r"^lib|\.so$", "", os.path.basename(path))
        metadata = getattr(self.handle, self.prefix + "_metadata")
        metadata.restype = ctypes.c_char_p
        self.metadata = json.loads(metadata())
        self.functions = {f["name"]: f for f in self.metadata["functions"]}
        self.max_tasks = 0  # of any call
        self.kept = None

    def set_order(self, order, random=None):
        def run(_, body, argument, count):
            self.max_tasks = max(self.max_tasks, count)
            numbers = list(range(count))
            if order == "reversed":
                numbers.reverse()
            elif order == "random":
                random.shuffle(numbers)
            if order == "threads":
                with ThreadPoolExecutor(3) as pool:
                    list(pool.map(lambda i: body(argument, i), numbers))
            else:
                for i in numbers:
                    body(argument, i)
        setter = getattr(self.handle, self.prefix + "_set_parallel_for")
        setter.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self.kept, before = (PARALLEL_FOR(run) if order else None), self.kept
        setter(ctypes.cast(self.kept, ctypes.c_void_p) if order else None, None)
        del before

    def in_place(self, function):
        """Returns, for each output, the number of the input that it may alias, or
        None."""
        description = self.functions[function]
        names = [given["name"] for given in description["inputs"]]
        return [names.index(out["in_place"]) if out.get("in_place") else None
                for out in description["outputs"]]

    def unread(self, function):
        """Returns the numbers of the inputs whose data is not read."""
        inputs = self.functions[function]["inputs"]
        return [n for n, given in enumerate(inputs) if given.get("shape_only")]

    def sizes_of(self, function, arrays):
        """Returns the size arguments of the plain entry point."""
        description, sizes = self.functions[function], {}
        described = description["inputs"] + description["outputs"]
        for tensor, array in zip(described, arrays):
            for name, size in zip(tensor.get("shape", []), array.shape):
                sizes[name] = size
        return [ctypes.c_int64(sizes[name]) for name in description["sizes"]]

    def workspace(self, function, arrays):
        """Returns the workspace argument of an entry point, with the number of bytes
        that the library asks for; empty if the function takes none."""
        symbol = self.functions[function].get("workspace")
        if not symbol:
            return []
        count = getattr(self.handle, symbol)
        count.restype = ctypes.c_int64
        size = count(*self.sizes_of(function, arrays))
        memory = Guarded(size).bytes()
        memory[:] = CANARY
        return [ctypes.c_void_p(address(memory) + len(memory) - size)]

    def call_checked(self, function, kinds, arrays, absent=()):
        """Calls the entry point for DLPack tensors. A scalar is an array of rank 0.
        The data of tensors whose numbers are in `absent` is NULL."""
        entry_point = getattr(self.handle, f"{self.prefix}_{function}_dl")
        entry_point.restype = ctypes.c_int32
        message = ctypes.create_string_buffer(400)
        arguments, kept = [], []
        for kind, array in zip(kinds, arrays):
            if array.ndim == 0:
                arguments.append(SCALARS[kind](array.item()))
                continue
            kept.append(dl_tensor(kind, array))
            if len(arguments) in absent:
                kept[-1].data = None
            arguments.append(ctypes.byref(kept[-1]))
        arguments += self.workspace(function, arrays)
        code = entry_point(*arguments, message, ctypes.c_size_t(len(message)))
        return code, message.value.decode()

    def call_plain(self, function, kinds, arrays, absent=()):
        """Calls the plain entry point, which takes pointers and sizes of contiguous
        tensors."""
        entry_point = getattr(self.handle, f"{self.prefix}_{function}")
        entry_point.restype = ctypes.c_int32
        arguments = []
        for n, (kind, array) in enumerate(zip(kinds, arrays)):
            if array.ndim == 0:
                arguments.append(SCALARS[kind](array.item()))
            else:
                arguments.append(ctypes.c_void_p(
                    None if n in absent else address(array)))
        arguments += self.sizes_of(function, arrays)
        return entry_point(*arguments, *self.workspace(function, arrays)), ""
