//===- ModelKeys.h - names of the keys of the models ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_MODELKEYS_H
#define POSENC_LIB_FRONTEND_MODELKEYS_H

#include "ModelTable.h"

namespace posenc::frontend {

inline constexpr KeyNames standard;

inline constexpr KeyNames neoxKeys = [] {
  KeyNames keys;
  keys.theta = {"rotary_emb_base", "rope_theta"};
  keys.partial = {"rotary_pct", "partial_rotary_factor"};
  keys.keyHeadRule = KeyHeads::AsQueries;
  return keys;
}();

inline constexpr KeyNames gptjKeys = [] {
  KeyNames keys;
  keys.heads = {"n_head", "num_attention_heads"};
  keys.hidden = {"n_embd", "hidden_size"};
  keys.rotaryDim = {"rotary_dim", ""};
  keys.maxPosition = {"n_positions", "max_position_embeddings"};
  keys.keyHeadRule = KeyHeads::AsQueries;
  return keys;
}();

inline constexpr KeyNames falconKeys = [] {
  KeyNames keys;
  keys.heads = {"num_attention_heads", "n_head"};
  keys.keyHeads = {"num_kv_heads", "n_head_kv"};
  keys.hidden = {"hidden_size", "n_embed"};
  keys.keyHeadRule = KeyHeads::Falcon;
  return keys;
}();

inline constexpr KeyNames persimmonKeys = [] {
  KeyNames keys;
  keys.keyHeadRule = KeyHeads::AsQueries;
  return keys;
}();

inline constexpr KeyNames stablelmKeys = [] {
  KeyNames keys;
  keys.partial = {"partial_rotary_factor", "rope_pct"};
  return keys;
}();

/// Multi-head latent attention: a head has separate numbers of channels that
/// rotate and that do not, and all heads share the rotated part of the key.
inline constexpr KeyNames latentKeys = [] {
  KeyNames keys;
  keys.headDim = {"qk_rope_head_dim", ""};
  keys.keyHeadRule = KeyHeads::One;
  keys.headDimFromHidden = false;
  return keys;
}();

inline constexpr KeyNames modernBertKeys = [] {
  KeyNames keys;
  keys.theta = {"global_rope_theta", "rope_theta"};
  keys.window = {"local_attention", ""};
  return keys;
}();

inline constexpr KeyNames recurrentGemmaKeys = [] {
  KeyNames keys;
  keys.window = {"attention_window_size", ""};
  return keys;
}();

inline constexpr KeyNames rotaryDimKeys = [] {
  KeyNames keys;
  keys.rotaryDim = {"rotary_dim", ""};
  return keys;
}();

inline constexpr KeyNames chatGlmKeys = [] {
  KeyNames keys;
  keys.keyHeads = {"multi_query_group_num", ""};
  keys.headDim = {"kv_channels", ""};
  keys.maxPosition = {"seq_length", ""};
  // Without it, the config is that of ChatGLM 1, which rotates otherwise.
  keys.headDimFromHidden = false;
  return keys;
}();

inline constexpr KeyNames dbrxKeys = [] {
  KeyNames keys;
  keys.heads = {"n_heads", "num_attention_heads"};
  keys.keyHeads = {"num_key_value_heads", "kv_n_heads"};
  keys.hidden = {"d_model", "hidden_size"};
  keys.maxPosition = {"max_seq_len", "max_position_embeddings"};
  keys.nested = "attn_config";
  return keys;
}();

inline constexpr KeyNames jetMoeKeys = [] {
  KeyNames keys;
  keys.headDim = {"kv_channels", "head_dim"};
  return keys;
}();

inline constexpr KeyNames moonshineKeys = [] {
  KeyNames keys;
  keys.heads = {"decoder_num_attention_heads", "num_attention_heads"};
  keys.keyHeads = {"decoder_num_key_value_heads", "num_key_value_heads"};
  return keys;
}();

inline constexpr KeyNames nomicBertKeys = [] {
  KeyNames keys;
  keys.heads = {"num_attention_heads", "n_head"};
  keys.hidden = {"hidden_size", "n_embd"};
  keys.theta = {"rope_theta", "rotary_emb_base"};
  keys.partial = {"partial_rotary_factor", "rotary_emb_fraction"};
  return keys;
}();

inline constexpr KeyNames qwen1Keys = [] {
  KeyNames keys;
  keys.headDim = {"kv_channels", "head_dim"};
  keys.theta = {"rotary_emb_base", "rope_theta"};
  keys.partial = {"rotary_pct", "partial_rotary_factor"};
  keys.keyHeadRule = KeyHeads::AsQueries;
  return keys;
}();

inline constexpr KeyNames step3p5Keys = [] {
  KeyNames keys;
  keys.keyHeads = {"num_key_value_heads", "num_attention_groups"};
  return keys;
}();

inline constexpr KeyNames zamba2Keys = [] {
  KeyNames keys;
  keys.headDim = {"attention_head_dim", "head_dim"};
  return keys;
}();

inline constexpr KeyNames anyKeys = [] {
  KeyNames keys;
  keys.headDim = {"head_dim", "attention_head_size"};
  keys.theta = {"rope_theta", "rotary_emb_base"};
  keys.partial = {"partial_rotary_factor", "rotary_pct"};
  keys.rotaryDim = {"rotary_dim", ""};
  return keys;
}();

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_MODELKEYS_H
