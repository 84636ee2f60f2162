#!/usr/bin/env python3
# ===- draw.py - the cases that one run of the tests draws --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Draws the cases that one run of the tests has. Products of features, such as the forms
of attention by the orders of warps, have more cases than each commit can wait for. So each
commit draws some of them, and the nightly run has all.

POSENC_TEST_SEED is the seed. Its default is the hash of the commit, so that a commit has
the same cases everywhere, or a constant outside of git. POSENC_TEST_ALL=1 runs all cases.
test/numerics/Draw.h is the same in C++. As a program, draw.py prints the seed, or what it
draws from the names in its input:

    draw.py [TITLE COUNT]
"""

import os
import pathlib
import subprocess
import sys

OUTSIDE_OF_GIT = "posenc"


def find_seed(folder=pathlib.Path(__file__).parent):
    """Returns POSENC_TEST_SEED, or the hash of the commit of the sources in `folder`."""
    seed = os.environ.get("POSENC_TEST_SEED")
    if seed:
        return seed
    # The sources in a container may belong to another user, whom git does not trust.
    command = ["git", "-c", "safe.directory=*", "-C", str(folder), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return OUTSIDE_OF_GIT
    return done.stdout.strip() if done.returncode == 0 else OUTSIDE_OF_GIT


def runs_all():
    return os.environ.get("POSENC_TEST_ALL", "") not in ("", "0")


def rank(seed, name):
    """Returns a number of 64 bits. Cases with small ones are drawn."""
    mask = 2**64 - 1
    number = 0xcbf29ce484222325  # FNV-1a
    for byte in f"{seed}/{name}".encode():
        number = (number ^ byte) * 0x100000001b3 & mask
    # The finalizer of MurmurHash3: the last bytes change the high bits, too.
    for factor in (0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53):
        number = (number ^ number >> 33) * factor & mask
    return number ^ number >> 33


def choose(seed, title, names, count):
    """Returns one in `count` of the names, rounded up, in their order. Names differ."""
    names = list(names)
    by_rank = sorted(names, key=lambda name: rank(seed, f"{title}/{name}"))
    chosen = set(by_rank[:-(-len(names) // count)])
    return [name for name in names if name in chosen]


def draw_cases(title, cases, count, get_name=str):
    """Returns one in `count` of the cases, rounded up, in their order, and writes to stderr
    how many they are. Names differ."""
    cases = {get_name(case): case for case in cases}
    if runs_all() or len(cases) < 2:
        return list(cases.values())
    seed = find_seed()
    drawn = choose(seed, title, cases, count)
    announce(title, len(drawn), len(cases), seed)
    return [cases[name] for name in drawn]


def draw_values(title, names, values):
    """Draws pairs of a name and a value: returns {name: list of its values}, one value for
    each name, or all."""
    if runs_all():
        return {name: list(values) for name in names}
    seed = find_seed()
    announce(title, len(names), len(names) * len(values), seed)
    return {name: [values[rank(seed, f"{title}/{name}") % len(values)]] for name in names}


def announce(title, drawn, count, seed):
    print(f"{title}: {drawn} of {count} cases (POSENC_TEST_SEED={seed}; "
          "POSENC_TEST_ALL=1 runs all)", file=sys.stderr, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        names = sys.stdin.read().split()
        print(*draw_cases(sys.argv[1], names, int(sys.argv[2])), sep="\n")
    else:
        print(find_seed())
