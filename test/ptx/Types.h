//===- Types.h - types and spaces of PTX ------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_TYPES_H
#define POSENC_TEST_PTX_TYPES_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace posenc::ptx {

/// A type as instructions name it.
enum class Type : uint8_t {
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  F16x2,
  BF16,
  BF16x2,
  F32,
  F32x2,
  F64,
};

/// The type that a modifier such as ".b32" names.
std::optional<Type> parseType(llvm::StringRef modifier);

/// Bytes of one value; 4 for a predicate, whose register is a mask of lanes.
unsigned getBytes(Type type);
bool isSigned(Type type);
bool isUnsigned(Type type);
bool isBits(Type type);
bool isFloat(Type type);
/// s8 … u64.
inline bool isInteger(Type type) { return isSigned(type) || isUnsigned(type); }

/// Where an address points. A `Param` of a kernel is one for all threads, that
/// of a function one a thread.
enum class Space : uint8_t { Generic, Global, Const, Shared, Local, Param };

/// The space that a modifier such as ".shared::cta" names.
std::optional<Space> parseSpace(llvm::StringRef modifier);
const char *getName(Space space);

/// Where the other spaces begin in the generic one.
constexpr uint64_t sharedWindow = uint64_t(1) << 52;
constexpr uint64_t localWindow = uint64_t(2) << 52;
constexpr uint64_t paramWindow = uint64_t(3) << 52;
constexpr uint64_t windowSize = uint64_t(1) << 32;

/// Where the parameters of functions begin in the space of parameters.
constexpr uint64_t laneParams = uint64_t(1) << 30;

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_TYPES_H
