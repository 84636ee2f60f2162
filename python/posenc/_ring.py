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

from ._errors import Error
from ._flex._ring_call import RingOptions, prepare_part, replace_query
from ._flex._torch_operator import attend, differentiate

_NAME = "ring_attention"


class _Ring:
    """Sends tensors to the next process and receives those of the one before."""

    def __init__(self, group, tokens: int, device):
        self.group = group
        self.size, self.rank = dist.get_world_size(group), dist.get_rank(group)
        self._next = dist.get_global_rank(group, (self.rank + 1) % self.size)
        self._previous = dist.get_global_rank(group, (self.rank - 1) % self.size)
        counts = [torch.empty(1, dtype=torch.int64, device=device)
                  for _ in range(self.size)]
        with self._explain():
            dist.all_gather(counts, torch.tensor([tokens], device=device), group)
        self.counts = [int(count) for count in counts]

    def get_tokens(self, step: int) -> int:
        """Returns the number of keys that are here after some steps."""
        return self.counts[(self.rank - step) % self.size]

    def start(self, tensors: Sequence[torch.Tensor], step: int) -> _Transfer:
        """Sends tensors [..., tokens, last] or [batch, tokens] of a step. Returns a
        transfer that gives those of the next step."""
        count = self.get_tokens(step + 1)
        received = []
        for tensor in tensors:
            shape = list(tensor.shape)
            shape[1 if tensor.dim() == 2 else -2] = count
            received.append(tensor.new_empty(shape))
        operations = [dist.P2POp(dist.isend, tensor.contiguous(), self._next, self.group)
                      for tensor in tensors]
        operations += [dist.P2POp(dist.irecv, tensor, self._previous, self.group)
                       for tensor in received]
        with self._explain():
            return _Transfer(self, dist.batch_isend_irecv(operations), received,
                             operations)

    def _explain(self):
        return _Explained(self.rank, self.size)


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


class _RingAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, positions, options: RingOptions, group):
        ring = _Ring(group, key.shape[2], query.device)
        output = lse = wide = None
        block = [key, value, positions]
        for step in range(ring.size):
            transfer = ring.start(block, step) if step + 1 < ring.size else None
            call = prepare_part(query, block[0], block[1], positions, block[2], options)
            if call.signature.is_partial:
                wide = query.float() if wide is None else wide
                call = replace_query(call, wide)
            output, lse = _merge(output, lse, *attend(call))
            if transfer is not None:
                block = transfer.finish()
        assert output is not None and lse is not None
        output = output.to(query.dtype)
        ctx.save_for_backward(query, key, value, positions, output, lse)
        ctx.options, ctx.ring = options, ring
        ctx.set_materialize_grads(False)
        return output, lse

    @staticmethod
    def backward(ctx, grad_output, grad_lse):
        query, key, value, positions, output, lse = ctx.saved_tensors
        options, ring = ctx.options, ctx.ring
        if grad_output is None:
            grad_output = torch.zeros_like(output)
        if grad_lse is None:
            grad_lse = torch.zeros_like(lse)
        grad_query = torch.zeros_like(query, dtype=lse.dtype)
        block = [key, value, positions]
        sums = [torch.zeros_like(one, dtype=lse.dtype) for one in (key, value)]
        for step in range(ring.size):
            # Weights follow from the log-sum-exp of all keys, so that each block gives
            # its part of the gradients.
            call = prepare_part(query, block[0], block[1], positions, block[2], options)
            parts = differentiate(call, output, lse, grad_output, grad_lse)
            grad_query += parts[0]
            sums = [total + part for total, part in zip(sums, parts[1:])]
            moved = [*block, *sums] if step + 1 < ring.size else sums
            *block, first, second = ring.start(moved, step).finish()
            sums = [first, second]
        return (grad_query.to(query.dtype), sums[0].to(key.dtype),
                sums[1].to(value.dtype), None, None, None)


def ring_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *,
                   positions: torch.Tensor | None = None, is_causal: bool = True,
                   score_mod: Callable | None = None, mask_mod: Callable | None = None,
                   scale: float | None = None, enable_gqa: bool = False, group: Any = None,
                   return_lse: bool = False):
    """Attention of a sequence whose tokens are divided among the processes of a group of
    torch.distributed. All processes call it at the same time.

    query, key, value: the tokens of this process, [batch, heads, tokens, channels], as
        for `posenc.flex_attention`; processes may have different numbers of tokens
    positions: i64 [tokens] or [batch, tokens], the positions of these tokens in the whole
        sequence, in any order (default: process r has the tokens that follow those of
        process r - 1)
    is_causal: a query sees no keys of later positions
    score_mod, mask_mod: as for `flex_attention`, of positions instead of indices
    group: the processes (default: all of them)

    Returns the output of this process, and with return_lse also its log-sum-exp. Query, key
    and value have gradients. A process that is lost is an error when the time-out of the
    group is over.
    """
    if not dist.is_initialized():
        raise Error(f"{_NAME}: there is no group of processes: call "
                    "torch.distributed.init_process_group first")
    group = group if group is not None else dist.group.WORLD
    if positions is None:
        first = _count_before(group, query.shape[2], query.device)
        positions = torch.arange(first, first + query.shape[2], device=query.device)
    if positions.dim() == 1:
        positions = positions.expand(query.shape[0], -1)
    expected = (query.shape[0], query.shape[2])
    if tuple(positions.shape) != expected or query.shape[2] != key.shape[2]:
        raise Error(f"{_NAME}: positions have the shape {tuple(positions.shape)} and key "
                    f"has {key.shape[2]} tokens, expected {expected} and "
                    f"{query.shape[2]}: queries and keys are of the same tokens")
    options = RingOptions(score_mod, mask_mod, is_causal, scale, enable_gqa)
    output, lse = _RingAttention.apply(
        query, key, value, positions.to(torch.int64).contiguous(), options, group)
    return (output, lse) if return_lse else output


def _count_before(group, tokens: int, device) -> int:
    """Returns the number of tokens of the processes before this one."""
    ring = _Ring(group, tokens, device)
    return sum(ring.counts[:ring.rank])
