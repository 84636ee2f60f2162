# ===- attention.py - caches and masks of ONNX models against NumPy ---------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""attention.py POSENC-COMPILE POSENC-RUN: calls models of attention operators, and
compares the results with those of the operators' definitions in f64."""

import subprocess
import sys

import numpy as np
from onnx_model import node, write

COMPILE, RUN = sys.argv[1:]
random = np.random.default_rng(11)
calls = wrong = 0


def floats(*shape):
    return random.standard_normal(shape).astype(np.float32)


def compile_model(name, *parts, **keywords):
    write(f"{name}.onnx", *parts, **keywords)
    subprocess.run([COMPILE, f"{name}.onnx", "-o", f"lib{name}.so", "--opt-level=0",
                    "--threads=none"], check=True)


def call(name, case, inputs, expected):
    """`expected` are arrays, or the text of an error of the call."""
    global calls, wrong
    calls += 1
    arguments = []
    for number, array in enumerate(inputs):
        np.save(f"in{number}.npy", array)
        arguments.append(f"--input=@in{number}.npy")
    count = 3 if isinstance(expected, str) else len(expected)
    arguments += [f"--output=@out{number}.npy" for number in range(count)]
    done = subprocess.run([RUN, f"lib{name}.so", "--function=main", *arguments],
                          capture_output=True, text=True)
    if isinstance(expected, str):
        found = [] if done.returncode == 1 and expected in done.stderr else [done.stderr]
    elif done.returncode:
        found = [done.stderr]
    else:
        results = [np.load(f"out{number}.npy") for number in range(count)]
        found = [f"result {number} of shape {result.shape} differs from {array.shape}"
                 for number, (result, array) in enumerate(zip(results, expected))
                 if result.shape != array.shape or
                 not np.allclose(result, array, rtol=1e-4, atol=1e-5)]
    wrong += bool(found)
    for message in found:
        print(f"{name}, {case}: {message}")


def attend(q, k, v, visible, bias=0.0, cap=0.0):
    """All are (batch, heads, tokens, dim); `visible` and `bias` are broadcast to the
    scores. Rows without visible keys are 0."""
    group = q.shape[1] // k.shape[1]
    q, k, v = q.astype(float), k.repeat(group, 1), v.repeat(group, 1)
    scores = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])
    scores = cap * np.tanh(scores / cap) if cap else scores
    weights = np.where(visible, np.exp(scores + bias), 0)
    sums = weights.sum(-1, keepdims=True)
    return weights / np.where(sums == 0, 1, sums) @ v


def split(x, heads):
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).swapaxes(1, 2)


def merge(x):
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


# ===----------------------------------------------------------------------===#
# GroupQueryAttention
# ===----------------------------------------------------------------------===#

HEADS = {"num_heads": 4, "kv_num_heads": 2}


def group_query(q, k, v, pk, pv, lengths, total, window=0, cap=0.0, causal=True,
                clears=True):
    """Returns the output and the present keys and values. `clears` is whether rows
    that no key is in are 0; otherwise they keep what the past ones have."""
    tokens, rows = q.shape[1], max(pk.shape[2], total)
    totals = lengths.astype(int) + 1
    # Sequences of a first call are padded behind their tokens.
    first = np.zeros_like(totals) if total == tokens else totals - tokens
    caches = []
    for past, new in ((pk, split(k, 2)), (pv, split(v, 2))):
        cache = np.zeros((*past.shape[:2], rows, 16), np.float32)
        for sequence in range(len(totals)):
            kept = first[sequence] if k.shape[1] else totals[sequence]
            kept = kept if clears else past.shape[2]
            cache[sequence, :, :kept] = past[sequence, :, :kept]
            if k.shape[1]:
                start = first[sequence]
                cache[sequence, :, start:start + tokens] = new[sequence]
        caches.append(cache)
    key = np.arange(rows)[None, None, None]
    position = (first[:, None] + np.arange(tokens))[:, None, :, None]
    visible = key < totals[:, None, None, None]
    visible = visible & (key <= position) if causal else visible
    visible = visible & (key > position - window) if window else visible
    return merge(attend(split(q, 4), *caches, visible, cap=cap)), *caches


def write_group(name, keys="s", present="total", source="shape", batch="b", **attributes):
    """A model whose total length is a size of the mask, an input, converted from one, or
    the sum of others."""
    inputs = {"q": ("f32", [batch, "s", 64]), "k": ("f32", [batch, keys, 32]),
              "v": ("f32", [batch, keys, 32]), "pk": ("f32", [batch, 2, "past", 16]),
              "pv": ("f32", [batch, 2, "past", 16]), "lengths": ("i32", [batch])}
    nodes = []
    if source == "shape":
        inputs["mask"] = ("i64", [batch, "total"])
        nodes = [node("Shape", ["mask"], ["shape"], start=1, end=2),
                 node("Cast", ["shape"], ["total"], to=6)]
    elif source == "input":
        inputs["total"] = ("i32", [1])
    elif source == "cast":
        inputs["wide"] = ("i64", [1])
        nodes = [node("Cast", ["wide"], ["total"], to=6)]
    else:
        inputs["parts"] = ("i32", [2])
        nodes = [node("ReduceSum", ["parts"], ["total"], keepdims=1)]
    nodes.append(node("GroupQueryAttention",
                      ["q", "k", "v", "pk", "pv", "lengths", "total"], ["y", "nk", "nv"],
                      "com.microsoft", **HEADS, **attributes))
    cache = ("f32", [batch, 2, present, 16])
    compile_model(name, nodes, inputs, {"y": ("f32", []), "nk": cache, "nv": cache})


def call_group(name, case, tokens, past, lengths, total, keys=None, error=None,
               source="shape", **how):
    batch, keys = len(lengths), tokens if keys is None else keys
    # Rows without keys have large values.
    data = [floats(batch, tokens, 64), floats(batch, keys, 32), floats(batch, keys, 32),
            floats(batch, 2, past, 16) * 50, floats(batch, 2, past, 16) * 50,
            np.array(lengths, np.int32)]
    last = {"shape": lambda: np.zeros((batch, total), np.int64),
            "input": lambda: np.array([total], np.int32),
            "cast": lambda: np.array([total], np.int64),
            "computed": lambda: np.array([total - 2, 2], np.int32)}[source]()
    call(name, case, [*data, last], error or group_query(*data, total, **how))


write_group("follows")
call_group("follows", "a buffer", 1, 16, [6, 3], 7)
call_group("follows", "full caches", 1, 7, [7, 3], 8)
call_group("follows", "a prompt without past", 4, 0, [3, 1], 4)
call_group("follows", "a prompt in a buffer", 4, 16, [3, 1], 4)
call_group("follows", "more tokens", 3, 16, [8], 9)
write_group("one", batch=1)
call_group("one", "a prompt that is padded", 4, 16, [1], 4)
how = {"source": "computed", "window": 4, "cap": 3.0}
write_group("computed", source="computed", local_window_size=4, softcap=3.0)
call_group("computed", "a buffer", 1, 16, [6, 3], 7, **how)
call_group("computed", "more tokens", 3, 16, [8], 9, **how)
call_group("computed", "a prompt without past", 4, 0, [3, 3], 4, **how)
call_group("computed", "no room", 1, 7, [7, 3], 8, **how,
           error="'y': total_sequence_length is larger than the caches")
for source in ("input", "cast"):
    how = {"source": source, "window": 4}
    write_group(f"grows_{source}", source=source, local_window_size=4)
    for tokens, past, lengths, total in ((1, 16, [6, 3], 7), (1, 7, [7, 3], 8),
                                         (4, 0, [3, 3], 4), (3, 6, [8], 9)):
        call_group(f"grows_{source}", f"{total} of {past} rows", tokens, past, lengths,
                   total, **how)
for source, values in (("input", (-1, -2**31)),
                       ("cast", (-1, 2**31, 2**63 - 1))):
    for value in values:
        call_group(f"grows_{source}", str(value), 1, 7, [6, 3], value, source=source,
                   error="total[0] is" if source == "input" else "wide[0]")
# Two layers: the caches of one grow to an input, and those of the other to a sum.
q, k, v, lengths = (floats(2, 1, 64), floats(2, 1, 32), floats(2, 1, 32),
                    np.array([6, 3], np.int32))
inputs = {"q": ("f32", ["b", "s", 64]), "k": ("f32", ["b", "s", 32]),
          "v": ("f32", ["b", "s", 32]), "lengths": ("i32", ["b"]),
          "total": ("i32", []), "old": ("i64", [1]), "new": ("i64", [1])}
nodes = [node("Add", ["old", "new"], ["wide"]), node("Cast", ["wide"], ["sum"], to=6)]
for layer, total in enumerate(("total", "sum")):
    for name in ("pk", "pv"):
        inputs[f"{name}{layer}"] = ("f32", ["b", 2, f"past{layer}", 16])
    nodes.append(node("GroupQueryAttention",
                      ["q", "k", "v", f"pk{layer}", f"pv{layer}", "lengths", total],
                      [f"y{layer}", f"nk{layer}", f"nv{layer}"], "com.microsoft", **HEADS))
compile_model("layers", nodes, inputs,
              [f"{name}{layer}" for layer in (0, 1) for name in ("y", "nk", "nv")])
for rows in ((7, 6), (6, 9), (0, 0)):
    pasts = [[floats(2, 2, past, 16) for _ in range(2)] for past in rows]
    prompt = rows == (0, 0)
    if prompt:
        lengths = np.array([0, 0], np.int32)
    total = 1 if prompt else 7
    for old in (total - 1, total + 2, 2**63 - 1, 2**31, -3):
        data = [q, k, v, lengths, np.array(total, np.int32), np.array([old]), np.array([1]),
                *pasts[0], *pasts[1]]
        # Rows beyond the keys are 0.
        results = [group_query(q, k, v, *past, lengths, total) for past in pasts]
        if old == total + 2 and not prompt:
            results[1] = (results[1][0], *(
                np.pad(cache, ((0, 0), (0, 0), (0, max(0, old + 1 - cache.shape[2])), (0, 0)))
                for cache in results[1][1:]))
        if old == total + 2 and prompt:
            continue  # The second layer would not take the call as the first one.
        call("layers", f"{rows} rows, {old}", data,
             sum(results, ()) if 0 <= old < 100 else "old[0] +")
how = {"source": "input", "causal": False, "clears": False}
write_group("place", present="past", source="input", causal=0)
call_group("place", "a buffer", 1, 16, [6, 3], 7, **how)
call_group("place", "no room", 1, 7, [7, 3], 8, **how,
           error="total[0] is 8, expected 0 to 7")
write_group("sizes", present="past")
call_group("sizes", "no room", 1, 7, [7, 3], 8,
           error="dimension 1 of mask is 8, expected at most dimension 2 of pk")
write_group("shared", keys=0)
call_group("shared", "a buffer", 1, 16, [6, 3], 7, keys=0)
call_group("shared", "a prompt", 4, 16, [3, 1], 4, keys=0)

# The total length and the columns of a bias are fewer than the rows; present caches
# that nobody reads need no size.
q, k, v, pk, pv = (floats(2, 1, 64), floats(2, 1, 32), floats(2, 1, 32),
                   floats(2, 2, 8, 16), floats(2, 2, 8, 16))
bias, lengths = floats(2, 1, 1, 7), np.array([6, 3], np.int32)
caches = group_query(q, k, v, pk, pv, lengths, 7)[1:]
wide = np.pad(bias, ((0, 0), (0, 0), (0, 0), (0, 1)))
visible = np.arange(8) <= lengths[:, None, None, None]
compile_model("bias", [node("GroupQueryAttention",
                            ["q", "k", "v", "pk", "pv", "lengths", "total", "", "", "",
                             "bias"], ["y", "nk", "nv"], "com.microsoft", **HEADS)],
              {"q": ("f32", [2, 1, 64]), "k": ("f32", [2, 1, 32]),
               "v": ("f32", [2, 1, 32]), "pk": ("f32", [2, 2, 8, 16]),
               "pv": ("f32", [2, 2, 8, 16]), "lengths": ("i32", [2]),
               "total": ("i32", [1]), "bias": ("f32", [2, 1, 1, "columns"])}, ["y"])
call("bias", "a buffer", [q, k, v, pk, pv, lengths, np.array([7], np.int32), bias],
     [merge(attend(split(q, 4), *caches, visible, wide))])

# ===----------------------------------------------------------------------===#
# Masks of Attention
# ===----------------------------------------------------------------------===#

# Masks with fewer columns than keys hide the others, one column, too. With numbers of
# valid keys, the number of columns may be dynamic.
q, k, v = floats(2, 2, 4, 8), floats(2, 2, 6, 8), floats(2, 2, 6, 8)
masks = {"column": random.random((4, 1)) < 0.7, "part": random.random((2, 1, 4, 4)) < 0.7,
         "row": floats(3), "shifted": floats(4, 4), "valid": floats(4, 5)}
lengths = np.array([5, 3], np.int64)
outputs = [f"y{number}" for number in range(len(masks))]
nodes = [node("Attention", ["q", "k", "v", mask], [output])
         for mask, output in zip(list(masks)[:-1], outputs)]
nodes.append(node("Attention", ["q", "k", "v", "valid", "", "", "lengths"],
                  [outputs[-1]]))
compile_model("masks", nodes,
              {"q": ("f32", [2, 2, "s", 8]), "k": ("f32", [2, 2, "t", 8]),
               "v": ("f32", [2, 2, "t", 8]), "column": ("bool", ["s", 1]),
               "part": ("bool", [2, 1, "s", 4]), "row": ("f32", [3]),
               "shifted": ("f32", ["s", 4]), "valid": ("f32", ["s", "columns"]),
               "lengths": ("i64", [2])}, outputs, opset=24)
expected = []
for mask in masks.values():
    missing = [(0, 0)] * (mask.ndim - 1) + [(0, 6 - mask.shape[-1])]
    is_bool = mask.dtype == bool
    padded = np.pad(mask, missing, constant_values=False if is_bool else -np.inf)
    expected.append(attend(q, k, v, padded if is_bool else True, 0 if is_bool else padded))
visible = np.arange(6) < lengths[:, None, None, None]
expected[-1] = attend(q, k, v, visible, padded)
call("masks", "padded", [q, k, v, *masks.values(), lengths], expected)
call("masks", "too wide", [q, k[:, :, :2], v[:, :, :2], *masks.values(), lengths],
     "expected at least")
print(f"{calls} calls, {wrong} wrong")
