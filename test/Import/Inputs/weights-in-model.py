# ===- weights-in-model.py - weights that stay in a model's files -----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""weights-in-model.py POSENC-COMPILE POSENC-RUN: compiles with --weights=model, and opens
files of the model that are not those of the library, each of which must be an error."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess

import numpy as np
from onnx_model import node, tensor, write
from weights_model import RUN, call, check, compile, finish, ids, random, result, split, w1

# Two tables in one file, of which the second is not aligned, and one in another file.
# Tables of codes are weights at any size.
emb, second, third = (random.integers(0, 256, (300, 64), np.uint8) for _ in range(3))
scales = random.uniform(0.5, 1, (300, 2)).astype(np.float32)
DATA, OTHER = "m/sub/model.data", "m/other.data"
FIRST, SECOND = 4096, 4096 + emb.nbytes + 4
os.makedirs("m/sub")
data = bytes(FIRST) + emb.tobytes() + bytes(4) + second.tobytes() + w1.tobytes()
pathlib.Path(DATA).write_bytes(data)
pathlib.Path(OTHER).write_bytes(third.tobytes())


def external(name, array, location, offset):
    return tensor(name, {1: "u8", 4: "f32"}[array.itemsize], array.shape, external={
        "location": location, "offset": str(offset), "length": str(array.nbytes)})


def gather(table, output):
    return node("GatherBlockQuantized", [table, "ids", "scales"], [output], bits=8,
                domain="com.microsoft", block_size=32, gather_axis=0, quantize_axis=1)


write("m/model.onnx", [gather("emb", "a"), gather("second", "b"), gather("third", "c"),
                       node("Add", ["a", "b"], ["ab"]), node("Add", ["ab", "c"], ["x"]),
                       node("MatMul", ["x", "w1"], ["y"])],
      {"ids": ("i64", ["n"])}, ["y"],
      [external("emb", emb, "sub/model.data", FIRST),
       external("second", second, "sub/model.data", SECOND),
       external("third", third, "other.data", 0),
       external("w1", w1, "sub/model.data", SECOND + second.nbytes),
       tensor("scales", "f32", scales.shape, raw=scales.tobytes())])
np.save("ids.npy", ids)
compile("libembed.so", "--weights=embed", model="m/model.onnx")
expected = result("./libembed.so")
done = compile("m/libX.so", "--weights=model", "--remarks", model="m/model.onnx")
check("compile", done.returncode == 0 and "warning" not in done.stderr, done.stderr)
check("a remark about the second table", f"'second' is copied, as it begins at byte {SECOND} "
      "of 'sub/model.data', expected a multiple of 64" in done.stderr, done.stderr)
check("same bits", result("./m/libX.so") == expected)
good = pathlib.Path("m/X.safetensors").read_bytes()
size, header, _ = split(good)
check("what is copied", {name.split(".")[0] for name in header} - {"posenc"} ==
      {"__metadata__", "second", "w1"}, list(header))
model = json.loads(header["__metadata__"]["posenc.model"])
check("files of the model", {name: file["bytes"] for name, file in model.items()} ==
      {"sub/model.data": len(data), "other.data": third.nbytes}, model)
found = model["sub/model.data"]["tensors"]
digest = found["emb"].pop("digest")
check("a tensor of the model", found == {"emb": {
    "dtype": "I8", "shape": [300, 64], "data_offsets": [FIRST, FIRST + emb.nbytes]}}, found)
check("its digest", digest.startswith("blake3:") and len(digest) == 71, digest)


def verify():
    return subprocess.run([RUN, "m/libX.so", "--verify-weights"], capture_output=True,
                          text=True)


done = verify()
total = len(good) - 8 - size + emb.nbytes + third.nbytes
check("verify", done.returncode == 0 and f" {total} bytes" in done.stdout,
      done.stdout + done.stderr)

# Weights elsewhere, and a folder that moved.
shutil.copytree("m", "moved")
os.remove("moved/model.onnx")
check("a folder that moved", result("./moved/libX.so") == expected)
for arguments, name, place, error in (
        (["libX.so"], "m/model.onnx", "m", None),
        (["m/sub/libX.so"], "m/model.onnx", "m/sub", "m/other.data"),
        (["away/libX.so"], "m/model.onnx", "away", "m/sub/model.data")):
    os.makedirs(place, exist_ok=True)
    done = compile(*arguments, "--weights=model", model=name)
    check(f"compile {arguments}", done.returncode == (0 if error is None else 1) and
          (error is None or f"{error}' is not below the folder of the output" in done.stderr),
          done.stderr)
check("a library above the model", result("./libX.so") == expected)
check("nothing after an error", os.listdir("away") == [] and
      sorted(os.listdir("m/sub")) == ["model.data"])
os.makedirs("plain")
write("plain/model.onnx", [node("MatMul", ["x", "w1"], ["y"])], {"x": ("f32", ["n", 64])},
      ["y"], [tensor("w1", "f32", w1.shape, raw=w1.tobytes())])
done = compile("plain/libX.so", "--weights=model", model="plain/model.onnx")
check("no files of the model", done.returncode == 0 and
      "warning: --weights=model: no weights stay in files of the model" in done.stderr,
      done.stderr)
check("a file without them", "posenc.model" not in split(
    pathlib.Path("plain/X.safetensors").read_bytes())[1]["__metadata__"])

# Two locations of one file, which has the name of the library's weights.
os.makedirs("twice")
pathlib.Path("twice/X.safetensors").write_bytes(third.tobytes())
write("twice/model.onnx", [gather("p", "a"), gather("q", "b"), node("Add", ["a", "b"], ["y"])],
      {"ids": ("i64", ["n"])}, ["y"],
      [external("p", third, "X.safetensors", 0), external("q", third, "./X.safetensors", 0),
       tensor("scales", "f32", scales.shape, raw=scales.tobytes())])
for option in ("--weights=model", "--weights=file"):
    done = compile("twice/libX.so", option, model="twice/model.onnx")
    check(f"weights that would replace an input, {option}", done.returncode == 1 and
          "X.safetensors' is an input, which the library's weights would replace" in done.stderr
          and pathlib.Path("twice/X.safetensors").read_bytes() == third.tobytes(), done.stderr)
done = compile("twice/libY.so", "--weights=model", model="twice/model.onnx")
model = json.loads(split(pathlib.Path("twice/Y.safetensors").read_bytes())[1]["__metadata__"][
    "posenc.model"], object_pairs_hook=list)
check("one file of two locations", done.returncode == 0 and [name for name, _ in model] ==
      ["X.safetensors"] and {name for name, _ in dict(model[0][1])["tensors"]} == {"p", "q"},
      model)

# ===----------------------------------------------------------------------===#
# Files that are not those of the library
# ===----------------------------------------------------------------------===#


def refuses(name, path, sentence):
    """An error says what is wrong, and with which file; nothing is a signal."""
    done = call("./m/libX.so")
    check(name, done.returncode == 1 and not done.stdout and
          f"weights: {os.path.abspath(path)}: " in done.stderr and sentence in done.stderr,
          f"{done.returncode}, {done.stderr}")


def flip(position):
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1:]


SIZE = "bytes, but the model's file with weights has"
FOREIGN = "the weights are not those of the library"
LINK = "is a symbolic link"
file, last = pathlib.Path(DATA), FIRST + emb.nbytes - 1
for name, content, sentence in (
        ("empty", b"", SIZE), ("a byte less", data[:-1], SIZE),
        ("a page less", data[:-4096], SIZE), ("a byte more", data + b"\0", SIZE),
        ("zeros", bytes(len(data)), FOREIGN), ("noise", random.bytes(len(data)), FOREIGN),
        ("moved by a byte", data[1:] + b"\0", FOREIGN),
        ("the first byte", flip(FIRST), FOREIGN), ("the last byte", flip(last), FOREIGN)):
    file.write_bytes(content)
    refuses(name, DATA, sentence)
file.unlink()
refuses("no file", DATA, "there is no such file")
file.mkdir()
refuses("a folder", DATA, "is not a regular file")
file.rmdir()
os.mkfifo(file)
refuses("a pipe", DATA, "is not a regular file")
file.unlink()
pathlib.Path("good.data").write_bytes(data)
for target in ("../../good.data", os.path.abspath("good.data"), "model.data", "/dev/zero",
               "missing"):
    file.symlink_to(target)
    refuses(f"a link to {target}", DATA, LINK)
    file.unlink()
os.rename("m/sub", "outside")
pathlib.Path("outside/model.data").write_bytes(data)
for target in ("../outside", "sub"):
    os.symlink(target, "m/sub")
    refuses(f"a link of the folder to {target}", DATA, LINK)
    os.unlink("m/sub")
pathlib.Path("m/sub").write_bytes(data)
refuses("a file as the folder", DATA, "no folder")
os.unlink("m/sub")
refuses("no folder", DATA, "there is no such file")
os.rename("outside", "m/sub")
pathlib.Path(OTHER).write_bytes(third.tobytes()[:-4])
refuses("the other file", OTHER, SIZE)
pathlib.Path(OTHER).write_bytes(third.tobytes())
check("the files", result("./m/libX.so") == expected)

# Opening reads samples only; the digest is of all bytes. Bytes of others do not matter.
for position in (FIRST + emb.nbytes // 2, FIRST + 512, last - 512):
    file.write_bytes(flip(position))
    done = verify()
    check(f"a changed weight at {position}", done.returncode == 1 and
          "model.data': the weights 'emb' are damaged: their digest is" in done.stderr,
          done.stderr)
file.write_bytes(flip(0))
check("a byte that is no weight", verify().returncode == 0 and
      result("./m/libX.so") == expected)
file.write_bytes(data)

# A library that does not see the damage makes these checks fail.
hash = hashlib.sha256(bytes(32) + emb.tobytes()[:512] + emb.tobytes()[-512:]).digest()
code, damaged = pathlib.Path("m/libX.so").read_bytes(), flip(last)
check("the library knows the hash of samples", code.count(hash) == 1)
wrong = damaged[FIRST:FIRST + emb.nbytes]
other = hashlib.sha256(bytes(32) + wrong[:512] + wrong[-512:]).digest()
file.write_bytes(damaged)
pathlib.Path("m/libX.so").write_bytes(code.replace(hash, other))
check("a fault that is not found", call("./m/libX.so").returncode == 0)
pathlib.Path("m/libX.so").write_bytes(code)
refuses("a fault that is found", DATA, FOREIGN)
finish()
