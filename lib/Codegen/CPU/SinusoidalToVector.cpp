//===- SinusoidalToVector.cpp - sinusoidal as vectors -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionTable.h"
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
  Type element = getElementTypeOrSelf(init.getType());
  Type compute =
      element.isF64() ? builder.getF64Type() : Type(builder.getF32Type());
  int64_t numPairs = op.getFrequencies().getNumPairs();
  PositionTable table(builder, op, op.getFrequencies(), /*axes=*/nullptr,
                      /*inverse=*/false, compute, TableUse::Entries,
                      llvm::to_vector(llvm::seq(numPairs)));
  int64_t lanes = target.vectorBytes / (element.isF64() ? 8 : 4);

  auto store = [&](OpBuilder &b, Location l, Value value, ValueRange loops,
                   Value lane) {
    auto type = cast<VectorType>(value.getType());
    if (type.getElementType() != element)
      value = arith::TruncFOp::create(b, l, type.clone(element), value);
    SmallVector<Value> at(loops);
    at.push_back(lane);
    vector::StoreOp::create(b, l, value, init, at);
  };
  forEachIndex(
      builder, op.getLoc(), getLoopSizes(builder, op),
      [&](OpBuilder &b, Location l, ValueRange loops) {
        PositionTable::Position position =
            table.loadPosition(b, l, op.getPositions(), loops);
        forEachVector(
            b, l, numPairs, lanes,
            [&](OpBuilder &b2, Location l2, Value pair, int64_t n) {
              PositionTable::Entry entry =
                  table.emit(b2, l2, position, pair, n);
              if (op.getOrder() == TableOrder::Interleaved) {
                Value two = arith::ConstantIndexOp::create(b2, l2, 2);
                store(
                    b2, l2,
                    vector::InterleaveOp::create(b2, l2, entry.sin, entry.cos),
                    loops, b2.createOrFold<arith::MulIOp>(l2, pair, two));
                return;
              }
              bool sinFirst = op.getOrder() == TableOrder::SinCos;
              Value half = arith::ConstantIndexOp::create(b2, l2, numPairs);
              Value second = b2.createOrFold<arith::AddIOp>(l2, pair, half);
              store(b2, l2, sinFirst ? entry.sin : entry.cos, loops, pair);
              store(b2, l2, sinFirst ? entry.cos : entry.sin, loops, second);
            });
      });
}

namespace {
struct ConvertPosencSinusoidalToVector final
    : mlir::posenc::impl::ConvertPosencSinusoidalToVectorPassBase<
          ConvertPosencSinusoidalToVector> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<SinusoidalOp> operations;
    getOperation().walk([&](SinusoidalOp op) { operations.push_back(op); });
    VectorTarget target{vectorBytes, nativeBF16, prefetchDistance, prefetchFrom,
                        streamFrom};
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
