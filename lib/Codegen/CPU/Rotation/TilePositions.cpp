//===- TilePositions.cpp - tiling of positional operations ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionBlock.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"
#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCTILEPOSITIONSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Whether an operand has a static size of 0. Upstream's slices of it would be
/// out of bounds.
static bool hasEmptyOperand(Operation *op) {
  return llvm::any_of(op->getOperandTypes(), [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && llvm::is_contained(tensor.getShape(), 0);
  });
}

namespace {
struct TilePositions final
    : mlir::posenc::impl::PosencTilePositionsPassBase<TilePositions> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<PositionalOpInterface> operations;
    getOperation()->walk([&](PositionalOpInterface op) {
      // Operations with a single position are not tiled.
      if (op->getNumResults() > 0 && op.getNumLoops() > 0 &&
          !op->getParentOfType<scf::ForallOp>() && !hasEmptyOperand(op))
        operations.push_back(op);
    });
    Tuning tuning;
#define POSENC_TUNING(MEMBER, ...) tuning.MEMBER = MEMBER;
#include "posenc/TargetInfo/Tuning.def"
    IRRewriter rewriter(&getContext());
    for (PositionalOpInterface op : operations) {
      if (failed(checkPositionsPerBlock(op, tuning)))
        return signalPassFailure();
      scf::SCFTileAndFuseOptions options;
      options.tilingOptions.setLoopType(
          scf::SCFTilingOptions::LoopType::ForallOp);
      SmallVector<OpFoldResult> sizes(op.getNumLoops(),
                                      rewriter.getIndexAttr(1));
      // Fusing an operation on intermediate tensors would need buffers of a
      // static size.
      bool isGiven = llvm::none_of(op->getOperands(), [](Value operand) {
        return operand.getDefiningOp<linalg::LinalgOp>();
      });
      if (isGiven)
        sizes.back() = rewriter.getIndexAttr(getPositionsPerTile(op, tuning));
      options.tilingOptions.setTileSizes(sizes);
      // Fuses the computation of positions, which then needs no memory.
      options.setFusionControlFn(
          [](tensor::ExtractSliceOp, OpResult producer, bool)
              -> std::optional<scf::SCFTileAndFuseOptions::ControlFnResult> {
            auto generic = dyn_cast<linalg::GenericOp>(producer.getOwner());
            if (!generic || !linalg::isElementwise(generic) ||
                readsInPlaceInput(generic))
              return std::nullopt;
            return scf::SCFTileAndFuseOptions::ControlFnResult{};
          });
      rewriter.setInsertionPoint(op);
      FailureOr<scf::SCFTileAndFuseResult> tiled =
          scf::tileConsumerAndFuseProducersUsingSCF(
              rewriter, cast<TilingInterface>(op.getOperation()), options);
      if (failed(tiled)) {
        op->emitOpError("cannot be tiled");
        return signalPassFailure();
      }
      for (OpResult result : op->getResults())
        rewriter.replaceAllUsesWith(result, tiled->replacements[result]);
      rewriter.eraseOp(op);
    }
  }
};
} // namespace
