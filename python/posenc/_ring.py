# ===- _ring.py - attention across processes --------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""`posenc.torch.ring_attention`: attention of a sequence whose tokens are divided among the
processes of a group.

Each process has the queries, keys and values of some tokens. Keys and values travel around
the ring while those at hand are used; results are merged by their log-sum-exp in f32.
Gradients of keys and values travel with them and are home after the last step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _resolve_process_group

from ._errors import Error
from ._flex._ring_call import RingOptions, prepare_part, replace_query
from ._flex._torch_operator import attend, differentiate

_NAME = "ring_attention"


class _Part(NamedTuple):
    """What each process tells the others before tensors are sent, whose sizes they could
    not agree on later."""

    error: str | None  # why its arguments are wrong
    tokens: int = 0
    facts: dict[str, Any] = {}  # what all processes have in common, by name


class _Ring:
    """Sends tensors to the next process and receives those of the one before. Raises the
    same error in all processes if the arguments of one are wrong, or if they disagree."""

    def __init__(self, group, part: _Part):
        self.group = group
        self.size, self.rank = dist.get_world_size(group), dist.get_rank(group)
        self._next = dist.get_global_rank(group, (self.rank + 1) % self.size)
        self._previous = dist.get_global_rank(group, (self.rank - 1) % self.size)
        parts: list[Any] = [None] * self.size
        with self._explain():
            dist.all_gather_object(parts, part, group)
        _compare(parts)
        self.counts = [part.tokens for part in parts]

    def get_tokens(self, step: int) -> int:
        """Returns the number of keys that are here after some steps."""
        return self.counts[(self.rank - step) % self.size]

    def start(self, tensors: Sequence[torch.Tensor], step: int) -> _Transfer:
        """Sends tensors [..., tokens, last] or [batch, tokens] of a step. Returns a
        transfer that gives those of the next step. Nothing is sent for no tokens, nor by
        a process to itself."""
        if self.size == 1:
            return _Transfer(self, [], list(tensors), [])
        count = self.get_tokens(step + 1)
        received = []
        for tensor in tensors:
            shape = list(tensor.shape)
            shape[1 if tensor.dim() == 2 else -2] = count
            received.append(tensor.new_empty(shape))
        operations = [dist.P2POp(dist.isend, tensor.contiguous(), self._next, self.group)
                      for tensor in tensors if self.get_tokens(step)]
        operations += [dist.P2POp(dist.irecv, tensor, self._previous, self.group)
                       for tensor in received if count]
        with self._explain():
            requests = dist.batch_isend_irecv(operations) if operations else []
            return _Transfer(self, requests, received, operations)

    def _explain(self):
        return _Explained(self.rank, self.size)


def _compare(parts: Sequence[_Part]) -> None:
    """Raises an error for a process whose arguments are wrong or unlike those of the
    first one."""
    for rank, part in enumerate(parts):
        if part.error is not None:
            raise Error(f"{_NAME}: process {rank} of {len(parts)}: {part.error}")
    for rank, part in enumerate(parts):
        for name, value in part.facts.items():
            first = parts[0].facts[name]
            if value != first:
                raise Error(f"{_NAME}: the {name} of process {rank} of {len(parts)} is "
                            f"{value}, and that of process 0 is {first}: only the number "
                            "of tokens may differ between processes")


class _Explained:
    """Words failures of communication as errors of the call."""

    def __init__(self, rank: int, size: int):
        self._rank, self._size = rank, size

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, RuntimeError):
            raise Error(f"{_NAME}: process {self._rank} of {self._size} lost another one "
                        f"of the group, or its time ran out: {error}") from None


class _Transfer(NamedTuple):
    ring: _Ring
    requests: list[Any]
    received: list[torch.Tensor]
    operations: list[Any]  # They keep what is sent.

    def finish(self) -> list[torch.Tensor]:
        with _Explained(self.ring.rank, self.ring.size):
            for request in self.requests:
                request.wait()
        return self.received


def _merge(output, lse, other, other_lse):
    """Merges two results, in the type of the log-sum-exp."""
    if output is None:
        return other.to(other_lse.dtype), other_lse
    both = torch.logaddexp(lse, other_lse)
    # Without keys, all three are minus infinity.
    shift = torch.where(both == -torch.inf, 0.0, both)
    factors = (torch.exp(one - shift)[..., None] for one in (lse, other_lse))
    return sum(factor * one for factor, one in
               zip(factors, (output, other.to(output.dtype)))), both


def _has_pairs(query: torch.Tensor, key: torch.Tensor) -> bool:
    """Whether there is a pair of a query and a key."""
    return bool(query.shape[0] and query.shape[2] and key.shape[2])


def _run(query, key, value, positions, options: RingOptions,
         ring: _Ring) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the output and its log-sum-exp."""
    output = lse = wide = None
    block = [key, value, positions]
    for step in range(ring.size):
        transfer = ring.start(block, step) if step + 1 < ring.size else None
        if _has_pairs(query, block[0]):
            call = prepare_part(query, block[0], block[1], positions, block[2], options)
            if call.signature.is_partial:
                wide = query.float() if wide is None else wide
                call = replace_query(call, wide)
            output, lse = _merge(output, lse, *attend(call))
        if transfer is not None:
            block = transfer.finish()
    if output is None or lse is None:  # There are no pairs of a query and a key.
        output = query.new_zeros((*query.shape[:3], value.shape[3]))
        lse = torch.full(query.shape[:3], -torch.inf, device=query.device,
                         dtype=torch.promote_types(query.dtype, torch.float32))
    return output.to(query.dtype), lse


def _run_backward(saved, grad_output, grad_lse, options: RingOptions,
                  ring: _Ring) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns the gradients of query, key and value. `saved` are these, the positions, and
    what `_run` returned."""
    query, key, value, positions, output, lse = saved
    if grad_output is None:
        grad_output = torch.zeros_like(output)
    if grad_lse is None:
        grad_lse = torch.zeros_like(lse)
    grad_query = torch.zeros_like(query, dtype=lse.dtype)
    block = [key, value, positions]
    sums = [torch.zeros_like(one, dtype=lse.dtype) for one in (key, value)]
    for step in range(ring.size):
        # Weights follow from the log-sum-exp of all keys, so that each block gives its
        # part of the gradients.
        if _has_pairs(query, block[0]):
            call = prepare_part(query, block[0], block[1], positions, block[2], options)
            parts = differentiate(call, output, lse, grad_output, grad_lse)
            grad_query += parts[0]
            sums = [total + part for total, part in zip(sums, parts[1:])]
        moved = [*block, *sums] if step + 1 < ring.size else sums
        *block, first, second = ring.start(moved, step).finish()
        sums = [first, second]
    return (grad_query.to(query.dtype), sums[0].to(key.dtype), sums[1].to(value.dtype))


class _RingAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, positions, options: RingOptions, ring: _Ring):
        output, lse = _run(query, key, value, positions, options, ring)
        ctx.save_for_backward(query, key, value, positions, output, lse)
        ctx.options, ctx.ring = options, ring
        ctx.set_materialize_grads(False)
        return output, lse

    @staticmethod
    def backward(ctx, grad_output, grad_lse):
        return (*_run_backward(ctx.saved_tensors, grad_output, grad_lse, ctx.options,
                               ctx.ring), None, None, None)


# In a graph of torch.compile, the whole ring is one operator. It has the name of the group,
# as operators have no arguments of groups.


@torch.compiler.assume_constant_result
def _find_name(group: Any) -> str:
    world: Any = dist.group.WORLD
    return (world if group is None else group).group_name


def _find_group(name: str) -> Any:
    # Names have a type of their own, which older PyTorch does not have.
    resolve: Any = _resolve_process_group
    return resolve(name)


@torch.library.custom_op("posenc::ring_attention", mutates_args=())
def _operator(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
              positions: torch.Tensor | None, is_causal: bool, scale: float | None,
              enable_gqa: bool, group: str) -> tuple[torch.Tensor, torch.Tensor]:
    options = RingOptions(None, None, is_causal, scale, enable_gqa)
    ring, positions = _meet(query, key, value, positions, options,
                            _find_group(group))
    output, lse = _run(query, key, value, positions, options, ring)
    return output.contiguous(), lse.contiguous()


@_operator.register_fake
def _(query, key, value, positions, is_causal, scale, enable_gqa, group):
    # A wrong number of dimensions is an error of all processes when the operator runs.
    shape = (*query.shape[:3], *value.shape[3:4])
    return (query.new_empty(shape), query.new_empty(
        query.shape[:3], dtype=torch.promote_types(query.dtype, torch.float32)))


@torch.library.custom_op("posenc::ring_attention_backward", mutates_args=())
def _backward_operator(
        query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
        positions: torch.Tensor | None, output: torch.Tensor, lse: torch.Tensor,
        grad_output: torch.Tensor, grad_lse: torch.Tensor, is_causal: bool,
        scale: float | None, enable_gqa: bool,
        group: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    options = RingOptions(None, None, is_causal, scale, enable_gqa)
    ring, positions = _meet(query, key, value, positions, options,
                            _find_group(group))
    query_part, key_part, value_part = _run_backward(
        (query, key, value, positions, output, lse), grad_output, grad_lse, options, ring)
    return query_part.contiguous(), key_part.contiguous(), value_part.contiguous()


@_backward_operator.register_fake
def _(query, key, value, *_):
    return tuple(torch.empty_like(one, memory_format=torch.contiguous_format)
                 for one in (query, key, value))


def _setup_context(ctx, inputs, output):
    *tensors, ctx.is_causal, ctx.scale, ctx.enable_gqa, ctx.group = inputs
    ctx.save_for_backward(*tensors, *output)


def _differentiate(ctx, grad_output, grad_lse):
    gradients = _backward_operator(
        *ctx.saved_tensors, grad_output, grad_lse, ctx.is_causal, ctx.scale, ctx.enable_gqa,
        ctx.group)
    return (*gradients, *[None] * 5)


# The other processes wait for this one also where a graph does not use the results.
for _one in (torch.ops.posenc.ring_attention, torch.ops.posenc.ring_attention_backward):
    torch.fx.node.has_side_effect(_one.default)

_operator.register_autograd(_differentiate, setup_context=_setup_context)


def ring_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *,
                   positions: torch.Tensor | None = None, is_causal: bool = True,
                   score_mod: Callable | None = None, mask_mod: Callable | None = None,
                   scale: float | None = None, enable_gqa: bool = False, group: Any = None,
                   return_lse: bool = False
                   ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Attention of a sequence whose tokens are divided among the processes of a group of
    torch.distributed. All processes call it at the same time.

    query, key, value: the tokens of this process, [batch, heads, tokens, channels], as
        for `posenc.flex_attention`; processes may have different numbers of tokens
    positions: i64 [tokens] or [batch, tokens], the positions of these tokens in the whole
        sequence, in any order (default: process r has the tokens that follow those of
        process r - 1)
    is_causal: a query sees no keys of later positions
    score_mod, mask_mod: as for `flex_attention`, of positions instead of indices
    scale: the factor of scores (default: the channels' number to the power -1/2)
    enable_gqa: allows several query heads for a key head
    group: the processes (default: all of them)

    Returns the output of this process, and with return_lse also its log-sum-exp. Query, key
    and value have gradients.

    Raises Error in all processes if the arguments of one of them are wrong, or have other
    heads, channels or types. A process that is lost is an error when the time-out of the
    group is over.
    """
    if not dist.is_initialized():
        raise Error(f"{_NAME}: there is no group of processes: call "
                    "torch.distributed.init_process_group first")
    if torch.compiler.is_compiling() and score_mod is None and mask_mod is None:
        output, lse = _operator(query, key, value, positions, is_causal, scale, enable_gqa,
                                _find_name(group))
        return (output, lse) if return_lse else output
    group = group if group is not None else dist.group.WORLD
    options = RingOptions(score_mod, mask_mod, is_causal, scale, enable_gqa)
    ring, positions = _meet(query, key, value, positions, options, group)
    output, lse = _RingAttention.apply(query, key, value, positions, options, ring)
    return (output, lse) if return_lse else output


def _meet(query, key, value, positions, options: RingOptions,
          group) -> tuple[_Ring, torch.Tensor]:
    """Compares the arguments of all processes. Returns the ring, and the positions of the
    tokens of this process, i64 [batch, tokens]."""
    # No process may leave before all know that it does, as the others would wait for it.
    try:
        part = _check(query, key, value, positions, options)
    except Error as error:
        part = _Part(str(error).removeprefix("flex_attention: "))
    ring = _Ring(group, part)
    if positions is None:
        first = sum(ring.counts[:ring.rank])
        positions = torch.arange(first, first + query.shape[2], device=query.device)
    if positions.dim() == 1:
        positions = positions.expand(query.shape[0], -1)
    return ring, positions.to(torch.int64).contiguous()


def _check(query, key, value, positions, options: RingOptions) -> _Part:
    """Checks the arguments of this process."""
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if not isinstance(tensor, torch.Tensor) or tensor.dim() != 4:
            raise Error(f"expected {name} as a tensor [batch, heads, tokens, channels]")
    batch, heads, tokens, dim = query.shape
    if key.shape[2] != tokens or value.shape[2] != tokens or key.shape[0] != batch:
        raise Error(f"key has the shape {tuple(key.shape)} and value {tuple(value.shape)}, "
                    f"expected a batch of {batch} and {tokens} tokens: queries and keys "
                    "are of the same tokens")
    if positions is None:
        positions = torch.arange(tokens, device=query.device)
    if not isinstance(positions, torch.Tensor) or positions.is_floating_point():
        raise Error("expected positions as a tensor of integers")
    expected = [(tokens,), (batch, tokens)]
    if tuple(positions.shape) not in expected:
        raise Error(f"positions have the shape {tuple(positions.shape)}, expected "
                    f"{expected[0]} or {expected[1]}")
    if positions.dim() == 1:
        positions = positions.expand(batch, -1)
    if not tokens:  # As with one token.
        query, key, value = (one.new_zeros((*one.shape[:2], 1, one.shape[3]))
                             for one in (query, key, value))
        positions = positions.new_zeros((batch, 1))
    if batch:
        prepare_part(query, key, value, positions.to(torch.int64), positions, options)
    return _Part(None, tokens, {
        "batch": batch, "number of heads": heads, "number of key heads": key.shape[1],
        "number of channels": dim, "number of value channels": value.shape[3],
        "type": str(query.dtype).removeprefix("torch."), "is_causal": options.is_causal,
        "scale": options.scale})
