//===- RopeTypes.h - the scalings a config can name -------------*- C++ -*-===//
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

/// What a scaling may depend on besides its dictionary.
struct RopeContext {
  ConfigReader &reader;
  /// The dictionary with the scaling's own keys.
  const json::Value &dict;
  Field<double> theta;
  Field<int64_t> maxPosition;
  /// original_max_position_embeddings, where it stands outside `dict`.
  Field<int64_t> outerOriginal;
};

/// A new rope type is a row in RopeTypes.cpp with a function of this kind.
using ReadScaling = void (*)(RopeContext &context, Scaling &scaling);

struct RopeType {
  llvm::StringLiteral name;
  /// Null: known, but not supported yet.
  ReadScaling read;
  /// The keys that the dictionary may have beside those of every type.
  llvm::ArrayRef<llvm::StringLiteral> keys;

  bool knowsKey(llvm::StringRef key) const;
};

/// Null for a name that nobody uses.
const RopeType *findRopeType(llvm::StringRef name);

/// Reads a dictionary of that type, warning of keys the type does not have.
Scaling readScaling(const RopeType &type, RopeContext &context);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_ROPETYPES_H
