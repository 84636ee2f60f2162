#!/usr/bin/env python3
# ===- print-coverage.py - lines that tests execute, by folder --------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# The report of `make coverage`. Merges the counts in BUILD/profiles, and prints for each
# folder of lib/, for runtime/ and for tools/ how many of its lines were executed.
# --files prints the files, the least covered first.

import argparse
import collections
import glob
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def find_objects(build):
    """Returns the libraries and executables that were built with counters."""
    patterns = ("lib/*.so", "bin/*", "test/unit/*", "test/fixture/*", "test/fuzz/*")
    found = (path for pattern in patterns for path in glob.glob(os.path.join(build, pattern)))
    return sorted(path for path in found if is_elf(path))


def is_elf(path):
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def get_folder(path):
    """Returns the folder of the table for a source, or None for tests and others."""
    parts = os.path.relpath(path, ROOT).split(os.sep)
    if parts[0] == "include" and len(parts) > 3:
        return f"lib/{parts[2]}"  # include/posenc/<component>
    if parts[0] == "lib":
        return "/".join(parts[:2])
    return parts[0] if parts[0] in ("runtime", "tools") else None


def run(*command):
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode:
        sys.exit(f"coverage: {os.path.basename(command[0])} failed")
    return result.stdout


def measure(build, llvm):
    """Returns the number of lines and of executed lines of each source."""
    profiles = glob.glob(os.path.join(build, "profiles", "*.profraw"))
    objects = find_objects(build)
    if not profiles or not objects:
        sys.exit(f"coverage: no counts in {build}/profiles: run `make coverage`")
    merged = os.path.join(build, "profiles", "merged.profdata")
    run(os.path.join(llvm, "llvm-profdata"), "merge", "-sparse", "-o", merged, *profiles)
    options = [option for path in objects[1:] for option in ("-object", path)]
    report = json.loads(run(
        os.path.join(llvm, "llvm-cov"), "export", "-summary-only",
        f"-instr-profile={merged}", objects[0], *options))
    return {file["filename"]: (file["summary"]["lines"]["count"],
                               file["summary"]["lines"]["covered"])
            for file in report["data"][0]["files"]}


def print_table(rows):
    print(f"{'lines':>8} {'executed':>9} {'percent':>8}")
    for name, (count, covered) in rows:
        print(f"{count:8} {covered:9} {100 * covered / max(count, 1):7.1f}%  {name}")


def main():
    parser = argparse.ArgumentParser(
        description="Prints the lines that tests executed, by folder.")
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build-coverage"))
    parser.add_argument("--llvm-tools", help="folder of llvm-cov", default=os.path.join(
        os.environ.get("POSENC_LLVM") or "/usr/lib/llvm-22", "bin"))
    parser.add_argument("--files", action="store_true", help="print files, not folders")
    options = parser.parse_args()
    folders = collections.defaultdict(lambda: (0, 0))
    files = []
    for path, (count, covered) in measure(options.build_dir, options.llvm_tools).items():
        folder = get_folder(path)
        if folder:
            files.append((os.path.relpath(path, ROOT), (count, covered)))
            total = folders[folder]
            folders[folder] = (total[0] + count, total[1] + covered)
    if options.files:
        print_table(sorted(files, key=lambda row: row[1][1] / max(row[1][0], 1)))
        return
    total = tuple(map(sum, zip(*folders.values()))) if folders else (0, 0)
    print_table([*sorted(folders.items()), ("all", total)])


if __name__ == "__main__":
    main()
