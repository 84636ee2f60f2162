# ===- ask-peers.py - the peers that are installed -------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

import json
import subprocess
import sys

shapes = [{"pairing": pairing, "dtype": "f32", "tokens": 16, "heads": [4, 2],
           "dim": 32, "threads": 1} for pairing in ("half", "interleaved")]


def ask(*requests):
    text = "".join(json.dumps(request) + "\n" for request in requests)
    output = subprocess.run([sys.executable, sys.argv[1]], input=text,
                            stdout=subprocess.PIPE, text=True, check=True)
    answers = [json.loads(line) for line in output.stdout.splitlines()]
    if len(answers) != len(requests):
        sys.exit(f"{len(requests)} requests, answers {answers}")
    return answers


listed, unknown, broken = ask({"command": "list", "shapes": shapes},
                              {"command": "open", "peer": "none",
                               "shape": shapes[0]}, {"command": "run"})
names = set(listed["peers"]) | set(listed["skipped"])
if names != {"numpy", "torch", "torch-compile", "onnxruntime", "openvino"}:
    sys.exit(f"peers {names}")
if "error" not in unknown or "error" not in broken:
    sys.exit(f"no errors: {unknown}, {broken}")
for name, numbers in listed["peers"].items():
    for number in numbers:
        opened, run = ask({"command": "open", "peer": name,
                           "shape": shapes[number]},
                          {"command": "run", "calls": 2})
        if opened or not run["seconds"] > 0:
            sys.exit(f"{name}: {opened}, {run}")
