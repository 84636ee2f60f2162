#!/usr/bin/env python3
# ===- run.py - changes the code, and lists changes that no test finds ------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: run.py --work=DIR [--count=100] [--seed=1] [--room=ROOM]... [--jobs=N]
#
# Draws single changes (mutation.py) of the folders in rooms.py, builds each in a copy of
# the sources, and runs the tests of its room. A change that does not compile or does
# not change the code is drawn again. Results are in DIR/results-SEED.jsonl: a run that is
# interrupted goes on where it was. Change n depends on the seed and the sources alone.
#
# Changes of reasons.txt, which has why no test can find them, are not drawn.

import argparse
import collections
import difflib
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import mutation
import rooms

HERE = os.path.dirname(os.path.abspath(__file__))
# Seconds for a build; of one file and the links it takes less than a minute.
BUILD_TIMEOUT = 1800

Candidate = collections.namedtuple("Candidate", "room path mutation")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", default=os.path.join(HERE, "..", ".."))
    parser.add_argument("--work", required=True, help="folder of the copy and its build")
    parser.add_argument("--tree", help="a copy of the sources that may be changed")
    parser.add_argument("--build-dir", help="the build of that copy")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--room", action="append", help="a folder of rooms.py")
    parser.add_argument("--rooms", help="another rooms.py, for the test of this script")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=float("inf"),
                        help="draws no more after this time")
    return parser.parse_args()


def run(command, folder, seconds):
    """Runs a command with all its processes in a group. Returns its exit code, None if
    the time was over, and its output."""
    process = subprocess.Popen(command, cwd=folder, shell=True, text=True,
                               errors="replace", stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output = process.communicate(timeout=seconds)[0]
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise


def list_files(source):
    """Returns the files of the sources: those of git, with new ones."""
    listed = subprocess.run(
        # A checkout may belong to another user, as in a container.
        ["git", "-c", "safe.directory=*", "-C", source, "ls-files", "-co",
         "--exclude-standard", "-z"],
        capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return [name for name in listed.stdout.split("\0") if name]
    files = []
    for folder, subfolders, names in os.walk(source):
        subfolders[:] = [name for name in subfolders
                         if name != ".git" and not name.startswith("build")]
        files += [os.path.relpath(os.path.join(folder, name), source) for name in names]
    return files


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def copy_tree(source, tree):
    """Copies what differs, so that files that are the same are not compiled again."""
    kept = set()
    for name in list_files(source):
        origin, copy = os.path.join(source, name), os.path.join(tree, name)
        if not os.path.isfile(origin):
            continue
        kept.add(name)
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        with open(origin, "rb") as file:
            data = file.read()
        if os.path.exists(copy):
            with open(copy, "rb") as file:
                if file.read() == data:
                    continue
        # Later than what was built of a changed file.
        shutil.copy(origin, copy)
    for folder, _, names in os.walk(tree):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.relpath(path, tree) not in kept:
                os.remove(path)


def read_reasons(path):
    """Returns the changes that need no test: a path, the line and the changed line."""
    reasons = set()
    if not os.path.exists(path):
        return reasons
    entry = []
    for line in read(path).splitlines():
        if line.startswith("#") or not line.strip():
            continue
        entry.append(line)
        if len(entry) == 4:  # path, line, changed line, reason
            reasons.add((entry[0].strip(), entry[1].strip(), entry[2].strip()))
            entry = []
    if entry:
        sys.exit(f"{path}: an entry has a path, two lines and a reason")
    return reasons


def get_lines(text, change):
    """Returns the number of the first changed line, and this line before and after."""
    number = text.count("\n", 0, change.begin) + 1
    before = text.split("\n")[number - 1]
    after = mutation.apply(text, change).split("\n")[number - 1]
    return number, before, after


def find_candidates(options, table):
    reasons = read_reasons(os.path.join(options.source, "test/mutants/reasons.txt"))
    candidates = []
    for name in sorted(list_files(options.source)):
        room = rooms.find_room(table, name)
        if room is None or (options.room and room.folder not in options.room):
            continue
        text = read(os.path.join(options.source, name))
        for change in mutation.find_mutations(text):
            _, before, after = get_lines(text, change)
            if (name, before.strip(), after.strip()) not in reasons:
                candidates.append(Candidate(room, name, change))
    return candidates


def get_diff(path, before, after):
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), path, path,
                                 lineterm="", n=2)
    return "\n".join(list(lines)[2:])


class Workshop:
    """The copy of the sources and its build."""

    def __init__(self, options, table):
        self.options = options
        self.tree = os.path.abspath(options.tree or os.path.join(options.work, "tree"))
        self.build_dir = os.path.abspath(
            options.build_dir or os.path.join(options.work, "build"))
        self.table = table
        self.lit = "lit"
        # Seconds of the tests of each room, and a hash of what they run. The build of a
        # change undoes the change before it.
        self.seconds, self.code = {}, {}

    def fill(self, text):
        for name, value in {"tree": self.tree, "build": self.build_dir,
                            "jobs": self.options.jobs, "lit": self.lit,
                            "python": sys.executable}.items():
            text = text.replace("{" + name + "}", str(value))
        return text

    def prepare(self):
        os.makedirs(self.build_dir, exist_ok=True)
        if not self.options.tree:
            copy_tree(self.options.source, self.tree)
        code, output = run(self.fill(self.table.CONFIGURE), self.tree, BUILD_TIMEOUT)
        if code != 0:
            sys.exit(f"mutants: cannot configure the copy:\n{output}")
        cache = os.path.join(self.build_dir, "CMakeCache.txt")
        found = os.path.exists(cache) and re.search(r"^POSENC_LIT:.*?=(.*)$", read(cache),
                                                    re.MULTILINE)
        if found:
            self.lit = found.group(1)

    def build(self, room, seconds=BUILD_TIMEOUT):
        command = self.table.BUILD.replace("{targets}", " ".join(room.targets))
        return run(self.fill(command), self.tree, seconds)

    def test(self, room, seconds):
        for command in room.tests:
            code, output = run(self.fill(command), self.tree, seconds)
            if code != 0:
                return code, output
        return 0, ""

    def get_code(self, room):
        """Returns a hash of what the room's tests run."""
        digest = hashlib.sha256()
        for name in room.outputs:
            path = self.fill(name)
            if os.path.exists(path):
                with open(path, "rb") as file:
                    digest.update(file.read())
        return digest.hexdigest()

    def check_room(self, room):
        """Builds a room as it is, once: its tests must pass. Returns its code."""
        if room.folder in self.code:
            return self.code[room.folder]
        code, output = self.build(room, seconds=8 * 3600)
        if code != 0:
            sys.exit(f"mutants: {room.folder} does not build:\n{output[-4000:]}")
        start = time.monotonic()
        code, output = self.test(room, 4 * 3600)
        if code != 0:
            sys.exit(f"mutants: tests of {room.folder} fail without a change:\n"
                     f"{output[-4000:]}")
        self.seconds[room.folder] = time.monotonic() - start
        self.code[room.folder] = self.get_code(room)
        return self.code[room.folder]

    def try_candidate(self, candidate):
        """Returns what became of a change: killed, timed out, survived, invalid or
        without effect."""
        room = candidate.room
        code_before = self.check_room(room)
        path = os.path.join(self.tree, candidate.path)
        text = read(path)
        write(path, mutation.apply(text, candidate.mutation))
        try:
            code, _ = self.build(room)
            if code != 0:
                return "invalid"
            if room.outputs and self.get_code(room) == code_before:
                return "without effect"
            limit = max(self.table.TIMEOUT, 5 * self.seconds[room.folder])
            code, _ = self.test(room, limit)
            return "timed out" if code is None else "killed" if code else "survived"
        finally:
            write(path, text)


def load_results(path, key):
    """Returns the results of an earlier run with the same sources."""
    results = []
    if os.path.exists(path):
        for line in read(path).splitlines():
            try:
                results.append(json.loads(line))
            except ValueError:
                break  # the last line of a run that was killed
    if not results or results[0] != {"key": key}:
        if len(results) > 1:
            # Kept beside the new file.
            os.replace(path, path + ".old")
            print(f"mutants: {len(results) - 1} results of other sources or rooms are in "
                  f"{path}.old", flush=True)
        return []
    return results[1:]


def main():
    options = parse_options()
    # A run that is ended undoes its change, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("mutants: ended"))
    table = rooms.load(options.rooms)
    candidates = find_candidates(options, table)
    if not candidates:
        sys.exit("mutants: no code to change")
    key = hashlib.sha256(repr([(one.path, one.mutation) for one in candidates])
                         .encode()).hexdigest()
    order = list(range(len(candidates)))
    random.Random(options.seed).shuffle(order)
    os.makedirs(options.work, exist_ok=True)
    state = os.path.join(options.work, f"results-{options.seed}.jsonl")
    results = load_results(state, key)
    write(state, "\n".join(json.dumps(one) for one in [{"key": key}, *results]) + "\n")
    print(f"mutants: {len(candidates)} changes of {options.source}, seed "
          f"{options.seed}, {len(results)} tried before", flush=True)

    workshop = Workshop(options, table)
    workshop.prepare()
    counted = {"killed", "timed out", "survived"}
    end = time.monotonic() + options.seconds
    for number in order[len(results):]:
        done = sum(one["result"] in counted for one in results)
        if done >= options.count or time.monotonic() > end:
            break
        candidate = candidates[number]
        text = read(os.path.join(options.source, candidate.path))
        line, _, _ = get_lines(text, candidate.mutation)
        start = time.monotonic()
        result = workshop.try_candidate(candidate)
        entry = {"result": result, "path": candidate.path, "line": line,
                 "kind": candidate.mutation.kind,
                 "diff": get_diff(candidate.path, text,
                                  mutation.apply(text, candidate.mutation))}
        results.append(entry)
        with open(state, "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        print(f"{candidate.path}:{line}: {candidate.mutation.kind}: {result}, "
              f"{time.monotonic() - start:.0f} seconds", flush=True)

    for one in results:
        if one["result"] == "survived":
            print(f"\nSURVIVED {one['path']}:{one['line']}: {one['kind']}\n{one['diff']}")
    counts = collections.Counter(one["result"] for one in results)
    print(f"\nmutants: {counts['survived']} of {sum(counts[one] for one in counted)} "
          f"survived; {counts['killed']} killed, {counts['timed out']} timed out; drawn "
          f"again: {counts['invalid']} that do not compile, {counts['without effect']} "
          "without effect")


if __name__ == "__main__":
    main()
