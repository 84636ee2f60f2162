# ===- limits.py - limits of the machine code of kernels ----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""A file of limits has a line for each kernel:

    NAME REGISTERS SPILLS SETMAXNREG MMA LOOP

the most registers and bytes of spills that ptxas reports; the registers that setmaxnreg
sets, such as 32/160, or - for none; the instructions of tensor cores in the loop over
tiles of keys, exactly; and the most instructions of this loop. # starts a comment."""

import pathlib

import rules


class Limits:
    """A line of the file."""

    def __init__(self, line):
        self.name, registers, spills, setmaxnreg, mma, loop = line.split()
        self.registers, self.spills, self.mma, self.loop = map(
            int, (registers, spills, mma, loop))
        self.setmaxnreg = [] if setmaxnreg == "-" else [
            int(number) for number in setmaxnreg.split("/")]


def read(path):
    """Returns {name: Limits}. Raises ValueError for a malformed line."""
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    limits = [Limits(line) for line in lines if line.strip() and line[0] != "#"]
    return {limit.name: limit for limit in limits}


def count_mma(kernel, body):
    """Returns the instructions of tensor cores of a loop. With wgmma, mma.sync is only
    used for tiles with infinite values."""
    is_async = any(ins.is_async for ins in kernel.code)
    return sum(kernel.code[i].is_mma and kernel.code[i].is_async == is_async
               for i in body)


def find_key_loop(kernel):
    """Returns the number of tensor-core instructions of the loop over tiles of keys and
    its instructions, (0, 0) if there is none. Several loops are over tiles: the shortest
    is that without masks. With wgmma, a loop around them is over tiles of queries."""
    bodies = [body for body in kernel.get_loops().values() if count_mma(kernel, body)]
    if any(ins.is_async for ins in kernel.code):
        bodies = [body for body in bodies if not any(other < body for other in bodies)]
    loops = [(count_mma(kernel, body), len(body)) for body in bodies]
    most = max((mma for mma, _ in loops), default=0)
    return (most, min(length for mma, length in loops if mma == most)) if most else (0, 0)


def find_pool_problem(registers, threads, setmaxnreg):
    """Returns a sentence if the registers that setmaxnreg sets, those of one warpgroup
    that loads and of the others, are not those of the launch: more would wait forever for
    registers, and fewer would leave some unused. None if there is no setmaxnreg."""
    if not setmaxnreg:
        return None
    groups, least = threads // 128, min(setmaxnreg)
    pool = least + (groups - 1) * max(setmaxnreg)
    if len(setmaxnreg) == 2 and pool == groups * registers:
        return None
    return (f"setmaxnreg sets {setmaxnreg} in {groups} warpgroups, {pool} registers, but "
            f"the launch has {groups} x {registers}")


def find_problems(kernel, limit, numbers):
    """Returns sentences on a kernel; `numbers` are those of ptxas_log.parse."""
    problems = []

    def compare(what, value, most):
        if value > most:
            problems.append(f"{what}: {value}, more than {most}")

    if not limit.setmaxnreg:
        compare("registers", numbers["registers"], limit.registers)
    elif numbers["registers"] != limit.registers:
        problems.append(f"registers: {numbers['registers']}, but those of setmaxnreg are "
                        f"of {limit.registers}")
    compare("bytes of spills", numbers["stores"] + numbers["loads"], limit.spills)
    found = [registers for _, registers, _ in rules.find_register_limits(kernel)]
    if sorted(found) != sorted(limit.setmaxnreg):
        problems.append(f"setmaxnreg sets {found}, expected {limit.setmaxnreg}")
    mma, length = find_key_loop(kernel)
    if mma != limit.mma:
        problems.append(f"the loop over keys has {mma} tensor-core instructions, "
                        f"expected {limit.mma}")
    compare("instructions of the loop over keys", length, limit.loop)
    return [f"{kernel.name}: {problem}" for problem in problems]
