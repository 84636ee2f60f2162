//===- KnownFaults.cpp - faults of LLVM and MLIR that are known -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KnownFaults.h"

#include "llvm/Support/MemoryBuffer.h"

#include <memory>

bool posenc::fuzz::isKnownFault(llvm::StringRef backtrace) {
  static const std::unique_ptr<llvm::MemoryBuffer> list = [] {
    auto file = llvm::MemoryBuffer::getFile(
        POSENC_SOURCE_DIR "/test/fuzz/Inputs/known-faults.txt");
    return file ? std::move(*file) : nullptr;
  }();
  llvm::StringRef rest = list ? list->getBuffer() : "";
  while (!rest.empty()) {
    llvm::StringRef line;
    std::tie(line, rest) = rest.split('\n');
    if (!line.empty() && !line.starts_with("#") && backtrace.contains(line))
      return true;
  }
  return false;
}
