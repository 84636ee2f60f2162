# ===- test_exporter_tests.py - the program behind `make exporters-test` ----===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The checks of `make exporters-test` and `make models-test` fail when they should."""

import importlib.util
import os
import pathlib
import shutil
import sys

import numpy as np
import pytest

PYTHON_FOLDER = pathlib.Path(os.environ.get("POSENC_SOURCE",
                                            pathlib.Path(__file__).parents[2])) / "python"


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RUN = load(PYTHON_FOLDER / "exporter-tests" / "run.py")
RAISED = load(PYTHON_FOLDER / "benchmarks" / "raised.py")


@pytest.mark.parametrize("found, difference, verdict", [
    ((4, 2), 9e-6, "agrees"), ((3, 2), 0, "NOT FOUND"), ((4, 3), 0, "NOT FOUND"),
    (("", ""), 0, "NOT FOUND"), ((4, 2), 1.1e-5, "WRONG"),
    ((4, 2), float("nan"), "WRONG"), ((0, 0), 1, "WRONG, NOT FOUND")])
def test_verdicts(found, difference, verdict):
    columns, is_right = RAISED.judge(found, (4, 2), difference, 1e-5)
    assert columns[2] == verdict and is_right == (verdict == "agrees")


def test_differences():
    expected = np.array([[1.0, -4.0]], np.float32)
    assert RAISED.compare(expected + 1, expected) == 0.25
    assert RAISED.compare(expected[:0], expected[:0]) == 0
    assert np.isnan(RAISED.compare(expected * np.nan, expected))
    with pytest.raises(ValueError, match="shape"):
        RAISED.compare(expected[0], expected)


def test_what_is_counted():
    assert RAISED.count_found("""
      %0:2 = posenc.rope {base = 1.0} ins(%q, %k : tensor<f32>) outs(%a, %b : tensor<f32>)
      %1 = posenc.rotate ins(%v : tensor<f32>) outs(%c : tensor<f32>)
      %2 = posenc.attention ins(%q, %k, %v : tensor<f32>)""") == (3, 1)


@pytest.mark.parametrize("program, counts", [
    ("print('3 of 3 are as expected')", (3, 0)),
    ("print('1 of 3 are as expected'); raise SystemExit(1)", (1, 2)),
    # The status and the count do not agree, or there are no rows.
    ("print('1 of 3 are as expected')", (1, 2)),
    ("print('3 of 3 are as expected'); raise SystemExit(1)", (3, 1)),
    ("print('0 of 0 are as expected')", (0, 1)),
    # A crash, and a program that prints no table.
    ("import os; os.abort()", (0, 1)), ("pass", (1, 0)),
    ("import time; time.sleep(60)", (0, 1))])
def test_counts_of_a_table(monkeypatch, program, counts):
    monkeypatch.setattr(RUN, "PATIENCE", 2)
    assert RUN.run_table([sys.executable, "-c", program], dict(os.environ)) == counts


def test_what_cannot_be_installed_is_skipped(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(RUN.run_tests, "create_environment", lambda *_: sys.executable)
    monkeypatch.setattr(RUN.run_tests, "pip", lambda *_: (1, "...\nERROR: no network"))
    monkeypatch.setattr(RUN, "SPACE", 0)
    assert RUN.main(["--build-dir", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"SKIPPED {name}: ERROR: no network" for name in RUN.TABLES] + [
        "0 passed, 0 failed"]


def test_models_without_memory_are_skipped(monkeypatch, tmp_path, capsys):
    models = load(PYTHON_FOLDER / "model-tests" / "run.py")
    monkeypatch.setattr(models.run_tests, "create_environment", lambda *_: sys.executable)
    monkeypatch.setattr(models.run_tests, "install_packages", lambda *_: None)
    monkeypatch.setattr(models, "MEMORY", 1e18)
    assert models.main(["--build-dir", str(tmp_path)]) == 0
    *skipped, last = capsys.readouterr().out.splitlines()
    assert len(skipped) == 7 and last == "0 passed, 0 failed"
    assert all(line.startswith("SKIPPED ") and "GB of memory" in line for line in skipped)


def test_a_compiler_that_finds_nothing(tmp_path, capfd):
    """Rows with attention fail, and those without pass."""
    pytest.importorskip("jax")
    tool = shutil.which("posenc-compile", path=os.environ.get(
        "POSENC_BIN", PYTHON_FOLDER.parent / "build" / "bin"))
    if not tool:
        pytest.skip("no posenc-compile")
    compiler = tmp_path / "compile.sh"
    compiler.write_text(f'#!/bin/sh\nexec {tool} --raise=no "$@"\n', encoding="utf-8")
    compiler.chmod(0o755)
    script = PYTHON_FOLDER / "benchmarks" / "stablehlo-models.py"
    command = [sys.executable, script, "--sizes", "static", "--models", "vmapped,quotients"]
    assert RUN.run_table([*command, "--compiler", tool], dict(os.environ)) == (2, 0)
    assert RUN.run_table([*command, "--compiler", compiler], dict(os.environ)) == (1, 1)
    assert capfd.readouterr().out.count("| 0 of 1 | NOT FOUND |") == 1
