//===- BiasModels.cpp - models with biases of the scores ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Models that encode relative positions as a bias of the attention scores:
// ALiBi (BLOOM, MPT, Falcon with `alibi`) and the buckets of T5.
//
//===----------------------------------------------------------------------===//

#include "BiasModels.h"

#include "HeadShape.h"

#include "llvm/ADT/STLExtras.h"

using namespace posenc::frontend;
using llvm::StringRef;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

static constexpr KeyNames bloomKeys =
    KeyNames()
        .with(&KeyNames::heads, {"n_head", "num_attention_heads"})
        .with(&KeyNames::hidden, {"hidden_size", "n_embed"})
        .with(&KeyNames::headDim, {"", ""})
        .with(&KeyNames::keyHeadRule, KeyHeads::AsQueries);

static constexpr KeyNames mptKeys =
    KeyNames()
        .with(&KeyNames::heads, {"n_heads", "num_attention_heads"})
        .with(&KeyNames::hidden, {"d_model", "hidden_size"})
        .with(&KeyNames::headDim, {"", ""})
        .with(&KeyNames::keyHeadRule, KeyHeads::AsQueries);

/// The size of a head does not follow from that of the model.
static constexpr KeyNames t5Keys =
    KeyNames()
        .with(&KeyNames::heads, {"num_heads", "num_attention_heads"})
        .with(&KeyNames::headDim, {"d_kv", "head_dim"})
        .with(&KeyNames::keyHeadRule, KeyHeads::AsQueries)
        .with(&KeyNames::headDimFromHidden, false);

static constexpr ModelRow biasModels[] = {
    ModelRow("bloom", bloomKeys),
    ModelRow("mpt", mptKeys),
    ModelRow("mt5", t5Keys).heads(6, 0).headDim(64),
    ModelRow("switch_transformers", t5Keys).heads(12, 0).headDim(64),
    ModelRow("t5", t5Keys).heads(8, 0).headDim(64),
    ModelRow("umt5", t5Keys).heads(6, 0).headDim(64),
};

/// Whether a Falcon model has ALiBi instead of a rotary embedding.
static bool isFalconWithAlibi(const json::Value &config, StringRef modelType) {
  const json::Member *alibi = ConfigReader::given(config, "alibi");
  return modelType == "falcon" && alibi && alibi->value.isBool() &&
         alibi->value.boolean();
}

llvm::ArrayRef<ModelRow> posenc::frontend::getBiasModels() {
  return biasModels;
}

const ModelRow *posenc::frontend::findBiasModel(const json::Value &config,
                                                StringRef modelType) {
  if (isFalconWithAlibi(config, modelType))
    return findModel(modelType);
  const ModelRow *found = llvm::find_if(
      biasModels, [&](const ModelRow &row) { return row.type == modelType; });
  return found == std::end(biasModels) ? nullptr : found;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Reads the attention of MPT from `attn_config`, whose absent keys have the
/// defaults of transformers.
static void readMpt(ConfigReader &reader, const json::Value &config,
                    ModelConfig &model, AttentionConfig &result) {
  Field<const json::Value *> dict = reader.object(config, "attn_config");
  if (!dict.value)
    return;
  const json::Value &keys = **dict.value;
  Field<bool> alibi = reader.boolean(keys, "alibi");
  if (alibi.value && !*alibi.value)
    reader.error(alibi.at(), "'alibi' is false: the model has learned "
                             "positions, and attention without a bias is not "
                             "built from a config of type 'mpt'");
  // A key of MosaicML's own implementation.
  Field<bool> rope = reader.boolean(keys, "rope");
  if (rope.value.value_or(false))
    reader.error(rope.at(), "'rope' is true: models of type 'mpt' with a "
                            "rotary embedding are not supported");
  // posenc.alibi has the slopes of the paper.
  Field<double> maxBias = reader.positive(keys, "alibi_bias_max");
  if (maxBias.value && *maxBias.value != 8)
    reader.error(maxBias.at(),
                 "'alibi_bias_max' must be 8, not " + spelled(*maxBias.value));
  Field<StringRef> kind = reader.string(keys, "attn_type");
  if (kind.value && *kind.value != "multihead_attention")
    reader.error(kind.at(), "'attn_type' must be 'multihead_attention', not " +
                                quoted(*kind.value));
  Field<bool> prefix = reader.boolean(keys, "prefix_lm");
  if (prefix.value.value_or(false))
    reader.error(prefix.at(), "'prefix_lm' is true: attention that is "
                              "bidirectional in a prefix is not supported");
  result.scale = reader.positive(keys, "softmax_scale").value;
  model.mayNorm = reader.boolean(keys, "qk_ln").value.value_or(false);
}

/// Reads the attention of T5, whose scores are not scaled.
static void readT5(ConfigReader &reader, const json::Value &config,
                   AttentionConfig &result) {
  result.scale = 1;
  ScoreBias &bias = *result.bias;
  bias.kind = ScoreBias::Kind::T5;
  Field<int64_t> buckets =
      reader.count(config, "relative_attention_num_buckets");
  bias.numBuckets = buckets.value.value_or(bias.numBuckets);
  // The encoder divides the buckets between both directions (t5_bucket_c1).
  if (buckets.value &&
      (*buckets.value % 2 != 0 || *buckets.value < 4 || *buckets.value > 1024))
    return reader.error(buckets.at(),
                        "'relative_attention_num_buckets' must be even and lie "
                        "between 4 and 1024, not " +
                            Twine(*buckets.value));
  Field<int64_t> distance =
      reader.count(config, "relative_attention_max_distance");
  bias.maxDistance = distance.value.value_or(bias.maxDistance);
  // The logarithmic buckets begin here in the decoder (t5_bucket_c2).
  int64_t firstLogarithmic = bias.numBuckets / 2;
  if (buckets.bad() || distance.bad() || bias.maxDistance > firstLogarithmic)
    return;
  StringRef key = "relative_attention_max_distance";
  reader.error(
      distance.given() ? distance.at() : config,
      "'" + key + "' must be greater than half the number of buckets, " +
          Twine(firstLogarithmic) + ", not " + Twine(bias.maxDistance));
}

void posenc::frontend::readBiasModel(ConfigReader &reader,
                                     const json::Value &config,
                                     const ModelRow &row,
                                     const json::Member &typeMember,
                                     const ReadOptions &options,
                                     ModelConfig &result) {
  std::string models = "'model_type' '" + row.type.str() + "'";
  const json::Value *at = &typeMember.value;
  bool isFalcon = row.type == "falcon";
  if (isFalcon) {
    at = &config.find("alibi")->value;
    models = "'alibi' is true: the model";
  }
  if (options.rotation || !options.attention)
    return reader.error(*at, models + " has no rotary embedding, so it has no "
                                      "functions 'sincos' and 'rope'; "
                                      "--kernels=attention,decode compiles its "
                                      "attention");
  if (options.qkNorm)
    return reader.error(*at, "--qk-norm: models of type '" + row.type.str() +
                                 "' do not norm queries and keys");
  result.modelType = row.type.str();
  result.mayNorm = false;
  readHeadShape(reader, config, row, /*isNested=*/false, result);
  AttentionConfig attention;
  attention.numKeyValueHeads = result.numKeyValueHeads;
  attention.headDim = attention.valueDim = result.headDim;
  attention.bias.emplace();
  LayerAttention layer;
  layer.rotates = false;
  attention.layers = {layer};
  if (row.keys == &t5Keys) {
    readT5(reader, config, attention);
    attention.layers.front().type = "encoder";
    attention.layers.front().isEncoder = true;
    layer.type = "decoder";
    attention.layers.push_back(layer);
  } else if (row.keys == &mptKeys) {
    readMpt(reader, config, result, attention);
  } else if (isFalcon) {
    // Falcon scales the sum of score and bias (modeling_falcon.py of
    // transformers, `attention_logits *= self.inv_norm_factor`).
    attention.bias->isScaled = true;
  }
  result.attention = std::move(attention);
}
