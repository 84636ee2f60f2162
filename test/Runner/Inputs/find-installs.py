# ===- find-installs.py - finds installations without hashes -----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===-----------------------------------------------------------------------===#
#
# Usage: find-installs.py ROOT
#
# Prints the statements of the Makefile, the workflows and the tests that run `pip install`
# and name neither a lock file nor a file of this project, and the actions and images of
# workflows and containers that have no hash. Then it fails.

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
LOCKED = re.compile(r"--require-hashes|lock_files\.install_arguments|--no-index")
problems = []
for path in [root / "Makefile", root / "test" / "lit.cfg.py", root / "python" / "run-tests.py",
             root / "python" / "make-wheel.py", root / "python" / "tests" / "test_wheel.py",
             root / "python" / "vllm-tests" / "run.py"]:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    # A line of the Makefile, a call of several lines, or a list with a command.
    for match in re.finditer(r"pip install .*|(?<!def )\bpip\((?:[^()]|\([^()]*\))*\)|"
                             r"\"pip\",(?:[^][]|\[[^][]*\])*\"install\"[^]]*\]", text):
        statement = " ".join(match[0].split())
        # A function that passes its arguments on is not one, nor is a quotation.
        is_quoted = text[:match.start()].endswith("`")
        if re.search(r"\binstall\b|^pip\(python, \"--", statement) and not (
                is_quoted or "*arguments" in statement or LOCKED.search(statement)):
            problems.append(f"{path.relative_to(root)}: {statement}")
for path in [*sorted((root / ".github" / "workflows").iterdir()),
             *sorted((root / "tools").glob("*Containerfile")),
             root / ".devcontainer" / "devcontainer.json"]:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for number, line in enumerate(text.splitlines(), 1):
        uses = re.match(r"[ -]*(?:uses:|container:|\"image\":|FROM) +(\S+)", line)
        if uses and not re.search(r"@sha256:[0-9a-f]{64}|@[0-9a-f]{40}", uses[1]):
            problems.append(f"{path.relative_to(root)}:{number}: {line.strip()}")
print("\n".join(problems))
sys.exit(1 if problems else 0)
