# ===- check-constraints.py - consistency of constraint numbers ------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===-----------------------------------------------------------------------===#
#
# Each constraint of an operation or attribute has a number such as rope_c1. The
# ODS description states the constraint, the error of the verifier ends in its
# number, and a negative test expects that error. This checks that each number is
# in all three files, and that the numbers of an operation count from 1.
#
# Usage: check-constraints.py [root of the source tree]

import collections
import pathlib
import re
import sys

NUMBER = r"[a-z][a-z0-9_]*_c[0-9]+"


def find(root, glob, pattern):
    """Returns the locations of each number, as file:line."""
    locations = collections.defaultdict(list)
    for path in sorted(root.glob(glob)):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            for match in re.finditer(pattern, line):
                locations[match.group(1)].append(
                    f"{path.relative_to(root)}:{number}")
    return locations


def main():
    here = pathlib.Path(__file__).resolve()
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here.parents[2]
    described = find(root, "dialect/**/*.td", rf"^ *- \(({NUMBER})\)")
    verified = find(root, "lib/IR/*.cpp", rf"\b({NUMBER})\b")
    tested = find(root, "test/IR/*.mlir",
                  rf"expected-error.*\(({NUMBER})\)\}}\}}$")
    everywhere = {"description": described, "verifier": verified,
                  "negative test": tested}
    errors = []
    for number in sorted(set().union(*everywhere.values())):
        for kind, locations in everywhere.items():
            if number in locations:
                continue
            known = next(p[number] for p in everywhere.values() if number in p)
            errors.append(f"{known[0]}: {number} has no {kind}")
    for number, locations in described.items():
        if len(locations) > 1:
            errors.append(f"{locations[1]}: {number} is described twice")
    families = collections.defaultdict(set)
    for number in described:
        family, index = number.rsplit("_c", 1)
        families[family].add(int(index))
    for family, indices in sorted(families.items()):
        if indices != set(range(1, len(indices) + 1)):
            errors.append(f"{family}: numbers do not count from 1: "
                          f"{sorted(indices)}")
    if not described:
        errors.append(f"{root}: no constraint found")
    for error in errors:
        print(f"error: {error}")
    print(f"{len(described)} constraints, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
