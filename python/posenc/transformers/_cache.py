# ===- _cache.py - keys and values of earlier tokens -----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""A cache that appends in place, where DynamicCache copies all tokens at each one."""

from __future__ import annotations

import functools

import torch
import transformers
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from .._errors import Error


def _get_address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


class _Buffer:
    """Tokens [batch, heads, tokens, channels], stored with room for more of them."""

    storage: torch.Tensor

    def __init__(self) -> None:
        self.assign(None)

    def view(self) -> torch.Tensor:
        return self.storage.narrow(2, self.begin, self.end - self.begin)

    def view_assigned(self) -> torch.Tensor | None:
        return self.view() if self.is_assigned else None

    def assign(self, tokens: torch.Tensor | None) -> None:
        """Makes a tensor the stored tokens. If it is some of them, as after `crop`, the
        storage stays."""
        self.is_assigned = tokens is not None
        if tokens is None:
            tokens = torch.empty(0, 0, 0, 0)
        if self._holds(tokens):
            offset = tokens.storage_offset() - self.storage.storage_offset()
            self.begin = offset // self.storage.stride(2)
        else:
            self.storage, self.begin = tokens, 0
            self.is_own = False  # Others may hold the storage.
        self.end = self.begin + tokens.shape[2]

    def _holds(self, tokens: torch.Tensor) -> bool:
        """Whether a tensor is a view of some tokens of the storage."""
        return tokens.numel() > 0 and (
            _get_address(tokens) == _get_address(self.storage)
            and tokens.stride() == self.storage.stride()
            and tokens[:, :, 0].shape == self.storage[:, :, 0].shape)

    def append(self, tokens: torch.Tensor) -> torch.Tensor:
        """Stores tokens after the others and returns a view of all."""
        end = self.end + tokens.shape[2]
        if not self.is_own or end > self.storage.shape[2]:
            self._make_room(tokens)
            end = self.end + tokens.shape[2]
        self.storage.narrow(2, self.end, tokens.shape[2]).copy_(tokens)
        self.end = end
        return self.storage.narrow(2, self.begin, end - self.begin)

    def _make_room(self, tokens: torch.Tensor) -> None:
        """Moves the stored tokens to the beginning, of a new storage if they and the new
        ones fill more than half of this one. So storage doubles unless tokens were
        dropped."""
        kept, storage = self.view(), self.storage
        batch, heads, count, channels = tokens.shape
        count += kept.shape[2]
        if not self.is_own or 2 * count > storage.shape[2]:
            # In tensors of inference mode nothing could be stored outside of it.
            with torch.inference_mode(False):
                storage = tokens.new_empty((batch, heads, 2 * count, channels))
        storage.narrow(2, 0, kept.shape[2]).copy_(kept)
        self.storage, self.begin, self.end = storage, 0, kept.shape[2]
        self.is_own = True


class _Layer(DynamicLayer):
    """The keys and values of a layer. `keys` and `values` are views of the filled part;
    the methods of transformers, such as `crop`, assign to them. What is assigned and is
    not such a view is copied before the next token is appended."""

    def __init__(self, *arguments, **options):
        self._keys, self._values = _Buffer(), _Buffer()
        super().__init__(*arguments, **options)

    keys = property(lambda self: self._keys.view_assigned(),
                    lambda self, tokens: self._keys.assign(tokens))
    values = property(lambda self: self._values.view_assigned(),
                      lambda self, tokens: self._values.assign(tokens))

    @property
    def _buffers(self) -> tuple[_Buffer, _Buffer]:
        return self._keys, self._values

    def lazy_initialization(self, key_states: torch.Tensor,
                            value_states: torch.Tensor) -> None:
        self.device = key_states.device
        self.keys, self.values = key_states[:, :, :0], value_states[:, :, :0]
        self.is_initialized = True

    def _check(self, states: tuple[torch.Tensor, torch.Tensor]) -> None:
        if not self.is_initialized:
            self.lazy_initialization(*states)
        for buffer, tokens in zip(self._buffers, states):
            if tokens.requires_grad and torch.is_grad_enabled():
                raise Error("posenc.transformers.Cache has no gradients: call the model "
                            "under torch.no_grad()")
            if tokens.dtype != buffer.storage.dtype:
                raise Error(f"the cache has tokens of {buffer.storage.dtype}, got "
                            f"{tokens.dtype}")
            if tokens.shape[0] != buffer.storage.shape[0]:
                raise Error(f"the cache has {buffer.storage.shape[0]} sequences, got "
                            f"{tokens.shape[0]}")

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *arguments,
               **options) -> tuple[torch.Tensor, torch.Tensor]:
        """Appends keys and values [batch, heads, tokens, channels]. Returns all."""
        self._check((key_states, value_states))
        return self._keys.append(key_states), self._values.append(value_states)

    def get_seq_length(self) -> int:
        return self._keys.end - self._keys.begin

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Copies the sequences that beam search replaces by others."""
        count = beam_idx.shape[0]
        for buffer in self._buffers if self.get_seq_length() else ():
            tokens = buffer.view()
            if count != tokens.shape[0] or not buffer.is_own:
                buffer.assign(tokens.index_select(0, beam_idx))
                continue
            own = torch.arange(count, device=beam_idx.device)
            moved = (beam_idx != own).nonzero().flatten()
            if moved.numel():
                tokens[moved] = tokens[beam_idx[moved]]


class _SlidingLayer(_Layer, DynamicSlidingWindowLayer):
    """As `_Layer`, with only as many tokens as the window of the next query has."""

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *arguments,
               **options) -> tuple[torch.Tensor, torch.Tensor]:
        """Appends keys and values [batch, heads, tokens, channels]. Returns those in
        the windows of the new tokens."""
        self._check((key_states, value_states))
        self.cumulative_length += key_states.shape[2]
        return (self._append(self._keys, key_states),
                self._append(self._values, value_states))

    def _append(self, buffer: _Buffer, tokens: torch.Tensor) -> torch.Tensor:
        past, count = self.sliding_window - 1, tokens.shape[2]
        if self.record_past:
            # Tokens are dropped by `crop`.
            return buffer.append(tokens)[:, :, -(past + count):]
        if count <= past:
            seen = buffer.append(tokens)
            buffer.begin = max(buffer.begin, buffer.end - past)
            return seen
        # A long prompt would need storage that no later token uses.
        seen = torch.cat((buffer.view(), tokens), 2) if buffer.end else tokens
        buffer.begin = buffer.end = 0
        buffer.append(tokens[:, :, count - past:])
        return seen

    def get_seq_length(self) -> int:
        return self.cumulative_length


class Cache(transformers.DynamicCache):
    """Keys and values of a model without copies of all of them per token.

        model.generate(tokens, cache=posenc.transformers.Cache(model.config))

    (`past_key_values=` in older versions of transformers.) Tokens are appended in place
    to storage [batch, heads, capacity, channels]. Full storage is replaced by one of
    twice the size. Layers with a sliding window keep the last window. The model gets
    views of the filled part, which any attention of transformers takes. They are valid
    until tokens are dropped, by `crop` or a window, or reordered. Otherwise it is a
    DynamicCache, with `crop`, `reset`, `reorder_cache` and the other methods.

    config: the model's, which says which layers have windows. Without it, none have.
    """

    def __init__(self, config: transformers.PretrainedConfig | None = None):
        super().__init__(config=config)
        if config is None:
            self.layer_class_to_replicate = _Layer
        # Layers of other kinds, such as states of linear attention, stay.
        for index, layer in enumerate(self.layers):
            if type(layer) is DynamicLayer:
                self.layers[index] = _Layer()
            elif type(layer) is DynamicSlidingWindowLayer:
                self.layers[index] = _SlidingLayer(layer.sliding_window)


def _prepare_cache(model, generation_config, model_kwargs: dict, *arguments, **options):
    """As the method of transformers, with a Cache where that makes a DynamicCache."""
    given = set(map(id, model_kwargs.values()))
    result = type(model)._prepare_cache_for_generation(
        model, generation_config, model_kwargs, *arguments, **options)
    for name, cache in model_kwargs.items():
        if (type(cache) is transformers.DynamicCache and id(cache) not in given
                and not cache.offloading):
            model_kwargs[name] = Cache(model.config)
            if getattr(generation_config, "is_assistant", False):
                model_kwargs[name].activate_past_recording()
    return result


def use_cache(model: torch.nn.Module) -> None:
    """Makes `generate` of a model use a Cache."""
    if hasattr(model, "_prepare_cache_for_generation"):
        vars(model)["_prepare_cache_for_generation"] = functools.partial(
            _prepare_cache, model)


def restore_cache(model: torch.nn.Module) -> None:
    """Undoes `use_cache`."""
    vars(model).pop("_prepare_cache_for_generation", None)
