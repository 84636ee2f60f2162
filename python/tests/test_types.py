# ===- test_types.py - type hints --------------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""A type checker accepts programs that use the package, and knows their types."""

import os
import pathlib
import subprocess
import sys

import pytest

import posenc

pytest.importorskip("mypy")

PROGRAM = """
from typing import Any
import numpy as np
import posenc

q = np.ones((1, 2, 4, 64), np.float32)
positions = np.arange(2)[None]
kernels = posenc.compile("config.json", dtype="f32", kernels=["rope"])
names: list[str] = list(kernels)
o: Any = kernels.rope(q, q, positions, out=(q, q))
q, k = posenc.functional.rope(q, q, positions, theta=5e5, scaling={"factor": 2.0})
reveal_type(k)
"""
WITH_TORCH = """
import posenc
import posenc.torch
import torch

q, positions = torch.ones(1, 2, 4, 64), torch.arange(2)[None]
reveal_type(posenc.functional.rope(q, q, positions, out=(q, q)))
reveal_type(posenc.torch.rope(q, q, positions))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of programs, with one cache of mypy."""
    return tmp_path_factory.mktemp("programs")


def run_mypy(folder: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess:
    package = str(pathlib.Path(posenc.__file__).parents[1])
    # An installed package is found by itself, and may not be in MYPYPATH.
    path = {} if "site-packages" in package else {"MYPYPATH": package}
    return subprocess.run(
        [sys.executable, "-m", "mypy", *arguments], cwd=folder,
        env={**os.environ, **path}, text=True, capture_output=True, check=False)


def check(folder: pathlib.Path, program: str) -> subprocess.CompletedProcess:
    (folder / "program.py").write_text(program, encoding="utf-8")
    return run_mypy(folder, "--follow-imports=silent", "program.py")


def test_the_package(folder):
    for module in ("torch", "transformers", "jax"):
        pytest.importorskip(module)
    # vLLM, with what it needs, is for the plug-in alone.
    # torch-mlir has no types, and matplotlib is optional.
    (folder / "mypy.ini").write_text(
        "[mypy]\n[mypy-vllm.*,prometheus_client.*,torch_mlir.*,matplotlib.*]\n"
        "ignore_missing_imports = True\n",
        encoding="utf-8")
    result = run_mypy(folder, "--config-file", "mypy.ini", "-p", "posenc")
    assert result.returncode == 0, result.stdout


def test_numpy(folder):
    result = check(folder, PROGRAM)
    assert result.returncode == 0, result.stdout
    assert 'Revealed type is "numpy.ndarray[' in result.stdout


def test_torch(folder):
    pytest.importorskip("torch")
    result = check(folder, WITH_TORCH)
    assert result.returncode == 0, result.stdout
    assert result.stdout.count("torch._tensor.Tensor, torch._tensor.Tensor]") == 2


def test_errors(folder):
    result = check(folder, PROGRAM.replace("theta=5e5", "theta='5e5'")
                   .replace("rope(q, q, positions, out", "rope(q, q, out")
                   .replace("functional.rope(q, q", "functional.rope(1, q"))
    assert result.returncode == 1
    assert 'Argument "theta" to "rope" has incompatible type "str"' in result.stdout
    assert 'Value of type variable "SomeArray" of "rope"' in result.stdout
