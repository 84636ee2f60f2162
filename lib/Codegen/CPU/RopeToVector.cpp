//===- RopeToVector.cpp - rotary operations as vectors ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A position's cos and sin are computed once, or read once from a table, and
// laid out on the stack as the rotation of a row wants them: for half pairing
// as they are; for interleaved pairing each doubled, the sine with alternating
// sign, so that a row is `x*cos + swap(x)*sin` and is never taken apart.
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
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_CONVERTPOSENCROPETOVECTORPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

namespace {

/// The rotation of rows by one position's table on the stack.
class RowRotation {
public:
  RowRotation(OpBuilder &builder, Operation *op, Pairing pairing,
              int64_t rotaryDim, int64_t offset, Type elementType,
              int64_t vectorBytes)
      : pairing(pairing), rotaryDim(rotaryDim), offset(offset),
        compute(elementType.isF64() ? builder.getF64Type()
                                    : builder.getF32Type()),
        lanes(vectorBytes / (elementType.isF64() ? 8 : 4)),
        rowLanes(vectorBytes * 8 / elementType.getIntOrFloatBitWidth()) {
    // In the entry block: a loop must not grow the stack.
    OpBuilder::InsertionGuard guard(builder);
    auto function = op->getParentOfType<FunctionOpInterface>();
    builder.setInsertionPointToStart(&function.getFunctionBody().front());
    int64_t entries =
        pairing == Pairing::Interleaved ? rotaryDim : rotaryDim / 2;
    auto type = MemRefType::get({entries}, compute);
    IntegerAttr alignment = builder.getI64IntegerAttr(64);
    cosTable = memref::AllocaOp::create(builder, op->getLoc(), type, alignment);
    sinTable = memref::AllocaOp::create(builder, op->getLoc(), type, alignment);
  }

  /// The lanes of a vector of the table.
  int64_t getLanes() const { return lanes; }

  /// Puts cos and sin of the pairs from `pair` on into the table.
  void store(OpBuilder &builder, Location loc, Value pair, Value cos,
             Value sin) const;

  /// Rotates the row of `input` at `indices` into `output`.
  void rotateRow(OpBuilder &builder, Location loc, Value input, Value output,
                 ValueRange indices) const;

private:
  Value load(OpBuilder &builder, Location loc, Value memref, ValueRange indices,
             int64_t length) const;
  void write(OpBuilder &builder, Location loc, Value value, Value memref,
             ValueRange indices) const;
  void copyLanes(OpBuilder &builder, Location loc, Value input, Value output,
                 ValueRange indices, int64_t first, int64_t count) const;

  Pairing pairing;
  int64_t rotaryDim, offset;
  Type compute;
  int64_t lanes, rowLanes;
  Value cosTable, sinTable;
};

} // namespace

static Value offsetIndex(OpBuilder &builder, Location loc, Value index,
                         int64_t offset) {
  if (offset == 0)
    return index;
  return builder.createOrFold<arith::AddIOp>(
      loc, index, arith::ConstantIndexOp::create(builder, loc, offset));
}

static SmallVector<Value> append(ValueRange indices, Value last) {
  SmallVector<Value> result(indices);
  result.push_back(last);
  return result;
}

/// A vector of a row, in the type of the products.
Value RowRotation::load(OpBuilder &builder, Location loc, Value memref,
                        ValueRange indices, int64_t length) const {
  Type element = getElementTypeOrSelf(memref.getType());
  Value value = vector::LoadOp::create(
      builder, loc, VectorType::get({length}, element), memref, indices);
  if (element == compute)
    return value;
  return arith::ExtFOp::create(builder, loc, VectorType::get({length}, compute),
                               value);
}

void RowRotation::write(OpBuilder &builder, Location loc, Value value,
                        Value memref, ValueRange indices) const {
  Type element = getElementTypeOrSelf(memref.getType());
  auto type = cast<VectorType>(value.getType());
  if (element != type.getElementType())
    value = arith::TruncFOp::create(builder, loc, type.clone(element), value);
  vector::StoreOp::create(builder, loc, value, memref, indices);
}

void RowRotation::store(OpBuilder &builder, Location loc, Value pair, Value cos,
                        Value sin) const {
  if (pairing == Pairing::Interleaved) {
    cos = vector::InterleaveOp::create(builder, loc, cos, cos);
    Value negated = arith::NegFOp::create(builder, loc, sin);
    sin = vector::InterleaveOp::create(builder, loc, negated, sin);
    pair = builder.createOrFold<arith::MulIOp>(
        loc, pair, arith::ConstantIndexOp::create(builder, loc, 2));
  }
  vector::StoreOp::create(builder, loc, cos, cosTable, pair);
  vector::StoreOp::create(builder, loc, sin, sinTable, pair);
}

void RowRotation::copyLanes(OpBuilder &builder, Location loc, Value input,
                            Value output, ValueRange indices, int64_t first,
                            int64_t count) const {
  Type element = getElementTypeOrSelf(input.getType());
  forEachVector(builder, loc, count, rowLanes,
                [&](OpBuilder &b, Location l, Value lane, int64_t length) {
                  SmallVector<Value> at =
                      append(indices, offsetIndex(b, l, lane, first));
                  Value value = vector::LoadOp::create(
                      b, l, VectorType::get({length}, element), input, at);
                  vector::StoreOp::create(b, l, value, output, at);
                });
}

void RowRotation::rotateRow(OpBuilder &builder, Location loc, Value input,
                            Value output, ValueRange indices) const {
  if (pairing == Pairing::Half) {
    forEachVector(
        builder, loc, rotaryDim / 2, rowLanes,
        [&](OpBuilder &b, Location l, Value pair, int64_t length) {
          SmallVector<Value> atX =
              append(indices, offsetIndex(b, l, pair, offset));
          SmallVector<Value> atY =
              append(indices, offsetIndex(b, l, pair, offset + rotaryDim / 2));
          Value x = load(b, l, input, atX, length);
          Value y = load(b, l, input, atY, length);
          Value c = load(b, l, cosTable, pair, length);
          Value s = load(b, l, sinTable, pair, length);
          Value ys = arith::MulFOp::create(b, l, y, s);
          Value xs = arith::MulFOp::create(b, l, x, s);
          Value minus = arith::NegFOp::create(b, l, ys);
          write(b, l, math::FmaOp::create(b, l, x, c, minus), output, atX);
          write(b, l, math::FmaOp::create(b, l, y, c, xs), output, atY);
        });
  } else {
    forEachVector(
        builder, loc, rotaryDim, rowLanes,
        [&](OpBuilder &b, Location l, Value lane, int64_t length) {
          SmallVector<Value> at =
              append(indices, offsetIndex(b, l, lane, offset));
          Value x = load(b, l, input, at, length);
          SmallVector<int64_t> neighbours;
          for (int64_t i = 0; i < length; ++i)
            neighbours.push_back(i ^ 1);
          Value swapped = vector::ShuffleOp::create(b, l, x, x, neighbours);
          Value c = load(b, l, cosTable, lane, length);
          Value s = load(b, l, sinTable, lane, length);
          Value product = arith::MulFOp::create(b, l, swapped, s);
          write(b, l, math::FmaOp::create(b, l, x, c, product), output, at);
        });
  }

  // Lanes outside of the window pass through, which in place is nothing to do.
  int64_t size = cast<MemRefType>(input.getType()).getShape().back();
  int64_t after = size - offset - rotaryDim;
  if (input == output || (offset == 0 && after == 0))
    return;
  auto address = [&](Value memref) -> Value {
    return memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, memref);
  };
  Value differ = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                       address(input), address(output));
  scf::IfOp::create(builder, loc, differ, [&](OpBuilder &b, Location l) {
    copyLanes(b, l, input, output, indices, 0, offset);
    copyLanes(b, l, input, output, indices, offset + rotaryDim, after);
    scf::YieldOp::create(b, l);
  });
}

/// Rotates the rows of all tensors at the loop indices `loops`.
static void rotateRows(OpBuilder &builder, Location loc,
                       const RowRotation &rotation, ValueRange inputs,
                       ValueRange inits, ArrayRef<int64_t> dims,
                       ValueRange loops) {
  for (auto [input, init] : llvm::zip_equal(inputs, inits)) {
    int64_t rows = cast<MemRefType>(input.getType()).getRank() - 1;
    SmallVector<int64_t> rowDims;
    SmallVector<Value> sizes;
    for (int64_t dim = 0; dim < rows; ++dim) {
      if (llvm::is_contained(dims, dim))
        continue;
      rowDims.push_back(dim);
      sizes.push_back(getDimSize(builder, loc, init, dim));
    }
    forEachIndex(builder, loc, sizes,
                 [&, input = input, init = init](OpBuilder &b, Location l,
                                                 ValueRange indices) {
                   SmallVector<Value> at(rows);
                   for (auto [dim, index] : llvm::zip_equal(dims, loops))
                     at[dim] = index;
                   for (auto [dim, index] : llvm::zip_equal(rowDims, indices))
                     at[dim] = index;
                   rotation.rotateRow(b, l, input, init, at);
                 });
  }
}

static void convertRope(OpBuilder &builder, RopeOp op, int64_t vectorBytes) {
  Location loc = op.getLoc();
  Type element = getElementTypeOrSelf(op.getInits().front().getType());
  PositionTable table(builder, op, op.getFrequencies(), op.getAxesAttr(),
                      op.getInverse(), element.isF64());
  RowRotation rotation(builder, op, op.getPairing(),
                       op.getFrequencies().getDim(), op.getOffset(), element,
                       vectorBytes);
  forEachIndex(builder, loc, getLoopSizes(builder, op),
               [&](OpBuilder &b, Location l, ValueRange loops) {
                 SmallVector<Value> positions =
                     table.loadPositions(b, l, op.getPositions(), loops);
                 forEachVector(
                     b, l, table.getNumPairs(), rotation.getLanes(),
                     [&](OpBuilder &b2, Location l2, Value pair, int64_t n) {
                       PositionTable::Entry entry =
                           table.emit(b2, l2, positions, pair, n);
                       rotation.store(b2, l2, pair, entry.cos, entry.sin);
                     });
                 rotateRows(b, l, rotation, op.getInputs(), op.getInits(),
                            op.getDims(), loops);
               });
}

static void convertRotate(OpBuilder &builder, RotateOp op,
                          int64_t vectorBytes) {
  Location loc = op.getLoc();
  Type element = getElementTypeOrSelf(op.getInits().front().getType());
  Type compute =
      element.isF64() ? builder.getF64Type() : Type(builder.getF32Type());
  RowRotation rotation(builder, op, op.getPairing(), op.getRotaryDim(),
                       op.getOffset(), element, vectorBytes);
  auto load = [&](OpBuilder &b, Location l, Value table, ValueRange loops,
                  Value pair, int64_t n) -> Value {
    Type tableElement = getElementTypeOrSelf(table.getType());
    Value value = vector::LoadOp::create(
        b, l, VectorType::get({n}, tableElement), table, append(loops, pair));
    if (tableElement == compute)
      return value;
    return arith::ExtFOp::create(b, l, VectorType::get({n}, compute), value);
  };
  forEachIndex(builder, loc, getLoopSizes(builder, op),
               [&](OpBuilder &b, Location l, ValueRange loops) {
                 forEachVector(
                     b, l, op.getRotaryDim() / 2, rotation.getLanes(),
                     [&](OpBuilder &b2, Location l2, Value pair, int64_t n) {
                       Value cos = load(b2, l2, op.getCos(), loops, pair, n);
                       Value sin = load(b2, l2, op.getSin(), loops, pair, n);
                       if (op.getInverse())
                         sin = arith::NegFOp::create(b2, l2, sin);
                       rotation.store(b2, l2, pair, cos, sin);
                     });
                 rotateRows(b, l, rotation, op.getInputs(), op.getInits(),
                            op.getDims(), loops);
               });
}

static void convertSincos(OpBuilder &builder, SincosOp op,
                          int64_t vectorBytes) {
  Location loc = op.getLoc();
  Type element = getElementTypeOrSelf(op.getInits().front().getType());
  PositionTable table(builder, op, op.getFrequencies(), op.getAxesAttr(),
                      /*inverse=*/false, element.isF64());
  int64_t lanes = vectorBytes / (element.isF64() ? 8 : 4);
  forEachIndex(builder, loc, getLoopSizes(builder, op),
               [&](OpBuilder &b, Location l, ValueRange loops) {
                 SmallVector<Value> positions =
                     table.loadPositions(b, l, op.getPositions(), loops);
                 forEachVector(
                     b, l, table.getNumPairs(), lanes,
                     [&](OpBuilder &b2, Location l2, Value pair, int64_t n) {
                       PositionTable::Entry entry =
                           table.emit(b2, l2, positions, pair, n);
                       Value entries[] = {entry.cos, entry.sin};
                       for (auto [value, init] :
                            llvm::zip_equal(entries, op.getInits())) {
                         Value rounded = value;
                         if (getElementTypeOrSelf(value.getType()) != element)
                           rounded = arith::TruncFOp::create(
                               b2, l2, VectorType::get({n}, element), value);
                         vector::StoreOp::create(b2, l2, rounded, init,
                                                 append(loops, pair));
                       }
                     });
               });
}

namespace {
struct ConvertPosencRopeToVector final
    : mlir::posenc::impl::ConvertPosencRopeToVectorPassBase<
          ConvertPosencRopeToVector> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Operation *> operations;
    getOperation().walk([&](Operation *op) {
      if (isa<RopeOp, RotateOp, SincosOp>(op))
        operations.push_back(op);
    });
    for (Operation *op : operations) {
      if (failed(checkConvertible(op, vectorBytes)))
        return signalPassFailure();
      OpBuilder builder(op);
      if (auto rope = dyn_cast<RopeOp>(op))
        convertRope(builder, rope, vectorBytes);
      else if (auto rotate = dyn_cast<RotateOp>(op))
        convertRotate(builder, rotate, vectorBytes);
      else
        convertSincos(builder, cast<SincosOp>(op), vectorBytes);
      op->erase();
    }
  }
};
} // namespace
