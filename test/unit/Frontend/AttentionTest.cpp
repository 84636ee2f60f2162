//===- AttentionTest.cpp - attention keys of configs ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include <cmath>

using namespace posenc::frontend;
using namespace posenc::frontend::test;

namespace {

/// Returns a config of the type with 8 heads of 64 channels and more members.
std::string config(llvm::StringRef type, llvm::StringRef members = "") {
  std::string text = "{\"model_type\": \"" + type.str() +
                     "\", \"hidden_size\": 512, \"num_attention_heads\": 8";
  if (!members.empty())
    text += ", " + members.str();
  return text + "}";
}

Outcome readAll(llvm::StringRef text, bool qkNorm = false) {
  ReadOptions options;
  options.attention = options.assumeAttention = true;
  options.qkNorm = qkNorm;
  return read(text, options);
}

AttentionConfig good(llvm::StringRef text, bool qkNorm = false) {
  Outcome outcome = readAll(text, qkNorm);
  EXPECT_TRUE(outcome.config && outcome.config->attention) << text.str() << '\n'
                                                           << outcome.printed();
  if (!outcome.config)
    return {};
  return outcome.config->attention.value_or(AttentionConfig());
}

/// Returns the layers as `type:window`, with a trailing `-` if they do not
/// rotate.
std::string layers(llvm::StringRef text) {
  std::string list;
  for (const LayerAttention &layer : good(text).layers)
    list += (list.empty() ? "" : " ") + layer.type + ":" +
            (layer.window ? std::to_string(*layer.window) : "") +
            (layer.rotates ? "" : "-");
  return list;
}

/// Expects an error that mentions `key` at the caret in the text.
void expectError(llvm::StringRef marked, llvm::StringRef key,
                 bool qkNorm = false) {
  Marked text(marked);
  EXPECT_TRUE(
      hasDiagnostic(readAll(text.text, qkNorm), Severity::Error, text, key));
  // Without ReadOptions::attention, these keys are not checked.
  EXPECT_TRUE(read(text.text).config) << text.text;
}

TEST(AttentionTest, IsReadOnRequest) {
  EXPECT_FALSE(read(config("llama")).config->attention);
  AttentionConfig llama =
      good(config("llama", "\"num_key_value_heads\": 2, \"head_dim\": 32"));
  EXPECT_EQ(llama.numKeyValueHeads, 2);
  EXPECT_EQ(llama.headDim, 32);
  EXPECT_EQ(llama.valueDim, 32);
  EXPECT_EQ(llama.rotaryOffset, 0);
  EXPECT_FALSE(llama.scale || llama.softCap || llama.norm);
  EXPECT_TRUE(llama.isCausal);
  EXPECT_FALSE(llama.hasSinks);
}

TEST(AttentionTest, Scale) {
  auto scale = [](llvm::StringRef type, llvm::StringRef members = "") {
    return good(config(type, members)).scale.value_or(0);
  };
  EXPECT_EQ(scale("llama", "\"attention_multiplier\": 0.25"), 0.25);
  EXPECT_EQ(scale("gemma2", "\"query_pre_attn_scalar\": 64"), 0.125);
  EXPECT_EQ(scale("gemma2"), 0.0625);
  EXPECT_EQ(scale("gemma"), 0);
  EXPECT_EQ(scale("granite"), 1);
  EXPECT_EQ(scale("granite", "\"attention_multiplier\": 0.0078125"), 0x1p-7);
  expectError("{\"model_type\": \"llama\", \"hidden_size\": 512,"
              "\"num_attention_heads\": 8, \"attention_multiplier\": ^0}",
              "attention_multiplier");
  expectError("{\"model_type\": \"gemma2\", \"num_attention_heads\": 8,"
              "\"query_pre_attn_scalar\": ^\"256\"}",
              "query_pre_attn_scalar");
}

TEST(AttentionTest, SoftCap) {
  EXPECT_EQ(good(config("gemma2")).softCap, 50);
  EXPECT_EQ(good(config("gemma2", "\"attn_logit_softcapping\": 30.5")).softCap,
            30.5);
  EXPECT_FALSE(
      good(config("gemma2", "\"attn_logit_softcapping\": null")).softCap);
  EXPECT_FALSE(
      good(config("gemma3", "\"rope_local_base_freq\": 1000000")).softCap);
  expectError("{\"model_type\": \"gemma2\", \"num_attention_heads\": 8,"
              "\"attn_logit_softcapping\": ^-1}",
              "attn_logit_softcapping");
}

TEST(AttentionTest, Windows) {
  EXPECT_EQ(layers(config("llama")), ":");
  EXPECT_EQ(layers(config("mistral", "\"sliding_window\": 512")), ":512");
  EXPECT_EQ(layers(config("mistral")), ":4096");
  EXPECT_EQ(layers(config("mistral", "\"sliding_window\": null")), ":");
  EXPECT_EQ(layers(config("phi3", "\"sliding_window\": 2047")), ":2047");
  // Without `use_sliding_window`, the default of the model applies.
  EXPECT_EQ(layers(config("qwen2", "\"sliding_window\": 512")), ":");
  EXPECT_EQ(layers(config("mistral", "\"sliding_window\": 512,"
                                     "\"use_sliding_window\": false")),
            ":");
  EXPECT_EQ(layers(config("recurrent_gemma")), ":2048");
  expectError("{\"model_type\": \"mistral\", \"hidden_size\": 512,"
              "\"num_attention_heads\": 8, \"sliding_window\": ^-1}",
              "sliding_window");
  expectError("{\"model_type\": \"qwen2\", \"hidden_size\": 512,"
              "\"num_attention_heads\": 8, \"use_sliding_window\": ^1}",
              "use_sliding_window");
}

TEST(AttentionTest, LayersWithoutLayerTypes) {
  EXPECT_EQ(layers(config("gemma2")),
            ":4096 sliding_attention:4096 full_attention:");
  EXPECT_EQ(layers(config("gemma2", "\"sliding_window_pattern\": 1")),
            ": full_attention:");
  EXPECT_EQ(layers(config("cohere2")),
            ":4096 sliding_attention:4096 full_attention:-");
  std::string qwen = "\"use_sliding_window\": true, \"sliding_window\": 512,"
                     "\"num_hidden_layers\": 28, \"max_window_layers\": ";
  EXPECT_EQ(layers(config("qwen2", qwen + "28")), ": full_attention:");
  EXPECT_EQ(layers(config("qwen2", qwen + "0")), ":512 sliding_attention:512");
  EXPECT_EQ(layers(config("qwen2", qwen + "21")),
            ":512 full_attention: sliding_attention:512");
  expectError("{\"model_type\": \"qwen2\", \"hidden_size\": 512,"
              "\"num_attention_heads\": 8, \"use_sliding_window\": true,"
              "\"sliding_window\": 64, \"max_window_layers\": ^-1}",
              "max_window_layers");
}

TEST(AttentionTest, LayersWithDifferentRotations) {
  // There is no layer without a type.
  EXPECT_EQ(layers(config("gemma3_text")),
            "sliding_attention:4096 full_attention:");
  EXPECT_EQ(layers(config("gemma3_text", "\"sliding_window_pattern\": 1")),
            ": full_attention:");
  EXPECT_EQ(layers(config("gemma3_text", "\"sliding_window\": null")),
            "sliding_attention: full_attention:");
  EXPECT_EQ(layers(config("gemma3_text",
                          "\"sliding_window\": 512, \"layer_types\": "
                          "[\"full_attention\", \"sliding_attention\"]")),
            "full_attention: sliding_attention:512");
  EXPECT_EQ(
      layers(config("llama", "\"sliding_window\": 512, \"rope_parameters\": {"
                             "\"sliding_attention\": {\"rope_theta\": 1e4}, "
                             "\"full_attention\": {\"rope_theta\": 1e6}}")),
      "sliding_attention:512 full_attention:");
}

TEST(AttentionTest, WindowsOfBothSides) {
  // Half of the window is on either side of the query's own key.
  EXPECT_EQ(layers(config("modernbert")),
            "sliding_attention:65 full_attention:");
  EXPECT_EQ(layers(config("modernbert", "\"local_attention\": 32")),
            "sliding_attention:17 full_attention:");
  EXPECT_FALSE(good(config("modernbert")).isCausal);
  // Half of the window of a decoder is before the query, with its own key.
  EXPECT_EQ(
      layers(config("modernbert-decoder", "\"local_attention\": 32, "
                                          "\"local_rope_theta\": 160000")),
      ":16 sliding_attention:16 full_attention:");
  // In this encoder, the window is the largest distance.
  EXPECT_EQ(layers(config("t5_gemma_module", "\"sliding_window\": 32")),
            ":33 sliding_attention:33 full_attention:");
  EXPECT_EQ(layers(config("t5_gemma_module",
                          "\"sliding_window\": 32, \"is_decoder\": true")),
            ":32 sliding_attention:32 full_attention:");
  std::string gemma =
      config("gemma3_text", "\"use_bidirectional_attention\": true");
  EXPECT_EQ(layers(gemma), "sliding_attention:2049 full_attention:");
  EXPECT_FALSE(good(gemma).isCausal);
  EXPECT_TRUE(good(config("gemma3_text", "\"use_bidirectional_attention\": "
                                         "false"))
                  .isCausal);
}

TEST(AttentionTest, Causality) {
  EXPECT_TRUE(good(config("roformer", "\"is_decoder\": true")).isCausal);
  EXPECT_FALSE(good(config("roformer", "\"is_decoder\": false")).isCausal);
  EXPECT_FALSE(good(config("t5_gemma_module")).isCausal);
  // The decoder of an encoder-decoder model needs no key.
  EXPECT_TRUE(good("{\"model_type\": \"t5gemma\", \"decoder\": " +
                   config("t5_gemma_module") + "}")
                  .isCausal);
  EXPECT_FALSE(
      good(config("gemma4_text", "\"use_bidirectional_attention\": \"all\""))
          .isCausal);
  EXPECT_TRUE(
      good(config("gemma4_text", "\"use_bidirectional_attention\": \"vision\""))
          .isCausal);
  expectError("{\"model_type\": \"gemma4_text\","
              "\"use_bidirectional_attention\": ^\"yes\"}",
              "use_bidirectional_attention");
  expectError("{\"model_type\": \"roformer\", \"hidden_size\": 512,"
              "\"num_attention_heads\": 8, \"is_decoder\": ^1}",
              "is_decoder");
}

TEST(AttentionTest, Encoders) {
  std::string moonshine = "\"decoder_num_attention_heads\": 8, "
                          "\"partial_rotary_factor\": 0.5, "
                          "\"encoder_num_attention_heads\": ";
  AttentionConfig both = good(config("moonshine", moonshine + "8"));
  ASSERT_EQ(both.layers.size(), 2u);
  EXPECT_TRUE(both.layers[0].isEncoder);
  EXPECT_FALSE(both.isCausalIn(both.layers[0]));
  EXPECT_TRUE(both.isCausalIn(both.layers[1]));
  Outcome differ = readAll(config("moonshine", moonshine + "4"));
  ASSERT_TRUE(differ.config) << differ.printed();
  EXPECT_EQ(differ.config->attention->layers.size(), 1u);
  EXPECT_NE(differ.printed().find("no attention functions for the encoder"),
            std::string::npos);
  expectError("{\"model_type\": \"moonshine\", \"hidden_size\": 288,"
              "\"num_attention_heads\": 8,"
              "\"encoder_num_attention_heads\": ^\"8\"}",
              "encoder_num_attention_heads");
}

TEST(AttentionTest, LayersThatDoNotRotate) {
  auto smollm = [](llvm::StringRef members) {
    return layers(config("smollm3", members));
  };
  EXPECT_EQ(smollm(""), ": nope:-");
  EXPECT_EQ(smollm("\"num_hidden_layers\": 3"), ":");
  EXPECT_EQ(smollm("\"no_rope_layers\": [], \"num_hidden_layers\": 4"),
            ": nope:-");
  EXPECT_EQ(smollm("\"no_rope_layer_interval\": 1"), ":-");
  EXPECT_EQ(smollm("\"no_rope_layers\": [1, 0, 1.0, true]"), ": nope:-");
  EXPECT_EQ(smollm("\"no_rope_layers\": [0, false]"), ":-");
  EXPECT_EQ(smollm("\"no_rope_layers\": [1, 1], \"no_rope_layer_interval\": 2"),
            ":");
  // With a window, these are the sliding layers, unless the config has
  // `layer_types`.
  std::string window = "\"use_sliding_window\": true, \"sliding_window\": 64";
  EXPECT_EQ(smollm(window), "full_attention: sliding_attention:64-");
  EXPECT_EQ(smollm(window + ", \"no_rope_layers\": [0, 1, 0, 0, 1], "
                            "\"layer_types\": [\"full_attention\", "
                            "\"full_attention\", \"sliding_attention\", "
                            "\"sliding_attention\", \"full_attention\"]"),
            "full_attention: full_attention_nope:- sliding_attention:64-");
  EXPECT_EQ(smollm("\"layer_types\": [\"full_attention\", \"full_attention\"],"
                   "\"no_rope_layer_interval\": 2"),
            ": nope:-");
  EXPECT_EQ(smollm(window + ", \"no_rope_layers\": [1, 1]"), "full_attention:");
  // The end of a list that is too long is ignored.
  EXPECT_EQ(smollm("\"num_hidden_layers\": 2, \"no_rope_layers\": [1, 1, 0]"),
            ":");
  // The key is read for unknown models, but not for other known ones.
  std::string some = "\"rope_theta\": 1e4, \"no_rope_layers\": [1, 0]";
  EXPECT_EQ(layers(config("other", some)), ": nope:-");
  EXPECT_EQ(layers(config("llama", some)), ":");
  expectError("{\"model_type\": \"smollm3\", \"hidden_size\": 512,"
              "\"num_attention_heads\": 8, \"no_rope_layers\": [1, ^2]}",
              "no_rope_layers");
  expectError("{\"model_type\": \"smollm3\", \"hidden_size\": 512,"
              "\"num_attention_heads\": 8, \"no_rope_layers\": ^4}",
              "no_rope_layers");
  expectError("{\"model_type\": \"smollm3\", \"hidden_size\": 512,"
              "\"num_attention_heads\": 8, \"no_rope_layers\": ^[1], "
              "\"layer_types\": [\"full_attention\", \"full_attention\"]}",
              "no_rope_layers");
  expectError("{\"model_type\": \"smollm3\", \"hidden_size\": 512,"
              "\"num_attention_heads\": 8, \"no_rope_layer_interval\": ^0}",
              "no_rope_layer_interval");
}

TEST(AttentionTest, LayersOfLayerTypes) {
  std::string types = "\"layer_types\": [\"full_attention\", "
                      "\"sliding_attention\", \"full_attention\"]";
  EXPECT_EQ(layers(config("gemma2", types)),
            "full_attention: sliding_attention:4096");
  EXPECT_EQ(layers(config("llama", types + ", \"sliding_window\": 64")),
            "full_attention: sliding_attention:64");
  EXPECT_EQ(layers(config("llama", types + ", \"sliding_window\": null")),
            "full_attention: sliding_attention:");
  EXPECT_EQ(layers(config("mistral", "\"layer_types\": [\"full_attention\"]")),
            ":");
  EXPECT_EQ(layers(config("lfm2", "\"layer_types\": [\"conv\", "
                                  "\"full_attention\"]")),
            "full_attention:");
  expectError("^{\"model_type\": \"llama\", \"hidden_size\": 512,"
              "\"num_attention_heads\": 8," +
                  types + "}",
              "sliding_window");
}

TEST(AttentionTest, UnsupportedAttention) {
  auto hasAttention = [](llvm::StringRef text) {
    Outcome outcome = readAll(text);
    EXPECT_TRUE(outcome.config) << outcome.printed();
    bool hasOne = outcome.config && outcome.config->attention;
    // A missing attention is reported if it was requested.
    EXPECT_NE(hasOne, llvm::StringRef(outcome.printed())
                          .contains("warning: no attention functions"))
        << outcome.printed();
    return hasOne;
  };
  EXPECT_FALSE(hasAttention(config("diffllama")));
  EXPECT_FALSE(hasAttention(config("hunyuan_v1_dense")));
  EXPECT_FALSE(hasAttention(config("roformer", "\"rotary_value\": true")));
  EXPECT_FALSE(
      hasAttention(config("lfm2", "\"layer_types\": [\"conv\", \"other\"]")));
  EXPECT_TRUE(good(config("gpt_oss")).hasSinks);
  EXPECT_FALSE(good(config("roformer")).isCausal);
}

TEST(AttentionTest, Llama4) {
  AttentionConfig derived = good(config("llama4_text"));
  ASSERT_EQ(derived.layers.size(), 2u);
  EXPECT_EQ(derived.layers[0].type, "chunked_attention");
  EXPECT_EQ(derived.layers[0].chunk, 8192);
  EXPECT_TRUE(derived.layers[0].rotates);
  EXPECT_EQ(derived.layers[1].type, "full_attention");
  EXPECT_FALSE(derived.layers[1].chunk);
  EXPECT_FALSE(derived.layers[1].rotates);
  ASSERT_TRUE(derived.temperature);
  EXPECT_EQ(derived.temperature->beta, 0.1);
  EXPECT_EQ(derived.temperature->length, 8192);
  EXPECT_EQ(derived.temperature->offset, 1);
  EXPECT_FALSE(derived.temperature->isIn(derived.layers[0]));
  EXPECT_TRUE(derived.temperature->isIn(derived.layers[1]));

  // A number that early configs have.
  AttentionConfig given = good(
      config("llama4_text", R"("attention_chunk_size": 64, "floor_scale": 16,
      "attn_scale": 0.5, "attn_temperature_tuning": 4,
      "no_rope_layers": [1, 0], "layer_types": ["chunked_attention",
      "full_attention"])"));
  ASSERT_EQ(given.layers.size(), 2u);
  EXPECT_EQ(given.layers[0].chunk, 64);
  EXPECT_FALSE(given.layers[1].rotates);
  EXPECT_EQ(given.temperature->beta, 0.5);
  EXPECT_EQ(given.temperature->length, 16);

  AttentionConfig plain =
      good(config("llama4_text", R"("attention_chunk_size": null,
      "attn_temperature_tuning": false)"));
  ASSERT_EQ(plain.layers.size(), 2u);
  EXPECT_EQ(plain.layers[0].type, "");
  EXPECT_FALSE(plain.layers[0].chunk);
  EXPECT_EQ(plain.layers[1].type, "nope");
  EXPECT_FALSE(plain.temperature);

  const std::string start = "{\"model_type\": \"llama4_text\", "
                            "\"hidden_size\": 512, "
                            "\"num_attention_heads\": 8, ";
  expectError(start + "\"attention_chunk_size\": ^0}", "attention_chunk_size");
  expectError(start + "\"attn_scale\": ^-0.1}", "attn_scale");
  expectError(start + "\"floor_scale\": ^0.5}", "floor_scale");
  expectError(start + "\"attn_temperature_tuning\": ^\"yes\"}",
              "attn_temperature_tuning");
  expectError(start + "\"attention_chunk_size\": ^null, \"layer_types\": "
                      "[\"chunked_attention\"]}",
              "attention_chunk_size");
}

TEST(AttentionTest, Temperature) {
  std::string length = "\"original_max_position_embeddings\": 512";
  auto dict = [](const std::string &members) {
    return "\"rope_parameters\": {\"rope_type\": \"default\", "
           "\"rope_theta\": 10000.0, " +
           members + "}";
  };
  AttentionConfig given = good(
      config("ministral3", dict("\"llama_4_scaling_beta\": 0.25, " + length)));
  ASSERT_TRUE(given.temperature);
  EXPECT_EQ(given.temperature->beta, 0.25);
  EXPECT_EQ(given.temperature->length, 512);
  EXPECT_EQ(good(config("ministral3")).temperature->length, 16384);
  EXPECT_FALSE(good(config("mistral")).temperature);
  expectError("{\"model_type\": \"ministral3\", \"hidden_size\": 512,"
              "\"num_attention_heads\": 8," +
                  dict("\"llama_4_scaling_beta\": ^0.25") + "}",
              "llama_4_scaling_beta");
  expectError("{\"model_type\": \"ministral3\", \"hidden_size\": 512,"
              "\"num_attention_heads\": 8," +
                  dict("\"llama_4_scaling_beta\": ^-1, " + length) + "}",
              "llama_4_scaling_beta");
}

TEST(AttentionTest, Latent) {
  std::string shape = "\"qk_rope_head_dim\": 16, \"qk_nope_head_dim\": 48";
  AttentionConfig plain = good(config("deepseek_v3", shape));
  EXPECT_EQ(plain.numKeyValueHeads, 8);
  EXPECT_EQ(plain.headDim, 64);
  EXPECT_EQ(plain.valueDim, 128);
  EXPECT_EQ(plain.rotaryOffset, 48);
  EXPECT_FALSE(plain.scale);
  // @rope has the rotary channels alone.
  Outcome outcome = readAll(config("deepseek_v3", shape));
  EXPECT_EQ(outcome.config->headDim, 16);
  EXPECT_EQ(outcome.config->numKeyValueHeads, 1);
  AttentionConfig yarn = good(config(
      "deepseek_v3", shape + ", \"v_head_dim\": 32, \"rope_scaling\": "
                             "{\"rope_type\": \"yarn\", \"factor\": 40, "
                             "\"mscale\": 1, \"mscale_all_dim\": 0.5, "
                             "\"original_max_position_embeddings\": 4096}"));
  double g = 0.05 * std::log(40.0) + 1;
  ASSERT_TRUE(yarn.scale);
  EXPECT_DOUBLE_EQ(*yarn.scale, g * g / 8);
  EXPECT_EQ(yarn.valueDim, 32);
  // Without sizes and defaults, there is no attention.
  EXPECT_FALSE(readAll("{\"model_type\": \"minicpm3\", "
                       "\"num_attention_heads\": 8, "
                       "\"qk_rope_head_dim\": 16}")
                   .config->attention);
  EXPECT_EQ(good(config("minicpm3", "\"qk_rope_head_dim\": 16")).valueDim, 64);
}

TEST(AttentionTest, Norms) {
  EXPECT_FALSE(good(config("qwen3", "\"rms_norm_eps\": 1e-6")).norm);
  struct Case {
    const char *type, *members;
    double eps, weightOffset;
    bool allHeads;
  };
  const Case cases[] = {
      {"qwen3", "\"rms_norm_eps\": 1e-4", 1e-4, 0, false},
      {"qwen3", "", 1e-6, 0, false},
      {"qwen3", "\"rms_norm_eps\": null", 1e-6, 0, false},
      {"qwen3_moe", "", 1e-6, 0, false},
      {"exaone4", "", 1e-5, 0, false},
      {"lfm2", "\"norm_eps\": 1e-3, \"rms_norm_eps\": 1", 1e-3, 0, false},
      {"glm4_moe", "\"use_qk_norm\": true", 1e-5, 0, false},
      {"gemma3_text", "", 1e-6, 1, false},
      {"gemma3n_text", "", 1e-6, 0, false},
      {"qwen3_next", "", 1e-6, 1, false},
      {"olmo2", "", 1e-5, 0, true},
      {"olmo3", "", 1e-5, 0, true},
      {"olmoe", "", 1e-5, 0, true},
      {"flex_olmo", "", 1e-6, 0, true},
  };
  for (const Case &one : cases) {
    AttentionConfig attention = good(config(one.type, one.members), true);
    ASSERT_TRUE(attention.norm) << one.type;
    EXPECT_EQ(attention.norm->eps, one.eps) << one.type;
    EXPECT_EQ(attention.norm->weightOffset, one.weightOffset) << one.type;
    EXPECT_EQ(attention.norm->allHeads, one.allHeads) << one.type;
  }
  // Models without norms or with unsupported norms.
  for (const char *type :
       {"llama", "gemma2", "phi3", "cohere2", "deepseek_v3"}) {
    std::string start = std::string("{\"model_type\": ^\"") + type + "\"";
    expectError(start + ", \"hidden_size\": 512, \"qk_rope_head_dim\": 64,"
                        "\"num_attention_heads\": 8}",
                type, /*qkNorm=*/true);
  }
  for (const char *type : {"cohere", "glm4_moe"})
    expectError(std::string("{\"model_type\": \"") + type +
                    "\", \"hidden_size\": 512, \"num_attention_heads\": 8, "
                    "\"use_qk_norm\": ^false}",
                "use_qk_norm", /*qkNorm=*/true);
  expectError("{\"model_type\": ^\"cohere\", \"hidden_size\": 512,"
              "\"num_attention_heads\": 8, \"use_qk_norm\": true}",
              "cohere", /*qkNorm=*/true);
  expectError("{\"model_type\": \"qwen3\", \"hidden_size\": 512,"
              "\"num_attention_heads\": 8, \"rms_norm_eps\": ^-1}",
              "rms_norm_eps", /*qkNorm=*/true);
}

} // namespace
