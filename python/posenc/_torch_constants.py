# ===- _torch_constants.py - constants of exported programs -----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Tensors of an exported program that do not depend on its inputs, and whose elements are
equal: PyTorch computes them. torch-mlir (20261001) folds some of these to other numbers:
`torch.zeros(3) > 0` to true, `torch.full((3,), -3) // 2` to the smallest integer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils import _pytree

# Larger tensors are not computed.
_MAX_ELEMENTS = 1 << 26
_aten = torch.ops.aten


def _is_uniform(value: torch.Tensor) -> bool:
    if value.numel() == 0 or value.is_complex() or value.is_quantized:
        return False
    first = value.reshape(-1)[0]
    if first.isnan():
        return bool(value.isnan().all())
    same_sign = torch.signbit(value) == torch.signbit(first)
    return bool(((value == first) & same_sign).all())


def _compute(node: torch.fx.Node, known: Mapping[torch.fx.Node, Any]) -> Any:
    """Returns what a node computes from known values, or None if that is not known."""
    operator = node.target
    if not isinstance(operator, torch._ops.OpOverload) or operator._schema.is_mutable or \
            torch.Tag.nondeterministic_seeded in operator.tags:
        return None
    if any(one not in known for one in node.all_input_nodes):
        return None
    result = node.meta.get("val")
    if not isinstance(result, torch.Tensor) or \
            any(not isinstance(size, int) for size in result.shape) or \
            result.numel() > _MAX_ELEMENTS:
        return None
    arguments = torch.fx.map_arg((node.args, node.kwargs), known.__getitem__)
    if any(isinstance(one, (torch.SymInt, torch.SymFloat, torch.SymBool))
           for one in _pytree.tree_leaves(arguments)):
        return None
    positional, named = arguments
    try:
        return operator(*positional, **named)
    except (RuntimeError, TypeError, ValueError, NotImplementedError):
        return None


def fold_uniform(graph: torch.fx.Graph, constants: Mapping[str, torch.Tensor]) -> None:
    """Replaces nodes of a graph whose values are uniform tensors by `aten.full`, given the
    values of inputs that are constants, by their names."""
    known: dict[torch.fx.Node, Any] = {}
    with torch.no_grad():
        for node in list(graph.nodes):
            if node.op == "placeholder" and node.name in constants:
                known[node] = constants[node.name]
            if node.op != "call_function":
                continue
            value = _compute(node, known)
            if not isinstance(value, torch.Tensor):
                continue
            known[node] = value
            if node.target == _aten.full.default or not _is_uniform(value):
                continue
            with graph.inserting_before(node):
                full = graph.call_function(
                    _aten.full.default, (list(value.shape), value.reshape(-1)[0].item()),
                    {"dtype": value.dtype, "device": value.device, "pin_memory": False})
            full.meta = dict(node.meta)
            node.replace_all_uses_with(full)
            known[full] = value
    graph.eliminate_dead_code()
