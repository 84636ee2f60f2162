//===- ModelTest.cpp - defaults of model types ----------------------------===//
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

/// The defaults of a model type with hidden size 4096 and 32 heads.
struct ModelCase {
  const char *type;
  bool interleaved;
  double theta;
  int64_t headDim, rotaryDim;
};

const ModelCase models[] = {
    {"llama", false, 1e4, 128, 128},
    {"mistral", false, 1e4, 128, 128},
    {"mixtral", false, 1e6, 128, 128},
    {"qwen2", false, 1e4, 128, 128},
    {"qwen2_moe", false, 1e4, 128, 128},
    {"qwen3", false, 1e4, 128, 128},
    {"qwen3_moe", false, 1e4, 128, 128},
    {"phi", false, 1e4, 128, 64},
    {"phi3", false, 1e4, 128, 128},
    {"gpt_neox", false, 1e4, 128, 32},
    {"stablelm", false, 1e4, 128, 32},
    {"gemma", false, 1e4, 256, 256},
    {"gemma2", false, 1e4, 256, 256},
    {"olmo", false, 1e4, 128, 128},
    {"olmo2", false, 1e4, 128, 128},
    {"olmo3", false, 5e5, 128, 128},
    {"falcon", false, 1e4, 128, 128},
    {"nemotron", false, 1e4, 128, 64},
    {"persimmon", false, 1e4, 128, 64},
    {"yi", false, 1e4, 128, 128},
    {"starcoder2", false, 1e4, 128, 128},
    {"granite", false, 1e4, 128, 128},
    {"smollm3", false, 2e6, 128, 128},
    {"glm4_moe", false, 1e4, 128, 64},
    {"qwen3_next", false, 1e4, 256, 64},
    {"cohere", true, 5e5, 128, 128},
    {"cohere2", true, 1e4, 128, 128},
    {"glm", true, 1e4, 128, 64},
    {"glm4", true, 1e4, 128, 64},
    {"ernie4_5", true, 5e5, 128, 128},
    {"helium", true, 1e5, 128, 128},
    {"llama4_text", true, 5e5, 128, 128},
    {"gptj", true, 1e4, 128, 64},
    {"codegen", true, 1e4, 128, 64},
    {"deepseek_v2", true, 1e4, 64, 64},
    {"deepseek_v3", true, 1e4, 64, 64},
    {"deepseek_v32", true, 1e4, 64, 64},
    {"stablelm_epoch", false, 1e4, 128, 32},
};

TEST(ModelTest, Defaults) {
  for (const ModelCase &model : models) {
    SCOPED_TRACE(model.type);
    bool gptj = llvm::StringRef(model.type) == "gptj" ||
                llvm::StringRef(model.type) == "codegen";
    Outcome outcome =
        read("{\"model_type\": \"" + std::string(model.type) + "\"," +
             (gptj ? "\"n_embd\": 4096, \"n_head\": 32}"
                   : "\"hidden_size\": 4096, \"num_attention_heads\": 32, "
                     "\"qk_rope_head_dim\": 64}"));
    ASSERT_TRUE(outcome.config) << outcome.printed();
    EXPECT_TRUE(outcome.diags.empty()) << outcome.printed();
    EXPECT_EQ(outcome.config->modelType, model.type);
    EXPECT_EQ(outcome.config->interleaved, model.interleaved);
    EXPECT_EQ(outcome.config->ropeTheta, model.theta);
    EXPECT_EQ(outcome.config->numHeads, 32);
    EXPECT_EQ(outcome.config->headDim, model.headDim);
    EXPECT_EQ(outcome.config->rotaryDim, model.rotaryDim);
    EXPECT_EQ(outcome.config->rotaryOffset, 0);
    EXPECT_FALSE(outcome.config->scaling);
    EXPECT_EQ(outcome.config->dtype, DType::F32);
  }
}

ModelConfig good(llvm::StringRef text, const ReadOptions &options = {}) {
  Outcome outcome = read(text, options);
  EXPECT_TRUE(outcome.config) << text.str() << '\n' << outcome.printed();
  return outcome.config.value_or(ModelConfig());
}

TEST(ModelTest, KeyHeads) {
  auto keyHeads = [](llvm::StringRef type, llvm::StringRef members) {
    return good("{\"model_type\": \"" + type.str() +
                "\", \"hidden_size\": 512, \"num_attention_heads\": 8" +
                members.str() + "}")
        .numKeyValueHeads;
  };
  EXPECT_EQ(keyHeads("llama", ""), 8);
  EXPECT_EQ(keyHeads("llama", ", \"num_key_value_heads\": null"), 8);
  EXPECT_EQ(keyHeads("llama", ", \"num_key_value_heads\": 2"), 2);
  EXPECT_EQ(keyHeads("gpt_neox", ", \"num_key_value_heads\": 2"), 8);
  EXPECT_EQ(keyHeads("deepseek_v3", ", \"qk_rope_head_dim\": 64, "
                                    "\"num_key_value_heads\": 8"),
            1);
  EXPECT_EQ(keyHeads("glm", ""), 2);
  EXPECT_EQ(keyHeads("glm", ", \"num_key_value_heads\": null"), 8);
  EXPECT_EQ(keyHeads("bitnet", ""), 8);
  EXPECT_EQ(keyHeads("falcon", ""), 1);
  EXPECT_EQ(keyHeads("falcon", ", \"num_kv_heads\": 4"), 1);
  EXPECT_EQ(keyHeads("falcon", ", \"multi_query\": false"), 8);
  EXPECT_EQ(keyHeads("falcon", ", \"num_kv_heads\": 4, "
                               "\"new_decoder_architecture\": true"),
            4);
  EXPECT_EQ(keyHeads("falcon", ", \"new_decoder_architecture\": true"), 8);
  EXPECT_EQ(keyHeads("falcon", ", \"alibi\": false"), 1);
}

TEST(ModelTest, KeyNames) {
  ModelConfig neox = good(R"({"model_type": "gpt_neox", "hidden_size": 6144,
      "num_attention_heads": 64, "rotary_pct": 0.5,
      "rotary_emb_base": 25000})");
  EXPECT_EQ(neox.rotaryDim, 48);
  EXPECT_EQ(neox.ropeTheta, 25000);
  ModelConfig neox5 = good(R"({"model_type": "gpt_neox", "hidden_size": 6144,
      "num_attention_heads": 64, "rope_parameters": {"rope_type": "default",
      "rope_theta": 25000, "partial_rotary_factor": 0.5}})");
  EXPECT_EQ(neox5.rotaryDim, 48);
  EXPECT_EQ(neox5.ropeTheta, 25000);
  ModelConfig gptj = good(R"({"model_type": "gptj", "n_embd": 4096,
      "n_head": 16, "rotary_dim": 32})");
  EXPECT_EQ(gptj.headDim, 256);
  EXPECT_EQ(gptj.rotaryDim, 32);
  ModelConfig unknown = good(R"({"model_type": "mine", "head_dim": 64,
      "num_attention_heads": 4, "rotary_pct": 0.5, "rotary_emb_base": 5})");
  EXPECT_EQ(unknown.rotaryDim, 32);
  EXPECT_EQ(unknown.ropeTheta, 5);
  ModelConfig given = good(llama(R"("head_dim": 64)"));
  EXPECT_EQ(given.headDim, 64);
}

TEST(ModelTest, RotaryDimensionIsTruncatedFromTheDoubleProduct) {
  // 80 * 0.4 is 32 in double; 100 * 0.29 is 28.999999999999996.
  EXPECT_EQ(
      good(llama(R"("head_dim": 80, "partial_rotary_factor": 0.4)")).rotaryDim,
      32);
  EXPECT_EQ(good(llama(R"("head_dim": 100, "partial_rotary_factor": 0.29)"))
                .rotaryDim,
            28);
}

TEST(ModelTest, IntegersMayBeWrittenAsFloats) {
  ModelConfig config = good(R"({"model_type": "llama", "hidden_size": 4096.0,
      "num_attention_heads": 3.2e1, "num_key_value_heads": 80e-1})");
  EXPECT_EQ(config.headDim, 128);
  EXPECT_EQ(config.numKeyValueHeads, 8);
}

TEST(ModelTest, Pairing) {
  ReadOptions half, interleaved;
  half.pairing = Pairing::Half;
  interleaved.pairing = Pairing::Interleaved;
  EXPECT_TRUE(good(llama(""), interleaved).interleaved);
  EXPECT_FALSE(good(llama(""), half).interleaved);
  std::string latent = R"({"model_type": "deepseek_v3",
      "num_attention_heads": 128, "qk_rope_head_dim": 64)";
  EXPECT_TRUE(good(latent + "}").interleaved);
  EXPECT_FALSE(good(latent + ", \"rope_interleave\": false}").interleaved);
  EXPECT_FALSE(good(latent + "}", half).interleaved);
}

TEST(ModelTest, AllChannelsOfLatentHeadsThatRotateDo) {
  for (llvm::StringRef type :
       {"axk1", "axk2", "bailing_hybrid", "deepseek_v2", "deepseek_v3",
        "deepseek_v32", "glm4_moe_lite", "glm_moe_dsa", "hy_v4", "kimi_k2",
        "longcat_flash", "minicpm3", "mistral4", "sarvam_mla", "youtu"})
    for (llvm::StringRef part :
         {R"("partial_rotary_factor": 0.5)",
          R"("rope_parameters": {"rope_type": "linear", "factor": 2.0,
             "rope_theta": 1e4, "partial_rotary_factor": 0.5})",
          R"("num_hidden_layers": 2, "partial_rotary_factors": [0.5, 0.5])"})
      EXPECT_EQ(good("{\"model_type\": \"" + type.str() +
                     R"(", "hidden_size": 2048, "num_attention_heads": 16,
                         "qk_rope_head_dim": 64, "v_head_dim": 128, )" +
                     part.str() + "}")
                    .rotaryDim,
                64)
          << type.str() << " " << part.str();
}

TEST(ModelTest, ElementTypes) {
  auto dtype = [](llvm::StringRef members) {
    return good(llama(members)).dtype;
  };
  EXPECT_EQ(dtype(R"("torch_dtype": "bfloat16")"), DType::BF16);
  EXPECT_EQ(dtype(R"("dtype": "float16")"), DType::F16);
  EXPECT_EQ(dtype(R"("dtype": "torch.float64")"), DType::F64);
  EXPECT_EQ(dtype(R"("torch_dtype": "float32")"), DType::F32);
  EXPECT_EQ(dtype(R"("torch_dtype": "auto")"), DType::F32);
  EXPECT_EQ(dtype(R"("torch_dtype": null, "dtype": "half")"), DType::F16);
}

TEST(ModelTest, NestedTextModel) {
  ModelConfig config = good(R"({"model_type": "llava",
      "torch_dtype": "bfloat16", "vision_config": {"hidden_size": 1},
      "text_config": {"model_type": "mixtral", "hidden_size": 4096,
                      "num_attention_heads": 32}})");
  EXPECT_EQ(config.modelType, "mixtral");
  EXPECT_EQ(config.ropeTheta, 1e6);
  EXPECT_EQ(config.dtype, DType::BF16);
  // The type of the root is used if the nested object has none.
  EXPECT_TRUE(good(R"({"model_type": "llama4", "text_config":
      {"head_dim": 128, "num_attention_heads": 40}})")
                  .interleaved);
  // The root is used if it has the keys.
  EXPECT_EQ(
      good(llama(R"("text_config": {"num_attention_heads": 1})")).numHeads, 32);
}

TEST(ModelTest, LayersThatAgree) {
  EXPECT_EQ(good(R"({"model_type": "gemma3_text", "num_attention_heads": 4,
      "rope_parameters": {
        "full_attention": {"rope_type": "default", "rope_theta": 5e4},
        "sliding_attention": {"rope_type": "default", "rope_theta": 5e4}}})")
                .ropeTheta,
            5e4);
  good(R"({"model_type": "gemma3_text", "num_attention_heads": 4,
      "rope_theta": 10000, "rope_local_base_freq": 10000})");
  good(R"({"model_type": "gemma3_text", "num_attention_heads": 4,
      "layer_types": ["full_attention", "full_attention"]})");
  good(R"({"model_type": "olmo3", "num_attention_heads": 4, "head_dim": 64,
      "layer_types": ["sliding_attention", "full_attention"]})");
}

/// Returns the rotations of layer types as `type:base`, followed by `/factor`
/// if scaled and `%dim` if only a part of the head rotates.
std::string rotations(llvm::StringRef text) {
  std::string list;
  ModelConfig config = good(text);
  for (const LayerRotation &rotation : config.rotations) {
    list += (list.empty() ? "" : " ") + rotation.type + ":" +
            std::to_string(int64_t(rotation.theta));
    std::string factor = llvm::StringRef(print(rotation.scaling))
                             .split("factor = ")
                             .second.str();
    if (rotation.scaling)
      list +=
          "/" + std::to_string(int64_t(std::strtod(factor.c_str(), nullptr)));
    if (rotation.rotaryDim != config.headDim)
      list += "%" + std::to_string(rotation.rotaryDim);
  }
  return list;
}

TEST(ModelTest, LayersThatDiffer) {
  std::string gemma = R"({"model_type": "gemma3_text",
      "num_attention_heads": 4)";
  EXPECT_EQ(rotations(gemma + "}"),
            "sliding_attention:10000 full_attention:1000000");
  EXPECT_EQ(good(gemma + "}").ropeTheta, 1e6);
  // Keys that these configs leave out.
  ModelConfig bare = good(R"({"model_type": "gemma3_text"})");
  EXPECT_EQ(bare.numHeads, 8);
  EXPECT_EQ(bare.numKeyValueHeads, 4);
  EXPECT_EQ(bare.headDim, 256);
  std::string scaled = R"(, "rope_theta": 5e5, "rope_local_base_freq": 2e4,
      "rope_scaling": {"rope_type": "linear", "factor": 8.0})";
  EXPECT_EQ(rotations(gemma + scaled + "}"),
            "sliding_attention:20000 full_attention:500000/8");
  // The order is that of the config, which may have a single layer type.
  EXPECT_EQ(rotations(gemma + scaled + R"(, "layer_types": ["full_attention",
      "sliding_attention"]})"),
            "full_attention:500000/8 sliding_attention:20000");
  ModelConfig sliding =
      good(gemma + scaled + R"(, "layer_types": ["sliding_attention"]})");
  EXPECT_TRUE(sliding.rotations.empty());
  EXPECT_EQ(sliding.ropeTheta, 2e4);
  EXPECT_FALSE(sliding.scaling);
  ModelConfig full = good(gemma + scaled + R"(, "sliding_window_pattern": 1})");
  EXPECT_TRUE(full.rotations.empty());
  EXPECT_EQ(print(full.scaling), "linear<factor = 8.000000e+00>");

  EXPECT_EQ(rotations(R"({"model_type": "modernbert",
      "num_attention_heads": 12, "hidden_size": 768,
      "global_rope_theta": 80000.0, "local_rope_theta": 10000.0})"),
            "sliding_attention:10000 full_attention:80000");
  EXPECT_EQ(rotations(R"({"model_type": "olmo3", "num_attention_heads": 32,
      "hidden_size": 4096, "max_position_embeddings": 65536,
      "layer_types": ["sliding_attention", "full_attention"],
      "rope_scaling": {"rope_type": "yarn", "factor": 8.0,
        "original_max_position_embeddings": 8192}})"),
            "sliding_attention:500000 full_attention:500000/8");
}

TEST(ModelTest, SlidingLayersOfScaledModels) {
  // ModernBERT scales both types, although each has its own base.
  EXPECT_EQ(rotations(R"({"model_type": "modernbert",
      "num_attention_heads": 12, "hidden_size": 768,
      "rope_scaling": {"rope_type": "linear", "factor": 4}})"),
            "sliding_attention:10000/4 full_attention:160000/4");
  // The sliding layers of Olmo 3 have the default base.
  EXPECT_EQ(rotations(R"({"model_type": "olmo3", "num_attention_heads": 32,
      "hidden_size": 4096, "rope_theta": 2e4})"),
            "sliding_attention:500000 full_attention:20000");
}

TEST(ModelTest, DefaultsBesideADictionary) {
  // Without the dictionary, these types have another base or fraction.
  std::string muse = R"({"model_type": "muse_spark_text", "hidden_size": 512,
      "num_attention_heads": 16, "num_hidden_layers": 1,
      "layer_types": ["full_attention"], "layer_rope_theta": [1])",
              transcriber =
                  R"({"model_type": "nemotron3_5_transcribe_asr_audio",
      "hidden_size": 512, "num_attention_heads": 8)",
              dict = R"(, "rope_parameters": {"rope_type": "default"})";
  EXPECT_EQ(good(muse + "}").ropeTheta, 5e5);
  EXPECT_EQ(good(muse + dict + "}").ropeTheta, 1e4);
  EXPECT_EQ(good(transcriber + "}").rotaryDim, 32);
  EXPECT_EQ(good(transcriber + dict + "}").rotaryDim, 64);
  EXPECT_EQ(
      good(transcriber + R"(, "partial_rotary_factor": 0.25)" + dict + "}")
          .rotaryDim,
      16);
}

TEST(ModelTest, DictionariesOfLayers) {
  std::string dict = R"("rope_parameters": {
      "full_attention": {"rope_type": "linear", "factor": 8,
                         "rope_theta": 1e6},
      "sliding_attention": {"rope_type": "default"},
      "unused": {"rope_type": "default", "rope_theta": 7}})";
  std::string types = R"(, "layer_types": ["sliding_attention", "conv",
      "full_attention"])";
  EXPECT_EQ(rotations(llama(dict)),
            "full_attention:1000000/8 sliding_attention:10000 unused:7");
  // Layers that do not attend need no dictionary.
  EXPECT_EQ(rotations(llama(dict + types)),
            "sliding_attention:10000 full_attention:1000000/8");
  // Bases may be outside of the dictionaries.
  EXPECT_EQ(rotations(llama(dict + types + R"(, "rope_theta": 1e6,
      "rope_local_base_freq": 3e4)")),
            "sliding_attention:30000 full_attention:1000000/8");
  // A single type has no rotation of its own.
  ModelConfig one = good(llama(dict + R"(, "layer_types": ["unused"])"));
  EXPECT_TRUE(one.rotations.empty());
  EXPECT_EQ(one.ropeTheta, 7);
}

TEST(ModelTest, DictionariesThatAreAlike) {
  std::string dicts = R"("rope_parameters": {
      "full_attention": {"rope_type": "default"},
      "sliding_attention": {"rope_type": "default"}}})";
  // The bases are outside of the dictionaries, or defaults of the model.
  EXPECT_EQ(rotations(R"({"model_type": "gemma3_text", "rope_theta": 5e5,
      "rope_local_base_freq": 2e4, )" +
                      dicts),
            "full_attention:500000 sliding_attention:20000");
  EXPECT_EQ(rotations(R"({"model_type": "gemma3_text", )" + dicts),
            "full_attention:1000000 sliding_attention:10000");
  EXPECT_EQ(rotations(R"({"model_type": "modernbert", "hidden_size": 512,
      "num_attention_heads": 8, "global_rope_theta": 80000,
      "local_rope_theta": 30000, )" +
                      dicts),
            "full_attention:80000 sliding_attention:30000");
  // Both types share one base if sliding layers have no separate one.
  ModelConfig olmo = good(R"({"model_type": "olmo3", "hidden_size": 512,
      "num_attention_heads": 8, "rope_theta": 5e5, )" +
                          dicts);
  EXPECT_TRUE(olmo.rotations.empty());
  EXPECT_EQ(olmo.ropeTheta, 5e5);
}

TEST(ModelTest, FractionsOfLayers) {
  auto gemma = [](llvm::StringRef full, llvm::StringRef outer) {
    return R"({"model_type": "gemma3_text", "rope_parameters": {
        "full_attention": {"rope_type": "default", "rope_theta": 1e6)" +
           full.str() + R"(},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}})" +
           outer.str() + "}";
  };
  std::string half = R"(, "partial_rotary_factor": 0.5)";
  EXPECT_EQ(rotations(gemma(half, "")),
            "full_attention:1000000%128 sliding_attention:10000");
  EXPECT_EQ(good(gemma(half, "")).rotaryDim, 128);
  // A fraction outside applies to all types.
  for (llvm::StringRef full : {half.c_str(), ""})
    EXPECT_EQ(rotations(gemma(full, half)),
              "full_attention:1000000%128 sliding_attention:10000%128");
  // Rotations that differ only by the fraction are different.
  std::string alike = gemma(half, "");
  alike.replace(alike.find("1e6"), 3, "1e4");
  EXPECT_EQ(rotations(alike),
            "full_attention:10000%128 sliding_attention:10000");
}

TEST(ModelTest, LayersWithoutDictionary) {
  std::string full = R"("full_attention": {"rope_type": "linear", "factor": 8,
      "rope_theta": 1e6})";
  // Sliding layers with a separate base need no dictionary.
  EXPECT_EQ(rotations(R"({"model_type": "gemma3_text",
      "rope_local_base_freq": 2e4, "rope_parameters": {
        "sliding_attention": null, )" +
                      full + "}}"),
            "sliding_attention:20000 full_attention:1000000/8");
  // The same holds if the model has a default base for each type.
  EXPECT_EQ(rotations(R"({"model_type": "gemma3_text", "rope_parameters": {
        "sliding_attention": null, )" +
                      full + "}}"),
            "sliding_attention:10000 full_attention:1000000/8");
  EXPECT_EQ(rotations(R"({"model_type": "gemma3_text", "rope_parameters": {)" +
                      full + "}}"),
            "full_attention:1000000/8 sliding_attention:10000");
  EXPECT_EQ(rotations(R"({"model_type": "gemma3_text", "rope_theta": 2e6,
      "rope_parameters": {"full_attention": null, "sliding_attention": {
        "rope_type": "default", "rope_theta": 3e4}}})"),
            "full_attention:2000000 sliding_attention:30000");
  // There are no sliding layers.
  EXPECT_EQ(good(R"({"model_type": "gemma3_text", "sliding_window_pattern": 1,
      "rope_parameters": {"sliding_attention": null, )" +
                 full + "}}")
                .ropeTheta,
            1e6);
  EXPECT_EQ(good(llama("\"rope_parameters\": {" + full + "}")).ropeTheta, 1e6);
  EXPECT_EQ(good(llama(R"("layer_types": ["full_attention"],
      "rope_parameters": {"sliding_attention": null, )" +
                       full + "}"))
                .ropeTheta,
            1e6);
  // The full-attention layers of these models do not rotate.
  EXPECT_EQ(good(R"({"model_type": "exaone4", "hidden_size": 512,
      "num_attention_heads": 8,
      "layer_types": ["sliding_attention", "full_attention"],
      "rope_parameters": {"full_attention": null, "sliding_attention": {
        "rope_type": "default", "rope_theta": 3e4}}})")
                .ropeTheta,
            3e4);
  EXPECT_EQ(good(llama(R"("layer_types": ["linear_attention",
      "full_attention"], "rope_parameters": {)" +
                       full + "}"))
                .ropeTheta,
            1e6);
}

std::string scaling(llvm::StringRef members) {
  return print(good(llama(members)).scaling);
}

TEST(ScalingTest, Linear) {
  EXPECT_EQ(scaling(R"("rope_scaling": {"type": "linear", "factor": 2.5})"),
            "linear<factor = 2.500000e+00>");
}

TEST(ScalingTest, Llama3) {
  ModelConfig config = good(llama(R"("rope_parameters": {
      "rope_type": "llama3", "factor": 8, "low_freq_factor": 1.0,
      "high_freq_factor": 4, "original_max_position_embeddings": 8192,
      "rope_theta": 500000.0})"));
  EXPECT_EQ(config.ropeTheta, 5e5);
  EXPECT_EQ(print(config.scaling),
            "llama3<factor = 8.000000e+00, low_freq_factor = 1.000000e+00, "
            "high_freq_factor = 4.000000e+00, original_max_position = "
            "8.192000e+03>");
}

TEST(ScalingTest, Yarn) {
  EXPECT_EQ(scaling(R"("rope_scaling": {"rope_type": "yarn",
      "factor": 40, "beta_fast": 16, "beta_slow": 2.5, "mscale": 0.707,
      "mscale_all_dim": 1, "attention_factor": 1.25, "truncate": false,
      "original_max_position_embeddings": 4096})"),
            "yarn<factor = 4.000000e+01, original_max_position = "
            "4.096000e+03, beta_fast = 1.600000e+01, beta_slow = "
            "2.500000e+00, truncate = false, attention_factor = 1.250000e+00, "
            "mscale = 7.070000e-01, mscale_all_dim = 1.000000e+00>");
}

TEST(ScalingTest, YarnDefaults) {
  EXPECT_EQ(scaling(R"("max_position_embeddings": 16384,
      "original_max_position_embeddings": 4096, "rope_scaling": {
      "rope_type": "yarn", "factor": null, "beta_fast": 0, "beta_slow": null,
      "mscale": 0, "mscale_all_dim": 0.0, "attention_factor": null})"),
            "yarn<factor = 4.000000e+00, original_max_position = "
            "4.096000e+03>");
}

/// The rows of the model table hold the default scalings as text.
TEST(ScalingTest, DefaultsOfModelTypes) {
  std::string scaled;
  for (const ModelType &type : getModelTypes())
    if (Outcome outcome =
            read("{\"model_type\": \"" + type.name.str() +
                 R"(", "hidden_size": 4096, "num_attention_heads": 32,
                     "qk_rope_head_dim": 64})");
        outcome.config && outcome.config->scaling)
      scaled += type.name.str() + " ";
  EXPECT_EQ(scaled,
            "apertus apertus1p5_text cwm dinov3_vit eomt_dinov3 gemma4 "
            "gemma4_text gemma4_unified gemma4_unified_text gpt_oss "
            "higgs_audio_v2 ministral3 mistral4 openai_privacy_filter ");
}

TEST(ScalingTest, OriginalLengthDefaultsToMaxPosition) {
  EXPECT_EQ(scaling(R"("max_position_embeddings": 2048,
      "rope_scaling": {"rope_type": "yarn", "factor": 4})"),
            "yarn<factor = 4.000000e+00, original_max_position = "
            "2.048000e+03>");
}

} // namespace
