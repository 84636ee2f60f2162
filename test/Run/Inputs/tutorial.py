# ===- tutorial.py - examples of the tutorial against NumPy -----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""tutorial.py POSENC-RUN SOURCE FOLDER: compares the examples with NumPy, checks that
faults are found, and compares the code on the page with the examples."""

import pathlib
import re
import subprocess
import sys

NAMES = ("learned-bias", "differential-attention")


def get_code(source, name):
    """Returns the code of an example without its header."""
    text = (source / "examples" / f"{name}.mlir").read_text()
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line and not line.startswith("//"))
    return "\n".join(lines[first:])


def check_page(source):
    page = (source / "docs" / "tutorial.md").read_text()
    blocks = re.findall(r"```mlir\n(.*?)\n```", page, re.S)
    return blocks == [get_code(source, name) for name in NAMES]


def main():
    import numpy as np

    run, source, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    random = np.random.default_rng(5)

    def call(text, arrays):
        (folder / "example.mlir").write_text(text)
        inputs = []
        for number, array in enumerate(arrays):
            if np.isscalar(array):
                inputs.append(f"--input={array}")
                continue
            np.save(folder / f"{number}.npy", array)
            inputs.append(f"--input=@{folder}/{number}.npy")
        subprocess.run([run, str(folder / "example.mlir"), "--opt-level=0",
                        f"--output=@{folder}/r.npy"] + inputs, check=True)
        return np.load(folder / "r.npy").astype(np.float64)

    def make(*shape):
        return random.standard_normal(shape).astype(np.float32)

    def attend(q, k, v, bias=0.0):
        """Causal attention of batch x tokens x heads x channels."""
        q, k, v = [np.float64(x).transpose(0, 2, 1, 3) for x in (q, k, v)]
        group = q.shape[1] // k.shape[1]
        k, v = k.repeat(group, 1), v.repeat(group, 1)
        scores = q @ k.swapaxes(2, 3) * q.shape[-1] ** -0.5 + bias
        relative = get_relative_positions(q.shape[2], k.shape[2])
        scores = np.where(relative >= 0, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return (weights @ v).transpose(0, 2, 1, 3)

    def get_relative_positions(queries, keys):
        return np.arange(queries)[:, None] + keys - queries - np.arange(keys)[None]

    def rotate(x, first=0):
        half = x.shape[-1] // 2
        angles = (np.arange(x.shape[1]) + first)[:, None] * 1e4 ** (-np.arange(half) / half)
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        a, b = np.float64(x[..., :half]), np.float64(x[..., half:])
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def check_bias(text, batch, queries, keys):
        q, k, v = make(batch, queries, 8, 64), make(batch, keys, 2, 64), make(batch, keys, 2, 64)
        table = make(8, 128)
        relative = get_relative_positions(queries, keys)
        bias = np.float64(table)[:, np.clip(relative, 0, 127)]
        return is_near(call(text, [q, k, v, table]), attend(q, k, v, bias))

    def check_difference(text, batch, queries, keys):
        q = [make(batch, queries, 8, 64) for _ in range(2)]
        k = [make(batch, keys, 2, 64) for _ in range(2)]
        v, g, weight = make(batch, keys, 2, 128), make(128), 0.75
        a = [attend(rotate(x, keys - queries), rotate(y), v) for x, y in zip(q, k)]
        x = a[0] - weight * a[1]
        x = 0.2 * x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * g
        return is_near(call(text, [q[0], k[0], q[1], k[1], v, weight, g]), x)

    def is_near(result, expected):
        return np.linalg.norm(result - expected) < 1e-5 * np.linalg.norm(expected)

    checks = dict(zip(NAMES, (check_bias, check_difference)))
    count = wrong = found = 0
    for name, check in checks.items():
        for sizes in ((1, 1, 1), (2, 37, 37), (1, 1, 300), (2, 5, 150)):
            count += 1
            if not check(get_code(source, name), *sizes):
                print("wrong:", name, sizes)
                wrong += 1
    for name, before, after in (
            ("learned-bias", "arith.subi %i, %j", "arith.subi %j, %i"),
            ("learned-bias", "constant 127", "constant 126"),
            ("differential-attention", "arith.subf %p, %m", "arith.addf %p, %m"),
            ("differential-attention", "1.0e-5", "1.0e-1"),
            ("differential-attention", "base = 10000.0", "base = 1000.0")):
        text = get_code(source, name)
        assert before in text, before
        found += not checks[name](text.replace(before, after), 2, 5, 150)
    page = "as" if check_page(source) else "not as"
    print(f"{count} results, {wrong} wrong, {found} faults found, code {page} on the page")


main()
