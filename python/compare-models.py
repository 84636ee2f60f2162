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

    python python/compare-models.py --tokens 2048

Prints a table: the largest difference of logits, relative to the largest logit; how many
of the generated tokens are equal (`near`: of those that differ first, how many had two
best logits within the difference); and tokens per second of a prompt, as a multiple of
those of "sdpa", or of "eager" for models without it. Exits with 1 if a difference exceeds --limit or tokens differ."""

import argparse
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


def make_model(name: str, length: int) -> torch.nn.Module:
    torch.manual_seed(0)
    prefix = name + ("Text" if name == "Gemma3" else "")
    config = getattr(transformers, prefix + "Config")(
        **MODELS[name], vocab_size=512, max_position_embeddings=2 * length,
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
    difference = ((actual - expected).abs().max() / expected.abs().max()).item()
    same = (actual_tokens == expected_tokens).tolist()
    equal = same.index(False) if False in same else count
    is_right, note = equal == count, ""
    if not is_right:
        best = scores[equal][0].topk(2).values
        is_right = (best[0] - best[1]).item() <= 10 * difference * expected.abs().max().item()
        note = ", near" if is_right else ", differ"
    return (f"| {name} | {difference:.1e} | {equal} of {count}{note} | "
            f"{other_seconds / seconds:.2f} × {other} |"), difference, is_right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=2048, help="tokens of the prompt")
    parser.add_argument("--new-tokens", type=int, default=32)
    parser.add_argument("--limit", type=float, default=1e-4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(options.threads)
    print("| model | largest difference of logits | equal tokens | tokens per second of a prompt |")
    print("|---|---|---|---|")
    failures = 0
    for name in options.models:
        row, difference, is_right = compare(name, options.tokens, options.new_tokens)
        print(row, flush=True)
        failures += not (difference <= options.limit and is_right)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
