//===- ModelTable.cpp - one row per model_type ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelKeys.h"

#include "llvm/ADT/STLExtras.h"

using namespace posenc::frontend;
using llvm::StringLiteral;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

static constexpr ModelRow row(StringLiteral type,
                              const KeyNames &keys = standard) {
  return {type, keys};
}

// Norms of queries and keys that --qk-norm does not support, as verb phrases.
static constexpr StringLiteral layerNorms =
    "norm queries and keys by a layer norm of each head";
static constexpr StringLiteral postRotationNorms =
    "norm queries and keys after their rotation";
static constexpr StringLiteral weightlessNorms =
    "norm queries and keys without weights";
static constexpr StringLiteral latentNorms =
    "norm the latent vectors that queries and keys are made of";

/// The text model of Gemma 3n.
static constexpr ModelRow gemma3n(StringLiteral type) {
  return row(type)
      .heads(8, 2)
      .headDim(256)
      .theta(1e6)
      .ownSlidingTheta(1e4)
      .slides(512, 5)
      .multiplier(1)
      .norms(QkNormKind::EachHead);
}

/// The text model of Gemma 4.
static constexpr ModelRow gemma4(StringLiteral type) {
  return row(type)
      .heads(8, 4)
      .headDim(256)
      .ownFullHeads(512)
      .theta(1e6)
      .ownSlidingTheta(1e4)
      .slides(512, 6)
      .multiplier(1)
      .norms(QkNormKind::EachHead);
}

/// A model like Gemma 4 whose masks are not supported.
static constexpr ModelRow likeGemma4(StringLiteral type) {
  return gemma4(type)
      .needs("rope_parameters", "per_layer_config")
      .unsupportedAttention();
}

/// The text models of Qwen2-VL, Qwen2.5-VL and Qwen2.5-Omni.
static constexpr ModelRow qwenVL(StringLiteral type) {
  return row(type)
      .theta(1e6)
      .sections({16, 24, 24})
      .slidesFromMaxWindow(/*onRequest=*/true);
}

/// The text models of Qwen3-VL and Qwen3-Omni.
static constexpr ModelRow qwen3VL(StringLiteral type) {
  return row(type)
      .theta(5e5)
      .interleavedSections({24, 20, 20})
      .norms(QkNormKind::EachHead);
}

/// The text models of Qwen3.5.
static constexpr ModelRow qwen35(StringLiteral type) {
  return row(type)
      .headDim(256)
      .partial(0.25)
      .interleavedSections({11, 11, 10})
      .norms(QkNormKind::EachHeadPlusOne);
}

/// A model with the attention of DeepSeek V3.
static constexpr ModelRow latent(StringLiteral type) {
  return row(type, latentKeys)
      .interleavedUnless("rope_interleave")
      .latent(128, 128)
      .unsupportedNorms(latentNorms);
}

/// The encoders of Perception Encoder.
static constexpr ModelRow peEncoder(StringLiteral type) {
  return row(type)
      .interleaved()
      .theta(20000)
      .headDim(128)
      .bidirectional()
      .norms(QkNormKind::EachHead, 1e-5);
}

/// A model with latent attention to the keys that an indexer selects.
static constexpr ModelRow indexed(StringLiteral type) {
  return row(type, latentKeys)
      .unsupportedNorms(latentNorms)
      .unsupportedAttention();
}

static constexpr ModelRow models[] = {
    // Half pairing and the usual base, fraction and head size.
    row("aria_text").sizes(4096, 32),
    row("arcee").sizes(2560, 32),
    row("chameleon").unsupportedNorms(layerNorms),
    row("deepseek_ocr2_text"),
    row("diffllama").unsupportedAttention(),
    row("dinov3_vit").heads(6, 0).hidden(384).theta(100).coordinates(),
    row("doge").unsupportedAttention().norms(QkNormKind::EachHead),
    row("dots1")
        .slidesFromMaxWindow(/*onRequest=*/false)
        .norms(QkNormKind::EachHead),
    row("exaone").readsPartialFactor().theta(5e5).keyHeads(8),
    row("exaone4").slides(4096, 4).rotatesSlidingOnly().norms(
        QkNormKind::EachHead, 1e-5),
    row("exaone4_5_text")
        .slides(4096, 4)
        .rotatesSlidingOnly()
        .norms(QkNormKind::EachHead, 1e-5),
    row("exaone_moe")
        .slides(4096, 4)
        .rotatesSlidingOnly()
        .norms(QkNormKind::EachHead, 1e-5),
    row("granite").multiplier(1).sizes(4096, 32),
    row("granite4_vision_text").multiplier(1),
    row("granite_docling_text").keyHeads(4).multiplier(0.015625),
    row("granite_swa")
        .keyHeads(4)
        .multiplier(1)
        .slides(128, 4)
        .firstIsFull()
        .layerThetas(LayerBases::Override)
        .sinks(),
    row("granitemoe").multiplier(1),
    row("granitemoe_swa")
        .multiplier(1)
        .slides(128, 4)
        .firstIsFull()
        .layerThetas(LayerBases::Override)
        .sinks(),
    row("granitemoeshared").multiplier(1),
    row("hunyuan_v1_dense")
        .unsupportedAttention()
        .unsupportedNorms(postRotationNorms),
    row("hunyuan_v1_moe")
        .unsupportedAttention()
        .unsupportedNorms(postRotationNorms),
    row("hyperclovax"),
    row("idefics")
        .unsupportedNorms(postRotationNorms)
        .normsIf("qk_layer_norms")
        .unsupportedAttentionIf("qk_layer_norms"),
    row("internlm2").readsPartialFactor(),
    row("internlm3").readsPartialFactor().keyHeads(2).headDim(128),
    row("iquestcoder").readsPartialFactor().keyHeads(8).headDim(128),
    row("jais2"),
    row("jetmoe", jetMoeKeys).headDim(128).unsupportedAttention(),
    row("llama").sizes(4096, 32),
    row("minicpm").readsPartialFactor(),
    row("ministral").keyHeads(8).slides(4096).sizes(4096, 32),
    row("mistral").keyHeads(8).slides(4096).sizes(4096, 32),
    row("mistral3"),
    row("molmo2_text")
        .keyHeads(8)
        .headDim(128)
        .unsupportedNorms("norm queries and keys as 'qk_norm_type' says"),
    row("moshi").slides(3000),
    row("olmo"),
    row("olmo2").norms(QkNormKind::AllHeads, 1e-5),
    row("olmo_hybrid").norms(QkNormKind::AllHeads),
    row("olmoe").norms(QkNormKind::AllHeads, 1e-5),
    row("phi3").readsPartialFactor().sizes(3072, 32),
    row("phi3_v").readsPartialFactor(),
    row("phi4_multimodal").readsPartialFactor().keyHeads(8),
    row("phi4mm").readsPartialFactor().keyHeads(8),
    row("qwen", qwen1Keys).readsPartialFactor().changingWithLength(),
    row("qwen2").slidesFromMaxWindow(/*onRequest=*/true).sizes(4096, 32),
    row("qwen2_moe").sizes(2048, 16).slidesOnRequest(/*pattern=*/2),
    row("qwen3")
        .headDim(128)
        .slidesFromMaxWindow(/*onRequest=*/true)
        .norms(QkNormKind::EachHead)
        .sizes(4096, 32),
    row("qwen3_moe")
        .keyHeads(4)
        .sizes(2048, 32)
        .slidesOnRequest()
        .norms(QkNormKind::EachHead),
    row("seed_oss").keyHeads(8).headDim(128),
    row("starcoder2").keyHeads(2),
    row("voxtral_realtime_text").keyHeads(8).slides(4096),
    row("yi").readsPartialFactor(),
    row("Yi").readsPartialFactor(),
    row("deci").readsPartialFactor(),
    row("deepseek_ocr2_encoder").unsupportedAttention(),
    row("dots3_note_audio_encoder")
        .partial(0.5)
        .bidirectional()
        .unsupportedAttention(),
    row("glmasr_encoder").partial(0.5).bidirectional(),
    row("gradium_phonon_tts"),
    row("hrm_text", persimmonKeys).headDim(128).unsupportedAttention(),
    row("kyutai_speech_to_text").unsupportedAttention(),
    row("lasr_encoder").bidirectional(),
    row("mimi").slides(250),
    row("mimi_decoder").slides(250),
    row("mimi_encoder").slides(250),
    row("nemotron-nas").readsPartialFactor(),
    row("nemotron3_5_transcribe_asr_audio")
        .partialAlone(0.5)
        .bidirectional()
        .unsupportedAttention(),
    row("nemotron3_5_transcribe_word_timestamp")
        .partialAlone(0.5)
        .bidirectional()
        .unsupportedAttention()
        .unsupportedNorms(layerNorms),
    row("nemotron3_diarization_audio")
        .readsPartialFactor()
        .bidirectional()
        .unsupportedAttention(),
    row("pocket_tts"),
    row("pocket_tts_audio_tokenizer").slides(250),
    row("pocket_tts_audio_tokenizer_decoder").slides(250),
    row("pocket_tts_audio_tokenizer_encoder").slides(250),
    row("qwen3_omni_moe_talker_code_predictor")
        .keyHeads(8)
        .headDim(128)
        .slidesFromMaxWindow(/*onRequest=*/true)
        .norms(QkNormKind::EachHead),
    row("timesfm2_5")
        .headDim(80)
        .unsupportedAttention()
        .unsupportedNorms(postRotationNorms),
    row("unlimited_ocr_text").unsupportedAttention(),
    row("voxtral_realtime_encoder").headDim(64).slides(750),

    // Half pairing with another base, fraction or head size.
    row("afmoe").headDim(128).slides(1024, 4).rotatesSlidingOnly().norms(
        QkNormKind::EachHead, 1e-5),
    row("apertus")
        .theta(12e6)
        .scales("#posenc.llama3<factor = 8, low_freq_factor = 1, "
                "high_freq_factor = 4, original_max_position = 8192>")
        .norms(QkNormKind::EachHead, 1e-5),
    row("apertus1p5_text")
        .theta(12e6)
        .scales("#posenc.llama3<factor = 8, low_freq_factor = 1, "
                "high_freq_factor = 4, original_max_position = 8192>")
        .norms(QkNormKind::EachHead, 1e-5),
    row("bamba").keyHeads(8).partial(0.5),
    row("bitnet").theta(5e5).keyHeads(5),
    row("csm").theta(5e5).keyHeads(8),
    row("csm_depth_decoder_model").theta(5e5).keyHeads(2),
    row("cwm")
        .theta(1e6)
        .keyHeads(8)
        .headDim(128)
        .scales("#posenc.llama3<factor = 16, low_freq_factor = 1, "
                "high_freq_factor = 4, original_max_position = 8192>")
        .slides(8192, 4)
        .firstIsFull(),
    row("dbrx", dbrxKeys).keyHeads(1),
    row("dia_decoder").keyHeads(4).headDim(128).multiplier(1).sizes(2048, 16),
    row("dia_encoder").headDim(128).multiplier(1).bidirectional(),
    row("emu3_text_model").theta(1e6).keyHeads(8),
    row("esmc").bidirectional().unsupportedNorms(
        "norm queries and keys by a layer norm over all heads"),
    row("eurobert").bidirectional(),
    row("evolla").theta(5e5).keyHeads(8),
    row("falcon", falconKeys),
    row("falcon_h1").keyHeads(8),
    row("flex_olmo").theta(5e5).norms(QkNormKind::AllHeads),
    row("fuyu", persimmonKeys)
        .theta(25000)
        .partial(0.5)
        .unsupportedNorms(layerNorms),
    row("gemma").headDim(256).sizes(3072, 16),
    row("gemma2")
        .headDim(256)
        .keyHeads(4)
        .slides(4096, 2)
        .queryScalar(256)
        .softCap(50)
        .sizes(2304, 8),
    row("gemma3")
        .heads(8, 4)
        .headDim(256)
        .theta(1e6)
        .ownSlidingTheta(1e4)
        .slides(4096, 6)
        .queryScalar(256)
        .norms(QkNormKind::EachHeadPlusOne),
    row("gemma3_text")
        .heads(8, 4)
        .headDim(256)
        .theta(1e6)
        .ownSlidingTheta(1e4)
        .slides(4096, 6)
        .queryScalar(256)
        .norms(QkNormKind::EachHeadPlusOne),
    gemma3n("gemma3n"),
    gemma3n("gemma3n_text"),
    gemma4("gemma4"),
    gemma4("gemma4_text"),
    gemma4("gemma4_unified").slides(1024, 6),
    gemma4("gemma4_unified_text").slides(1024, 6),
    row("glm4_moe")
        .keyHeads(8)
        .partial(0.5)
        .norms(QkNormKind::EachHead, 1e-5)
        .normsIf("use_qk_norm"),
    row("gpt_neox", neoxKeys).partial(0.25),
    row("gpt_neox_japanese", neoxKeys).readsPartialFactor(),
    row("gpt_oss")
        .theta(150000)
        .keyHeads(8)
        .headDim(64)
        .scales("#posenc.yarn<factor = 32, original_max_position = 4096, "
                "truncate = false>")
        .slides(128, 2)
        .sinks(),
    row("gte").theta(160000).bidirectional(),
    row("higgs_audio_v2")
        .keyHeads(8)
        .headDim(128)
        .scales("#posenc.llama3<factor = 32, low_freq_factor = 0.125, "
                "high_freq_factor = 0.5, original_max_position = 1024>",
                5e5),
    row("hy_v3").theta(11158840).keyHeads(8).headDim(128).norms(
        QkNormKind::EachHead, 1e-5),
    row("jina_embeddings_v3").theta(20000).bidirectional(),
    row("kolibri1")
        .keyHeads(4)
        .headDim(128)
        .slides(513, 5)
        .rotatesSlidingOnly()
        .norms(QkNormKind::EachHead),
    row("lfm2")
        .theta(1e6)
        .keyHeads(8)
        .norms(QkNormKind::EachHead, 1e-5)
        .normEpsKey("norm_eps")
        .sizes(2560, 32),
    row("lfm2_moe")
        .theta(1e6)
        .keyHeads(8)
        .norms(QkNormKind::EachHead, 1e-5)
        .normEpsKey("norm_eps")
        .sizes(2048, 32),
    row("mellum")
        .readsPartialFactor()
        .theta(5e5)
        .keyHeads(4)
        .headDim(128)
        .norms(QkNormKind::EachHead),
    row("minicpm3", latentKeys)
        .latent(64, kFromHidden)
        .unsupportedNorms(latentNorms),
    row("minimax", rotaryDimKeys).theta(1e6).keyHeads(8).slidesEverywhere(),
    row("minimax_m2", rotaryDimKeys)
        .readsPartialFactor()
        .theta(5e6)
        .keyHeads(8)
        .headDim(128)
        .norms(QkNormKind::AllHeads),
    row("ministral3")
        .keyHeads(8)
        .headDim(128)
        .scales("#posenc.yarn<factor = 16, original_max_position = 16384, "
                "mscale = 1, mscale_all_dim = 1>",
                1e6)
        .temperature()
        .sizes(4096, 32),
    row("mixtral").theta(1e6).keyHeads(8).sizes(4096, 32),
    row("mllama_text_model").theta(5e5).keyHeads(8).sizes(4096, 32),
    row("modernbert", modernBertKeys)
        .theta(160000)
        .ownSlidingTheta(1e4)
        .scaledSliding()
        .slidesBothWays(128, 3)
        .firstIsFull(),
    row("modernbert-decoder", modernBertKeys)
        .theta(160000)
        .ownSlidingTheta(1e4)
        .scaledSliding()
        .slides(128, 3)
        .firstIsFull()
        .halfWindow(),
    row("nemotron").partial(0.5),
    row("nomic_bert", nomicBertKeys)
        .theta(1000)
        .interleavedIf("rotary_emb_interleaved")
        .bidirectional(),
    row("olmo3").theta(5e5).ownSlidingTheta(5e5).slides(4096, 4).norms(
        QkNormKind::AllHeads, 1e-5),
    row("persimmon", persimmonKeys)
        .sizes(4096, 64)
        .partial(0.5)
        .unsupportedNorms(layerNorms),
    row("phi")
        .partial(0.5)
        .unsupportedNorms(layerNorms)
        .normsIf("qk_layernorm"),
    row("phimoe").theta(1e6).keyHeads(8),
    row("qwen3_next")
        .keyHeads(2)
        .headDim(256)
        .partial(0.25)
        .norms(QkNormKind::EachHeadPlusOne),
    row("recurrent_gemma", recurrentGemmaKeys).partial(0.5).slides(2048),
    row("smollm3").sizes(2048, 16).theta(2e6).keyHeads(4).skipsRotation(4),
    row("solar_open").readsPartialFactor().theta(1e6).keyHeads(8).headDim(128),
    row("stablelm", stablelmKeys)
        .partial(0.25)
        .unsupportedNorms(layerNorms)
        .normsIf("qk_layernorm"),
    row("stablelm_epoch", stablelmKeys)
        .partial(0.25)
        .unsupportedNorms(layerNorms)
        .normsIf("qk_layernorm"),
    row("t5_gemma_module")
        .headDim(256)
        .keyHeads(4)
        .slides(4096, 2)
        .queryScalar(256)
        .softCap(50)
        .causalIf("is_decoder")
        .sizes(2304, 8),
    row("vaultgemma")
        .headDim(256)
        .keyHeads(4)
        .slides(4096, 2)
        .queryScalar(256)
        .softCap(50),
    row("zamba2", zamba2Keys)
        .hiddenTimes(2)
        .scaledByHalfHead()
        .onlyIf("use_mem_rope"),
    row("beam")
        .keyHeads(8)
        .headDim(128)
        .nullUnrotated()
        .norms(QkNormKind::EachHead)
        .needs("rope_parameters")
        .unsupportedAttention(),
    likeGemma4("diffusion_gemma").readsPartialFactor(),
    likeGemma4("diffusion_gemma_text").readsPartialFactor(),
    row("dory")
        .theta(1e7)
        .ownSlidingTheta(1e4)
        .keyHeads(4)
        .headDim(256)
        .unsupportedNorms("norm queries and keys by their Euclidean length")
        .unsupportedAttention(),
    likeGemma4("embedding_gemma2").heads(4, 2).bidirectional(),
    likeGemma4("embedding_gemma2_text").heads(4, 2).bidirectional(),
    row("flint")
        .keyHeads(4)
        .headDim(128)
        .slides(513)
        .rotatesSlidingOnly()
        .norms(QkNormKind::EachHead)
        .sinks()
        .needs("layer_types"),
    row("laguna")
        .readsPartialFactor()
        .keyHeads(8)
        .headDim(128)
        .slides(512)
        .norms(QkNormKind::EachHead)
        .needs("rope_parameters", "layer_types"),
    row("lara_mini")
        .keyHeads(4)
        .headDim(128)
        .slides(512)
        .rotatesSlidingOnly()
        .norms(QkNormKind::EachHead)
        .needs("layer_types"),
    row("lfm3")
        .keyHeads(4)
        .headDim(128)
        .slides(256)
        .norms(QkNormKind::EachHead, 1e-5)
        .normEpsKey("norm_eps")
        .needs("rope_parameters", "layer_types"),
    row("mimo_v2_flash")
        .theta(5e6)
        .ownSlidingTheta(1e4)
        .partialAlone(0.334)
        .keyHeads(4)
        .headDim(192)
        .slidingKeyHeadsTimes(2)
        .unsupportedAttention(),
    row("minimax_m3_vl_text")
        .readsPartialFactor()
        .theta(5e6)
        .keyHeads(4)
        .headDim(128)
        .norms(QkNormKind::EachHeadPlusOne)
        .unsupportedAttention(),
    row("muse_glimmer_assistant")
        .theta(5e5)
        .keyHeads(8)
        .headDim(128)
        .norms(QkNormKind::EachHead, 1e-5)
        .unsupportedAttention(),
    row("muse_glimmer_text")
        .keyHeads(2)
        .headDim(128)
        .slides(2048)
        .unsupportedNorms(weightlessNorms)
        .layerThetas(LayerBases::Zeros)
        .needs("layer_rope_theta", "layer_types"),
    row("muse_spark_text")
        .thetaAlone(5e5)
        .keyHeads(16)
        .headDim(64)
        .slides(2048)
        .unsupportedNorms(weightlessNorms)
        .layerThetas(LayerBases::Zeros)
        .needs("layer_rope_theta", "layer_types"),
    row("sarvam_moe")
        .readsPartialFactor()
        .theta(8e6)
        .keyHeads(4)
        .headDim(64)
        .norms(QkNormKind::EachHead)
        .normsIf("use_qk_norm"),
    row("step3p5", step3p5Keys)
        .readsPartialFactor()
        .keyHeads(8)
        .headDim(128)
        .unscaledSliding()
        .norms(QkNormKind::EachHeadPlusOne, 1e-5)
        .needs("layer_types"),
    row("t5gemma2_text")
        .heads(8, 4)
        .headDim(256)
        .theta(1e6)
        .ownSlidingTheta(1e4)
        .slides(4096, 6)
        .norms(QkNormKind::EachHeadPlusOne)
        .bidirectional()
        .unsupportedAttention(),
    row("ultrabert")
        .theta(2560000)
        .ownSlidingTheta(1e4)
        .bidirectional()
        .unsupportedAttention(),
    row("zaya")
        .readsPartialFactor()
        .keyHeads(2)
        .headDim(128)
        .unsupportedNorms("norm queries and keys by their Euclidean length")
        .needs("rope_parameters")
        .unsupportedAttention(),

    // Half pairing and several position axes.
    row("glm4v_moe").keyHeads(8).partial(0.5).sections({8, 12, 12}),
    row("glm4v_moe_text").keyHeads(8).partial(0.5).sections({8, 12, 12}),
    row("glm_image_text")
        .readsPartialFactor()
        .keyHeads(2)
        .sections({8, 12, 12}),
    row("paddleocr_vl")
        .theta(5e5)
        .keyHeads(2)
        .headDim(128)
        .sections({16, 24, 24}),
    row("paddleocr_vl_text")
        .theta(5e5)
        .keyHeads(2)
        .headDim(128)
        .sections({16, 24, 24}),
    row("pixtral").heads(16, 0).hidden(1024).patches(),
    qwenVL("qwen2_5_omni").keyHeads(4),
    qwenVL("qwen2_5_omni_talker").keyHeads(4).headDim(128),
    qwenVL("qwen2_5_omni_text").keyHeads(4),
    qwenVL("qwen2_5_omni_thinker").keyHeads(4),
    qwenVL("qwen2_5_vl").keyHeads(8),
    qwenVL("qwen2_5_vl_text").keyHeads(8),
    qwenVL("qwen2_vl").keyHeads(8),
    qwenVL("qwen2_vl_text").keyHeads(8),
    qwen35("qwen3_5").keyHeads(4),
    qwen35("qwen3_5_moe").keyHeads(2),
    qwen35("qwen3_5_moe_text").keyHeads(2),
    qwen35("qwen3_5_text").keyHeads(4),
    qwen3VL("qwen3_omni_moe").theta(1e6).keyHeads(4),
    qwen3VL("qwen3_omni_moe_text").theta(1e6).keyHeads(4),
    qwen3VL("qwen3_omni_moe_thinker").theta(1e6).keyHeads(4),
    qwen3VL("qwen3_vl").headDim(128),
    qwen3VL("qwen3_vl_moe"),
    qwen3VL("qwen3_vl_moe_text"),
    qwen3VL("qwen3_vl_text").headDim(128),
    row("cohere_compass_text")
        .interleavedSections({24, 20, 20})
        .slides(4096)
        .nullUnrotated()
        .needs("rope_parameters", "layer_types"),
    row("cosmos3_edge_text")
        .theta(1e8)
        .keyHeads(8)
        .headDim(128)
        .interleavedSections({24, 20, 20}),
    row("eomt_dinov3")
        .heads(16, 0)
        .hidden(1024)
        .theta(100)
        .coordinates()
        .unsupportedAttention(),
    qwen3VL("qwen3_omni_moe_talker_text").theta(1e6).keyHeads(2),
    qwen35("qwen4_exp_text").partial(1).keyHeads(2).unsupportedAttention(),
    row("sapiens2")
        .theta(100)
        .coordinates()
        .norms(QkNormKind::EachHead)
        .normsIf("use_qk_norm")
        .needs("num_key_value_heads_per_layer"),

    // Half pairing, only for one value of `position_embedding_type`.
    row("esm").causalIf("is_decoder").onlyIfPositionType("rotary"),
    row("granitemoehybrid")
        .multiplier(1)
        .onlyIfPositionType("rope")
        .orUnrotated(),
    row("new").readsPartialFactor().bidirectional().onlyIfPositionType("rope"),

    // Interleaved pairing.
    row("blt_global_transformer").interleaved().theta(5e5),
    row("blt_local_decoder").interleaved().theta(5e5),
    row("blt_local_encoder").interleaved().theta(5e5),
    row("blt_patcher").interleaved().slides(512),
    row("chatglm", chatGlmKeys)
        .interleaved()
        .partial(0.5)
        .thetaTimes("rope_ratio"),
    row("codegen", gptjKeys).interleaved().rotaryDim(64),
    row("cohere")
        .interleaved()
        .theta(5e5)
        .unsupportedNorms(layerNorms)
        .normsIf("use_qk_norm"),
    row("cohere2")
        .interleaved()
        .sizes(8192, 64)
        .slides(4096, 4)
        .rotatesSlidingOnly(),
    row("cohere2_moe")
        .interleaved()
        .headDim(128)
        .slides(4096, 4)
        .rotatesSlidingOnly(),
    row("deepseek_v2", latentKeys)
        .interleavedUnless("rope_interleave")
        .latent(128, 128)
        .unsupportedNorms(latentNorms),
    row("ernie4_5").interleaved().theta(5e5).keyHeads(2).headDim(128),
    row("ernie4_5_moe").interleaved().theta(5e5).keyHeads(4),
    row("glm").interleaved().keyHeads(2).headDim(128).partial(0.5),
    row("glm4").interleaved().keyHeads(2).headDim(128).partial(0.5),
    row("glm4v").readsPartialFactor().interleaved().heads(32, 2).sections(
        {8, 12, 12}),
    row("glm4v_text")
        .readsPartialFactor()
        .interleaved()
        .heads(32, 2)
        .sections({8, 12, 12}),
    row("glm_ocr").readsPartialFactor().interleaved().keyHeads(8).sections(
        {8, 12, 12}),
    row("glm_ocr_text")
        .readsPartialFactor()
        .interleaved()
        .keyHeads(8)
        .sections({8, 12, 12}),
    row("gptj", gptjKeys).interleaved().rotaryDim(64),
    row("helium").interleaved().theta(1e5).headDim(128),
    row("llama4")
        .interleaved()
        .theta(5e5)
        .keyHeads(8)
        .headDim(128)
        .chunked()
        .unsupportedNorms(postRotationNorms)
        .sizes(5120, 40),
    row("llama4_text")
        .interleaved()
        .theta(5e5)
        .keyHeads(8)
        .headDim(128)
        .chunked()
        .unsupportedNorms(postRotationNorms)
        .sizes(5120, 40),
    row("moonshine", moonshineKeys).interleaved().partial(0.9).encoder(),
    row("moonshine_streaming").interleaved().partial(0.8),
    row("roformer")
        .interleaved()
        .causalIf("is_decoder")
        .unsupportedAttentionIf("rotary_value"),
    row("openai_privacy_filter")
        .interleaved()
        .theta(150000)
        .keyHeads(2)
        .headDim(64)
        .scales("#posenc.yarn<factor = 32, original_max_position = 4096, "
                "truncate = false>")
        .bidirectional()
        .unsupportedAttention(),
    peEncoder("pe_audio_encoder"),
    peEncoder("pe_audio_video_encoder"),
    peEncoder("pe_video_encoder"),

    // Multi-head latent attention, interleaved by default.
    latent("axk1"),
    latent("deepseek_v3").sizes(7168, 128),
    latent("deepseek_v32").unsupportedAttention(),
    latent("glm4_moe_lite").latent(192, 256),
    latent("glm_moe_dsa").latent(192, 256).unsupportedAttention(),
    latent("kimi_k2"),
    latent("longcat_flash").theta(1e7).unsupportedAttention(),
    latent("mistral4")
        .latent(64, 128)
        .scales("#posenc.yarn<factor = 128, original_max_position = 8192, "
                "mscale = 1, mscale_all_dim = 1>")
        .temperature(),
    latent("sarvam_mla"),
    latent("youtu"),
    indexed("axk2").interleaved(),
    row("bailing_hybrid", latentKeys)
        .interleaved()
        .theta(6e6)
        .latent(128, 128)
        .unsupportedNorms(latentNorms),
    indexed("dots3_note_text")
        .interleaved()
        .theta(8e7)
        .needs("rope_parameters", "per_layer_config"),
    indexed("hy_v4"),
    indexed("hy_v4_vl_text").interleaved().interleavedSections({12, 10, 10}),
};

static constexpr ModelRow unknownRow = row("", anyKeys);

llvm::ArrayRef<ModelRow> posenc::frontend::getModels() { return models; }

const ModelRow *posenc::frontend::findModel(StringRef modelType) {
  const ModelRow *found = llvm::find_if(
      models, [&](const ModelRow &row) { return row.type == modelType; });
  return found == std::end(models) ? nullptr : found;
}

const ModelRow &posenc::frontend::unknownModel() { return unknownRow; }
