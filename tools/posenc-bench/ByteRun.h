//===- ByteRun.h - contiguous bytes of a row --------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_BYTERUN_H
#define POSENC_TOOLS_BENCH_BYTERUN_H

#include <stdint.h>

namespace mlir::posenc {

/// Contiguous bytes of a row, from a byte offset on.
struct ByteRun {
  int64_t offset, bytes;
};

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_BYTERUN_H
