# ===- test_flex_gradients.py - gradients of flex_attention ----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Gradients of `flex_attention` by hidden rows, and by captured tensors."""

import pytest

torch = pytest.importorskip("torch")

import posenc  # noqa: E402
from flex_variants import attend_dense, causal  # noqa: E402
from posenc._flex import _plan  # noqa: E402
from test_flex import make, measure  # noqa: E402


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setitem(_plan.compile_options, "opt_level", 0)
    torch.manual_seed(0)


@pytest.mark.parametrize("heads, dtype", [(2, torch.float32), (8, torch.bfloat16)])
def test_hidden_rows(heads, dtype):
    """What hidden rows hold does not reach any gradient."""
    bias = torch.randn(150, requires_grad=True)

    def differentiate(query, key, value, factors):
        inputs = [x.clone().requires_grad_() for x in (query, key, value)]
        output = posenc.flex_attention(
            *inputs, lambda s, b, h, i, j: torch.tanh(s) + bias[j],
            mask_mod=lambda b, h, i, j: (j < 100) & (i < 140) & (j <= i))
        return output, *torch.autograd.grad(output, [*inputs, bias], factors)

    inputs = [make(150, heads, dtype=dtype, seed=seed) for seed in range(4)]
    expected = differentiate(*inputs)
    for number in (float("nan"), float("inf")):
        others = [x.clone() for x in inputs]
        for one, first in zip(others, (140, 100, 100, 140)):
            one[:, :, first:] = number
        for one, other in zip(differentiate(*others), expected):
            assert torch.equal(one, other)
    # Rows that are seen do.
    inputs[1][:, :, 99] = float("nan")
    assert differentiate(*inputs)[1].isnan().any()
