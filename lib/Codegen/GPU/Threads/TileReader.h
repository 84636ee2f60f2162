//===- TileReader.h - elements of a tile in a GPU kernel --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops over tiles of attention compute tensors: slices of operands,
// padded, converted, normed, rotated or gathered from pages. A thread computes
// the elements that it needs of such a tensor, from the operands in global
// memory, as if all operations in between were fused. Each thread executes the
// scalar code around them, which computes lengths and pages, for itself.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_THREADS_TILEREADER_H
#define POSENC_LIB_CODEGEN_GPU_THREADS_TILEREADER_H

#include "GPU/Launch/GpuKernel.h"
#include "ThreadBuilder.h"

#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::posenc {

/// Whether a TileReader can read the tensor, and clone the scalar code that it
/// depends on. `isInside` tells whether an operation belongs to the loops.
bool isReadable(Value tensor, function_ref<bool(Operation *)> isInside);

/// Returns the element that the operation copies, if it copies rows of a tensor
/// from computed places: its last index is that of the lane.
tensor::ExtractOp findGather(linalg::GenericOp op);

/// Returns the largest power of two up to `limit` that divides `value`.
int64_t getDivisor(int64_t value, int64_t limit);

class TileReader {
public:
  /// `isWide` allows accesses of 16 bytes, for which the host has checked the
  /// alignment of the operands.
  TileReader(OpBuilder &host, GpuKernel &kernel, ThreadBuilder &builder,
             bool isWide)
      : host(host), kernel(kernel), b(builder), isWide(isWide) {}

  /// Passes a value from outside of the loops to the kernel: a tensor, a
  /// memref, or a scalar. All values must be passed before code is emitted.
  void capture(Value value);
  /// Passes all values from outside that the loops use.
  void captureOperands(scf::ForallOp loops);

  /// The kernel's values of scalars in the loops. Code that is emitted at a
  /// place that does not dominate later code needs a copy of the map.
  IRMapping &getScalars() { return scalars; }
  /// Runs `body` with a copy of the map, so that scalars that it clones are not
  /// used elsewhere.
  void withScope(function_ref<void()> body);
  /// Clones the scalar operations of a block, in their order.
  void cloneScalars(Block &block);
  /// Clones those of a loop's body that do not depend on induction variables
  /// or carried values that have no value in the kernel yet. The loop must have
  /// iterations where that code runs.
  void cloneInvariantScalars(LoopLikeOpInterface loop);
  /// Divides loops over elements, such as those that bound the elements of a
  /// tile, among the lanes of a warp, all of which must run the cloned code.
  void setLane(Value value) { lane = value; }
  /// Clones an operation on scalars, which may load elements.
  void cloneScalar(Operation &op);
  /// Returns the kernel's value of a scalar, as an index if it is one.
  Value get(Value scalar);
  Value get(OpFoldResult scalar);
  /// Returns the size of a tensor's dimension as an index.
  Value getSize(Value tensor, int64_t dim);

  /// Returns `lanes` elements of a tensor, from the indices `at` on in the last
  /// dimension, as a vector. Rows of padding are its constant.
  Value read(Value tensor, ArrayRef<Value> at, int64_t lanes);
  /// Elements without branches, as which rows of padding have those of another
  /// row: that must exist.
  struct Elements {
    SmallVector<Value> vectors;
    /// An i1: whether the row is no padding; null if it never is.
    Value exists;
  };
  /// Reads as `read` does.
  Elements readClamped(Value tensor, ArrayRef<Value> at, int64_t lanes);
  /// Channels of rows that are rotated: `size` from `first` on.
  struct RotatedChannels {
    int64_t first, size;
    bool isHalf;
  };
  /// Returns the channels if `read` rotates rows of the tensor last, and groups
  /// of `lanes` lanes are all rotated or not at all, and have their partners in
  /// one group.
  std::optional<RotatedChannels> findRotated(Value tensor, int64_t lanes);
  enum class Channels {
    /// Any channels.
    kAny,
    /// Rotated channels: of the first half, and their partners in the second.
    kRotated,
    /// Channels that are not rotated.
    kOthers
  };
  /// Reads as `readClamped` does, without roundings of rotated rows to their
  /// type, which the caller rounds. Rotated channels by halves give two
  /// vectors, whose operands are read once.
  Elements readUnrounded(Value tensor, ArrayRef<Value> at, int64_t lanes,
                         Channels channels);
  /// Returns one element of a memref or tensor from outside.
  Value loadElement(Value source, ArrayRef<Value> at);
  /// Stores an element, or a vector in the last dimension, to a destination of
  /// the loops. A vector's index in that dimension is a multiple of its size.
  void storeElements(Value elements, Value destination, ArrayRef<Value> at);

  /// The place of a row's elements in global memory.
  struct Row {
    Value root;
    /// The offset of the first element, and an i1: whether the row exists
    /// rather than being padding; null if it always does.
    Value offset, exists;
  };
  /// Returns where the elements are, if they are copied as they are.
  std::optional<Row> locate(Value tensor, ArrayRef<Value> at);
  /// Whether `locate` finds the tensor's rows.
  bool isCopied(Value tensor) const;
  /// Returns the address of an element of a captured value as an i64.
  Value getAddress(Value root, Value offset);
  /// Returns the indices of the element that a gather copies to `at`.
  SmallVector<Value> getGathered(linalg::GenericOp op, ArrayRef<Value> at);
  /// Divides indices by other numbers than constants in 32 bits from here on,
  /// in which all of these must fit, or no longer.
  void setNarrowDivisions(bool value) { hasNarrowDivisions = value; }
  /// Whether rows of the value can be read 16 bytes at a time.
  bool isAligned(Value root) const;
  /// Returns a captured tensor, or a destination of the loops.
  const GpuKernel::Tensor &getTensor(Value root) const;

private:
  void captureSize(Operation *op, Value shaped, int64_t dim);
  bool cloneReduction(scf::ForOp loop);
  Value readSlice(tensor::ExtractSliceOp op, ArrayRef<Value> at, int64_t lanes);
  Value readPadded(tensor::InsertSliceOp op, ArrayRef<Value> at, int64_t lanes);
  Value readGeneric(linalg::GenericOp op, ArrayRef<Value> at, int64_t lanes);
  void evaluate(linalg::GenericOp op, ArrayRef<Value> at, int64_t lane,
                Operation *end);
  Value getOffsetOf(linalg::GenericOp op, tensor::ExtractOp gather,
                    ArrayRef<Value> at);
  Value readSum(linalg::GenericOp op, ArrayRef<Value> at);
  Value readRotated(RotateOp op, ArrayRef<Value> at, int64_t lanes);
  Value rotateLanes(RotateOp op, ArrayRef<Value> at, int64_t lanes);
  SmallVector<Value> rotateHalves(RotateOp op, ArrayRef<Value> at,
                                  int64_t lanes);
  Value combine(RotateOp op, ArrayRef<Value> x, ArrayRef<Value> y,
                ArrayRef<Value> cos, ArrayRef<Value> signedSin);
  Value clampToSource(Value &tensor, SmallVector<Value> &at);
  Value load(Value root, Value offset, int64_t lanes);
  Value splat(Value scalar, int64_t lanes);
  SmallVector<Value> getLanes(Value vector);
  SmallVector<Value> toSource(tensor::ExtractSliceOp op, ArrayRef<Value> at);
  Value isInRange(tensor::InsertSliceOp op, ArrayRef<Value> at,
                  SmallVector<Value> &inner);
  Value getOffsetOf(Value root, ArrayRef<Value> at);

  OpBuilder &host;
  GpuKernel &kernel;
  ThreadBuilder &b;
  bool isWide;
  /// Whether rotated rows keep the type in which they are computed.
  bool keepsSums = false;
  bool hasNarrowDivisions = false;
  /// The lane of the warp that shares loops; null if each thread runs them.
  Value lane;
  DenseMap<Value, GpuKernel::Tensor> tensors;
  IRMapping scalars;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_THREADS_TILEREADER_H
