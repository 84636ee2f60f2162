# ===- stablehlo-models.py - functions of JAX, compiled and compared --------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Exports small functions by jax.export, with static and with symbolic sizes, compiles
them, and compares the results with JAX's.

    python python/benchmarks/stablehlo-models.py --compiler build/bin/posenc-compile
    python python/benchmarks/stablehlo-models.py --models llama,vit --folder /tmp/models

The table was made with jax 0.10.2. It has, for each function, and static or symbolic
sizes, the rotated tensors and the attentions that are found of those that there are, and
the largest difference of a result, relative to the largest number in it. The exit status
is 1 if one fails, or is not found.
"""

import argparse
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

_SPEC = importlib.util.spec_from_file_location(
    "raised", pathlib.Path(__file__).with_name("raised.py"))
RAISED = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(RAISED)

HIDDEN, HEADS, DIM = 64, 4, 16
MODELS = {}


def model(rotations, attentions, *shapes, tolerance=2e-5):
    """Adds a function. A shape is a text such as "b s 64", or "i:b s" for numbers of
    tokens; with static sizes, b is 2 and s is 12."""

    def add(function):
        MODELS[function.__name__.replace("_", "-")] = (
            function, shapes, rotations, attentions, tolerance)
        return function

    return add


def weight(*shape, seed=0):
    generator = np.random.default_rng([seed, *shape])
    return jnp.asarray(generator.standard_normal(shape) / shape[0] ** 0.5, jnp.float32)


def rms(x):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def layer_norm(x):
    x = x - x.mean(-1, keepdims=True)
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def split(x, heads, seed):
    b, s, _ = x.shape
    return (x @ weight(HIDDEN, heads * DIM, seed=seed)).reshape(b, s, heads, DIM)


def merge(x):
    b, s, heads, dim = x.shape
    return x.reshape(b, s, heads * dim) @ weight(heads * dim, HIDDEN, seed=9)


def angles(s, dim=DIM):
    return jnp.arange(s)[:, None] * 10000.0 ** (-jnp.arange(0, dim, 2) / dim)


def rotate_half(x):
    a = angles(x.shape[1], x.shape[-1])
    a = jnp.concatenate([a, a], -1)[:, None]
    half = x.shape[-1] // 2
    return x * jnp.cos(a) + jnp.concatenate([-x[..., half:], x[..., :half]], -1) * jnp.sin(a)


def causal(s):
    return jnp.tril(jnp.ones((s, s), bool))


def attend(q, k, v, score=lambda x: x, mask=None, scale=DIM ** -0.5):
    groups = q.shape[2] // k.shape[2]
    k, v = jnp.repeat(k, groups, 2), jnp.repeat(v, groups, 2)
    scores = score(jnp.einsum("bqhd,bkhd->bhqk", q, k) * scale)
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), v)


def gated(x, activation=jax.nn.silu):
    gate, up = x @ weight(HIDDEN, 96, seed=5), x @ weight(HIDDEN, 96, seed=6)
    return (activation(gate) * up) @ weight(96, HIDDEN, seed=7)


@model(2, 1, "b s 64")
def llama(x):
    h = rms(x)
    q, k, v = split(h, 4, 1), split(h, 2, 2), split(h, 2, 3)
    x = x + merge(attend(rotate_half(q), rotate_half(k), v, mask=causal(x.shape[1])))
    return x + gated(rms(x))


@model(4, 2, "i:b s")
def llama_tokens(tokens):
    x = weight(128, HIDDEN)[tokens]
    for _ in range(2):
        x = llama(x)
    return jnp.argmax(rms(x) @ weight(HIDDEN, 128), -1), x


@model(2, 1, "b s 64")
def qwen3(x):
    h = rms(x)
    q, k, v = rms(split(h, 4, 1)), rms(split(h, 2, 2)), split(h, 2, 3)
    return x + merge(attend(rotate_half(q), rotate_half(k), v, mask=causal(x.shape[1])))


@model(2, 1, "b s 64")
def gpt_neox(x):
    def partial(x):
        return jnp.concatenate([rotate_half(x[..., :8]), x[..., 8:]], -1)

    h = layer_norm(x)
    q, k, v = split(h, 4, 1), split(h, 4, 2), split(h, 4, 3)
    attended = merge(attend(partial(q), partial(k), v, mask=causal(x.shape[1])))
    return x + attended + jax.nn.gelu(layer_norm(x) @ weight(HIDDEN, 96)) @ weight(96, HIDDEN)


@model(2, 1, "b s 64")
def gptj(x):
    def interleaved(x):
        a = angles(x.shape[1])[:, None]
        even, odd = x[..., ::2], x[..., 1::2]
        c, s = jnp.cos(a), jnp.sin(a)
        return jnp.stack([even * c - odd * s, odd * c + even * s], -1).reshape(x.shape)

    q, k, v = split(x, 4, 1), split(x, 4, 2), split(x, 4, 3)
    return merge(attend(interleaved(q), interleaved(k), v, mask=causal(x.shape[1])))


@model(2, 1, "b s 64")
def gemma2(x):
    s = x.shape[1]
    h = rms(x)
    q, k, v = split(h, 4, 1), split(h, 2, 2), split(h, 2, 3)
    at = jnp.arange(s)
    mask = (at[:, None] >= at) & (at[:, None] - at < 4)
    x = x + merge(attend(rotate_half(q), rotate_half(k), v,
                         lambda x: 50 * jnp.tanh(x / 50), mask))
    return x + gated(rms(x), lambda x: jax.nn.gelu(x, approximate=True))


@model(0, 1, "b s 64")
def t5(x):
    s = x.shape[1]
    distance = jnp.arange(s) - jnp.arange(s)[:, None]
    bucket = jnp.where(distance > 0, 16, 0)
    size = jnp.abs(distance)
    large = 8 + (jnp.log(jnp.maximum(size, 1) / 8) / np.log(16) * 8).astype(jnp.int32)
    bucket += jnp.where(size < 8, size, jnp.minimum(large, 15))
    bias = weight(32, 4)[bucket].transpose(2, 0, 1)
    return merge(attend(split(x, 4, 1), split(x, 4, 2), split(x, 4, 3),
                        lambda x: x + bias, scale=1.0))


@model(0, 1, "b s 64")
def alibi(x):
    s = x.shape[1]
    slopes = 2.0 ** -jnp.arange(1, 5)
    distance = jnp.arange(s) - jnp.arange(s)[:, None]
    return merge(attend(split(x, 4, 1), split(x, 4, 2), split(x, 4, 3),
                        lambda x: x + slopes[:, None, None] * distance, causal(s)))


@model(2, 1, "b s 64")
def complex_rope(x):
    def turn(x):
        pairs = x.reshape(*x.shape[:-1], -1, 2)
        z = lax.complex(pairs[..., 0], pairs[..., 1])
        a = angles(x.shape[1])[:, None]
        z = z * lax.complex(jnp.cos(a), jnp.sin(a))
        return jnp.stack([z.real, z.imag], -1).reshape(x.shape)

    q, k, v = split(x, 4, 1), split(x, 4, 2), split(x, 4, 3)
    return merge(attend(turn(q), turn(k), v, mask=causal(x.shape[1])))


@model(0, 1, "b 32 32 3")
def vit(image):
    patches = lax.conv_general_dilated(image, weight(8, 8, 3, HIDDEN) / 5, (8, 8), "VALID",
                                       dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = patches.reshape(image.shape[0], 16, HIDDEN)
    first = jnp.broadcast_to(weight(HIDDEN), (image.shape[0], 1, HIDDEN))
    x = jnp.concatenate([first, x], 1) + weight(17, HIDDEN)
    h = layer_norm(x)
    x = x + merge(attend(split(h, 4, 1), split(h, 4, 2), split(h, 4, 3)))
    h = jax.nn.gelu(layer_norm(x) @ weight(HIDDEN, 96), approximate=False)
    return (x + h @ weight(96, HIDDEN))[:, 0]


@model(0, 0, "b 16 16 4")
def convolutions(x):
    numbers = ("NHWC", "HWIO", "NHWC")
    x = lax.conv_general_dilated(x, weight(3, 3, 4, 8), (2, 2), "SAME",
                                 dimension_numbers=numbers)
    x = lax.conv_general_dilated(x, weight(3, 3, 1, 8), (1, 1), [(1, 1), (1, 1)],
                                 dimension_numbers=numbers, feature_group_count=8)
    x = lax.conv_general_dilated(x, weight(2, 2, 8, 4), (1, 1), "VALID",
                                 rhs_dilation=(2, 2), dimension_numbers=numbers)
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return lax.conv_general_dilated(x.transpose(0, 3, 1, 2), weight(6, 4, 1, 1), (1, 1),
                                    "VALID")


@model(2, 1, "b s 64")
def dot_product_attention(x):
    q, k, v = split(x, 4, 1), split(x, 2, 2), split(x, 2, 3)
    return merge(jax.nn.dot_product_attention(rotate_half(q), rotate_half(k), v,
                                              is_causal=True))


@model(2, 1, "1 s 64")
def single_sequence(x):
    return dot_product_attention(x)


@model(0, 1, "b s 64", "i:b")
def lengths(x, counts):
    mask = jnp.arange(x.shape[1]) <= counts[:, None]
    return merge(attend(split(x, 4, 1), split(x, 4, 2), split(x, 4, 3),
                        mask=mask[:, None, None]))


@model(2, 1, "b 1 64", "b 12 2 16", "b 12 2 16", "i:")
def decode(x, keys, values, position):
    def at(x):
        a = position * 10000.0 ** (-jnp.arange(0, DIM, 2) / DIM)
        a = jnp.concatenate([a, a], -1)
        half = x.shape[-1] // 2
        other = jnp.concatenate([-x[..., half:], x[..., :half]], -1)
        return x * jnp.cos(a) + other * jnp.sin(a)

    keys = lax.dynamic_update_slice(keys, at(split(x, 2, 2)), (0, position, 0, 0))
    values = lax.dynamic_update_slice(values, split(x, 2, 3), (0, position, 0, 0))
    mask = jnp.arange(keys.shape[1]) <= position
    return merge(attend(at(split(x, 4, 1)), keys, values, mask=mask)), keys, values


@model(0, 0, "b s 64")
def experts(x):
    scores, chosen = lax.top_k(x @ weight(HIDDEN, 8), 2)
    shares = jax.nn.softmax(scores, -1)
    gates = jnp.zeros((*x.shape[:2], 8)).at[
        jnp.arange(x.shape[0])[:, None, None], jnp.arange(x.shape[1])[:, None],
        chosen].set(shares)
    outputs = jnp.einsum("bsd,edf->bsef", x, weight(8, HIDDEN, 32))
    return jnp.einsum("bsef,bse->bsf", jax.nn.relu(outputs), gates), chosen


@model(0, 0, "b s 64")
def elementwise(x):
    return (jnp.expm1(x), jnp.log1p(jnp.abs(x)), jnp.cbrt(x), jnp.arctan2(x, 1 + x * x),
            jnp.round(x), jnp.clip(x, -1, 1), jnp.sign(x), jnp.floor(x) % 3,
            jax.scipy.special.erf(x), jax.nn.softplus(x), jax.nn.mish(x),
            lax.population_count((x * 100).astype(jnp.int32)), jnp.isnan(x))


@model(0, 0, "b s 64", "i:b s")
def reductions(x, tokens):
    return (jnp.argmax(x, -1), jnp.argmin(x, 1), x.max(1), x.prod(-1), (x > 0).any(-1),
            (x > -9).all(1), jnp.cumsum(tokens, 1), jnp.cumsum(x[:, ::-1], 1), x.var(-1),
            lax.cummax(x, axis=1), jax.nn.logsumexp(x, -1))


@model(0, 0, "b s 64", "i:b s")
def moves(x, tokens):
    return (x.at[:, 0].set(1.0), x.at[:, 2:5].add(x[:, :3]), jnp.roll(x, 3, -1), x[:, ::-1],
            jnp.take_along_axis(x, tokens[..., None], 2), x[:, 1::2], x[:, -1],
            jnp.pad(x, ((0, 0), (1, 2), (0, 3))), jnp.flip(x, -1),
            jax.nn.one_hot(tokens, 16), jnp.tile(x, (1, 2, 1)), x.swapaxes(0, 1))


@model(0, 0, "b s 64", "i:")
def loops(x, number):
    def step(index, y):
        return jnp.tanh(y @ weight(HIDDEN, HIDDEN)) + index

    y = lax.fori_loop(0, 3, step, x)
    total, rows = lax.scan(lambda carry, row: (carry * 0.5 + row, carry.sum(-1)),
                           jnp.zeros((x.shape[0], HIDDEN)), x[:, :5].swapaxes(0, 1))
    z = lax.cond(number > 2, lambda x: x * 2, lambda x: x - 1, x)
    w = lax.switch(number, [jnp.sin, jnp.cos, jnp.tanh], x)
    return y, total, rows, z, w, lax.while_loop(lambda v: v < 100, lambda v: v * 2 + 1, number)


@model(2, 1, "b s 64")
def scanned_layers(x):
    def layer(x, weights):
        h = rms(x) @ weights
        b, s, _ = h.shape
        q, k, v = jnp.split(h.reshape(b, s, 4, 48), 3, -1)
        return x + merge(attend(rotate_half(q), rotate_half(k), v, mask=causal(s))), None

    return lax.scan(layer, x, weight(3, HIDDEN, 3 * HIDDEN) / 5)[0]


@model(2, 1, "b s 64", tolerance=3e-2)
def bfloat16(x):
    x = x.astype(jnp.bfloat16)
    w = [weight(HIDDEN, HIDDEN, seed=seed).astype(jnp.bfloat16) for seed in range(3)]
    b, s, _ = x.shape
    q, k, v = ((x @ one).reshape(b, s, 4, 16) for one in w)
    q, k = (rotate_half(one.astype(jnp.float32)).astype(jnp.bfloat16) for one in (q, k))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) / 4
    scores = jnp.where(causal(s), scores, jnp.finfo(jnp.float32).min)
    p = jax.nn.softmax(scores, -1).astype(jnp.bfloat16)
    return jnp.einsum("bhqk,bkhd->bqhd", p, v).astype(jnp.float32)


@model(0, 1, "b s 64", "b 7 64")
def cross_attention(x, memory):
    return merge(attend(split(x, 4, 1), split(memory, 4, 2), split(memory, 4, 3)))


@model(2, 1, "b s 64", "i:b s")
def packed_sequences(x, segments):
    s = x.shape[1]
    mask = (segments[:, :, None] == segments[:, None]) & causal(s)
    q, k, v = split(x, 4, 1), split(x, 4, 2), split(x, 4, 3)
    return merge(attend(rotate_half(q), rotate_half(k), v, mask=mask[:, None]))


@model(2, 1, "b s 64", "s 16", "s 16")
def tables(x, cos, sin):
    def turn(x):
        other = jnp.concatenate([-x[..., 8:], x[..., :8]], -1)
        return x * cos[:, None] + other * sin[:, None]

    q, k, v = split(x, 4, 1), split(x, 2, 2), split(x, 2, 3)
    return merge(attend(turn(q), turn(k), v, mask=causal(x.shape[1])))


@model(0, 0, "b s 64")
def sinusoidal(x):
    a = angles(x.shape[1], HIDDEN)
    return x + jnp.concatenate([jnp.sin(a), jnp.cos(a)], -1)


@model(2, 1, "b 1 64", "b s 2 16", "b s 2 16", "i:")
def decode_any_length(x, keys, values, position):
    return decode(x, keys, values, position)


# JAX exports windows for a known number of tokens only.
@model(0, 1, "b 12 64", "i:b")
def windows_and_lengths(x, counts):
    q, k, v = split(x, 4, 1), split(x, 2, 2), split(x, 2, 3)
    return merge(jax.nn.dot_product_attention(
        q, k, v, is_causal=True, local_window_size=(3, 0), key_value_seq_lengths=counts,
        query_seq_lengths=counts * 0 + x.shape[1]))


@model(0, 2, "b s 64", "b 7 64")
def checkpointed(x, memory):
    @jax.checkpoint
    def block(x, memory):
        return x + merge(attend(split(x, 4, 1), split(memory, 4, 2), split(memory, 4, 3)))

    return block(block(x, memory), memory)


@model(0, 1, "b s 64")
def vmapped(x):
    def attend_one(q, k, v):
        return jax.nn.softmax(q @ k.T / 4, -1) @ v

    heads = [split(x, 4, seed).transpose(0, 2, 1, 3) for seed in (1, 2, 3)]
    return merge(jax.vmap(jax.vmap(attend_one))(*heads).transpose(0, 2, 1, 3))


@model(0, 0, "b s 64", "i:")
def slices_at(x, at):
    return (lax.dynamic_slice_in_dim(x, at, 3, 1), lax.dynamic_index_in_dim(x, at, 1),
            lax.dynamic_slice(x, (0, at, 1), (x.shape[0], 2, 5)), x[:, at],
            x.at[:, at].multiply(2.0), x.at[:, at, 3].max(0.5), jnp.take(x, at, 2),
            lax.dynamic_update_slice_in_dim(x, x[:, :2], at, 1))


@model(0, 0, "i:b s")
def integers(tokens):
    return (tokens // 3, tokens % 4, tokens << 2, tokens >> 1, ~tokens, -tokens,
            (tokens == 3) ^ (tokens > 5), jnp.bincount(tokens[0], length=16),
            lax.clz(tokens), jnp.abs(tokens - 5), tokens.astype(jnp.uint8) + 1,
            lax.shift_right_logical(tokens, 1), jnp.cumprod(tokens % 3 + 1, 1)[:, :5],
            tokens.sum(), jnp.unpackbits(tokens.astype(jnp.uint8), axis=1)[:, :9])


@model(0, 0, "b s 64")
def norms(x):
    def group_norm(x):
        groups = x.reshape(*x.shape[:2], 8, 8)
        mean = groups.mean((1, 3), keepdims=True)
        return ((groups - mean) / jnp.sqrt(groups.var((1, 3), keepdims=True) + 1e-5)
                ).reshape(x.shape)

    halves = x.astype(jnp.bfloat16)
    return (group_norm(x), jax.nn.standardize(x), jnp.linalg.norm(x, axis=-1),
            (halves @ weight(HIDDEN, 16).astype(jnp.bfloat16)).astype(jnp.float32),
            jax.nn.log_softmax(x), jax.nn.glu(x), jax.nn.elu(x), jax.nn.leaky_relu(x),
            jax.nn.hard_swish(x), jnp.where(x > 0, x, 0).sum(), jnp.sinh(x), jnp.exp2(x),
            jnp.std(x, 1), jnp.logaddexp(x, 0.5), jnp.power(jnp.abs(x), 1.5), x ** 3)


@model(0, 0, "b 16 4")
def convolutions_1d(x):
    numbers = ("NWC", "WIO", "NWC")
    x = lax.conv_general_dilated(x, weight(3, 4, 8), (1,), [(2, 0)],
                                 dimension_numbers=numbers)
    pooled = lax.reduce_window(x, 0.0, lax.add, (1, 4, 1), (1, 4, 1), "VALID") / 4
    return pooled, lax.conv(x.transpose(0, 2, 1), weight(6, 8, 2), (2,), "SAME")


@model(0, 0, "2*b s 64")
def quotients(x):
    half = x.shape[0] // 2
    return (x[:half], x[half:], x.reshape(half, 2, -1), x.reshape(-1, HIDDEN).sum(0),
            x * x.shape[1], jnp.arange(x.shape[1] * 2), jnp.pad(x, ((0, 0), (half, 1), (0, 0))))


def parse(shape, sizes):
    """Returns the ShapeDtypeStruct of a text."""
    kind = jnp.int32 if shape.startswith("i:") else jnp.float32
    texts = shape.removeprefix("i:").split()
    if sizes is None:
        return jax.ShapeDtypeStruct(tuple(eval(one, {"b": 2, "s": 12}) for one in texts), kind)
    dims = [sizes[one] if one in sizes else 2 * sizes["b"] if one == "2*b" else int(one)
            for one in texts]
    return jax.ShapeDtypeStruct(tuple(dims), kind)


def make_inputs(shapes, values):
    generator = np.random.default_rng(3)
    arrays = []
    for shape in shapes:
        size = [eval(one, dict(values)) for one in shape.removeprefix("i:").split()]
        arrays.append(generator.integers(1, 9, size).astype(np.int32)
                      if shape.startswith("i:") else
                      generator.standard_normal(size).astype(np.float32))
    return arrays


def measure(name, is_symbolic, options, folder):
    """Returns the columns of a row, and whether it is as expected."""
    import posenc

    function, shapes, *expected, tolerance = MODELS[name]
    sizes = None
    if is_symbolic:
        names = [name for name in "bs" if any(name in shape for shape in shapes)]
        sizes = dict(zip(names, export.symbolic_shape(
            ", ".join(names), constraints=["s >= 8"] if "s" in names else [])))
    exported = export.export(jax.jit(function))(*(parse(one, sizes) for one in shapes))
    path = folder / f"{name}-{'symbolic' if is_symbolic else 'static'}.mlir"
    path.write_text(posenc.import_stablehlo(exported), encoding="utf-8")
    done = subprocess.run([options.compiler, path, "--emit=posenc", "-o", "-"],
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.split("error: ") + ["?"])[1])
    start = time.perf_counter()
    kernels = posenc.compile(path.read_text(encoding="utf-8"), opt_level=0)
    seconds = time.perf_counter() - start
    differences = []
    for values in ({"b": 2, "s": 12}, {"b": 3, "s": 9})[:1 + is_symbolic]:
        inputs = make_inputs(shapes, values)
        results = kernels.main(*inputs)
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        differences += [
            RAISED.compare(np.asarray(one), np.asarray(other)) for one, other in
            zip(results, jax.tree.leaves(jax.jit(function)(*inputs)), strict=True)]
    columns, is_right = RAISED.judge(RAISED.count_found(done.stdout), expected,
                                     float(np.max(differences)), tolerance)
    return [*columns, f"{seconds:.1f}"], is_right


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, help="keeps the exported files here")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--sizes", default="static,symbolic")
    parser.add_argument("--compiler", default="posenc-compile")
    options = parser.parse_args()
    passed = total = 0
    print("| function | sizes | rotations | attentions | result | difference | seconds |\n"
          "|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in options.models.split(","):
            for sizes in options.sizes.split(","):
                total += 1
                try:
                    columns, is_right = measure(name, sizes == "symbolic", options, folder)
                except Exception as error:  # Whatever the exporter raises.
                    text = str(error).strip().splitlines() or [type(error).__name__]
                    columns = ["", "", f"fails: {text[0][:150]}", "", ""]
                    is_right = False
                passed += is_right
                print("|", " | ".join([name, sizes, *columns]), "|", flush=True)
    print(f"\n{passed} of {total} are as expected")
    return 0 if passed == total else 1


if __name__ == "__main__":
    sys.exit(main())
