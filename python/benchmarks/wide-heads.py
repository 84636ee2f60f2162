#!/usr/bin/env python3
# ===- wide-heads.py - rounding of scores ------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Measures errors of f32, from f64: first of scores of normalized queries and keys, by
the channels of a head, of the kernels and of matrix products of PyTorch; then of the
logits of small Gemma 4 models with random weights, whose heads of 512 channels have such
scores, relative to the errors of "eager".

    python python/benchmarks/wide-heads.py --models 8"""

import argparse
import statistics

import torch
import transformers

import posenc.transformers


def normalize(x: torch.Tensor) -> torch.Tensor:
    return x / x.pow(2).mean(-1, keepdim=True).sqrt()


def measure_scores(channels: int) -> tuple[float, float]:
    """Returns the root mean square of the errors of the kernels and of PyTorch. With a
    single key, the log-sum-exp is its score."""
    q, k = (normalize(torch.randn(100, tokens, heads, channels))
            for tokens, heads in ((40, 8), (1, 1)))
    _, actual = posenc.functional.attention(q, k, k, softmax_scale=1.0, return_lse=True)
    product = (q.transpose(1, 2) @ k.transpose(1, 2).mT)[..., 0].transpose(1, 2)
    expected = (q.double() * k.double()).sum(-1)
    own, other = ((scores - expected).pow(2).mean().sqrt().item()
                  for scores in (actual, product))
    return own, other


def make_model(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    config = transformers.Gemma4TextConfig(
        vocab_size=128, hidden_size=64, intermediate_size=96, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, head_dim=16, global_head_dim=512,
        layer_types=["sliding_attention", "full_attention"] * 2, num_kv_shared_layers=2,
        sliding_window=8, vocab_size_per_layer_input=128, hidden_size_per_layer_input=8)
    model = transformers.Gemma4ForCausalLM(config).eval()
    for parameter in model.parameters():
        if parameter.dim() == 2:
            parameter.data.mul_(4)
    return model


@torch.no_grad()
def measure_model(seed: int) -> dict[str, float]:
    """Returns the largest errors of logits by the attention."""
    tokens = torch.randint(2, 128, (2, 37), generator=torch.Generator().manual_seed(seed))
    expected, model = make_model(seed).double()(tokens).logits, make_model(seed)
    errors = {}
    for name in ("eager", "sdpa", "posenc"):
        model.set_attn_implementation(name)
        errors[name] = (model(tokens).logits - expected).abs().max().item()
    return errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=8)
    options = parser.parse_args()
    torch.manual_seed(0)
    print("| channels | posenc | PyTorch | ratio |")
    print("|---|---|---|---|")
    for channels in (64, 128, 256, 288, 512):
        own, other = measure_scores(channels)
        print(f"| {channels} | {own:.1e} | {other:.1e} | {own / other:.2f} |", flush=True)
    rows = [measure_model(seed) for seed in range(options.models)]
    for name in ("sdpa", "posenc"):
        ratios = sorted(row[name] / row["eager"] for row in rows)
        print(f"{name}: {ratios[0]:.2f} to {ratios[-1]:.2f} times the errors of eager, "
              f"median {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
