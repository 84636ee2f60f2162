#!/usr/bin/env python3
# ===- bochs.py - runs a program on an emulated bare machine ---------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# bochs.py CC TOOLS CPU SOURCE LIBRARY FLAG...: links the C program and the
# static library into a disk image, boots it in Bochs, an emulator of whole
# machines, and prints the output of the program.

import os
import re
import subprocess
import sys

cc, tools, cpu, source, library, *flags = sys.argv[1:]
machine = os.path.join(os.path.dirname(os.path.abspath(__file__)), "machine")
FREESTANDING = ["-std=gnu99", "-O1", "-ffreestanding", "-fno-builtin",
                "-fno-pic", "-fno-stack-protector", "-fcf-protection=none",
                "-mno-red-zone", "-U_FORTIFY_SOURCE"]


def run(*command):
    subprocess.run(command, check=True)


objects = []
for path in (os.path.join(machine, "start.S"),
             os.path.join(machine, "machine.c"), source):
    objects.append(os.path.basename(path) + ".o")
    run(cc, *FREESTANDING, *flags, "-c", path, "-o", objects[-1])
run(os.path.join(tools, "ld.lld"), "-static", "--no-pie", "-T",
    os.path.join(machine, "machine.ld"), *objects, library, "-o", "disk.elf")
run(os.path.join(tools, "llvm-objcopy"), "-O", "binary", "disk.elf", "disk.img")
CYLINDERS, HEADS, SECTORS = 2, 16, 63
size = CYLINDERS * HEADS * SECTORS * 512
assert os.path.getsize("disk.img") <= size
os.truncate("disk.img", size)

with open("bochsrc", "w", encoding="utf-8") as file:
    file.write(f"""
megs: 32
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
boot: disk
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=disk, path=disk.img, mode=flat, cylinders={CYLINDERS}, heads={HEADS}, spt={SECTORS}
cpu: model={cpu}, count=1, ips=200000000, reset_on_triple_fault=0
display_library: term
clock: sync=none
port_e9_hack: enabled=1
log: bochs.log
panic: action=fatal
error: action=report
info: action=ignore
debug: action=ignore
""")
# `c` starts the machine from the debugger of Bochs, which reports the shutdown as
# an error. A large environment overflows a buffer of Bochs 2.7.
done = subprocess.run(
    ["bochs", "-q", "-f", "bochsrc"], input=b"c\n", timeout=120,
    stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    env={"PATH": os.environ["PATH"], "TERM": "vt100"}, check=False)
text = done.stdout.decode(errors="replace")
lines = re.findall(r"(?:rope|sincos) [0-9a-f ]+", text)
if len(lines) != 2:
    sys.exit(text)
print("\n".join(lines))
