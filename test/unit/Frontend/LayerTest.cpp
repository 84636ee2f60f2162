//===- LayerTest.cpp - values that differ by layer ------------------------===//
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

/// Prints the sets of a config, one a line:
/// `suffix layers: heads:key heads x size, base rotary dimension, scaling,
/// window`.
std::string describe(const ModelConfig &config) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto print = [&](const ModelConfig &set) {
    os << set.suffix;
    for (const NamedLayers &named : config.namedLayers)
      if ("_" + named.suffix == set.suffix)
        os << " " << spellLayers(named.layers);
    os << ": " << set.numHeads << ":" << set.numKeyValueHeads << "x"
       << set.headDim;
    if (set.hasRotation())
      os << ", " << int64_t(set.ropeTheta) << " " << set.rotaryDim;
    if (set.scaling)
      os << ", " << test::print(set.scaling);
    if (set.attention && set.attention->layers.front().window)
      os << ", window " << *set.attention->layers.front().window;
    os << "\n";
  };
  if (config.sets.empty())
    print(config);
  for (const ModelConfig &set : config.sets)
    print(set);
  return text;
}

std::string readLayers(const std::string &members) {
  ReadOptions options;
  options.attention = options.assumeAttention = true;
  Outcome outcome = read(llama(members), options);
  return outcome.config ? describe(*outcome.config) : outcome.printed();
}

/// A config with four layers of two types.
const std::string types =
    R"("num_hidden_layers": 4, "sliding_window": 16, "layer_types":
       ["sliding_attention", "sliding_attention", "sliding_attention",
        "full_attention"], )";

struct Case {
  const char *name;
  std::string members;
  const char *expected;
};

class Spellings : public testing::TestWithParam<Case> {};

TEST_P(Spellings, AreRead) {
  EXPECT_EQ(readLayers(GetParam().members), GetParam().expected);
}

constexpr char byNumber[] = "_layer_0 0, 2, 3: 32:8x128, 10000 128\n"
                            "_layer_1 1: 32:4x128, 10000 128\n";
constexpr char byType[] =
    "_sliding_attention 0-2: 64:8x128, 10000 128, window 16\n"
    "_full_attention 3: 32:8x128, 10000 128\n";

const Case spellings[] = {
    {"ObjectsByLayer",
     R"("num_hidden_layers": 4, "num_key_value_heads": 8,
        "per_layer_config": {"01": {"num_key_value_heads": 4}})",
     byNumber},
    {"ListByLayer",
     R"("num_hidden_layers": 4, "num_key_value_heads": [8, 4, 8, 8])",
     byNumber},
    {"ListWithoutTheNumberOfLayers", R"("num_key_value_heads": [8, 4, 8, 8])",
     byNumber},
    {"ListUnderAnotherName",
     R"("num_key_value_heads": 8,
        "num_key_value_heads_per_layer": [8, 4, 8, 8])",
     byNumber},
    {"ShortName",
     R"("num_key_value_heads": 8, "num_kv_heads_per_layer": [8, 4, 8, 8])",
     byNumber},
    {"ObjectByLayer",
     R"("num_hidden_layers": 4,
        "num_key_value_heads": {"0": 8, "1": 4, "2": 8, "3": 8})",
     byNumber},
    {"Blocks",
     R"("num_hidden_layers": 4, "num_key_value_heads": null, "block_configs": [
        {"attention": {"n_heads_in_group": 4}, "ffn": {"no_op": true}},
        {"attention": {"n_heads_in_group": 8}},
        {"attention": {"n_heads_in_group": 4}},
        {"attention": {"n_heads_in_group": 4}}])",
     byNumber},
    {"BlocksWithoutAttention",
     R"("num_hidden_layers": 4, "block_configs": [
        {"attention": {"n_heads_in_group": 4}},
        {"attention": {"no_op": true, "n_heads_in_group": null}},
        {"attention": {"replace_with_linear": true}},
        {"attention": {"n_heads_in_group": 4}}])",
     ": 32:8x128, 10000 128\n"},
    {"EqualValues",
     R"("num_hidden_layers": 3, "num_key_value_heads": 4,
        "num_key_value_heads_per_layer": [8, 8, 8])",
     ": 32:8x128, 10000 128\n"},
    {"ValuesThatAreTheDefault",
     R"("num_hidden_layers": 3, "per_layer_config": {"1": {"head_dim": 128}})",
     ": 32:32x128, 10000 128\n"},
    {"OtherKeys",
     R"("num_hidden_layers": 3,
        "per_layer_config": {"1": {"intermediate_size": 128}})",
     ": 32:32x128, 10000 128\n"},
    {"Bases",
     R"("num_hidden_layers": 4, "layer_rope_theta": [1e4, 1e6, 0, 1e4])",
     "_layer_0 0, 3: 32:32x128, 10000 128\n"
     "_layer_1 1: 32:32x128, 1000000 128\n"
     "_nope 2: 32:32x128\n"},
    {"Parts", R"("num_hidden_layers": 2, "partial_rotary_factors": [1, 0.5])",
     "_layer_0 0: 32:32x128, 10000 128\n_layer_1 1: 32:32x128, 10000 64\n"},
    {"Windows", R"("num_hidden_layers": 3, "sliding_window": [null, 64, 0])",
     "_layer_0 0, 2: 32:32x128, 10000 128\n"
     "_layer_1 1: 32:32x128, 10000 128, window 64\n"},
    {"Dictionaries",
     R"("rope_parameters": [{"rope_type": "default", "rope_theta": 1e4},
        {"rope_type": "linear", "factor": 4, "rope_theta": 1e4}])",
     "_layer_0 0: 32:32x128, 10000 128\n"
     "_layer_1 1: 32:32x128, 10000 128, linear<factor = 4.000000e+00>\n"},
    {"ScaledLayers",
     R"("num_hidden_layers": 3, "rope_scaling_layers": [0, 2],
        "rope_scaling": {"rope_type": "linear", "factor": 4})",
     "_layer_0 0, 2: 32:32x128, 10000 128, linear<factor = 4.000000e+00>\n"
     "_layer_1 1: 32:32x128, 10000 128\n"},
    {"AllLayersScaled",
     R"("num_hidden_layers": 2, "rope_scaling_layers": [0, 1],
        "rope_scaling": {"rope_type": "linear", "factor": 4})",
     ": 32:32x128, 10000 128, linear<factor = 4.000000e+00>\n"},
    {"ListAndTypes", types + R"("num_key_value_heads": 8,
                "num_attention_heads_per_layer": [64, 64, 64, 32],
                "head_dim": 128)",
     byType},
    {"ObjectByType",
     types + R"("num_key_value_heads": 8, "head_dim": 128, "num_heads": 1,
                "num_attention_heads_per_layer":
                {"sliding_attention": 64, "full_attention": 32})",
     byType},
    {"KeysOfOneType", types + R"("num_key_value_heads": 8, "head_dim": 128,
                "swa_num_attention_heads": 64)",
     byType},
    {"PatternOfTypes",
     R"("hybrid_layer_pattern": [1, 1, 1, 0], "sliding_window": 16,
        "num_key_value_heads": 8, "head_dim": 128,
        "swa_num_attention_heads": 64)",
     byType},
    {"OtherSettingOfOneType",
     types + R"("num_key_value_heads": 8, "head_dim": 128,
                "attention_other_setting": {"num_attention_heads": 64,
                "num_attention_groups": 8,
                "attention_type": "sliding_attention"})",
     byType},
    {"SetsWithinOneType",
     types + R"("head_dim": 128, "num_key_value_heads": [8, 4, 8, 8])",
     "_layer_0 0, 2: 32:8x128, 10000 128, window 16\n"
     "_layer_1 1: 32:4x128, 10000 128, window 16\n"
     "_full_attention 3: 32:8x128, 10000 128\n"},
    {"FurtherTokens",
     R"("num_hidden_layers": 2, "num_nextn_predict_layers": 1,
        "num_key_value_heads": [8, 4, 2])",
     "_layer_0 0: 32:8x128, 10000 128\n_layer_1 1: 32:4x128, 10000 128\n"},
};

INSTANTIATE_TEST_SUITE_P(, Spellings, testing::ValuesIn(spellings),
                         [](const auto &info) { return info.param.name; });

/// A config of a type whose layers have bases of their own.
std::string readBases(llvm::StringRef type, llvm::StringRef members) {
  Outcome outcome = read("{\"model_type\": \"" + type.str() +
                         R"(", "hidden_size": 4096, "num_attention_heads": 32,
      "num_key_value_heads": 8, "head_dim": 128, "layer_types":
      ["full_attention", "sliding_attention", "sliding_attention"], )" +
                         members.str() + "}");
  EXPECT_TRUE(outcome.diags.empty()) << outcome.printed();
  return outcome.config ? describe(*outcome.config) : "";
}

TEST(LayersTest, BasesOfLayersOverrideThatOfAll) {
  const char *const all[] = {
      R"("rope_parameters": {"rope_theta": 2e4, "rope_type": "default"})",
      R"("rope_theta": 2e4)", R"("rope_scaling": null)",
      R"("rope_theta": 2e4, "rope_parameters": {"rope_theta": 2e4,
         "rope_type": "default"})"};
  for (llvm::StringRef type : {"granite_swa", "granitemoe_swa"})
    for (std::string shared : all) {
      EXPECT_EQ(
          readBases(type, shared + ", \"layer_rope_theta\": [5e5, 1e4, 0]"),
          "_full_attention 0: 32:8x128, 500000 128\n"
          "_sliding_attention 1: 32:8x128, 10000 128\n"
          "_sliding_attention_nope 2: 32:8x128\n");
      EXPECT_EQ(
          readBases(type, shared + ", \"layer_rope_theta\": [5e5, 5e5, 5e5]"),
          ": 32:8x128, 500000 128\n");
    }
  // The scaling stays that of all layers.
  EXPECT_EQ(readBases("granite_swa", R"("layer_rope_theta": [5e5, 1e4, 1e4],
      "rope_parameters": {"rope_theta": 2e4, "rope_type": "linear",
                          "factor": 4.0})"),
            "_full_attention 0: 32:8x128, 500000 128, "
            "linear<factor = 4.000000e+00>\n"
            "_sliding_attention 1, 2: 32:8x128, 10000 128, "
            "linear<factor = 4.000000e+00>\n");
}

TEST(LayersTest, BasesOfLayersSelectThoseThatRotate) {
  for (llvm::StringRef type : {"muse_glimmer_text", "muse_spark_text"})
    EXPECT_EQ(readBases(type, R"("layer_rope_theta": [0, 1e4, 5e5],
        "rope_parameters": {"rope_theta": 2e4, "rope_type": "default"})"),
              "_full_attention 0: 32:8x128\n"
              "_sliding_attention 1, 2: 32:8x128, 20000 128\n");
}

TEST(LayersTest, LayersWithTheBaseZeroDoNotRotate) {
  for (llvm::StringRef bases : {"[1e4, 0]", "[0, 1e4]", "[5e5, 0]"})
    EXPECT_EQ(llvm::StringRef(readLayers("\"num_hidden_layers\": 2, "
                                         "\"layer_rope_theta\": " +
                                         bases.str()))
                  .count('\n'),
              2u)
        << bases.str();
}

struct ErrorCase {
  const char *name, *members, *key;
};

class Contradictions : public testing::TestWithParam<ErrorCase> {};

TEST_P(Contradictions, AreErrors) {
  Marked marked(llama(GetParam().members));
  ReadOptions options;
  options.attention = true;
  Outcome outcome = read(marked.text, options);
  EXPECT_FALSE(outcome.config);
  EXPECT_TRUE(hasDiagnostic(outcome, Severity::Error, marked, GetParam().key));
}

const ErrorCase contradictions[] = {
    {"TwoKeys",
     R"("num_hidden_layers": 2, "per_layer_config":
        {"0": {"num_key_value_heads": 4}},
        "num_key_value_heads_per_layer": [^8, 8])",
     "num_key_value_heads"},
    {"TwoSpellingsOfALayer",
     R"("num_hidden_layers": 2, "per_layer_config":
        {"1": {"head_dim": 64}, "01": {"head_dim": ^128}})",
     "head_dim"},
    {"ShortList",
     R"("num_hidden_layers": 4, "num_key_value_heads": ^[8, 8, 8])",
     "num_key_value_heads"},
    {"LayerOutOfRange",
     R"("num_hidden_layers": 4, "per_layer_config": {^"4": {}})",
     "per_layer_config"},
    {"LayerWithoutNumber",
     R"("num_hidden_layers": 4, "per_layer_config": {^"full": {}})",
     "per_layer_config"},
    {"LayerWithoutObject",
     R"("num_hidden_layers": 4, "per_layer_config": {"0": ^64})",
     "per_layer_config"},
    {"UnknownNumberOfLayers", R"(^"per_layer_config": {"0": {"head_dim": 64}})",
     "per_layer_config"},
    {"TooManyLayers",
     R"("num_hidden_layers": 2147483647,
        ^"per_layer_config": {"0": {"head_dim": 64}})",
     "per_layer_config"},
    {"LayerWithoutValue",
     R"("num_hidden_layers": 2, "num_key_value_heads": ^{"0": 8})",
     "num_key_value_heads"},
    {"HeadsThatDoNotDivide",
     R"("num_hidden_layers": 2, "num_key_value_heads": [8, ^7])",
     "num_key_value_heads"},
    {"GroupThatDoesNotDivide",
     R"("num_hidden_layers": 1, "block_configs":
        [{"attention": {"n_heads_in_group": ^7}}])",
     "n_heads_in_group"},
    {"PatternOfOtherNumbers",
     R"("num_hidden_layers": 2, "hybrid_layer_pattern": [0, ^2])",
     "hybrid_layer_pattern"},
    {"SinkTokens",
     R"("num_hidden_layers": 1, "block_configs":
        [{"attention": {"num_sink_tokens": ^4}}])",
     "num_sink_tokens"},
    {"ScaledLayerOutOfRange",
     R"("num_hidden_layers": 2, "rope_scaling_layers": [0, ^2])",
     "rope_scaling_layers"},
};

INSTANTIATE_TEST_SUITE_P(, Contradictions, testing::ValuesIn(contradictions),
                         [](const auto &info) { return info.param.name; });

TEST(LayersTest, ThereAreAtMost64Sets) {
  auto list = [](int count) {
    std::string text = "\"layer_rope_theta\": [1";
    for (int i = 2; i <= count; ++i)
      text += ", " + std::to_string(i);
    return llama(text + "]");
  };
  EXPECT_TRUE(read(list(64)).config);
  Outcome outcome = read(list(65));
  EXPECT_FALSE(outcome.config);
  EXPECT_NE(outcome.printed().find("config.json:1:1: error: expected at most "
                                   "64 different sets"),
            std::string::npos)
      << outcome.printed();
}

TEST(LayersTest, ValuesCanSayNone) {
  ReadOptions options;
  options.attention = true;
  for (const char *window : {"0", "null", "false"}) {
    Outcome outcome =
        read(llama("\"sliding_window\": " + std::string(window)), options);
    ASSERT_TRUE(outcome.config) << outcome.printed();
    EXPECT_FALSE(outcome.config->attention->layers.front().window);
  }
}

TEST(LayersTest, LengthsMayDifferUnlessAScalingNeedsThem) {
  Outcome outcome = read(llama(
      R"("max_position_embeddings": 4096, "n_positions": 2048,
         "rope_scaling": {"type": "linear", "factor": 4})"));
  EXPECT_TRUE(outcome.config) << outcome.printed();
}

TEST(LayersTest, ValuesBesideDictionariesHoldForAllTypes) {
  Outcome outcome = read(llama(
      R"("layer_types": ["sliding_attention", "full_attention"],
         "rope_parameters": {"rope_theta": 5e5, "partial_rotary_factor": 0.5,
           "full_attention": {"rope_type": "linear", "factor": 2},
           "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}})"));
  ASSERT_TRUE(outcome.config) << outcome.printed();
  const std::vector<LayerRotation> &rotations = outcome.config->rotations;
  ASSERT_EQ(rotations.size(), 2u);
  EXPECT_EQ(rotations[0].theta, 1e4);
  EXPECT_EQ(rotations[1].theta, 5e5);
  EXPECT_EQ(rotations[0].rotaryDim, 64);
  EXPECT_EQ(print(rotations[1].scaling), "linear<factor = 2.000000e+00>");
}

TEST(LayersTest, FullHeadsOfGemma4AreThoseOfTheLayers) {
  std::string base = R"("model_type": "gemma4_text", "num_hidden_layers": 2,
      "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 256,
      "layer_types": ["sliding_attention", "full_attention"],
      "per_layer_config": {"1": {"head_dim": 512, "num_key_value_heads": 4}})";
  std::string expected = "_sliding_attention 0: 32:16x256, 10000 256\n"
                         "_full_attention 1: 32:4x512, 1000000 512, "
                         "proportional<rotated_pairs = 64>\n";
  Outcome own = read("{" + base + "}");
  ASSERT_TRUE(own.config) << own.printed();
  EXPECT_EQ(describe(*own.config), expected);
  // The keys of older configs say the same, and must not say otherwise.
  EXPECT_TRUE(read("{" + base + R"(, "global_head_dim": 512})").config);
  Marked other("{" + base + R"(, "global_head_dim": ^128})");
  EXPECT_TRUE(
      hasDiagnostic(read(other.text), Severity::Error, other, "head_dim"));
}

TEST(LayersTest, LayersOfTypesAreNumbered) {
  auto name = [](const std::string &text) {
    std::string names;
    Outcome outcome = read(text);
    if (!outcome.config)
      return outcome.printed();
    for (const NamedLayers &named : outcome.config->namedLayers)
      names += named.suffix + " " + spellLayers(named.layers) + ";";
    return names;
  };
  EXPECT_EQ(name(llama(types.substr(0, types.rfind(',')))),
            "sliding_attention 0-2;full_attention 3;");
  EXPECT_EQ(name(llama(R"("hybrid_layer_pattern": [0, 1, 1, 0],
                          "num_hidden_layers": 4)")),
            "full_attention 0, 3;sliding_attention 1, 2;");
  // The pattern of the model, if the config has no types.
  EXPECT_EQ(name(R"({"model_type": "gemma2", "num_hidden_layers": 4,
                     "num_attention_heads": 8})"),
            "sliding_attention 0, 2;full_attention 1, 3;");
  EXPECT_EQ(name(R"({"model_type": "modernbert", "num_hidden_layers": 5,
                     "hidden_size": 64, "num_attention_heads": 1})"),
            "full_attention 0, 3;sliding_attention 1, 2, 4;");
  EXPECT_EQ(name(R"({"model_type": "smollm3", "num_hidden_layers": 8,
                     "hidden_size": 64, "num_attention_heads": 4})"),
            "nope 3, 7; 0-2, 4-6;");
  EXPECT_EQ(name(llama(R"("num_hidden_layers": 4)")), "");
}

} // namespace
