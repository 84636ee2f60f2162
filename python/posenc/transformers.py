# ===- transformers.py - attention and rotations of transformers -----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Models of transformers on kernels of Posenc, on the CPU and without gradients.

    import posenc.transformers
    model.set_attn_implementation("posenc")   # attention only, of any model
    posenc.transformers.enable(model)         # and rotations, where supported, and Cache

The import registers the attention "posenc". It takes keys and values as transformers
caches them, so it copies nothing. Padding and other masks are those that "sdpa" gets.
`Cache` appends keys and values in place, where DynamicCache copies all at each token.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
import threading
import types

import torch
import transformers
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer
from transformers.masking_utils import (
    AttentionMaskInterface, causal_mask_function, sdpa_mask)

from ._compile import compile
from ._dtypes import name_of
from ._errors import Error
from ._kernels import Kernels
from .torch import register

__all__ = ["Cache", "attention", "enable"]

_lock = threading.RLock()


def _once(function):
    """Caches results; two threads do not compute the same one."""
    cached = functools.lru_cache(maxsize=None)(function)

    @functools.wraps(function)
    def call(*arguments):
        with _lock:
            return cached(*arguments)

    return call


# ===----------------------------------------------------------------------===#
# Attention
# ===----------------------------------------------------------------------===#

_SOFT_CAP = """
    score(%s, %b, %h, %i, %j) {{
      %x = arith.divf %s, %cap : f32
      %t = math.tanh %x : f32
      %y = arith.mulf %t, %cap : f32
      posenc.yield %y : f32
    }}"""


def _write_attention(name: str, tokens: str, heads: int, key_heads: int, dim: int,
                     value_dim: int, dtype: str, scale: float, has_sinks: bool,
                     soft_cap: float | None, order: str, has_mask: bool) -> str:
    """Returns a function of MLIR. Queries and results are token by token, as the
    projections have them; keys and values are head by head, as caches have them."""
    query = f"tensor<?x{tokens}x{heads}x{dim}x{dtype}>"
    key = f"tensor<?x{key_heads}x?x{dim}x{dtype}>"
    value = f"tensor<?x{key_heads}x?x{value_dim}x{dtype}>"
    result = f"tensor<?x{tokens}x{heads}x{value_dim}x{dtype}>"
    mask, sinks = f"tensor<?x1x{tokens}x?xi1>", f"tensor<{heads}xf32>"
    further, operands = "", ""
    if has_mask:
        further += f', %m: {mask} {{posenc.name = "mask"}}'
        operands += f" mask(%m : {mask})"
    if has_sinks:
        further += f', %sinks: {sinks} {{posenc.name = "sinks"}}'
        operands += f" sinks(%sinks : {sinks})"
    sizes = "%batch" + (", %tokens" if tokens == "?" else "")
    region = _SOFT_CAP.format() if soft_cap is not None else ""
    return f"""
func.func @{name}(%q: {query} {{posenc.name = "q"}}, %k: {key} {{posenc.name = "k"}},
    %v: {value} {{posenc.name = "v"}}{further})
    -> ({result} {{posenc.name = "o"}}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cap = arith.constant {soft_cap or 1.0:.17e} : f32
  %batch = tensor.dim %q, %c0 : {query}
  %tokens = tensor.dim %q, %c1 : {query}
  %o = tensor.empty({sizes}) : {result}
  %r = posenc.attention {order} scale = {scale:.17e} key_layout = head_major
    ins(%q, %k, %v : {query}, {key}, {value}){operands}
    outs(%o : {result}){region}
  return %r : {result}
}}
"""


@_once
def _compile_attention(*key) -> Kernels:
    """Functions for one and for several queries, with a mask and without."""
    text = "".join(
        _write_attention(name, tokens, *key, order, has_mask)
        for name, tokens, order, has_mask in (
            ("prefill", "?", "causal", False), ("all", "?", "", False),
            ("masked", "?", "", True), ("decode", "1", "", False),
            ("decode_masked", "1", "", True)))
    return compile(text, no_warnings=True)


@_once
def _compile_window(window: int, *key) -> Kernels:
    """`prefill` of a sliding window."""
    order = f"causal window_left = {window - 1}"
    return compile(_write_attention("prefill", "?", *key, order, False), no_warnings=True)


def _find_kernels(window: int | None, *key) -> Kernels:
    return _compile_window(window, *key) if window else _compile_attention(*key)


@_once
def _find_function(name: str, *key):
    return _find_kernels(*key)[name]


@torch.compiler.assume_constant_result
def _find_operator(*key) -> str:
    """Returns the string that means the kernels to `posenc::call`. A compiled model has
    it as a constant."""
    return register(_find_kernels(*key))


def attention(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor,
              value: torch.Tensor, attention_mask: torch.Tensor | None,
              dropout: float = 0.0, scaling: float | None = None,
              softcap: float | None = None, is_causal: bool | None = None,
              s_aux: torch.Tensor | None = None, **options) -> tuple[torch.Tensor, None]:
    """The attention function that transformers calls. Without a mask it is causal if
    the module is, and a single query sees all keys."""
    if dropout:
        raise Error("attention 'posenc' has no dropout: call model.eval()")
    if options.get("position_bias") is not None:
        raise Error("attention 'posenc' has no 'position_bias': use 'eager' or 'sdpa' "
                    "for this model")
    tokens = query.shape[2]
    if is_causal is None:
        is_causal = getattr(module, "is_causal", True)
    window = getattr(attention_mask, "_posenc_window", None)
    has_mask = attention_mask is not None and window is None
    if has_mask and attention_mask.dtype != torch.bool:
        raise Error("attention 'posenc' has masks of bool, got "
                    f"{attention_mask.dtype}")
    if has_mask and attention_mask.shape[1] != 1:
        raise Error("attention 'posenc' has one mask for all heads, got "
                    f"{attention_mask.shape[1]}")
    if attention_mask is None and is_causal and 1 < tokens < key.shape[2]:
        # transformers leaves out the mask if these are the first tokens of a static
        # cache, whose other keys are empty. To the kernel they would be the last tokens.
        key, value = key[:, :, :tokens], value[:, :, :tokens]
    if tokens == 1:
        name = "decode_masked" if has_mask else "decode"
    else:
        name = "masked" if has_mask else "prefill" if is_causal or window else "all"
    scale = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
    kernels = (window, query.shape[1], key.shape[1], query.shape[3], value.shape[3],
               name_of(query.dtype), scale, s_aux is not None,
               None if softcap is None else float(softcap))
    inputs = [query.transpose(1, 2), key, value]
    if has_mask:
        mask = attention_mask[..., :key.shape[2]]
        if mask.shape[0] != query.shape[0]:
            mask = mask.expand(query.shape[0], -1, -1, -1)
        inputs.append(mask)
    if s_aux is not None:
        inputs.append(s_aux.detach().float().contiguous())
    if torch.compiler.is_compiling():
        return torch.ops.posenc.call(inputs, _find_operator(*kernels), name)[0], None
    return _find_function(name, *kernels)(*inputs), None


def _is_sliding(mask_function, window: int, last: int, keys: torch.Tensor) -> bool:
    """Whether a mask function of transformers, which has a local size, is a causal
    window. The others are chunks, which differ in one of any two rows."""
    zero = torch.zeros(1, dtype=torch.int64)
    rows = torch.tensor([[last - 1], [last]])
    expected = (keys <= rows) & (keys > rows - window)
    actual = mask_function(zero, zero, rows, keys)
    return torch.equal(actual.expand_as(expected), expected)


def _make_mask(batch_size: int, q_length: int, kv_length: int, q_offset: int = 0,
               kv_offset: int = 0, mask_function=causal_mask_function,
               attention_mask: torch.Tensor | None = None, local_size: int | None = None,
               allow_is_causal_skip: bool = True, **options) -> torch.Tensor | None:
    """As `sdpa_mask`, the mask [batch, 1, queries, keys] or None, but there are no
    masks of sliding windows without padding. Those of long prompts would be large."""
    last = q_offset + q_length - 1
    is_free = allow_is_causal_skip and not torch.compiler.is_compiling()
    if (is_free and local_size is not None and q_length > 1 and kv_length >= local_size
            and isinstance(last, int) and last == kv_offset + kv_length - 1
            and (attention_mask is None or bool(
                attention_mask.shape[1] > last and attention_mask[:, kv_offset:].all()))
            and _is_sliding(mask_function, local_size, last,
                            torch.arange(kv_length) + kv_offset)):
        # It has no elements, so it is an error to use it as a mask.
        window = torch.empty((batch_size, 1, q_length, 0), dtype=torch.bool)
        window._posenc_window = local_size
        return window
    mask = sdpa_mask(
        batch_size, q_length, kv_length, q_offset, kv_offset, mask_function,
        attention_mask, local_size, allow_is_causal_skip, **options)
    # The keys in the cache of a sliding window are those that the next query sees.
    return None if is_free and q_length == 1 and mask is not None and mask.all() else mask


transformers.AttentionInterface.register("posenc", attention)
AttentionMaskInterface.register("posenc", _make_mask)


# ===----------------------------------------------------------------------===#
# The cache
# ===----------------------------------------------------------------------===#


def _get_address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


class _Buffer:
    """Tokens [batch, heads, tokens, channels], stored with room for more of them."""

    def __init__(self):
        self.storage: torch.Tensor | None = None
        self.begin = self.end = 0

    def view(self) -> torch.Tensor | None:
        if self.storage is None:
            return None
        return self.storage.narrow(2, self.begin, self.end - self.begin)

    def assign(self, tokens: torch.Tensor | None) -> None:
        """Makes a tensor the stored tokens. If it is some of them, as after `crop`, the
        storage stays."""
        storage = self.storage
        if storage is not None and tokens is not None and tokens.numel() and (
                _get_address(tokens) == _get_address(storage)
                and tokens.stride() == storage.stride()
                and tokens[:, :, 0].shape == storage[:, :, 0].shape):
            offset = tokens.storage_offset() - storage.storage_offset()
            self.begin = offset // storage.stride(2)
        else:
            self.storage, self.begin = tokens, 0
        self.end = 0 if tokens is None else self.begin + tokens.shape[2]

    def append(self, tokens: torch.Tensor) -> torch.Tensor:
        """Stores tokens after the others and returns a view of all."""
        end = self.end + tokens.shape[2]
        if end > self.storage.shape[2]:
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
        if 2 * count > storage.shape[2]:
            # In tensors of inference mode nothing could be stored outside of it.
            with torch.inference_mode(False):
                storage = tokens.new_empty((batch, heads, 2 * count, channels))
        storage.narrow(2, 0, kept.shape[2]).copy_(kept)
        self.storage, self.begin, self.end = storage, 0, kept.shape[2]


class _Layer(DynamicLayer):
    """The keys and values of a layer. `keys` and `values` are views of the filled part;
    the methods of transformers, such as `crop`, assign to them."""

    def __init__(self, *arguments, **options):
        self._keys, self._values = _Buffer(), _Buffer()
        super().__init__(*arguments, **options)

    keys = property(lambda self: self._keys.view(),
                    lambda self, tokens: self._keys.assign(tokens))
    values = property(lambda self: self._values.view(),
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
            if count != tokens.shape[0]:
                buffer.assign(tokens.index_select(0, beam_idx))
                continue
            moved = (beam_idx != torch.arange(count)).nonzero().flatten()
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
        return tuple(self._append(buffer, tokens) for buffer, tokens in zip(
            self._buffers, (key_states, value_states)))

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
    views of the filled part, which any attention of transformers takes. Otherwise it is
    a DynamicCache, with `crop`, `reset`, `reorder_cache` and the other methods.

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


# ===----------------------------------------------------------------------===#
# Rotations
# ===----------------------------------------------------------------------===#


# How models repeat cos and sin of pairs in their tables: half by half as Llama, next to
# each other as Cohere, or not as gpt-oss. Results are new tensors, whose attributes tell
# `_rotate` the pairs.
_LAYOUTS = {
    "halves": lambda pairs: torch.cat((pairs, pairs), dim=-1),
    "neighbours": lambda pairs: pairs.repeat_interleave(2, dim=-1),
    "once": lambda pairs: pairs.view_as(pairs),
}


@_once
def _compile_rotation(pairing: str, heads: int, key_heads: int, dim: int, pairs: int,
                      dtype: str, table_dtype: str) -> Kernels:
    """`rotate` by tables of cos and sin."""
    q, k = (f"tensor<?x?x{n}x{dim}x{dtype}>" for n in (heads, key_heads))
    table = f"tensor<?x?x{pairs}x{table_dtype}>"
    return compile(f"""
func.func @rotate(%q: {q}, %k: {k}, %cos: {table}, %sin: {table}) -> ({q}, {k}) {{
  %r:2 = posenc.rotate {pairing} ins(%q, %k : {q}, {k}) tables(%cos, %sin : {table})
    dims = [0, 1] outs(%q, %k : {q}, {k})
  return %r#0, %r#1 : {q}, {k}
}}
""", no_warnings=True)


def _rotate(pairing: str, q, k, cos, sin):
    """As `apply_rotary_pos_emb` of transformers, of q and k [batch, heads, tokens,
    channels] by tables [batch, tokens, pairs]."""
    kernels = _compile_rotation(pairing, q.shape[1], k.shape[1], q.shape[3],
                                cos.shape[-1], name_of(q.dtype), name_of(cos.dtype))
    tables = [table.expand(q.shape[0], -1, -1) for table in (cos, sin)]
    q_out, k_out = kernels.rotate(q.transpose(1, 2), k.transpose(1, 2), *tables)
    return q_out.transpose(1, 2), k_out.transpose(1, 2)


def _patch_rotation(module) -> None:
    """Makes a modeling file of transformers rotate by a kernel, if the tables are
    those of a model that `enable` was given."""
    original = module.apply_rotary_pos_emb
    if hasattr(original, "_posenc_original"):
        return

    @functools.wraps(original)
    def apply_rotary_pos_emb(q, k, cos, sin, *arguments, **options):
        # The code of PyTorch is fused with what is around it when it is compiled.
        if (arguments or options or torch.compiler.is_compiling()
                or not hasattr(cos, "_posenc_pairs")):
            return original(q, k, cos, sin, *arguments, **options)
        return _rotate(cos._posenc_pairing, q, k, cos._posenc_pairs, sin._posenc_pairs)

    apply_rotary_pos_emb._posenc_original = original
    module.apply_rotary_pos_emb = apply_rotary_pos_emb


def _make_tables(kernels: Kernels, layout: str, pairing: str, x: torch.Tensor,
                 position_ids: torch.Tensor, layer_type: str | None = None):
    """As the rotary embedding of transformers: cos and sin [batch, tokens, channels]."""
    # If the layers of a model rotate alike, there is one function for all of them.
    name = f"sincos_{layer_type}"
    name = name if name in kernels else "sincos"
    positions = position_ids.reshape(-1).to(torch.int64).contiguous()
    is_compiling = torch.compiler.is_compiling()
    results = (torch.ops.posenc.call([positions], kernels._spec, name) if is_compiling
               else kernels[name](positions))
    tables = []
    for result in results:
        pairs = result.reshape(*position_ids.shape, -1).to(x.dtype)
        table = _LAYOUTS[layout](pairs)
        if not is_compiling:
            table._posenc_pairs, table._posenc_pairing = pairs, pairing
        tables.append(table)
    return tuple(tables)


def _is_same_rotation(original, pairs: int, layout: str, pairing: str) -> bool:
    """Whether a modeling file's `apply_rotary_pos_emb` does what `_rotate` does."""
    random = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, heads, 3, 2 * pairs, generator=random) for heads in (2, 1))
    cos, sin = torch.randn(2, 1, 3, pairs, generator=random)
    try:
        expected = original(q, k, *map(_LAYOUTS[layout], (cos, sin)))
        return all(torch.allclose(a, b, atol=1e-5) for a, b in zip(
            _rotate(pairing, q, k, cos, sin), expected, strict=True))
    except (RuntimeError, TypeError, ValueError, AttributeError):
        return False


def _is_same_table(embedding, kernels: Kernels, layout: str, *layer_type: str) -> bool:
    """Whether a rotary embedding has the tables of `sincos`, but for rounding."""
    x, positions = torch.empty(1), torch.arange(4)[None]
    try:
        return all(a.shape == b.shape and torch.allclose(a, b, atol=1e-4)
                   for a, b in zip(
                       _make_tables(kernels, layout, "", x, positions, *layer_type),
                       embedding(x, positions, *layer_type), strict=True))
    except (KeyError, RuntimeError, TypeError, ValueError):
        return False


def enable(model: torch.nn.Module, precision: str = "exact") -> torch.nn.Module:
    """Runs a model's attention on Posenc, and its rotations if they are of the usual
    kind: one module of rotary embeddings, whose tables and pairing (of halves or of
    neighbours) are compared with the kernels'. Others are left as they are. `generate`
    uses a Cache. Returns the model.

    precision: "exact", or "hf_f32" for angles rounded as transformers rounds them, so
        that results are those of "eager" within the rounding of attention
    """
    model.set_attn_implementation("posenc")
    if hasattr(model, "_prepare_cache_for_generation"):
        model._prepare_cache_for_generation = types.MethodType(_prepare_cache, model)
    config = model.config.get_text_config()
    found = [module for name, module in model.named_modules()
             if name.split(".")[-1] == "rotary_emb"]
    modeling = sys.modules[type(model).__module__]
    if len(found) != 1 or not hasattr(modeling, "apply_rotary_pos_emb"):
        return model
    try:
        kernels = compile(config, kernels=["sincos"], precision=precision,
                          no_warnings=True)
    except Error:
        return model
    register(kernels)
    original = modeling.apply_rotary_pos_emb
    original = getattr(original, "_posenc_original", original)
    # Some models have tables for each type of layers.
    has_types = "layer_type" in inspect.signature(found[0].forward).parameters
    kinds = [(name,) for name in sorted(set(config.layer_types))] if has_types else [()]
    pairs = kernels.metadata["functions"][0]["outputs"][0]["shape"][-1]
    with torch.no_grad():
        for layout, pairing in itertools.product(_LAYOUTS, ("half", "interleaved")):
            if _is_same_rotation(original, pairs, layout, pairing) and all(
                    _is_same_table(found[0], kernels, layout, *kind) for kind in kinds):
                _patch_rotation(modeling)
                found[0].forward = functools.partial(_make_tables, kernels, layout,
                                                     pairing)
                break
    return model
