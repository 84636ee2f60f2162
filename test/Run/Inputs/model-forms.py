# ===- model-forms.py - axes and biases of models against NumPy ------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""model-forms.py POSENC-RUN FOLDER: compares functions of models that have several
position axes, or a bias instead of a rotation, with the formulas of the models'
implementations in NumPy. Checks also that wrong formulas are found."""

import json
import math
import pathlib
import subprocess
import sys

import numpy as np

RUN, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
BATCH, TOKENS, CAPACITY = 2, 19, 37
random = np.random.default_rng(3)


def call(config, function, arrays, results=1, flags=()):
    """Calls a function of a config of f32."""
    path = FOLDER / "config.json"
    path.write_text(json.dumps(config))
    command = [RUN, str(path), f"--function={function}", "--dtype=f32",
               "--opt-level=0", *flags]
    for number, array in enumerate(arrays):
        np.save(FOLDER / f"{number}.npy", array)
        command.append(f"--input=@{FOLDER}/{number}.npy")
    outputs = [FOLDER / f"result{number}.npy" for number in range(results)]
    subprocess.run(command + [f"--output=@{path}" for path in outputs], check=True)
    return [np.load(path).astype(np.float64) for path in outputs]


def make(*shape):
    return random.standard_normal(shape).astype(np.float32)


def attend(q, k, v, scale, bias=0.0, causal=True):
    """Attention of batch x tokens x heads x channels. The queries are the last tokens."""
    q, k, v = [np.float64(x).transpose(0, 2, 1, 3) for x in (q, k, v)]
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat(group, 1), v.repeat(group, 1)
    scores = q @ k.swapaxes(2, 3) * scale + bias
    if causal:
        query = np.arange(k.shape[2] - q.shape[2], k.shape[2])[:, None]
        scores = np.where(np.arange(k.shape[2]) <= query, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3)


# ===----------------------------------------------------------------------===#
# Position axes
# ===----------------------------------------------------------------------===#


def inverse_frequencies(dim, base):
    return base ** (-np.arange(0, dim, 2) / dim)


def contiguous(positions, dim, base, sections):
    """Angles of Qwen2-VL: those of each axis for all pairs, cut into sections."""
    angles = positions[..., None] * inverse_frequencies(dim, base)
    ends = np.cumsum(sections)[:-1]
    parts = [np.split(angles[axis], ends, -1)[axis] for axis in range(len(sections))]
    return np.concatenate(parts, -1)


def interleaved(positions, dim, base, sections):
    """Angles of Qwen3-VL: those of axis 0, some of which other axes overwrite."""
    angles = positions[..., None] * inverse_frequencies(dim, base)
    result = angles[0].copy()
    for axis in (1, 2):
        chosen = slice(axis, 3 * sections[axis], 3)
        result[..., chosen] = angles[axis][..., chosen]
    return result


def patches(positions, dim, base, _):
    """Angles of Pixtral: even frequencies for rows, odd ones for columns."""
    frequencies = inverse_frequencies(dim, base)
    return np.concatenate([positions[0][..., None] * frequencies[::2],
                           positions[1][..., None] * frequencies[1::2]], -1)


def coordinates(positions, dim, _, __):
    """Angles of DINOv3, whose base is 100."""
    frequencies = 2 * np.pi * inverse_frequencies(dim // 2, 100)
    return np.concatenate([np.float64(axis)[..., None] * frequencies
                           for axis in positions], -1)


def rotate(x, angles, alternate):
    """Rotates batch x tokens x heads x channels; `alternate` pairs neighbours."""
    x = np.float64(x)
    dim = 2 * angles.shape[-1]
    cos, sin = np.cos(angles)[:, :, None], np.sin(angles)[:, :, None]
    rotated = x.copy()
    first, second = ((slice(0, dim, 2), slice(1, dim, 2)) if alternate else
                     (slice(0, dim // 2), slice(dim // 2, dim)))
    rotated[..., first] = x[..., first] * cos - x[..., second] * sin
    rotated[..., second] = x[..., second] * cos + x[..., first] * sin
    return rotated


def text(model, sections, **others):
    keys = {"rope_type": "default", "mrope_section": sections, **others}
    return {"model_type": model, "hidden_size": 128, "num_attention_heads": 4,
            "num_key_value_heads": 2, "head_dim": 32, "rope_theta": 1e4,
            "rope_scaling": keys}


# Name, config, angles, rotary dimension, sections, and whether neighbours are pairs.
AXES = (
    ("qwen2_vl", text("qwen2_vl", [4, 5, 7]), contiguous, 32, [4, 5, 7], False),
    ("qwen3_vl", text("qwen3_vl", [6, 5, 5], mrope_interleaved=True), interleaved, 32,
     [6, 5, 5], False),
    ("glm4v", {**text("glm4v", [2, 3, 3]), "partial_rotary_factor": 0.5}, contiguous,
     16, [2, 3, 3], True),
    ("pixtral", {"model_type": "pixtral", "hidden_size": 128, "num_attention_heads": 4},
     patches, 32, [8, 8], False),
    ("dinov3_vit", {"model_type": "dinov3_vit", "hidden_size": 128,
                    "num_attention_heads": 4}, coordinates, 32, [8, 8], False),
)


def check_axes(config, angles, dim, sections, alternate):
    """Returns the largest error of each function."""
    axes = len(sections)
    heads = config.get("num_key_value_heads", 4)
    positions = random.integers(0, 4096, (axes, BATCH, TOKENS))
    if config["model_type"] == "dinov3_vit":
        positions = random.uniform(-1, 1, (axes, BATCH, TOKENS)).astype(np.float32)
    q, k, v = make(BATCH, TOKENS, 4, 32), *(make(BATCH, TOKENS, heads, 32) for _ in "kv")
    expected = angles(positions, dim, 1e4, sections)
    errors = {}

    def compare(name, *pairs):
        errors[name] = max(np.abs(found - wanted).max() for found, wanted in pairs)

    tables = call(config, "sincos", [positions[:, 0].copy()], 2)
    compare("sincos", (tables[0], np.cos(expected[0])), (tables[1], np.sin(expected[0])))
    rotated = [rotate(x, expected, alternate) for x in (q, k)]
    compare("rope", *zip(call(config, "rope", [q, k, positions], 2), rotated))
    causal = config["model_type"] not in ("pixtral", "dinov3_vit")
    wanted = attend(*rotated, v, 32 ** -0.5, causal=causal)
    compare("attention", (call(config, "attention", [q, k, v, positions])[0], wanted))
    if not causal:
        return errors
    # Other tokens follow the valid ones in the caches, which hold rotated keys.
    caches = [make(BATCH, heads, CAPACITY, 32) for _ in "kv"]
    for cache, rows in zip(caches, (rotated[1], v)):
        cache[:, :, :TOKENS] = rows.transpose(0, 2, 1, 3)
    lengths = np.full(BATCH, TOKENS)
    for tokens in (1, 3):
        arguments = [q[:, -tokens:].copy(), *caches, lengths,
                     positions[:, :, -tokens:].copy()]
        found = call(config, "decode", arguments, flags=[f"--decode-tokens={tokens}"])[0]
        compare(f"decode of {tokens}", (found, wanted[:, -tokens:]))
    return errors


# ===----------------------------------------------------------------------===#
# Biases
# ===----------------------------------------------------------------------===#


def get_slopes(heads):
    """The slopes of ALiBi, in the form of its authors."""
    def powers(count):
        start = 2 ** (-(2 ** -(math.log2(count) - 3)))
        return [start ** (index + 1) for index in range(count)]
    nearest = 2 ** math.floor(math.log2(heads))
    return powers(nearest) + powers(2 * nearest)[::2][:heads - nearest]


def alibi(heads, factor=1.0):
    key = np.arange(TOKENS)
    return factor * np.array(get_slopes(heads))[:, None, None] * (key - key[:, None])


def t5_bias(table, bidirectional, max_distance):
    buckets = len(table) // 2 if bidirectional else len(table)
    index = np.arange(TOKENS)
    relative = index - index[:, None]
    offset = np.where(relative > 0, buckets, 0) if bidirectional else 0
    distance = np.abs(relative) if bidirectional else np.maximum(-relative, 0)
    exact = buckets // 2
    ratio = np.log(np.maximum(distance, 1) / exact) / math.log(max_distance / exact)
    far = np.minimum(exact + np.trunc(ratio * (buckets - exact)), buckets - 1)
    bucket = offset + np.where(distance < exact, distance, far)
    return np.float64(table)[bucket.astype(int)].transpose(2, 0, 1)


def check_bias(config, function, heads, key_heads, scale, bias, table=None):
    """Returns the largest error of attention and, for a causal model, of decode."""
    q = make(BATCH, TOKENS, heads, 32)
    k, v = (make(BATCH, TOKENS, key_heads, 32) for _ in "kv")
    last = [] if table is None else [table]
    causal = function != "attention_encoder"
    wanted = attend(q, k, v, scale, bias, causal)
    positions = np.zeros((BATCH, TOKENS), np.int64)
    found = call(config, function, [q, k, v, positions] + last)[0]
    errors = {function: np.abs(found - wanted).max()}
    if not causal:
        return errors
    caches = [make(BATCH, key_heads, CAPACITY, 32) for _ in "kv"]
    for cache, rows in zip(caches, (k, v)):
        cache[:, :, :TOKENS] = rows.transpose(0, 2, 1, 3)
    lengths = np.full(BATCH, TOKENS)
    for tokens in (1, 3):
        arguments = [q[:, -tokens:].copy(), *caches, lengths] + last
        found = call(config, "decode", arguments, flags=[f"--decode-tokens={tokens}"])[0]
        errors[f"decode of {tokens}"] = np.abs(found - wanted[:, -tokens:]).max()
    return errors


def main():
    wrong = faults = 0

    def report(name, errors, is_fault=False):
        nonlocal wrong, faults
        for function, error in errors.items():
            if is_fault:
                faults += error > 1e-3
            elif not error < 1e-5:
                wrong += 1
                print(f"{name} {function}: error {error}")
            else:
                print(f"{name} {function} is right")

    for name, config, *form in AXES:
        report(name, check_axes(config, *form))
    # Each has the angles of the other, and the pairs of another model.
    report("", check_axes(AXES[0][1], interleaved, *AXES[0][3:]), is_fault=True)
    report("", check_axes(AXES[1][1], contiguous, *AXES[1][3:]), is_fault=True)
    report("", check_axes(AXES[3][1], contiguous, *AXES[3][3:]), is_fault=True)
    report("", check_axes(AXES[4][1], patches, *AXES[4][3:]), is_fault=True)

    plain = 32 ** -0.5
    bloom = {"model_type": "bloom", "n_head": 6, "hidden_size": 192}
    mpt = {"model_type": "mpt", "n_heads": 4, "d_model": 128,
           "attn_config": {"alibi": True, "softmax_scale": 0.25}}
    falcon = {"model_type": "falcon", "alibi": True, "multi_query": True,
              "num_attention_heads": 4, "hidden_size": 128}
    t5 = {"model_type": "t5", "num_heads": 4, "d_kv": 32,
          "relative_attention_num_buckets": 12, "relative_attention_max_distance": 15}
    table = make(12, 4)
    report("bloom", check_bias(bloom, "attention", 6, 6, plain, alibi(6)))
    report("mpt", check_bias(mpt, "attention", 4, 4, 0.25, alibi(4)))
    report("falcon", check_bias(falcon, "attention", 4, 1, plain, alibi(4, plain)))
    report("t5", check_bias(t5, "attention_encoder", 4, 4, 1, t5_bias(table, True, 15),
                            table))
    report("t5", check_bias(t5, "attention_decoder", 4, 4, 1, t5_bias(table, False, 15),
                            table))
    report("", check_bias(falcon, "attention", 4, 1, plain, alibi(4)), is_fault=True)
    report("", check_bias(t5, "attention_decoder", 4, 4, 1, t5_bias(table, True, 15),
                          table), is_fault=True)
    print(f"{wrong} wrong, {faults} faults found")


main()
