#!/usr/bin/env python3
# ===- attention-forms.py - runs all forms of attention ---------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Compares all functions of a module with the reference:

    attention-forms.py [--library=LIBRARY.so] [--kernels=NAME,...]
        [--draw=TITLE/COUNT [--always=NAME,...] [--checks=FILE]]
        MODULE.mlir FOLDER POSENC_RUN [OPTION...]

Runs each function, or those that --kernels names, on the arguments of its INPUTS
comments. With --library, which was compiled from a later stage of the module, the
library's results are compared. With --draw, a run has those of --always and one in COUNT of
the others, as test/Inputs/draw.py draws them; --checks copies FILE to FOLDER/checks, for
FileCheck, without the lines on kernels that are left out. FOLDER is for tensors in files. With --device=cuda:N
among the options of posenc-run, the limits are those of GPUs, and functions without
a GPU kernel are listed.
"""

import argparse
import array
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "Inputs"))
import draw

# The types of integers in NumPy's header and in the module array.
TYPES = {"i32": ("<i4", "i"), "i64": ("<i8", "q")}

# Limits of the relative error on GPUs, by the type of the first result.
GPU_LIMITS = {"f32": "1e-5", "f16": "1e-3", "bf16": "4e-3"}


def write_array(folder, element, shape, values):
    """Writes a tensor of integers to a file and returns its --input."""
    descr, code = TYPES[element]
    header = str({"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    header = header.ljust(117) + "\n"
    path = folder / f"{len(list(folder.iterdir()))}.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
                     + header.encode() + array.array(code, values).tobytes())
    return f"--input=@{path}"


def make_input(folder, text, number):
    """Returns the --input of one word of an INPUTS comment."""
    listed = re.fullmatch(r"(i32|i64)\[(.*)\]", text)
    if listed:
        values = [int(value) for value in listed.group(2).split(",")]
        return write_array(folder, listed.group(1), [len(values)], values)
    steps = re.fullmatch(r"([\dx]+)x(i32|i64)=iota/(\d+)", text)
    if steps:
        shape = [int(size) for size in steps.group(1).split("x")]
        count = 1
        for size in shape:
            count *= size
        return write_array(folder, steps.group(2), shape,
                           [i // int(steps.group(3)) for i in range(count)])
    has_value = "=" in text or text.isdigit()
    return f"--input={text}" + ("" if has_value else f"=random:seed={number}")


def run(command):
    """Runs posenc-run; returns None if the function has no GPU kernel."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "no public function that a GPU can run" in done.stderr:
        return None
    if done.returncode not in (0, 3):
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done


def copy_checks(source, target, left_out):
    """Copies a file without the lines of FileCheck on kernels of functions."""
    names = "|".join(map(re.escape, left_out))
    kernel = re.compile(rf"^# [A-Z-]+: .*\b(?:launch|ran) (?:{names})_(?:attention|merge)")
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    target.write_text("".join(line for line in lines
                              if not left_out or not kernel.match(line)),
                      encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("module", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--library")
    parser.add_argument("--kernels", type=lambda names: names.split(","))
    parser.add_argument("--draw", help="draws one in COUNT of the functions")
    parser.add_argument("--always", type=lambda names: names.split(","), default=[])
    parser.add_argument("--checks", type=pathlib.Path)
    parser.add_argument("run", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    args.folder.mkdir(exist_ok=True)
    on_gpu = any(option.startswith("--device=cuda") for option in args.run)
    text = args.module.read_text(encoding="utf-8")
    forms = re.findall(
        r"((?:^// INPUTS:.*\n)+)func\.func @(\w+)\(.*?\) -> \(?(.*?)\)? \{$",
        text, re.M)
    if len(forms) != text.count("func.func @"):
        sys.exit("a function has no line of INPUTS")
    if args.kernels:
        forms = [form for form in forms if form[1] in args.kernels]
        if len(forms) != len(args.kernels):
            sys.exit("the module lacks some of the functions")
    found = forms
    if args.draw:
        title, _, count = args.draw.rpartition("/")
        others = [form for form in forms if form[1] not in args.always]
        drawn = draw.draw_cases(title, others, int(count), lambda form: form[1])
        forms = [form for form in forms if form[1] in args.always or form in drawn]
    if args.checks:
        names = {form[1] for form in forms}
        copy_checks(args.checks, args.folder / "checks",
                    [form[1] for form in found if form[1] not in names])
    calls = wrong = 0
    left_out = []
    for lines, function, results in forms:
        types = re.findall(r"tensor<[^>]*x(\w+)>", results)
        for line in re.findall(r"INPUTS: (.*)", lines):
            arguments = [f"--function={function}"]
            arguments += [make_input(args.folder, word, number)
                          for number, word in enumerate(line.split())]
            compare = ["--reference", "--opt-level=0"]
            if args.library:
                files = [f"@{args.folder}/{function}.{number}.npy"
                         for number in range(len(types))]
                run([args.run[0], args.library, *arguments,
                     *(f"--output={file}" for file in files)])
                compare += [f"--expected_output={file}" for file in files]
            if on_gpu and types[0] in GPU_LIMITS:
                compare.append("--max-rel=" + GPU_LIMITS[types[0]])
            done = run([args.run[0], str(args.module), *args.run[1:], *arguments,
                        *compare])
            if done is None:
                left_out.append(function)
                break
            calls += 1
            if done.returncode:
                wrong += 1
                print(f"wrong: @{function} {line}\n{done.stdout}{done.stderr}")
    drawn = "" if len(forms) == len(found) else f"{len(forms)} of "
    print(f"{drawn}{len(found)} forms, {calls} calls, {wrong} wrong")
    if left_out:
        print(f"{len(left_out)} without a GPU kernel: {' '.join(left_out)}")


main()
