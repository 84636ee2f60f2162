# ===- test_torch_search.py - random programs of PyTorch -------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""benchmarks/torch-search.py finds nothing in the backend, and finds seeded faults."""

import os
import signal

import benchmark_scripts
import pytest

torch = pytest.importorskip("torch")

# Faults, and statements that show them.
FAULTS = {"swapped-operands": "binary,comparison", "other-axis": "along,reduction",
          "no-writes": "write"}


@pytest.fixture(name="search", scope="module")
def fixture_search():
    with benchmark_scripts.load("torch-search") as module:
        yield module


def run(search, *arguments):
    return search.main(["--door=compile", "--seed=1", *arguments])


@pytest.fixture(name="in_process")
def fixture_in_process(search, monkeypatch):
    """Runs programs without processes of their own, of which each imports Inductor."""
    compiler = pytest.importorskip("torch._inductor.compile_fx")
    monkeypatch.setattr(compiler, "compile_fx", compiler.compile_fx)
    monkeypatch.setattr(search, "run_in_child", search.run_one)


@pytest.mark.usefixtures("in_process")
def test_nothing_is_wrong(search, capfd):
    # The import of Inductor takes most of the time of these tests, 15 s.
    assert run(search, "--count=3", "--length=4") == 0
    assert "3 right" in capfd.readouterr().out


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(search, fault, capfd):
    assert run(search, "--count=4", "--length=3", f"--fault={fault}",
               f"--statements={FAULTS[fault]}") == 1
    assert "expected" in capfd.readouterr().out


def test_crash_is_a_failure(search, monkeypatch, capfd):
    monkeypatch.setattr(search, "run_one",
                        lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    assert run(search, "--count=1") == 1
    assert "1 crashed" in capfd.readouterr().out


def test_crash_of_torch_mlir_is_none(search, monkeypatch, capfd):
    lowering = search.posenc._torch_export
    monkeypatch.setattr(lowering, "_write_linalg",
                        lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    monkeypatch.setattr(search, "run_one", lambda *_: lowering._write_linalg())
    assert run(search, "--count=1") == 0
    assert "1 refused" in capfd.readouterr().out


def test_scales(search):
    """The scale of a value does not depend on values that it does not read."""
    x, y = torch.tensor([1.0, -2.0]), torch.tensor([1e4])
    statements = [(["v0"], ["v0 = x0 + 1"], True), (["v1"], ["v1 = x1 * 2"], True),
                  (["v2"], ["v2 = v0 * v0"], False)]
    values = {"v0": x + 1, "v1": y * 2, "v2": (x + 1) ** 2}
    assert search.find_scales(statements, {"x0": x, "x1": y}, values) == {
        "x0": 2.0, "x1": 1e4, "v0": 2.0, "v1": 2e4, "v2": 4.0}
    written = [*statements, (["v3"], ["v3 = v1.add_(1)"], True)]
    assert search.find_scales(written, {"x0": x}, values)["v0"] == 2e4
