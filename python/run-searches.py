#!/usr/bin/env python3
# ===- run-searches.py - random programs for a time --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The program behind `make search`. Runs each search of python/benchmarks for some seconds, in
batches of which each has a seed of its own, and prints how many programs were right, refused
and wrong. The first seed is the date, so that each night has other programs. Exits with 1 if
a program was wrong or a search hangs, after the command that repeats its batch. A search whose
packages are not installed is skipped.
"""

import argparse
import collections
import datetime
import functools
import importlib.util
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

FOLDER = pathlib.Path(__file__).resolve().parent

# The arguments of each search, without its seed. A search without a count has the same
# programs each time, and runs once.
SEARCHES = {
    "config": ["config-search.py", "--count=10"],
    "config-hf_f32": ["config-search.py", "--count=10", "--precision=hf_f32"],
    "hlo": ["hlo-search.py", "--count=10", "--compiler={compiler}"],
    "onnx": ["onnx-search.py", "--count=10", "--compiler={compiler}"],
    "onnx-raise-no": ["onnx-search.py", "--count=10", "--compiler={compiler}",
                      "--flags=--opt-level=0 --raise=no"],
    "onnx-nodes": ["onnx-node-tests.py", "--compiler={compiler}"],
    "torch-export": ["torch-search.py", "--count=5", "--door=export"],
    "torch-compile": ["torch-search.py", "--count=5", "--door=compile"],
}
# The packages that programs import beside those of every test.
NEEDS = {
    "config-search.py": ["torch", "transformers"],
    "hlo-search.py": ["ml_dtypes"],
    "onnx-search.py": ["onnx", "onnxruntime"],
    "onnx-node-tests.py": ["onnx"],
    "torch-search.py": ["torch"],
    "--door=export": ["torch-mlir"],
}
# Seconds after the end of the time until a batch is ended: more than a batch takes, and
# than the limit of a program (benchmarks/search_limits.py).
GRACE = 180
# Batches of a seed. Seeds of other days do not meet them.
BATCHES = 10000


def count_results(output):
    """Returns the counts of the last line of a search, such as `8 right, 1 wrong; …`."""
    lines = output.strip().splitlines() or [""]
    return collections.Counter({kind: int(count) for count, kind in re.findall(
        r"(\d+) ([\w ]+)", lines[-1].partition(";")[0])})


def run_batch(command, limit, environment):
    """Runs a command for `limit` seconds at most, and ends it with all that it started.
    Returns its output, and its exit code, or None if it was ended."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", cwd=FOLDER / "benchmarks", env=environment,
                          start_new_session=True) as process:
        try:
            return process.communicate(timeout=limit)[0], process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return process.communicate()[0], None
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def run_search(arguments, seed, seconds, environment, python=sys.executable):
    """Runs batches of a search, and returns the counts of all and whether all were right and
    at least one ended by itself."""
    counts, is_right, end = collections.Counter(), True, time.monotonic() + seconds
    repeats = any(one.startswith("--count=") for one in arguments)
    for batch in range(BATCHES if repeats else 1):
        command = [python, *arguments]
        if repeats:
            command.append(f"--seed={seed * BATCHES + batch}")
        limit = max(end - time.monotonic(), 0) + GRACE if repeats else None
        output, code = run_batch(command, limit, environment)
        if code is None:
            counts["ended"] += 1
            # Programs that were wrong are printed at once. Without a batch before, this one
            # hangs.
            if batch == 0 or re.search(r"^(config|program|graph) \d+\b", output, re.MULTILINE):
                is_right = False
                print(f"{' '.join(map(str, command))}\n{output[-8000:]}", flush=True)
            break
        counts += count_results(output)
        if code or not count_results(output):
            is_right = False
            print(f"{' '.join(map(str, command))}\n{output[-8000:]}", flush=True)
        if time.monotonic() >= end:
            break
    return counts, is_right


def find_missing(arguments, has_packages):
    """Returns the packages that a search needs and that `has_packages` says are not there."""
    packages = [name for one in arguments for name in NEEDS.get(one, [])]
    return [name for name in packages if not has_packages([name])]


def prepare(build):
    """Returns the Python of python-test, with the package of the build folder, and a function
    that says whether packages are installed there."""
    spec = importlib.util.spec_from_file_location("run_tests", FOLDER / "run-tests.py")
    tests = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tests)
    lender = os.environ.get("POSENC_TEST_PYTHON")
    folder = build / "python"
    folder.mkdir(parents=True, exist_ok=True)
    python = tests.create_environment(str(folder / "venv"), lender)
    reason = tests.install_packages(python, str(folder), lender)
    if reason:
        sys.exit(f"run-searches: packages cannot be installed: {reason}")
    if not tests.install_wheel(python, str(FOLDER.parent), str(build), str(folder / "dist")):
        sys.exit("run-searches: the package cannot be installed")
    return python, functools.partial(tests.has_packages, python)


def choose_seed(given):
    """Returns the seed that is given, which may be 0, or else the date."""
    return int(datetime.date.today().strftime("%Y%m%d")) if given is None else given


def main():
    parser = argparse.ArgumentParser(description="Runs searches for a time.")
    parser.add_argument("--build-dir", type=pathlib.Path, default=FOLDER.parent / "build")
    parser.add_argument("--time", type=float, default=60, help="seconds for each search")
    parser.add_argument("--seed", type=int, help="default: the date, such as 20261130")
    parser.add_argument("--searches", default="", help=f"some of {', '.join(SEARCHES)}")
    options = parser.parse_args()
    names = options.searches.split(",") if options.searches else list(SEARCHES)
    if unknown := set(names) - set(SEARCHES):
        parser.error(f"expected some of {', '.join(SEARCHES)}, got {', '.join(sorted(unknown))}")
    seed = choose_seed(options.seed)
    build = options.build_dir.resolve()
    python, has_packages = prepare(build)
    compiler = build / "bin" / "posenc-compile"
    environment = {**os.environ, "POSENC_BIN": str(build / "bin"), "POSENC_CACHE": "off",
                   "OMP_WAIT_POLICY": "passive"}
    for name in ("PYTHONPATH", "POSENC_LIBRARY_PATH"):
        environment.pop(name, None)
    is_right = True
    for name in names:
        if missing := find_missing(SEARCHES[name], has_packages):
            print(f"SKIPPED {name}: needs {' and '.join(missing)}", flush=True)
            continue
        arguments = [one.format(compiler=compiler) for one in SEARCHES[name]]
        counts, ended_well = run_search(arguments, seed, options.time, environment, python)
        is_right = is_right and ended_well
        text = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        print(f"{name}, seed {seed}: {text}", flush=True)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
