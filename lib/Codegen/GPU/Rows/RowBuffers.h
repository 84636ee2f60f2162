//===- RowBuffers.h - shared memory of a loop over rows ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The buffers that an iteration allocates, tables of rotations, and partial
// results of reductions are in shared memory. Buffers that are not in use at
// the same time share their bytes.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ROWS_ROWBUFFERS_H
#define POSENC_LIB_CODEGEN_GPU_ROWS_ROWBUFFERS_H

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <optional>

namespace mlir::posenc {

/// Returns the memref of which `memref` is a view.
Value getViewedMemory(Value memref);

/// Returns a constant upper bound of a memref's dimension; nullopt if none is
/// known.
std::optional<int64_t> getSizeBound(Value memref, int64_t dim);

/// Whether the operation writes a transposed tensor from outside of the
/// iteration to a buffer that all others only read. They then read the tensor
/// itself, and there is no buffer.
bool isTransposedView(Operation *op);

/// Bytes of shared memory.
struct ByteRange {
  int64_t begin = 0, end = 0;

  bool overlaps(const ByteRange &other) const {
    return begin < other.end && other.begin < end;
  }
};

/// The places of an iteration's buffers.
class RowBuffers {
public:
  /// Plans the buffers of `root`, an scf.forall or a single operation. Returns
  /// nullopt if they do not fit, or their sizes have no bound.
  static std::optional<RowBuffers> plan(Operation *root);

  /// Returns the bytes of a memref.alloc, or the table of a rotation.
  ByteRange get(Operation *op) const { return ranges.lookup(op); }
  /// Memory for the partial results of one reduction.
  ByteRange getPartials() const { return {0, kPartialBytes}; }
  int64_t getBytes() const { return bytes; }

  /// One f64 for each warp and result.
  static constexpr int64_t kPartialBytes = 256;

private:
  DenseMap<Operation *, ByteRange> ranges;
  int64_t bytes = kPartialBytes;
};

/// Memory that operations read and wrote.
struct RowAccesses {
  SmallVector<ByteRange> readShared, writtenShared;
  bool readsGlobal = false, writesGlobal = false;

  /// Adds the accesses of an operation on memrefs.
  void add(Operation *op, const RowBuffers &buffers);
  /// Whether the accesses must wait for those of `before`.
  bool dependOn(const RowAccesses &before) const;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ROWS_ROWBUFFERS_H
