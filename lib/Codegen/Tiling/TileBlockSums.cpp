//===- TileBlockSums.cpp - tiling of sums of scaled sums ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product with a matrix of codes is a sum over blocks of scaled sums over the
// elements of a block. Both sums are tiled together, so the inner ones are in
// registers:
//
//   forall panels
//     for register tiles of rows
//       for blocks
//         for elements of the block: add to rows x columns     (registers)
//         scale them, and add to the result                          (L1)
//
// Each element of the matrix is read once for the rows of a tile. Sums have the
// same order for all tile sizes.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/IR/Remarks.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCTILEBLOCKSUMSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-tile-block-sums"

namespace {
/// A sum whose operand is a sum that nobody else reads.
struct BlockSums {
  linalg::GenericOp outer, inner;
  /// Loops of `outer`: the first and the last dimension of the result, and the
  /// reduction.
  unsigned rows, columns, blocks;
  /// The reduction loop of `inner`.
  unsigned elements;
};
} // namespace

/// Returns the only reduction loop of an operation that computes f32 sums of
/// columns: the last dimension of the result is that of all inputs that depend
/// on it.
static std::optional<unsigned> getColumnSum(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op->getNumResults() != 1 ||
      op.getNumReductionLoops() != 1 || op.getNumParallelLoops() < 2 ||
      op.getNumParallelLoops() + 1 != op.getNumLoops() ||
      llvm::is_contained(op.getStaticLoopRanges(), 0) ||
      !getElementTypeOrSelf(op.getResult(0)).isF32() || !computesVectors(op) ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(); }))
    return std::nullopt;
  AffineMap result = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (result.getNumResults() != op.getNumParallelLoops())
    return std::nullopt;
  AffineExpr last = result.getResults().back();
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (map.isFunctionOfDim(cast<AffineDimExpr>(last).getPosition()) &&
        map.getResults().back() != last)
      return std::nullopt;
  }
  SmallVector<unsigned> loops;
  op.getReductionDims(loops);
  return loops.front();
}

static std::optional<BlockSums> getBlockSums(linalg::GenericOp outer) {
  std::optional<unsigned> blocks = getColumnSum(outer);
  if (!blocks || !isa<FunctionOpInterface>(outer->getParentOp()))
    return std::nullopt;
  AffineMap result = outer.getMatchingIndexingMap(outer.getDpsInitOperand(0));
  for (OpOperand *input : outer.getDpsInputOperands()) {
    auto inner = input->get().getDefiningOp<linalg::GenericOp>();
    AffineMap map = outer.getMatchingIndexingMap(input);
    if (!inner || !inner->hasOneUse() || !map.isFunctionOfDim(*blocks) ||
        map.getNumResults() != outer.getNumLoops() ||
        inner->getBlock() != outer->getBlock())
      continue;
    if (std::optional<unsigned> elements = getColumnSum(inner))
      return BlockSums{outer,
                       inner,
                       result.getDimPosition(0),
                       result.getDimPosition(result.getNumResults() - 1),
                       *blocks,
                       *elements};
  }
  return std::nullopt;
}

namespace {
struct TileBlockSums final
    : mlir::posenc::impl::PosencTileBlockSumsPassBase<TileBlockSums> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<BlockSums> all;
    int64_t lanes = vectorBytes / 4;
    getOperation()->walk([&](linalg::GenericOp op) {
      std::optional<BlockSums> sums = getBlockSums(op);
      if (sums && op.getStaticLoopRanges()[sums->columns] % lanes == 0)
        all.push_back(*sums);
    });
    IRRewriter rewriter(&getContext());
    if (!all.empty())
      updateKernelConfig(getOperation(), &KernelConfig::tasksBy, TasksBy::All);
    for (BlockSums &sums : all)
      if (failed(tileOne(rewriter, sums)))
        return signalPassFailure();
  }

private:
  LogicalResult tileOne(RewriterBase &rewriter, BlockSums sums);
  LogicalResult tileRows(RewriterBase &rewriter, BlockSums sums);

  /// Vectors of columns of a register tile.
  static constexpr int64_t kVectors = 4;
};
} // namespace

/// Tiles the outer sum, and the inner one inside. Returns the loops.
static FailureOr<SmallVector<LoopLikeOpInterface>>
tile(RewriterBase &rewriter, BlockSums &sums, ArrayRef<int64_t> sizes,
     scf::SCFTilingOptions::LoopType loopType) {
  scf::SCFTileAndFuseOptions options;
  options.tilingOptions.setTileSizes(
      getAsIndexOpFoldResult(rewriter.getContext(), sizes));
  options.tilingOptions.setLoopType(loopType);
  bool isSum = sizes[sums.blocks] != 0;
  options.setFusionControlFn(
      [&](tensor::ExtractSliceOp, OpResult producer, bool isDestination)
          -> std::optional<scf::SCFTileAndFuseOptions::ControlFnResult> {
        // A sum starts before its loop.
        bool isFused = producer.getOwner() == sums.inner ||
                       (isa<linalg::FillOp>(producer.getOwner()) &&
                        !(isSum && isDestination));
        if (!isFused)
          return std::nullopt;
        return scf::SCFTileAndFuseOptions::ControlFnResult{false};
      });
  rewriter.setInsertionPoint(sums.outer);
  FailureOr<scf::SCFTileAndFuseResult> tiled =
      scf::tileConsumerAndFuseProducersUsingSCF(
          rewriter, cast<TilingInterface>(sums.outer.getOperation()), options);
  if (failed(tiled))
    return sums.outer.emitOpError("cannot be tiled");
  rewriter.replaceOp(sums.outer,
                     tiled->replacements.lookup(sums.outer->getResult(0)));
  if (sums.inner->use_empty())
    rewriter.eraseOp(sums.inner);
  for (Operation *op : tiled->tiledAndFusedOps) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic)
      continue;
    if (generic.getNumLoops() == sizes.size())
      sums.outer = generic;
    else
      sums.inner = generic;
  }
  return llvm::to_vector(tiled->loops);
}

/// Tiles sums over the rows of a register tile.
LogicalResult TileBlockSums::tileRows(RewriterBase &rewriter, BlockSums sums) {
  SmallVector<int64_t> sizes(sums.outer.getNumLoops(), 0);
  sizes[sums.blocks] = 1;
  if (failed(
          tile(rewriter, sums, sizes, scf::SCFTilingOptions::LoopType::ForOp)))
    return failure();
  sizes.assign(sums.inner.getNumLoops(), 0);
  sizes[sums.elements] = 1;
  scf::SCFTilingOptions options;
  options.setTileSizes(getAsIndexOpFoldResult(rewriter.getContext(), sizes));
  rewriter.setInsertionPoint(sums.inner);
  FailureOr<scf::SCFTilingResult> tiled = scf::tileUsingSCF(
      rewriter, cast<TilingInterface>(sums.inner.getOperation()), options);
  if (failed(tiled))
    return sums.inner.emitOpError("cannot be tiled");
  rewriter.replaceOp(sums.inner, tiled->replacements);
  return success();
}

LogicalResult TileBlockSums::tileOne(RewriterBase &rewriter, BlockSums sums) {
  using LoopType = scf::SCFTilingOptions::LoopType;
  SmallVector<int64_t> ranges = sums.outer.getStaticLoopRanges();
  // Accumulators take 20 of the 32 registers of AVX-512, and 8 of 16.
  int64_t maxRows = vectorBytes >= 64 ? 5 : 2;
  int64_t columns = kVectors * vectorBytes / 4;
  while (ranges[sums.columns] % columns != 0)
    columns /= 2;
  reportChoice(sums.outer, DEBUG_TYPE,
               llvm::formatv("register tiles of {0} x {1}", maxRows, columns));
  SmallVector<int64_t> sizes(ranges.size(), 1);
  sizes[sums.rows] = sizes[sums.blocks] = 0;
  sizes[sums.columns] = columns;
  if (failed(tile(rewriter, sums, sizes, LoopType::ForallOp)))
    return failure();
  int64_t rows = ranges[sums.rows];
  if (!ShapedType::isDynamic(rows) && rows <= maxRows)
    return tileRows(rewriter, sums);
  sizes.assign(ranges.size(), 0);
  sizes[sums.rows] = maxRows;
  FailureOr<SmallVector<LoopLikeOpInterface>> loops =
      tile(rewriter, sums, sizes, LoopType::ForOp);
  if (failed(loops))
    return failure();
  auto main = cast<scf::ForOp>(loops->front().getOperation());
  scf::ForOp rest;
  if (succeeded(scf::peelForLoopAndSimplifyBounds(rewriter, main, rest))) {
    // The last rows, one at a time.
    BlockSums last = sums;
    for (auto op : rest.getOps<linalg::GenericOp>())
      (op.getNumLoops() == sizes.size() ? last.outer : last.inner) = op;
    sizes[sums.rows] = 1;
    if (failed(tile(rewriter, last, sizes, LoopType::ForOp)) ||
        failed(tileRows(rewriter, last)))
      return failure();
  }
  return tileRows(rewriter, sums);
}
