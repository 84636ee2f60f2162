# ===- ask-peers.py - check the installed peers of peers.py ----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# ask-peers.py PEERS.PY [right|wrong|missing]

import json
import subprocess
import sys

shapes = [{"family": family, "variant": variant, "dtype": dtype, "tokens": 16,
           "heads": [4, 2], "dim": 32, "threads": 1}
          for family, variant, dtype in (
              ("rope", "half", "f32"), ("rope", "interleaved", "f32"),
              ("attention", "full", "f32"), ("attention", "causal", "f32"),
              ("attention", "full", "bf16"), ("attention", "causal", "bf16"),
              ("decode", "rotated", "f32"), ("decode", "rotated", "bf16"))]


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
# The optional second argument is what the stand-in for PyTorch does: `right`;
# `wrong` (it must fail the check in all attention shapes); `missing` (it must
# support no attention shape).
fault = sys.argv[2] if len(sys.argv) > 2 else ""
for name, numbers in listed["peers"].items():
    if name == "torch" and fault:
        attention = [number for number in numbers
                     if shapes[number]["family"] != "rope"]
        if len(attention) != (0 if fault == "missing" else 6):
            sys.exit(f"torch: shapes {attention}")
        for number in attention if fault == "wrong" else []:
            opened, _ = ask({"command": "open", "peer": name,
                             "shape": shapes[number]}, {"command": "run"})
            if "its results are off by" not in opened.get("error", ""):
                sys.exit(f"a fault passes: {shapes[number]}")
    for number in numbers:
        if name == "torch" and (fault == "wrong" or
                                fault and shapes[number]["family"] == "rope"):
            continue
        opened, run = ask({"command": "open", "peer": name,
                           "shape": shapes[number]},
                          {"command": "run", "calls": 2})
        if opened or not run["seconds"] > 0:
            sys.exit(f"{name}: {opened}, {run}")
