# ===- jax.py - attention across devices of JAX ------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Attention of a sequence whose tokens are divided among devices of JAX.

    from jax.sharding import PartitionSpec as P

    attend = jax.jit(jax.shard_map(
        functools.partial(posenc.jax.ring_attention, axis_name="x"), mesh=mesh,
        in_specs=P(None, None, "x"), out_specs=P(None, None, "x")))
    output = attend(query, key, value)  # [batch, heads, tokens, channels]

Other functions need no call of their own: XLA divides them under `jax.jit`.
"""

from __future__ import annotations

from ._jax_ring import ring_attention

__all__ = ["ring_attention"]

ring_attention.__module__ = __name__  # It is printed by help().
