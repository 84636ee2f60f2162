#!/usr/bin/env python3
# ===- run-tests.py - tests of the Python package --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# The runner behind `make python-test`. Builds a wheel from the libraries of the
# build folder, installs it in a new virtual environment there, and runs pytest.
# Packages come from pip; if the required ones cannot be had (off line), all tests
# are skipped, and if an optional one cannot, those that need it. The last line is
# `N passed, N failed`. A test that gives no result counts as failed.

import argparse
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree

REQUIRED = ["scikit-build-core>=0.10", "apache-tvm-ffi", "numpy", "pytest"]
OPTIONAL = ["ml_dtypes", "jax"]


def finish(passed, failed):
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def pip(python, *arguments):
    return subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def install_packages(python):
    """Installs what the tests need. Returns the reason if it cannot be had."""
    install = ["install", "--quiet", "--timeout=10", "--retries=1"]
    result = pip(python, *install, *REQUIRED)
    if result.returncode:
        lines = result.stdout.strip().splitlines() or ["pip failed"]
        return lines[-1]
    for package in OPTIONAL:
        if pip(python, *install, package).returncode:
            print(f"SKIPPED tests with {package}: it cannot be installed")
    return None


def create_environment(folder, lender):
    """Creates a virtual environment. One from an earlier run gives its packages, but
    not Posenc itself. `lender` is a Python whose packages are added."""
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip(python, "uninstall", "--quiet", "--yes", "posenc")
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.check_output([python, "-c", ask], text=True).strip()
    link = os.path.join(site, "lent.pth")
    if os.path.exists(link):
        os.remove(link)
    if lender:
        lent = subprocess.check_output([lender, "-c", ask], text=True)
        with open(link, "w", encoding="utf-8") as file:
            file.write(lent)
    return python


def install_wheel(python, source, build, wheels):
    """Builds the wheel and installs it. Returns whether it is installed."""
    shutil.rmtree(wheels, ignore_errors=True)
    result = pip(python, "wheel", "--quiet", "--no-build-isolation", "--no-deps",
                 "--wheel-dir", wheels, source,
                 f"-Ccmake.define.POSENC_PREBUILT={build}",
                 f"-Cbuild-dir={os.path.join(build, 'python', 'wheel')}")
    if result.returncode == 0:
        [wheel] = os.listdir(wheels)
        size = os.path.getsize(os.path.join(wheels, wheel))
        print(f"{wheel}: {size / 1e6:.1f} MB")
        result = pip(python, "install", "--quiet", "--no-index", "--no-deps",
                     "--force-reinstall", os.path.join(wheels, wheel))
    if result.returncode:
        print(result.stdout)
    return result.returncode == 0


def run_pytest(python, source, build, arguments):
    """Runs the tests and returns the numbers of those that passed and failed."""
    report = os.path.join(build, "python", "report.xml")
    if os.path.exists(report):
        os.remove(report)
    environment = {**os.environ, "POSENC_BIN": os.path.join(build, "bin"),
                   "POSENC_SOURCE": source}
    # The installed package is tested, not that of the source folder.
    for name in ("PYTHONPATH", "POSENC_LIBRARY_PATH"):
        environment.pop(name, None)
    code = subprocess.run(
        [python, "-B", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider",
         f"--junitxml={report}", "--rootdir", os.path.join(source, "python", "tests"),
         os.path.join(source, "python", "tests"), *arguments],
        cwd=os.path.join(build, "python"), env=environment, check=False).returncode
    try:
        suites = list(xml.etree.ElementTree.parse(report).getroot())
    except (OSError, xml.etree.ElementTree.ParseError):
        print(f"pytest exited with {code}, without a report")
        return 0, 1
    count = {name: sum(int(suite.get(name, 0)) for suite in suites)
             for name in ("tests", "failures", "errors", "skipped")}
    failed = count["failures"] + count["errors"]
    passed = count["tests"] - failed - count["skipped"]
    if code and not failed:
        print(f"pytest exited with {code}")
        failed = 1
    return passed, failed


def main():
    source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description="Tests the Python package.")
    parser.add_argument("--build-dir", default=os.path.join(source, "build"))
    parser.add_argument("pytest", nargs="*", help="further arguments of pytest")
    options = parser.parse_args()
    build = os.path.abspath(options.build_dir)
    folder = os.path.join(build, "python")
    os.makedirs(folder, exist_ok=True)
    try:
        python = create_environment(os.path.join(folder, "venv"),
                                    os.environ.get("POSENC_TEST_PYTHON"))
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"SKIPPED python: no virtual environment: {error}")
        return finish(0, 0)
    reason = install_packages(python)
    if reason:
        print(f"SKIPPED python: packages cannot be installed: {reason}")
        return finish(0, 0)
    if not install_wheel(python, source, build, os.path.join(folder, "dist")):
        return finish(0, 1)
    return finish(*run_pytest(python, source, build, options.pytest))


if __name__ == "__main__":
    sys.exit(main())
