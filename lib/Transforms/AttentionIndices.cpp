//===- AttentionIndices.cpp - sequences and keys of attention -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Transforms/AttentionIndices.h"

#include "posenc/IR/IndexArithmetic.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::posenc;

Value mlir::posenc::loadIndex(OpBuilder &builder, Location loc, Value list,
                              ValueRange indices) {
  Value element;
  if (isa<MemRefType>(list.getType()))
    element = memref::LoadOp::create(builder, loc, list, indices);
  else
    element = tensor::ExtractOp::create(builder, loc, list, indices);
  return builder.createOrFold<arith::IndexCastOp>(loc, builder.getIndexType(),
                                                  element);
}

/// Returns the size of a tensor's or memref's dimension: a constant if it is
/// static.
static Value getSize(ImplicitLocOpBuilder &builder, Value shaped, int64_t dim) {
  auto type = cast<ShapedType>(shaped.getType());
  if (!type.isDynamicDim(dim))
    return createIndex(builder, type.getDimSize(dim));
  if (isa<MemRefType>(type))
    return memref::DimOp::create(builder, shaped, dim);
  return tensor::DimOp::create(builder, shaped, dim);
}

/// Clamps `index` to [0, limit].
static Value clamp(ImplicitLocOpBuilder &builder, Value index, Value limit) {
  return maxIndex(builder, createIndex(builder, 0),
                  minIndex(builder, index, limit));
}

//===----------------------------------------------------------------------===//
// Masks by position
//===----------------------------------------------------------------------===//

Value PositionMask::emitFirstKey(ImplicitLocOpBuilder &builder,
                                 Value position) const {
  Value zero = createIndex(builder, 0);
  return left ? maxIndex(builder, zero, addIndex(builder, position, -*left))
              : zero;
}

Value PositionMask::emitEndKey(ImplicitLocOpBuilder &builder, Value position,
                               Value numKeys) const {
  return right ? minIndex(builder, addIndex(builder, position, *right + 1),
                          numKeys)
               : numKeys;
}

VisibleKeys PositionMask::emitVisibleKeys(ElementwiseBuilder &b,
                                          function_ref<Value(int64_t)> getKey,
                                          Value end) const {
  VisibleKeys keys;
  if (left)
    keys.begin = getKey(-*left);
  if (right) {
    keys.end = getKey(*right + 1);
    if (end)
      keys.end = b.binary<arith::MinSIOp>(keys.end, end);
  } else {
    keys.end = end;
  }
  return keys;
}

Value mlir::posenc::emitIsVisible(ElementwiseBuilder &b, Value key,
                                  const VisibleKeys &keys) {
  Value isBefore, isAfter;
  if (keys.end)
    isBefore = b.compare(arith::CmpIPredicate::slt, key, keys.end);
  if (!keys.begin)
    return isBefore;
  isAfter = b.compare(arith::CmpIPredicate::sge, key, keys.begin);
  return isBefore ? b.andi(isBefore, isAfter) : isAfter;
}

/// Combines the comparisons of `from - to` with a limit, where there is one.
template <typename Combine>
static Value
compare(ImplicitLocOpBuilder &builder, arith::CmpIPredicate predicate,
        ArrayRef<std::tuple<std::optional<int64_t>, Value, Value>> limits) {
  Value all;
  for (auto [limit, from, to] : limits) {
    if (!limit)
      continue;
    Value distance = arith::SubIOp::create(builder, from, to);
    Value one = arith::CmpIOp::create(builder, predicate, distance,
                                      createIndex(builder, *limit));
    all = all ? Value(Combine::create(builder, all, one)) : one;
  }
  return all;
}

Value PositionMask::emitIsAnyVisible(ImplicitLocOpBuilder &builder,
                                     const PositionTile &tile) const {
  return compare<arith::AndIOp>(builder, arith::CmpIPredicate::sle,
                                {{right, tile.firstKey, tile.lastQuery},
                                 {left, tile.firstQuery, tile.lastKey}});
}

Value PositionMask::emitIsPartial(ImplicitLocOpBuilder &builder,
                                  const PositionTile &tile) const {
  return compare<arith::OrIOp>(builder, arith::CmpIPredicate::sgt,
                               {{right, tile.lastKey, tile.firstQuery},
                                {left, tile.lastQuery, tile.firstKey}});
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

Value AttentionSequence::emitPosition(ImplicitLocOpBuilder &builder,
                                      AttentionOp op, Value query) const {
  Value position =
      addIndex(builder, query, subIndex(builder, numKeys, numQueries));
  if (Value trailing = op.getTrailingQueries())
    position = subIndex(builder, position, trailing);
  return position;
}

/// Emits the number of valid keys of a sequence whose keys are not ragged.
/// `capacity` is the number of keys of a cache or page, or null.
static Value emitNumKeys(ImplicitLocOpBuilder &builder, AttentionOp op,
                         Value batch, Value capacity) {
  if (!capacity)
    capacity = getSize(builder, op.getKey(), op.getKeyTokenDim());
  if (!op.getLengths())
    return capacity;
  if (Value table = op.getBlockTable())
    capacity =
        arith::MulIOp::create(builder, capacity, getSize(builder, table, 1));
  return clamp(builder,
               loadIndex(builder, builder.getLoc(), op.getLengths(), batch),
               capacity);
}

AttentionSequence mlir::posenc::emitSequence(ImplicitLocOpBuilder &builder,
                                             AttentionOp op, Value batch,
                                             Value numQueries, Value numKeys) {
  AttentionSequence sequence;
  sequence.batch = batch;
  if (!numQueries)
    numQueries = getSize(builder, op.getQuery(), op.getQueryTokenDim());
  if (!op.hasRaggedQueries()) {
    sequence.numQueries = numQueries;
    sequence.numKeys = emitNumKeys(builder, op, batch, numKeys);
    return sequence;
  }
  RaggedTokens queries(builder, op.getCuSeqlens()[0], numQueries);
  sequence.queryStart = queries.getStart(batch);
  sequence.numQueries = queries.getLength(batch, numQueries);
  if (op.hasRaggedKeys()) {
    if (!numKeys)
      numKeys = getSize(builder, op.getKey(), op.getKeyTokenDim());
    RaggedTokens keys(builder, op.getCuSeqlens()[1], numKeys);
    sequence.keyStart = keys.getStart(batch);
    sequence.numKeys = keys.getLength(batch, sequence.keyStart);
    return sequence;
  }
  Value isSequence = arith::CmpIOp::create(builder, arith::CmpIPredicate::slt,
                                           batch, queries.getNumSequences());
  auto hasKeys = scf::IfOp::create(builder, builder.getIndexType(), isSequence,
                                   /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(hasKeys.thenBlock());
  scf::YieldOp::create(builder, emitNumKeys(builder, op, batch, numKeys));
  builder.setInsertionPointToStart(hasKeys.elseBlock());
  scf::YieldOp::create(builder, createIndex(builder, 0));
  sequence.numKeys = hasKeys.getResult(0);
  return sequence;
}

AttentionSequence
mlir::posenc::emitBoundedSequence(ImplicitLocOpBuilder &builder, AttentionOp op,
                                  Value batch, Value numQueries,
                                  Value numKeys) {
  AttentionSequence sequence =
      emitSequence(builder, op, batch, numQueries, numKeys);
  if (!op.getLengths() || !op.getBlockTable())
    return sequence;
  for (Value tensor : {op.getMask(), op.getKeyPositions()}) {
    if (!tensor)
      continue;
    auto type = cast<ShapedType>(tensor.getType());
    if (type.getShape().back() != 1)
      sequence.numKeys = minIndex(builder, sequence.numKeys,
                                  getSize(builder, tensor, type.getRank() - 1));
  }
  return sequence;
}

RaggedTokens::RaggedTokens(ImplicitLocOpBuilder &builder, Value starts,
                           Value size)
    : b(builder), starts(starts), size(size),
      numSequences(addIndex(b, getSize(b, starts, /*dim=*/0), -1)) {}

Value RaggedTokens::getStart(Value sequence) {
  return clamp(b, loadIndex(b, b.getLoc(), starts, sequence), size);
}

Value RaggedTokens::getLength(Value sequence, Value endOfLast) {
  Value start = getStart(sequence);
  Value next = minIndex(b, addIndex(b, sequence, 1), numSequences);
  Value isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, sequence,
                                       numSequences);
  Value end = arith::SelectOp::create(b, isLast, endOfLast, getStart(next));
  return maxIndex(b, createIndex(b, 0), subIndex(b, end, start));
}

Value RaggedTokens::getFirstTile(Value sequence, Value step) {
  // The next sequence starts as many tiles later as this one needs, or one
  // more.
  Value number = arith::DivUIOp::create(b, getStart(sequence), step);
  return addIndex(b, number, sequence);
}

Value RaggedTokens::getNumTiles(Value step) {
  Value number = b.createOrFold<arith::DivUIOp>(size, step);
  return addIndex(b, addIndex(b, number, numSequences), 1);
}

Value RaggedTokens::findSequence(Value tile, Value step) {
  // The last sequence that begins at or before the tile.
  Type index = b.getIndexType();
  auto inBody = [&](OpBuilder &nested, function_ref<void()> body) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(nested.getInsertionBlock(), nested.getInsertionPoint());
    body();
  };
  auto loop = scf::WhileOp::create(
      b, TypeRange{index, index}, ValueRange{createIndex(b, 0), numSequences},
      [&](OpBuilder &nested, Location, ValueRange range) {
        inBody(nested, [&] {
          Value isOpen = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                               range[0], range[1]);
          scf::ConditionOp::create(b, isOpen, range);
        });
      },
      [&](OpBuilder &nested, Location, ValueRange range) {
        inBody(nested, [&] {
          Value sum = addIndex(b, addIndex(b, range[0], range[1]), 1);
          Value middle = arith::DivUIOp::create(b, sum, createIndex(b, 2));
          Value isBefore = arith::CmpIOp::create(
              b, arith::CmpIPredicate::sle, getFirstTile(middle, step), tile);
          Value low = arith::SelectOp::create(b, isBefore, middle, range[0]);
          Value high = arith::SelectOp::create(b, isBefore, range[1],
                                               addIndex(b, middle, -1));
          scf::YieldOp::create(b, ValueRange{low, high});
        });
      });
  return loop.getResult(0);
}

RaggedTokens::Tile RaggedTokens::findTile(Value tile, Value step) {
  Value sequence = findSequence(tile, step);
  Value first = getFirstTile(sequence, step);
  return {sequence, maxIndex(b, createIndex(b, 0), subIndex(b, tile, first))};
}

//===----------------------------------------------------------------------===//
// Pages
//===----------------------------------------------------------------------===//

PagedKey mlir::posenc::emitPagedKey(ImplicitLocOpBuilder &builder,
                                    Value blockTable, Value batch, Value key,
                                    Value numSlots) {
  Value number = arith::DivUIOp::create(builder, key, numSlots);
  Value page =
      loadIndex(builder, builder.getLoc(), blockTable, {batch, number});
  return {page, arith::RemUIOp::create(builder, key, numSlots)};
}
