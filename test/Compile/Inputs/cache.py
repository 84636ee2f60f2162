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
        [program, source, "-o", output, "--target=x86-64:x86-64-v3",
         "--opt-level=0", *options],
        env={**clean, **environment}, stderr=subprocess.PIPE)


def finish(process, output, warning=""):
    """Returns the outputs. Checks that the only warning is of the cache, if any."""
    _, errors = process.communicate()
    text = errors.decode()
    if warning:
        assert text.startswith("warning: compiled code is not cached: "), text
        assert warning in text and text.count("\n") == 1, text
    assert process.returncode == 0 and bool(text) == bool(warning), text
    contents = []
    header = output.removeprefix("lib").rsplit(".", 1)[0] + ".h"
    for path in (output, header):
        if os.path.exists(path):
            with open(path, "rb") as file:
                contents.append(file.read())
            os.remove(path)
    return contents


def compile_to(output, *options, warning="", **environment):
    return finish(start(output, *options, **environment), output, warning)


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
check("a pipe", compile_to("libx.so", POSENC_CACHE=CACHE,
                           warning="is not a regular file") == expected)
os.remove(entry)
os.mkdir(entry)
check("a folder", compile_to("libx.so", POSENC_CACHE=CACHE,
                             warning="is not a regular file") == expected)
os.rmdir(entry)

# Code that others may have written is neither used nor replaced. It is that of another
# output here, which would be noticed.
def check_refused(name, warning, change, folder=CACHE):
    shutil.copy(other_entry, entry)
    change()
    before = os.lstat(entry)
    check(name, compile_to("libx.so", POSENC_CACHE=folder,
                           warning=warning) == expected and
          os.lstat(entry) == before)
    os.chmod(CACHE, 0o700)
    os.chown(CACHE, os.geteuid(), -1)
    os.remove(entry)


compile_to("libx.so", "--threads=none", POSENC_CACHE=CACHE)
shutil.copy(entries()[0], "other")
other_entry = os.path.abspath("other")


def link_entry():
    os.remove(entry)
    os.symlink(other_entry, entry)


check_refused("an entry of a group", "'" + entry + "' can be written by other users",
              lambda: os.chmod(entry, 0o664))
check_refused("an entry of all", "'" + entry + "' can be written by other users",
              lambda: os.chmod(entry, 0o646))
check_refused("a linked entry", "is a symbolic link", link_entry)
for mode in (0o770, 0o777, 0o1777):
    check_refused(f"a folder of mode {mode:o}",
                  f"'{CACHE}' can be written by other users",
                  lambda mode=mode: os.chmod(CACHE, mode))
os.symlink(CACHE, "link")
check_refused("a linked folder", "is a symbolic link", lambda: None,
              os.path.abspath("link"))
if os.geteuid() == 0:
    check_refused("another user's entry", "belongs to another user",
                  lambda: os.chown(entry, 12345, -1))
    check_refused("another user's folder", "belongs to another user",
                  lambda: os.chown(CACHE, 12345, -1))

# A folder that cannot be written gives its entries without a warning.
with open(entry, "wb") as file:
    file.write(whole)
os.chmod(CACHE, 0o555)
check("hits of a read-only folder",
      compile_to("libx.so", POSENC_CACHE=CACHE) == expected)
os.chmod(CACHE, 0o755)

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

# A folder that cannot be written gives a warning, and no error.
with open("file", "w", encoding="utf-8"):
    pass
for folder in ("/proc/self/posenc", os.path.abspath("file"),
               os.path.abspath("file/x"), "/dev/null"):
    check("no folder: " + os.path.basename(folder),
          compile_to("libx.so", POSENC_CACHE=folder,
                     warning=f"cannot write '{folder}") == expected)
if os.geteuid() != 0:
    os.mkdir("readonly", 0o555)
    check("a read-only folder",
          compile_to("libx.so", POSENC_CACHE=os.path.abspath("readonly"),
                     warning="Permission denied") == expected)

# The oldest entries are removed when the cache is full; other files are kept. A date in
# the future does not keep an entry. Links are not followed.
other = os.path.join(CACHE, "other")
linked = os.path.join(CACHE, "llvmcache.timestamp")
with open("precious", "w", encoding="utf-8") as text:
    text.write("text")
os.symlink(os.path.abspath("precious"), linked)
os.symlink(os.path.abspath("precious"), os.path.join(CACHE, "llvmcache-link"))
for date in (1, 1 << 33):
    large = os.path.join(CACHE, "llvmcache-" + "0" * 40)
    for path in (large, other):
        with open(path, "wb") as file:
            file.truncate(300 << 20)
        os.utime(path, (date, date))
    shutil.copy(other_entry, entry)
    compile_to(f"libz{date}.so", POSENC_CACHE=CACHE)
    check(f"bounded: {date}", not os.path.exists(large) and
          os.path.exists(other) and os.path.exists(entry))
with open("precious", encoding="utf-8") as text:
    check("links", text.read() == "text" and os.path.islink(linked))
os.remove(other)
