# ===- config_keys.py - random keys of configs -----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The configs that config-search.py draws: sizes, dictionaries of the rotation in the new
and in the old spelling, windows and kinds of layers."""

import copy
import random

# Values that a published config may have; the first is the smallest.
THETAS = [100.0, 500, 10000, 10000.0, 123456.7, 160000.0, 500000.0, 1e6, 1.1e7]
FACTORS = [1.0, 1.5, 2, 3.7, 4.0, 8.0, 32, 40.0]
LENGTHS = [16, 100, 512, 2048, 4096, 8192]
PARTS = [0.25, 0.3, 0.5, 0.75, 1.0]
WINDOWS = [None, 1, 2, 5, 8, 100, 4096]
KINDS = ["default", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional"]


class Draw:
    """Draws the keys of a config. `default` has the members of the default config, and
    `pairs` is the number of pairs of channels that a head of it has, by its keys."""

    def __init__(self, rng: random.Random, default: dict):
        self.rng, self.default, self.keys = rng, default, {}

    def has(self, name):
        return name in self.default

    def sometimes(self, name, values, chance=0.5):
        if self.has(name) and self.rng.random() < chance:
            self.keys[name] = self.rng.choice(values)

    def draw(self, pairs):
        """Returns the keys. `pairs` computes how many pairs rotate with given keys."""
        self.draw_sizes()
        self.draw_layers()
        self.draw_rotation(pairs)
        return self.keys

    def draw_sizes(self):
        pick, keys = self.rng.choice, self.keys
        self.sometimes("num_hidden_layers", [1, 2, 3, 4, 5, 6, 7], 0.95)
        heads = pick([1, 2, 3, 4, 6, 8])
        if self.has("num_attention_heads"):
            keys["num_attention_heads"] = heads
        divisors = [n for n in range(1, heads + 1) if heads % n == 0]
        if self.has("num_key_value_heads"):
            keys["num_key_value_heads"] = pick([*divisors, *divisors, None])
        channels = pick([8, 12, 16, 24, 32, 40, 64, 80, 128, 256])
        if self.has("hidden_size"):
            keys["hidden_size"] = heads * channels
        if not self.has("qk_rope_head_dim"):  # Of latent attention it is the channels that rotate.
            self.sometimes("head_dim", [channels, channels, None, 16, 48, 64, 96], 0.7)
        self.sometimes("qk_rope_head_dim", [4, 8, 16, 32, 64])
        self.sometimes("qk_nope_head_dim", [8, 16, 32, 128])
        self.sometimes("v_head_dim", [8, 16, 48, 128])
        self.sometimes("kv_channels", [None, 16, 32])
        self.sometimes("max_position_embeddings", LENGTHS, 0.8)
        self.sometimes("rope_interleave", [True, False])
        self.sometimes("query_pre_attn_scalar", [1, 16, 144, 256.0])
        self.sometimes("attn_logit_softcapping", [None, 20.0, 50.0])
        self.sometimes("attention_multiplier", [0.5, 1.0, 0.015625])
        self.sometimes("use_bidirectional_attention", [True, False], 0.3)

    def draw_layers(self):
        pick, keys = self.rng.choice, self.keys
        count = keys.get("num_hidden_layers", self.default.get("num_hidden_layers"))
        if not self.has("local_attention"):  # The window of ModernBERT is half of it.
            self.sometimes("sliding_window", WINDOWS)
        self.sometimes("use_sliding_window", [True, False])
        if not count:
            return
        self.sometimes("max_window_layers", [0, 1, count - 1, count, count + 1])
        for name in ("sliding_window_pattern", "_sliding_window_pattern",
                     "global_attn_every_n_layers", "no_rope_layer_interval"):
            self.sometimes(name, [1, 2, 3, 4, 6])
        for name in ("no_rope_layers", "layer_rope_theta"):
            if self.has(name) and self.rng.random() < 0.5:
                values = [0, 1] if name == "no_rope_layers" else [0, 10000.0, 5e5]
                keys[name] = [pick(values) for _ in range(count)]
        for name in ("attention_chunk_size", "local_attention"):
            self.sometimes(name, [1, 2, 5, 8, 64])
        kinds = sorted(set(self.default.get("layer_types") or []))
        if set(kinds) <= {"full_attention", "sliding_attention"} and self.has("sliding_window"):
            kinds = ["full_attention", "sliding_attention"]
        if self.has("layer_types") and kinds and self.rng.random() < 0.6:
            keys["layer_types"] = [pick(kinds) for _ in range(count)]

    def draw_dictionary(self, pairs, is_nested=False):
        """A dictionary of a rotation."""
        rng, pick = self.rng, self.rng.choice
        kind = pick(KINDS)
        # The part of a latent head that rotates has a key of its own.
        if kind == "proportional" and self.has("qk_rope_head_dim"):
            kind = "default"
        result = {pick(["rope_type"] * 3 + ["type"]): kind}
        if rng.random() < 0.8 or kind == "proportional":
            result["rope_theta"] = pick(THETAS)
        if kind in ("linear", "dynamic", "yarn", "llama3") or \
                kind in ("longrope", "proportional") and rng.random() < 0.5:
            result["factor"] = pick(FACTORS)
        if kind in ("yarn", "longrope", "llama3") and rng.random() < 0.8:
            result["original_max_position_embeddings"] = pick(LENGTHS)
        if kind == "yarn":
            for name, values in (("beta_fast", [32, 32.0, 8, 64]), ("beta_slow", [1, 1.0, 2]),
                                 ("mscale", [1.0, 0.707, 2]), ("mscale_all_dim", [1.0, 0.5, 0]),
                                 ("attention_factor", [1.0, 0.8, 1.3]),
                                 ("truncate", [True, False])):
                # transformers reads it outside of the dictionaries of layer types.
                if rng.random() < 0.35 and not (is_nested and name == "truncate"):
                    result[name] = pick(values)
        if kind == "llama3":
            low = pick([0.5, 1.0, 2])
            result.update(low_freq_factor=low, high_freq_factor=low * pick([2, 4.0]))
        if kind == "longrope":
            number = pairs({**self.keys})
            for name in ("short_factor", "long_factor"):
                result[name] = [round(1 + rng.random() * 9, 2) for _ in range(number)]
            if rng.random() < 0.3:
                result["attention_factor"] = pick([1.0, 1.2])
        if kind == "proportional" or rng.random() < 0.15:
            result["partial_rotary_factor"] = pick(PARTS)
        sections = (self.default.get("rope_parameters") or {}).get("mrope_section")
        if sections and rng.random() < 0.9:
            number = pairs({**self.keys})
            first = rng.randint(0, number)
            second = rng.randint(0, number - first)
            result["mrope_section"] = pick([
                [first, second, number - first - second],
                [number - 2 * (number // 3), number // 3, number // 3]])
        return result

    def draw_rotation(self, pairs):
        rng, keys = self.rng, self.keys
        given = self.default.get("rope_parameters") or {}
        nested = [name for name, value in given.items() if isinstance(value, dict)]
        nullable = [name for name, value in given.items() if value is None]
        self.sometimes("partial_rotary_factor", PARTS)
        if given and rng.random() < 0.2:
            keys["partial_rotary_factor"] = rng.choice(PARTS)
        way = rng.choice(["new", "new", "new", "old", "none"])
        if nested and way != "none":
            types = sorted({*nested, *keys.get("layer_types", nested)} - set(nullable))
            if rng.random() < 0.15:
                types = types[:1]
            keys["rope_parameters"] = {
                one: self.draw_dictionary(pairs, is_nested=True) for one in types}
            for name in nullable:
                keys["rope_parameters"][name] = None
        elif way == "new":
            keys["rope_parameters"] = self.draw_dictionary(pairs)
        elif way == "old":
            dictionary = self.draw_dictionary(pairs)
            theta = dictionary.pop("rope_theta", None)
            if theta is not None:
                keys["rope_theta"] = theta
            if len(dictionary) > 1 or rng.random() < 0.5:
                keys["rope_scaling"] = dictionary
        if rng.random() < 0.1 and self.has("original_max_position_embeddings"):
            keys["original_max_position_embeddings"] = rng.choice(LENGTHS)
        for name in ("rope_local_base_freq", "rotary_dim"):
            values = [8, 16] if name == "rotary_dim" else THETAS
            self.sometimes(name, values)


def smaller(value):
    """Simpler values of a key, the simplest first."""
    if isinstance(value, bool):
        return [False] if value else []
    if isinstance(value, (int, float)):
        return [one for one in (1, 2, 8, 100, 10000.0) if one < abs(value)]
    if isinstance(value, list) and value:
        return [[value[0]] * len(value)] if len(set(map(str, value))) > 1 else []
    return []


def simplify(keys):
    """Yields simpler keys: without one of them, without a member of a dictionary, and with
    a simpler value."""
    for name in keys:
        if name != "model_type":  # It selects the class of a nested config.
            yield {key: value for key, value in keys.items() if key != name}
    for name, value in keys.items():
        if isinstance(value, dict):
            for simpler in simplify(value):
                if simpler:
                    yield {**keys, name: simpler}
        else:
            for simpler in smaller(value):
                yield {**keys, name: copy.deepcopy(simpler)}
