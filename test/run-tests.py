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
# `N passed, N failed`. A test without a result (a crash, a suite without tests, a
# test that had not ended after --timeout) counts as failed, so that a broken setup does
# not look like success. --deadline is for a stage that may be cut: tests without a
# result at that time count as skipped, by name.

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
import draw

PASSED = {"PASS", "FLAKYPASS", "XFAIL"}
# A line of lit, such as `PASS: Posenc :: IR/rope-ops.mlir (12 of 300)`.
RESULT = re.compile(r"(?P<code>[A-Z]+): (?P<name>.* :: .*) \(\d+ of \d+.*\)$")


class LitRun:
    """A run of lit that ends after a time limit, and then still has results: those
    that lit reports when it is interrupted, and those of the lines that it printed."""

    def __init__(self, options, roots):
        self.options, self.roots = options, roots
        self.code = 1
        self.seconds = options.timeout
        self.may_be_cut = False  # the time that ends first is that of the deadline
        if options.deadline is not None:
            left = max(int(options.deadline - time.time()), 1)
            self.may_be_cut = left < self.seconds
            self.seconds = min(left, self.seconds)
        self.timed_out = False
        self.running = []  # commands of the tests that ran when the time was over
        self.codes = {}    # of the lines that lit printed, by test
        self.tests = []    # of lit's report
        self.missing = 0   # tests without a result

    def run(self):
        with tempfile.TemporaryDirectory() as scratch:
            report = os.path.join(scratch, "report.json")
            self.execute(self.command("--time-tests", "--output", report,
                                      f"-j{self.options.jobs}"))
            try:
                with open(report, encoding="utf-8") as file:
                    self.tests = json.load(file)["tests"]
            except (OSError, ValueError, KeyError):
                pass
        if self.timed_out or not self.tests:
            self.add_missing()

    def command(self, *flags):
        filters = ["--filter", self.options.filter] if self.options.filter else []
        if self.options.draw > 1:
            filters += ["--param", f"draw={self.options.draw}"]
        return [sys.executable, "-u", self.options.lit, *flags, *filters, *self.roots]

    def execute(self, command):
        sys.stdout.flush()
        try:
            # A session of its own, whose processes can be found and killed. lit must
            # not inherit an ignored SIGINT, which interrupt() sends: commands of lit
            # tests and jobs in the background of a shell ignore it.
            lit = subprocess.Popen(command, stdin=subprocess.DEVNULL, text=True,
                                   errors="replace", stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True,
                                   preexec_fn=allow_interrupts)
        except OSError as error:
            print(error)
            return
        timer = threading.Timer(self.seconds, self.interrupt, [lit])
        timer.start()
        try:
            for line in lit.stdout:
                print(line, end="", flush=True)
                match = RESULT.match(line)
                if match:
                    self.codes[match["name"]] = match["code"]
            self.code = lit.wait()
        except BaseException:
            kill_session(lit)
            raise
        finally:
            timer.cancel()
            timer.join()

    def interrupt(self, lit):
        """Ends lit as Ctrl-C does, which makes it write its report. --max-time is no
        help: lit applies it to each test anew."""
        if lit.poll() is not None:
            return
        self.timed_out = True
        self.running = find_commands(lit.pid)
        lit.send_signal(signal.SIGINT)
        try:
            lit.wait(60)
        except subprocess.TimeoutExpired:
            pass
        kill_session(lit)

    def add_missing(self):
        """Adds the tests that lit's report lacks. lit keeps results in the order in
        which it starts tests, so it loses those behind a test that did not end, and
        all if it is killed."""
        shown = subprocess.run(self.command("--show-tests"), text=True, check=False,
                               stdout=subprocess.PIPE).stdout
        known = {test["name"] for test in self.tests}
        end = f"lit ended with {self.code}"
        if self.timed_out:
            end = f"{self.seconds} seconds were over"
        for name in re.findall(r"^  (.* :: .*)$", shown, re.MULTILINE):
            code = self.codes.get(name)
            matches = re.search(self.options.filter or "", name, re.IGNORECASE)
            # The cases of an executable that ended are in the report.
            is_shard = name.startswith("GoogleTest :: ")
            if name in known or not matches or (code in PASSED and is_shard):
                continue
            output = f"had not run, or not ended, when {end}"
            if code:
                output = f"its output was lost when {end}"
            if not code:
                self.missing += 1
                code = "UNSUPPORTED" if self.was_cut() else "NO RESULT"
            self.tests.append({"name": name, "code": code, "output": output})

    def was_cut(self):
        return self.timed_out and self.may_be_cut


def allow_interrupts():
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def kill_session(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def find_commands(session):
    """Returns the commands of a session's processes that started no others."""
    commands, parents = {}, set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                command = file.read().decode(errors="replace").replace("\0", " ")
        except OSError:
            continue
        if int(fields[3]) == session:
            commands[pid] = command.strip()
            parents.add(fields[1])
    return [command for pid, command in commands.items()
            if command and pid not in parents and " --output " not in command]


def read_skips(path):
    """Reads skipped.txt: a name, a tab and a reason on each line."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [line.rstrip("\n").split("\t", 1) for line in file]
    except OSError:
        return []


def summarize(run, skips):
    """Prints the report and returns the exit code."""
    code, tests = run.code, run.tests
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
    elif code != 0 and not failed and not run.was_cut():
        failed.append(("lit", f"exited with {code}"))
    elif not passed and not failed and not run.was_cut():
        failed.append(("lit", "nothing was run"))
    if run.timed_out:
        cause = ("--deadline" if run.may_be_cut
                 else "--timeout, or `make test TEST_TIMEOUT=SECONDS`")
        print(f"OUT OF TIME after {run.seconds} seconds ({cause}); {run.missing} of "
              f"{run.missing + len(run.codes)} tests and executables have no result")
        for command in run.running:
            print(f"    running: {command[:200]}")
    for name, text in failed:
        print(f"FAILED {name}")
        for line in text.rstrip().splitlines():
            print(f"    {line}")
    if not draw.runs_all():
        print(f"Some tests drew their cases: POSENC_TEST_SEED={draw.find_seed()}; "
              "POSENC_TEST_ALL=1 runs all")
    for name, reason in skipped:
        print(f"SKIPPED {name}: {reason or 'no reason given'}")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


def find_lit(build):
    """Returns the lit that CMake found, or else that of LLVM's folder or in PATH."""
    try:
        with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
            match = re.search(r"^POSENC_LIT:\w+=(.+)$", file.read(), re.MULTILINE)
    except OSError:
        match = None
    if match and os.path.exists(match[1]):
        return match[1]
    for directory in (os.environ.get("POSENC_LLVM") or "/usr/lib/llvm-22", ""):
        for name in ("lit", "llvm-lit"):
            lit = shutil.which(os.path.join(directory, "bin" if directory else "", name))
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
    parser.add_argument("--lit", help="path of lit (default: the build's)")
    parser.add_argument("--root", action="append",
                        help="folder of tests, may be repeated (default: those of "
                             "the build)")
    parser.add_argument("--filter", help="run only tests whose names match this regular expression")
    parser.add_argument("--draw", type=positive, default=1, metavar="COUNT",
                        help="run one in COUNT of the lit tests, by POSENC_TEST_SEED")
    parser.add_argument("-j", "--jobs", type=positive, default=2,
                        help="number of tests run in parallel (default: 2)")
    parser.add_argument("--timeout", type=positive, default=3600,
                        help="maximum time of all tests in seconds (default: 3600)")
    parser.add_argument("--deadline", type=float, metavar="TIME",
                        help="time (of Unix) after which the rest is skipped, by name")
    options = parser.parse_args()
    options.lit = options.lit or find_lit(options.build_dir)

    tests = os.path.join(options.build_dir, "test")
    roots = options.root or [os.path.join(tests, "unit"), tests]
    skips = [os.path.join(root, "skipped.txt") for root in roots]
    for path in skips:
        if os.path.exists(path):
            os.remove(path)
    run = LitRun(options, roots)
    # `timeout` and CI systems end with a signal, which must not leave lit running.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    run.run()
    return summarize(run, sum(map(read_skips, skips), []))


if __name__ == "__main__":
    sys.exit(main())
