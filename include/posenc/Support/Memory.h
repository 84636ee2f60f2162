//===- Memory.h - how much memory there is to have --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_SUPPORT_MEMORY_H
#define POSENC_SUPPORT_MEMORY_H

#include <cstdint>

namespace posenc {

/// The bytes that the process can still use: those of the machine, or of the
/// control group if it has fewer. UINT64_MAX where the system does not tell.
///
/// Linux overcommits memory and kills the process that uses too much, so a
/// successful allocation proves nothing.
uint64_t getAvailableMemory();

} // namespace posenc

#endif // POSENC_SUPPORT_MEMORY_H
