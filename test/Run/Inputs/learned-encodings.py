# ===- learned-encodings.py - learned positions against NumPy ---------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""learned-encodings.py POSENC-RUN SOURCE FOLDER: compares examples/absolute.mlir and
examples/relative.mlir with NumPy in f64, checks that faults are found, and compares the
code on the page docs/learned-encodings.md with the examples."""

import pathlib
import re
import subprocess
import sys

import numpy as np

RUN, SOURCE, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
random = np.random.default_rng(11)


def get_function(name):
    """Returns a function of the examples and the aliases before it."""
    for file in ("absolute", "relative"):
        text = (SOURCE / "examples" / f"{file}.mlir").read_text()
        match = re.search(rf"^func\.func @{name}\(.*?^}}\n", text, re.M | re.S)
        if match:
            aliases = re.findall(r"^[#!].*$", text[: match.start()], re.M)
            return "\n".join([*aliases, match[0]])
    raise ValueError(f"no example @{name}")


def check_page():
    page = (SOURCE / "docs" / "learned-encodings.md").read_text()
    blocks = re.findall(r"```mlir\n(.*?)```", page, re.S)
    return len(blocks) == 2 and all(
        block in get_function(name) for block, name in zip(blocks, ("gpt2", "shaw_keys")))


def call(text, arrays):
    (FOLDER / "example.mlir").write_text(text)
    inputs = []
    for number, array in enumerate(arrays):
        np.save(FOLDER / f"{number}.npy", array)
        inputs.append(f"--input=@{FOLDER}/{number}.npy")
    subprocess.run([RUN, str(FOLDER / "example.mlir"), "--opt-level=0",
                    f"--output=@{FOLDER}/r.npy", *inputs], check=True)
    return np.load(FOLDER / "r.npy")


def make(*shape):
    return random.standard_normal(shape).astype(np.float32)


def is_near(result, expected):
    error = np.linalg.norm(result - expected)
    return result.shape == expected.shape and error <= 1e-5 * np.linalg.norm(expected)


# === Absolute positions ====================================================== #


def to_bf16(values):
    """Returns the bits of values, rounded to nearest, ties to even."""
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def check_gather(rows, skipped):
    def check(text, batch, tokens, channels=768):
        x, table = make(batch, tokens, channels), make(rows, channels)
        positions = random.integers(0, rows - skipped, (batch, tokens))
        expected = np.float64(x) + table[positions + skipped]
        text = text.replace("768", str(channels))
        return np.array_equal(call(text, [x, table, positions]), np.float32(expected))

    return check


def check_bf16(text, batch, tokens, channels=768):
    x, table = to_bf16(make(batch, tokens, channels)), to_bf16(make(1024, channels))
    positions = random.integers(0, 1024, (batch, tokens))
    # Sums of two bf16 numbers of similar size are exact in f32.
    expected = to_bf16(from_bf16(x) + from_bf16(table)[positions])
    text = text.replace("768", str(channels))
    return np.array_equal(call(text, [x, table, positions]), expected)


def check_bert(text, batch, tokens):
    tables = [make(rows, 768) for rows in (3001, 512, 2)]
    indices = [random.integers(0, len(table), (batch, tokens)) for table in tables]
    expected = sum(np.float64(table)[index] for table, index in zip(tables, indices))
    return is_near(call(text, [*tables, *indices]), expected)


def check_vit(text, batch, tokens):
    x, table = make(batch, tokens, 768), make(197, 768)
    return np.array_equal(call(text, [x, table]), x + table[:tokens])


# === Relative positions ====================================================== #


def by_head(x):
    return np.float64(x).transpose(0, 2, 1, 3)


def get_weights(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def get_relative_positions(queries, keys):
    """Returns j - i, where the last query and the last key are the same token."""
    return np.arange(keys)[None] - (np.arange(queries) + keys - queries)[:, None]


def check_shaw(text, batch, queries, keys, on_values=True):
    q, k, v = make(batch, queries, 8, 64), make(batch, keys, 8, 64), make(batch, keys, 8, 64)
    tables = [make(33, 64) for _ in range(2 if on_values else 1)]
    row = np.clip(get_relative_positions(queries, keys), -16, 16) + 16
    scores = by_head(q) @ by_head(k).swapaxes(2, 3)
    scores += np.einsum("bhic,ijc->bhij", by_head(q), np.float64(tables[0])[row])
    weights = get_weights(scores / 8)
    o = weights @ by_head(v)
    if on_values:
        o += np.einsum("bhij,ijc->bhic", weights, np.float64(tables[1])[row])
    return is_near(call(text, [q, k, v, *tables]), o.transpose(0, 2, 1, 3))


def check_shaw_keys(text, *sizes):
    return check_shaw(text, *sizes, on_values=False)


def shift(x):
    """Moves row i to the left by queries - 1 - i, as Transformer-XL's rel_shift."""
    *outer, queries, keys = x.shape
    padded = np.concatenate([np.zeros((*outer, queries, 1)), x], -1)
    return padded.reshape(*outer, keys + 1, queries)[..., 1:, :].reshape(x.shape)


def check_transformer_xl(text, batch, queries, keys):
    q, k, v = make(batch, queries, 8, 64), make(batch, keys, 8, 64), make(batch, keys, 8, 64)
    u, w, matrix = make(8, 64), make(8, 64), make(512, 512) / 16
    angles = np.arange(keys)[::-1, None] * 1e4 ** (-np.arange(256) / 256)
    sinusoidal = np.concatenate([np.sin(angles), np.cos(angles)], -1)
    r = (sinusoidal @ np.float64(matrix)).reshape(keys, 8, 64).transpose(1, 2, 0)
    scores = by_head(q + np.float64(u)) @ by_head(k).swapaxes(2, 3)
    scores += shift(by_head(q + np.float64(w)) @ r)
    scores[..., get_relative_positions(queries, keys) > 0] = -np.inf
    o = get_weights(scores / 8) @ by_head(v)
    return is_near(call(text, [q, k, v, u, w, matrix]), o.transpose(0, 2, 1, 3))


def check_sam(text, batch):
    q, k, v = [make(batch, 196, 12, 64) for _ in range(3)]
    rows, columns = make(27, 64), make(27, 64)
    relative = np.arange(14)[:, None] - np.arange(14)[None] + 13
    grid = by_head(q).reshape(batch, 12, 14, 14, 64)
    row_terms = np.einsum("bhyxc,ymc->bhyxm", grid, np.float64(rows)[relative])
    column_terms = np.einsum("bhyxc,xnc->bhyxn", grid, np.float64(columns)[relative])
    bias = row_terms[..., :, None] + column_terms[..., None, :]
    scores = by_head(q) @ by_head(k).swapaxes(2, 3) / 8 + bias.reshape(batch, 12, 196, 196)
    o = get_weights(scores) @ by_head(v)
    return is_near(call(text, [q, k, v, rows, columns]), o.transpose(0, 2, 1, 3))


def check_swin(text, images, size, offset):
    """Windows of images with `size` x `size` patches, shifted by `offset`."""
    parts = np.zeros((size, size), np.int32)
    if offset:
        zone = np.digitize(np.arange(size), [size - 7, size - offset])
        parts = np.int32(3 * zone[:, None] + zone[None])
    parts = parts.reshape(size // 7, 7, size // 7, 7).swapaxes(1, 2).reshape(-1, 49)
    q, k, v = [make(images * len(parts), 49, 3, 32) for _ in range(3)]
    table = make(169, 3)
    y, x = np.divmod(np.arange(49), 7)
    number = 13 * (y[:, None] - y[None] + 6) + x[:, None] - x[None] + 6
    bias = np.float64(table)[number].transpose(2, 0, 1)
    scores = by_head(q) @ by_head(k).swapaxes(2, 3) / 32**0.5 + bias
    hidden = np.tile(parts[:, :, None] != parts[:, None, :], (images, 1, 1))
    scores[np.broadcast_to(hidden[:, None], scores.shape)] = -np.inf
    o = get_weights(scores) @ by_head(v)
    return is_near(call(text, [q, k, v, table, parts]), o.transpose(0, 2, 1, 3))


ABSOLUTE = [(1, 1), (3, 37), (2, 0)]
# Rows with a remainder, and rows shorter than a vector.
CHANNELS = [(2, 5, 77), (1, 9, 3)]
RELATIVE = [(1, 1, 1), (2, 37, 45), (1, 5, 130), (3, 67, 67), (2, 0, 3)]
# Each example with its check, sizes, and faults: replacements in its text.
EXAMPLES = {
    "gpt2": (check_gather(1024, 0), ABSOLUTE + CHANNELS, [("addf %a", "subf %a")]),
    "gpt2_bf16": (check_bf16, ABSOLUTE + CHANNELS, [("addf %a", "subf %a")]),
    "opt": (check_gather(2050, 2), ABSOLUTE, [("%table[2, 0]", "%table[1, 0]")]),
    "bert": (check_bert, ABSOLUTE, [("%segments[%k", "%segments[%c0")]),
    "vit": (check_vit, ABSOLUTE + [(1, 197)], [("%table[0, 0]", "%table[1, 0]")]),
    "shaw_keys": (check_shaw_keys, RELATIVE, [
        ("subi %j, %i", "subi %i, %j"), ("constant -16", "constant -15"),
        ("constant 0.125", "constant 0.25")]),
    "shaw": (check_shaw, RELATIVE, [
        ("subi %j, %i", "subi %i, %j"), ("%h, %c32]", "%h, %c0]"), ("sge, %relative", "sgt, %relative"),
        ("%is_last, %after", "%is_first, %after"), ("[0, %first, 0, 0]", "[0, %c0, 0, 0]"),
        ("ult, %j, %keys", "ule, %j, %keys"), ("addf %s, %term", "addf %s, %zero")]),
    "transformer_xl": (check_transformer_xl, RELATIVE, [
        ("subi %last, %relative", "subi %keys, %relative"),
        ("ins(%qu, %k", "ins(%q, %k"), ("sin_cos", "cos_sin")]),
    "sam": (check_sam, [(1,), (3,)], [
        ("y - m + 13", "m - y + 13"), ("remui %j", "divui %j"), ("#of_column, #term", "#of_row, #term")]),
    "swin": (check_swin, [(1, 7, 0), (2, 14, 3), (1, 21, 3)], [
        ("subi %yi, %yj", "subi %yj, %yi"), ("remui %b", "divui %b"),
        ("muli %row, %width", "muli %column, %width")]),
}
count = wrong = faults = found = 0
for name, (check, all_sizes, edits) in EXAMPLES.items():
    text = get_function(name)
    for sizes in all_sizes:
        count += 1
        if not check(text, *sizes):
            wrong += 1
            print("wrong:", name, sizes)
    for before, after in edits:
        assert before in text, (name, before)
        faults += 1
        if check(text.replace(before, after), *all_sizes[1]):
            print("not found:", name, before)
        else:
            found += 1
page = "as" if check_page() else "not as"
print(f"{count} results, {wrong} wrong, {found} of {faults} faults found, code {page} on the page")
