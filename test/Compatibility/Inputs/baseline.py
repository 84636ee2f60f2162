#!/usr/bin/env python3
# ===- baseline.py - kernel libraries of a release --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Makes, unpacks and calls the libraries of a release that later ones must be able to call:

    baseline.py make POSENC_COMPILE FOLDER
    baseline.py unpack RELEASE FOLDER
    baseline.py run POSENC_RUN FOLDER [DEVICE]

RELEASE is a folder with compressed libraries. `run` prints the SHA-256 hash of each result.
Inputs are computed here from integers, so that they never change.
"""

import hashlib
import lzma
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CONFIG = HERE.parents[2] / "examples" / "configs" / "phi-2.json"
CPU = "--target=x86-64:x86-64-v3"

# The commands that made the libraries: input and options.
LIBRARIES = {
    "rotations": (CONFIG, ["--dtype=f32", "--kernels=rope,sincos", CPU,
                           "--target=cuda:sm_80", "--target=vulkan"]),
    "attentions": (CONFIG, ["--dtype=f32", "--kernels=attention,decode", "--index-type=i32",
                            "--lse", CPU]),
    "graphs": (HERE / "graphs.mlir", ["--weights=file", "--threads=none",
                                      "--stack-limit=15360", CPU]),
}

HEADS, DIM = 32, 80

# The inputs of a call of each function: a number, or an element type, a shape and the values.
# Without values, they are multiples of 1/64 that look random.
CASES = {
    "rotations": {
        "sincos": [("i64", [5], [0, 1, -7, 1000003, 2**31])],
        "rope": [("f32", [2, 3, HEADS, DIM]), ("f32", [2, 3, HEADS, DIM]),
                 ("i64", [2, 3], [0, 1, 2, 70000, 70001, 9])],
    },
    "attentions": {
        "attention": [("f32", [1, 19, HEADS, DIM])] * 3 + [("i32", [1, 19], range(19))],
        "decode": [("f32", [2, 1, HEADS, DIM]), ("f32", [2, HEADS, 33, DIM]),
                   ("f32", [2, HEADS, 33, DIM]), ("i32", [2], [33, 7])],
    },
    "graphs": {
        "layer": [("f32", [7, 32]), ("i1", [7], [1, 1, 0, 1, 0, 0, 1]), 0.25],
        "take": [("f32", [9]), ("i64", [1], [4])],
        "embed": [("i64", [4], [2, 0, 3, 4]), ("f64", [5, 8])],
    },
}
FORMATS = {"f64": ("d", "<f8"), "f32": ("f", "<f4"), "i64": ("q", "<i8"), "i32": ("i", "<i4"),
           "i1": ("?", "|b1")}


def encode(seed, dtype, shape, values=None):
    """Returns the little-endian bytes of an input. Other seeds give other numbers."""
    count = 1
    for size in shape:
        count *= size
    if values is None:
        values = [((i * 2654435761 + seed * 40503) >> 7) % 257 / 64 - 2 for i in range(count)]
    return struct.pack(f"<{count}{FORMATS[dtype][0]}", *values)


def write_npy(path, dtype, shape, data):
    header = (f"{{'descr': '{FORMATS[dtype][1]}', 'fortran_order': False, "
              f"'shape': ({''.join(f'{size}, ' for size in shape)})}}")
    header = header.ljust((len(header) + 74) // 64 * 64 - 11) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header))
                     + header.encode() + data)


def read_npy(path):
    """Returns the bytes of the elements."""
    data = path.read_bytes()
    return data[10 + struct.unpack_from("<H", data, 8)[0]:]


def hash_result(data):
    return hashlib.sha256(data).hexdigest()[:16]


def write_weights(path):
    """Writes the weights of graphs.mlir, 4 KiB, as safetensors."""
    data = encode(9, "f32", [32, 32])
    header = ('{"w":{"dtype":"F32","shape":[32,32],"data_offsets":[0,%d]}}' % len(data)).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


def make(compiler, folder):
    """Compiles the libraries as those of the first release were, and compresses them."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = folder / "constants.safetensors"
    write_weights(weights)
    environment = {**os.environ, "POSENC_CACHE": "off", "POSENC_PTXAS": "off"}
    for name, (source, options) in LIBRARIES.items():
        constants = [f"--constants={weights}"] if name == "graphs" else []
        subprocess.run([compiler, source, "-o", folder / f"lib{name}.so", *constants, *options],
                       env=environment, check=True)
    weights.unlink()
    for path in sorted(folder.iterdir()):
        if path.suffix in (".so", ".safetensors"):
            path.with_suffix(path.suffix + ".xz").write_bytes(
                lzma.compress(path.read_bytes(), preset=9 | lzma.PRESET_EXTREME))
        if path.suffix != ".xz":
            path.unlink()


def unpack(release, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for path in release.glob("*.xz"):
        (folder / path.stem).write_bytes(lzma.decompress(path.read_bytes()))


def run(program, folder, *device):
    """Calls each function by posenc-run; on a GPU, those that have code for it."""
    for library, functions in CASES.items():
        if device and library != "rotations":
            continue
        for function, inputs in functions.items():
            with tempfile.TemporaryDirectory() as place:
                options = []
                for index, value in enumerate(inputs):
                    if isinstance(value, tuple):
                        path = pathlib.Path(place, f"{index}.npy")
                        write_npy(path, *value[:2], encode(index, *value))
                        value = f"@{path}"
                    options.append(f"--input={value}")
                outputs = [pathlib.Path(place, f"out{index}.npy") for index in range(2)]
                command = [program, folder / f"lib{library}.so", f"--function={function}",
                           *(f"--device={name}" for name in device), *options]
                listed = subprocess.run(command, capture_output=True, text=True, check=False)
                if listed.returncode:
                    print(f"{library} {function}: {listed.stderr.strip()}")
                    continue
                outputs = outputs[:len(re.findall("^result #", listed.stdout, re.MULTILINE))]
                subprocess.run([*command, *(f"--output=@{path}" for path in outputs)],
                               stdout=subprocess.DEVNULL, check=True)
                for index, path in enumerate(outputs):
                    print(library, function, index, hash_result(read_npy(path)))


def main():
    command, first, folder, *rest = sys.argv[1:]
    folder = pathlib.Path(folder)
    if command == "make":
        make(first, folder)
    elif command == "unpack":
        unpack(pathlib.Path(first), folder)
    else:
        run(first, folder, *rest)


if __name__ == "__main__":
    main()
