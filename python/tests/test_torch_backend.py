# ===- test_torch_backend.py - the backend of torch.compile -----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""`torch.compile(…, backend="posenc")`: what is replaced, what is left, and that results
are those of the model. POSENC_TEST_ALL_BACKEND_MODELS=1 tests more models."""

import math
import os

import pytest

torch = pytest.importorskip("torch")

import posenc._torch_backend as package  # noqa: E402
from posenc.torch import explain_backend  # noqa: E402

BATCH, HEADS, TOKENS, DIM = 2, 4, 9, 16
functional = torch.nn.functional


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Inductor takes long to compile what is not tested here: its place is taken by a
    compiler that runs graphs."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    explain_backend(clear=True)
    from torch._inductor import compile_fx

    original = compile_fx.compile_fx
    monkeypatch.setattr(compile_fx, "compile_fx", _run_graph)
    yield original
    torch._dynamo.reset()


def _run_graph(module, inputs):
    return module


def check(function, *inputs, ropes=0, attentions=0, left=None, bound=1e-5, **options):
    """Compares a compiled function with the function, and what was replaced with what is
    expected. `left` is a part of the only reason."""
    with torch.no_grad():
        result = torch.compile(function, backend="posenc", **options)(*inputs)
        expected = function(*inputs)
    torch.testing.assert_close(result, expected, rtol=bound, atol=bound)
    report = explain_backend()[-1]
    assert (report.count("rope"), report.count("attention")) == (ropes, attentions), (
        str(report))
    assert [one.text for one in report.left if left is None or left not in one.text] == []
    assert left is None or report.left, str(report)


def make(*shape):
    return torch.randn(shape or (BATCH, HEADS, TOKENS, DIM))


def rotate_half(x):
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


def double(angles):
    wide = torch.cat((angles, angles), -1)
    return wide.cos()[:, None], wide.sin()[:, None]


# ===----------------------------------------------------------------------===#
# Rotations
# ===----------------------------------------------------------------------===#


def rope_full(x, angles):
    cos, sin = double(angles)
    return x * cos + rotate_half(x) * sin


def rope_subtracted(x, angles):
    (cos, sin), (first, second) = double(angles), x.chunk(2, -1)
    return cos * x - sin * torch.cat((second, -first), -1)


def rope_halves(x, angles):
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    first, second = x[..., :DIM // 2], x[..., DIM // 2:]
    return torch.cat((first * cos - sin * second, first * sin + cos * second), -1)


def rope_neighbours(x, angles):
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


def rope_pairs(x, angles):
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


def rope_repeated(x, angles):
    wide = angles.repeat_interleave(2, -1)
    even, odd = x[..., ::2], x[..., 1::2]
    rotated = torch.stack((-odd, even), -1).flatten(-2)
    return x * wide.cos()[:, None] + rotated * wide.sin()[:, None]


def rope_window(x, angles):
    window, rest = x[..., :8], x[..., 8:]
    cos, sin = double(angles[..., :4])
    return torch.cat((window * cos + rotate_half(window) * sin, rest), -1)


def rope_heads_last(x, angles):
    cos, sin = double(angles)
    x, cos, sin = x.transpose(1, 2), cos.transpose(1, 2), sin.transpose(1, 2)
    return rotate_half(x) * sin + x * cos


@pytest.mark.parametrize("function", [
    rope_full, rope_subtracted, rope_halves, rope_neighbours, rope_pairs, rope_repeated,
    rope_window, rope_heads_last])
def test_rope(function):
    check(function, make(), make(BATCH, TOKENS, DIM // 2), ropes=1)


def test_rotated_window_is_one_kernel():
    check(rope_window, make(), make(BATCH, TOKENS, DIM // 2), ropes=1)
    assert f"8 of {DIM} channels" in str(explain_backend()[-1])


def test_tables_that_are_given():
    def function(x, cos, sin):
        return x * cos[:, None] + rotate_half(x) * sin[:, None]

    check(function, make(), *2 * [make(BATCH, TOKENS, DIM)],
          left="nothing in the graph shows")


def test_pairs_of_other_channels():
    def function(x, angles):
        wide = angles.repeat_interleave(2, -1)
        return x * wide.cos()[:, None] + rotate_half(x) * wide.sin()[:, None]

    check(function, make(), make(BATCH, TOKENS, DIM // 2), left="rotated together")


@pytest.mark.parametrize("other", ["both added", "swapped", "another tensor"])
def test_no_rope(other):
    """A sum in place of the difference, the halves in another order, and the halves of
    another tensor."""
    def function(x, angles):
        cos, sin = angles.cos()[:, None], angles.sin()[:, None]
        first, second = x.chunk(2, -1)
        if other == "both added":
            return torch.cat((first * cos + second * sin, first * sin + second * cos), -1)
        if other == "swapped":
            return torch.cat((second * cos - first * sin, second * sin + first * cos), -1)
        cos, sin = double(angles)
        return x * cos + rotate_half(x + 1) * sin

    check(function, make(), make(BATCH, TOKENS, DIM // 2))


def test_tables_by_head():
    def function(x, angles):
        cos, sin = double(angles[:, 0])
        wide = torch.cat((angles, angles), -1)
        return x * wide.cos() + rotate_half(x) * sin

    check(function, make(), make(BATCH, HEADS, TOKENS, DIM // 2), left="differ by head")


# ===----------------------------------------------------------------------===#
# Attentions
# ===----------------------------------------------------------------------===#


def seen():
    return torch.ones(TOKENS, TOKENS).tril().bool()


def sdpa_causal(q, k, v):
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3)


def sdpa_mask(q, k, v):
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=seen())


def sdpa_bias(q, k, v):
    bias = torch.arange(HEADS)[:, None, None] * torch.ones(TOKENS, TOKENS).tril(-2)
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def sdpa_groups(q, k, v):
    return functional.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True)


def spelled_fewer_queries(q, k, v):
    bias = torch.where(seen()[-3:], 0.0, torch.finfo(q.dtype).min)
    scores = q[:, :, -3:] @ k.transpose(2, 3) * 0.25 + bias
    return functional.dropout(scores.softmax(-1), 0.0) @ v


def spelled_hidden_row(q, k, v):
    """Where all keys have the least score, all have the same weight."""
    bias = torch.zeros(TOKENS, TOKENS)
    bias[3] = torch.finfo(q.dtype).min
    return (q @ k.transpose(2, 3) / 4 + bias).softmax(-1) @ v


def spelled_where(q, k, v):
    return torch.where(seen(), q @ k.transpose(2, 3), -math.inf).softmax(-1) @ v


def spelled_soft_cap(q, k, v):
    scores = torch.tanh(q @ k.transpose(2, 3) * 0.5 / 3.0) * 3.0
    return (scores + seen().float()).softmax(-1) @ v


def spelled_groups(q, k, v):
    def repeat(x):
        x = x[:, :2, None].expand(BATCH, 2, HEADS // 2, TOKENS, DIM)
        return x.reshape(BATCH, HEADS, TOKENS, DIM)

    return (q @ repeat(k).transpose(2, 3)).softmax(-1) @ repeat(v)


@pytest.mark.parametrize("function", [
    sdpa_causal, sdpa_mask, sdpa_bias, sdpa_groups, spelled_fewer_queries,
    spelled_hidden_row, spelled_where, spelled_soft_cap, spelled_groups])
def test_attention(function):
    check(function, make(), make(), make(), attentions=1)


def test_bf16():
    check(sdpa_causal, *(make().bfloat16() for _ in range(3)), attentions=1, bound=2e-2)


def test_autocast():
    with torch.autocast("cpu", torch.bfloat16):
        check(sdpa_causal, make(), make(), make(), attentions=1, bound=2e-2)


def left_queries(q, k, v):
    return functional.scaled_dot_product_attention(q[:, :, :5], k, v, is_causal=True)


def left_weights(q, k, v):
    weights = (q @ k.transpose(2, 3)).softmax(-1)
    return weights @ v, weights


def left_scaled_bias(q, k, v):
    return ((q @ k.transpose(2, 3) + seen().float()) * 0.25).softmax(-1) @ v


def left_other_axis(q, k, v):
    return (q @ k.transpose(2, 3)).softmax(-2) @ v


def left_fill(q, k, v):
    return torch.where(seen(), q @ k.transpose(2, 3), -1e4).softmax(-1) @ v


def left_negative(q, k, v):
    return (q @ k.transpose(2, 3) * -0.5).softmax(-1) @ v


@pytest.mark.parametrize("function, reason", [
    (left_queries, "other numbers of queries and keys"),
    (left_weights, "have another user"), (left_scaled_bias, "is not known"),
    (left_other_axis, "not over the keys"), (left_fill, "set to a value"),
    (left_negative, "no positive number")])
def test_attention_left(function, reason):
    check(function, make(), make(), make(), left=reason)


def test_mutation():
    """A cache that the graph writes is written."""
    def function(q, k, v, cache):
        cache[:, :, 2:] = k
        return functional.scaled_dot_product_attention(q, cache, v)

    cache = torch.zeros(BATCH, HEADS, TOKENS + 2, DIM)
    k = make()
    with torch.no_grad():
        torch.compile(function, backend="posenc")(make(), k, cache + 1, cache)
    assert explain_backend()[-1].count("attention") == 1
    assert torch.equal(cache[:, :, 2:], k) and not cache[:, :, :2].any()


# ===----------------------------------------------------------------------===#
# Graphs
# ===----------------------------------------------------------------------===#


def attend(x, angles):
    q = rope_full(x, angles)
    return functional.scaled_dot_product_attention(q, q, x, is_causal=True)


def differentiate(function, *inputs):
    """Returns the result of a function, and the gradients of the inputs that need one."""
    copies = [one.detach().clone().requires_grad_(one.requires_grad) for one in inputs]
    torch.manual_seed(1)
    result = function(*copies)
    result.float().square().sum().backward()
    return result.detach(), [one.grad for one in copies if one.requires_grad]


def check_gradients(function, *inputs, ropes=0, attentions=0, left=(), backward=None,
                    bound=1e-5, **options):
    """Compares gradients of a compiled function with those of the function, and what was
    replaced with what is expected; `backward` are ropes and attentions of the backward
    part."""
    compiled = torch.compile(function, backend="posenc", **options)
    result, gradients = differentiate(compiled, *inputs)
    expected, others = differentiate(function, *inputs)
    torch.testing.assert_close(result, expected, rtol=bound, atol=bound)
    for gradient, other in zip(gradients, others):
        if other is None:
            assert gradient is None
            continue
        assert not gradient.isnan().any()
        torch.testing.assert_close(gradient, other, rtol=bound,
                                   atol=bound * float(other.abs().max()))
    reports = explain_backend()
    parts = {part: [report for report in reports if report.part == part]
             for part in ("forward", "backward")}
    assert [sum(report.count(kind) for report in parts["forward"])
            for kind in ("rope", "attention")] == [ropes, attentions], reports
    assert [one.text for report in parts["forward"] for one in report.left
            if one.text not in left] == []
    assert bool(parts["backward"]) == (backward is not None), reports
    if backward is not None:
        report, = parts["backward"]
        assert (report.count("rope"), report.count("attention")) == backward, report


def leaf(*shape):
    return make(*shape).requires_grad_()


ANGLES = (BATCH, TOKENS, DIM // 2)


@pytest.mark.parametrize("dtype, bound", [
    (torch.float32, 1e-5), (torch.float64, 1e-12), (torch.bfloat16, 3e-2)])
def test_gradients(dtype, bound):
    check_gradients(attend, make().to(dtype).requires_grad_(), make(*ANGLES).to(dtype),
                    ropes=1, attentions=1, fullgraph=True, bound=bound)


def test_gradients_of_angles():
    check_gradients(attend, leaf(), leaf(*ANGLES), ropes=1, attentions=1)


def test_fault_in_gradients(monkeypatch):
    """The comparison notices wrong values that are kept for the gradient."""
    from posenc._torch_backend import _kernels

    original = _kernels.write_attention

    def write(of):
        return original(of._replace(scale=of.scale * 1.01))

    monkeypatch.setattr(_kernels, "write_attention", write)
    with pytest.raises(AssertionError):
        check_gradients(sdpa_causal, leaf(2, 1, 5, 8), leaf(2, 1, 5, 8),
                        leaf(2, 1, 5, 8), attentions=1)


def sdpa_wide_bias(q, k, v):
    bias = torch.ones(1, HEADS, TOKENS, TOKENS).tril(-2)
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)


@pytest.mark.parametrize("function", [
    sdpa_causal, sdpa_mask, sdpa_wide_bias, sdpa_groups])
def test_gradients_of_attention(function):
    check_gradients(function, leaf(), make(), leaf(), attentions=1)


def test_gradients_of_hidden_row():
    def function(q, k, v):
        mask = seen()
        mask[3] = False
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    check_gradients(function, leaf(), leaf(), leaf(), attentions=1)


def test_gradients_that_need_weights():
    reason = "the weights of keys have another user"
    check_gradients(spelled_where, leaf(), leaf(), leaf(), left=reason)
    torch._dynamo.reset()
    explain_backend(clear=True)

    def biased(q, k, v, bias):
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)

    check_gradients(biased, leaf(), make(), make(), leaf(TOKENS, TOKENS), left=reason)


def test_dropout():
    def function(q, k, v):
        return functional.scaled_dot_product_attention(q, k, v, dropout_p=0.5)

    check_gradients(function, leaf(), leaf(), leaf())


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoint(use_reentrant):
    """The backward part computes the attention again, by a kernel."""
    def function(x, angles):
        return torch.utils.checkpoint.checkpoint(
            attend, x, angles, use_reentrant=use_reentrant)

    check_gradients(function, leaf(), make(*ANGLES), ropes=1, attentions=1,
                    backward=(1, 1))


def test_checkpoint_with_dropout(fresh, monkeypatch):
    """Random numbers that are computed again are the same. The graph is Inductor's."""
    from torch._inductor import compile_fx

    monkeypatch.setattr(compile_fx, "compile_fx", fresh)

    def function(x, angles, factor):
        return torch.utils.checkpoint.checkpoint(
            lambda x, factor: functional.dropout(attend(x, angles) * factor, 0.5), x,
            factor, use_reentrant=False)

    factor = torch.tensor(1.0, requires_grad=True)
    x, angles = make(), make(*ANGLES)
    result = torch.compile(function, backend="posenc")(x, angles, factor).sum()
    result.backward()
    torch.testing.assert_close(factor.grad, result.detach(), rtol=1e-4, atol=1e-4)
    assert "dropout" in str(explain_backend()[-1])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_strides_of_results(order):
    """What the forward part keeps has the strides that the backward part expects."""
    kept = torch.empty(2, 3, 4).permute(order)
    wide = torch.empty(1, 4).expand(3, 4)  # Nothing is known of overlapping elements.
    values = [kept, wide, None]
    result = torch.randn(kept.shape)
    results = package._keep_strides(lambda *given: given, values)(result, wide + 1, 7)
    assert results[0].stride() == kept.stride() and torch.equal(results[0], result)
    assert results[1].stride() == (4, 1) and results[2] == 7


def test_graph_break():
    def function(x, angles):
        y = attend(x, angles)
        torch._dynamo.graph_break()
        return attend(y, angles)

    check_gradients(function, leaf(), make(*ANGLES), ropes=2, attentions=2)


def test_gradients_under_autocast():
    def function(x, weight, angles):
        with torch.autocast("cpu", torch.bfloat16):
            y = x @ weight
            return functional.scaled_dot_product_attention(y, y, y, is_causal=True)

    check_gradients(function, leaf(), leaf(DIM, DIM), make(*ANGLES), attentions=1,
                    bound=3e-2)


def test_parts_without_gradients():
    """Values that nothing differentiates have no gradient, as in the function."""
    def function(x, weight, angles):
        with torch.no_grad():
            y = attend(x @ weight, angles)
        return y * attend(x.detach(), angles) * x

    check_gradients(function, leaf(), leaf(DIM, DIM), make(*ANGLES), ropes=2,
                    attentions=2)


def test_gradients_of_dynamic_sizes():
    compiled = torch.compile(attend, backend="posenc")
    for batch, tokens in ((2, 9), (3, 11), (4, 7)):
        inputs = leaf(batch, HEADS, tokens, DIM), make(batch, tokens, DIM // 2)
        result, gradients = differentiate(compiled, *inputs)
        expected, others = differentiate(attend, *inputs)
        torch.testing.assert_close(result, expected)
        torch.testing.assert_close(gradients, others, rtol=1e-5, atol=1e-4)
    reports = explain_backend()
    assert len(reports) == 2  # The second has sizes that are symbols.
    assert all(one.count("rope") == one.count("attention") == 1 for one in reports)


def test_training_and_evaluation():
    """Buffers are written, and the trained module is compiled again for inference."""
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm2d(HEADS)
            self.linear = torch.nn.Linear(DIM, DIM)

        def forward(self, x, angles):
            return attend(self.norm(self.linear(x)), angles)

    block = Block()
    copy = Block()
    copy.load_state_dict(block.state_dict())
    compiled = torch.compile(block, backend="posenc")
    x, angles = make(), make(*ANGLES)
    for _ in range(2):
        for module, called in ((block, compiled), (copy, copy)):
            module.zero_grad()
            called(x, angles).square().mean().backward()
            with torch.no_grad():
                for parameter in module.parameters():
                    parameter -= 0.1 * parameter.grad
    torch.testing.assert_close(block.state_dict(), copy.state_dict())
    block.eval()
    copy.eval()
    with torch.no_grad():
        torch.testing.assert_close(compiled(x, angles), copy(x, angles))
    assert [one.part for one in explain_backend()] == ["forward", "inference"]
    compiled(x, angles).sum().backward()
    assert explain_backend()[-1].part == "forward"


def test_options(monkeypatch):
    """Modes and options are those of Inductor."""
    from torch._inductor import compile_fx

    given = []

    def record(module, inputs, **options):
        given.append(options)
        return module

    monkeypatch.setattr(compile_fx, "compile_fx", record)
    for options in ({"mode": "max-autotune-no-cudagraphs"},
                    {"options": {"epilogue_fusion": True}}):
        torch._dynamo.reset()
        check_gradients(attend, leaf(), make(*ANGLES), ropes=1, attentions=1, **options)
        explain_backend(clear=True)
    assert len(given) == 4  # Forward and backward.
    assert given[0]["config_patches"]["max_autotune"] is True
    assert given[3]["config_patches"] == {"epilogue_fusion": True}
    for options in ({"mode": "none"}, {"options": {"none": 1}}):
        torch._dynamo.reset()
        with pytest.raises(Exception, match="Unrecognized mode|Unexpected optimization"):
            torch.compile(attend, backend="posenc", **options)(make(), make(*ANGLES))


def test_no_grad_inside():
    """Weights that require a gradient where nothing records one."""
    weight = torch.nn.Parameter(make(DIM, DIM))

    @torch.compile(backend="posenc")
    def function(x, angles):
        with torch.no_grad():
            return attend(x @ weight, angles)

    x, angles = make(), make(BATCH, TOKENS, DIM // 2)
    torch.testing.assert_close(function(x, angles), attend(x @ weight, angles).detach())


def test_dynamic():
    compiled = torch.compile(attend, backend="posenc", dynamic=True)
    for batch, tokens in ((2, 9), (3, 11), (4, 7)):
        x, angles = make(batch, HEADS, tokens, DIM), make(batch, tokens, DIM // 2)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x, angles), attend(x, angles))


def test_inductor(fresh, monkeypatch):
    """The rest is compiled by Inductor."""
    from torch._inductor import compile_fx

    monkeypatch.setattr(compile_fx, "compile_fx", fresh)
    check(attend, make(), make(BATCH, TOKENS, DIM // 2), ropes=1, attentions=1,
          fullgraph=True)

    def function(x, angles):
        # Inductor gives the keys other strides than PyTorch.
        keys = torch.cat((x[:, :, :0], rope_full(x, angles)), 2)
        return functional.scaled_dot_product_attention(keys, keys, x, is_causal=True)

    explain_backend(clear=True)
    torch._dynamo.reset()
    check_gradients(function, leaf(), make(*ANGLES), ropes=1, attentions=1)


def test_entry_point():
    """An installed package is found without an import of it."""
    assert callable(package.backend)
    assert "posenc" in torch._dynamo.list_backends(exclude_tags=())


# ===----------------------------------------------------------------------===#
# Models
# ===----------------------------------------------------------------------===#

SIZES = {"vocab_size": 64, "hidden_size": 64, "intermediate_size": 64,
         "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64}
GROUPS = {**SIZES, "num_key_value_heads": 2, "head_dim": 16}
MODELS = [("llama", "sdpa", GROUPS), ("gemma2", "eager", GROUPS),
          ("gptj", "eager", {"vocab_size": 64, "n_embd": 64, "n_layer": 2, "n_head": 4,
                             "n_positions": 64, "rotary_dim": 8})]
if os.environ.get("POSENC_TEST_ALL_BACKEND_MODELS"):
    MODELS += [("llama", "eager", GROUPS), ("qwen3", "sdpa", GROUPS),
               ("qwen3", "eager", GROUPS), ("gpt_neox", "sdpa", SIZES),
               ("gpt_neox", "eager", SIZES)]


@pytest.mark.parametrize("name, attention, sizes", MODELS)
def test_model(name, attention, sizes):
    """All rotations and attentions of the model of 2 layers are replaced, with padding
    and without."""
    transformers = pytest.importorskip("transformers")
    config = transformers.AutoConfig.for_model(name, **sizes, attn_implementation=attention)
    model = transformers.AutoModel.from_config(config).eval()
    compiled = torch.compile(model, backend="posenc")
    tokens = torch.randint(64, (2, 10))
    mask = torch.ones_like(tokens)
    mask[0, :3] = 0
    for options in ({}, {"attention_mask": mask}):
        with torch.no_grad():
            result, expected = (one(tokens, use_cache=False, **options).last_hidden_state
                                for one in (compiled, model))
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
    assert len(explain_backend()) == 2
    for report in explain_backend():
        assert (report.count("rope"), report.count("attention")) == (4, 2), str(report)
        assert not report.left, str(report)


@pytest.mark.parametrize("name, sizes, ropes", [
    ("llama", GROUPS, 4), ("gpt_neox", SIZES, 4),
    ("bert", {**SIZES, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}, 0)])
@pytest.mark.parametrize("checkpoints", [False, True])
def test_training(name, sizes, ropes, checkpoints):
    transformers = pytest.importorskip("transformers")
    config = transformers.AutoConfig.for_model(name, **sizes, attn_implementation="sdpa")
    models = [transformers.AutoModel.from_config(config).train() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    if checkpoints:
        for model in models:
            model.gradient_checkpointing_enable({"use_reentrant": False})
    tokens = torch.randint(64, (2, 10))
    for called in (torch.compile(models[0], backend="posenc"), models[1]):
        result = called(tokens, attention_mask=torch.ones_like(tokens))
        result.last_hidden_state.square().mean().backward()
    for one, other in zip(models[0].parameters(), models[1].parameters()):
        if other.grad is None:  # The pooler's result is not used.
            assert one.grad is None or not one.grad.any()
        else:
            torch.testing.assert_close(one.grad, other.grad, rtol=1e-5, atol=1e-6)
    report, *others = explain_backend()
    assert (report.count("rope"), report.count("attention")) == (ropes, 2), str(report)
    assert not report.left, str(report)
    # A checkpoint computes attentions again.
    assert [one.count("attention") for one in others] == [2] * checkpoints


def test_no_stale_parameters():
    """Updates in place, load_state_dict and a step of an optimizer take effect."""
    torch.manual_seed(7)

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = torch.nn.Linear(32, 96), torch.nn.Linear(32, 32)

        def forward(self, x):
            q, k, v = (part.view(1, 9, 2, 16).transpose(1, 2)
                       for part in self.qkv(x).chunk(3, -1))
            o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(o.transpose(1, 2).reshape(1, 9, 32))

    model, other, x = Block(), Block(), torch.randn(1, 9, 32)
    compiled = torch.compile(model, backend="posenc")
    results = []

    def check():
        with torch.no_grad():
            results.append(compiled(x))
            torch.testing.assert_close(results[-1], model(x), rtol=1e-5, atol=1e-5)

    check()
    with torch.no_grad():
        model.qkv.weight.mul_(2)
    check()
    model.load_state_dict(other.state_dict())
    check()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    compiled(x).square().sum().backward()
    optimizer.step()
    check()
    assert all((a - b).abs().max() > 1e-3 for a, b in zip(results, results[1:]))
