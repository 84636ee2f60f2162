//===- DecomposeAttention.cpp - attention to loops over tiles -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionDecomposition.h"

#include "posenc/IR/CreateGeneric.h"
#include "posenc/IR/Remarks.h"
#include "posenc/Numerics/Softmax.h"
#include "posenc/Transforms/Passes.h"
#include "posenc/Transforms/VectorizableAttention.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/TypeUtilities.h"

#include <limits>

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCDECOMPOSEATTENTIONPASS
#include "posenc/Transforms/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-decompose-attention"

/// Maximum bytes of a task's queries, and of its accumulators.
static constexpr int64_t kMaxTaskBytes = 128 << 10;

/// Chooses the heads and queries of a register tile, and the number of register
/// tiles of a task. A register tile has query heads of one GQA group only.
void AttentionDecomposition::chooseTiles() {
  auto size = [&](Value tensor, int64_t dim) {
    return tensor::getMixedSize(builder, loc, tensor, dim);
  };
  // Tokens after the last sequence of a ragged batch count as one more
  // sequence, which has no keys.
  numBatch = op.hasRaggedQueries() ? size(op.getCuSeqlens()[0], 0)
                                   : size(op.getQuery(), 0);
  numQueryHeads = size(op.getQuery(), op.getQueryHeadDim());
  numKeyHeads = size(op.getKey(), op.getKeyHeadDim());
  numQueries = size(op.getQuery(), op.getQueryTokenDim());
  numKeys = size(op.getKey(), op.getKeyTokenDim());
  std::optional<int64_t> queryHeads = getConstantIntValue(numQueryHeads);
  std::optional<int64_t> keyHeads = getConstantIntValue(numKeyHeads);
  std::optional<int64_t> queries = getConstantIntValue(numQueries);
  if (options.maxQueries)
    queries = options.maxQueries;
  if (queryHeads && keyHeads)
    headsPerKeyHead = *queryHeads / *keyHeads;

  // Fills a register tile with heads and queries, unless there are fewer.
  bool hasFewRows = queries && headsPerKeyHead &&
                    *queries * *headsPerKeyHead < rowsPerQueryTile;
  if (headsPerKeyHead && !options.oneHeadPerTile)
    for (int64_t count = 1;
         count <= std::min(rowsPerQueryTile, *headsPerKeyHead); ++count)
      if (*headsPerKeyHead % count == 0 &&
          (hasFewRows || rowsPerQueryTile % count == 0))
        headsPerTile = count;
  queriesPerTile = std::max<int64_t>(rowsPerQueryTile / headsPerTile, 1);
  if (queries)
    queriesPerTile = std::clamp<int64_t>(*queries, 1, queriesPerTile);

  auto getWidth = [](Value tensor) {
    return cast<RankedTensorType>(tensor.getType()).getShape().back();
  };
  int64_t rowBytes =
      std::max(getWidth(op.getQuery()), getWidth(op.getValue())) *
      sum.getIntOrFloatBitWidth() / 8;
  int64_t tileBytes = rowBytes * headsPerTile * queriesPerTile;
  numQueryTiles =
      std::clamp<int64_t>(kMaxTaskBytes / tileBytes, 1, numQueryTiles);
  if (queries)
    numQueryTiles = std::clamp<int64_t>(
        llvm::divideCeil(*queries, queriesPerTile), 1, numQueryTiles);
  if (std::optional<int64_t> count = getConstantIntValue(numKeys);
      count && !op.getBlockTable()) {
    if (!options.alignedKeyTiles)
      keysPerTile = std::clamp<int64_t>(*count, 1, keysPerTile);
    hasPartialKeyTiles = *count % keysPerTile != 0 || op.getLengths() ||
                         op.hasRaggedQueries() || op.getCausal() ||
                         op.getWindowLeft() || op.getWindowRight();
  }
}

/// Computes the sequence, heads and queries of a task from the induction
/// variables of the scf.forall.
void AttentionDecomposition::findTask(ValueRange loops) {
  AffineExpr d0 = builder.getAffineDimExpr(0);
  if (options.numSplits)
    split = loops[3];
  OpFoldResult firstHead = apply(d0 * headsPerTile, {loops[1]});
  head = toValue(firstHead);
  if (headsPerKeyHead) {
    keyHead = toValue(apply(d0.floorDiv(*headsPerKeyHead), {firstHead}));
  } else {
    Value groupSize = arith::DivUIOp::create(
        builder, loc, toValue(numQueryHeads), toValue(numKeyHeads));
    keyHead = arith::DivUIOp::create(builder, loc, head, groupSize);
    // Clamps for later passes, which cannot prove this bound themselves.
    keyHead = arith::MinSIOp::create(builder, loc, keyHead,
                                     sub(toValue(numKeyHeads), constant(1)));
  }

  ImplicitLocOpBuilder b(loc, builder);
  int64_t queriesPerTask = numQueryTiles * queriesPerTile;
  RaggedTokens::Tile tile{loops[0], loops[2]};
  if (listsTiles())
    tile = RaggedTokens(b, op.getCuSeqlens()[0], toValue(numQueries))
               .findTile(tile.number, constant(queriesPerTask));
  sequence = emitBoundedSequence(b, op, tile.sequence, toValue(numQueries),
                                 toValue(numKeys));
  OpFoldResult count = numQueries;
  OpFoldResult first = apply(d0 * queriesPerTask, {tile.number});
  if (op.hasRaggedQueries()) {
    auto leaveOut = [&](arith::CmpIPredicate predicate, int64_t limit) {
      Value isOut = arith::CmpIOp::create(builder, loc, predicate,
                                          sequence.numQueries, constant(limit));
      sequence.numQueries = arith::SelectOp::create(
          builder, loc, isOut, constant(0), sequence.numQueries);
    };
    if (options.minQueries)
      leaveOut(arith::CmpIPredicate::slt, options.minQueries);
    if (options.maxQueries)
      leaveOut(arith::CmpIPredicate::sgt, options.maxQueries);
    // A loop over the tiles of each sequence has as many as the longest
    // possible one needs, a list of all tiles one more than each needs.
    count = sequence.numQueries;
    first = arith::MinSIOp::create(builder, loc, toValue(first),
                                   sequence.numQueries)
                .getResult();
  }
  queries = {first, clip(queriesPerTask, first, count), firstHead,
             attr(headsPerTile)};
  firstPosition = sequence.emitPosition(b, op, toValue(first));
  lastPosition = add(firstPosition, sub(toValue(queries.count), constant(1)));
}

/// Emits the range of keys that the position masks (causal, windows) leave
/// visible for at least one query of the task.
std::pair<Value, Value> AttentionDecomposition::findKeyRange() {
  ImplicitLocOpBuilder b(loc, builder);
  PositionMask mask(op);
  Value begin = mask.emitFirstKey(b, firstPosition);
  Value end = mask.emitEndKey(b, lastPosition, sequence.numKeys);
  // Other queries of the task do not change which keys share a tile.
  if (options.alignedKeyTiles)
    begin = sub(begin, builder.createOrFold<arith::RemUIOp>(
                           loc, begin, constant(keysPerTile)));
  if (op.hasRaggedQueries()) {
    // A task without queries has no visible keys.
    Value keys = arith::MulIOp::create(builder, loc, toValue(queries.count),
                                       sequence.numKeys);
    end = arith::MinSIOp::create(builder, loc, end, add(begin, keys));
  }
  if (split) {
    Value first = arith::MulIOp::create(builder, loc, split,
                                        constant(options.keysPerSplit));
    begin = arith::MaxSIOp::create(builder, loc, begin, first);
    end = arith::MinSIOp::create(builder, loc, end,
                                 add(first, constant(options.keysPerSplit)));
  }
  return {begin, end};
}

/// Emits the state before the first key: m = -inf and l = 0, or with sinks
/// m = sink of the head and l = 1.
AttentionDecomposition::State AttentionDecomposition::createState() {
  int64_t width =
      cast<RankedTensorType>(op.getValue().getType()).getShape().back();
  SmallVector<OpFoldResult> rows{attr(numQueryTiles), attr(headsPerTile),
                                 attr(queriesPerTile)};
  SmallVector<OpFoldResult> lanes = rows;
  lanes.push_back(attr(width));
  Value acc = fill(lanes, 0.0);
  double infinity = std::numeric_limits<double>::infinity();
  if (!op.getSinks())
    return {acc, fill(rows, -infinity), fill(rows, 0.0)};
  Value sinks = extract(op.getSinks(), {queries.head}, {queries.numHeads}, {});
  Value init = tensor::EmptyOp::create(builder, loc, rows, sum);
  Value max = linalg::BroadcastOp::create(builder, loc, sinks, init,
                                          ArrayRef<int64_t>{0, 2})
                  ->getResult(0);
  State state{acc, max, fill(rows, 1.0)};
  return split ? createStateOfSplit(state) : state;
}

/// Emits the state before the first key of the task's split: that of the
/// sequence for the first split, which thus has the sink.
AttentionDecomposition::State
AttentionDecomposition::createStateOfSplit(State first) {
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        split, constant(0));
  double infinity = std::numeric_limits<double>::infinity();
  for (auto [part, other] :
       {std::pair<size_t, double>(1, -infinity), {2, 0.0}}) {
    Value tensor = first[part];
    Value init = tensor::EmptyOp::create(
        builder, loc, cast<RankedTensorType>(tensor.getType()).getShape(), sum);
    first[part] = createParallelGeneric(
        builder, loc, tensor, init, {},
        [&, other = other](OpBuilder &b, Location l, ValueRange args) -> Value {
          Value none =
              arith::ConstantOp::create(b, l, b.getFloatAttr(sum, other));
          return arith::SelectOp::create(b, l, isFirst, args[0], none);
        });
  }
  return first;
}

SmallVector<OpFoldResult>
AttentionDecomposition::getQueryTileOffsets(Value tensor, Value number) {
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  SmallVector<OpFoldResult> offsets(rank, attr(0));
  offsets[0] = number;
  return offsets;
}

SmallVector<OpFoldResult>
AttentionDecomposition::getQueryTileSizes(Value tensor) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tensor);
  sizes[0] = attr(1);
  return sizes;
}

/// Extracts the slice of one register tile from a tensor whose first dimension
/// is register tiles.
Value AttentionDecomposition::extractQueryTile(Value tensor, Value number) {
  return extract(tensor, getQueryTileOffsets(tensor, number),
                 getQueryTileSizes(tensor), {0});
}

Value AttentionDecomposition::insertQueryTile(Value tile, Value tensor,
                                              Value number) {
  SmallVector<OpFoldResult> sizes = getQueryTileSizes(tensor);
  SmallVector<OpFoldResult> strides(sizes.size(), attr(1));
  return tensor::InsertSliceOp::create(builder, loc, tile, tensor,
                                       getQueryTileOffsets(tensor, number),
                                       sizes, strides);
}

AttentionDecomposition::QueryTile
AttentionDecomposition::getQueryTile(Value number) {
  AffineExpr d0 = builder.getAffineDimExpr(0);
  QueryTile queryTile;
  queryTile.number = number;
  queryTile.first = apply(d0 * queriesPerTile, {number});
  queryTile.count = numQueryTiles == 1
                        ? queries.count
                        : clip(queriesPerTile, queryTile.first, queries.count);
  queryTile.position = add(firstPosition, toValue(queryTile.first));
  return queryTile;
}

/// Emits a loop over the register tiles that have queries, with a loop-carried
/// state.
AttentionDecomposition::State AttentionDecomposition::forEachQueryTile(
    ValueRange state, function_ref<State(const QueryTile &, State)> body) {
  if (numQueryTiles == 1)
    return body(getQueryTile(constant(0)), State(state));
  AffineExpr d0 = builder.getAffineDimExpr(0);
  Value end = toValue(apply(d0.ceilDiv(queriesPerTile), {queries.count}));
  auto loop =
      scf::ForOp::create(builder, loc, constant(0), end, constant(1), state);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  State next = body(getQueryTile(loop.getInductionVar()),
                    State(loop.getRegionIterArgs()));
  scf::YieldOp::create(builder, loc, next);
  return State(loop.getResults());
}

/// Copies the queries to register tiles x dim x rows, with zeros after the last
/// query.
Value AttentionDecomposition::packQueries() {
  Value rows = takeQueries();
  auto type = cast<RankedTensorType>(rows.getType());
  int64_t dim = type.getShape().back();
  Value panels = tensor::EmptyOp::create(
      builder, loc,
      ArrayRef<int64_t>{numQueryTiles, dim, headsPerTile, queriesPerTile},
      type.getElementType());
  Value zero = arith::ConstantOp::create(
      builder, loc, builder.getZeroAttr(type.getElementType()));
  panels = linalg::FillOp::create(builder, loc, zero, panels).getResult(0);
  panels = forEachQueryTile(
      panels, [&](const QueryTile &queryTile, State state) -> State {
        SmallVector<OpFoldResult> ones(4, attr(1));
        Value slice =
            extract(rows, {attr(0), queryTile.first, attr(0)},
                    {attr(headsPerTile), queryTile.count, attr(dim)}, {});
        SmallVector<OpFoldResult> offsets{queryTile.number, attr(0), attr(0),
                                          attr(0)},
            sizes{attr(1), attr(dim), attr(headsPerTile), queryTile.count};
        Value init = extract(state[0], offsets, sizes, {0});
        Value panel = linalg::TransposeOp::create(builder, loc, slice, init,
                                                  ArrayRef<int64_t>{2, 0, 1})
                          ->getResult(0);
        return {tensor::InsertSliceOp::create(builder, loc, panel, state[0],
                                              offsets, sizes, ones)};
      })[0];
  return tensor::CollapseShapeOp::create(
      builder, loc, panels, ArrayRef<ReassociationIndices>{{0}, {1}, {2, 3}});
}

/// Pads the queries to (heads, queries, dim) with zeros after the last query.
Value AttentionDecomposition::padQueries() {
  Value rows = takeQueries();
  int64_t dim = cast<RankedTensorType>(rows.getType()).getShape().back();
  return pad(rows, {headsPerTile, queriesPerTile, dim});
}

/// Returns a tile of the queries that packQueries or padQueries returned as
/// (heads, queries, dim).
Value AttentionDecomposition::getQueries(Value packed,
                                         const QueryTile &queryTile) {
  if (!options.packsQueries)
    return packed;
  Value panel = extractQueryTile(packed, queryTile.number);
  Value rows = transpose(builder, loc, panel, {1, 0});
  auto type = cast<RankedTensorType>(rows.getType());
  return tensor::ExpandShapeOp::create(
      builder, loc,
      RankedTensorType::get({headsPerTile, queriesPerTile, type.getDimSize(1)},
                            type.getElementType()),
      rows, ArrayRef<ReassociationIndices>{{0, 1}, {2}});
}

/// Clones the score_mod and mask_mod regions. Query indices are clamped to the
/// last query, so the regions never see a query that does not exist.
void AttentionDecomposition::cloneRegions(OnlineAttentionOp tile,
                                          bool appliesWhere) {
  for (auto [from, to] :
       {std::pair<Region *, Region *>(&op.getScore(), &tile.getScore()),
        {&op.getWhere(), &tile.getWhere()}}) {
    if (from->empty() || (from == &op.getWhere() && !appliesWhere))
      continue;
    IRMapping mapping;
    from->cloneInto(to, mapping);
    if (isConstantIntValue(queries.count, numQueryTiles * queriesPerTile))
      continue;
    // The last two arguments are the query and the key.
    Block &block = to->front();
    Value query = block.getArgument(block.getNumArguments() - 2);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&block);
    Value clamped = arith::MinSIOp::create(builder, loc, query, lastPosition);
    query.replaceAllUsesExcept(clamped, clamped.getDefiningOp());
  }
}

/// Emits the state of one register tile of queries after a tile of keys.
AttentionDecomposition::State
AttentionDecomposition::addKeyTile(const QueryTile &queryTile, Value panels,
                                   Value key, Value value, Value firstKey,
                                   Value end, OpFoldResult count,
                                   bool appliesWhere, State state) {
  Value query = getQueries(panels, queryTile);
  State tileState;
  for (Value part : state)
    tileState.push_back(extractQueryTile(part, queryTile.number));
  SmallVector<Type> types(ValueRange(tileState).getTypes());
  auto tile = OnlineAttentionOp::create(
      builder, loc, types, sequence.batch, head, queryTile.position, firstKey,
      /*num_keys=*/hasPartialKeyTiles ? end : Value(), query, key, value,
      takeMask(queryTile, firstKey, count), tileState,
      builder.getF64FloatAttr(op.getScoreScale()), op.getWindowLeftAttr(),
      op.getWindowRightAttr(), op.getCausalAttr());
  cloneRegions(tile, appliesWhere);
  State next;
  for (auto [part, result] : llvm::zip_equal(state, tile.getResults()))
    next.push_back(insertQueryTile(result, part, queryTile.number));
  return next;
}

/// Emits a branch that yields a state. Without `ifFalse`, the other branch
/// yields the state `before`.
AttentionDecomposition::State
AttentionDecomposition::createIf(Value condition, ValueRange before,
                                 function_ref<State()> ifTrue,
                                 function_ref<State()> ifFalse) {
  auto branch = scf::IfOp::create(builder, loc, before.getTypes(), condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, loc, ifTrue());
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, ifFalse ? ifFalse() : State(before));
  return State(branch.getResults());
}

/// Returns the pairs of the task's heads, of the queries from `firstQuery` to
/// `lastQuery`, and of a tile of the keys before `endKey`. Uses minima of
/// positions instead of sums of sizes, as entry points can bound these.
PairTile AttentionDecomposition::getPairs(Value firstQuery, Value lastQuery,
                                          Value firstKey, Value endKey) {
  Value lastHead =
      headsPerTile == 1 ? head : add(head, constant(headsPerTile - 1));
  Value lastKey = add(firstKey, constant(keysPerTile - 1));
  if (hasPartialKeyTiles)
    lastKey = builder.createOrFold<arith::MinSIOp>(loc, lastKey,
                                                   sub(endKey, constant(1)));
  return {sequence.batch, head,     lastHead, firstQuery,
          lastQuery,      firstKey, lastKey};
}

/// Emits the state of all register tiles of the task after a tile of keys,
/// which is skipped if mask_mod masks all of it.
AttentionDecomposition::State
AttentionDecomposition::addKeys(Value panels, Value firstKey, Value end,
                                ValueRange state) {
  OpFoldResult count =
      hasPartialKeyTiles ? clip(keysPerTile, firstKey, end) : attr(keysPerTile);
  ImplicitLocOpBuilder b(loc, builder);
  TileMask mask =
      maskBounds.emit(b, getPairs(firstPosition, lastPosition, firstKey, end));
  reportMaskBounds(op, DEBUG_TYPE, maskBounds, mask);
  auto addVisible = [&]() -> State {
    return addVisibleKeys(panels, firstKey, end, count, mask.isAll, state);
  };
  return mask.isAny ? createIf(mask.isAny, state, addVisible) : addVisible();
}

/// Like `addKeys`, for a tile that is not skipped. `isFull` is an i1, or null
/// if it is not known: mask_mod is true for the whole task.
AttentionDecomposition::State
AttentionDecomposition::addVisibleKeys(Value panels, Value firstKey, Value end,
                                       OpFoldResult count, Value isFull,
                                       ValueRange state) {
  Value key = takeKeys(op.getKey(), firstKey, count);
  Value value = takeKeys(op.getValue(), firstKey, count);
  RowTransform transform =
      getTransform(op.getKeyNorm(), op.getKeyRotationAttr());
  // online_attention reads keys of other float types directly. Rows that are
  // normed or rotated are widened first, so they are not rounded to that type.
  bool isChanged = transform.norm || transform.rotation;
  if (op.getKeyScales() || (isChanged && op.hasMixedTypes()))
    key = widenKeys(key, op.getKeyScales(), firstKey, count);
  if (op.getValueScales())
    value = widenKeys(value, op.getValueScales(), firstKey, count);
  if (options.keyTables) {
    key = transformByTables(key, /*tokenDim=*/0, transform, options.keyTables,
                            op.getKeyPositions(), op.hasRaggedKeys(),
                            sequence.keyStart, firstKey, firstKey, count);
  } else {
    Value positions;
    if (transform.rotation)
      positions =
          takePositions(op.getKeyPositions(), transform.rotation,
                        op.hasRaggedKeys(), sequence.keyStart, firstKey, count);
    key =
        transformRows(builder, loc, key, /*tokenDim=*/0, positions, transform);
  }
  auto padRows = [&](Value rows) {
    auto type = cast<RankedTensorType>(rows.getType());
    return pad(rows, {keysPerTile, type.getDimSize(1)});
  };
  key = padRows(key);
  value = padRows(value);
  return forEachQueryTile(
      state, [&](const QueryTile &queryTile, State before) -> State {
        auto addMasked = [&](Value isFullTile) -> State {
          auto add = [&](bool appliesWhere) -> State {
            return addKeyTile(queryTile, panels, key, value, firstKey, end,
                              count, appliesWhere, before);
          };
          if (!isFullTile)
            return add(/*appliesWhere=*/true);
          return createIf(
              isFullTile, before, [&] { return add(/*appliesWhere=*/false); },
              [&] { return add(/*appliesWhere=*/true); });
        };
        Value isVisible = createIsVisible(queryTile, firstKey);
        if (numQueryTiles == 1)
          return addMasked(isFull);
        auto addTile = [&]() -> State {
          Value lastQuery = arith::MinSIOp::create(
              builder, loc,
              add(queryTile.position, constant(queriesPerTile - 1)),
              lastPosition);
          ImplicitLocOpBuilder b(loc, builder);
          TileMask mask = maskBounds.emitPart(
              b, getPairs(queryTile.position, lastQuery, firstKey, end));
          auto add = [&] { return addMasked(mask.isAll); };
          return mask.isAny ? createIf(mask.isAny, before, add) : add();
        };
        return isVisible ? createIf(isVisible, before, addTile) : addTile();
      });
}

/// Emits an i1: whether the position masks leave any key of the key tile
/// visible for any query of the register tile. Returns null without such masks.
Value AttentionDecomposition::createIsVisible(const QueryTile &queryTile,
                                              Value firstKey) {
  Value lastTilePosition =
      add(queryTile.position, constant(queriesPerTile - 1));
  Value lastKey = add(firstKey, constant(keysPerTile - 1));
  ImplicitLocOpBuilder b(loc, builder);
  return PositionMask(op).emitIsAnyVisible(
      b, {queryTile.position, lastTilePosition, firstKey, lastKey});
}

/// Emits the outputs acc / l of a register tile, or its log-sum-exps
/// m + log(l), in the layout of `init`.
Value AttentionDecomposition::createResult(Value part, Value sums, Value init,
                                           bool isOutput) {
  // Loops are heads, queries and, for the output, lanes.
  int64_t rank = isOutput ? 3 : 2;
  AffineMap all = builder.getMultiDimIdentityMap(rank);
  AffineMap row = all.getSubMap({0, 1});
  SmallVector<unsigned> order{0, 1, 2};
  order.resize(rank);
  if (op.getQueryLayout() == HeadLayout::TokenMajor)
    std::swap(order[0], order[1]);
  Type element = getElementTypeOrSelf(init.getType());
  auto body = [&](OpBuilder &b, Location l, ValueRange args) {
    MathSoftmax softmax(b, l, sum);
    Value result = isOutput ? emitQuotient(softmax, args[0], args[1])
                            : emitLogSum(softmax, {args[0], args[1]});
    if (isOutput && element != sum)
      result = arith::TruncFOp::create(b, l, element, result);
    linalg::YieldOp::create(b, l, result);
  };
  return linalg::GenericOp::create(
             builder, loc, init.getType(), ValueRange{part, sums}, init,
             ArrayRef<AffineMap>{isOutput ? all : row, row,
                                 all.getSubMap(order)},
             SmallVector<utils::IteratorType>(rank,
                                              utils::IteratorType::parallel),
             body)
      .getResult(0);
}

/// Inserts the outputs and log-sum-exps of the task into the results.
void AttentionDecomposition::insertResults(ValueRange state, ValueRange outputs,
                                           scf::InParallelOp terminator) {
  bool isRagged = op.hasRaggedQueries();
  SmallVector<int64_t> dropped;
  if (split)
    dropped.push_back(0);
  if (!isRagged)
    dropped.push_back(dropped.size());
  Value start = sequence.queryStart;
  if (split && isRagged)
    start =
        createSplitRow(builder, loc, sequence.batch, start, options.maxQueries);
  bool isTokenMajor = op.getQueryLayout() == HeadLayout::TokenMajor;
  for (auto [number, output] : llvm::enumerate(outputs)) {
    bool isOutput = number == 0;
    SmallVector<OpFoldResult> offsets, sizes;
    getSlice(output, op.getQueryLayout(), isRagged, start, queries,
             /*withLanes=*/isOutput, offsets, sizes);
    if (split) {
      offsets.insert(offsets.begin(), split);
      sizes.insert(sizes.begin(), attr(1));
    }
    Value init = extract(output, offsets, sizes, dropped);
    Value result = forEachQueryTile(
        init, [&](const QueryTile &queryTile, State all) -> State {
          // Slices the register tile's existing queries.
          auto getSizes = [&](bool withLanes) {
            SmallVector<OpFoldResult> result{attr(headsPerTile),
                                             queryTile.count};
            if (withLanes)
              result.push_back(sizes.back());
            return result;
          };
          auto take = [&](Value tensor) {
            bool hasLanes =
                cast<RankedTensorType>(tensor.getType()).getRank() == 3;
            SmallVector<OpFoldResult> existing = getSizes(hasLanes);
            SmallVector<OpFoldResult> zeros(existing.size(), attr(0));
            return extract(tensor, zeros, existing, {});
          };
          Value part =
              take(extractQueryTile(state[isOutput ? 0 : 1], queryTile.number));
          Value sums = take(extractQueryTile(state[2], queryTile.number));
          SmallVector<OpFoldResult> sliceSizes = getSizes(isOutput);
          SmallVector<OpFoldResult> at(sliceSizes.size(), attr(0)),
              ones(sliceSizes.size(), attr(1));
          if (isTokenMajor)
            std::swap(sliceSizes[0], sliceSizes[1]);
          at[isTokenMajor ? 0 : 1] = queryTile.first;
          Value result = createResult(
              part, sums, extract(all[0], at, sliceSizes, {}), isOutput);
          return {tensor::InsertSliceOp::create(builder, loc, result, all[0],
                                                at, sliceSizes, ones)};
        })[0];
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(terminator.getBody());
    SmallVector<OpFoldResult> strides(sizes.size(), attr(1));
    tensor::ParallelInsertSliceOp::create(builder, loc, result, output, offsets,
                                          sizes, strides);
  }
}

ValueRange AttentionDecomposition::decompose() {
  normAllHeads();
  chooseTiles();
  maskBounds.setTables(options.keyBounds, keysPerTile);
  reportChoice(op, DEBUG_TYPE,
               llvm::formatv("tasks of {0} query heads and {1} register tiles "
                             "of {2} queries, {3} keys per tile",
                             headsPerTile, numQueryTiles, queriesPerTile,
                             keysPerTile));
  AffineExpr d0 = builder.getAffineDimExpr(0);
  OpFoldResult tilesOfHeads = apply(d0.floorDiv(headsPerTile), {numQueryHeads});
  OpFoldResult tilesOfQueries =
      apply(d0.ceilDiv(numQueryTiles * queriesPerTile),
            {options.maxQueries ? attr(options.maxQueries) : numQueries});
  SmallVector<OpFoldResult> bounds{numBatch, tilesOfHeads, tilesOfQueries};
  if (listsTiles()) {
    ImplicitLocOpBuilder b(loc, builder);
    RaggedTokens tokens(b, op.getCuSeqlens()[0], toValue(numQueries));
    bounds[0] = attr(1);
    bounds[2] = tokens.getNumTiles(constant(numQueryTiles * queriesPerTile));
  }
  if (options.numSplits)
    bounds.push_back(options.numSplits);
  else if (options.keysPerSplit)
    bounds.push_back(attr(1));
  auto forall = scf::ForallOp::create(builder, loc, bounds, op.getInits(),
                                      /*mapping=*/std::nullopt);
  builder.setInsertionPoint(forall.getTerminator());
  findTask(forall.getInductionVars());
  Value panels = options.packsQueries ? packQueries() : padQueries();
  auto [begin, end] = findKeyRange();
  auto loop = scf::ForOp::create(builder, loc, begin, end,
                                 constant(keysPerTile), createState());
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    scf::YieldOp::create(
        builder, loc,
        addKeys(panels, loop.getInductionVar(), end, loop.getRegionIterArgs()));
  }
  insertResults(loop.getResults(), forall.getRegionIterArgs(),
                forall.getTerminator());
  return forall.getResults();
}

Value mlir::posenc::createSplitRow(OpBuilder &builder, Location loc,
                                   Value sequence, Value start,
                                   int64_t maxQueries) {
  Value limit = arith::ConstantIndexOp::create(builder, loc, maxQueries);
  Value rows = arith::MulIOp::create(builder, loc, sequence, limit);
  return arith::MinSIOp::create(builder, loc, start, rows);
}

SplitRange mlir::posenc::createSplitRange(ImplicitLocOpBuilder &b, Value begin,
                                          Value end, int64_t keysPerSplit) {
  auto create = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b,
                                     b.getIntegerAttr(begin.getType(), value));
  };
  Value keys = create(keysPerSplit);
  SplitRange range;
  range.begin = arith::MaxUIOp::create(
      b, arith::DivUIOp::create(b, begin, keys), create(1));
  Value last = arith::DivUIOp::create(
      b, arith::AddIOp::create(b, end, create(keysPerSplit - 1)), keys);
  Value hasKeys =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, begin, end);
  last = arith::SelectOp::create(b, hasKeys, last, create(0));
  range.end = arith::MaxUIOp::create(b, last, range.begin);
  return range;
}

ValueRange
mlir::posenc::createAttentionNest(RewriterBase &rewriter, AttentionOp op,
                                  const AttentionNestOptions &options) {
  return AttentionDecomposition(rewriter, op, options).decompose();
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
          !(exceptVectors && !getVectorUnsupportedReason(op)))
        operations.push_back(op);
    });
    AttentionNestOptions options;
    options.rowsPerQueryTile = rowsPerQueryTile;
    options.queryTilesPerTask = queryTilesPerTask;
    options.keysPerTile = keysPerTile;
    options.boundsElements = boundsElements;
    options.alignedKeyTiles = alignedKeyTiles;
    options.oneHeadPerTile = oneHeadPerTile;
    IRRewriter rewriter(&getContext());
    for (AttentionOp op : operations) {
      constexpr int64_t max = 1 << 20;
      if (llvm::any_of(ArrayRef<int64_t>{rowsPerQueryTile, queryTilesPerTask,
                                         keysPerTile},
                       [](int64_t size) { return size < 1 || size > max; })) {
        op.emitOpError() << "expected options 'rows', 'groups' and 'keys' from "
                            "1 to "
                         << max << ", got " << rowsPerQueryTile.getValue()
                         << ", " << queryTilesPerTask.getValue() << " and "
                         << keysPerTile.getValue();
        return signalPassFailure();
      }
      rewriter.setInsertionPoint(op);
      rewriter.replaceOp(op, createAttentionNest(rewriter, op, options));
    }
  }
};
} // namespace
