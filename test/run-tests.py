#!/usr/bin/env python3
# ===- run-tests.py - runs every test and counts ---------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# The runner behind `make test`: lit on build/test, then every GoogleTest
# executable of build/test/unit-tests.txt, in as many shards as there are jobs.
# Prints what failed and why, what was skipped and why, and `N passed, N failed`
# as its last line. Whatever leaves a test without a result (a crash, a timeout,
# a suite that finds no test) counts as a failed test: a broken set-up must not
# look like success.

import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

# A test's state is "passed", "failed" or "skipped".
Test = collections.namedtuple("Test", "name state output")

LIT_STATES = {
    "PASS": "passed",
    "FLAKYPASS": "passed",
    "XFAIL": "passed",
    "UNSUPPORTED": "skipped",
}


def run(command, timeout, env=None, cwd=None):
    """The exit code (None if killed at the timeout) and the merged output."""
    # A file, not a pipe: a grandchild that holds a pipe open would hang us.
    with tempfile.TemporaryFile() as log:
        try:
            code = subprocess.run(
                command, stdout=log, stderr=subprocess.STDOUT, env=env,
                cwd=cwd, stdin=subprocess.DEVNULL, timeout=timeout,
            ).returncode
        except subprocess.TimeoutExpired:
            code = None
        except OSError as error:
            return 127, f"cannot run {command[0]}: {error}\n"
        log.seek(0)
        return code, log.read().decode(errors="replace")


def describe_exit(code):
    if code is None:
        return "timed out"
    if code < 0:
        return f"was killed by signal {-code}"
    return f"exited with {code}"


def lit_reason(result):
    """Why lit did not run a test."""
    lines = [line for line in result.get("output", "").splitlines() if line]
    return " ".join(lines) or "no reason given"


def run_lit(lit, root, jobs, timeout):
    name = f"lit {root}"
    with tempfile.TemporaryDirectory() as scratch:
        results = os.path.join(scratch, "results.json")
        command = [sys.executable, lit, "-q", f"-j{jobs}",
                   f"--max-time={timeout}", "--output", results, root]
        code, output = run(command, timeout + 60)
        try:
            with open(results, encoding="utf-8") as file:
                tests = json.load(file)["tests"]
        except (OSError, ValueError, KeyError):
            tests = []
    if not tests:
        return [Test(name, "failed",
                     f"found no test; lit {describe_exit(code)}\n{output}")]
    outcome = []
    for test in sorted(tests, key=lambda test: test["name"]):
        state = LIT_STATES.get(test["code"], "failed")
        text = lit_reason(test) if state == "skipped" else (
            f"{test['code']}\n{test.get('output', '')}")
        outcome.append(Test(test["name"], state, text))
    # lit fails for reasons of its own too.
    if code != 0 and all(test.state != "failed" for test in outcome):
        outcome.append(Test(name, "failed",
                            f"lit {describe_exit(code)}\n{output}"))
    return outcome


def list_unit_tests(path, timeout):
    """All tests of an executable, in order, as Suite.Test."""
    code, output = run([path, "--gtest_list_tests"], timeout)
    if code != 0:
        return []
    names, suite = [], ""
    for line in output.splitlines():
        entry = line.split("#")[0].rstrip()
        if re.fullmatch(r"\S+\.", entry):
            suite = entry
        elif re.fullmatch(r"  \S+", entry) and suite:
            names.append(suite + entry.strip())
    return names


def read_report(path):
    """The tests of GoogleTest's JSON report."""
    with open(path, encoding="utf-8", errors="replace") as file:
        report = json.load(file)
    outcome = []
    for suite in report.get("testsuites", []):
        for test in suite.get("testsuite", []):
            name = f"{suite['name']}.{test['name']}"
            failures = [entry.get("failure", "")
                        for entry in test.get("failures", [])]
            if failures:
                outcome.append(Test(name, "failed", "\n".join(failures)))
            elif test.get("result") == "COMPLETED":
                outcome.append(Test(name, "passed", ""))
            elif test.get("status") == "NOTRUN":
                outcome.append(Test(name, "skipped", "disabled"))
            else:
                outcome.append(Test(name, "skipped", ""))
    return outcome


def section(output, name):
    """What one test of an executable wrote."""
    match = re.search(
        rf"^\[ RUN +\] {re.escape(name)}$(.*?)"
        rf"(?=^\[ (?:RUN|DISABLED)\b|^\[-----|^\[=====|\Z)",
        output, re.MULTILINE | re.DOTALL)
    return match.group(1).strip("\n") if match else output


def skip_reason(output, name):
    # GTEST_SKIP prints `file:line: Skipped`, then its message.
    match = re.search(r"Skipped\n(.*?)\n*(?=^\[  SKIPPED \]|\Z)",
                      section(output, name), re.MULTILINE | re.DOTALL)
    return " ".join(match.group(1).split()) if match else ""


def read_log(output, exit_text):
    """The tests that an executable began before it died without a report."""
    results = dict(
        (name, mark) for mark, name in re.findall(
            r"^\[ +(OK|FAILED|SKIPPED) +\] ([^\s,]+)", output, re.MULTILINE))
    outcome = []
    for name in re.findall(r"^\[ RUN +\] (\S+)$", output, re.MULTILINE):
        mark = results.get(name)
        if mark == "OK":
            outcome.append(Test(name, "passed", ""))
        elif mark == "SKIPPED":
            outcome.append(Test(name, "skipped", skip_reason(output, name)))
        elif mark == "FAILED":
            outcome.append(Test(name, "failed", section(output, name)))
        else:
            outcome.append(Test(
                name, "failed",
                f"the executable {exit_text}\n{section(output, name)}"))
    return outcome


def run_shard(path, index, count, timeout):
    """The tests of one shard, what became of it, and what it wrote."""
    env = dict(os.environ, GTEST_TOTAL_SHARDS=str(count),
               GTEST_SHARD_INDEX=str(index))
    with tempfile.TemporaryDirectory() as scratch:
        report = os.path.join(scratch, "report.json")
        code, output = run([path, f"--gtest_output=json:{report}",
                            "--gtest_color=no"], timeout, env, scratch)
        end = describe_exit(code)
        try:
            outcome = [
                test._replace(output=test.output or
                              skip_reason(output, test.name))
                if test.state == "skipped" else test
                for test in read_report(report)]
        except (OSError, ValueError, KeyError):
            return read_log(output, end), end, output
    # A report of success from an executable that then fails is none.
    if outcome and code != 0 and all(test.state != "failed" for test in outcome):
        outcome.append(Test("exit", "failed", f"the executable {end}\n{output}"))
    return outcome, end, output


def merge_shards(names, shards):
    """Each test of an executable once. What no shard has a result of failed,
    unless it is disabled."""
    results = {}
    for tests, _, _ in shards:
        for test in tests:
            if test.name not in results or test.state == "failed":
                results[test.name] = test
    end = " or ".join(sorted({end for _, end, _ in shards}))
    for name in names:
        if name in results:
            continue
        if ".DISABLED_" in name or name.startswith("DISABLED_"):
            results[name] = Test(name, "skipped", "disabled")
        else:
            results[name] = Test(name, "failed",
                                 f"not run: the executable {end}")
    if not results:
        return [Test("all", "failed",
                     f"found no test; it {end}\n{shards[0][2]}")]
    order = {name: i for i, name in enumerate(names)}
    return sorted(results.values(),
                  key=lambda test: order.get(test.name, len(order)))


def run_units(paths, jobs, timeout):
    with ThreadPoolExecutor(jobs) as pool:
        names = list(pool.map(lambda path: list_unit_tests(path, 60), paths))
        # All at once, in order: the jobs take what is next.
        shards = []
        for path, known in zip(paths, names):
            count = max(1, min(jobs, len(known)))
            shards.append([pool.submit(run_shard, path, index, count, timeout)
                           for index in range(count)])
        outcome = []
        for path, known, parts in zip(paths, names, shards):
            prefix = os.path.basename(path)
            outcome += [
                test._replace(name=f"{prefix}: {test.name}")
                for test in merge_shards(known, [it.result() for it in parts])]
    return outcome


def report(tests):
    failed = [test for test in tests if test.state == "failed"]
    skipped = [test for test in tests if test.state == "skipped"]
    passed = sum(test.state == "passed" for test in tests)
    for test in failed:
        print(f"FAILED {test.name}")
        for line in test.output.rstrip().splitlines():
            print(f"    {line}")
    for test in skipped:
        print(f"SKIPPED {test.name}: {test.output or 'no reason given'}")
    if not passed and not failed:
        print("FAILED nothing was run")
        print("0 passed, 1 failed")
        return 1
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
        raise argparse.ArgumentTypeError("there must be at least one")
    return number


def main():
    source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(
        description="Runs every test; the last line is 'N passed, N failed'.")
    parser.add_argument("--build-dir", default=os.path.join(source, "build"),
                        help="build tree, default: build beside test")
    parser.add_argument("--lit", default=find_lit(), help="the lit script")
    parser.add_argument("--lit-root", action="append",
                        help="folder of lit tests, default: test of the build")
    parser.add_argument("--unit", action="append",
                        help="GoogleTest executable, default: all of the build")
    parser.add_argument("-j", "--jobs", type=positive, default=2)
    parser.add_argument("--timeout", type=int, default=3600,
                        help="seconds for lit, and for each shard")
    options = parser.parse_args()

    roots, units = options.lit_root, options.unit
    if not roots and not units:
        roots = [os.path.join(options.build_dir, "test")]
        listing = os.path.join(options.build_dir, "test", "unit-tests.txt")
        try:
            with open(listing, encoding="utf-8") as file:
                units = file.read().split("\n")
        except OSError as error:
            print(f"cannot read {listing}: {error}")
            units = [listing]
    tests = []
    for root in roots or []:
        tests += run_lit(options.lit, root, options.jobs, options.timeout)
    tests += run_units([os.path.abspath(unit) for unit in units or [] if unit],
                       options.jobs, options.timeout)
    sys.stdout.flush()
    return report(tests)


if __name__ == "__main__":
    sys.exit(main())
