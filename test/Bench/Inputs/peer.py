# ===- peer.py - stand-in for peers.py with known times --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# peer.py TEXT: answers requests as tools/posenc-bench/Peers/peers.py does. TEXT
# is the text of that script.

import json
import sys

if "def open_torch(" not in sys.argv[1]:
    sys.exit("expected the text of peers.py as argument")
for line in sys.stdin:
    request = json.loads(line)
    command, answer = request["command"], {}
    if command == "list":
        shapes = request["shapes"]
        if not shapes or set(shapes[0]) != {"family", "variant", "dtype",
                                            "tokens", "heads", "dim",
                                            "threads"}:
            sys.exit(f"expected shapes with all keys, got {line}")
        peers = {name: [0] for name in ("millisecond", "broken", "dies")}
        # One shape of each family and variant.
        peers["millisecond"] = [
            next(number for number, shape in enumerate(shapes)
                 if (shape["family"], shape["variant"]) == form)
            for form in (("rope", "half"), ("attention", "full"),
                         ("attention", "causal"), ("decode", "rotated"))]
        answer = {"peers": peers,
                  "skipped": {"absent": "no Python package absent"}}
    elif command == "open":
        if request["peer"] == "broken":
            answer = {"error": "is broken"}
        if request["peer"] == "dies":
            sys.exit(1)
    else:
        answer = {"seconds": 1e-3 * request["calls"]}
    print(json.dumps(answer), flush=True)
