#!/usr/bin/env python3
# ===- check-sass.py - checks the machine code of kernels ---------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Checks what ptxas made of kernels with tensor-core instructions:

    check-sass.py CODE [--nvdisasm=PATH] [--log=FILE] [--max-registers=N]
        [--limits=FILE]

CODE is a cubin, or the text of `nvdisasm -c`. --log is the output of `ptxas -v`, such
as the X.sm_90a.ptxas.txt of `posenc-compile --save-temps`. --limits, described in
limits.py, takes the place of --max-registers; kernels without limits are left out.

Prints for each kernel its size, its innermost loops with tensor-core instructions and
the instructions of each, and the registers that setmaxnreg allows. Fails if an operand
of a tensor-core instruction has definitions that it must not have, or may have none, if
registers of a wgmma in flight are accessed, if there is local memory, if a warpgroup
uses more registers than it has, and for all that ptxas_log.py finds."""

import argparse
import collections
import pathlib
import subprocess
import sys

import limits
import ptxas_log
import rules
import sass


def read_code(path, nvdisasm):
    """Returns a disassembly."""
    data = pathlib.Path(path).read_bytes()
    if not data.startswith(b"\x7fELF"):
        return data.decode()
    result = subprocess.run([nvdisasm, "-c", path], capture_output=True, text=True,
                            check=False)
    if result.returncode != 0:
        sys.exit(f"error: {nvdisasm} fails: {result.stderr}")
    return result.stdout


def count(kernel, body):
    """Returns the counts of instructions by name as text, frequent ones first."""
    names = collections.Counter(kernel.code[i].name for i in body)
    order = sorted(names.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{number} {name}" for name, number in order)


def print_loops(kernel):
    loops = {
        head: body for head, body in kernel.get_loops().items()
        if any(kernel.code[i].is_mma for i in body)
    }
    for head, body in sorted(loops.items()):
        if not any(other < body for other in loops.values()):
            print(f"  loop at {kernel.code[head].address:#06x}: {len(body)} "
                  f"instructions: {count(kernel, body)}")


def check(kernel, may_spill):
    """Prints the statistics of a kernel; returns the problems."""
    problems = []
    names = collections.Counter(ins.name for ins in kernel.code)
    in_registers = sum(ins.is_async and bool(ins.a) for ins in kernel.code)
    arrivals = sum(ins.opcode == "WARPGROUP.ARRIVE" for ins in kernel.code)
    print(f"{kernel.name}: {len(kernel.code)} instructions, {names['HMMA']} HMMA, "
          f"{names['HGMMA']} HGMMA ({in_registers} with A in registers), "
          f"{arrivals} WARPGROUP.ARRIVE")
    print_loops(kernel)
    for index, limit, used in rules.find_register_limits(kernel):
        print(f"  setmaxnreg {limit}: {used} registers")
        if used > limit:
            problems.append((index, f"{used} registers are used, {limit} allowed"))
    for index, ins in enumerate(kernel.code):
        if ins.name in ("LDL", "STL") and not may_spill:
            problems.append((index, "local memory"))
    problems += rules.find_undefined(kernel)
    problems += rules.find_wrong_operands(kernel)
    problems += rules.find_hazards(kernel)
    return [f"{kernel.name}: {kernel.code[index].describe()}: {problem}"
            for index, problem in sorted(problems)]


def check_limits(kernels, path, log):
    """Returns the problems of kernels with limits, each of which must be there."""
    problems = []
    numbers = ptxas_log.parse(log)
    expected = limits.read(path)
    for kernel in kernels:
        limit = expected.pop(kernel.name, None)
        if limit:
            problems += limits.find_problems(kernel, limit, numbers[kernel.name])
    return problems + [f"no kernel {name}" for name in expected]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("code")
    parser.add_argument("--nvdisasm", default="nvdisasm")
    parser.add_argument("--log")
    parser.add_argument("--max-registers", type=int)
    parser.add_argument("--limits")
    options = parser.parse_args()
    if options.limits and not options.log:
        parser.error("--limits needs --log")
    problems = []
    try:
        limited = limits.read(options.limits) if options.limits else {}
        may_spill = {name for name, limit in limited.items() if limit.spills}
        kernels = sass.parse(read_code(options.code, options.nvdisasm), limited)
        for kernel in kernels:
            problems += check(kernel, kernel.name in may_spill)
        if options.log:
            log = pathlib.Path(options.log).read_text(encoding="utf-8")
            problems += ptxas_log.find_problems(log, options.max_registers, may_spill)
        if options.limits:
            problems += check_limits(kernels, options.limits, log)
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")
    for problem in problems:
        print(f"error: {problem}")
    print(f"{len(problems)} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
