# ===- models.py - small random checkpoints --------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Small checkpoints of random weights, whose logits depend on attention: weights have a
standard deviation of 0.06, those of queries and keys one of 0.09."""

import tokenizers
import torch
import transformers

_SIZES = dict(
    hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, head_dim=64, vocab_size=512, max_position_embeddings=2048,
    bos_token_id=1, eos_token_id=2, pad_token_id=0, tie_word_embeddings=False)

_LAYERS = ["sliding_attention", "full_attention"]

MODELS = {
    "llama": lambda: transformers.LlamaConfig(**_SIZES),
    "qwen3": lambda: transformers.Qwen3Config(**_SIZES),
    # The second half of each head is not rotated, and pairs are neighbours.
    "glm": lambda: transformers.GlmConfig(**_SIZES, partial_rotary_factor=0.5),
    "mistral": lambda: transformers.MistralConfig(**_SIZES, sliding_window=40),
    "gemma2": lambda: transformers.Gemma2Config(
        **{**_SIZES, "tie_word_embeddings": True}, sliding_window=40,
        attn_logit_softcapping=5.0, query_pre_attn_scalar=64, layer_types=_LAYERS),
    "gpt_oss": lambda: transformers.GptOssConfig(
        **_SIZES, num_local_experts=4, num_experts_per_tok=2, sliding_window=40,
        layer_types=_LAYERS),
    "bloom": lambda: transformers.BloomConfig(
        vocab_size=512, hidden_size=128, n_layer=2, n_head=2, bos_token_id=1,
        eos_token_id=2, pad_token_id=0),
    # Encoders of windows of 16 tokens to each side, and of all tokens.
    "modernbert": lambda: transformers.ModernBertConfig(
        vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=4,
        num_attention_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        cls_token_id=1, sep_token_id=2, max_position_embeddings=512, local_attention=32),
    # A decoder with cross attention.
    "whisper": lambda: transformers.WhisperConfig(
        vocab_size=512, d_model=128, encoder_layers=1, decoder_layers=2,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=256,
        decoder_ffn_dim=256, max_target_positions=448, bos_token_id=1, eos_token_id=2,
        pad_token_id=0, decoder_start_token_id=1, begin_suppress_tokens=None),
    "bert": lambda: transformers.BertConfig(
        vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=2,
        num_attention_heads=2),
}


_ENCODERS = ("bert", "modernbert")


def write_checkpoint(name: str, folder: str) -> None:
    torch.manual_seed(1)
    config = MODELS[name]()
    config.initializer_range = config.init_std = 0.06
    kind = (transformers.AutoModel if name in _ENCODERS else
            transformers.AutoModelForSpeechSeq2Seq if name == "whisper" else
            transformers.AutoModelForCausalLM)
    model = kind.from_config(config, dtype=torch.float32)
    for key, parameter in model.named_parameters():
        if any(part in key for part in ("q_proj", "k_proj", "query_key_value", "Wqkv")):
            parameter.data *= 1.5
        if "sinks" in key:
            torch.nn.init.normal_(parameter, std=2.0)
    model.save_pretrained(folder)
    # vLLM needs a tokenizer for models that embed and for servers, and a processor of audio.
    if name in (*_ENCODERS, "llama"):
        words = {"[PAD]": 0, "[UNK]": 1, **{f"w{i}": i for i in range(2, 512)}}
        tokenizers.Tokenizer(tokenizers.models.WordLevel(words, "[UNK]")).save(
            f"{folder}/tokenizer.json")
        transformers.PreTrainedTokenizerFast(
            tokenizer_file=f"{folder}/tokenizer.json", unk_token="[UNK]",
            pad_token="[PAD]").save_pretrained(folder)
    if name == "whisper":
        words = {"<|endoftext|>": 0, **{f"w{i}": i for i in range(1, 512)}}
        transformers.WhisperProcessor(
            transformers.WhisperFeatureExtractor(),
            transformers.WhisperTokenizer(vocab=words, merges=[])).save_pretrained(folder)
