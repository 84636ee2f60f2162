//===- AttentionDecode.cpp - the decode kernel ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The decode kernel. It is bound by memory, so it reads keys and values in
// place and once for all queries of a task: all its tokens and query heads.
// Vector lanes run along the channels of a row. As many dot products as a
// vector has lanes are accumulated side by side, then summed across lanes
// together into a vector of scores, which holds the scores of some keys, each
// with the same queries. If there are more queries than fit, they form blocks,
// and each tile of keys is processed block by block.
//
// Each tile has three loops, so that none waits for the long dependency chains
// of another: products, sums across lanes, and exponentials. The exponentials
// use the running max from before the tile. It seldom changes; when it does,
// they are computed again.
//
// A tile of keys, and one of values, has the size of a page, so both stay in
// the L1 cache from prefetch to use. The products with keys prefetch the tile's
// values, and the weighted sums of values prefetch the next keys, in order and
// interleaved with arithmetic: a burst of prefetches would be dropped. The unit
// of prefetching is an aligned page of memory even where tiles start within a
// page, as two parts of pages take longer.
//
// If the key heads of a token are contiguous, a task takes all of them. The
// tile then consists of whole rows of heads and is processed head by head from
// the L2 cache, while the next tile is prefetched in memory order. Each line is
// prefetched twice, as single prefetches are dropped now and then.
//
//===----------------------------------------------------------------------===//

#include "AttentionDecode.h"

#include "posenc/Numerics/BF16.h"
#include "posenc/Numerics/Softmax.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

#include <numeric>

using namespace mlir;
using namespace mlir::posenc;

Decode::Decode(ImplicitLocOpBuilder &builder, const AttentionCode &code,
               const AttentionTask &task, Value endKey)
    : b(builder), code(code), op(code.op), task(task),
      type(code.getVectorType()), lanes(code.tiles.lanes),
      queries(code.tiles.getQueryLanes()), keys(lanes / queries),
      numTokens(code.tiles.hasKnownTokens()
                    ? createIndex(b, code.tiles.getTokens())
                    : task.numTokens),
      perHead(mulIndex(b, numTokens, code.tiles.getHeadsPerKeyHead())),
      endKey(endKey), areKeysCopied(op.getKeyRotation() || op.getKeyNorm()),
      areIntegers(canUseIntegers(op)) {
  // Integer sums are exact in any order, so they need no fixed number of
  // partial sums.
  if (!areIntegers)
    parts = kSumLanes / lanes;
  int64_t bytes = code.dim * getElementBytes(op.getKey());
  hasLines = bytes % kLineBytes == 0 && code.valueDim == code.dim;
  if (code.tiles.hasKnownTokens() || code.tiles.getBlocksPerHead() == 1)
    return;
  // The reciprocal is 2^32 / numBlocks, rounded up. Quotients computed with it
  // are exact for dividends below 2^32 / numBlocks.
  numBlocks =
      b.createOrFold<arith::CeilDivUIOp>(perHead, createIndex(b, queries));
  blocksReciprocal = arith::CeilDivUIOp::create(
      b, createIndex(b, int64_t{1} << 32), numBlocks);
}

bool Decode::areSplit(Value memref, int64_t dim) const {
  return getElementTypeOrSelf(memref.getType()).isBF16() &&
         dim % (2 * lanes) == 0;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

SmallVector<Value> Decode::getRow(Value firstKey, Value row, Value keyHead,
                                  bool isNext) {
  if (isNext)
    row = addIndex(b, row, code.tiles.keys);
  Value key = addIndex(b, firstKey, row);
  // The block table has pages for existing keys only.
  if (isNext && op.getBlockTable())
    key = minIndex(b, key, addIndex(b, endKey, -1));
  AttentionTask headTask = task;
  if (code.tiles.keyHeads > 1)
    headTask.keyHead = addIndex(b, task.keyHead, keyHead);
  return getKeyIndices(b, op, headTask, key);
}

SmallVector<Value> Decode::getNextRow(Value firstKey, Value &number,
                                      int64_t unitsPerRow) {
  Value size = createIndex(b, unitsPerRow),
        heads = createIndex(b, code.tiles.keyHeads);
  Value row = b.createOrFold<arith::DivUIOp>(number, size);
  number = b.createOrFold<arith::RemUIOp>(number, size);
  return getRow(firstKey, b.createOrFold<arith::DivUIOp>(row, heads),
                b.createOrFold<arith::RemUIOp>(row, heads), /*isNext=*/true);
}

SmallVector<Value> Decode::load(Value memref, ValueRange row, Value lane,
                                int64_t count) {
  SmallVector<Value> result;
  Type element = getElementTypeOrSelf(memref.getType());
  bool split = areSplit(memref, type.getNumElements() * count);
  for (int64_t i = 0; i < count; i += split ? 2 : 1) {
    if (split) {
      SmallVector<Value> at(row);
      at.push_back(addIndex(b, lane, i * lanes));
      auto both = VectorType::get({2 * lanes}, element);
      BF16Halves halves =
          splitBF16(b, b.getLoc(), loadVector(b, both, memref, at));
      llvm::append_values(result, halves.even, halves.odd);
      continue;
    }
    result.push_back(loadF32(b, b.getLoc(), memref, row,
                             addIndex(b, lane, i * lanes), lanes));
  }
  return result;
}

void Decode::prefetch(Value memref, ValueRange row, Value lane) {
  SmallVector<Value> at(row);
  at.push_back(lane);
  memref::PrefetchOp::create(b, memref, at, /*isWrite=*/false,
                             code.target.getLocalityHint(),
                             /*isDataCache=*/true);
}

Value Decode::moveToPage(Value memref, Value firstKey, Value keyHead,
                         bool isNext) {
  int64_t bytes = getElementBytes(memref);
  if (!hasLines || code.tiles.keyHeads > 1 || op.getBlockTable() ||
      code.tiles.keys * code.dim * bytes != kPageBytes)
    return memref;
  auto metadata = memref::ExtractStridedMetadataOp::create(b, memref);
  Value zero = createIndex(b, 0), position = metadata.getOffset();
  SmallVector<Value> row = getRow(firstKey, zero, keyHead, isNext);
  for (auto [index, stride] : llvm::zip(row, metadata.getStrides()))
    position =
        addIndex(b, position, b.createOrFold<arith::MulIOp>(index, stride));
  Value address =
      addIndex(b, memref::ExtractAlignedPointerAsIndexOp::create(b, memref),
               mulIndex(b, position, bytes));
  Value rest = b.createOrFold<arith::AndIOp>(subIndex(b, zero, address),
                                             createIndex(b, kPageBytes - 1));
  rest = b.createOrFold<arith::DivUIOp>(rest, createIndex(b, bytes));
  Value areInOrder = arith::CmpIOp::create(
      b, arith::CmpIPredicate::eq, metadata.getStrides()[op.getKeyTokenDim()],
      createIndex(b, code.dim));
  rest = arith::SelectOp::create(b, areInOrder, rest, zero);
  SmallVector<OpFoldResult> strides = metadata.getConstifiedMixedStrides();
  auto type = cast<MemRefType>(memref.getType());
  auto layout = StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic,
                                       decomposeMixedValues(strides).first);
  type = MemRefType::get(type.getShape(), type.getElementType(), layout,
                         type.getMemorySpace());
  OpFoldResult offset = addIndex(b, metadata.getOffset(), rest);
  return memref::ReinterpretCastOp::create(
      b, type, metadata.getBaseBuffer(), offset,
      metadata.getConstifiedMixedSizes(), strides);
}

void Decode::prefetchBeside(Value memref, Value firstKey, Value row,
                            Value count, Value block, bool isNext) {
  Value number = b.createOrFold<arith::MulIOp>(getBlockIndex(block), count);
  number = getPrefetchOffset(addIndex(b, number, row), /*size=*/1);
  SmallVector<Value> at =
      code.tiles.keyHeads == 1
          ? getRow(firstKey, number, getKeyHead(block), isNext)
          : getNextRow(firstKey, number, /*unitsPerRow=*/1);
  int64_t elements = kLineBytes / getElementBytes(memref);
  for (int64_t lane = 0; lane < code.dim; lane += elements)
    prefetch(memref, at, createIndex(b, lane));
}

static Value createSum(ImplicitLocOpBuilder &b, Value x, Value y) {
  if (getElementTypeOrSelf(x.getType()).isInteger())
    return arith::AddIOp::create(b, x, y);
  return arith::AddFOp::create(b, x, y);
}

SmallVector<Value> Decode::sumLanes(SmallVector<Value> vectors, size_t until) {
  // Shuffles across 16-byte parts of a vector are slow, so they come last, when
  // few vectors are left.
  int64_t unit = 1;
  for (int64_t step = 0, count = lanes; vectors.size() > until;
       ++step, count /= 2) {
    bool isDone = static_cast<int64_t>(vectors.size()) != count;
    int64_t parts = std::min<int64_t>(lanes / unit, 4);
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t part = lane / unit % parts;
      bool isLast = parts == 2;
      int64_t vector = isLast || step % 2 == 0 ? part % 2 : part / 2;
      int64_t from = isLast ? 0 : step % 2 == 0 ? part / 2 : part % 2;
      int64_t source = vector * lanes + lane - part * unit + from * unit;
      low.push_back(source);
      high.push_back(source + parts / 2 * unit);
    }
    if (step % 2 == 1)
      unit *= 4;
    if (isDone)
      continue;
    SmallVector<Value> next;
    for (size_t i = 0; i < vectors.size(); i += 2) {
      Value x = vectors[i], y = vectors[i + 1];
      next.push_back(createSum(b, vector::ShuffleOp::create(b, x, y, low),
                               vector::ShuffleOp::create(b, x, y, high)));
    }
    vectors = std::move(next);
  }
  return vectors;
}

Value Decode::sumParts(ArrayRef<Value> vectors) {
  // The order of additions is the same for all vector widths: lanes at a
  // distance of 2 have been added; those at a distance of 1, 8 and 4 follow.
  // The last two may be in different vectors.
  SmallVector<SmallVector<Value>> sums;
  for (size_t size = vectors.size() / parts; !vectors.empty();
       vectors = vectors.drop_front(size))
    sums.push_back(sumLanes(llvm::to_vector(vectors.take_front(size)),
                            /*until=*/parts == 1 ? 1 : lanes / 4));
  while (sums.size() > 1) {
    size_t half = sums.size() / 2;
    for (size_t i = 0; i < half; ++i)
      for (auto [sum, other] : llvm::zip_equal(sums[i], sums[half + i]))
        sum = createSum(b, sum, other);
    sums.truncate(half);
  }
  return sumLanes(sums.front(), /*until=*/1).front();
}

/// Combines the lanes of all keys, separately for each query.
Value Decode::acrossKeys(Value vector,
                         function_ref<Value(Value, Value)> combine) {
  for (int64_t relative = queries; relative < lanes; relative *= 2) {
    SmallVector<int64_t> others;
    for (int64_t i = 0; i < lanes; ++i)
      others.push_back(i ^ relative);
    vector =
        combine(vector, vector::ShuffleOp::create(b, vector, vector, others));
  }
  return vector;
}

void Decode::forEachBlock(function_ref<void(Value block)> body) {
  if (!numBlocks)
    return createLoop(b, createIndex(b, 0),
                      createIndex(b, code.tiles.getBlocks()), 1, body);
  createLoop(b, createIndex(b, 0), createIndex(b, code.tiles.keyHeads), 1,
             [&](Value keyHead) { forEachBlockOf(keyHead, body); });
}

void Decode::forEachBlockOf(Value keyHead,
                            function_ref<void(Value block)> body) {
  int64_t blocks = code.tiles.getBlocksPerHead();
  Value end = numBlocks ? numBlocks : createIndex(b, blocks);
  createLoop(b, createIndex(b, 0), end, 1, [&](Value block) {
    body(addIndex(b, mulIndex(b, keyHead, blocks), block));
  });
}

Value Decode::getBlockIndex(Value block) {
  if (!numBlocks || code.tiles.keyHeads == 1)
    return block;
  Value none =
      subIndex(b, createIndex(b, code.tiles.getBlocksPerHead()), numBlocks);
  return subIndex(b, block,
                  b.createOrFold<arith::MulIOp>(getKeyHead(block), none));
}

Value Decode::getPrefetchOffset(Value number, int64_t size) {
  int64_t blocks = code.tiles.getBlocksPerHead();
  if (blocks == 1)
    return number;
  if (!numBlocks)
    return mulIndex(
        b,
        b.createOrFold<arith::DivUIOp>(number, createIndex(b, size * blocks)),
        size);
  number = b.createOrFold<arith::DivUIOp>(number, createIndex(b, size));
  number = arith::ShRUIOp::create(
      b, arith::MulIOp::create(b, number, blocksReciprocal),
      createIndex(b, 32));
  return mulIndex(b, number, size);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void Decode::emitProducts(Value firstKey, Value count, bool isWhole,
                          Value block) {
  Value zero = createIndex(b, 0), last = addIndex(b, count, -1);
  SmallVector<Value> start(
      lanes, areIntegers ? arith::ConstantOp::create(
                               b, b.getZeroAttr(type.clone(b.getI32Type())))
                         : createSplat(b, type, 0));
  int64_t step = hasLines ? kLineBytes / getElementBytes(op.getKey()) : lanes;
  // Even and odd elements are loaded as a pair of vectors.
  int64_t vectors = std::max<int64_t>(step / lanes, 1);
  bool inPairs = areIntegers || areKeysSplit();
  vectors = inPairs ? 2 : 1;
  step = std::max(step, parts * vectors * lanes);
  Value beside = code.tiles.keyHeads == 1
                     ? moveToPage(op.getValue(), firstKey, getKeyHead(block),
                                  /*isNext=*/false)
                     : op.getKey();
  // The next keys are prefetched during the weighted sums of values, and here
  // once more where single prefetches may be dropped.
  uint64_t numBefore = hasLines && code.tiles.keyHeads == 1
                           ? code.target.decodePrefetches - 1
                           : 0;
  Value nextKeys = numBefore > 0
                       ? moveToPage(op.getKey(), firstKey, getKeyHead(block),
                                    /*isNext=*/true)
                       : Value();
  createLoop(b, zero, getEndOfRows(count, isWhole), keys, [&](Value row) {
    SmallVector<Value> rows;
    SmallVector<SmallVector<Value>> positions;
    for (int64_t i = 0; i < keys; ++i) {
      // Reads the last key again for rows after the last key.
      Value keyRow = addIndex(b, row, i);
      rows.push_back(isWhole ? keyRow : minIndex(b, keyRow, last));
      positions.push_back(
          getRow(firstKey, rows[i], getKeyHead(block), /*isNext=*/false));
    }
    auto multiply = [&](Value first, ValueRange sums, int64_t part) {
      if (areIntegers)
        return multiplyIntegers(block, positions, first, step, sums);
      SmallVector<Value> next(sums);
      int64_t size = vectors * lanes;
      for (int64_t j = part * size; j < step; j += parts * size) {
        Value d = addIndex(b, first, j);
        SmallVector<SmallVector<Value>> loaded;
        for (int64_t i = 0; i < keys; ++i) {
          loaded.push_back(areKeysCopied
                               ? SmallVector<Value>{loadVector(
                                     b, type, code.keys, {rows[i], d})}
                               : load(op.getKey(), positions[i], d, vectors));
        }
        // Each vector of a query is used for all keys before the next is
        // loaded.
        for (int64_t v = 0; v < vectors; ++v)
          for (int64_t q = 0; q < queries; ++q) {
            Value query = loadVector(
                b, type, code.rows,
                {getRowOfQuery(block, q), addIndex(b, d, v * lanes)});
            for (int64_t i = 0; i < keys; ++i) {
              Value &sum = next[i * queries + q];
              sum = math::FmaOp::create(b, loaded[i][v], query, sum);
            }
          }
      }
      return next;
    };
    // Prefetches are spread over the channels.
    constexpr int64_t maxLines = 8;
    int64_t numLines =
        keys * code.dim * getElementBytes(op.getKey()) / kLineBytes;
    int64_t segments = hasLines ? std::max<int64_t>(numLines / maxLines, 1) : 1;
    segments = std::gcd(std::gcd(code.dim / step, segments), keys);
    int64_t slots = parts * segments, number = 0;
    for (int64_t part = 0; part < parts; ++part) {
      SmallVector<Value> products = start;
      for (int64_t i = 0; i < segments; ++i) {
        int64_t slot = part * segments + i;
        for (int64_t j = keys * slot / slots;
             hasLines && j < keys * (slot + 1) / slots; ++j) {
          prefetchBeside(beside, firstKey, rows[j], count, block,
                         /*isNext=*/false);
          for (uint64_t n = 0; n < numBefore; ++n)
            prefetchBeside(nextKeys, firstKey, rows[j], count, block,
                           /*isNext=*/true);
        }
        int64_t size = code.dim / segments;
        products = createRolledLoop(
            b, createIndex(b, i * size), createIndex(b, (i + 1) * size), step,
            products,
            [&](Value d, ValueRange sums) { return multiply(d, sums, part); });
      }
      for (Value sum : sumLanes(products, lanes / 2))
        storeVector(b, vector::BitCastOp::create(b, type, sum),
                    code.decodeProducts, getProduct(row, number++));
    }
  });
}

Value Decode::getEndOfRows(Value count, bool isWhole) {
  int64_t step = code.tiles.getWeightSums();
  if (isWhole || step == keys)
    return count;
  Value size = createIndex(b, step);
  return b.createOrFold<arith::MulIOp>(
      b.createOrFold<arith::CeilDivUIOp>(count, size), size);
}

Value Decode::loadScales(Value scales, Value firstKey, Value row, Value count,
                         Value block) {
  SmallVector<Value> keyScales;
  Value last = addIndex(b, count, -1);
  for (int64_t i = 0; i < keys; ++i) {
    Value keyRow = minIndex(b, addIndex(b, row, i), last);
    keyScales.push_back(loadScale(
        b, op, scales,
        getRow(firstKey, keyRow, getKeyHead(block), /*isNext=*/false)));
  }
  if (keys == 1)
    return broadcast(b, type, keyScales.front());
  SmallVector<Value> laneScales;
  for (int64_t lane = 0; lane < lanes; ++lane)
    laneScales.push_back(keyScales[lane / queries]);
  return vector::FromElementsOp::create(b, type, laneScales);
}

void Decode::emitScores(Value firstKey, Value count, bool isWhole, Value isFull,
                        Value block) {
  Value factors = areIntegers ? loadIntegerFactors(block) : Value();
  VectorType sumType = areIntegers ? type.clone(b.getI32Type()) : type;
  Value end = getEndOfRows(count, isWhole);
  auto emitRow = [&](Value row, bool appliesWhere) {
    SmallVector<Value> sums;
    for (int64_t i = 0; i < parts * lanes / 2; ++i)
      sums.push_back(vector::BitCastOp::create(
          b, sumType,
          loadVector(b, type, code.decodeProducts, getProduct(row, i))));
    Value score = sumParts(sums);
    if (areIntegers)
      score = arith::SIToFPOp::create(b, type, score);
    // Normed or rotated rows were multiplied by their scales when they were
    // copied.
    if (op.getKeyScales() && !areKeysCopied)
      score = arith::MulFOp::create(
          b, score, loadScales(op.getKeyScales(), firstKey, row, count, block));
    if (factors)
      score = arith::MulFOp::create(b, score, factors);
    Value keep = isWhole ? Value() : getVisible(firstKey, row, count, block);
    if (code.hasOwnScores() || op.getMask() ||
        (appliesWhere && code.hasOwnPairs()))
      score = emitPairs(score, keep, appliesWhere, firstKey, row, count, block);
    else if (keep)
      score = arith::SelectOp::create(
          b, keep, score,
          createSplat(b, type, -std::numeric_limits<double>::infinity()));
    storeVector(b, score, code.decodeScores, mulIndex(b, row, queries));
  };
  auto emitRows = [&](bool appliesWhere) {
    createLoop(b, createIndex(b, 0), end, keys,
               [&](Value row) { emitRow(row, appliesWhere); });
  };
  if (!isFull)
    return emitRows(/*appliesWhere=*/true);
  auto branch = scf::IfOp::create(b, isFull, /*withElseRegion=*/true);
  for (bool appliesWhere : {false, true}) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(appliesWhere ? branch.elseBlock()
                                            : branch.thenBlock());
    emitRows(appliesWhere);
  }
}

Value Decode::getWeight(Value row, Value block) {
  int64_t blocks = code.tiles.getBlocksPerHead();
  Value blockOfHead =
      b.createOrFold<arith::RemUIOp>(block, createIndex(b, blocks));
  return addIndex(b, mulIndex(b, blockOfHead, code.tiles.keys * queries),
                  mulIndex(b, row, queries));
}

std::pair<Value, Value> Decode::emitWeight(Value firstKey, Value row,
                                           Value count, Value maximum,
                                           Value block) {
  Value score =
      loadVector(b, type, code.decodeScores, mulIndex(b, row, queries));
  Base2Softmax softmax(b, b.getLoc(), type);
  Value weight = emitExp(softmax, score, maximum);
  Value scaledWeight = weight;
  if (op.getValueScales()) {
    Value scales = loadScales(op.getValueScales(), firstKey, row, count, block);
    scaledWeight = arith::MulFOp::create(b, weight, scales);
    // The scale of a masked key may be NaN: its weight is set to 0 afterwards.
    if (code.hasOwnPairs() || hasMasks()) {
      Value zero = createSplat(b, type, 0);
      Value isOut =
          arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, weight, zero);
      scaledWeight = arith::SelectOp::create(b, isOut, zero, scaledWeight);
    }
  }
  storeVector(b, scaledWeight, code.decodeWeights, getWeight(row, block));
  return {score, weight};
}

void Decode::emitWeights(Value firstKey, Value count, Value block) {
  Value zero = createIndex(b, 0), first = getState(block);
  SmallVector<Value> atMaximum{first, zero};
  Value before = loadVector(b, type, code.decodeState, atMaximum);
  SmallVector<Value> start(code.tiles.getStateVectors(),
                           createSplat(b, type, 0));
  start.front() = before;
  Base2Softmax softmax(b, b.getLoc(), type);
  // The loop carries the maximum of the scores and the partial sums of weights.
  ValueRange tile = createLoop(
      b, zero, count, code.tiles.getWeightSums(), start,
      [&](Value row, ValueRange carried) {
        SmallVector<Value> next(carried);
        for (auto [i, sum] : llvm::enumerate(llvm::drop_begin(next))) {
          auto [score, weight] = emitWeight(
              firstKey, addIndex(b, row, i * keys), count, before, block);
          next.front() = softmax.max(score, next.front());
          sum = arith::AddFOp::create(b, sum, weight);
        }
        return next;
      });
  Value isLarger =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, tile[0], before);
  Value isAnyLarger =
      vector::ReductionOp::create(b, vector::CombiningKind::OR, isLarger);
  SmallVector<Type> types(code.tiles.getSumVectors(), type);
  auto sums = scf::IfOp::create(b, types, isAnyLarger, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(sums.elseBlock());
    scf::YieldOp::create(b, tile.drop_front());
    b.setInsertionPointToStart(sums.thenBlock());
    scf::YieldOp::create(
        b, changeMaximum(before, tile[0], firstKey, count, block));
  }
  for (auto [i, sum] : llvm::enumerate(sums.getResults())) {
    SmallVector<Value> at{addIndex(b, first, 1 + i), zero};
    Value total = loadVector(b, type, code.decodeState, at);
    storeVector(b, arith::AddFOp::create(b, total, sum), code.decodeState, at);
  }
}

SmallVector<Value> Decode::changeMaximum(Value before, Value rowMax,
                                         Value firstKey, Value count,
                                         Value block) {
  Value zero = createIndex(b, 0), first = getState(block);
  Base2Softmax softmax(b, b.getLoc(), type);
  Value maximum =
      acrossKeys(rowMax, [&](Value x, Value y) { return softmax.max(x, y); });
  storeVector(b, maximum, code.decodeState, {first, zero});
  Value factor = emitStep(softmax, before, maximum).factor;
  auto scale = [&](Value memory, ValueRange at, Value by) {
    Value sum = loadVector(b, type, memory, at);
    storeVector(b, arith::MulFOp::create(b, sum, by), memory, at);
  };
  for (int64_t i = 1; i < code.tiles.getStateVectors(); ++i)
    scale(code.decodeState, {addIndex(b, first, i), zero}, factor);
  for (int64_t q = 0; q < queries; ++q) {
    Value by = broadcastQuery(factor, q);
    createLoop(b, zero, createIndex(b, code.valueDim), lanes, [&](Value d) {
      scale(code.decodeAcc, {getRowOfQuery(block, q), d}, by);
    });
  }
  SmallVector<Value> start(code.tiles.getSumVectors(), createSplat(b, type, 0));
  return createRolledLoop(b, zero, count, code.tiles.getWeightSums(), start,
                          [&](Value row, ValueRange carried) {
                            SmallVector<Value> next(carried);
                            for (auto [i, sum] : llvm::enumerate(next))
                              sum = arith::AddFOp::create(
                                  b, sum,
                                  emitWeight(firstKey,
                                             addIndex(b, row, i * keys), count,
                                             maximum, block)
                                      .second);
                            return next;
                          });
}

Value Decode::sumWeights(Value state, Value block) {
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddFOp::create(b, x, y);
  };
  SmallVector<Value> sums;
  for (int64_t i = 1; i < code.tiles.getStateVectors(); ++i)
    sums.push_back(acrossKeys(
        loadVector(b, type, state,
                   {addIndex(b, getState(block), i), createIndex(b, 0)}),
        add));
  for (; sums.size() > 1; sums.truncate(sums.size() / 2))
    for (size_t i = 0; i < sums.size(); i += 2)
      sums[i / 2] = add(sums[i], sums[i + 1]);
  return sums.front();
}

void Decode::emitValues(Value firstKey, Value count, bool isWhole,
                        Value block) {
  Value zero = createIndex(b, 0);
  // A vector of products has as many queries as a vector of scores, but at most
  // half its lanes.
  int64_t few = std::min(queries, lanes / 2);
  int64_t vectors = lanes / few;
  // Integer products take two rows and a pair of vectors at a time.
  bool areIntegerWeights = isWhole && canUseIntegerWeights(op, code.tiles);
  int64_t rowsAtOnce = areIntegerWeights ? 2 : 1;
  while (code.valueDim / lanes % (rowsAtOnce * vectors) != 0)
    vectors = areIntegerWeights ? vectors / 2 : vectors - 1;
  int64_t columns = vectors * lanes;
  Value none = createSplat(b, type, 0);
  if (areIntegerWeights) {
    quantizeWeights(block);
    none =
        arith::ConstantOp::create(b, b.getZeroAttr(type.clone(b.getI32Type())));
  }
  SmallVector<Value> start(vectors * few, none);
  // Each row of a pass over columns prefetches a share of the next tile, so
  // that all rows together prefetch it in order.
  int64_t elements = kLineBytes / getElementBytes(op.getValue());
  int64_t numColumns = code.valueDim / columns;
  int64_t size = isWhole ? std::gcd(code.tiles.keys, numColumns) : 1;
  bool isOfRows = code.tiles.keyHeads > 1;
  bool isTwice = isOfRows && code.target.decodeRowPrefetches > 1;
  int64_t rowsPerLine = isTwice ? 1 : std::max<int64_t>(elements / columns, 1);
  // If there are few columns, the page of each row is looked up once for all of
  // them.
  int64_t step =
      std::max(std::gcd<int64_t>(size, op.getBlockTable() ? 16 : rowsPerLine),
               rowsAtOnce);
  SmallVector<Value> nextTiles{
      moveToPage(op.getKey(), firstKey, getKeyHead(block), /*isNext=*/true)};
  // With tiles of whole rows this is the only prefetch of the next values.
  // Otherwise the products with the next keys prefetch them again.
  if (isOfRows)
    nextTiles.push_back(op.getValue());
  else if (code.target.decodePrefetches > 1)
    nextTiles.append(code.target.decodePrefetches - 1,
                     moveToPage(op.getValue(), firstKey, getKeyHead(block),
                                /*isNext=*/true));
  for (int64_t first = 0; first < queries; first += few) {
    bool isAsking = isWhole && hasLines && first == 0;
    createLoop(b, zero, createIndex(b, numColumns), 1, [&](Value column) {
      Value d = mulIndex(b, column, columns);
      auto emitRow = [&](Value row, ValueRange before) {
        if (areIntegerWeights)
          return addIntegerRows(firstKey, row, d, first, block, before,
                                vectors);
        SmallVector<Value> next(before);
        SmallVector<Value> values =
            load(op.getValue(),
                 getRow(firstKey, row, getKeyHead(block), /*isNext=*/false), d,
                 vectors);
        for (int64_t q = 0; q < few; ++q) {
          Value weight =
              broadcast(b, type,
                        memref::LoadOp::create(
                            b, code.decodeWeights,
                            addIndex(b, getWeight(row, block), first + q)));
          Value isOut;
          // 0 times infinity or NaN is NaN.
          if (code.hasOwnPairs() || (!isWhole && hasMasks()))
            isOut = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, weight,
                                          start.front());
          for (auto [v, value] : llvm::enumerate(values)) {
            Value &sum = next[v * few + q];
            Value added = math::FmaOp::create(b, weight, value, sum);
            sum = isOut ? arith::SelectOp::create(b, isOut, sum, added) : added;
          }
        }
        return next;
      };
      auto emitRows = [&](Value firstRow, ValueRange before) {
        Value pass =
            addIndex(b, mulIndex(b, getBlockIndex(block), numColumns), column);
        Value number = getPrefetchOffset(
            addIndex(b, mulIndex(b, pass, code.tiles.keys), firstRow), size);
        SmallVector<Value> ahead = getNextRow(firstKey, number, numColumns);
        Value lane = mulIndex(b, number, columns);
        Value end = addIndex(b, firstRow, size);
        return llvm::to_vector(createRolledLoop(
            b, firstRow, end, step, before, [&](Value row, ValueRange s) {
              SmallVector<Value> next(s);
              for (int64_t i = 0; i < step; ++i) {
                Value keyRow = addIndex(b, row, i);
                if (isAsking && i % rowsPerLine == 0) {
                  Value at = addIndex(
                      b, lane,
                      mulIndex(b, subIndex(b, keyRow, firstRow), columns));
                  for (int64_t j = 0; j < columns; j += elements)
                    for (Value memref : nextTiles)
                      prefetch(memref, ahead, addIndex(b, at, j));
                }
                if (i % rowsAtOnce == 0)
                  next = emitRow(keyRow, next);
              }
              return next;
            }));
      };
      SmallVector<Value> sums;
      if (isWhole)
        sums = createLoop(b, zero, count, size, start, emitRows);
      else
        sums = createRolledLoop(b, zero, count, 1, start, emitRow);
      if (areIntegerWeights) {
        addIntegerSums(d, first, block, sums, vectors);
        return;
      }
      for (int64_t v = 0; v < vectors; ++v)
        for (int64_t q = 0; q < few; ++q) {
          SmallVector<Value> at{getRowOfQuery(block, first + q),
                                addIndex(b, d, v * lanes)};
          Value before = loadVector(b, type, code.decodeAcc, at);
          storeVector(b, arith::AddFOp::create(b, before, sums[v * few + q]),
                      code.decodeAcc, at);
        }
    });
  }
}

void Decode::emitTile(Value firstKey, Value count, bool isWhole, Value isFull) {
  Value numKeyHeads = createIndex(b, code.tiles.keyHeads);
  createLoop(b, createIndex(b, 0), numKeyHeads, 1, [&](Value keyHead) {
    forEachBlockOf(keyHead, [&](Value block) {
      emitProducts(firstKey, count, isWhole, block);
      emitScores(firstKey, count, isWhole, isFull, block);
      emitWeights(firstKey, count, block);
    });
    forEachBlockOf(keyHead, [&](Value block) {
      emitValues(firstKey, count, isWhole, block);
    });
  });
}
