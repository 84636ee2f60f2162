# ===- torch_decoder.py - the decoder of llama_model.py in PyTorch ------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""A decoder with the spelling of transformers, whose caches are tensors that it writes
to. A call with several tokens begins a sequence; one with a single token has caches that
this token fills."""

import numpy as np
import torch
from model_ways import to_torch
from torch.nn import Linear, Module, ModuleList, Parameter
from torch.nn.functional import embedding, linear, scaled_dot_product_attention, silu


def norm(x, weight):
    y = x.float()
    y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)
    return weight * y.to(x.dtype)


def rotate(x, cos, sin):
    low, high = x.chunk(2, -1)
    return x * cos + torch.cat((-high, low), -1) * sin


class Layer(Module):
    def __init__(self, config):
        super().__init__()
        self.heads, self.kv_heads, self.head = config.heads, config.kv_heads, config.head
        for name, (rows, columns) in config.matrices.items():
            self.add_module(name, Linear(rows, columns, bias=False, device="meta"))
        for name in ("middle", "next"):
            self.register_parameter(name, Parameter(
                torch.empty(config.hidden, device="meta")))

    def forward(self, x, y, cos, sin, update):
        batch, tokens, _ = y.shape
        q, k, v = (part(y).view(batch, tokens, -1, self.head).transpose(1, 2)
                   for part in (self.q, self.k, self.v))
        q = rotate(q, cos, sin)
        keys, values = update(rotate(k, cos, sin), v)
        o = scaled_dot_product_attention(q, keys, values, is_causal=tokens > 1,
                                         enable_gqa=True)
        x = x + self.o(o.transpose(1, 2).reshape(batch, tokens, -1))
        y = norm(x, self.middle)
        x = x + self.down(silu(self.gate(y)) * self.up(y))
        return x, norm(x, self.next)


class Decoder(Module):
    def __init__(self, config):
        super().__init__()
        self.layers = ModuleList(Layer(config) for _ in range(config.layers))
        for name, shape in (("embed", (config.vocabulary, config.hidden)),
                            ("norm", (config.hidden,))):
            self.register_parameter(name, Parameter(torch.empty(shape, device="meta")))
        angles = torch.outer(torch.arange(config.positions).double(), config.base ** -(
            torch.arange(0, config.head, 2).double() / config.head))
        self.register_buffer("cos", angles.cos().float())
        self.register_buffer("sin", angles.sin().float())

    def run(self, ids, positions, update):
        """`update` is given the number of a layer, keys and values, and returns all."""
        x = embedding(ids, self.embed)
        y = norm(x, self.norm)
        cos, sin = (torch.cat((table[positions],) * 2, -1).to(x.dtype)[None, None]
                    for table in (self.cos, self.sin))
        for number, layer in enumerate(self.layers):
            x, y = layer(x, y, cos, sin, lambda k, v, number=number: update(number, k, v))
        return linear(y[:, -1:], self.embed)

    def forward(self, ids, positions, caches):
        def update(number, *parts):
            both = caches[2 * number:2 * number + 2]
            for cache, part in zip(both, parts):
                cache.index_copy_(2, positions, part)
            return both if ids.shape[1] == 1 else parts

        return self.run(ids, positions, update)


class Pure(Module):
    """Returns the new rows of caches instead of writing them."""

    def __init__(self, decoder):
        super().__init__()
        self.decoder = decoder

    def forward(self, ids, positions, caches):
        new = []

        def update(number, *parts):
            new.extend(parts)
            return parts if ids.shape[1] > 1 else [
                torch.cat(both, 2) for both in zip(caches[2 * number:], parts)]

        return self.decoder.run(ids, positions, update), *new


def load(model):
    """Returns the model with its weights, whose matrices are as PyTorch has them."""
    config = model.config
    stored = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16}[config.dtype]

    def read(name):
        offset, shape = model.places[name]
        array = np.memmap(f"{model.path}.data", stored, "r", offset, shape)
        return to_torch(array, config.dtype)

    decoder, state = Decoder(config), {"embed": read("embed.weight")}
    state["norm"] = read("norm.weight")
    for number in range(config.layers):
        prefix = f"layers.{number}."
        for name in config.matrices:
            state[f"{prefix}{name}.weight"] = read(f"{prefix}{name}.weight").T.contiguous()
        for name in ("middle", "next"):
            state[prefix + name] = read(f"{prefix}{name}.weight")
    decoder.load_state_dict({**decoder.state_dict(), **state}, assign=True)
    return decoder.eval()
