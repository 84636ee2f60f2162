#!/usr/bin/env python3
# ===- outputs.py - files after errors and successes -----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# outputs.py PROGRAM INPUT: runs in an empty folder. A command that fails must
# leave no file behind and must not change older ones.

import os
import resource
import signal
import subprocess
import sys

program, source = sys.argv[1:]
BAD = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %y }\n"
# Fails when the C interface is emitted: C has no i1.
LATE = """func.func @f(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
"""
# Fails late: integer powers with a variable exponent are not supported.
LIBM = """#id = affine_map<(d0) -> (d0)>
func.func @f(%x: tensor<4xi32>) -> tensor<4xi32> {
  %e = tensor.empty() : tensor<4xi32>
  %r = linalg.generic {indexing_maps = [#id, #id],
      iterator_types = ["parallel"]}
      ins(%x : tensor<4xi32>) outs(%e : tensor<4xi32>) {
  ^bb0(%a: i32, %b: i32):
    %s = math.ipowi %a, %a : i32
    linalg.yield %s : i32
  } -> tensor<4xi32>
  return %r : tensor<4xi32>
}
"""
# Fails even later: calls a function without a body.
LINK = """func.func private @missing(f32) -> f32
#id = affine_map<(d0) -> (d0)>
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id],
      iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = func.call @missing(%a) : (f32) -> f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
"""


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def run(*arguments, limit=None):
    def prepare():
        # A write beyond the limit fails with an error, as on a full disk.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run([program, "--opt-level=0", *arguments], capture_output=True,
                          text=True, check=False,
                          preexec_fn=prepare if limit is not None else None)


def check(expected, *arguments, limit=None):
    """Runs a command that fails, in an empty folder and in one with older files."""
    for old in (False, True):
        os.mkdir("out")
        os.chdir("out")
        if old:
            for name in ("libx.so", "x.h", "x.mlir", "x.s", "x.o", "libx.a",
                         "libx.s", "libx.ll", "libx.o"):
                write(name, "old " + name)
        before = {name: read(name) for name in os.listdir()}
        result = run(*arguments, limit=limit)
        assert result.returncode == 1, (arguments, result)
        assert expected in result.stderr, (arguments, result.stderr)
        after = {name: read(name) for name in os.listdir()}
        assert after == before, (arguments, sorted(after))
        for name in after:
            os.remove(name)
        os.chdir("..")
        os.rmdir("out")


write("bad.mlir", BAD)
write("late.mlir", LATE)
write("libm.mlir", LIBM)
write("link.mlir", LINK)
kinds = (["-o", "libx.so"], ["-o", "libx.so", "--save-temps"],
         ["-o", "libx.a"], ["-o", "x.o"], ["-o", "x.s"], ["-o", "x.mlir"])
for kind in kinds:
    check("bad.mlir:1:", "../bad.mlir", *kind)
for kind in kinds[:-1]:
    check("late.mlir:1:", "../late.mlir", *kind)
    check("libm.mlir:8:10: error: 'math.ipowi'", "../libm.mlir", *kind)
for kind in kinds[:2]:
    check("link.mlir:9:10: error: 'missing' has no body", "../link.mlir", *kind)
# The header cannot be written.
for kind in kinds[:4]:
    check("cannot write", source, *kind, "--header=nowhere/x.h")
check("it is a directory", source, "-o", "libx.so", "--header=..")
# No space for any file, for the object, or for the library.
for limit in (0, 100, 1024, 4096):
    for kind in kinds[:5]:
        check("error: cannot ", source, *kind, limit=limit)
check("cannot write", source, "-o", "x.mlir", limit=10)

# Control: a success replaces older files and leaves no others.
write("libx.so", "old")
write("x.h", "old")
assert run(source, "-o", "libx.so").returncode == 0
assert sorted(os.listdir()) == ["bad.mlir", "late.mlir", "libm.mlir",
                                "libx.so", "link.mlir", "x.h"]
assert read("libx.so")[:4] == b"\x7fELF" and b"x_rope" in read("x.h")
# The file's mode follows from the umask.
assert os.stat("x.h").st_mode & 0o777 == 0o666 & ~os.umask(0o022)

# A symbolic link stays and the file that it refers to is replaced. Two paths of
# the same file count as one output.
os.mkdir("out")
write("out/x.mlir", "old")
os.symlink("out/x.mlir", "to-x.mlir")
os.symlink("out", "folder")
assert run(source, "-o", "to-x.mlir").returncode == 0
assert os.path.islink("to-x.mlir") and b"posenc.rope" in read("out/x.mlir")
before = read("out/x.mlir")
for name in ("out/y.h", "folder/y.h", "out/../folder/./y.h"):
    result = run(source, "-o", "out/y.h", "--emit=obj", "--header=" + name)
    assert result.returncode == 1 and "two outputs" in result.stderr, result
assert os.listdir("out") == ["x.mlir"] and read("out/x.mlir") == before

# Standard output that cannot be written is an error, not a signal.
with open("/dev/full", "w", encoding="ascii") as full:
    result = subprocess.run([program, source, "-o", "-", "--emit=asm"],
                            stdout=full, stderr=subprocess.PIPE, check=False)
assert result.returncode == 1 and b"cannot write" in result.stderr, result
reader, writer = os.pipe()
os.close(reader)
result = subprocess.run([program, source, "-o", "-", "--emit=asm"],
                        stdout=writer, stderr=subprocess.PIPE, check=False)
assert result.returncode == 1 and b"cannot write" in result.stderr, result
print("ok")
