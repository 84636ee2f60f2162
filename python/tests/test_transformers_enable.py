# ===- test_transformers_enable.py - enable and disable ----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""What `posenc.transformers.enable` changes in a model, and that it can be undone; and
inputs of the attention that few models have."""

import copy
import threading
import warnings

import pytest

import posenc

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import posenc.transformers  # noqa: E402
from posenc._once import once  # noqa: E402
from test_transformers import (  # noqa: E402
    generate, is_close, logits, make_model, make_tokens)

enable, disable = posenc.transformers.enable, posenc.transformers.disable


def compute(model, tokens):
    with torch.no_grad():
        return model(tokens).logits


def test_again_and_copied():
    model, tokens = make_model(), make_tokens()
    expected = logits(model, tokens, "eager")
    for other in (enable(model), enable(model, "hf_f32"), enable(copy.deepcopy(model))):
        assert is_close(compute(other, tokens), expected)
        assert "forward" in vars(other.model.rotary_emb)


def test_disable():
    model, tokens = make_model(), make_tokens()
    expected = logits(model, tokens, "eager")
    before = set(vars(model)), set(vars(model.model.rotary_emb))
    assert disable(enable(model), "eager") is model
    assert (set(vars(model)), set(vars(model.model.rotary_emb))) == before
    assert torch.equal(compute(model, tokens), expected)
    assert torch.equal(generate(model, tokens), generate(make_model(), tokens))


def test_training_with_another_attention():
    """The gradients of an enabled model are those of the model."""
    tokens, gradients = make_tokens(), []
    for prepare in (lambda model: model, enable):
        model = prepare(make_model())
        model.set_attn_implementation("eager")
        model(tokens, labels=tokens).loss.backward()
        gradients.append(model.model.layers[0].self_attn.q_proj.weight.grad)
    assert is_close(gradients[1], gradients[0])


class Derived(transformers.LlamaForCausalLM):
    """A model of another file than that of its rotary embedding."""


def test_what_is_replaced():
    model = Derived(make_model().config)
    assert "forward" in vars(enable(model).model.rotary_emb)
    # Frequencies that are not those of the config, in the slow pairs only.
    model = make_model(rope_parameters={"rope_type": "default", "rope_theta": 1e7})
    model.model.rotary_emb.inv_freq[-2:] *= 3
    with pytest.warns(UserWarning, match="LlamaForCausalLM keeps its rotations: its"):
        enable(model)
    with pytest.warns(UserWarning, match="keeps its rotations: .* depend$"):
        enable(make_model(rope_parameters={
            "rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}), "hf_f32")
    with pytest.raises(posenc.Error, match="unknown precision 'f64'"):
        enable(model, "f64")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        enable(make_model("Bloom", n_head=4))  # It has no rotations.
    assert [str(warning.message) for warning in caught] == [
        "BloomForCausalLM keeps its attention: it is not one that transformers can replace"]
    with pytest.raises(posenc.Error, match="no gradients: call the model under"):
        enable(make_model())(make_tokens())


def make_small(name):
    experts = dict(num_local_experts=2, num_experts_per_tok=1)
    return make_model(name, **(experts if name == "GptOss" else {}))


@pytest.mark.parametrize("name", ["Llama", "Gemma2", "GptOss"])
def test_static_cache(name):
    """`generate` copies the masks of static caches."""
    model, tokens = make_small(name), make_tokens()
    expected = generate(model, tokens)
    actual = enable(model, "hf_f32").generate(
        tokens, max_new_tokens=24, do_sample=False, cache_implementation="static",
        disable_compile=True)
    assert torch.equal(actual, expected)


@pytest.mark.parametrize("name", ["Gemma2", "GptOss"])
def test_f64(name):
    model = make_small(name).double()
    model.set_experts_implementation("eager")
    tokens = make_tokens()
    expected = logits(model, tokens, "eager")
    # Eager models compute the softmax in f32.
    assert is_close(logits(model, tokens, "posenc"), expected, 1e-6)


class Logits(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        return self.model(tokens, use_cache=False).logits


def test_a_traced_model():
    """The record has the attention and the tables of the kernels."""
    module, tokens = Logits(enable(make_model())), make_tokens(1)
    with torch.no_grad():
        traced = torch.jit.trace(module, tokens, check_trace=False)
        assert is_close(traced(tokens.flip(1)), module(tokens.flip(1)))
    assert str(traced.inlined_graph).count("posenc::call") == 4


class Module(torch.nn.Module):
    """A layer of a model of this file, which has no masks of bool."""


class Model(transformers.PreTrainedModel):
    _supports_sdpa = False


def test_inputs_of_attention():
    random = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(2, heads, tokens, 16, generator=random)
               for heads, tokens in ((4, 5), (2, 9), (2, 9)))
    mask = torch.rand(2, 1, 5, 9, generator=random) < .7
    mask[..., 0] = True

    def check(q, k, v, mask, module=None):
        actual = posenc.transformers.attention(module or torch.nn.Linear(1, 1), q, k, v,
                                               mask)[0]
        expected = torch.nn.functional.scaled_dot_product_attention(
            q.expand(2, -1, -1, -1), k, v, mask, enable_gqa=True)
        assert is_close(actual, expected.transpose(1, 2))

    check(q, k, v, mask)
    check(*(x.mT.contiguous().mT for x in (q, k, v, mask)))
    check(q[:1], k, v, mask[:1])
    check(q, k, v, mask[:, :, :1])
    check(q, k, v, mask[:, :, :, :1].expand(-1, -1, -1, 9))
    with pytest.raises(posenc.Error, match="9 queries and 5 keys: pass a mask"):
        posenc.transformers.attention(torch.nn.Linear(1, 1), k, q[:, :2], q[:, :2], None)
    with pytest.raises(posenc.Error, match="Module changes them as masks of floats"):
        check(q, k, v, mask, Module())


def test_threads_wait_for_the_same_result_only():
    started, may_end, calls = threading.Event(), threading.Event(), []

    @once
    def compute_slowly(key):
        calls.append(key)
        if key == "slow":
            started.set()
            assert may_end.wait(60)
        return key

    threads = [threading.Thread(target=compute_slowly, args=("slow",)) for _ in "ab"]
    for thread in threads:
        thread.start()
    assert started.wait(60) and compute_slowly("quick") == "quick"
    may_end.set()
    for thread in threads:
        thread.join()
    assert sorted(calls) == ["quick", "slow"]
