# ===- _attend.py - attention without a config -----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Attention and its caches without a config, with the keywords of flash-attn.

The arrays and options of a call determine an `Attention` or an `Append`, for which a
function is compiled once. Rotations are calls of `rope` before it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from ._array import Array
from ._attention_mlir import Append, Attention, write_append, write_attention
from ._compile import compile
from ._cuda import find_target_ahead, put_like
from ._devices import find_device
from ._dtypes import FRAMEWORK_NAMES, name_of
from ._errors import Error
from ._frameworks import refuse_meta
from ._kernels import Kernels
from ._once import once
from ._rope import FLOATS, RopeOptions, rotate_both, rotate_one
from ._sharding import BATCH, Declaration, Dims, declare, divide_heads, find_dims

# The inputs of a function besides q, k and v, in the order in which it has them.
_ORDER = ("alibi_slopes", "sinks", "cache_seqlens", "block_table", "cu_seqlens",
          "cu_seqlens_q", "cu_seqlens_k")


# So many queries of a sequence use a kernel that reads its cache once.
_DECODED = 8


@once
def _compile_attention(spec: Attention, device: int | None) -> Kernels:
    """Compiles for a CUDA device, or for the CPU."""
    return declare(
        compile(write_attention(spec), target=find_target_ahead(device)),
        lambda: _make_declaration(
            spec, spec.queries == "batch", spec.keys == "cache",
            lambda parts: _compile_attention(spec._replace(**parts), device)))


@once
def _compile_append(spec: Append, device: int | None) -> Kernels:
    return declare(
        compile(write_append(spec), target=find_target_ahead(device)),
        lambda: _make_declaration(
            spec, spec.slots is None, False,
            lambda parts: _compile_append(
                spec._replace(key_heads=parts["key_heads"]), device)))


def _make_declaration(spec: Attention | Append, is_batched: bool, has_caches: bool,
                      find_local: Callable[[dict[str, Any]], Kernels]) -> Declaration:
    """Returns what devices may divide: heads, and sequences that have no other's tokens
    in their arrays. `has_caches`: the keys k and v are caches."""
    sizes = (BATCH,) if is_batched else ()
    heads, key_heads = getattr(spec, "heads", spec.key_heads), spec.key_heads

    def find(_, argument: Mapping) -> Dims:
        if has_caches and argument["name"] in ("k", "v"):
            argument = {**argument, "name": argument["name"] + "_cache"}
        return find_dims(argument, sizes)

    return Declaration(find, heads, key_heads, lambda count: find_local(
        divide_heads(heads, key_heads, count)))


# ===----------------------------------------------------------------------===#
# Arrays
# ===----------------------------------------------------------------------===#


def _refuse(name: str, message: str) -> NoReturn:
    raise Error(f"{name}: {message}")


def _is_torch(array) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def _convert(array, dtype: str):
    """Returns an array with elements of a type."""
    if name_of(array.dtype) == dtype:
        return array
    if _is_torch(array):
        return array.to(getattr(sys.modules["torch"], FRAMEWORK_NAMES[dtype]))
    return array.astype(FRAMEWORK_NAMES[dtype])


def _find_last_positions(lengths, tokens: int):
    """Returns the positions [batch, tokens] of the last tokens of sequences."""
    if _is_torch(lengths):
        torch = sys.modules["torch"]
        last = torch.arange(-tokens, 0, device=lengths.device)
        return lengths.to(torch.int64)[:, None] + last
    # Arrays of JAX may have 32 bits.
    wide = lengths.astype(np.int64) if isinstance(lengths, np.ndarray) else lengths
    last = np.arange(-tokens, 0, dtype=wide.dtype)
    return wide[:, None] + put_like(lengths, last)


def _check_arrays(name: str, arrays: Mapping[str, Any]) -> None:
    """Raises an error for what is no array, and for a tensor that needs a gradient."""
    for what, array in arrays.items():
        if not hasattr(array, "shape") or not hasattr(array, "dtype"):
            _refuse(name, f"{what} is a {type(array).__name__}, expected an array of "
                    "NumPy, PyTorch or JAX")
        refuse_meta(array, f"{name}: {what}")
        if (_is_torch(array) and array.requires_grad
                and sys.modules["torch"].is_grad_enabled()):
            _refuse(name, f"{what} requires a gradient, and {name} has none: call it "
                    "under torch.no_grad(), or detach its inputs")


def _check_shape(name: str, what: str, array, dims: str) -> tuple[int, ...]:
    """Returns the shape of an array with such dimensions, heads and channels among
    them."""
    shape, names = tuple(map(int, array.shape)), dims.split(", ")
    if len(shape) != len(names):
        _refuse(name, f"{what} has {len(shape)} dimensions, expected [{dims}]")
    if any(size == 0 and ("heads" in dim or dim == "channels")
           for size, dim in zip(shape, names)):
        _refuse(name, f"{what} has the shape {shape}, expected [{dims}] with at least "
                "one head and one channel")
    return shape


def _check_keys(name: str, k, v, names: tuple[str, str],
                dims: str) -> tuple[int, int, int]:
    """Returns the numbers of heads and channels of keys, and of channels of values."""
    k_name, v_name = names
    k_shape = _check_shape(name, k_name, k, dims)
    v_shape = _check_shape(name, v_name, v, dims)
    if k_shape[:-1] != v_shape[:-1]:
        _refuse(name, f"{k_name} has the shape {k_shape} and {v_name} {v_shape}, expected "
                "the same but for the channels")
    if name_of(k.dtype) not in FLOATS:
        _refuse(name, f"{k_name} has elements of type {name_of(k.dtype)}, expected "
                f"{' or '.join(FLOATS)}")
    if name_of(k.dtype) != name_of(v.dtype):
        _refuse(name, f"{k_name} has elements of type {name_of(k.dtype)} and {v_name} of "
                f"{name_of(v.dtype)}, expected the same")
    return k_shape[dims.split(", ").index("key heads")], k_shape[-1], v_shape[-1]


def _check_integers(name: str, what: str, array, rank: int) -> str:
    """Returns the type of an array of integers."""
    if len(array.shape) != rank:
        _refuse(name, f"{what} has {len(array.shape)} dimensions, expected {rank}")
    if name_of(array.dtype) not in ("i32", "i64"):
        _refuse(name, f"{what} has elements of type {name_of(array.dtype)}, expected i32 "
                "or i64")
    return name_of(array.dtype)


# ===----------------------------------------------------------------------===#
# Attention
# ===----------------------------------------------------------------------===#


def _check_window(name: str, window_size) -> tuple[int | None, int | None]:
    """Returns how many keys before and after it a query sees, None if all."""
    try:
        left, right = map(int, window_size)
    except (TypeError, ValueError, OverflowError):
        left, right = -2, -2
    if not (-1 <= left < 2**63 and -1 <= right < 2**63):
        _refuse(name, f"window_size is {window_size!r}, expected the numbers of keys "
                "(left, right), or -1 for all of them")
    return (None if left < 0 else left), (None if right < 0 else right)


def _check_lists(name: str, given: Mapping[str, Any]) -> None:
    """Raises an error for lists that do not belong together."""
    if "cu_seqlens" in given and ("cu_seqlens_q" in given or "cu_seqlens_k" in given):
        _refuse(name, "expected cu_seqlens, or cu_seqlens_q and cu_seqlens_k, got both")
    if "block_table" in given and "cache_seqlens" not in given:
        _refuse(name, "block_table needs cache_seqlens, the number of keys of each "
                "sequence")
    if "cache_seqlens" in given and "cu_seqlens_k" in given:
        _refuse(name, "expected cache_seqlens, of caches, or cu_seqlens_k, of keys "
                "without padding, got both")
    if "cu_seqlens_k" in given and "cu_seqlens_q" not in given:
        _refuse(name, "cu_seqlens_k needs cu_seqlens_q, the list of the queries")
    if "cu_seqlens_q" in given and not {"cu_seqlens_k", "cache_seqlens"} & given.keys():
        _refuse(name, "cu_seqlens_q needs cu_seqlens_k, the list of the keys; if it is the "
                "same list, pass it as cu_seqlens")


def _describe(name: str, names: tuple[str, str], q, k, v,
              given: Mapping[str, Any]) -> Attention:
    """Checks the arrays of a call and returns what follows from them."""
    _check_arrays(name, {"q": q, **dict(zip(names, (k, v))), **given})
    _check_lists(name, given)
    kinds = {what: _check_integers(name, what, given[what], rank) for what, rank in (
        ("cu_seqlens", 1), ("cu_seqlens_q", 1), ("cu_seqlens_k", 1),
        ("cache_seqlens", 1), ("block_table", 2)) if what in given}
    is_ragged = "cu_seqlens" in given or "cu_seqlens_q" in given
    dims = "tokens, heads, channels" if is_ragged else "batch, tokens, heads, channels"
    *_, heads, dim = _check_shape(name, "q", q, dims)
    layout = "ragged" if is_ragged else "batch"
    dims = dims.replace("heads", "key heads")
    if "cache_seqlens" in given:
        layout = "cache"
        dims = ("pages, key heads, slots, channels" if "block_table" in given else
                "batch, key heads, capacity, channels")
    key_heads, key_dim, value_dim = _check_keys(name, k, v, names, dims)
    if heads % key_heads:
        _refuse(name, f"q has {heads} heads and {names[0]} {key_heads}, expected a "
                "multiple of those of the keys")
    if key_dim != dim:
        _refuse(name, f"q has {dim} channels and {names[0]} {key_dim}, expected as many")
    sequences = (int(q.shape[0]) if not is_ragged else
                 int(given.get("cu_seqlens", given.get("cu_seqlens_q")).shape[0]) - 1)
    for what, shapes in (("sinks", [(heads,)]),
                         ("alibi_slopes", [(heads,), (sequences, heads)])):
        shape = tuple(map(int, given[what].shape)) if what in given else (heads,)
        if shape not in shapes:
            _refuse(name, f"{what} has the shape {shape}, expected "
                    f"{' or '.join(map(str, shapes))}")
    return Attention(
        heads, key_heads, dim, value_dim, name_of(q.dtype), name_of(k.dtype),
        queries="ragged" if is_ragged else "batch", keys=layout,
        query_list=kinds.get("cu_seqlens", kinds.get("cu_seqlens_q")),
        key_list=kinds.get("cu_seqlens_k"), lengths=kinds.get("cache_seqlens"),
        block_table=kinds.get("block_table"), has_sinks="sinks" in given,
        slopes=len(given["alibi_slopes"].shape) if "alibi_slopes" in given else 0)


def _rotate(name: str, spec: Attention, q, k, options: RopeOptions,
            given: Mapping[str, Any], positions, key_positions):
    """Returns q and k, rotated. Keys in caches are rotated already."""
    if spec.keys == "cache":
        if key_positions is not None:
            _refuse(name, "key_positions are not used: keys in caches are rotated already")
        if positions is None and spec.queries == "batch":
            positions = _find_last_positions(given["cache_seqlens"], int(q.shape[1]))
    elif spec.queries == "batch" and positions is None:
        keys, queries = int(k.shape[1]), int(q.shape[1])
        positions = _make_rows(q, keys - queries, keys)
        if keys != queries and key_positions is None:
            key_positions = _make_rows(k, 0, keys)
    if positions is None:
        _refuse(name, "rotations of tokens without padding need positions [tokens]")
    if spec.keys == "cache":
        return rotate_one(q, positions, options), k
    if key_positions is not None:
        return rotate_one(q, positions, options), rotate_one(k, key_positions, options)
    if "cu_seqlens_k" in given or q.shape[-3] != k.shape[-3]:
        _refuse(name, "rotations of keys of other tokens than q need key_positions")
    return rotate_both(q, k, positions, options)


def _make_rows(array, first: int, end: int):
    """Returns positions [batch, tokens] that are the same in all sequences."""
    batch = int(array.shape[0])
    if _is_torch(array) and array.is_cuda:
        rows = sys.modules["torch"].arange(first, end, device=array.device)
        return rows[None].repeat(batch, 1)
    return put_like(array, np.arange(first, end)[None].repeat(batch, 0))


def _attend(name: str, names: tuple[str, str], q, k, v, lists: Mapping[str, Any], *,
            causal: bool, window_size, softcap: float, softmax_scale: float | None,
            return_lse: bool, theta: float | None, positions, key_positions=None,
            out=None, **rope_options):
    given = {what: array for what, array in lists.items() if array is not None}
    spec = _describe(name, names, q, k, v, given)
    left, right = _check_window(name, window_size)
    options = RopeOptions.make(name, theta, positions, key_positions, **rope_options)
    tokens = int(q.shape[1]) if spec.queries == "batch" and spec.keys == "cache" else 0
    spec = spec._replace(
        # A single query is the last token, so it sees all keys without a mask.
        causal=bool(causal) and tokens != 1, left=left,
        right=None if causal else right,
        scale=None if softmax_scale is None else float(softmax_scale),
        soft_cap=float(softcap) or None, has_lse=bool(return_lse),
        tokens=tokens if 1 <= tokens <= _DECODED else None)
    for what in ("sinks", "alibi_slopes"):
        if what in given:
            given[what] = _convert(given[what], spec.sum_dtype)
    if options is not None:
        q, k = _rotate(name, spec, q, k, options, given, positions, key_positions)
    further = [given[what] for what in _ORDER if what in given]
    kernels = _compile_attention(spec, find_device(q))
    return kernels["attention"](q, k, v, *further, out=out)


def attention(q: Array, k: Array, v: Array, *, causal: bool = False,
              window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0,
              softmax_scale: float | None = None, alibi_slopes: Array | None = None,
              sinks: Array | None = None, return_lse: bool = False,
              cu_seqlens: Array | None = None, cu_seqlens_q: Array | None = None,
              cu_seqlens_k: Array | None = None, cache_seqlens: Array | None = None,
              block_table: Array | None = None, positions: Array | None = None,
              key_positions: Array | None = None, theta: float | None = None,
              scaling: Mapping[str, Any] | None = None, pairing: str = "half",
              rotary_dim: int | None = None, precision: str = "exact",
              max_position_embeddings: int = 2048, out: Any = None) -> Any:
    """Attention, with the keywords of flash-attn. Query head h uses key head
    h // (heads / key heads). If there are other numbers of queries and of keys, the last
    query is aligned with the last key.

    q: [batch, tokens, heads, channels]
    k, v: [batch, keys, key heads, channels]; v may have other channels
    causal: a query sees no later keys
    window_size: how many keys before and after it a query sees; -1 for all
    softcap: the bound of scores, by tanh; 0 for none
    softmax_scale: the factor of scores (default: the channels' number to the power -1/2)
    alibi_slopes: [heads] or [batch, heads]; the slope times the distance of query and key
        is subtracted from scores
    sinks: [heads], logits that only the sum of the weights has
    return_lse: returns (o, lse): lse [batch, tokens, heads] is the logarithm of the
        weights' sum, sinks included, and minus infinity for a query without keys
    cu_seqlens: i32 or i64[batch + 1]: sequences follow each other without padding. q, k
        and v have no batch; sequence b is from token cu_seqlens[b] to cu_seqlens[b + 1]
    cu_seqlens_q, cu_seqlens_k: the same, if keys are of other tokens than queries
    cache_seqlens: i32 or i64[batch], the valid keys of each sequence, with those of q. k
        and v are caches, [batch, key heads, capacity, channels], and q has a batch, or
        cu_seqlens_q
    block_table: i32 or i64[batch, pages of a sequence]: with cache_seqlens, k and v are
        pages, [pages, key heads, slots, channels]

    theta: rotates q and k, except keys in caches, as `rope` does. The keywords after it
        are those of `rope`.
    positions, key_positions: i64 of the tokens of q and of k, for rotations (default: the
        index in the sequence; with cu_seqlens, they are required)
    out: an array for the result, or (o, lse)

    Returns o, [batch, tokens, heads, channels of v] or without a batch, or (o, lse).
    There are no gradients. Raises Error, with the sizes and types, for arrays that do not
    fit each other, for tensors that require a gradient, and for lists that do not belong
    together.
    """
    return _attend(
        "attention", ("k", "v"), q, k, v, dict(
            alibi_slopes=alibi_slopes, sinks=sinks, cu_seqlens=cu_seqlens,
            cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k,
            cache_seqlens=cache_seqlens, block_table=block_table),
        causal=causal, window_size=window_size, softcap=softcap,
        softmax_scale=softmax_scale, return_lse=return_lse, positions=positions,
        key_positions=key_positions, theta=theta, scaling=scaling, pairing=pairing,
        rotary_dim=rotary_dim, precision=precision,
        max_position_embeddings=max_position_embeddings, out=out)


def decode(q: Array, k_cache: Array, v_cache: Array, cache_seqlens: Array, *,
           causal: bool = True, window_size: tuple[int, int] = (-1, -1),
           softcap: float = 0.0, softmax_scale: float | None = None,
           alibi_slopes: Array | None = None, sinks: Array | None = None,
           return_lse: bool = False, block_table: Array | None = None,
           positions: Array | None = None, theta: float | None = None,
           scaling: Mapping[str, Any] | None = None, pairing: str = "half",
           rotary_dim: int | None = None, precision: str = "exact",
           max_position_embeddings: int = 2048, out: Any = None) -> Any:
    """Attention of the newest tokens of sequences to caches that have their keys.

    q: [batch, tokens, heads, channels]: the last tokens of each sequence. Up to 8 use a
        kernel that reads the cache once for all of them
    k_cache, v_cache: [batch, key heads, capacity, channels], keys rotated; with
        block_table, pages [pages, key heads, slots, channels]
    cache_seqlens: i32 or i64[batch], the valid keys of each sequence, with those of q. 0
        gives zeros

    The keywords are those of `attention`, and those after `theta` are those of `rope`.
    `theta` rotates q, by default at the indices of the last tokens.

    Returns o, [batch, tokens, heads, channels of v_cache], or (o, lse). There are no
    gradients. Raises Error, with the sizes and types, for arrays that do not fit each
    other, and for tensors that require a gradient.
    """
    return _attend(
        "decode", ("k_cache", "v_cache"), q, k_cache, v_cache, dict(
            alibi_slopes=alibi_slopes, sinks=sinks, cache_seqlens=cache_seqlens,
            block_table=block_table),
        causal=causal, window_size=window_size, softcap=softcap,
        softmax_scale=softmax_scale, return_lse=return_lse, positions=positions,
        theta=theta, scaling=scaling, pairing=pairing, rotary_dim=rotary_dim,
        precision=precision, max_position_embeddings=max_position_embeddings, out=out)


def append(k: Array, v: Array, k_cache: Array, v_cache: Array,
           cache_seqlens: Array | None = None, *, slots: Array | None = None,
           positions: Array | None = None, theta: float | None = None,
           scaling: Mapping[str, Any] | None = None, pairing: str = "half",
           rotary_dim: int | None = None, precision: str = "exact",
           max_position_embeddings: int = 2048,
           out: tuple[Any, Any] | None = None) -> tuple[Any, Any]:
    """Writes the newest keys and values into caches, or into pages.

    k, v: [batch, tokens, key heads, channels], not rotated; with slots also
        [tokens, key heads, channels]
    k_cache, v_cache: [batch, key heads, capacity, channels], which may have another type
        than k and v; with slots, pages [pages, key heads, slots, channels]
    cache_seqlens: i32 or i64[batch], the lengths of the sequences with the new tokens
    slots: i32 or i64[batch, tokens] or [tokens], where tokens go: slot s is row s % n of
        page s // n for n slots of a page; a negative one is not written

    theta: rotates k, as `rope` does. The keywords after it are those of `rope`.
    positions: i64 of the tokens of k, for the rotation (default: the indices in the
        caches; with slots, they are required)
    out: (k_cache, v_cache) writes in place; else the results are copies

    Returns k_cache and v_cache. Raises Error, with the sizes and types, for arrays that do
    not fit each other, for both or neither of cache_seqlens and slots, and for slots and
    lengths beyond the caches.
    """
    name = "append"
    given = {what: array for what, array in
             (("cache_seqlens", cache_seqlens), ("slots", slots)) if array is not None}
    _check_arrays(name, {"k": k, "v": v, "k_cache": k_cache, "v_cache": v_cache, **given})
    if len(given) != 1:
        _refuse(name, "expected cache_seqlens, the lengths with the new tokens, or slots; "
                f"got {'both' if given else 'none'}")
    rank = len(k.shape) if slots is not None else 4
    dims = ("tokens" if rank == 3 else "batch, tokens") + ", key heads, channels"
    shape = _check_keys(name, k, v, ("k", "v"), dims)
    cache_dims = ("batch, key heads, capacity, channels" if slots is None else
                  "pages, key heads, slots, channels")
    of_cache = _check_keys(name, k_cache, v_cache, ("k_cache", "v_cache"), cache_dims)
    if shape != of_cache:
        _refuse(name, f"k and v have {shape[0]} heads of {shape[1]} and {shape[2]} "
                f"channels, and the caches {of_cache[0]} of {of_cache[1]} and "
                f"{of_cache[2]}: expected the same")
    options = RopeOptions.make(
        name, theta, positions, scaling=scaling, pairing=pairing, rotary_dim=rotary_dim,
        precision=precision, max_position_embeddings=max_position_embeddings)
    (what, where), = given.items()
    kind = _check_integers(name, what, where, rank - 2 if slots is not None else 1)
    if options is not None:
        if positions is None and slots is not None:
            _refuse(name, "a rotation with slots needs positions")
        if positions is None:
            positions = _find_last_positions(where, int(k.shape[1]))
        k = rotate_one(k, positions, options)
    spec = Append(*shape, dtype=name_of(k.dtype), cache_dtype=name_of(k_cache.dtype),
                  rank=rank, lengths=None if slots is not None else kind,
                  slots=None if slots is None else kind)
    function = _compile_append(spec, find_device(k))["append"]
    return function(k, v, where, k_cache, v_cache, out=out)
