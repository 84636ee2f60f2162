#!/usr/bin/env python3
# ===- cache.py - the cache of compiled code -------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# cache.py PROGRAM INPUT: compiles with the cache in various conditions. The
# output must always equal that without a cache.

import os
import shutil
import subprocess
import sys

program, source = map(os.path.abspath, sys.argv[1:])
CACHE = os.path.abspath("cache")


def start(output, *options, **environment):
    clean = {name: value for name, value in os.environ.items()
             if name not in ("POSENC_CACHE", "XDG_CACHE_HOME", "HOME")}
    return subprocess.Popen(
        [program, source, "-o", output, "--target=x86-64:x86-64-v3", *options],
        env={**clean, **environment}, stderr=subprocess.PIPE)


def finish(process, output):
    _, errors = process.communicate()
    assert process.returncode == 0 and errors == b"", errors
    contents = []
    header = output.removeprefix("lib").rsplit(".", 1)[0] + ".h"
    for path in (output, header):
        if os.path.exists(path):
            with open(path, "rb") as file:
                contents.append(file.read())
            os.remove(path)
    return contents


def compile_to(output, *options, **environment):
    return finish(start(output, *options, **environment), output)


def entries(folder=CACHE):
    found = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in found
            if name.startswith("llvmcache-")]


def check(name, holds):
    if not holds:
        sys.exit(f"failed: {name}")
    print("ok:", name)


expected = compile_to("libx.so", POSENC_CACHE="off")
check("off", len(expected) == 2 and not entries())

# A hit does not modify the entry.
first = compile_to("libx.so", POSENC_CACHE=CACHE)
check("miss", first == expected and len(entries()) == 1)
[entry] = entries()
before = os.stat(entry).st_mtime_ns, os.stat(entry).st_ino
check("hit", compile_to("libx.so", POSENC_CACHE=CACHE) == expected and
      (os.stat(entry).st_mtime_ns, os.stat(entry).st_ino) == before)
with open(entry, "rb") as file:
    whole = file.read()

# Everything that affects the code is part of the key, and nothing else is.
compile_to("x.a", POSENC_CACHE=CACHE)
compile_to("libx.so", "--header=x.h", POSENC_CACHE=CACHE)
check("the object is shared", len(entries()) == 1)
compile_to("liby.so", POSENC_CACHE=CACHE)
check("prefix", len(entries()) == 2)
compile_to("libx.so", "--threads=none", POSENC_CACHE=CACHE)
check("threads", len(entries()) == 3)
compile_to("libx.so", "--target=x86-64:x86-64-v4", POSENC_CACHE=CACHE)
check("targets", len(entries()) == 4)
compile_to("x.s", POSENC_CACHE=CACHE)
compile_to("x.ll", POSENC_CACHE=CACHE)
check("kinds", len(entries()) == 6)
original = source
source = os.path.abspath("elsewhere.mlir")
with open(original, encoding="utf-8") as text:
    lines = text.read()
with open(source, "w", encoding="utf-8") as text:
    text.write("// One line further down, in another file.\n" + lines)
check("locations", compile_to("libx.so", POSENC_CACHE=CACHE) == expected and
      len(entries()) == 6)
with open(source, "w", encoding="utf-8") as text:
    text.write(lines.replace("base = 10000.0", "base = 20000.0"))
check("the module", compile_to("libx.so", POSENC_CACHE=CACHE) != expected and
      len(entries()) == 7)
source = original

# Damaged entries are ignored and replaced.
for name, content in [
        ("empty", b""), ("cut in the checksum", whole[:20]),
        ("cut in the size", whole[:36]), ("cut in the header", whole[:200]),
        ("cut by a byte", whole[:-1]), ("a byte more", whole + b"\0"),
        ("a bit of the code", whole[:-1] + bytes([whole[-1] ^ 1])),
        ("the size", whole[:32] + b"\xff" * 8 + whole[40:]),
        ("other text", b"hello\n" * 100)]:
    with open(entry, "wb") as file:
        file.write(content)
    again = compile_to("libx.so", POSENC_CACHE=CACHE)
    with open(entry, "rb") as file:
        check("damaged: " + name, again == expected and file.read() == whole)
os.remove(entry)
os.mkfifo(entry)
check("a pipe", compile_to("libx.so", POSENC_CACHE=CACHE) == expected)
os.remove(entry)
os.mkdir(entry)
check("a folder", compile_to("libx.so", POSENC_CACHE=CACHE) == expected)
os.rmdir(entry)

# Concurrent processes share the cache.
shutil.rmtree(CACHE)
running = []
for i in range(6):
    os.mkdir(f"job{i}")
    running.append(start(f"job{i}/libx.so", POSENC_CACHE=CACHE))
check("at once", all(finish(process, f"job{i}/libx.so")[0] == expected[0]
                     for i, process in enumerate(running)) and
      len(entries()) == 1 and len(os.listdir(CACHE)) <= 2)

# The cache's folder follows from the environment.
home, xdg = os.path.abspath("home"), os.path.abspath("xdg")
check("HOME", compile_to("libx.so", HOME=home) == expected and
      len(entries(home + "/.cache/posenc")) == 1)
check("XDG_CACHE_HOME",
      compile_to("libx.so", HOME=home, XDG_CACHE_HOME=xdg) == expected and
      len(entries(xdg + "/posenc")) == 1)
names = sorted(os.listdir("."))
check("not in a relative one",
      compile_to("libx.so", HOME="home", XDG_CACHE_HOME="xdg") == expected and
      compile_to("libx.so") == expected and sorted(os.listdir(".")) == names)
check("unless by POSENC_CACHE",
      compile_to("libx.so", POSENC_CACHE="relative") == expected and
      len(entries("relative")) == 1)

# A folder that cannot be written is not an error.
with open("file", "w", encoding="utf-8"):
    pass
for folder in ("/proc/self/posenc", os.path.abspath("file"),
               os.path.abspath("file/x"), "/dev/null"):
    check("no folder: " + os.path.basename(folder),
          compile_to("libx.so", POSENC_CACHE=folder) == expected)
os.mkdir("readonly", 0o555)
check("a read-only folder",
      compile_to("libx.so", POSENC_CACHE=os.path.abspath("readonly"))
      == expected)

# The oldest entries are removed when the cache is full; other files are kept.
large = os.path.join(CACHE, "llvmcache-" + "0" * 40)
other = os.path.join(CACHE, "other")
for path in (large, other):
    with open(path, "wb") as file:
        file.truncate(300 << 20)
    os.utime(path, (1, 1))
compile_to("libz.so", POSENC_CACHE=CACHE)
check("bounded", not os.path.exists(large) and os.path.exists(other) and
      len(entries()) == 2)
os.remove(other)
