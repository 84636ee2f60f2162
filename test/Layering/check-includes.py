#!/usr/bin/env python3
# ===- check-includes.py - checks the layering of lib/ ---------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: check-includes.py SOURCE_ROOT [DRAWING.md]
#
# Each folder of lib/ and include/posenc/ is a component, and tools/ is one. A
# component may include its own headers, those of the components that the arrows
# of the drawing reach from it (docs/architecture.md), and those in
# runtime/include/posenc/kernel. Folders in a component include each other one way. Prints
# every other include, and each arrow that stands for no include or follows from other
# arrows. Exits with 1 if there is one.

import os
import re
import sys

# The metadata of libraries contains the version that the runtime checks, and
# tools call libraries.
RUNTIME = {"ABI", "Driver", "tools"}
# The component of a header is the folder after `posenc/`.
INCLUDE = re.compile(r'^\s*#\s*include\s*"posenc/([^/"]+)/[^"]*"')
# A header of the same component, in a folder of lib/.
LOCAL = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def read_drawing(path):
    """Returns {component: components that its arrows point to}."""
    with open(path, encoding="utf-8") as file:
        drawing = re.search(r"```mermaid\n(.*?)```", file.read(), re.S)[1]
    arrows = {}
    for source, target in re.findall(r"^ *(\w+) --> (\w+)$", drawing, re.M):
        arrows.setdefault(source, set()).add(target)
        arrows.setdefault(target, set())
    return arrows


def reach(arrows, component):
    """Returns the components that arrows reach from one."""
    found = set()
    rest = list(arrows[component])
    while rest:
        target = rest.pop()
        if target not in found:
            found.add(target)
            rest += arrows[target]
    return found


def find_lines(top, pattern):
    """Yields (folder, path, number of a line, match) for the lines of C++ files below `top`
    that match."""
    for folder, folders, names in os.walk(top):
        folders.sort()
        for name in sorted(names):
            if not name.endswith((".h", ".cpp")):
                continue
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                for number, line in enumerate(file, 1):
                    match = pattern.match(line)
                    if match:
                        yield folder, path, number, match


def list_includes(root):
    """Yields (component, path, line, included component) of all headers of posenc."""
    trees = [("tools", os.path.join(root, "tools"))]
    for tree in ("lib", os.path.join("include", "posenc")):
        top = os.path.join(root, tree)
        trees += [(name, os.path.join(top, name)) for name in sorted(os.listdir(top))
                  if os.path.isdir(os.path.join(top, name))]
    for component, top in trees:
        for _, path, number, match in find_lines(top, INCLUDE):
            if match[1] != component:
                yield component, f"{os.path.relpath(path, root)}:{number}", match[1]


def list_inner_includes(top):
    """Yields (folder, path, line, included folder) of the headers of one component that
    its other folders include; the paths begin at `top`."""
    for folder, path, number, match in find_lines(top, LOCAL):
        if os.path.exists(os.path.join(folder, match[1])):
            continue
        if os.path.exists(os.path.join(top, match[1])):
            yield (os.path.relpath(folder, top), f"{os.path.relpath(path, top)}:{number}",
                   os.path.dirname(match[1]) or ".")


def check_folders(root):
    """Yields a message for each include by which folders of a component include each
    other, directly or by way of others."""
    for component in sorted(os.listdir(os.path.join(root, "lib"))):
        top = os.path.join(root, "lib", component)
        if not os.path.isdir(top):
            continue
        includes = list(list_inner_includes(top))
        arrows = {}
        for source, _, target in includes:
            arrows.setdefault(source, set()).add(target)
            arrows.setdefault(target, set())
        for source, where, target in includes:
            if source in reach(arrows, target):
                yield f"lib/{component}/{where}: {source} must not include {target}, " \
                      f"which includes {source}"


def check(root, arrows):
    """Yields a message for each include and each arrow that is wrong."""
    for tree in ("lib", os.path.join("include", "posenc")):
        for name in sorted(os.listdir(os.path.join(root, tree))):
            if os.path.isdir(os.path.join(root, tree, name)) and name not in arrows:
                yield f"{tree}/{name}: the drawing does not have this component"
    included = set()
    for component, where, target in list_includes(root):
        if target == "kernel" or (target == "runtime" and component in RUNTIME):
            continue
        included.add((component, target))
        if component in arrows and target not in reach(arrows, component):
            yield f"{where}: {component} must not include {target}"
    yield from check_folders(root)
    for source, targets in arrows.items():
        for target in sorted(targets):
            if (source, target) not in included:
                yield f"{source} --> {target}: stands for no include"
            if any(target in reach(arrows, other) for other in targets - {target}):
                yield f"{source} --> {target}: follows from other arrows"


def main():
    root = sys.argv[1]
    drawing = (sys.argv + [os.path.join(root, "docs", "architecture.md")])[2]
    found = list(check(root, read_drawing(drawing)))
    print("\n".join(found) or "all includes follow the layering")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
