#!/usr/bin/env python3
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check-spellings.py POSENC-COMPILE [--seed=N] [--count=N] [--only=N,...] [--keep=FOLDER]
[--fault=NAME] [--verbose]

Writes random spellings of rotary embeddings and of attention as StableHLO, and checks
posenc-raise: it finds all of them, finds none in near misses, and changes no result by
more than the rounding of the types.

`make test` checks a few functions. For a long run:

    python3 test/Raise/Inputs/check-spellings.py build/bin/posenc-compile --seed=7 --count=1000

Function n of a run depends on the seed and n alone. Failures name the function and its
spelling; --only=n repeats one, and --keep keeps the modules in a folder. --fault changes
the raised code before it is compiled; the functions that have what it changes must then
fail, and there must be some.
"""

import argparse
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import hlo
import spell_attention
import spell_rotation

PER_MODULE = 12
TOLERANCE = {"f32": 3e-5, "f16": 2e-2, "bf16": 1e-1}

# Changes of raised code: a regular expression and its replacement.
FAULTS = {
    "scale": (r"(posenc\.attention) scale = \S+", r"\1 scale = 0.0625"),
    "pairing": (r"posenc\.rotate half", "posenc.rotate interleaved"),
    "tables": (r"tables\((%[\w#]+), (%[\w#]+) :", r"tables(\2, \1 :"),
    "order": (r"arith\.cmpi sle", "arith.cmpi sge"),
    "count": None,
}


class Case:
    """A function, and what must be found in it."""

    def __init__(self, seed, number):
        self.random = random.Random(f"{seed} {number}")
        self.name = f"f{number}"
        self.g = hlo.Function(self.name, self.random)
        kind = self.random.choice(["attention"] * 4 + ["rotation"] * 3)
        is_miss = self.random.random() < 0.3
        getattr(self, kind)(is_miss)

    def attention(self, is_miss):
        miss = self.random.choice(list(spell_attention.MISSES)) if is_miss else None
        choices = spell_attention.Choices(self.random, miss)
        self.rotations = 2 if choices.rotation else 0
        self.attentions = spell_attention.MISSES[miss] if miss else 1
        if choices.returns_weights:
            self.attentions = 0
        # How many remarks say that something looks like one.
        self.like_rotations = 0
        self.like_attentions = 0 if self.attentions == 1 else None
        self.text = f"{choices}"
        spell_attention.Attention(self.g, choices).build()

    def rotation(self, is_miss):
        pick, g = self.random.choice, self.g
        miss = pick(list(spell_rotation.MISSES)) if is_miss else None
        element = pick(["f32", "f32", "f16", "bf16"])
        lanes = pick([4, 8, 16])
        choices = spell_attention.RotationChoices(self.random, lanes, element, miss)
        labels = pick(["bhsd", "bshd", "bsd", "shd"])
        sizes = {"b": pick([1, 2]), "h": pick([1, 3]), "s": pick([1, 5, 6]), "d": lanes}
        if "b" not in labels and choices.tables == "batch_positions":
            choices.tables = "positions"
        if miss == "other_token":
            sizes["s"] = 6
        self.attentions = 0
        self.rotations = 0 if miss else 1
        # A single row does not show which factors are tables of rows.
        self.like_rotations = None if miss and sizes["s"] == 1 else 1 - self.rotations
        self.like_attentions = 0
        self.text = f"{labels} {sizes} {choices}"
        tables = choices.make_tables(g, sizes["b"], sizes["s"])
        x = g.argument([sizes[label] for label in labels], element)
        g.results = [choices.apply(g, x, labels, tables)]

    def get_tolerance(self):
        elements = {value.element for value in self.g.arguments}
        return next(TOLERANCE[element] for element in ("bf16", "f16", "f32")
                    if element in elements)


class Checker:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.compiler = options.compiler
        self.runner = str(pathlib.Path(self.compiler).with_name("posenc-run"))
        self.changed = self.failed = 0

    def call(self, *command):
        return subprocess.run(list(map(str, command)), text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)

    def compile(self, source, library, *flags):
        done = self.call(self.compiler, source, "--opt-level=0", "--no-warnings", *flags,
                         "-o", library)
        return done.stdout if done.returncode else ""

    def check(self, cases, number):
        """Checks functions, as one module, and one by one if that fails."""
        source = self.folder / f"spellings{number}.mlir"
        source.write_text("\n".join(str(case.g) for case in cases))
        raised, before, after = (source.with_name(f"{name}{number}{suffix}") for name, suffix in
                                 (("raised", ".mlir"), ("libbefore", ".so"), ("libafter", ".so")))
        error = self.call(self.compiler, source, "--emit=posenc", "--remarks", "-o", raised)
        remarks = error.stdout
        error = error.stdout if error.returncode else self.compile(source, before, "--raise=no")
        functions = {}
        if not error:
            head, functions = self.split(raised.read_text())
            raised.write_text(head + "".join(self.inject(functions[case.name], case)
                                             for case in cases))
            error = self.compile(raised, after, "--raise=no")
        if error and self.options.fault:
            sys.exit(f"changed functions do not compile: {error}")
        if error and len(cases) > 1:
            for case in cases:
                self.check([case], case.name[1:])
            return
        for case in cases:
            problems = [error] if error else \
                self.count(case, functions[case.name], remarks) + \
                self.compare(case, before, after)
            if self.options.fault:
                self.changed += case.is_changed
                if case.is_changed and not problems:
                    self.report(case, ["the fault is not detected"], "")
            elif problems:
                self.report(case, problems, remarks)
            elif self.options.verbose:
                print(f"{case.name}: right", case.text)

    def report(self, case, problems, remarks):
        self.failed += 1
        print(f"{case.name}: {'; '.join(problems)}\n  {case.text}")
        for line in remarks.splitlines():
            if f"Function={case.name} " in line:
                print("  " + line.split("Category:posenc | ")[-1])

    def split(self, module):
        """Returns what precedes the functions of a module, and these by name. The last one
        has the end of the module."""
        head, *parts = re.split(r"(?=^  func\.func )", module, flags=re.M)
        return head, {re.search(r"@(\w+)", part)[1]: part for part in parts}

    def inject(self, function, case):
        """Returns the function with the fault."""
        if not self.options.fault:
            return function
        if self.options.fault == "count":
            case.is_changed, case.rotations = True, case.rotations + 1
            return function
        changed = re.sub(*FAULTS[self.options.fault], function)
        case.is_changed = changed != function
        return changed

    def count(self, case, function, remarks):
        """Compares the operations and the remarks."""
        problems = []
        of_case = [line for line in remarks.splitlines()
                   if f"Function={case.name} " in line]
        for what, expected in (("a rotation", case.like_rotations),
                               ("attention", case.like_attentions)):
            found = sum(f"looks like {what}" in line for line in of_case)
            if expected is not None and found != expected:
                problems.append(f"{found} remarks on {what}, expected {expected}")
        for what, expected, operation in (("rotations", case.rotations, "posenc.rotate"),
                                          ("attentions", case.attentions, "posenc.attention")):
            found = len(re.findall(re.escape(operation) + r"\b", function))
            if expected is not None and found != expected:
                problems.append(f"{found} {what} found, expected {expected}")
        return problems

    def compare(self, case, before, after):
        """Compares the results."""
        problems = []
        files = [f"@{self.folder}/{case.name}-{number}.npy"
                 for number in range(len(case.g.results))]
        inputs = [f"--function={case.name}", *case.g.get_inputs()]
        first = self.call(self.runner, before, *inputs, *(f"--output={one}" for one in files))
        tolerance = case.get_tolerance()
        second = self.call(self.runner, after, *inputs,
                           *(f"--expected_output={one}" for one in files),
                           f"--atol={tolerance}", f"--rtol={tolerance}")
        if first.returncode:
            problems.append(f"does not run: {first.stdout}")
        elif second.returncode:
            problems.append(second.stdout.strip())
        return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS)
    parser.add_argument("compiler")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--only")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--fault", choices=list(FAULTS))
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    numbers = list(map(int, options.only.split(","))) if options.only else \
        range(options.count)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        checker = Checker(options, folder)
        for start in range(0, len(numbers), PER_MODULE):
            cases = [Case(options.seed, number)
                     for number in numbers[start:start + PER_MODULE]]
            checker.check(cases, start)
    if options.fault:
        print(f"{options.fault}: {checker.changed - checker.failed} of {checker.changed} "
              "functions fail")
        return checker.failed != 0 or checker.changed == 0
    print(f"{len(numbers) - checker.failed} of {len(numbers)} functions are right")
    return checker.failed != 0


if __name__ == "__main__":
    sys.exit(main())
