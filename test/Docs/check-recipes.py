#!/usr/bin/env python3
# ===- check-recipes.py - files that CONTRIBUTING.md says to change ----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: check-recipes.py ROOT RECIPES FOLDER [--page=PAGE]
#                         [--tblgen=MLIR_TBLGEN --include=MLIR_HEADERS] [--build=BUILD_DIR]
#
# Applies the recorded changes RECIPES/*.txt to copies of the source folders below FOLDER.
# A change is a list of edits, each with a first line "@@ FILE new", "@@ FILE before: TEXT"
# or "@@ FILE instead of: TEXT" and the lines that it writes. The recipe in PAGE, by default
# CONTRIBUTING.md, must list exactly the files that are edited, in a table after the
# sentence that counts them. A pattern with <Name> is a new file; "the file of its family in
# [FOLDER](FOLDER)" is any file of that folder.
#
# With --tblgen, declarations that were edited are parsed by TableGen. With --build, edited
# C++ files are parsed by the compiler; those that depend on edited declarations only if
# POSENC_TEST_ALL is set, as they need all headers again. Prints a line for each recipe,
# and exits with 1 if one is wrong.

import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

TITLES = {"frequency-scaling": "A frequency scaling", "matrix-unit": "A CPU's matrix unit",
          "onnx-operator": "An ONNX operator"}
FOLDERS = ("dialect", "include", "lib")
EDIT = re.compile(r"^@@ (\S+) (new|before: (.*)|instead of: (.*))$", re.M)


def read_edits(path):
    """Yields the file, the kind, the anchor and the text of each edit."""
    parts = EDIT.split(path.read_text(encoding="utf-8"))
    for at in range(1, len(parts), 5):
        file, kind, before, instead, text = parts[at:at + 5]
        yield file, kind.split(":")[0], before or instead, text.removeprefix("\n")


def apply(edits, folder):
    """Applies edits below `folder`. Returns the files in their order, or raises ValueError."""
    files = []
    for file, kind, anchor, text in edits:
        path = folder / file
        if kind == "new":
            if path.exists():
                raise ValueError(f"{file} exists")
            old = new = text
        else:
            old = path.read_text(encoding="utf-8")
            if old.count(anchor) != 1:
                raise ValueError(f"{file} has {old.count(anchor)} times: {anchor}")
            # "before" means the beginning of the line of the anchor.
            at = old.index(anchor)
            start = old.rfind("\n", 0, at) + 1
            new = (old[:start] + text + old[start:] if kind == "before" else
                   old.replace(anchor, text.rstrip("\n")))
        path.write_text(new, encoding="utf-8")
        if file not in files:
            files.append(file)
    return files


def read_recipe(page, title):
    """Returns the number of files that a recipe names, and their patterns."""
    found = re.search(rf"\*\*{re.escape(title)}\*\* takes (\d+) (.*?)(?=\n\*\*|\Z)", page, re.S)
    if not found:
        raise ValueError(f"no recipe '{title}'")
    count = int(found[1])
    more = re.match(r"new file, and a line in (\d+) others", found[2])
    cells = re.findall(r"^\| (?!file \|)(.*?) \|", found[2].split("\n\n")[1], re.M)
    patterns = []
    for cell in cells:
        name = re.match(r"`([^`]*<Name>[^`]*)`", cell)
        link = re.search(r"\]\(([^)]*)\)", cell)
        if name:
            patterns.append(re.escape(name[1]).replace("<Name>", r"\w+"))
        elif cell.startswith("the file of its family in"):
            patterns.append(re.escape(link[1]) + r"/\w+\.cpp")
        elif link:
            patterns.append(re.escape(link[1]))
    return count + (int(more[1]) if more else 0), patterns


def run(command, folder, errors):
    result = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, check=False)
    if result.returncode:
        errors.append(result.stdout.strip())


def make_declarations(options, root, folder, errors):
    """Writes what TableGen makes of the attributes, as in dialect/posenc/IR."""
    where = folder / "generated" / "posenc" / "IR"
    where.mkdir(parents=True)
    for suffix, kind in (("h", "decls"), ("cpp", "defs")):
        run([options.tblgen, f"-gen-attrdef-{kind}", "-attrdefs-dialect=posenc",
             "-I", folder / "dialect", "-I", folder / "include", "-I", root / "include",
             "-I", options.include, folder / "dialect" / "posenc" / "IR" / "Posenc.td",
             "-o", where / f"PosencAttrs.{suffix}.inc"], folder, errors)


def find_command(commands, root, build, file):
    """Returns the command of a target's file in the folder of `file` or above it. Files that
    are compiled in batches are in that folder of the build folder, wherever it is."""
    folder = root / file
    while folder != root:
        folder = folder.parent
        for entry in commands:
            path = pathlib.Path(entry["file"])
            under = folder.relative_to(root)
            if under.parts and "cmake_pch" not in path.name and any(
                    path.is_relative_to(place / under) for place in (root, build)):
                return entry
    raise ValueError(f"no command compiles a file near {file}")


def parse_cpp(options, root, folder, file, is_whole, commands, errors):
    entry = find_command(commands, root, options.build.resolve(), file)
    command = shlex.split(entry["command"])
    command = command[:command.index("-o")]
    if is_whole:
        command = shlex.split(re.sub(
            r"-Xclang -include-pch -Xclang \S+ -Xclang -include -Xclang \S+", "",
            shlex.join(command)))
    command[1:1] = [f"-I{folder / 'generated'}",
                    *(f"-I{folder / part}" for part in ("include", "dialect", "lib"))]
    library = pathlib.Path(*pathlib.Path(file).parts[:2])
    command += [f"-I{folder / library}", "-Wno-unused-function", "-fsyntax-only",
                str(folder / file)]
    run(command, entry["directory"], errors)


def check(options, path):
    """Returns the edited files of a recipe and a list of errors."""
    root = options.root.resolve()
    folder = options.folder.resolve() / path.stem
    shutil.rmtree(folder, ignore_errors=True)
    for name in FOLDERS:
        shutil.copytree(root / name, folder / name)
    files, errors = [], []
    parses_all = options.tblgen and os.environ.get("POSENC_TEST_ALL")
    try:
        files = apply(read_edits(path), folder)
        count, patterns = read_recipe(options.page.read_text(encoding="utf-8"),
                                      TITLES[path.stem])
        if count != len(patterns):
            errors.append(f"the recipe counts {count} files and lists {len(patterns)}")
        errors += [f"the recipe does not list {file}" for file in files
                   if not any(re.fullmatch(pattern, file) for pattern in patterns)]
        errors += [f"no change of {pattern}" for pattern in patterns
                   if not any(re.fullmatch(pattern, file) for file in files)]
        has_declarations = any(file.endswith(".td") for file in files)
        if options.tblgen and has_declarations:
            make_declarations(options, root, folder, errors)
        if options.build and (parses_all or not has_declarations):
            commands = json.loads((options.build / "compile_commands.json").read_text())
            for file in files:
                if file.endswith(".cpp"):
                    parse_cpp(options, root, folder, file, has_declarations, commands, errors)
    except ValueError as error:
        errors.append(str(error))
    shutil.rmtree(folder)
    return files, errors


def main():
    parser = argparse.ArgumentParser(description="Checks the recipes of CONTRIBUTING.md.")
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("recipes", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--tblgen")
    parser.add_argument("--include")
    parser.add_argument("--build", type=pathlib.Path)
    options = parser.parse_args()
    options.page = options.page or options.root / "CONTRIBUTING.md"
    is_wrong = False
    for path in sorted(options.recipes.glob("*.txt")):
        files, errors = check(options, path)
        print(f"{path.stem}: {len(files)} files, {len(errors)} wrong")
        for error in errors:
            print(f"  {error}")
        is_wrong |= bool(errors)
    return is_wrong


if __name__ == "__main__":
    sys.exit(main())
