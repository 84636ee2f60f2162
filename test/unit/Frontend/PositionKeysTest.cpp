//===- PositionKeysTest.cpp - keys that change rotations and masks --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include "llvm/ADT/StringSet.h"

using namespace posenc::frontend;
using namespace posenc::frontend::test;
using llvm::StringRef;

namespace {

ReadOptions withAttention() {
  ReadOptions options;
  options.attention = options.assumeAttention = true;
  return options;
}

/// Returns a config of a model type with a member, in the dictionary of the
/// rotation if the key belongs there.
std::string config(StringRef type, const ConfigKey &key, StringRef value) {
  std::string member = "\"" + key.name.str() + "\": " + value.str();
  if (key.isOfDictionary)
    member =
        "\"rope_parameters\": {\"rope_type\": \"default\", " + member + "}";
  return "{\"model_type\": \"" + type.str() +
         "\", \"hidden_size\": 4096, \"num_attention_heads\": 32, "
         "\"max_position_embeddings\": 4096, \"rope_theta\": 1e4, " +
         member + "}";
}

unsigned countNamed(const Outcome &outcome, Severity severity, StringRef key) {
  return llvm::count_if(outcome.diags, [&](const Diagnostic &diag) {
    return diag.severity == severity &&
           StringRef(diag.message).starts_with("'" + key.str() + "'");
  });
}

/// Whether a key is neither read for Llama nor ignored by it.
bool isRefused(const ConfigKey &key) {
  return StringRef(key.reading).ends_with("error");
}

TEST(PositionKeysTest, AreDistinctAndSorted) {
  std::vector<ConfigKey> keys = getPositionKeys();
  EXPECT_GT(keys.size(), 140u);
  for (size_t i = 1; i < keys.size(); ++i) {
    const ConfigKey &a = keys[i - 1], &b = keys[i];
    EXPECT_TRUE(a.isOfDictionary != b.isOfDictionary || a.name < b.name)
        << b.name.str();
    EXPECT_FALSE(b.effect.empty()) << b.name.str();
  }
}

TEST(PositionKeysTest, NamesOfTypesAreThoseOfTheModels) {
  llvm::StringSet<> types;
  for (const ModelType &type : getModelTypes())
    types.insert(type.name);
  for (const ConfigKey &key : getPositionKeys()) {
    llvm::SmallVector<StringRef> parts;
    StringRef(key.reading).split(parts, "; ");
    for (StringRef part : parts) {
      if (part.consume_front("without "))
        part = part.split(", ").second;
      if (!part.consume_front("read for ") &&
          !part.consume_front("error for ") &&
          !part.consume_front("read with a warning for "))
        continue;
      llvm::SmallVector<StringRef> names;
      part.split(names, ", ");
      for (StringRef name : names)
        EXPECT_TRUE(types.contains(name))
            << key.name.str() << ": " << name.str();
    }
  }
}

/// 7919 and its list are no value that changes nothing.
StringRef activeValue(const ConfigKey &key) {
  return StringRef(key.neutral).contains("empty") ? "[7919]" : "7919";
}

TEST(PositionKeysTest, AreErrorsForTypesThatDoNotReadThem) {
  unsigned refused = 0;
  for (const ConfigKey &key : getPositionKeys()) {
    if (!isRefused(key))
      continue;
    ++refused;
    Outcome outcome = read(config("llama", key, activeValue(key)));
    EXPECT_FALSE(outcome.config) << key.name.str();
    EXPECT_EQ(countNamed(outcome, Severity::Error, key.name), 1u)
        << key.name.str() << "\n"
        << outcome.printed();
    EXPECT_EQ(outcome.diags.size(), 1u) << outcome.printed();
  }
  EXPECT_GT(refused, 70u);
}

TEST(PositionKeysTest, AreNamedForUnknownTypes) {
  for (const ConfigKey &key : getPositionKeys()) {
    // These are read for unknown types.
    if (!isRefused(key) || key.name == "rotary_dim" ||
        key.name == "rotary_pct" || key.name == "rotary_emb_base")
      continue;
    Outcome outcome = read(config("mine", key, activeValue(key)));
    EXPECT_EQ(countNamed(outcome, Severity::Error, key.name) +
                  countNamed(outcome, Severity::Warning, key.name),
              1u)
        << key.name.str() << "\n"
        << outcome.printed();
  }
}

TEST(PositionKeysTest, CountAsAbsentWithValuesThatChangeNothing) {
  for (const ConfigKey &key : getPositionKeys()) {
    if (!isRefused(key))
      continue;
    llvm::SmallVector<StringRef> names, values = {"null"};
    StringRef(key.neutral).split(names, ", ", -1, /*KeepEmpty=*/false);
    for (StringRef name : names) {
      if (name.starts_with("that of "))
        continue;
      if (name == "empty")
        values.append({"[]", "{}", "\"\""});
      else
        values.push_back(name == "negative" ? "-1" : name);
    }
    for (StringRef value : values) {
      Outcome outcome = read(config("llama", key, value));
      EXPECT_TRUE(outcome.config) << key.name.str() << ": " << value.str();
      EXPECT_TRUE(outcome.diags.empty()) << outcome.printed();
    }
  }
}

/// Configs of Qwen repeat the base under another key.
TEST(PositionKeysTest, MayRepeatTheSameQuantity) {
  EXPECT_TRUE(
      read(llama("\"rotary_emb_base\": 1e6, \"rope_theta\": 1000000")).config);
  EXPECT_FALSE(
      read(llama("\"rotary_emb_base\": 1e6, \"rope_theta\": 1e5")).config);
}

struct KeyCase {
  const char *name;
  const char *text; // the key is marked
  const char *key;
};

class RefusedKeyTest : public testing::TestWithParam<KeyCase> {};

const KeyCase refusedKeys[] = {
    {"Gte",
     R"({"model_type": "gte", "hidden_size": 768, "num_attention_heads": 12,
         ^"logn_attention_scale": true})",
     "logn_attention_scale"},
    {"Nomic",
     R"({"model_type": "nomic_bert", "n_embd": 768, "n_head": 12,
         ^"rotary_scaling_factor": 2})",
     "rotary_scaling_factor"},
    {"NomicCausal",
     R"({"model_type": "nomic_bert", "n_embd": 768, "n_head": 12,
         ^"causal": true})",
     "causal"},
    {"Qwen2OneMillion",
     R"({"model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28,
         "num_key_value_heads": 4,
         ^"dual_chunk_attention_config": {"chunk_size": 262144}})",
     "dual_chunk_attention_config"},
    {"MiniCpm4",
     R"({"model_type": "minicpm", "hidden_size": 4096,
         "num_attention_heads": 32, ^"sparse_config": {"topk": 64}})",
     "sparse_config"},
    {"DeepseekWithoutLatent",
     R"({"model_type": "deepseek_v2", "hidden_size": 2048,
         "num_attention_heads": 16, "qk_rope_head_dim": 64,
         ^"use_mla": false})",
     "use_mla"},
    {"CohereDenseLayers",
     R"({"model_type": "cohere2_moe", "hidden_size": 4096,
         "num_attention_heads": 32, "num_hidden_layers": 2,
         "layer_types": ["full_attention", "sliding_attention"],
         ^"mlp_layer_types": ["dense", "sparse"]})",
     "mlp_layer_types"},
    {"CohereDensePrefix",
     R"({"model_type": "cohere2_moe", "hidden_size": 4096,
         "num_attention_heads": 32, ^"first_k_dense_replace": 1})",
     "first_k_dense_replace"},
    {"Bias",
     R"({"model_type": "bloom", "hidden_size": 64, "n_head": 4,
         ^"use_logn_attn": true})",
     "use_logn_attn"},
    {"Dictionary",
     R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4,
         "max_position_embeddings": 8192,
         "rope_scaling": {"type": "yarn", "factor": 4,
           "original_max_position_embeddings": 2048,
           ^"apply_yarn_scaling": false}})",
     "apply_yarn_scaling"},
    {"DictionaryOfLayerType",
     R"({"model_type": "gemma3_text", "hidden_size": 64, "rope_parameters": {
         "full_attention": {"rope_type": "default", ^"use_fope": true}}})",
     "use_fope"},
};

TEST_P(RefusedKeyTest, IsNamed) {
  Marked marked(GetParam().text);
  Outcome outcome = read(marked.text, withAttention());
  EXPECT_FALSE(outcome.config);
  EXPECT_TRUE(hasDiagnostic(outcome, Severity::Error, marked, GetParam().key));
  EXPECT_EQ(outcome.count(Severity::Error), 1u) << outcome.printed();
}

INSTANTIATE_TEST_SUITE_P(All, RefusedKeyTest, testing::ValuesIn(refusedKeys),
                         [](const auto &info) { return info.param.name; });

//===----------------------------------------------------------------------===//
// Keys that are read
//===----------------------------------------------------------------------===//

TEST(PositionKeysTest, CausalKeyOfDecoders) {
  auto isCausal = [](StringRef member) {
    Outcome outcome = read(llama(member), withAttention());
    EXPECT_TRUE(outcome.config) << outcome.printed();
    return outcome.config && outcome.config->attention->isCausal;
  };
  EXPECT_TRUE(isCausal(""));
  EXPECT_TRUE(isCausal("\"is_causal\": true"));
  EXPECT_FALSE(isCausal("\"is_causal\": false"));
  // An encoder stays one.
  Outcome encoder = read(R"({"model_type": "eurobert", "hidden_size": 64,
               "num_attention_heads": 4, "is_causal": true})",
                         withAttention());
  ASSERT_TRUE(encoder.config) << encoder.printed();
  EXPECT_FALSE(encoder.config->attention->isCausal);
}

/// Dense layers rotate anyway if they have a window.
TEST(PositionKeysTest, DenseLayersOfCohere) {
  std::string start = R"({"model_type": "cohere2_moe", "hidden_size": 4096,
      "num_attention_heads": 32, "num_hidden_layers": 2,
      "layer_types": ["sliding_attention", "full_attention"])";
  for (const char *rest : {R"(, "mlp_layer_types": ["dense", "sparse"]})",
                           R"(, "mlp_layer_types": ["sparse", "dense"],
            "prefix_dense_sliding_window_pattern": 2})",
                           R"(, "mlp_layer_types": ["sparse", "sparse"]})"})
    EXPECT_TRUE(read(start + rest, withAttention()).config) << rest;
}

/// Without `mixed_b`, type ntk is that of GTE and vLLM.
TEST(PositionKeysTest, NtkOfConfigs) {
  for (const char *type : {"gte", "new", "llama"}) {
    Outcome outcome = read("{\"model_type\": \"" + std::string(type) +
                           R"(", "hidden_size": 768, "num_attention_heads": 12,
           "position_embedding_type": "rope", "rope_theta": 20000,
           "rope_scaling": {"type": "ntk", "factor": 8}})");
    ASSERT_TRUE(outcome.config) << outcome.printed();
    EXPECT_EQ(print(outcome.config->scaling),
              "ntk<factor = 8.000000e+00, mixed_b = 1.000000e+00>");
  }
}

//===----------------------------------------------------------------------===//
// Qwen 1
//===----------------------------------------------------------------------===//

std::string qwen(StringRef members) {
  return R"({"model_type": "qwen", "hidden_size": 4096,
             "num_attention_heads": 32, "kv_channels": 128, "rotary_pct": 1.0,
             "rotary_emb_base": 10000, "max_position_embeddings": 32768,
             )" +
         members.str() + "}";
}

TEST(QwenTest, KeysOfTheRotation) {
  Outcome outcome = read(
      R"({"model_type": "qwen", "hidden_size": 4096, "num_attention_heads": 16,
          "kv_channels": 128, "rotary_pct": 0.5, "rotary_emb_base": 5e4,
          "use_dynamic_ntk": false, "use_logn_attn": false})",
      withAttention());
  ASSERT_TRUE(outcome.config) << outcome.printed();
  EXPECT_TRUE(outcome.diags.empty()) << outcome.printed();
  EXPECT_FALSE(outcome.config->interleaved);
  EXPECT_EQ(outcome.config->headDim, 128);
  EXPECT_EQ(outcome.config->rotaryDim, 64);
  EXPECT_EQ(outcome.config->ropeTheta, 5e4);
  EXPECT_EQ(outcome.config->numKeyValueHeads, 16);
  EXPECT_FALSE(outcome.config->attention->temperature);
}

TEST(QwenTest, BaseByLength) {
  std::string text = qwen(R"("seq_length": 8192, "use_dynamic_ntk": true,
              "use_logn_attn": false)");
  // 2^ceil(log2(n / 8192) + 1) - 1, from the formula by hand.
  const std::pair<int64_t, double> factors[] = {
      {1, 1},     {4096, 1},  {8192, 1},   {8193, 3},   {16384, 3},
      {16385, 7}, {32768, 7}, {32769, 15}, {65536, 15},
  };
  for (auto [length, factor] : factors) {
    ReadOptions options = withAttention();
    options.ropeLength = length;
    Outcome outcome = read(text, options);
    ASSERT_TRUE(outcome.config) << outcome.printed();
    auto ntk = llvm::dyn_cast_or_null<mlir::posenc::NtkScalingAttr>(
        outcome.config->scaling);
    ASSERT_EQ(bool(ntk), factor != 1) << length;
    if (!ntk)
      continue;
    EXPECT_EQ(ntk.getFactor().getValueAsDouble(), factor) << length;
    EXPECT_FALSE(ntk.getMixedB());
  }
}

TEST(QwenTest, BaseNeedsALength) {
  Marked marked(qwen(R"("seq_length": 8192, "use_logn_attn": false,
                        "use_dynamic_ntk": ^true)"));
  Outcome outcome = read(marked.text);
  EXPECT_FALSE(outcome.config);
  EXPECT_TRUE(
      hasDiagnostic(outcome, Severity::Error, marked, "use_dynamic_ntk"));
  EXPECT_NE(outcome.printed().find("pass --rope-length=N"), std::string::npos);
}

TEST(QwenTest, FactorOfQueries) {
  Outcome outcome = read(qwen(R"("seq_length": 2048, "use_dynamic_ntk": false,
                   "use_logn_attn": true)"),
                         withAttention());
  ASSERT_TRUE(outcome.config) << outcome.printed();
  ASSERT_TRUE(outcome.config->attention->temperature);
  EXPECT_TRUE(outcome.config->attention->temperature->isLogN);
  EXPECT_EQ(outcome.config->attention->temperature->length, 2048);
  EXPECT_EQ(outcome.config->attention->temperature->offset, 1);
}

TEST(QwenTest, LengthIsRequired) {
  Outcome outcome =
      read(qwen(R"("use_dynamic_ntk": false, "use_logn_attn": true)"),
           withAttention());
  EXPECT_FALSE(outcome.config);
  EXPECT_NE(outcome.printed().find("missing key 'seq_length'"),
            std::string::npos);
}

/// The model takes absent keys as true.
TEST(QwenTest, AbsentKeysAreWarnings) {
  Outcome outcome = read(qwen(R"("seq_length": 8192)"), withAttention());
  ASSERT_TRUE(outcome.config) << outcome.printed();
  EXPECT_EQ(outcome.count(Severity::Warning), 1u);
  EXPECT_NE(outcome.printed().find("missing key 'use_dynamic_ntk'"),
            std::string::npos);
}

} // namespace
