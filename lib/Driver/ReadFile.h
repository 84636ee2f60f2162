//===- ReadFile.h - reading of an input file --------------------*- C++ -*-===//
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

/// Reads a file, or standard input if `path` is `-`. On failure, prints an
/// error and returns null. A file of more than `limit` bytes is an error,
/// unless `limit` is 0. Large binary files are mapped; others end with a NUL,
/// for which some must be copied.
std::unique_ptr<llvm::MemoryBuffer>
readFile(llvm::StringRef path, uint64_t limit, bool isBinary = false);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_READFILE_H
