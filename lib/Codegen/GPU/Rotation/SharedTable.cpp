//===- SharedTable.cpp - cos and sin in shared memory ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedTable.h"
#include "posenc/IR/CreateIndex.h"

#include "PairRotation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

using CosSin = AngleAddition::CosSin;

CosSin mlir::posenc::emitBase(OpBuilder &builder, Location loc,
                              const AngleAddition &steps,
                              const AngleAddition::Position &base, Value first,
                              int64_t lanes) {
  AngleAddition::Position from =
      steps.hasRuns() ? steps.getStretch(builder, loc, base) : base;
  auto emitPhase = [&](OpBuilder &b, Location l, bool isShort) {
    return steps.roundPhase(
        b, l, steps.getPhases().emit(b, l, from, first, lanes, isShort));
  };
  if (!base.isShort)
    return emitPhase(builder, loc, /*isShort=*/false);
  auto emitWay = [&](OpBuilder &b, Location l, bool isShort) {
    CosSin element = emitPhase(b, l, isShort);
    scf::YieldOp::create(b, l, ValueRange{element.cos, element.sin});
  };
  auto branch = scf::IfOp::create(
      builder, loc, base.isShort,
      [&](OpBuilder &b, Location l) { emitWay(b, l, /*isShort=*/true); },
      [&](OpBuilder &b, Location l) { emitWay(b, l, /*isShort=*/false); });
  return steps.rotateBase(builder, loc, base,
                          {branch.getResult(0), branch.getResult(1)}, first);
}

CosSin mlir::posenc::emitElement(OpBuilder &builder, Location loc,
                                 const AngleAddition &steps,
                                 const AngleAddition::Position &position,
                                 Value first, int64_t lanes) {
  if (!steps.hasRuns())
    return emitBase(builder, loc, steps, position, first, lanes);
  CosSin base =
      emitBase(builder, loc, steps,
               steps.getBasePosition(builder, loc, position), first, lanes);
  return steps.rotate(builder, loc, position, base, first);
}

SharedTable::SharedTable(GpuKernel &kernel, int64_t positions, int64_t numPairs,
                         Type compute)
    : positions(positions), numPairs(numPairs), compute(compute),
      cos(kernel.addShared({positions * numPairs}, compute)),
      sin(kernel.addShared({positions * numPairs}, compute)) {}

void SharedTable::fill(OpBuilder &builder, Location loc, Value thread,
                       int64_t threads, Emit emit) const {
  auto fillOne = [&](OpBuilder &b, Location l, Value at) {
    auto [position, pair] = divide32(b, l, at, createIndex(b, l, numPairs));
    CosSin element = emit(b, l, position, pair);
    vector::StoreOp::create(b, l, element.cos, cos, at);
    vector::StoreOp::create(b, l, element.sin, sin, at);
  };
  Value end = createIndex(builder, loc, positions * numPairs);
  scf::ForOp::create(builder, loc, thread, end,
                     createIndex(builder, loc, threads), ValueRange(),
                     [&](OpBuilder &b, Location l, Value at, ValueRange) {
                       fillOne(b, l, at);
                       scf::YieldOp::create(b, l);
                     });
  gpu::BarrierOp::create(builder, loc);
}

std::pair<Value, Value> SharedTable::getLanes(OpBuilder &builder, Location loc,
                                              Value position, Value pair,
                                              int64_t count) const {
  Value at = arith::AddIOp::create(
      builder, loc, pair,
      builder.createOrFold<arith::MulIOp>(loc, position,
                                          createIndex(builder, loc, numPairs)));
  // Views are aligned: `count` divides the row, or is one.
  int64_t bytes = count * compute.getIntOrFloatBitWidth() / 8;
  auto view = [&](Value table) -> Value {
    return memref::AssumeAlignmentOp::create(
        builder, loc, createLanes(builder, loc, table, at, count, 1),
        std::min<int64_t>(bytes, GpuKernel::kSharedAlignment));
  };
  return {view(cos), view(sin)};
}
