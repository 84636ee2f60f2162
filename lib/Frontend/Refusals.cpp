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
  StringLiteral type;
  StringLiteral reason;
};
} // namespace

// Reasons, as predicates of a sentence about the model type.
static constexpr StringLiteral learnedTable =
    "has no rotary embedding: it adds learned position embeddings to its input";
static constexpr StringLiteral sinusoidalTable =
    "has no rotary embedding: it adds a sinusoidal table to its input, which "
    "posenc.sinusoidal expresses in MLIR";
static constexpr StringLiteral relativeTerms =
    "has no rotary embedding: its attention has learned terms of the relative "
    "position, which are not supported";
static constexpr StringLiteral convolution =
    "has no rotary embedding: its positions come from a convolution";
static constexpr StringLiteral noPositions =
    "has no rotary embedding: it does not encode positions";
static constexpr StringLiteral severalParts =
    "has several models: pass the object 'encoder_config', 'global_config', "
    "'decoder_config' or 'patcher_config' as a config of its own";
static constexpr StringLiteral outputRotation =
    "rotates the output of attention as well, which is not supported";
static constexpr StringLiteral alternatingAxes =
    "rotates pairs alternately by row and column and the last pairs by time, "
    "which is not supported";
static constexpr StringLiteral splitPairs =
    "rotates the two channels of a pair by different position axes, which is "
    "not supported";
static constexpr StringLiteral alternatingPatches =
    "rotates pairs alternately by row and column, which is not supported";
static constexpr StringLiteral patchAxes =
    "rotates by the rows and columns of images, in an order of the pairs that "
    "is not supported";
static constexpr StringLiteral learnedFrequencies =
    "multiplies the frequencies by learned factors, which are not in its "
    "config";
static constexpr StringLiteral firstHead =
    "rotates the first head only, which is not supported";
static constexpr StringLiteral headPositions =
    "rotates by the number of the head, not by that of the token";
static constexpr StringLiteral inverseRotation =
    "rotates in the opposite direction, which is not supported";
static constexpr StringLiteral mergedAttention =
    "merges self-attention and cross-attention, which is not supported";

static constexpr Refusal refusals[] = {
    {"albert", learnedTable},
    {"align_text_model", learnedTable},
    {"bark", learnedTable},
    {"bart", learnedTable},
    {"beit", learnedTable},
    {"bert", learnedTable},
    {"bert-generation", learnedTable},
    {"big_bird", learnedTable},
    {"bigbird_pegasus", learnedTable},
    {"biogpt", learnedTable},
    {"blenderbot", learnedTable},
    {"blenderbot-small", learnedTable},
    {"blip", learnedTable},
    {"blip_text_model", learnedTable},
    {"blt", severalParts},
    {"bros", learnedTable},
    {"camembert", learnedTable},
    {"canine", learnedTable},
    {"clip", learnedTable},
    {"clip_text_model", learnedTable},
    {"cohere_compass_vision", patchAxes},
    {"convbert", learnedTable},
    {"cpmant", relativeTerms},
    {"ctrl", sinusoidalTable},
    {"data2vec-text", learnedTable},
    {"deberta", relativeTerms},
    {"deberta-v2", relativeTerms},
    {"decision_transformer", learnedTable},
    {"deepseek_v4", outputRotation},
    {"deit", learnedTable},
    {"distilbert", learnedTable},
    {"dots3_note_vision_encoder", patchAxes},
    {"edgetam_video", patchAxes},
    {"efficientloftr", patchAxes},
    {"electra", learnedTable},
    {"ernie", learnedTable},
    {"ernie4_5_moe_vl", alternatingAxes},
    {"ernie4_5_vl_moe", alternatingAxes},
    {"ernie4_5_vl_moe_text", alternatingAxes},
    {"ernie4_5_vl_moe_vision", patchAxes},
    {"ernie_m", learnedTable},
    {"exaone4_5_vision", patchAxes},
    {"falcon_mamba", noPositions},
    {"flaubert", learnedTable},
    {"fnet", learnedTable},
    {"fsmt", sinusoidalTable},
    {"funnel", relativeTerms},
    {"gemma4_vision", patchAxes},
    {"git", learnedTable},
    {"glm4v_moe_vision", patchAxes},
    {"glm4v_vision", patchAxes},
    {"glm5_next_text", noPositions},
    {"glm5_next_vision", patchAxes},
    {"glm_ocr_vision", patchAxes},
    {"gpt2", learnedTable},
    {"gpt_bigcode", learnedTable},
    {"gpt_neo", learnedTable},
    {"hubert", convolution},
    {"hunyuan_vl", splitPairs},
    {"hunyuan_vl_text", splitPairs},
    {"ibert", learnedTable},
    {"imagegpt", learnedTable},
    {"inkling2_vision", patchAxes},
    {"jamba", noPositions},
    {"kimi_k25_vision", patchAxes},
    {"kimi_linear", noPositions},
    {"kosmos-2", sinusoidalTable},
    {"kosmos-2.5", sinusoidalTable},
    {"kosmos_2_5_text_model", sinusoidalTable},
    {"kosmos_2_text_model", sinusoidalTable},
    {"layoutlm", learnedTable},
    {"layoutlmv2", learnedTable},
    {"layoutlmv3", learnedTable},
    {"led", learnedTable},
    {"lfm3_vl_vision", patchAxes},
    {"lilt", learnedTable},
    {"llama4_vision_model", alternatingPatches},
    {"longformer", learnedTable},
    {"longt5", relativeTerms},
    {"luke", learnedTable},
    {"lxmert", learnedTable},
    {"m2m_100", sinusoidalTable},
    {"mamba", noPositions},
    {"mamba2", noPositions},
    {"marian", sinusoidalTable},
    {"markuplm", learnedTable},
    {"mbart", learnedTable},
    {"megatron-bert", learnedTable},
    {"minimax_m3_vl_vision", patchAxes},
    {"mistral_large4", learnedFrequencies},
    {"mistral_large4_text", learnedFrequencies},
    {"mlcd", patchAxes},
    {"mlcd_vision_model", patchAxes},
    {"mobilebert", learnedTable},
    {"mpnet", relativeTerms},
    {"mra", learnedTable},
    {"muse_glimmer_vision", patchAxes},
    {"muse_spark_vision", patchAxes},
    {"musicgen", sinusoidalTable},
    {"musicgen_decoder", sinusoidalTable},
    {"mvp", learnedTable},
    {"nanochat", inverseRotation},
    {"nemotron_h", noPositions},
    {"neomme", alternatingPatches},
    {"neucodec", headPositions},
    {"nezha", relativeTerms},
    {"nllb-moe", sinusoidalTable},
    {"nystromformer", learnedTable},
    {"openai-gpt", learnedTable},
    {"opt", learnedTable},
    {"paddleocr_vl_vision", patchAxes},
    {"pegasus", sinusoidalTable},
    {"pegasus_x", sinusoidalTable},
    {"pix2struct_text_model", relativeTerms},
    {"plbart", learnedTable},
    {"pop2piano", relativeTerms},
    {"prophetnet", learnedTable},
    {"qwen2_5_omni_dit", firstHead},
    {"qwen2_5_omni_vision_encoder", patchAxes},
    {"qwen2_5_vl_vision", patchAxes},
    {"qwen2_vl_vision", patchAxes},
    {"qwen3_5_moe_vision", patchAxes},
    {"qwen3_5_vision", patchAxes},
    {"qwen3_omni_moe_vision_encoder", patchAxes},
    {"qwen3_vl_moe_vision", patchAxes},
    {"qwen3_vl_vision", patchAxes},
    {"qwen4_exp_vision", patchAxes},
    {"reformer", learnedTable},
    {"rembert", learnedTable},
    {"roberta", learnedTable},
    {"roberta-prelayernorm", learnedTable},
    {"roc_bert", learnedTable},
    {"rwkv", noPositions},
    {"sam2_video", patchAxes},
    {"sam3_tracker_video", patchAxes},
    {"sam3_vit_model", patchAxes},
    {"seamless_m4t", sinusoidalTable},
    {"seamless_m4t_v2", sinusoidalTable},
    {"siglip", learnedTable},
    {"siglip_text_model", learnedTable},
    {"speech_to_text", sinusoidalTable},
    {"speecht5", relativeTerms},
    {"splinter", learnedTable},
    {"squeezebert", learnedTable},
    {"step3p5_vision", patchAxes},
    {"t5gemma2", mergedAttention},
    {"t5gemma2_decoder", mergedAttention},
    {"tapas", learnedTable},
    {"transfo-xl", relativeTerms},
    {"trocr", learnedTable},
    {"udop", relativeTerms},
    {"video_llama_3_vision", patchAxes},
    {"vilt", learnedTable},
    {"visual_bert", learnedTable},
    {"vit", learnedTable},
    {"wav2vec2", convolution},
    {"whisper", sinusoidalTable},
    {"xcodec2", headPositions},
    {"xglm", sinusoidalTable},
    {"xlm", learnedTable},
    {"xlm-roberta", learnedTable},
    {"xlm-roberta-xl", learnedTable},
    {"xlnet", relativeTerms},
    {"xlstm", noPositions},
    {"xmod", learnedTable},
    {"yoso", learnedTable},
    {"zamba", noPositions},
};

StringRef posenc::frontend::findRefusal(StringRef modelType) {
  const Refusal *found = llvm::find_if(
      refusals, [&](const Refusal &one) { return one.type == modelType; });
  return found == std::end(refusals) ? StringRef() : StringRef(found->reason);
}
