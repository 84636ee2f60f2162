# ===- _torch_sharding.py - calls with DTensors ------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Calls with DTensors: each process calls a local kernel for its part of the batch, of
the heads or of the tokens of an encoding. Tensors that are divided otherwise are
redistributed first."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from ._errors import Error
from ._sharding import HEADS, Dims, Rule, get_divided


def find_dtensor() -> type | None:
    """Returns the class DTensor, if the process has imported it."""
    module = sys.modules.get("torch.distributed.tensor")
    return None if module is None else module.DTensor


def has_dtensor(tensors: Sequence[Any]) -> bool:
    kind = find_dtensor()
    return kind is not None and any(isinstance(one, kind) for one in tensors)


def _choose(rule: Rule, mesh, tensors: Sequence[Any]) -> list[str | None]:
    """Returns what each dimension of the mesh divides: that of the first tensor that it
    divides in a way that the rule allows, into equal parts."""
    from torch.distributed.tensor import Shard

    chosen: list[str | None] = []
    counts: dict[str, int] = {}
    for place in range(mesh.ndim):
        factor = None
        for names, tensor in zip(rule.inputs, tensors):
            placement = tensor.placements[place]
            if factor is not None or type(placement) is not Shard:
                continue
            name = names[placement.dim]
            if name is None:
                continue
            divided = get_divided(name)
            size = rule.head_parts if divided == HEADS else tensor.shape[placement.dim]
            count = counts.get(divided, 1) * mesh.size(place)
            if size % count == 0:
                factor = divided
                counts[divided] = count
        chosen.append(factor)
    return chosen


def _place(names: Dims, chosen: Sequence[str | None]) -> list[Any]:
    from torch.distributed.tensor import Replicate, Shard

    dims = {get_divided(name): dim for dim, name in enumerate(names) if name is not None}
    return [Shard(dims[factor]) if factor in dims else Replicate() for factor in chosen]


def call_divided(function: str, names: Sequence[str], rule: Rule | None,
                 tensors: Sequence[torch.Tensor], outputs: int,
                 call: Callable[[list[torch.Tensor], int], Sequence[torch.Tensor]]):
    """Returns DTensors, the results of a function of tensors of which some are DTensors.
    `call` computes the part of a process, with kernels for one of so many equal parts of
    the heads. Without a rule, all processes compute the whole."""
    from torch.distributed.tensor import DTensor, Partial, Replicate

    mesh = next(one.device_mesh for one in tensors if isinstance(one, DTensor))
    for name, one in zip(names, tensors):
        if not isinstance(one, DTensor):
            raise Error(f"{function}: {name} is a plain tensor, but another input is a "
                        "DTensor: distribute it, such as by distribute_tensor(tensor, "
                        "mesh, [Replicate()])")
        if one.device_mesh != mesh:
            raise Error(f"{function}: {name} is on another mesh than other inputs: "
                        "redistribute it to one mesh")
    if rule is None:
        whole = tuple((None,) * one.dim() for one in tensors)
        rule = Rule(whole, ((),) * outputs)
    rule = rule.fit([one.shape for one in tensors])
    chosen = _choose(rule, mesh, tensors)
    local = []
    for dims, one in zip(rule.inputs, cast(Any, tensors)):
        placements = _place(dims, chosen)
        # Where a process has the whole of a tensor and computes a part of the results,
        # its gradient is a part of the sum.
        gradients = [Partial() if factor is not None and placement.is_replicate() else
                     placement for factor, placement in zip(chosen, placements)]
        one = one.redistribute(mesh, placements)
        local.append(one.to_local(grad_placements=gradients))
    parts = 1
    for place, factor in enumerate(chosen):
        parts *= mesh.size(place) if factor == HEADS else 1
    results = call(local, parts)
    assert len(results) == len(rule.outputs)
    return tuple(DTensor.from_local(
        one, mesh, _place(dims, chosen) if dims else [Replicate()] * mesh.ndim,
        run_check=False) for one, dims in zip(results, rule.outputs))


@functools.cache
def register_rope(is_whole: Callable[[str, str], bool], options: str) -> None:
    """Tells PyTorch how the operator `posenc::rope` divides DTensors. `is_whole` tells
    whether a function's arrays are whole; `options` begins the string of kernels that
    any numbers of heads select."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.experimental import register_sharding

    @register_sharding(torch.ops.posenc.rope.default)
    def _(q, k, positions, kernels, function):
        whole = [Replicate(), Replicate()], [*3 * [Replicate()], None, None]
        if is_whole(kernels, function):
            return [whole]
        # Sequences and tokens are divided with their positions.
        rules = [([Shard(dim)] * 2, [*3 * [Shard(dim)], None, None]) for dim in (0, 1)]
        if kernels.startswith(options):  # Those of a config have its numbers of heads.
            rules.append(([Shard(2)] * 2, [Shard(2), Shard(2), Replicate(), None, None]))
        return [whole, *rules]
