//===- TileProductLoops.cpp - loops over the depth of tile products -------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileProductUnits.h"

#include "posenc/Codegen/Tiling.h"
#include "posenc/IR/IndexArithmetic.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

/// The maximum number of sums of a register tile.
static constexpr int64_t kMaxSums = 2048;

int64_t mlir::posenc::getLanes(TileProductOp op) {
  // Shorter vectors would not be worth it.
  constexpr int64_t kMinLanes = 8;
  int64_t columns = op.getNumColumns(), divisor = columns & -columns;
  return divisor < kMinLanes ? columns : divisor;
}

bool mlir::posenc::fitsInVectors(TileProductOp op) {
  int64_t rows = op.getNumRows(), columns = op.getNumColumns();
  if (ShapedType::isDynamic(rows) || ShapedType::isDynamic(columns) ||
      rows == 0 || columns == 0 || rows > kMaxSums || columns > kMaxSums / rows)
    return false;
  // LLVM cannot shuffle vectors of 16-bit floats whose length is not a power of
  // two.
  for (auto [panel, length] :
       {std::pair<Value, int64_t>(op.getA(), rows), {op.getB(), getLanes(op)}})
    if (getElementTypeOrSelf(panel.getType()).getIntOrFloatBitWidth() <= 16 &&
        !llvm::isPowerOf2_64(length))
      return false;
  return true;
}

bool mlir::posenc::fitsInVectors(TileProductOp op, int64_t lanes) {
  if (!fitsInVectors(op))
    return false;
  if (op.hasVectorSums())
    return cast<VectorType>(op.getSums().getType()).getDimSize(2) == lanes;
  return op.getNumColumns() % lanes == 0;
}

//===----------------------------------------------------------------------===//
// Sums in a tensor or memref
//===----------------------------------------------------------------------===//

/// Returns the number of steps along the depth.
static Value getSteps(ImplicitLocOpBuilder &builder, TileProductOp op) {
  if (int64_t depth = op.getDepth(); !ShapedType::isDynamic(depth))
    return createIndex(builder, depth);
  Value zero = createIndex(builder, 0), b = op.getB();
  return isa<TensorType>(b.getType())
             ? builder.createOrFold<tensor::DimOp>(b, zero)
             : builder.createOrFold<memref::DimOp>(b, zero);
}

static Value readTile(ImplicitLocOpBuilder &builder, Value matrix,
                      ArrayRef<int64_t> shape, ValueRange at) {
  auto type = VectorType::get(shape, getElementTypeOrSelf(matrix.getType()));
  SmallVector<bool> inBounds(shape.size(), true);
  return vector::TransferReadOp::create(builder, type, matrix, at,
                                        /*padding=*/std::nullopt, inBounds);
}

/// Extends floats to the type of the sums.
static Value extendToSums(ImplicitLocOpBuilder &builder, TileProductOp op,
                          Value value) {
  Type sum = getElementTypeOrSelf(op.getSums().getType());
  if (op.hasWords() || getElementTypeOrSelf(value.getType()) == sum)
    return value;
  Type type = sum;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = vector.clone(sum);
  return arith::ExtFOp::create(builder, type, value);
}

void mlir::posenc::lowerInTile(
    RewriterBase &rewriter, TileProductOp op, int64_t lanes,
    function_ref<SmallVector<Value>(ImplicitLocOpBuilder &, Value, ValueRange,
                                    ValueRange)>
        step) {
  rewriter.setInsertionPoint(op);
  ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
  int64_t rows = op.getNumRows(), columns = op.getNumColumns();
  Value zero = createIndex(builder, 0), one = createIndex(builder, 1);
  Value depth = getSteps(builder, op);
  Value result = op.getSums();
  // Only whole tiles that were filled are recognizable in what is read later.
  auto fill = result.getDefiningOp<linalg::FillOp>();
  if (lanes == columns || !fill || fill->getNumResults() == 0)
    fill = nullptr;
  if (fill)
    result = fill.getDpsInits().front();
  SmallVector<Value> firsts, start;
  for (int64_t first = 0; first < columns; first += lanes) {
    firsts.push_back(createIndex(builder, first));
    if (fill)
      start.push_back(vector::BroadcastOp::create(
          builder, VectorType::get({rows, lanes}, getElementTypeOrSelf(result)),
          fill.getInputs().front()));
    else
      start.push_back(
          readTile(builder, result, {rows, lanes}, {zero, firsts.back()}));
  }
  auto loop = scf::ForOp::create(builder, zero, depth, one, start);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value k = loop.getInductionVar();
    Value column = op.getTransposed()
                       ? readTile(builder, op.getA(), {1, rows}, {k, zero})
                       : readTile(builder, op.getA(), {rows, 1}, {zero, k});
    column = extendToSums(builder, op, column);
    SmallVector<Value> row;
    for (Value first : firsts)
      row.push_back(extendToSums(
          builder, op, readTile(builder, op.getB(), {lanes}, {k, first})));
    scf::YieldOp::create(builder,
                         step(builder, column, row, loop.getRegionIterArgs()));
  }
  SmallVector<bool> inBounds(2, true);
  bool isTensor = isa<TensorType>(result.getType());
  for (auto [first, sums] : llvm::zip(firsts, loop.getResults())) {
    auto write = vector::TransferWriteOp::create(
        builder, sums, result, ValueRange{zero, first}, inBounds);
    if (isTensor)
      result = write.getResult();
  }
  if (isTensor)
    rewriter.replaceOp(op, result);
  else
    rewriter.eraseOp(op);
}

SmallVector<Value>
mlir::posenc::addRows(ImplicitLocOpBuilder &builder, TileProductOp op,
                      Value column, ValueRange row, ValueRange sums,
                      function_ref<Value(Value, Value, Value)> add) {
  SmallVector<Value> results(sums);
  for (int64_t i = 0; i < op.getNumRows(); ++i) {
    SmallVector<int64_t> at{i, 0};
    if (op.getTransposed())
      std::swap(at[0], at[1]);
    Value factor = vector::BroadcastOp::create(
        builder, row.front().getType(),
        vector::ExtractOp::create(builder, column, at));
    for (auto [vector, before, result] : llvm::zip(row, sums, results))
      result = vector::InsertOp::create(
          builder,
          add(factor, vector, vector::ExtractOp::create(builder, before, i)),
          result, i);
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Sums in registers
//===----------------------------------------------------------------------===//

namespace {
/// A panel, or the memref of which a subview shows a part as panel: loads of
/// the memref itself leave the compiler the indices that it was given.
class PanelMemory {
public:
  PanelMemory(ImplicitLocOpBuilder &builder, Value panel);

  /// Returns the indices of an element, of which `row` and `column` are those
  /// of `getIndex`.
  SmallVector<Value> at(Value row, Value column) const {
    SmallVector<Value> indices(first);
    indices[dims[0]] = row;
    indices[dims[1]] = column;
    return indices;
  }
  /// Returns the index in the memref of an index of the panel's rows, or
  /// columns.
  Value getIndex(ImplicitLocOpBuilder &builder, unsigned dim,
                 Value index) const {
    Value from = first[dims[dim]];
    return isZeroInteger(from) ? index : addIndex(builder, from, index);
  }
  Value getFirst(unsigned dim) const { return first[dims[dim]]; }

  Value memory;

private:
  /// The indices of the panel's first element, and the dimensions of its rows
  /// and columns.
  SmallVector<Value> first;
  SmallVector<unsigned> dims;
};
} // namespace

PanelMemory::PanelMemory(ImplicitLocOpBuilder &builder, Value panel)
    : memory(panel), first(2, createIndex(builder, 0)), dims({0, 1}) {
  auto view = panel.getDefiningOp<memref::SubViewOp>();
  if (!view || !view.hasUnitStride())
    return;
  memory = view.getSource();
  first = getValueOrCreateConstantIndexOp(builder, builder.getLoc(),
                                          view.getMixedOffsets());
  dims.clear();
  llvm::SmallBitVector dropped = view.getDroppedDims();
  for (unsigned dim = 0; dim < first.size(); ++dim)
    if (!dropped.test(dim))
      dims.push_back(dim);
}

/// Replaces the vector by its parts, which its users extract in most cases.
static void replaceByParts(RewriterBase &rewriter, TileProductOp op,
                           ValueRange parts) {
  auto type = cast<VectorType>(op.getResult().getType());
  int64_t vectors = type.getDimSize(1);
  for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
    auto extract = dyn_cast<vector::ExtractOp>(user);
    if (!extract || extract.hasDynamicPosition() ||
        extract.getNumIndices() != 2)
      continue;
    ArrayRef<int64_t> position = extract.getStaticPosition();
    rewriter.replaceOp(extract, parts[position[0] * vectors + position[1]]);
  }
  if (op.use_empty())
    return rewriter.eraseOp(op);
  ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
  Value all = ub::PoisonOp::create(builder, type);
  for (auto [number, part] : llvm::enumerate(parts)) {
    int64_t i = number;
    all = vector::InsertOp::create(builder, part, all,
                                   ArrayRef<int64_t>{i / vectors, i % vectors});
  }
  rewriter.replaceOp(op, all);
}

void mlir::posenc::lowerInRegisters(
    RewriterBase &rewriter, TileProductOp op,
    function_ref<Value(ImplicitLocOpBuilder &, Value, Value, Value)> step) {
  rewriter.setInsertionPoint(op);
  ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
  auto type = cast<VectorType>(op.getSums().getType());
  int64_t vectors = type.getDimSize(1), lanes = type.getDimSize(2);
  auto vectorType =
      VectorType::get({lanes}, getElementTypeOrSelf(op.getB().getType()));
  PanelMemory a(builder, op.getA()), b(builder, op.getB());
  SmallVector<Value> start, rows, columns;
  for (int64_t row = 0; row < type.getDimSize(0); ++row) {
    rows.push_back(a.getIndex(builder, op.getTransposed() ? 1 : 0,
                              createIndex(builder, row)));
    for (int64_t i = 0; i < vectors; ++i)
      start.push_back(builder.createOrFold<vector::ExtractOp>(
          op.getSums(), ArrayRef<int64_t>{row, i}));
  }
  for (int64_t i = 0; i < vectors; ++i)
    columns.push_back(b.getIndex(builder, 1, createIndex(builder, i * lanes)));
  // Panels that begin at the same index along the depth share it.
  unsigned depthDim = op.getTransposed() ? 0 : 1;
  Value first = createIndex(builder, 0);
  bool isShared =
      isEqualConstantIntOrValue(a.getFirst(depthDim), b.getFirst(0));
  if (isShared)
    first = b.getFirst(0);
  Value end = addIndex(builder, getSteps(builder, op), first);
  auto loop =
      scf::ForOp::create(builder, first, end, createIndex(builder, 1), start);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value k = loop.getInductionVar(), ka = k, kb = k;
    if (!isShared) {
      ka = a.getIndex(builder, depthDim, k);
      kb = b.getIndex(builder, 0, k);
    }
    SmallVector<Value> factors, panel, sums;
    for (Value row : rows)
      factors.push_back(memref::LoadOp::create(
          builder, a.memory,
          op.getTransposed() ? a.at(ka, row) : a.at(row, ka)));
    for (Value column : columns)
      panel.push_back(vector::LoadOp::create(builder, vectorType, b.memory,
                                             b.at(kb, column)));
    for (auto [row, factor] : llvm::enumerate(factors)) {
      Value all = vector::BroadcastOp::create(
          builder, VectorType::get({lanes}, factor.getType()), factor);
      all = extendToSums(builder, op, all);
      for (auto [i, vector] : llvm::enumerate(panel))
        sums.push_back(step(builder, all, extendToSums(builder, op, vector),
                            loop.getRegionIterArg(row * vectors + i)));
    }
    scf::YieldOp::create(builder, sums);
  }
  rewriter.setInsertionPoint(op);
  replaceByParts(rewriter, op, loop.getResults());
}
