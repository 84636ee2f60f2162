# ===- _jax_partition.py - calls whose arrays are divided among devices ------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Rules by which XLA divides a call under `jax.jit`: each device calls a local kernel
for its part of the batch, of the heads or of the tokens of an encoding. Arrays that are
divided otherwise are gathered.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.experimental.custom_partitioning import (
    ArrayMapping, CompoundFactor, SdyShardingRule, custom_partitioning)
from jax.sharding import NamedSharding, PartitionSpec

from ._sharding import HEADS, KEY_HEADS, Dims, Rule, get_divided


def _read_axes(sharding, dim: int) -> tuple[str, ...]:
    """Returns the axes of a mesh that divide a dimension."""
    if not isinstance(sharding, NamedSharding) or dim >= len(sharding.spec):
        return ()
    axes = sharding.spec[dim]
    return (axes,) if isinstance(axes, str) else tuple(axes or ())


def _choose(rule: Rule, mesh, dims: Sequence[Dims],
            arrays: Sequence[Any]) -> dict[str, tuple[str, ...]]:
    """Returns the axes of the mesh that divide each factor: those of the first array
    that has some, as long as they divide it into equal parts."""
    chosen: dict[str, tuple[str, ...]] = {}
    used: set[str] = set()
    for factor in rule.list_factors():
        for names, array in zip(dims, arrays):
            for dim, name in enumerate(names):
                if name is None or get_divided(name) != factor or factor in chosen:
                    continue
                size = rule.head_parts if factor == HEADS else array.shape[dim]
                axes = _read_axes(array.sharding, dim)
                while axes and (used.intersection(axes) or size % _count(mesh, axes)):
                    axes = axes[:-1]
                if axes:
                    chosen[factor] = axes
                    used.update(axes)
    return chosen


def _count(mesh, axes: Sequence[str]) -> int:
    return math.prod(mesh.shape[axis] for axis in axes)


def _place(mesh, dims: Sequence[Dims], chosen) -> tuple[NamedSharding, ...]:
    return tuple(
        NamedSharding(mesh, PartitionSpec(*(
            chosen.get(get_divided(name)) if name else None for name in names)))
        for names in dims)


def _write_rule(rule: Rule, dims: Sequence[Dims], count: int) -> SdyShardingRule:
    """Returns the rule for the propagation of shardings; the first `count` arrays are
    operands."""
    whole: list[str] = []  # in the order of the first use
    group = rule.heads // rule.key_heads
    sizes: dict[str, Any] = {}

    def name_factor(name: str | None):
        if name is None:
            whole.append(f"whole_dim{len(whole)}")
            return whole[-1]
        if name == KEY_HEADS or (name == HEADS and 1 in (group, rule.key_heads)):
            return KEY_HEADS
        if name == HEADS:
            if not sizes:
                whole.append("heads_of_key_head")
                sizes.update({KEY_HEADS: rule.key_heads, "heads_of_key_head": group})
            return CompoundFactor(KEY_HEADS, "heads_of_key_head")
        return name

    mappings = [ArrayMapping(*map(name_factor, names)) for names in dims]
    if any(KEY_HEADS in names for names in mappings):
        sizes.pop(KEY_HEADS, None)  # It is known from a dimension.
    return SdyShardingRule(tuple(mappings[:count]), tuple(mappings[count:]),
                           need_replication_factors=tuple(whole), **sizes)


def partition(call: Callable, rule: Rule,
              make_local: Callable[[int], Callable]) -> Callable:
    """Returns a function of arrays that XLA may divide. `make_local` returns that for
    one of several equal parts of the heads."""
    @functools.cache
    def find(fitting: Rule) -> Callable:
        return _partition(call, fitting, make_local)

    def choose(*arrays):
        fitting = rule.fit([array.shape for array in arrays])
        function = find(fitting)
        mesh = jax.sharding.get_abstract_mesh()
        if not any(kind == jax.sharding.AxisType.Explicit
                   for kind in getattr(mesh, "axis_types", ())):
            return function(*arrays)
        # The types of arrays say how they are divided, and so must those of results.
        chosen = _choose(fitting, mesh, fitting.inputs, list(map(jax.typeof, arrays)))
        specs = tuple(one.spec for one in _place(mesh, fitting.outputs, chosen))
        return jax.sharding.auto_axes(function, out_sharding=specs)(*arrays)

    return choose


def _partition(call: Callable, rule: Rule,
               make_local: Callable[[int], Callable]) -> Callable:
    count = len(rule.inputs)
    dims = rule.inputs + rule.outputs

    def divide(mesh, operands, results):
        arrays = [*operands, *results]
        chosen = {} if mesh.empty else _choose(rule, mesh, dims, arrays)
        places = _place(mesh, dims, chosen)
        parts = _count(mesh, chosen.get(HEADS, ()))
        local = call if parts == 1 else make_local(parts)

        def run(*parts):
            with jax.enable_x64(True):
                return local(*parts)

        return mesh, run, places[count:], places[:count]

    def infer(mesh, operands, results):
        chosen = _choose(rule, mesh, rule.inputs, operands)
        return _place(mesh, rule.outputs, chosen)

    partitioned = custom_partitioning(call)
    partitioned.def_partition(
        divide, infer_sharding_from_operands=infer,
        sharding_rule=lambda *_: _write_rule(rule, dims, count))
    return partitioned
