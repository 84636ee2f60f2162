#!/usr/bin/env python3
# ===- run-tests.py - runs all tests ---------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# The runner behind `make test`: one run of lit over the lit tests and the
# GoogleTest executables of the build. lit prints each result as it comes, with
# the total, and the slowest tests at the end. Then this script prints the output of
# failed tests, the skipped tests with their reasons, and as its last line
# `N passed, N failed`. A test without a result (a crash, a timeout, a suite
# without tests) counts as failed, so that a broken setup does not look like
# success.

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

PASSED = {"PASS", "FLAKYPASS", "XFAIL"}


def run_lit(options, roots):
    """Runs lit and returns its exit code and the tests of its report."""
    with tempfile.TemporaryDirectory() as scratch:
        report = os.path.join(scratch, "report.json")
        command = [sys.executable, "-u", options.lit, f"-j{options.jobs}",
                   "--time-tests", f"--max-time={options.timeout}",
                   "--output", report, *roots]
        if options.filter:
            command += ["--filter", options.filter]
        sys.stdout.flush()
        try:
            code = subprocess.run(
                command, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
                timeout=options.timeout + 60).returncode
        except (subprocess.TimeoutExpired, OSError) as error:
            print(error)
            code = 1
        try:
            with open(report, encoding="utf-8") as file:
                return code, json.load(file)["tests"]
        except (OSError, ValueError, KeyError):
            return code, []


def read_skips(path):
    """Reads skipped.txt: a name, a tab and a reason on each line."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [line.rstrip("\n").split("\t", 1) for line in file]
    except OSError:
        return []


def summarize(code, tests, skips):
    """Prints the report and returns the exit code."""
    passed, failed, skipped = 0, [], list(skips)
    for test in sorted(tests, key=lambda test: test["name"]):
        text = test.get("output", "")
        if test["code"] in PASSED:
            passed += 1
        elif test["code"] == "UNSUPPORTED":
            skipped.append((test["name"], " ".join(text.split())))
        else:
            failed.append((test["name"], f"{test['code']}\n{text}"))
    if not tests:
        failed.append(("lit", f"found no test and exited with {code}"))
    elif code != 0 and not failed:
        failed.append(("lit", f"exited with {code}"))
    elif not passed and not failed:
        failed.append(("lit", "nothing was run"))
    for name, text in failed:
        print(f"FAILED {name}")
        for line in text.rstrip().splitlines():
            print(f"    {line}")
    for name, reason in skipped:
        print(f"SKIPPED {name}: {reason or 'no reason given'}")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


def find_lit():
    for directory in ("/usr/lib/llvm-22/bin", ""):
        for name in ("lit", "llvm-lit"):
            lit = shutil.which(os.path.join(directory, name))
            if lit:
                return lit
    return "lit"


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected a positive number")
    return number


def main():
    source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(
        description="Runs every test; the last line is 'N passed, N failed'.")
    parser.add_argument("--build-dir", default=os.path.join(source, "build"),
                        help="build folder (default: build, next to test)")
    parser.add_argument("--lit", default=find_lit(), help="path of lit")
    parser.add_argument("--root", action="append",
                        help="folder of tests, may be repeated (default: those of "
                             "the build)")
    parser.add_argument("--filter", help="run only tests whose names match this regular expression")
    parser.add_argument("-j", "--jobs", type=positive, default=2,
                        help="number of tests run in parallel (default: 2)")
    parser.add_argument("--timeout", type=int, default=3600,
                        help="maximum time of all tests in seconds (default: 3600)")
    options = parser.parse_args()

    tests = os.path.join(options.build_dir, "test")
    roots = options.root or [os.path.join(tests, "unit"), tests]
    skips = [os.path.join(root, "skipped.txt") for root in roots]
    for path in skips:
        if os.path.exists(path):
            os.remove(path)
    code, results = run_lit(options, roots)
    return summarize(code, results, sum(map(read_skips, skips), []))


if __name__ == "__main__":
    sys.exit(main())
