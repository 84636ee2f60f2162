//===- Raise.cpp - the pass posenc-raise ----------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Raise.h"

#include "posenc/IR/CheckReshapes.h"
#include "posenc/Raise/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCRAISEPASS
#include "posenc/Raise/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

namespace {

struct RaisePass final : mlir::posenc::impl::PosencRaisePassBase<RaisePass> {
  using Base::Base;

  void runOnOperation() override {
    std::optional<Precision> angles;
    if (precision != "tables") {
      angles = symbolizePrecision(precision);
      if (!angles) {
        emitError(getOperation()->getLoc())
            << "unknown precision '" << precision
            << "': expected tables, exact or hf_f32";
        return signalPassFailure();
      }
    }
    if (failed(checkReshapes(getOperation())))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](FunctionOpInterface function) {
      raise::raiseRotations(function, rewriter);
      (void)runRegionDCE(rewriter, function->getRegions());
      raise::raiseCaches(function, rewriter);
      raise::raiseAttention(function, rewriter);
      (void)runRegionDCE(rewriter, function->getRegions());
      if (angles) {
        raise::raiseFrequencies(function, *angles, rewriter);
        (void)runRegionDCE(rewriter, function->getRegions());
      }
    });
  }
};

} // namespace
