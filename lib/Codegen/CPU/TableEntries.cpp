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
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
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
    : op(op), frequencies(frequencies),
      hasShortWay(op.getNumLoops() > 0 &&
                  ConsecutiveRows::isFor(elementType, axes)),
      element(elementType), compute(getComputeType(elementType)),
      target(target), isSplit(!zipped && elementType.isBF16()),
      // Two vectors of f64 at a time share the constants, which the registers
      // have no room for.
      lanes(target.vectorBytes / 4),
      table(builder, op, frequencies, axes, /*inverse=*/false, compute,
            TableUse::Entries,
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

/// Emits `write` for the rows at loop indices; if `enough` is given and true,
/// for those that have no short way.
static void
forEachRow(OpBuilder &builder, Location loc, Value positions, ValueRange sizes,
           Value enough,
           function_ref<void(OpBuilder &, Location, ValueRange)> write) {
  if (!enough)
    return forEachIndex(builder, loc, sizes, write);
  Value last = sizes.back();
  Value step =
      arith::ConstantIndexOp::create(builder, loc, ConsecutiveRows::kRows);
  SmallVector<Value> blocks(sizes);
  blocks.back() = arith::CeilDivUIOp::create(builder, loc, last, step);
  forEachIndex(
      builder, loc, blocks, [&](OpBuilder &b, Location l, ValueRange indices) {
        SmallVector<Value> loops(indices);
        Value first = loops.back() =
            arith::MulIOp::create(b, l, indices.back(), step);
        Value rest = arith::SubIOp::create(b, l, last, first);
        Value isShort = arith::AndIOp::create(
            b, l, enough,
            ConsecutiveRows::isBlock(b, l, positions, loops, rest));
        Value none = arith::ConstantIndexOp::create(b, l, 0);
        Value count = arith::SelectOp::create(
            b, l, isShort, none, arith::MinUIOp::create(b, l, rest, step));
        forEachIndex(
            b, l, count, [&](OpBuilder &b2, Location l2, ValueRange row) {
              loops.back() = arith::AddIOp::create(b2, l2, first, row.front());
              write(b2, l2, loops);
            });
      });
}

/// The blocks of rows that have the short way.
void TableEntries::writeConsecutive(OpBuilder &builder, Location loc,
                                    const ConsecutiveRows &rows,
                                    Value positions, ValueRange sizes,
                                    Access access) const {
  Value step =
      arith::ConstantIndexOp::create(builder, loc, ConsecutiveRows::kRows);
  SmallVector<Value> blocks(sizes);
  blocks.back() = arith::DivUIOp::create(builder, loc, sizes.back(), step);
  rows.forEachChunk(
      builder, loc,
      [&](OpBuilder &b, Location l, const ConsecutiveRows::Chunk &chunk) {
        rows.begin(b, l, chunk);
        forEachIndex(
            b, l, blocks, [&](OpBuilder &b2, Location l2, ValueRange indices) {
              SmallVector<Value> loops(indices);
              loops.back() = arith::MulIOp::create(b2, l2, loops.back(), step);
              Value isShort =
                  ConsecutiveRows::isBlock(b2, l2, positions, loops, step);
              scf::IfOp::create(
                  b2, l2, isShort, [&](OpBuilder &b3, Location l3) {
                    Value position =
                        table.loadPosition(b3, l3, positions, loops)
                            .axes.front();
                    rows.writeBlock(b3, l3, chunk, loops, position, access);
                    scf::YieldOp::create(b3, l3);
                  });
            });
      });
}

void TableEntries::writeRows(OpBuilder &builder, Value positions,
                             ArrayRef<TableColumns> columns, bool mayStream,
                             WriteVector write) const {
  Location loc = op->getLoc();
  SmallVector<Value> sizes = getLoopSizes(builder, op);
  bool isShort = hasShortWay;
  if (isShort)
    if (std::optional<int64_t> rows = getConstantIntValue(sizes.back()))
      isShort = *rows >= 2 * ConsecutiveRows::kRows;
  std::vector<ConsecutiveRows> consecutive;
  SmallVector<Value> outputs;
  for (const TableColumns &some : columns) {
    if (isShort)
      consecutive.emplace_back(builder, op, frequencies, some, target);
    if (!llvm::is_contained(outputs, some.memref))
      outputs.push_back(some.memref);
  }
  chooseAccess(
      builder, loc, /*inputs=*/{}, outputs, target, mayStream,
      [&](OpBuilder &b, Location l, Access access) {
        Value enough;
        if (isShort)
          enough = ConsecutiveRows::areEnough(b, l, sizes.back());
        forEachRow(b, l, positions, sizes, enough,
                   [&](OpBuilder &b2, Location l2, ValueRange loops) {
                     PositionTable::Position position =
                         table.loadPosition(b2, l2, positions, loops);
                     table.forEachEntry(
                         b2, l2, position, lanes,
                         [&](OpBuilder &b3, Location l3, Value pair,
                             const PositionTable::Entry &entry) {
                           write(b3, l3, entry, loops, pair, access);
                         });
                   });
        if (!isShort)
          return;
        scf::IfOp::create(b, l, enough, [&](OpBuilder &b2, Location l2) {
          for (const ConsecutiveRows &some : consecutive)
            writeConsecutive(b2, l2, some, positions, sizes, access);
          scf::YieldOp::create(b2, l2);
        });
      });
}

void TableEntries::writeZipped(OpBuilder &builder, Value positions,
                               Value output) const {
  TableColumns columns{output, 0, {}, {}};
  for (int64_t pair : llvm::seq(frequencies.getNumPairs())) {
    columns.pairs.append({pair, pair});
    columns.quarters.append({0, 1});
  }
  writeRows(builder, positions, columns, /*mayStream=*/true,
            [&](OpBuilder &b, Location l, PositionTable::Entry entry,
                ValueRange loops, Value pair, Access access) {
              Value row;
              if (element.isBF16()) {
                row = joinBF16(b, l, {entry.sin, entry.cos});
              } else {
                row = vector::InterleaveOp::create(b, l, entry.sin, entry.cos);
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
  int64_t numPairs = frequencies.getNumPairs();
  auto getColumns = [&](Place place, int64_t quarters) {
    return TableColumns{place.memref, place.firstLane,
                        llvm::to_vector(llvm::seq(numPairs)),
                        SmallVector<int64_t>(numPairs, quarters)};
  };
  writeRows(
      builder, positions, {getColumns(cos, 1), getColumns(sin, 0)},
      isAligned(cos) && isAligned(sin),
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
