#!/usr/bin/env python3
# ===- check-includes.py - checks that the library depends one way ---------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: check-includes.py SOURCE_ROOT
#
# Each folder of lib/ and include/posenc/ is a room. A room includes its own
# headers, those of the rooms in the entry of REACHES, and the contracts of
# runtime/include/posenc/kernel. Prints every other include and exits with 1 if
# there is one.

import os
import re
import sys

BASE = {"Support"}
IR = BASE | {"IR"}
NUMERICS = IR | {"Numerics"}
TRANSFORMS = NUMERICS | {"Transforms"}
CONVERSION = TRANSFORMS | {"Conversion"}
FACTS = IR | {"TargetInfo"}
CODEGEN = CONVERSION | FACTS | {"ABI", "Codegen"}
PIPELINES = CODEGEN | {"Pipelines"}
TARGET = PIPELINES | {"Registration", "Target"}
REACHES = {
    "Support": BASE,
    "Reference": BASE,
    "IR": IR,
    "Numerics": NUMERICS,
    "Transforms": TRANSFORMS,
    "Conversion": CONVERSION,
    "ABI": IR,
    "TargetInfo": FACTS,
    "Codegen": CODEGEN,
    "Pipelines": PIPELINES,
    "Registration": PIPELINES | {"Registration"},
    "Target": TARGET,
    "Frontend": IR | {"Frontend"},
    "Interpreter": IR | {"Interpreter", "Reference"},
    "Driver": TARGET | {"Frontend", "Interpreter", "Reference", "Driver", "runtime"},
}
# The room of a header is the folder behind `posenc/`.
INCLUDE = re.compile(r'^\s*#\s*include\s*"posenc/([^/"]+)/[^"]*"')


def check(root):
    """Yields a message for each include that goes against the order."""
    for tree in ("lib", os.path.join("include", "posenc")):
        top = os.path.join(root, tree)
        for room in sorted(os.listdir(top)):
            if not os.path.isdir(os.path.join(top, room)):
                continue
            if room not in REACHES:
                yield f"{tree}/{room}: REACHES does not have this room"
                continue
            allowed = REACHES[room] | {room, "kernel"}
            if room in ("ABI",):
                # Its metadata has the version that the runtime checks.
                allowed |= {"runtime"}
            for folder, _, names in os.walk(os.path.join(top, room)):
                for name in sorted(names):
                    if name.endswith((".h", ".cpp")):
                        yield from check_file(
                            root, os.path.join(folder, name), room, allowed)


def check_file(root, path, room, allowed):
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            if match and match.group(1) not in allowed:
                where = os.path.relpath(path, root)
                yield (f"{where}:{number}: {room} must not include "
                       f"{match.group(1)}")


def main():
    found = list(check(sys.argv[1]))
    print("\n".join(found) or "every include follows the order of the rooms")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
