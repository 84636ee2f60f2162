#!/usr/bin/env python3
# ===- bench.py - tokens per second of a model of transformers ---------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Measures a Llama-shaped model with random weights, a prompt and then token by token as
`generate` does: eager, sdpa and posenc in turn, medians, for each number of threads.

    python python/benchmarks/bench.py --context 8192 --tokens 32 --dtype bfloat16

`attention` is the share of the time that the attention function takes."""

import argparse
import statistics
import time
import warnings

import torch
import transformers
from transformers.masking_utils import AttentionMaskInterface
from transformers.models.llama import modeling_llama

import posenc.transformers

IMPLEMENTATIONS = {
    "eager": modeling_llama.eager_attention_forward,
    "sdpa": transformers.AttentionInterface()["sdpa"],
    "posenc": posenc.transformers.attention,
}


class Clock:
    """Adds up the time of the attention functions, which it registers as `timed_X`."""

    def __init__(self):
        self.seconds = 0.0
        for name, function in IMPLEMENTATIONS.items():
            timed = f"timed_{name}"
            transformers.AttentionInterface.register(timed, self._time(function))
            AttentionMaskInterface.register(timed, AttentionMaskInterface()[name])

    def _time(self, function):
        def call(*arguments, **options):
            start = time.perf_counter()
            result = function(*arguments, **options)
            self.seconds += time.perf_counter() - start
            return result
        return call


def make_model(options) -> torch.nn.Module:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=4096, hidden_size=options.heads * 64, num_hidden_layers=options.layers,
        num_attention_heads=options.heads, num_key_value_heads=options.heads // 4,
        head_dim=64, intermediate_size=options.heads * 64 * 3,
        max_position_embeddings=options.context + options.tokens, dtype=options.dtype,
        bos_token_id=None, eos_token_id=None, pad_token_id=0)
    # Its frequencies stay in f32, as those of a model that is loaded.
    return transformers.AutoModelForCausalLM.from_config(
        config, dtype=getattr(torch, options.dtype)).eval()


def set_implementation(model, name: str) -> None:
    """Rotations are those of transformers, except with "posenc"."""
    if name == "posenc":
        posenc.transformers.enable(model)
    else:
        posenc.transformers.disable(model)
    model.set_attn_implementation(f"timed_{name}")


@torch.inference_mode()
def measure(model, clock: Clock, cache, prompt: torch.Tensor, tokens: int) -> dict:
    """Returns the seconds of the prompt and of each further token, with the shares of
    the attention."""

    def run(step: torch.Tensor) -> tuple[torch.Tensor, float, float]:
        clock.seconds, start = 0.0, time.perf_counter()
        logits = model(step, past_key_values=cache, logits_to_keep=1).logits
        token = logits[:, -1].argmax(-1, keepdim=True)
        return token, time.perf_counter() - start, clock.seconds
    token, first, first_attention = run(prompt)
    steps = []
    for _ in range(tokens):
        token, *seconds = run(token)
        steps.append(seconds)
    decode, attention = (statistics.median(part) for part in zip(*steps))
    return {"prefill": first, "prefill_attention": first_attention / first,
            "decode": decode, "decode_attention": attention / decode}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--context", type=int, default=2048, help="tokens of the prompt")
    parser.add_argument("--tokens", type=int, default=32, help="generated tokens")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--heads", type=int, default=16, help="query heads of 64 channels")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--threads", default="1,2", help="numbers of threads")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    # Newer versions of transformers call the cache `cache`, older ones do not know this.
    warnings.filterwarnings("ignore", category=FutureWarning)
    model, clock = make_model(options), Clock()
    prompt = torch.randint(1, 4096, (1, options.context))
    print(f"{options.layers} layers, {options.heads} + {options.heads // 4} heads of 64, "
          f"{options.dtype}, a prompt of {options.context} tokens, {options.tokens} more")
    print(f"{'':8}{'threads':>8}{'prefill t/s':>13}{'attention':>11}"
          f"{'decode t/s':>12}{'attention':>11}")
    for threads in map(int, options.threads.split(",")):
        torch.set_num_threads(threads)
        rounds = {name: [] for name in IMPLEMENTATIONS}
        for number in range(options.rounds + 1):
            for name in IMPLEMENTATIONS:
                set_implementation(model, name)
                # The caches that `generate` uses.
                cache = (posenc.transformers.Cache if name == "posenc" else
                         transformers.DynamicCache)(config=model.config)
                result = measure(model, clock, cache, prompt, options.tokens)
                if number > 0:  # The first round compiles and warms up.
                    rounds[name].append(result)
        for name, results in rounds.items():
            median = {key: statistics.median(one[key] for one in results)
                      for key in results[0]}
            print(f"{name:8}{threads:8}{options.context / median['prefill']:13.1f}"
                  f"{median['prefill_attention']:11.2f}{1 / median['decode']:12.2f}"
                  f"{median['decode_attention']:11.2f}", flush=True)


if __name__ == "__main__":
    main()
