//===- TilePositions.cpp - one position an iteration ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
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

namespace {
struct TilePositions final
    : mlir::posenc::impl::PosencTilePositionsPassBase<TilePositions> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<PositionalOpInterface> operations;
    getOperation()->walk([&](PositionalOpInterface op) {
      // A position at a time is what the pass would make of it.
      if (op->getNumResults() > 0 && op.getNumLoops() > 0 &&
          !op->getParentOfType<scf::ForallOp>())
        operations.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (PositionalOpInterface op : operations) {
      scf::SCFTilingOptions options;
      options.setLoopType(scf::SCFTilingOptions::LoopType::ForallOp);
      options.setTileSizes(SmallVector<OpFoldResult>(
          op.getNumLoops(), rewriter.getIndexAttr(1)));
      rewriter.setInsertionPoint(op);
      FailureOr<scf::SCFTilingResult> tiled = scf::tileUsingSCF(
          rewriter, cast<TilingInterface>(op.getOperation()), options);
      if (failed(tiled)) {
        op->emitOpError("cannot be tiled");
        return signalPassFailure();
      }
      rewriter.replaceOp(op, tiled->replacements);
    }
  }
};
} // namespace
