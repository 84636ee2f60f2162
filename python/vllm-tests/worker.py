# ===- worker.py - runs models in vLLM -------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Runs cases in vLLM and writes their tokens and log-probabilities.

    python worker.py CASES.json RESULTS.json

It is a process of its own because vLLM selects its attention once in a process. What it
writes after each case is complete, so a case that ends the process loses only itself and
those after it.
"""

import functools
import gc
import json
import os
import random
import sys
import time
import traceback

from layers import count_layers, set_scales


def make_prompts(lengths, vocabulary, repeats):
    """Returns prompts of tokens. With `repeats`, they begin alike and repeat themselves,
    as caches of prefixes and drafts of n-grams need it."""
    generator = random.Random(7)
    prompts = []
    for length in lengths:
        if repeats:
            generator = random.Random(7)
            phrase = [generator.randrange(3, vocabulary) for _ in range(50)]
            tokens = (phrase * (length // len(phrase) + 1))[:length]
        else:
            tokens = [generator.randrange(3, vocabulary) for _ in range(length)]
        prompts.append({"prompt_token_ids": tokens})
    return prompts


def add_sounds(prompts, lengths):
    """Returns prompts of a decoder with sounds for its encoder."""
    import numpy

    generator = numpy.random.default_rng(7)
    return [{"encoder_prompt": {"prompt": "", "multi_modal_data": {"audio": (
                generator.standard_normal(int(16000 * length)).astype("float32"), 16000)}},
             "decoder_prompt": prompt} for prompt, length in zip(prompts, lengths)]


def refuse_first_layer(reason):
    """Makes the plug-in leave the first layer that is created to vLLM."""
    from posenc.vllm import _backend

    find_obstacle, calls = _backend.find_obstacle, []

    def find(*arguments):
        calls.append(arguments)
        return reason if len(calls) == 1 else find_obstacle(*arguments)

    _backend.find_obstacle = find
    return lambda: setattr(_backend, "find_obstacle", find_obstacle)


def change_attention(attributes):
    """Gives vLLM's attention layers other attributes. Returns what undoes it."""
    from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackendImpl as Impl

    initialize = Impl.__init__

    def initialize_and_change(self, *arguments, **keywords):
        initialize(self, *arguments, **keywords)
        for name, value in attributes.items():
            setattr(self, name, value)

    Impl.__init__ = initialize_and_change
    return lambda: setattr(Impl, "__init__", initialize)


def count_all_layers(llm):
    """Returns the numbers of layers, which each process must have."""
    [layers] = {tuple(one) for one in llm.apply_model(count_layers)}
    return list(layers)


def embed(llm, prompts):
    outputs = llm.embed(prompts, use_tqdm=False)
    return {"layers": count_all_layers(llm), "tokens": [], "logprobs": [],
            "prompt_logprobs": [output.outputs.embedding for output in outputs]}


def run(case):
    from vllm import LLM, SamplingParams

    options = {"dtype": "float32", "max_model_len": 2048, "enforce_eager": True,
               "skip_tokenizer_init": True, "kv_cache_memory_bytes": 64 << 20,
               "enable_prefix_caching": False, "seed": 0, **case["options"]}
    start = time.time()
    llm = LLM(case["folder"], **options)
    if case.get("scales"):
        llm.apply_model(functools.partial(
            set_scales, keys=case["scales"][0], values=case["scales"][1]))
    loaded = time.time()
    prompts = make_prompts(case["lengths"], 512, case["repeats"])
    if case["audio"]:
        prompts = add_sounds(prompts, case["audio"])
    if options.get("runner") == "pooling":
        return embed(llm, prompts)
    parameters = SamplingParams(
        temperature=0, max_tokens=case["tokens"], ignore_eos=True, detokenize=False,
        logprobs=1, prompt_logprobs=1 if case["prompt_logprobs"] else None)
    outputs = []
    # Prompts that are given one after the other find their prefixes in the cache.
    for group in ([[prompt] for prompt in prompts] if case["repeats"] else [prompts]):
        outputs += llm.generate(group, parameters, use_tqdm=False)
    result = {"layers": count_all_layers(llm), "load": loaded - start,
              "run": time.time() - loaded, "cached": [], "tokens": [], "logprobs": [],
              "prompt_logprobs": []}
    for output in outputs:
        [best] = output.outputs
        result["cached"].append(output.num_cached_tokens)
        result["tokens"].append(list(best.token_ids))
        result["logprobs"].append([one[token].logprob for one, token in
                                   zip(best.logprobs, best.token_ids)])
        result["prompt_logprobs"].append([
            one[token].logprob for one, token in
            zip(output.prompt_logprobs or [], output.prompt_token_ids) if one])
    del llm
    return result


def main():
    from vllm.distributed import cleanup_dist_env_and_memory

    with open(sys.argv[1], encoding="utf-8") as file:
        cases = json.load(file)
    results = {}
    for name, case in cases.items():
        print(f"CASE {name}", flush=True)
        try:
            restore = None
            if "attention" in case:
                restore = change_attention(case["attention"])
            elif "refused" in case and os.environ.get("POSENC_VLLM") != "0":
                restore = refuse_first_layer(case["refused"])
            try:
                results[name] = run(case)
            finally:
                if restore:
                    restore()
        except Exception:
            results[name] = {"error": traceback.format_exc()}
        with open(sys.argv[2], "w", encoding="utf-8") as file:
            json.dump(results, file)
        cleanup_dist_env_and_memory()
        gc.collect()


if __name__ == "__main__":
    main()
