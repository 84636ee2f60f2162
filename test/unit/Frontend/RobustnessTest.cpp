//===- RobustnessTest.cpp - damaged and hostile configs -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include "posenc/Frontend/Json.h"

#include <random>

using namespace posenc::frontend;
using namespace posenc::frontend::test;

namespace {

const char config[] = R"({
  "architectures": ["DeepseekV3ForCausalLM"],
  "model_type": "deepseek_v3",
  "hidden_size": 7168,
  "num_attention_heads": 128,
  "num_key_value_heads": 128,
  "qk_rope_head_dim": 64,
  "max_position_embeddings": 163840,
  "rope_theta": 10000.0,
  "rope_scaling": {
    "beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0,
    "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096,
    "type": "yarn"
  },
  "rope_interleave": true,
  "qk_nope_head_dim": 128, "v_head_dim": 128, "rms_norm_eps": 1e-6,
  "sliding_window": 4096, "use_sliding_window": true,
  "attn_logit_softcapping": 50.0, "query_pre_attn_scalar": 256,
  "layer_types": ["sliding_attention", "full_attention"],
  "text_config": {"model_type": "llama", "r\u00e9sum\u00e9": [1e-6, null]},
  "torch_dtype": "bfloat16"
})";

/// Keys that cannot be combined with those of the first config.
const std::string layersConfig = R"({
  "model_type": "gemma3_text", "num_attention_heads": 8,
  "num_key_value_heads": 4, "rms_norm_eps": 1e-6, "sliding_window": 512,
  "layer_types": ["sliding_attention", "full_attention"],
  "rope_local_base_freq": 1e4, "max_position_embeddings": 4096,
  "rope_parameters": {
    "full_attention": {"rope_type": "linear", "factor": 8.0,
                       "rope_theta": 1000000.0, "partial_rotary_factor": 0.5},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}
  }
})";

/// A config whose layers differ by more than their type.
const std::string setsConfig = R"({
  "model_type": "gemma3_text", "num_hidden_layers": 4, "head_dim": 64,
  "num_attention_heads": 8, "num_key_value_heads": {"0": 4, "1": 4, "2": 2,
  "3": 4}, "num_attention_heads_per_layer": [8, 16, 8, 8],
  "per_layer_config": {"03": {"head_dim": 128, "sliding_window": null}},
  "block_configs": [{"attention": {"no_op": false}}, {}, {}, {"ffn": {}}],
  "partial_rotary_factors": [1, 0.5, 1, 1, 1], "num_nextn_predict_layers": 1,
  "layer_rope_theta": [10000.0, 1, 10000.0, 0], "swa_head_dim": 64,
  "sliding_window": {"sliding_attention": 512, "full_attention": null},
  "attention_other_setting": {"attention_type": "sliding_attention"},
  "rope_scaling_layers": [0, 1, 2, 3],
  "layer_types": ["sliding_attention", "sliding_attention",
                  "sliding_attention", "full_attention"]
})";

/// Checks that any text gives either a config or an error, and that every
/// diagnostic points into the text.
void check(llvm::StringRef text, const ReadOptions &options) {
  Outcome outcome = read(text, options);
  EXPECT_EQ(outcome.config.has_value(), outcome.count(Severity::Error) == 0);
  llvm::SmallVector<llvm::StringRef> lines;
  text.split(lines, '\n');
  for (const Diagnostic &diag : outcome.diags) {
    ASSERT_GE(diag.line, 1u);
    ASSERT_LE(diag.line, lines.size());
    ASSERT_GE(diag.col, 1u);
    ASSERT_LE(diag.col, lines[diag.line - 1].size() + 1);
    ASSERT_FALSE(diag.message.empty());
  }
}

ReadOptions everything() {
  ReadOptions options;
  options.attention = options.qkNorm = true;
  return options;
}

void check(llvm::StringRef text) {
  check(text, {});
  check(text, everything());
}

TEST(RobustnessTest, UnchangedConfigsAreValid) {
  ReadOptions attention;
  attention.attention = true;
  for (const std::string &text :
       {std::string(config), layersConfig, setsConfig})
    for (const ReadOptions &options : {ReadOptions(), attention}) {
      Outcome outcome = read(text, options);
      EXPECT_TRUE(outcome.config);
      // Gemma 3 rotates whole heads.
      EXPECT_TRUE(llvm::all_of(outcome.diags, [](const Diagnostic &diag) {
        return llvm::StringRef(diag.message)
            .starts_with("'partial_rotary_factor' of 0.5 is used");
      })) << outcome.printed();
    }
}

TEST(RobustnessTest, EveryPrefix) {
  llvm::StringRef whole = config;
  for (size_t size = 0; size != whole.size(); ++size) {
    // Copies the prefix, so that a sanitizer detects reads beyond its end.
    std::string prefix = whole.take_front(size).str();
    Outcome outcome = read(prefix);
    EXPECT_FALSE(outcome.config);
    EXPECT_EQ(outcome.diags.size(), 1u);
    check(prefix);
  }
}

TEST(RobustnessTest, MutatedBytes) {
  std::mt19937 random(20240229);
  const llvm::StringRef tokens[] = {
      "null", "true", "-1",  "0",           "1e999",   "NaN",     "{}",
      "[]",   "\"\"", "0.5", "{\"a\": {}}", "\\ud800", "\xED\xA0"};
  for (int round = 0; round != 40000; ++round) {
    std::string text = round < 20000   ? config
                       : round < 30000 ? layersConfig
                                       : setsConfig;
    for (unsigned left = 1 + random() % 4; left; --left) {
      size_t at = random() % text.size();
      switch (random() % 4) {
      case 0:
        text[at] = char(random());
        break;
      case 1:
        text.erase(at, 1 + random() % 20);
        break;
      case 2:
        text.insert(at, text.substr(random() % text.size(), random() % 40));
        break;
      case 3:
        // Replaces a value, to get past the parser to the checks of the config.
        at = text.find(": ", at);
        if (at != std::string::npos)
          text.replace(at + 2, text.find_first_of(",}\n", at) - at - 2,
                       tokens[random() % std::size(tokens)].str());
        break;
      }
      if (text.empty())
        break;
    }
    check(text);
  }
}

TEST(RobustnessTest, DeepNesting) {
  constexpr size_t depth = 1000000;
  check(std::string(depth, '['));
  check(std::string(depth, '[') + std::string(depth, ']'));
  check(std::string(depth, '{'));
  std::string objects;
  for (size_t i = 0; i != depth; ++i)
    objects += "{\"a\":";
  check(objects);
}

TEST(RobustnessTest, LargeTexts) {
  std::string many = "{\"a\": [0";
  for (int i = 0; i != 1000000; ++i)
    many += ",0";
  check(many + "]}");
  check(std::string((16 << 20) + 1, ' '));

  // A hundred thousand keys in dictionaries that are compared.
  std::string keys = "{\"type\": \"linear\", \"factor\": 2";
  for (int i = 0; i != 100000; ++i)
    keys += ", \"" + std::to_string(i) + "\": NaN";
  keys += "}";
  check(llama("\"rope_scaling\": " + keys + ", \"rope_parameters\": " + keys));
}

} // namespace
