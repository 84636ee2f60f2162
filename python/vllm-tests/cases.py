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
         audio=(), **options):
    """`audio` has the lengths of sounds for encoders, in seconds."""
    return {"model": model, "lengths": list(lengths), "tokens": tokens,
            "repeats": repeats, "prompt_logprobs": prompt_logprobs, "audio": list(audio),
            "options": options}


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
    "bert": make("bert", max_model_len=512, runner="pooling", skip_tokenizer_init=False),
    "modernbert": make("modernbert", max_model_len=512, runner="pooling",
                       skip_tokenizer_init=False),
    "whisper": make("whisper", (4, 7, 1), audio=(3.0, 1.0, 2.0), prompt_logprobs=False,
                    max_model_len=448, skip_tokenizer_init=False),
}

# One layer keeps vLLM's kernels, by a test's own `find_obstacle`.
FALLBACKS = {
    "llama-one-refused": {**make("llama"), "refused": "a test refuses it"},
}

# Cases with quantized caches, by the case without them, the type of the cache, the largest
# difference of log-probabilities, and the scales of all keys and all values, which are 1
# unless a checkpoint has them. vLLM's kernels for CPUs do not have caches of rows, and
# those of fp8 only with AVX-512.
QUANTIZED = {
    **{f"{name}-{cache}": (name, cache, limit, None)
       for cache, limit in (("int8_per_token_head", 0.06), ("fp8_per_token_head", 0.2))
       for name in ("llama", "llama-bf16", "llama-prefixes", "gemma2")},
    "llama-fp8": ("llama", "fp8", 0.2, None),
    "llama-bf16-fp8_e5m2": ("llama-bf16", "fp8_e5m2", 0.4, None),
    "llama-fp8-scales": ("llama", "fp8_e4m3", 0.2, (0.02, 0.01)),
}


def quantize(name):
    """Returns a case of QUANTIZED."""
    name, cache, _, scales = QUANTIZED[name]
    return {**CASES[name], "scales": scales,
            "options": {**CASES[name]["options"], "kv_cache_dtype": cache}}


# Scales of keys by which almost all elements are clamped.
CLAMPED = {"llama-fp8-clamped": {**quantize("llama-fp8"), "scales": (1e-4, 1.0)}}
# A model that cannot run: its layer keeps vLLM's kernels, which do not have its cache.
REFUSED = {"llama-refused": {**quantize("llama-int8_per_token_head"),
                             "refused": "a test refuses it"}}

def override(**config):
    return {"options": {"hf_overrides": config}}


# By the case, changes of it that vLLM's kernels run. Their results differ from those of the
# case, or it would not depend on what it tests. "attention" are attributes of vLLM's class,
# such as sinks that are dropped.
CONTROLS = {
    "mistral": [override(sliding_window=None)],
    "gemma2": [override(attn_logit_softcapping=None)],
    "gpt_oss": [override(sliding_window=60), {"attention": {"sinks": None}}],
    "bloom": [{"attention": {"alibi_slopes": None}}],
    "bert": [{"attention": {"scale": 0.2}}],
    "modernbert": [{"attention": {"sliding_window": 10}}],
    "whisper": [{"audio": [1.0, 2.0, 3.0]}],
    "llama": [override(rope_parameters={"rope_type": "default", "rope_theta": 12000.0})],
}


def list_controls():
    """Returns the names of controls, their cases, and themselves."""
    return [(f"{name}-control-{number}", name, {
                **CASES[name], **change,
                "options": {**CASES[name]["options"], **change.get("options", {})}})
            for name, changes in CONTROLS.items() for number, change in enumerate(changes)]


# Heads divided between two processes, of which each has its sinks and slopes.
PARALLEL = {name: {**CASES[name], "options": {**CASES[name]["options"],
                                              "tensor_parallel_size": 2}}
            for name in ("llama", "gpt_oss", "bloom")}

# With rotations of exact angles, or vLLM's own ones.
EXACT = {name: CASES[name] for name in ("llama", "glm")}
OFF = {"llama": CASES["llama"]}
