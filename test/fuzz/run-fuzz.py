#!/usr/bin/env python3
# ===- run-fuzz.py - coverage-guided searches on the doors ------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# The program of `make fuzz`. Runs libFuzzer on each door of doors/Doors.cpp for a time, and
# runs each input that it reports once more, alone: a crash in code that
# Inputs/known-faults.txt names is counted, any other is a failure, as are an input that takes
# more than 5 seconds of CPU time and one that takes more than 1 GiB. Inputs that reach new
# code are kept in BUILD/fuzz, where the next run continues; --merge=FOLDER adds a small choice
# of them to a folder, such as corpus/ in the sources.
#
# An input of the compiler takes so long (.1 to .3 s) that running all inputs that were kept
# would take most of the time, as libFuzzer's -fork does. Each process begins with a random
# choice of them instead, and what it keeps is minimized in the end.

import argparse
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))

# Limits of an input.
CPU_SECONDS = 5
MEMORY_MIB = 1024
# The sanitizers, LLVM and the state that inputs share take memory, too.
PROCESS_MIB = 3 * MEMORY_MIB
# A process of libFuzzer begins with so many inputs, and ends after so many seconds.
START_INPUTS = 100
PROCESS_SECONDS = 300
# Inputs that are kept without a choice among them.
KEPT_INPUTS = 1000
# Processes in a row that run no input, after which a search ends.
IDLE_PROCESSES = 20
# Frames of the sanitizers are large; the tools run on a large stack, too.
STACK_BYTES = 1 << 29


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fuzzer", required=True, help="the executable posenc-fuzz")
    parser.add_argument("--work", required=True, help="folder of inputs and faults")
    parser.add_argument("--time", type=int, default=60, help="seconds for each door")
    parser.add_argument("--doors", default="", help="comma-separated; all if empty")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--corpus", default=os.path.join(HERE, "corpus"))
    parser.add_argument("--merge", metavar="FOLDER")
    parser.add_argument("--most-files", type=int, default=100,
                        help="files of a door in the folder of --merge")
    return parser.parse_args()


def limit_process():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if hard == resource.RLIM_INFINITY or hard > STACK_BYTES:
        resource.setrlimit(resource.RLIMIT_STACK, (STACK_BYTES, hard))


def make_environment(symbolize):
    environment = dict(os.environ)
    options = f"symbolize={int(symbolize)}:handle_abort=1:allocator_may_return_null=0"
    environment["ASAN_OPTIONS"] = options
    symbolizer = "/usr/lib/llvm-22/bin/llvm-symbolizer"
    if os.path.exists(symbolizer):
        environment["ASAN_SYMBOLIZER_PATH"] = symbolizer
    return environment


class Door:
    """The search on one door."""

    def __init__(self, arguments, name):
        self.arguments = arguments
        self.name = name
        folder = os.path.join(arguments.work, name)
        self.kept, self.seeds, self.faults = (
            os.path.join(folder, part) for part in ("kept", "seeds", "faults"))
        for path in (self.kept, self.seeds, self.faults):
            os.makedirs(path, exist_ok=True)

    def get_command(self, *flags):
        return [self.arguments.fuzzer, f"--door={self.name}", f"-rss_limit_mb={PROCESS_MIB}",
                f"-malloc_limit_mb={MEMORY_MIB}", *flags]

    def run(self, *flags, symbolize=False, seconds=None):
        """Runs the fuzzer. Returns its exit code, or None after a timeout, and output."""
        with tempfile.TemporaryFile() as log:
            try:
                process = subprocess.run(self.get_command(*flags), stdin=subprocess.DEVNULL,
                                         stdout=log, stderr=subprocess.STDOUT, timeout=seconds,
                                         check=False, env=make_environment(symbolize),
                                         preexec_fn=limit_process)
                code = process.returncode
            except subprocess.TimeoutExpired:
                code = None
            log.seek(0)
            return code, log.read().decode(errors="replace")

    def list_inputs(self):
        """The paths of all inputs that there are."""
        folders = (self.kept, self.seeds, os.path.join(self.arguments.corpus, self.name))
        return [os.path.join(folder, name) for folder in folders if os.path.isdir(folder)
                for name in sorted(os.listdir(folder))]

    def start(self, folder, seconds):
        """Starts a process that begins with some inputs and writes new ones to FOLDER/new."""
        start, new = os.path.join(folder, "start"), os.path.join(folder, "new")
        os.makedirs(start)
        os.makedirs(new)
        paths = self.list_inputs()
        for path in random.sample(paths, min(len(paths), START_INPUTS)):
            shutil.copy(path, start)
        command = self.get_command(
            f"-max_total_time={seconds}", "-timeout=30", f"-report_slow_units={CPU_SECONDS}",
            "-max_len=65536", f"-artifact_prefix={self.faults}/", new, start)
        with open(os.path.join(folder, "log"), "w") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=subprocess.STDOUT, preexec_fn=limit_process,
                                    env=make_environment(symbolize=False))

    def finish(self, folder):
        """Keeps what an ended process found. Returns its numbers of inputs and edges."""
        new = os.path.join(folder, "new")
        for name in os.listdir(new):
            shutil.move(os.path.join(new, name), os.path.join(self.kept, name))
        with open(os.path.join(folder, "log"), errors="replace") as log:
            text = log.read()
        counts = re.findall(r"^#(\d+).*?cov: (\d+)", text, re.M)
        return (*(int(number) for number in counts[-1]), text) if counts else (0, 0, text)

    def search(self):
        """Runs the search. Returns the numbers of inputs that were run and of edges."""
        self.run(f"--seeds={self.seeds}")
        end = time.monotonic() + self.arguments.time
        num_inputs, num_edges, num_idle = 0, 0, 0
        with tempfile.TemporaryDirectory(dir=self.arguments.work) as work:
            number, running = 0, []
            while running or time.monotonic() < end:
                # A process ends early at a fault, and another one takes its place.
                left = int(end - time.monotonic())
                while left > 0 and len(running) < self.arguments.jobs:
                    folder = os.path.join(work, str(number))
                    number += 1
                    running.append((folder, self.start(folder, min(left, PROCESS_SECONDS))))
                time.sleep(.1)
                for entry in [entry for entry in running if entry[1].poll() is not None]:
                    running.remove(entry)
                    inputs, edges, text = self.finish(entry[0])
                    num_inputs += inputs
                    num_edges = max(num_edges, edges)
                    num_idle = 0 if inputs else num_idle + 1
                    if num_idle == IDLE_PROCESSES:
                        sys.exit(f"fuzz: the search on '{self.name}' does not begin:\n"
                                 + text[-2000:])
        if len(os.listdir(self.kept)) > KEPT_INPUTS:
            self.minimize()
        return num_inputs, num_edges

    def minimize(self):
        """Keeps a choice of inputs that reaches the same code."""
        chosen = self.choose(self.kept)
        if os.listdir(chosen):
            shutil.rmtree(self.kept)
            os.rename(chosen, self.kept)

    def choose(self, *folders):
        """Returns a folder with a choice of inputs that reaches the code of all."""
        chosen = os.path.join(self.arguments.work, self.name, "chosen")
        shutil.rmtree(chosen, ignore_errors=True)
        os.makedirs(chosen)
        self.run("-set_cover_merge=1", "-timeout=30", chosen, *folders)
        return chosen

    def check(self, path):
        """Runs a reported input alone. Returns None if nothing is wrong with it, else a
        short name of what is wrong, and the output."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        code, output = self.run("-timeout=120", path, symbolize=True, seconds=300)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
        if code is None or (code == 0 and seconds - self.startup > CPU_SECONDS):
            return f"takes {seconds:.0f} seconds of CPU time", output
        return (None, output) if code == 0 else (name_fault(output), output)

    def measure_startup(self):
        """Sets the CPU time of an input that is empty."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        empty = os.path.join(self.arguments.work, self.name, "empty")
        open(empty, "w").close()
        self.run(empty)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.startup = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)

    def triage(self, known):
        """Returns the number of known faults, that of inputs that do not fail alone, and the
        other faults: their names with the first input. Inputs with a known fault are
        removed, and those that were only slow beside others."""
        self.measure_startup()
        num_known, num_unrepeated, faults = 0, 0, {}
        for entry in sorted(os.listdir(self.faults)):
            path = os.path.join(self.faults, entry)
            fault, output = self.check(path)
            if fault and not is_known(output, known):
                faults.setdefault(fault, (path, output))
                continue
            num_known += bool(fault)
            if fault or entry.startswith(("slow-unit", "timeout")):
                os.remove(path)
            else:
                num_unrepeated += 1
        return num_known, num_unrepeated, faults

    def merge(self):
        """Adds inputs that reach other code than those of the folder to it."""
        folder = os.path.join(self.arguments.merge, self.name)
        os.makedirs(folder, exist_ok=True)
        chosen, old = self.choose(folder, self.kept, self.seeds), set(os.listdir(folder))
        paths = [os.path.join(chosen, name) for name in os.listdir(chosen) if name not in old]
        paths.sort(key=lambda path: (os.path.getsize(path), path))
        # Small and large ones alike.
        count = min(max(self.arguments.most_files - len(old), 0), len(paths))
        for number in range(count):
            shutil.copy(paths[-1 - number * len(paths) // count], folder)


def list_frames(output):
    """The functions of the stack in a report of a sanitizer, the innermost first."""
    return [re.split(r" \(?/", frame)[0]
            for frame in re.findall(r"^ *#\d+ 0x\w+ in (.*)", output, re.M)]


def is_known(output, known):
    """Whether a fault is in a known function that this project did not call back from."""
    for frame in list_frames(output):
        if any(name in frame for name in known):
            return True
        if "posenc" in frame:
            return False
    return False


def name_fault(output):
    """Names a fault by its message and the innermost function of this project."""
    wrong = re.search(r"^posenc-fuzz: wrong: (.*)", output, re.M)
    if wrong:
        return wrong.group(1)
    kind = re.search(r"ERROR: \w+: ([\w-]+)|runtime error: (.*)", output)
    what = next((text for text in kind.groups() if text), "") if kind else "ends"
    own = (frame for frame in list_frames(output)
           if "posenc" in frame and "posenc::fuzz" not in frame)
    frame = next(own, None)
    return f"{what} in {frame}" if frame else what


def read_known_faults():
    with open(os.path.join(HERE, "Inputs", "known-faults.txt")) as file:
        lines = (line.strip() for line in file)
        return [line for line in lines if line and not line.startswith("#")]


def list_doors(arguments):
    result = subprocess.run([arguments.fuzzer], stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True, check=False)
    names = result.stderr.partition(" is one of:")[2].split()
    wanted = arguments.doors.split(",") if arguments.doors else names
    unknown = [name for name in wanted if name not in names]
    if unknown or not names:
        sys.exit(f"fuzz: no door '{', '.join(unknown)}'; doors are {', '.join(names)}")
    return wanted


def main():
    arguments = parse_arguments()
    known = read_known_faults()
    num_faults = 0
    for name in list_doors(arguments):
        door = Door(arguments, name)
        start = time.monotonic()
        num_inputs, edges = door.search()
        seconds = time.monotonic() - start
        num_known, num_unrepeated, faults = door.triage(known)
        print(f"{name}: {num_inputs} inputs in {seconds:.0f} s, {edges} edges, "
              f"{len(os.listdir(door.kept))} inputs kept, {num_known} known faults of LLVM or "
              f"MLIR, {num_unrepeated} that do not fail alone, {len(faults)} faults", flush=True)
        for fault, (path, output) in faults.items():
            print(f"FAULT {fault}\n    {path}")
            print("".join(f"    {line}\n" for line in output.splitlines()[-40:]), flush=True)
        num_faults += len(faults)
        if arguments.merge:
            door.merge()
    print(f"{num_faults} faults")
    return 1 if num_faults else 0


if __name__ == "__main__":
    sys.exit(main())
