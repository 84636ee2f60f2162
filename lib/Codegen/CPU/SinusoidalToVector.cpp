//===- SinusoidalToVector.cpp - sinusoidal as vectors -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TableEntries.h"
#include "VectorLoops.h"

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_CONVERTPOSENCSINUSOIDALTOVECTORPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

static void convertSinusoidal(OpBuilder &builder, SinusoidalOp op,
                              const VectorTarget &target) {
  Value init = op.getInits().front();
  FrequenciesAttr frequencies = op.getFrequencies();
  bool zipped = op.getOrder() == TableOrder::Interleaved;
  TableEntries entries(builder, op, frequencies, /*axes=*/nullptr,
                       getElementTypeOrSelf(init.getType()), zipped, target);
  if (zipped)
    return entries.writeZipped(builder, op.getPositions(), init);
  bool sinFirst = op.getOrder() == TableOrder::SinCos;
  int64_t half = frequencies.getNumPairs();
  entries.writeApart(builder, op.getPositions(), {init, sinFirst ? half : 0},
                     {init, sinFirst ? 0 : half});
}

namespace {
struct ConvertPosencSinusoidalToVector final
    : mlir::posenc::impl::ConvertPosencSinusoidalToVectorPassBase<
          ConvertPosencSinusoidalToVector> {
  using Base::Base;
  friend struct mlir::posenc::VectorTarget;

  void runOnOperation() override {
    SmallVector<SinusoidalOp> operations;
    getOperation().walk([&](SinusoidalOp op) { operations.push_back(op); });
    VectorTarget target = VectorTarget::get(*this);
    target.vectorBytes = target.getRowVectorBytes();
    for (SinusoidalOp op : operations) {
      if (failed(checkConvertible(op, target)))
        return signalPassFailure();
      OpBuilder builder(op);
      convertSinusoidal(builder, op, target);
      op.erase();
    }
  }
};
} // namespace
