//===- TileReductions.cpp - reductions of rows by vectors -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sum of a row is the sum of 16 partial sums, of every sixteenth element
// each, whatever the target is: with vectors of another width it would round
// otherwise.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"

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

/// Bytes of the partial results of a row, which are registers that a loop
/// carries: additions to one of them would wait for each other.
static constexpr int64_t kPartialBytes = 256;
/// The partial results of a row that is too short for these.
static constexpr int64_t kFewPartialResults = 16;

/// How many elements of a row are added at a time. The result depends on it,
/// so it follows from the operation alone.
static int64_t getNumPartialResults(linalg::LinalgOp op, int64_t range) {
  int64_t bytes = 0;
  for (Value init : op.getDpsInits())
    bytes += getElementTypeOrSelf(init.getType()).getIntOrFloatBitWidth() / 8;
  int64_t results = std::max<int64_t>(
      llvm::bit_floor<uint64_t>(kPartialBytes / bytes), kFewPartialResults);
  bool isLong = ShapedType::isDynamic(range) || range >= 4 * results;
  return isLong ? results : kFewPartialResults;
}

/// Whether the loop runs along rows of inputs, and all inputs that it reads.
static bool isAlongRows(linalg::LinalgOp op, unsigned loop) {
  bool result = false;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (!map.isFunctionOfDim(loop))
      continue;
    if (map.getDimPosition(map.getNumResults() - 1) != loop)
      return false;
    result = true;
  }
  return result;
}

/// The loop of a reduction that runs along rows of an input, if the results are
/// floats that are added, multiplied or compared. There may be other loops of
/// the reduction around it.
static std::optional<unsigned> getReductionLoop(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumReductionLoops() == 0 ||
      op.getNumParallelLoops() + op.getNumReductionLoops() !=
          op.getNumLoops() ||
      llvm::is_contained(op.getStaticLoopRanges(), 0) ||
      !isa<PartialReductionOpInterface>(op.getOperation()) ||
      !llvm::all_of(
          op.getIndexingMapsArray(),
          [](AffineMap map) { return map.isProjectedPermutation(); }) ||
      !computesVectors(op))
    return std::nullopt;
  SmallVector<unsigned> loops;
  op.getReductionDims(loops);
  auto *loop = llvm::find_if(
      loops, [&](unsigned each) { return isAlongRows(op, each); });
  if (loop == loops.end())
    return std::nullopt;
  // Partial results of fewer elements gain nothing.
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

  /// Tiles loops of one kind, but for `except`, to single iterations.
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
    // One row at a time: the partial results of all would be in memory.
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
    rewriter.setInsertionPoint(op);
    FailureOr<scf::SCFTilingResult> parts = scf::tileReductionUsingScf(
        rewriter, cast<PartialReductionOpInterface>(op.getOperation()),
        getAsIndexOpFoldResult(context, sizes));
    if (failed(parts))
      return failure();
    rewriter.replaceOp(op, parts->replacements);
    auto main = cast<scf::ForOp>(parts->loops.back());
    scf::ForOp rest;
    if (failed(scf::peelForLoopAndSimplifyBounds(rewriter, main, rest)))
      return success();
    return tileRest(rewriter, rest, loop);
  }

  /// Tiles what is left of a row, if its size is unknown. The last elements are
  /// computed one by one.
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
      getOperation()->setAttr(kByAllAttrName, rewriter.getUnitAttr());
    for (auto [op, loop] : operations)
      if (failed(tileOne(rewriter, op, loop)))
        return signalPassFailure();
  }
};
} // namespace
