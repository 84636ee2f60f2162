# ===- cases.py - what the tests run in vLLM -------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The cases of the tests: a model, options of vLLM, and prompts."""

RAGGED = (300, 37, 5, 128)


def make(model, lengths=RAGGED, tokens=12, repeats=False, prompt_logprobs=True,
         **options):
    return {"model": model, "lengths": list(lengths), "tokens": tokens,
            "repeats": repeats, "prompt_logprobs": prompt_logprobs, "options": options}


# With vLLM's kernels and with Posenc's. The results agree.
CASES = {
    "llama": make("llama"),
    # Steps of 64 tokens, of several sequences.
    "llama-chunks": make("llama", max_num_batched_tokens=64, max_num_seqs=8),
    "llama-prefixes": make("llama", (300, 220, 400), 20, True, False, block_size=32,
                           enable_prefix_caching=True, max_num_batched_tokens=128,
                           max_num_seqs=8),
    "llama-drafts": make(
        "llama", (300, 220), 40, True, False, enable_prefix_caching=True,
        max_num_batched_tokens=128, max_num_seqs=8,
        speculative_config={"method": "ngram", "num_speculative_tokens": 4,
                            "prompt_lookup_max": 4, "prompt_lookup_min": 2}),
    "llama-block-16": make("llama", block_size=16),
    "llama-block-256": make("llama", block_size=256),
    "llama-bf16": make("llama", dtype="bfloat16"),
    "llama-f16": make("llama", dtype="float16"),
    "qwen3": make("qwen3"),
    "glm": make("glm"),
    "mistral": make("mistral"),
    "gemma2": make("gemma2"),
    "gpt_oss": make("gpt_oss"),
    "bloom": make("bloom"),
}

# The encoder keeps vLLM's kernels, and so does one layer of the other model, by a test's
# own `find_obstacle`.
FALLBACKS = {
    "bert": make("bert", max_model_len=512, runner="pooling",
                 skip_tokenizer_init=False),
    "llama-one-refused": {**make("llama"), "refused": "a test refuses it"},
}

# Cases with caches that vLLM's kernels for CPUs do not have, and the case without them.
QUANTIZED = {f"{name}-{cache}": name
             for cache in ("int8_per_token_head", "fp8_per_token_head")
             for name in ("llama", "llama-bf16", "llama-prefixes", "gemma2")}
# Largest difference of log-probabilities.
CACHE_TOLERANCE = {"int8_per_token_head": 0.06, "fp8_per_token_head": 0.2}


def quantize(name):
    """Returns a case of QUANTIZED."""
    case, cache = CASES[QUANTIZED[name]], name.removeprefix(f"{QUANTIZED[name]}-")
    return {**case, "options": {**case["options"], "kv_cache_dtype": cache}}


# A model that cannot run: its layer keeps vLLM's kernels, which do not have its cache.
REFUSED = {"llama-refused": {**quantize("llama-int8_per_token_head"),
                             "refused": "a test refuses it"}}

# With vLLM's kernels and another config. Their results differ from those of the case of
# the same name, or the case would not depend on what it tests.
CONTROLS = {
    "mistral": {"sliding_window": None},
    "gemma2": {"attn_logit_softcapping": None},
    "gpt_oss": {"sliding_window": 60},
    "llama": {"rope_parameters": {"rope_type": "default", "rope_theta": 12000.0}},
}

# With rotations of exact angles, or vLLM's own ones.
EXACT = {name: CASES[name] for name in ("llama", "glm")}
OFF = {"llama": CASES["llama"]}
