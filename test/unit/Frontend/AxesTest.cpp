//===- AxesTest.cpp - position axes of configs ----------------------------===//
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

using Layout = PositionAxes::Layout;
using Sections = std::vector<int64_t>;

ModelConfig good(llvm::StringRef text, const ReadOptions &options = {}) {
  Outcome outcome = read(text, options);
  EXPECT_TRUE(outcome.config) << text.str() << '\n' << outcome.printed();
  EXPECT_EQ(outcome.count(Severity::Error), 0u) << outcome.printed();
  return outcome.config.value_or(ModelConfig());
}

/// Returns a config with 8 heads of 128 channels and more members.
std::string config(llvm::StringRef type, llvm::StringRef members) {
  return "{\"model_type\": \"" + type.str() +
         "\", \"hidden_size\": 1024, \"num_attention_heads\": 8, " +
         members.str() + "}";
}

const char *const sections = R"("mrope_section": [16, 24, 24])";

void expectAxes(const ModelConfig &model, Layout layout,
                const Sections &sections) {
  ASSERT_TRUE(model.axes);
  EXPECT_EQ(model.axes->layout, layout);
  EXPECT_EQ(model.axes->sections, sections);
}

TEST(AxesTest, Sections) {
  for (llvm::StringRef type : {"qwen2_vl", "qwen2_vl_text", "qwen2_5_vl",
                               "qwen2_5_vl_text", "qwen2_5_omni_text"}) {
    SCOPED_TRACE(type.str());
    ModelConfig model = good(
        config(type, std::string("\"rope_scaling\": {\"type\": \"mrope\", ") +
                         sections + "}"));
    expectAxes(model, Layout::Contiguous, {16, 24, 24});
    EXPECT_EQ(model.ropeTheta, 1e6);
    EXPECT_FALSE(model.interleaved);
    EXPECT_FALSE(model.scaling);
    // The same sections are the default of transformers.
    expectAxes(good(config(type, "\"rope_theta\": 1e6")), Layout::Contiguous,
               {16, 24, 24});
  }
}

TEST(AxesTest, RopeTypes) {
  std::string rest = std::string(", ") + sections + "}";
  for (const char *dict :
       {R"("rope_scaling": {"type": "default")",
        R"("rope_scaling": {"type": "mrope", "rope_type": "default")",
        R"("rope_parameters": {"rope_type": "default", "rope_theta": 1e6)"}) {
    SCOPED_TRACE(dict);
    expectAxes(good(config("qwen2_5_vl", dict + rest)), Layout::Contiguous,
               {16, 24, 24});
  }
  Outcome yarn = read(config(
      "qwen2_5_vl", R"("max_position_embeddings": 131072, "rope_scaling": {
        "type": "yarn", "factor": 4, "original_max_position_embeddings": 32768)" +
                        rest));
  ASSERT_TRUE(yarn.config) << yarn.printed();
  EXPECT_TRUE(yarn.diags.empty()) << yarn.printed();
  expectAxes(*yarn.config, Layout::Contiguous, {16, 24, 24});
  EXPECT_TRUE(llvm::isa_and_nonnull<mlir::posenc::YarnScalingAttr>(
      yarn.config->scaling));
}

TEST(AxesTest, InterleavedSections) {
  ModelConfig model = good(config("qwen3_vl_text", R"("rope_scaling": {
      "rope_type": "default", "mrope_interleaved": true,
      "mrope_section": [24, 20, 20]})"));
  expectAxes(model, Layout::Interleaved, {24, 20, 20});
  EXPECT_EQ(model.ropeTheta, 5e5);
  // The layout of the model, and its sections.
  expectAxes(good(config("qwen3_vl_moe_text", R"("rope_scaling": {
      "rope_type": "default", "mrope_section": [22, 21, 21]})")),
             Layout::Interleaved, {22, 21, 21});
  expectAxes(good(config("qwen3_vl", R"("rope_theta": 5e6)")),
             Layout::Interleaved, {24, 20, 20});
  // Any model can have the keys.
  expectAxes(good(config("llama", R"("rope_scaling": {
      "rope_type": "default", "mrope_interleaved": true,
      "mrope_section": [32, 32]})")),
             Layout::Interleaved, {32, 32});
  expectAxes(good(config("mine", R"("rope_scaling": {
      "type": "mrope", "mrope_section": [32, 32]})")),
             Layout::Contiguous, {32, 32});
  EXPECT_FALSE(good(config("llama", R"("rope_theta": 1e4)")).axes);
}

TEST(AxesTest, Glm4v) {
  ModelConfig model = good(config("glm4v_text", R"("partial_rotary_factor": 0.5,
      "rope_scaling": {"type": "default", "mrope_section": [8, 12, 12]})"));
  expectAxes(model, Layout::Contiguous, {8, 12, 12});
  EXPECT_TRUE(model.interleaved);
  EXPECT_EQ(model.rotaryDim, 64);
  EXPECT_EQ(model.numKeyValueHeads, 2);
}

TEST(AxesTest, NestedTextModels) {
  std::string text =
      config("qwen2_5_omni_text",
             std::string("\"rope_scaling\": {\"type\": \"default\", ") +
                 sections + "}");
  for (llvm::StringRef root :
       {R"({"model_type": "qwen2_5_omni", "thinker_config": {
              "model_type": "qwen2_5_omni_thinker", "text_config": $}})",
        R"({"model_type": "qwen2_5_omni_thinker", "text_config": $})"}) {
    auto [before, after] = root.split('$');
    ModelConfig model = good(before.str() + text + after.str());
    EXPECT_EQ(model.modelType, "qwen2_5_omni_text");
    expectAxes(model, Layout::Contiguous, {16, 24, 24});
  }
  // The vision encoder is not what the config of a multimodal model means.
  ModelConfig model = good(R"({"model_type": "llava", "text_config": {
      "model_type": "mistral", "hidden_size": 4096, "num_attention_heads": 32},
      "vision_config": {"model_type": "pixtral", "head_dim": 64}})");
  EXPECT_EQ(model.modelType, "mistral");
  EXPECT_FALSE(model.axes);
}

TEST(AxesTest, Dinov3) {
  ReadOptions options;
  options.attention = true;
  ModelConfig model = good(R"({"model_type": "dinov3_vit"})", options);
  EXPECT_EQ(model.numHeads, 6);
  EXPECT_EQ(model.headDim, 64);
  EXPECT_EQ(model.ropeTheta, 100);
  expectAxes(model, Layout::Coordinates, {16, 16});
  ASSERT_TRUE(model.attention);
  EXPECT_FALSE(model.attention->isCausal);
}

TEST(AxesTest, Pixtral) {
  ReadOptions options;
  options.attention = true;
  for (llvm::StringRef text :
       {R"({"model_type": "pixtral", "head_dim": 64, "rope_theta": 10000.0})",
        R"({"vision_config": {"model_type": "pixtral"}})"}) {
    ModelConfig model = good(text, options);
    EXPECT_EQ(model.modelType, "pixtral");
    EXPECT_EQ(model.numHeads, 16);
    EXPECT_EQ(model.headDim, 64);
    expectAxes(model, Layout::Alternating, {16, 16});
    ASSERT_TRUE(model.attention);
    EXPECT_FALSE(model.attention->isCausal);
  }
  // The size of a head follows from the hidden size.
  ModelConfig model = good(R"({"model_type": "pixtral", "hidden_size": 1664})");
  EXPECT_EQ(model.headDim, 104);
  expectAxes(model, Layout::Alternating, {26, 26});
  EXPECT_EQ(
      good(R"({"model_type": "pixtral", "num_attention_heads": 32})").headDim,
      32);
  expectAxes(good(R"({"model_type": "pixtral", "head_dim": 6})"),
             Layout::Alternating, {2, 1});
}

} // namespace
