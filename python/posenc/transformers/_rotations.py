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
import re
import sys

import torch
import transformers

from .._compile import compile
from .._errors import Error
from .._kernels import Kernels
from .._torch_state import is_recorded
from ..torch import register
from ._conventions import LAYOUTS, Convention, Pairs, find_conventions, patch


def _find_sincos(kernels: Kernels, layer_type: str | None = None) -> tuple[str, int | None]:
    """Returns the name of the function of a layer's tables, and the number of positions
    of a token if they are a dimension. If the layers of a model rotate alike, there is
    one function for all of them."""
    name = f"sincos_{layer_type}"
    name = name if name in kernels else "sincos"
    if name not in kernels:
        raise Error("its layers rotate differently, even those of one type")
    shape = next(function["inputs"][0]["shape"] for function in
                 kernels.metadata["functions"] if function["name"] == name)
    return name, shape[0] if len(shape) == 2 else None


def _make_tables(kernels: Kernels, convention: Convention, dtype: torch.dtype | None,
                 x: torch.Tensor, position_ids: torch.Tensor,
                 layer_type: str | None = None):
    """As the rotary embedding of transformers: cos and sin [batch, tokens, channels], or
    what the convention has in their place."""
    name, axes = _find_sincos(kernels, layer_type)
    sizes = position_ids.shape[-2:]
    positions = (position_ids.reshape(-1) if axes is None else
                 position_ids.expand(axes, -1, -1).reshape(axes, -1))
    positions = positions.to(torch.int64).contiguous()
    is_graph = is_recorded()
    results = (torch.ops.posenc.call([positions], kernels._spec, name) if is_graph
               else kernels[name](positions))
    cos, sin = (result.reshape(*sizes, -1).to(dtype or x.dtype) for result in results)
    tables = LAYOUTS[convention.layout](cos, sin)
    if not is_graph:
        for table in tables:
            vars(table)["_posenc_pairs"] = Pairs(cos, sin, convention)
    return tables[0] if len(tables) == 1 else tables


def _is_same_table(embedding, make, axes: int | None, last: int, *layer_type) -> bool:
    """Whether a rotary embedding has the tables that `make` makes, but for rounding."""
    device = _find_device(embedding)
    # The last position shows slow frequencies. Angles in f32 are less exact there.
    for positions, bound in (([0, 1, 2, 3], 1e-4), ([last], 2e-3)):
        position_ids = torch.tensor([positions], device=device)
        if axes is not None:  # Equal positions would not show which axis a pair has.
            position_ids = torch.stack([position_ids * 2 // (i + 2) for i in range(axes)])
        try:
            x = torch.empty(1, device=device)
            pairs = [_as_tuple(function(x, position_ids, *layer_type))
                     for function in (make, embedding)]
            if not all(a.shape == b.shape and a.dtype == b.dtype
                       and torch.allclose(a, b, atol=bound)
                       for a, b in zip(*pairs, strict=True)):
                return False
        except (AttributeError, KeyError, RuntimeError, TypeError, ValueError):
            return False
    return True


def _find_device(embedding: torch.nn.Module) -> torch.device:
    """Returns the device of a rotary embedding, whose frequencies are a buffer."""
    return next((buffer.device for buffer in embedding.buffers()), torch.device("cpu"))


def _as_tuple(tables) -> tuple[torch.Tensor, ...]:
    return tables if isinstance(tables, tuple) else (tables,)


def _get_dtype(embedding, *layer_type) -> torch.dtype | None:
    """Returns the type of an embedding's tables if it is not that of its input."""
    device = _find_device(embedding)
    x = torch.empty(1, dtype=torch.float16, device=device)
    position = torch.zeros(1, 1, dtype=torch.int64, device=device)
    dtype = _as_tuple(embedding(x, position, *layer_type))[0].dtype
    return None if dtype == x.dtype else torch.float32


def replace_rotations(model: transformers.PreTrainedModel, precision: str) -> str | None:
    """Makes a model rotate by kernels if it has one module of rotary embeddings, and its
    tables and pairs are those of the kernels. Returns why not, if it has rotations."""
    config = model.config.get_text_config()
    found = _find_embeddings(model, config)
    if len(found) != 1:
        return f"it has {len(found)} rotary embeddings" if found else None
    embedding, = found
    _restore(embedding)
    # Some models have tables for each type of layers.
    has_types = "layer_type" in inspect.signature(embedding.forward).parameters
    kinds: list[tuple] = [(name,) for name in vars(embedding)["layer_types"]] if (
        has_types) else [()]
    try:
        kernels = compile(config, kernels=["sincos"], precision=precision,
                          no_warnings=True)
        axes = [_find_sincos(kernels, *kind)[1] for kind in kinds]
    except Error as error:
        # Options of the compiler are not those of `enable`.
        return re.sub(r"^config\.json:\d+:\d+: error: |: pass .*", "",
                      str(error).splitlines()[0])
    register(kernels)
    modeling = sys.modules[type(embedding).__module__]
    last = min(4096, getattr(config, "max_position_embeddings", None) or 4096) - 1
    with torch.no_grad():
        dtype = _get_dtype(embedding, *kinds[0])
        for convention in find_conventions(modeling):
            make = functools.partial(_make_tables, kernels, convention, dtype)
            if all(_is_same_table(embedding, make, count, last, *kind)
                   for count, kind in zip(axes, kinds, strict=True)):
                patch(modeling, convention)
                embedding.forward = make
                return None
    return "its tables, or how it rotates by them, are not those of the kernels"


def restore_rotations(model: torch.nn.Module) -> None:
    """Undoes `replace_rotations`."""
    for embedding in _find_embeddings(model):
        _restore(embedding)


def _find_embeddings(model: torch.nn.Module, config=None) -> list[torch.nn.Module]:
    """Returns the rotary embeddings of a model, or those of its text model. A vision
    encoder may have some, too, of another config."""
    return [module for name, module in model.named_modules()
            if name.split(".")[-1] == "rotary_emb" and (
                config is None or type(getattr(module, "config", config)) is type(config))]


def _restore(embedding: torch.nn.Module) -> None:
    # The function of the modeling file stays: it looks at the tables that it is given.
    embedding.__dict__.pop("forward", None)
