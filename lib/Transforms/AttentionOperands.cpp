//===- AttentionOperands.cpp - operands of attention tiles ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionDecomposition.h"
#include "CacheRows.h"

#include "posenc/IR/CreateGeneric.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

RowTransform AttentionDecomposition::getTransform(Value norm,
                                                  RotationAttr rotation) {
  double eps = op.getNormEps() ? op.getNormEps()->convertToDouble() : 0.0;
  return {norm, eps, op.getNormWeightOffset(), rotation, op.getTurns()};
}

/// Applies norms over all heads of a token before tiling, since a tile has only
/// some of the heads.
void AttentionDecomposition::normAllHeads() {
  bool normsQueries = op.normsAllQueryHeads(),
       normsKeys = op.normsAllKeyHeads();
  if (normsQueries) {
    RowTransform transform = getTransform(op.getQueryNorm(), {});
    op.getQueryMutable().assign(normalizeHeads(
        builder, loc, op.getQuery(), op.getQueryHeadDim(), transform));
    op.getQueryNormMutable().clear();
  }
  if (normsKeys) {
    RowTransform transform = getTransform(op.getKeyNorm(), {});
    if (op.hasMixedTypes()) {
      SmallVector<unsigned> dims{op.getKeyHeadDim(), op.getKeyTokenDim()};
      if (!op.hasRaggedKeys())
        dims.insert(dims.begin(), 0);
      op.getKeyMutable().assign(widenRows(
          builder, loc, op.getKey(), op.getKeyScales(), dims, op.getSumType()));
      op.getKeyScalesMutable().clear();
    }
    op.getKeyMutable().assign(normalizeHeads(builder, loc, op.getKey(),
                                             op.getKeyHeadDim(), transform));
    op.getKeyNormMutable().clear();
  }
}

void AttentionDecomposition::getSlice(Value tensor, HeadLayout layout,
                                      bool isRagged, Value start,
                                      const Tokens &tokens, bool withLanes,
                                      SmallVector<OpFoldResult> &offsets,
                                      SmallVector<OpFoldResult> &sizes) {
  OpFoldResult first = tokens.first;
  if (isRagged)
    first = add(start, toValue(first));
  else {
    offsets.push_back(sequence.batch);
    sizes.push_back(attr(1));
  }
  bool isTokenMajor = layout == HeadLayout::TokenMajor;
  offsets.push_back(isTokenMajor ? first : tokens.head);
  sizes.push_back(isTokenMajor ? tokens.count : tokens.numHeads);
  offsets.push_back(isTokenMajor ? tokens.head : first);
  sizes.push_back(isTokenMajor ? tokens.numHeads : tokens.count);
  if (withLanes) {
    offsets.push_back(attr(0));
    sizes.push_back(
        attr(cast<RankedTensorType>(tensor.getType()).getShape().back()));
  }
}

/// Creates a matrix of `sizes` whose elements are read from `tensor` at the
/// indices that `locate` computes, for matrices that are no slice of it.
static Value gather(OpBuilder &builder, Location loc, Value tensor,
                    ArrayRef<OpFoldResult> sizes,
                    function_ref<SmallVector<Value>(OpBuilder &, Location,
                                                    Value row, Value column)>
                        locate) {
  Value init = tensor::EmptyOp::create(builder, loc, sizes,
                                       getElementTypeOrSelf(tensor.getType()));
  return createParallelGeneric(
      builder, loc, {}, init, {},
      [&](OpBuilder &b, Location l, ValueRange) -> Value {
        Value row = linalg::IndexOp::create(b, l, 0);
        Value column = linalg::IndexOp::create(b, l, 1);
        return tensor::ExtractOp::create(b, l, tensor,
                                         locate(b, l, row, column));
      });
}

/// Returns the positions of a tile's tokens for a rope; without a positions
/// operand, the query position of the first token.
Value AttentionDecomposition::takePositions(Value positions,
                                            RotationAttr rotation,
                                            bool isRagged, Value start,
                                            Value first, OpFoldResult count) {
  if (!positions)
    return first;
  SmallVector<OpFoldResult> offsets, sizes;
  SmallVector<int64_t> dropped;
  AxesAttr axes = rotation.getAxes();
  if (axes) {
    offsets.push_back(attr(0));
    sizes.push_back(attr(axes.getNumAxes()));
  }
  if (axes && !isRagged) {
    // Copies instead of slicing: for one token it would be ambiguous which
    // dimension the slice drops, and the slice would not be known to be
    // contiguous.
    return gather(builder, loc, positions, {sizes[0], count},
                  [&](OpBuilder &b, Location l, Value axis, Value column) {
                    Value token = arith::AddIOp::create(b, l, first, column);
                    return SmallVector<Value>{axis, sequence.batch, token};
                  });
  }
  if (!isRagged) {
    dropped.push_back(offsets.size());
    offsets.push_back(sequence.batch);
    sizes.push_back(attr(1));
  }
  offsets.push_back(isRagged ? add(start, first) : first);
  sizes.push_back(count);
  return extract(positions, offsets, sizes, dropped);
}

/// Norms the rows of a tile, rotates them by rows of tables, and rounds them to
/// their type. `firstPosition` is the position of the first token if the
/// operation has no positions.
Value AttentionDecomposition::transformByTables(
    Value rows, unsigned tokenDim, RowTransform transform,
    const RotationTables &tables, Value positions, bool isRagged, Value start,
    Value first, Value firstPosition, OpFoldResult count) {
  Type element = getElementTypeOrSelf(rows.getType());
  RotationAttr rotation = std::exchange(transform.rotation, nullptr);
  rows = transformRows(builder, loc, rows, tokenDim, /*positions=*/{},
                       transform, /*keepsSum=*/true);
  SmallVector<OpFoldResult> offsets, sizes;
  SmallVector<int64_t> dropped;
  if (positions && !isRagged) {
    dropped.push_back(0);
    offsets.push_back(sequence.batch);
    sizes.push_back(attr(1));
  }
  Value row = isRagged ? add(start, first) : first;
  offsets.push_back(positions ? row : add(firstPosition, tables.origin));
  sizes.push_back(count);
  offsets.push_back(attr(0));
  sizes.push_back(attr(rotation.getFrequencies().getDim() / 2));
  Value cos = extract(tables.cos, offsets, sizes, dropped);
  Value sin = extract(tables.sin, offsets, sizes, dropped);
  Value init =
      createEmptyLike(builder, loc, rows, getElementTypeOrSelf(rows.getType()));
  rows =
      RotateOp::create(builder, loc, init.getType(), rows, cos, sin, init,
                       rotation.getPairing(), {static_cast<int64_t>(tokenDim)},
                       rotation.getOffset())
          .getResult(0);
  return narrowRows(builder, loc, rows, element);
}

/// Returns the queries of the task as (heads, queries, dim), normed and
/// rotated.
Value AttentionDecomposition::takeQueries() {
  bool isRagged = op.hasRaggedQueries();
  SmallVector<OpFoldResult> offsets, sizes;
  getSlice(op.getQuery(), op.getQueryLayout(), isRagged, sequence.queryStart,
           queries,
           /*withLanes=*/true, offsets, sizes);
  SmallVector<int64_t> dropped;
  if (!isRagged)
    dropped.push_back(0);
  Value tile = extract(op.getQuery(), offsets, sizes, dropped);
  if (op.getQueryLayout() == HeadLayout::TokenMajor)
    tile = transpose(builder, loc, tile, {1, 0, 2});
  RowTransform transform =
      getTransform(op.getQueryNorm(), op.getQueryRotationAttr());
  if (options.queryTables)
    return transformByTables(
        tile, /*tokenDim=*/1, transform, options.queryTables,
        op.getQueryPositions(), isRagged, sequence.queryStart,
        toValue(queries.first), firstPosition, queries.count);
  Value positions;
  if (transform.rotation)
    positions = op.getQueryPositions()
                    ? takePositions(op.getQueryPositions(), transform.rotation,
                                    isRagged, sequence.queryStart,
                                    toValue(queries.first), queries.count)
                    : firstPosition;
  return transformRows(builder, loc, tile, /*tokenDim=*/1, positions,
                       transform);
}

/// Returns keys or values of the task's key head as (keys, dim).
Value AttentionDecomposition::takeKeys(Value tensor, Value firstKey,
                                       OpFoldResult count) {
  auto type = cast<RankedTensorType>(tensor.getType());
  bool isTokenMajor = op.getKeyLayout() == HeadLayout::TokenMajor;
  if (Value table = op.getBlockTable()) {
    Value slots = toValue(numKeys);
    return gather(builder, loc, tensor, {count, attr(type.getShape().back())},
                  [&](OpBuilder &b, Location l, Value row, Value lane) {
                    Value key = arith::AddIOp::create(b, l, firstKey, row);
                    ImplicitLocOpBuilder nested(l, b);
                    auto [page, slot] =
                        emitPagedKey(nested, table, sequence.batch, key, slots);
                    return SmallVector<Value>{
                        page, isTokenMajor ? slot : keyHead,
                        isTokenMajor ? keyHead : slot, lane};
                  });
  }
  bool isRagged = op.hasRaggedKeys();
  SmallVector<OpFoldResult> offsets, sizes;
  getSlice(tensor, op.getKeyLayout(), isRagged, sequence.keyStart,
           {firstKey, count, keyHead, attr(1)}, /*withLanes=*/true, offsets,
           sizes);
  SmallVector<int64_t> dropped{op.getKeyHeadDim()};
  if (!isRagged)
    dropped.push_back(0);
  return extract(tensor, offsets, sizes, dropped);
}

/// Converts a tile of keys or values to the accumulator type and multiplies it
/// by its scales, if there are any.
Value AttentionDecomposition::widenKeys(Value rows, Value scales,
                                        Value firstKey, OpFoldResult count) {
  if (scales) {
    ScaledKeys keys{sequence.batch,     keyHead, firstKey, count,
                    op.getBlockTable(), {}};
    if (op.hasRaggedKeys()) {
      keys.sequence = nullptr;
      keys.first = add(sequence.keyStart, firstKey);
    }
    if (op.getBlockTable())
      keys.slots = toValue(numKeys);
    scales = takeScales(builder, loc, scales, keys);
  }
  bool isForAll =
      scales && cast<RankedTensorType>(scales.getType()).getRank() == 0;
  return widenRows(builder, loc, rows, scales,
                   isForAll ? ArrayRef<unsigned>() : ArrayRef<unsigned>{0},
                   sum);
}

/// Copies the tile and pads it with zeros to `shape`.
Value AttentionDecomposition::pad(Value tile, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(tile.getType());
  Type element = type.getElementType();
  Value whole = tensor::EmptyOp::create(builder, loc, shape, element);
  if (type.getShape() == shape)
    return linalg::CopyOp::create(builder, loc, tile, whole).getResult(0);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tile);
  SmallVector<OpFoldResult> zeros(sizes.size(), attr(0)),
      ones(sizes.size(), attr(1));
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(element));
  if (sizes.size() == 2) {
    // Fills only the missing rows with zeros.
    AffineExpr d0 = builder.getAffineDimExpr(0);
    SmallVector<OpFoldResult> offsets{sizes[0], attr(0)},
        rest{apply(shape[0] - d0, {sizes[0]}), attr(shape[1])};
    Value missing = tensor::ExtractSliceOp::create(builder, loc, whole, offsets,
                                                   rest, ones);
    missing = linalg::FillOp::create(builder, loc, zero, missing).getResult(0);
    whole = tensor::InsertSliceOp::create(builder, loc, missing, whole, offsets,
                                          rest, ones);
  } else {
    whole = linalg::FillOp::create(builder, loc, zero, whole).getResult(0);
  }
  return tensor::InsertSliceOp::create(builder, loc, tile, whole, zeros, sizes,
                                       ones);
}

/// Returns the mask of a tile of queries as heads x queries x keys; dimensions
/// with a static size of 1 are kept, to be broadcast.
Value AttentionDecomposition::takeMask(const QueryTile &queryTile,
                                       Value firstKey, OpFoldResult count) {
  Value mask = op.getMask();
  if (!mask)
    return {};
  ArrayRef<int64_t> shape = cast<RankedTensorType>(mask.getType()).getShape();
  AffineExpr d0 = builder.getAffineDimExpr(0), d1 = builder.getAffineDimExpr(1);
  SmallVector<OpFoldResult> offsets{
      sequence.batch, queries.head,
      apply(d0 + d1, {queries.first, queryTile.first}), firstKey};
  SmallVector<OpFoldResult> sizes{attr(1), queries.numHeads, queryTile.count,
                                  count};
  SmallVector<int64_t> padded{headsPerTile, queriesPerTile, keysPerTile};
  for (int64_t dim = 0; dim < 4; ++dim)
    if (shape[dim] == 1) {
      offsets[dim] = attr(0);
      sizes[dim] = attr(1);
      if (dim > 0)
        padded[dim - 1] = 1;
    }
  return pad(extract(mask, offsets, sizes, {0}), padded);
}
