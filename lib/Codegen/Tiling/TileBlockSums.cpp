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
//         scale them, and add to the sums of the rows          (registers)
//
// Each element of the matrix is read, and unpacked, once for the rows of a
// tile. Sums have the same order for all tile sizes. A row of a register tile
// is one vector of columns; the bodies of both operations are cloned for each.
//
//===----------------------------------------------------------------------===//

#include "BlockSums.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/IR/Remarks.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCTILEBLOCKSUMSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-tile-block-sums"

/// Returns the only reduction loop of an operation that computes sums of
/// columns in 32 bits: the last dimension of the result is that of all inputs
/// that depend on it.
static std::optional<unsigned> getColumnSum(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op->getNumResults() != 1 ||
      op.getNumReductionLoops() != 1 || op.getNumParallelLoops() < 2 ||
      op.getNumParallelLoops() + 1 != op.getNumLoops() ||
      llvm::is_contained(op.getStaticLoopRanges(), 0) ||
      getElementTypeOrSelf(op.getResult(0)).getIntOrFloatBitWidth() != 32 ||
      !computesVectors(op) || op.hasIndexSemantics() ||
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

/// Tiles the outer sum to a scf.forall, and the inner one inside.
static LogicalResult tile(RewriterBase &rewriter, BlockSums &sums,
                          ArrayRef<int64_t> sizes) {
  scf::SCFTileAndFuseOptions options;
  options.tilingOptions.setTileSizes(
      getAsIndexOpFoldResult(rewriter.getContext(), sizes));
  options.tilingOptions.setLoopType(scf::SCFTilingOptions::LoopType::ForallOp);
  options.setFusionControlFn(
      [&](tensor::ExtractSliceOp, OpResult producer,
          bool) -> std::optional<scf::SCFTileAndFuseOptions::ControlFnResult> {
        if (producer.getOwner() != sums.inner &&
            !isa<linalg::FillOp>(producer.getOwner()))
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
  return success();
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

  /// Vectors of columns of a register tile.
  static constexpr int64_t kVectors = 4;
  /// Rows that share the cost of unpacked codes at least.
  static constexpr int64_t kMinBlockRows = 36;
};
} // namespace

/// Returns the bytes of a row of the operands of `inner` that depend on rows.
static int64_t getRowBytes(const BlockSums &sums) {
  linalg::GenericOp inner = sums.inner;
  AffineMap result = inner.getMatchingIndexingMap(inner.getDpsInitOperand(0));
  int64_t bytes = 0;
  for (OpOperand *input : inner.getDpsInputOperands()) {
    AffineMap map = inner.getMatchingIndexingMap(input);
    auto type = dyn_cast<RankedTensorType>(input->get().getType());
    if (!type || !map.isFunctionOfDim(result.getDimPosition(0)))
      continue;
    int64_t elements = 1;
    for (int64_t size : type.getShape().drop_front())
      elements *= ShapedType::isDynamic(size) ? 1 : size;
    bytes += elements * type.getElementTypeBitWidth() / 8;
  }
  return bytes;
}

/// Returns decreasing numbers of rows of register tiles: `maxRows`, powers of
/// two, and 3, which is faster than 2 and 1.
static SmallVector<int64_t> getTileRows(int64_t maxRows) {
  SmallVector<int64_t> result;
  for (int64_t rows = maxRows; rows > 0; --rows)
    if (rows == maxRows || rows == 3 || llvm::isPowerOf2_64(rows))
      result.push_back(rows);
  return result;
}

LogicalResult TileBlockSums::tileOne(RewriterBase &rewriter, BlockSums sums) {
  SmallVector<int64_t> ranges = sums.outer.getStaticLoopRanges();
  int64_t columns = kVectors * vectorBytes / 4;
  while (ranges[sums.columns] % columns != 0)
    columns /= 2;
  bool isInteger = getElementTypeOrSelf(sums.inner.getResult(0)).isInteger();
  BlockSumTiles tiles;
  // A code becomes several instructions for floats, whose constants are in
  // registers, too.
  tiles.rows = getTileRows(vectorBytes < 64 ? 2
                           : isInteger      ? codeTileRows
                                            : codeUnpackingRows);
  tiles.unpackedRows = getTileRows(codeTileRows);
  // With vectors of 32 bytes, there are 16 registers.
  int64_t vectors = vectorBytes == 32 ? 2 : codeTileVectors;
  tiles.unpackedColumns = std::min<int64_t>(columns, vectors * vectorBytes / 4);
  tiles.minUnpackedRows = isInteger ? codeDotBufferRows : codeBufferRows;
  tiles.bufferBytes = codeBufferBytes;
  int64_t blockRows =
      llvm::divideCeil(codeRowBytes, std::max<int64_t>(getRowBytes(sums), 1));
  blockRows = llvm::alignTo(std::max<int64_t>(blockRows, kMinBlockRows),
                            2 * codeTileRows);
  reportChoice(sums.outer, DEBUG_TYPE,
               llvm::formatv("register tiles of {0} x {1}, of {2} x {3} with "
                             "unpacked codes for {4} rows and more",
                             tiles.rows.front(), columns,
                             tiles.unpackedRows.front(), tiles.unpackedColumns,
                             tiles.minUnpackedRows));
  SmallVector<int64_t> sizes(ranges.size(), 1);
  sizes[sums.rows] = sizes[sums.blocks] = 0;
  if (ShapedType::isDynamic(ranges[sums.rows]) || ranges[sums.rows] > blockRows)
    sizes[sums.rows] = blockRows;
  sizes[sums.columns] = columns;
  if (failed(tile(rewriter, sums, sizes)))
    return failure();
  emitRegisterTiles(rewriter, sums, tiles);
  return success();
}
