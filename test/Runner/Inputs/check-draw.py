# ===- check-draw.py - shares of what test/Inputs/draw.py draws --------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: check-draw.py FOLDER
#
# FOLDER has draw.py. Of a few hundred seeds, each draws the exact share of the cases, each
# case is drawn by its share of the seeds, and POSENC_TEST_ALL=1 leaves nothing out.

import contextlib
import io
import math
import os
import sys

sys.path.insert(0, sys.argv[1])
import draw

RUNS, COUNT = 400, 4
CASES = [f"case {i}" for i in range(30)]
SHARE = math.ceil(len(CASES) / COUNT)


def check(drawn, probability):
    """Of RUNS runs, the number of those with a case is within five standard deviations."""
    deviation = math.sqrt(RUNS * probability * (1 - probability))
    assert abs(drawn - RUNS * probability) <= 5 * deviation, (drawn, probability)


runs, values = dict.fromkeys(CASES, 0), dict.fromkeys(CASES, 0)
os.environ["POSENC_TEST_ALL"] = "0"
for seed in range(RUNS):
    os.environ["POSENC_TEST_SEED"] = str(seed)
    message = io.StringIO()
    with contextlib.redirect_stderr(message):
        drawn = draw.draw_cases("title", CASES, COUNT)
        pairs = draw.draw_values("title", CASES, "ab")
    assert f"title: {SHARE} of 30 cases (POSENC_TEST_SEED={seed}; " in message.getvalue()
    assert len(drawn) == SHARE and drawn == sorted(drawn, key=CASES.index)
    for case in drawn:
        runs[case] += 1
    for case in CASES:
        assert pairs[case] in (["a"], ["b"])
        values[case] += pairs[case] == ["a"]
for case in CASES:
    check(runs[case], SHARE / len(CASES))
    check(values[case], 1 / 2)
os.environ["POSENC_TEST_ALL"] = "1"
assert draw.draw_cases("title", CASES, COUNT) == CASES
assert draw.draw_values("title", CASES, "ab") == {case: ["a", "b"] for case in CASES}
