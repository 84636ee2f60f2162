#!/usr/bin/env python3
# ===- transformers-tables.py - rotary classes of transformers --------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""transformers-tables.py POSENC-RUN: compares the cos and sin tables of configs with
those of transformers' own classes, in the current folder."""

import json
import subprocess
import sys

import numpy as np
import torch
from transformers import AutoConfig
from transformers.models.dinov3_vit.modeling_dinov3_vit import (
    DINOv3ViTRopePositionEmbedding)
from transformers.models.gemma2.modeling_gemma2 import Gemma2RotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.phi3.modeling_phi3 import Phi3RotaryEmbedding
from transformers.models.qwen3.modeling_qwen3 import Qwen3RotaryEmbedding

DIM = 64
POSITIONS = np.array([0, 1, 2, 3, 17, 100, 1023, 4095, 8190, 32767, 131071, 1048575],
                     dtype=np.int64)
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
LONG = {"rope_type": "longrope", "original_max_position_embeddings": 4096,
        "short_factor": [1 + i / 40 for i in range(DIM // 2)],
        "long_factor": [1.2 ** i for i in range(DIM // 2)]}
# Class, model type, rotary parameters and the last position of the call.
CASES = (
    (LlamaRotaryEmbedding, "llama", {"rope_type": "default", "rope_theta": 1e4}, 1048575),
    (LlamaRotaryEmbedding, "llama", {"rope_type": "default", "rope_theta": 5e5}, 1048575),
    (LlamaRotaryEmbedding, "llama",
     {"rope_type": "linear", "factor": 3.0, "rope_theta": 1e4}, 1048575),
    (LlamaRotaryEmbedding, "llama", {**LLAMA3, "rope_theta": 5e5}, 1048575),
    (Qwen3RotaryEmbedding, "qwen3", {**YARN, "rope_theta": 1e6}, 1048575),
    (Gemma2RotaryEmbedding, "gemma2", {"rope_type": "default", "rope_theta": 1e4}, 1048575),
    (LlamaRotaryEmbedding, "llama",
     {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}, 131071),
    (Phi3RotaryEmbedding, "phi3", {**LONG, "rope_theta": 1e4}, 1023),
    (Phi3RotaryEmbedding, "phi3", {**LONG, "rope_theta": 1e4}, 131071),
)


def compute_tables(run, config, positions, *flags):
    with open("config.json", "w", encoding="utf-8") as file:
        json.dump(config, file)
    np.save("positions.npy", positions)
    subprocess.run([run, "config.json", "--function=sincos", "--dtype=f32",
                    "--input=@positions.npy", "--output=@cos.npy",
                    "--output=@sin.npy", *flags],
                   check=True, stdout=subprocess.DEVNULL)
    return np.stack([np.load("cos.npy"), np.load("sin.npy")])


def check_dinov3(run):
    """Whether the table of an image's patches is that of DINOv3's class."""
    sizes = {"hidden_size": 4 * DIM, "num_attention_heads": 4}
    module = DINOv3ViTRopePositionEmbedding(AutoConfig.for_model("dinov3_vit", **sizes))
    with torch.no_grad():
        tables = module.eval()(torch.zeros(1, 3, 14 * 16, 21 * 16))
    expected = np.stack([table[:, :DIM // 2].numpy() for table in tables])
    centres = [(np.arange(count) + 0.5) / count * 2 - 1 for count in (14, 21)]
    grid = np.stack(np.meshgrid(*centres, indexing="ij")).reshape(2, -1)
    found = compute_tables(run, {"model_type": "dinov3_vit", **sizes},
                           grid.astype(np.float32))
    return np.abs(found - expected).max() < 2e-6


def main():
    run = sys.argv[1]
    wrong = wrong_exact = 0
    for kind, model, rope, last in CASES:
        config = {"model_type": model, "hidden_size": 4 * DIM, "num_attention_heads": 4,
                  "num_key_value_heads": 4, "head_dim": DIM, "num_hidden_layers": 1,
                  "max_position_embeddings": 4096 if "dynamic" in rope.values() else 131072,
                  "rope_parameters": rope}
        positions = POSITIONS[POSITIONS <= last]
        module = kind(AutoConfig.for_model(**config))
        x = torch.zeros(1, 1, dtype=torch.float32)
        tables = module(x, torch.tensor(positions)[None])
        expected = np.stack([table[0, :, :DIM // 2].numpy() for table in tables])
        # PyTorch's powers may be off by one unit in the last place, so its angles
        # may be off by that of the frequency.
        angles = positions[:, None] * module.inv_freq.numpy().astype(np.float64)
        bound = (np.abs(angles) * 2.0 ** -22 + 2.0 ** -22) * module.attention_scaling

        def is_wrong(tables):
            return not np.all(np.abs(tables - expected) <= bound)

        def count_equal(tables):
            return np.mean(tables == expected)

        length = f"--rope-length={last + 1}"
        rounded = compute_tables(run, config, positions, length, "--precision=hf_f32")
        exact = compute_tables(run, config, positions, length)
        if is_wrong(rounded) or count_equal(rounded) < 0.6:
            print(f"wrong: {model} {rope}: {np.max(np.abs(rounded - expected))}, "
                  f"{count_equal(rounded)} equal")
            wrong += 1
        wrong_exact += count_equal(exact) < 0.6
    print("dinov3 is " + ("right" if check_dinov3(run) else "wrong"))
    print(f"{len(CASES)} configs, {wrong} wrong, {wrong_exact} wrong without "
          "--precision=hf_f32")


main()
