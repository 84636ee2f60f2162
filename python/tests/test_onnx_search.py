# ===- test_onnx_search.py - random ONNX graphs ----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""benchmarks/onnx-search.py finds nothing in the compiler, and finds seeded faults."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

SEARCH = pathlib.Path(__file__).resolve().parents[1] / "benchmarks/onnx-search.py"
# Faults, and operators that show them.
FAULTS = {"no-attributes": "Transpose,Concat,LeakyRelu,ReduceMax",
          "no-zero-points": "DequantizeLinear,MatMulInteger,com.microsoft.MatMulNBits",
          "swapped-halves": "com.microsoft.MatMulNBits",
          "next-operator": "ReduceMax,Floor,Add,Less",
          "other-opset": "Softmax,LogSoftmax",
          "other-sign-of-integers": "Slice,Gather,Pad",
          "swapped-branches": "If",
          "swapped-operands": "Sub,PRelu,Less"}


def search(*arguments):
    compiler = os.path.join(os.environ["POSENC_BIN"], "posenc-compile")
    return subprocess.run([sys.executable, SEARCH, "--compiler", compiler, *arguments],
                          capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("flags", ["--opt-level=0", "--opt-level=0 --raise=no"])
def test_nothing_is_wrong(flags):
    # Half of the graphs each, 5 s.
    result = search("--seed=7", "--count=16", f"--flags={flags}")
    assert result.returncode == 0, result.stdout + result.stderr
    right = int(re.search(r"(\d+) right", result.stdout)[1])
    assert right >= 10, result.stdout


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault):
    result = search("--seed=7", "--count=15", "--nodes=3", f"--fault={fault}",
                    f"--operators={FAULTS[fault]}")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "expected" in result.stdout
