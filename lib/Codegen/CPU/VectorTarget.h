//===- VectorTarget.h - target options of vector code -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_VECTORTARGET_H
#define POSENC_LIB_CODEGEN_CPU_VECTORTARGET_H

#include "posenc/TargetInfo/Tuning.h"

#include "llvm/ADT/StringRef.h"

namespace mlir::posenc {

/// Bytes of a cache line.
constexpr int64_t kLineBytes = 64;

/// The options of the conversions to vectors; all sizes in bytes.
struct VectorTarget : Tuning {
  unsigned vectorBytes = 32;
  /// Whether the target has the bf16 dot product (VDPBF16PS).
  bool hasBF16Dots = false;
  /// Whether it multiplies tiles of bf16 (AMX-BF16).
  bool hasAMXBF16 = false;

  /// Reads the options of a pass, of which this class is a friend.
  template <typename Pass> static VectorTarget get(const Pass &pass) {
    VectorTarget target;
#define POSENC_TUNING(MEMBER, ...) target.MEMBER = pass.MEMBER;
#include "posenc/TargetInfo/Tuning.def"
    target.vectorBytes = pass.vectorBytes;
    return target;
  }
  /// Vector size of kernels whose results do not depend on the number of lanes.
  unsigned getRowVectorBytes() const {
    return std::min<uint64_t>(vectorBytes, rowVectorBytes);
  }
  /// The locality of a memref.prefetch into `prefetchCache`: 3 is the first
  /// level.
  unsigned getLocalityHint() const { return 4 - prefetchCache; }
};

/// How rows are read and written.
enum class Access {
  Cached,
  /// Contiguous rows in memory order, rotated in place.
  InOrder,
  /// Other rows: reads prefetch lines ahead.
  Prefetched,
  /// Like Prefetched, with streaming stores.
  Streamed,
};

/// How rows are read: the number of interleaved streams, and the prefetch
/// distance in bytes for one and for several streams; 0 disables prefetches.
struct RowPolicy {
  uint64_t streams = 1, distance = 0, streamAhead = 0;

  static RowPolicy get(const Tuning &tuning, Access access, bool isNarrow);
  bool operator==(const RowPolicy &other) const {
    return streams == other.streams && distance == other.distance &&
           streamAhead == other.streamAhead;
  }
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_VECTORTARGET_H
