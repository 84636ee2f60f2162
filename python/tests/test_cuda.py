# ===- test_cuda.py - calls on CUDA devices --------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Calls of arrays on a CUDA device. The fake driver of test/ptx interprets the kernels,
in another process."""

import ctypes
import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import posenc
from conftest import make_inputs

TESTS = os.path.dirname(os.path.abspath(__file__))
FAKE = os.path.join(os.path.dirname(os.environ.get("POSENC_BIN", "")), "test", "ptx")
CHECKS = ["rope", "attention", "capture", "masked", "functional", "flex", "out", "errors",
          "targets", "library", "unsupported", "architecture", "vllm", "fork", "cupy",
          "collection"]
JAX_CHECKS = ["jax", "jax_flex", "jax_gradient", "jax_errors"]


@pytest.fixture(scope="module")
def errors(cache, tmp_path_factory):
    """The errors of the checks of cuda_calls.py, on a fake device."""
    if not os.path.exists(os.path.join(FAKE, "libcuda.so.1")):
        pytest.skip("the fake CUDA driver was not built")
    # The driver takes PTX, which ptxas would only check.
    environment = {**os.environ, "LD_LIBRARY_PATH": FAKE, "POSENC_PTXAS": "off",
                   "POSENC_FAKE_CUDA_LOG": str(tmp_path_factory.mktemp("cuda") / "log")}
    script = os.path.join(TESTS, "cuda_calls.py")
    result = subprocess.run([sys.executable, "-B", script, *CHECKS, *find_jax_checks()],
                            env=environment,
                            capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def find_jax_checks():
    has_jax = all(map(importlib.util.find_spec, ("jax", "jax_tvm_ffi")))
    return JAX_CHECKS if has_jax else []


@pytest.mark.parametrize("name", CHECKS + JAX_CHECKS)
def test_calls(errors, name):
    if name not in errors:
        pytest.skip("jax and jax-tvm-ffi are not installed")
    assert errors[name] is None, errors[name]


def test_without_driver(kernels):
    class OnDevice:
        """An array that says it is on a device."""

        shape, dtype = (2, 7, 4, 32), np.dtype("f4")

        def __dlpack_device__(self):
            return 2, 0

        def __dlpack__(self, **options):
            raise AssertionError("the call needs no capsule")

    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        pass
    else:
        pytest.skip("there is a CUDA driver")
    _, k, _, positions = make_inputs()
    with pytest.raises(posenc.Error, match="^rope: q is on the CUDA device 0: there is "
                                           "no CUDA driver: libcuda.so.1"):
        kernels.rope(OnDevice(), k, positions)


@pytest.mark.parametrize("package", ["nvidia/cu13", "triton/backends/nvidia"])
def test_ptxas_of_this_python(tmp_path, package):
    """The ptxas of nvidia-cuda-nvcc, or else of Triton, is found among the packages of
    the Python that compiles, which need not be that of PATH or VIRTUAL_ENV."""
    ptxas = tmp_path / package / "bin" / "ptxas"
    ptxas.parent.mkdir(parents=True)
    ptxas.write_text("#!/bin/sh\necho this is $0\nexit 1\n")
    ptxas.chmod(0o755)
    program = """if True:
        import os, posenc
        def compile():
            module = "func.func @f(%%x: tensor<?xf32>) -> tensor<?xf32> {\\n" \
                "%%y = arith.addf %%x, %%x : tensor<?xf32>\\n" \
                "return %%y : tensor<?xf32>\\n}"
            posenc.compile(module, target="cuda:sm_80")
        try:
            compile()
        except posenc.Error as error:
            print(error)
        os.environ["POSENC_PTXAS"] = "off"
        compile()
        print("without")""".replace("%%", "%")
    environment = {**os.environ, "PATH": "/nowhere", "POSENC_CACHE": "off",
                   "PYTHONPATH": os.pathsep.join(
                       [str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    for name in ("POSENC_PTXAS", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV"):
        environment.pop(name, None)
    result = subprocess.run([sys.executable, "-c", program], env=environment, text=True,
                            capture_output=True, check=False)
    assert result.returncode == 0, result.stderr
    failed, without = result.stdout.splitlines()
    assert f"{ptxas} fails for sm_80: this is {ptxas}" in failed
    assert without == "without"


def test_targets_are_options():
    with pytest.raises(posenc.Error, match="expected a target or a list of targets"):
        posenc.compile({}, target=[])
    with pytest.raises(posenc.Error, match="target: expected a string, got 90"):
        posenc.compile({}, target=["host", 90])
