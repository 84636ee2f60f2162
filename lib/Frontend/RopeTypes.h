//===- RopeTypes.h - frequency scalings of configs --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_ROPETYPES_H
#define POSENC_LIB_FRONTEND_ROPETYPES_H

#include "ConfigReader.h"
#include "posenc/Frontend/ModelConfig.h"

namespace posenc::frontend {

/// The key of the context length of the pretraining.
constexpr llvm::StringLiteral kOriginalLengthKey =
    "original_max_position_embeddings";

/// The inputs of a scaling: its dictionary and keys outside of it.
struct RopeContext {
  ConfigReader &reader;
  /// The dictionary with the keys of the scaling.
  const json::Value &dict;
  Field<double> theta;
  /// The maximum length of the config, and the length of the pretraining, in
  /// `dict` or outside of it. Given only for types that have the key of the
  /// latter.
  Field<int64_t> maxPosition;
  Field<int64_t> original;
  /// The length that scalings which depend on it are built for.
  std::optional<int64_t> length;
  int64_t headDim;
  /// The rotary dimension by the keys of the config, which a scaling may
  /// change; 0 after an error.
  int64_t &rotaryDim;
};

/// Reads the keys of one rope type and reports errors, after which the result
/// is any scaling. To add a rope type, add such a function and a row to the
/// table in RopeTypes.cpp.
using ReadScaling = Scaling (*)(RopeContext &context);

/// A key of the dictionary of a rope type.
struct RopeKey {
  llvm::StringLiteral name;
  /// A verb phrase that says what the key does.
  llvm::StringLiteral effect;
};

struct RopeType {
  llvm::StringLiteral name;
  /// Null if the type is known but not supported yet.
  ReadScaling read;
  /// The keys of the dictionary besides those that every type has.
  llvm::ArrayRef<RopeKey> keys;

  bool knowsKey(llvm::StringRef key) const;
};

/// Returns the rope type of that name, or null if the name is unknown.
const RopeType *findRopeType(llvm::StringRef name);

/// Returns the keys of all rope types, each once, less those that every type
/// has.
std::vector<RopeKey> getRopeKeys();

/// Reads the dictionary of `context` as one of the given type. Warns about keys
/// that the type does not have.
Scaling readScaling(const RopeType &type, RopeContext &context);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_ROPETYPES_H
