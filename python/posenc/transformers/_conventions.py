# ===- _conventions.py - how models of transformers rotate ------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The functions of modeling files that rotate by tables, and kernels in their place.

They differ in the number of tensors that they take, in how cos and sin of pairs are
stored in their tables, in the pairs, and in whether heads come before tokens. A table
that `enable` makes has an attribute with all of it, by which a patched function knows
that it is one.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import torch

from .._compile import compile
from .._cuda import find_target_ahead
from .._dtypes import name_of
from .._kernels import Kernels
from .._once import once
from .._torch_state import is_recorded
from .._operators import innermost
from ._warmup import postpone


def _make_complex(cos: torch.Tensor, sin: torch.Tensor) -> tuple[torch.Tensor]:
    return torch.complex(cos.float(), sin.float()),


# How tables are made of cos and sin of pairs. They are new tensors, since they get
# attributes.
LAYOUTS: dict[str, Callable[..., tuple[torch.Tensor, ...]]] = {
    # Llama: the pairs twice.
    "halves": lambda *pairs: tuple(torch.cat((x, x), dim=-1) for x in pairs),
    # Cohere: each pair twice.
    "neighbours": lambda *pairs: tuple(x.repeat_interleave(2, dim=-1) for x in pairs),
    # gpt-oss
    "once": lambda *pairs: tuple(x.view_as(x) for x in pairs),
    # GPT-J
    "sine first": lambda cos, sin: (sin.view_as(sin), cos.view_as(cos)),
    # Llama 4
    "complex": _make_complex,
}

_TABLES = ("halves", "neighbours", "once")
# By the name of a function and its first parameters: the number of tensors that it
# rotates, and the layouts that its tables may have.
_FUNCTIONS: dict[tuple[str, ...], tuple[int, tuple[str, ...]]] = {
    ("apply_rotary_pos_emb", "q", "k", "cos", "sin"): (2, _TABLES),
    ("apply_rotary_pos_emb", "x", "cos", "sin"): (1, _TABLES),
    ("apply_rotary_pos_emb", "tensor", "sin", "cos"): (1, ("sine first",)),
    ("apply_rotary_emb", "xq", "xk", "freqs_cis"): (2, ("complex",)),
}


class Convention(NamedTuple):
    """How a modeling file rotates."""

    function: str
    tensors: int  # of the function's parameters
    tables: int
    layout: str
    pairing: str
    heads_first: bool


class Pairs(NamedTuple):
    """The attribute of tables: cos and sin [batch, tokens, pairs]."""

    cos: torch.Tensor
    sin: torch.Tensor
    convention: Convention


def get_original(module: ModuleType, name: str) -> Callable[..., Any]:
    """Returns the function of a modeling file as it was before it was patched."""
    function = getattr(module, name)
    return getattr(function, "_posenc_original", function)


@once
def _compile_rotation(device: int | None, pairing: str, heads: tuple[int, ...], dim: int,
                      pairs: int, dtype: str, table_dtype: str) -> Kernels:
    """`rotate` of tensors [batch, tokens, heads, channels] by tables, on a CUDA device
    or on the CPU."""
    kinds = [f"tensor<?x?x{count}x{dim}x{dtype}>" for count in heads]
    table = f"tensor<?x?x{pairs}x{table_dtype}>"
    names = [f"%x{i}" for i in range(len(heads))]
    inputs = ", ".join(f"{name}: {kind}" for name, kind in zip(names, kinds))
    values, types = ", ".join(names), ", ".join(kinds)
    results = ", ".join(f"%r#{i}" for i in range(len(heads)))
    return compile(f"""
func.func @rotate({inputs}, %cos: {table}, %sin: {table}) -> ({types}) {{
  %r:{len(heads)} = posenc.rotate {pairing} ins({values} : {types}) tables(%cos, %sin : {table})
    dims = [0, 1] outs({values} : {types})
  return {results} : {types}
}}
""", target=find_target_ahead(device), no_warnings=True)


def _find_key(pairs: Pairs, tensors, heads_first: bool) -> tuple:
    """Returns the arguments of `_compile_rotation` for tensors."""
    heads = tuple(x.shape[1 if heads_first else 2] for x in tensors)
    device = tensors[0].device.index if tensors[0].is_cuda else None
    return (device, pairs.convention.pairing, heads, tensors[0].shape[3], pairs.cos.shape[-1],
            name_of(tensors[0].dtype), name_of(pairs.cos.dtype))


def _rotate(pairs: Pairs, tensors, heads_first: bool) -> tuple[torch.Tensor, ...]:
    key = _find_key(pairs, tensors, heads_first)
    if postpone(_compile_rotation, *key):
        return tensors
    batch = tensors[0].shape[0]
    tables = [table.expand(batch, -1, -1) for table in (pairs.cos, pairs.sin)]
    inputs = [x.transpose(1, 2) for x in tensors] if heads_first else tensors
    results = _compile_rotation(*key).rotate(*map(innermost, (*inputs, *tables)))
    results = (results,) if len(inputs) == 1 else results
    return tuple(x.transpose(1, 2) for x in results) if heads_first else results


def patch(module: ModuleType, convention: Convention) -> None:
    """Makes the function of a modeling file rotate by a kernel if its tables are those
    of a model that `enable` was given."""
    original = get_original(module, convention.function)
    if getattr(module, convention.function) is not original:
        return
    tensors, arguments = convention.tensors, convention.tensors + convention.tables

    @functools.wraps(original)
    def rotate(*inputs, **options):
        pairs = (getattr(inputs[tensors], "_posenc_pairs", None)
                 if len(inputs) == arguments else None)
        # Some files say where the heads are: 1 or 2.
        place = options.get("unsqueeze_dim")
        # The code of PyTorch is fused with what is around it when it is compiled, and
        # has gradients.
        if (pairs is None or place not in (None, 1, 2) or len(options) != (place is not None)
                or is_recorded() or torch.is_grad_enabled()
                and any(x.requires_grad for x in inputs[:tensors])):
            return original(*inputs, **options)
        heads_first = pairs.convention.heads_first if place is None else place == 1
        results = _rotate(pairs, inputs[:tensors], heads_first)
        return results[0] if tensors == 1 else results

    vars(rotate)["_posenc_original"] = original
    setattr(module, convention.function, rotate)


# ===----------------------------------------------------------------------===#
# Search
# ===----------------------------------------------------------------------===#


def _is_right(original: Callable[..., Any], pairs: Pairs, *shapes) -> bool:
    """Whether a function of a modeling file does what `_rotate` does."""
    random = torch.Generator().manual_seed(0)
    tensors = [torch.randn(shape, generator=random) for shape in shapes]
    convention = pairs.convention
    try:
        expected = original(*tensors, *LAYOUTS[convention.layout](pairs.cos, pairs.sin))
        expected = (expected,) if convention.tensors == 1 else expected
        return all(torch.allclose(a, b, atol=1e-5) for a, b in zip(
            _rotate(pairs, tensors, convention.heads_first), expected, strict=True))
    except (RuntimeError, TypeError, ValueError, AttributeError, IndexError):
        return False


def find_conventions(module: ModuleType) -> Iterator[Convention]:
    """Yields the conventions by which a modeling file rotates."""
    count = 4  # pairs
    random = torch.Generator().manual_seed(1)
    cos, sin = torch.randn(2, 1, 3, count, generator=random)
    for (name, *parameters), (tensors, layouts) in _FUNCTIONS.items():
        if not hasattr(module, name):
            continue
        original = get_original(module, name)
        if [*inspect.signature(original).parameters][:len(parameters)] != parameters:
            continue
        tables = len(parameters) - tensors
        for layout, pairing, heads_first in itertools.product(
                layouts, ("half", "interleaved"), (True, False)):
            pairs = Pairs(cos, sin, Convention(name, tensors, tables, layout, pairing,
                                               heads_first))
            shapes = [(1, heads, 3, 2 * count) if heads_first else
                      (1, 3, heads, 2 * count) for heads in (2, 1)[:tensors]]
            if _is_right(original, pairs, *shapes):
                yield pairs.convention
