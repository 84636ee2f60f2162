//===- ModelTable.h - defaults of each model_type ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A config.json gives the sizes of a model. The pairing of channels, the names
// of the keys and the defaults of absent keys are only in the implementation of
// the model in transformers. This table has them, one row per model_type.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_MODELTABLE_H
#define POSENC_LIB_FRONTEND_MODELTABLE_H

#include "posenc/Frontend/ModelConfig.h"

#include "llvm/ADT/StringRef.h"

#include <array>
#include <cstdint>
#include <type_traits>

namespace posenc::frontend {

/// The alternative keys of one quantity, the usual one first. Unused ones are
/// empty.
using Names = std::array<llvm::StringLiteral, 2>;

/// The rule for the number of key/value heads.
enum class KeyHeads {
  Given,     // from the key; the number of query heads if it is absent
  AsQueries, // the number of query heads; the key is ignored
  One,       // a single head, shared by all queries
  Falcon,    // depends on new_decoder_architecture and multi_query
};

struct KeyNames {
  Names heads = {"num_attention_heads", ""};
  Names keyHeads = {"num_key_value_heads", ""};
  Names hidden = {"hidden_size", ""};
  Names headDim = {"head_dim", ""};
  Names theta = {"rope_theta", ""};
  Names partial = {"partial_rotary_factor", ""};
  /// The keys of the rotary dimension; empty if the model has no such key.
  Names rotaryDim = {"", ""};
  Names window = {"sliding_window", ""};
  Names maxPosition = {"max_position_embeddings", "n_positions"};
  /// The key of a nested object that may hold the base and the number of key
  /// heads; empty if there is none.
  llvm::StringLiteral nested = "";
  KeyHeads keyHeadRule = KeyHeads::Given;
  /// False if `headDim` is only a part of the head and does not follow from the
  /// hidden size.
  bool headDimFromHidden = true;

  /// Returns a copy with one property changed.
  template <typename T>
  constexpr KeyNames with(T KeyNames::*member,
                          std::common_type_t<T> value) const {
    KeyNames copy = *this;
    copy.*member = value;
    return copy;
  }
};

/// The layers with a sliding window, in a config that has a window but no
/// `layer_types`.
enum class SlidingLayers {
  All,
  EveryNth,      // all except every n-th, n being `sliding_window_pattern`
  FromMaxWindow, // the layers from `max_window_layers` on
  Unrotated,     // the layers that do not rotate
};

/// The norm that a model applies to queries and keys before the rotation.
enum class QkNormKind {
  None,
  EachHead,        // RMS norm of each head; all heads share the weights
  EachHeadPlusOne, // the same, with weights that are stored minus 1
  AllHeads, // RMS norm over all heads of a token, with a weight per channel
  Unsupported,
};

struct QkNormRow {
  QkNormKind kind = QkNormKind::None;
  llvm::StringLiteral epsKey = "rms_norm_eps";
  double defaultEps = 1e-6;
  /// The boolean key that enables the norms (false if absent); empty if they
  /// are always enabled.
  llvm::StringLiteral enablingKey = "";
  /// For QkNormKind::Unsupported: what the model does, as a verb phrase.
  llvm::StringLiteral description = "";
};

/// A default that is the hidden size divided by the number of heads.
constexpr int64_t kFromHidden = -1;

/// The attention of a model type.
struct AttentionRow {
  /// False if the attention functions cannot express it.
  bool isSupported = true;
  bool isCausal = true;
  /// The boolean key that makes the attention causal although `isCausal` is
  /// false, or empty.
  llvm::StringLiteral causalKey = "";
  /// The boolean key that makes the attention unsupported, or empty.
  llvm::StringLiteral unsupportedKey = "";
  /// Queries have the default factor of their position (QueryTemperature)
  /// unless the config has a dictionary of the rotation.
  bool hasTemperature = false;
  /// Layers that rotate see chunks, and the others have a factor of queries
  /// that depends on their position (Llama 4).
  bool isChunked = false;
  bool hasSinks = false;
  /// Full-attention layers do not rotate if the model has a window.
  bool rotatesSlidingOnly = false;
  /// The window is ignored unless `use_sliding_window` is true.
  bool slidesOnRequest = false;
  SlidingLayers sliding = SlidingLayers::All;
  int64_t slidingPattern = 0;
  /// With SlidingLayers::EveryNth: the layers without a window are the first of
  /// n, not the last.
  bool isFirstFull = false;
  /// Layers of the type `full_attention` have the window, too.
  bool slidesInFull = false;
  /// Every `unrotatedInterval`-th layer does not rotate, unless
  /// `no_rope_layers` lists the layers. If 0, all layers rotate.
  int64_t unrotatedInterval = 0;
  /// The window of the config counts the keys on both sides of a query.
  bool isTwoSidedWindow = false;
  /// Causal layers see half of the window of the config.
  bool hasHalfWindow = false;
  /// The model has an encoder with heads of its own, under keys that begin with
  /// `encoder_`.
  bool hasEncoder = false;
  int64_t defaultWindow = 0;     // 0: none
  double defaultQueryScalar = 0; // 0: the head size
  /// The scale is that of heads with half as many channels.
  bool isScaledByHalfHead = false;
  double defaultMultiplier = 0; // 0: 1/sqrt(query scalar)
  double defaultSoftCap = 0;    // 0: none
  int64_t defaultNopeDim = 0;   // latent: channels that do not rotate
  int64_t defaultValueDim = 0;  // latent: channels of the values
  QkNormRow norm;
};

/// The position axes of a model type.
struct AxesRow {
  /// Whether tokens have several positions, also without the key
  /// `mrope_section`. Other models have sections if the key is given.
  bool areRequired = false;
  /// The layout, unless `mrope_interleaved` is given.
  bool areInterleaved = false;
  /// The sections of a config without the key.
  std::array<int64_t, 3> defaultSections = {0, 0, 0};
  /// The tokens are the patches of an image, with a row and a column.
  bool arePatches = false;
  /// With `arePatches`: row and column are coordinates, floats from -1 to 1.
  bool areCoordinates = false;
};

/// The meaning of `layer_rope_theta`, beside the base of all layers in
/// `rope_parameters` or `rope_theta`.
enum class LayerBases {
  Same,     // the same base; two different values are an error
  Override, // the base of each layer, whatever the base of all layers is
  Zeros,    // 0 for the layers that do not rotate; other values are ignored
};

struct ModelRow {
  llvm::StringLiteral type;
  const KeyNames *keys;
  bool isInterleaved = false;
  double defaultTheta = 10000;
  double defaultPartial = 1;
  /// The default fraction is that of configs without a dictionary of the
  /// rotation. Beside one, whole heads rotate by default.
  bool isPartialAlone = false;
  int64_t defaultHeads = 0;    // 0: must be given
  int64_t defaultKeyHeads = 0; // 0: the number of query heads
  int64_t defaultHidden = 0;   // 0: must be given if it is needed
  /// The sizes that the text config of a multimodal model may leave out, since
  /// transformers writes only what differs from its defaults. 0 if unknown.
  int64_t nestedHidden = 0;
  int64_t nestedHeads = 0;
  /// The default of `global_head_dim`, the size of the heads of full-attention
  /// layers, for models that have it; otherwise 0.
  int64_t fullHeadDim = 0;
  /// All heads together have this multiple of the hidden size.
  int64_t hiddenFactor = 1;
  int64_t defaultHeadDim = 0;   // 0: hidden size / heads
  int64_t defaultRotaryDim = 0; // 0: from the partial factor
  /// The separate base of the sliding layers, or 0 if they have none.
  double slidingTheta = 0;
  /// The scaling does not apply to sliding layers.
  bool slidingUnscaled = false;
  /// The scaling applies to sliding layers, although they have their own base.
  bool slidingScaled = false;
  /// The boolean key that overrides `isInterleaved`, or empty.
  llvm::StringLiteral interleaveKey = "";
  /// The key of a factor of the default base, or empty.
  llvm::StringLiteral thetaFactorKey = "";
  /// Whether the rotary code of the type reads the partial factor. Otherwise it
  /// rotates whole heads, and a factor in a config is a warning. Code that is
  /// not in transformers is assumed to read it.
  bool readsPartial = false;
  /// The text of the attribute that scales the frequencies of a config without
  /// a dictionary of the rotation, or empty.
  llvm::StringLiteral defaultScaling = "";
  /// The base of a config without a dictionary; 0 for that of the row.
  double aloneTheta = 0;
  AttentionRow attention;
  /// The `position_embedding_type` with which the model rotates; empty if it
  /// always rotates.
  llvm::StringLiteral positionType = "";
  /// With any other `position_embedding_type`, the model has attention without
  /// positions.
  bool attendsUnrotated = false;
  /// The boolean key without which the model does not rotate, or empty.
  llvm::StringLiteral rotationKey = "";
  AxesRow axes;
  /// The rotation and a factor of queries change with the length of the
  /// sequence (Qwen 1).
  bool changesWithLength = false;
  /// Keys whose defaults the row does not express, so that a config must have
  /// them: they differ by layer type.
  Names requiredKeys = {"", ""};
  /// Full-attention layers do not rotate if their dictionary is null.
  bool nullIsUnrotated = false;
  LayerBases layerBases = LayerBases::Same;
  /// Sliding layers have this multiple of the key heads of the config, unless
  /// it gives their number.
  int64_t slidingKeyHeadFactor = 1;

  constexpr ModelRow(llvm::StringLiteral type, const KeyNames &keys)
      : type(type), keys(&keys) {}
  /// Whether the model has multi-head latent attention. Its heads have separate
  /// channels that rotate, all of them.
  constexpr bool isLatent() const { return keys->keyHeadRule == KeyHeads::One; }
  /// Returns a copy of the row, changed by `change`.
  template <typename Change> constexpr ModelRow with(Change change) const {
    ModelRow copy = *this;
    change(copy);
    return copy;
  }
  // Each function returns a copy of the row with one property changed.
  constexpr ModelRow interleaved() const {
    return with([](ModelRow &row) { row.isInterleaved = true; });
  }
  constexpr ModelRow interleavedUnless(llvm::StringLiteral key) const {
    return with([=](ModelRow &row) {
      row.interleaveKey = key;
      row.isInterleaved = true;
    });
  }
  constexpr ModelRow interleavedIf(llvm::StringLiteral key) const {
    return with([=](ModelRow &row) { row.interleaveKey = key; });
  }
  constexpr ModelRow theta(double value) const {
    return with([=](ModelRow &row) { row.defaultTheta = value; });
  }
  constexpr ModelRow partial(double value) const {
    return readsPartialFactor().with(
        [=](ModelRow &row) { row.defaultPartial = value; });
  }
  constexpr ModelRow partialAlone(double value) const {
    return partial(value).with(
        [](ModelRow &row) { row.isPartialAlone = true; });
  }
  constexpr ModelRow heads(int64_t queries, int64_t keys) const {
    return with([=](ModelRow &row) {
      row.defaultHeads = queries;
      row.defaultKeyHeads = keys;
    });
  }
  constexpr ModelRow keyHeads(int64_t value) const {
    return with([=](ModelRow &row) { row.defaultKeyHeads = value; });
  }
  /// A nested text config may leave out both sizes.
  constexpr ModelRow sizes(int64_t hidden, int64_t heads) const {
    return with([=](ModelRow &row) {
      row.nestedHidden = hidden;
      row.nestedHeads = heads;
    });
  }
  constexpr ModelRow ownFullHeads(int64_t headDim) const {
    return with([=](ModelRow &row) { row.fullHeadDim = headDim; });
  }
  constexpr ModelRow hiddenTimes(int64_t factor) const {
    return with([=](ModelRow &row) { row.hiddenFactor = factor; });
  }
  constexpr ModelRow thetaTimes(llvm::StringLiteral key) const {
    return with([=](ModelRow &row) { row.thetaFactorKey = key; });
  }
  constexpr ModelRow readsPartialFactor() const {
    return with([](ModelRow &row) { row.readsPartial = true; });
  }
  /// Sets the base of configs without a dictionary, if that is not the base of
  /// the row.
  constexpr ModelRow thetaAlone(double value) const {
    return with([=](ModelRow &row) { row.aloneTheta = value; });
  }
  /// Sets the default scaling, and the base that comes with it if that is not
  /// the base of the row.
  constexpr ModelRow scales(llvm::StringLiteral scaling,
                            double theta = 0) const {
    return thetaAlone(theta).with(
        [=](ModelRow &row) { row.defaultScaling = scaling; });
  }
  constexpr ModelRow hidden(int64_t value) const {
    return with([=](ModelRow &row) { row.defaultHidden = value; });
  }
  constexpr ModelRow headDim(int64_t value) const {
    return with([=](ModelRow &row) { row.defaultHeadDim = value; });
  }
  constexpr ModelRow rotaryDim(int64_t value) const {
    return with([=](ModelRow &row) { row.defaultRotaryDim = value; });
  }
  constexpr ModelRow ownSlidingTheta(double value) const {
    return with([=](ModelRow &row) { row.slidingTheta = value; });
  }
  constexpr ModelRow unscaledSliding() const {
    return with([](ModelRow &row) { row.slidingUnscaled = true; });
  }
  constexpr ModelRow scaledSliding() const {
    return with([](ModelRow &row) { row.slidingScaled = true; });
  }
  constexpr ModelRow unsupportedAttention() const {
    return with([](ModelRow &row) { row.attention.isSupported = false; });
  }
  constexpr ModelRow chunked() const {
    return with([](ModelRow &row) {
      row.attention.isChunked = true;
      row.attention.unrotatedInterval = 4;
    });
  }
  constexpr ModelRow bidirectional() const {
    return with([](ModelRow &row) { row.attention.isCausal = false; });
  }
  constexpr ModelRow causalIf(llvm::StringLiteral key) const {
    return bidirectional().with(
        [=](ModelRow &row) { row.attention.causalKey = key; });
  }
  /// Attention is not supported if the boolean key is true.
  constexpr ModelRow unsupportedAttentionIf(llvm::StringLiteral key) const {
    return with([=](ModelRow &row) { row.attention.unsupportedKey = key; });
  }
  constexpr ModelRow temperature() const {
    return with([](ModelRow &row) { row.attention.hasTemperature = true; });
  }
  constexpr ModelRow encoder() const {
    return with([](ModelRow &row) { row.attention.hasEncoder = true; });
  }
  constexpr ModelRow sinks() const {
    return with([](ModelRow &row) { row.attention.hasSinks = true; });
  }
  /// Layers have a window of `window` keys by default (0: none), except every
  /// `pattern`-th layer (0: no exception).
  constexpr ModelRow slides(int64_t window, int64_t pattern = 0) const {
    return with([=](ModelRow &row) {
      row.attention.defaultWindow = window;
      row.attention.slidingPattern = pattern;
      row.attention.sliding =
          pattern ? SlidingLayers::EveryNth : SlidingLayers::All;
    });
  }
  /// Sets the sliding window of an encoder: the window has `window` keys, half
  /// of them on either side, and the query's own key.
  constexpr ModelRow slidesBothWays(int64_t window, int64_t pattern) const {
    return bidirectional().slides(window, pattern).with([=](ModelRow &row) {
      row.attention.isTwoSidedWindow = true;
    });
  }
  /// The window is ignored unless `use_sliding_window` is true.
  constexpr ModelRow slidesOnRequest(int64_t pattern = 0) const {
    return slides(0, pattern).with([=](ModelRow &row) {
      row.attention.slidesOnRequest = true;
    });
  }
  constexpr ModelRow firstIsFull() const {
    return with([](ModelRow &row) { row.attention.isFirstFull = true; });
  }
  constexpr ModelRow slidesEverywhere() const {
    return with([](ModelRow &row) { row.attention.slidesInFull = true; });
  }
  constexpr ModelRow halfWindow() const {
    return with([](ModelRow &row) { row.attention.hasHalfWindow = true; });
  }
  constexpr ModelRow slidesFromMaxWindow(bool onRequest) const {
    return with([=](ModelRow &row) {
      row.attention.sliding = SlidingLayers::FromMaxWindow;
      row.attention.slidesOnRequest = onRequest;
    });
  }
  /// Every `interval`-th layer does not rotate; it slides if there is a window.
  constexpr ModelRow skipsRotation(int64_t interval) const {
    return with([=](ModelRow &row) {
      row.attention.unrotatedInterval = interval;
      row.attention.sliding = SlidingLayers::Unrotated;
      row.attention.slidesOnRequest = true;
    });
  }
  constexpr ModelRow rotatesSlidingOnly() const {
    return with([](ModelRow &row) { row.attention.rotatesSlidingOnly = true; });
  }
  constexpr ModelRow queryScalar(double value) const {
    return with(
        [=](ModelRow &row) { row.attention.defaultQueryScalar = value; });
  }
  constexpr ModelRow scaledByHalfHead() const {
    return with([](ModelRow &row) { row.attention.isScaledByHalfHead = true; });
  }
  constexpr ModelRow multiplier(double value) const {
    return with(
        [=](ModelRow &row) { row.attention.defaultMultiplier = value; });
  }
  constexpr ModelRow softCap(double value) const {
    return with([=](ModelRow &row) { row.attention.defaultSoftCap = value; });
  }
  constexpr ModelRow latent(int64_t nopeDim, int64_t valueDim) const {
    return with([=](ModelRow &row) {
      row.attention.defaultNopeDim = nopeDim;
      row.attention.defaultValueDim = valueDim;
    });
  }
  /// The model norms queries and keys. `eps` is the default of `rms_norm_eps`.
  constexpr ModelRow norms(QkNormKind kind, double eps = 1e-6) const {
    return with([=](ModelRow &row) {
      row.attention.norm.kind = kind;
      row.attention.norm.defaultEps = eps;
    });
  }
  constexpr ModelRow normEpsKey(llvm::StringLiteral key) const {
    return with([=](ModelRow &row) { row.attention.norm.epsKey = key; });
  }
  constexpr ModelRow normsIf(llvm::StringLiteral key) const {
    return with([=](ModelRow &row) { row.attention.norm.enablingKey = key; });
  }
  /// The model norms queries and keys in an unsupported way.
  constexpr ModelRow unsupportedNorms(llvm::StringLiteral description) const {
    return with([=](ModelRow &row) {
      row.attention.norm.kind = QkNormKind::Unsupported;
      row.attention.norm.description = description;
    });
  }
  /// Tokens have several positions, with these sections by default.
  constexpr ModelRow sections(std::array<int64_t, 3> defaultSections) const {
    return with([=](ModelRow &row) {
      row.axes.areRequired = true;
      row.axes.defaultSections = defaultSections;
    });
  }
  constexpr ModelRow
  interleavedSections(std::array<int64_t, 3> defaultSections) const {
    return sections(defaultSections).with([=](ModelRow &row) {
      row.axes.areInterleaved = true;
    });
  }
  constexpr ModelRow patches() const {
    return bidirectional().with(
        [](ModelRow &row) { row.axes.arePatches = true; });
  }
  constexpr ModelRow coordinates() const {
    return patches().with(
        [](ModelRow &row) { row.axes.areCoordinates = true; });
  }
  constexpr ModelRow changingWithLength() const {
    return with([](ModelRow &row) { row.changesWithLength = true; });
  }
  constexpr ModelRow needs(llvm::StringLiteral key,
                           llvm::StringLiteral other = "") const {
    return with([=](ModelRow &row) { row.requiredKeys = {key, other}; });
  }
  constexpr ModelRow nullUnrotated() const {
    return with([](ModelRow &row) { row.nullIsUnrotated = true; });
  }
  constexpr ModelRow layerThetas(LayerBases meaning) const {
    return with([=](ModelRow &row) { row.layerBases = meaning; });
  }
  constexpr ModelRow slidingKeyHeadsTimes(int64_t factor) const {
    return with([=](ModelRow &row) { row.slidingKeyHeadFactor = factor; });
  }
  constexpr ModelRow onlyIf(llvm::StringLiteral key) const {
    return with([=](ModelRow &row) { row.rotationKey = key; });
  }
  constexpr ModelRow onlyIfPositionType(llvm::StringLiteral value) const {
    return with([=](ModelRow &row) { row.positionType = value; });
  }
  constexpr ModelRow orUnrotated() const {
    return with([](ModelRow &row) { row.attendsUnrotated = true; });
  }
};

/// Returns the rows of all model types with a rotary embedding.
llvm::ArrayRef<ModelRow> getModels();

/// Returns the row of a model type, or null if the table has none.
const ModelRow *findModel(llvm::StringRef modelType);

/// Returns the row for unknown model types: half pairing, and all common keys
/// of each quantity.
const ModelRow &unknownModel();

/// Returns why models of the type cannot be compiled, as the predicate of a
/// sentence about the model type; empty if nothing is known against them.
llvm::StringRef findRefusal(llvm::StringRef modelType);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_MODELTABLE_H
