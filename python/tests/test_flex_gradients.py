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
    # Visible rows do.
    inputs[1][:, :, 99] = float("nan")
    assert differentiate(*inputs)[1].isnan().any()


def test_captured_tensors():
    """Indexed by the head, by the query, by neither, and by nothing: parts of gradients are
    those of tasks, and do not depend on the number of threads."""
    tokens = 150
    shapes = {"head": (4, tokens), "late_head": (tokens, 6), "query": (3, tokens + 3),
              "neither": (tokens,), "number": ()}
    tensors = {name: torch.randn(shape, dtype=torch.float64, requires_grad=True)
               for name, shape in shapes.items()}

    def score_mod(s, b, h, i, j):
        of = tensors
        return (s * of["number"] + of["head"][h, (i - j).abs()] * of["head"][h, -1 - j]
                + of["late_head"][j, h] + of["query"][j % 3, i]
                + of["neither"][(i - j).abs()] * of["neither"][j])

    inputs = [make(tokens, heads, 2, torch.float64, seed, 8)
              for seed, heads in enumerate((4, 2, 2))]
    expected = torch.autograd.grad(attend_dense(*inputs, score_mod, causal)[0].square().sum(),
                                   list(tensors.values()))
    output = posenc.flex_attention(*inputs, score_mod, mask_mod=causal, enable_gqa=True)
    runs, count = [], torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            runs.append(torch.autograd.grad(output.square().sum(), list(tensors.values()),
                                            retain_graph=True))
    finally:
        torch.set_num_threads(count)
    for actual, *others, wanted in zip(*runs, expected):
        assert measure(actual, wanted) < 1e-13
        assert all(torch.equal(actual, other) for other in others)


def test_gradients_of_gradients():
    x = make(9, 2).requires_grad_()
    output = posenc.flex_attention(x, x, x)
    gradient, = torch.autograd.grad(output.sum(), x, create_graph=True)
    with pytest.raises(posenc.Error, match="flex_attention: gradients of gradients are not"):
        gradient.sum().backward()
