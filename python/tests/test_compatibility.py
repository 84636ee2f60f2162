# ===- test_compatibility.py - libraries of the first release --------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Libraries that a release compiled have the same results when they are called from here."""

import importlib.util
import pathlib
import platform

import numpy as np
import pytest

import posenc

INPUTS = pathlib.Path(__file__).resolve().parents[2] / "test" / "Compatibility" / "Inputs"


def is_supported():
    """Whether this CPU is an x86-64-v3."""
    cpu = pathlib.Path("/proc/cpuinfo")
    return platform.machine() in ("x86_64", "AMD64") and cpu.exists() and \
        {"avx2", "bmi2", "f16c", "fma"} <= set(cpu.read_text(errors="replace").split())


pytestmark = pytest.mark.skipif(not is_supported(), reason="the libraries are for x86-64-v3")


@pytest.fixture(scope="module")
def baseline():
    spec = importlib.util.spec_from_file_location("baseline", INPUTS / "baseline.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def call(baseline, library, function, inputs):
    """Returns the lines of `baseline.py run`."""
    arguments = [value if isinstance(value, float) else
                 np.frombuffer(baseline.encode(index, *value),
                               baseline.FORMATS[value[0]][1]).reshape(value[1])
                 for index, value in enumerate(inputs)]
    results = getattr(library, function)(*arguments)
    for index, result in enumerate(results if isinstance(results, tuple) else [results]):
        yield f"{function} {index} {baseline.hash_result(np.asarray(result).tobytes())}"


def test_results(baseline, tmp_path):
    release = INPUTS / "0.1"
    baseline.unpack(release, tmp_path)
    found = []
    for name, functions in baseline.CASES.items():
        library = posenc.load(tmp_path / f"lib{name}.so")
        for function, inputs in functions.items():
            found += (f"{name} {line}" for line in call(baseline, library, function, inputs))
    assert found == (release / "results.txt").read_text().splitlines()
    # Another input has other results.
    library = posenc.load(tmp_path / "libgraphs.so")
    [line] = call(baseline, library, "take", [("f32", [9], range(9)), ("i64", [1], [4])])
    assert f"graphs {line}" not in found
