//===- PositionKeyTable.cpp - the keys that change rotations and masks ----===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Not listed are the numbers and sizes of heads, and keys that change queries,
// keys or values before the functions get them: norms, `clip_qkv`,
// `key_multiplier` of Falcon H1.
//
//===----------------------------------------------------------------------===//

#include "PositionKeys.h"

using namespace posenc::frontend;
using llvm::StringLiteral;

using Types = StringLiteral[];

// Types that share keys.
static constexpr Types chunked = {"llama4", "llama4_text"};
static constexpr Types chunkSized = {"llama4", "llama4_text", "mimo_v2_flash"};
static constexpr Types gemma4Types = {
    "diffusion_gemma",  "diffusion_gemma_text",
    "embedding_gemma2", "embedding_gemma2_text",
    "gemma4",           "gemma4_text",
    "gemma4_unified",   "gemma4_unified_text"};
// Types whose code in transformers has a base of its own in a dictionary, by
// default or always.
static constexpr Types baseOfDictionary = {
    "apertus",
    "apertus1p5_text",
    "beam",
    "cosmos3_edge_text",
    "cwm",
    "dory",
    "embedding_gemma2",
    "embedding_gemma2_text",
    "gemma4",
    "gemma4_text",
    "gemma4_unified",
    "gemma4_unified_text",
    "higgs_audio_v2",
    "laguna",
    "lfm3",
    "mellum",
    "mimo_v2_flash",
    "ministral3",
    "mistral4",
    "muse_spark_text",
    "nemotron3_5_transcribe_asr_audio",
    "nemotron3_5_transcribe_word_timestamp",
    "zaya"};
static constexpr Types otherBase = {"gpt_neox", "gpt_neox_japanese",
                                    "modernbert", "modernbert-decoder"};
static constexpr Types localFrequency = {"gemma3", "gemma3_text", "gemma3n",
                                         "gemma3n_text", "t5gemma2_text"};
static constexpr Types localTheta = {"modernbert", "modernbert-decoder"};
static constexpr Types windowTheta = {"dots3_note_text"};
static constexpr Types unscaled = {"dinov3_vit", "esm", "sapiens2"};
static constexpr Types unscaledByOldKey = {"cohere2_moe", "dinov3_vit", "esm",
                                           "sapiens2"};
// Types whose code reads rope_parameters only with layer types.
static constexpr Types byLayerType = {"gemma3",       "gemma3_text", "gemma3n",
                                      "gemma3n_text", "olmo3",       "step3p5",
                                      "t5gemma2_text"};
static constexpr Types wholeHeads = {"minimax"};
static constexpr Types prefixed = {"hrm_text", "mpt"};
static constexpr Types hyV4 = {"hy_v4", "hy_v4_vl_text"};
static constexpr Types mimo = {"mimo_v2_flash"};
static constexpr Types minimaxM3 = {"minimax_m3_vl_text"};
static constexpr Types muse = {"muse_glimmer_text", "muse_spark_text"};
static constexpr Types qwen4 = {"qwen4_exp_text"};
static constexpr Types latentTypes = {
    "axk1",        "deepseek_v2",   "deepseek_v3", "deepseek_v32",
    "glm_moe_dsa", "glm4_moe_lite", "kimi_k2",     "longcat_flash",
    "minicpm3",    "mistral4",      "sarvam_mla",  "youtu"};
static constexpr Types minicpm = {"minicpm"};
static constexpr Types mpt = {"mpt"};
static constexpr Types nomicBert = {"nomic_bert"};
static constexpr Types qwen1 = {"qwen"};
static constexpr Types skipping = {"llama4", "llama4_text", "smollm3"};
static constexpr Types sparseLatent = {
    "axk2",        "deepseek_v32", "dots3_note_text",
    "glm_moe_dsa", "hy_v4",        "hy_v4_vl_text"};
static constexpr Types step = {"step3p5"};
// Types whose attention is called without the soft cap.
static constexpr Types uncapped = {"gemma3", "gemma3_text"};
static constexpr Types t5 = {"mt5", "switch_transformers", "t5", "umt5"};

static constexpr PositionKey key(StringLiteral name, StringLiteral effect) {
  return {name, effect};
}

/// A key of the dictionaries `rope_scaling` and `rope_parameters`.
static constexpr PositionKey dictionaryKey(StringLiteral name,
                                           StringLiteral effect) {
  return key(name, effect).inDictionary();
}

// Effects that several keys have.
static constexpr StringLiteral setsBase = "sets the base of the frequencies";
static constexpr StringLiteral setsFullBase =
    "sets the base of the full-attention layers";
static constexpr StringLiteral setsSlidingBase =
    "sets the base of the layers with a sliding window";
static constexpr StringLiteral setsFraction =
    "sets the fraction of a head that rotates";
static constexpr StringLiteral setsPairing =
    "selects between interleaved and half pairing";
static constexpr StringLiteral setsWindow = "sets the size of sliding windows";
static constexpr StringLiteral setsDim =
    "sets the number of channels of a head that rotate";
static constexpr StringLiteral selectsSparse =
    "restricts attention to the keys that an indexer selects";
static constexpr StringLiteral addsSinks =
    "adds a learned logit for each head to the denominator of the softmax";

static constexpr StringLiteral adviseShort =
    "set it to false if no sequence is longer than the training length";

static constexpr PositionKey rows[] = {
    // Base, dimension and pairing of the rotation.
    key("rope_theta", setsBase)
        .read()
        .ignoredBy(otherBase)
        .ignoredAloneBy(baseOfDictionary),
    key("rotary_emb_base", setsBase)
        .readForUnknown()
        .unlessSameAs("rope_theta"),
    key("rope_embedding_base", setsBase)
        .needingType()
        .unlessSameAs("rope_theta"),
    key("rope_freq_constant", setsBase),
    key("rotary_embedding_base", setsBase),
    key("global_rope_theta", setsFullBase),
    key("rope_global_theta", setsFullBase).unlessSameAs("rope_theta"),
    key("rope_theta_global", setsFullBase).unlessSameAs("rope_theta"),
    key("rope_local_base_freq", setsSlidingBase)
        .read()
        .knownFor(localFrequency),
    key("local_rope_theta", setsSlidingBase).read().knownFor(localTheta),
    key("rope_local_theta", setsSlidingBase),
    key("rope_theta_local", setsSlidingBase),
    key("swa_rope_theta", setsSlidingBase).read().knownFor(windowTheta),
    key("compress_rope_theta",
        "sets the base of the layers that compress their keys"),
    key("layer_rope_theta",
        "sets the base of each layer; layers with 0 do not rotate, and for "
        "Muse only 0 is read")
        .read(),
    key("rope_ratio", "multiplies the base by a factor")
        .unless(kOne)
        .needingType(),
    key("rope_position_scale", "divides positions by a factor").unless(kOne),
    key("compression_ratio", "divides positions by a factor").unless(kOne),
    key("partial_rotary_factor", setsFraction).read(),
    key("partial_rotary_factors", "sets the fraction of a head that rotates, "
                                  "for each layer")
        .unless(kEmpty)
        .read(),
    key("rotary_pct", setsFraction)
        .unless(kOne)
        .unlessSameAs("partial_rotary_factor")
        .readForUnknown(),
    key("rope_pct", setsFraction)
        .unless(kOne)
        .unlessSameAs("partial_rotary_factor")
        .needingType(),
    key("rotary_emb_fraction", setsFraction)
        .unless(kOne)
        .unlessSameAs("partial_rotary_factor"),
    // The implementation of MiniMax M3 ignores it.
    key("rotary_dim", setsDim)
        .readFor(minimaxM3)
        .readForUnknown()
        .ignoredBy(wholeHeads),
    key("rope_head_dim", setsDim).unless(kZero),
    key("qk_rope_head_dim", setsDim)
        .unless(kZero)
        .readFor(latentTypes)
        .needingType()
        .otherwiseIgnored(),
    key("global_head_dim",
        "sets the size of the heads of full-attention layers")
        .readFor(gemma4Types)
        .needingType(),
    key("swa_head_dim", "sets the size of the heads of layers with a window")
        .read(),
    key("use_mla", "replaces latent attention by heads that rotate as a whole")
        .unless(kTrue),
    key("rope_interleave", setsPairing).unless(kFalse),
    key("rope_interleaved", setsPairing).unless(kFalse),
    key("rotary_emb_interleaved", setsPairing).unless(kFalse).needingType(),
    key("is_neox_style", "selects half pairing; false: interleaved pairing")
        .unless(kTrue),

    // Scaling of the rotation.
    key("rope_scaling", "scales the frequencies")
        .unless(kEmpty)
        .read()
        .ignoredBy(unscaledByOldKey),
    key("rope_parameters", "holds the base and the scaling of the frequencies")
        .unless(kEmpty)
        .read()
        .ignoredBy(unscaled)
        .ignoredFlatBy(byLayerType),
    key("max_position_embeddings",
        "is the length from which dynamic and longrope scale, if no other is "
        "given")
        .read(),
    key("original_max_position_embeddings",
        "is the length of the training before the scaling")
        .read(),
    key("rope_scaling_layers", "lists the layers whose frequencies are scaled")
        .read(),
    key("yarn_only_types", "lists the layer types whose frequencies are scaled")
        .unless(kEmpty)
        .readFor(step),
    key("use_dynamic_ntk",
        "changes the base with the length of the sequence, beyond 'seq_length'")
        .unless(kFalse)
        .readFor(qwen1)
        .advising(adviseShort),
    key("seq_length", "is the length of the training of Qwen 1 and ChatGLM")
        .readFor(qwen1)
        .otherwiseIgnored(),
    key("rotary_scaling_factor",
        "changes the base with the length of the sequence, beyond "
        "'max_trained_positions'")
        .unless(kOne)
        .advising("write it as \"rope_scaling\": {\"type\": \"dynamic\", "
                  "\"factor\": F}, with 'max_position_embeddings' the "
                  "trained length"),
    key("rotary", "holds the base and the scaling of InternLM's first models")
        .unless(kTrue)
        .otherwiseIgnored(),
    key("rotary_emb_scale_base",
        "multiplies queries and keys by powers of their position (XPos)"),
    key("base_seqlen",
        "is the length beyond which the base changes with that of the "
        "sequence"),
    key("training_seqlen",
        "is the length beyond which queries are multiplied by a logarithm of "
        "their position"),
    key("scaling_factor", "scales the frequencies by YaRN")
        .unless(kOne)
        .otherwiseIgnored(),
    key("use_scaled_rope", "scales the frequencies as Llama 3.1 does")
        .unless(kFalse),
    key("dual_chunk_attention_config",
        "limits the relative positions by chunks of the sequence")
        .unless(kEmpty)
        .advising("remove it if no sequence is longer than its 'chunk_size'"),
    key("use_mrope", "rotates by several positions of a token")
        .unless(kFalse)
        .advising("set it to false for a model of texts"),
    key("rope_3d", "rotates by several positions of a token").unless(kFalse),
    key("freq_allocation",
        "sets the number of pairs that rotate by time rather than by row and "
        "column")
        .unless(kZero)
        .otherwiseIgnored(),

    // Whether the model rotates, and which layers do.
    key("position_embedding_type",
        "selects a rotation, learned positions or a bias")
        .readForUnknown()
        .otherwiseIgnored(),
    key("alibi", "replaces the rotation by a bias of the scores")
        .unless(kFalse)
        .read(),
    key("use_alibi", "replaces the rotation by a bias of the scores")
        .unless(kFalse),
    key("rope", "selects the rotation; false: none").unless(kTrue),
    key("use_rotary_pos_emb", "selects the rotation; false: none")
        .unless(kTrue),
    key("mla_use_nope", "disables the rotation").unless(kFalse),
    key("use_mem_rope", "enables the rotation").unless(kFalse),
    key("no_rope_layers", "lists for each layer whether it rotates")
        .unless(kEmpty)
        .readFor(skipping)
        .readForUnknown()
        .otherwiseIgnored(),
    key("no_rope_layer_interval", "disables the rotation of every n-th layer")
        .readFor(skipping)
        .otherwiseIgnored(),
    key("rope_layout", "lists for each layer whether it rotates")
        .unless(kEmpty),
    key("use_rope_layers", "lists for each layer whether it rotates")
        .unless(kEmpty),
    key("rotary_value", "rotates the values as well").unless(kFalse),

    // Masks.
    key("layer_types", "gives each layer a full or a sliding attention").read(),
    key("per_layer_config", "overrides sizes and windows of single layers")
        .unless(kEmpty)
        .read(),
    key("block_configs", "overrides sizes and windows of each layer")
        .unless(kEmpty)
        .read(),
    key("attention_other_setting", "overrides the heads of one layer type")
        .unless(kEmpty)
        .read(),
    key("sliding_window", setsWindow).read(),
    key("use_sliding_window", "enables sliding windows").read(),
    key("max_window_layers", "is the first layer with a sliding window").read(),
    key("sliding_window_pattern",
        "is the interval of the layers without sliding window")
        .read(),
    key("local_attention", setsWindow),
    key("attention_window_size", setsWindow),
    key("sliding_window_size", setsWindow)
        .unless(kZero | kNegative)
        .otherwiseIgnored(),
    key("sliding_window_layers", "lists the layers with a sliding window")
        .unless(kEmpty),
    key("sliding_window_layout", "lists the layers with a sliding window")
        .unless(kEmpty),
    key("hybrid_layer_pattern", "lists the layers with a sliding window")
        .unless(kEmpty)
        .read(),
    key("full_attention_idx", "lists the layers without sliding window")
        .unless(kEmpty),
    key("global_attn_every_n_layers",
        "is the interval of the layers without sliding window")
        .otherwiseIgnored(),
    key("attention_chunk_size", "divides the sequence into chunks that do not "
                                "see each other")
        .unless(kZero)
        .readFor(chunkSized),
    key("is_causal", "makes tokens see earlier tokens only; false: all tokens")
        .unless(kTrue)
        .read(),
    key("causal", "makes tokens of an encoder see earlier tokens only")
        .unless(kFalse)
        .refusedFor(nomicBert),
    key("is_decoder", "makes tokens of an encoder see earlier tokens only")
        .unless(kFalse)
        .otherwiseIgnored(),
    key("use_bidirectional_attention", "makes tokens see later tokens as well")
        .unless(kFalse)
        .read(),
    key("prefix_lm", "makes tokens of a prefix see each other")
        .unless(kFalse)
        .readFor(prefixed),
    key("sparse_config", "restricts attention to blocks of keys")
        .unless(kEmpty)
        .refusedFor(minicpm)
        .advising("remove it if no sequence is longer than its 'dense_len'"),
    key("blocksparse_block_size", "restricts attention to blocks of keys"),
    key("moba_chunk_size", "restricts attention to blocks of keys"),
    key("index_topk", selectsSparse).unless(kZero).readFor(sparseLatent),
    key("index_topk_blocks", selectsSparse).unless(kZero).readFor(minimaxM3),
    key("indexer_budget", selectsSparse).unless(kZero).readFor(qwen4),
    key("conv_window", "mixes keys and values with those of earlier tokens")
        .unless(kZero | kOne),

    // Scores.
    key("attn_logit_softcapping", "limits scores by a soft cap")
        .read()
        .ignoredBy(uncapped),
    key("attn_logit_softcapping_method",
        "selects the function of the soft cap of scores")
        .unless(kEmpty),
    key("max_attn_value", "limits scores by a soft cap").unless(kZero),
    key("softcap", "limits scores by a soft cap").unless(kZero),
    key("query_pre_attn_scalar", "sets the scale of scores to its root's "
                                 "inverse")
        .read(),
    key("attention_multiplier", "sets the scale of scores").read(),
    key("attn_output_multiplier", "sets the scale of scores"),
    key("mup_attn_multiplier", "sets the scale of scores"),
    key("qk_scale_factor", "sets the scale of scores").readFor(muse),
    key("softmax_scale", "sets the scale of scores").readFor(mpt),
    key("scale_attn_weights", "divides scores by the root of the head size")
        .unless(kTrue),
    key("scale_attn_by_inverse_layer_idx", "divides scores by the number of "
                                           "the layer")
        .unless(kFalse),
    key("scale_qk_dot_by_d", "divides scores by the head size").unless(kFalse),
    key("mup_scale_qk_dot_by_d", "divides scores by the head size")
        .unless(kFalse),
    key("scale_qk_dot_by_layer_idx", "divides scores by the number of the "
                                     "layer")
        .unless(kFalse),
    key("use_logn_attn",
        "multiplies queries by a logarithm of their position, beyond "
        "'seq_length'")
        .unless(kFalse)
        .readFor(qwen1)
        .advising(adviseShort),
    key("logn", "multiplies queries by a logarithm of their position")
        .unless(kFalse)
        .advising(adviseShort),
    key("logn_attention_scale",
        "multiplies queries by a logarithm of the length of the sequence")
        .unless(kFalse),
    key("log_scaling_n_floor",
        "multiplies queries by a logarithm of their position")
        .unless(kZero),
    key("attn_temperature_len",
        "multiplies queries by a logarithm of their position")
        .unless(kZero | kNegative),
    key("attn_temperature_tuning",
        "multiplies queries of layers that do not rotate by a logarithm of "
        "their position")
        .unless(kFalse | kZero)
        .readFor(chunked),
    key("attn_scale", "is the factor of that logarithm")
        .readFor(chunked)
        .otherwiseIgnored(),
    key("floor_scale", "is the length that divides positions in that logarithm")
        .readFor(chunked)
        .otherwiseIgnored(),
    key("alibi_bias_max", "sets the slopes of ALiBi").readFor(mpt),
    key("alibi_scaling", "scales the slopes of ALiBi").unless(kEmpty),
    key("relative_attention_num_buckets",
        "sets the number of buckets of a learned bias of the scores")
        .readFor(t5)
        .otherwiseIgnored(),
    key("relative_attention_max_distance",
        "sets the distance of the last bucket")
        .readFor(t5)
        .otherwiseIgnored(),
    key("rel_extent", "adds learned terms of relative positions to the scores")
        .unless(kZero),
    key("add_swa_attention_sink_bias", addsSinks).unless(kFalse).readFor(mimo),
    key("add_full_attention_sink_bias", addsSinks).unless(kFalse).readFor(mimo),
    key("learnable_sink_init", addsSinks).readFor(hyV4),
    key("param_sink_number", "adds learned keys and values to each sequence")
        .unless(kZero),

    // Keys of the dictionaries rope_scaling and rope_parameters, besides those
    // of the scalings, which RopeTypes.cpp lists.
    dictionaryKey("rope_type", "selects the scaling").read(),
    dictionaryKey("type", "selects the scaling").read(),
    dictionaryKey("rope_theta", setsBase).read(),
    dictionaryKey("partial_rotary_factor", setsFraction).read(),
    dictionaryKey("max_position_embeddings", "repeats the key of the config")
        .read(),
    dictionaryKey("apply_yarn_scaling",
                  "multiplies cos and sin by the factor of yarn")
        .unless(kTrue)
        .advising("write \"attention_factor\": 1 instead"),
    dictionaryKey("mrope_section",
                  "divides pairs among several positions of a token")
        .read(),
    dictionaryKey("mrope_interleaved", "interleaves these pairs").read(),
    dictionaryKey("xdrope_section",
                  "divides pairs among several positions of a token"),
    dictionaryKey("use_fope",
                  "replaces rotations by sums of several frequencies")
        .unless(kFalse),
    dictionaryKey("llama_4_scaling_beta",
                  "multiplies queries by a logarithm of their position")
        .unless(kZero)
        .read(),
};

llvm::ArrayRef<PositionKey> posenc::frontend::getPositionKeyRows() {
  return rows;
}
