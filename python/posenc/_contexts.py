# ===- _contexts.py - default lengths of contexts ---------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The length of the context of a config without one.

transformers leaves out what is a model type's default. The compiler reads lengths for
some scalings only, so pages that show contexts need these. A test compares them with
the installed transformers.
"""

from __future__ import annotations

from collections.abc import Mapping

_TYPES = {
    33: (
        "csm_depth_decoder_model"),
    512: (
        "moonshine"),
    1024: (
        "dia_encoder"),
    1026: (
        "esm"),
    1536: (
        "roformer"),
    2048: (
        "aria_text bitnet codegen csm dbrx deepseek_ocr2_text deepseek_v2 diffllama "
        "doge dots1 esmc exaone4 exaone_moe falcon gpt_neox gpt_neox_japanese gptj "
        "granite granite4_vision_text granitemoe granitemoe_swa granitemoehybrid "
        "granitemoeshared higgs_audio_v2 hunyuan_v1_dense hunyuan_v1_moe hyperclovax "
        "idefics llama nomic_bert olmo olmo2 olmo3 phi"),
    3000: (
        "moshi"),
    3072: (
        "dia_decoder"),
    4096: (
        "arcee blt_global_transformer chameleon deepseek_v3 exaone flex_olmo helium "
        "jetmoe moonshine_streaming nemotron olmoe phi3 sarvam_mla stablelm "
        "starcoder2 zamba2"),
    8192: (
        "blt_patcher cohere cohere2 cohere2_moe eurobert evolla falcon_h1 gemma "
        "gemma2 granite_swa gte jais2 modernbert modernbert-decoder t5_gemma_module "
        "vaultgemma"),
    8194: (
        "jina_embeddings_v3"),
    9216: (
        "emu3_text_model"),
    16384: (
        "afmoe fuyu persimmon"),
    24576: (
        "blt_local_decoder blt_local_encoder"),
    32768: (
        "axk1 gemma3n gemma3n_text glm4v glm4v_text granite_docling_text internlm3 "
        "minicpm3 qwen2 qwen2_5_omni_talker qwen2_5_omni_text qwen2_5_omni_thinker "
        "qwen2_5_vl qwen2_5_vl_text qwen2_moe qwen2_vl qwen2_vl_text qwen3 qwen3_5 "
        "qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next "
        "qwen3_omni_moe_text qwen3_omni_moe_thinker smollm3"),
    36864: (
        "molmo2_text"),
    65536: (
        "apertus apertus1p5_text glm4v_moe glm4v_moe_text olmo_hybrid"),
    128000: (
        "lfm2 lfm2_moe qwen3_vl qwen3_vl_moe qwen3_vl_moe_text qwen3_vl_text"),
    131072: (
        "cwm ernie4_5 ernie4_5_moe gemma3 gemma3_text gemma4 gemma4_text glm glm4 "
        "glm4_moe glm_image_text glm_ocr glm_ocr_text gpt_oss hy_v3 iquestcoder "
        "llama4 llama4_text longcat_flash mellum minimax ministral mistral mistral3 "
        "mixtral mllama_text_model paddleocr_vl paddleocr_vl_text phi4_multimodal "
        "phimoe solar_open voxtral_realtime_text youtu"),
    163840: (
        "deepseek_v32"),
    196608: (
        "minimax_m2"),
    202752: (
        "glm4_moe_lite glm_moe_dsa"),
    262144: (
        "bamba gemma4_unified gemma4_unified_text kolibri1 ministral3"),
    524288: (
        "seed_oss"),
    1048576: (
        "mistral4"),
}
DEFAULTS = {name: length for length, names in _TYPES.items() for name in names.split()}


def read_context(config: Mapping) -> int | None:
    """Returns the number of tokens that a model was trained for, or None."""
    text = config.get("text_config")
    parts = [config, text if isinstance(text, Mapping) else {}]
    for part in parts:
        length = part.get("max_position_embeddings", part.get("n_positions"))
        if isinstance(length, int) and length > 0:
            return length
    for part in reversed(parts):
        kind = part.get("model_type")
        if isinstance(kind, str) and kind in DEFAULTS:
            return DEFAULTS[kind]
    return None
