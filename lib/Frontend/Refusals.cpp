//===- Refusals.cpp - model types that cannot be compiled -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelTable.h"

#include "llvm/ADT/STLExtras.h"

using namespace posenc::frontend;
using llvm::StringLiteral;
using llvm::StringRef;

namespace {
struct Refusal {
  StringLiteral reason;
  std::initializer_list<StringLiteral> types;
};
} // namespace

// Reasons, as predicates of a sentence about the model type, and the types.
static constexpr Refusal refusals[] = {
    {"has no rotary embedding: it adds learned position embeddings to its "
     "input",
     {"albert",
      "align_text_model",
      "bark",
      "bart",
      "beit",
      "bert",
      "bert-generation",
      "big_bird",
      "bigbird_pegasus",
      "biogpt",
      "blenderbot",
      "blenderbot-small",
      "blip",
      "blip_text_model",
      "bros",
      "camembert",
      "canine",
      "clip",
      "clip_text_model",
      "convbert",
      "data2vec-text",
      "decision_transformer",
      "deit",
      "distilbert",
      "electra",
      "ernie",
      "ernie_m",
      "flaubert",
      "fnet",
      "git",
      "gpt2",
      "gpt_bigcode",
      "gpt_neo",
      "ibert",
      "imagegpt",
      "layoutlm",
      "layoutlmv2",
      "layoutlmv3",
      "led",
      "lilt",
      "longformer",
      "luke",
      "lxmert",
      "markuplm",
      "mbart",
      "megatron-bert",
      "mobilebert",
      "mra",
      "mvp",
      "nystromformer",
      "openai-gpt",
      "opt",
      "plbart",
      "prophetnet",
      "reformer",
      "rembert",
      "roberta",
      "roberta-prelayernorm",
      "roc_bert",
      "siglip",
      "siglip_text_model",
      "splinter",
      "squeezebert",
      "tapas",
      "trocr",
      "vilt",
      "visual_bert",
      "vit",
      "xlm",
      "xlm-roberta",
      "xlm-roberta-xl",
      "xmod",
      "yoso"}},
    {"has no rotary embedding: it adds a sinusoidal table to its input, which "
     "posenc.sinusoidal expresses in MLIR",
     {"ctrl", "fsmt", "kosmos-2", "kosmos-2.5", "kosmos_2_5_text_model",
      "kosmos_2_text_model", "m2m_100", "marian", "musicgen",
      "musicgen_decoder", "nllb-moe", "pegasus", "pegasus_x", "seamless_m4t",
      "seamless_m4t_v2", "speech_to_text", "whisper", "xglm"}},
    {"has no rotary embedding: its attention has learned terms of the relative "
     "position, which are not supported",
     {"cpmant", "deberta", "deberta-v2", "funnel", "longt5", "mpnet", "nezha",
      "pix2struct_text_model", "pop2piano", "speecht5", "transfo-xl", "udop",
      "xlnet"}},
    {"has no rotary embedding: its positions come from a convolution",
     {"hubert", "wav2vec2"}},
    {"has no rotary embedding: it does not encode positions",
     {"falcon_mamba", "glm5_next_text", "jamba", "kimi_linear", "mamba",
      "mamba2", "nemotron_h", "rwkv", "xlstm", "zamba"}},
    {"has several models: pass the object 'encoder_config', 'global_config', "
     "'decoder_config' or 'patcher_config' as a config of its own",
     {"blt"}},
    {"rotates the output of attention as well, which is not supported",
     {"deepseek_v4"}},
    {"rotates pairs alternately by row and column and the last pairs by time, "
     "which is not supported",
     {"ernie4_5_moe_vl", "ernie4_5_vl_moe", "ernie4_5_vl_moe_text"}},
    {"rotates the two channels of a pair by different position axes, which is "
     "not supported",
     {"hunyuan_vl", "hunyuan_vl_text"}},
    {"rotates pairs alternately by row and column, which is not supported",
     {"llama4_vision_model", "neomme"}},
    {"rotates by the rows and columns of images, in an order of the pairs that "
     "is not supported",
     {"cohere_compass_vision",
      "dots3_note_vision_encoder",
      "edgetam_video",
      "efficientloftr",
      "ernie4_5_vl_moe_vision",
      "exaone4_5_vision",
      "gemma4_vision",
      "glm4v_moe_vision",
      "glm4v_vision",
      "glm5_next_vision",
      "glm_ocr_vision",
      "inkling2_vision",
      "kimi_k25_vision",
      "lfm3_vl_vision",
      "minimax_m3_vl_vision",
      "mlcd",
      "mlcd_vision_model",
      "muse_glimmer_vision",
      "muse_spark_vision",
      "paddleocr_vl_vision",
      "qwen2_5_omni_vision_encoder",
      "qwen2_5_vl_vision",
      "qwen2_vl_vision",
      "qwen3_5_moe_vision",
      "qwen3_5_vision",
      "qwen3_omni_moe_vision_encoder",
      "qwen3_vl_moe_vision",
      "qwen3_vl_vision",
      "qwen4_exp_vision",
      "sam2_video",
      "sam3_tracker_video",
      "sam3_vit_model",
      "step3p5_vision",
      "video_llama_3_vision"}},
    {"multiplies the frequencies by learned factors, which are not in its "
     "config",
     {"mistral_large4", "mistral_large4_text"}},
    {"rotates the first head only, which is not supported",
     {"qwen2_5_omni_dit"}},
    {"rotates by the number of the head, not by that of the token",
     {"neucodec", "xcodec2"}},
    {"rotates in the opposite direction, which is not supported", {"nanochat"}},
    {"merges self-attention and cross-attention, which is not supported",
     {"t5gemma2", "t5gemma2_decoder"}},
};

StringRef posenc::frontend::findRefusal(StringRef modelType) {
  const Refusal *found = llvm::find_if(refusals, [&](const Refusal &one) {
    return llvm::is_contained(one.types, modelType);
  });
  return found == std::end(refusals) ? StringRef() : StringRef(found->reason);
}
