# ===- test_transformers_models.py - how models rotate ----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Models that rotate in other ways than Llama, and models that `enable` leaves as they
are; and what is compiled ahead."""

import importlib
import warnings

import pytest

import posenc

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import posenc.transformers  # noqa: E402
from posenc.transformers import _attention, _conventions  # noqa: E402
from test_transformers import (  # noqa: E402
    SIZES, generate, is_close, make_model, make_tokens)

enable, warmup = posenc.transformers.enable, posenc.transformers.warmup

LAYERS = dict(num_hidden_layers=4, sliding_window=8, num_kv_shared_layers=2,
              layer_types=["sliding_attention", "full_attention"] * 2)
EMBEDDINGS = dict(vocab_size_per_layer_input=128, hidden_size_per_layer_input=8)
GPT = dict(n_embd=64, n_layer=2, n_head=4, n_positions=4096, rotary_dim=8)
LATENT = dict(
    num_key_value_heads=4, head_dim=8, q_lora_rank=32, kv_lora_rank=16,
    qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=16, n_routed_experts=4, n_group=1,
    topk_group=1, num_experts_per_tok=2, moe_intermediate_size=32, first_k_dense_replace=1)


def with_sections(*sections, **further):
    return {"head_dim": None, "rope_parameters": {
        "rope_type": "default", "rope_theta": 10000.0, "mrope_section": [*sections],
        **further}}


# The file, the config and the model of each, and its options.
MODELS = {
    "GPT-J": ("gptj", "GPTJConfig", "GPTJForCausalLM", GPT),
    "CodeGen": ("codegen", "CodeGenConfig", "CodeGenForCausalLM", {**GPT, "n_ctx": 4096}),
    "Gemma 3n": ("gemma3n", "Gemma3nTextConfig", "Gemma3nForCausalLM",
                 {**LAYERS, **EMBEDDINGS, "laurel_rank": 8}),
    "Gemma 4": ("gemma4", "Gemma4TextConfig", "Gemma4ForCausalLM",
                {**LAYERS, **EMBEDDINGS, "global_head_dim": 32}),
    "Llama 4": ("llama4", "Llama4TextConfig", "Llama4ForCausalLM", dict(
        num_local_experts=2, num_experts_per_tok=1, intermediate_size_mlp=96,
        num_hidden_layers=4, attention_chunk_size=16)),
    "DeepSeek-V2": ("deepseek_v2", "DeepseekV2Config", "DeepseekV2ForCausalLM",
                    {**LATENT, "topk_method": "greedy"}),
    "Qwen2-VL": ("qwen2_vl", "Qwen2VLTextConfig", "Qwen2VLTextModel",
                 with_sections(2, 3, 3)),
    "Qwen2.5-VL": ("qwen2_5_vl", "Qwen2_5_VLTextConfig", "Qwen2_5_VLTextModel",
                   with_sections(4, 2, 2)),
    "Qwen3-VL": ("qwen3_vl", "Qwen3VLTextConfig", "Qwen3VLTextModel",
                 {**with_sections(4, 2, 2, mrope_interleaved=True), "head_dim": 16}),
}


def build(file, config, model, options):
    torch.manual_seed(7)
    modeling = importlib.import_module(f"transformers.models.{file}.modeling_{file}")
    sizes = {key: value for key, value in SIZES.items() if "n_head" not in options
             or key in ("vocab_size", "pad_token_id", "bos_token_id", "eos_token_id")}
    sizes = {key: value for key, value in {**sizes, **options}.items()
             if value is not None or key == "eos_token_id"}
    result = getattr(modeling, model)(getattr(transformers, config, None)(**sizes)).eval()
    with torch.no_grad():
        for parameter in result.parameters():
            if parameter.dim() == 2:
                parameter.mul_(4)
    return result


def compute(model, tokens, positions):
    with torch.no_grad():
        results = model(tokens, **(
            {} if positions is None else {"position_ids": positions}))
    return results[0]


def make_positions(name, tokens):
    """Positions at which the rounding of f32 shows. The tables of GPT-J begin at 0."""
    if name in ("GPT-J", "CodeGen"):
        return None
    row = torch.arange(tokens)[None].repeat(2, 1)
    if "VL" in name:  # Time, row and column.
        return torch.stack([row + 3000, row // 2 + 3001, row * 2 + 3000])
    return row + 3000


@pytest.mark.parametrize("name", MODELS)
def test_models(name, monkeypatch):
    """The kernels rotate. Logits (of VL: the last states) are those of eager within
    2e-6 of the largest (1e-5 in Gemma 4, whose scores have no scale), and tokens are the
    same."""
    model, tokens = build(*MODELS[name]), make_tokens()
    positions = make_positions(name, tokens.shape[1])
    model.set_attn_implementation("eager")
    expected = compute(model, tokens, positions)
    generated = generate(model, tokens) if hasattr(model, "generate") else None
    calls = []
    rotate = _conventions._rotate
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        enable(model, "hf_f32")
    monkeypatch.setattr(_conventions, "_rotate", lambda *a: calls.append(a) or rotate(*a))
    assert model.config._attn_implementation == "posenc"
    bound = 1e-5 if name == "Gemma 4" else 2e-6
    assert is_close(compute(model, tokens, positions), expected, bound)
    assert calls
    # The check detects a position that is off by one.
    if positions is not None:
        assert not is_close(compute(model, tokens, positions.clone().index_add_(
            -1, torch.tensor([3]), torch.ones_like(positions[..., :1]))), expected, bound)
    if generated is not None:
        assert torch.equal(generate(model, tokens), generated)
    # Exact angles differ at these positions.
    enable(model)
    assert is_close(compute(model, tokens, positions), expected, 1e-3)
    posenc.transformers.disable(model, "eager")
    assert torch.equal(compute(model, tokens, positions), expected)


def test_sections_are_compared():
    """A model with other sections than its config keeps its rotations."""
    model = build(*MODELS["Qwen2-VL"])
    model.rotary_emb.mrope_section = [3, 3, 2]
    with pytest.warns(UserWarning, match="keeps its rotations: its tables"):
        enable(model)


SPARSE = dict(index_n_heads=2, index_head_dim=16, index_topk=4)


@pytest.mark.parametrize("model, reason, error", [
    (("deepseek_v4", "DeepseekV4Config", "DeepseekV4ForCausalLM", dict(
        intermediate_size=None, num_key_value_heads=None, q_lora_rank=32,
        qk_rope_head_dim=8, moe_intermediate_size=32, n_routed_experts=4,
        num_experts_per_tok=2, o_groups=2, o_lora_rank=16, sliding_window=8, **SPARSE)),
     "DeepseekV4Attention changes masks as masks of floats", None),
    (("deepseek_v32", "DeepseekV32Config", "DeepseekV32ForCausalLM",
      {**LATENT, **SPARSE}),
     "DeepseekV32Attention has 'indices'", "has no 'indices': use 'eager'"),
    (("t5", "T5Config", "T5ForConditionalGeneration", dict(
        d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4, n_head=4)),
     "T5Attention has 'position_bias'", "has no 'position_bias': use 'eager'"),
    (("doge", "DogeConfig", "DogeForCausalLM", {}),
     "DogeAttention has a mask of its own, 'attn_mask'", "has masks of bool"),
])
def test_models_that_stay(model, reason, error):
    """`enable` accepts no model whose forward then fails."""
    model, tokens = build(*model), make_tokens()
    inputs = {"decoder_input_ids": tokens} if model.config.is_encoder_decoder else {}
    with torch.no_grad():
        expected = model(tokens, **inputs).logits
        with pytest.warns(UserWarning, match=f"keeps its attention: {reason}"):
            enable(model)
        assert is_close(model(tokens, **inputs).logits, expected, 1e-5)
        if error is not None:
            model.set_attn_implementation("posenc")
            with pytest.raises(posenc.Error, match=error):
                model(tokens, **inputs)


def test_weights_of_attention():
    model, tokens = enable(make_model(num_hidden_layers=1)), make_tokens()
    message = "does not compute the weights of keys: for output_attentions=True use"
    with torch.no_grad():
        with pytest.raises(posenc.Error, match=message):
            model(tokens, output_attentions=True)
        with pytest.raises(posenc.Error, match=message):
            model.generate(tokens, max_new_tokens=2, return_dict_in_generate=True,
                           output_attentions=True)
        assert model(tokens, output_hidden_states=True).hidden_states is not None
        model.set_attn_implementation("eager")
        assert model(tokens, output_attentions=True).attentions[0] is not None


def test_warmup(monkeypatch):
    """What a model calls is compiled already, also with a window and with padding."""
    model = make_model("Mistral", sliding_window=8, num_attention_heads=6, head_dim=24)
    with pytest.raises(posenc.Error, match="calls no kernels: pass it to"):
        warmup(model)
    enable(model)
    # Prompts within the window and longer ones, single tokens, and the rotation; with
    # padding also prompts and tokens with masks.
    assert warmup(model) == 4 and warmup(model, padding=True) == 6

    def refuse(*arguments, **options):
        raise AssertionError("a kernel is compiled")

    monkeypatch.setattr(_attention, "compile", refuse)
    monkeypatch.setattr(_conventions, "compile", refuse)
    tokens = make_tokens()
    generate(model, tokens)
    generate(model, tokens[:, :5])
    mask = torch.ones_like(tokens)
    mask[0, :9] = 0
    with torch.no_grad():
        model.generate(tokens, attention_mask=mask, max_new_tokens=2, do_sample=False)
    with pytest.raises(AssertionError, match="a kernel is compiled"):
        generate(model.double(), tokens)
