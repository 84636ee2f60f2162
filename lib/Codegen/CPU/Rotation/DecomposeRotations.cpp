//===- DecomposeRotations.cpp - rope and rotate to tiles of linalg --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cos and sin of a position are computed once, or read once from a table,
// and stored on the stack in the order of a row's lanes. They are used for the
// rows of all tensors; a row is a loop of linalg.generic on tiles.
//
//===----------------------------------------------------------------------===//

#include "CPU/Memory/Streaming.h"
#include "CPU/VectorLoops.h"
#include "PositionBlock.h"
#include "PositionTable.h"
#include "RowRotation.h"
#include "posenc/Codegen/Passes.h"
#include "posenc/Numerics/ElementwiseBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCDECOMPOSEROTATIONSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

namespace {
/// The positions whose tables are on the stack at the same time, one slot per
/// position.
struct PositionBlock {
  /// Loop indices of the first position.
  SmallVector<Value> loops;
  /// The number of positions of the block along the last loop, null if it is
  /// one, and its upper bound.
  Value count;
  int64_t positions;
  /// Whether neighbouring rows in memory belong to neighbouring positions.
  bool rowsAreApart;

  SmallVector<Value> getLoops(OpBuilder &builder, Location loc,
                              Value slot) const {
    SmallVector<Value> result(loops);
    if (count)
      result.back() = arith::AddIOp::create(builder, loc, result.back(), slot);
    return result;
  }
};
} // namespace

/// Whether the rows of a block are processed as several interleaved streams.
/// Reading and writing memory in several streams can be a fifth faster than in
/// one, if the streams are far enough apart.
static bool isTakenInStreams(MemRefType type, ArrayRef<int64_t> loopDims,
                             int64_t positions, uint64_t minBytes) {
  int64_t bytes = positions * type.getElementTypeBitWidth() / 8;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    if (llvm::is_contained(loopDims, dim))
      continue;
    if (ShapedType::isDynamic(size))
      return false;
    bytes *= size;
  }
  return uint64_t(bytes) >= minBytes;
}

/// Emits `body` for all numbers below `count` and, for each, all indices of
/// `sizes`. The numbers are divided into `streams` ranges, which are visited in
/// turn.
static void forEachInStreams(
    OpBuilder &builder, Location loc, Value count, int64_t numStreams,
    ValueRange sizes,
    function_ref<void(OpBuilder &, Location, Value, ValueRange)> body) {
  Value streams = arith::ConstantIndexOp::create(builder, loc, numStreams);
  Value length = arith::CeilDivUIOp::create(builder, loc, count, streams);
  forEachIndex(
      builder, loc, length, [&](OpBuilder &b, Location l, ValueRange first) {
        // Counts the numbers first + length, first + 2*length, ... that are
        // below `count`.
        Value rest = arith::SubIOp::create(b, l, count, first.front());
        SmallVector<Value> all(sizes);
        all.push_back(arith::CeilDivUIOp::create(b, l, rest, length));
        forEachIndex(
            b, l, all, [&](OpBuilder &b2, Location l2, ValueRange indices) {
              Value before =
                  arith::MulIOp::create(b2, l2, indices.back(), length);
              Value number =
                  arith::AddIOp::create(b2, l2, before, first.front());
              body(b2, l2, number, indices.drop_back());
            });
      });
}

/// Rotates the rows of all tensors at the positions of a block.
static void rotateRows(OpBuilder &builder, Location loc,
                       const RowRotation &rotation, ValueRange inputs,
                       ValueRange inits, ArrayRef<int64_t> dims,
                       const PositionBlock &block, const Tuning &tuning,
                       Access access) {
  for (auto [input, init] : llvm::zip_equal(inputs, inits)) {
    int64_t rows = cast<MemRefType>(input.getType()).getRank() - 1;
    SmallVector<int64_t> rowDims;
    SmallVector<Value> sizes;
    for (int64_t dim = 0; dim < rows; ++dim) {
      if (llvm::is_contained(dims, dim))
        continue;
      rowDims.push_back(dim);
      sizes.push_back(getDimSize(builder, loc, init, dim));
    }
    auto type = cast<MemRefType>(init.getType());
    // Rounding to 16-bit elements takes nearly as long as writing them with
    // streaming stores.
    RowPolicy policy = RowPolicy::get(
        tuning, access,
        /*isNarrow=*/type.getElementType().getIntOrFloatBitWidth() == 16);
    bool inStreams =
        block.count && policy.streams > 1 &&
        !(block.rowsAreApart && sizes.empty()) &&
        rotation.isOfWholeRows(type) &&
        isTakenInStreams(type, dims, block.positions, tuning.streamBlockBytes);
    RowRotation prefetching =
        rotation.withPrefetch(inStreams ? policy.streamAhead : policy.distance);
    auto rotate = [&, input = input, init = init](OpBuilder &b, Location l,
                                                  Value slot,
                                                  ValueRange rowIndices) {
      SmallVector<Value> at(rows);
      for (auto [dim, index] :
           llvm::zip_equal(dims, block.getLoops(b, l, slot)))
        at[dim] = index;
      for (auto [dim, index] : llvm::zip_equal(rowDims, rowIndices))
        at[dim] = index;
      prefetching.at(slot).rotateRow(b, l, input, init, at, access);
    };
    if (inStreams && !block.rowsAreApart) {
      forEachInStreams(builder, loc, block.count, policy.streams, sizes,
                       rotate);
      continue;
    }
    if (inStreams) {
      Value count = sizes.pop_back_val();
      sizes.push_back(block.count);
      forEachInStreams(
          builder, loc, count, policy.streams, sizes,
          [&](OpBuilder &b, Location l, Value row, ValueRange indices) {
            SmallVector<Value> rowIndices(indices.drop_back());
            rowIndices.push_back(row);
            rotate(b, l, indices.back(), rowIndices);
          });
      continue;
    }
    // The innermost loop is the one over contiguous rows.
    Value count = block.count ? block.count
                              : arith::ConstantIndexOp::create(builder, loc, 1);
    sizes.insert(block.rowsAreApart ? sizes.end() : sizes.begin(), count);
    forEachIndex(builder, loc, sizes,
                 [&](OpBuilder &b, Location l, ValueRange indices) {
                   if (block.rowsAreApart)
                     rotate(b, l, indices.back(), indices.drop_back());
                   else
                     rotate(b, l, indices.front(), indices.drop_front());
                 });
  }
}

/// Fills the table on the stack for the position at the indices `loops`.
using FillTable = function_ref<void(OpBuilder &, Location, ValueRange loops,
                                    const RowRotation &)>;

/// Emits `fillTable` and the rotation of all rows, one block of positions after
/// the other.
static void rotateAll(OpBuilder &builder, PositionalOpInterface op,
                      ValueRange inputs, ValueRange inits,
                      ArrayRef<int64_t> dims, const RowRotation &rotation,
                      int64_t positionsPerBlock, const VectorTarget &target,
                      FillTable fillTable) {
  Location loc = op.getLoc();
  SmallVector<Value> sizes = getLoopSizes(builder, op);
  auto emitBlock = [&](OpBuilder &b, Location l, const PositionBlock &block) {
    auto fillSlot = [&](OpBuilder &b2, Location l2, ValueRange slots) {
      Value slot = slots.front();
      fillTable(b2, l2, block.getLoops(b2, l2, slot), rotation.at(slot));
    };
    if (block.count)
      forEachIndex(b, l, block.count, fillSlot);
    else
      fillSlot(b, l, Value(arith::ConstantIndexOp::create(b, l, 0)));
    // Rows with lanes that are not rotated have gaps between the rotated parts.
    bool areWhole = llvm::all_of(inits, [&](Value init) {
      return rotation.isOfWholeRows(cast<MemRefType>(init.getType()));
    });
    std::optional<int64_t> inOrderFrom;
    if (areWhole && !areRowsApart(op) && !dims.empty())
      inOrderFrom = dims.back();
    chooseAccess(b, l, inputs, inits, target, rotation.canStream(), inOrderFrom,
                 /*inBlocks=*/positionsPerBlock > 1,
                 [&](OpBuilder &b2, Location l2, Access access) {
                   rotateRows(b2, l2, rotation, inputs, inits, dims, block,
                              target, access);
                 });
  };
  if (positionsPerBlock == 1)
    return forEachIndex(
        builder, loc, sizes, [&](OpBuilder &b, Location l, ValueRange loops) {
          emitBlock(b, l, {llvm::to_vector(loops), nullptr, 1, false});
        });

  Value last = sizes.pop_back_val();
  Value step = arith::ConstantIndexOp::create(builder, loc, positionsPerBlock);
  sizes.push_back(arith::CeilDivUIOp::create(builder, loc, last, step));
  forEachIndex(
      builder, loc, sizes, [&](OpBuilder &b, Location l, ValueRange blocks) {
        SmallVector<Value> loops(blocks);
        loops.back() = arith::MulIOp::create(b, l, loops.back(), step);
        Value rest = arith::SubIOp::create(b, l, last, loops.back());
        Value count = arith::MinUIOp::create(b, l, rest, step);
        // A block is never empty, but LLVM cannot prove it.
        count = arith::MaxUIOp::create(b, l, count,
                                       arith::ConstantIndexOp::create(b, l, 1));
        emitBlock(b, l, {loops, count, positionsPerBlock, areRowsApart(op)});
      });
}

static void decomposeRope(OpBuilder &builder, RopeOp op,
                          const VectorTarget &target) {
  Type element = getElementTypeOrSelf(op.getInits().front().getType());
  SmallVector<Value> sizes = getLoopSizes(builder, op);
  bool isOne = sizes.empty() || getConstantIntValue(sizes.back()) == 1;
  int64_t positionsPerBlock = isOne ? 1 : getPositionsPerBlock(op, target);
  RowRotation rotation(builder, op, op.getPairing(),
                       op.getFrequencies().getDim(), op.getOffset(), element,
                       positionsPerBlock, target);
  Angles angles{op.getFrequencies(), op.getAxesAttr(), op.getTurns(),
                op.getInverse(), areFloats(op.getPositions())};
  PositionTable table(builder, op, angles, element, TableUse::Rotation,
                      rotation.getOrder());
  rotateAll(
      builder, op, op.getInputs(), op.getInits(), op.getDims(), rotation,
      positionsPerBlock, target,
      [&](OpBuilder &b, Location l, ValueRange loops, const RowRotation &one) {
        PositionTable::Position position =
            table.loadPosition(b, l, op.getPositions(), loops);
        // Processes two vectors at a time, which share the loads of constants:
        // the constants do not fit in registers.
        table.forEachElement(
            b, l, position, table.getAll(b, l), 2 * one.getLanes(),
            [&](OpBuilder &b2, Location l2, Value first,
                const PositionTable::CosSin &element) {
              one.store(b2, l2, first, element.cos, element.sin);
            });
      });
}

/// Loads a vector of cosines or sines from a table's row, in the type
/// `compute`.
static Value loadElements(OpBuilder &builder, Location loc, Type compute,
                          Value table, ValueRange loops, Value pair,
                          int64_t lanes) {
  SmallVector<Value> at(loops);
  at.push_back(pair);
  Type element = getElementTypeOrSelf(table.getType());
  auto type = VectorType::get({lanes}, compute);
  Value value =
      vector::LoadOp::create(builder, loc, type.clone(element), table, at);
  if (element != compute)
    return arith::ExtFOp::create(builder, loc, type, value);
  if (!compute.isF32())
    return value;
  // joinBF16 requires that the lower 16 bits of a NaN are 0.
  ElementwiseBuilder b(builder, loc, value);
  Value isNaN = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO,
                                      value, value);
  return b.select(isNaN, b.f32(std::numeric_limits<float>::quiet_NaN()), value);
}

static void decomposeRotate(OpBuilder &builder, RotateOp op,
                            const VectorTarget &target) {
  Type element = getElementTypeOrSelf(op.getInits().front().getType());
  RowRotation rotation(builder, op, op.getPairing(), op.getRotaryDim(),
                       op.getOffset(), element, /*numSlots=*/1, target);
  rotateAll(
      builder, op, op.getInputs(), op.getInits(), op.getDims(), rotation,
      /*positionsPerBlock=*/1, target,
      [&](OpBuilder &b, Location l, ValueRange loops, const RowRotation &one) {
        one.storeAll(b, l,
                     [&](OpBuilder &b2, Location l2, Value pair, int64_t n) {
                       auto load = [&](Value table) {
                         return loadElements(b2, l2, one.getComputeType(),
                                             table, loops, pair, n);
                       };
                       Value cos = load(op.getCos()), sin = load(op.getSin());
                       if (op.getInverse())
                         sin = arith::NegFOp::create(b2, l2, sin);
                       return std::pair(cos, sin);
                     });
      });
}

namespace {
struct DecomposeRotations final
    : mlir::posenc::impl::PosencDecomposeRotationsPassBase<DecomposeRotations> {
  using Base::Base;
  friend struct mlir::posenc::VectorTarget;

  void runOnOperation() override {
    SmallVector<Operation *> operations;
    getOperation().walk([&](Operation *op) {
      if (isa<RopeOp, RotateOp>(op))
        operations.push_back(op);
    });
    VectorTarget target = VectorTarget::get(*this);
    target.vectorBytes = target.getRowVectorBytes();
    for (Operation *op : operations) {
      if (failed(checkConvertible(op, target)) ||
          failed(checkPositionsPerBlock(op, target)))
        return signalPassFailure();
      OpBuilder builder(op);
      if (auto rope = dyn_cast<RopeOp>(op))
        decomposeRope(builder, rope, target);
      else
        decomposeRotate(builder, cast<RotateOp>(op), target);
      op->erase();
    }
  }
};
} // namespace
