# ===- attention-configs.py - attention of models as configured ------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# attention-configs.py FOLDER COMPILE RUN: compiles each config, as in the README,
# and compares all functions with the reference. Also checks that each number of a
# config affects the results of the functions that depend on it, and of no others.

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
    "gemma3": {
        "model_type": "gemma3_text", "num_key_value_heads": 2, "head_dim": 32,
        "sliding_window": 14, "sliding_window_pattern": 6, "num_hidden_layers": 6,
        "query_pre_attn_scalar": 16, "rope_theta": 1e6,
        "rope_local_base_freq": 1e4, "max_position_embeddings": 131072,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
    "gemma3-dict": {
        "model_type": "gemma3_text", "num_key_value_heads": 2, "head_dim": 32,
        "sliding_window": 14, "query_pre_attn_scalar": 16,
        "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
        "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 8.0,
                               "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default",
                                  "rope_theta": 1e4}}},
    "olmo3": {
        "model_type": "olmo3", "num_key_value_heads": 4,
        "sliding_window": 10, "max_position_embeddings": 65536,
        "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
        "rope_scaling": {
            "rope_type": "yarn", "factor": 8.0, "beta_fast": 32,
            "beta_slow": 1, "attention_factor": 1.2079441541679836,
            "original_max_position_embeddings": 8192}},
    "exaone4": {
        "model_type": "exaone4", "num_key_value_heads": 2,
        "sliding_window": 11, "sliding_window_pattern": "LLLG"},
    "modernbert": {
        "model_type": "modernbert", "global_rope_theta": 160000.0,
        "local_rope_theta": 10000.0, "local_attention": 8,
        "global_attn_every_n_layers": 3},
    "roformer": {"model_type": "roformer"},
}
# Config, key, another value, and a function whose results change.
CHANGES = (
    ("llama", "rope_theta", 400000.0, "decode"),
    ("gemma2", "sliding_window", 15, "attention_sliding_attention"),
    ("gemma2", "query_pre_attn_scalar", 5, "attention_full_attention"),
    ("gemma2", "attn_logit_softcapping", 2.2, "decode_full_attention"),
    ("gpt_oss", "sliding_window", 11, "decode_sliding_attention"),
    ("mistral", "sliding_window", 10, "decode"),
    ("phi", "partial_rotary_factor", 0.5, "attention"),
    ("qwen3", "rms_norm_eps", 1e-1, "attention"),
    ("gemma3", "rope_local_base_freq", 2e4, "attention_sliding_attention"),
    ("gemma3", "rope_theta", 1e4, "decode_full_attention"),
    ("olmo3", "rope_theta", 2e4, "rope_full_attention"),
    ("modernbert", "local_attention", 10, "attention_sliding_attention"),
)
# Config, key, another value, and a function whose results do not change.
SEPARATE = (
    ("gemma3", "rope_local_base_freq", 2e4, "attention_full_attention"),
    ("gemma3", "rope_theta", 1e5, "decode_sliding_attention"),
    ("gemma3", "rope_scaling", None, "rope_sliding_attention"),
    ("olmo3", "rope_scaling", None, "attention_sliding_attention"),
    ("olmo3", "rope_theta", 2e4, "rope_sliding_attention"),
)
# Pairs of configs that describe the same model.
ALIKE = (("gemma3", "gemma3-dict"),)
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
    """Returns the functions of a config, each with --input options for a call."""
    text = run(COMPILE, path, "--emit=posenc", "-o", "-", *flags)
    functions = {}
    for function, arguments in re.findall(
            r"func\.func @(\w+)\((.*?)\) -> ", text):
        inputs = []
        for number, (shape, name) in enumerate(re.findall(
                r'tensor<([^>]*)> \{posenc.name = "(\w+)"', arguments)):
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


def compare(first, second, function, flags, code):
    """Compares a function of two configs; `code` is the expected exit code."""
    outputs = []
    for number in range(1 if function.startswith(("att", "dec")) else 2):
        outputs.append(os.path.join(FOLDER, f"result{number}.npy"))
    command = [RUN, f"--function={function}", "--opt-level=0", *flags,
               *list_functions(second, flags)[function]]
    run(*command, first, *(f"--output=@{path}" for path in outputs))
    expected = [f"--expected_output=@{path}" for path in outputs]
    run(*command, second, *expected, code=code)


def main():
    folder = FOLDER
    for number, name in enumerate(CONFIGS):
        path = os.path.join(folder, f"{name}.json")
        write(path, name)
        dtype = ("f32", "bf16", "f16")[number % 3]
        every = [f"--dtype={dtype}"]
        if name == "qwen3":
            every.append("--qk-norm")
        kernels = "rope,attention" if name in ("modernbert", "roformer") else (
            "rope,attention,decode")
        # Compiles one of them to code, and the others only to the dialect.
        output = "-" if name != "gpt_oss" else os.path.join(folder, "libx.so")
        run(COMPILE, path, f"--kernels={kernels}", "-o", output, *every,
            "--emit=posenc" if output == "-" else "--opt-level=0")
        raw = name in ("llama", "qwen3", "gpt_oss")
        variants = [("rotated", ["--k-cache=rotated"])]
        if raw:
            variants.append(("raw", ["--k-cache=raw"]))
        if name in ("mistral", "gemma2", "qwen3"):
            variants.append(("speculative", ["--k-cache=raw", "--decode-tokens=3"]))
        for variant, changes in variants:
            flags = every + changes
            functions = list_functions(path, flags)
            if not any(f.startswith("attention") for f in functions):
                sys.exit(f"{name}: {list(functions)}")
            for function, inputs in functions.items():
                # Rotations that all layers share are tested elsewhere.
                kinds = ["attention", "decode"][variant != "rotated":]
                if "rope" not in functions and variant != "speculative":
                    kinds += ["rope_", "sincos_"]
                if not function.startswith(tuple(kinds)):
                    continue
                print(name, variant, function, run(
                    RUN, path, f"--function={function}", "--opt-level=0",
                    "--reference", *flags, *inputs).strip())
    for changes, code in ((CHANGES, 3), (SEPARATE, 0)):
        for name, key, value, function in changes:
            path = os.path.join(folder, f"{name}.json")
            other = os.path.join(folder, "other.json")
            write(other, name, [(key, value)])
            flags = ["--dtype=f32"] + (
                ["--qk-norm"] if name == "qwen3" else [])
            compare(other, path, function, flags, code)
    for one, other in ALIKE:
        paths = [os.path.join(folder, f"{name}.json") for name in (one, other)]
        flags = ["--dtype=f32"]
        functions = [list_functions(path, flags) for path in paths]
        if functions[0] != functions[1]:
            sys.exit(f"{one} has {functions[0]}, {other} {functions[1]}")
        texts = [run(COMPILE, path, "--emit=posenc", "-o", "-", *flags)
                 for path in paths]
        if texts[0] != texts[1]:
            sys.exit(f"{one} and {other} differ in the dialect")


main()
