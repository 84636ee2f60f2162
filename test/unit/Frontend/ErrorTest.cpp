//===- ErrorTest.cpp - position and key of every error --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

using namespace posenc::frontend;
using namespace posenc::frontend::test;

namespace {

struct ErrorCase {
  const char *name;
  /// Members of a Llama config, or a whole config if the text begins with '{'.
  /// The caret marks the position of the only error.
  const char *marked;
  const char *key;
};

const ErrorCase cases[] = {
    // Heads and sizes.
    {"HeadsMissing", R"(^{"model_type": "llama", "hidden_size": 64})",
     "num_attention_heads"},
    {"HeadsNull",
     R"({"model_type": "llama", "hidden_size": 64,
         "num_attention_heads": ^null})",
     "num_attention_heads"},
    {"HeadsZero",
     R"({"model_type": "llama", "hidden_size": 64,
         "num_attention_heads": ^0})",
     "num_attention_heads"},
    {"HeadsNegative",
     R"({"model_type": "llama", "hidden_size": 64,
         "num_attention_heads": ^-8})",
     "num_attention_heads"},
    {"HeadsTooMany",
     R"({"model_type": "llama", "head_dim": 64,
         "num_attention_heads": ^2147483648})",
     "num_attention_heads"},
    {"HeadsBeyondInt64",
     R"({"model_type": "llama", "head_dim": 64,
         "num_attention_heads": ^99999999999999999999})",
     "num_attention_heads"},
    {"HeadsFraction",
     R"({"model_type": "llama", "hidden_size": 64,
         "num_attention_heads": ^4.5})",
     "num_attention_heads"},
    {"HeadsBoolean",
     R"({"model_type": "llama", "hidden_size": 64,
         "num_attention_heads": ^true})",
     "num_attention_heads"},
    {"HeadsString",
     R"({"model_type": "llama", "hidden_size": 64,
         "num_attention_heads": ^"8"})",
     "num_attention_heads"},
    {"HeadsDoNotDivide",
     R"({"model_type": "llama", "hidden_size": 4096,
         "num_attention_heads": ^33})",
     "num_attention_heads"},
    {"HiddenMissing", R"(^{"model_type": "llama", "num_attention_heads": 8})",
     "hidden_size"},
    {"HiddenFraction",
     R"({"model_type": "llama", "hidden_size": ^4096.5,
         "num_attention_heads": 32})",
     "hidden_size"},
    {"HiddenArray",
     R"({"model_type": "llama", "hidden_size": ^[4096],
         "num_attention_heads": 32})",
     "hidden_size"},
    {"HeadDimZero", R"("head_dim": ^0)", "head_dim"},
    {"HeadDimOdd", R"("head_dim": ^65)", "partial_rotary_factor"},
    {"KeyHeadsDoNotDivide", R"("num_key_value_heads": ^5)",
     "num_key_value_heads"},
    {"KeyHeadsTooMany", R"("num_key_value_heads": ^64)", "num_key_value_heads"},
    {"KeyHeadsZero", R"("num_key_value_heads": ^0)", "num_key_value_heads"},
    {"LatentHeadDimMissing",
     R"(^{"model_type": "deepseek_v3", "hidden_size": 7168,
         "num_attention_heads": 128})",
     "qk_rope_head_dim"},
    {"MaxPositionZero", R"("max_position_embeddings": ^0)",
     "max_position_embeddings"},
    {"MaxPositionTooLarge", R"("max_position_embeddings": ^1e10)",
     "max_position_embeddings"},
    {"FalconNumKvHeads",
     R"({"model_type": "falcon", "hidden_size": 128, "num_kv_heads": ^3,
         "num_attention_heads": 8, "new_decoder_architecture": true})",
     "num_kv_heads"},

    // The rotary dimension.
    {"PartialZero", R"("partial_rotary_factor": ^0)", "partial_rotary_factor"},
    {"PartialAboveOne", R"("partial_rotary_factor": ^1.01)",
     "partial_rotary_factor"},
    {"PartialNegative", R"("partial_rotary_factor": ^-0.5)",
     "partial_rotary_factor"},
    {"PartialOdd", R"("partial_rotary_factor": ^0.12)",
     "partial_rotary_factor"},
    {"PartialNone", R"("partial_rotary_factor": ^1e-6)",
     "partial_rotary_factor"},
    {"PartialTwice",
     R"("partial_rotary_factor": 0.5, "rope_parameters":
        {"rope_type": "default", "partial_rotary_factor": ^0.25})",
     "partial_rotary_factor"},
    {"NeoxFraction",
     R"({"model_type": "gpt_neox", "hidden_size": 128,
         "num_attention_heads": 4, "rotary_pct": ^2})",
     "rotary_pct"},
    {"RotaryDimOdd",
     R"({"model_type": "gptj", "n_embd": 1024, "n_head": 4,
         "rotary_dim": ^63})",
     "rotary_dim"},
    {"RotaryDimTooLarge",
     R"({"model_type": "gptj", "n_embd": 1024, "n_head": 16,
         "rotary_dim": ^128})",
     "rotary_dim"},
    {"RotaryDimNull",
     R"({"model_type": "gptj", "n_embd": 1024, "n_head": 16,
         "rotary_dim": ^null})",
     "rotary_dim"},
    {"RotaryDimDefaultTooLarge",
     R"({"model_type": "codegen", "n_embd": ^512, "n_head": 16})",
     "rotary_dim"},
    {"RotaryDimAndPartial",
     R"({"model_type": "llama_of_mine", "head_dim": 64, "rotary_dim": 16,
         "num_attention_heads": 4, "partial_rotary_factor": ^0.5})",
     "partial_rotary_factor"},

    {"LatentUnknown",
     R"({"model_type": "mine", "hidden_size": 64, "rope_theta": 1e4,
         "num_attention_heads": 4, ^"qk_rope_head_dim": 8})",
     "qk_rope_head_dim"},
    {"HeadDimTooLarge", R"("head_dim": ^65538)", "partial_rotary_factor"},
    {"RotaryDimBeyondAll",
     R"({"model_type": "gptj", "n_embd": 131072, "n_head": 1,
         "rotary_dim": ^65538})",
     "rotary_dim"},

    // The base.
    {"ThetaZero", R"("rope_theta": ^0)", "rope_theta"},
    {"ThetaNegative", R"("rope_theta": ^-10000.0)", "rope_theta"},
    {"ThetaTiny", R"("rope_theta": ^5e-20)", "rope_theta"},
    {"FactorTiny", R"("rope_scaling": {"type": "linear", "factor": ^1e-300})",
     "factor"},
    {"ThetaString", R"("rope_theta": ^"10000")", "rope_theta"},
    {"ThetaNaN", R"("rope_theta": ^NaN)", "rope_theta"},
    {"ThetaInfinity", R"("rope_theta": ^Infinity)", "rope_theta"},
    {"ThetaMinusInfinity", R"("rope_theta": ^-Infinity)", "rope_theta"},
    {"ThetaOverflow", R"("rope_theta": ^1e999)", "rope_theta"},
    {"ThetaTwice",
     R"("rope_theta": 10000, "rope_parameters":
        {"rope_type": "default", "rope_theta": ^500000})",
     "rope_theta"},
    {"ThetaTwiceInScaling",
     R"("rope_theta": 10000, "rope_scaling": {"rope_theta": ^10001})",
     "rope_theta"},
    {"ThetaTwiceInNeox",
     R"({"model_type": "gpt_neox", "hidden_size": 128, "rope_theta": ^1e5,
         "num_attention_heads": 4, "rotary_emb_base": 1e4})",
     "rope_theta"},
    {"YarnThetaOne",
     R"("rope_theta": ^1, "rope_scaling": {"rope_type": "yarn",
        "factor": 4, "original_max_position_embeddings": 4096})",
     "rope_theta"},

    // The dictionary and its type.
    {"DictionaryString", R"("rope_scaling": ^"linear")", "rope_scaling"},
    {"DictionaryArray", R"("rope_parameters": ^[])", "rope_parameters"},
    {"TypeMissing", R"("rope_scaling": ^{"factor": 2.0})", "rope_type"},
    {"TypeNull", R"("rope_scaling": ^{"type": null, "factor": 2.0})",
     "rope_type"},
    {"TypeUnknown", R"("rope_scaling": {"rope_type": ^"linaer", "factor": 2})",
     "rope_type"},
    {"TypeUnknownOldKey", R"("rope_scaling": {"type": ^"abf", "factor": 2})",
     "type"},
    {"TypeNumber", R"("rope_scaling": {"rope_type": ^1, "factor": 2})",
     "rope_type"},
    {"TypesDiffer",
     R"("rope_scaling": {"type": "linear", "rope_type": ^"yarn",
        "factor": 2})",
     "rope_type"},
    {"DictionariesDiffer",
     R"("rope_scaling": {"type": "linear", "factor": 2},
        "rope_parameters": ^{"rope_type": "linear", "factor": 4})",
     "rope_parameters"},
    {"DictionariesDifferByAKey",
     R"("rope_scaling": {"type": "linear", "factor": 2},
        "rope_parameters": ^{"rope_type": "default"})",
     "rope_parameters"},
    {"MropeWithoutSections", R"("rope_scaling": ^{"type": "mrope"})",
     "mrope_section"},
    {"InterleavedWithoutSections",
     R"("rope_scaling": ^{"type": "default", "mrope_interleaved": true})",
     "mrope_section"},
    {"SectionsNumber",
     R"("rope_scaling": {"type": "mrope", "mrope_section": ^16})",
     "mrope_section"},
    {"SectionsSingle",
     R"("rope_scaling": {"type": "mrope", "mrope_section": ^[64]})",
     "mrope_section"},
    {"SectionsZero",
     R"("rope_scaling": {"type": "mrope", "mrope_section": [40, 24, ^0]})",
     "mrope_section"},
    {"SectionsFraction",
     R"("rope_scaling": {"type": "mrope", "mrope_section": [40, ^23.5, 0.5]})",
     "mrope_section"},
    {"SectionsSum",
     R"("rope_parameters": {"rope_type": "default",
        "mrope_section": ^[16, 24, 25]})",
     "mrope_section"},
    {"InterleavedNumber",
     R"("rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24],
        "mrope_interleaved": ^1})",
     "mrope_interleaved"},

    // ntk, dynamic, longrope and proportional.
    {"NtkFactorMissing", R"("rope_scaling": ^{"type": "ntk"})", "factor"},
    {"NtkMixedNegative",
     R"("rope_scaling": {"type": "ntk", "factor": 2, "mixed_b": ^-1})",
     "mixed_b"},
    {"DynamicLength",
     R"("max_position_embeddings": 4096,
        "rope_scaling": ^{"type": "dynamic", "factor": 2})",
     "dynamic"},
    {"DynamicFactorMissing",
     R"("max_position_embeddings": 4096, "rope_scaling": ^{"type": "dynamic"})",
     "factor"},
    {"DynamicAlphaZero",
     R"("rope_scaling": {"type": "dynamic", "alpha": ^0, "factor": 1},
        "max_position_embeddings": 4096)",
     "alpha"},
    {"LongropeListMissing",
     R"({"model_type": "llama", "num_attention_heads": 1, "head_dim": 2,
        "max_position_embeddings": 4096,
        "rope_scaling": ^{"type": "longrope", "short_factor": [1]}})",
     "long_factor"},
    {"LongropeListNumber",
     R"({"model_type": "llama", "num_attention_heads": 1, "head_dim": 2,
        "max_position_embeddings": 4096, "rope_scaling":
        {"type": "su", "short_factor": ^1, "long_factor": [1]}})",
     "short_factor"},
    {"LongropeListLength",
     R"({"model_type": "llama", "num_attention_heads": 1, "head_dim": 2,
        "max_position_embeddings": 4096, "rope_scaling":
        {"type": "su", "short_factor": ^[1, 2], "long_factor": [1]}})",
     "short_factor"},
    {"LongropeListZero",
     R"({"model_type": "llama", "num_attention_heads": 1, "head_dim": 2,
        "max_position_embeddings": 4096, "rope_scaling":
        {"type": "su", "short_factor": [1], "long_factor": [^0]}})",
     "long_factor"},
    {"LongropeOriginalOne",
     R"({"model_type": "llama", "num_attention_heads": 1, "head_dim": 2,
        "rope_scaling": {"type": "longrope", "short_factor": [1],
        "long_factor": [1], "original_max_position_embeddings": ^1}})",
     "original_max_position_embeddings"},
    {"LongropeFactorZero",
     R"({"model_type": "llama", "num_attention_heads": 1, "head_dim": 2,
        "max_position_embeddings": 4096, "rope_scaling":
        {"type": "longrope", "short_factor": [1], "long_factor": [1],
         "factor": ^0}})",
     "factor"},
    {"LongropeScaleNegative",
     R"({"model_type": "llama", "num_attention_heads": 1, "head_dim": 2,
        "max_position_embeddings": 4096, "rope_scaling":
        {"type": "longrope", "short_factor": [1], "long_factor": [1],
         "long_mscale": ^-1}})",
     "long_mscale"},
    {"ProportionalFactorZero",
     R"("rope_parameters": {"rope_type": "proportional", "factor": ^0})",
     "factor"},
    {"YarnExtrapolationAboveOne",
     R"("max_position_embeddings": 4096, "rope_scaling":
        {"type": "yarn", "factor": 2, "extrapolation_factor": ^2})",
     "extrapolation_factor"},
    {"YarnAttnFactorZero",
     R"("max_position_embeddings": 4096, "rope_scaling":
        {"type": "yarn", "factor": 2, "attn_factor": ^0})",
     "attn_factor"},

    // linear.
    {"LinearFactorMissing", R"("rope_scaling": ^{"type": "linear"})", "factor"},
    {"LinearFactorNull",
     R"("rope_scaling": {"type": "linear", "factor": ^null})", "factor"},
    {"LinearFactorZero", R"("rope_scaling": {"type": "linear", "factor": ^0})",
     "factor"},
    {"LinearFactorNegative",
     R"("rope_scaling": {"type": "linear", "factor": ^-2.0})", "factor"},
    {"LinearFactorBoolean",
     R"("rope_scaling": {"type": "linear", "factor": ^true})", "factor"},
    {"LinearFactorList",
     R"("rope_scaling": {"type": "linear", "factor": ^[2.0]})", "factor"},
    {"LinearFactorNaN", R"("rope_scaling": {"type": "linear", "factor": ^NaN})",
     "factor"},

    // llama3.
    {"Llama3FactorMissing",
     R"("rope_scaling": ^{"rope_type": "llama3", "low_freq_factor": 1,
        "high_freq_factor": 4, "original_max_position_embeddings": 8192})",
     "factor"},
    {"Llama3LowMissing",
     R"("rope_scaling": ^{"rope_type": "llama3", "factor": 8,
        "high_freq_factor": 4, "original_max_position_embeddings": 8192})",
     "low_freq_factor"},
    {"Llama3HighMissing",
     R"("rope_scaling": ^{"rope_type": "llama3", "factor": 8,
        "low_freq_factor": 1, "original_max_position_embeddings": 8192})",
     "high_freq_factor"},
    {"Llama3HighBelowLow",
     R"("rope_scaling": {"rope_type": "llama3", "factor": 8,
        "low_freq_factor": 4, "high_freq_factor": ^1,
        "original_max_position_embeddings": 8192})",
     "high_freq_factor"},
    {"Llama3LowZero",
     R"("rope_scaling": {"rope_type": "llama3", "factor": 8,
        "low_freq_factor": ^0, "high_freq_factor": 1,
        "original_max_position_embeddings": 8192})",
     "low_freq_factor"},
    {"Llama3NoLength",
     R"("rope_scaling": ^{"rope_type": "llama3", "factor": 8,
        "low_freq_factor": 1, "high_freq_factor": 4})",
     "original_max_position_embeddings"},
    {"Llama3LengthZero",
     R"("rope_scaling": {"rope_type": "llama3", "factor": 8,
        "low_freq_factor": 1, "high_freq_factor": 4,
        "original_max_position_embeddings": ^0})",
     "original_max_position_embeddings"},

    // yarn.
    {"YarnFactorMissing",
     R"("rope_scaling": ^{"rope_type": "yarn",
        "original_max_position_embeddings": 4096})",
     "factor"},
    {"YarnFactorNullWithoutLength",
     R"("rope_scaling": {"rope_type": "yarn", "factor": ^null,
        "original_max_position_embeddings": 4096})",
     "max_position_embeddings"},
    {"YarnNoLength", R"("rope_scaling": ^{"rope_type": "yarn", "factor": 4})",
     "original_max_position_embeddings"},
    {"YarnLengthFraction",
     R"("rope_scaling": {"rope_type": "yarn", "factor": 4,
        "original_max_position_embeddings": ^4096.5})",
     "original_max_position_embeddings"},
    {"YarnOuterLengthZero",
     R"("original_max_position_embeddings": ^0,
        "rope_scaling": {"rope_type": "yarn", "factor": 4})",
     "original_max_position_embeddings"},
    {"YarnBetas",
     R"("max_position_embeddings": 4096, "rope_scaling": {"factor": 4,
        "rope_type": "yarn", "beta_fast": ^1, "beta_slow": 32})",
     "beta_fast"},
    {"YarnBetaSlowAlone",
     R"("max_position_embeddings": 4096, "rope_scaling": {"factor": 4,
        "rope_type": "yarn", "beta_slow": ^33})",
     "beta_slow"},
    {"YarnBetaNegative",
     R"("max_position_embeddings": 4096, "rope_scaling": {"factor": 4,
        "rope_type": "yarn", "beta_slow": ^-1})",
     "beta_slow"},
    {"YarnAttentionFactor",
     R"("max_position_embeddings": 4096, "rope_scaling": {"factor": 4,
        "rope_type": "yarn", "attention_factor": ^"big"})",
     "attention_factor"},
    {"YarnAttentionFactorZero",
     R"("max_position_embeddings": 4096, "rope_scaling": {"factor": 4,
        "rope_type": "yarn", "attention_factor": ^0})",
     "attention_factor"},
    {"YarnMscale",
     R"("max_position_embeddings": 4096, "rope_scaling": {"factor": 4,
        "rope_type": "yarn", "mscale": ^[]})",
     "mscale"},
    {"YarnTruncate",
     R"("max_position_embeddings": 4096, "rope_scaling": {"factor": 4,
        "rope_type": "yarn", "truncate": ^0})",
     "truncate"},

    // The element type.
    {"DTypeUnknown", R"("torch_dtype": ^"int8")", "torch_dtype"},
    {"DTypeNumber", R"("dtype": ^16)", "dtype"},
    {"DTypesDiffer", R"("torch_dtype": "float16", "dtype": ^"bfloat16")",
     "torch_dtype"},

    // The model's type.
    {"Bert", R"({"model_type": ^"bert", "hidden_size": 768})", "model_type"},
    {"Gpt2", R"({"model_type": ^"gpt2", "n_embd": 768})", "model_type"},
    {"Bloom", R"({"model_type": ^"bloom"})", "model_type"},
    {"Mpt", R"({"model_type": ^"mpt", "rope_theta": 1})", "model_type"},
    {"FalconAlibi",
     R"({"model_type": "falcon", "hidden_size": 128, "alibi": ^true,
         "num_attention_heads": 8})",
     "alibi"},
    {"EsmAbsolute",
     R"({"model_type": "esm", "hidden_size": 128, "num_attention_heads": 8,
         "position_embedding_type": ^"absolute"})",
     "position_embedding_type"},
    {"GraniteHybridWithout",
     R"(^{"model_type": "granitemoehybrid", "hidden_size": 128,
         "num_attention_heads": 8})",
     "position_embedding_type"},
    {"UnknownAbsolute",
     R"({"model_type": "mine", "hidden_size": 128, "num_attention_heads": 8,
         "rope_theta": 1e4, "position_embedding_type": ^"absolute"})",
     "position_embedding_type"},
    {"TypeNotAString", R"({"model_type": ^7, "rope_theta": 1})", "model_type"},
    {"UnknownWithoutRopeKeys",
     R"({"model_type": ^"mine", "hidden_size": 64,
         "num_attention_heads": 4})",
     "model_type"},
    {"NoTypeNoRopeKeys", R"(^{"hidden_size": 64, "num_attention_heads": 4})",
     "model_type"},
    {"RopeInterleave",
     R"({"model_type": "deepseek_v3", "num_attention_heads": 128,
         "qk_rope_head_dim": 64, "rope_interleave": ^1})",
     "rope_interleave"},

    // Layer types.
    {"LayerWithoutDictionary",
     R"("layer_types": ^["full_attention", "sliding_attention"],
        "rope_parameters": {
          "full_attention": {"rope_type": "default", "rope_theta": 1000000},
          "other_attention": {"rope_type": "default", "rope_theta": 1e4}})",
     "sliding_attention"},
    {"LayerIsNoObject",
     R"("rope_parameters": {
          "full_attention": {"rope_type": "default", "rope_theta": 1000000},
          "sliding_attention": ^1e4})",
     "sliding_attention"},
    {"LayerIsNoName",
     R"("rope_parameters": {
          "full_attention": {"rope_type": "default", "rope_theta": 1000000},
          ^"sliding-attention": {"rope_type": "default", "rope_theta": 1e4}})",
     "rope_parameters"},
    {"LayerOfUnknownType",
     R"("rope_parameters": {
          "full_attention": {"rope_type": "default", "rope_theta": 1000000},
          "sliding_attention": {"rope_type": ^"linea", "rope_theta": 1e4}})",
     "rope_type"},
    {"LayerOfTwoBases",
     R"("rope_theta": 1e6, "rope_parameters": {
          "full_attention": {"rope_type": "default", "rope_theta": ^1e5},
          "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}})",
     "rope_theta"},
    {"LayersInTwoDictionaries",
     R"("rope_scaling": {"rope_type": "linear", "factor": 2},
        "rope_parameters": ^{
          "full_attention": {"rope_type": "default", "rope_theta": 1e6},
          "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}})",
     "rope_parameters"},
    {"LayersOfTwoFractions",
     R"("partial_rotary_factor": 0.5, "rope_parameters": {
          "full_attention": {"rope_type": "default", "rope_theta": 1e6},
          "sliding_attention": {"rope_type": "default", "rope_theta": 1e4,
                                "partial_rotary_factor": ^1}})",
     "partial_rotary_factor"},
    {"FractionOfAllLayers",
     R"("partial_rotary_factor": ^2, "rope_parameters": {
          "full_attention": {"rope_type": "default", "rope_theta": 1e6},
          "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}})",
     "partial_rotary_factor"},
    {"SeveralAxes",
     R"({"model_type": ^"pixtral", "hidden_size": 512,
         "num_attention_heads": 8, "rope_theta": 1e4})",
     "pixtral"},
    {"OneDictionaryForTwoTypes",
     R"({"model_type": "gemma2", "num_attention_heads": 8,
         "layer_types": ^["sliding_attention", "full_attention"],
         "rope_parameters": {"full_attention": {"rope_type": "linear",
           "factor": 8, "rope_theta": 1e6}}})",
     "sliding_attention"},
    {"OneDictionaryForTypesOfTheCode",
     R"({"model_type": "gemma2", "num_attention_heads": 8,
         "rope_parameters": ^{"sliding_attention": {"rope_type": "linear",
           "factor": 8, "rope_theta": 1e6}}})",
     "full_attention"},
    {"OneDictionaryOnRequest",
     R"({"model_type": "qwen2", "hidden_size": 512, "num_attention_heads": 8,
         "use_sliding_window": true, "sliding_window": 512,
         "rope_parameters": ^{"full_attention": {"rope_type": "linear",
           "factor": 8, "rope_theta": 1e6}}})",
     "sliding_attention"},
    {"NullForALayerType",
     R"({"model_type": "olmo3", "hidden_size": 512, "num_attention_heads": 8,
         "rope_parameters": {
           "full_attention": {"rope_type": "default", "rope_theta": 1e6},
           "sliding_attention": ^null}})",
     "sliding_attention"},
    {"NullForFullLayersThatRotate",
     R"({"model_type": "exaone4", "hidden_size": 512, "num_attention_heads": 8,
         "sliding_window": null, "rope_parameters": {"full_attention": ^null,
           "sliding_attention": {"rope_type": "default", "rope_theta": 3e4}}})",
     "full_attention"},
    {"OtherTypeWithoutDictionary",
     R"("layer_types": ^["full_attention", "chunked_attention"],
        "rope_parameters": {
          "full_attention": {"rope_type": "default", "rope_theta": 1e6},
          "other": {"rope_type": "default", "rope_theta": 1e4}})",
     "chunked_attention"},
    {"NoTypeWithADictionary",
     R"("layer_types": ["conv"], "rope_parameters": ^{
          "full_attention": {"rope_type": "default", "rope_theta": 1e6}})",
     "layer_types"},
    {"KeyHeadsOfGemma3",
     R"(^{"model_type": "gemma3_text", "num_attention_heads": 6})",
     "num_key_value_heads"},
    {"SlidingBase", R"("rope_local_base_freq": ^0)", "rope_local_base_freq"},
    {"TwoSlidingBases",
     R"("rope_local_base_freq": 1e4, "local_rope_theta": ^1e5)",
     "local_rope_theta"},

    // Duplicates.
    {"DuplicateKey", R"("rope_theta": 1e4, ^"rope_theta": 1e5)", "rope_theta"},
    {"DuplicateKeyIgnored", R"("vocab_size": 1, ^"vocab_size": 2)",
     "vocab_size"},
    {"DuplicateInDictionary",
     R"("rope_scaling": {"type": "linear", "factor": 2, ^"factor": 4})",
     "factor"},

    // Nested text models. Positions are relative to the file.
    {"NestedHeads",
     R"({"model_type": "llava", "text_config": {"model_type": "llama",
         "hidden_size": 64, "num_attention_heads": ^0}})",
     "num_attention_heads"},
    {"NestedMissing",
     R"({"model_type": "llava", "text_config": ^{"model_type": "llama",
         "hidden_size": 64}})",
     "num_attention_heads"},
    {"NestedBert",
     R"({"model_type": "llava", "text_config": {"model_type": ^"opt"}})",
     "model_type"},
};

class ErrorTest : public testing::TestWithParam<ErrorCase> {};

TEST_P(ErrorTest, IsReportedOnceAtItsPosition) {
  llvm::StringRef marked = GetParam().marked;
  Marked config(marked.ltrim('^').starts_with("{") ? marked.str()
                                                   : llama(marked));
  Outcome outcome = read(config.text);
  EXPECT_FALSE(outcome.config);
  EXPECT_TRUE(hasDiagnostic(outcome, Severity::Error, config, GetParam().key));
  EXPECT_EQ(outcome.count(Severity::Error), 1u) << outcome.printed();
}

INSTANTIATE_TEST_SUITE_P(All, ErrorTest, testing::ValuesIn(cases),
                         [](const auto &info) { return info.param.name; });

TEST(ErrorsTest, AllAreReportedInTheOrderOfTheText) {
  Outcome outcome = read(R"({
  "model_type": "llama",
  "hidden_size": 4096.5,
  "num_attention_heads": true,
  "num_key_value_heads": -1,
  "rope_theta": 0,
  "rope_scaling": {"rope_type": "llama3", "low_freq_factor": 0},
  "torch_dtype": "int4"
})");
  EXPECT_FALSE(outcome.config);
  llvm::SmallVector<unsigned> lines;
  for (const Diagnostic &diag : outcome.diags)
    lines.push_back(diag.line);
  EXPECT_EQ(lines, (llvm::SmallVector<unsigned>{3, 4, 5, 6, 7, 7, 7, 7, 8}))
      << outcome.printed();
}

TEST(ErrorsTest, AreBoundedInNumber) {
  std::string members = "\"x\": 0";
  for (int i = 1; i != 5000; ++i)
    members += ", \"x\": " + std::to_string(i);
  Outcome outcome = read(llama(members));
  EXPECT_FALSE(outcome.config);
  EXPECT_EQ(outcome.diags.size(), 100u);
  EXPECT_EQ(outcome.diags.back().message, "too many errors and warnings");
}

TEST(ErrorsTest, ArePrintedAsCompilersDo) {
  Outcome outcome = read("{\n  \"model_type\": \"bert\"\n}");
  EXPECT_EQ(outcome.printed(), "config.json:2:17: error: 'model_type' 'bert' "
                               "has no rotary embedding\n");
}

TEST(ErrorsTest, TextFromTheFileIsEscaped) {
  Outcome outcome = read(R"({"model_type": "a\n\u001b[31mb\u0000"})");
  EXPECT_EQ(llvm::StringRef(outcome.printed()).count('\n'), 1u);
  EXPECT_EQ(outcome.printed().find('\x1b'), std::string::npos);
}

} // namespace
