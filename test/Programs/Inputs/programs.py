# ===- programs.py - random functions against a separate model -------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""programs.py POSENC-COMPILE FAMILY... [--seed=N] [--count=N] [--keep=FOLDER]

Compiles random functions and compares their results with a model: within the
documented error bounds, or to the bit where the exact result is known. The model
shares no code with the compiler and its reference implementation.

Every function is called on memory that ends or begins at an inaccessible page;
through both entry points; with its tasks in several orders and on several threads;
in place; on strided views; compiled with other tuning; and for another CPU. All
calls must give the same bits, and must not write to inputs or between the rows of
outputs.

`make test` runs a few functions. For a long run:

    python3 programs.py build/bin/posenc-compile rope attention --seed=7 --count=500

Function n of a run depends on the seed and n alone. Failures name the function and
its seed; --keep keeps the compiled modules in a folder."""

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import traceback
import zlib

import numpy as np

import generate_attention
import generate_known
import generate_mixture
import generate_rope
from builder import Function
from kernels import CompileError, Compiler, Library, place
from model import compare

FAMILIES = {
    "rope": [generate_rope.rope, generate_rope.rope, generate_rope.sincos,
             generate_rope.sinusoidal, generate_rope.rotate],
    "attention": [generate_attention.decode, generate_attention.prefill,
                  generate_attention.cached, generate_attention.ragged],
    "append": [generate_attention.append],
    "mixture": [generate_mixture.mixture],
    "known-tables": generate_known.TABLES,
    "known-attention": generate_known.ATTENTION,
}
PER_MODULE = 8


class Mismatch(Exception):
    pass


def make_function(family, seed, number):
    random = np.random.default_rng([seed, number, zlib.crc32(family.encode())])
    f = Function(f"f{number}", random)
    generators = FAMILIES[family]
    generators[number % len(generators)](f)
    return f


class Call:
    """One variant of a call of a function."""

    def __init__(self, library, f, random, in_place=False, at_end=True,
                 strided=False, plain=False, without_unread=False):
        self.without_unread = without_unread
        self.library, self.f, self.random = library, f, random
        self.in_place, self.at_end = in_place, at_end
        self.strided, self.plain = strided, plain

    def run(self):
        """Calls the function and returns the stored outputs."""
        f = self.f
        placed = []
        for _, stored in f.arguments:
            placed.append((stored, None) if stored.ndim == 0 else place(
                stored, self.random, self.at_end, self.strided))
        aliases = (self.library.in_place(f.name) if self.in_place
                   else [None] * len(f.results))
        outputs = []
        for tensor, alias in zip(f.results, aliases):
            if alias is not None:
                outputs.append(placed[alias])
                continue
            shape = tuple(int(d) for d in tensor.shape)
            garbage = np.frombuffer(
                self.random.bytes(int(np.prod(shape)) * tensor.kind.storage.itemsize),
                tensor.kind.storage).reshape(shape)
            outputs.append(place(garbage, self.random, self.at_end, self.strided))
        before = [None if memory is None else memory.copy()
                  for _, memory in placed + outputs]
        call = self.library.call_plain if self.plain else self.library.call_checked
        kinds = [kind for kind, _ in f.arguments] + [t.kind for t in f.results]
        absent = self.library.unread(f.name) if self.without_unread else ()
        code, message = call(f.name, kinds, [a for a, _ in placed + outputs], absent)
        if code != 0:
            raise Mismatch(f"the call returns {code}: {message}")
        results = [np.array(view) for view, _ in outputs]
        self.check_memory(placed, outputs, before)
        return results

    def check_memory(self, placed, outputs, before):
        written = [memory for _, memory in outputs]
        for n, ((view, memory), old) in enumerate(zip(placed + outputs, before)):
            if memory is None:
                continue
            if n < len(placed) and any(memory is w for w in written):
                continue
            if n >= len(placed):
                # Only the elements of an output may be written.
                view[...] = np.frombuffer(b"\0" * view.nbytes, view.dtype).reshape(
                    view.shape)
                masked, mine = memory.copy(), old
                memory[:] = old
                view[...] = np.frombuffer(b"\0" * view.nbytes, view.dtype).reshape(
                    view.shape)
                if not (masked == memory).all():
                    raise Mismatch(f"the call writes between the elements of output "
                                   f"{n - len(placed)}")
                memory[:] = mine
            elif not (memory == old).all():
                raise Mismatch(f"the call writes to input {n}")


def variants(f, base, others, random):
    """Yields the variants of the first call: a name, the call, and the order of its
    tasks."""
    yield "again, at the start of a page", Call(base, f, random, at_end=False), None
    yield "through the plain entry point", Call(base, f, random, plain=True), None
    for order in ("reversed", "random", "threads"):
        yield f"with {order} tasks", Call(base, f, random), order
    if base.unread(f.name):
        for plain in (False, True):
            yield "without the data of unread tensors", Call(
                base, f, random, plain=plain, without_unread=True), None
    can_alias = any(a is not None for a in base.in_place(f.name))
    for name, library in [("", base)] + others:
        if library is not base:
            yield f"compiled {name}", Call(library, f, random), None
            yield f"compiled {name}, with reversed tasks", Call(library, f, random), "reversed"
        if can_alias:
            yield f"in place {name}", Call(library, f, random, in_place=True), None
            yield f"in place {name}, with random tasks", Call(
                library, f, random, in_place=True), "random"
        if f.notes["strided"]:
            yield f"on views {name}", Call(library, f, random, strided=True), None
            yield f"on views {name} at the start of a page", Call(
                library, f, random, strided=True, at_end=False), "random"
            if can_alias:
                yield f"on views {name} in place", Call(
                    library, f, random, strided=True, in_place=True), "reversed"


def check_function(f, base, others, random):
    """Raises Mismatch if a result is wrong or differs between variants."""
    results = Call(base, f, random).run()
    for n, (result, tensor) in enumerate(zip(results, f.results)):
        wrong = compare(result, tensor.value)
        if wrong:
            raise Mismatch(f"result {n}: {wrong}")
        if f.notes.get("equal columns") and (result != result[..., :1]).any():
            raise Mismatch(f"result {n} has different columns")
    for name, call, order in variants(f, base, others, random):
        call.library.set_order(order, random)
        try:
            given = call.run()
        except Mismatch as error:
            raise Mismatch(f"{name}: {error}") from None
        finally:
            call.library.set_order(None)
        for n, (first, result) in enumerate(zip(results, given)):
            if same_bits(f, call.library, base):
                if first.tobytes() != result.tobytes():
                    raise Mismatch(f"{name}: result {n} has different bits: "
                                   + first_difference(first, result))
            else:
                wrong = compare(result, f.results[n].value)
                if wrong:
                    raise Mismatch(f"{name}: result {n}: {wrong}")


def same_bits(f, library, base):
    """Whether two libraries must give the same bits. bf16 dot products add in another
    order than f32 arithmetic."""
    return library.metadata["targets"] == base.metadata["targets"] or (
        not f.notes.get("dots"))


def first_difference(first, second):
    bits = [a.view(f"u{a.itemsize}") for a in (first, second)]
    at = np.argwhere(bits[0] != bits[1])
    one = tuple(at[0])
    return (f"{len(at)} of {first.size}, at {[int(i) for i in one]} "
            f"{bits[1][one]:#x} instead of {bits[0][one]:#x}")


def in_child(action):
    """Runs an action in a child process. Returns its result, or how the process
    ended."""
    read, write = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            answer = action(lambda text: os.write(write, (text + "\n").encode()))
        except BaseException:
            answer = traceback.format_exc()
        os.write(write, json.dumps({"answer": answer}).encode() + b"\n")
        os._exit(0)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as pipe:
        lines = pipe.read().splitlines()
    _, status = os.waitpid(child, 0)
    if status:
        last = lines[-1] if lines else "start"
        return [f"{last}: the process ended with status {status}"
                + (f" (signal {status & 127})" if status & 127 else "")]
    return json.loads(lines[-1])["answer"]


def run_module(functions, libraries, names, seed):
    """Returns the failures of the functions of one module."""
    def action(tell):
        opened = [Library(path) for path in libraries]
        failures = []
        for f in functions:
            tell(f.name)
            random = np.random.default_rng([seed, int(f.name[1:])])
            try:
                check_function(f, opened[0], list(zip(names, opened[1:])), random)
            except Mismatch as error:
                failures.append(f"{f.name}: {error}")
        return failures
    answer = in_child(action)
    return [answer] if isinstance(answer, str) else answer


def check_module(compiler, family, seed, numbers, folder):
    functions = [make_function(family, seed, n) for n in numbers]
    name = f"{family.replace('-', '_')}_{seed}_{numbers[0]}"
    module = os.path.join(folder, name + ".mlir")
    with open(module, "w", encoding="ascii") as file:
        file.write("\n".join(f.text() for f in functions))
    # The first module of a run and known functions have the smallest tuning values.
    is_smallest = numbers[0] == 0 or family.startswith("known")
    random = None if is_smallest else np.random.default_rng([seed, numbers[0]])

    def path(suffix):
        return os.path.join(folder, f"lib{name}{suffix}.so")
    try:
        libraries, names = [compiler.compile(module, path(""))], []
        cpu = in_child(lambda _: Library(libraries[0]).metadata["targets"])[0]
        cpu = cpu.split(":")[-1].split("+")[0]
        if not hasattr(compiler, "fields"):
            compiler.fields = compiler.tuning_fields(module, cpu)
        tuning = compiler.write_tuning(name + ".json", cpu, compiler.fields, random)
        # The level of optimization changes no bits, but the stack use.
        quick = "--opt-level=0"
        libraries.append(compiler.compile(module, path("t"), quick,
                                          "--tuning=" + tuning))
        names.append("with other tuning")
        if platform.machine() == "x86_64":
            libraries.append(compiler.compile(module, path("v3"), quick,
                                              "--target=x86-64-v3"))
            names.append("for x86-64-v3")
        if any(f.notes.get("sums") for f in functions):
            libraries.append(compiler.compile(module, path("w"), "--stack-limit=16384"))
            names.append("with a workspace")
    except CompileError as error:
        return [f"{family} {numbers[0]} to {numbers[-1]}: {error}"]
    failures = run_module(functions, libraries, names, seed)
    return [f"{family} seed {seed}: {failure}" for failure in failures]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("compiler")
    parser.add_argument("families", nargs="+", choices=list(FAMILIES))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=16)
    parser.add_argument("--keep", help="a folder for modules and libraries, which is kept")
    options = parser.parse_args()
    folder = options.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    compiler, failures, count = Compiler(options.compiler, folder), [], 0
    try:
        for family in options.families:
            last = options.first + options.count
            for first in range(options.first, last, PER_MODULE):
                numbers = list(range(first, min(first + PER_MODULE, last)))
                found = check_module(compiler, family, options.seed, numbers, folder)
                for failure in found:
                    print(failure, flush=True)
                failures += found
                count += len(numbers)
    finally:
        if not options.keep:
            shutil.rmtree(folder)
    print(f"{count} functions, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
