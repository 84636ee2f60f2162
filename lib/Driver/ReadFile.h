//===- ReadFile.h - the content of an input ---------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_READFILE_H
#define POSENC_LIB_DRIVER_READFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>

namespace mlir::posenc {

/// The content of a file, `-` is standard input; or null after an error, which
/// is printed. More than `limit` bytes are one; 0 is no limit.
std::unique_ptr<llvm::MemoryBuffer> readFile(llvm::StringRef path,
                                             uint64_t limit);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_READFILE_H
