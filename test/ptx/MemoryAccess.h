//===- MemoryAccess.h - modifiers of loads, stores and atomics --*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_MEMORYACCESS_H
#define POSENC_TEST_PTX_MEMORYACCESS_H

#include "Decoder.h"

namespace posenc::ptx {

/// Removes the modifiers for memory order, scope and caching, and sets
/// AccessInfo::isStrong.
void takeAccessModifiers(Decoder &decoder);
/// Removes .v2, .v4 or .v8 and sets AccessInfo::count.
bool takeVector(Decoder &decoder);

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_MEMORYACCESS_H
