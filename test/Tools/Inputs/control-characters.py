#!/usr/bin/env python3
# ===- control-characters.py - names with control characters ---------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# control-characters.py FOLDER COMPILE RUN BENCH TUNE: checks what the tools print of
# names that begin with the escape sequence for red, and have U+009B, which begins
# others. FOLDER has onnx_model.py.

import json
import subprocess
import sys

folder, compile_, run, bench, tune = sys.argv[1:]
sys.path.insert(0, folder)
import onnx_model  # noqa: E402

NAME = "\x1b[31mn\u00e4me\u009b"
ESCAPED = r"\x1B[31mnäme\xC2\x9B"
# Text of configs is quoted before it is printed.
QUOTED = r"\1B[31mn"
CONFIG = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 1}
MODULE = """func.func @"f\\1B[31m"(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
"""


def write(path, content):
    with open(path, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return path


def write_config(path, **keys):
    return write(path, json.dumps({**CONFIG, **keys}))


def write_model(path, *nodes):
    return write(path, onnx_model.model(list(nodes), {"x": ("f32", [4])}, ["y"]))


def write_array(path):
    header = f"{{'descr': '<f4{NAME}', 'fortran_order': False, 'shape': (4,), }}"
    header = header.encode("latin-1", "replace").ljust(117) + b"\n"
    return write(path, b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)


node = onnx_model.node
module = write("list.mlir", MODULE)
CASES = [
    # Files that do not exist.
    (ESCAPED, compile_, NAME + ".json", "-o", "x.o"),
    (ESCAPED, run, NAME + ".mlir"),
    (ESCAPED, run, NAME + ".so"),
    (ESCAPED, bench, NAME + ".mlir"),
    (ESCAPED, tune, NAME + ".mlir", "-o", "x.json"),
    # The command line.
    (ESCAPED, compile_, "--" + NAME),
    (ESCAPED, run, module, f"--function={NAME}"),
    # Configs and tuning files.
    (QUOTED, compile_, write_config("type.json", model_type=NAME), "-o", "x.o"),
    (QUOTED, compile_, write_config("layers.json", layer_types=[NAME]), "-o", "x.o"),
    (QUOTED, compile_, module, "-o", "x.o", "--tuning=" + write(
        "tuning.json", json.dumps({"version": 1, "cpu": NAME, "choices": {}}))),
    # ONNX models. The end of a line within a name is none of a message.
    (ESCAPED, compile_, write_model("op.onnx", node(NAME, ["x"], ["y"])), "-o", "x.o"),
    (ESCAPED, compile_, write_model(
        "input.onnx", node("Neg", [NAME], ["y"], name="a\nerror: b")), "-o", "x.o"),
    # Functions of MLIR.
    (r"f\x1B[31m", compile_, module, "--list"),
    (r"f\x1B[31m", run, module, "--function=g"),
    ("unexpected character", run, write("array.mlir", MODULE.replace('"f\\1B[31m"', "f")),
     "--input=@" + write_array("array.npy")),
]
wrong = 0
for expected, *command in CASES:
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            check=False)
    text = result.stdout.decode(errors="replace")
    controls = [c for c in text if c in "\x7f\ufffd" or c < " " and c != "\n"
                or "\x80" <= c < "\xa0"]
    if controls or expected not in text or "\nerror: b" in text:
        print(f"{command}: expected {expected!r}, got {text!r}")
        wrong += 1
print(f"{len(CASES)} messages, {wrong} wrong")
