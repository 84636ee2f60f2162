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

inline constexpr KeyNames neoxKeys =
    KeyNames()
        .with(&KeyNames::theta, {"rotary_emb_base", "rope_theta"})
        .with(&KeyNames::partial, {"rotary_pct", "partial_rotary_factor"})
        .with(&KeyNames::keyHeadRule, KeyHeads::AsQueries);

inline constexpr KeyNames gptjKeys =
    KeyNames()
        .with(&KeyNames::heads, {"n_head", "num_attention_heads"})
        .with(&KeyNames::hidden, {"n_embd", "hidden_size"})
        .with(&KeyNames::rotaryDim, {"rotary_dim", ""})
        .with(&KeyNames::maxPosition,
              {"n_positions", "max_position_embeddings"})
        .with(&KeyNames::keyHeadRule, KeyHeads::AsQueries);

inline constexpr KeyNames falconKeys =
    KeyNames()
        .with(&KeyNames::heads, {"num_attention_heads", "n_head"})
        .with(&KeyNames::keyHeads, {"num_kv_heads", "n_head_kv"})
        .with(&KeyNames::hidden, {"hidden_size", "n_embed"})
        .with(&KeyNames::keyHeadRule, KeyHeads::Falcon);

inline constexpr KeyNames persimmonKeys =
    KeyNames().with(&KeyNames::keyHeadRule, KeyHeads::AsQueries);

inline constexpr KeyNames stablelmKeys =
    KeyNames().with(&KeyNames::partial, {"partial_rotary_factor", "rope_pct"});

/// Multi-head latent attention: a head has separate numbers of channels that
/// rotate and that do not, and all heads share the rotated part of the key.
inline constexpr KeyNames latentKeys =
    KeyNames()
        .with(&KeyNames::headDim, {"qk_rope_head_dim", ""})
        .with(&KeyNames::keyHeadRule, KeyHeads::One)
        .with(&KeyNames::headDimFromHidden, false);

inline constexpr KeyNames modernBertKeys =
    KeyNames()
        .with(&KeyNames::theta, {"global_rope_theta", "rope_theta"})
        .with(&KeyNames::window, {"local_attention", ""});

inline constexpr KeyNames recurrentGemmaKeys =
    KeyNames().with(&KeyNames::window, {"attention_window_size", ""});

inline constexpr KeyNames rotaryDimKeys =
    KeyNames().with(&KeyNames::rotaryDim, {"rotary_dim", ""});

inline constexpr KeyNames chatGlmKeys =
    KeyNames()
        .with(&KeyNames::keyHeads, {"multi_query_group_num", ""})
        .with(&KeyNames::headDim, {"kv_channels", ""})
        .with(&KeyNames::maxPosition, {"seq_length", ""})
        // Without it, the config is that of ChatGLM 1, which rotates otherwise.
        .with(&KeyNames::headDimFromHidden, false);

inline constexpr KeyNames dbrxKeys =
    KeyNames()
        .with(&KeyNames::heads, {"n_heads", "num_attention_heads"})
        .with(&KeyNames::keyHeads, {"num_key_value_heads", "kv_n_heads"})
        .with(&KeyNames::hidden, {"d_model", "hidden_size"})
        .with(&KeyNames::maxPosition,
              {"max_seq_len", "max_position_embeddings"})
        .with(&KeyNames::nested, "attn_config");

inline constexpr KeyNames jetMoeKeys =
    KeyNames().with(&KeyNames::headDim, {"kv_channels", "head_dim"});

inline constexpr KeyNames moonshineKeys =
    KeyNames()
        .with(&KeyNames::heads,
              {"decoder_num_attention_heads", "num_attention_heads"})
        .with(&KeyNames::keyHeads,
              {"decoder_num_key_value_heads", "num_key_value_heads"});

inline constexpr KeyNames nomicBertKeys =
    KeyNames()
        .with(&KeyNames::heads, {"num_attention_heads", "n_head"})
        .with(&KeyNames::hidden, {"hidden_size", "n_embd"})
        .with(&KeyNames::theta, {"rope_theta", "rotary_emb_base"})
        .with(&KeyNames::partial,
              {"partial_rotary_factor", "rotary_emb_fraction"});

inline constexpr KeyNames qwen1Keys =
    KeyNames()
        .with(&KeyNames::headDim, {"kv_channels", "head_dim"})
        .with(&KeyNames::theta, {"rotary_emb_base", "rope_theta"})
        .with(&KeyNames::partial, {"rotary_pct", "partial_rotary_factor"})
        .with(&KeyNames::keyHeadRule, KeyHeads::AsQueries);

inline constexpr KeyNames step3p5Keys = KeyNames().with(
    &KeyNames::keyHeads, {"num_key_value_heads", "num_attention_groups"});

inline constexpr KeyNames zamba2Keys =
    KeyNames().with(&KeyNames::headDim, {"attention_head_dim", "head_dim"});

inline constexpr KeyNames anyKeys =
    KeyNames()
        .with(&KeyNames::headDim, {"head_dim", "attention_head_size"})
        .with(&KeyNames::theta, {"rope_theta", "rotary_emb_base"})
        .with(&KeyNames::partial, {"partial_rotary_factor", "rotary_pct"})
        .with(&KeyNames::rotaryDim, {"rotary_dim", ""});

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_MODELKEYS_H
