# ===- models.py - a decoder by several systems -------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Times a decoder with the shapes of Llama 3.2 1B and random weights: Posenc from ONNX
with a file of weights, and other systems, each once in each round.

    python python/benchmarks/models.py --compiler build/bin/posenc-compile
    python python/benchmarks/models.py --layers 16 --precisions f32,int4 --threads 1

A precision is f32, bf16, f16, int8 or int4; codes of 8 and 4 bits have blocks of 32 and
activations of f32, and `int4:4` has accuracy level 4. A prefill begins with empty caches
and computes the logits of its last token; a decode appends one token to caches of its
length. Each system has a process of its own, and caches that it extends in place where it
can. torch, onnxruntime, openvino and torch-mlir are used if they are installed; torch has
no operator for the codes.

A row has the median of the rounds and their range; the median of the CPU time of all
threads, which other programs disturb less; the medians of Posenc's time and of its CPU
time over those of the same round; for a prefill the fraction of the FMA peak, and for a
decode that of the read bandwidth, which the bytes of weights and caches take; and the
largest difference of the logits from the first row, relative to the largest. Peak and
bandwidth are measured by posenc-bench in the same run.

With --max-difference the last line counts the rows whose difference is less; a way that
fails is a row only if it is Posenc's. With --alone the systems run one after the other,
which takes the memory of one, and the ratios are not those of the same moments.
"""

import argparse
import dataclasses
import importlib.util
import json
import logging
import pathlib
import statistics
import subprocess
import sys
import tempfile
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "test" / "Import" / "Inputs"))
from llama_model import Llama, write_llama
from measured import MIB, run
from model_ways import TITLES, WAYS, Case, Model, System

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = {"torch": "torch", "onnxruntime": "onnxruntime", "openvino": "openvino"}
BYTES = {"f32": 4, "f16": 2, "bf16": 2}


def make_config(precision, options):
    """Returns the shapes of a model; `int4:4` has accuracy level 4."""
    kind, _, level = precision.partition(":")
    sizes = {field.name: getattr(options, field.name)
             for field in dataclasses.fields(Llama) if field.name in options}
    codes = {"int8": 8, "int4": 4}.get(kind, 0)
    return Llama(**sizes, dtype="f32" if codes else kind, bits=codes, last=1,
                 accuracy_level=int(level or 1))


def count_elements(config):
    """Returns the elements of the matrices that a token reads."""
    layer = sum(rows * columns for rows, columns in config.matrices.values())
    return config.layers * layer + config.hidden * config.vocabulary


def count_bytes(config, case):
    """Returns the bytes of weights and caches that a token reads."""
    size = BYTES[config.dtype]
    element = config.bits / 8 + size / config.block if config.bits else size
    caches = 2 * config.layers * config.kv_heads * config.head * case.total * size
    return count_elements(config) * element + caches


def count_multiplications(config, case):
    """Returns the floating-point operations of a prefill; attention is causal."""
    head = 2 * config.hidden * config.vocabulary
    pairs = case.tokens * (case.tokens + 1) // 2
    attention = 4 * config.layers * config.hidden * pairs
    return 2 * case.tokens * (count_elements(config) - head // 2) + head + attention


def measure_limit(options, kind, threads):
    """Returns what posenc-bench measures: bytes or floating-point operations a second."""
    inputs = {"fma": ("64x256", "256x512", "64x512"),
              "read": ("1x4096", "4096x16384", "1x16384")}[kind]
    bench = pathlib.Path(options.compiler).with_name("posenc-bench")
    command = [str(bench) if bench.exists() else "posenc-bench",
               str(SOURCE / "examples" / "matmul.mlir"), f"--limit={kind}",
               f"--threads={threads}", "--benchmark_format=json",
               "--benchmark_min_time=0.2"]
    command += [f"--input={shape}xf32={value}"
                for shape, value in zip(inputs, ("random", "random", "0"))]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["benchmarks"][0]["limit"]


def describe_cpu():
    for line in pathlib.Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown CPU"


def compile_model(precision, options, folder):
    """Writes a model and compiles it. Prints what that takes."""
    config = make_config(precision, options)
    path, library = folder / "model.onnx", folder / "libmodel.so"
    places = write_llama(str(path), config, seed=options.seed)
    peak, user, system, elapsed = run([options.compiler, str(path), "-o", str(library),
                                       "--weights=file", "--no-warnings"])
    written = sum((folder / name).stat().st_size for name in ("model.onnx", "model.onnx.data"))
    print(f"{precision}: {written / MIB:,.0f} MiB compile in {user + system:.1f} s of CPU time "
          f"({elapsed:.1f} s) with {peak / MIB:,.0f} MiB of anonymous memory\n", flush=True)
    return Model(config, str(path), places, str(library))


def compare(times, name):
    """Returns the medians of Posenc's time and CPU time over those of another way."""
    return [statistics.median(a[kind] / b[kind] for a, b in zip(times["posenc"], times[name]))
            for kind in (0, 1)]


class Results:
    """The seconds and CPU seconds of each way, its difference, and the errors of those that
    fail."""

    def __init__(self):
        self.times, self.differences, self.errors, self.reference = {}, {}, {}, None

    def measure(self, case, ways, systems, rounds):
        """Times the ways, each once in each round."""
        import numpy as np

        ready = []
        for way in ways:
            try:
                logits = systems[WAYS[way]].ask("prepare", way, case)
                systems[WAYS[way]].ask("measure", way)  # The first calls warm up.
            except RuntimeError as error:
                self.errors[way] = str(error).replace("|", "/")
                continue
            if self.reference is None:
                self.reference = logits
            difference = np.abs(logits - self.reference).max() / np.abs(self.reference).max()
            ready.append(way)
            self.times[way], self.differences[way] = [], float(difference)
        for _ in range(rounds if case.phase == "prefill" else 5 * rounds):
            for way in ready:
                self.times[way].append(systems[WAYS[way]].ask("measure", way))
        for way in ready:
            systems[WAYS[way]].ask("release", way)

    def count(self, limit):
        """Returns the numbers of rows whose difference is less, and of all. A way that no
        other is compared with is not as expected."""
        count = len(self.differences)
        good = sum(one < limit for one in self.differences.values()) if count > 1 else 0
        return good, max(count, 1) + ("posenc" in self.errors)


def group_ways(ways, alone):
    """Returns the lists of ways whose systems run at the same time."""
    if not alone:
        return [ways]
    groups = {}
    for way in ways:
        groups.setdefault(WAYS[way], []).append(way)
    return list(groups.values())


def print_rows(precision, config, case, threads, limits, results):
    times, differences, errors = results.times, results.differences, results.errors
    for way in WAYS:
        row = [precision, f"{case.phase} {case.total:,}", threads, TITLES[way]]
        if way in errors:
            print("|", " | ".join(map(str, row)), "|", errors[way], "| | | | | |")
        if way not in times:
            continue
        elapsed, cpu = zip(*times[way])
        median = statistics.median(elapsed)
        if case.phase == "prefill":
            share = count_multiplications(config, case) / median / limits["fma"]
        else:
            share = count_bytes(config, case) / median / limits["read"]
        ratio = ""
        if "posenc" in times:
            ratio = " / ".join(f"{one:.2f}" for one in compare(times, way))
        print("|", " | ".join(map(str, [
            *row, f"{1e3 * median:.4g}",
            f"{1e3 * min(elapsed):.4g}–{1e3 * max(elapsed):.4g}",
            f"{1e3 * statistics.median(cpu):.4g}", ratio,
            f"{share:.2f}", f"{differences[way]:.1e}"])), "|", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for field in dataclasses.fields(Llama):
        if field.name not in ("dtype", "bits", "accuracy_level", "last", "layers"):
            parser.add_argument(f"--{field.name.replace('_', '-')}", type=field.type,
                                default=field.default)
    parser.add_argument("--layers", type=int, default=2, help="the whole model has 16")
    parser.add_argument("--precisions", default="f32,bf16,f16,int8,int4,int4:4")
    parser.add_argument("--prefill", default="512,2048", help="numbers of tokens")
    parser.add_argument("--decode", default="128,2048", help="numbers of tokens")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5,
                        help="rounds of a prefill, a fifth of those of a decode")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--alone", action="store_true",
                        help="run the systems one after the other")
    parser.add_argument("--max-difference", type=float, help="count the rows with less")
    parser.add_argument("--compiler", default="posenc-compile")
    parser.add_argument("--folder", help="the folder of the models (default: a new one)")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    unknown = set(options.ways.split(",")) - set(WAYS)
    if unknown:
        parser.error(f"expected --ways of {', '.join(WAYS)}; got {', '.join(sorted(unknown))}")
    options.ways = [way for way in WAYS if way in options.ways.split(",")]
    absent = [name for name, package in PACKAGES.items()
              if importlib.util.find_spec(package) is None]
    if absent:
        print(f"not installed: {', '.join(absent)}\n")
    options.ways = [way for way in options.ways if WAYS[way] not in absent]
    cases = [Case("prefill", int(one), 0) for one in options.prefill.split(",") if one]
    cases += [Case("decode", 1, int(one) - 1) for one in options.decode.split(",") if one]
    print(f"{describe_cpu()}; {options.layers} layers, medians of {options.rounds} rounds "
          f"of a prefill and {5 * options.rounds} of a decode\n")
    limits = {threads: {kind: measure_limit(options, kind, threads)
                        for kind in ("fma", "read")}
              for threads in map(int, options.threads.split(","))}
    for threads, both in limits.items():
        print(f"{threads} threads: {both['fma'] / 1e9:.0f} GFLOP/s, "
              f"{both['read'] / 1e9:.1f} GB/s read")
    good = rows = 0
    failed = False
    with tempfile.TemporaryDirectory(prefix="posenc-", dir=options.folder) as name:
        for precision in options.precisions.split(","):
            print()
            model = compile_model(precision, options, pathlib.Path(name))
            print("| type | call | threads | way | ms | range | CPU, ms "
                  "| Posenc / way | of the limit | difference |\n" + "|---" * 10 + "|")
            ways = [way for way in options.ways
                    if not (model.config.bits and WAYS[way] == "torch")]
            for threads, both in limits.items():
                results = [Results() for _ in cases]
                for group in group_ways(ways, options.alone):
                    systems = {system: System(system, model, threads)
                               for system in {WAYS[way] for way in group}}
                    for case, result in zip(cases, results):
                        result.measure(case, group, systems, options.rounds)
                        if not options.alone:
                            print_rows(precision, model.config, case, threads, both, result)
                    for system in systems.values():
                        system.close()
                for case, result in zip(cases, results):
                    if options.alone:
                        print_rows(precision, model.config, case, threads, both, result)
                    failed |= "posenc" in result.errors
                    one, total = result.count(options.max_difference or 0)
                    good, rows = good + one, rows + total
    if options.max_difference is None:
        return 1 if failed else 0
    print(f"{good} of {rows} are as expected")
    return 0 if good == rows else 1


if __name__ == "__main__":
    sys.exit(main())
