//===- RopeToGpu.cpp - rotations as GPU kernels -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block has a position, or a few where a position's rows are few, and all
// their rows in all tensors. Each thread asks for its columns of the rows
// first, 16 bytes of each half of half pairs; while they are on their way the
// threads compute the cos and sin, a pair each, which all rows of a position
// share.
//
//===----------------------------------------------------------------------===//

#include "PositionGrid.h"
#include "SharedTable.h"

#include "ElementwiseBuilder.h"
#include "LoopSizes.h"
#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

#include <vector>

namespace mlir::posenc {
#define GEN_PASS_DEF_CONVERTPOSENCROPETOGPUPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

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

namespace {
/// What rotates: of a rope or of a rotate.
struct Rotation {
  Operation *op;
  SmallVector<Value> inputs, inits;
  ArrayRef<int64_t> dims;
  bool isHalf;
  int64_t rotaryDim, offset;
  Type element, compute;
};

/// How the work is cut.
struct Cut {
  /// Elements of an access at most, and of a column; of half pairs there are
  /// as many further along the row.
  int64_t access, lanes;
  int64_t columns;
  int64_t positions, threads;
};
} // namespace

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

static Cut chooseCut(const Rotation &rotation, bool hasManyPositions) {
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

namespace {
/// The body of a kernel.
class RopeKernel {
public:
  RopeKernel(OpBuilder &host, GpuKernel &kernel, const Rotation &rotation,
             const Cut &cut, bool isWide);

  /// Emits the whole body.
  using FillTable = function_ref<void(
      OpBuilder &, Location, const SharedTable &, const PositionGrid::Tile &,
      Value thread, const PositionGrid &)>;
  void emit(const SharedTable &table, FillTable fillTable);
  Value getNumBlocks() const { return grid.getNumTiles(); }

private:
  struct Operand {
    GpuKernel::Tensor input, output;
    /// Sizes of the dimensions that are no loops, and their numbers.
    SmallVector<int64_t> rowDims;
    SmallVector<Value> rowSizes;
    /// The rows of a position, if they are known.
    std::optional<int64_t> rows;
    int64_t rest;
    /// Whether lanes outside of the window have to be copied, as an index.
    Value copies;
  };
  /// Where a column begins.
  struct Place {
    Value input, output;
    /// Whether it exists; null: it does.
    Value exists;
    Value position, pair;
  };
  struct Column {
    Place place;
    Value x, y;
  };

  Place locate(const Operand &operand, Value number, Value count,
               int64_t columns);
  Column load(const Operand &operand, Value number, Value count);
  void finish(const Operand &operand, const Column &column,
              const SharedTable &table);
  void store(const Operand &operand, const Place &place, Value vector,
             int64_t lane);
  void emitLoop(const Operand &operand, const SharedTable &table);
  void copyRest(const Operand &operand);
  Value countItems(const Operand &operand, int64_t columns);
  void ifExists(Value exists, function_ref<void()> body);

  Rotation rotation;
  Cut cut;
  int64_t accessLanes;
  OpBuilder &b;
  Location loc;
  std::vector<Operand> operands;
  PositionGrid grid;
  PositionGrid::Tile tile;
  Value thread;
};
} // namespace

/// On the host: whether two memrefs begin at different places.
static Value areDifferentPlaces(OpBuilder &builder, Location loc, Value a,
                                Value b) {
  auto getPlace = [&](Value memref) -> Value {
    auto type = cast<MemRefType>(memref.getType());
    Value bytes = createIndex(builder, loc, type.getElementTypeBitWidth() / 8);
    auto metadata =
        memref::ExtractStridedMetadataOp::create(builder, loc, memref);
    return arith::AddIOp::create(
        builder, loc,
        memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, memref),
        arith::MulIOp::create(builder, loc, metadata.getOffset(), bytes));
  };
  Value differ = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                       getPlace(a), getPlace(b));
  return arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(),
                                      differ);
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
      operand.copies =
          kernel.addIndex(host, areDifferentPlaces(host, loc, input, init));
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

void RopeKernel::emit(const SharedTable &table, FillTable fillTable) {
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
  fillTable(b, loc, table, tile, thread, grid);
  for (const auto &[operand, column] : columns)
    finish(*operand, column, table);
  for (const Operand &operand : operands) {
    if (!isAtOnce)
      emitLoop(operand, table);
    copyRest(operand);
  }
}

/// Emits a kernel with accesses as wide as they can be and one for what is not
/// aligned to them, and the choice between them.
static void
emitKernels(OpBuilder &host, const Rotation &rotation,
            function_ref<void(OpBuilder &, bool isWide, const Cut &)> emit) {
  if (rotation.inits.empty())
    return;
  Location loc = rotation.op->getLoc();
  bool isOne = false;
  auto dims = rotation.dims;
  if (!dims.empty()) {
    auto type = cast<MemRefType>(rotation.inits.front().getType());
    isOne = type.getDimSize(dims.back()) == 1;
  }
  Cut cut = chooseCut(rotation, /*hasManyPositions=*/!isOne);
  if (cut.access == 1)
    return emit(host, /*isWide=*/false, cut);
  SmallVector<Value> memrefs(rotation.inputs);
  llvm::append_range(memrefs, rotation.inits);
  scf::IfOp::create(
      host, loc, areAligned(host, loc, memrefs, cut.access),
      [&](OpBuilder &b, Location l) {
        emit(b, /*isWide=*/true, cut);
        scf::YieldOp::create(b, l);
      },
      [&](OpBuilder &b, Location l) {
        emit(b, /*isWide=*/false, cut);
        scf::YieldOp::create(b, l);
      });
}

template <typename Op> static Rotation getRotation(Op op, int64_t rotaryDim) {
  Type element = getElementTypeOrSelf(op.getInits().front().getType());
  Type compute =
      element.isF64() ? element : Type(Float32Type::get(op.getContext()));
  // What is known to be empty has no rows.
  SmallVector<Value> inputs, inits;
  for (auto [input, init] : llvm::zip_equal(op.getInputs(), op.getInits())) {
    if (llvm::is_contained(cast<ShapedType>(init.getType()).getShape(), 0))
      continue;
    inputs.push_back(input);
    inits.push_back(init);
  }
  return {op.getOperation(),
          inputs,
          inits,
          op.getDims(),
          op.getPairing() == Pairing::Half,
          rotaryDim,
          static_cast<int64_t>(op.getOffset()),
          element,
          compute};
}

static StringRef getSuffix(bool isWide) { return isWide ? "" : "_narrow"; }

static void convertRope(OpBuilder &builder, RopeOp op) {
  int64_t rotaryDim = op.getFrequencies().getDim();
  Rotation rotation = getRotation(op, rotaryDim);
  emitKernels(
      builder, rotation, [&](OpBuilder &host, bool isWide, const Cut &cut) {
        GpuKernel kernel(op, getSuffix(isWide), cut.threads);
        RopeKernel rows(host, kernel, rotation, cut, isWide);
        KernelPositions positions(host, kernel, op.getPositions(),
                                  op.getAxesAttr());
        SharedTable table(kernel, cut.positions, rotaryDim / 2,
                          rotation.compute);
        PositionSteps steps(host, kernel.getFunction(), op.getFrequencies(),
                            op.getAxesAttr(), op.getInverse(), rotation.compute,
                            TableUse::Rotation,
                            llvm::to_vector(llvm::seq(rotaryDim / 2)));
        rows.emit(table, [&](OpBuilder &b, Location l, const SharedTable &table,
                             const PositionGrid::Tile &tile, Value thread,
                             const PositionGrid &grid) {
          table.fill(b, l, thread, cut.threads,
                     [&](OpBuilder &b2, Location l2, Value number, Value pair) {
                       auto [loops, exists] =
                           grid.getLoops(b2, l2, tile, number);
                       return emitEntry(
                           b2, l2, steps,
                           positions.load(b2, l2, steps.getPhases(), loops),
                           pair, /*lanes=*/1);
                     });
        });
        kernel.launch(host, rows.getNumBlocks());
      });
}

static void convertRotate(OpBuilder &builder, RotateOp op) {
  Rotation rotation = getRotation(op, op.getRotaryDim());
  emitKernels(
      builder, rotation, [&](OpBuilder &host, bool isWide, const Cut &cut) {
        GpuKernel kernel(op, getSuffix(isWide), cut.threads);
        RopeKernel rows(host, kernel, rotation, cut, isWide);
        GpuKernel::Tensor cos = kernel.addTensor(host, op.getCos());
        GpuKernel::Tensor sin = kernel.addTensor(host, op.getSin());
        SharedTable table(kernel, cut.positions, op.getRotaryDim() / 2,
                          rotation.compute);
        rows.emit(table, [&](OpBuilder &b, Location l, const SharedTable &table,
                             const PositionGrid::Tile &tile, Value thread,
                             const PositionGrid &grid) {
          auto read = [&](OpBuilder &b2, Location l2, ValueRange loops,
                          Value number, Value pair) {
            auto loadFrom = [&](const GpuKernel::Tensor &from) -> Value {
              SmallVector<Value> indices(loops);
              indices.push_back(pair);
              Value at = getOffset(b2, l2, indices, from.strides);
              Value value = loadLanes(b2, l2, from.memref, at, 1, 1);
              if (getElementTypeOrSelf(value.getType()) == rotation.compute)
                return value;
              return arith::ExtFOp::create(
                  b2, l2, VectorType::get({1}, rotation.compute), value);
            };
            Value ofSin = loadFrom(sin);
            if (op.getInverse())
              ofSin = arith::NegFOp::create(b2, l2, ofSin);
            return PositionSteps::Entry{loadFrom(cos), ofSin};
          };
          table.fill(b, l, thread, cut.threads,
                     [&](OpBuilder &b2, Location l2, Value number, Value pair) {
                       auto [loops, exists] =
                           grid.getLoops(b2, l2, tile, number);
                       return read(b2, l2, loops, number, pair);
                     });
        });
        kernel.launch(host, rows.getNumBlocks());
      });
}

namespace {
struct ConvertPosencRopeToGpu final
    : mlir::posenc::impl::ConvertPosencRopeToGpuPassBase<
          ConvertPosencRopeToGpu> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Operation *> operations;
    getOperation().walk([&](Operation *op) {
      if (isa<RopeOp, RotateOp>(op))
        operations.push_back(op);
    });
    for (Operation *op : operations) {
      if (failed(checkBuffers(op)))
        return signalPassFailure();
      OpBuilder builder(op);
      if (auto rope = dyn_cast<RopeOp>(op))
        convertRope(builder, rope);
      else
        convertRotate(builder, cast<RotateOp>(op));
      op->erase();
    }
  }
};
} // namespace
