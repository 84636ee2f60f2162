# ===- test_vllm_kernels.py - kernels of the plug-in for vLLM --------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Kernels that posenc.vllm compiles, on tensors as vLLM has them, without vLLM. The
plug-in itself is tested by `make vllm-test`."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import posenc  # noqa: E402
from posenc.vllm._cache import QUANTIZED, count_scale_bytes, split  # noqa: E402
from posenc.vllm._kernels import (  # noqa: E402
    Cache, Layer, compile_append, compile_attention, compile_encoder, compile_rotation)
from posenc.vllm._speed import Measured, find_slower  # noqa: E402

HEADS, KEY_HEADS, DIM = 4, 2, 64
NAMES = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}
LAYER = Layer(HEADS, KEY_HEADS, DIM, 0.125, None, None, False, False)


def attend_plainly(q, k, v, layer, slopes, sinks):
    """Attention of the last queries of one sequence, in f64."""
    queries, keys = q.shape[0], k.shape[0]
    q, k, v = q.double(), k.double(), v.double()
    k, v = (x.repeat_interleave(HEADS // KEY_HEADS, 1) for x in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) * layer.scale
    if layer.soft_cap:
        scores = layer.soft_cap * torch.tanh(scores / layer.soft_cap)
    ahead = torch.arange(keys)[None] - torch.arange(keys - queries, keys)[:, None]
    if slopes is not None:
        scores = scores + slopes.double()[:, None, None] * ahead
    hidden = ahead > 0
    if layer.window:
        hidden = hidden | (ahead <= -layer.window)
    scores = scores.masked_fill(hidden, -torch.inf)
    if sinks is not None:
        column = sinks.double()[:, None, None].expand(-1, queries, 1)
        scores = torch.cat([scores, column], -1)
    weights = scores.softmax(-1)[..., :keys]
    return torch.einsum("hqk,khd->qhd", weights, v)


def make_cache(kind, cache, blocks, block):
    """Returns a cache as vLLM allocates it, with bytes that are NaN in floats, and its
    views."""
    storage = {"i8": torch.int8, "f8E4M3FN": torch.uint8, "f8E5M2": torch.uint8}.get(
        cache.dtype, kind)
    content = 2 * DIM + count_scale_bytes(cache)
    whole = torch.full((blocks, KEY_HEADS, block, content * storage.itemsize), 0xff,
                       dtype=torch.uint8).view(storage)
    return whole, split(whole, DIM, cache)


@pytest.mark.parametrize("dtype, variant, block", [
    *[("float32", "plain", block) for block in (16, 48, 128, 256)],
    ("bfloat16", "plain", 128), ("float16", "plain", 128),
    *[("float32", variant, 32) for variant in ("window", "cap and sinks", "slopes")],
    *[("float32", name, 32) for name in QUANTIZED if name != "fp8"],
    *[("bfloat16", name, 16) for name in QUANTIZED if name != "fp8"]])
def test_attention_of_a_batch(dtype, variant, block):
    layer = {"window": LAYER._replace(window=40),
             "cap and sinks": LAYER._replace(soft_cap=5.0, has_sinks=True),
             "slopes": LAYER._replace(has_slopes=True)}.get(variant, LAYER)
    kind, name = getattr(torch, dtype), NAMES[dtype]
    cache = QUANTIZED.get(variant, Cache(name))
    torch.manual_seed(0)
    # The new tokens of sequences and their lengths with these: a prefill, a chunk, a
    # decode, drafts of a speculation.
    new, lengths = [70, 33, 1, 4], [70, 300, 257, 129]
    starts = torch.tensor([0, *new]).cumsum(0).to(torch.int32)
    pages = [-(-length // block) for length in lengths]
    order = torch.randperm(sum(pages) + 3)
    table = torch.full((len(new), max(pages) + 2), 0, dtype=torch.int32)
    whole, views = make_cache(kind, cache, len(order), block)
    unused = whole.view(torch.uint8)[order[sum(pages):]]
    sequences = [torch.randn(2, length, KEY_HEADS, DIM).to(kind) for length in lengths]
    append = compile_append(KEY_HEADS, DIM, name, cache)
    given = [torch.full((1, 1, 1), scale) for scale in (0.02, 0.03)
             if cache.scales == "tensor"]
    first = 0
    for row, (count, sequence) in enumerate(zip(pages, sequences)):
        table[row, :count] = order[first:first + count]
        first += count
        at = torch.arange(sequence.shape[1])
        slots = table[row, at // block].long() * block + at % block
        # Padding has the slot -1.
        k, v = (torch.cat([x, x[:1] * 0 + 9]) for x in sequence)
        append(k, v, torch.cat([slots, torch.tensor([-1])]), *views, *given, out=views)
    assert torch.equal(whole.view(torch.uint8)[order[first:]], unused)
    # Queries are a part of the rows of one projection, as vLLM splits them.
    q = torch.randn(sum(new), HEADS + 2 * KEY_HEADS, DIM).to(kind)[:, :HEADS]
    slopes = torch.tensor([0.5, 0.25, 0.125, 0.0625]) if layer.has_slopes else None
    sinks = torch.randn(HEADS) if layer.has_sinks else None
    attend = compile_attention(layer, name, cache, True)
    out = torch.empty(sum(new), HEADS, DIM, dtype=kind)
    attend(q, *views, *given, *[x for x in (slopes, sinks) if x is not None],
           torch.tensor(lengths, dtype=torch.int32), table, starts, out=out)
    for row, sequence in enumerate(sequences):
        rows = slice(starts[row], starts[row + 1])
        if cache.scales:
            at = torch.arange(lengths[row])
            pages = table[row, at // block].long(), at % block
            sequence = read_back(views, given, pages, sequence, cache)
        expected = attend_plainly(q[rows], *sequence, layer, slopes, sinks)
        error = (out[rows].double() - expected).abs().max()
        assert error < {"f32": 2e-6, "bf16": 2e-2, "f16": 2e-3}[name]


def read_back(views, given, pages, sequence, cache):
    """Returns the keys and values that a quantized cache has, after a comparison with
    those that were written."""
    limit = {"i8": 127, "f8E4M3FN": 448, "f8E5M2": 57344}[cache.dtype]
    page, slot = pages
    read = []
    for part, rows in enumerate(sequence):
        stored, rows = views[part][page, :, slot], rows.float()
        if cache.scales == "tensor":
            scales = given[part]
            assert torch.equal(stored.float(), (rows / scales).to(stored.dtype).float())
        else:
            scales = views[2 + part][page, :, slot][..., None]
            torch.testing.assert_close(scales, rows.abs().amax(-1, True) / limit,
                                       rtol=1e-6, atol=0)
            quotients = rows / scales
            quotients = (quotients.round() if cache.dtype == "i8" else
                         quotients.to(stored.dtype))
            assert torch.equal(stored.float(), quotients.float())
        read.append(stored.float() * scales)
    return read


@pytest.mark.parametrize("window", [None, 9])
def test_attention_of_an_encoder(window):
    torch.manual_seed(0)
    sizes = [50, 1, 17]
    starts = torch.tensor([0, *sizes]).cumsum(0).to(torch.int32)
    # Of one projection, as vLLM has them.
    rows = torch.randn(sum(sizes), HEADS + 2 * KEY_HEADS, DIM)
    q, k, v = rows.split([HEADS, KEY_HEADS, KEY_HEADS], dim=1)
    out = torch.empty(sum(sizes), HEADS, DIM)
    compile_encoder(LAYER._replace(window=window), "f32")(q, k, v, starts, out=out)
    for first, last in zip(starts, starts[1:]):
        x, keys, values = (y[first:last].transpose(0, 1) for y in (q, k, v))
        keys, values = (y.repeat_interleave(2, 0) for y in (keys, values))
        at = torch.arange(int(last - first))
        seen = (at[:, None] - at).abs() < (window or 1000)
        expected = torch.nn.functional.scaled_dot_product_attention(
            x, keys, values, seen, scale=0.125).transpose(0, 1)
        torch.testing.assert_close(out[first:last], expected, atol=2e-6, rtol=0)


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize("rotary_dim", [64, 32])
def test_rotation_by_a_table(pairing, rotary_dim):
    torch.manual_seed(0)
    angles = torch.outer(torch.arange(300.0),
                         10000.0 ** (-torch.arange(0, rotary_dim, 2) / rotary_dim))
    table = torch.cat([angles.cos(), angles.sin()], -1)
    positions = torch.tensor([7, 0, 299, 12, 12])
    rows = torch.randn(5, (HEADS + 2 * KEY_HEADS) * DIM)
    before = rows.clone()
    q = rows[:, :HEADS * DIM].view(5, HEADS, DIM)
    k = rows[:, HEADS * DIM:-KEY_HEADS * DIM].view(5, KEY_HEADS, DIM)
    compile_rotation(DIM, rotary_dim, "f32", "f32", pairing)(
        q, k, positions, table, out=(q, k))
    expected = before.view(5, -1, DIM).clone()
    x = expected[:, :HEADS + KEY_HEADS, :rotary_dim]
    one, two = (x.chunk(2, -1) if pairing == "half" else (x[..., ::2], x[..., 1::2]))
    cos, sin = table[positions][:, None].chunk(2, -1)
    turned = one * cos - two * sin, two * cos + one * sin
    x[...] = (torch.cat(turned, -1) if pairing == "half" else
              torch.stack(turned, -1).flatten(-2))
    torch.testing.assert_close(rows, expected.view(5, -1), atol=1e-6, rtol=0)


@pytest.mark.parametrize("mode, values", [
    ("on", [None, "", "1", "on", "true", "YES "]), ("off", ["0", "off", "False", "no"]),
    ("force", ["force"]), ("require", ["require"]), ("cuda", ["cuda"])])
def test_modes(monkeypatch, mode, values):
    from posenc.vllm import get_mode

    for value in values:
        monkeypatch.delenv("POSENC_VLLM", raising=False)
        if value is not None:
            monkeypatch.setenv("POSENC_VLLM", value)
        assert get_mode() == mode


def test_unknown_modes(monkeypatch):
    from posenc.vllm import get_rotation, register

    monkeypatch.setenv("POSENC_VLLM", "2")
    with pytest.raises(posenc.Error, match="POSENC_VLLM is '2', expected one of on, 1, "
                       "true, yes, off, 0, false, no, force, require, cuda"):
        register()
    monkeypatch.setenv("POSENC_VLLM_ROPE", "")
    assert get_rotation() == "table"


def test_table_of_speeds():
    rows = [Measured("", 256, False, (0.5, 0.7), None), Measured("", 64, False, None, None),
            Measured("", 128, False, (0.9, 1.4), (0.8, 1.1))]
    assert [find_slower(dim, False, rows) and find_slower(dim, False, rows).dim
            for dim in (32, 64, 65, 128, 192, 256, 512)] == [
                None, None, None, None, 256, 256, 256]
    assert find_slower(64, True, rows) is find_slower(64, False, []) is None


def test_posenc_does_not_import_vllm():
    program = "import sys, posenc, posenc.vllm; assert 'vllm' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
