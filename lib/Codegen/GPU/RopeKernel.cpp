//===- RopeKernel.cpp - the body of a kernel that rotates -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RopeKernel.h"

#include "ElementwiseBuilder.h"
#include "LoopSizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

/// Columns that a thread has on their way before the table is there, at most:
/// what its registers hold.
static constexpr int64_t kMostAtOnce = 8;

/// Columns of a loop that are on their way together.
static constexpr int64_t kUnroll = 4;

static Value createIndex(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

/// The columns of a position in one tensor; nothing if its rows are not known.
static std::optional<int64_t>
countColumns(MemRefType type, ArrayRef<int64_t> dims, int64_t columns) {
  for (int64_t dim = 0; dim + 1 < type.getRank(); ++dim) {
    if (llvm::is_contained(dims, dim))
      continue;
    if (type.isDynamicDim(dim))
      return std::nullopt;
    columns *= type.getDimSize(dim);
  }
  return columns;
}

Cut mlir::posenc::chooseCut(const Rotation &rotation, bool hasManyPositions) {
  int64_t size =
      cast<MemRefType>(rotation.inits.front().getType()).getShape().back();
  int64_t rest = size - rotation.offset - rotation.rotaryDim;
  int64_t row = rotation.isHalf ? rotation.rotaryDim / 2 : rotation.rotaryDim;
  Cut cut;
  cut.access = getAccessLanes(rotation.element, {row, rotation.offset, rest});
  cut.lanes = rotation.isHalf ? cut.access : std::max<int64_t>(cut.access, 2);
  cut.columns = row / cut.lanes;
  cut.positions = 1;
  cut.threads = 128;

  SmallVector<int64_t> all;
  int64_t total = 0;
  for (Value init : rotation.inits) {
    std::optional<int64_t> columns = countColumns(
        cast<MemRefType>(init.getType()), rotation.dims, cut.columns);
    if (!columns)
      return cut;
    all.push_back(*columns);
    total += *columns;
  }
  if (hasManyPositions)
    while (total * cut.positions < 128 && cut.positions < 16)
      cut.positions *= 2;
  total *= cut.positions;
  // As many threads as have four columns each and no thread less than another;
  // else the last have nothing to do at times.
  for (int64_t threads = 256; threads >= 64; threads -= 32) {
    bool divides = llvm::all_of(all, [&](int64_t columns) {
      return columns * cut.positions % threads == 0;
    });
    if (divides && total / threads >= std::min<int64_t>(4, total / 64)) {
      cut.threads = threads;
      return cut;
    }
  }
  cut.threads = total >= 512 ? 128 : 64;
  return cut;
}

RopeKernel::RopeKernel(OpBuilder &host, GpuKernel &kernel,
                       const Rotation &rotation, const Cut &cut, bool isWide)
    : rotation(rotation), cut(cut), accessLanes(isWide ? cut.access : 1),
      b(kernel.getBody()), loc(rotation.op->getLoc()),
      grid(host, kernel, cast<PositionalOpInterface>(rotation.op),
           cut.positions) {
  for (auto [input, init] : llvm::zip_equal(rotation.inputs, rotation.inits)) {
    auto type = cast<MemRefType>(init.getType());
    Operand operand;
    operand.output = kernel.addTensor(host, init);
    operand.input =
        input == init ? operand.output : kernel.addTensor(host, input);
    operand.rows = countColumns(type, rotation.dims, 1);
    for (int64_t dim = 0; dim + 1 < type.getRank(); ++dim) {
      if (llvm::is_contained(rotation.dims, dim))
        continue;
      operand.rowDims.push_back(dim);
      operand.rowSizes.push_back(kernel.addIndex(
          host, host.createOrFold<memref::DimOp>(loc, init, dim)));
    }
    operand.rest = type.getShape().back() - rotation.rotaryDim;
    if (operand.rest > 0 && input != init)
      operand.copies = kernel.addIndex(
          host, arith::IndexCastUIOp::create(
                    host, loc, host.getIndexType(),
                    areDifferentPlaces(host, loc, input, init)));
    operands.push_back(operand);
  }
}

/// How many columns a block has in a tensor.
Value RopeKernel::countItems(const Operand &operand, int64_t columns) {
  Value count = createIndex(b, loc, cut.positions * columns);
  for (Value size : operand.rowSizes)
    count = b.createOrFold<arith::MulIOp>(loc, count, size);
  return count;
}

/// Where column `number` of `count` is; without a `count` it is known to exist.
RopeKernel::Place RopeKernel::locate(const Operand &operand, Value number,
                                     Value count, int64_t columns) {
  Place place;
  if (count) {
    place.exists =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, number, count);
    Value last = arith::SubIOp::create(b, loc, count, createIndex(b, loc, 1));
    number = arith::MinUIOp::create(b, loc, number, last);
  }
  auto [rest, column] = divide32(b, loc, number, createIndex(b, loc, columns));
  SmallVector<Value> indices(operand.output.strides.size());
  for (int64_t i = operand.rowDims.size() - 1; i >= 0; --i)
    std::tie(rest, indices[operand.rowDims[i]]) =
        divide32(b, loc, rest, operand.rowSizes[i]);
  place.position = rest;
  auto [loops, exists] = grid.getLoops(b, loc, tile, place.position);
  for (auto [dim, index] : llvm::zip_equal(rotation.dims, loops))
    indices[dim] = index;
  if (exists)
    place.exists = place.exists
                       ? arith::AndIOp::create(b, loc, place.exists, exists)
                       : exists;
  indices.back() =
      arith::MulIOp::create(b, loc, column, createIndex(b, loc, cut.lanes));
  place.pair = rotation.isHalf
                   ? indices.back()
                   : Value(arith::MulIOp::create(
                         b, loc, column, createIndex(b, loc, cut.lanes / 2)));
  place.input = getOffset(b, loc, indices, operand.input.strides);
  place.output = getOffset(b, loc, indices, operand.output.strides);
  return place;
}

/// Loads what belongs to a column.
RopeKernel::Column RopeKernel::load(const Operand &operand, Value number,
                                    Value count) {
  Column column;
  column.place = locate(operand, number, count, cut.columns);
  auto loadAt = [&](int64_t lane) {
    Value at = b.createOrFold<arith::AddIOp>(loc, column.place.input,
                                             createIndex(b, loc, lane));
    return loadLanes(b, loc, operand.input.memref, at, cut.lanes, accessLanes);
  };
  column.x = loadAt(rotation.offset);
  if (rotation.isHalf)
    column.y = loadAt(rotation.offset + rotation.rotaryDim / 2);
  return column;
}

void RopeKernel::ifExists(Value exists, function_ref<void()> body) {
  if (!exists)
    return body();
  OpBuilder::InsertionGuard guard(b);
  auto branch = scf::IfOp::create(b, loc, exists, /*withElse=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

void RopeKernel::store(const Operand &operand, const Place &place, Value vector,
                       int64_t lane) {
  Value at = b.createOrFold<arith::AddIOp>(loc, place.output,
                                           createIndex(b, loc, lane));
  storeLanes(b, loc, vector, operand.output.memref, at, accessLanes);
}

/// Rotates a column and stores it.
void RopeKernel::finish(const Operand &operand, const Column &column,
                        const SharedTable &table) {
  auto widen = [&](Value value) -> Value {
    if (rotation.element == rotation.compute)
      return value;
    auto type = cast<VectorType>(value.getType());
    return arith::ExtFOp::create(b, loc, type.clone(rotation.compute), value);
  };
  auto narrow = [&](Value value) -> Value {
    if (rotation.element == rotation.compute)
      return value;
    auto type = cast<VectorType>(value.getType());
    return arith::TruncFOp::create(b, loc, type.clone(rotation.element), value);
  };
  Value x = widen(column.x), y = column.y ? widen(column.y) : Value();
  if (!rotation.isHalf) {
    auto parts = vector::DeinterleaveOp::create(b, loc, x);
    x = parts.getRes1();
    y = parts.getRes2();
  }
  int64_t pairs = cast<VectorType>(x.getType()).getNumElements();
  PositionSteps::Entry entry =
      table.load(b, loc, column.place.position, column.place.pair, pairs);
  ElementwiseBuilder e(b, loc, x);
  Value newX = e.fma(x, entry.cos, e.neg(e.mul(y, entry.sin)));
  Value newY = e.fma(y, entry.cos, e.mul(x, entry.sin));
  ifExists(column.place.exists, [&] {
    if (rotation.isHalf) {
      store(operand, column.place, narrow(newX), rotation.offset);
      store(operand, column.place, narrow(newY),
            rotation.offset + rotation.rotaryDim / 2);
      return;
    }
    Value both = vector::InterleaveOp::create(b, loc, newX, newY);
    store(operand, column.place, narrow(both), rotation.offset);
  });
}

/// All columns of a tensor, when the table is there.
void RopeKernel::emitLoop(const Operand &operand, const SharedTable &table) {
  Value count = countItems(operand, cut.columns);
  OpBuilder::InsertionGuard guard(b);
  auto loop = scf::ForOp::create(b, loc, thread, count,
                                 createIndex(b, loc, kUnroll * cut.threads));
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Column> columns;
  for (int64_t i = 0; i < kUnroll; ++i) {
    Value number = arith::AddIOp::create(b, loc, loop.getInductionVar(),
                                         createIndex(b, loc, i * cut.threads));
    columns.push_back(load(operand, number, count));
  }
  for (const Column &column : columns)
    finish(operand, column, table);
}

/// Lanes outside of the window pass through, which in place is nothing to do.
void RopeKernel::copyRest(const Operand &operand) {
  if (!operand.copies)
    return;
  OpBuilder::InsertionGuard guard(b);
  Value copies = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                       operand.copies, createIndex(b, loc, 0));
  auto branch = scf::IfOp::create(b, loc, copies, /*withElse=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  int64_t lanes = cut.access;
  Value count = countItems(operand, operand.rest / lanes);
  auto loop = scf::ForOp::create(b, loc, thread, count,
                                 createIndex(b, loc, cut.threads));
  b.setInsertionPointToStart(loop.getBody());
  auto [row, unit] = divide32(b, loc, loop.getInductionVar(),
                              createIndex(b, loc, operand.rest / lanes));
  Place place = locate(operand, row, /*count=*/nullptr, /*columns=*/1);
  Value lane = arith::MulIOp::create(b, loc, unit, createIndex(b, loc, lanes));
  Value isBefore =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, lane,
                            createIndex(b, loc, rotation.offset));
  Value behind = arith::AddIOp::create(b, loc, lane,
                                       createIndex(b, loc, rotation.rotaryDim));
  lane = arith::SelectOp::create(b, loc, isBefore, lane, behind);
  ifExists(place.exists, [&] {
    Value from = arith::AddIOp::create(b, loc, place.input, lane);
    Value to = arith::AddIOp::create(b, loc, place.output, lane);
    storeLanes(
        b, loc,
        loadLanes(b, loc, operand.input.memref, from, lanes, accessLanes),
        operand.output.memref, to, accessLanes);
  });
}

void RopeKernel::emit(const SharedTable &table, EmitEntry emitEntry) {
  thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  tile =
      grid.getTile(b, loc, gpu::BlockIdOp::create(b, loc, gpu::Dimension::x));
  int64_t total = 0;
  bool areKnown = true;
  for (const Operand &operand : operands) {
    areKnown &= operand.rows.has_value();
    if (operand.rows)
      total += llvm::divideCeil(*operand.rows * cut.columns * cut.positions,
                                cut.threads);
  }
  SmallVector<std::pair<const Operand *, Column>> columns;
  bool isAtOnce = areKnown && total <= kMostAtOnce;
  if (isAtOnce) {
    for (const Operand &operand : operands) {
      int64_t count = *operand.rows * cut.columns * cut.positions;
      for (int64_t first = 0; first < count; first += cut.threads) {
        Value number = b.createOrFold<arith::AddIOp>(
            loc, thread, createIndex(b, loc, first));
        Value limit =
            first + cut.threads > count ? createIndex(b, loc, count) : Value();
        columns.push_back({&operand, load(operand, number, limit)});
      }
    }
  }
  if (isAtOnce) {
    // Otherwise the assembler waits for the position before it asks for the
    // columns.
    Value all = arith::ConstantIntOp::create(b, loc, -1, 32);
    NVVM::SyncWarpOp::create(b, loc, all);
  }
  table.fill(b, loc, thread, cut.threads,
             [&](OpBuilder &nested, Location l, Value number, Value pair) {
               auto [loops, exists] = grid.getLoops(nested, l, tile, number);
               return emitEntry(nested, l, loops, pair);
             });
  for (const auto &[operand, column] : columns)
    finish(*operand, column, table);
  for (const Operand &operand : operands) {
    if (!isAtOnce)
      emitLoop(operand, table);
    copyRest(operand);
  }
}
