#!/usr/bin/env python3
# ===- run.py - tests of whole models ----------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# The runner behind `make models-test`. Compiles decoders with the shapes of Llama 3.2 1B
# (16 layers, random weights) from ONNX in each type, runs them beside ONNX Runtime,
# OpenVINO and PyTorch, one after the other, and compares the logits; in f32 it also
# compares the tokens that examples/generate and ONNX Runtime generate. They need
# 20 GB of memory and 12 GB of disk. Packages come from pip, with the versions and
# hashes of test/locks; a table that finds no package to compare with, too little memory
# or too little disk is skipped by name. The last line is `N passed, N failed`, where each
# row of a table counts.

import argparse
import importlib.util
import os
import shutil
import sys

PYTHON_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_SPEC = importlib.util.spec_from_file_location(
    "exporter_tests", os.path.join(PYTHON_FOLDER, "exporter-tests", "run.py"))
exporter_tests = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(exporter_tests)
run_tests = exporter_tests.run_tests

# Groups of packages.
GROUPS = ["onnx", "openvino", "torch"]
# The largest difference of two systems, relative to the largest logit. Sums of f16 and
# bf16 are rounded where each system chooses to; accuracy level 4 rounds activations to
# 8 bits.
DIFFERENCES = {"f32": 1e-5, "bf16": 5e-2, "f16": 1e-2, "int8": 1e-5, "int4": 1e-5,
               "int4:4": 5e-2}
GENERATION = "generation"
# Bytes of memory and disk.
MEMORY, DISK = 20e9, 12e9


def get_command(table, compiler, folder):
    """Returns the program that makes a table, and the package that it compares with."""
    if table == GENERATION:
        return ["model-tests/generate.py", compiler, folder], "onnxruntime"
    # Neither ONNX Runtime nor OpenVINO has all operators of bf16.
    package = "torch" if table == "bf16" else "onnxruntime"
    return ["benchmarks/models.py", "--compiler", compiler, "--folder", folder,
            "--layers=16", "--threads=1", "--rounds=1", "--prefill=64", "--decode=128",
            "--alone", f"--precisions={table}",
            f"--max-difference={DIFFERENCES[table]}"], package


def find_obstacle(python, folder, package):
    """Returns why a table cannot be made here, or None."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    disk = shutil.disk_usage(folder).free
    for what, there, needed in (("memory", memory, MEMORY), ("free disk", disk, DISK)):
        if there < needed:
            return f"{there / 1e9:.0f} GB of {what}, {needed / 1e9:.0f} are needed"
    if not run_tests.has_packages(python, [package]):
        return f"{package} is not installed"
    return None


def main(arguments=None):
    names = [*DIFFERENCES, GENERATION]
    parser = argparse.ArgumentParser(description="Tests whole models.")
    parser.add_argument("--build-dir", default=os.path.join(PYTHON_FOLDER, "..", "build"))
    parser.add_argument("--table", action="append", choices=names, help="one of the tables")
    options = parser.parse_args(arguments)
    build = os.path.abspath(options.build_dir)
    folder = os.path.join(build, "models")
    os.makedirs(folder, exist_ok=True)
    lender = os.environ.get("POSENC_TEST_PYTHON")
    python = run_tests.try_environment("models", os.path.join(folder, "venv"), lender)
    if not python:
        return run_tests.finish(0, 0)
    obstacle = run_tests.install_packages(python, folder, lender, GROUPS)
    if obstacle:
        print(f"SKIPPED models: packages cannot be installed: {obstacle}")
        return run_tests.finish(0, 0)
    environment = {**os.environ, "PYTHONPATH": PYTHON_FOLDER, "POSENC_CACHE": "off",
                   "POSENC_LIBRARY_PATH": os.path.join(build, "lib")}
    passed = failed = 0
    for name in options.table or names:
        command, package = get_command(name, os.path.join(build, "bin", "posenc-compile"),
                                       folder)
        obstacle = find_obstacle(python, folder, package)
        if obstacle:
            print(f"SKIPPED {name}: {obstacle}", flush=True)
            continue
        good, bad = exporter_tests.run_table([python, "-B", *command], environment)
        print(f"{name}: {good} passed, {bad} failed\n", flush=True)
        passed, failed = passed + good, failed + bad
    return run_tests.finish(passed, failed)


if __name__ == "__main__":
    sys.exit(main())
