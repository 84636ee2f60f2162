//===- BiasTest.cpp - models with biases of the scores --------------------===//
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

ReadOptions withAttention() {
  ReadOptions options;
  options.attention = true;
  return options;
}

ModelConfig good(llvm::StringRef text) {
  Outcome outcome = read(text, withAttention());
  EXPECT_TRUE(outcome.config && outcome.config->attention) << text.str() << '\n'
                                                           << outcome.printed();
  EXPECT_TRUE(outcome.diags.empty()) << outcome.printed();
  if (!outcome.config || !outcome.config->attention)
    return {};
  EXPECT_FALSE(outcome.config->hasRotation());
  EXPECT_TRUE(outcome.config->attention->bias);
  return *outcome.config;
}

TEST(BiasTest, Bloom) {
  for (llvm::StringRef text :
       {R"({"model_type": "bloom", "n_head": 16, "hidden_size": 1024})",
        R"({"model_type": "bloom", "num_attention_heads": 16,
            "n_embed": 1024})"}) {
    ModelConfig model = good(text);
    EXPECT_EQ(model.numHeads, 16);
    EXPECT_EQ(model.attention->numKeyValueHeads, 16);
    EXPECT_EQ(model.attention->headDim, 64);
    EXPECT_TRUE(model.attention->isCausal);
    EXPECT_FALSE(model.attention->scale);
    EXPECT_EQ(model.attention->bias->kind, ScoreBias::Kind::Alibi);
    EXPECT_FALSE(model.attention->bias->isScaled);
    EXPECT_EQ(model.attention->layers.size(), 1u);
    EXPECT_FALSE(model.attention->layers[0].rotates);
  }
}

TEST(BiasTest, Mpt) {
  ModelConfig model = good(R"({"model_type": "mpt", "n_heads": 32,
      "d_model": 4096, "no_bias": true, "attn_config": {"alibi": true,
      "alibi_bias_max": 8, "clip_qkv": 6, "attn_type": "multihead_attention",
      "prefix_lm": false, "qk_ln": false, "softmax_scale": null},
      "torch_dtype": "bfloat16"})");
  EXPECT_EQ(model.attention->headDim, 128);
  EXPECT_FALSE(model.attention->scale);
  EXPECT_FALSE(model.mayNorm);
  EXPECT_EQ(model.dtype, DType::BF16);
  model = good(R"({"model_type": "mpt", "n_heads": 32, "d_model": 4096,
      "attn_config": {"softmax_scale": 0.25, "qk_ln": true}})");
  EXPECT_EQ(model.attention->scale, 0.25);
  EXPECT_TRUE(model.mayNorm);
}

TEST(BiasTest, Falcon) {
  ModelConfig model = good(R"({"model_type": "falcon", "alibi": true,
      "hidden_size": 2048, "num_attention_heads": 32, "multi_query": true})");
  EXPECT_EQ(model.attention->numKeyValueHeads, 1);
  // Falcon scales the bias as well.
  EXPECT_TRUE(model.attention->bias->isScaled);
  EXPECT_TRUE(read(R"({"model_type": "falcon", "alibi": false,
      "hidden_size": 2048, "num_attention_heads": 32})")
                  .config);
}

TEST(BiasTest, T5) {
  for (llvm::StringRef type : {"t5", "mt5", "umt5"}) {
    ModelConfig model =
        good("{\"model_type\": \"" + type.str() +
             "\", \"num_heads\": 12, \"d_kv\": 32, \"d_model\": 768, "
             "\"relative_attention_num_buckets\": 16, "
             "\"relative_attention_max_distance\": 64}");
    EXPECT_EQ(model.numHeads, 12);
    const AttentionConfig &attention = *model.attention;
    EXPECT_EQ(attention.headDim, 32);
    EXPECT_EQ(attention.scale, 1.0);
    EXPECT_EQ(attention.bias->kind, ScoreBias::Kind::T5);
    EXPECT_EQ(attention.bias->numBuckets, 16);
    EXPECT_EQ(attention.bias->maxDistance, 64);
    ASSERT_EQ(attention.layers.size(), 2u);
    EXPECT_EQ(attention.layers[0].type, "encoder");
    EXPECT_FALSE(attention.isCausalIn(attention.layers[0]));
    EXPECT_EQ(attention.layers[1].type, "decoder");
    EXPECT_TRUE(attention.isCausalIn(attention.layers[1]));
  }
  ModelConfig model = good(R"({"model_type": "t5"})");
  EXPECT_EQ(model.numHeads, 8);
  EXPECT_EQ(model.attention->headDim, 64);
  EXPECT_EQ(model.attention->bias->numBuckets, 32);
  EXPECT_EQ(model.attention->bias->maxDistance, 128);
  EXPECT_EQ(good(R"({"model_type": "umt5"})").numHeads, 6);
}

struct BiasError {
  const char *name;
  /// A config, with a caret at the position of the only error.
  const char *marked;
  const char *key;
};

const BiasError biasErrors[] = {
    {"BloomHeads", R"(^{"model_type": "bloom", "hidden_size": 64})", "n_head"},
    {"BloomHidden", R"(^{"model_type": "bloom", "n_head": 4})", "hidden_size"},
    {"BloomHeadsDoNotDivide",
     R"({"model_type": "bloom", "n_head": ^3, "hidden_size": 64})", "n_head"},
    {"MptHeads", R"(^{"model_type": "mpt", "d_model": 64})", "n_heads"},
    {"MptDictionary",
     R"({"model_type": "mpt", "n_heads": 4, "d_model": 64,
         "attn_config": ^7})",
     "attn_config"},
    {"MptWithoutAlibi",
     R"({"model_type": "mpt", "n_heads": 4, "d_model": 64,
         "attn_config": {"alibi": ^false}})",
     "alibi"},
    {"MptAlibiNumber",
     R"({"model_type": "mpt", "n_heads": 4, "d_model": 64,
         "attn_config": {"alibi": ^1}})",
     "alibi"},
    {"MptRope",
     R"({"model_type": "mpt", "n_heads": 4, "d_model": 64,
         "attn_config": {"rope": ^true}})",
     "rope"},
    {"MptBiasMax",
     R"({"model_type": "mpt", "n_heads": 4, "d_model": 64,
         "attn_config": {"alibi": true, "alibi_bias_max": ^16}})",
     "alibi_bias_max"},
    {"MptMultiQuery",
     R"({"model_type": "mpt", "n_heads": 4, "d_model": 64,
         "attn_config": {"attn_type": ^"multiquery_attention"}})",
     "attn_type"},
    {"MptPrefix",
     R"({"model_type": "mpt", "n_heads": 4, "d_model": 64,
         "attn_config": {"prefix_lm": ^true}})",
     "prefix_lm"},
    {"MptScale",
     R"({"model_type": "mpt", "n_heads": 4, "d_model": 64,
         "attn_config": {"softmax_scale": ^0}})",
     "softmax_scale"},
    {"MptNorm",
     R"({"model_type": "mpt", "n_heads": 4, "d_model": 64,
         "attn_config": {"qk_ln": ^"yes"}})",
     "qk_ln"},
    {"FalconHidden",
     R"(^{"model_type": "falcon", "alibi": true, "num_attention_heads": 4})",
     "hidden_size"},
    {"T5Heads", R"({"model_type": "t5", "num_heads": ^0})", "num_heads"},
    {"T5HeadDim", R"({"model_type": "t5", "d_kv": ^-1})", "d_kv"},
    {"T5OddBuckets",
     R"({"model_type": "t5", "relative_attention_num_buckets": ^31})",
     "relative_attention_num_buckets"},
    {"T5FewBuckets",
     R"({"model_type": "mt5", "relative_attention_num_buckets": ^2})",
     "relative_attention_num_buckets"},
    {"T5ManyBuckets",
     R"({"model_type": "umt5", "relative_attention_num_buckets": ^1026})",
     "relative_attention_num_buckets"},
    {"T5Distance",
     R"({"model_type": "t5", "relative_attention_max_distance": ^16})",
     "relative_attention_max_distance"},
    {"T5DefaultDistance",
     R"(^{"model_type": "t5", "relative_attention_num_buckets": 256})",
     "relative_attention_max_distance"},
};

TEST(BiasTest, Errors) {
  for (const BiasError &error : biasErrors) {
    SCOPED_TRACE(error.name);
    Marked config(error.marked);
    Outcome outcome = read(config.text, withAttention());
    EXPECT_FALSE(outcome.config);
    EXPECT_TRUE(hasDiagnostic(outcome, Severity::Error, config, error.key));
    EXPECT_EQ(outcome.count(Severity::Error), 1u) << outcome.printed();
  }
}

TEST(BiasTest, HasNoRotation) {
  Marked bloom(R"({"model_type": ^"bloom", "n_head": 4, "hidden_size": 64})");
  Marked falcon(R"({"model_type": "falcon", "alibi": ^true, "hidden_size": 64,
                    "num_attention_heads": 4})");
  ReadOptions rotation = withAttention(), norm = withAttention();
  rotation.rotation = true;
  norm.qkNorm = true;
  for (const ReadOptions &options : {ReadOptions(), rotation}) {
    EXPECT_TRUE(hasDiagnostic(read(bloom.text, options), Severity::Error, bloom,
                              "model_type"));
    EXPECT_TRUE(hasDiagnostic(read(falcon.text, options), Severity::Error,
                              falcon, "alibi"));
  }
  EXPECT_TRUE(
      hasDiagnostic(read(bloom.text, norm), Severity::Error, bloom, "bloom"));
}

} // namespace
