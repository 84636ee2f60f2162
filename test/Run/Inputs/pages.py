#!/usr/bin/env python3
# ===- pages.py - attention of ragged queries to pages of a cache -----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""usage: pages.py [--fault] [--only=FUNCTION,...] MODULE FOLDER POSENC_RUN [OPTION...]

Runs the functions of paged-forms.mlir, whose comments have the sizes of pages, and
compares their results with the reference, and the bits within each group. Pages are in
random order. Slots after the last key of a sequence and pages of no sequence are
infinite or NaN, and unused elements of the table are no pages. With --fault, keys have
another first channel in each call of a group but the first.
"""

import pathlib
import re
import subprocess
import sys

import numpy

# Prefill, a chunk of a prompt, decode, a sequence without queries, speculative decode, a
# long chunk, and one query after all keys of a page.
SEQUENCES = [(37, 37), (20, 333), (1, 70), (0, 5), (3, 140), (9, 530), (1, 512)]
LIMITS = {"f32": "1e-5", "f16": "1e-3", "bf16": "4e-3"}
UNUSED = [-1, 2**31 - 1, -2**31, 12345678]


def encode(values, element):
    """Returns values as arrays of the type; bf16 as u2."""
    if element == "bf16":
        bits = numpy.ascontiguousarray(values, numpy.float32).view(numpy.uint32)
        # Keeps NaN and infinities.
        return (bits >> 16).astype(numpy.uint16)
    return numpy.asarray(values, {"f32": numpy.float32, "f16": numpy.float16,
                                  "i32": numpy.int32, "i64": numpy.int64}[element])


def fill(random, sequences, heads, channels, page):
    """Returns pages, head-major, and the table; one page of each sequence that holds
    all keys if `page` is 0."""
    keys = [random.standard_normal((heads, length, channels), numpy.float32)
            for _, length in sequences]
    longest = max(length for _, length in sequences)
    size = page or longest + 40
    order = numpy.random.default_rng(page)
    counts = [1 if not page else -(-length // size) for _, length in sequences]
    width = max(counts)
    number = sum(counts) + 3 if page else len(sequences)
    free = list(order.permutation(number)) if page else list(range(number))
    pages = numpy.full((number, heads, size, channels), numpy.nan, numpy.float32)
    pages[:, :, ::3] = numpy.inf
    table = order.choice(UNUSED, (len(sequences), width))
    for row, rows, count in zip(table, keys, counts):
        for i in range(count):
            row[i] = free.pop(0)
            part = rows[:, i * size:(i + 1) * size]
            pages[row[i], :, :part.shape[1]] = part
    return pages, table


def make_inputs(function, group, page, sequences):
    """Returns the arrays of the arguments of a function."""
    _, arguments, body = function
    is_head_major = "key_layout = head_major" in body
    starts = numpy.cumsum([0] + [queries for queries, _ in sequences])
    tokens = starts[-1] + 2
    result = []
    table = None
    for name, text in re.findall(r"%(\w+): tensor<([^>]*)>", arguments):
        *shape, element = text.split("x")
        random = numpy.random.default_rng(list(f"{group} {name}".encode()))
        if name in "kv":
            heads = int(shape[1 if is_head_major else 2])
            values, table = fill(random, sequences, heads, int(shape[3]), page)
            if not is_head_major:
                values = values.transpose(0, 2, 1, 3)
        elif name == "t":
            values = table
        elif name == "c":
            values = starts
        elif name == "n":
            values = [length for _, length in sequences]
        elif name == "p":
            values = numpy.arange(tokens) * 7 % 500
        elif name in "lo":
            values = numpy.zeros([tokens, *map(int, shape[1:])])
        else:
            values = random.standard_normal(
                [tokens if size == "?" else int(size) for size in shape],
                numpy.float32)
        result.append(encode(values, element))
    return result


def call(function, arrays, results, module, folder, run, options):
    """Returns the bits of the results, or the text of an error."""
    limit = LIMITS[results[0]]
    command = [run, module, f"--function={function}", *options, "--reference",
               "--opt-level=0", f"--max-rel={limit}"]
    for number, values in enumerate(arrays):
        path = pathlib.Path(folder, f"{number}.npy")
        numpy.save(path, numpy.ascontiguousarray(values))
        command.append(f"--input=@{path}")
    paths = [pathlib.Path(folder, f"result-{i}.npy") for i in range(len(results))]
    command += [f"--output=@{path}" for path in paths]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        return done.stdout + done.stderr
    return b"".join(numpy.load(path).tobytes() for path in paths)


def main():
    has_fault = sys.argv[1] == "--fault"
    if has_fault:
        sys.argv.pop(1)
    only = None
    if sys.argv[1].startswith("--only="):
        only = sys.argv.pop(1).partition("=")[2].split(",")
    module, folder, run, *options = sys.argv[1:]
    pathlib.Path(folder).mkdir(exist_ok=True)
    text = pathlib.Path(module).read_text(encoding="utf-8")
    forms = re.findall(
        r"^// GROUP: (\w+) PAGES: ([\d ]+)\n(?:// SEQUENCES: ([\d/ ]+)\n)?"
        r"func\.func @(\w+)\((.*?)\) -> (.*?) \{$(.*?)^\}", text, re.M | re.S)
    if len(forms) != text.count("func.func @"):
        sys.exit("a function has no sizes of pages")
    known = {}
    calls = wrong = compared = different = 0
    for group, sizes, lengths, name, arguments, types, body in forms:
        if only and name not in only:
            continue
        results = re.findall(r"tensor<[^>]*x(\w+)>", types)
        sequences = SEQUENCES
        if lengths:
            sequences = [tuple(map(int, pair.split("/"))) for pair in lengths.split()]
        for page in map(int, sizes.split()):
            arrays = make_inputs((name, arguments, body), group, page, sequences)
            if has_fault and group in known:
                arrays[1][..., 0] += 1
            bits = call(name, arrays, results, module, folder, run, options)
            calls += 1
            if isinstance(bits, str):
                wrong += 1
                print(f"wrong: @{name}, pages of {page}\n{bits}")
                continue
            if group in known:
                compared += 1
                if bits != known[group]:
                    different += 1
                    print(f"different: @{name}, pages of {page}")
            known.setdefault(group, bits)
    print(f"{calls} calls, {wrong} wrong, {compared} comparisons of bits, "
          f"{different} different")


main()
