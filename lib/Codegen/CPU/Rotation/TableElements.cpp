//===- TableElements.cpp - rows of cos and sin in memory ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TableElements.h"

#include "CPU/Memory/Streaming.h"
#include "CPU/VectorLoops.h"
#include "posenc/IR/Remarks.h"
#include "posenc/Numerics/BF16.h"
#include "posenc/Numerics/ElementwiseBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

/// The smallest page size of the supported processors.
static constexpr int64_t kSmallestPageBytes = 4096;

static Type getComputeType(Type element) {
  if (element.isF64())
    return element;
  return Float32Type::get(element.getContext());
}

/// Returns the lane in which a vector must hold a pair, so that the unpack-low
/// and unpack-high instructions, which work within 16 bytes, interleave cos and
/// sin in the order of the pairs.
static int64_t getUnpackedLane(int64_t pair, int64_t lanes) {
  int64_t half = lanes / 2, destination = pair % half;
  return destination / 2 * 4 + destination % 2 + (pair < half ? 0 : 2);
}

/// Returns the pairs in the order in which vectors of `lanes` lanes load them.
static SmallVector<int64_t> getOrder(int64_t numPairs, int64_t lanes, Type type,
                                     bool zipped) {
  if (type.isBF16() && !zipped)
    return getHalvesOrder(numPairs, lanes);
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq(numPairs));
  if (zipped && !type.isBF16() && !type.isF64())
    for (int64_t pair = 0; pair < numPairs / lanes * lanes; ++pair)
      order[pair / lanes * lanes + getUnpackedLane(pair % lanes, lanes)] = pair;
  return order;
}

TableElements::TableElements(OpBuilder &builder, PositionalOpInterface op,
                             const Angles &angles, Type elementType,
                             bool zipped, const VectorTarget &target)
    : op(op), numPairs(angles.frequencies.getNumPairs()), element(elementType),
      compute(getComputeType(elementType)), target(target),
      isSplit(!zipped && elementType.isBF16()), lanes(target.vectorBytes / 4),
      table(builder, op, angles, element, TableUse::Table,
            getOrder(numPairs, lanes, elementType, zipped)) {}

/// Returns 32-bit words whose upper halves are the elements rounded to bf16.
/// Ties are rounded away from zero, which is less work than to even; the error
/// of the elements hides the difference.
static Value roundElements(OpBuilder &builder, Location loc, Value elements) {
  ElementwiseBuilder b(builder, loc, elements);
  return b.addi(b.cast<arith::BitcastOp>(builder.getI32Type(), elements),
                b.i32(0x8000));
}

/// Like `joinBF16`, but rounds by `roundElements`.
static Value joinElements(OpBuilder &builder, Location loc, BF16Halves halves) {
  return joinRoundedBF16(builder, loc,
                         {roundElements(builder, loc, halves.even),
                          roundElements(builder, loc, halves.odd)});
}

/// Rounds elements in the order of the table and returns them in the order of
/// the row.
Value TableElements::round(OpBuilder &builder, Location loc,
                           Value elements) const {
  if (element == compute)
    return elements;
  auto type = cast<VectorType>(elements.getType());
  int64_t length = type.getNumElements();
  if (!isSplit)
    return arith::TruncFOp::create(builder, loc, type.clone(element), elements);
  if (length == 1) {
    // Rounds in the same way as other vectors, and as GPU kernels.
    ElementwiseBuilder b(builder, loc, elements);
    Value bits = b.shru(roundElements(builder, loc, elements), b.i32(16));
    bits = b.cast<arith::TruncIOp>(builder.getI16Type(), bits);
    return arith::BitcastOp::create(builder, loc, type.clone(element), bits);
  }
  auto getHalf = [&](int64_t first) -> Value {
    return vector::ExtractStridedSliceOp::create(builder, loc, elements, first,
                                                 length / 2, 1);
  };
  Value even = getHalf(0), odd = getHalf(length / 2);
  return joinElements(builder, loc, {even, odd});
}

/// Interleaves the elements of two vectors.
Value TableElements::zip(OpBuilder &builder, Location loc, Value even,
                         Value odd) const {
  int64_t length = cast<VectorType>(even.getType()).getNumElements();
  if (length < lanes || element.isF64())
    return vector::InterleaveOp::create(builder, loc, even, odd);
  SmallVector<int64_t> order;
  for (int64_t pair = 0; pair < length; ++pair) {
    int64_t lane = getUnpackedLane(pair, length);
    order.append({lane, lane + length});
  }
  return vector::ShuffleOp::create(builder, loc, even, odd, order);
}

/// Returns the number of rows of a memref in a page.
static int64_t getRowsOfPage(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  int64_t bytes = type.getShape().back() * type.getElementTypeBitWidth() / 8;
  return std::max<int64_t>(kSmallestPageBytes / bytes, 1);
}

/// Prefetches a line of each page of a part of a row, since a streaming store
/// waits for the address translation of its page.
void TableElements::prefetchPages(OpBuilder &builder, Location loc,
                                  Value memref, ValueRange loops,
                                  PositionTable::Pairs pairs) const {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto type = cast<MemRefType>(memref.getType());
  int64_t lanesOfPair = type.getShape().back() / numPairs;
  int64_t lanesOfPage = kSmallestPageBytes * 8 / type.getElementTypeBitWidth();
  Value first = builder.createOrFold<arith::MulIOp>(loc, pairs.first,
                                                    constant(lanesOfPair));
  SmallVector<Value> at(loops);
  at.push_back(first);
  for (int64_t lane = 0; lane < pairs.count * lanesOfPair;
       lane += lanesOfPage) {
    at.back() = builder.createOrFold<arith::AddIOp>(loc, first, constant(lane));
    memref::PrefetchOp::create(builder, loc, memref, at, /*isWrite=*/false,
                               /*localityHint=*/3, /*isDataCache=*/true);
  }
}

/// Prefetches the page of the row two pages further, if that row is the first
/// of its page.
void TableElements::prefetchAheadOfRow(OpBuilder &builder, Location loc,
                                       ValueRange outputs, ValueRange loops,
                                       PositionTable::Pairs pairs) const {
  for (Value memref : outputs) {
    int64_t rows = getRowsOfPage(memref);
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(builder, loc, value);
    };
    Value destination =
        builder.createOrFold<arith::RemUIOp>(loc, loops.back(), constant(rows));
    Value isFirst = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::eq, destination, constant(0));
    SmallVector<Value> at(loops);
    at.back() =
        arith::AddIOp::create(builder, loc, at.back(), constant(2 * rows));
    scf::IfOp::create(builder, loc, isFirst, [&](OpBuilder &b, Location l) {
      prefetchPages(b, l, memref, at, pairs);
      scf::YieldOp::create(b, l);
    });
  }
}

/// Prefetches the pages of the run after the one that starts at `loops`.
void TableElements::prefetchAheadOfRun(OpBuilder &builder, Location loc,
                                       ValueRange outputs, ValueRange loops,
                                       PositionTable::Pairs pairs) const {
  for (Value memref : outputs)
    for (int64_t row = 0; row < table.getRun(); row += getRowsOfPage(memref)) {
      SmallVector<Value> at(loops);
      at.back() = arith::AddIOp::create(
          builder, loc, at.back(),
          arith::ConstantIndexOp::create(builder, loc, table.getRun() + row));
      prefetchPages(builder, loc, memref, at, pairs);
    }
}

void TableElements::writeRow(OpBuilder &builder, Location loc,
                             const PositionTable::Position &position,
                             ValueRange outputs, ValueRange loops,
                             PositionTable::Pairs pairs, Access access,
                             VectorWriter writer) const {
  if (access == Access::Streamed && !loops.empty())
    prefetchAheadOfRow(builder, loc, outputs, loops, pairs);
  auto write = [&](OpBuilder &b, Location l, Value, Value pair,
                   ValueRange finished) {
    writer.write(b, l, finished, loops, pair, access);
  };
  table.forEachElement(builder, loc, position, pairs, lanes,
                       PositionTable::Writer{writer.finish, write});
}

/// Writes the rows of all positions. A whole run of consecutive positions along
/// the last loop is computed together; other positions one by one.
void TableElements::writeRuns(OpBuilder &builder, Location loc, Value positions,
                              ValueRange outputs, ArrayRef<Value> sizes,
                              PositionTable::Pairs pairs, Access access,
                              VectorWriter writer) const {
  auto constant = [](OpBuilder &b, Location l, int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, l, value);
  };
  auto writeNext = [&](OpBuilder &b, Location l, ValueRange loops, Value left) {
    PositionTable::Position position =
        table.loadPosition(b, l, positions, loops);
    Value isRun = table.isAtRun(b, l, positions, loops, position, left);
    auto branch = scf::IfOp::create(
        b, l, isRun,
        [&](OpBuilder &b2, Location l2) {
          if (access == Access::Streamed)
            prefetchAheadOfRun(b2, l2, outputs, loops, pairs);
          auto write = [&](OpBuilder &b3, Location l3, Value behind, Value pair,
                           ValueRange finished) {
            SmallVector<Value> at(loops);
            at.back() = arith::AddIOp::create(b3, l3, at.back(), behind);
            writer.write(b3, l3, finished, at, pair, access);
          };
          table.forEachElementOfRun(b2, l2, position, pairs, lanes,
                                    {writer.finish, write});
          scf::YieldOp::create(b2, l2, constant(b2, l2, table.getRun()));
        },
        [&](OpBuilder &b2, Location l2) {
          writeRow(b2, l2, position, outputs, loops, pairs, access, writer);
          scf::YieldOp::create(b2, l2, constant(b2, l2, 1));
        });
    return branch.getResult(0);
  };
  Value last = sizes.back();
  forEachIndex(
      builder, loc, sizes.drop_back(),
      [&](OpBuilder &b, Location l, ValueRange loops) {
        auto hasMore = [&](OpBuilder &b2, Location l2, ValueRange row) {
          Value isBefore = arith::CmpIOp::create(
              b2, l2, arith::CmpIPredicate::ult, row.front(), last);
          scf::ConditionOp::create(b2, l2, isBefore, row);
        };
        scf::WhileOp::create(
            b, l, b.getIndexType(), constant(b, l, 0), hasMore,
            [&](OpBuilder &b2, Location l2, ValueRange row) {
              SmallVector<Value> at(loops);
              at.push_back(row.front());
              Value left = arith::SubIOp::create(b2, l2, last, row.front());
              Value count = writeNext(b2, l2, at, left);
              scf::YieldOp::create(b2, l2,
                                   ValueRange(arith::AddIOp::create(
                                       b2, l2, row.front(), count)));
            });
      });
}

void TableElements::writeRows(OpBuilder &builder, Value positions,
                              ValueRange outputs, bool mayStream,
                              VectorWriter writer) const {
  Location loc = op->getLoc();
  SmallVector<Value> sizes = getLoopSizes(builder, op);
  // One position alone has no loops.
  std::optional<int64_t> count =
      sizes.empty() ? 1 : getConstantIntValue(sizes.back());
  bool areRuns = table.canTakeRuns() && (!count || *count >= table.getRun());
  reportChoice(op, "convert-posenc-tables-to-vector",
               areRuns ? "cos and sin by angle addition along runs of positions"
                       : "cos and sin by the exact phase of each position");
  auto writeAll = [&](OpBuilder &b, Location l, PositionTable::Pairs pairs,
                      Access access) {
    if (areRuns)
      return writeRuns(b, l, positions, outputs, sizes, pairs, access, writer);
    forEachIndex(
        b, l, sizes, [&](OpBuilder &b2, Location l2, ValueRange loops) {
          writeRow(b2, l2, table.loadPosition(b2, l2, positions, loops),
                   outputs, loops, pairs, access, writer);
        });
  };
  chooseAccess(builder, loc, /*inputs=*/{}, outputs, target, mayStream,
               /*inOrderFrom=*/std::nullopt, /*inBlocks=*/false,
               [&](OpBuilder &b, Location l, Access access) {
                 table.forEachPart(b, l,
                                   [&](OpBuilder &b2, Location l2,
                                       PositionTable::Pairs pairs) {
                                     writeAll(b2, l2, pairs, access);
                                   });
               });
}

/// Whether rows start at a multiple of a vector if the rows of the memref do.
bool TableElements::isAligned(Destination destination) const {
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  return destination.firstLane * bytes % target.vectorBytes == 0;
}

void TableElements::writeZipped(OpBuilder &builder, Value positions,
                                Destination destination) const {
  auto finish = [&](OpBuilder &b, Location l,
                    const PositionTable::CosSin &cosSin) -> SmallVector<Value> {
    if (element.isBF16())
      return {joinElements(b, l, {cosSin.sin, cosSin.cos})};
    return {round(b, l, zip(b, l, cosSin.sin, cosSin.cos))};
  };
  auto write = [&](OpBuilder &b, Location l, ValueRange row, ValueRange loops,
                   Value pair, Access access) {
    SmallVector<Value> at(loops);
    at.push_back(b.createOrFold<arith::MulIOp>(
        l, pair, arith::ConstantIndexOp::create(b, l, 2)));
    if (destination.firstLane > 0)
      at.back() = b.createOrFold<arith::AddIOp>(
          l, at.back(),
          arith::ConstantIndexOp::create(b, l, destination.firstLane));
    storeRow(b, l, row.front(), destination.memref, at, target, access);
  };
  writeRows(builder, positions, destination.memref, isAligned(destination),
            {finish, write});
}

void TableElements::writeApart(OpBuilder &builder, Value positions,
                               Destination cos, Destination sin) const {
  SmallVector<Value> outputs{cos.memref};
  if (sin.memref != cos.memref)
    outputs.push_back(sin.memref);
  std::array<Destination, 2> destinations{cos, sin};
  auto finish = [&](OpBuilder &b, Location l,
                    const PositionTable::CosSin &cosSin) -> SmallVector<Value> {
    return {round(b, l, cosSin.cos), round(b, l, cosSin.sin)};
  };
  auto write = [&](OpBuilder &b, Location l, ValueRange rows, ValueRange loops,
                   Value pair, Access access) {
    for (auto [elements, destination] : llvm::zip_equal(rows, destinations)) {
      SmallVector<Value> at(loops);
      at.push_back(b.createOrFold<arith::AddIOp>(
          l, pair,
          arith::ConstantIndexOp::create(b, l, destination.firstLane)));
      storeRow(b, l, elements, destination.memref, at, target, access);
    }
  };
  writeRows(builder, positions, outputs, isAligned(cos) && isAligned(sin),
            {finish, write});
}
