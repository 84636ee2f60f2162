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
# compares the tokens that examples/generate and ONNX Runtime generate. The programs take
# up to 20 GB of memory and 12 GB of disk. Packages are installed from PyPI in a virtual
# environment of the build folder; a table whose packages cannot be installed, or that
# finds too little memory or disk, is skipped by name. The last line is
# `N passed, N failed`.

import importlib.util
import os
import shutil
import sys

PYTHON_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_SPEC = importlib.util.spec_from_file_location(
    "exporter_tests", os.path.join(PYTHON_FOLDER, "exporter-tests", "run.py"))
exporter_tests = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(exporter_tests)

PACKAGES = ["onnxruntime", "openvino", "torch"]
# The largest difference of two systems, relative to the largest logit. Sums of f16 and bf16
# are rounded where each system chooses to; accuracy level 4 rounds activations to 8 bits.
DIFFERENCES = {"f32": 1e-5, "bf16": 5e-2, "f16": 1e-2, "int8": 1e-5, "int4": 1e-5,
               "int4:4": 5e-2}
# Bytes of memory and disk.
MEMORY, DISK = 20e9, 12e9


def make_tables():
    tables = {name: (PACKAGES, ["benchmarks/models.py", "--compiler", "{compiler}",
                                "--folder", "{folder}", "--layers=16", "--threads=1",
                                "--rounds=1", "--prefill=64", "--decode=128", "--alone",
                                f"--precisions={name}", f"--max-difference={limit}"])
              for name, limit in DIFFERENCES.items()}
    tables["generation"] = (["onnxruntime"], ["model-tests/generate.py", "{compiler}",
                                              "{folder}"])
    return tables


def find_obstacle(folder):
    """Returns why models cannot be tested on this machine, or None."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    disk = shutil.disk_usage(folder).free
    for what, there, needed in (("memory", memory, MEMORY), ("free disk", disk, DISK)):
        if there < needed:
            return f"{there / 1e9:.0f} GB of {what}, {needed / 1e9:.0f} are needed"
    return None


def main():
    obstacle = find_obstacle(PYTHON_FOLDER)
    if obstacle:
        print(f"SKIPPED models: {obstacle}")
        return exporter_tests.run_tests.finish(0, 0)
    return exporter_tests.main(tables=make_tables(), folder="models",
                               description="Tests whole models.")


if __name__ == "__main__":
    sys.exit(main())
