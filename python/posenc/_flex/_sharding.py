# ===- _sharding.py - which dimensions devices may divide -------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Which dimensions of the arrays of `flex_attention` and of its gradients may be divided
among devices.

The batch and the heads may be divided, unless a function of scores uses their index for
more than to load elements. Then arrays that are loaded by it are divided, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .._kernels import Kernels
from .._sharding import BATCH, HEADS, KEY_HEADS, Declaration, Dims, divide_heads
from ._module import Signature
from ._score_graph import Node, collect

_QUERIES = ("query", "output", "lse", "grad_query", "grad_output", "grad_lse")
_KEYS = ("key", "value", "grad_key", "grad_value")
_ARRAY, _GRADIENT = "captured", "grad_captured"


def _find_divided_arrays(nodes: list[Node], index: str) -> set[tuple[int, int]] | None:
    """Returns the numbers and dimensions of captured arrays that an argument loads from;
    None if the argument is used otherwise."""
    def is_index(node: Node) -> bool:
        return node.op == "argument" and node.payload == index

    if nodes and is_index(nodes[-1]):
        return None
    if any(is_index(one) for node in nodes if node.op != "load" for one in node.operands):
        return None
    loads = [node for node in nodes if node.op == "load"]
    found = {(load.payload, dim) for load in loads
             for dim, one in enumerate(load.operands) if is_index(one)}
    dims = [number for number, _ in found]
    alike = all(is_index(load.operands[dim]) for load in loads
                for number, dim in found if load.payload == number)
    return found if alike and len(dims) == len(set(dims)) else None


def make_declaration(of: Signature, score: Node | None, where: Node | None,
                     find_kernels: Callable[[Signature], Kernels]) -> Declaration:
    """Returns the declaration of the functions of a signature."""
    nodes = collect(score, where)
    divided = {factor: _find_divided_arrays(nodes, index)
               for factor, index in ((BATCH, "batch"), (HEADS, "head"))}
    arrays = {(number, dim): factor for factor, found in divided.items()
              for number, dim in found or ()}

    def divide_array(number: int, rank: int) -> Dims:
        return tuple(arrays.get((number, dim)) for dim in range(rank))

    def find_dims(function: str, argument: Mapping) -> Dims:
        name, rank = argument["name"], len(argument["shape"])
        allowed = [factor for factor, found in divided.items() if found is not None]
        if _ARRAY in function:  # Its gradient is a sum over what does not divide it.
            _, _, number = function.partition(_ARRAY)
            allowed = [one for one in allowed
                       if one in divide_array(int(number), of.arrays[int(number)][1])]
        dims: list[str | None] = [None] * rank
        for prefix in (_ARRAY, _GRADIENT):
            number = name.removeprefix(prefix)
            if number != name and number.isdigit():
                dims = list(divide_array(int(number), rank))
        if name in _QUERIES or name in _KEYS:
            dims[:2] = [BATCH, HEADS if name in _QUERIES else KEY_HEADS]
        elif name.endswith("_positions"):
            dims[0] = BATCH
        keys = [*allowed, KEY_HEADS] if HEADS in allowed else allowed
        return tuple(one if one in keys else None for one in dims)

    def find_local(count: int) -> Kernels:
        return find_kernels(of._replace(**divide_heads(of.heads, of.key_heads, count)))

    return Declaration(find_dims, of.heads, of.key_heads, find_local)
