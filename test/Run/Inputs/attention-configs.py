# ===- attention-configs.py - a model's attention, as its config says ------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# attention-configs.py FOLDER COMPILE RUN: compiles each config, as the README says, and
# compares all functions of its library with the reference. What a number of a
# config does must show: with another one the results are others.

import json
import os
import re
import subprocess
import sys

CONFIGS = {
    "llama": {
        "model_type": "llama", "num_key_value_heads": 2,
        "max_position_embeddings": 131072, "rope_theta": 500000.0,
        "rope_scaling": {
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192}},
    "qwen3": {"model_type": "qwen3", "num_key_value_heads": 4,
              "head_dim": 32, "rms_norm_eps": 1e-2},
    "gemma2": {"model_type": "gemma2", "num_key_value_heads": 2,
               "head_dim": 32, "sliding_window": 16,
               "query_pre_attn_scalar": 4, "attn_logit_softcapping": 2.0},
    "gpt_oss": {
        "model_type": "gpt_oss", "num_key_value_heads": 2, "head_dim": 64,
        "sliding_window": 12, "max_position_embeddings": 131072,
        "layer_types": ["sliding_attention", "full_attention"],
        "rope_scaling": {
            "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0,
            "beta_slow": 1.0, "truncate": False,
            "original_max_position_embeddings": 4096}},
    "mistral": {"model_type": "mistral", "num_key_value_heads": 2,
                "sliding_window": 9},
    "phi": {"model_type": "phi", "hidden_size": 160,
            "partial_rotary_factor": 0.4},
    "falcon": {"model_type": "falcon", "multi_query": True},
    "cohere2": {"model_type": "cohere2", "num_key_value_heads": 2,
                "sliding_window": 8, "sliding_window_pattern": 4},
    "deepseek": {"model_type": "deepseek_v3", "num_key_value_heads": 4,
                 "qk_nope_head_dim": 32, "qk_rope_head_dim": 16,
                 "v_head_dim": 24},
    "roformer": {"model_type": "roformer"},
}
# Another number for a key, and a function that is another then.
CHANGES = (
    ("llama", "rope_theta", 400000.0, "decode"),
    ("gemma2", "sliding_window", 15, "attention_sliding_attention"),
    ("gemma2", "query_pre_attn_scalar", 5, "attention_full_attention"),
    ("gemma2", "attn_logit_softcapping", 2.2, "decode_full_attention"),
    ("gpt_oss", "sliding_window", 11, "decode_sliding_attention"),
    ("mistral", "sliding_window", 10, "decode"),
    ("phi", "partial_rotary_factor", 0.5, "attention"),
    ("qwen3", "rms_norm_eps", 1e-1, "attention"),
)
TOKENS, KEYS, LENGTH = 19, 37, 23
FOLDER, COMPILE, RUN = sys.argv[1:]


def run(*command, code=0):
    result = subprocess.run(command, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)
    if result.returncode != code:
        sys.exit(f"{' '.join(command)}: {result.returncode}, expected {code}\n"
                 f"{result.stdout}")
    return result.stdout


def write(path, name, changes=()):
    config = {"hidden_size": 256, "num_attention_heads": 4,
              **CONFIGS[name], **dict(changes)}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)


def list_functions(path, flags):
    """The functions, and for each the inputs that it is called with."""
    text = run(COMPILE, path, "--emit=posenc", "-o", "-", *flags)
    functions = {}
    for function, arguments in re.findall(
            r"func\.func @(\w+)\((.*?)\) -> ", text):
        inputs = []
        for number, (shape, name) in enumerate(re.findall(
                r'tensor<([^>]*)> \{posenc.name = "(\w+)"\}', arguments)):
            sizes = [2, TOKENS]
            if function.startswith("decode"):
                sizes = [2, KEYS]
            if function.startswith("sincos"):
                sizes = [TOKENS]
            for size in sizes:
                shape = shape.replace("?", str(size), 1)
            value = {"positions": "iota", "lengths": LENGTH}.get(
                name, f"random:seed={number}")
            inputs.append(f"--input={shape}={value}")
        functions[function] = inputs
    return functions


def main():
    folder = FOLDER
    for number, name in enumerate(CONFIGS):
        path = os.path.join(folder, f"{name}.json")
        write(path, name)
        dtype = ("f32", "bf16", "f16")[number % 3]
        every = [f"--dtype={dtype}"]
        if name == "qwen3":
            every.append("--qk-norm")
        kernels = "rope,attention" if name == "roformer" else (
            "rope,attention,decode")
        # As code for one of them, and as far as the dialect for all.
        output = "-" if name != "gpt_oss" else os.path.join(folder, "libx.so")
        run(COMPILE, path, f"--kernels={kernels}", "-o", output, *every,
            *(["--emit=posenc"] if output == "-" else []))
        raw = name in ("llama", "qwen3", "gpt_oss")
        for cache in ("rotated", "raw") if raw else ("rotated",):
            flags = every + [f"--k-cache={cache}"]
            functions = list_functions(path, flags)
            if not any(f.startswith("attention") for f in functions):
                sys.exit(f"{name}: {list(functions)}")
            for function, inputs in functions.items():
                # Rotations are tested elsewhere.
                if not function.startswith(("attention", "decode")[
                        cache == "raw":]):
                    continue
                print(name, cache, function, run(
                    RUN, path, f"--function={function}",
                    "--reference", *flags, *inputs).strip())
    for name, key, value, function in CHANGES:
        path = os.path.join(folder, f"{name}.json")
        other = os.path.join(folder, "other.json")
        write(other, name, [(key, value)])
        flags = ["--dtype=f32"] + (["--qk-norm"] if name == "qwen3" else [])
        inputs = list_functions(path, flags)[function]
        result = os.path.join(folder, "result.npy")
        command = [RUN, f"--function={function}", *flags, *inputs]
        run(*command, other, f"--output=@{result}")
        run(*command, other, f"--expected_output=@{result}")
        run(*command, path, f"--expected_output=@{result}", code=3)


main()
