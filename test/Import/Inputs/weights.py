# ===- weights.py - weights in a file beside the library --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""weights.py POSENC-COMPILE POSENC-RUN: compares libraries with weights in a file and
in the code, and reads the file."""

import ctypes
import hashlib
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import threading

import numpy as np
from onnx_model import node, tensor, write
from weights_model import (RUN, call, check, compile, emb, finish, get_reference, ids,
                           random, result, split, w1, w2, write_model)

HEADER, ALIGNMENT = 4096, 64

write_model("model.onnx", emb)
np.save("ids.npy", ids)
for flags in (["libembed.so", "--weights=embed"], ["libdefault.so"],
              ["libX.so", "--weights=file"]):
    done = compile(*flags)
    check(f"compile {flags}", done.returncode == 0 and not done.stderr, done.stderr)
check("no file by default",
      not any(pathlib.Path(f"{name}.safetensors").exists() for name in ("embed", "default")))
expected = result("./libembed.so")
y = np.load("y.npy")
check("results", np.allclose(y, get_reference(), rtol=1e-3, atol=1e-3))
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
size, header, data = split(good)
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
check("the tied table is stored once", not any(array.shape == emb.shape for array in
                                              arrays.values()), list(arrays))
found = {}
for name, layout in packing.items():
    panels, (rows, columns) = arrays[name], layout["shape"]
    check(f"{name} has panels", layout["layout"] == f"panels{panels.shape[2]}")
    matrix = panels.transpose(1, 0, 2).reshape(rows, -1)
    check(f"{name} ends with zeros", not matrix[:, columns:].any())
    found[re.sub(r"\..*", "", name)] = matrix[:, :columns]
for name, array in (("w1", w1), ("w2", w2.T), ("emb", emb.T)):
    check(f"{name} is packed", name in found and np.array_equal(found[name], array), found)
compile("libX.so", "--weights=file")
check("same bytes", pathlib.Path("X.safetensors").read_bytes() == good)

# Versions for two CPUs: both read the panels of the one with wider vectors.
done = compile("libtwo.so", "--weights=file", "--target=x86-64-v3", "--target=x86-64-v4")
check("two targets", done.returncode == 0 and not done.stderr, done.stderr)
names = split(pathlib.Path("two.safetensors").read_bytes())[1]
packed = [name for name in names if ".panels" in name]
check("one packing", len(packed) == 3 and all(".panels32." in name for name in packed),
      list(names))
check("no table", not any(entry.get("shape") == [300, 64] for entry in names.values()))
check("two versions run", np.allclose(np.frombuffer(result("./libtwo.so")[-4 * y.size:],
                                                    np.float32), y.ravel(), rtol=1e-4))

# ===----------------------------------------------------------------------===#
# Quantized matrices
# ===----------------------------------------------------------------------===#

DEPTH, COLUMNS, BLOCK = 200, 150, 32
blocks = -(-DEPTH // BLOCK)
codes = random.integers(0, 256, (COLUMNS, blocks, BLOCK // 2), np.uint8)
scales = random.uniform(0.5, 1, (COLUMNS, blocks)).astype(np.float32)
zeros = random.integers(0, 256, (COLUMNS, -(-blocks // 2)), np.uint8)
write("codes.onnx", [node("MatMulNBits", ["x", "codes", "scales", "zeros"], ["y"],
                          domain="com.microsoft", K=DEPTH, N=COLUMNS, bits=4,
                          block_size=BLOCK)],
      {"x": ("f32", ["n", DEPTH])}, ["y"],
      [tensor("codes", "u8", codes.shape, raw=codes.tobytes()),
       tensor("scales", "f32", scales.shape, raw=scales.tobytes()),
       tensor("zeros", "u8", zeros.shape, raw=zeros.tobytes())])
x = random.standard_normal((5, DEPTH)).astype(np.float32)
np.save("x.npy", x)


def unpack(packed, count):
    return np.stack([packed & 15, packed >> 4], -1).reshape(COLUMNS, -1)[:, :count]


matrix = (unpack(codes, blocks * BLOCK).reshape(COLUMNS, blocks, BLOCK).astype(float) -
          unpack(zeros, blocks)[..., None]) * scales[..., None]
matrix = matrix.reshape(COLUMNS, -1)[:, :DEPTH]
for flags in (["libcodes.so", "--weights=embed"], ["libC.so", "--weights=file"]):
    done = compile(*flags, model="codes.onnx")
    check(f"compile {flags}", done.returncode == 0 and not done.stderr, done.stderr)
same = result("./libcodes.so", "@x.npy")
product = np.load("y.npy")
check("product of codes", np.allclose(product, x @ matrix.T, rtol=1e-3, atol=1e-2))
check("same bits of codes", result("./libC.so", "@x.npy") == same)
_, names, data_of_codes = split(pathlib.Path("C.safetensors").read_bytes())
packing = json.loads(names["__metadata__"]["posenc.packing"])
name, = [name for name in packing if name.startswith("codes.")]
check("packing of codes", packing[name] == {
    "layout": "codes64", "bits": 4, "block": BLOCK, "shape": [DEPTH, COLUMNS]}, packing)
begin, end = names[name]["data_offsets"]
panels = np.frombuffer(data_of_codes[begin:end], np.uint32).reshape(names[name]["shape"])
# Panels, blocks, words, columns: the lowest bits of the words are the first part of a block.
parts = np.concatenate([panels >> bit & 15 for bit in range(0, 32, 4)], 2)
found = parts.transpose(0, 3, 1, 2).reshape(-1, blocks * BLOCK)
check("codes", np.array_equal(found[:COLUMNS], unpack(codes, blocks * BLOCK)))
# A table whose rows are the columns of a product.
whole = blocks * BLOCK
write("tied.onnx", [node("Reshape", ["codes", "shape"], ["rows"]),
                    node("GatherBlockQuantized", ["rows", "ids", "scales", "zeros"], ["e"],
                         domain="com.microsoft", bits=4, block_size=BLOCK,
                         gather_axis=0, quantize_axis=1),
                    node("MatMulNBits", ["e", "codes", "scales", "zeros"], ["y"],
                         domain="com.microsoft", K=whole, N=COLUMNS, bits=4,
                         block_size=BLOCK)],
      {"ids": ("i64", ["n"])}, ["y"],
      [tensor("codes", "u8", codes.shape, raw=codes.tobytes()),
       tensor("scales", "f32", scales.shape, raw=scales.tobytes()),
       tensor("zeros", "u8", zeros.shape, raw=zeros.tobytes()),
       tensor("shape", "i64", [2], [COLUMNS, -1])])
compile("libT.so", "--weights=file", model="tied.onnx")
numbers = np.array([3, 149, 0, 64, -1])
np.save("numbers.npy", numbers)
table = (unpack(codes, whole).reshape(COLUMNS, blocks, BLOCK).astype(float) -
         unpack(zeros, blocks)[..., None]) * scales[..., None]
table = table.reshape(COLUMNS, -1)
result("./libT.so", "@numbers.npy")
check("tied codes", np.allclose(np.load("y.npy"), table[numbers] @ table.T, rtol=1e-3,
                                atol=1e-1))
names = split(pathlib.Path("T.safetensors").read_bytes())[1]
check("tied codes are stored once", sum(
    int(np.subtract(*entry["data_offsets"][::-1])) >= codes.size for name, entry in names.items()
    if "dtype" in entry and entry["dtype"] != "U8") == 1, list(names))
np.save("numbers.npy", numbers + 150)
done = call("./libT.so", "@numbers.npy")
check("a row out of range", done.returncode == 1 and "out of range" in done.stderr,
      done.stderr)
check("no codes as they were", not any(entry.get("shape") == list(codes.shape)
                                       for entry in names.values()), list(names))

# A matrix for each head.
heads = random.standard_normal((3, 64, 70)).astype(np.float32)
write("heads.onnx", [node("MatMul", ["x", "heads"], ["y"])],
      {"x": ("f32", ["b", 3, "n", 64])}, ["y"],
      [tensor("heads", "f32", heads.shape, raw=heads.tobytes())])
x = random.standard_normal((2, 3, 5, 64)).astype(np.float32)
np.save("x.npy", x)
compile("libH.so", "--weights=file", model="heads.onnx")
result("./libH.so", "@x.npy")
check("products of heads", np.allclose(np.load("y.npy"), x @ heads, rtol=1e-3, atol=1e-4))
_, names, data_of_heads = split(pathlib.Path("H.safetensors").read_bytes())
packing = json.loads(names["__metadata__"]["posenc.packing"])
name, = packing
check("packing of heads", re.match(r"heads\.batch3\.panels\d+\.64x70\.1$", name) and
      packing[name]["shape"] == [64, 70] and len(names) == 2, list(names))
shape = names[name]["shape"]
panels = np.frombuffer(data_of_heads, np.float32)[:np.prod(shape)].reshape(3, -1, *shape[1:])
check("heads", np.array_equal(
    panels.transpose(0, 2, 1, 3).reshape(3, 64, -1)[..., :70], heads))

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
# Arguments that a file has the values of
# ===----------------------------------------------------------------------===#

PRODUCT = """
func.func @main(%x: tensor<?x64xf32>, %w: tensor<64x100xf32>, %again: tensor<64x100xf32>)
    -> tensor<?x100xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x64xf32>
  %empty = tensor.empty(%n) : tensor<?x100xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x100xf32>) -> tensor<?x100xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x100xf32>)
    outs(%zeros : tensor<?x100xf32>) -> tensor<?x100xf32>
  %z = linalg.matmul ins(%x, %again : tensor<?x64xf32>, tensor<64x100xf32>)
    outs(%y : tensor<?x100xf32>) -> tensor<?x100xf32>
  return %z : tensor<?x100xf32>
}
"""
pathlib.Path("product.mlir").write_text(PRODUCT)
pathlib.Path("called.mlir").write_text(PRODUCT + PRODUCT.replace("@main", "@other").replace(
    "%y = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x100xf32>)\n"
    "    outs(%zeros : tensor<?x100xf32>) -> tensor<?x100xf32>",
    "%y = func.call @main(%x, %w, %again) : (tensor<?x64xf32>, tensor<64x100xf32>,\n"
    "    tensor<64x100xf32>) -> tensor<?x100xf32>"))
np.save("x.npy", emb)


def write_constants(header, data=w1.tobytes()):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    pathlib.Path("constants.safetensors").write_bytes(
        struct.pack("<Q", len(text)) + text + data)


def describe(dtype="F32", shape=(64, 100), begin=0, end=w1.nbytes):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def compile_constants(output, *flags, model="product.mlir"):
    return compile(output, "--constants=constants.safetensors", *flags, model=model)


# Two names of the same bytes are one constant, which is packed once.
write_constants({"__metadata__": {"a": "b"}, "w": describe(), "again": describe()})
done = compile_constants("libproduct.so", "--weights=file")
check("constants", done.returncode == 0 and not done.stderr, done.stderr)
result("./libproduct.so", "@x.npy")
y = np.load("y.npy")
check("their product", np.allclose(y, 2 * (emb.astype(float) @ w1), rtol=1e-4, atol=1e-4))
_, header, data = split(pathlib.Path("product.safetensors").read_bytes())
names = [name for name in header if name.startswith("w.panels")]
check("one matrix", len(names) == 1 and len(data) < 2 * w1.nbytes, f"{list(header)}")
# A tensor with the name of the packed matrix is another one.
shape = header[names[0]]["shape"]
panels = bytes(4 * int(np.prod(shape)))
text = "x".join(str(size) for size in shape)
pathlib.Path("packed.mlir").write_text(PRODUCT.replace(
    "%again: tensor<64x100xf32>)", "%again: tensor<64x100xf32>, "
    f"%p: tensor<{text}xf32> {{posenc.name = \"{names[0]}\"}})"))
write_constants({"w": describe(), "again": describe(), names[0]: describe(
    shape=shape, begin=w1.nbytes, end=w1.nbytes + len(panels))}, w1.tobytes() + panels)
done = compile_constants("libpacked.so", model="packed.mlir")
check("a packed name", done.returncode == 0, done.stderr)
result("./libpacked.so", "@x.npy")
check("the product of the matrix", (np.load("y.npy") == y).all())
write_constants({"w": describe()})
check("one argument is left", compile_constants("libone.so").returncode == 0)
result("./libone.so", "@x.npy", "64x100xf32=0")
check("the other is 0", np.allclose(np.load("y.npy"), emb.astype(float) @ w1, rtol=1e-4,
                                    atol=1e-4))
for header, error in (
        ({"v": describe()}, "there is no argument 'v'"),
        ({"w": describe("F16")}, "another type or shape than its argument, "
         "tensor<64x100xf32>"),
        ({"w": describe(shape=(100, 64))}, "another type or shape"),
        ({"w": describe(shape=(64,))}, "another type or shape"),
        ({"w": describe(begin=4)}, "a wrong range of bytes"),
        ({"w": describe(begin=-4, end=w1.nbytes - 4)}, "a wrong range of bytes"),
        ({"w": describe(begin=4, end=w1.nbytes + 4)}, "a wrong range of bytes"),
        ({"w": describe(begin=2 ** 63)}, "a wrong range of bytes"),
        ({"w": {"shape": [64, 100]}}, "has no dtype, shape or data_offsets"),
        ({"w": []}, "has no dtype, shape or data_offsets"),
        ({"x": describe()}, "an argument that cannot be a constant"),
        ([], "its header is no object"), (b"{", "cannot read constants"),
        (b"[" * 100000, "nested deeper than 64 levels"),
        # Brackets of a name are no brackets of the header.
        (b'{"' + b"}" * 99 + b'":' + b"[" * 99, "nested deeper than 64 levels"),
        (b'{"w":{},"w":{}}', "'w' is given twice"),
        ({"a": describe(), "\x1b[31m": describe()}, "there is no argument 'a'"),
        ({"\x1b[31m": describe()}, "there is no argument '\\x1B[31m'"),
        (b"", "cannot read constants")):
    write_constants(header)
    done = compile_constants("liberror.so")
    check(f"constants {header[:40] if isinstance(header, bytes) else header}",
          done.returncode == 1 and error in done.stderr, done.stderr)
write_constants({"w": describe()})
done = compile_constants("liberror.so", model="called.mlir")
check("a function that is called", done.returncode == 1 and "is called" in done.stderr,
      done.stderr)
for content, error in ((b"", "it has no header"),
                       (struct.pack("<Q", 2 ** 63), "longer than the file")):
    pathlib.Path("constants.safetensors").write_bytes(content)
    done = compile_constants("liberror.so")
    check(f"constants {content}", done.returncode == 1 and error in done.stderr, done.stderr)
done = compile("liberror.so", "--constants=none", model="product.mlir")
check("no constants", done.returncode == 1 and "cannot read 'none'" in done.stderr,
      done.stderr)
done = compile("liberror.so", "--constants=/dev/zero", model="product.mlir")
check("endless constants", done.returncode == 1 and "it is a device" in done.stderr,
      done.stderr)

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
check("the old file", hashlib.sha256(pathlib.Path("X.safetensors").read_bytes()).digest() ==
      hashlib.sha256(good).digest())
pathlib.Path("large.mlir").write_text("".join(
    f"func.func @f{i}() -> tensor<52428800xf32> {{\n"
    f"  %c = arith.constant dense<{i}.0> : tensor<52428800xf32>\n"
    "  return %c : tensor<52428800xf32>\n}\n" for i in range(1, 7)))
done = compile("liblarge.so", "--weights=embed", model="large.mlir")
check("too much for code", done.returncode == 1 and "--weights=file" in done.stderr, done.stderr)
done = compile("libX.so", "--weights=file", "--target=cuda:sm_80", "--target=x86-64-v3")
check("no code for GPUs", done.returncode == 1, done.stderr)

finish()
