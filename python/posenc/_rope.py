# ===- _rope.py - rotations without a config -------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""`rope` without a config. Kernels are compiled at the first call with their numbers of
heads and channels and their type, and kept for later ones."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ._array import Array
from ._compile import compile, write_json
from ._cuda import is_of_cupy, put_like
from ._dtypes import name_of
from ._errors import CompileError, Error
from ._fork import Lock
from ._frameworks import find_backend, refuse_meta
from ._kernels import Kernels

_kernels: dict[tuple, Kernels] = {}
_lock = Lock()


def make_rope_config(heads: int, key_heads: int, channels: int, *, theta: float,
                     scaling: Mapping[str, Any] | None, rotary_dim: int | None,
                     max_position_embeddings: int) -> dict:
    """Returns a config of Llama whose rotation is the one described."""
    if rotary_dim is None and channels % 2:
        raise Error(f"rope: q has {channels} channels, expected an even number, or "
                    "rotary_dim=N for the first N of them")
    config = {
        "model_type": "llama", "num_attention_heads": heads,
        "num_key_value_heads": key_heads, "head_dim": channels,
        "hidden_size": heads * channels, "rope_theta": theta,
        "max_position_embeddings": max_position_embeddings}
    if scaling is not None:
        config["rope_scaling"] = scaling
    if rotary_dim is not None:
        if not 0 < rotary_dim <= channels or rotary_dim % 2:
            raise Error(f"rope: rotary_dim is {rotary_dim}, expected an even number of "
                        f"channels up to {channels}")
        # Models take int(factor * channels), which may round down.
        factor = rotary_dim / channels
        if int(factor * channels) < rotary_dim:
            factor = math.nextafter(factor, 1.0)
        config["partial_rotary_factor"] = factor
    return config


def write_scaling(scaling: Mapping[str, Any] | None) -> str | None:
    """Returns the JSON of a scaling, by which equal ones are found again."""
    if not scaling and isinstance(scaling, (Mapping, type(None))):
        return None
    if not isinstance(scaling, Mapping):
        raise Error(f"rope: scaling is a {type(scaling).__name__}, expected a dict such "
                    "as rope_scaling of a config.json")
    return write_json({str(key): scaling[key] for key in scaling}, sort_keys=True)


class _SplitRope(Kernels):
    """`rope` for numbers of heads that no config has, as that of the keys does not
    divide that of the queries: one call for the queries and the first head of the
    keys, one for the other heads of the keys."""

    def __init__(self, first: Kernels, rest: Kernels):
        self._first, self._rest = first, rest
        self._functions = {"rope": "rope"}
        self.metadata = first.metadata

    def rope(self, q, k, positions, *, out=None):
        first, rest = k[:, :, :1], k[:, :, 1:]
        if out is None:
            q_out, k_out = self._first.rope(q, first, positions)
        else:
            if not isinstance(out, (tuple, list)) or len(out) != 2:
                raise Error("rope: expected a tuple of 2 arrays as `out`: (q_out, k_out)")
            q_out, k_out = out
            if getattr(k_out, "shape", None) != k.shape:
                raise Error("rope: expected k_out as an array of the shape "
                            f"{tuple(k.shape)}")
        arrays = {"q": q, "k": k, "output q_out": q_out, "output k_out": k_out}
        backends = {find_backend(array, f"rope: {what}").name
                    for what, array in arrays.items()}
        if len(backends) > 1:
            raise Error(f"rope: expected arrays of one framework for {q.shape[2]} and "
                        f"{k.shape[2]} heads, got arrays of {', '.join(sorted(backends))}")
        # Kernels rotate two arrays, so the first head of the keys is rotated once more.
        if out is None:
            return q_out, _concatenate(k_out, self._rest.rope(rest, first, positions)[0])
        # The first call checks all arguments. It leaves the other heads as they are.
        self._first.rope(q, first, positions, out=(q_out, k_out[:, :, :1]))
        k_out[:, :, 1:] = self._rest.rope(rest, first, positions)[0]
        return q_out, k_out


def _concatenate(first, rest):
    """Concatenates the heads of two arrays [batch, tokens, heads, channels]."""
    if isinstance(first, np.ndarray):
        return np.concatenate([first, rest], axis=2)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(first, torch.Tensor):
        return torch.cat([first, rest], dim=2)
    jax = sys.modules["jax"]
    with jax.enable_x64(True):  # Otherwise f64 would become f32.
        return jax.numpy.concatenate([first, rest], axis=2)


def _name_arguments(message: str) -> str:
    """Words errors about a config as errors about the arguments that it is made of."""
    message = re.sub(r"^(config\.json:\d+:\d+: )?error: ", "rope: ", message,
                     flags=re.MULTILINE)
    return message.replace("'rope_theta'", "'theta'").replace(
        "'rope_scaling'", "'scaling'")


# Types that rotate.
FLOATS = ("f32", "bf16", "f16", "f64")


def get_rope_kernels(heads: int, key_heads: int, channels: int, dtype: str,
                     theta: float, scaling: Mapping | None, pairing: str,
                     rotary_dim: int | None, precision: str,
                     max_position_embeddings: int) -> Kernels:
    """Returns the kernels whose `rope` rotates such heads."""
    if dtype not in FLOATS:
        raise Error(f"rope: q has elements of type {dtype}, expected "
                    f"{' or '.join(FLOATS)}")
    if heads % key_heads:
        options = (channels, dtype, theta, scaling, pairing, rotary_dim, precision,
                   max_position_embeddings)
        return _SplitRope(get_rope_kernels(heads, 1, *options),
                          get_rope_kernels(key_heads - 1, 1, *options))
    text = write_scaling(scaling)
    key = (heads, key_heads, channels, dtype, theta, text, pairing, rotary_dim,
           precision, max_position_embeddings)
    kernels = _kernels.get(key)
    if kernels is None:
        with _lock:
            kernels = _kernels.get(key)
            if kernels is None:
                config = make_rope_config(
                    heads, key_heads, channels, theta=theta,
                    scaling=None if text is None else json.loads(text),
                    rotary_dim=rotary_dim,
                    max_position_embeddings=max_position_embeddings)
                try:
                    kernels = compile(config, kernels="rope", dtype=dtype,
                                      pairing=pairing, precision=precision)
                except CompileError as error:
                    raise Error(_name_arguments(str(error))) from None
                _kernels[key] = kernels
    return kernels


def measure_heads(q: Array, k: Array) -> tuple[int, int, int]:
    """Returns the number of heads of q and of k, and of channels."""
    sizes = []
    for name, array in (("q", q), ("k", k)):
        if not hasattr(array, "dtype") or len(array.shape) != 4:
            raise Error(f"rope: expected {name} as an array [batch, tokens, heads, "
                        "channels]")
        # In a trace of PyTorch, sizes are tensors.
        heads, channels = map(int, array.shape[2:])
        if heads == 0 or channels == 0:
            raise Error(f"rope: {name} has the shape {tuple(array.shape)}, expected at "
                        "least one head and one pair of channels")
        sizes += [heads, channels]
    return sizes[0], sizes[2], sizes[1]


SomeArray = TypeVar("SomeArray", bound=Array)


def rope(q: SomeArray, k: SomeArray, positions: Array, *, theta: float = 10000.0,
         scaling: Mapping[str, Any] | None = None, pairing: str = "half",
         rotary_dim: int | None = None, precision: str = "exact",
         max_position_embeddings: int = 2048,
         out: tuple[SomeArray, SomeArray] | None = None) -> tuple[SomeArray, SomeArray]:
    """Rotates queries and keys by their positions (rotary position embedding).

    q: [batch, tokens, heads, channels]
    k: [batch, tokens, key heads, channels], of the type of q, with any number of heads
    positions: i64[batch, tokens]
    theta: the base of the frequencies
    scaling: `rope_scaling` of a config.json, such as
        {"rope_type": "linear", "factor": 4.0}
    pairing: "half" pairs channel i with i + channels / 2 (Llama); "interleaved" pairs
        neighbours (GPT-J)
    rotary_dim: the number of channels that rotate (default: all)
    precision: "exact", or "hf_f32" for angles rounded as in transformers
    max_position_embeddings: the context length that some scalings start from
    out: arrays for the results, which may be q and k (in place)

    Returns q and k, rotated. Raises Error, with the sizes and types, for arrays that do not
    fit each other, and for a scaling that is not known.
    """
    for name, array in (("q", q), ("k", k), ("positions", positions)):
        refuse_meta(array, f"rope: {name}")
    kernels = get_rope_kernels(*measure_heads(q, k), name_of(q.dtype), theta, scaling,
                               pairing, rotary_dim, precision, max_position_embeddings)
    return kernels.rope(q, k, positions, out=out)


class RopeOptions(NamedTuple):
    """The keywords of `rope`."""

    theta: float
    scaling: Mapping[str, Any] | None
    pairing: str
    rotary_dim: int | None
    precision: str
    max_position_embeddings: int

    @classmethod
    def make(cls, name: str, theta: float | None, *positions, scaling, rotary_dim,
             **others) -> RopeOptions | None:
        """Returns None if there is no rotation, as functions without `theta`."""
        if theta is not None:
            return cls(theta, scaling, rotary_dim=rotary_dim, **others)
        if any(value is not None for value in (*positions, scaling, rotary_dim)):
            raise Error(f"{name}: positions, scaling and rotary_dim are those of a "
                        "rotation, which needs theta, the base of the frequencies")
        return None


def rotate_both(q, k, positions, options: RopeOptions):
    """Rotates tokens [batch, tokens, heads, channels] or [tokens, heads, channels]."""
    if len(q.shape) == 3:
        q_out, k_out = rotate_both(q[None], k[None], positions[None], options)
        return q_out[0], k_out[0]
    return rope(q, k, positions, **options._asdict())


def _make_zeros(array, shape: tuple[int, ...]):
    """Returns an array of CuPy or JAX like another one, on its device."""
    if is_of_cupy(array):
        return put_like(array, np.zeros(shape, array.dtype))
    jax = sys.modules["jax"]
    where = None if isinstance(array, jax.core.Tracer) else array.sharding
    return jax.numpy.zeros(shape, array.dtype, device=where)


def rotate_one(x, positions, options: RopeOptions):
    """As `rotate_both`, of one array."""
    if len(x.shape) == 3:
        return rotate_one(x[None], positions[None], options)[0]
    if x.shape[2] == 1:
        return rope(x, x, positions, **options._asdict())[0]
    # Kernels rotate two arrays: all heads but the last, and the last.
    first, last = x[:, :, :-1], x[:, :, -1:]
    torch = sys.modules.get("torch")
    if isinstance(x, np.ndarray):
        result = np.empty(x.shape, x.dtype)
    elif torch is not None and isinstance(x, torch.Tensor):
        result = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    else:
        # A further head takes less time than the concatenation, and XLA may divide x.
        other = _make_zeros(x, (*x.shape[:2], 1, x.shape[3]))
        return rope(x, other, positions, **options._asdict())[0]
    rope(first, last, positions, **options._asdict(),
         out=(result[:, :, :-1], result[:, :, -1:]))
    return result
