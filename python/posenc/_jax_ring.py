# ===- _jax_ring.py - attention across devices of JAX ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""`posenc.jax.ring_attention`, as `posenc.torch.ring_attention`: keys and values travel
around the ring while those at hand are used. The steps are a loop of XLA, so that the
size of the program does not depend on the number of devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._errors import Error
from ._flex._gradient import GRADIENT, name_array_gradient
from ._flex._plan import Call
from ._flex._ring_call import RingOptions, prepare_part
from ._jax import vary

_NAME = "ring_attention"


class _Ring:
    """The devices of an axis of the mesh, each of which sends to the next one."""

    def __init__(self, axis_name):
        self.axis_name = axis_name
        self.size = jax.lax.psum(1, axis_name)
        self._moves = [(rank, (rank + 1) % self.size) for rank in range(self.size)]

    def move(self, arrays):
        """Sends arrays to the next device and returns those of the one before."""
        return jax.tree.map(
            lambda one: jax.lax.ppermute(one, self.axis_name, self._moves), arrays)


class _Part:
    """What a device computes of the keys at hand. `call` has tracers for its arrays."""

    def __init__(self, call: Call, positions, key_positions):
        self._kernels = call.find_kernels()
        self._is_partial = call.signature.is_partial
        # Which of the captured arrays are positions, and the others.
        self._places = [0 if one is positions else 1 if one is key_positions else None
                        for one in call.inputs[3:]]
        self.arrays = [one for one, place in zip(call.inputs[3:], self._places)
                       if place is None]

    def _capture(self, positions, key_positions, arrays) -> list[Any]:
        rest = iter(arrays)
        return [next(rest) if place is None else (positions, key_positions)[place]
                for place in self._places]

    def attend(self, query, block, positions, arrays):
        """Returns the output and the log-sum-exp, both in the accumulator type."""
        if self._is_partial:
            query = query.astype(np.float32)
        key, value, key_positions = block
        return self._kernels["attention"](
            query, key, value, *self._capture(positions, key_positions, arrays))

    def differentiate(self, inputs, block, results, gradients):
        """Returns the gradients of query, key and value, and of captured arrays of
        floats, all in the accumulator type."""
        query, positions, arrays = inputs
        key, value, key_positions = block
        captured = self._capture(positions, key_positions, arrays)
        arguments = (query, key, value, *results, *gradients, *captured)
        of_arrays = []
        for number, place in enumerate(self._places):
            name = name_array_gradient(number)
            if place is None and name in self._kernels:
                of_arrays.append(self._kernels[name](*arguments))
        return *(one.astype(results[1].dtype)
                 for one in self._kernels[GRADIENT](*arguments)), tuple(of_arrays)

    def list_gradients(self, arrays, given: Sequence[Any]) -> list[Any]:
        """Returns the gradient of each captured array, of those that there are."""
        rest, result = iter(given), []
        numbers = [number for number, place in enumerate(self._places) if place is None]
        for number, array in zip(numbers, arrays):
            if name_array_gradient(number) in self._kernels:
                result.append(next(rest).astype(array.dtype))
            elif jnp.issubdtype(array.dtype, jnp.floating):
                result.append(jnp.zeros_like(array))
            else:
                result.append(np.zeros(array.shape, jax.dtypes.float0))
        return result


def _merge(first, second):
    """Merges two results, in the accumulator type."""
    (output, lse), (other, other_lse) = first, second
    both = jnp.logaddexp(lse, other_lse)
    # Without keys, all three are minus infinity.
    shift = jnp.where(jnp.isneginf(both), 0.0, both)
    return (jnp.exp(lse - shift)[..., None] * output
            + jnp.exp(other_lse - shift)[..., None] * other), both


def _make_attention(part: _Part, ring: _Ring) -> Callable:
    """Returns the function of query, key, value, positions and captured arrays."""
    @jax.custom_vjp
    def attend(query, key, value, positions, arrays):
        def compute(block):
            output, lse = part.attend(query, block, positions, arrays)
            return output.astype(lse.dtype), lse

        def step(carry, _):
            block, results = carry
            # The next block travels while this one is used.
            after = ring.move(block)
            return (after, _merge(results, compute(block))), None

        block = key, value, positions
        if ring.size == 1:
            output, lse = compute(block)
            return output.astype(query.dtype), lse
        after = ring.move(block)
        carry = after, compute(block)
        (block, results), _ = jax.lax.scan(step, carry, length=ring.size - 2)
        output, lse = _merge(results, compute(block))
        return output.astype(query.dtype), lse

    def forward(query, key, value, positions, arrays):
        results = attend(query, key, value, positions, arrays)
        return results, (query, key, value, positions, arrays, results)

    def backward(residuals, cotangents):
        query, key, value, positions, arrays, results = residuals
        inputs = query, positions, arrays
        given = cotangents[0].astype(query.dtype), cotangents[1].astype(results[1].dtype)
        # Weights follow from the log-sum-exp of all keys, so that each block gives its
        # part of the gradients. Those of keys and values travel with them.
        block = key, value, positions
        of_query, *sums, of_arrays = part.differentiate(inputs, block, results, given)

        def step(carry, _):
            block, of_query, sums, of_arrays = carry
            block, sums = ring.move((block, sums))
            first, *parts, last = part.differentiate(inputs, block, results, given)
            return (block, of_query + first,
                    [total + one for total, one in zip(sums, parts)],
                    tuple(total + one for total, one in zip(of_arrays, last))), None

        carry = block, of_query, sums, of_arrays
        (_, of_query, sums, of_arrays), _ = jax.lax.scan(
            step, carry, length=ring.size - 1)
        of_key, of_value = ring.move(sums) if ring.size > 1 else sums
        return (of_query.astype(query.dtype), of_key.astype(key.dtype),
                of_value.astype(value.dtype),
                np.zeros(positions.shape, jax.dtypes.float0),
                part.list_gradients(arrays, of_arrays))

    attend.defvjp(forward, backward)
    return attend


def ring_attention(query: jax.Array, key: jax.Array, value: jax.Array, *,
                   axis_name: str | tuple[str, ...], positions: jax.Array | None = None,
                   is_causal: bool = True, score_mod: Callable | None = None,
                   mask_mod: Callable | None = None, scale: float | None = None,
                   enable_gqa: bool = False, return_lse: bool = False
                   ) -> jax.Array | tuple[jax.Array, jax.Array]:
    """Attention of a sequence whose tokens are divided among the devices of an axis, to
    be called under `jax.shard_map`.

    query, key, value: the tokens of this device, [batch, heads, tokens, channels], as for
        `posenc.flex_attention`
    axis_name: the axis of the mesh, or a tuple of axes
    positions: integers [tokens] or [batch, tokens], the positions of these tokens in the
        whole sequence, in any order (default: device r has the tokens that follow those
        of device r - 1)
    is_causal: a query sees no keys of later positions
    score_mod, mask_mod: as for `flex_attention`, of positions instead of indices
    scale: the factor of scores (default: the channels' number to the power -1/2)
    enable_gqa: allows several query heads for a key head

    Returns the output of this device, and with return_lse also its log-sum-exp. Query,
    key, value and captured arrays have gradients. Raises Error for arguments that are no
    arrays of JAX or do not fit each other, and outside of `jax.shard_map`.
    """
    for name, array in (("query", query), ("key", key), ("value", value)):
        if not isinstance(array, jax.Array) or array.ndim != 4:
            raise Error(f"{_NAME}: expected {name} as an array of JAX [batch, heads, "
                        "tokens, channels]")
    try:
        ring = _Ring(axis_name)
        rank = jax.lax.axis_index(axis_name)
    except NameError:
        raise Error(f"{_NAME}: there is no axis {axis_name!r}: call it under "
                    "jax.shard_map, with an axis of the mesh that divides the "
                    "tokens") from None
    batch, tokens = query.shape[0], query.shape[2]
    if positions is None:
        positions = rank * tokens + jnp.arange(tokens)
    if not jnp.issubdtype(positions.dtype, jnp.integer):
        raise Error(f"{_NAME}: positions have elements of type {positions.dtype}, "
                    "expected integers")
    if positions.ndim == 1:
        positions = jnp.broadcast_to(positions, (batch, *positions.shape))
    expected = batch, tokens
    if positions.shape != expected or tokens != key.shape[2]:
        raise Error(f"{_NAME}: positions have the shape {positions.shape} and key has "
                    f"{key.shape[2]} tokens, expected {expected} and {tokens}: queries "
                    "and keys are of the same tokens")
    if positions.dtype not in (np.int32, np.int64):
        positions = positions.astype(np.int32)
    if not batch or not tokens:  # on all devices
        output = jnp.zeros((*query.shape[:3], value.shape[3]), query.dtype)
        sums = jnp.promote_types(query.dtype, np.float32)
        output, lse = vary([output, jnp.zeros(query.shape[:3], sums)], [query])
        return (output, lse) if return_lse else output
    # Other arrays, by which those of the call are told apart.
    own, others = jnp.add(positions, 0), jnp.add(positions, 0)
    options = RingOptions(score_mod, mask_mod, is_causal, scale, enable_gqa)
    part = _Part(prepare_part(query, key, value, own, others, options), own, others)
    like = query, key, value, positions
    query, key, value, positions = vary(like, [*like, rank])
    output, lse = _make_attention(part, ring)(
        query, key, value, positions, vary(part.arrays, [query]))
    return (output, lse) if return_lse else output
