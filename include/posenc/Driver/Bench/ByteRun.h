//===- ByteRun.h - part of a row of memory ----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_DRIVER_BENCH_BYTERUN_H
#define POSENC_DRIVER_BENCH_BYTERUN_H

#include <stdint.h>

namespace mlir::posenc {

/// Bytes that are gone through, from an offset in a row.
struct ByteRun {
  int64_t offset, bytes;
};

} // namespace mlir::posenc

#endif // POSENC_DRIVER_BENCH_BYTERUN_H
