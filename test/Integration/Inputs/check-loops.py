#!/usr/bin/env python3
# ===- check-loops.py - checks the innermost loops of a kernel -------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# check-loops.py ASSEMBLY FUNCTION REGEX: checks that no innermost loop of the
# kernel FUNCTION calls, divides or gathers, and that each has an instruction
# that matches REGEX.

import re
import sys

FORBIDDEN = re.compile(
    r"\t(call\w*|bl|blr|\w*div\w*|\w*gather\w*|\w*scatter\w*)\b")


def body(lines, function):
    start = lines.index(f"{function}.local:")
    for end in range(start, len(lines)):
        if lines[end].startswith(".Lfunc_end"):
            return lines[start:end]
    return sys.exit(f"found no end of {function}")


BRANCH = re.compile(r"\t(j\w+|b|b\.\w+|cbn?z|tbn?z)\t.*?(\.LBB\w+)$")
END = re.compile(r"\t(jmp|b|ret\w*|ud2|brk)\b(?!\.)")


def blocks(lines):
    """Returns the lines of each basic block by label, and its successors."""
    code, successors, name = {"entry": []}, {"entry": set()}, "entry"
    for line in lines[1:]:
        label = re.match(r"(\.L\w+):", line)
        starts = label.group(1) if label else None
        if not label and code[name] and BRANCH.match(code[name][-1]):
            starts = f"{name}'"
        if starts:
            if not (code[name] and END.match(code[name][-1])):
                successors[name].add(starts)
            name = starts
            code[name], successors[name] = [], set()
        if label or not line.startswith("\t") or line.startswith("\t."):
            continue
        code[name].append(line)
        branch = BRANCH.match(line)
        if branch:
            successors[name].add(branch.group(2))
    return code, successors


def components(nodes, successors):
    """Returns the strongly connected components that contain a cycle."""
    def reach(start, edges):
        seen, work = set(), [start]
        while work:
            for next_ in edges[work.pop()]:
                if next_ in nodes and next_ not in seen:
                    seen.add(next_)
                    work.append(next_)
        return seen

    forward = {node: reach(node, successors) for node in nodes}
    found = []
    for node in sorted(nodes):
        if node in forward[node] and not any(node in one for one in found):
            found.append({other for other in forward[node]
                          if node in forward[other]})
    return found


def innermost(nodes, successors):
    """Returns the innermost loops as sets of blocks."""
    found = []
    for cycle in components(nodes, successors):
        outside = set(successors) - cycle
        headers = {node for other in outside for node in successors[other]
                   if node in cycle} or {min(cycle)}
        inner = innermost(cycle - headers, successors)
        found += inner or [cycle]
    return found


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = [line.split("#")[0].split("//")[0].rstrip()
                 for line in file]
    function, wanted = sys.argv[2], re.compile(sys.argv[3])
    code, successors = blocks(body(lines, function))
    errors = 0
    loops = innermost(set(code), successors)
    for loop in loops:
        instructions = [line for name in code if name in loop
                        for line in code[name]]
        for line in instructions:
            if FORBIDDEN.match(line):
                print(f"{function}: {min(loop)} has{line}")
                errors += 1
        if not any(wanted.search(line) for line in instructions):
            print(f"{function}: {min(loop)} lacks {wanted.pattern}")
            errors += 1
    print(f"{function}: {len(loops)} loops, {errors} errors")
    return errors > 0 or not loops


sys.exit(main())
