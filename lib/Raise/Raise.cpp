//===- Raise.cpp - the pass posenc-raise ----------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Raise.h"

#include "posenc/IR/CheckReshapes.h"
#include "posenc/IR/Weights.h"
#include "posenc/Raise/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCRAISEPASS
#include "posenc/Raise/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Larger constants are weights, not tables.
static constexpr size_t kMaxTableBytes = 16 << 20;

/// Returns the constants that weigh the elements of sums, as matrix products
/// have them, if they are too large for the frequencies of a rotation. They are
/// weights, even if some are also read as a table.
static DenseSet<Attribute> findWeights(Operation *module) {
  DenseSet<Attribute> weights;
  module->walk([&](linalg::LinalgOp op) {
    if (op.getNumReductionLoops() == 0)
      return;
    for (Value operand : op->getOperands())
      if (auto constant = operand.getDefiningOp<arith::ConstantOp>())
        if (auto type = dyn_cast<ShapedType>(constant.getType());
            type && getNumBytes(type).value_or(0) >= kMinWeightBytes)
          weights.insert(constant.getValue());
  });
  return weights;
}

/// Gives constants of numbers that are resources, as torch-mlir writes them,
/// the form whose elements are read. Integers of 8 bits are codes.
static void readResources(Operation *module) {
  DenseSet<Attribute> weights = findWeights(module);
  module->walk([&](arith::ConstantOp op) {
    auto resource = dyn_cast<DenseResourceElementsAttr>(op.getValue());
    if (!resource || resource.getElementType().isInteger(1) ||
        resource.getElementType().isInteger(8) || weights.contains(resource))
      return;
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    bool isSplat;
    if (!blob || blob->getData().size() > kMaxTableBytes ||
        !DenseElementsAttr::isValidRawBuffer(resource.getType(),
                                             blob->getData(), isSplat) ||
        (isSplat && resource.getType().getNumElements() != 1))
      return;
    op.setValueAttr(DenseElementsAttr::getFromRawBuffer(resource.getType(),
                                                        blob->getData()));
  });
}

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
    readResources(getOperation());
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
      raise::raiseSinusoidal(function, angles.value_or(Precision::HfF32),
                             rewriter);
    });
  }
};

} // namespace
