# ===- weights.py - weights in a file beside the library --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""weights.py POSENC-COMPILE POSENC-RUN: compares libraries with weights in a file and
in the code, reads the file, and opens damaged ones."""

import ctypes
import hashlib
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import threading

import numpy as np
from onnx_model import node, tensor, write

COMPILE, RUN = sys.argv[1:]
checks = wrong = 0
random = np.random.default_rng(5)
HEADER, ALIGNMENT = 4096, 64


def check(name, passes, detail=""):
    global checks, wrong
    checks += 1
    if not passes:
        wrong += 1
        print(f"{name}: wrong {detail}")


def compile(output, *flags, model="model.onnx"):
    return subprocess.run([COMPILE, model, "-o", output, "--threads=none",
                           "--opt-level=0", *flags], capture_output=True, text=True)


def call(library):
    return subprocess.run([RUN, library, "--input=@ids.npy", "--output=@y.npy"],
                          capture_output=True, text=True)


def result(library):
    done = call(library)
    check(f"{library} runs", done.returncode == 0, done.stderr)
    return pathlib.Path("y.npy").read_bytes()


# A table that is read by rows and, transposed, as a matrix; matrices whose columns do
# and do not fill their panels; and a small constant.
emb, w1, w2, bias = (random.standard_normal(shape).astype(np.float32)
                     for shape in ((300, 64), (64, 100), (64, 100), (64,)))


def write_model(path, table):
    initializers = [tensor(name, "f32", array.shape, raw=array.tobytes()) for name, array
                    in (("emb", table), ("w1", w1), ("w2", w2), ("bias", bias))]
    write(path, [node("Gather", ["emb", "ids"], ["x"]),
                 node("MatMul", ["x", "w1"], ["h"]),
                 node("Gemm", ["h", "w2", "bias"], ["g"], transB=1),
                 node("Transpose", ["emb"], ["t"], perm=[1, 0]),
                 node("MatMul", ["g", "t"], ["y"])],
          {"ids": ("i64", ["n"])}, ["y"], initializers)


write_model("model.onnx", emb)
write_model("other.onnx", emb + 1)
ids = np.arange(7) * 41
np.save("ids.npy", ids)
for flags in (["libembed.so", "--weights=embed"], ["libdefault.so"],
              ["libX.so", "--weights=file"]):
    done = compile(*flags)
    check(f"compile {flags}", done.returncode == 0 and not done.stderr, done.stderr)
check("no file by default",
      not any(pathlib.Path(f"{name}.safetensors").exists() for name in ("embed", "default")))
expected = result("./libembed.so")
y = np.load("y.npy")
reference = (emb[ids].astype(float) @ w1 @ w2.T + bias) @ emb.T
check("results", np.allclose(y, reference, rtol=1e-3, atol=1e-3))
check("the code has no weights", os.path.getsize("libX.so") + 70000 <
      os.path.getsize("libembed.so"))
check("same bits", result("./libX.so") == expected)
done = subprocess.run([RUN, "model.onnx", "--input=@ids.npy", "--reference"],
                      capture_output=True, text=True)
check("reference", done.returncode == 0, done.stdout + done.stderr)

# ===----------------------------------------------------------------------===#
# The format
# ===----------------------------------------------------------------------===#

good = pathlib.Path("X.safetensors").read_bytes()
size, = struct.unpack("<Q", good[:8])
header, data = json.loads(good[8:8 + size]), good[8 + size:]
metadata = header.pop("__metadata__")
check("header", (8 + size) % HEADER == 0 and good[8 + size - 1:8 + size] == b" ")
check("metadata", set(metadata) == {f"posenc.{key}" for key in (
    "format", "version", "targets", "packing", "digest")}, metadata)
packing = json.loads(metadata["posenc.packing"])
arrays, end = {}, 0
for name, entry in header.items():
    begin, next_end = entry["data_offsets"]
    check(f"{name} has no hole before it", begin == end)
    end = next_end
    padding = name.startswith("posenc.padding.")
    check(f"{name} is aligned", padding or begin % ALIGNMENT == 0, begin)
    kind = {"F32": np.float32, "U8": np.uint8}[entry["dtype"]]
    arrays[name] = np.frombuffer(data[begin:end], kind).reshape(entry["shape"])
    check(f"{name} is zeros", not padding or not arrays[name].any())
check("all bytes", end == len(data))
check("the table is as it was", any(np.array_equal(array, emb) for array in
                                    arrays.values()), list(arrays))
found = {}
for name, layout in packing.items():
    panels, (rows, columns) = arrays[name], layout["shape"]
    check(f"{name} has panels", layout["layout"] == f"panels{panels.shape[2]}")
    matrix = panels.transpose(1, 0, 2).reshape(rows, -1)
    check(f"{name} ends with zeros", not matrix[:, columns:].any())
    found[re.sub(r"\..*", "", name)] = matrix[:, :columns]
for name, array in (("w1", w1), ("w2", w2.T), ("constant", emb.T)):
    check(f"{name} is packed", name in found and np.array_equal(found[name], array), found)
compile("libX.so", "--weights=file")
check("same bytes", pathlib.Path("X.safetensors").read_bytes() == good)

# Versions for two CPUs: tensors that both read are stored once.
done = compile("libtwo.so", "--weights=file", "--target=x86-64-v3", "--target=x86-64-v4")
check("two targets", done.returncode == 0 and not done.stderr, done.stderr)
two = pathlib.Path("two.safetensors").read_bytes()
names = json.loads(two[8:8 + struct.unpack("<Q", two[:8])[0]])
check("one table", [entry["shape"] for name, entry in names.items()
                    if "shape" in entry].count([300, 64]) == 1, list(names))
check("two packings", sum(".panels" in name for name in names) == 6, list(names))
check("two versions run", np.allclose(np.frombuffer(result("./libtwo.so")[-4 * y.size:],
                                                    np.float32), y.ravel(), rtol=1e-4))

# ===----------------------------------------------------------------------===#
# Damaged files
# ===----------------------------------------------------------------------===#


def edit(old, new, count=1):
    """Replaces a text of the header by one of the same length or, with spaces that are
    removed or added, of another."""
    text = good[:8 + size].replace(old, new, count)
    assert text != good[:8 + size], old
    return (text + b" " * (8 + size))[:8 + size] + data


def flip(position):
    return good[:position] + bytes([good[position] ^ 1]) + good[position + 1:]


compile("libother.so", "--weights=file", model="other.onnx")
compile("libold.so", "--weights=file", "--target=x86-64-v3")
DAMAGES = {
    "empty": b"",
    "a part of the size": good[:5],
    "the size alone": good[:8],
    "half a header": good[:size // 2],
    "the header alone": good[:8 + size],
    "a byte less": good[:-1],
    "a page less": good[:-4096],
    "a byte more": good + b"\0",
    "a page more": good + b"\0" * 4096,
    "a size of 0": struct.pack("<Q", 0) + good[8:],
    "a size of 2^64 - 1": b"\xff" * 8 + good[8:],
    "a size of 2^63": struct.pack("<Q", 1 << 63) + good[8:],
    "a larger size": struct.pack("<Q", size + 4096) + good[8:],
    "another name": edit(b'"w1.', b'"w3.'),
    "another type": edit(b'"F32"', b'"I32"'),
    "another shape": edit(b"[300,64]", b"[64,300]"),
    "other offsets": edit(b'"data_offsets":[0,', b'"data_offsets":[9,'),
    "another format": edit(b'"posenc.format":"1"', b'"posenc.format":"2"'),
    "another digest": edit(b'"blake3:', b'"blake2:'),
    "no JSON": edit(b'{"__metadata__"', b'["__metadata__"'),
    "a changed space": flip(8 + size - 1),
    "a changed size": flip(0),
    "zeros": bytes(len(good)),
    "noise": random.bytes(len(good)),
    "weights of another model": pathlib.Path("other.safetensors").read_bytes(),
    "weights of another target": pathlib.Path("old.safetensors").read_bytes(),
    "code": pathlib.Path("libX.so").read_bytes(),
}
file = pathlib.Path("X.safetensors")


def refuse(name):
    done = call("./libX.so")
    check(name, done.returncode == 1 and "weights: " in done.stderr
          and "X.safetensors" in done.stderr, f"{done.returncode}, {done.stderr}")


for name, content in DAMAGES.items():
    file.write_bytes(content)
    refuse(name)
file.unlink()
refuse("no file")
file.mkdir()
refuse("a folder")
file.rmdir()
os.mkfifo(file)
refuse("a pipe")
file.unlink()
for target in ("missing", "/dev/zero", "X.safetensors"):
    file.symlink_to(target)
    refuse(f"a link to {target}")
    file.unlink()
pathlib.Path("good").write_bytes(good)
file.symlink_to("good")
check("a link to the file", result("./libX.so") == expected)
file.unlink()
file.write_bytes(good)
check("the file", result("./libX.so") == expected)


def verify():
    return subprocess.run([RUN, "libX.so", "--verify-weights"], capture_output=True, text=True)


done = verify()
check("the digest", done.returncode == 0 and f"{len(data)} bytes" in done.stdout, done.stderr)
for position in (8 + size, len(good) - 1, 8 + size + len(data) // 2):
    file.write_bytes(flip(position))
    done = verify()
    check("a changed weight", done.returncode == 1 and "are damaged" in done.stderr,
          done.stderr)
file.write_bytes(good)
done = subprocess.run([RUN, "libembed.so", "--verify-weights"], capture_output=True, text=True)
check("no weights to verify", done.returncode == 1 and "no weights" in done.stderr)

# ===----------------------------------------------------------------------===#
# X_weights_open
# ===----------------------------------------------------------------------===#

os.makedirs("place", exist_ok=True)
shutil.copy("libX.so", "place/libX.so")
shutil.copy("X.safetensors", "place/Y.safetensors")
library = ctypes.CDLL("./place/libX.so")
library.X_main_workspace.restype = ctypes.c_int64
workspace = ctypes.create_string_buffer(library.X_main_workspace(ctypes.c_int64(7)) + 1)
out = np.zeros_like(y)


def call_main():
    return library.X_main(ids.ctypes.data_as(ctypes.c_void_p),
                          out.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(7), workspace)


def open_weights(path, length=300):
    message = ctypes.create_string_buffer(300)
    code = library.X_weights_open(path, message, ctypes.c_size_t(length))
    return code, message.value.decode()


check("weights that are not open", call_main() == 15 and not out.any())
code, message = open_weights(None)
check("the default path", code == 15 and message.endswith(
    "place/X.safetensors: cannot be opened: there is no such file"), message)
check("a short message", open_weights(b"missing", 4) == (15, "mis"))
check("no message", library.X_weights_open(b"missing", None, ctypes.c_size_t(0)) == 15)
check("a long path", open_weights(b"x" * 5000)[1] == "the path of the weights is too long")
check("a folder without it", open_weights(b"place/")[1].startswith("place/X.safetensors: "))
check("still not open", call_main() == 15)
codes = []
threads = [threading.Thread(target=lambda: codes.append(open_weights(b"place/Y.safetensors")))
           for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
check("threads", codes == [(0, "")] * 8, codes)
check("open weights", call_main() == 0 and out.tobytes() == expected[-out.nbytes:])
code, message = open_weights(b"X.safetensors")
check("another path", code == 15 and message == "X.safetensors: the library has opened its "
      "weights already, from place/Y.safetensors", message)
check("the open one", open_weights(None) == (0, "")
      and open_weights(b"place/Y.safetensors") == (0, ""))
check("still open", call_main() == 0)

# ===----------------------------------------------------------------------===#
# Errors of the compiler
# ===----------------------------------------------------------------------===#

os.makedirs("errors/header")
done = compile("errors/libX.so", "--weights=file", "--header=errors/header")
check("an error leaves nothing", done.returncode == 1 and os.listdir("errors") == ["header"],
      f"{os.listdir('errors')}, {done.stderr}")
for output, flag in (("x.s", "--weights=file"), ("x.ll", "--weights=file"),
                     ("libX.so", "--weights=here")):
    done = compile(output, flag)
    check(f"{output} {flag}", done.returncode == 2 and "weights" in done.stderr, done.stderr)
check("the old file", hashlib.sha256(file.read_bytes()).digest() ==
      hashlib.sha256(good).digest())
pathlib.Path("large.mlir").write_text("".join(
    f"func.func @f{i}() -> tensor<52428800xf32> {{\n"
    f"  %c = arith.constant dense<{i}.0> : tensor<52428800xf32>\n"
    "  return %c : tensor<52428800xf32>\n}\n" for i in range(1, 7)))
done = compile("liblarge.so", "--weights=embed", model="large.mlir")
check("too much for code", done.returncode == 1 and "--weights=file" in done.stderr, done.stderr)
done = compile("libX.so", "--weights=file", "--target=cuda:sm_80", "--target=x86-64-v3")
check("no code for GPUs", done.returncode == 1, done.stderr)

print(f"{checks} checks, {wrong} wrong")
