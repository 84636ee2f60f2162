//===- TileReductions.cpp - tiling of row reductions ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row is reduced to N partial results, each over every N-th element, which
// are combined at the end. N follows from the operation alone (64 for long rows
// of f32, 16 for short ones), not from the target's vector width, so the result
// is rounded in the same way on every target.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/IR/Remarks.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCTILEREDUCTIONSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-tile-reductions"

/// Bytes of the partial results of a long row, which the loop carries in
/// registers. Several registers are needed because consecutive additions to one
/// register wait for each other.
static constexpr int64_t kPartialBytes = 256;
/// Number of partial results of a short row.
static constexpr int64_t kFewPartialResults = 16;

/// Returns the number of partial results of a row of `range` elements. It
/// changes the rounding, so it depends on the operation only.
static int64_t getNumPartialResults(linalg::LinalgOp op, int64_t range) {
  int64_t bytes = 0;
  for (Value init : op.getDpsInits())
    bytes += getElementTypeOrSelf(init.getType()).getIntOrFloatBitWidth() / 8;
  int64_t results = std::max<int64_t>(
      llvm::bit_floor<uint64_t>(kPartialBytes / bytes), kFewPartialResults);
  bool isLong = ShapedType::isDynamic(range) || range >= 4 * results;
  return isLong ? results : kFewPartialResults;
}

/// Whether the loop indexes the last dimension of every input that depends on
/// it, and at least one does.
static bool isAlongRows(linalg::LinalgOp op, unsigned loop) {
  bool result = false;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (!map.isFunctionOfDim(loop))
      continue;
    if (map.getResults().back() != getAffineDimExpr(loop, op->getContext()))
      return false;
    result = true;
  }
  return result;
}

/// Whether each dimension of the operands is indexed by one loop or, as the
/// input of a convolution, by an expression of parallel loops. Tiles have one
/// iteration of the latter.
static bool hasRows(linalg::LinalgOp op) {
  auto isParallel = [&](AffineExpr expr) {
    for (auto [loop, type] : llvm::enumerate(op.getIteratorTypesArray()))
      if (type == utils::IteratorType::reduction && expr.isFunctionOfDim(loop))
        return false;
    return true;
  };
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    return map.isProjectedPermutation() ||
           (op.isDpsInput(&operand) &&
            llvm::all_of(map.getResults(), [&](AffineExpr expr) {
              return isa<AffineDimExpr>(expr) || isParallel(expr);
            }));
  });
}

/// Returns the reduction loop that runs along the rows of the inputs, or
/// nullopt. The results must be f32 or f64, each with one combiner that has a
/// neutral element. Other reduction loops may surround the returned one.
static std::optional<unsigned> getReductionLoop(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumReductionLoops() == 0 ||
      op.getNumParallelLoops() + op.getNumReductionLoops() !=
          op.getNumLoops() ||
      llvm::is_contained(op.getStaticLoopRanges(), 0) ||
      !isa<PartialReductionOpInterface>(op.getOperation()) || !hasRows(op) ||
      !computesVectors(op))
    return std::nullopt;
  SmallVector<unsigned> loops;
  op.getReductionDims(loops);
  auto *loop = llvm::find_if(
      loops, [&](unsigned each) { return isAlongRows(op, each); });
  if (loop == loops.end())
    return std::nullopt;
  // Shorter rows gain nothing from partial results.
  int64_t range = op.getStaticLoopRanges()[*loop];
  if (!ShapedType::isDynamic(range) && range < 2 * kFewPartialResults)
    return std::nullopt;
  for (auto [number, init] : llvm::enumerate(op.getDpsInits())) {
    Type type = getElementTypeOrSelf(init.getType());
    SmallVector<Operation *> combiners;
    if (!(type.isF32() || type.isF64()) ||
        !matchReduction(op.getRegionOutputArgs(), number, combiners) ||
        combiners.size() != 1 ||
        !arith::getNeutralElement(combiners.front()).has_value())
      return std::nullopt;
  }
  return *loop;
}

bool mlir::posenc::isTiledReduction(linalg::LinalgOp op) {
  return getReductionLoop(op).has_value();
}

namespace {
struct TileReductions final
    : mlir::posenc::impl::PosencTileReductionsPassBase<TileReductions> {
  using Base::Base;

  /// Tiles the loops of one kind, except loop `except`, to single iterations.
  static FailureOr<linalg::LinalgOp> tileToOnes(RewriterBase &rewriter,
                                                linalg::LinalgOp op,
                                                utils::IteratorType kind,
                                                unsigned except) {
    SmallVector<int64_t> sizes = llvm::map_to_vector(
        op.getIteratorTypesArray(),
        [&](utils::IteratorType type) -> int64_t { return type == kind; });
    sizes[except] = 0;
    if (llvm::all_of(sizes, [](int64_t size) { return size == 0; }))
      return op;
    bool isPhase = kind == utils::IteratorType::parallel &&
                   isa<FunctionOpInterface>(op->getParentOp());
    scf::SCFTilingOptions options;
    options.setTileSizes(getAsIndexOpFoldResult(op->getContext(), sizes));
    options.setLoopType(isPhase ? scf::SCFTilingOptions::LoopType::ForallOp
                                : scf::SCFTilingOptions::LoopType::ForOp);
    rewriter.setInsertionPoint(op);
    FailureOr<scf::SCFTilingResult> tiled = scf::tileUsingSCF(
        rewriter, cast<TilingInterface>(op.getOperation()), options);
    if (failed(tiled))
      return failure();
    rewriter.replaceOp(op, tiled->replacements);
    return cast<linalg::LinalgOp>(tiled->tiledOps.front());
  }

  LogicalResult tileOne(RewriterBase &rewriter, linalg::LinalgOp op,
                        unsigned loop) {
    MLIRContext *context = op->getContext();
    // Tiles to one row at a time: the partial results of several rows would be
    // in memory instead of registers.
    for (auto kind :
         {utils::IteratorType::parallel, utils::IteratorType::reduction}) {
      FailureOr<linalg::LinalgOp> tiled =
          tileToOnes(rewriter, op, kind, /*except=*/loop);
      if (failed(tiled))
        return failure();
      op = *tiled;
    }
    SmallVector<int64_t> sizes(op.getNumLoops(), 0);
    sizes[loop] = getNumPartialResults(op, op.getStaticLoopRanges()[loop]);
    reportChoice(op, DEBUG_TYPE,
                 llvm::formatv("{0} partial results per row", sizes[loop]));
    rewriter.setInsertionPoint(op);
    FailureOr<scf::SCFTilingResult> parts = scf::tileReductionUsingScf(
        rewriter, cast<PartialReductionOpInterface>(op.getOperation()),
        getAsIndexOpFoldResult(context, sizes));
    if (failed(parts))
      return failure();
    rewriter.replaceOp(op, parts->replacements);
    auto main = cast<scf::ForOp>(parts->loops.back());
    // Upstream leaves indices as those within the tile.
    for (Operation *tiled : parts->tiledOps) {
      auto part = dyn_cast<linalg::LinalgOp>(tiled);
      if (!part || !part.hasIndexSemantics())
        continue;
      SmallVector<OpFoldResult> offsets(part.getNumLoops());
      offsets[loop] = main.getInductionVar();
      linalg::offsetIndices(rewriter, part, offsets);
    }
    scf::ForOp rest;
    if (failed(scf::peelForLoopAndSimplifyBounds(rewriter, main, rest)))
      return success();
    return tileRest(rewriter, rest, loop);
  }

  /// Tiles the remainder of a row by 16 if its size is dynamic. The elements
  /// after the last full tile are reduced one by one.
  LogicalResult tileRest(RewriterBase &rewriter, scf::ForOp rest,
                         unsigned loop) {
    SmallVector<linalg::LinalgOp> operations(rest.getOps<linalg::LinalgOp>());
    for (linalg::LinalgOp op : operations) {
      if (!ShapedType::isDynamic(op.getStaticLoopRanges()[loop]))
        continue;
      SmallVector<int64_t> sizes(op.getNumLoops(), 0);
      sizes[loop] = kFewPartialResults;
      scf::SCFTilingOptions options;
      options.setTileSizes(getAsIndexOpFoldResult(op->getContext(), sizes));
      rewriter.setInsertionPoint(op);
      FailureOr<scf::SCFTilingResult> tiled = scf::tileUsingSCF(
          rewriter, cast<TilingInterface>(op.getOperation()), options);
      if (failed(tiled))
        return failure();
      rewriter.replaceOp(op, tiled->replacements);
      scf::ForOp last;
      (void)scf::peelForLoopAndSimplifyBounds(
          rewriter, cast<scf::ForOp>(tiled->loops.back()), last);
    }
    return success();
  }

  void runOnOperation() override {
    SmallVector<std::pair<linalg::LinalgOp, unsigned>> operations;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (std::optional<unsigned> loop = getReductionLoop(op))
        operations.push_back({op, *loop});
    });
    IRRewriter rewriter(&getContext());
    if (!operations.empty())
      updateKernelConfig(getOperation(), &KernelConfig::tasksBy, TasksBy::All);
    for (auto [op, loop] : operations)
      if (failed(tileOne(rewriter, op, loop)))
        return signalPassFailure();
  }
};
} // namespace
