//===- ModelTable.cpp - one row per model_type ----------------------------===//
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

//===----------------------------------------------------------------------===//
// Key names
//===----------------------------------------------------------------------===//

static constexpr KeyNames standard;

static constexpr KeyNames neoxKeys = [] {
  KeyNames keys;
  keys.theta = {"rotary_emb_base", "rope_theta"};
  keys.partial = {"rotary_pct", "partial_rotary_factor"};
  keys.keyHeadRule = KeyHeads::AsQueries;
  return keys;
}();

static constexpr KeyNames gptjKeys = [] {
  KeyNames keys;
  keys.heads = {"n_head", "num_attention_heads"};
  keys.hidden = {"n_embd", "hidden_size"};
  keys.rotaryDim = {"rotary_dim", ""};
  keys.maxPosition = {"n_positions", "max_position_embeddings"};
  keys.keyHeadRule = KeyHeads::AsQueries;
  return keys;
}();

static constexpr KeyNames falconKeys = [] {
  KeyNames keys;
  keys.heads = {"num_attention_heads", "n_head"};
  keys.keyHeads = {"num_kv_heads", "n_head_kv"};
  keys.hidden = {"hidden_size", "n_embed"};
  keys.keyHeadRule = KeyHeads::Falcon;
  return keys;
}();

static constexpr KeyNames persimmonKeys = [] {
  KeyNames keys;
  keys.keyHeadRule = KeyHeads::AsQueries;
  return keys;
}();

static constexpr KeyNames stablelmKeys = [] {
  KeyNames keys;
  keys.partial = {"partial_rotary_factor", "rope_pct"};
  return keys;
}();

/// Multi-head latent attention: a head has separate numbers of channels that
/// rotate and that do not, and all heads share the rotated part of the key.
static constexpr KeyNames latentKeys = [] {
  KeyNames keys;
  keys.headDim = {"qk_rope_head_dim", ""};
  keys.keyHeadRule = KeyHeads::One;
  keys.headDimFromHidden = false;
  return keys;
}();

static constexpr KeyNames modernBertKeys = [] {
  KeyNames keys;
  keys.theta = {"global_rope_theta", "rope_theta"};
  keys.window = {"local_attention", ""};
  return keys;
}();

static constexpr KeyNames recurrentGemmaKeys = [] {
  KeyNames keys;
  keys.window = {"attention_window_size", ""};
  return keys;
}();

static constexpr KeyNames anyKeys = [] {
  KeyNames keys;
  keys.headDim = {"head_dim", "attention_head_size"};
  keys.theta = {"rope_theta", "rotary_emb_base"};
  keys.partial = {"partial_rotary_factor", "rotary_pct"};
  keys.rotaryDim = {"rotary_dim", ""};
  return keys;
}();

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
static constexpr StringLiteral latentNorms =
    "norm the latent vectors that queries and keys are made of";

static constexpr ModelRow models[] = {
    // Half pairing and the usual base, fraction and head size.
    row("arcee"),
    row("aria_text"),
    row("chameleon").unsupportedNorms(layerNorms),
    row("diffllama").unsupportedAttention(),
    row("dots1")
        .slidesFromMaxWindow(/*onRequest=*/false)
        .norms(QkNormKind::EachHead),
    row("exaone"),
    row("exaone4").slides(4096, 4).rotatesSlidingOnly().norms(
        QkNormKind::EachHead, 1e-5),
    row("granite").multiplier(1),
    row("granitemoe").multiplier(1),
    row("granitemoeshared").multiplier(1),
    row("internlm2"),
    row("internlm3"),
    row("llama"),
    row("minicpm"),
    row("ministral").slides(4096),
    row("mistral").slides(4096),
    row("mistral3"),
    row("olmo"),
    row("olmo2").norms(QkNormKind::AllHeads, 1e-5),
    row("olmoe").norms(QkNormKind::AllHeads, 1e-5),
    row("phi3"),
    row("qwen2").slidesFromMaxWindow(/*onRequest=*/true),
    row("qwen2_moe").slidesFromMaxWindow(/*onRequest=*/true),
    row("qwen3")
        .slidesFromMaxWindow(/*onRequest=*/true)
        .norms(QkNormKind::EachHead),
    row("qwen3_moe")
        .slidesFromMaxWindow(/*onRequest=*/true)
        .norms(QkNormKind::EachHead),
    row("seed_oss"),
    row("starcoder2"),
    row("yi"),
    row("Yi"),

    // Half pairing with another base, fraction or head size.
    row("bitnet").theta(5e5),
    row("eurobert").theta(2.5e5).bidirectional(),
    row("falcon", falconKeys),
    row("falcon_h1").theta(1e5),
    row("flex_olmo").theta(5e5).norms(QkNormKind::AllHeads),
    row("gemma").headDim(256),
    row("gemma2").headDim(256).slides(4096, 2).queryScalar(256).softCap(50),
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
    row("gemma3n_text")
        .headDim(256)
        .theta(1e6)
        .ownSlidingTheta(1e4)
        .slides(512, 5)
        .multiplier(1)
        .norms(QkNormKind::EachHead),
    row("glm4_moe")
        .partial(0.5)
        .norms(QkNormKind::EachHead, 1e-5)
        .normsIf("use_qk_norm"),
    row("gpt_neox", neoxKeys).partial(0.25),
    row("gpt_neox_japanese", neoxKeys),
    row("gpt_oss").theta(150000).slides(128, 2).sinks(),
    row("lfm2")
        .theta(1e6)
        .norms(QkNormKind::EachHead, 1e-5)
        .normEpsKey("norm_eps"),
    row("minicpm3", latentKeys).unsupportedNorms(latentNorms),
    row("mixtral").theta(1e6),
    row("mllama_text_model").theta(5e5),
    row("modernbert", modernBertKeys)
        .theta(160000)
        .ownSlidingTheta(1e4)
        .slidesBothWays(128, 3),
    row("nemotron").partial(0.5),
    row("olmo3").unscaledSliding().slides(4096, 4).norms(QkNormKind::AllHeads,
                                                         1e-5),
    row("persimmon", persimmonKeys).partial(0.5).unsupportedNorms(layerNorms),
    row("phi")
        .partial(0.5)
        .unsupportedNorms(layerNorms)
        .normsIf("qk_layernorm"),
    row("phimoe").theta(1e6),
    row("qwen3_next").partial(0.25).norms(QkNormKind::EachHeadPlusOne),
    row("recurrent_gemma", recurrentGemmaKeys).partial(0.5).slides(2048),
    row("smollm3").theta(2e6).skipsRotation(4),
    row("stablelm", stablelmKeys)
        .partial(0.25)
        .unsupportedNorms(layerNorms)
        .normsIf("qk_layernorm"),
    row("stablelm_epoch", stablelmKeys)
        .partial(0.25)
        .unsupportedNorms(layerNorms)
        .normsIf("qk_layernorm"),

    // Half pairing and several position axes.
    row("pixtral").heads(16, 0).hidden(1024).patches(),
    row("qwen2_5_omni")
        .theta(1e6)
        .sections()
        .slidesFromMaxWindow(/*onRequest=*/true),
    row("qwen2_5_omni_text")
        .theta(1e6)
        .sections()
        .slidesFromMaxWindow(/*onRequest=*/true),
    row("qwen2_5_omni_thinker")
        .theta(1e6)
        .sections()
        .slidesFromMaxWindow(/*onRequest=*/true),
    row("qwen2_5_vl")
        .theta(1e6)
        .sections()
        .slidesFromMaxWindow(
            /*onRequest=*/true),
    row("qwen2_5_vl_text")
        .theta(1e6)
        .sections()
        .slidesFromMaxWindow(/*onRequest=*/true),
    row("qwen2_vl")
        .theta(1e6)
        .sections()
        .slidesFromMaxWindow(
            /*onRequest=*/true),
    row("qwen2_vl_text")
        .theta(1e6)
        .sections()
        .slidesFromMaxWindow(/*onRequest=*/true),
    row("qwen3_vl")
        .theta(5e6)
        .headDim(128)
        .interleavedSections({24, 20, 20})
        .norms(QkNormKind::EachHead),
    row("qwen3_vl_moe")
        .theta(5e6)
        .interleavedSections({24, 20, 20})
        .norms(QkNormKind::EachHead),
    row("qwen3_vl_moe_text")
        .theta(5e6)
        .interleavedSections({24, 20, 20})
        .norms(QkNormKind::EachHead),
    row("qwen3_vl_text")
        .theta(5e6)
        .headDim(128)
        .interleavedSections({24, 20, 20})
        .norms(QkNormKind::EachHead),

    // Half pairing, only for one value of `position_embedding_type`.
    row("esm").bidirectional().onlyIfPositionType("rotary"),
    row("granitemoehybrid").multiplier(1).onlyIfPositionType("rope"),

    // Interleaved pairing.
    row("codegen", gptjKeys).interleaved().rotaryDim(64),
    row("cohere")
        .interleaved()
        .theta(5e5)
        .unsupportedNorms(layerNorms)
        .normsIf("use_qk_norm"),
    row("cohere2").interleaved().slides(4096, 4).rotatesSlidingOnly(),
    row("deepseek_v2", latentKeys)
        .interleavedUnless("rope_interleave")
        .latent(128, 128)
        .unsupportedNorms(latentNorms),
    row("deepseek_v3", latentKeys)
        .interleavedUnless("rope_interleave")
        .latent(128, 128)
        .unsupportedNorms(latentNorms),
    row("deepseek_v32", latentKeys)
        .interleavedUnless("rope_interleave")
        .unsupportedAttention()
        .unsupportedNorms(latentNorms),
    row("ernie4_5").interleaved().theta(5e5),
    row("ernie4_5_moe").interleaved().theta(5e5),
    row("glm").interleaved().partial(0.5),
    row("glm4").interleaved().partial(0.5),
    row("glm4v").interleaved().heads(32, 2).sections(),
    row("glm4v_text").interleaved().heads(32, 2).sections(),
    row("gptj", gptjKeys).interleaved().rotaryDim(64),
    row("helium").interleaved().theta(1e5),
    row("kimi_k2", latentKeys)
        .interleavedUnless("rope_interleave")
        .latent(128, 128)
        .unsupportedNorms(latentNorms),
    row("llama4")
        .interleaved()
        .theta(5e5)
        .unsupportedAttention()
        .unsupportedNorms(postRotationNorms),
    row("llama4_text")
        .interleaved()
        .theta(5e5)
        .unsupportedAttention()
        .unsupportedNorms(postRotationNorms),
    row("longcat_flash", latentKeys)
        .interleaved()
        .theta(1e7)
        .unsupportedAttention()
        .unsupportedNorms(latentNorms),
    row("roformer").interleaved().bidirectional(),
};

static constexpr ModelRow unknownRow = row("", anyKeys);

static constexpr StringLiteral withoutRotation[] = {
    "albert",
    "bart",
    "beit",
    "bert",
    "bert-generation",
    "big_bird",
    "bigbird_pegasus",
    "biogpt",
    "blenderbot",
    "blenderbot-small",
    "camembert",
    "canine",
    "clip",
    "convbert",
    "ctrl",
    "data2vec-text",
    "deberta",
    "deberta-v2",
    "deit",
    "distilbert",
    "electra",
    "ernie",
    "ernie_m",
    "falcon_mamba",
    "flaubert",
    "fnet",
    "fsmt",
    "funnel",
    "git",
    "gpt2",
    "gpt_bigcode",
    "gpt_neo",
    "hubert",
    "ibert",
    "jamba",
    "led",
    "longformer",
    "longt5",
    "luke",
    "m2m_100",
    "mamba",
    "mamba2",
    "marian",
    "mbart",
    "megatron-bert",
    "mobilebert",
    "mpnet",
    "mvp",
    "nezha",
    "nllb-moe",
    "nystromformer",
    "openai-gpt",
    "opt",
    "pegasus",
    "pegasus_x",
    "plbart",
    "prophetnet",
    "rembert",
    "roberta",
    "roberta-prelayernorm",
    "roc_bert",
    "rwkv",
    "speech_to_text",
    "splinter",
    "squeezebert",
    "switch_transformers",
    "tapas",
    "transfo-xl",
    "vit",
    "wav2vec2",
    "whisper",
    "xglm",
    "xlm",
    "xlm-roberta",
    "xlm-roberta-xl",
    "xlnet",
    "xmod",
    "yoso",
};

const ModelRow *posenc::frontend::findModel(StringRef modelType) {
  const ModelRow *found = llvm::find_if(
      models, [&](const ModelRow &row) { return row.type == modelType; });
  return found == std::end(models) ? nullptr : found;
}

const ModelRow &posenc::frontend::unknownModel() { return unknownRow; }

bool posenc::frontend::hasNoRotaryEmbedding(StringRef modelType) {
  return llvm::is_contained(withoutRotation, modelType);
}

bool posenc::frontend::hasFloatPositions(StringRef modelType) {
  return modelType == "dinov3_vit";
}
