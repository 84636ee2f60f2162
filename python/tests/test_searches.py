# ===- test_searches.py - the runner of searches ----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""run-searches.py adds up batches, ends them in time, and reports wrong programs."""

import importlib.util
import os
import pathlib
import subprocess
import sys
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


def run(program, monkeypatch, tmp_path, action="", batches=2, seconds=60, grace=1):
    monkeypatch.setattr(program, "BATCHES", batches)
    monkeypatch.setattr(program, "GRACE", grace)
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


def test_time_limit(program, monkeypatch, tmp_path, capsys):
    # A later batch may take longer than the time.
    counts, is_right = run(program, monkeypatch, tmp_path, seconds=5,
                           action="time.sleep(50 * (seed == 1))")
    assert counts == {"right": 3, "ended": 1} and is_right
    # What it found until then is not lost.
    action = "if seed == 1: print('program 7: wrong', flush=True); time.sleep(50)"
    counts, is_right = run(program, monkeypatch, tmp_path, action=action, seconds=5)
    assert counts == {"right": 3, "ended": 1} and not is_right
    assert "program 7: wrong" in capsys.readouterr().out
    counts, _ = run(program, monkeypatch, tmp_path, batches=100, seconds=0, grace=30)
    assert counts == {"right": 3}


def test_hanging_searches(program, monkeypatch, tmp_path, capsys):
    """A search of which no batch ends is a failure. What it has started is ended, too."""
    start = time.monotonic()
    action = ("import subprocess; print(subprocess.Popen(['sleep', '50']).pid, flush=True); "
              "time.sleep(50)")
    counts, is_right = run(program, monkeypatch, tmp_path, action=action, seconds=5)
    assert counts == {"ended": 1} and not is_right and time.monotonic() - start < 40
    command, pid = capsys.readouterr().out.split("\n")[:2]
    assert command.endswith("--seed=0")
    state = pathlib.Path(f"/proc/{pid}/stat")
    while state.exists() and state.read_text().split()[2] != "Z":
        assert time.monotonic() - start < 40
        time.sleep(0.1)


def test_seeds(program):
    assert program.choose_seed(0) == 0 and program.choose_seed(None) > 20260000


def test_missing_packages(program):
    """Each search is skipped for the packages that its program imports."""
    for name, arguments in program.SEARCHES.items():
        needed = program.find_missing(arguments, lambda packages: False)
        assert needed == program.find_missing(arguments, lambda packages: packages == ["numpy"])
        assert program.find_missing(arguments, lambda packages: True) == []
        assert ("torch" in needed) == name.startswith(("torch", "config")), name
        assert ("torch-mlir" in needed) == (name == "torch-export"), name


# Programs, and the packages that they need.
@pytest.mark.parametrize("name, packages", [("hlo-search.py", ["ml_dtypes"]),
                                            ("onnx-search.py", ["onnx", "onnxruntime"])])
def test_hanging_compiler(program, name, packages, tmp_path):
    """A program on which the compiler hangs is wrong."""
    for package in packages:
        pytest.importorskip(package)
    compiler = tmp_path / "posenc-compile"
    compiler.write_text("#!/bin/sh\nexec sleep 50\n")
    compiler.chmod(0o755)
    result = subprocess.run(
        [sys.executable, FOLDER / "benchmarks" / name, f"--compiler={compiler}", "--count=1"],
        capture_output=True, text=True, env={**os.environ, "POSENC_SEARCH_SECONDS": "0.5"})
    assert result.returncode == 1 and "the compiler does not end" in result.stdout, result
    assert "1 wrong" in result.stdout


LIMITED = """if True:
    import os, sys, time
    sys.path.insert(0, sys.argv[1])
    import search_limits
    assert 2 * search_limits.COMPILER_SECONDS < search_limits.PROGRAM_SECONDS
    child = os.fork()
    if not child:
        search_limits.limit_child()
        time.sleep(50)
    print(search_limits.describe_status(os.waitpid(child, 0)[1]), flush=True)
    with search_limits.end_search():
        pass
    search_limits.extend_limit()  # There is none.
    time.sleep(search_limits.PROGRAM_SECONDS)
    print("alive", flush=True)
    with search_limits.end_search():
        time.sleep(50)
"""


def test_limits_of_programs(program):
    result = subprocess.run([sys.executable, "-c", LIMITED, FOLDER / "benchmarks"],
                            capture_output=True, text=True,
                            env={**os.environ, "POSENC_SEARCH_SECONDS": "0.5"})
    assert result.returncode == 1, result
    assert result.stdout.splitlines() == ["the process does not end", "alive"]
    assert 'File "<string>"' in result.stderr
    spec = importlib.util.spec_from_file_location("search_limits",
                                                  FOLDER / "benchmarks/search_limits.py")
    limits = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(limits)
    assert limits.PROGRAM_SECONDS < program.GRACE
