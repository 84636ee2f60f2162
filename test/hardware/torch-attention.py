#!/usr/bin/env python3
# ===- torch-attention.py - attention beside PyTorch's ----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Times attention of kernel libraries beside PyTorch's, and appends a table to a file:

    torch-attention.py TABLE.md LIBRARY.so CASES.txt [LIBRARY.so CASES.txt]...
        [--seconds=S] [--repetitions=N] [--match=TEXT] [--device=cpu]
        [--dry-run=RATIO]

attention.txt describes the cases. The functions are timed in turn: Posenc's, those of
PyTorch with the same result (cuDNN, FlashAttention 2, FlexAttention), and a product of
matrices that gives the peak. Several calls are between two events, so that the time of
the host does not count while it is shorter than that of the device. Before, the results
are compared with PyTorch's.

No case starts after S seconds, and FlexAttention, which is compiled for each shape, is
left out in the last third of them. Exit codes: 0 success, 1 a wrong result, an error or
a case that is slower than its floor, 77 no PyTorch or no GPU. --device=cpu tries the
script with the library's code for CPUs. --dry-run only opens the libraries: the times
are invented, RATIO times as long for PyTorch.
"""

import argparse
import pathlib
import re
import statistics
import sys
import time

from kernel_library import Library, Table, first_line, time_calls

COLUMNS = ["cudnn", "flash", "flex"]
MATMUL = 8192
# Functions of scores, from the slopes of ALiBi.
SCORES = {"causal-alibi": lambda slopes: lambda s, b, h, i, j: s + slopes[h] * (j - i),
          "causal-score": lambda _: lambda s, b, h, i, j: s * 0.5}
NAME = re.compile(r"attention/([\w-]+)/(\w+)/(\d+)x(\d+)x(\d+)(?:\+(\d+))?x(\d+)")


class Case:
    """A line of the cases: `name function sizes word...`."""

    def __init__(self, line, library):
        self.name, self.function, sizes, *words = line.split()
        self.library = library
        self.sizes = [int(size) for size in sizes.split("x")]
        self.floors = [word[6:].split(":") for word in words if word[:6] == "floor="]
        match = NAME.fullmatch(self.name)
        if not match or not {"attention", "causal"} & set(words):
            sys.exit(f"error: not a case of attention: {line}")
        self.variant, self.dtype = match.group(1), match.group(2)
        self.batch, self.tokens, self.heads, key_heads, self.dim = (
            int(number) if number else 0 for number in match.groups()[2:])
        self.key_heads = key_heads or self.heads
        self.is_causal = "causal" in words
        # Of scores, which only FlexAttention has.
        self.has_region = self.variant in SCORES
        self.flops = (4 * self.batch * self.heads * self.tokens**2 * self.dim
                      * (0.5 if self.is_causal else 1))

    def get_shape(self, heads):
        return [self.batch, self.tokens, heads, self.dim]


def read_cases(path, library):
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    return [Case(line, library) for line in lines if line.strip() and line[0] != "#"]


class Invented:
    """Takes the place of PyTorch for --dry-run."""

    device, title = "cuda", "invented times"

    def __init__(self, ratio):
        self.ratio = ratio

    def make_peers(self, case, _):
        return dict.fromkeys(["flex"] if case.has_region else ["cudnn", "flash"])

    def prepare(self, case, library, name):
        function = library.functions[name]
        shapes = [case.get_shape(case.heads)] + 2 * [case.get_shape(case.key_heads)]
        tensors = [(None, case.dtype, shape) for shape in shapes]
        if len(function["inputs"]) > 3:
            tensors.append((None, "i64", [case.batch, case.tokens]))
        library.get_workspace_bytes(name, tensors)
        library.prepare(name, tensors + tensors[:1], self.device, None)

    def get_distance(self, _, __):
        return 0.0

    def measure(self, case, calls, _):
        times = dict.fromkeys(calls, 0.001)
        times.update((name, self.ratio * 1e-3) for name in COLUMNS if name in calls)
        times["matmul"] = 1e-3 * 2 * MATMUL**3 / (1.5 * case.flops)
        return times


class Torch:
    """PyTorch: tensors, its functions of attention, and times."""

    def __init__(self, torch, device, repetitions):
        self.torch, self.device, self.repetitions = torch, device, repetitions
        is_cuda = device == "cuda"
        self.stream = lambda: torch.cuda.current_stream().cuda_stream
        name = torch.cuda.get_device_name() if is_cuda else "CPU"
        self.title = f"{name}, PyTorch {torch.__version__}"
        if is_cuda:
            self.title += f", cuDNN {torch.backends.cudnn.version()}"
        size = MATMUL if is_cuda else 64
        self.matrix = self.make([size, size], "bf16")
        self.flex = None

    def make(self, shape, dtype):
        """Returns normally distributed numbers."""
        types = {"bf16": self.torch.bfloat16, "f16": self.torch.float16}
        return self.torch.randn(shape, device=self.device, dtype=types[dtype])

    def prepare(self, case, library, name):
        """Returns a call of a function of the library, its operands and result."""
        torch = self.torch
        q = self.make(case.get_shape(case.heads), case.dtype)
        k, v = (self.make(case.get_shape(case.key_heads), case.dtype) for _ in "kv")
        operands, result = [q, k, v], torch.empty_like(q)
        if len(library.functions[name]["inputs"]) > 3:
            # The same rotation for all queries, none at first, takes as long as any.
            operands.append(torch.zeros([case.batch, case.tokens], dtype=torch.int64,
                                        device=self.device))
        types = {torch.int64: "i64"}
        tensors = [(x.data_ptr(), types.get(x.dtype, case.dtype), list(x.shape))
                   for x in [*operands, result]]
        size = library.get_workspace_bytes(name, tensors) or 0
        workspace = torch.empty(size, dtype=torch.uint8, device=self.device)
        call = library.prepare(name, tensors, self.device, self.stream,
                               workspace.data_ptr())
        call.operands, call.result, call.workspace = operands, result, workspace
        return call

    def make_peers(self, case, has_flex):
        """Returns {name: function of (q, k, v)[batch, head, token, channel]}."""
        if self.device == "cpu":
            return {"flash": lambda q, k, v: self.attend(q, k, v, case)}
        from torch.nn.attention import SDPBackend, sdpa_kernel

        def use(backend):
            def attend(q, k, v):
                with sdpa_kernel(backend):
                    return self.attend(q, k, v, case)
            return attend

        peers = {}
        if not case.has_region:
            peers["cudnn"] = use(SDPBackend.CUDNN_ATTENTION)
            peers["flash"] = use(SDPBackend.FLASH_ATTENTION)
        # Others would take too long to compile.
        is_usual = case.variant in ("full", "causal") and case.tokens == 8192 and (
            case.dim == 128 and case.dtype == "bf16" and case.heads == case.key_heads)
        if has_flex and (is_usual or not peers):
            peers["flex"] = self.make_flex(case)
        return peers

    def attend(self, q, k, v, case):
        options = {"enable_gqa": True} if case.heads != case.key_heads else {}
        return self.torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=case.is_causal, **options)

    def make_flex(self, case):
        from torch.nn.attention import flex_attention as flex

        torch = self.torch
        if not self.flex:
            self.flex = torch.compile(flex.flex_attention, dynamic=False)
        slopes = torch.exp2(-8 * torch.arange(1, case.heads + 1, device=self.device)
                            / case.heads)
        options = {"enable_gqa": True} if case.heads != case.key_heads else {}
        if case.is_causal:
            options["block_mask"] = flex.create_block_mask(
                lambda b, h, i, j: j <= i, None, None, case.tokens, case.tokens,
                device=self.device)
        if case.has_region:
            options["score_mod"] = SCORES[case.variant](slopes)
        return lambda q, k, v: self.flex(q, k, v, **options)

    def get_distance(self, call, peer):
        """Returns the norm of the difference of two results, relative to one."""
        call()
        heads_first = [x.transpose(1, 2) for x in call.operands[:3]]
        right = peer(*heads_first).transpose(1, 2).float()
        return float((call.result.float() - right).norm() / right.norm())

    def measure(self, case, calls, seconds):
        """Returns {name: seconds}, medians of measurements in turn."""
        calls = dict(calls, matmul=lambda: self.matrix @ self.matrix)
        for call in calls.values():
            call()
        if self.device == "cuda":
            self.torch.cuda.synchronize()
        once = {name: time_calls(self.torch, self.device, call, 1)
                for name, call in calls.items()}
        counts = {name: min(max(int(seconds / one), 4), 200) for name, one in once.items()}
        times = {name: [] for name in calls}
        for _ in range(self.repetitions):
            for name, call in calls.items():
                times[name].append(time_calls(self.torch, self.device, call, counts[name]))
        size = self.matrix.shape[0]
        medians = {name: statistics.median(many) for name, many in times.items()}
        medians["matmul"] *= (MATMUL / size) ** 3
        return medians


def measure_case(case, library, source, has_flex, seconds):
    """Returns {name: seconds}, and sentences about what is wrong."""
    problems = []
    ours = source.prepare(case, library, case.function)
    calls = {"ours": ours}
    for name, peer in source.make_peers(case, has_flex).items():
        try:
            distance = source.get_distance(ours, peer)
        except Exception as error:  # PyTorch raises many kinds.
            print(f"{case.name}: no {name}: {first_line(error)}")
            continue
        # Both are bf16 or f16 attention; a wrong row or mask is far beyond.
        if not distance < 1e-2:
            problems.append(f"{distance:.1e} from {name}")
        if peer:
            heads_first = [x.transpose(1, 2) for x in ours.operands[:3]]
            calls[name] = lambda peer=peer, x=heads_first: peer(*x)
        else:
            calls[name] = None
    for other, _ in case.floors:
        if other in library.functions:
            calls[other] = source.prepare(case, library, other)
    if hasattr(ours, "operands") and len(ours.operands) > 3:
        positions = ours.operands[3]
        positions += source.torch.arange(case.tokens, device=source.device)
    return source.measure(case, calls, seconds), problems


def check_floors(case, times):
    """Returns what the case is compared with, and sentences about missed floors."""
    notes, problems = [], []
    for other, floor in case.floors:
        if other not in times:
            continue
        ratio = times[other] / times["ours"]
        if ratio < float(floor):
            problems.append(f"{ratio:.3f} x {other}, below {floor}")
        elif other not in COLUMNS:
            notes.append(f"{ratio:.3f} x {other}")
    return notes, problems


def format_row(case, times, notes):
    rate = case.flops / times["ours"] / 1e12
    peak = 2 * MATMUL**3 / times["matmul"] / 1e12
    cells = [case.name, f"{times['ours'] * 1e6:.1f}", f"{rate:.0f}",
             f"{rate / peak:.2f}"]
    for name in COLUMNS:
        cells.append(f"{times[name] / times['ours']:.2f}" if name in times else "-")
    return "| " + " | ".join(cells + ["; ".join(notes)]) + " |"


def make_source(options):
    if options.dry_run:
        return Invented(options.dry_run)
    try:
        import torch
    except Exception as error:  # A broken installation may raise anything.
        print(f"skipped: no PyTorch: {error}")
        sys.exit(77)
    if options.device == "cuda" and not torch.cuda.is_available():
        print("skipped: PyTorch has no GPU")
        sys.exit(77)
    return Torch(torch, options.device, options.repetitions)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--match", default="")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--dry-run", type=float)
    options = parser.parse_args()
    begin = time.monotonic()
    source = make_source(options)
    lines = ["", f"Attention beside PyTorch ({source.title}), timed in turn. The peak "
             "is that of a bf16 product",
             f"of {MATMUL} x {MATMUL} matrices. Columns of other functions have their "
             "time / Posenc's. Queries are",
             "rotated by Posenc only.", "",
             "| case | us | TFLOP/s | of the peak | " + " | ".join(COLUMNS) + " | |",
             "|---|---:|---:|---:|" + "---:|" * len(COLUMNS) + "---|"]
    table = Table(options.table)
    for line in lines:
        table.write(line)
    failed = 0
    cases = []
    for path, listed in zip(options.files[::2], options.files[1::2]):
        cases += [case for case in read_cases(listed, Library(path))
                  if options.match in case.name]
    for case in cases:
        spent = time.monotonic() - begin
        if spent > options.seconds:
            row = f"| {case.name} | | | | | | | no time was left |"
        else:
            try:
                times, problems = measure_case(
                    case, case.library, source, spent < options.seconds * 2 / 3,
                    0.02 if options.device == "cuda" else 0)
                notes, slow = check_floors(case, times)
                problems += slow
                row = format_row(case, times, notes + problems)
            except Exception as error:
                problems = [first_line(error)]
                row = f"| {case.name} | | | | | | | failed: {problems[0]} |"
            failed += bool(problems)
        table.write(row)
    print(f"{len(cases)} cases, {failed} wrong or slower than their floors")
    sys.exit(1 if failed or not cases else 0)


main()
