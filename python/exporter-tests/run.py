#!/usr/bin/env python3
# ===- run.py - tests with the newest exporters -----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# The runner behind `make exporters-test`. Exporters change how they write rotary
# embeddings and attention, so this installs the newest of them from PyPI in a virtual
# environment of the build folder, exports the models of python/benchmarks, and compares
# the rotations and attentions that are found with those that the models have, and the
# results with the framework's. A table whose packages cannot be installed (off line, or
# without the disk space) is skipped by name. The last line is `N passed, N failed`, where
# each row of a table counts.

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time

PYTHON_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_SPEC = importlib.util.spec_from_file_location(
    "run_tests", os.path.join(PYTHON_FOLDER, "run-tests.py"))
run_tests = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(run_tests)

COMMON = ["numpy", "apache-tvm-ffi"]
# The packages of each table, of which the newest of PyPI are installed, and the program
# that prints it.
TABLES = {
    "torch.export": (["torch", "transformers", "torch-mlir"],
                     ["benchmarks/exported.py", "--compiler", "{compiler}"]),
    "ONNX": (["torch", "transformers", "onnx", "onnxscript", "onnxruntime"],
             ["benchmarks/onnx-models.py", "--folder", "{folder}/onnx", "--compiler",
              "{compiler}"]),
    "StableHLO": (["jax", "flatbuffers", "ml_dtypes"],
                  ["benchmarks/stablehlo-models.py", "--compiler", "{compiler}"]),
    "StableHLO, serialized": (["jax", "flatbuffers", "ml_dtypes", "pytest"],
                              ["-m", "pytest", "-v", "-p", "no:cacheprovider",
                               "tests/test_stablehlo.py"]),
}
# Bytes that PyTorch takes while it is installed.
SPACE = 12e9
# Seconds after which a program is ended, which is a failure.
PATIENCE = 3600
# The last line of a table.
COUNT = re.compile(r"(\d+) of (\d+) are as expected")


def install(python, folder, packages):
    """Installs the newest versions. Returns why that is not possible, or None."""
    free = shutil.disk_usage(folder).free
    if ("torch" in packages and not run_tests.has_packages(python, ["torch"])
            and free < SPACE):
        return f"{free / 1e9:.0f} GB of disk are free, {SPACE / 1e9:.0f} are needed"
    code, output = run_tests.pip(python, "install", "--quiet", "--upgrade", "--timeout=10",
                                 "--retries=1", *packages)
    return (output or "pip failed").splitlines()[-1] if code else None


def list_versions(python, packages):
    """Returns the names and versions of packages as a text."""
    code = ("import importlib.metadata as m, json, sys\n"
            "print(json.dumps([f'{p} {m.version(p)}' for p in sys.argv[1:]]))")
    done = subprocess.run([python, "-c", code, *packages], capture_output=True, text=True,
                          check=False)
    return ", ".join(packages if done.returncode else json.loads(done.stdout))


def run_table(command, environment):
    """Runs a program that prints a table. Returns the numbers of rows that are as expected
    and that are not. A program that prints no count is one row."""
    count = None
    with subprocess.Popen(command, cwd=PYTHON_FOLDER, env=environment, text=True,
                          errors="replace", stdout=subprocess.PIPE) as process:
        timer = threading.Timer(PATIENCE, process.kill)
        timer.start()
        for line in process.stdout:
            print(line, end="", flush=True)
            count = COUNT.match(line) or count
        process.wait()
        timer.cancel()
    if count is None:
        if process.returncode:
            print(f"the program exited with {process.returncode}")
        return int(process.returncode == 0), int(process.returncode != 0)
    passed, total = map(int, count.groups())
    # A table without rows, and an exit status that the count does not explain, are failures.
    if total == 0 or (process.returncode == 0) != (passed == total):
        print(f"{passed} of {total} rows, but exit status {process.returncode}")
        return passed, max(total - passed, 1)
    return passed, total - passed


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Tests the newest exporters.")
    parser.add_argument("--build-dir", default=os.path.join(PYTHON_FOLDER, "..", "build"))
    parser.add_argument("--python", help="uses this Python and installs nothing")
    parser.add_argument("--compiler", help="instead of that of the build folder")
    parser.add_argument("--table", action="append", choices=TABLES, help="one of the tables")
    options = parser.parse_args(arguments)
    build = os.path.abspath(options.build_dir)
    folder = os.path.join(build, "exporters")
    shutil.rmtree(os.path.join(folder, "onnx"), ignore_errors=True)
    os.makedirs(folder, exist_ok=True)
    python = options.python or run_tests.create_environment(
        os.path.join(folder, "venv"), os.environ.get("POSENC_TEST_PYTHON"))
    compiler = options.compiler or os.path.join(build, "bin", "posenc-compile")
    environment = {**os.environ, "PYTHONPATH": PYTHON_FOLDER, "POSENC_CACHE": "off",
                   "POSENC_LIBRARY_PATH": os.path.join(build, "lib")}
    passed = failed = 0
    for name in options.table or TABLES:
        packages, command = TABLES[name]
        start = time.monotonic()
        obstacle = None if options.python else install(python, folder, COMMON + packages)
        if obstacle:
            print(f"SKIPPED {name}: {obstacle}", flush=True)
            continue
        print(f"{name}: {list_versions(python, packages)}, installed in "
              f"{time.monotonic() - start:.0f} s", flush=True)
        start = time.monotonic()
        good, bad = run_table(
            [python, "-B", *(one.format(compiler=compiler, folder=folder) for one in command)],
            environment)
        print(f"{name}: {good} passed, {bad} failed, {time.monotonic() - start:.0f} s\n",
              flush=True)
        passed, failed = passed + good, failed + bad
    return run_tests.finish(passed, failed)


if __name__ == "__main__":
    sys.exit(main())
