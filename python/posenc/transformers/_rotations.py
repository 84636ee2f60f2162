# ===- _rotations.py - rotations of transformers ---------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Rotary embeddings of transformers by tables and rotations of kernels."""

from __future__ import annotations

import functools
import inspect
import itertools
import re
import sys

import torch
import transformers

from .._compile import compile
from .._dtypes import name_of
from .._errors import Error
from .._kernels import Kernels
from .._torch_state import is_recorded
from ..torch import innermost, register
from .._once import once


# How models repeat cos and sin of pairs in their tables: half by half as Llama, next to
# each other as Cohere, or not as gpt-oss. Results are new tensors, whose attributes tell
# `_rotate` the pairs.
_LAYOUTS = {
    "halves": lambda pairs: torch.cat((pairs, pairs), dim=-1),
    "neighbours": lambda pairs: pairs.repeat_interleave(2, dim=-1),
    "once": lambda pairs: pairs.view_as(pairs),
}


@once
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
    q_out, k_out = kernels.rotate(*map(innermost, (
        q.transpose(1, 2), k.transpose(1, 2), *tables)))
    return q_out.transpose(1, 2), k_out.transpose(1, 2)


def _patch_rotation(module) -> None:
    """Makes a modeling file of transformers rotate by a kernel, if the tables are
    those of a model that `enable` was given."""
    original = module.apply_rotary_pos_emb
    if hasattr(original, "_posenc_original"):
        return

    @functools.wraps(original)
    def apply_rotary_pos_emb(q, k, cos, sin, *arguments, **options):
        # The code of PyTorch is fused with what is around it when it is compiled, and
        # has gradients.
        if (arguments or options or is_recorded()
                or not hasattr(cos, "_posenc_pairs") or torch.is_grad_enabled()
                and (q.requires_grad or k.requires_grad)):
            return original(q, k, cos, sin, *arguments, **options)
        return _rotate(cos._posenc_pairing, q, k, cos._posenc_pairs, sin._posenc_pairs)

    vars(apply_rotary_pos_emb)["_posenc_original"] = original
    module.apply_rotary_pos_emb = apply_rotary_pos_emb


def _make_tables(kernels: Kernels, layout: str, pairing: str, x: torch.Tensor,
                 position_ids: torch.Tensor, layer_type: str | None = None):
    """As the rotary embedding of transformers: cos and sin [batch, tokens, channels]."""
    # If the layers of a model rotate alike, there is one function for all of them.
    name = f"sincos_{layer_type}"
    name = name if name in kernels else "sincos"
    positions = position_ids.reshape(-1).to(torch.int64).contiguous()
    is_graph = is_recorded()
    results = (torch.ops.posenc.call([positions], kernels._spec, name) if is_graph
               else kernels[name](positions))
    tables = []
    for result in results:
        pairs = result.reshape(*position_ids.shape, -1).to(x.dtype)
        table = _LAYOUTS[layout](pairs)
        if not is_graph:
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
    # The last position shows slow frequencies. Angles in f32 are less exact there.
    last = min(4096, getattr(embedding.config, "max_position_embeddings", 4096) - 1)
    x = torch.empty(1)
    try:
        return all(
            a.shape == b.shape and torch.allclose(a, b, atol=bound)
            for positions, bound in (([0, 1, 2, 3], 1e-4), ([last], 2e-3))
            for a, b in zip(*(make(x, torch.tensor([positions]), *layer_type) for make in (
                functools.partial(_make_tables, kernels, layout, ""), embedding)),
                strict=True))
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError):
        return False


def replace_rotations(model: transformers.PreTrainedModel, precision: str) -> str | None:
    """Makes a model rotate by kernels if it has one module of rotary embeddings, and its
    tables and pairs are those of the kernels. Returns why not, if it has rotations."""
    found = _find_embeddings(model)
    if len(found) != 1:
        return f"it has {len(found)} rotary embeddings" if found else None
    embedding, = found
    _restore(embedding)
    config = model.config.get_text_config()
    modeling = sys.modules[type(embedding).__module__]
    if not hasattr(modeling, "apply_rotary_pos_emb"):
        return f"{modeling.__name__} has no apply_rotary_pos_emb"
    try:
        kernels = compile(config, kernels=["sincos"], precision=precision,
                          no_warnings=True)
    except Error as error:
        # Options of the compiler are not those of `enable`.
        return re.sub(r"^config\.json:\d+:\d+: error: |: pass --.*", "",
                      str(error).splitlines()[0])
    register(kernels)
    original = modeling.apply_rotary_pos_emb
    original = getattr(original, "_posenc_original", original)
    # Some models have tables for each type of layers.
    has_types = "layer_type" in inspect.signature(embedding.forward).parameters
    kinds = [(name,) for name in sorted(set(config.layer_types))] if has_types else [()]
    pairs = kernels.metadata["functions"][0]["outputs"][0]["shape"][-1]
    with torch.no_grad():
        for layout, pairing in itertools.product(_LAYOUTS, ("half", "interleaved")):
            if _is_same_rotation(original, pairs, layout, pairing) and all(
                    _is_same_table(embedding, kernels, layout, *kind) for kind in kinds):
                _patch_rotation(modeling)
                embedding.forward = functools.partial(_make_tables, kernels, layout,
                                                      pairing)
                return None
    return "its tables, or how it rotates by them, are not those of the kernels"


def restore_rotations(model: torch.nn.Module) -> None:
    """Undoes `replace_rotations`."""
    for embedding in _find_embeddings(model):
        _restore(embedding)


def _find_embeddings(model: torch.nn.Module) -> list[torch.nn.Module]:
    return [module for name, module in model.named_modules()
            if name.split(".")[-1] == "rotary_emb"]


def _restore(embedding: torch.nn.Module) -> None:
    # The function of the modeling file stays: it looks at the tables that it is given.
    embedding.__dict__.pop("forward", None)
