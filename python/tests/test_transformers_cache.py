# ===- test_transformers_cache.py - the cache of transformers models -------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""posenc.transformers.Cache holds what a DynamicCache holds, and copies less."""

import copy

import pytest

import posenc

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import posenc.transformers  # noqa: E402
from posenc.transformers import Cache  # noqa: E402
from test_transformers import (  # noqa: E402
    MODELS, generate, is_close, make_model, make_tokens)

BATCH, HEADS, KEY_DIM, VALUE_DIM, WINDOW = 2, 3, 8, 4, 7
CONFIG = transformers.Gemma2Config(
    num_hidden_layers=2, sliding_window=WINDOW, num_attention_heads=HEADS,
    layer_types=["full_attention", "sliding_attention"])


def make_states(first, count, batch=BATCH):
    """Keys and values whose elements depend on all indices."""
    return [torch.arange(batch * HEADS * count * dim, dtype=torch.float32).reshape(
        batch, HEADS, count, dim) / 7 + 1000 * first for dim in (KEY_DIM, VALUE_DIM)]


class Pair:
    """A Cache and a DynamicCache, on which all is done and compared."""

    def __init__(self, config=CONFIG):
        self.caches = Cache(config), transformers.DynamicCache(config=config)
        self.seen = 0

    def append(self, count, batch=BATCH, layers=2):
        states = make_states(self.seen, count, batch)
        for layer in range(layers):
            sizes = [cache.get_mask_sizes(count, layer) for cache in self.caches]
            actual, expected = (cache.update(*states, layer) for cache in self.caches)
            assert sizes[0] == sizes[1] and actual[0].shape[2] == sizes[0][0]
            assert all(map(torch.equal, actual, expected))
        self.seen += count
        self.compare()

    def call(self, method, *arguments):
        for cache in self.caches:
            getattr(cache, method)(*arguments)
        self.compare()

    def compare(self):
        actual, expected = self.caches
        assert actual.get_seq_length() == expected.get_seq_length()
        assert actual.is_initialized == expected.is_initialized
        assert actual.is_sliding == expected.is_sliding
        for a, b in zip(actual.layers, expected.layers, strict=True):
            assert a.get_seq_length() == b.get_seq_length()
            if b.keys is None:
                assert a.keys is None and a.values is None
            else:
                assert torch.equal(a.keys, b.keys) and torch.equal(a.values, b.values)


@pytest.mark.parametrize("counts", [
    (1,) * 40, (3, *(1,) * 30), (6, 1, 1, 1), (7, 1, 1), (8, 1, 1), (25, *(1,) * 30),
    (5, 9, 2, 6, 1, 30, 4, 4, 4, 4, 4, 4, 1), (0, 3, 0, 9, 0)])
def test_update(counts):
    pair = Pair()
    for count in counts:
        pair.append(count)


def test_operations():
    pair = Pair()
    pair.append(5)
    pair.call("crop", -2)
    pair.append(2)
    for order in ([1, 0], [0, 0], [1, 1], [0, 1]):
        pair.call("reorder_cache", torch.tensor(order))
        pair.append(1)
    pair.call("batch_repeat_interleave", 3)
    pair.append(4, batch=6)
    pair.call("reorder_cache", torch.tensor([5, 0, 0, 2, 4, 1]))
    pair.append(9, batch=6)
    pair.call("batch_select_indices", torch.tensor([4, 1, 1]))
    pair.append(1, batch=3)
    pair.call("reorder_cache", torch.tensor([2, 0]))
    pair.append(1)
    pair.call("reset")
    pair.append(3, batch=5)
    pair.call("crop", -3)
    pair.append(1, batch=5)


def test_crop_of_a_window():
    pair = Pair()
    pair.append(9)
    for cache in pair.caches:
        with pytest.raises(RuntimeError, match="activate_past_recording"):
            cache.layers[1].crop(-1)
    pair = Pair()
    for cache in pair.caches:
        cache.activate_past_recording()
    for counts, removed in (((9, 3), 2), ((1, 1), 0), ((20,), 3), ((4,), 4), ((5, 4), 8)):
        for count in counts:
            pair.append(count)
        pair.call("crop", -removed)


def test_without_a_config():
    pair = Pair(None)
    for count in (3, 1, 1, 9):
        pair.append(count)


def test_copies_and_modes():
    """A copy of a cache is independent. Tensors of inference mode can be continued."""
    with torch.inference_mode():
        pair = Pair()
        pair.append(4)
    pair.append(1)
    other = copy.deepcopy(pair)
    other.append(1)
    pair.compare()
    with torch.inference_mode():
        pair.append(2)
    pair.append(1)
    other.append(3)


def test_tokens_are_appended_in_place():
    """Storage moves O(log n) times, and is at most four times what is needed."""
    cache = Cache(CONFIG)
    moves = {0: 0, 1: 0}
    places = {}
    for token in range(1500):
        for layer in moves:
            keys, values = cache.update(*make_states(token, 1), layer)
            needed = min(token + 1, WINDOW) if layer else token + 1
            for tensor in (keys, values):
                elements = tensor.untyped_storage().nbytes() // tensor.element_size()
                assert elements <= 4 * BATCH * HEADS * needed * tensor.shape[3]
            place = keys.untyped_storage().data_ptr()
            moves[layer] += places.get(layer) != place
            places[layer] = place
    assert moves[0] <= 11 and moves[1] <= 5


def test_errors():
    cache = Cache(CONFIG)
    keys, values = make_states(0, 2)
    with pytest.raises(posenc.Error, match="has no gradients"):
        cache.update(keys.clone().requires_grad_(), values, 0)
    cache.update(keys, values, 0)
    with pytest.raises(posenc.Error, match="tokens of torch.float32, got torch.float64"):
        cache.update(keys.double(), values.double(), 0)
    with pytest.raises(posenc.Error, match="has 2 sequences, got 1"):
        cache.update(keys[:1], values[:1], 0)


@pytest.mark.parametrize("name", MODELS)
def test_generate(name):
    """Tokens are those of a DynamicCache, for prompts shorter and longer than windows."""
    options, _ = MODELS[name]
    if "Gemma" in name or name in ("Mistral", "GptOss"):
        options = {**options, "sliding_window": 16}
    model = make_model(name, **options)
    for length in (9, 37):
        tokens = make_tokens(tokens=length)
        model.set_attn_implementation("posenc")
        expected = generate(model, tokens)
        cache = Cache(model.config)
        with torch.no_grad():
            actual = model.generate(tokens, max_new_tokens=24, do_sample=False,
                                    cache=cache)
        assert torch.equal(actual, expected)
        assert cache.get_seq_length() == length + 23


def test_enable():
    """`generate` uses a Cache, unless it is told another."""
    model = posenc.transformers.enable(make_model("Mistral", sliding_window=16))
    tokens = make_tokens()

    def call(**options):
        with torch.no_grad():
            return model.generate(tokens, max_new_tokens=12, do_sample=False,
                                  return_dict_in_generate=True, **options)

    def cache_of(output):
        return getattr(output, "cache", None) or output.past_key_values

    output = call()
    assert type(cache_of(output)) is Cache
    for options in ({"cache": transformers.DynamicCache(config=model.config)},
                    {"cache_implementation": "static"}):
        other = call(**options)
        assert type(cache_of(other)) is not Cache
        assert torch.equal(other.sequences, output.sequences)
    assert torch.equal(call(use_cache=False).sequences, output.sequences)
    beams = call(num_beams=3, num_return_sequences=2)
    dynamic = call(num_beams=3, num_return_sequences=2,
                   cache=transformers.DynamicCache(config=model.config))
    assert torch.equal(beams.sequences, dynamic.sequences)


@pytest.mark.parametrize("name", ["Llama", "Mistral", "GptOss"])
def test_static_cache(name):
    """Prefill of a static cache, more tokens at once, and single tokens."""
    options = {**MODELS[name][0], **({} if name == "Llama" else {"sliding_window": 16})}
    model = make_model(name, **options)
    tokens = make_tokens()
    expected = model.eval().requires_grad_(False)(tokens).logits
    model.set_attn_implementation("posenc")
    for padding in (None, torch.ones_like(tokens)):
        cache = transformers.StaticCache(config=model.config, max_cache_len=64)
        parts = []
        for begin, end in ((0, 20), (20, 29), *((i, i + 1) for i in range(29, 37))):
            mask = None if padding is None else padding[:, :end]
            parts.append(model(tokens[:, begin:end], attention_mask=mask,
                               cache=cache).logits)
        assert is_close(torch.cat(parts, 1), expected)


def test_under_compile():
    """A compiled model may have a Cache, whose storage moves meanwhile."""
    torch.compiler.reset()
    model = posenc.transformers.enable(make_model(num_hidden_layers=1))
    compiled = torch.compile(model, backend="eager")
    tokens = make_tokens(tokens=5)
    cache = Cache(model.config)
    with torch.no_grad():
        parts = [compiled(part, cache=cache).logits
                 for part in tokens.split([2, 1, 1, 1], dim=1)]
        assert is_close(torch.cat(parts, 1), model(tokens).logits)


def test_assigned_tensors_are_not_written():
    """Neither those that a caller assigns, nor those of inference mode."""
    cache = Cache()
    given = torch.arange(2. * 2 * 8 * 4).reshape(2, 2, 8, 4)
    before, more = given.clone(), -torch.ones(2, 2, 2, 4)
    cache.update(more, more, 0)
    layer = cache.layers[0]
    layer.keys = layer.values = given
    layer.keys = layer.keys[:, :, :3]
    keys, _ = cache.update(more, more, 0)
    assert torch.equal(keys, torch.cat((given[:, :, :3], more), 2))
    assert torch.equal(given, before)
    layer.keys = layer.values = given
    cache.reorder_cache(torch.tensor([1, 0]))
    assert torch.equal(layer.keys, before.flip(0))
    assert torch.equal(layer.values, before.flip(0)) and torch.equal(given, before)
    with torch.inference_mode():
        cache.batch_repeat_interleave(2)
    cache.crop(-5)
    more = more.repeat_interleave(2, 0)
    keys, _ = cache.update(more, more, 0)
    assert torch.equal(keys[::2, :, :3], before.flip(0)[:, :, :3])
