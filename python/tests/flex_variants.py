# ===- flex_variants.py - public functions of scores and masks ----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The variants of attention that PyTorch's examples of FlexAttention and attention-gym
have, by their names there, written for functions of scalars, which also compute dense
scores when their arguments are broadcast."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch


class Variant(NamedTuple):
    """Functions for sequences of some length."""

    score_mod: Callable | None
    mask_mod: Callable | None


def causal(b, h, q, k):
    return q >= k


def make_variants(tokens: int, heads: int, batch: int = 1) -> dict[str, Variant]:
    """Returns variants by name. Their sizes are fractions of `tokens`."""
    generator = torch.Generator().manual_seed(0)
    window = max(tokens // 16, 4)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
    relative = random(heads, 2 * tokens)
    per_query = random(tokens, tokens)
    prefix = torch.randint(1, tokens // 2, (batch,), generator=generator)
    document = torch.randint(0, 6, (tokens,), generator=generator).sort().values
    starts = torch.stack([(document < one).sum() for one in range(6)])
    lengths = torch.randint(tokens // 2, tokens, (batch,), generator=generator)
    width = max(int(tokens ** 0.5), 1)
    images = torch.randint(0, 4, (tokens,), generator=generator).sort().values
    gates = random(heads)
    question = torch.randint(0, 4, (tokens,), generator=generator).sort().values
    buckets = random(heads, 32)

    def sliding_window(b, h, q, k):
        return (q >= k) & (q - k <= window)

    def prefix_lm(b, h, q, k):
        return (k <= prefix[b]) | (q >= k)

    def document_mask(b, h, q, k):
        return (document[q] == document[k]) & (q >= k)

    def document_relative(score, b, h, q, k):
        # The bias of ALiBi, of positions within a document.
        return score - slopes[h] * ((q - starts[document[q]]) - (k - starts[document[k]]))

    def neighbourhood(b, h, q, k):
        rows, columns = (q // width - k // width).abs(), (q % width - k % width).abs()
        return (rows <= 3) & (columns <= 3)

    def tiled_neighbourhood(b, h, q, k):
        # Tokens are in the order of 4 x 4 tiles of an image.
        side = max(width // 4, 1)
        q_row, q_column = q // 16 // side * 4 + q % 16 // 4, q // 16 % side * 4 + q % 4
        k_row, k_column = k // 16 // side * 4 + k % 16 // 4, k // 16 % side * 4 + k % 4
        return ((q_row - k_row).abs() <= 3) & ((q_column - k_column).abs() <= 3)

    def dilated(b, h, q, k):
        difference = q - k
        return ((difference >= 0) & (difference <= 4 * window)
                & (difference % 4 == 0))

    def global_window(b, h, q, k):
        return ((q - k).abs() <= window) | (k < 4) | (q < 4)

    def streaming(b, h, q, k):
        return (q >= k) & ((q - k <= window) | (k < 4))

    def stand_alone(b, h, q, k):
        return ((q // window) - (k // window)).abs() <= 1

    def transfusion(b, h, q, k):
        return (q >= k) | ((images[q] == images[k]) & (images[q] % 2 == 1))

    def flamingo(b, h, q, k):
        # Text sees the image that precedes it.
        return images[q] == k * 4 // tokens

    def share_question(b, h, q, k):
        same = question[q] == question[k]
        return (q >= k) & (same | (question[k] == 0))

    def padding(b, h, q, k):
        return (k < lengths[b]) & (q >= k)

    def soft_cap(score, b, h, q, k):
        return 20 * torch.tanh(score / 20)

    def alibi(score, b, h, q, k):
        return score + slopes[h] * (k - q)

    def relative_bias(score, b, h, q, k):
        return score + relative[h, q - k + tokens]

    def relative_positional(score, b, h, q, k):
        return score + (q - k)

    def dense_bias(score, b, h, q, k):
        return score + per_query[q, k]

    def squared_relu(score, b, h, q, k):
        return torch.relu(score) ** 2

    def temperature(score, b, h, q, k):
        return score * torch.sigmoid(gates[h]) * (1 + 0.1 * torch.log(1.0 + q // window))

    def t5_buckets(score, b, h, q, k):
        distance = (q - k).clamp(min=0)
        far = 16 + (torch.log(distance.clamp(min=1) / 16) / 2.1 * 16).to(torch.int32)
        bucket = torch.where(distance < 16, distance, far.clamp(max=31))
        return score + buckets[h, bucket]

    def checkerboard(score, b, h, q, k):
        score = torch.where((k - q).abs() == 1, score * 0.5, score)
        return torch.where(k == q, score * 2.0, score)

    return {
        "noop": Variant(None, None),
        "causal": Variant(None, causal),
        "sliding_window": Variant(None, sliding_window),
        "prefix_lm": Variant(None, prefix_lm),
        "document": Variant(None, document_mask),
        "document_alibi": Variant(document_relative, document_mask),
        "natten": Variant(None, neighbourhood),
        "tiled_natten": Variant(None, tiled_neighbourhood),
        "dilated_window": Variant(None, dilated),
        "global_window": Variant(None, global_window),
        "attention_sinks": Variant(None, streaming),
        "stand_alone": Variant(None, stand_alone),
        "transfusion": Variant(None, transfusion),
        "flamingo": Variant(None, flamingo),
        "share_question": Variant(None, share_question),
        "padding": Variant(None, padding),
        "soft_cap": Variant(soft_cap, causal),
        "alibi": Variant(alibi, causal),
        "relative_bias": Variant(relative_bias, causal),
        "relative_positional": Variant(relative_positional, None),
        "dense_bias": Variant(dense_bias, None),
        "squared_relu": Variant(squared_relu, causal),
        "temperature": Variant(temperature, causal),
        "t5_buckets": Variant(t5_buckets, causal),
        "checkerboard": Variant(checkerboard, causal),
    }


def attend_dense(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                 score_mod: Callable | None = None, mask_mod: Callable | None = None,
                 scale: float | None = None) -> tuple[Any, Any]:
    """Returns attention and its log-sum-exp, of all scores at once in the tensors'
    type."""
    group = query.shape[1] // key.shape[1]
    key, value = (one.repeat_interleave(group, 1) for one in (key, value))
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    b, h, q, k = (torch.arange(size, dtype=torch.int32).reshape(
        [-1 if dim == one else 1 for one in range(4)])
        for dim, size in enumerate(scores.shape))
    if score_mod is not None:
        scores = score_mod(scores, b, h, q, k)
    if mask_mod is not None:
        scores = torch.where(mask_mod(b, h, q, k), scores, -torch.inf)
    scores = scores.expand(*query.shape[:3], key.shape[2])
    lse = scores.logsumexp(-1)
    hidden = (scores == -torch.inf).all(-1, keepdim=True)
    weights = torch.where(hidden, 0.0, torch.where(hidden, 0.0, scores).softmax(-1))
    return weights @ value, lse
