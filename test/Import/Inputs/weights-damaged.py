# ===- weights-damaged.py - damaged files of weights -------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""weights-damaged.py POSENC-COMPILE POSENC-RUN: opens files that are not those of the
library, each of which must be an error."""

import hashlib
import os
import pathlib
import struct
import subprocess

import numpy as np
from weights_model import (RUN, call, check, compile, emb, finish, ids, random, result, split,
                           write_model)

write_model("model.onnx", emb)
write_model("other.onnx", emb + 1)
np.save("ids.npy", ids)
compile("libembed.so", "--weights=embed")
compile("libX.so", "--weights=file")
expected = result("./libembed.so")
good = pathlib.Path("X.safetensors").read_bytes()
size, header, data = split(good)
# That of the first packed tensor.
shape = next(str(entry["shape"]).replace(" ", "").encode() for name, entry in header.items()
             if ".panels" in name)


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
    "another shape": edit(shape, shape[:1] + b"1" + shape[2:]),
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
SIZE = "bytes, but the library's weights have"
HEADER = "the header is not that of the library's weights"


def is_refused(path, sentence, library="./libX.so"):
    """An error says what is wrong, and with which file; nothing is a signal."""
    done = call(library)
    return (done.returncode == 1 and f"weights: {os.path.abspath(path)}: " in done.stderr
            and sentence in done.stderr and not done.stdout), f"{done.returncode}, {done.stderr}"


file = pathlib.Path("X.safetensors")
for name, content in DAMAGES.items():
    file.write_bytes(content)
    check(name, *is_refused("./X.safetensors",
                            SIZE if len(content) != len(good) else HEADER))
file.unlink()
check("no file", *is_refused("./X.safetensors", "there is no such file"))
file.mkdir()
check("a folder", *is_refused("./X.safetensors", "is not a regular file"))
file.rmdir()
os.mkfifo(file)
check("a pipe", *is_refused("./X.safetensors", "is not a regular file"))
file.unlink()
for target, sentence in (("missing", "there is no such file"), ("/dev/zero", SIZE),
                         ("X.safetensors", "cannot be opened: error 40 of the system")):
    file.symlink_to(target)
    check(f"a link to {target}", *is_refused("./X.safetensors", sentence))
    file.unlink()
pathlib.Path("good").write_bytes(good)
file.symlink_to("good")
check("a link to the file", result("./libX.so") == expected)
file.unlink()
file.write_bytes(good)
check("the file", result("./libX.so") == expected)


# ===----------------------------------------------------------------------===#
# A library that does not see the damage makes these checks fail
# ===----------------------------------------------------------------------===#

code, damaged = pathlib.Path("libX.so").read_bytes(), DAMAGES["another format"]
known = hashlib.sha256(good[:8 + size]).digest()
check("the library knows the hash of the header", code.count(known) == 1)
os.makedirs("fault", exist_ok=True)
pathlib.Path("fault/X.safetensors").write_bytes(damaged)
for hash, is_found in ((known, True), (hashlib.sha256(damaged[:8 + size]).digest(), False)):
    pathlib.Path("fault/libX.so").write_bytes(code.replace(known, hash))
    found, detail = is_refused("./fault/X.safetensors", HEADER, "./fault/libX.so")
    check(f"a fault that is {'' if is_found else 'not '}found", found == is_found, detail)

# ===----------------------------------------------------------------------===#
# The digest
# ===----------------------------------------------------------------------===#


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
finish()
