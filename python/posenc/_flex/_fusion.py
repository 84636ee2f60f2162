# ===- _fusion.py - norms and rotations of query and key -------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Norms and rotations of query and key: as a part of the kernel where it can, else as
calls before it, which have gradients."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .._dtypes import name_of
from .._errors import Error
from .._rope import RopeOptions
from .._rope import rope as functional_rope


class Fused(NamedTuple):
    """What a kernel does with query and key. Its further inputs are the positions of
    query and of key and the weights of both norms, those that there are."""

    theta: float | None = None
    pairing: str = "half"
    rotary_dim: int = 0
    precision: str = "exact"
    eps: float | None = None

    def write_attributes(self) -> list[str]:
        """Returns attributes of posenc.attention."""
        result = [] if self.eps is None else [f"norm_eps = {self.eps:.17e}"]
        if self.theta is not None:
            precision = "" if self.precision == "exact" else (
                f", precision = {self.precision}")
            rotation = (f"<pairing = {self.pairing}, frequencies = <dim = "
                        f"{self.rotary_dim}, base = {self.theta:.17e}{precision}>>")
            result += [f"query_rotation = {rotation}", f"key_rotation = {rotation}"]
        return result

    def get_inputs(self, channels: int, dtype: str) -> list[tuple[str, str, tuple]]:
        """Returns the names, types and sizes of the further inputs."""
        result: list[tuple[str, str, tuple]] = []
        if self.theta is not None:
            result += [("query_positions", "tensor<?x?xi64>", ("batch", "queries")),
                       ("key_positions", "tensor<?x?xi64>", ("batch", "keys"))]
        if self.eps is not None:
            kind = f"tensor<{channels}x{dtype}>"
            result += [("query_norm", kind, ()), ("key_norm", kind, ())]
        return result


class Options(NamedTuple):
    """The keywords of a call that are about query and key."""

    rotation: Mapping[str, Any] | None
    positions: Any
    key_positions: Any
    query_norm: Any
    key_norm: Any
    eps: float

    def is_empty(self) -> bool:
        return (self.rotation is None and self.positions is None
                and self.key_positions is None and self.query_norm is None
                and self.key_norm is None)


def is_torch(array) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def check(options: Options, query) -> None:
    """Raises an error for keywords that do not belong together."""
    rotation = options.rotation
    if rotation is None:
        if options.positions is not None or options.key_positions is not None:
            raise Error("positions are those of a rotation: pass rotation, such as "
                        '{"theta": 10000.0}')
    elif not isinstance(rotation, Mapping):
        raise Error(f"rotation is a {type(rotation).__name__}, expected a dict of "
                    "keywords of posenc.functional.rope")
    else:
        for key in rotation:
            if key not in RopeOptions._fields:
                raise Error(f"rotation has no key '{key}', expected "
                            f"{', '.join(RopeOptions._fields)}")
    norms = options.query_norm, options.key_norm
    if (norms[0] is None) != (norms[1] is None):
        raise Error("query_norm and key_norm belong together, got one of them")
    for name, weights in zip(("query_norm", "key_norm"), norms):
        if weights is not None and tuple(weights.shape) != (query.shape[3],):
            raise Error(f"{name} has the shape {tuple(weights.shape)}, expected "
                        f"({query.shape[3]},)")
    if norms[0] is not None and not 0 <= options.eps < math.inf:
        raise Error(f"norm_eps is {options.eps}, expected a finite number that is not "
                    "negative")


def find_fused(options: Options, query) -> Fused | None:
    """Returns what a kernel does of the options; None if they are calls before it."""
    rotation = options.rotation or {}
    if rotation.get("scaling") or rotation.get("precision", "exact") != "exact":
        return None
    theta, channels = None, int(query.shape[3])
    rotary_dim = rotation.get("rotary_dim") or channels
    if options.rotation is not None:
        theta = float(rotation.get("theta", 10000.0))
        if (not 0 < theta < math.inf or rotary_dim % 2 or not 0 < rotary_dim <= channels
                or rotation.get("pairing", "half") not in ("half", "interleaved")):
            return None  # The call has an error that says why.
    eps = None if options.query_norm is None else float(options.eps)
    return Fused(theta, rotation.get("pairing", "half"), rotary_dim, eps=eps)


def make_inputs(options: Options, query, key) -> list[Any]:
    """Returns the further inputs of a kernel."""
    result: list[Any] = []
    if options.rotation is not None:
        result = [_count(one) if positions is None else positions for one, positions in
                  ((query, options.positions), (key, options.key_positions))]
    if options.query_norm is not None:
        result += [_convert(weights, query) for weights in
                   (options.query_norm, options.key_norm)]
    return result


def _convert(weights, like):
    """Returns weights with the type of another array."""
    if name_of(weights.dtype) == name_of(like.dtype):
        return weights
    return weights.to(like.dtype) if is_torch(weights) else weights.astype(like.dtype)


def apply(options: Options, query, key) -> tuple[Any, Any]:
    """Returns query and key, normalized and rotated."""
    if options.query_norm is not None:
        query = _normalize(query, options.query_norm, options.eps)
        key = _normalize(key, options.key_norm, options.eps)
    if options.rotation is None:
        return query, key
    # Rotations are of [batch, tokens, heads, channels].
    q, k = _swap(query), _swap(key)
    positions, key_positions = options.positions, options.key_positions
    is_same = positions is None and key_positions is None and q.shape[:2] == k.shape[:2]
    if positions is None:
        positions = _count(query)
    if key_positions is None:
        key_positions = positions if is_same else _count(key)
    if positions is key_positions:
        q, k = _rope(q, k, positions, options.rotation)
    else:
        q, _ = _rope(q, q[:, :, :1], positions, options.rotation)
        k, _ = _rope(k, k[:, :, :1], key_positions, options.rotation)
    return _swap(q), _swap(k)


def _normalize(x, weights, eps: float):
    """The RMS norm of each head, in f32 (f64 for f64)."""
    if is_torch(x):
        torch = sys.modules["torch"]
        wide = x if x.dtype == torch.float64 else x.float()
        mean = wide.pow(2).mean(-1, keepdim=True)
        return (wide * torch.rsqrt(mean + eps) * weights.to(wide.dtype)).to(x.dtype)
    numpy: Any = np
    if not isinstance(x, np.ndarray):
        import jax.numpy
        numpy = jax.numpy
    wide = x if x.dtype == np.float64 else x.astype(np.float32)
    mean = (wide * wide).mean(-1, keepdims=True)
    result = wide / numpy.sqrt(mean + np.asarray(eps, wide.dtype)) * weights.astype(
        wide.dtype)
    return result.astype(x.dtype)


def _swap(array):
    """Exchanges heads and tokens."""
    return array.transpose(1, 2) if is_torch(array) else array.swapaxes(1, 2)


def _count(array):
    """Returns the indices [batch, tokens] of the tokens of [batch, heads, tokens, …]."""
    batch, tokens = array.shape[0], array.shape[2]
    if is_torch(array):
        torch = sys.modules["torch"]
        return torch.arange(tokens, device=array.device).repeat(batch, 1)
    return np.arange(tokens)[None].repeat(batch, 0)


def _rope(first, second, positions, options: Mapping[str, Any]):
    if is_torch(first):
        from .._torch_rope import rope

        return rope(first, second, positions, **options)
    return functional_rope(first, second, positions, **options)
