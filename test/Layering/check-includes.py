#!/usr/bin/env python3
# ===- check-includes.py - checks the layering of lib/ ---------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: check-includes.py SOURCE_ROOT
#
# Each folder of lib/ and include/posenc/ is a component. A component may include
# its own headers, those of the components that REACHES lists for it, and those
# in runtime/include/posenc/kernel. Prints every other include, and exits with 1
# if there is one.

import os
import re
import sys

BASE = {"Support"}
IR = BASE | {"IR"}
NUMERICS = IR | {"Numerics"}
TRANSFORMS = NUMERICS | {"Transforms"}
RAISE = TRANSFORMS | {"Raise"}
CONVERSION = TRANSFORMS | {"Conversion"}
FACTS = IR | {"TargetInfo"}
CODEGEN = CONVERSION | FACTS | {"ABI", "Codegen"}
PIPELINES = CODEGEN | RAISE | {"Pipelines"}
TARGET = PIPELINES | {"Registration", "Target"}
REACHES = {
    "Support": BASE,
    "Reference": BASE,
    "IR": IR,
    "Numerics": NUMERICS,
    "Transforms": TRANSFORMS,
    "Raise": RAISE,
    "Conversion": CONVERSION,
    "ABI": IR,
    "TargetInfo": FACTS,
    "Codegen": CODEGEN,
    "Pipelines": PIPELINES,
    "Registration": PIPELINES | {"Registration"},
    "Target": TARGET,
    "Frontend": IR | {"Frontend"},
    "Import": IR | {"Import"},
    "Interpreter": IR | {"Interpreter", "Reference"},
    "Driver": TARGET | {"Frontend", "Import", "Interpreter", "Reference", "Driver", "runtime"},
    "CAPI": TARGET | {"Driver"},
}
# The component of a header is the folder after `posenc/`.
INCLUDE = re.compile(r'^\s*#\s*include\s*"posenc/([^/"]+)/[^"]*"')


def check(root):
    """Yields a message for each include that violates the layering."""
    for tree in ("lib", os.path.join("include", "posenc")):
        top = os.path.join(root, tree)
        for component in sorted(os.listdir(top)):
            if not os.path.isdir(os.path.join(top, component)):
                continue
            if component not in REACHES:
                yield f"{tree}/{component}: REACHES does not list this component"
                continue
            allowed = REACHES[component] | {component, "kernel"}
            if component == "ABI":
                # The metadata contains the version that the runtime checks.
                allowed |= {"runtime"}
            for folder, _, names in os.walk(os.path.join(top, component)):
                for name in sorted(names):
                    if name.endswith((".h", ".cpp")):
                        yield from check_file(
                            root, os.path.join(folder, name), component, allowed)


def check_file(root, path, component, allowed):
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            if match and match.group(1) not in allowed:
                where = os.path.relpath(path, root)
                yield (f"{where}:{number}: {component} must not include "
                       f"{match.group(1)}")


def main():
    found = list(check(sys.argv[1]))
    print("\n".join(found) or "all includes follow the layering")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
