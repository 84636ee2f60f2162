//===- RopeKernel.cpp - body of the rotation kernel -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RopeKernel.h"
#include "posenc/IR/CreateIndex.h"

#include "LoopSizes.h"
#include "PairRotation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::posenc;

/// Maximum number of columns that a thread loads before the table is complete;
/// limited by its registers.
static constexpr int64_t kMaxColumnsAtOnce = 8;

/// Columns that one iteration of the loop loads at the same time.
static constexpr int64_t kUnroll = 4;

/// Returns the columns of a position in one tensor, or nullopt if its number of
/// rows is unknown.
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

WorkSplit mlir::posenc::chooseWorkSplit(const Rotation &rotation,
                                        bool hasManyPositions) {
  int64_t size =
      cast<MemRefType>(rotation.inits.front().getType()).getShape().back();
  int64_t rest = size - rotation.offset - rotation.rotaryDim;
  int64_t row = rotation.isHalf ? rotation.rotaryDim / 2 : rotation.rotaryDim;
  WorkSplit cut;
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
  // Prefers a number of threads with four columns each and no remainder;
  // otherwise the last threads idle at times.
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
                       const Rotation &rotation, const WorkSplit &cut,
                       bool isWide)
    : rotation(rotation), cut(cut), isWide(isWide), b(kernel.getBody()),
      loc(rotation.op->getLoc()),
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
                    haveDifferentAddresses(host, loc, input, init)));
    operands.push_back(operand);
  }
}

/// Emits the number of columns of a block in a tensor.
Value RopeKernel::countItems(const Operand &operand, int64_t columns) {
  Value count = createIndex(b, loc, cut.positions * columns);
  for (Value size : operand.rowSizes)
    count = b.createOrFold<arith::MulIOp>(loc, count, size);
  return count;
}

/// Emits the indices of column `number` of `count`; without `count`, the column
/// is known to exist.
RopeKernel::ColumnIndex RopeKernel::locate(const Operand &operand, Value number,
                                           Value count, int64_t columns) {
  ColumnIndex index;
  if (count) {
    index.exists =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, number, count);
    Value last = arith::SubIOp::create(b, loc, count, createIndex(b, loc, 1));
    number = arith::MinUIOp::create(b, loc, number, last);
  }
  auto [rest, column] = divide32(b, loc, number, createIndex(b, loc, columns));
  SmallVector<Value> indices(operand.output.strides.size());
  for (int64_t i = operand.rowDims.size() - 1; i >= 0; --i)
    std::tie(rest, indices[operand.rowDims[i]]) =
        divide32(b, loc, rest, operand.rowSizes[i]);
  index.position = rest;
  auto [loops, exists] = grid.getLoops(b, loc, tile, index.position);
  for (auto [dim, loop] : llvm::zip_equal(rotation.dims, loops))
    indices[dim] = loop;
  if (exists)
    index.exists = index.exists
                       ? arith::AndIOp::create(b, loc, index.exists, exists)
                       : exists;
  indices.back() =
      arith::MulIOp::create(b, loc, column, createIndex(b, loc, cut.lanes));
  index.pair = rotation.isHalf
                   ? indices.back()
                   : Value(arith::MulIOp::create(
                         b, loc, column, createIndex(b, loc, cut.lanes / 2)));
  index.input = getOffset(b, loc, indices, operand.input.strides);
  index.output = getOffset(b, loc, indices, operand.output.strides);
  return index;
}

/// Creates a view of the elements from `first + lane` on. With wide accesses,
/// the view is marked as aligned.
Value RopeKernel::getLanes(Value memref, Value first, int64_t lane,
                           int64_t count, int64_t stride) {
  Value at =
      b.createOrFold<arith::AddIOp>(loc, first, createIndex(b, loc, lane));
  Value view = createLanes(b, loc, memref, at, count, stride);
  if (!isWide)
    return view;
  int64_t bytes = cut.access * rotation.element.getIntOrFloatBitWidth() / 8;
  return memref::AssumeAlignmentOp::create(b, loc, view, bytes);
}

/// Returns a view of all elements of a per-thread buffer.
static Value getAll(OpBuilder &builder, Location loc, Value memref) {
  return createLanes(builder, loc, memref, createIndex(builder, loc, 0),
                     cast<MemRefType>(memref.getType()).getNumElements(), 1);
}

/// Loads a column into the thread's buffers.
RopeKernel::Column RopeKernel::load(const Operand &operand, Value number,
                                    Value count) {
  Column column;
  column.index = locate(operand, number, count, cut.columns);
  auto loadAt = [&](int64_t lane) -> Value {
    auto type = MemRefType::get({cut.lanes}, rotation.element);
    Value lanes = memref::AllocaOp::create(b, loc, type);
    linalg::CopyOp::create(
        b, loc,
        getLanes(operand.input.memref, column.index.input, lane, cut.lanes, 1),
        getAll(b, loc, lanes));
    return lanes;
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

/// Rotates a column and stores it.
void RopeKernel::finish(const Operand &operand, const Column &column,
                        const SharedTable &table) {
  ifExists(column.index.exists, [&] {
    int64_t pairs = rotation.isHalf ? cut.lanes : cut.lanes / 2;
    auto [cos, sin] =
        table.getLanes(b, loc, column.index.position, column.index.pair, pairs);
    PairLanes lanes{{}, {}, {}, {}, cos, sin, cos, sin};
    auto getOutput = [&](int64_t lane, int64_t stride) {
      return getLanes(operand.output.memref, column.index.output,
                      rotation.offset + lane, pairs, stride);
    };
    if (rotation.isHalf) {
      lanes.x = getAll(b, loc, column.x);
      lanes.y = getAll(b, loc, column.y);
      lanes.newX = getOutput(0, 1);
      lanes.newY = getOutput(rotation.rotaryDim / 2, 1);
    } else {
      auto getInput = [&](int64_t lane) {
        return createLanes(b, loc, column.x, createIndex(b, loc, lane), pairs,
                           2);
      };
      lanes.x = getInput(0);
      lanes.y = getInput(1);
      lanes.newX = getOutput(0, 2);
      lanes.newY = getOutput(1, 2);
    }
    createRotation(b, loc, rotation.compute, lanes);
  });
}

/// Emits the loop over all columns of a tensor, after the table is complete.
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

/// Copies the lanes that are not rotated, unless input and output are the same
/// memory.
void RopeKernel::copyOtherLanes(const Operand &operand) {
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
  ColumnIndex index = locate(operand, row, /*count=*/nullptr, /*columns=*/1);
  Value lane = arith::MulIOp::create(b, loc, unit, createIndex(b, loc, lanes));
  Value isBefore =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, lane,
                            createIndex(b, loc, rotation.offset));
  Value behind = arith::AddIOp::create(b, loc, lane,
                                       createIndex(b, loc, rotation.rotaryDim));
  lane = arith::SelectOp::create(b, loc, isBefore, lane, behind);
  ifExists(index.exists, [&] {
    Value from = arith::AddIOp::create(b, loc, index.input, lane);
    Value to = arith::AddIOp::create(b, loc, index.output, lane);
    linalg::CopyOp::create(b, loc,
                           getLanes(operand.input.memref, from, 0, lanes, 1),
                           getLanes(operand.output.memref, to, 0, lanes, 1));
  });
}

void RopeKernel::emit(const SharedTable &table, EmitElement emitElement) {
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
  bool isAtOnce = areKnown && total <= kMaxColumnsAtOnce;
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
    // This keeps ptxas from waiting for the position before it issues the loads
    // of columns.
    Value all = arith::ConstantIntOp::create(b, loc, -1, 32);
    NVVM::SyncWarpOp::create(b, loc, all);
  }
  table.fill(b, loc, thread, cut.threads,
             [&](OpBuilder &nested, Location l, Value number, Value pair) {
               auto [loops, exists] = grid.getLoops(nested, l, tile, number);
               return emitElement(nested, l, loops, pair);
             });
  for (const auto &[operand, column] : columns)
    finish(*operand, column, table);
  for (const Operand &operand : operands) {
    if (!isAtOnce)
      emitLoop(operand, table);
    copyOtherLanes(operand);
  }
}
