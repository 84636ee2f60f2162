//===- WarningTest.cpp - position and key of every warning ----------------===//
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

struct WarningCase {
  const char *name;
  const char *marked; // as in ErrorTest
  const char *key;
};

const WarningCase cases[] = {
    {"UnknownKeyOfDefault",
     R"("rope_parameters": {"rope_type": "default", ^"factor": 2})", "factor"},
    {"UnknownKeyOfLinear",
     R"("rope_scaling": {"type": "linear", "factor": 2, ^"finetuned": true})",
     "finetuned"},
    {"UnknownKeyOfLlama3",
     R"("rope_scaling": {"rope_type": "llama3", "factor": 8, ^"beta_fast": 32,
        "low_freq_factor": 1, "high_freq_factor": 4,
        "original_max_position_embeddings": 8192})",
     "beta_fast"},
    {"UnknownKeyOfYarn",
     R"("max_position_embeddings": 4096, "rope_scaling": {"factor": 4,
        "rope_type": "yarn", ^"low_freq_factor": 1})",
     "low_freq_factor"},
    {"LinearFactorBelowOne",
     R"("rope_scaling": {"type": "linear", "factor": ^0.5})", "factor"},
    {"Llama3FactorBelowOne",
     R"("rope_scaling": {"rope_type": "llama3", "factor": ^0.5,
        "low_freq_factor": 1, "high_freq_factor": 4,
        "original_max_position_embeddings": 8192})",
     "factor"},
    {"YarnFactorBelowOne",
     R"("rope_scaling": {"rope_type": "yarn", "factor": ^0.5,
        "original_max_position_embeddings": 8192})",
     "factor"},
    {"Llama3LengthNotLess",
     R"("max_position_embeddings": 8192, "rope_scaling": {"factor": 8,
        "rope_type": "llama3", "low_freq_factor": 1, "high_freq_factor": 4,
        "original_max_position_embeddings": ^8192})",
     "original_max_position_embeddings"},
    {"YarnLengthNotLess",
     R"("max_position_embeddings": 8192, "rope_scaling": {"factor": 1,
        "rope_type": "yarn", "original_max_position_embeddings": ^8192})",
     "original_max_position_embeddings"},
    {"YarnOuterLengthNotLess",
     R"("max_position_embeddings": 8192,
        "original_max_position_embeddings": ^8192,
        "rope_scaling": {"factor": 1, "rope_type": "yarn"})",
     "original_max_position_embeddings"},
    {"YarnRatio",
     R"("max_position_embeddings": 32768, "rope_scaling": {"factor": ^4,
        "rope_type": "yarn", "original_max_position_embeddings": 4096})",
     "factor"},
    {"UnknownModel",
     R"({"model_type": ^"mine", "hidden_size": 64, "num_attention_heads": 4,
         "rope_theta": 10000})",
     "model_type"},
    {"RotaryUnderAnotherType",
     R"({"model_type": ^"xlm-roberta", "hidden_size": 512,
         "num_attention_heads": 8, "position_embedding_type": "rotary",
         "rotary_emb_base": 2e4})",
     "xlm-roberta"},
    {"DefaultKeyHeads",
     R"(^{"model_type": "mistral", "hidden_size": 768,
         "num_attention_heads": 12})",
     "num_key_value_heads"},
    {"DecoderOfTwo",
     R"({"model_type": "dia", "encoder_config": {"model_type": "dia_encoder"},
         ^"decoder_config": {"model_type": "dia_decoder",
           "num_attention_heads": 16}})",
     "encoder_config"},
    {"PartOfWholeHeads", R"("partial_rotary_factor": ^0.5)", "llama"},
    {"PartOfWholeHeadsInADictionary",
     R"("rope_parameters": {"rope_type": "default",
        "partial_rotary_factor": ^0.5})",
     "partial_rotary_factor"},
    {"PartOfLatentHeads",
     R"({"model_type": "bailing_hybrid", "hidden_size": 4096,
         "num_attention_heads": 32, "head_dim": 128, "qk_rope_head_dim": 64,
         "partial_rotary_factor": ^0.25})",
     "qk_rope_head_dim"},
    {"BaseBesideADefaultDictionary",
     R"({"model_type": "cwm", "hidden_size": 512, "num_attention_heads": 8,
         "num_key_value_heads": 8, "rope_theta": ^2e4})",
     "cwm"},
    {"BaseUnderAnotherKey",
     R"({"model_type": "gpt_neox", "hidden_size": 512,
         "num_attention_heads": 8, "rope_theta": ^2e4})",
     "gpt_neox"},
    {"SlidingBaseOfAnotherType", R"("rope_local_base_freq": ^2e4)",
     "rope_local_base_freq"},
    {"ScalingOfTypesWithoutOne",
     R"({"model_type": "esm", "hidden_size": 512, "num_attention_heads": 8,
         "position_embedding_type": "rotary",
         "rope_scaling": ^{"rope_type": "linear", "factor": 4}})",
     "esm"},
    {"BaseInADictionaryOfTypesWithoutOne",
     R"({"model_type": "esm", "hidden_size": 512, "num_attention_heads": 8,
         "position_embedding_type": "rotary",
         "rope_parameters": ^{"rope_type": "default", "rope_theta": 2e4}})",
     "esm"},
    {"DictionaryWithoutLayerTypes",
     R"({"model_type": "gemma3_text", "hidden_size": 512,
         "rope_parameters": ^{"rope_type": "linear", "factor": 8}})",
     "gemma3_text"},
    {"WindowBaseOfAnotherType",
     R"({"model_type": "dots1", "hidden_size": 512, "num_attention_heads": 8,
         "swa_rope_theta": ^2e4})",
     "swa_rope_theta"},
    {"RotaryDimOfMiniMax",
     R"({"model_type": "minimax", "hidden_size": 512,
         "num_attention_heads": 8, "head_dim": 64, "rotary_dim": ^32})",
     "rotary_dim"},
    {"NoModelType",
     R"(^{"hidden_size": 64, "num_attention_heads": 4, "rope_scaling": null})",
     "model_type"},
};

class WarningTest : public testing::TestWithParam<WarningCase> {};

TEST_P(WarningTest, IsReportedOnceAtItsPosition) {
  llvm::StringRef marked = GetParam().marked;
  Marked config(marked.ltrim('^').starts_with("{") ? marked.str()
                                                   : llama(marked));
  Outcome outcome = read(config.text);
  EXPECT_TRUE(outcome.config) << outcome.printed();
  EXPECT_TRUE(
      hasDiagnostic(outcome, Severity::Warning, config, GetParam().key));
  EXPECT_EQ(outcome.diags.size(), 1u) << outcome.printed();
}

INSTANTIATE_TEST_SUITE_P(All, WarningTest, testing::ValuesIn(cases),
                         [](const auto &info) { return info.param.name; });

/// Members of configs without diagnostics.
const char *const silent[] = {
    "",
    R"("rope_scaling": null)",
    R"("rope_scaling": {})",
    R"("rope_scaling": null, "rope_parameters": null)",
    R"("rope_parameters": {"rope_theta": 10000})",
    R"("rope_theta": 10000, "rope_parameters": {"rope_theta": 10000.0})",
    R"("rope_scaling": {"type": "linear", "factor": 2},
       "rope_parameters": {"rope_type": "linear", "factor": 2.0,
                           "rope_theta": 10000.0})",
    R"("rope_scaling": {"type": "linear", "rope_type": "linear", "factor": 2})",
    R"("rope_scaling": {"rope_type": "linear", "factor": 1})",
    R"("partial_rotary_factor": 1.0)",
    R"("rope_parameters": {"rope_type": "proportional", "rope_theta": 10000.0,
       "partial_rotary_factor": 0.5})",
    // The middle band may be empty, as in published configs.
    R"("rope_scaling": {"rope_type": "llama3", "factor": 8,
       "low_freq_factor": 4, "high_freq_factor": 4,
       "original_max_position_embeddings": 8192})",
    // llama3's factor is not the ratio of the lengths.
    R"("max_position_embeddings": 131072, "rope_scaling": {"factor": 8,
       "rope_type": "llama3", "low_freq_factor": 1, "high_freq_factor": 4,
       "original_max_position_embeddings": 8192})",
    // A length that defaults to max_position_embeddings is not compared with
    // it.
    R"("max_position_embeddings": 4096,
       "rope_scaling": {"rope_type": "yarn", "factor": 4})",
    R"("max_position_embeddings": 13107.2e1, "rope_scaling": {
       "rope_type": "yarn", "factor": 3.2, "beta_fast": 1, "beta_slow": 1,
       "original_max_position_embeddings": 40960})",
    R"("rope_theta": 1e4, "rope_theta": 10000)",
    R"("torch_dtype": null, "dtype": "auto")",
    R"("torch_dtype": "torch.float16", "dtype": "float16")",
    R"("time_step_limit": [0.0, Infinity], "weight": NaN)",
    R"("no_rope_layers": [1, 1, 1, 0])",
    R"("layer_types": ["sliding_attention", "full_attention"])",
    R"("position_embedding_type": "absolute")",
    R"("rope_parameters": {
         "full_attention": {"rope_type": "default", "rope_theta": 1e4},
         "sliding_attention": {"rope_theta": 10000, "rope_type": "default"}})",
    // Keys that the model's own code does not read have its values.
    R"("model_type": "cwm", "rope_theta": 1e6)",
    R"("model_type": "cwm", "rope_theta": 2e4,
       "rope_scaling": {"rope_type": "linear", "factor": 2})",
    R"("model_type": "modernbert", "rope_theta": 160000)",
    R"("model_type": "modernbert", "rope_local_base_freq": 1e4)",
    R"("model_type": "gemma3_text",
       "rope_parameters": {"rope_type": "default", "rope_theta": 1e6})",
    R"("model_type": "esm", "position_embedding_type": "rotary",
       "rope_scaling": {"rope_type": "default", "rope_theta": 1e4})",
};

/// Returns a config with sizes and the given members.
std::string sized(llvm::StringRef members) {
  return R"({"hidden_size": 512, "num_attention_heads": 8,
      "num_key_value_heads": 8, )" +
         members.str() + "}";
}

TEST(WarningsTest, NoneWithoutCause) {
  for (const char *members : silent) {
    bool hasType = llvm::StringRef(members).starts_with("\"model_type\"");
    Outcome outcome = read(hasType ? sized(members) : llama(members));
    EXPECT_TRUE(outcome.config) << members;
    EXPECT_TRUE(outcome.diags.empty()) << members << '\n' << outcome.printed();
  }
}

} // namespace
