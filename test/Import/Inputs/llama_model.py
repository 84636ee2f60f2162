# ===- llama_model.py - models with the shapes of Llama ----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Writes a decoder with random weights as ONNX Runtime's model builder exports it: with
GroupQueryAttention on caches, and the table of tokens tied to the output layer.

    write_llama("model.onnx", Llama(layers=2), seed=1)

The weights are written one by one, to model.onnx.data. Those of matrices may have 4 or
8 bits (MatMulNBits).
"""

import dataclasses
import os

import numpy as np
from onnx_model import node, tensor, write

# NumPy has no bf16: the bits of its numbers are integers.
STORED = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "u8": np.uint8}


def store(array, dtype):
    """Rounds f32 to another type."""
    if dtype != "bf16":
        return array.astype(STORED[dtype], copy=False)
    bits = array.view(np.uint32)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


@dataclasses.dataclass
class Llama:
    """The shapes of Llama 3.2 1B."""

    layers: int = 16
    hidden: int = 2048
    inner: int = 8192
    heads: int = 32
    kv_heads: int = 8
    vocabulary: int = 128256
    positions: int = 4096
    base: float = 500000.0
    # The type of activations, caches, and of weights without codes: f32, f16 or bf16.
    dtype: str = "f32"
    # Of the codes of MatMulNBits: 4, 8, or 0 for matrices of floats.
    bits: int = 0
    block: int = 32
    accuracy_level: int = 1
    # 1: the logits of the last token only.
    last: int = 0

    @property
    def head(self):
        return self.hidden // self.heads

    @property
    def matrices(self):
        """The rows and columns of the matrices of a layer by name."""
        kv = self.kv_heads * self.head
        return {"q": (self.hidden, self.hidden), "k": (self.hidden, kv),
                "v": (self.hidden, kv), "o": (self.hidden, self.hidden),
                "gate": (self.hidden, self.inner), "up": (self.hidden, self.inner),
                "down": (self.inner, self.hidden)}

    def get_inputs(self, ids, mask, caches):
        """The inputs of a call by name; `caches` is a list of arrays."""
        names = [f"past_key_values.{layer}.{part}" for layer in range(self.layers)
                 for part in ("key", "value")]
        return {"input_ids": ids, "attention_mask": mask, **dict(zip(names, caches))}

    def create_caches(self, rows):
        shape = (1, self.kv_heads, rows, self.head)
        return [np.zeros(shape, STORED[self.dtype]) for _ in range(2 * self.layers)]


class _Weights:
    """Writes external data, and lists the initializers."""

    def __init__(self, path, config, seed):
        self.config = config
        self.file = open(path, "wb")
        self.location = os.path.basename(path)
        self.random = np.random.default_rng(seed)
        self.initializers = []
        # The position and the shape of each array.
        self.places = {}

    def add(self, name, array, dtype=None):
        dtype = dtype or self.config.dtype
        array = store(array, dtype)
        # The alignment that ONNX's own tools write.
        self.file.write(bytes(-self.file.tell() % 4096))
        self.initializers.append(tensor(name, dtype, array.shape, external={
            "location": self.location, "offset": str(self.file.tell()),
            "length": str(array.nbytes)}))
        self.places[name] = self.file.tell(), array.shape
        array.tofile(self.file)
        return name

    def add_random(self, name, *shape, scale=0.02):
        array = self.random.standard_normal(shape, np.float32)
        array *= np.float32(scale)
        return self.add(name, array)

    def add_norm(self, name, size):
        return self.add(name, 1 + self.random.standard_normal(size, np.float32) / 10)

    def add_codes(self, name, rows, columns):
        """Adds codes that are distributed evenly, and scales for which the numbers have
        the variance 1 / rows."""
        bits, blocks = self.config.bits, rows // self.config.block
        codes = np.frombuffer(self.random.bytes(rows * columns * bits // 8), np.uint8)
        scales = self.random.uniform(0.9, 1.1, (columns, blocks)).astype(np.float32)
        scales *= np.float32((12 / rows) ** 0.5 / 2 ** bits)
        return [self.add(f"{name}.codes", codes.reshape(columns, blocks, -1), "u8"),
                self.add(f"{name}.scales", scales)]


def generate(session, config, prompt, tokens):
    """Returns the most likely tokens after a prompt, by a session of ONNX Runtime."""
    caches, ids, new = config.create_caches(len(prompt) + tokens), [], list(prompt)
    for _ in range(tokens):
        ids += new
        logits, *caches = session.run(None, config.get_inputs(
            np.array([new]), np.ones((1, len(ids)), np.int64), caches))
        new = [int(logits[0, -1].argmax())]
    return (ids + new)[len(prompt):]


def write_llama(path, config, seed=0):
    """Writes a model. Returns the places of its weights for read_weights()."""
    weights = _Weights(f"{path}.data", config, seed)
    nodes, outputs = [], {}
    inputs = {"input_ids": ("i64", [1, "tokens"]), "attention_mask": ("i64", [1, "total"])}

    def add(op, operands, name, domain="", **attributes):
        nodes.append(node(op, operands, [name], domain, name=name, **attributes))
        return name

    def multiply_codes(x, name, rows, columns):
        return add("MatMulNBits", [x, *weights.add_codes(name, rows, columns)], name,
                   "com.microsoft", K=rows, N=columns, bits=config.bits,
                   block_size=config.block, accuracy_level=config.accuracy_level)

    def multiply(x, prefix, name):
        rows, columns = config.matrices[name]
        name = prefix + name
        if config.bits:
            return multiply_codes(x, name, rows, columns)
        # Sums of all layers have about the same size.
        matrix = weights.add_random(f"{name}.weight", rows, columns, scale=rows ** -0.5)
        return add("MatMul", [x, matrix], name)

    angles = np.outer(np.arange(config.positions), config.base ** -(
        np.arange(0, config.head, 2) / config.head))
    tables = [weights.add(f"{name}_cache", function(angles).astype(np.float32))
              for name, function in (("cos", np.cos), ("sin", np.sin))]
    emb = weights.add_random("embed.weight", config.vocabulary, config.hidden)
    one = [tensor("one", "i64", [1], [1]), tensor("first", "i64", [], [1]),
           tensor("end", "i64", [1], [-1])]
    add("ReduceSum", ["attention_mask", "one"], "count", keepdims=0)
    add("Sub", ["count", "one"], "last")
    add("Cast", ["last"], "seqlens_k", to=6)
    add("Shape", ["attention_mask"], "mask_shape")
    add("Gather", ["mask_shape", "first"], "mask_size", axis=0)
    add("Cast", ["mask_size"], "total_sequence_length", to=6)
    x = add("Gather", [emb, "input_ids"], "embed")
    y = add("SimplifiedLayerNormalization", [x, weights.add_norm("norm.weight",
                                                                 config.hidden)],
            "norm", epsilon=1e-5)
    for layer in range(config.layers):
        prefix = f"layers.{layer}."
        past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        present = [f"present.{layer}.{part}" for part in ("key", "value")]
        for name in past:
            inputs[name] = (config.dtype, [1, config.kv_heads, "cache", config.head])
        q, k, v = (multiply(y, prefix, name) for name in "qkv")
        nodes.append(node(
            "GroupQueryAttention", [q, k, v, *past, "seqlens_k", "total_sequence_length",
                                    *tables], [prefix + "attention", *present],
            "com.microsoft", name=prefix + "attention", num_heads=config.heads,
            kv_num_heads=config.kv_heads, do_rotary=1, rotary_interleaved=0))
        for name in present:
            outputs[name] = (config.dtype, [1, config.kv_heads, "cache", config.head])
        for part, end in (("middle", "o"), ("next", "down")):
            if end == "o":
                z = multiply(prefix + "attention", prefix, end)
            else:
                gate, up = (multiply(y, prefix, name) for name in ("gate", "up"))
                sigmoid = add("Sigmoid", [gate], prefix + "sigmoid")
                silu = add("Mul", [gate, sigmoid], prefix + "silu")
                z = multiply(add("Mul", [silu, up], prefix + "inner"), prefix, end)
            norm = weights.add_norm(f"{prefix}{part}.weight", config.hidden)
            y = prefix + part
            nodes.append(node("SkipSimplifiedLayerNormalization", [x, z, norm],
                              [y, "", "", y + ".sum"], "com.microsoft", name=y,
                              epsilon=1e-5))
            x = y + ".sum"
    if config.last:
        y = add("Gather", [y, "end"], "last_state", axis=1)
    if config.bits:
        multiply_codes(y, "logits", config.hidden, config.vocabulary)
    else:
        add("Transpose", [emb], "head.weight", perm=[1, 0])
        add("MatMul", [y, "head.weight"], "logits")
    logits = (config.dtype, [1, 1 if config.last else "tokens", config.vocabulary])
    write(path, nodes, inputs, {"logits": logits, **outputs}, weights.initializers + one,
          opset=21)
    weights.file.close()
    return weights.places


def read_weights(path, places):
    """Returns the arrays of f32 that write_llama wrote, by name."""
    return {name: np.fromfile(f"{path}.data", np.float32, int(np.prod(shape)),
                              offset=offset).reshape(shape)
            for name, (offset, shape) in places.items()}
