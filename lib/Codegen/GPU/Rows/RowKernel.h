//===- RowKernel.h - operations on the rows of an iteration -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A team of threads, a warp or a block, executes one iteration of a loop over
// rows: its operations one after the other, with the elements of each divided
// among the threads. Buffers that an iteration allocates are in shared memory.
//
// Sums and other reductions have an order that follows from the sizes of the
// operation alone: thread t of n adds its units, number t, t + n, t + 2n and so
// on, from the first to the last. The lanes of a warp are then combined by
// exchanges over 16, 8, 4, 2 and 1 lanes, and the warps in their order.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ROWS_ROWKERNEL_H
#define POSENC_LIB_CODEGEN_GPU_ROWS_ROWKERNEL_H

#include "GPU/Launch/GpuKernel.h"
#include "GPU/Threads/ThreadBuilder.h"
#include "RowBuffers.h"

#include "posenc/IR/Posenc.h"
#include "posenc/Numerics/AngleAddition.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::posenc {

/// Threads of a warp.
inline constexpr int64_t kWarpThreads = 32;

/// A tensor as the threads of a team see it.
struct RowTensor {
  /// A flat memref of global memory; null for shared memory.
  Value memref;
  /// Shared memory: the first byte, an i32.
  Value base;
  /// The first element, an index.
  Value first;
  /// Sizes and strides in elements, as indices.
  SmallVector<Value> sizes, strides;
  Type element;
  /// The number of elements to which the first element of each row is aligned.
  int64_t alignment = 1;
};

/// Returns the number of elements to which rows of a memref are aligned in
/// kernels for aligned tensors; 1 if its rows have a dynamic size.
int64_t getWideAlignment(MemRefType type);

/// Returns a memref of the host whose elements have a type that LLVM has.
Value withStorageType(OpBuilder &host, Value memref);

/// The division of an iteration's work.
struct RowTeam {
  int64_t threads; ///< A multiple of a warp.
  int64_t perBlock;
};

/// Whether a block reduces each row; other reductions, and operations without
/// loops around them, are divided among all threads of the grid.
bool reducesRowsInBlocks(linalg::LinalgOp op);

/// Emits the body of a kernel.
class RowKernel {
public:
  /// `root` is an scf.forall, or a linalg operation on memrefs. With `isWide`,
  /// rows of the tensors are aligned as `getWideAlignment` tells.
  RowKernel(OpBuilder &host, GpuKernel &kernel, Operation *root,
            const RowTeam &team, const RowBuffers &buffers, bool isWide);

  /// Emits the whole body. Returns the number of blocks, a value of the host.
  Value emit();

private:
  // RowKernel.cpp: tensors, scalars and the order of operations.
  void capture(Value value);
  void captureOperands();
  void emitOperations(Block &block);
  void emitOperation(Operation &op);
  void emitView(Operation &op);
  void viewTransposed(linalg::TransposeOp op);
  void emitScalar(Operation &op);
  Value emitIterations();
  Value emitOverGrid(linalg::LinalgOp op);
  void waitBefore(Operation &op);
  void synchronize();
  const RowTensor &getTensor(Value memref);
  Value get(Value scalar);
  Value getIndex(Value scalar);
  Value getIndex(OpFoldResult value);
  Value toIndexType(Value value);
  Value getOffset(const RowTensor &tensor, ArrayRef<Value> indices);
  Value index(int64_t value);
  /// Emits `body` for each number below `count` that belongs to the thread.
  void forUnits(Value count, function_ref<void(Value)> body);
  SmallVector<Value> decompose(Value number, ArrayRef<Value> sizes);
  void withScope(function_ref<void()> body);

  // RowElements.cpp
  SmallVector<Value> load(const RowTensor &tensor, Value at, int64_t lanes);
  void store(const RowTensor &tensor, Value at, ArrayRef<Value> elements);
  SmallVector<Value> getLoopSizes(linalg::LinalgOp op);
  /// Returns how many neighbouring elements of loop `loop` a thread takes at a
  /// time.
  int64_t getUnit(linalg::LinalgOp op, unsigned loop);
  SmallVector<Value> getIndices(AffineMap map, ArrayRef<Value> loops);
  void loadArguments(linalg::LinalgOp op, ArrayRef<Value> loops, unsigned last,
                     int64_t lanes,
                     SmallVectorImpl<SmallVector<Value>> &elements);
  void emitBody(Block &block, ArrayRef<Value> loops, int64_t lane,
                int64_t lastLoop);
  void emitElements(linalg::LinalgOp op);
  void emitCopy(Value source, Value target);

  // RowReductions.cpp
  void emitReduction(linalg::LinalgOp op, ArrayRef<Value> fixed);
  void reduceInOrder(linalg::LinalgOp op);
  SmallVector<Value> reduceRow(linalg::LinalgOp op, ArrayRef<Value> loops,
                               Value lane, int64_t lanes);
  Value combine(Operation *combiner, Value carried, Value other);
  Value shuffle(Value value, int64_t mask);
  SmallVector<Value> combineWarps(linalg::LinalgOp op,
                                  SmallVector<Value> values);

  // RowRotations.cpp
  void emitRotation(PositionalOpInterface op);
  RowTensor fillTable(RopeOp op, ArrayRef<Value> sizes);
  Value getRowElement(const RowTensor &tensor, ArrayRef<Value> indices);

  OpBuilder &host;
  GpuKernel &kernel;
  Operation *root;
  RowTeam team;
  const RowBuffers &buffers;
  bool isWide;
  ThreadBuilder b;
  Location loc;
  /// The thread's number, an index: in its team, or in the grid.
  Value thread;
  bool spansGrid = false;
  Value sharedBase; ///< First byte of the team's shared memory, an i32.
  DenseMap<Value, RowTensor> tensors;
  IRMapping scalars;
  /// Memory that operations since the last barrier read and wrote.
  RowAccesses pending;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ROWS_ROWKERNEL_H
