# ===- test_hlo_search.py - random programs of StableHLO -------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""benchmarks/hlo-search.py finds nothing in the compiler, and finds seeded faults."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("ml_dtypes")

SEARCH = pathlib.Path(__file__).resolve().parents[1] / "benchmarks/hlo-search.py"
# Faults, and operations that show them.
FAULTS = {"next-operator": "binary,unary", "swapped-operands": "binary,binary_integer",
          "other-direction": "compare", "next-start": "pad"}


def search(*arguments):
    compiler = os.path.join(os.environ["POSENC_BIN"], "posenc-compile")
    return subprocess.run([sys.executable, SEARCH, f"--compiler={compiler}", *arguments],
                          capture_output=True, text=True, timeout=600)


def test_nothing_is_wrong():
    result = search("--seed=7", "--count=8")
    assert result.returncode == 0, result.stdout + result.stderr
    assert int(re.search(r"(\d+) right", result.stdout)[1]) >= 6, result.stdout


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault):
    result = search("--seed=7", "--count=3", "--length=2", f"--fault={fault}",
                    "--flags=--opt-level=0", f"--operations={FAULTS[fault]}")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "expected" in result.stdout
