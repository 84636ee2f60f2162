//===- DecomposeAttention.cpp - attention as loops of tiles -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Right for every attention on tensors, fast for none in particular. Batch
// entries of any form (padded, packed, paged) differ only in where a tile is
// read: beyond that, all is in places. Tiles never exceed the tokens there are,
// so that nothing else is read; their sizes have constant bounds, by which
// later passes put them on the stack.
//
//===----------------------------------------------------------------------===//

#include "HeadRows.h"

#include "posenc/Codegen/Attention.h"
#include "posenc/IR/Posenc.h"
#include "posenc/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"

#include <limits>

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCDECOMPOSEATTENTIONPASS
#include "posenc/Transforms/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// A tile's queries, and its results, have at most so many bytes.
static constexpr int64_t kMaxTileBytes = 64 << 10;

/// A window that is wider than any distance, but does not make sums overflow.
static constexpr int64_t kWidest = int64_t{1} << 62;

namespace {

/// The lowering of one operation.
class Decomposition {
public:
  Decomposition(RewriterBase &rewriter, AttentionOp op, int64_t rowsPerTile,
                int64_t keysPerTile)
      : builder(rewriter), loc(op.getLoc()), op(op), sum(op.getSumType()),
        rowsPerTile(rowsPerTile), keysPerTile(keysPerTile) {}

  /// The results.
  ValueRange decompose();

private:
  /// Some tokens of one batch entry, and its heads from `head` on.
  struct Tokens {
    OpFoldResult first, count;
    OpFoldResult head, numHeads;
  };
  /// Running sums of values, maxima and sums.
  using State = SmallVector<Value>;

  void chooseTiles();
  void findTile(ValueRange loops);
  std::pair<Value, Value> findKeyRange();
  Value takeQueries();
  Value takeKeys(Value tensor, Value firstKey, OpFoldResult count);
  Value takeMask(Value firstKey, OpFoldResult count);
  Value takePositions(Value positions, RotationAttr rotation, bool isPacked,
                      Value start, Value first, OpFoldResult count);
  State createState();
  State addKeys(OpBuilder &nested, Value query, Value firstKey, Value end,
                ValueRange state);
  void insertResults(ValueRange state, ValueRange outputs,
                     scf::InParallelOp terminator);

  /// Offsets and sizes of tokens in a tensor of heads; without the last
  /// dimension if `withLanes` is false.
  void getSlice(Value tensor, HeadLayout layout, bool isPacked, Value start,
                const Tokens &tokens, bool withLanes,
                SmallVector<OpFoldResult> &offsets,
                SmallVector<OpFoldResult> &sizes);
  Value extract(Value tensor, ArrayRef<OpFoldResult> offsets,
                ArrayRef<OpFoldResult> sizes, ArrayRef<int64_t> dropped);

  OpFoldResult attr(int64_t value) { return builder.getIndexAttr(value); }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value toValue(OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(builder, loc, value);
  }
  Value add(Value a, Value b) {
    return builder.createOrFold<arith::AddIOp>(loc, a, b);
  }
  Value sub(Value a, Value b) {
    return builder.createOrFold<arith::SubIOp>(loc, a, b);
  }
  OpFoldResult apply(AffineExpr expr, ArrayRef<OpFoldResult> operands) {
    return affine::makeComposedFoldedAffineApply(builder, loc, expr, operands);
  }
  /// As many tokens as a tile has, or as there are up to `end`.
  OpFoldResult clip(int64_t tile, OpFoldResult first, OpFoldResult end) {
    AffineExpr d0 = builder.getAffineDimExpr(0),
               d1 = builder.getAffineDimExpr(1);
    return affine::makeComposedFoldedAffineMin(
        builder, loc,
        AffineMap::get(2, 0, {builder.getAffineConstantExpr(tile), d0 - d1},
                       builder.getContext()),
        {end, first});
  }
  Value fill(ArrayRef<OpFoldResult> sizes, double value) {
    Value empty = tensor::EmptyOp::create(builder, loc, sizes, sum);
    Value scalar = arith::ConstantOp::create(builder, loc,
                                             builder.getFloatAttr(sum, value));
    return linalg::FillOp::create(builder, loc, scalar, empty).getResult(0);
  }

  OpBuilder builder;
  Location loc;
  AttentionOp op;
  FloatType sum;
  int64_t rowsPerTile, keysPerTile;

  // All of the operation.
  OpFoldResult numBatch, numQueryHeads, numKeyHeads, numQueries, numKeys;
  int64_t headsPerTile = 1, queriesPerTile = 1;
  /// Query heads of a key head, if known.
  std::optional<int64_t> headsPerKeyHead;

  // Of the tile.
  Value batch, head, keyHead;
  /// Where the tokens of the batch entry begin; null if they are not packed.
  Value queryStart, keyStart;
  Value length; ///< Keys of the batch entry.
  Tokens queries;
  Value place; ///< Of the first query.
};

} // namespace

/// Heads and queries of a tile. Query heads that share their key head go
/// together as far as there are rows for them.
void Decomposition::chooseTiles() {
  auto size = [&](Value tensor, int64_t dim) {
    return tensor::getMixedSize(builder, loc, tensor, dim);
  };
  // What is behind the last packed entry is an entry, too, without keys.
  numBatch = op.arePackedQueries() ? size(op.getCuSeqlens()[0], 0)
                                   : size(op.getQuery(), 0);
  numQueryHeads = size(op.getQuery(), op.getQueryHeadDim());
  numKeyHeads = size(op.getKey(), op.getKeyHeadDim());
  numQueries = size(op.getQuery(), op.getQueryTokenDim());
  numKeys = size(op.getKey(), op.getKeyTokenDim());

  auto getWidth = [](Value tensor) {
    return cast<RankedTensorType>(tensor.getType()).getShape().back();
  };
  int64_t rowBytes =
      std::max(getWidth(op.getQuery()), getWidth(op.getValue())) *
      sum.getIntOrFloatBitWidth() / 8;
  rowsPerTile = std::clamp<int64_t>(kMaxTileBytes / rowBytes, 1, rowsPerTile);

  std::optional<int64_t> queryHeads = getConstantIntValue(numQueryHeads);
  std::optional<int64_t> keyHeads = getConstantIntValue(numKeyHeads);
  if (queryHeads && keyHeads)
    headsPerKeyHead = *queryHeads / *keyHeads;
  if (headsPerKeyHead)
    for (int64_t count = 1; count <= std::min(rowsPerTile, *headsPerKeyHead);
         ++count)
      if (*headsPerKeyHead % count == 0)
        headsPerTile = count;
  queriesPerTile = std::max<int64_t>(rowsPerTile / headsPerTile, 1);
  if (std::optional<int64_t> count = getConstantIntValue(numQueries))
    queriesPerTile = std::clamp<int64_t>(*count, 1, queriesPerTile);
  if (std::optional<int64_t> count = getConstantIntValue(numKeys);
      count && !op.getBlockTable())
    keysPerTile = std::clamp<int64_t>(*count, 1, keysPerTile);
}

/// Reads what is known of the tile's batch entry, and its queries.
void Decomposition::findTile(ValueRange loops) {
  AffineExpr d0 = builder.getAffineDimExpr(0);
  batch = loops[0];
  OpFoldResult firstHead = apply(d0 * headsPerTile, {loops[1]});
  head = toValue(firstHead);
  if (headsPerKeyHead) {
    keyHead = toValue(apply(d0.floorDiv(*headsPerKeyHead), {firstHead}));
  } else {
    Value group = arith::DivUIOp::create(builder, loc, toValue(numQueryHeads),
                                         toValue(numKeyHeads));
    keyHead = arith::DivUIOp::create(builder, loc, head, group);
    // As it is anyway, but nobody could tell.
    keyHead = arith::MinSIOp::create(builder, loc, keyHead,
                                     sub(toValue(numKeyHeads), constant(1)));
  }

  // Entry `b` of a packed tensor is [list[b], list[b+1]).
  Value isEntry, next;
  if (op.arePackedQueries()) {
    Value last = sub(toValue(numBatch), constant(1));
    isEntry = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                    batch, last);
    next = arith::MinSIOp::create(builder, loc, add(batch, constant(1)), last);
  }
  // Entry points refuse lists, lengths and pages that leave the tensors. IR
  // that is compiled from here on has no such check, so that they are clamped.
  auto clamp = [&](Value value, Value least, Value most) -> Value {
    Value atMost = arith::MinSIOp::create(builder, loc, value, most);
    return arith::MaxSIOp::create(builder, loc, atMost, least);
  };
  auto loadRange = [&](Value list, Value most) {
    Value begin =
        clamp(loadIndex(builder, loc, list, batch), constant(0), most);
    Value end = loadIndex(builder, loc, list, next);
    return std::pair<Value, Value>(begin, end);
  };
  OpFoldResult count = numQueries;
  OpFoldResult first = apply(d0 * queriesPerTile, {loops[2]});
  if (op.arePackedQueries()) {
    Value all = toValue(numQueries);
    auto [begin, end] = loadRange(op.getCuSeqlens()[0], all);
    queryStart = begin;
    end = arith::SelectOp::create(builder, loc, isEntry, end, all);
    Value own = sub(clamp(end, begin, all), begin);
    count = own;
    // There are as many tiles as the longest entry could have.
    first =
        arith::MinSIOp::create(builder, loc, toValue(first), own).getResult();
  }
  queries = {first, clip(queriesPerTile, first, count), firstHead,
             attr(headsPerTile)};

  if (op.arePackedKeys()) {
    Value all = toValue(numKeys);
    auto [begin, end] = loadRange(op.getCuSeqlens()[1], all);
    keyStart = begin;
    length = sub(clamp(end, begin, all), begin);
  } else if (isEntry) {
    length = scf::IfOp::create(
                 builder, loc, isEntry,
                 [&](OpBuilder &b, Location l) {
                   scf::YieldOp::create(
                       b, l, loadIndex(b, l, op.getLengths(), batch));
                 },
                 [&](OpBuilder &b, Location l) {
                   Value none = arith::ConstantIndexOp::create(b, l, 0);
                   scf::YieldOp::create(b, l, none);
                 })
                 .getResult(0);
  } else if (op.getLengths()) {
    length = loadIndex(builder, loc, op.getLengths(), batch);
  } else {
    length = toValue(numKeys);
  }
  if (op.getLengths()) {
    Value most = toValue(numKeys);
    if (Value table = op.getBlockTable()) {
      Value pages = toValue(tensor::getMixedSize(builder, loc, table, 1));
      most = arith::MulIOp::create(builder, loc, pages, most);
    }
    length = arith::MinSIOp::create(builder, loc, length, most);
    // Of pages nobody else says how many keys these have.
    for (Value tensor : {op.getMask(), op.getKeyPositions()}) {
      if (!op.getBlockTable() || !tensor)
        continue;
      auto type = cast<RankedTensorType>(tensor.getType());
      if (type.getShape().back() != 1)
        length = arith::MinSIOp::create(
            builder, loc, length,
            toValue(tensor::getMixedSize(builder, loc, tensor,
                                         type.getRank() - 1)));
    }
  }
  place = add(toValue(first), sub(length, toValue(count)));
}

/// The keys that masks by place leave to any of the queries.
std::pair<Value, Value> Decomposition::findKeyRange() {
  Value begin = constant(0), end = length;
  Value afterLast = add(place, toValue(queries.count));
  auto limit = [&](int64_t right) {
    Value beyond = add(afterLast, constant(std::min(right, kWidest)));
    end = arith::MinSIOp::create(builder, loc, end, beyond);
  };
  if (op.getCausal())
    limit(0);
  if (op.getWindowRight())
    limit(*op.getWindowRight());
  if (std::optional<int64_t> left = op.getWindowLeft())
    begin = arith::MaxSIOp::create(
        builder, loc, begin, sub(place, constant(std::min(*left, kWidest))));
  if (op.arePackedQueries()) {
    // A tile without queries sees no keys.
    Value keys =
        arith::MulIOp::create(builder, loc, toValue(queries.count), length);
    end = arith::MinSIOp::create(builder, loc, end, add(begin, keys));
  }
  return {begin, end};
}

void Decomposition::getSlice(Value tensor, HeadLayout layout, bool isPacked,
                             Value start, const Tokens &tokens, bool withLanes,
                             SmallVector<OpFoldResult> &offsets,
                             SmallVector<OpFoldResult> &sizes) {
  OpFoldResult first = tokens.first;
  if (isPacked)
    first = add(start, toValue(first));
  else {
    offsets.push_back(batch);
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

Value Decomposition::extract(Value tensor, ArrayRef<OpFoldResult> offsets,
                             ArrayRef<OpFoldResult> sizes,
                             ArrayRef<int64_t> dropped) {
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (!llvm::is_contained(dropped, static_cast<int64_t>(dim)))
      shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  auto type =
      RankedTensorType::get(shape, getElementTypeOrSelf(tensor.getType()));
  SmallVector<OpFoldResult> strides(sizes.size(), attr(1));
  return tensor::ExtractSliceOp::create(builder, loc, type, tensor, offsets,
                                        sizes, strides);
}

/// A matrix whose elements are taken one by one, where no slice has them.
static Value gather(OpBuilder &builder, Location loc, Value tensor,
                    ArrayRef<OpFoldResult> sizes,
                    function_ref<SmallVector<Value>(OpBuilder &, Location,
                                                    Value row, Value column)>
                        locate) {
  Value init = tensor::EmptyOp::create(builder, loc, sizes,
                                       getElementTypeOrSelf(tensor.getType()));
  return linalg::GenericOp::create(
             builder, loc, init.getType(), ValueRange(), init,
             ArrayRef<AffineMap>{builder.getMultiDimIdentityMap(2)},
             ArrayRef{utils::IteratorType::parallel,
                      utils::IteratorType::parallel},
             [&](OpBuilder &b, Location l, ValueRange) {
               Value row = linalg::IndexOp::create(b, l, 0);
               Value column = linalg::IndexOp::create(b, l, 1);
               Value x = tensor::ExtractOp::create(b, l, tensor,
                                                   locate(b, l, row, column));
               linalg::YieldOp::create(b, l, x);
             })
      .getResult(0);
}

/// Positions of tokens for a rope of their tile; without them the place of the
/// first.
Value Decomposition::takePositions(Value positions, RotationAttr rotation,
                                   bool isPacked, Value start, Value first,
                                   OpFoldResult count) {
  if (!positions)
    return first;
  SmallVector<OpFoldResult> offsets, sizes;
  SmallVector<int64_t> dropped;
  AxesAttr axes = rotation.getAxes();
  if (axes) {
    offsets.push_back(attr(0));
    sizes.push_back(attr(axes.getNumAxes()));
  }
  if (axes && !isPacked) {
    // Of a slice of one token nobody could tell which dimension is left, so
    // that its last one would not be known to be contiguous: a copy is.
    return gather(builder, loc, positions, {sizes[0], count},
                  [&](OpBuilder &b, Location l, Value axis, Value column) {
                    Value token = arith::AddIOp::create(b, l, first, column);
                    return SmallVector<Value>{axis, batch, token};
                  });
  }
  if (!isPacked) {
    dropped.push_back(offsets.size());
    offsets.push_back(batch);
    sizes.push_back(attr(1));
  }
  offsets.push_back(isPacked ? add(start, first) : first);
  sizes.push_back(count);
  return extract(positions, offsets, sizes, dropped);
}

static RowTransform getTransform(AttentionOp op, Value norm,
                                 RotationAttr rotation) {
  double eps = op.getNormEps() ? op.getNormEps()->convertToDouble() : 0.0;
  return {norm, eps, op.getNormWeightOffset(), rotation};
}

/// Norms ahead of the tiles what is normed over all heads of a token: a tile
/// has but some of them.
static void normAllHeads(OpBuilder &builder, AttentionOp op) {
  Location loc = op.getLoc();
  bool ofQueries = op.normsAllQueryHeads(), ofKeys = op.normsAllKeyHeads();
  if (ofQueries) {
    RowTransform transform = getTransform(op, op.getQueryNorm(), {});
    op.getQueryMutable().assign(normalizeHeads(
        builder, loc, op.getQuery(), op.getQueryHeadDim(), transform));
    op.getQueryNormMutable().clear();
  }
  if (ofKeys) {
    RowTransform transform = getTransform(op, op.getKeyNorm(), {});
    op.getKeyMutable().assign(normalizeHeads(builder, loc, op.getKey(),
                                             op.getKeyHeadDim(), transform));
    op.getKeyNormMutable().clear();
  }
}

/// The queries of the tile as (heads, queries, dim), normed and rotated.
Value Decomposition::takeQueries() {
  bool isPacked = op.arePackedQueries();
  SmallVector<OpFoldResult> offsets, sizes;
  getSlice(op.getQuery(), op.getQueryLayout(), isPacked, queryStart, queries,
           /*withLanes=*/true, offsets, sizes);
  SmallVector<int64_t> dropped;
  if (!isPacked)
    dropped.push_back(0);
  Value tile = extract(op.getQuery(), offsets, sizes, dropped);
  if (op.getQueryLayout() == HeadLayout::TokenMajor)
    tile = transpose(builder, loc, tile, {1, 0, 2});
  RowTransform transform =
      getTransform(op, op.getQueryNorm(), op.getQueryRotationAttr());
  Value positions;
  if (transform.rotation)
    positions = op.getQueryPositions()
                    ? takePositions(op.getQueryPositions(), transform.rotation,
                                    isPacked, queryStart,
                                    toValue(queries.first), queries.count)
                    : place;
  return transformRows(builder, loc, tile, /*tokenDim=*/1, positions,
                       transform);
}

/// Rows of the keys or values of the tile's key head, as (keys, dim).
Value Decomposition::takeKeys(Value tensor, Value firstKey,
                              OpFoldResult count) {
  auto type = cast<RankedTensorType>(tensor.getType());
  bool isTokenMajor = op.getKeyLayout() == HeadLayout::TokenMajor;
  if (Value table = op.getBlockTable()) {
    Value slots = toValue(numKeys);
    return gather(builder, loc, tensor, {count, attr(type.getShape().back())},
                  [&](OpBuilder &b, Location l, Value row, Value lane) {
                    Value key = arith::AddIOp::create(b, l, firstKey, row);
                    Value block = arith::DivUIOp::create(b, l, key, slots);
                    Value slot = arith::RemUIOp::create(b, l, key, slots);
                    Value page = loadIndex(b, l, table, {batch, block});
                    return SmallVector<Value>{
                        page, isTokenMajor ? slot : keyHead,
                        isTokenMajor ? keyHead : slot, lane};
                  });
  }
  bool isPacked = op.arePackedKeys();
  SmallVector<OpFoldResult> offsets, sizes;
  getSlice(tensor, op.getKeyLayout(), isPacked, keyStart,
           {firstKey, count, keyHead, attr(1)}, /*withLanes=*/true, offsets,
           sizes);
  SmallVector<int64_t> dropped{op.getKeyHeadDim()};
  if (!isPacked)
    dropped.push_back(0);
  return extract(tensor, offsets, sizes, dropped);
}

/// The mask of the tile as (heads, queries, keys); a static 1 stays.
Value Decomposition::takeMask(Value firstKey, OpFoldResult count) {
  Value mask = op.getMask();
  if (!mask)
    return {};
  ArrayRef<int64_t> shape = cast<RankedTensorType>(mask.getType()).getShape();
  SmallVector<OpFoldResult> offsets{batch, queries.head, queries.first,
                                    firstKey};
  SmallVector<OpFoldResult> sizes{attr(1), queries.numHeads, queries.count,
                                  count};
  for (int64_t dim = 0; dim < 4; ++dim)
    if (shape[dim] == 1) {
      offsets[dim] = attr(0);
      sizes[dim] = attr(1);
    }
  return extract(mask, offsets, sizes, {0});
}

/// What there is before the first key: nothing, or a sink for each head.
Decomposition::State Decomposition::createState() {
  int64_t width =
      cast<RankedTensorType>(op.getValue().getType()).getShape().back();
  OpFoldResult heads = queries.numHeads, count = queries.count;
  Value acc = fill({heads, count, attr(width)}, 0.0);
  double infinity = std::numeric_limits<double>::infinity();
  if (!op.getSinks())
    return {acc, fill({heads, count}, -infinity), fill({heads, count}, 0.0)};
  Value sinks = extract(op.getSinks(), {queries.head}, {heads}, {});
  Value init = tensor::EmptyOp::create(
      builder, loc, ArrayRef<OpFoldResult>{heads, count}, sum);
  Value max = linalg::BroadcastOp::create(builder, loc, sinks, init,
                                          ArrayRef<int64_t>{1})
                  ->getResult(0);
  return {acc, max, fill({heads, count}, 1.0)};
}

/// The state after a tile of keys.
Decomposition::State Decomposition::addKeys(OpBuilder &nested, Value query,
                                            Value firstKey, Value end,
                                            ValueRange state) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(nested.getInsertionBlock(),
                            nested.getInsertionPoint());
  OpFoldResult count = clip(keysPerTile, firstKey, end);
  Value key = takeKeys(op.getKey(), firstKey, count);
  Value value = takeKeys(op.getValue(), firstKey, count);
  RowTransform transform =
      getTransform(op, op.getKeyNorm(), op.getKeyRotationAttr());
  Value positions;
  if (transform.rotation)
    positions = takePositions(op.getKeyPositions(), transform.rotation,
                              op.arePackedKeys(), keyStart, firstKey, count);
  key = transformRows(builder, loc, key, /*tokenDim=*/0, positions, transform);
  auto tile = OnlineAttentionOp::create(
      builder, loc, state.getTypes(), batch, head, place, firstKey,
      /*num_keys=*/Value(), query, key, value, takeMask(firstKey, count), state,
      builder.getF64FloatAttr(op.getScoreScale()), op.getWindowLeftAttr(),
      op.getWindowRightAttr(), op.getCausalAttr());
  for (auto [from, to] :
       {std::pair<Region *, Region *>(&op.getScore(), &tile.getScore()),
        {&op.getWhere(), &tile.getWhere()}}) {
    IRMapping mapping;
    from->cloneInto(to, mapping);
  }
  return State(tile.getResults());
}

/// The quotients, and the logarithms of the sums, in the outputs' layout.
void Decomposition::insertResults(ValueRange state, ValueRange outputs,
                                  scf::InParallelOp terminator) {
  bool isPacked = op.arePackedQueries();
  bool isTokenMajor = op.getQueryLayout() == HeadLayout::TokenMajor;
  SmallVector<int64_t> dropped;
  if (!isPacked)
    dropped.push_back(0);
  for (auto [number, output] : llvm::enumerate(outputs)) {
    bool isOutput = number == 0;
    SmallVector<OpFoldResult> offsets, sizes;
    getSlice(output, op.getQueryLayout(), isPacked, queryStart, queries,
             /*withLanes=*/isOutput, offsets, sizes);
    Value init = extract(output, offsets, sizes, dropped);
    // Loops are heads, queries and, for the output, lanes.
    int64_t rank = isOutput ? 3 : 2;
    AffineMap all = builder.getMultiDimIdentityMap(rank);
    AffineMap row = all.getSubMap({0, 1});
    SmallVector<unsigned> order{0, 1, 2};
    order.resize(rank);
    if (isTokenMajor)
      std::swap(order[0], order[1]);
    AffineMap outputMap = all.getSubMap(order);
    Type element = getElementTypeOrSelf(output.getType());
    auto body = [&](OpBuilder &b, Location l, ValueRange args) {
      auto constant = [&](double value) -> Value {
        return arith::ConstantOp::create(b, l, b.getFloatAttr(sum, value));
      };
      Value isZero = arith::CmpFOp::create(b, l, arith::CmpFPredicate::OEQ,
                                           args[1], constant(0.0));
      Value result;
      if (isOutput) {
        result = arith::DivFOp::create(b, l, args[0], args[1]);
        result = arith::SelectOp::create(b, l, isZero, constant(0.0), result);
        if (element != sum)
          result = arith::TruncFOp::create(b, l, element, result);
      } else {
        Value log = math::LogOp::create(b, l, args[1]);
        result = arith::AddFOp::create(b, l, args[0], log);
        // A row that has seen nothing but its sink has that to the bit, minus
        // zero too; a row that has seen nothing, minus infinity.
        Value isOne = arith::CmpFOp::create(b, l, arith::CmpFPredicate::OEQ,
                                            args[1], constant(1.0));
        Value isMaximum = arith::OrIOp::create(b, l, isZero, isOne);
        result = arith::SelectOp::create(b, l, isMaximum, args[0], result);
      }
      linalg::YieldOp::create(b, l, result);
    };
    Value result =
        linalg::GenericOp::create(
            builder, loc, init.getType(),
            ValueRange{state[isOutput ? 0 : 1], state[2]}, init,
            ArrayRef<AffineMap>{isOutput ? all : row, row, outputMap},
            SmallVector<utils::IteratorType>(rank,
                                             utils::IteratorType::parallel),
            body)
            .getResult(0);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(terminator.getBody());
    SmallVector<OpFoldResult> strides(sizes.size(), attr(1));
    tensor::ParallelInsertSliceOp::create(builder, loc, result, output, offsets,
                                          sizes, strides);
  }
}

ValueRange Decomposition::decompose() {
  chooseTiles();
  AffineExpr d0 = builder.getAffineDimExpr(0);
  OpFoldResult tilesOfHeads = apply(d0.floorDiv(headsPerTile), {numQueryHeads});
  OpFoldResult tilesOfQueries = apply(d0.ceilDiv(queriesPerTile), {numQueries});
  auto forall = scf::ForallOp::create(
      builder, loc,
      ArrayRef<OpFoldResult>{numBatch, tilesOfHeads, tilesOfQueries},
      op.getInits(), /*mapping=*/std::nullopt);
  builder.setInsertionPoint(forall.getTerminator());
  findTile(forall.getInductionVars());
  Value query = takeQueries();
  auto [begin, end] = findKeyRange();
  auto loop = scf::ForOp::create(
      builder, loc, begin, end, constant(keysPerTile), createState(),
      [&, end = end](OpBuilder &nested, Location, Value firstKey,
                     ValueRange state) {
        State next = addKeys(nested, query, firstKey, end, state);
        scf::YieldOp::create(nested, loc, next);
      });
  insertResults(loop.getResults(), forall.getRegionIterArgs(),
                forall.getTerminator());
  return forall.getResults();
}

namespace {
struct PosencDecomposeAttentionPass
    : mlir::posenc::impl::PosencDecomposeAttentionPassBase<
          PosencDecomposeAttentionPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<AttentionOp> operations;
    getOperation()->walk([&](AttentionOp op) {
      if (op.hasPureTensorSemantics() &&
          !(exceptVectors && !getVectorObstacle(op)))
        operations.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (AttentionOp op : operations) {
      constexpr int64_t most = 1 << 20;
      if (rowsPerTile < 1 || keysPerTile < 1 || rowsPerTile > most ||
          keysPerTile > most) {
        op.emitOpError() << "cannot be cut into tiles of "
                         << rowsPerTile.getValue() << " rows and "
                         << keysPerTile.getValue() << " keys";
        return signalPassFailure();
      }
      rewriter.setInsertionPoint(op);
      normAllHeads(rewriter, op);
      rewriter.replaceOp(
          op,
          Decomposition(rewriter, op, rowsPerTile, keysPerTile).decompose());
    }
  }
};
} // namespace
