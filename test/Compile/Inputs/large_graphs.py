# ===- large_graphs.py - graphs of any size --------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Writes graphs of a given size, which show how the time of a compilation grows.

    GRAPHS[kind](path, n)    # writes the graph and returns its number of nodes

| kind       | a graph of size n                                                    |
|------------|----------------------------------------------------------------------|
| relu       | a chain of n elementwise nodes                                       |
| branches   | n nodes that each read an earlier one, and one sum of all            |
| matmul     | a chain of n products with the same matrix                           |
| attention  | a chain of n attentions of 4 queries and 4 channels                  |
| layers     | n layers of a transformer with RoPE, each with weights of its own    |
| names      | n inputs and n outputs with long names                               |
| constants  | n tensors that are added, with values of their own                   |
| sizes      | n reshapes of a tensor with a dynamic size                           |
| inputs     | the sum of n inputs                                                  |
| dense      | a chain of n products, each with a matrix of its own                 |
| fan        | n products of one tensor, each with a matrix of its own, and their sum |
| transposes | a chain of n transpositions between elementwise nodes                |
| slices     | n slices of one tensor, and one concatenation of all                 |
| concats    | a chain of n halves that change places: two slices, a concatenation  |
| gathers    | a chain of n lookups in a table of a tensor, with indices            |
| rotations  | a chain of n rotary embeddings with their own angles                 |
| norms      | a chain of n norms with weights                                      |
| stablehlo  | a chain of n elementwise operations as StableHLO                     |
| dots       | a chain of n products with constants as StableHLO                    |
| shapes     | a chain of n reshapes, transpositions, slices and concatenations as StableHLO |
| linalg     | a chain of n elementwise operations as linalg                        |
"""

import math
import os
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "Import",
                                "Inputs"))
from onnx_model import model, node, tensor

ELEMENTWISE = ("Relu", "Neg", "Abs", "Sigmoid")


def save(path, data):
    with open(path, "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)


def weight(name, *shape):
    """Random numbers, whose bytes depend on the name alone."""
    count = math.prod(shape)
    values = random.Random(name)
    scale = shape[0] ** -0.5
    data = struct.pack(f"<{count}f",
                       *(values.uniform(-scale, scale) for _ in range(count)))
    return tensor(name, "f32", shape, raw=data)


def integers(name, *values):
    return tensor(name, "i64", [len(values)], values)


def relu(path, n):
    nodes = [node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(n)]
    save(path, model(nodes, {"v0": ("f32", [4, 8])}, [f"v{n}"]))
    return n


def branches(path, n):
    nodes = [node(ELEMENTWISE[i % 4], [f"v{i // 2}"], [f"v{i + 1}"]) for i in range(n)]
    leaves = [f"v{i}" for i in range(n // 2, n + 1)]
    while len(leaves) > 1:
        nodes.append(node("Add", leaves[:2], [f"s{len(nodes)}"]))
        leaves = [*leaves[2:], f"s{len(nodes) - 1}"]
    save(path, model(nodes, {"v0": ("f32", [4, 8])}, leaves))
    return len(nodes)


def matmul(path, n):
    nodes = [node("MatMul", [f"v{i}", "w"], [f"v{i + 1}"]) for i in range(n)]
    save(path, model(nodes, {"v0": ("f32", [4, 8])}, [f"v{n}"], [weight("w", 8, 8)]))
    return n


def attention(path, n):
    nodes = []
    for i in range(n):
        nodes += [node("Transpose", [f"v{i}"], [f"t{i}"], perm=[1, 0]),
                  node("MatMul", [f"v{i}", f"t{i}"], [f"s{i}"]),
                  node("Softmax", [f"s{i}"], [f"p{i}"], axis=-1),
                  node("MatMul", [f"p{i}", f"v{i}"], [f"v{i + 1}"])]
    save(path, model(nodes, {"v0": ("f32", [4, 4])}, [f"v{n}"]))
    return len(nodes)


def layers(path, n, hidden=32, heads=2, inner=48):
    """Layers as exporters write Llama's, with caches of keys and values that are
    inputs, and outputs with the new tokens appended."""
    dim = hidden // heads
    nodes, constants, outputs = [], [], []
    inputs = {"x": ("f32", [1, "s", hidden]), "cos": ("f32", [1, "s", dim]),
              "sin": ("f32", [1, "s", dim]), "mask": ("f32", [1, 1, "s", "t"])}

    def add(op, operands, result, **attributes):
        nodes.append(node(op, operands, [result], **attributes))
        return result

    def rotate(x, name):
        low = add("Slice", [x, "zero", "half", "last", "one"], name + ".low")
        high = add("Slice", [x, "half", "dim", "last", "one"], name + ".high")
        high = add("Neg", [high], name + ".neg")
        turned = add("Concat", [high, low], name + ".turned", axis=-1)
        return add("Add", [add("Mul", [x, "cos4"], name + ".c"),
                           add("Mul", [turned, "sin4"], name + ".s")], name + ".rot")

    def norm(x, name):
        constants.append(weight(name + ".weight", hidden))
        square = add("Mul", [x, x], name + ".square")
        mean = add("ReduceMean", [square, "last"], name + ".mean", keepdims=1)
        root = add("Sqrt", [add("Add", [mean, "eps"], name + ".eps")], name + ".root")
        return add("Mul", [add("Div", [x, root], name + ".div"), name + ".weight"],
                   name + ".y")

    def product(x, name, rows, columns):
        constants.append(weight(name + ".weight", rows, columns))
        return add("MatMul", [x, name + ".weight"], name + ".y")

    def split(x, name):
        shaped = add("Reshape", [x, "heads"], name + ".heads")
        return add("Transpose", [shaped], name + ".first", perm=[0, 2, 1, 3])

    constants += [integers("zero", 0), integers("one", 1), integers("last", -1),
                  integers("half", dim // 2), integers("dim", dim),
                  integers("heads", 0, -1, heads, dim), integers("rows", 0, -1, hidden),
                  tensor("eps", "f32", [], [1e-6]),
                  tensor("scale", "f32", [], [dim ** -0.5])]
    add("Unsqueeze", ["cos", "one"], "cos4")
    add("Unsqueeze", ["sin", "one"], "sin4")
    x = "x"
    for i in range(n):
        at = f"layers.{i}."
        y = norm(x, at + "norm1")
        q = split(product(y, at + "q", hidden, hidden), at + "q")
        k = split(product(y, at + "k", hidden, hidden), at + "k")
        v = split(product(y, at + "v", hidden, hidden), at + "v")
        for name in ("past_k", "past_v"):
            inputs[at + name] = ("f32", [1, heads, "p", dim])
        k = add("Concat", [at + "past_k", rotate(k, at + "k")], at + "keys", axis=2)
        v = add("Concat", [at + "past_v", v], at + "values", axis=2)
        outputs += [k, v]
        turned = add("Transpose", [k], at + "kt", perm=[0, 1, 3, 2])
        scores = add("MatMul", [rotate(q, at + "q"), turned], at + "scores")
        scores = add("Mul", [scores, "scale"], at + "scaled")
        scores = add("Add", [scores, "mask"], at + "masked")
        weights = add("Softmax", [scores], at + "weights", axis=-1)
        mixed = add("MatMul", [weights, v], at + "mixed")
        mixed = add("Transpose", [mixed], at + "mixed.t", perm=[0, 2, 1, 3])
        mixed = add("Reshape", [mixed, "rows"], at + "mixed.rows")
        x = add("Add", [x, product(mixed, at + "o", hidden, hidden)], at + "attended")
        y = norm(x, at + "norm2")
        gate = product(y, at + "gate", hidden, inner)
        gate = add("Mul", [gate, add("Sigmoid", [gate], at + "sigmoid")], at + "silu")
        up = add("Mul", [gate, product(y, at + "up", hidden, inner)], at + "gated")
        x = add("Add", [x, product(up, at + "down", inner, hidden)], at + "out")
    save(path, model(nodes, inputs, [x, *outputs], constants))
    return len(nodes)


def names(path, n):
    prefix = "model.decoder.layers.attention.projection." * 3
    nodes = [node("Relu", [f"{prefix}{i}"], [f"{prefix}out.{i}"], name=f"{prefix}node{i}")
             for i in range(n)]
    inputs = {f"{prefix}{i}": ("f32", [4, 8]) for i in range(n)}
    save(path, model(nodes, inputs, [f"{prefix}out.{i}" for i in range(n)]))
    return n


def constants(path, n):
    nodes = [node("Add", [f"v{i}", f"c{i}"], [f"v{i + 1}"]) for i in range(n)]
    save(path, model(nodes, {"v0": ("f32", [4, 8])}, [f"v{n}"],
                     [weight(f"c{i}", 8) for i in range(n)]))
    return n


def sizes(path, n):
    shapes = [integers("s0", -1, 8), integers("s1", -1, 4, 2)]
    nodes = []
    for i in range(n):
        nodes += [node("Reshape", [f"v{i}", f"s{(i + 1) % 2}"], [f"r{i}"]),
                  node("Softmax", [f"r{i}"], [f"v{i + 1}"], axis=-1)]
    save(path, model(nodes, {"v0": ("f32", ["n", 8])}, [f"v{n}"], shapes))
    return 2 * n


def inputs(path, n):
    nodes = [node("Add", [f"v{i}" if i else "x0", f"x{i + 1}"], [f"v{i + 1}"])
             for i in range(n)]
    save(path, model(nodes, {f"x{i}": ("f32", [4, 8]) for i in range(n + 1)}, [f"v{n}"]))
    return n


def dense(path, n):
    nodes = [node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(n)]
    save(path, model(nodes, {"v0": ("f32", [4, 8])}, [f"v{n}"],
                     [weight(f"w{i}", 8, 8) for i in range(n)]))
    return n


def fan(path, n):
    nodes = [node("MatMul", ["x", f"w{i}"], [f"p{i}"]) for i in range(n)]
    nodes += [node("Add", [f"s{i}" if i else "p0", f"p{i + 1}"], [f"s{i + 1}"])
              for i in range(n - 1)]
    save(path, model(nodes, {"x": ("f32", [4, 8])}, [f"s{n - 1}" if n > 1 else "p0"],
                     [weight(f"w{i}", 8, 8) for i in range(n)]))
    return len(nodes)


def transposes(path, n):
    nodes = []
    for i in range(n):
        nodes += [node("Transpose", [f"v{i}"], [f"t{i}"], perm=[1, 0]),
                  node(ELEMENTWISE[i % 4], [f"t{i}"], [f"v{i + 1}"])]
    save(path, model(nodes, {"v0": ("f32", [4, 8])}, [f"v{n}"]))
    return len(nodes)


def slices(path, n):
    constants = [integers(f"i{i}", i) for i in range(n + 1)]
    nodes = [node("Slice", ["x", f"i{i}", f"i{i + 1}", "i0"], [f"v{i}"])
             for i in range(n)]
    nodes.append(node("Concat", [f"v{i}" for i in reversed(range(n))], ["y"], axis=0))
    save(path, model(nodes, {"x": ("f32", [n, 8])}, ["y"], constants))
    return len(nodes)


def concats(path, n):
    constants = [integers(f"i{i}", i) for i in (0, 1, 4, 8)]
    nodes = []
    for i in range(n):
        nodes += [node("Slice", [f"v{i}", "i0", "i4", "i1"], [f"low{i}"]),
                  node("Slice", [f"v{i}", "i4", "i8", "i1"], [f"high{i}"]),
                  node("Concat", [f"high{i}", f"low{i}"], [f"v{i + 1}"], axis=1)]
    save(path, model(nodes, {"v0": ("f32", [4, 8])}, [f"v{n}"], constants))
    return len(nodes)


def gathers(path, n):
    nodes = [node("Gather", [f"v{i}", "ids"], [f"v{i + 1}"]) for i in range(n)]
    save(path, model(nodes, {"v0": ("f32", [4, 8]), "ids": ("i64", [4])}, [f"v{n}"]))
    return n


def rotations(path, n):
    constants = [integers(f"i{i}", i) for i in (0, 1, 4, 8)]
    nodes = []
    for i in range(n):
        nodes += [node("Slice", [f"v{i}", "i0", "i4", "i1"], [f"low{i}"]),
                  node("Slice", [f"v{i}", "i4", "i8", "i1"], [f"high{i}"]),
                  node("Neg", [f"high{i}"], [f"neg{i}"]),
                  node("Concat", [f"neg{i}", f"low{i}"], [f"turned{i}"], axis=1),
                  node("Mul", [f"v{i}", "cos"], [f"c{i}"]),
                  node("Mul", [f"turned{i}", "sin"], [f"s{i}"]),
                  node("Add", [f"c{i}", f"s{i}"], [f"v{i + 1}"])]
    kinds = {name: ("f32", [4, 8]) for name in ("v0", "cos", "sin")}
    save(path, model(nodes, kinds, [f"v{n}"], constants))
    return len(nodes)


def norms(path, n):
    nodes = [node("LayerNormalization", [f"v{i}", f"w{i}"], [f"v{i + 1}"])
             for i in range(n)]
    save(path, model(nodes, {"v0": ("f32", [4, 8])}, [f"v{n}"],
                     [weight(f"w{i}", 8) for i in range(n)]))
    return n


def dots(path, n):
    text = "func.func @main(%v0: tensor<4x8xf32>) -> tensor<4x8xf32> {\n"
    for i in range(n):
        numbers = ", ".join(f"{i % 97 + j}.5" for j in range(8))
        rows = ", ".join([f"[{numbers}]"] * 8)
        text += (f"  %w{i} = stablehlo.constant dense<[{rows}]> : tensor<8x8xf32>\n"
                 f"  %v{i + 1} = stablehlo.dot_general %v{i}, %w{i}, "
                 "contracting_dims = [1] x [0] : "
                 "(tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>\n")
    save(path, text + f"  return %v{n} : tensor<4x8xf32>\n}}\n")
    return 2 * n


def shapes(path, n):
    text = "func.func @main(%v0: tensor<4x8xf32>) -> tensor<4x8xf32> {\n"
    for i in range(n):
        text += (
            f"  %r{i} = stablehlo.reshape %v{i} : (tensor<4x8xf32>) -> tensor<8x4xf32>\n"
            f"  %t{i} = stablehlo.transpose %r{i}, dims = [1, 0] : "
            "(tensor<8x4xf32>) -> tensor<4x8xf32>\n"
            f"  %l{i} = stablehlo.slice %t{i} [0:4, 0:4] : "
            "(tensor<4x8xf32>) -> tensor<4x4xf32>\n"
            f"  %h{i} = stablehlo.slice %t{i} [0:4, 4:8] : "
            "(tensor<4x8xf32>) -> tensor<4x4xf32>\n"
            f"  %v{i + 1} = stablehlo.concatenate %h{i}, %l{i}, dim = 1 : "
            "(tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>\n")
    save(path, text + f"  return %v{n} : tensor<4x8xf32>\n}}\n")
    return 5 * n


def stablehlo(path, n):
    kind = "tensor<4x8xf32>"
    text = f"func.func @main(%v0: {kind}) -> {kind} {{\n"
    for i in range(n):
        op = ("tanh", "negate", "abs", "logistic")[i % 4]
        text += f"  %v{i + 1} = stablehlo.{op} %v{i} : {kind}\n"
    save(path, text + f"  return %v{n} : {kind}\n}}\n")
    return n


def linalg(path, n):
    kind = "tensor<4x8xf32>"
    text = (f"func.func @main(%v0: {kind}) -> {kind} {{\n"
            f"  %e = tensor.empty() : {kind}\n")
    for i in range(n):
        op = ("tanh", "negf", "abs", "exp")[i % 4]
        text += (f"  %v{i + 1} = linalg.{op} ins(%v{i} : {kind}) "
                 f"outs(%e : {kind}) -> {kind}\n")
    save(path, text + f"  return %v{n} : {kind}\n}}\n")
    return n


GRAPHS = {function.__name__: function for function in
          (relu, branches, matmul, attention, layers, names, constants, sizes, inputs, dense,
           fan, transposes, slices, concats, gathers, rotations, norms, stablehlo, dots,
           shapes, linalg)}
SUFFIXES = dict.fromkeys(("stablehlo", "dots", "shapes", "linalg"), ".mlir")


def write(folder, kind, n):
    """Returns the path of the graph, and its number of nodes."""
    path = os.path.join(folder, f"{kind}-{n}{SUFFIXES.get(kind, '.onnx')}")
    return path, GRAPHS[kind](path, n)


def measure(command):
    """Returns the seconds of CPU time and the MiB of memory that the command takes, at
    most, and its message if it fails, else None."""
    environment = {**os.environ, "POSENC_CACHE": "off"}
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors,
                                   env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        # Popen must not wait for a process that is gone.
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        message = errors.read().decode(errors="replace").strip()
    seconds = usage.ru_utime + usage.ru_stime
    failed = (message or f"exit status {process.returncode}") if status else None
    return seconds, usage.ru_maxrss / 1024, failed
