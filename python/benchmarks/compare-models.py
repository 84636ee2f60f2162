#!/usr/bin/env python3
# ===- compare-models.py - models of transformers on Posenc ------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Compares small models with random weights, on the kernels of Posenc with the precision
hf_f32, with the attention "eager" of transformers, and measures them and "sdpa":

    python python/benchmarks/compare-models.py --tokens 2048

Prints a table: the largest difference of logits, relative to the largest logit; how many
of the generated tokens are equal (`near`: of those that differ first, how many had two
best logits within the difference); and tokens per second of a prompt, as a multiple of
those of "sdpa", or of "eager" for models without it. Exits with 1 if a difference exceeds
--limit or tokens differ.

    python python/benchmarks/compare-models.py --long 32768

compares very small models with "sdpa" at a quarter, half and all of that length; in bf16
it compares the errors of both from the same weights in f32. Exits with 1 if a difference
exceeds --limit, or in bf16 if the error exceeds twice that of "sdpa".

    python python/benchmarks/compare-models.py --exact

computes all of a model in f64, angles too, and compares the errors of "eager", of hf_f32
and of the default precision. Exits with 1 if the last is not the smallest, but for the
rounding of attention.

    python python/benchmarks/compare-models.py --cache 4096

measures the generation of tokens after so many, by a Llama of 4 layers with 16 heads of
64 channels, with a DynamicCache and with the Cache of Posenc."""

import argparse
import copy
import statistics
import sys
import time

import torch
import transformers

import posenc.transformers

GQA = dict(hidden_size=256, intermediate_size=512, num_hidden_layers=4,
           num_attention_heads=8, num_key_value_heads=2, head_dim=64)
MODELS = {
    "Llama": dict(GQA, rope_parameters={
        "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0,
        "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 1024}),
    "Qwen2": {key: value for key, value in GQA.items() if key != "head_dim"},
    "Qwen3": GQA,
    "Mistral": dict(GQA, sliding_window=512),
    "Gemma2": dict(GQA, sliding_window=512, query_pre_attn_scalar=64),
    "Gemma3": dict(GQA, sliding_window=512, query_pre_attn_scalar=64),
    "Phi3": {key: value for key, value in GQA.items() if key != "head_dim"},
    "GPTNeoX": dict(hidden_size=256, intermediate_size=512, num_hidden_layers=4,
                    num_attention_heads=4),
    "DeepseekV3": dict(
        hidden_size=256, intermediate_size=512, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=4, q_lora_rank=64, kv_lora_rank=64,
        qk_nope_head_dim=32, qk_rope_head_dim=16, v_head_dim=32, n_routed_experts=4,
        num_experts_per_tok=2, n_group=1, topk_group=1, moe_intermediate_size=128,
        first_k_dense_replace=1),
}


# The difference of errors that is the rounding of attention rather than of angles.
ROUNDING = 1e-6
# Sizes for long prompts, which need seconds for each model.
SMALL = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2,
             num_attention_heads=4, head_dim=16)
SMALL_MODELS = {
    "GPTNeoX": dict(rotary_pct=0.5), "Phi3": dict(num_key_value_heads=2),
    "DeepseekV3": dict(q_lora_rank=32, kv_lora_rank=16, qk_nope_head_dim=16,
                       qk_rope_head_dim=8, v_head_dim=16, head_dim=8),
}


def make_model(name: str, length: int, **sizes) -> torch.nn.Module:
    torch.manual_seed(0)
    prefix = name + ("Text" if name == "Gemma3" else "")
    config = getattr(transformers, prefix + "Config")(
        **{**MODELS[name], **sizes}, vocab_size=512, max_position_embeddings=2 * length,
        pad_token_id=0, bos_token_id=1, eos_token_id=None)
    model = getattr(transformers, name + "ForCausalLM")(config).eval()
    # Larger weights than the default make the attention matter.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(2)
    return model


@torch.inference_mode()
def compute_logits(model, tokens: torch.Tensor, repeats: int = 1):
    """Returns the logits and the median of the seconds."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        logits = model(tokens, use_cache=False).logits
        seconds.append(time.perf_counter() - start)
    return logits, statistics.median(seconds)


@torch.inference_mode()
def generate(model, tokens: torch.Tensor, count: int):
    output = model.generate(tokens, attention_mask=torch.ones_like(tokens),
                            max_new_tokens=count, do_sample=False, output_scores=True,
                            return_dict_in_generate=True)
    return output.sequences[0, tokens.shape[1]:], output.scores


def compare(name: str, length: int, count: int) -> tuple[str, float, bool]:
    model = make_model(name, length)
    tokens = torch.randint(2, 512, (1, length))
    model.set_attn_implementation("eager")
    expected, _ = compute_logits(model, tokens)
    expected_tokens, scores = generate(model, tokens[:, :64], count)
    # Gemma 2 has no other attention than "eager", because of its soft cap.
    other = "sdpa" if model._supports_sdpa else "eager"
    model.set_attn_implementation(other)
    _, other_seconds = compute_logits(model, tokens, 3)
    posenc.transformers.enable(model, precision="hf_f32")
    compute_logits(model, tokens)
    actual, seconds = compute_logits(model, tokens, 3)
    actual_tokens, _ = generate(model, tokens[:, :64], count)
    difference = compute_difference(actual, expected)
    same = (actual_tokens == expected_tokens).tolist()
    equal = same.index(False) if False in same else count
    is_right, note = equal == count, ""
    if not is_right:
        best = scores[equal][0].topk(2).values
        bound = 10 * difference * expected.abs().max().item()
        is_right = (best[0] - best[1]).item() <= bound
        note = ", near" if is_right else ", differ"
    return (f"| {name} | {difference:.1e} | {equal} of {count}{note} | "
            f"{other_seconds / seconds:.2f} × {other} |"), difference, is_right


def make_small_model(name: str, length: int) -> torch.nn.Module:
    return make_model(name, length, **{**SMALL, **SMALL_MODELS.get(name, {})})


def compute_difference(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """Returns the largest difference, relative to the largest value."""
    return ((actual - expected).abs().max() / expected.abs().max()).item()


def convert(model: torch.nn.Module, dtype: torch.dtype) -> torch.nn.Module:
    """Returns a copy with weights of a type. Buffers stay, as when a model is loaded:
    rounded frequencies would be those of another encoding."""
    model = copy.deepcopy(model)
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype)
    return model


@torch.inference_mode()
def compute_reference(model, tokens: torch.Tensor, part: int = 512) -> torch.Tensor:
    """Returns the logits with "sdpa", or with "eager" for models without it. By parts of
    the tokens where the scores of all pairs would be stored: by "eager", and by "sdpa" if
    keys and values have different numbers of channels."""
    model.set_attn_implementation("sdpa" if model._supports_sdpa else "eager")
    if model._supports_sdpa and not hasattr(model.config, "v_head_dim"):
        return model(tokens, use_cache=False).logits
    cache = transformers.DynamicCache(config=model.config)
    return torch.cat([model(piece, cache=cache).logits
                      for piece in tokens.split(part, dim=1)], dim=1)


def compare_long(name: str, length: int) -> tuple[list[float], float, float]:
    """Returns the differences from "sdpa" at several lengths, and at the first the
    errors in bf16 of Posenc and of "sdpa"."""
    model = make_small_model(name, length)
    tokens = torch.randint(2, 512, (1, length))
    lengths = [length // 4, length // 2, length]
    expected = [compute_reference(model, tokens[:, :n]) for n in lengths]
    posenc.transformers.enable(model, precision="hf_f32")
    differences = [compute_difference(compute_logits(model, tokens[:, :n])[0], logits)
                   for n, logits in zip(lengths, expected)]

    rounded = convert(make_small_model(name, length), torch.bfloat16)
    tokens = tokens[:, :lengths[0]]
    expected = compute_reference(convert(rounded, torch.float32), tokens)
    other = compute_difference(compute_reference(rounded, tokens).float(), expected)
    posenc.transformers.enable(rounded, precision="hf_f32")
    own = compute_difference(compute_logits(rounded, tokens)[0].float(), expected)
    return differences, own, other


class InF64(torch.overrides.TorchFunctionMode):
    """Runs the code of a model in f64 where it says f32, such as in norms, in the softmax
    and in frequencies."""

    def __torch_function__(self, function, types, arguments=(), options=None):
        if function is torch.Tensor.float:
            function = torch.Tensor.double
        arguments = [torch.float64 if value is torch.float32 else value
                     for value in arguments]
        options = {key: torch.float64 if value is torch.float32 else value
                   for key, value in (options or {}).items()}
        return function(*arguments, **options)


@torch.inference_mode()
def compute_in_f64(make, tokens: torch.Tensor, **options) -> torch.Tensor:
    """Returns the logits of the model that `make` makes. Its weights are those in f32."""
    weights = make().state_dict()
    with InF64():
        model = make().double()
        for name, module in model.named_modules():
            if "rotary_emb" in name:
                # It has computed them in f32, and keeps them so.
                module.__init__(module.config)
        model.load_state_dict(weights)
        model.set_attn_implementation("sdpa" if model._supports_sdpa else "eager")
        if hasattr(model.config, "n_routed_experts"):
            # The default has no f64.
            model.set_experts_implementation("eager")
        return model(tokens, use_cache=False, **options).logits


def compare_exact(name: str, end: int, tokens: int = 512) -> dict[str, float]:
    """Returns the errors of logits, of tokens whose last position is `end` - 1."""
    def make():
        return make_small_model(name, end)

    prompt = torch.randint(2, 512, (1, tokens))
    positions = torch.arange(end - tokens, end)[None]
    expected = compute_in_f64(make, prompt, position_ids=positions)
    model = make()
    errors = {}
    for kind in ("eager", "hf_f32", "exact"):
        if kind == "eager":
            model.set_attn_implementation("eager")
        else:
            posenc.transformers.enable(model := make(), precision=kind)
        with torch.inference_mode():
            actual = model(prompt, use_cache=False, position_ids=positions).logits
        errors[kind] = compute_difference(actual.double(), expected)
    return errors


@torch.inference_mode()
def measure_generation(model, make_cache, tokens: torch.Tensor, count: int = 64) -> float:
    """Returns tokens per second, of the median token."""
    cache = make_cache(config=model.config)
    model(tokens, cache=cache, logits_to_keep=1)
    token, seconds = tokens[:, :1], []
    for _ in range(count):
        start = time.perf_counter()
        token = model(token, cache=cache).logits[:, -1:].argmax(-1)
        seconds.append(time.perf_counter() - start)
    return 1 / statistics.median(seconds)


def print_generation(length: int) -> None:
    print("| key heads | attention | DynamicCache | Cache |")
    print("|---|---|---|---|")
    for key_heads in (4, 16):
        model = make_model(
            "Llama", length, hidden_size=1024, intermediate_size=2048,
            num_attention_heads=16, num_key_value_heads=key_heads)
        tokens = torch.randint(2, 512, (1, length))
        for attention in ("sdpa", "posenc"):
            if attention == "posenc":
                posenc.transformers.enable(model)
            rates = [measure_generation(model, cache, tokens) for cache in
                     (transformers.DynamicCache, posenc.transformers.Cache)]
            print(f"| {key_heads} | {attention} | {rates[0]:.1f} | {rates[1]:.1f} |",
                  flush=True)


def print_long(options) -> int:
    """Prints the table of --long and returns the number of failures."""
    lengths = [options.long // 4, options.long // 2, options.long]
    print(f"| model | {' | '.join(map(str, lengths))} | bf16, {lengths[0]} | sdpa |")
    print("|---|---|---|---|---|---|")
    failures = 0
    for name in options.models:
        differences, own, other = compare_long(name, options.long)
        numbers = [f"{x:.1e}" for x in (*differences, own, other)]
        print(f"| {name} | {' | '.join(numbers)} |", flush=True)
        failures += not (max(differences) <= options.limit and own <= 2 * other)
    return failures


def print_exact(options) -> int:
    """Prints the table of --exact and returns the number of failures."""
    ends = (2048, 32768)
    print("| model |", " | ".join(f"{kind}, {end}" for end in ends
                                  for kind in ("eager", "hf_f32", "exact")), "|")
    print("|---|---|---|---|---|---|---|")
    failures = 0
    for name in options.models:
        rows = [compare_exact(name, end) for end in ends]
        numbers = [f"{error:.1e}" for row in rows for error in row.values()]
        print(f"| {name} | {' | '.join(numbers)} |", flush=True)
        failures += any(row["exact"] > ROUNDING + min(row.values()) for row in rows)
    return failures


def print_prompts(options) -> int:
    """Prints the table of prompts of one length and returns the number of failures."""
    print("| model | largest difference of logits | equal tokens | "
          "tokens per second of a prompt |")
    print("|---|---|---|---|")
    failures = 0
    for name in options.models:
        row, difference, is_right = compare(name, options.tokens, options.new_tokens)
        print(row, flush=True)
        failures += not (difference <= options.limit and is_right)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=2048, help="tokens of the prompt")
    parser.add_argument("--new-tokens", type=int, default=32)
    parser.add_argument("--long", type=int, metavar="TOKENS", help="compare long prompts")
    parser.add_argument("--exact", action="store_true", help="compare errors from f64")
    parser.add_argument("--cache", type=int, metavar="TOKENS", help="measure caches")
    parser.add_argument("--limit", type=float, default=1e-4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(options.threads)
    if options.cache:
        print_generation(options.cache)
        return 0
    print_table = (print_long if options.long else print_exact if options.exact
                   else print_prompts)
    return 1 if print_table(options) else 0


if __name__ == "__main__":
    sys.exit(main())
