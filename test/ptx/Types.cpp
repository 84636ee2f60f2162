//===- Types.cpp - types and state spaces of PTX --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Types.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace posenc::ptx {

std::optional<Type> parseType(StringRef modifier) {
  return StringSwitch<std::optional<Type>>(modifier)
      .Case(".pred", Type::Pred)
      .Case(".b8", Type::B8)
      .Case(".b16", Type::B16)
      .Case(".b32", Type::B32)
      .Case(".b64", Type::B64)
      .Case(".b128", Type::B128)
      .Case(".u8", Type::U8)
      .Case(".u16", Type::U16)
      .Case(".u32", Type::U32)
      .Case(".u64", Type::U64)
      .Case(".s8", Type::S8)
      .Case(".s16", Type::S16)
      .Case(".s32", Type::S32)
      .Case(".s64", Type::S64)
      .Case(".f16", Type::F16)
      .Case(".f16x2", Type::F16x2)
      .Case(".bf16", Type::BF16)
      .Case(".bf16x2", Type::BF16x2)
      .Case(".f32", Type::F32)
      .Case(".f32x2", Type::F32x2)
      .Case(".f64", Type::F64)
      .Default(std::nullopt);
}

unsigned getBytes(Type type) {
  switch (type) {
  case Type::B8:
  case Type::U8:
  case Type::S8:
    return 1;
  case Type::B16:
  case Type::U16:
  case Type::S16:
  case Type::F16:
  case Type::BF16:
    return 2;
  case Type::Pred:
  case Type::B32:
  case Type::U32:
  case Type::S32:
  case Type::F16x2:
  case Type::BF16x2:
  case Type::F32:
    return 4;
  case Type::B64:
  case Type::U64:
  case Type::S64:
  case Type::F32x2:
  case Type::F64:
    return 8;
  case Type::B128:
    return 16;
  }
  return 0;
}

bool isSigned(Type type) { return type >= Type::S8 && type <= Type::S64; }
bool isUnsigned(Type type) { return type >= Type::U8 && type <= Type::U64; }
bool isBits(Type type) { return type >= Type::B8 && type <= Type::B128; }
bool isFloat(Type type) { return type >= Type::F16; }

std::optional<Space> parseSpace(StringRef modifier) {
  return StringSwitch<std::optional<Space>>(modifier)
      .Case(".global", Space::Global)
      .Case(".const", Space::Const)
      // Each block is a cluster of its own.
      .Cases({".shared", ".shared::cta", ".shared::cluster"}, Space::Shared)
      .Case(".local", Space::Local)
      .Cases({".param", ".param::entry", ".param::func"}, Space::Param)
      .Default(std::nullopt);
}

const char *getName(Space space) {
  switch (space) {
  case Space::Generic:
    return "generic";
  case Space::Global:
    return "global";
  case Space::Const:
    return "constant";
  case Space::Shared:
    return "shared";
  case Space::Local:
    return "local";
  case Space::Param:
    return "parameter";
  }
  return "";
}

} // namespace posenc::ptx
