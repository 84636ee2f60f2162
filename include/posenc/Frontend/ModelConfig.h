//===- ModelConfig.h - positional encoding of a config.json -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plain structures. Scalings of frequencies are attributes of the dialect; all
// else is without MLIR types.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_FRONTEND_MODELCONFIG_H
#define POSENC_FRONTEND_MODELCONFIG_H

#include "posenc/Frontend/Diagnostic.h"
#include "posenc/IR/Posenc.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace posenc::frontend {

enum class DType { F32, BF16, F16, F64 };

/// An attribute such as `#posenc.linear`, or null for frequencies that are not
/// scaled.
using Scaling = mlir::posenc::FrequencyScalingInterface;

/// Several position axes, such as time, row and column, which share the pairs
/// of a head. Positions then have a leading dimension of axes.
struct PositionAxes {
  enum class Layout {
    /// The first sections[0] pairs use axis 0, the next ones axis 1, and so on.
    Contiguous,
    /// Pairs take turns among the axes (Qwen3-VL): pair i uses axis a = i mod n
    /// if a > 0 and i < n * sections[a], else axis 0.
    Interleaved,
    /// Two axes: the first pairs use axis 0 and have the frequencies 0, 2, ...
    /// of the model, the others axis 1 and the frequencies 1, 3, ... (Pixtral).
    Alternating,
    /// Two axes of coordinates, floats from -1 to 1. The first half of the
    /// pairs uses axis 0. The frequencies are 2*pi*b^(-i/n), i < n, for the n
    /// pairs of each axis (DINOv3).
    Coordinates,
  };
  Layout layout = Layout::Contiguous;
  /// The number of pairs of each axis.
  std::vector<int64_t> sections;

  bool areCoordinates() const { return layout == Layout::Coordinates; }
};

/// The rotation of all layers of one type.
struct LayerRotation {
  /// The name of the layer type in the config, such as `sliding_attention`.
  std::string type;
  double theta = 10000;
  Scaling scaling;
  int64_t rotaryDim = 0;

  bool isLike(const LayerRotation &other) const {
    return theta == other.theta && scaling == other.scaling &&
           rotaryDim == other.rotaryDim;
  }
};

/// The attention properties that depend on the layer type.
struct LayerAttention {
  /// The name of the layer type in the config, or empty. If only some layers of
  /// a type rotate, those that do not rotate get the suffix `nope`.
  std::string type;
  /// The maximum number of keys visible to a query on each side, including its
  /// own key; absent if all are visible.
  std::optional<int64_t> window;
  /// The size of the chunks of a sequence; tokens see only those of their own.
  std::optional<int64_t> chunk;
  bool rotates = true;
  /// Whether these are the layers of the encoder of an encoder-decoder model.
  /// They are bidirectional, even if the model is causal.
  bool isEncoder = false;

  bool isLike(const LayerAttention &other) const {
    return window == other.window && chunk == other.chunk &&
           rotates == other.rotates && isEncoder == other.isEncoder;
  }
};

/// The RMS norm that a model applies to queries and keys before the rotation:
/// x * (w + weightOffset) / sqrt(mean(x^2) + eps).
struct QkNorm {
  double eps = 0;
  /// 1 if the checkpoint stores w - 1, as Gemma's does.
  double weightOffset = 0;
  /// If true, the mean is over all heads of a token, and each channel of each
  /// head has its own weight (OLMo 2). Otherwise the mean is per head, and all
  /// heads share the weights.
  bool allHeads = false;

  bool operator==(const QkNorm &other) const {
    return eps == other.eps && weightOffset == other.weightOffset &&
           allHeads == other.allHeads;
  }
};

/// A bias of the scores that depends on the relative position.
struct ScoreBias {
  enum class Kind {
    /// -slope(head) * |query - key|
    Alibi,
    /// A row of a learned table (buckets x heads) for the relative position.
    T5,
  };
  Kind kind = Kind::Alibi;
  /// Whether the bias is divided by sqrt(headDim), as the scores are.
  bool isScaled = false;
  int64_t numBuckets = 32;
  int64_t maxDistance = 128;
};

/// A factor of queries that grows with their position:
/// `1 + beta * ln(1 + floor((position + offset) / length))`, or, with `isLogN`,
/// `max(1, ln(position + offset) / ln(length))`.
struct QueryTemperature {
  double beta = 0;
  int64_t length = 1;
  int64_t offset = 0;
  /// Whether only layers that do not rotate have the factor.
  bool isOfUnrotated = false;
  bool isLogN = false;

  bool isIn(const LayerAttention &layer) const {
    return !isOfUnrotated || !layer.rotates;
  }
};

/// The attention of a model.
struct AttentionConfig {
  int64_t numKeyValueHeads = 0;
  /// Sizes of the whole head, even if only a part of it rotates. The rotated
  /// channels begin at `rotaryOffset`.
  int64_t headDim = 0;
  int64_t valueDim = 0;
  int64_t rotaryOffset = 0;
  /// The factor of the scores; 1/sqrt(headDim) if absent.
  std::optional<double> scale;
  std::optional<double> softCap;
  /// Present if ReadOptions::qkNorm is set.
  std::optional<QkNorm> norm;
  std::optional<ScoreBias> bias;
  std::optional<QueryTemperature> temperature;
  bool isCausal = true;
  bool hasSinks = false;
  /// At least one layer type; all types are different. If the config has no
  /// `layer_types` and all layers rotate alike, the first has an empty type and
  /// the window of the config, and the types of the model's implementation
  /// follow.
  std::vector<LayerAttention> layers;

  bool isCausalIn(const LayerAttention &layer) const {
    return isCausal && !layer.isEncoder;
  }
  /// Whether the functions of both are the same. The values that a model has
  /// only once, such as a bias, are not compared.
  bool isLike(const AttentionConfig &other) const;
};

/// The layers that the functions with one suffix are for.
struct NamedLayers {
  /// The suffix without `_`, such as `sliding_attention`.
  std::string suffix;
  /// The numbers of the layers, ascending.
  std::vector<int64_t> layers;
};

/// Returns the numbers as text, such as `0-4, 6`.
std::string spellLayers(llvm::ArrayRef<int64_t> numbers);

struct ModelConfig {
  std::string modelType;
  int64_t numHeads = 0;
  int64_t numKeyValueHeads = 0;
  /// Channels per head of the tensors that @rope rotates. For multi-head latent
  /// attention these are the rotary channels alone.
  int64_t headDim = 0;
  /// Channels [rotaryOffset, rotaryOffset + rotaryDim) of a head rotate. 0 for
  /// models without rotary embedding, whose attention has a bias instead.
  int64_t rotaryDim = 0;
  int64_t rotaryOffset = 0;
  bool interleaved = false;
  /// Whether the model normalizes queries and keys before the rotation. Also
  /// true for an unknown model type.
  bool mayNorm = true;
  double ropeTheta = 10000;
  Scaling scaling;
  /// The rotation of each layer type, which replaces `ropeTheta`, `scaling` and
  /// `rotaryDim`. Empty if all layers rotate alike.
  std::vector<LayerRotation> rotations;
  /// Absent if a token has a single position.
  std::optional<PositionAxes> axes;
  DType dtype = DType::F32;
  /// The distinct names in `layer_types`, in order of appearance, if there are
  /// several. Functions are built for each name.
  std::vector<std::string> layerTypes;
  /// Absent if ReadOptions::attention is not set or the attention of the model
  /// is not supported.
  std::optional<AttentionConfig> attention;
  /// The layers of each suffix, if the functions have suffixes and the config
  /// tells the number of layers.
  std::vector<NamedLayers> namedLayers;
  /// If layers differ by more than their type, for example in their number of
  /// heads: one config for each set of equal layers. Functions are built for
  /// each set, and the other fields of this config are those of a set with full
  /// attention.
  std::vector<ModelConfig> sets;
  /// The suffix of the functions of a set, and the type of its layers if the
  /// config has types; otherwise empty.
  std::string suffix, layerType;

  bool hasRotation() const { return rotaryDim != 0; }
  /// Whether the rotation is the same, that is, the functions @sincos.
  bool rotatesLike(const ModelConfig &other) const {
    return hasRotation() == other.hasRotation() &&
           (!hasRotation() ||
            (rotaryDim == other.rotaryDim && ropeTheta == other.ropeTheta &&
             scaling == other.scaling));
  }
  /// Whether the functions @rope are the same.
  bool ropesLike(const ModelConfig &other) const {
    return rotatesLike(other) && numHeads == other.numHeads &&
           numKeyValueHeads == other.numKeyValueHeads &&
           headDim == other.headDim && rotaryOffset == other.rotaryOffset;
  }
};

enum class Pairing { Half, Interleaved };

struct ReadOptions {
  /// Overrides the pairing of the model type.
  std::optional<Pairing> pairing;
  /// The length of the sequences, for rope types whose frequencies depend on
  /// it. Without it, the frequencies are computed at run time.
  std::optional<int64_t> ropeLength;
  /// Whether functions of the rotation are requested by name. Then a model
  /// without rotary embedding is an error, even if it has an attention.
  bool rotation = false;
  /// Whether to read and check the keys of the attention. A model without
  /// rotary embedding has nothing else.
  bool attention = false;
  /// With `attention`: whether to read the attention of unknown model types as
  /// well. Such a model is assumed to be causal, with a warning.
  bool assumeAttention = false;
  /// With `attention`: whether to read the norms of queries and keys. Reports
  /// an error for models without norms or with unsupported norms.
  bool qkNorm = false;
};

/// Reads the text of a config.json. Appends every error and warning to `diags`,
/// in the order of the text. Returns nullopt after at least one error. Loads
/// the dialect into `context`, which owns the scalings of the result.
std::optional<ModelConfig> readModelConfig(
    mlir::MLIRContext &context, llvm::StringRef text, llvm::StringRef fileName,
    llvm::SmallVectorImpl<Diagnostic> &diags, const ReadOptions &options = {});

/// Describes a `model_type`, without a config.
struct ModelType {
  llvm::StringRef name;
  /// Absent for models without rotary embedding, whose attention has a bias.
  std::optional<Pairing> pairing;
  bool hasAttention = true;
  /// Whether the attention is causal, which @decode requires.
  bool isCausal = true;
};

/// Returns the model types whose configs can be compiled, sorted by name.
std::vector<ModelType> getModelTypes();

/// Describes a key by which a model changes a rotation, a position, a mask or
/// the scores.
struct ConfigKey {
  llvm::StringRef name;
  /// Whether the key belongs into the dictionary of the rotation.
  bool isOfDictionary = false;
  /// A verb phrase that says what the key does.
  llvm::StringRef effect;
  /// The values besides null by which the key changes nothing, or empty.
  std::string neutral;
  /// For which model types the key is read, and what it is for others.
  std::string reading;
};

/// Returns these keys, sorted by name, those of the dictionary last.
std::vector<ConfigKey> getPositionKeys();

} // namespace posenc::frontend

#endif // POSENC_FRONTEND_MODELCONFIG_H
