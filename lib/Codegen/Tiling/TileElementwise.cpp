//===- TileElementwise.cpp - tiling of elementwise operations -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An elementwise operation becomes a loop over rows and, inside, a loop over
// tiles of one vector. The remainder of a row stays a separate operation. If an
// input is transposed, tiles are squares, so the rows of the input and of the
// result are vectors.
//
// Rows of tables that it reads with tensor.extract become inputs of each row.
//
// A column reduction is elementwise for each row of its input. It becomes loops
// over blocks of the result, over rows, and over the vectors of a block, which
// stays in the L1 cache.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/IR/Posenc.h"
#include "posenc/IR/Remarks.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCTILEELEMENTWISEPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-tile-elementwise"

namespace {
/// The roles of an operation's loops.
struct ElementwiseLoops {
  /// The loop over the contiguous dimension of all results.
  unsigned vector;
  /// The loop over the contiguous dimension of a transposed input.
  std::optional<unsigned> transposed;
  /// The reduction loops of a column reduction.
  SmallVector<unsigned> reductions;
};
} // namespace

static bool isLast(AffineMap map, unsigned loop) {
  return map.getNumResults() > 0 &&
         map.getDimPosition(map.getNumResults() - 1) == loop;
}

/// Returns the roles of the operation's loops, or nullopt if this pass cannot
/// tile it.
static std::optional<ElementwiseLoops> getLoops(linalg::LinalgOp op) {
  // Slices of loops with zero iterations would be out of bounds. Copies may
  // still be removed by later passes, and are vectorized in any case.
  if (isa<linalg::CopyOp>(op) || !op.hasPureTensorSemantics() ||
      op.getNumParallelLoops() == 0 ||
      op.getNumParallelLoops() + op.getNumReductionLoops() !=
          op.getNumLoops() ||
      llvm::is_contained(op.getStaticLoopRanges(), 0) ||
      op.getNumDpsInits() == 0)
    return std::nullopt;
  if (!llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(); }))
    return std::nullopt;
  if (!computesVectors(op))
    return std::nullopt;
  std::optional<unsigned> vector;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    if (map.getNumResults() != op.getNumParallelLoops())
      return std::nullopt;
    unsigned last = map.getDimPosition(map.getNumResults() - 1);
    if (vector && vector != last)
      return std::nullopt;
    vector = last;
  }
  ElementwiseLoops loops{*vector, std::nullopt, {}};
  op.getReductionDims(loops.reductions);
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (!map.isFunctionOfDim(*vector) || isLast(map, *vector))
      continue;
    // For this input, it is a row reduction.
    if (!loops.reductions.empty())
      return std::nullopt;
    if (!loops.transposed)
      loops.transposed = map.getDimPosition(map.getNumResults() - 1);
  }
  return loops;
}

/// Whether the operation is one step of a sum, in a loop that another pass
/// created.
static bool isSumStep(linalg::LinalgOp op) {
  SmallVector<unsigned> loops;
  op.getReductionDims(loops);
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  return !loops.empty() && op->getParentOfType<LoopLikeOpInterface>() &&
         llvm::all_of(loops, [&](unsigned loop) { return ranges[loop] == 1; });
}

bool mlir::posenc::isTiledElementwise(linalg::LinalgOp op) {
  return op.getNumReductionLoops() == 0 && getLoops(op).has_value();
}

bool mlir::posenc::isTiledColumnReduction(linalg::LinalgOp op) {
  return op.getNumReductionLoops() > 0 && !isSumStep(op) &&
         !isTiledContraction(op) && !isTiledReduction(op) &&
         getLoops(op).has_value();
}

/// Whether the operation adds matrix products, or steps of a sum, to a register
/// tile, its only result.
static bool addsProducts(Operation *op) {
  if (auto loop = dyn_cast_or_null<scf::ForOp>(op))
    return loop.getNumResults() == 1 &&
           llvm::any_of(loop.getOps<linalg::LinalgOp>(),
                        [](linalg::LinalgOp op) {
                          return isTiledContraction(op) || isSumStep(op);
                        });
  return isa_and_nonnull<TileProductOp>(op);
}

/// Whether the operation initializes or finishes a register tile of a matrix
/// product.
static bool isRegisterTile(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() ||
      llvm::any_of(op.getStaticLoopRanges(), ShapedType::isDynamic))
    return false;
  if (llvm::any_of(op->getOperands(), [](Value operand) {
        return addsProducts(operand.getDefiningOp());
      }))
    return true;
  return op->getNumResults() == 1 &&
         llvm::any_of(op->getResult(0).getUsers(), addsProducts);
}

/// Tiles by `sizes`; 0 creates no loop. Returns the operation inside the loops.
static FailureOr<linalg::LinalgOp>
tile(RewriterBase &rewriter, linalg::LinalgOp op, ArrayRef<int64_t> sizes,
     scf::SCFTilingOptions::LoopType loopType,
     SmallVector<LoopLikeOpInterface> &loops) {
  scf::SCFTilingOptions options;
  options.setTileSizes(getAsIndexOpFoldResult(op->getContext(), sizes));
  options.setLoopType(loopType);
  rewriter.setInsertionPoint(op);
  FailureOr<scf::SCFTilingResult> result = scf::tileUsingSCF(
      rewriter, cast<TilingInterface>(op.getOperation()), options);
  if (failed(result))
    return failure();
  rewriter.replaceOp(op, result->replacements);
  loops.assign(result->loops.begin(), result->loops.end());
  return cast<linalg::LinalgOp>(result->tiledOps.front());
}

namespace {
struct TileElementwise final
    : mlir::posenc::impl::PosencTileElementwisePassBase<TileElementwise> {
  using Base::Base;

  /// Peels the remainder off a loop, so that the loop itself has whole vectors
  /// only. There is no remainder if the vector size divides the loop's range.
  static void peel(RewriterBase &rewriter, LoopLikeOpInterface loop) {
    scf::ForOp partial;
    (void)scf::peelForLoopAndSimplifyBounds(
        rewriter, cast<scf::ForOp>(loop.getOperation()), partial);
  }

  /// Returns the lanes of a vector: the number of elements of the narrowest
  /// result (at least 16 and at most 32 bits) in a hardware vector, or fewer
  /// for short rows.
  int64_t getLanes(linalg::LinalgOp op, int64_t rowSize) const {
    unsigned bits = 32;
    // LLVM splits wider vectors of frem into scalars and then fails to select
    // the conversion to bf16.
    bool isSplit = llvm::any_of(op->getRegion(0).front(), [](Operation &inner) {
      return isa<arith::RemFOp>(inner);
    });
    if (!isSplit)
      for (Value init : op.getDpsInits())
        bits =
            std::min(bits, getElementTypeOrSelf(init).getIntOrFloatBitWidth());
    int64_t lanes = vectorBytes * 8 / std::max(bits, 16u);
    while (!ShapedType::isDynamic(rowSize) && rowSize < lanes && lanes > 4)
      lanes /= 2;
    return lanes;
  }

  /// Fuses the elementwise producer of a column reduction with few columns into
  /// its loops, vector by vector. The producer's result stays available for
  /// other users. Returns whether it was fused.
  bool fuseInput(RewriterBase &rewriter, linalg::LinalgOp op,
                 const ElementwiseLoops &roles) {
    if (op.getNumDpsInputs() != 1 || op.getNumLoops() != 2)
      return false;
    OpOperand &input = *op.getDpsInputOperands().front();
    auto producer = input.get().getDefiningOp<linalg::GenericOp>();
    if (!producer || producer->getBlock() != op->getBlock() ||
        producer->getNumResults() != 1 || !isTiledElementwise(producer) ||
        isRegisterTile(producer) ||
        !op.getMatchingIndexingMap(&input).isIdentity() ||
        !producer.getMatchingIndexingMap(producer.getDpsInitOperand(0))
             .isIdentity())
      return false;
    int64_t lanes = getLanes(producer, op.getStaticLoopRanges()[roles.vector]);
    if (op.getStaticLoopRanges()[roles.vector] % lanes != 0)
      return false;
    SmallVector<int64_t> sizes(2, 1);
    sizes[roles.vector] = lanes;
    scf::SCFTileAndFuseOptions options;
    options.tilingOptions.setTileSizes(
        getAsIndexOpFoldResult(op->getContext(), sizes));
    options.tilingOptions.setInterchange(
        {roles.vector, roles.reductions.front()});
    options.setFusionControlFn(
        [&](tensor::ExtractSliceOp, OpResult result, bool)
            -> std::optional<scf::SCFTileAndFuseOptions::ControlFnResult> {
          if (result.getOwner() != producer)
            return std::nullopt;
          return scf::SCFTileAndFuseOptions::ControlFnResult{
              /*yieldProducerReplacement=*/true};
        });
    rewriter.setInsertionPoint(op);
    FailureOr<scf::SCFTileAndFuseResult> tiled =
        scf::tileConsumerAndFuseProducersUsingSCF(
            rewriter, cast<TilingInterface>(op.getOperation()), options);
    if (failed(tiled))
      return false;
    // Takes sizes from the destination, which is defined before the loops.
    rewriter.replaceUsesWithIf(
        producer.getResult(0), producer.getDpsInits().front(),
        [](OpOperand &use) { return isa<tensor::DimOp>(use.getOwner()); });
    for (auto [old, replacement] : tiled->replacements)
      rewriter.replaceUsesWithIf(old, replacement, [&](OpOperand &use) {
        return !tiled->loops.front()->isAncestor(use.getOwner());
      });
    rewriter.eraseOp(op);
    return true;
  }

  /// Tiles an operation whose rows are shorter than a vector to single rows.
  /// Otherwise all rows of the enclosing tile would be vectorized at once,
  /// which needs more registers than there are.
  LogicalResult tileShortRows(RewriterBase &rewriter, linalg::LinalgOp op,
                              const ElementwiseLoops &roles) {
    if (isa<FunctionOpInterface>(op->getParentOp()) || op.getNumLoops() == 1)
      return success();
    SmallVector<int64_t> sizes(op.getNumLoops(), 1);
    sizes[roles.vector] = 0;
    SmallVector<LoopLikeOpInterface> loops;
    return tile(rewriter, op, sizes, scf::SCFTilingOptions::LoopType::ForOp,
                loops);
  }

  LogicalResult tileOne(RewriterBase &rewriter, linalg::LinalgOp op,
                        const ElementwiseLoops &roles) {
    using LoopType = scf::SCFTilingOptions::LoopType;
    SmallVector<int64_t> ranges = op.getStaticLoopRanges();
    int64_t lanes = getLanes(op, ranges[roles.vector]);
    auto isShort = [&](unsigned loop) {
      return !ShapedType::isDynamic(ranges[loop]) && ranges[loop] < lanes;
    };
    if (isShort(roles.vector)) {
      reportChoice(op, DEBUG_TYPE,
                   llvm::formatv("rows of {0} elements, one at a time",
                                 ranges[roles.vector]));
      return tileShortRows(rewriter, op, roles);
    }
    std::optional<unsigned> transposed = roles.transposed;
    if (transposed && isShort(*transposed))
      transposed = std::nullopt;
    SmallVector<LoopLikeOpInterface> loops;
    SmallVector<int64_t> rows(op.getNumLoops(), 1);
    rows[roles.vector] = !roles.reductions.empty() ? kColumnsPerTask
                         : op.getNumLoops() == 1   ? kElementsPerTask
                                                   : 0;
    if (transposed)
      rows[*transposed] = kTransposedRows;
    for (unsigned loop : roles.reductions)
      rows[loop] = 0;
    // The accumulators of few columns stay in registers.
    bool isInRegisters = !roles.reductions.empty() &&
                         !ShapedType::isDynamic(ranges[roles.vector]) &&
                         ranges[roles.vector] <= kMaxVectors * lanes &&
                         ranges[roles.vector] % lanes == 0;
    bool isPhase = isa<FunctionOpInterface>(op->getParentOp());
    reportChoice(
        op, DEBUG_TYPE,
        llvm::formatv("vectors of {0} elements{1}{2}{3}", lanes,
                      roles.reductions.empty() ? "" : ", summed by column",
                      isInRegisters ? " in registers" : "",
                      transposed ? ", squares are transposed" : ""));
    if (isInRegisters && !isPhase) {
      if (fuseInput(rewriter, op, roles))
        return success();
      rows[roles.vector] = 0;
    }
    auto tileBy = [&](ArrayRef<int64_t> sizes, LoopType type) -> LogicalResult {
      if (llvm::all_of(sizes, [](int64_t size) { return size == 0; }))
        return success();
      FailureOr<linalg::LinalgOp> inner =
          tile(rewriter, op, sizes, type, loops);
      if (succeeded(inner))
        op = *inner;
      return inner;
    };
    if (failed(tileBy(rows, isPhase ? LoopType::ForallOp : LoopType::ForOp)))
      return failure();
    SmallVector<int64_t> sums(op.getNumLoops(), 0);
    for (unsigned loop : roles.reductions)
      sums[loop] = 1;
    if (failed(tileBy(sums, LoopType::ForOp)))
      return failure();
    if (isInRegisters)
      return success();
    SmallVector<int64_t> vectors(op.getNumLoops(), 0);
    if (transposed) {
      // Square tiles that fit in the registers.
      Type element = getElementTypeOrSelf(op.getDpsInits().front());
      lanes = std::min<int64_t>(
          lanes,
          vectorBytes * 8 / std::max(element.getIntOrFloatBitWidth(), 32u));
      vectors[*transposed] = lanes;
    }
    vectors[roles.vector] = lanes;
    if (failed(tileBy(vectors, LoopType::ForOp)))
      return failure();
    for (LoopLikeOpInterface loop : loops)
      peel(rewriter, loop);
    return success();
  }

  /// Tiles an operation that reads rows of tables to single rows.
  static void tileRowReads(RewriterBase &rewriter, linalg::LinalgOp op) {
    unsigned vector = *getRowReadLoop(op);
    SmallVector<int64_t> sizes(op.getNumLoops(), 1);
    sizes[vector] = 0;
    reportChoice(op, DEBUG_TYPE, "reads rows of tables as vectors");
    SmallVector<LoopLikeOpInterface> loops;
    FailureOr<linalg::LinalgOp> row = tile(
        rewriter, op, sizes, scf::SCFTilingOptions::LoopType::ForallOp, loops);
    if (succeeded(row))
      readRowsAsInputs(rewriter, cast<linalg::GenericOp>(row->getOperation()),
                       vector);
  }

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<linalg::LinalgOp> readers;
    for (auto op : getOperation().getFunctionBody().getOps<linalg::LinalgOp>())
      if (getRowReadLoop(op) && !op->use_empty())
        readers.push_back(op);
    for (linalg::LinalgOp op : readers)
      tileRowReads(rewriter, op);
    SmallVector<std::pair<linalg::LinalgOp, ElementwiseLoops>> operations;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if ((isTiledElementwise(op) && !isRegisterTile(op)) ||
          isTiledColumnReduction(op))
        operations.push_back({op, *getLoops(op)});
    });
    // Visits reductions first, since they may fuse their producers.
    for (bool areReductions : {true, false})
      for (auto &[op, loops] : operations) {
        if (loops.reductions.empty() == areReductions || op->use_empty())
          continue;
        if (areReductions)
          updateKernelConfig(getOperation(), &KernelConfig::tasksBy,
                             TasksBy::All);
        if (failed(tileOne(rewriter, op, loops)))
          return signalPassFailure();
      }
  }

private:
  /// Elements of a one-dimensional operation per task.
  static constexpr int64_t kElementsPerTask = 4096;
  /// Columns of a column reduction per task: long enough that the rows of the
  /// block are read in order.
  static constexpr int64_t kColumnsPerTask = 2048;
  /// Maximum number of accumulator vectors that the loop over the rows of a
  /// column reduction carries.
  static constexpr int64_t kMaxVectors = 8;
  /// Rows of a transposed result per task, so that a task reads whole cache
  /// lines of the input.
  static constexpr int64_t kTransposedRows = 64;
};
} // namespace
