# ===- hlo-search.py - random programs of StableHLO ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Compiles random programs of StableHLO and compares their results with NumPy's.

    python python/benchmarks/hlo-search.py --compiler=build/bin/posenc-compile --count=1000

Program n of a seed depends on the seed and n alone; --only=n repeats it. A program has up
to --length operations, with sizes that are constant or dynamic, 0 and 1 among them, and
integers at the ends of their types, NaN, infinities and zeros of both signs. It is
compiled with a level of optimization, a target, --raise and a number of threads that are
drawn, too; --flags gives them instead.

All values of a program are results, and each is compared with what NumPy computes in f64
or in integers of the values that the compiled program itself returned for its operands,
so that errors do not add up. Moves, integers, comparisons, conversions and correctly
rounded operations must be equal, also in the sign of zeros; others may err by some units
in the last place, sums by the rounding of their terms. Then the program is compiled with
its last value as the only result, which must be the same, up to such errors. With --jax,
JAX evaluates programs as well; it judges the interpreter, and needs static sizes.

A program that is wrong, or on which the compiler or the call crashes, is shortened and
printed, and the search ends with 1. One that is refused counts as refused: --verbose
prints the reasons. --fault=NAME changes each program before it is compiled: each one
whose results depend on that must be reported.
"""

import argparse
import collections
import functools
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import numpy as np
import posenc

# Each adds its operations to OPERATIONS.
import hlo_elementwise  # noqa: F401
import hlo_moves  # noqa: F401
import hlo_reductions  # noqa: F401
import search_limits
from hlo_programs import DTYPES, OPERATIONS, SIZES, Program, cast, is_float


class Wrong(Exception):
    """A result that is not that of NumPy."""


class Refused(Exception):
    pass


# ===----------------------------------------------------------------------===#
# Comparison
# ===----------------------------------------------------------------------===#

def compare_exactly(got, expected):
    """Whether floats are equal; NaN equals NaN, and zeros have signs."""
    with np.errstate(all="ignore"):
        same = (got == expected) & (np.signbit(got) == np.signbit(expected))
    return same | np.isnan(got) & np.isnan(expected)


def find_difference(got, expected, bound):
    """The first index at which a result is wrong, or None."""
    if bound is None:
        same = compare_exactly(got, expected)
    else:
        with np.errstate(all="ignore"):
            same = (np.abs(got - expected) <= bound) | (got == expected) | \
                np.isnan(got) & np.isnan(expected) | np.isposinf(bound)
    if np.all(same):
        return None
    return tuple(int(i) for i in np.argwhere(~same)[0])


def check_result(op, got, operands, sizes, where):
    """Compares one value with what NumPy computes of its operands."""
    shape, element = op.result.shape(sizes), op.result.element
    if got.shape != shape or got.dtype != DTYPES[element]:
        raise Wrong(f"{where}: {op.result.name} = {op.name} has type {got.dtype}{got.shape}")
    expected = np.asarray(op.compute(sizes, *operands))
    if expected.shape != shape:
        raise Wrong(f"the interpreter gives {expected.shape} for {op.name} of {shape}")
    if not is_float(element):
        at = np.argwhere(got != cast(expected, element))
        at = tuple(int(i) for i in at[0]) if len(at) else None
    else:
        rounded = cast(expected, element).astype(np.float64)
        bound = op.error(rounded, element, sizes, *operands) if op.error else None
        if op.name in ("maximum", "minimum", "reduce", "clamp") and bound is None:
            bound = np.zeros(shape)  # Zeros have no order.
        if bound is not None:
            bound = np.broadcast_to(bound, shape)
        at = find_difference(got.astype(np.float64), rounded, bound)
    if at is not None:
        values = [np.broadcast_to(x, shape)[at] if x.ndim == len(shape) and x.shape == shape
                  else f"{x.dtype}{x.shape}" for x in operands]
        raise Wrong(f"{where}: {op.result.name}{list(at)} = {op.name} is {got[at]!r}, expected "
                    f"{cast(expected, element)[at]!r} of {values}")


# ===----------------------------------------------------------------------===#
# Posenc
# ===----------------------------------------------------------------------===#

TARGETS = ["x86-64-v3", "x86-64-v4", "host"]


def draw_flags(rng):
    return [f"--opt-level={rng.choice([0, 0, 3])}", f"--target={rng.choice(TARGETS)}",
            f"--raise={rng.choice(['yes', 'no'])}"]


class Search:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.fault = FAULTS[options.fault] if options.fault else lambda text: text
        self.operators = collections.Counter()

    def compile(self, text, flags):
        """Returns the function of a module."""
        path, library = self.folder / "program.mlir", self.folder / "libprogram.so"
        library.unlink(missing_ok=True)
        path.write_text(self.fault(text))
        done = subprocess.run([self.options.compiler, path, "-o", library, "--no-warnings",
                               *flags], capture_output=True, text=True,
                              timeout=search_limits.COMPILER_SECONDS)
        message = done.stderr.replace(f"{path}:", "").strip()
        if done.returncode not in (0, 1):
            raise Wrong(f"exit code {done.returncode}: {message[:600]}")
        if done.returncode:
            if re.search("internal error|LLVM|failed to legalize|operand #|unrealized|cannot link",
                         message):
                raise Wrong(message[:600])
            raise Refused(message.splitlines()[0] if message else "no message")
        return posenc.load(library).main

    def call(self, function, inputs):
        try:
            results = function(*inputs)
        except posenc.Error as error:
            raise Refused(f"call: {error}") from None
        results = results if isinstance(results, (tuple, list)) else [results]
        return [np.asarray(x) for x in results]

    def check(self, program, operations, number):
        """Raises Wrong or Refused."""
        rng = random.Random(f"flags {self.options.seed} {number}")
        flags, threads = draw_flags(rng), rng.choice([1, 2, 3])
        if self.options.flags is not None:
            flags = self.options.flags.split()
        os.environ["OMP_NUM_THREADS"] = str(threads)
        arguments, needed = program.needed(operations)
        function = self.compile(program.source(needed, arguments, needed), flags)
        own = {}
        for call, sizes in enumerate(SIZES if program.is_dynamic else SIZES[:1]):
            inputs = self.draw_inputs(program, arguments, call)
            # Results of one call must not depend on what the last one left.
            results = self.call(function, inputs)
            values = dict(zip([one.name for one in arguments], inputs))
            values.update(zip([op.result.name for op in needed], results))
            where = f"{' '.join(flags)}, {threads} threads, sizes {sizes}"
            for op in needed:
                check_result(op, values[op.result.name],
                             [values[one.name] for one in op.operands], sizes, where)
            own[call] = values
        self.check_last(program, arguments, needed, flags, own)
        self.operators.update(op.name for op in needed)

    def draw_inputs(self, program, arguments, call):
        arrays = program.inputs(call, hash_number(f"{self.options.seed}"))
        names = [value.name for value in program.arguments]
        return [arrays[names.index(one.name)] for one in arguments]

    def check_last(self, program, arguments, needed, flags, own):
        """Compiles the program with its last value as the only result."""
        last = needed[-1]
        arguments, needed = program.needed([last])
        if len(needed) < 2:
            return
        # Roundings of the operands may make a later comparison another one.
        inexact = {op.result.name for op in needed if op.error}
        for op in needed:
            if inexact & {one.name for one in op.operands}:
                inexact.add(op.result.name)
        if inexact & {op.result.name for op in needed}:
            return
        function = self.compile(program.source([last], arguments, needed), flags)
        for call, values in own.items():
            [got] = self.call(function, self.draw_inputs(program, arguments, call))
            expected = values[last.result.name]
            if got.dtype != expected.dtype or got.shape != expected.shape:
                raise Wrong(f"alone, the last value is {got.dtype}{got.shape}")
            at = find_difference(got.astype(np.float64), expected.astype(np.float64),
                                 np.zeros(got.shape))
            if at is not None:
                raise Wrong(f"{' '.join(flags)}: alone, {last.result.name}{list(at)} is "
                            f"{got[at]!r}, with all values {expected[at]!r}")

    def shrink(self, program, number):
        """Leaves out operations as long as the program is wrong."""
        kept = list(program.operations)
        for op in reversed(program.operations):
            fewer = [one for one in kept if one is not op]
            if not fewer or any(value is op.result for one in fewer for value in one.operands):
                continue
            if self.run(program, fewer, number)[0] in ("wrong", "crashed"):
                kept = fewer
        # Also the operations that only the last one needs.
        for op in kept:
            needed = program.needed([op])[1]
            if len(needed) < len(kept) and \
                    self.run(program, [op], number)[0] in ("wrong", "crashed"):
                return needed
        return kept

    def run(self, program, operations, number):
        """Checks in a process of its own. Returns the kind of the outcome, and its text."""
        read, write = os.pipe()
        child = os.fork()
        if not child:
            os.close(read)
            search_limits.limit_child()
            with os.fdopen(write, "w") as file:
                try:
                    self.check(program, operations, number)
                    result = "right", "", sorted(self.operators.elements())
                except Wrong as error:
                    result = "wrong", str(error), []
                except Refused as error:
                    result = "refused", str(error), []
                except subprocess.TimeoutExpired:
                    result = "wrong", "the compiler does not end", []
                except Exception as error:
                    result = "wrong", f"{type(error).__name__}: {error}", []
                json.dump(result, file)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as file:
            text = file.read()
        _, status = os.waitpid(child, 0)
        if status or not text:
            return "crashed", search_limits.describe_status(status), []
        return json.loads(text)


def hash_number(text):
    return functools.reduce(lambda x, c: (x * 31 + c) & 0x7FFFFFFF, text.encode(), 7)


# ===----------------------------------------------------------------------===#
# JAX, and faults
# ===----------------------------------------------------------------------===#

def judge(program, seed):
    """Raises Wrong if JAX disagrees with the interpreter."""
    os.environ.setdefault("JAX_ENABLE_X64", "1")
    import jax
    from jax._src.lib.mlir import ir
    from jax._src.interpreters import mlir as jax_mlir
    arguments, needed = program.needed(program.operations)
    needed_static = [op for op in needed if not op.name.startswith("dynamic_") or
                     op.name in ("dynamic_slice", "dynamic_update_slice")]
    if len(needed_static) != len(needed):
        raise Refused("dynamic")
    if program.is_dynamic and any(op.name == "get_dimension_size" for op in needed):
        raise Refused("dynamic")
    sizes = SIZES[0]
    text = program.source(needed, arguments, needed, sizes)
    with jax_mlir.make_ir_context():
        module = ir.Module.parse(text)
        client = jax.devices("cpu")[0].client
        from jaxlib import _jax
        executable = client.compile_and_load(
            jax_mlir.module_to_bytecode(module), _jax.DeviceList((jax.devices("cpu")[0],)))
    arrays = program.inputs(0, hash_number(str(seed)))
    names = [value.name for value in program.arguments]
    inputs = [arrays[names.index(one.name)] for one in arguments]
    results = executable.execute([jax.device_put(x) for x in inputs])
    values = dict(zip([one.name for one in arguments], inputs))
    values.update(zip([op.result.name for op in needed], map(np.asarray, results)))
    for op in needed:
        check_result(op, values[op.result.name], [values[one.name] for one in op.operands],
                     sizes, "JAX")


FAULTS = {
    "next-operator": lambda text: re.sub(
        r'"stablehlo\.(add|maximum|floor|sine|and|reverse)"',
        lambda m: '"stablehlo.%s"' % {"add": "subtract", "maximum": "minimum",
                                      "floor": "ceil", "sine": "cosine", "and": "or",
                                      "reverse": "abs"}[m[1]] if m[1] != "reverse" else m[0],
        text),
    "swapped-operands": lambda text: re.sub(
        r'"stablehlo\.(subtract|divide|remainder|shift_left)"\((%\w+), (%\w+)\)',
        r'"stablehlo.\1"(\3, \2)', text),
    "other-direction": lambda text: re.sub(
        r"comparison_direction (LT|LE|GT|GE)>",
        lambda m: "comparison_direction %s>" % {"LT": "LE", "LE": "LT", "GT": "GE",
                                                "GE": "GT"}[m[1]], text),
    "next-start": lambda text: re.sub(
        r"edge_padding_low = array<i64: (-?\d+)(.*?)>, edge_padding_high = array<i64: (-?\d+)",
        lambda m: f"edge_padding_low = array<i64: {int(m[1]) + 1}{m[2]}>, "
                  f"edge_padding_high = array<i64: {int(m[3]) - 1}", text),
    "signed": lambda text: text.replace("ui8", "i8"),
    "other-dimension": lambda text: re.sub(
        r"dimensions = array<i64: (\d)>", lambda m: f"dimensions = array<i64: {int(m[1]) ^ 1}>",
        text),
}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--only", type=int, help="the number of one program")
    parser.add_argument("--length", type=int, default=6)
    parser.add_argument("--operations", default=",".join(OPERATIONS), help="default: all")
    parser.add_argument("--compiler", default="posenc-compile")
    parser.add_argument("--flags", help="of the compiler (default: drawn)")
    parser.add_argument("--jax", action="store_true", help="judge the interpreter by JAX")
    parser.add_argument("--fault", choices=sorted(FAULTS))
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args(arguments)
    os.environ.setdefault("POSENC_CACHE", "off")
    np.seterr(all="ignore")
    counts, operators = collections.Counter(), collections.Counter()
    numbers = range(options.count) if options.only is None else [options.only]
    with tempfile.TemporaryDirectory() as folder:
        search = Search(options, pathlib.Path(folder))
        for number in numbers:
            program = Program(f"{options.seed} {number}", options.length,
                              options.operations.split(","))
            if not program.operations:
                continue
            if options.jax:
                try:
                    judge(program, options.seed)
                    kind, text, names = "right", "", [op.name for op in program.operations]
                except (Refused, Wrong) as error:
                    kind = "refused" if isinstance(error, Refused) else "wrong"
                    text, names = str(error), []
                except Exception as error:
                    kind, text, names = "refused", str(error).splitlines()[0], []
            else:
                kind, text, names = search.run(program, program.operations, number)
            counts[kind] += 1
            operators.update(names)
            if kind in ("wrong", "crashed"):
                # To find a smaller one takes long if it does not end.
                print(f"program {number}: {kind}: {text}", flush=True)
                kept = program.operations if options.jax else search.shrink(program, number)
                text = search.run(program, kept, number)[1] or text if not options.jax else text
                needed_arguments, needed = program.needed(kept)
                print(f"shortened: {text}\n"
                      f"{program.source(needed, needed_arguments, needed)}", flush=True)
            elif options.verbose and kind == "refused":
                print(f"program {number}: refused: {text}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) +
          f"; {len(operators)} operations, {sum(operators.values())} in all")
    return 1 if counts["wrong"] or counts["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
