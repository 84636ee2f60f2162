//===- TileElementwise.cpp - loops over vectors of elements -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operation that computes every element on its own becomes a loop over rows
// and, in each, one over as many elements as a vector has. What is left at the
// end of a row stays an operation of its own.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"

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

/// The loop whose elements lie next to each other in all results, if the
/// operation can be tiled here.
static std::optional<unsigned> getVectorLoop(linalg::LinalgOp op) {
  // Of loops that never run, slices would lie outside of their tensors. Copies
  // may vanish yet, and are of vectors in any case.
  if (isa<linalg::CopyOp>(op) || !op.hasPureTensorSemantics() ||
      op.getNumLoops() == 0 ||
      llvm::is_contained(op.getStaticLoopRanges(), 0) ||
      op.getNumParallelLoops() != op.getNumLoops() || op.getNumDpsInits() == 0)
    return std::nullopt;
  if (!llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(); }))
    return std::nullopt;
  if (!computesVectors(op))
    return std::nullopt;
  std::optional<unsigned> loop;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    if (!map.isPermutation())
      return std::nullopt;
    unsigned last = map.getDimPosition(map.getNumResults() - 1);
    if (loop && loop != last)
      return std::nullopt;
    loop = last;
  }
  return loop;
}

bool mlir::posenc::isTiledElementwise(linalg::LinalgOp op) {
  return getVectorLoop(op).has_value();
}

/// Tiles by these sizes; 0 is no loop. Returns the operation within the loops.
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

  LogicalResult tileOne(RewriterBase &rewriter, linalg::LinalgOp op,
                        unsigned vectorLoop) {
    using LoopType = scf::SCFTilingOptions::LoopType;
    int64_t lanes = vectorBytes / 4;
    SmallVector<int64_t> ranges = op.getStaticLoopRanges();
    // A row of fewer elements than a vector.
    if (!ShapedType::isDynamic(ranges[vectorLoop]) &&
        ranges[vectorLoop] < lanes)
      return success();
    SmallVector<LoopLikeOpInterface> loops;
    SmallVector<int64_t> rows(op.getNumLoops(), 1);
    rows[vectorLoop] = op.getNumLoops() == 1 ? kElementsPerTask : 0;
    bool isPhase = isa<FunctionOpInterface>(op->getParentOp());
    if (isPhase || op.getNumLoops() > 1) {
      FailureOr<linalg::LinalgOp> inner =
          tile(rewriter, op, rows,
               isPhase ? LoopType::ForallOp : LoopType::ForOp, loops);
      if (failed(inner))
        return failure();
      op = *inner;
    }
    SmallVector<int64_t> vectors(op.getNumLoops(), 0);
    vectors[vectorLoop] = lanes;
    if (failed(tile(rewriter, op, vectors, LoopType::ForOp, loops)))
      return failure();
    scf::ForOp partial;
    // Nothing is left of sizes that the vectors divide.
    (void)scf::peelForLoopAndSimplifyBounds(
        rewriter, cast<scf::ForOp>(loops.back()), partial);
    return success();
  }

  void runOnOperation() override {
    SmallVector<std::pair<linalg::LinalgOp, unsigned>> operations;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (std::optional<unsigned> loop = getVectorLoop(op))
        operations.push_back({op, *loop});
    });
    IRRewriter rewriter(&getContext());
    for (auto [op, loop] : operations)
      if (failed(tileOne(rewriter, op, loop)))
        return signalPassFailure();
  }

private:
  /// Elements of a tensor of one dimension that a task takes.
  static constexpr int64_t kElementsPerTask = 4096;
};
} // namespace
