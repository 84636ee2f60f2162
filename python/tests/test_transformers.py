# ===- test_transformers.py - models of transformers -----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Small models with random weights: logits and tokens are those of "eager"."""

import os
import shutil

import pytest

import posenc

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import posenc.transformers  # noqa: E402
from posenc.transformers._attention import make_mask  # noqa: E402

SIZES = dict(vocab_size=128, hidden_size=64, intermediate_size=96, num_hidden_layers=3,
             num_attention_heads=4, num_key_value_heads=2, head_dim=16,
             max_position_embeddings=4096, pad_token_id=0, bos_token_id=1,
             eos_token_id=None)


needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None and "CXX" not in os.environ,
    reason="Inductor needs a C++ compiler")


def make_model(name="Llama", **options):
    torch.manual_seed(7)
    kind = name.replace("Gemma3", "Gemma3Text") + "Config"
    config = getattr(transformers, kind)(**{**SIZES, **options})
    model = getattr(transformers, name + "ForCausalLM")(config).eval()
    # Larger weights than the default make the attention matter.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(4)
    return model


def make_tokens(batch=2, tokens=37):
    random = torch.Generator().manual_seed(3)
    return torch.randint(2, 128, (batch, tokens), generator=random)


def logits(model, tokens, implementation, **options):
    model.set_attn_implementation(implementation)
    with torch.no_grad():
        return model(tokens, **options).logits


def is_close(actual, expected, bound=1e-4):
    return (actual - expected).abs().max() <= bound * expected.abs().max()


# The options of each model, and whether enable() replaces its rotations.
MODELS = {
    "Llama": ({}, True), "Qwen2": ({}, True), "Qwen3": ({}, True), "Mistral": ({}, True),
    "Gemma2": ({}, True), "Gemma3": ({"sliding_window": 8}, True), "Phi3": ({}, True),
    "Phi": ({}, True), "StableLm": ({}, True), "GPTNeoX": ({"rotary_pct": 0.5}, True),
    "Cohere": ({}, True), "Glm": ({"partial_rotary_factor": 0.5}, True),
    "GptOss": ({"num_local_experts": 2, "num_experts_per_tok": 1}, True),
    "DeepseekV3": (dict(
        num_key_value_heads=4, head_dim=8, q_lora_rank=32, kv_lora_rank=16,
        qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=16, n_routed_experts=4,
        n_group=1, topk_group=1, num_experts_per_tok=2, moe_intermediate_size=32,
        first_k_dense_replace=1), True),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    """Logits and tokens with the attention, and with the rotations."""
    options, is_replaced = MODELS[name]
    model = make_model(name, **options)
    tokens = make_tokens()
    expected = logits(model, tokens, "eager")
    generated = generate(model, tokens)
    assert is_close(logits(model, tokens, "posenc"), expected)
    # The check detects other tokens.
    assert not is_close(logits(model, tokens.roll(1, 1), "posenc"), expected)
    assert torch.equal(generate(model, tokens), generated)
    posenc.transformers.enable(model, precision="hf_f32")
    assert model.config._attn_implementation == "posenc"
    replaced = [part for part in model.modules() if "forward" in vars(part)]
    assert len(replaced) == is_replaced
    with torch.no_grad():
        assert is_close(model(tokens).logits, expected)
    assert torch.equal(generate(model, tokens), generated)


def check_padding(model, tokens):
    """The first of two prompts begins with 9 tokens of padding."""
    mask = torch.ones_like(tokens)
    mask[0, :9] = 0
    expected = logits(model, tokens, "eager", attention_mask=mask)
    actual = logits(model, tokens, "posenc", attention_mask=mask)
    assert is_close(actual[0, 9:], expected[0, 9:]) and is_close(actual[1], expected[1])


@pytest.mark.parametrize("name", ["Mistral", "Gemma2", "GptOss"])
def test_sliding_window(name):
    """Without padding, with it, and in parts, the last of them single tokens."""
    model = make_model(name, **{**MODELS[name][0], "sliding_window": 8})
    tokens = make_tokens()
    expected = logits(model, tokens, "eager")
    assert is_close(logits(model, tokens, "posenc"), expected)
    cache = transformers.DynamicCache(config=model.config)
    ends = [0, 5, 20, 29, 34, 35, 36, 37]
    with torch.no_grad():
        parts = [model(tokens[:, begin:end], cache=cache).logits
                 for begin, end in zip(ends, ends[1:])]
    assert is_close(torch.cat(parts, 1), expected)
    check_padding(model, tokens)


def test_masks():
    """Windows without padding have no masks; chunks and padded windows have."""
    masking_utils = transformers.masking_utils
    window = masking_utils.sliding_window_causal_mask_function(8)
    chunk = masking_utils.chunked_causal_mask_function(
        8, torch.zeros(2, dtype=torch.int64))
    whole = torch.ones((2, 40), dtype=torch.int64)
    padding = whole.clone()
    padding[1, 35] = 0
    for queries, keys in ((1, 8), (5, 12), (9, 9), (12, 19), (13, 29)):
        sizes = dict(batch_size=2, q_length=queries, kv_length=keys, local_size=8,
                     q_offset=40 - queries, kv_offset=40 - keys)
        for function, mask in ((window, None), (window, whole), (chunk, None),
                               (window, padding)):
            actual = make_mask(
                mask_function=function, attention_mask=mask, **sizes)
            if function is window and mask is not padding:
                assert actual is None if queries == 1 else actual._posenc_window == 8
            else:
                expected = masking_utils.sdpa_mask(
                    mask_function=function, attention_mask=mask, **sizes)
                # The last chunk of 40 tokens is the window of the last query.
                assert torch.equal(actual, expected) if actual is not None else (
                    queries == 1 and expected.all())


def test_masks_in_a_capture(monkeypatch):
    """While a CUDA graph records, no values of masks are looked at."""
    def refuse(*_):
        raise AssertionError("this would wait for the device")

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    monkeypatch.setattr(torch.Tensor, "all", refuse)
    monkeypatch.setattr(torch, "equal", refuse)
    window = transformers.masking_utils.sliding_window_causal_mask_function(8)
    for queries, keys in ((1, 8), (5, 12)):
        mask = make_mask(2, queries, keys, q_offset=40 - queries, kv_offset=40 - keys,
                         mask_function=window, local_size=8,
                         attention_mask=torch.ones((2, 40), dtype=torch.int64))
        assert mask.shape == (2, 1, queries, keys) and mask._is_of_posenc


def test_padding():
    check_padding(make_model(), make_tokens())


def test_cache():
    """Prefill, several tokens at once, then token by token."""
    model = make_model()
    tokens = make_tokens()
    expected = logits(model, tokens, "eager")
    model.set_attn_implementation("posenc")
    cache = transformers.DynamicCache(config=model.config)
    parts = []
    with torch.no_grad():
        for begin, end in ((0, 20), (20, 29), *((i, i + 1) for i in range(29, 37))):
            parts.append(model(tokens[:, begin:end], past_key_values=cache).logits)
    assert is_close(torch.cat(parts, 1), expected)


def generate(model, tokens):
    with torch.no_grad():
        return model.generate(tokens, max_new_tokens=24, do_sample=False)


def test_generate():
    model = make_model()
    tokens = make_tokens()
    model.set_attn_implementation("eager")
    expected = generate(model, tokens)
    assert len(set(expected[0, 37:].tolist())) > 4
    model.set_attn_implementation("posenc")
    assert torch.equal(generate(model, tokens), expected)


@pytest.mark.parametrize("parameters", [
    {"rope_type": "default", "rope_theta": 10000.0},
    {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
     "high_freq_factor": 4.0, "original_max_position_embeddings": 1024},
])
def test_enable(parameters):
    model = make_model(rope_parameters=parameters)
    tokens = make_tokens()
    # Positions at which the rounding of f32 shows.
    positions = torch.arange(37)[None] + 3000
    expected = logits(model, tokens, "eager", position_ids=positions)
    generated = generate(model, tokens)
    assert posenc.transformers.enable(model, precision="hf_f32") is model
    assert is_close(logits(model, tokens, "posenc", position_ids=positions), expected)
    assert torch.equal(generate(model, tokens), generated)
    cos, _ = model.model.rotary_emb(torch.empty(1), positions)
    assert cos._posenc_pairs.cos.shape == (1, 37, 8)
    # Other models are not affected.
    other = make_model(rope_parameters=parameters)
    assert torch.equal(logits(other, tokens, "eager", position_ids=positions), expected)


def test_bf16():
    model = make_model().bfloat16()
    tokens = make_tokens()
    expected = logits(model.float(), tokens, "eager")
    model.bfloat16()
    assert is_close(logits(model, tokens, "posenc").float(), expected, 0.1)


@pytest.mark.parametrize("backend, is_enabled", [
    ("aot_eager", False), pytest.param("inductor", True, marks=needs_compiler)])
def test_under_compile(backend, is_enabled):
    """The whole model is one graph, for any number of tokens."""
    torch.compiler.reset()
    model = make_model(num_hidden_layers=1)
    if is_enabled:
        posenc.transformers.enable(model, precision="hf_f32")
    model.set_attn_implementation("posenc")
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    for length in (37, 23, 50) if is_enabled else (37,):
        tokens = make_tokens(tokens=length)
        with torch.no_grad():
            expected = model(tokens, use_cache=False).logits
            assert is_close(compiled(tokens, use_cache=False).logits, expected, 1e-5)


def test_window_under_compile():
    """A window that comes from outside of what is compiled is not dropped."""
    q, k = (torch.randn(1, heads, 21, 16, generator=torch.Generator().manual_seed(heads))
            for heads in (4, 2))
    window = make_mask(1, 21, 21, local_size=5, mask_function=(
        transformers.masking_utils.sliding_window_causal_mask_function(5)))
    relative = torch.arange(21)[:, None] - torch.arange(21)

    def function(q, k, mask):
        return posenc.transformers.attention(torch.nn.Module(), q, k, k, mask)[0]

    expected = torch.nn.functional.scaled_dot_product_attention(
        q, k, k, attn_mask=(relative >= 0) & (relative < 5), enable_gqa=True)
    compiled = torch.compile(function, backend="aot_eager")
    for call in (function, compiled):
        assert is_close(call(q, k, window), expected.transpose(1, 2), 1e-5)
    # What is made of it is the mask itself.
    assert is_close(function(q, k, window.clone()), expected.transpose(1, 2), 1e-5)
    padded = torch.nn.functional.pad(window, (0, 3))
    assert torch.equal(padded[..., :21], window.clone()) and not padded[..., 21:].any()


def test_errors():
    model = make_model(attention_dropout=0.5).train()
    model.set_attn_implementation("posenc")
    with pytest.raises(posenc.Error, match="has no dropout"):
        model(make_tokens())
    model = make_model()
    model.set_attn_implementation("posenc")
    with pytest.raises(posenc.Error, match="no gradients: call the model under"):
        model(make_tokens())
    q = torch.ones(1, 4, 3, 16)
    with pytest.raises(posenc.Error, match="has no 'position_bias'"):
        posenc.transformers.attention(model, q, q, q, None, position_bias=q)
    with pytest.raises(posenc.Error, match="masks of bool"):
        posenc.transformers.attention(model, q, q, q, torch.ones(1, 1, 3, 3))
    with pytest.raises(posenc.Error, match="one mask for all heads, got 4"):
        posenc.transformers.attention(model, q, q, q,
                                      torch.ones(1, 4, 3, 3, dtype=torch.bool))


def test_trace_on_cuda():
    """A model on a CUDA device calls the operators there. Needs no GPU, as its tensors
    have no memory."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    with FakeTensorMode(allow_non_fake_inputs=True):
        with torch.device("cuda"):
            model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)).eval()
            tokens = torch.ones(2, 9, dtype=torch.int64)
        model.set_attn_implementation("posenc")
        with torch.no_grad():
            graph = make_fx(lambda tokens: model(tokens, use_cache=False).logits)(tokens)
    calls = [node for node in graph.graph.nodes
             if node.target == torch.ops.posenc.call.default]
    assert len(calls) == SIZES["num_hidden_layers"]
    for node in calls:
        assert node.meta["val"][0].device == torch.device("cuda:0")
