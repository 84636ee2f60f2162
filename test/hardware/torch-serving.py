#!/usr/bin/env python3
# ===- torch-serving.py - decode and ragged calls beside PyTorch's -----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Times decode, pages, ragged calls, MLA and appended caches beside PyTorch's functions,
and appends a table to a file:

    torch-serving.py TABLE.md LIBRARY.so CASES.txt [--seconds=S] [--repetitions=N]
        [--match=TEXT] [--device=cpu]

serving.txt describes the cases. PyTorch has contiguous caches where Posenc has pages, and
calls one function for the sequences of one query and one for a prompt. The functions are
timed in turn: cuDNN, FlashAttention 2 and FlexAttention. Calls are in CUDA graphs, so
that the time of the host does not count; a small cache stays in the L2 cache. Before, the
results are compared with PyTorch's.

No case starts after S seconds, and FlexAttention, which is compiled for each shape, is
left out in the last half of them. Exit codes: 0 success, 1 a wrong result or an error, 77
no PyTorch or no GPU. --device=cpu tries the script with the library's code for CPUs.
"""

import argparse
import math
import pathlib
import statistics
import sys
import time

from kernel_library import Library, Table, first_line, time_calls

COLUMNS = ["cudnn", "flash", "flex"]
# FlexAttention is compiled for each of these: about 15 seconds.
FLEX = ["decode/cache/bf16/16x8192", "latent/cache/bf16/16x8192",
        "decode/cache/bf16/1x32768"]
PAGE = 16
# A graph has this number of calls.
GRAPH_CALLS = 20


def parse_runs(text):
    numbers = []
    for run in text.split(","):
        count, star, number = run.partition("*")
        numbers += [int(number)] * int(count) if star else [int(run)]
    return numbers


def make_integers(text, shape):
    """Returns the elements of an integer tensor; see Integers.h."""
    count = math.prod(shape)
    kind, colon, rest = text.partition(":")
    if text == "iota":
        return list(range(count))
    if not colon:
        runs = parse_runs(text)
        return runs * count if len(runs) == 1 else runs
    runs = parse_runs(rest)
    if kind == "starts":
        sums = [0]
        for number in runs:
            sums.append(sums[-1] + number)
        return sums
    # A block table, with pages in another order.
    total = sum(runs)
    step = max(total * 5 // 8, 1)
    while math.gcd(step, total) != 1:
        step += 1
    table, page = [], 0
    for pages in runs:
        table += [(page + i * step) % total for i in range(pages)]
        table += [0] * (shape[1] - pages)
        page += pages * step
    return table


class Case:
    """A line of the cases: `name function sizes word...`."""

    def __init__(self, line):
        self.name, self.function, sizes, *words = line.split()
        self.kind = self.name.split("/")[0]
        self.sizes = [int(size) for size in sizes.split("x")]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        self.values = options["values"].split(";")
        self.operations = float(options.get("ops", 0))
        self.bytes = float(options.get("bytes", 0))
        self.is_in_place = "in-place" in words


def read_cases(path):
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    return [Case(line) for line in lines if line.strip() and line[0] != "#"]


class Call:
    """A call of a function of the library, its operands and its results."""

    def __init__(self, torch, library, case, device):
        types = {"bf16": torch.bfloat16, "f32": torch.float32, "i32": torch.int32,
                 "i64": torch.int64, "f8E4M3FN": torch.float8_e4m3fn}
        function = library.functions[case.function]
        sizes = dict(zip(function["sizes"], case.sizes))
        values = list(case.values)

        def make(argument):
            shape = [sizes.get(size, size) for size in argument["shape"]]
            dtype = types[argument["dtype"]]
            if argument["dtype"][0] == "i":
                numbers = make_integers(values.pop(0), shape)
                return torch.tensor(numbers, dtype=dtype, device=device).reshape(shape)
            if argument["dtype"][:2] == "f8":
                return torch.zeros(shape, dtype=torch.uint8, device=device).view(dtype)
            return torch.randn(shape, dtype=dtype, device=device)

        self.inputs = [make(argument) for argument in function["inputs"]]
        if case.is_in_place:
            self.outputs = self.inputs[-len(function["outputs"]):]
        else:
            self.outputs = [make(argument) for argument in function["outputs"]]
        described = [(tensor.data_ptr(), argument["dtype"], list(tensor.shape))
                     for tensor, argument in zip(
                         [*self.inputs, *self.outputs],
                         [*function["inputs"], *function["outputs"]])]
        size = library.get_workspace_bytes(case.function, described) or 0
        self.workspace = torch.empty(size, dtype=torch.uint8, device=device)
        self.call = library.prepare(
            case.function, described, device,
            lambda: torch.cuda.current_stream().cuda_stream, self.workspace.data_ptr())
        self.bytes = case.bytes or sum(
            tensor.numel() * tensor.element_size()
            for tensor in [*self.inputs, *self.outputs] if tensor.is_floating_point())

    def __call__(self):
        self.call()


class Peers:
    """PyTorch's functions of attention."""

    def __init__(self, torch, device):
        self.torch, self.device = torch, device
        self.flex = None

    def make(self, case, call, has_flex):
        """Returns {name: function}; a result has the elements of the library's."""
        if case.kind == "append":
            return {}
        parts = self.get_parts(case, call)
        peers = {}
        if case.kind != "latent":  # Others have heads of 256 channels at most.
            if self.device == "cpu":
                peers["flash"] = self.attend_all(parts, None)
            else:
                from torch.nn.attention import SDPBackend

                peers["cudnn"] = self.attend_all(parts, SDPBackend.CUDNN_ATTENTION)
                peers["flash"] = self.attend_all(parts, SDPBackend.FLASH_ATTENTION)
        if has_flex and any(case.name.startswith(name) for name in FLEX):
            peers["flex"] = self.make_flex(parts)
        return peers

    def get_parts(self, case, call):
        """Returns lists of q, k, v [sequence, head, token, channel], and whether the
        mask is causal."""
        q, k = call.inputs[:2]
        if case.kind == "latent":
            return [(q.transpose(1, 2), k, k[..., :512], False)]
        v = call.inputs[2]
        if case.function == "decode_128":
            return [(q.transpose(1, 2), k, v, False)]
        table = call.inputs[3].long()
        lengths = call.inputs[-1].tolist()

        def gather(pages, row, count, length):
            own = table[row:row + count, :-(-length // PAGE)]
            tokens = pages[own].flatten(1, 2)[:, :length]
            return tokens.transpose(1, 2).contiguous()

        if case.function == "pages_128":
            k, v = (gather(pages, 0, len(lengths), lengths[0]) for pages in (k, v))
            return [(q.transpose(1, 2), k, v, False)]
        starts = call.inputs[4].tolist()
        parts = []
        first = 0
        while first < len(lengths):
            # Sequences with as many queries and keys are one call.
            shape = (starts[first + 1] - starts[first], lengths[first])
            last = first
            while last < len(lengths) and shape == (
                    starts[last + 1] - starts[last], lengths[last]):
                last += 1
            rows = q[starts[first]:starts[last]].unflatten(0, (last - first, shape[0]))
            parts.append((rows.transpose(1, 2).contiguous(),
                          gather(k, first, last - first, shape[1]),
                          gather(v, first, last - first, shape[1]), shape[0] > 1))
            first = last
        return parts

    def attend_all(self, parts, backend):
        import contextlib

        from torch.nn.attention import sdpa_kernel

        attend = self.torch.nn.functional.scaled_dot_product_attention

        def run():
            with sdpa_kernel(backend) if backend else contextlib.nullcontext():
                return [attend(q, k, v, is_causal=is_causal, enable_gqa=True)
                        for q, k, v, is_causal in parts]
        return run

    def make_flex(self, parts):
        from torch.nn.attention import flex_attention as flex

        if not self.flex:
            self.flex = self.torch.compile(flex.flex_attention, dynamic=False)
        return lambda: [self.flex(q, k, v, enable_gqa=True) for q, k, v, _ in parts]


def get_distance(call, results):
    """Returns the norm of the difference of two results, relative to one."""
    call()
    import torch

    right = torch.cat([result.transpose(1, 2).flatten().float() for result in results])
    ours = call.outputs[0].flatten().float()
    return float((ours - right).norm() / right.norm())


class Timer:
    """Times calls, in CUDA graphs where they can be captured."""

    def __init__(self, torch, device):
        self.torch, self.device = torch, device

    def prepare(self, call):
        """Returns a function and how many calls it makes."""
        call()
        if self.device == "cpu":
            return call, 1
        torch = self.torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            call()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(GRAPH_CALLS):
                call()
        return graph.replay, GRAPH_CALLS

    def measure(self, calls, repetitions, seconds):
        """Returns {name: seconds of a call}, medians of measurements in turn, and what
        could not be measured."""
        prepared, problems = {}, []
        for name, call in calls.items():
            try:
                prepared[name] = self.prepare(call)
            except Exception as error:  # PyTorch raises many kinds.
                problems.append(f"no {name}: {first_line(error)}")
        counts = {name: min(max(int(seconds / time_calls(self.torch, self.device, run, 1)), 1), 50)
                  for name, (run, _) in prepared.items()}
        times = {name: [] for name in prepared}
        for _ in range(repetitions):
            for name, (run, number) in prepared.items():
                times[name].append(time_calls(self.torch, self.device, run, counts[name]) / number)
        return {name: statistics.median(many) for name, many in times.items()}, problems


def measure_case(case, library, peers, timer, has_flex, repetitions):
    """Returns a row of the table, and whether it is right."""
    call = Call(peers.torch, library, case, peers.device)
    calls, notes, is_right = {"ours": call}, [], True
    for name, peer in peers.make(case, call, has_flex).items():
        try:
            distance = get_distance(call, peer())
        except Exception as error:
            notes.append(f"no {name}: {first_line(error)}")
            continue
        calls[name] = peer
        if not distance < 1e-2:
            notes.append(f"{distance:.1e} from {name}")
            is_right = False
    times, problems = timer.measure(calls, repetitions,
                                    0.02 if peers.device == "cuda" else 0)
    notes += problems
    if "ours" not in times:
        raise RuntimeError("; ".join(notes))
    rate = (f"{case.operations / times['ours'] / 1e12:.0f} TFLOP/s" if case.operations
            else f"{call.bytes / times['ours'] / 1e9:.0f} GB/s")
    cells = [case.name, f"{times['ours'] * 1e6:.1f}", rate]
    cells += [f"{times[name] / times['ours']:.2f}" if name in times else "-"
              for name in COLUMNS]
    return ("| " + " | ".join([*cells, "; ".join(notes).replace("|", "/")]) + " |",
            is_right)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("table")
    parser.add_argument("library")
    parser.add_argument("cases")
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--match", default="")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    options = parser.parse_args()
    begin = time.monotonic()
    try:
        import torch
    except Exception as error:  # A broken installation may raise anything.
        print(f"skipped: no PyTorch: {error}")
        sys.exit(77)
    if options.device == "cuda" and not torch.cuda.is_available():
        print("skipped: PyTorch has no GPU")
        sys.exit(77)
    table = Table(options.table)
    table.write(f"\nDecode and serving beside PyTorch {torch.__version__}, timed in turn. "
                "Columns of other functions have\ntheir time / Posenc's.\n\n"
                "| case | us | rate | " + " | ".join(COLUMNS) + " | |\n"
                "|---|---:|---:|" + "---:|" * len(COLUMNS) + "---|")
    library = Library(options.library)
    peers, timer = Peers(torch, options.device), Timer(torch, options.device)
    cases = [case for case in read_cases(options.cases) if options.match in case.name]
    failed = 0
    for case in cases:
        spent = time.monotonic() - begin
        if spent > options.seconds:
            row, is_right = f"| {case.name} | | | | | | no time was left |", True
        else:
            try:
                row, is_right = measure_case(case, library, peers, timer,
                                             spent < options.seconds / 2,
                                             options.repetitions)
            except Exception as error:
                row = f"| {case.name} | | | | | | failed: {first_line(error)} |"
                is_right = False
        failed += not is_right
        table.write(row)
    print(f"{len(cases)} cases, {failed} wrong")
    sys.exit(1 if failed or not cases else 0)


main()
