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
a program was wrong, after the command that repeats its batch.
"""

import argparse
import collections
import datetime
import importlib.util
import os
import pathlib
import re
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
# Seconds after the end of the time until a batch is ended.
GRACE = 60
# Batches of a seed. Seeds of other days do not meet them.
BATCHES = 10000


def count_results(output):
    """Returns the counts of the last line of a search, such as `8 right, 1 wrong; …`."""
    lines = output.strip().splitlines() or [""]
    return collections.Counter({kind: int(count) for count, kind in re.findall(
        r"(\d+) ([\w ]+)", lines[-1].partition(";")[0])})


def run_search(arguments, seed, seconds, environment, python=sys.executable):
    """Runs batches of a search, and returns the counts of all and whether all ended well."""
    counts, is_right, end = collections.Counter(), True, time.monotonic() + seconds
    repeats = any(one.startswith("--count=") for one in arguments)
    for batch in range(BATCHES if repeats else 1):
        command = [python, *arguments]
        if repeats:
            command.append(f"--seed={seed * BATCHES + batch}")
        limit = max(end - time.monotonic(), 0) + GRACE if repeats else None
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, errors="replace", timeout=limit, check=False,
                                  cwd=FOLDER / "benchmarks", env=environment)
        except subprocess.TimeoutExpired as error:
            counts["ended"] += 1
            # Programs that were wrong are printed at once.
            output = os.fsdecode(error.stdout or b"")
            if re.search(r"^(config|program|graph) \d+\b", output, re.MULTILINE):
                is_right = False
                print(f"{' '.join(map(str, command))}\n{output[-8000:]}", flush=True)
            break
        counts += count_results(done.stdout)
        if done.returncode or not count_results(done.stdout):
            is_right = False
            print(f"{' '.join(map(str, command))}\n{done.stdout[-8000:]}", flush=True)
        if time.monotonic() >= end:
            break
    return counts, is_right


def prepare(build):
    """Returns the Python of python-test, with the package of the build folder."""
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
    return python


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
    seed = options.seed or int(datetime.date.today().strftime("%Y%m%d"))
    build = options.build_dir.resolve()
    python = prepare(build)
    compiler = build / "bin" / "posenc-compile"
    environment = {**os.environ, "POSENC_BIN": str(build / "bin"), "POSENC_CACHE": "off",
                   "OMP_WAIT_POLICY": "passive"}
    for name in ("PYTHONPATH", "POSENC_LIBRARY_PATH"):
        environment.pop(name, None)
    is_right = True
    for name in names:
        arguments = [one.format(compiler=compiler) for one in SEARCHES[name]]
        counts, ended_well = run_search(arguments, seed, options.time, environment, python)
        is_right = is_right and ended_well
        text = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        print(f"{name}, seed {seed}: {text}", flush=True)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
