//===- Types.h - types and state spaces of PTX ------------------*- C++ -*-===//
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

/// The type of an instruction.
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

/// Returns the type of a modifier such as ".b32", or nullopt.
std::optional<Type> parseType(llvm::StringRef modifier);

/// Returns the bytes of one value; 4 for a predicate, which is a LaneMask.
unsigned getBytes(Type type);
bool isSigned(Type type);
bool isUnsigned(Type type);
bool isBits(Type type);
bool isFloat(Type type);
/// s8 to s64 and u8 to u64.
inline bool isInteger(Type type) { return isSigned(type) || isUnsigned(type); }

/// A state space. The parameters of a kernel are shared by all threads; those
/// of other functions exist per thread.
enum class Space : uint8_t { Generic, Global, Const, Shared, Local, Param };

/// Returns the state space of a modifier such as ".shared::cta", or nullopt.
std::optional<Space> parseSpace(llvm::StringRef modifier);
const char *getName(Space space);

/// The generic addresses at which the windows of the other spaces begin.
constexpr uint64_t sharedWindow = uint64_t(1) << 52;
constexpr uint64_t localWindow = uint64_t(2) << 52;
constexpr uint64_t paramWindow = uint64_t(3) << 52;
constexpr uint64_t windowSize = uint64_t(1) << 32;

/// The offset of the parameters of functions in the .param space; those of the
/// kernel are below.
constexpr uint64_t laneParams = uint64_t(1) << 30;

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_TYPES_H
