//===- TableEntries.cpp - rows of cos and sin in memory ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TableEntries.h"

#include "BF16Halves.h"
#include "Streaming.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

static Type getComputeType(Type element) {
  if (element.isF64())
    return element;
  return Float32Type::get(element.getContext());
}

TableEntries::TableEntries(OpBuilder &builder, PositionalOpInterface op,
                           FrequenciesAttr frequencies, AxesAttr axes,
                           Type elementType, bool zipped,
                           const VectorTarget &target)
    : op(op), element(elementType), compute(getComputeType(elementType)),
      target(target), isSplit(!zipped && elementType.isBF16()),
      // Two vectors at a time share the constants, which the registers have no
      // room for.
      lanes(2 * target.vectorBytes / (elementType.isF64() ? 8 : 4)),
      table(builder, op, frequencies, axes, /*inverse=*/false, compute,
            elementType.getIntOrFloatBitWidth() < 32 ? TableUse::NarrowEntries
                                                     : TableUse::Entries,
            isSplit ? getHalvesOrder(frequencies.getNumPairs(), lanes)
                    : llvm::to_vector(llvm::seq(frequencies.getNumPairs()))) {}

/// Entries in the order of the table, rounded and in the order of the row.
Value TableEntries::round(OpBuilder &builder, Location loc,
                          Value entries) const {
  if (element == compute)
    return entries;
  auto type = cast<VectorType>(entries.getType());
  int64_t length = type.getNumElements();
  if (!isSplit || length == 1)
    return arith::TruncFOp::create(builder, loc, type.clone(element), entries);
  auto getHalf = [&](int64_t first) -> Value {
    return vector::ExtractStridedSliceOp::create(builder, loc, entries, first,
                                                 length / 2, 1);
  };
  Value even = getHalf(0), odd = getHalf(length / 2);
  return joinBF16(builder, loc, {even, odd});
}

void TableEntries::forEachVectorOfRows(OpBuilder &builder, Value positions,
                                       ValueRange outputs, bool mayStream,
                                       WriteVector write) const {
  forEachIndex(builder, op->getLoc(), getLoopSizes(builder, op),
               [&](OpBuilder &b, Location l, ValueRange loops) {
                 PositionTable::Position position =
                     table.loadPosition(b, l, positions, loops);
                 chooseAccess(b, l, /*inputs=*/{}, outputs, target, mayStream,
                              [&](OpBuilder &b2, Location l2, Access access) {
                                table.forEachEntry(
                                    b2, l2, position, lanes,
                                    [&](OpBuilder &b3, Location l3, Value pair,
                                        const PositionTable::Entry &entry) {
                                      write(b3, l3, entry, loops, pair, access);
                                    });
                              });
               });
}

void TableEntries::writeZipped(OpBuilder &builder, Value positions,
                               Value output) const {
  forEachVectorOfRows(builder, positions, output, /*mayStream=*/true,
                      [&](OpBuilder &b, Location l, PositionTable::Entry entry,
                          ValueRange loops, Value pair, Access access) {
                        Value row;
                        if (element.isBF16()) {
                          row = joinBF16(b, l, {entry.sin, entry.cos});
                        } else {
                          row = vector::InterleaveOp::create(b, l, entry.sin,
                                                             entry.cos);
                          row = round(b, l, row);
                        }
                        SmallVector<Value> at(loops);
                        at.push_back(b.createOrFold<arith::MulIOp>(
                            l, pair, arith::ConstantIndexOp::create(b, l, 2)));
                        storeRow(b, l, row, output, at, target, access);
                      });
}

void TableEntries::writeApart(OpBuilder &builder, Value positions, Place cos,
                              Place sin) const {
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  auto isAligned = [&](Place place) {
    return place.firstLane * bytes % target.vectorBytes == 0;
  };
  SmallVector<Value> outputs{cos.memref};
  if (sin.memref != cos.memref)
    outputs.push_back(sin.memref);
  forEachVectorOfRows(
      builder, positions, outputs, isAligned(cos) && isAligned(sin),
      [&](OpBuilder &b, Location l, PositionTable::Entry entry,
          ValueRange loops, Value pair, Access access) {
        auto write = [&](Value entries, Place place) {
          SmallVector<Value> at(loops);
          at.push_back(b.createOrFold<arith::AddIOp>(
              l, pair, arith::ConstantIndexOp::create(b, l, place.firstLane)));
          storeRow(b, l, round(b, l, entries), place.memref, at, target,
                   access);
        };
        write(entry.cos, cos);
        write(entry.sin, sin);
      });
}
