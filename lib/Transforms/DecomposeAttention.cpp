//===- DecomposeAttention.cpp - attention as loops of tiles -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionDecomposition.h"

#include "posenc/Transforms/Passes.h"
#include "posenc/Transforms/VectorizableAttention.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/TypeUtilities.h"

#include <limits>

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCDECOMPOSEATTENTIONPASS
#include "posenc/Transforms/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Limit, in bytes, of a task's queries, and of its results.
static constexpr int64_t kMaxTaskBytes = 128 << 10;

/// A window that is wider than any relative position, but small enough to keep
/// sums from overflowing.
static constexpr int64_t kWidest = int64_t{1} << 62;

/// Chooses the heads and queries of a group, and the groups of a task. The
/// query heads of one key head (a GQA group) belong together.
void AttentionDecomposition::chooseTiles() {
  auto size = [&](Value tensor, int64_t dim) {
    return tensor::getMixedSize(builder, loc, tensor, dim);
  };
  // Tokens behind the last sequence of a ragged batch count as one more
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
  if (queryHeads && keyHeads)
    headsPerKeyHead = *queryHeads / *keyHeads;

  // As many rows as fill a group, unless there are fewer.
  bool areFew =
      queries && headsPerKeyHead && *queries * *headsPerKeyHead < rowsPerGroup;
  if (headsPerKeyHead)
    for (int64_t count = 1; count <= std::min(rowsPerGroup, *headsPerKeyHead);
         ++count)
      if (*headsPerKeyHead % count == 0 &&
          (areFew || rowsPerGroup % count == 0))
        headsPerTile = count;
  queriesPerGroup = std::max<int64_t>(rowsPerGroup / headsPerTile, 1);
  if (queries)
    queriesPerGroup = std::clamp<int64_t>(*queries, 1, queriesPerGroup);

  auto getWidth = [](Value tensor) {
    return cast<RankedTensorType>(tensor.getType()).getShape().back();
  };
  int64_t rowBytes =
      std::max(getWidth(op.getQuery()), getWidth(op.getValue())) *
      sum.getIntOrFloatBitWidth() / 8;
  int64_t groupBytes = rowBytes * headsPerTile * queriesPerGroup;
  numGroups = std::clamp<int64_t>(kMaxTaskBytes / groupBytes, 1, numGroups);
  if (queries)
    numGroups = std::clamp<int64_t>(llvm::divideCeil(*queries, queriesPerGroup),
                                    1, numGroups);
  if (std::optional<int64_t> count = getConstantIntValue(numKeys);
      count && !op.getBlockTable()) {
    keysPerTile = std::clamp<int64_t>(*count, 1, keysPerTile);
    hasRest = *count % keysPerTile != 0 || op.getLengths() ||
              op.hasRaggedQueries() || op.getCausal() || op.getWindowLeft() ||
              op.getWindowRight();
  }
}

/// Loads the bounds of the tile's sequence, and its queries.
void AttentionDecomposition::findTile(ValueRange loops) {
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
    // Always true, but not provable by later passes.
    keyHead = arith::MinSIOp::create(builder, loc, keyHead,
                                     sub(toValue(numKeyHeads), constant(1)));
  }

  // Sequence `b` of a ragged tensor is the range [list[b], list[b+1]).
  Value isSequence, next;
  if (op.hasRaggedQueries()) {
    Value last = sub(toValue(numBatch), constant(1));
    isSequence = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                       batch, last);
    next = arith::MinSIOp::create(builder, loc, add(batch, constant(1)), last);
  }
  // Entry points reject lists, lengths and pages that exceed the tensors. IR
  // that is compiled from this stage on has no such checks, so they are
  // clamped.
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
  int64_t queriesPerTask = numGroups * queriesPerGroup;
  OpFoldResult first = apply(d0 * queriesPerTask, {loops[2]});
  if (op.hasRaggedQueries()) {
    Value all = toValue(numQueries);
    auto [begin, end] = loadRange(op.getCuSeqlens()[0], all);
    queryStart = begin;
    end = arith::SelectOp::create(builder, loc, isSequence, end, all);
    Value own = sub(clamp(end, begin, all), begin);
    count = own;
    // There are as many tiles as the longest possible sequence needs.
    first =
        arith::MinSIOp::create(builder, loc, toValue(first), own).getResult();
  }
  queries = {first, clip(queriesPerTask, first, count), firstHead,
             attr(headsPerTile)};

  if (op.hasRaggedKeys()) {
    Value all = toValue(numKeys);
    auto [begin, end] = loadRange(op.getCuSeqlens()[1], all);
    keyStart = begin;
    length = sub(clamp(end, begin, all), begin);
  } else if (isSequence) {
    length = scf::IfOp::create(
                 builder, loc, isSequence,
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
    // With pages, the number of keys follows from these tensors only.
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
  if (Value trailing = op.getTrailingQueries())
    place = sub(place, trailing);
  lastPlace = add(place, sub(toValue(queries.count), constant(1)));
}

/// Emits the range of keys that masks by position leave to any query.
std::pair<Value, Value> AttentionDecomposition::findKeyRange() {
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
  if (op.hasRaggedQueries()) {
    // A tile without queries sees no keys.
    Value keys =
        arith::MulIOp::create(builder, loc, toValue(queries.count), length);
    end = arith::MinSIOp::create(builder, loc, end, add(begin, keys));
  }
  return {begin, end};
}

/// Emits the state before the first key: empty, or a sink for each head.
AttentionDecomposition::State AttentionDecomposition::createState() {
  int64_t width =
      cast<RankedTensorType>(op.getValue().getType()).getShape().back();
  SmallVector<OpFoldResult> rows{attr(numGroups), attr(headsPerTile),
                                 attr(queriesPerGroup)};
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
  return {acc, max, fill(rows, 1.0)};
}

SmallVector<OpFoldResult>
AttentionDecomposition::getGroupOffsets(Value tensor, Value number) {
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  SmallVector<OpFoldResult> offsets(rank, attr(0));
  offsets[0] = number;
  return offsets;
}

SmallVector<OpFoldResult> AttentionDecomposition::getGroupSizes(Value tensor) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tensor);
  sizes[0] = attr(1);
  return sizes;
}

/// Extracts a group's slice of a tensor whose first dimension is groups.
Value AttentionDecomposition::extractGroup(Value tensor, Value number) {
  return extract(tensor, getGroupOffsets(tensor, number), getGroupSizes(tensor),
                 {0});
}

Value AttentionDecomposition::insertGroup(Value tile, Value tensor,
                                          Value number) {
  SmallVector<OpFoldResult> sizes = getGroupSizes(tensor);
  SmallVector<OpFoldResult> strides(sizes.size(), attr(1));
  return tensor::InsertSliceOp::create(builder, loc, tile, tensor,
                                       getGroupOffsets(tensor, number), sizes,
                                       strides);
}

AttentionDecomposition::Group AttentionDecomposition::getGroup(Value number) {
  AffineExpr d0 = builder.getAffineDimExpr(0);
  Group group;
  group.number = number;
  group.first = apply(d0 * queriesPerGroup, {number});
  group.count = numGroups == 1
                    ? queries.count
                    : clip(queriesPerGroup, group.first, queries.count);
  group.place = add(place, toValue(group.first));
  return group;
}

/// Emits a loop over the groups that have queries, with a loop-carried state.
AttentionDecomposition::State AttentionDecomposition::forEachGroup(
    ValueRange state, function_ref<State(const Group &, State)> body) {
  if (numGroups == 1)
    return body(getGroup(constant(0)), State(state));
  AffineExpr d0 = builder.getAffineDimExpr(0);
  Value end = toValue(apply(d0.ceilDiv(queriesPerGroup), {queries.count}));
  auto loop =
      scf::ForOp::create(builder, loc, constant(0), end, constant(1), state);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  State next =
      body(getGroup(loop.getInductionVar()), State(loop.getRegionIterArgs()));
  scf::YieldOp::create(builder, loc, next);
  return State(loop.getResults());
}

/// Copies the queries to groups x dim x rows, with zeros beyond the last.
Value AttentionDecomposition::packQueries() {
  Value rows = takeQueries();
  auto type = cast<RankedTensorType>(rows.getType());
  int64_t dim = type.getShape().back();
  Value panels = tensor::EmptyOp::create(
      builder, loc,
      ArrayRef<int64_t>{numGroups, dim, headsPerTile, queriesPerGroup},
      type.getElementType());
  Value zero = arith::ConstantOp::create(
      builder, loc, builder.getZeroAttr(type.getElementType()));
  panels = linalg::FillOp::create(builder, loc, zero, panels).getResult(0);
  panels = forEachGroup(panels, [&](const Group &group, State state) -> State {
    SmallVector<OpFoldResult> ones(4, attr(1));
    Value mine = extract(rows, {attr(0), group.first, attr(0)},
                         {attr(headsPerTile), group.count, attr(dim)}, {});
    SmallVector<OpFoldResult> offsets{group.number, attr(0), attr(0), attr(0)},
        sizes{attr(1), attr(dim), attr(headsPerTile), group.count};
    Value init = extract(state[0], offsets, sizes, {0});
    Value panel = linalg::TransposeOp::create(builder, loc, mine, init,
                                              ArrayRef<int64_t>{2, 0, 1})
                      ->getResult(0);
    return {tensor::InsertSliceOp::create(builder, loc, panel, state[0],
                                          offsets, sizes, ones)};
  })[0];
  return tensor::CollapseShapeOp::create(
      builder, loc, panels, ArrayRef<ReassociationIndices>{{0}, {1}, {2, 3}});
}

/// Clones the regions; they are not evaluated for queries that do not exist.
void AttentionDecomposition::cloneRegions(OnlineAttentionOp tile) {
  for (auto [from, to] :
       {std::pair<Region *, Region *>(&op.getScore(), &tile.getScore()),
        {&op.getWhere(), &tile.getWhere()}}) {
    if (from->empty())
      continue;
    IRMapping mapping;
    from->cloneInto(to, mapping);
    if (isConstantIntValue(queries.count, numGroups * queriesPerGroup))
      continue;
    // The last two arguments are the query and the key.
    Block &block = to->front();
    Value query = block.getArgument(block.getNumArguments() - 2);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&block);
    Value clamped = arith::MinSIOp::create(builder, loc, query, lastPlace);
    query.replaceAllUsesExcept(clamped, clamped.getDefiningOp());
  }
}

/// Emits a group's state after a tile of keys.
AttentionDecomposition::State
AttentionDecomposition::addTile(const Group &group, Value panels, Value key,
                                Value value, Value firstKey, Value end,
                                OpFoldResult count, State state) {
  Value panel = extractGroup(panels, group.number);
  Value rows = transpose(builder, loc, panel, {1, 0});
  auto type = cast<RankedTensorType>(rows.getType());
  Value query = tensor::ExpandShapeOp::create(
      builder, loc,
      RankedTensorType::get({headsPerTile, queriesPerGroup, type.getDimSize(1)},
                            type.getElementType()),
      rows, ArrayRef<ReassociationIndices>{{0, 1}, {2}});
  State mine;
  for (Value part : state)
    mine.push_back(extractGroup(part, group.number));
  SmallVector<Type> types(ValueRange(mine).getTypes());
  auto tile = OnlineAttentionOp::create(
      builder, loc, types, batch, head, group.place, firstKey,
      /*num_keys=*/hasRest ? end : Value(), query, key, value,
      takeMask(group, firstKey, count), mine,
      builder.getF64FloatAttr(op.getScoreScale()), op.getWindowLeftAttr(),
      op.getWindowRightAttr(), op.getCausalAttr());
  cloneRegions(tile);
  State next;
  for (auto [part, result] : llvm::zip_equal(state, tile.getResults()))
    next.push_back(insertGroup(result, part, group.number));
  return next;
}

/// The state after a tile of keys.
AttentionDecomposition::State
AttentionDecomposition::addKeys(Value panels, Value firstKey, Value end,
                                ValueRange state) {
  OpFoldResult count =
      hasRest ? clip(keysPerTile, firstKey, end) : attr(keysPerTile);
  Value key = takeKeys(op.getKey(), firstKey, count);
  Value value = takeKeys(op.getValue(), firstKey, count);
  RowTransform transform =
      getTransform(op.getKeyNorm(), op.getKeyRotationAttr());
  // Tiles take other floats as they are, but rows that change are not rounded
  // to them.
  bool isChanged = transform.norm || transform.rotation;
  if (op.getKeyScales() || (isChanged && op.hasMixedTypes()))
    key = widenKeys(key, op.getKeyScales(), firstKey, count);
  if (op.getValueScales())
    value = widenKeys(value, op.getValueScales(), firstKey, count);
  Value positions;
  if (transform.rotation)
    positions = takePositions(op.getKeyPositions(), transform.rotation,
                              op.hasRaggedKeys(), keyStart, firstKey, count);
  key = transformRows(builder, loc, key, /*tokenDim=*/0, positions, transform);
  auto padRows = [&](Value rows) {
    auto type = cast<RankedTensorType>(rows.getType());
    return pad(rows, {keysPerTile, type.getDimSize(1)});
  };
  key = padRows(key);
  value = padRows(value);
  return forEachGroup(state, [&](const Group &group, State before) -> State {
    auto addAll = [&]() -> State {
      return addTile(group, panels, key, value, firstKey, end, count, before);
    };
    Value isSeen = createIsSeen(group, firstKey);
    if (numGroups == 1 || !isSeen)
      return addAll();
    SmallVector<Type> types(ValueRange(before).getTypes());
    auto branch = scf::IfOp::create(builder, loc, types, isSeen,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(builder, loc, addAll());
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(builder, loc, before);
    return State(branch.getResults());
  });
}

/// Emits an i1: whether masks by position leave any key of the tile to any
/// query of the group; null without such masks.
Value AttentionDecomposition::createIsSeen(const Group &group, Value firstKey) {
  Value lastPlaceOfGroup = add(group.place, constant(queriesPerGroup - 1));
  Value lastKey = add(firstKey, constant(keysPerTile - 1));
  Value isSeen;
  // Compares relative positions, since a position minus a window could wrap.
  auto require = [&](Value from, Value to, int64_t most) {
    Value isNear = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::sle, sub(from, to), constant(most));
    isSeen = isSeen ? Value(arith::AndIOp::create(builder, loc, isSeen, isNear))
                    : isNear;
  };
  if (op.getCausal())
    require(firstKey, lastPlaceOfGroup, 0);
  if (std::optional<int64_t> left = op.getWindowLeft())
    require(group.place, lastKey, *left);
  if (std::optional<int64_t> right = op.getWindowRight())
    require(firstKey, lastPlaceOfGroup, *right);
  return isSeen;
}

/// Emits a group's outputs, or log-sum-exps, in the layout of `init`.
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
      // The log-sum-exp of a row that saw only its sink is the sink bit for
      // bit, even -0; that of a row that saw nothing is minus infinity.
      Value isOne = arith::CmpFOp::create(b, l, arith::CmpFPredicate::OEQ,
                                          args[1], constant(1.0));
      Value isMaximum = arith::OrIOp::create(b, l, isZero, isOne);
      result = arith::SelectOp::create(b, l, isMaximum, args[0], result);
    }
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

/// The quotients, and the logarithms of the sums, in the outputs' layout.
void AttentionDecomposition::insertResults(ValueRange state, ValueRange outputs,
                                           scf::InParallelOp terminator) {
  bool isPacked = op.hasRaggedQueries();
  SmallVector<int64_t> dropped;
  if (!isPacked)
    dropped.push_back(0);
  bool isTokenMajor = op.getQueryLayout() == HeadLayout::TokenMajor;
  for (auto [number, output] : llvm::enumerate(outputs)) {
    bool isOutput = number == 0;
    SmallVector<OpFoldResult> offsets, sizes;
    getSlice(output, op.getQueryLayout(), isPacked, queryStart, queries,
             /*withLanes=*/isOutput, offsets, sizes);
    Value init = extract(output, offsets, sizes, dropped);
    Value result =
        forEachGroup(init, [&](const Group &group, State all) -> State {
          // Slices the group's tokens.
          auto getSizes = [&](bool withLanes) {
            SmallVector<OpFoldResult> result{attr(headsPerTile), group.count};
            if (withLanes)
              result.push_back(sizes.back());
            return result;
          };
          auto take = [&](Value tensor) {
            bool hasLanes =
                cast<RankedTensorType>(tensor.getType()).getRank() == 3;
            SmallVector<OpFoldResult> mine = getSizes(hasLanes);
            SmallVector<OpFoldResult> zeros(mine.size(), attr(0));
            return extract(tensor, zeros, mine, {});
          };
          Value part =
              take(extractGroup(state[isOutput ? 0 : 1], group.number));
          Value sums = take(extractGroup(state[2], group.number));
          SmallVector<OpFoldResult> mine = getSizes(isOutput);
          SmallVector<OpFoldResult> at(mine.size(), attr(0)),
              ones(mine.size(), attr(1));
          if (isTokenMajor)
            std::swap(mine[0], mine[1]);
          at[isTokenMajor ? 0 : 1] = group.first;
          Value result =
              createResult(part, sums, extract(all[0], at, mine, {}), isOutput);
          return {tensor::InsertSliceOp::create(builder, loc, result, all[0],
                                                at, mine, ones)};
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
  AffineExpr d0 = builder.getAffineDimExpr(0);
  OpFoldResult tilesOfHeads = apply(d0.floorDiv(headsPerTile), {numQueryHeads});
  OpFoldResult tilesOfQueries =
      apply(d0.ceilDiv(numGroups * queriesPerGroup), {numQueries});
  auto forall = scf::ForallOp::create(
      builder, loc,
      ArrayRef<OpFoldResult>{numBatch, tilesOfHeads, tilesOfQueries},
      op.getInits(), /*mapping=*/std::nullopt);
  builder.setInsertionPoint(forall.getTerminator());
  findTile(forall.getInductionVars());
  Value panels = packQueries();
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
    IRRewriter rewriter(&getContext());
    for (AttentionOp op : operations) {
      constexpr int64_t most = 1 << 20;
      if (llvm::any_of(
              ArrayRef<int64_t>{rowsPerGroup, groupsPerTask, keysPerTile},
              [](int64_t size) { return size < 1 || size > most; })) {
        op.emitOpError() << "cannot be cut into tasks of "
                         << groupsPerTask.getValue() << " groups of "
                         << rowsPerGroup.getValue() << " rows, and tiles of "
                         << keysPerTile.getValue() << " keys";
        return signalPassFailure();
      }
      rewriter.setInsertionPoint(op);
      rewriter.replaceOp(op, AttentionDecomposition(rewriter, op, rowsPerGroup,
                                                    groupsPerTask, keysPerTile)
                                 .decompose());
    }
  }
};
} // namespace
