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
# Packages come from pip, with the versions and hashes of test/locks. If the required
# ones cannot be installed (off line), all tests are skipped, and if an
# optional one cannot, those that need it. Each installation and each test prints a
# line. The last line is `N passed, N failed`. A test that gives no result counts as
# failed.
#
# Where pip would install PyTorch with the libraries of CUDA, which are 3 GB to
# download, its tests are skipped, unless POSENC_TEST_CUDA_WHEELS=1 allows it.

import argparse
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(SOURCE, "test", "locks"))
import lock_files  # noqa: E402

# Groups of packages, of which each is installed or not.
OPTIONAL = ["ml_dtypes", "mypy", "matplotlib", "jax", "torch", "torch-mlir", "onnx"]
# Bytes that PyTorch with the libraries of CUDA takes while it is installed.
CUDA_SPACE = 12e9
# Seconds after which an installation is given up.
PATIENCE = 1200


def finish(passed, failed):
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def pip(python, *arguments):
    """Returns pip's exit code and its output."""
    try:
        result = subprocess.run(
            [python, "-m", "pip", "--disable-pip-version-check", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return 1, f"pip took more than {PATIENCE} seconds"
    return result.returncode, result.stdout.strip()


def needs_cuda(python, group):
    """Whether packages of a group on this machine are the libraries of CUDA. pip could say
    so as well, but downloads all packages for that."""
    # pytest, which is in the environment, needs `packaging`.
    code = r"""if True:
        import re, sys
        from packaging.requirements import Requirement
        text = open(sys.argv[1], encoding="utf-8").read()
        found = map(Requirement, re.findall(r"^(nvidia-.*?) *\\?$", text, re.M))
        print(any(not one.marker or one.marker.evaluate() for one in found))
    """
    path = lock_files.FOLDER / f"{group}.txt"
    return subprocess.check_output([python, "-c", code, path], text=True).strip() == "True"


def find_obstacle(python, folder, group):
    """Returns why a group of packages should not be installed, or None."""
    if (group != "torch" or has_packages(python, lock_files.GROUPS[group])
            or not needs_cuda(python, group)):
        return None
    if os.environ.get("POSENC_TEST_CUDA_WHEELS") != "1":
        return ("it would be installed with the libraries of CUDA; set "
                "POSENC_TEST_CUDA_WHEELS=1 to allow it")
    free = shutil.disk_usage(folder).free
    if free < CUDA_SPACE:
        return f"{free / 1e9:.0f} GB of disk are free, {CUDA_SPACE / 1e9:.0f} are needed"
    return None


def install(python, folder, group):
    """Installs a group of packages. Returns why that is not possible, or None."""
    obstacle = find_obstacle(python, folder, group)
    if obstacle is None:
        code, output = pip(python, "install", "--quiet", "--timeout=10", "--retries=1",
                           "--no-cache-dir", *lock_files.install_arguments(group))
        obstacle = (output or "pip failed") if code else None
    return obstacle and obstacle.splitlines()[-1]


def has_packages(python, packages):
    code = f"import importlib.metadata as m; [m.version(p) for p in {packages}]"
    return subprocess.run([python, "-c", code], stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def install_packages(python, folder, lender, optional=OPTIONAL):
    """Installs the base and the optional groups, as far as `lender` does not have them.
    Returns why the base cannot be installed, or None."""
    print(f"installing {', '.join(lock_files.GROUPS['base'])}", flush=True)
    obstacle = install(python, folder, "base")
    if obstacle:
        return obstacle
    for group in optional:
        packages = lock_files.GROUPS[group]
        if lender and has_packages(lender, packages):
            continue
        print(f"installing {', '.join(packages)}", flush=True)
        obstacle = install(python, folder, group)
        if obstacle:
            print(f"SKIPPED tests with {' and '.join(packages)}: {obstacle}")
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


def try_environment(what, folder, lender):
    """Returns the Python of create_environment(). If there is none, says that `what` is
    skipped, and returns None."""
    try:
        return create_environment(folder, lender)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"SKIPPED {what}: no virtual environment: {error}")
        return None


def install_wheel(python, source, build, wheels):
    """Builds the wheel and installs it. Returns whether it is installed."""
    print("building the wheel", flush=True)
    shutil.rmtree(wheels, ignore_errors=True)
    code, output = pip(python, "wheel", "--quiet", "--no-build-isolation", "--no-deps",
                       "--wheel-dir", wheels, source,
                       f"-Ccmake.define.POSENC_PREBUILT={build}",
                       f"-Cbuild-dir={os.path.join(build, 'python', 'wheel')}")
    if code == 0:
        [wheel] = os.listdir(wheels)
        size = os.path.getsize(os.path.join(wheels, wheel))
        print(f"{wheel}: {size / 1e6:.1f} MB")
        code, output = pip(python, "install", "--quiet", "--no-index", "--no-deps",
                           "--force-reinstall", os.path.join(wheels, wheel))
    if code:
        print(output)
    return code == 0


def run_pytest(python, source, build, arguments, tests=None):
    """Runs the tests and returns the numbers of those that passed and failed."""
    tests = tests or os.path.join(source, "python", "tests")
    report = os.path.join(build, "python", "report.xml")
    os.makedirs(os.path.dirname(report), exist_ok=True)
    if os.path.exists(report):
        os.remove(report)
    # Threads that wait do not keep a core from the others, of which there may be few.
    environment = {"OMP_WAIT_POLICY": "passive", **os.environ,
                   "POSENC_BIN": os.path.join(build, "bin"), "POSENC_SOURCE": source}
    # The installed package is tested, not that of the source folder.
    for name in ("PYTHONPATH", "POSENC_LIBRARY_PATH"):
        environment.pop(name, None)
    code = subprocess.run(
        [python, "-B", "-m", "pytest", "-v", "-rs", "-p", "no:cacheprovider",
         f"--junitxml={report}", "--rootdir", tests, tests, *arguments],
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
    parser = argparse.ArgumentParser(description="Tests the Python package.")
    parser.add_argument("--build-dir", default=os.path.join(SOURCE, "build"))
    parser.add_argument("--only-packages", action="store_true",
                        help="only install the packages that the tests need")
    parser.add_argument("pytest", nargs="*", help="further arguments of pytest")
    options = parser.parse_args()
    build = os.path.abspath(options.build_dir)
    folder = os.path.join(build, "python")
    os.makedirs(folder, exist_ok=True)
    lender = os.environ.get("POSENC_TEST_PYTHON")
    python = try_environment("python", os.path.join(folder, "venv"), lender)
    if not python:
        return finish(0, 0)
    reason = install_packages(python, folder, lender)
    if reason:
        print(f"SKIPPED python: packages cannot be installed: {reason}")
        return finish(0, 0)
    if options.only_packages:
        return 0
    if not install_wheel(python, SOURCE, build, os.path.join(folder, "dist")):
        return finish(0, 1)
    # Tests are independent of each other.
    parallel = [f"--numprocesses={len(os.sched_getaffinity(0))}", "--dist=worksteal"]
    return finish(*run_pytest(python, SOURCE, build, [*parallel, *options.pytest]))


if __name__ == "__main__":
    sys.exit(main())
