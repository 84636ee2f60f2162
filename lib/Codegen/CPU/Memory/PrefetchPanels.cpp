//===- PrefetchPanels.cpp - prefetches of matrix products -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A matrix product reads a block of a panel once for each register tile of
// rows: the first time from memory, then from the cache. Without prefetches,
// memory is idle after the first time. With this pass, each register tile
// prefetches an equal portion of the block that follows in memory.
//
// A register tile ends with a store of its results, and most begin with a load
// of them. If Tuning says so, each register tile prefetches the results of the
// one below.
//
//===----------------------------------------------------------------------===//

#include "Streaming.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/IR/Remarks.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCPREFETCHPANELSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-prefetch-panels"

/// Whether a value depends on the loop's induction variable.
static bool dependsOn(Value value, scf::ForOp loop) {
  if (value == loop.getInductionVar())
    return true;
  Operation *op = value.getDefiningOp();
  return op && loop->isProperAncestor(op) &&
         llvm::any_of(op->getOperands(),
                      [&](Value operand) { return dependsOn(operand, loop); });
}

/// Whether an index is the loop's induction variable plus a loop-invariant
/// value.
static bool advancesBy1(Value index, scf::ForOp loop) {
  Value variable = loop.getInductionVar();
  if (index == variable)
    return true;
  auto apply = index.getDefiningOp<affine::AffineApplyOp>();
  if (!apply || llvm::any_of(apply.getOperands(), [&](Value operand) {
        return operand != variable && dependsOn(operand, loop);
      }))
    return false;
  AffineMap map = apply.getAffineMap();
  AffineExpr before = map.getResult(0), after = before;
  for (auto [number, operand] : llvm::enumerate(apply.getOperands())) {
    if (operand != variable)
      continue;
    unsigned dims = map.getNumDims();
    AffineExpr expr =
        number < dims ? getAffineDimExpr(number, index.getContext())
                      : getAffineSymbolExpr(number - dims, index.getContext());
    after = after.replace(expr, expr + 1);
  }
  return simplifyAffineExpr(after - before, map.getNumDims(),
                            map.getNumSymbols()) == 1;
}

/// Whether a buffer is scratch of a loop, which is in the cache.
static bool isScratch(Value memref) {
  constexpr int64_t maxScratchBytes = int64_t(128) << 10;
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>()) {
    auto type = dyn_cast<MemRefType>(memref.getType());
    if (isa<memref::ViewOp>(view) && type && type.hasStaticShape())
      return type.getNumElements() * type.getElementTypeBitWidth() / 8 <=
             maxScratchBytes;
    memref = view.getViewSource();
  }
  return memref.getDefiningOp<memref::AllocaOp>() ||
         memref.getDefiningOp<memref::AllocOp>();
}

/// Whether an iteration of a loop adds to vectors, or writes vectors to
/// scratch, such as those that it unpacks codes to.
static bool usesPanel(scf::ForOp loop) {
  return llvm::any_of(
             loop.getInitArgs(),
             [](Value init) { return isa<VectorType>(init.getType()); }) ||
         llvm::any_of(loop.getBody()->getOps<vector::TransferWriteOp>(),
                      [](vector::TransferWriteOp write) {
                        return isScratch(write.getBase());
                      });
}

namespace {
/// A read of whole rows of a panel by one or several vectors: the first row of
/// each iteration of a reduction loop, whose step is the number of rows that an
/// iteration reads.
struct PanelRead {
  /// The read of the first vector.
  vector::TransferReadOp op;
  scf::ForOp sums;
  /// The loop over register tiles, which all read the same rows; null if there
  /// is only one.
  scf::ForOp tiles;
  int64_t linesPerRow;

  /// Returns the panel read that begins with `op`, or none: also if `op` reads
  /// a vector of the row of an earlier read.
  static std::optional<PanelRead> get(vector::TransferReadOp op,
                                      scf::ForOp sums);
  void prefetchNext(const VectorTarget &target);
};
} // namespace

/// Returns the number of elements that the iteration of a loop reads by vectors
/// like `op` from the same row of a matrix, or 0 if `op` is not the first of
/// these reads.
static int64_t countRowElements(vector::TransferReadOp op) {
  int64_t count = 0;
  for (auto other : op->getBlock()->getOps<vector::TransferReadOp>()) {
    if (other.getBase() != op.getBase() ||
        other.getVectorType() != op.getVectorType() ||
        other.getIndices().drop_back() != op.getIndices().drop_back())
      continue;
    if (count == 0 && other != op)
      return 0;
    count += op.getVectorType().getNumElements();
  }
  return count;
}

std::optional<PanelRead> PanelRead::get(vector::TransferReadOp op,
                                        scf::ForOp sums) {
  VectorType type = op.getVectorType();
  MemRefType memref = dyn_cast<MemRefType>(op.getBase().getType());
  unsigned rank = memref ? memref.getRank() : 0;
  if (rank < 2)
    return std::nullopt;
  int64_t elements = countRowElements(op);
  int64_t bytes = elements * type.getElementTypeBitWidth() / 8;
  SmallVector<int64_t> strides;
  int64_t offset;
  // Strides of arguments are dynamic. Those of packed ones are nearly always
  // contiguous, and others would only be prefetched in vain.
  if (failed(memref.getStridesAndOffset(strides, offset)) ||
      (strides[rank - 2] != elements &&
       !ShapedType::isDynamic(strides[rank - 2])) ||
      type.getRank() == 0 || !op.getPermutationMap().isMinorIdentity() ||
      elements == 0 || elements != memref.getShape().back() ||
      type.getShape().back() != type.getNumElements() ||
      bytes % kLineBytes != 0 || !mayBeUncached(op.getBase()) ||
      !advancesBy1(op.getIndices()[rank - 2], sums))
    return std::nullopt;
  for (auto [dim, index] : llvm::enumerate(op.getIndices()))
    if (dim != rank - 2 && dependsOn(index, sums))
      return std::nullopt;
  auto tiles = sums->getParentOfType<scf::ForOp>();
  SmallVector<Value> address(op.getIndices());
  address.push_back(op.getBase());
  if (tiles && llvm::any_of(address, [&](Value value) {
        return dependsOn(value, tiles);
      }))
    tiles = nullptr;
  return PanelRead{op, sums, tiles, bytes / kLineBytes};
}

/// Whether statements of a loop's body, such as fences, keep the operations of
/// a register tile in their order. LLVM reorders those of other loops, and
/// spills sums if conditions divide the body.
static bool hasOrderedTile(scf::ForOp loop) {
  return llvm::any_of(*loop.getBody(), [](Operation &op) {
    return isa<LLVM::FenceOp, LLVM::InlineAsmOp>(op);
  });
}

/// Emits prefetches of the next block. Its cache lines are divided among the
/// register tiles. In each iteration of its reduction loop, a register tile
/// prefetches a few of its lines.
void PanelRead::prefetchNext(const VectorTarget &target) {
  moveLoopInvariantCode(sums);
  Location loc = op.getLoc();
  OpBuilder b(sums);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto subtract = [&](Value x, Value y) {
    return b.createOrFold<arith::SubIOp>(loc, x, y);
  };
  auto multiply = [&](Value x, int64_t y) {
    return b.createOrFold<arith::MulIOp>(loc, x, constant(y));
  };
  auto divideUp = [&](Value x, Value y) {
    return b.createOrFold<arith::CeilDivUIOp>(loc, x, y);
  };
  Value tile = constant(0), numTiles = constant(1);
  if (tiles) {
    Value begin = tiles.getLowerBound(), step = tiles.getStep();
    tile = b.createOrFold<arith::DivUIOp>(
        loc, subtract(tiles.getInductionVar(), begin), step);
    numTiles = divideUp(subtract(tiles.getUpperBound(), begin), step);
  }
  // Iterations of a register tile advance by an equal share of the rows that
  // they read, so that memory is read at a constant rate. A share below a line
  // asks for the same line again. A loop that no fences keep in order has one
  // line for each row instead, if the number of tiles is unknown.
  std::optional<int64_t> knownTiles = getConstantIntValue(numTiles);
  int64_t lineElements =
      8 * kLineBytes / op.getVectorType().getElementTypeBitWidth();
  int64_t linesPerIteration =
      linesPerRow * *getConstantIntValue(sums.getStep());
  bool hasConditions = !knownTiles && hasOrderedTile(sums);
  Value share = divideUp(constant(linesPerIteration * lineElements), numTiles);
  int64_t numLines =
      llvm::divideCeil(linesPerIteration, knownTiles.value_or(1));
  if (!knownTiles && !hasConditions) {
    // There are enough tiles in full blocks that a line for each row suffices.
    numLines = linesPerIteration / linesPerRow;
    share = constant(numLines * lineElements);
  }
  Value numRows = subtract(sums.getUpperBound(), sums.getLowerBound());
  Value linesPerTile = divideUp(multiply(numRows, linesPerRow), numTiles);
  Value first = multiply(b.createOrFold<arith::MulIOp>(loc, tile, linesPerTile),
                         lineElements);
  // Lines are consecutive, so the address needs no row. The loop computes it by
  // few instructions, of which the micro-kernel has none to spare.
  SmallVector<Value> indices(op.getIndices());
  IRMapping atEnd;
  atEnd.map(sums.getInductionVar(), sums.getUpperBound());
  Value &row = indices[indices.size() - 2];
  if (Operation *apply = row.getDefiningOp())
    b.clone(*apply, atEnd);
  row = atEnd.lookup(row);
  // A single tile reads the panel as a stream. The next block would be too near
  // behind a short block, such as one of codes, as memory takes longer than it,
  // and too far behind one of the size of the L1 cache.
  int64_t distance = target.prefetchDistance / kLineBytes;
  Value ahead =
      multiply(subtract(constant(distance), multiply(numRows, linesPerRow)),
               lineElements);
  if (knownTiles == 1)
    first = ahead;
  else if (hasConditions)
    first = arith::SelectOp::create(
        b, loc,
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, numTiles,
                              constant(1)),
        ahead, first);
  Value last = multiply(subtract(linesPerTile, constant(1)), lineElements);

  b.setInsertionPoint(op);
  Value iteration = b.createOrFold<arith::DivUIOp>(
      loc, subtract(sums.getInductionVar(), sums.getLowerBound()),
      sums.getStep());
  Value next = b.createOrFold<arith::MulIOp>(loc, iteration, share);
  if (!knownTiles && !hasConditions)
    next = arith::MinUIOp::create(b, loc, next, last);
  next = b.createOrFold<arith::AddIOp>(loc, first, next);
  // Codes that are unpacked come in bursts, for which the L1 cache has too few
  // buffers of missing lines.
  constexpr unsigned inL1 = 3, inL2 = 2;
  unsigned hint = target.getLocalityHint();
  if (sums.getNumRegionIterArgs() == 0)
    hint = inL2;
  else if (knownTiles != 1)
    hint = target.productPanelCache == 1 ? inL1 : inL2;
  // The memory system takes lines one by one better than several at once.
  SmallVector<Operation *> body;
  for (Operation *at = op; at; at = at->getNextNode())
    body.push_back(at);
  for (int64_t i = 0; i < numLines; ++i) {
    b.setInsertionPoint(body[i * body.size() / numLines]);
    // Many tiles need no more than a line for each iteration.
    if (i > 0 && hasConditions) {
      Value isNeeded = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ugt,
                                             share, constant(i * lineElements));
      b.setInsertionPointToStart(
          scf::IfOp::create(b, loc, isNeeded).thenBlock());
    }
    indices.back() =
        b.createOrFold<arith::AddIOp>(loc, next, constant(i * lineElements));
    memref::PrefetchOp::create(b, loc, op.getBase(), indices,
                               /*isWrite=*/false, hint,
                               /*isDataCache=*/true);
  }
}

/// Emits prefetches of the memory of results below those that a write stores
/// after the loop `sums`.
static void prefetchResults(vector::TransferWriteOp op, scf::ForOp sums) {
  OpBuilder b(sums);
  Location loc = op.getLoc();
  VectorType type = op.getVectorType();
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1),
          line = 8 * kLineBytes / type.getElementTypeBitWidth();
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; column += line) {
      SmallVector<Value> indices(op.getIndices());
      auto move = [&](Value &index, int64_t by) {
        index = b.createOrFold<arith::AddIOp>(
            loc, index, arith::ConstantIndexOp::create(b, loc, by));
      };
      move(indices[indices.size() - 2], rows + row);
      move(indices.back(), column);
      memref::PrefetchOp::create(b, loc, op.getBase(), indices,
                                 /*isWrite=*/false, /*localityHint=*/3,
                                 /*isDataCache=*/true);
    }
}

/// Returns the writes of a register tile of results that may not be cached, and
/// whose address is known before the loop that computes the tile.
static SmallVector<vector::TransferWriteOp>
getResultWrites(scf::ForOp sums, DominanceInfo &dominance) {
  SmallVector<vector::TransferWriteOp> writes;
  for (Operation *user : sums->getUsers()) {
    // Partial sums are added to the results.
    if (isa<arith::AddFOp>(user) && user->hasOneUse())
      user = *user->getUsers().begin();
    auto op = dyn_cast<vector::TransferWriteOp>(user);
    auto type =
        op ? dyn_cast<MemRefType>(op.getBase().getType()) : MemRefType();
    if (!type || op.getVectorType().getRank() != 2 ||
        !op.getPermutationMap().isMinorIdentity() ||
        !type.isLastDimUnitStride() || !mayBeUncached(op.getBase()))
      continue;
    SmallVector<Value> address(op.getIndices());
    address.push_back(op.getBase());
    if (llvm::all_of(address, [&](Value value) {
          return dominance.properlyDominates(value, sums);
        }))
      writes.push_back(op);
  }
  return writes;
}

namespace {
struct PrefetchPanels final
    : mlir::posenc::impl::PosencPrefetchPanelsPassBase<PrefetchPanels> {
  using Base::Base;
  friend struct mlir::posenc::VectorTarget;

  void runOnOperation() override {
    VectorTarget target = VectorTarget::get(*this);
    if (target.productPrefetch)
      prefetchAllResults();
    if (target.prefetchDistance == 0)
      return;
    SmallVector<PanelRead> reads;
    getOperation()->walk([&](vector::TransferReadOp op) {
      auto sums = dyn_cast<scf::ForOp>(op->getParentOp());
      if (!sums || !usesPanel(sums) || isScratch(op.getBase()))
        return;
      // Other loops do not read each row.
      int64_t step = getConstantIntValue(sums.getStep()).value_or(0);
      if (step != 1 && step != static_cast<int64_t>(target.productUnroll))
        return;
      if (std::optional<PanelRead> read = PanelRead::get(op, sums))
        reads.push_back(*read);
    });
    for (PanelRead &read : reads) {
      reportChoice(
          read.op, DEBUG_TYPE,
          llvm::formatv("prefetches the next block of the panel, {0} "
                        "cache lines per row{1}",
                        read.linesPerRow,
                        read.tiles ? ", divided among register tiles" : ""));
      read.prefetchNext(target);
    }
  }

  void prefetchAllResults() {
    auto &dominance = getAnalysis<DominanceInfo>();
    SmallVector<std::pair<vector::TransferWriteOp, scf::ForOp>> writes;
    getOperation()->walk([&](scf::ForOp sums) {
      if (sums->getParentOfType<scf::ForOp>())
        for (vector::TransferWriteOp op : getResultWrites(sums, dominance))
          writes.push_back({op, sums});
    });
    for (auto [op, sums] : writes) {
      reportChoice(op, DEBUG_TYPE,
                   "prefetches the results of the next register tile");
      prefetchResults(op, sums);
    }
  }
};
} // namespace
