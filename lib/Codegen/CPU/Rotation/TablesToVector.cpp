//===- TablesToVector.cpp - sincos and sinusoidal to vectors --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CPU/VectorLoops.h"
#include "TableElements.h"

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
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
  TableElements(builder, op,
                {op.getFrequencies(), op.getAxesAttr(), op.getTurns(),
                 /*inverse=*/false, areFloats(op.getPositions())},
                getElementTypeOrSelf(cos.getType()), /*zipped=*/false, target)
      .writeApart(builder, op.getPositions(), {cos, 0}, {sin, 0});
}

/// Returns a view of the positions of one axis, without the dimension of axes.
static Value getPositionsOfAxis(OpBuilder &builder, Location loc,
                                Value positions, int64_t axis) {
  auto type = cast<MemRefType>(positions.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(type.getRank(), builder.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes =
      memref::getMixedSizes(builder, loc, positions);
  offsets.front() = builder.getIndexAttr(axis);
  sizes.front() = builder.getIndexAttr(1);
  MemRefType viewType = memref::SubViewOp::inferRankReducedResultType(
      type.getShape().drop_front(), type, offsets, sizes, strides);
  return memref::SubViewOp::create(builder, loc, viewType, positions, offsets,
                                   sizes, strides);
}

/// Writes the cosines and sines of one axis.
static void writePart(OpBuilder &builder, SinusoidalOp op,
                      const SinusoidalOp::Part &part, Value positions,
                      const VectorTarget &target) {
  Value init = op.getInits().front();
  bool zipped = op.getOrder() == TableOrder::Interleaved;
  Angles angles{part.frequencies, /*axes=*/nullptr, /*turns=*/{},
                /*inverse=*/false, areFloats(positions)};
  TableElements elements(builder, op, angles,
                         getElementTypeOrSelf(init.getType()), zipped, target);
  if (zipped)
    return elements.writeZipped(builder, positions, {init, part.firstLane});
  bool sinFirst = op.getOrder() == TableOrder::SinCos;
  int64_t second = part.firstLane + part.frequencies.getNumPairs();
  elements.writeApart(builder, positions,
                      {init, sinFirst ? second : part.firstLane},
                      {init, sinFirst ? part.firstLane : second});
}

/// Emits zero stores to the elements `[firstLane, firstLane + count)` of a row.
static void storeZeros(OpBuilder &builder, Location loc, Value memref,
                       ValueRange loops, int64_t firstLane, int64_t count,
                       const VectorTarget &target) {
  Type element = getElementTypeOrSelf(memref.getType());
  int64_t lanes = target.vectorBytes / (element.getIntOrFloatBitWidth() / 8);
  forEachVector(
      builder, loc, count, lanes,
      [&](OpBuilder &b, Location l, Value lane, int64_t n) {
        SmallVector<Value> at(loops);
        at.push_back(b.createOrFold<arith::AddIOp>(
            l, lane, arith::ConstantIndexOp::create(b, l, firstLane)));
        Value zeros = arith::ConstantOp::create(
            b, l, b.getZeroAttr(VectorType::get({n}, element)));
        vector::StoreOp::create(b, l, zeros, memref, at);
      });
}

/// Emits an i1: whether the row at the indices `loops` is padding.
static Value isPadding(OpBuilder &builder, Location loc, SinusoidalOp op,
                       ValueRange loops) {
  auto toI64 = [&](Value value) {
    return getValueOrCreateCastToIndexLike(builder, loc, builder.getI64Type(),
                                           value);
  };
  Value position = op.getPositions();
  if (isa<MemRefType>(position.getType()))
    position = memref::LoadOp::create(builder, loc, position, loops);
  position = toI64(position);
  if (op.getScalarPositionOperand())
    position =
        arith::AddIOp::create(builder, loc, position, toI64(loops.front()));
  return arith::CmpIOp::create(
      builder, loc, arith::CmpIPredicate::eq, position,
      arith::ConstantIntOp::create(builder, loc, *op.getPaddingPosition(), 64));
}

/// Writes the zeros at the ends of rows, and the rows of padding. This is a
/// loop of its own, which leaves the loops over runs of positions as they are.
static void writeZeros(OpBuilder &builder, SinusoidalOp op,
                       const VectorTarget &target) {
  Location loc = op.getLoc();
  Value init = op.getInits().front();
  int64_t dim = op.getFrequencies().getDim();
  forEachIndex(builder, loc, getLoopSizes(builder, op),
               [&](OpBuilder &b, Location l, ValueRange loops) {
                 if (op.getZeroPad())
                   storeZeros(b, l, init, loops, dim, 1, target);
                 if (!op.getPaddingPosition())
                   return;
                 scf::IfOp::create(b, l, isPadding(b, l, op, loops),
                                   [&](OpBuilder &b2, Location l2) {
                                     storeZeros(b2, l2, init, loops, 0, dim,
                                                target);
                                     scf::YieldOp::create(b2, l2);
                                   });
               });
}

static void convertSinusoidal(OpBuilder &builder, SinusoidalOp op,
                              const VectorTarget &target) {
  for (auto [axis, part] : llvm::enumerate(op.getParts())) {
    Value positions = op.getPositions();
    if (op.getAxesAttr())
      positions = getPositionsOfAxis(builder, op.getLoc(), positions, axis);
    writePart(builder, op, part, positions, target);
  }
  if (op.getZeroPad() || op.getPaddingPosition())
    writeZeros(builder, op, target);
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
