# ===- test_flex_results.py - further results of flex_attention -----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The largest scores that `flex_attention` returns."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import posenc  # noqa: E402
from flex_variants import causal  # noqa: E402
from posenc._flex import _plan  # noqa: E402
from test_flex import HEADS, make  # noqa: E402


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setitem(_plan.compile_options, "opt_level", 0)
    torch.manual_seed(0)


class Request:
    """What frameworks without a type for it may pass as `return_aux`."""

    lse = max_scores = True


def find_max(query, key, score_mod, mask_mod):
    group = query.shape[1] // key.shape[1]
    scores = query.double() @ key.double().repeat_interleave(group, 1).mT
    scores = scores * query.shape[-1] ** -0.5
    pair = torch.meshgrid(*map(torch.arange, scores.shape), indexing="ij")
    scores = torch.where(mask_mod(*pair), score_mod(scores, *pair), -torch.inf)
    return scores.max(-1).values


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_max_scores(dtype):
    """After score_mod and mask_mod, and minus infinity without keys; no gradient."""
    from torch.nn.attention.flex_attention import AuxRequest

    bias = torch.randn(HEADS, requires_grad=True)

    def score_mod(s, b, h, i, j):
        return torch.tanh(s) * 3 + bias[h]

    def mask_mod(b, h, i, j):
        return (i >= j + 2) & (j != 65)

    def call(q, k):
        return posenc.flex_attention(
            q, k, k, score_mod, mask_mod=mask_mod, enable_gqa=True,
            return_aux=AuxRequest(lse=True, max_scores=True))

    compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
    torch._dynamo.reset()
    key = make(150, 2, 2, dtype, seed=1)
    for tokens in (150, 3):
        query = make(tokens, batch=2, dtype=dtype).requires_grad_()
        expected = find_max(query, key, score_mod, mask_mod).detach()
        shown = expected > -torch.inf
        assert (~shown).sum() == 4 * HEADS  # Two queries of two sequences.
        for function in (call, compiled):
            output, auxiliary = function(query, key)
            actual = auxiliary.max_scores
            assert not actual.requires_grad and actual.dtype == auxiliary.lse.dtype
            assert torch.equal(actual > -torch.inf, shown)
            assert (actual - expected)[shown].abs().max() < 2e-6
            assert output.requires_grad
    with torch.no_grad():
        wrong = find_max(query, key, score_mod, causal)
        assert (wrong - expected).abs().max() > 1e-3


@pytest.mark.parametrize("framework", ["numpy", "jax.numpy"])
def test_max_scores_of_other_frameworks(framework):
    xp = pytest.importorskip(framework)
    query, key = make(70), make(70, seed=1)

    def call(q, k):
        output, auxiliary = posenc.flex_attention(
            q, k, k, lambda s, b, h, i, j: s * 2, mask_mod=causal, return_aux=Request)
        return (output ** 2).sum(), auxiliary.max_scores

    functions = [call]
    if framework == "jax.numpy":
        import jax

        functions += [jax.jit(call), jax.jit(jax.grad(call, has_aux=True))]
    expected = find_max(query, key, lambda s, b, h, i, j: s * 2, causal)
    for function in functions:
        _, actual = function(xp.asarray(query.numpy()), xp.asarray(key.numpy()))
        assert np.abs(np.asarray(actual) - expected.numpy()).max() < 2e-6
