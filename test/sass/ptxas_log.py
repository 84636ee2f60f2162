# ===- ptxas_log.py - what ptxas -v prints ------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Reads the output of `ptxas -v`."""

import re


def parse(text):
    """Returns {kernel: {"registers": N, "stack": bytes, "stores": bytes, "loads":
    bytes}}; the last two are spills. Raises ValueError if a number is missing."""
    kernels = {}
    for part in re.split(r"Compiling entry function", text)[1:]:
        name = part.split("'")[1]
        memory = re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, "
            r"(\d+) bytes spill loads", part)
        registers = re.search(r"Used (\d+) registers", part)
        if not memory or not registers:
            raise ValueError(f"no statistics of '{name}' in the log of ptxas: {part}")
        stack, stores, loads = map(int, memory.groups())
        kernels[name] = {"registers": int(registers.group(1)), "stack": stack,
                         "stores": stores, "loads": loads}
    if not kernels:
        raise ValueError("no kernel in the log of ptxas")
    return kernels


def find_problems(text, max_registers=None, may_spill=()):
    """Returns sentences: on spills, local memory, warnings (among them C7510 and its
    like: wgmma instructions that wait for each other), and too many registers. The
    kernels of `may_spill` have limits of their own."""
    problems = []
    for line in text.splitlines():
        if re.search(r"\bwarning\b|\bC7[0-9]{3}\b", line):
            problems.append(f"ptxas: {line.strip()}")
    for name, numbers in parse(text).items():
        if name in may_spill:
            pass
        elif numbers["stores"] or numbers["loads"]:
            problems.append(f"'{name}' spills {numbers['stores']} bytes")
        elif numbers["stack"]:
            problems.append(f"'{name}' has {numbers['stack']} bytes of local memory")
        if max_registers is not None and numbers["registers"] > max_registers:
            problems.append(f"'{name}' uses {numbers['registers']} registers, more "
                            f"than {max_registers}")
    return problems
