//===- ModelConfig.h - what a model's config.json asks for ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plain structures: whoever asks a config for its rotary embedding needs no
// MLIR for it.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_FRONTEND_MODELCONFIG_H
#define POSENC_FRONTEND_MODELCONFIG_H

#include "posenc/Frontend/Diagnostic.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace posenc::frontend {

enum class DType { F32, BF16, F16, F64 };

/// How the frequencies b^(-2i/d) are changed. Each kind reads the fields that
/// its formula names, the others keep their defaults.
struct Scaling {
  enum class Kind { Default, Linear, Llama3, Yarn, Explicit };
  Kind kind = Kind::Default;
  double factor = 1;
  double lowFreqFactor = 1;
  double highFreqFactor = 1;
  double betaFast = 32;
  double betaSlow = 1;
  double originalMaxPosition = 0;
  bool truncate = true;
  /// Absent where the config does not give them (or gives null; for the two
  /// mscales also 0).
  std::optional<double> attentionFactor, mscale, mscaleAllDim;
  /// Explicit: the frequencies themselves.
  std::vector<double> list;

  bool operator==(const Scaling &other) const;
};

/// The angles of the layers of one type.
struct LayerRotation {
  /// The config's name for them.
  std::string type;
  double theta = 10000;
  Scaling scaling;
  int64_t rotaryDim = 0;

  bool isLike(const LayerRotation &other) const {
    return theta == other.theta && scaling == other.scaling &&
           rotaryDim == other.rotaryDim;
  }
};

/// What the layers of one type have of their own.
struct LayerAttention {
  /// The config's name for them; empty if it has none. Those of a type that
  /// do not rotate while others do have `nope` after it.
  std::string type;
  /// The keys that a query sees at most, its own included.
  std::optional<int64_t> window;
  bool rotates = true;

  bool isLike(const LayerAttention &other) const {
    return window == other.window && rotates == other.rotates;
  }
};

/// The RMS norm of a model's queries and keys, which comes before their
/// rotation: x * (w + weightOffset) / sqrt(mean(x^2) + eps).
struct QkNorm {
  double eps = 0;
  /// 1 where a checkpoint holds w - 1, as Gemma's do.
  double weightOffset = 0;
  /// One mean of all heads of a token, with a weight for each of their
  /// channels (OLMo 2); else one of each head, with weights that all heads
  /// share.
  bool allHeads = false;
};

/// What a model does with its queries, keys and values.
struct AttentionConfig {
  int64_t numKeyValueHeads = 0;
  /// Sizes of the whole head, also where only a part of it rotates: there
  /// the window begins at `rotaryOffset`.
  int64_t headDim = 0;
  int64_t valueDim = 0;
  int64_t rotaryOffset = 0;
  /// Absent: 1/sqrt(headDim).
  std::optional<double> scale;
  std::optional<double> softCap;
  /// Present if ReadOptions asked for norms.
  std::optional<QkNorm> norm;
  bool isCausal = true;
  bool hasSinks = false;
  /// At least one, with different types. Where the model's code alone says
  /// which layers slide, one without a type comes first, as the keys read, if
  /// all rotate alike.
  std::vector<LayerAttention> layers;
};

struct ModelConfig {
  std::string modelType;
  int64_t numHeads = 0;
  int64_t numKeyValueHeads = 0;
  /// The size of what the functions work on: for multi-head latent attention
  /// only the rotary channels.
  int64_t headDim = 0;
  /// The rotated window [rotaryOffset, rotaryOffset + rotaryDim) of a head.
  int64_t rotaryDim = 0;
  int64_t rotaryOffset = 0;
  bool interleaved = false;
  /// The model norms queries and keys before it rotates them, or may do so:
  /// its type is not known.
  bool mayNorm = true;
  double ropeTheta = 10000;
  Scaling scaling;
  /// Where layers of several types do not rotate alike, what each type has
  /// instead of these two and of `rotaryDim`; else empty.
  std::vector<LayerRotation> rotations;
  DType dtype = DType::F32;
  /// The different names in `layer_types`, in order, if there are several: each
  /// has functions of its name.
  std::vector<std::string> layerTypes;
  /// Absent if ReadOptions did not ask for it, and for models whose attention
  /// is of another kind.
  std::optional<AttentionConfig> attention;
};

enum class Pairing { Half, Interleaved };

struct ReadOptions {
  /// Overrules what the model's type says.
  std::optional<Pairing> pairing;
  /// Read the keys of the attention, too. Else these are not even checked.
  bool attention = false;
  /// With it: of a model whose type is not known, too. It is taken to be
  /// causal; a warning says so.
  bool assumeAttention = false;
  /// With `attention`: the model's own norms of queries and keys. An error for
  /// a model without them, or with norms of a kind that is not supported.
  bool qkNorm = false;
};

/// Reads the text of a config.json. Appends every error and warning found, in
/// the order of the text; without a config there is at least one error.
std::optional<ModelConfig>
readModelConfig(llvm::StringRef text, llvm::StringRef fileName,
                llvm::SmallVectorImpl<Diagnostic> &diags,
                const ReadOptions &options = {});

} // namespace posenc::frontend

#endif // POSENC_FRONTEND_MODELCONFIG_H
