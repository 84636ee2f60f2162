# ===- operators.py - the documented operators are those of the import -----===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""operators.py SOURCES: compares the operators that docs/onnx.md names with those of
the tables in lib/Import/Onnx."""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
text = (root / "docs/onnx.md").read_text(encoding="utf-8")
text = text[text.index("## Operators"):text.index("Elements are")]
documented = set(re.findall(r"`((?:com\.microsoft\.)?[A-Z]\w+)`", text))
known = set()
for path in (root / "lib/Import/Onnx").glob("*.cpp"):
    source = path.read_text(encoding="utf-8")
    for name in re.findall(r'table\["([^"]+)"\] =', source):
        known.add(name.replace("/", "."))
    # Loops over names.
    for names in re.findall(r"for \(StringRef op\s*:\s*\{([^}]*)\}\)\s*table\[op\]", source):
        known.update(re.findall(r'"(\w+)"', names))
for name in sorted(documented - known):
    print(f"{name}: documented, but not imported")
for name in sorted(known - documented):
    print(f"{name}: imported, but not documented")
print(f"{len(known & documented)} operators")
