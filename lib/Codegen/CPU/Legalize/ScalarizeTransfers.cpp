//===- ScalarizeTransfers.cpp - transfers of one element as scalars -------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCSCALARIZETRANSFERSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;

/// Whether the operation moves an element of memory whose elements are not
/// known to be next to each other.
static bool isStridedScalar(VectorTransferOpInterface op) {
  auto memref = dyn_cast<MemRefType>(op.getShapedType());
  return memref && memref.getRank() > 0 && !memref.isLastDimUnitStride() &&
         op.getVectorType().getRank() == 0 && !op.getMask();
}

namespace {
struct ScalarizeTransfers final
    : mlir::posenc::impl::PosencScalarizeTransfersPassBase<ScalarizeTransfers> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](VectorTransferOpInterface op) {
      if (!isStridedScalar(op))
        return;
      rewriter.setInsertionPoint(op);
      if (auto read = dyn_cast<vector::TransferReadOp>(*op)) {
        Value element = memref::LoadOp::create(
            rewriter, op.getLoc(), read.getBase(), read.getIndices());
        rewriter.replaceOpWithNewOp<vector::BroadcastOp>(op, op.getVectorType(),
                                                         element);
        return;
      }
      auto write = cast<vector::TransferWriteOp>(*op);
      Value element = vector::ExtractOp::create(
          rewriter, op.getLoc(), write.getVector(), ArrayRef<int64_t>());
      rewriter.replaceOpWithNewOp<memref::StoreOp>(op, element, write.getBase(),
                                                   write.getIndices());
    });
  }
};
} // namespace
