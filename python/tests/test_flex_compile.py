# ===- test_flex_compile.py - flex_attention in graphs of PyTorch ---------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""`flex_attention` under torch.compile, torch.export and autocast, and in the place of
PyTorch's own."""

import warnings

import pytest

torch = pytest.importorskip("torch")

import posenc  # noqa: E402
import posenc.torch  # noqa: E402
from flex_variants import attend_dense, causal  # noqa: E402
from posenc._flex import _plan  # noqa: E402
from test_flex import HEADS, make, measure  # noqa: E402


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setitem(_plan.compile_options, "opt_level", 0)
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    posenc.torch.replace_flex_attention(False)


def test_compile(monkeypatch):
    """One graph with functions that it defines itself, for all lengths and documents,
    with gradients."""
    bias = torch.randn(HEADS, 300, requires_grad=True)
    shift = torch.tensor(2)

    @torch.compile(fullgraph=True, dynamic=True, backend="aot_eager")
    def function(q, k, document, bias):
        last = k.shape[2] - 5

        def score_mod(s, b, h, i, j):
            return s + bias[h, (i - j).abs()]

        def mask_mod(b, h, i, j):
            return (document[i] == document[j]) & (i + shift >= j) & (j < last)

        return posenc.flex_attention(q * 2, k, k, score_mod, mask_mod=mask_mod,
                                     return_lse=True)

    def expected(q, k, document, bias):
        return attend_dense(q.double() * 2, k.double(), k.double(), lambda s, b, h, i, j: (
            s + bias[h, (i - j).abs()]), lambda b, h, i, j: (
            document[i] == document[j]) & (i + 2 >= j) & (j < k.shape[2] - 5))

    for tokens in (70, 80, 90):
        q, k = make(tokens).requires_grad_(), make(tokens, seed=1)
        document = torch.arange(tokens) // 25
        output, lse = function(q, k, document, bias)
        wanted, wanted_lse = expected(q, k, document, bias)
        # Rows without keys have no finite logarithm.
        assert torch.equal(lse == -torch.inf, wanted_lse == -torch.inf)
        assert measure(output, wanted) < 2e-6
        some = lse > -torch.inf
        assert measure(lse[some], wanted_lse[some]) < 2e-6
        for one, other in zip(torch.autograd.grad(output.sum(), [q, bias]),
                              torch.autograd.grad(wanted.sum(), [q, bias])):
            assert measure(one, other.double()) < 1e-5
    torch._dynamo.config.error_on_recompile = True
    try:
        function(make(77).requires_grad_(), make(77), torch.arange(77), bias)
    finally:
        torch._dynamo.config.error_on_recompile = False


def test_compile_with_block_masks():
    from torch.nn.attention.flex_attention import create_block_mask

    x = make(128)
    mask_mod = posenc.and_masks(causal, lambda b, h, i, j: i - j < 20)
    function = torch.compile(posenc.flex_attention, fullgraph=True, backend="aot_eager")
    expected, _ = attend_dense(*3 * [x.double()], mask_mod=mask_mod)
    for mask in (create_block_mask(mask_mod, None, None, 128, 128, device="cpu",
                                   BLOCK_SIZE=32),
                 posenc.create_block_mask(mask_mod, None, None, 128, 128)):
        assert measure(function(x, x, x, block_mask=mask), expected) < 2e-6


def test_floats_that_change():
    """A float becomes an input when its second value comes."""
    x, kernels = make(40), len(_plan.compile_text.results)

    def function(x, factor, size, scale):
        return posenc.flex_attention(x, x, x, lambda s, b, h, i, j: s * factor + j * factor,
                                     mask_mod=lambda b, h, i, j: i - j <= size, scale=scale)

    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    for factor, size in ((0.5, 3), (0.7, 3), (0.9, 4), (1.1, 5), (1.3, 6)):
        if factor > 1:
            torch._dynamo.config.error_on_recompile = True
        try:
            output = compiled(x.requires_grad_(), factor, size, 0.3)
        finally:
            torch._dynamo.config.error_on_recompile = False
        expected, _ = attend_dense(
            *3 * [x.double()], lambda s, b, h, i, j: (s + j) * factor,
            lambda b, h, i, j: i - j <= size, scale=0.3)
        assert measure(output, expected) < 2e-6
    # Numbers that are constants, and such that are inputs, as floats and as both.
    assert len(_plan.compile_text.results) <= kernels + 3
    for scale in (0.4, 0.5):
        expected, _ = attend_dense(*3 * [x.double()], lambda s, b, h, i, j: s + j,
                                   lambda b, h, i, j: i - j <= 3, scale=scale)
        assert measure(compiled(x, 1.0, 3, scale), expected) < 2e-6


def test_inductor():
    x = make(40)
    function = torch.compile(
        lambda x: posenc.flex_attention(x, x, x, mask_mod=causal).relu(), fullgraph=True)
    expected, _ = attend_dense(*3 * [x.double()], mask_mod=causal)
    assert measure(function(x), expected.relu()) < 2e-6


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(HEADS, 200))

    def forward(self, x):
        return posenc.flex_attention(
            x, x, x, lambda s, b, h, i, j: s + self.bias[h, (i - j).abs()],
            mask_mod=causal)


@pytest.mark.parametrize("strict", [False, True])
def test_export(strict):
    module, x = Attention(), make(70)
    program = torch.export.export(
        module, (x,), dynamic_shapes=({2: torch.export.Dim("tokens", min=16, max=200)},),
        strict=strict)
    for tokens in (70, 33):
        y = make(tokens, seed=tokens)
        assert torch.equal(program.module()(y), module(y))


def test_autocast():
    x = make(70)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = posenc.flex_attention(x, x, x, mask_mod=causal)
    assert output.dtype == torch.bfloat16
    assert torch.equal(output, posenc.flex_attention(*3 * [x.bfloat16()], mask_mod=causal))


def test_replace():
    from torch.nn.attention import flex_attention as module

    original = module.flex_attention
    posenc.torch.replace_flex_attention()
    assert module.flex_attention is not original
    x = make(70).requires_grad_()
    mask = module.create_block_mask(causal, None, None, 70, 70, device="cpu")
    assert isinstance(mask, posenc.BlockMask) and isinstance(mask, module.BlockMask)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        output = module.flex_attention(x, x, x, block_mask=mask)
    expected, _ = attend_dense(*3 * [x.double()], mask_mod=causal)
    assert measure(output, expected) < 2e-6
    output.sum().backward()  # PyTorch's own has no gradient on CPUs.
    # What PyTorch compiles calls the kernels, too.
    for function, input in ((original, x.detach()), (module.flex_attention, x)):
        compiled = torch.compile(function, backend="aot_eager")
        assert torch.equal(compiled(input, input, input, block_mask=mask), output)
    # Other calls are PyTorch's.
    with pytest.warns(posenc.CompileWarning, match="has no expression"):
        x = x.detach()
        module.flex_attention(x, x, x, lambda s, b, h, i, j: torch.lgamma(s))
    posenc.torch.replace_flex_attention(False)
    assert module.flex_attention is original


def test_transformers():
    transformers = pytest.importorskip("transformers")
    import transformers.integrations.flex_attention as integration

    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(transformers.Gemma2Config(
        vocab_size=50, hidden_size=32, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=16, sliding_window=9),
        attn_implementation="eager").eval()
    tokens, mask = torch.randint(1, 50, (2, 30)), torch.ones(2, 30, dtype=torch.int64)
    mask[0, :5] = 0
    with torch.no_grad():
        expected = model(tokens, attention_mask=mask).logits
        model.set_attn_implementation("flex_attention")
        posenc.torch.replace_flex_attention()
        with warnings.catch_warnings():
            warnings.simplefilter("error", posenc.CompileWarning)
            actual = model(tokens, attention_mask=mask).logits
            written = model.generate(tokens, attention_mask=mask, max_new_tokens=4,
                                     do_sample=False)
        posenc.torch.replace_flex_attention(False)
        model.set_attn_implementation("eager")
        assert integration.flex_attention is torch.nn.attention.flex_attention.flex_attention
        assert (actual - expected)[mask.bool()].abs().max() < 1e-5
        assert torch.equal(written, model.generate(
            tokens, attention_mask=mask, max_new_tokens=4, do_sample=False))
