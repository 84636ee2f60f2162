#!/usr/bin/env python3
# ===- check-run-paths.py - checks where ELF files look for libraries -------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# check-run-paths.py --tools DIR [--installed] FOLDER...
# Checks each element of the RUNPATH and RPATH of the executables and shared libraries
# in the folders. The dynamic loader takes an empty or relative element from the current
# folder, whose files then run as code. With --installed no user but root and the one
# who runs this may be able to put a library into an absolute element.

import argparse
import os
import re
import stat
import subprocess


def find_files(folder):
    """Yields the executables and shared libraries, but for the outputs of tests."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "Output"]
        for name in sorted(names):
            path = os.path.join(parent, name)
            if not os.path.isfile(path) or os.path.islink(path):
                continue
            with open(path, "rb") as file:
                header = file.read(18)
            # e_type is ET_EXEC or ET_DYN.
            if header[:4] == b"\x7fELF" and header[16] in (2, 3):
                yield path


def read_elements(readelf, path):
    text = subprocess.run([readelf, "-d", path], check=True, capture_output=True,
                          text=True).stdout
    for elements in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", text):
        yield from elements.split(":")


def may_others_write(path):
    """Whether other users can put a file into the folder, or replace it. Of a folder that
    does not exist, they can create it where they can write into its parent."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    path = os.path.realpath(path)
    allowed = 0
    while True:
        status = os.stat(path)
        if status.st_uid not in (0, os.geteuid()):
            return True
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & allowed:
            return True
        if path == "/":
            return False
        path = os.path.dirname(path)
        # A folder with this bit keeps the entries of others.
        allowed = stat.S_ISVTX


def find_fault(element, installed):
    if not element.startswith(("/", "$ORIGIN/")) and element != "$ORIGIN":
        return "is relative to the current folder"
    if installed and element.startswith("/") and may_others_write(element):
        return "can be written by others"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", required=True)
    parser.add_argument("--installed", action="store_true")
    parser.add_argument("folders", nargs="+")
    arguments = parser.parse_args()
    readelf = os.path.join(arguments.tools, "llvm-readelf")
    count = errors = 0
    for path in (path for folder in arguments.folders for path in find_files(folder)):
        count += 1
        for element in read_elements(readelf, path):
            fault = find_fault(element, arguments.installed)
            if fault:
                print(f"{path}: '{element}' {fault}")
                errors += 1
    print(f"{count} files, {errors} errors")
    return 1 if errors or not count else 0


if __name__ == "__main__":
    raise SystemExit(main())
