//===- ModelTable.h - what stands in the models' code -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A config.json says how large a model is. How its channels are paired, what
// its keys are called and what an absent key means stands in its code: here,
// one row per model_type.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_MODELTABLE_H
#define POSENC_LIB_FRONTEND_MODELTABLE_H

#include "llvm/ADT/StringRef.h"

#include <array>
#include <cstdint>

namespace posenc::frontend {

/// The names one quantity goes by, the usual one first; unused ones are empty.
using Names = std::array<llvm::StringLiteral, 2>;

/// How many key heads a model has.
enum class KeyHeads {
  Given,     // the key, else as many as query heads
  AsQueries, // as many as query heads, whatever the keys say
  One,       // one, shared by all queries
  Falcon,    // follows from new_decoder_architecture and multi_query
};

struct KeyNames {
  Names heads = {"num_attention_heads", ""};
  Names keyHeads = {"num_key_value_heads", ""};
  Names hidden = {"hidden_size", ""};
  Names headDim = {"head_dim", ""};
  Names theta = {"rope_theta", ""};
  Names partial = {"partial_rotary_factor", ""};
  /// A rotary dimension given as such; empty where the model has no such key.
  Names rotaryDim = {"", ""};
  Names window = {"sliding_window", ""};
  Names maxPosition = {"max_position_embeddings", "n_positions"};
  KeyHeads keyHeadRule = KeyHeads::Given;
  /// False where head_dim is the size of one part of a head among several.
  bool headDimFromHidden = true;
};

/// Which layers slide where there is a window and no `layer_types`.
enum class SlidingLayers {
  All,
  EveryNth,      // all but each n-th, for `sliding_window_pattern`
  FromMaxWindow, // from `max_window_layers` on
  Unrotated,     // those that do not rotate
};

/// How a model norms queries and keys, before it rotates them. The weights are
/// those of the checkpoint.
enum class QkNormKind {
  None,
  EachHead,        // RMS norm of each head, with weights that all heads share
  EachHeadPlusOne, // the same, with 1 added to the weights
  AllHeads, // RMS norm of all heads of a token, a weight for each channel
  Unsupported,
};

struct QkNormRow {
  QkNormKind kind = QkNormKind::None;
  llvm::StringLiteral epsKey = "rms_norm_eps";
  double defaultEps = 1e-6;
  /// The key without which, or with false, there are no norms; empty: none.
  llvm::StringLiteral enablingKey = "";
  /// Of unsupported ones: what models of this type do, as a verb phrase.
  llvm::StringLiteral description = "";
};

/// How queries, keys and values meet.
struct AttentionRow {
  /// False where it is of a kind that the functions do not have.
  bool isSupported = true;
  bool isCausal = true;
  bool hasSinks = false;
  /// The layers that see everything do not rotate.
  bool rotatesSlidingOnly = false;
  /// A window counts only if `use_sliding_window` is true.
  bool slidesOnRequest = false;
  SlidingLayers sliding = SlidingLayers::All;
  int64_t slidingPattern = 0;
  /// Each so many-th layer does not rotate, unless `no_rope_layers` says which;
  /// 0: all rotate.
  int64_t unrotatedInterval = 0;
  /// A window's key counts the keys before a query and those after it.
  bool hasWholeWindow = false;
  int64_t defaultWindow = 0;     // 0: none
  double defaultQueryScalar = 0; // 0: the head's size
  double defaultMultiplier = 0;  // 0: by the scalar
  double defaultSoftCap = 0;     // 0: none
  int64_t defaultPlainDim = 0;   // latent: channels that do not rotate
  int64_t defaultValueDim = 0;   // latent: channels of the values
  QkNormRow norm;
};

struct ModelRow {
  llvm::StringLiteral type;
  const KeyNames *keys;
  bool isInterleaved = false;
  double defaultTheta = 10000;
  double defaultPartial = 1;
  int64_t defaultHeads = 0;     // 0: must be given
  int64_t defaultKeyHeads = 0;  // 0: as many as query heads
  int64_t defaultHeadDim = 0;   // 0: hidden size / heads
  int64_t defaultRotaryDim = 0; // 0: from the partial factor
  /// The base of the sliding layers where it is one of its own, else 0.
  double slidingTheta = 0;
  /// Sliding layers take no part in the scaling.
  bool slidingUnscaled = false;
  /// The key that switches interleaving off, or empty.
  llvm::StringLiteral interleaveKey = "";
  AttentionRow attention;
  /// The position_embedding_type under which the model rotates, or empty.
  llvm::StringLiteral positionType = "";

  constexpr ModelRow(llvm::StringLiteral type, const KeyNames &keys)
      : type(type), keys(&keys) {}
  // Each returns the row with one thing changed.
  constexpr ModelRow interleaved() const {
    ModelRow copy = *this;
    copy.isInterleaved = true;
    return copy;
  }
  constexpr ModelRow interleavedUnless(llvm::StringLiteral key) const {
    ModelRow copy = *this;
    copy.interleaveKey = key;
    copy.isInterleaved = true;
    return copy;
  }
  constexpr ModelRow theta(double value) const {
    ModelRow copy = *this;
    copy.defaultTheta = value;
    return copy;
  }
  constexpr ModelRow partial(double value) const {
    ModelRow copy = *this;
    copy.defaultPartial = value;
    return copy;
  }
  constexpr ModelRow heads(int64_t queries, int64_t keys) const {
    ModelRow copy = *this;
    copy.defaultHeads = queries;
    copy.defaultKeyHeads = keys;
    return copy;
  }
  constexpr ModelRow headDim(int64_t value) const {
    ModelRow copy = *this;
    copy.defaultHeadDim = value;
    return copy;
  }
  constexpr ModelRow rotaryDim(int64_t value) const {
    ModelRow copy = *this;
    copy.defaultRotaryDim = value;
    return copy;
  }
  constexpr ModelRow ownSlidingTheta(double value) const {
    ModelRow copy = *this;
    copy.slidingTheta = value;
    return copy;
  }
  constexpr ModelRow unscaledSliding() const {
    ModelRow copy = *this;
    copy.slidingUnscaled = true;
    return copy;
  }
  constexpr ModelRow otherAttention() const {
    ModelRow copy = *this;
    copy.attention.isSupported = false;
    return copy;
  }
  constexpr ModelRow bidirectional() const {
    ModelRow copy = *this;
    copy.attention.isCausal = false;
    return copy;
  }
  constexpr ModelRow sinks() const {
    ModelRow copy = *this;
    copy.attention.hasSinks = true;
    return copy;
  }
  /// Slides over `window` keys, 0 if that is not usual, in all layers but each
  /// `pattern`-th, which is 0 if there is none such.
  constexpr ModelRow slides(int64_t window, int64_t pattern = 0) const {
    ModelRow copy = *this;
    copy.attention.defaultWindow = window;
    copy.attention.slidingPattern = pattern;
    copy.attention.sliding =
        pattern ? SlidingLayers::EveryNth : SlidingLayers::All;
    return copy;
  }
  /// The same in an encoder, over `window` keys and the query's own.
  constexpr ModelRow slidesBothWays(int64_t window, int64_t pattern) const {
    ModelRow copy = bidirectional().slides(window, pattern);
    copy.attention.hasWholeWindow = true;
    return copy;
  }
  constexpr ModelRow slidesFromMaxWindow(bool onRequest) const {
    ModelRow copy = *this;
    copy.attention.sliding = SlidingLayers::FromMaxWindow;
    copy.attention.slidesOnRequest = onRequest;
    return copy;
  }
  /// Not in each `interval`-th layer, which slides if there is a window.
  constexpr ModelRow skipsRotation(int64_t interval) const {
    ModelRow copy = *this;
    copy.attention.unrotatedInterval = interval;
    copy.attention.sliding = SlidingLayers::Unrotated;
    copy.attention.slidesOnRequest = true;
    return copy;
  }
  constexpr ModelRow rotatesSlidingOnly() const {
    ModelRow copy = *this;
    copy.attention.rotatesSlidingOnly = true;
    return copy;
  }
  constexpr ModelRow queryScalar(double value) const {
    ModelRow copy = *this;
    copy.attention.defaultQueryScalar = value;
    return copy;
  }
  constexpr ModelRow multiplier(double value) const {
    ModelRow copy = *this;
    copy.attention.defaultMultiplier = value;
    return copy;
  }
  constexpr ModelRow softCap(double value) const {
    ModelRow copy = *this;
    copy.attention.defaultSoftCap = value;
    return copy;
  }
  constexpr ModelRow latent(int64_t plainDim, int64_t valueDim) const {
    ModelRow copy = *this;
    copy.attention.defaultPlainDim = plainDim;
    copy.attention.defaultValueDim = valueDim;
    return copy;
  }
  /// Norms queries and keys, with a default `eps` for the key `rms_norm_eps`.
  constexpr ModelRow norms(QkNormKind kind, double eps = 1e-6) const {
    ModelRow copy = *this;
    copy.attention.norm.kind = kind;
    copy.attention.norm.defaultEps = eps;
    return copy;
  }
  constexpr ModelRow normEpsKey(llvm::StringLiteral key) const {
    ModelRow copy = *this;
    copy.attention.norm.epsKey = key;
    return copy;
  }
  constexpr ModelRow normsIf(llvm::StringLiteral key) const {
    ModelRow copy = *this;
    copy.attention.norm.enablingKey = key;
    return copy;
  }
  /// Norms in a way that the functions do not have.
  constexpr ModelRow otherNorms(llvm::StringLiteral description) const {
    ModelRow copy = *this;
    copy.attention.norm.kind = QkNormKind::Unsupported;
    copy.attention.norm.description = description;
    return copy;
  }
  constexpr ModelRow onlyIfPositionType(llvm::StringLiteral value) const {
    ModelRow copy = *this;
    copy.positionType = value;
    return copy;
  }
};

/// Null for a type that the table does not have.
const ModelRow *findModel(llvm::StringRef modelType);

/// Half-paired, with every name that a quantity goes by anywhere.
const ModelRow &unknownModel();

/// Types known to encode positions in another way than by rotation, or not at
/// all.
bool hasNoRotaryEmbedding(llvm::StringRef modelType);

/// Types of images, whose keys do not say that they rotate by rows and columns.
bool hasSeveralAxes(llvm::StringRef modelType);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_MODELTABLE_H
