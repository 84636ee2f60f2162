//===- TablesToVector.cpp - sincos and sinusoidal to vectors --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TableElements.h"
#include "VectorLoops.h"

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_CONVERTPOSENCTABLESTOVECTORPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

static void convertSincos(OpBuilder &builder, SincosOp op,
                          const VectorTarget &target) {
  Value cos = op.getInits()[0], sin = op.getInits()[1];
  TableElements(builder, op, op.getFrequencies(), op.getAxesAttr(),
                getElementTypeOrSelf(cos.getType()), /*zipped=*/false, target)
      .writeApart(builder, op.getPositions(), {cos, 0}, {sin, 0});
}

static void convertSinusoidal(OpBuilder &builder, SinusoidalOp op,
                              const VectorTarget &target) {
  Value init = op.getInits().front();
  FrequenciesAttr frequencies = op.getFrequencies();
  bool zipped = op.getOrder() == TableOrder::Interleaved;
  TableElements elements(builder, op, frequencies, /*axes=*/nullptr,
                         getElementTypeOrSelf(init.getType()), zipped, target);
  if (zipped)
    return elements.writeZipped(builder, op.getPositions(), init);
  bool sinFirst = op.getOrder() == TableOrder::SinCos;
  int64_t half = frequencies.getNumPairs();
  elements.writeApart(builder, op.getPositions(), {init, sinFirst ? half : 0},
                      {init, sinFirst ? 0 : half});
}

namespace {
struct ConvertPosencTablesToVector final
    : mlir::posenc::impl::ConvertPosencTablesToVectorPassBase<
          ConvertPosencTablesToVector> {
  using Base::Base;
  friend struct mlir::posenc::VectorTarget;

  void runOnOperation() override {
    SmallVector<Operation *> operations;
    getOperation().walk([&](Operation *op) {
      if (isa<SincosOp, SinusoidalOp>(op))
        operations.push_back(op);
    });
    VectorTarget target = VectorTarget::get(*this);
    target.vectorBytes = target.getRowVectorBytes();
    for (Operation *op : operations) {
      if (failed(checkConvertible(op, target)))
        return signalPassFailure();
      OpBuilder builder(op);
      if (auto sincos = dyn_cast<SincosOp>(op))
        convertSincos(builder, sincos, target);
      else
        convertSinusoidal(builder, cast<SinusoidalOp>(op), target);
      op->erase();
    }
  }
};
} // namespace
