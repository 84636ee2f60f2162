# ===- test_searches.py - the runner of searches ----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""run-searches.py adds up batches, ends them in time, and reports wrong programs."""

import importlib.util
import pathlib
import time

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[1]

# A search that finds a wrong program if its seed is 2.
SEARCH = """if True:
    import sys, time
    seed = int(sys.argv[-1].removeprefix("--seed="))
    {action}
    print("program 1: wrong" if seed == 2 else "fine")
    print(f"3 right, {{int(seed == 2)}} wrong; 7 operations")
    sys.exit(seed == 2)
"""


@pytest.fixture(name="program", scope="module")
def fixture_program():
    spec = importlib.util.spec_from_file_location("run_searches", FOLDER / "run-searches.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(program, monkeypatch, tmp_path, action="", batches=2, seconds=60):
    monkeypatch.setattr(program, "BATCHES", batches)
    monkeypatch.setattr(program, "GRACE", 1)
    script = tmp_path / "search.py"
    script.write_text(SEARCH.format(action=action))
    return program.run_search([str(script), "--count=4"], 0, seconds, None)


def test_batches_are_added(program, monkeypatch, tmp_path):
    counts, is_right = run(program, monkeypatch, tmp_path)
    assert counts == {"right": 6} and is_right


def test_wrong_programs(program, monkeypatch, tmp_path, capsys):
    counts, is_right = run(program, monkeypatch, tmp_path, batches=3)
    assert counts == {"right": 9, "wrong": 1} and not is_right
    output = capsys.readouterr().out
    assert "search.py --count=4 --seed=2" in output and "program 1: wrong" in output


def test_silence_is_no_success(program, monkeypatch, tmp_path):
    _, is_right = run(program, monkeypatch, tmp_path, action="sys.exit(0)", batches=1)
    assert not is_right


def test_time_limit(program, monkeypatch, tmp_path):
    start = time.monotonic()
    counts, is_right = run(program, monkeypatch, tmp_path, action="time.sleep(50)", seconds=1)
    assert counts == {"ended": 1} and is_right and time.monotonic() - start < 40
    # What a batch found until then is not lost.
    action = "print('program 7: wrong', flush=True); time.sleep(50)"
    _, is_right = run(program, monkeypatch, tmp_path, action=action, seconds=5)
    assert not is_right
    counts, _ = run(program, monkeypatch, tmp_path, batches=100, seconds=0)
    assert counts == {"right": 3}
