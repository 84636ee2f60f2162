//===- PrefetchRows.cpp - prefetches of the next rows ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A softmax or a norm reads a row several times. The first loop over the row
// waits for memory, and the others compute from the cache: memory is idle then.
// The last of these loops prefetches a row that follows.
//
//===----------------------------------------------------------------------===//

#include "Streaming.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/IR/Remarks.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCPREFETCHROWSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-prefetch-rows"

namespace {
/// A read of all vectors of a row in a loop nest inside the loop over rows. The
/// row may have several dimensions.
struct RowRead {
  vector::TransferReadOp op;
  /// The loops over the elements of the row, the outermost first.
  SmallVector<scf::ForOp> loops;

  /// Returns the row read that `op` performs in an iteration of `rows`, or
  /// nullopt if it is none.
  static std::optional<RowRead> get(vector::TransferReadOp op, scf::ForOp rows);
  /// Whether both read the same vectors in the same order.
  bool isSame(RowRead other);
  /// Returns the bytes of the row, or nullopt if its size is dynamic.
  std::optional<int64_t> getBytes();

private:
  /// Returns the loop whose induction variable an index is, or nullopt.
  std::optional<unsigned> getLoop(Value index) const;
};
} // namespace

std::optional<unsigned> RowRead::getLoop(Value index) const {
  for (auto [number, loop] : llvm::enumerate(loops))
    if (scf::ForOp(loop).getInductionVar() == index)
      return number;
  return std::nullopt;
}

std::optional<RowRead> RowRead::get(vector::TransferReadOp op,
                                    scf::ForOp rows) {
  RowRead read{op, {}};
  for (Operation *parent = op->getParentOp(); parent != rows;
       parent = parent->getParentOp()) {
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (!loop)
      return std::nullopt;
    read.loops.insert(read.loops.begin(), loop);
  }
  if (read.loops.empty() || op.getVectorType().getRank() != 1 ||
      !op.getPermutationMap().isMinorIdentity() ||
      !mayBeUncached(op.getBase()) || op.getIndices().empty() ||
      op.getIndices().back() != read.loops.back().getInductionVar())
    return std::nullopt;
  scf::ForOp outermost = read.loops.front();
  bool isKnown =
      outermost.isDefinedOutsideOfLoop(op.getBase()) &&
      llvm::all_of(op.getIndices(), [&](Value index) {
        return read.getLoop(index) || outermost.isDefinedOutsideOfLoop(index);
      });
  if (!isKnown)
    return std::nullopt;
  return read;
}

bool RowRead::isSame(RowRead other) {
  auto haveSameBounds = [](scf::ForOp a, scf::ForOp b) {
    return a.getLowerBound() == b.getLowerBound() &&
           a.getUpperBound() == b.getUpperBound();
  };
  return op.getBase() == other.op.getBase() &&
         loops.size() == other.loops.size() &&
         llvm::all_of(
             llvm::zip_equal(op.getIndices(), other.op.getIndices()),
             [&](auto indices) {
               auto [index, otherIndex] = indices;
               std::optional<unsigned> loop = getLoop(index);
               return loop == other.getLoop(otherIndex) &&
                      (loop ? haveSameBounds(loops[*loop], other.loops[*loop])
                            : index == otherIndex);
             });
}

std::optional<int64_t> RowRead::getBytes() {
  int64_t bytes = op.getVectorType().getElementTypeBitWidth() / 8;
  for (scf::ForOp loop : loops) {
    std::optional<int64_t> size = getConstantIntValue(loop.getUpperBound());
    if (!size || *size == 0)
      return std::nullopt;
    bytes *= *size;
  }
  return bytes;
}

/// Returns, for each row that an iteration reads in several loops, the last
/// read of it.
static SmallVector<RowRead> findRows(scf::ForOp rows) {
  SmallVector<std::pair<RowRead, bool>> found;
  rows.getBody()->walk([&](vector::TransferReadOp op) {
    std::optional<RowRead> read = RowRead::get(op, rows);
    if (!read)
      return;
    for (auto &[last, isRepeated] : found) {
      if (!last.isSame(*read))
        continue;
      isRepeated |= last.loops.front() != read->loops.front();
      last = *read;
      return;
    }
    found.push_back({*read, false});
  });
  SmallVector<RowRead> result;
  for (auto &[last, isRepeated] : found)
    if (isRepeated)
      result.push_back(last);
  return result;
}

/// Returns the operations of an iteration, in order, that compute the memref
/// and the indices of a row. Fails if the row is the same in all iterations, or
/// if an operation has side effects.
static FailureOr<SetVector<Operation *>> getAddressOps(scf::ForOp rows,
                                                       RowRead read) {
  SetVector<Operation *> ops;
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.inclusive = true;
  options.filter = [&](Operation *op) {
    return op->getBlock() == rows.getBody();
  };
  Value row = rows.getInductionVar();
  bool dependsOnRow = llvm::is_contained(read.op.getIndices(), row);
  SmallVector<Value> address(read.op.getIndices());
  address.push_back(read.op.getBase());
  for (Value value : address)
    if (value.getDefiningOp() && failed(getBackwardSlice(value, &ops, options)))
      return failure();
  for (Operation *op : ops) {
    if (!isPure(op) || op->getNumRegions() > 0)
      return failure();
    dependsOnRow |= llvm::is_contained(op->getOperands(), row);
  }
  if (!dependsOnRow)
    return failure();
  return topologicalSort(ops);
}

/// Emits prefetches of a following row next to the last read of a row.
static void prefetchNextRow(scf::ForOp rows, RowRead read,
                            const VectorTarget &target) {
  std::optional<int64_t> step =
      getConstantIntValue(read.loops.back().getStep());
  FailureOr<SetVector<Operation *>> ops = getAddressOps(rows, read);
  if (!step || failed(ops))
    return;
  Location loc = read.op.getLoc();
  OpBuilder builder(read.loops.front());
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  // Assumes that rows of dynamic size are long.
  int64_t distance = target.prefetchDistance;
  int64_t ahead =
      std::max<int64_t>(distance / read.getBytes().value_or(distance), 1);
  reportChoice(read.op, DEBUG_TYPE,
               llvm::formatv("prefetches the row {0} iterations ahead", ahead));
  Value row = rows.getInductionVar();
  Value next = arith::AddIOp::create(
      builder, loc, row,
      arith::MulIOp::create(builder, loc, rows.getStep(), constant(ahead)));
  Value isRow = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                      next, rows.getUpperBound());
  IRMapping mapping;
  mapping.map(row, arith::SelectOp::create(builder, loc, isRow, next, row));
  for (Operation *op : *ops)
    builder.clone(*op, mapping);
  Value memref = mapping.lookupOrDefault(read.op.getBase());
  SmallVector<Value> indices;
  for (Value index : read.op.getIndices())
    indices.push_back(mapping.lookupOrDefault(index));
  builder.setInsertionPoint(read.op);
  Value column = indices.back();
  int64_t elementBytes = read.op.getVectorType().getElementTypeBitWidth() / 8;
  for (int64_t line = 0; line < *step * elementBytes; line += kLineBytes) {
    indices.back() = builder.createOrFold<arith::AddIOp>(
        loc, column, constant(line / elementBytes));
    memref::PrefetchOp::create(builder, loc, memref, indices,
                               /*isWrite=*/false, target.getLocalityHint(),
                               /*isDataCache=*/true);
  }
}

namespace {
struct PrefetchRows final
    : mlir::posenc::impl::PosencPrefetchRowsPassBase<PrefetchRows> {
  using Base::Base;
  friend struct mlir::posenc::VectorTarget;

  void runOnOperation() override {
    VectorTarget target = VectorTarget::get(*this);
    if (target.prefetchDistance == 0)
      return;
    SmallVector<scf::ForOp> loops;
    getOperation()->walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      for (RowRead &read : findRows(loop))
        prefetchNextRow(loop, read, target);
  }
};
} // namespace
