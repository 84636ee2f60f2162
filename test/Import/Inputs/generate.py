# ===- generate.py - tokens of a compiled decoder ----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""generate.py POSENC-COMPILE POSENC-GENERATE: generates tokens with a small model, and
compares them with those of NumPy in f64 and, if it is installed, of ONNX Runtime."""

import re
import subprocess
import sys

import llama_model
import numpy as np
from llama_model import Llama, read_weights, write_llama

COMPILE, GENERATE = sys.argv[1:]
CONFIG = Llama(layers=2, hidden=96, inner=200, heads=6, kv_heads=2, vocabulary=700,
               positions=256)
PROMPT, TOKENS = [5, 699, 0, 41, 333, 333, 12], 64
checks = wrong = 0


def check(name, passes, detail=""):
    global checks, wrong
    checks += 1
    if not passes:
        wrong += 1
        print(f"{name}: wrong {detail}")


def generate(*options, ids=PROMPT, tokens=TOKENS):
    return subprocess.run([GENERATE, "./libmodel.so", f"--tokens={tokens}",
                           f"--ids={','.join(map(str, ids))}", *options],
                          capture_output=True, text=True)


def get_tokens(*options, **keywords):
    done = generate(*options, **keywords)
    check(f"{options} runs", done.returncode == 0, done.stderr)
    return [int(text) for text in done.stdout.split(",")] if done.returncode == 0 else []


def compute_logits(weights, ids):
    """The logits of the token after the last one, without caches."""
    def norm(x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weights[name]

    count, head = len(ids), CONFIG.head
    cos, sin = (weights[f"{name}_cache"][:count, None] for name in ("cos", "sin"))

    def rotate(x):
        low, high = np.split(x, 2, -1)
        return np.concatenate([low * cos - high * sin, high * cos + low * sin], -1)

    hidden = np.triu(np.full((count, count), -np.inf), 1)
    x = weights["embed.weight"][ids]
    y = norm(x, "norm.weight")
    for layer in range(CONFIG.layers):
        prefix = f"layers.{layer}."
        q, k, v = ((y @ weights[f"{prefix}{name}.weight"]).reshape(count, -1, head)
                   for name in "qkv")
        k, v = (np.repeat(part, CONFIG.heads // CONFIG.kv_heads, 1)
                for part in (rotate(k), v))
        scores = np.einsum("ihd,jhd->hij", rotate(q), k) / head ** 0.5 + hidden
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        x = x + (np.einsum("hij,jhd->ihd", scores, v).reshape(count, -1)
                 @ weights[f"{prefix}o.weight"])
        y = norm(x, f"{prefix}middle.weight")
        gate, up = (y @ weights[f"{prefix}{name}.weight"] for name in ("gate", "up"))
        x = x + (gate / (1 + np.exp(-gate)) * up) @ weights[f"{prefix}down.weight"]
        y = norm(x, f"{prefix}next.weight")
    return y[-1] @ weights["embed.weight"].T


def generate_in_numpy(prompt):
    weights = {name: array.astype(float) for name, array in
               read_weights("model.onnx", PLACES).items()}
    ids = list(prompt)
    for _ in range(TOKENS):
        ids.append(int(compute_logits(weights, ids).argmax()))
    return ids[len(prompt):]


def generate_in_onnxruntime(prompt):
    try:
        import onnxruntime
    except ImportError:
        return None
    session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    return llama_model.generate(session, CONFIG, prompt, TOKENS)


PLACES = write_llama("model.onnx", CONFIG, seed=7)
subprocess.run([COMPILE, "model.onnx", "-o", "libmodel.so", "--weights=file"], check=True)
expected = generate_in_numpy(PROMPT)
check("the tokens differ", len(set(expected)) > 5, expected)
for chunk in (128, 3, 1):
    found = get_tokens(f"--chunk={chunk}")
    check(f"chunks of {chunk}", found == expected, f"{found}\n{expected}")
check("more rows", get_tokens("--rows=200") == expected)
reference = generate_in_onnxruntime(PROMPT)
check("ONNX Runtime", reference in (None, expected), reference)
# Another prompt is another text, for all who generate it.
other = [PROMPT[0] + 1, *PROMPT[1:]]
check("another prompt", get_tokens(ids=other) == generate_in_numpy(other) != expected)

samples = [get_tokens("--temperature=1.5", f"--seed={seed}", "--top-k=50")
           for seed in (1, 1, 2)]
check("the same seed", samples[0] == samples[1])
check("another seed", samples[0] != samples[2] and samples[0] != expected)
check("a low temperature", get_tokens("--temperature=1e-4") == expected)
check("one of the most likely", get_tokens("--temperature=5", "--top-k=1") == expected)

done = generate()
check("what it says", re.fullmatch(
    r"prefill: 7 tokens, [\d.]+ tokens/s\ndecode: 63 tokens, [\d.]+ tokens/s, [\d.]+ GB/s, "
    r"\d+ % of the [\d.]+ GB/s that \d+ threads read\n", done.stderr), done.stderr)
for options, ids, code, error in (
        (["--rows=69"], PROMPT, 1, "the caches have 69 rows, too few for 70 tokens"),
        ([], [700], 1, "token 700 is not one of 700"),
        (["--weights=none"], PROMPT, 1, "there is no such file"),
        (["--chunk=0"], PROMPT, 2, "usage:"), ([], [-1], 2, "usage:"),
        (["--temperature=x"], PROMPT, 2, "usage:"), (["--tokens"], PROMPT, 2, "usage:")):
    done = generate(*options, ids=ids)
    check(f"{options}, {ids}", done.returncode == code and error in done.stderr,
          f"{done.returncode}, {done.stderr}")

print(f"{checks} checks, {wrong} wrong")
