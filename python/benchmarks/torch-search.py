# ===- torch-search.py - random programs of PyTorch ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Compiles random programs of PyTorch and compares their results with PyTorch's.

    python python/benchmarks/torch-search.py --door=export --seed=1 --count=1000

Program n of a seed depends on the seed and n alone; --only=n repeats it. A program has up
to --length statements: elementwise operations of mixed types, views, writes in place,
sums, products, indices, rotations and attentions, and near misses of both. Sizes are
constant or dynamic, 0 and 1 among them, and integers are at the ends of their types. The
doors are

- export: torch.export and compile_exported, which needs torch-mlir;
- freeze: the same, with half of the inputs as parameters that are frozen;
- compile: torch.compile(backend="posenc"), where PyTorch runs what is not replaced;
- inductor: the same with Inductor, which takes long.

All values of the program are results. Programs with dynamic sizes are run with three
sets of sizes. If a result is wrong, statements that it does not need are removed and the
program is printed, and the search ends with 1. A program that is refused, while compiling
or by an error of the call, counts as refused: --verbose prints the reasons. So does one
on which torch-mlir crashes; another crash is a failure, as a wrong result is.

--fault=NAME changes each program before it is compiled: each one whose results depend on
that must be reported.
"""

import argparse
import collections
import json
import os
import re
import sys
import warnings

import torch

import posenc
import posenc._torch_export
import posenc.torch
import search_limits
import torch_attentions  # noqa: F401 (adds to STATEMENTS)
from torch_programs import (FLOATS, INTEGERS, STATEMENTS, evaluate, generate,
                            make_module)

warnings.filterwarnings("ignore")


class Wrong(Exception):
    """A result that is not PyTorch's."""


class Refused(Exception):
    pass


FAULTS = {
    "swapped-operands": lambda text: re.sub(r"= (\w+) (-|/|<|>) (\w+)$", r"= \3 \2 \1",
                                            text, flags=re.M),
    "other-axis": lambda text: re.sub(r"(softmax|cumsum|amax|sum)\((\w+), -?\d", r"\1(\2, 0",
                                      text),
    "other-sign": lambda text: text.replace("h1 * c - h2 * s", "h1 * c + h2 * s"),
    "no-writes": lambda text: re.sub(r"^ *w\S*\.(add|mul|zero|fill|neg)_\(.*\n", "", text,
                                     flags=re.M),
    "wrapped-later": lambda text: re.sub(r"(\w+) \+ (\w+)$", r"(\1.double() + \2).to(\1.dtype)",
                                         text, flags=re.M),
}

TOLERANCES = {torch.float64: 1e-3, torch.float32: 1e-3, torch.float16: 4e-2,
              torch.bfloat16: 1e-1}


def agrees(got, expected, scale):
    """Whether results are equal up to rounding. `scale` is the largest number among the
    values that the result depends on."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return False
    if not expected.is_floating_point():
        return torch.equal(got, expected)
    tolerance = TOLERANCES[expected.dtype]
    return torch.allclose(got.double(), expected.double(), equal_nan=True, rtol=tolerance,
                          atol=1e-2 * tolerance * max(scale, 1e-3))


def find_scale(tensor):
    """The largest number, of floats."""
    finite = tensor.double()[torch.isfinite(tensor)] if tensor.is_floating_point() else \
        torch.zeros(0)
    return float(finite.abs().max()) if finite.numel() else 0.0


def find_scales(statements, inputs, values):
    """The scale of each value: the largest number in it, and in the inputs and values that
    it depends on. `inputs` and `values` are tensors by name. A write in place changes
    values before it, so a program that has one has one scale."""
    scales = {name: find_scale(x) for name, x in [*inputs.items(), *values.items()]}
    text = "\n".join(line for _, lines, _ in statements for line in lines)
    if re.search(r"\w_\(|\] *[-+*/]?= ", text):
        return dict.fromkeys(scales, max(scales.values(), default=0))
    for names, lines, _ in statements:
        read = set(re.findall(r"\b[vx]\d+\b", "\n".join(lines)))
        scale = max((scales[name] for name in read if name in scales), default=0)
        scales.update(dict.fromkeys(names, scale))
    return scales


class Search:
    def __init__(self, options):
        self.options = options
        self.fault = FAULTS[options.fault] if options.fault else lambda text: text
        if options.door == "compile":
            # PyTorch runs what is left, which is not tested here.
            from torch._inductor import compile_fx
            compile_fx.compile_fx = lambda module, inputs, **_: module
        if options.door == "inductor":
            # Inductor does not round f16 and bf16 between the operations that it fuses.
            from torch._inductor import config
            config.emulate_precision_casts = True

    def compile(self, program, source):
        """Returns a function of the inputs."""
        module, tensors = make_module(source), [v.tensor for v in program.inputs]
        if self.options.door in ("compile", "inductor"):
            torch._dynamo.reset()
            compiled = torch.compile(module, backend="posenc",
                                     dynamic=True if program.is_dynamic else None)

            def call(*inputs):
                with torch.no_grad():
                    return compiled(*(x.clone() for x in inputs))
            return call
        frozen = []
        if self.options.door == "freeze":
            frozen = [i for i in range(len(tensors)) if i % 2 == 0 and
                      not program.named[i]]
            module = _Frozen(source, tensors, frozen)
        kept = [i for i in range(len(tensors)) if i not in frozen]
        if not kept:
            raise Refused("all inputs are frozen")
        shapes = {v.name: dict.fromkeys(names, torch.export.Dim.AUTO)
                  for v, names in zip(program.inputs, program.named)}
        shapes = [shapes[program.inputs[i].name] for i in kept]
        if self.options.door == "freeze":
            shapes = [shapes]  # The module takes *inputs.
        try:
            exported = torch.export.export(module, tuple(tensors[i] for i in kept),
                                           dynamic_shapes=tuple(shapes)
                                           if any(program.named) else None)
        except Exception as error:
            raise Refused(f"export: {str(error).splitlines()[0]}") from None
        options = {"raise_": False} if self.options.no_raise else {}
        function = posenc.torch.compile_exported(
            exported, freeze=self.options.door == "freeze", opt_level=self.options.opt_level,
            no_warnings=True, constant_limit=program.rng.choice([0, 1 << 20]), **options)
        return lambda *inputs: function(*(inputs[i] for i in kept))

    def check(self, program, statements=None):
        """Raises Wrong, or Refused."""
        source = self.fault(program.source(statements))
        message = None
        try:
            compiled = self.compile(program, source)
        except (posenc.Error, TypeError) as error:
            message = str(error)
        except Refused:
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {str(error)[:400]}"
            # PyTorch cannot decompose some programs that it exports.
            raise (Refused if text.startswith("PendingUnbackedSymbol") else Wrong)(
                text) from None
        if message is not None:
            if re.search("internal error|LLVM|failed to legalize|unrealized", message) or (
                    "operand #" in message and "torch-mlir" not in message):
                raise Wrong(message)
            raise Refused(message)
        refused = None
        for inputs in self.draw_inputs(program):
            try:
                expected = evaluate(program, inputs, statements)
            except Exception:
                continue  # The program is not one for these sizes.
            if any(t.numel() > 40000 for t in expected.values()):
                continue
            try:
                results = compiled(*inputs)
            except (posenc.Error, AssertionError) as error:
                refused = Refused(f"call: {str(error).splitlines()[0]}")
                continue
            except Exception as error:
                raise Wrong(f"{type(error).__name__}: {str(error)[:400]}") from None
            scales = find_scales(statements or program.statements,
                                 {v.name: x for v, x in zip(program.inputs, inputs)},
                                 expected)
            for (name, x), got in zip(expected.items(), results, strict=True):
                if not agrees(got, x, scales[name]):
                    raise Wrong(f"{name} of inputs {[tuple(one.shape) for one in inputs]}: got "
                                f"{got.dtype} {tuple(got.shape)} {got.flatten()[:8].tolist()}"
                                f", expected {x.dtype} {tuple(x.shape)} "
                                f"{x.flatten()[:8].tolist()}")
        if refused:
            raise refused

    def draw_inputs(self, program):
        yield [v.tensor for v in program.inputs]
        if any(program.named):
            yield program.resize(1)
            yield program.resize(2)

    def shrink(self, program):
        """Leaves out statements as long as the program is wrong."""
        kept = list(program.statements)
        for one in reversed(program.statements):
            fewer = [statement for statement in kept if statement is not one]
            text = "\n".join(line for _, lines, _ in fewer for line in lines)
            if not fewer or any(re.search(rf"\b{name}\b", text) for name in one[0]):
                continue
            try:
                self.check(program, fewer)
            except Wrong:
                kept = fewer
            except Exception:
                continue
        return kept


class _Frozen(torch.nn.Module):
    """A program some of whose inputs are buffers."""

    def __init__(self, source, tensors, frozen):
        super().__init__()
        self.program, self.count, self.frozen = make_module(source), len(tensors), frozen
        for i in frozen:
            self.register_buffer(f"b{i}", tensors[i].clone())

    def forward(self, *inputs):
        rest = iter(inputs)
        return self.program(*(getattr(self, f"b{i}") if i in self.frozen else next(rest)
                              for i in range(self.count)))


def run_one(options, number):
    """Returns the kind of the outcome, its text, and the operations that were replaced."""
    search = Search(options)
    is_compile = options.door in ("compile", "inductor")
    # torch-mlir (20261001) extends unsigned integers as if they were signed.
    types = [t for t in FLOATS + INTEGERS + [torch.bool]
             if is_compile or t != torch.uint8]
    program = generate(f"{options.seed} {number}", options.length,
                       options.statements.split(","), may_write_inputs=is_compile,
                       types=types)
    if not program.statements:
        return "empty", "", 0
    kind, text = "right", ""
    try:
        search.check(program)
    except Refused as error:
        kind, text = "refused", str(error).splitlines()[0][:300]
    except Wrong as error:
        reports = posenc.torch.explain_backend()
        print(f"program {number}: wrong: {error}", flush=True)
        search_limits.extend_limit()
        kept = search.shrink(program)
        kind, text = "wrong", f"{error}\n{program.source(kept)}" + "".join(
            f"    {v.name}: {v.dtype} {v.shape} {names or ''}\n"
            for v, names in zip(program.inputs, program.named)) + "".join(
                f"    {report}\n" for report in reports)
    return kind, text, sum(len(report.replaced)
                           for report in posenc.torch.explain_backend(clear=True))


def mark_lowering(file):
    """Writes a line before torch-mlir lowers a program, and another one after it."""
    lower = posenc._torch_export._write_linalg

    def mark(*arguments):
        print("torch-mlir begins", file=file, flush=True)
        result = lower(*arguments)
        print("torch-mlir ends", file=file, flush=True)
        return result

    posenc._torch_export._write_linalg = mark


def run_in_child(options, number):
    """The same in a process of its own, since compilers crash: torch-mlir divides by the
    size 0."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        search_limits.limit_child()
        torch.set_num_threads(1)
        if not options.verbose:  # torch-mlir prints errors.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(write, "w") as file:
            mark_lowering(file)
            json.dump(run_one(options, number), file)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        text = file.read()
    _, status = os.waitpid(child, 0)
    *marks, text = [*text.splitlines(), ""] if text.endswith("\n") else \
        text.splitlines() or [""]
    if status or not text:
        is_theirs = marks[-1:] == ["torch-mlir begins"]
        return "refused" if is_theirs else "crashed", \
            search_limits.describe_status(status) + " in torch-mlir" * is_theirs, 0
    return json.loads(text)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--door", default="export",
                        choices=["export", "freeze", "compile", "inductor"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--only", type=int, help="the number of one program")
    parser.add_argument("--length", type=int, default=6)
    parser.add_argument("--statements", default=",".join(STATEMENTS), help="default: all")
    parser.add_argument("--opt-level", type=int, default=0)
    parser.add_argument("--no-raise", action="store_true", help="as raise_=False")
    parser.add_argument("--fault", choices=sorted(FAULTS))
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args(arguments)
    counts, replaced = collections.Counter(), 0
    numbers = range(options.count) if options.only is None else [options.only]
    for number in numbers:
        kind, text, count = run_in_child(options, number)
        counts[kind] += 1
        replaced += count
        if kind in ("wrong", "crashed") or options.verbose and kind == "refused":
            print(f"program {number}: {kind}: {text}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) + (
        f"; {replaced} operations replaced" if replaced else ""))
    return 1 if counts["wrong"] or counts["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
