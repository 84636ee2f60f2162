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
# what is found with what the models have. What cannot be installed (off line, or without
# the disk space) is skipped by name. The last line is `N passed, N failed`.

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys

PYTHON_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_SPEC = importlib.util.spec_from_file_location(
    "run_tests", os.path.join(PYTHON_FOLDER, "run-tests.py"))
run_tests = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(run_tests)

COMMON = ["numpy", "apache-tvm-ffi", "pytest", "pytest-xdist"]
# The packages of each table, the newest that PyPI has, and what makes it.
TABLES = {
    "torch.export": (["torch", "transformers", "torch-mlir"],
                     ["benchmarks/exported.py", "--compiler", "{compiler}"]),
    "ONNX": (["torch", "transformers", "onnx", "onnxscript", "onnxruntime"],
             ["benchmarks/onnx-models.py", "--folder", "{folder}/onnx", "--compiler",
              "{compiler}"]),
    "StableHLO": (["jax", "flatbuffers", "ml_dtypes"],
                  ["-m", "pytest", "-q", "tests/test_stablehlo.py"]),
}
# Bytes that PyTorch takes while it is installed.
SPACE = 12e9


def install(python, folder, packages):
    """Installs the newest versions. Returns why that is not possible, or None."""
    free = shutil.disk_usage(folder).free
    if "torch" in packages and free < SPACE:
        return f"{free / 1e9:.0f} GB of disk are free, {SPACE / 1e9:.0f} are needed"
    code, output = run_tests.pip(python, "install", "--quiet", "--upgrade", "--timeout=10",
                                 "--retries=1", *packages)
    return (output or "pip failed").splitlines()[-1] if code else None


def main():
    parser = argparse.ArgumentParser(description="Tests the newest exporters.")
    parser.add_argument("--build-dir", default=os.path.join(PYTHON_FOLDER, "..", "build"))
    parser.add_argument("--python", help="uses this Python and installs nothing")
    parser.add_argument("--tables", default=",".join(TABLES))
    options = parser.parse_args()
    build = os.path.abspath(options.build_dir)
    folder = os.path.join(build, "exporters")
    shutil.rmtree(os.path.join(folder, "onnx"), ignore_errors=True)
    os.makedirs(folder, exist_ok=True)
    python = options.python or run_tests.create_environment(
        os.path.join(folder, "venv"), os.environ.get("POSENC_TEST_PYTHON"))
    compiler = os.path.join(build, "bin", "posenc-compile")
    environment = {**os.environ, "PYTHONPATH": PYTHON_FOLDER,
                   "POSENC_LIBRARY_PATH": os.path.join(build, "lib")}
    passed = failed = 0
    for name in options.tables.split(","):
        packages, command = TABLES[name]
        obstacle = None if options.python else install(python, folder, COMMON + packages)
        if obstacle:
            print(f"SKIPPED {name}: {obstacle}")
            continue
        print(f"{name}: {', '.join(packages)}", flush=True)
        arguments = [one.format(compiler=compiler, folder=folder) for one in command]
        code = subprocess.run([python, "-B", *arguments], cwd=PYTHON_FOLDER,
                              env=environment, check=False).returncode
        passed += code == 0
        failed += code != 0
    return run_tests.finish(passed, failed)


if __name__ == "__main__":
    sys.exit(main())
