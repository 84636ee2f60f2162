//===- AttentionCode.cpp - the parts of attention's code --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionCode.h"

#include "posenc/ABI/CInterface.h"
#include "posenc/Numerics/ElementwiseBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::posenc;

static int64_t getNumHeads(Value tensor, unsigned dim) {
  return cast<ShapedType>(tensor.getType()).getDimSize(dim);
}

/// Of a sequence.
static int64_t getNumTokens(AttentionOp op) {
  if (op.arePackedQueries())
    return ShapedType::kDynamic;
  return cast<ShapedType>(op.getQuery().getType())
      .getDimSize(op.getQueryTokenDim());
}

int64_t mlir::posenc::getSharedBytes(AttentionOp op) {
  // Any number of tokens have use for the rest.
  return ShapedType::isDynamic(getNumTokens(op)) ? kSmallSharedBytes
                                                 : kSharedBytes;
}

/// What the queries of few tokens may take: they, their sums, and those of all
/// parts of the keys are on the stack.
constexpr int64_t kMostFewFloats = 8 << 10;

static int64_t alignTo(int64_t size, int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

/// An odd number of lines, so that a column of rows is spread over the cache.
static int64_t getRowSize(int64_t size) {
  constexpr int64_t line = 16;
  return ((size + line - 1) / line | 1) * line;
}

/// Whether the heads of a key stand side by side, as the memory has them.
static bool areHeadsTogether(AttentionOp op) {
  return op.getKeyHeadDim() > op.getKeyTokenDim() && !op.getKeyRotation() &&
         !op.getKeyNorm();
}

/// Whether it is known that there are no more keys than tokens.
static bool hasKeysOfTokens(AttentionOp op) {
  Value positions = op.getQueryPositions();
  if (op.arePackedQueries())
    return op.arePackedKeys() && llvm::all_equal(op.getCuSeqlens());
  return op.getQuery() == op.getKey() ||
         (positions && positions == op.getKeyPositions());
}

SmallVector<FewTokens> mlir::posenc::getFewTokens(AttentionOp op,
                                                  const VectorTarget &target) {
  // The numbers decide the bits of results, so they are no fields of Tuning. On
  // Zen 5 the code for few tokens takes .35 to .65 of the time of that for many
  // up to 32 tokens of f32, and .55 to .85 up to 16 tokens of bf16. Beyond that
  // products of bf16 pairs are faster.
  const int64_t mostTokens =
      getElementTypeOrSelf(op.getQuery().getType()).isBF16() ? 16 : 32;
  int64_t dim = cast<ShapedType>(op.getKey().getType()).getShape().back();
  int64_t valueDim =
      cast<ShapedType>(op.getValue().getType()).getShape().back();
  if (dim % kSumLanes != 0 || valueDim % kSumLanes != 0)
    return {};
  // Where they take more, they are so many that the memory matters little.
  int64_t tokens = getNumTokens(op);
  int64_t ratio = getNumHeads(op.getQuery(), op.getQueryHeadDim()) /
                  getNumHeads(op.getKey(), op.getKeyHeadDim());
  int64_t most = std::clamp<int64_t>(
      kMostFewFloats / (ratio * std::max(dim, valueDim)), 1, mostTokens);
  if (!ShapedType::isDynamic(tokens)) {
    if (tokens == 0 || tokens > most)
      return {};
    return {{tokens, tokens}};
  }
  if (hasKeysOfTokens(op))
    return {};
  // One token has as many lanes, or other vectors, or more key heads a task.
  if (static_cast<int64_t>(llvm::PowerOf2Ceil(ratio)) == kSumLanes / 2 &&
      !areHeadsTogether(op))
    return {{1, most}};
  SmallVector<FewTokens> few{{1, 1}};
  if (most > 1)
    few.push_back({2, most});
  return few;
}

bool mlir::posenc::areAlwaysFew(AttentionOp op, const VectorTarget &target) {
  return !ShapedType::isDynamic(getNumTokens(op)) &&
         !getFewTokens(op, target).empty();
}

AttentionTiles AttentionTiles::get(AttentionOp op, const VectorTarget &target,
                                   int64_t bytes,
                                   std::optional<FewTokens> few) {
  AttentionTiles tiles;
  tiles.lanes = target.vectorBytes / 4;
  tiles.vectors = 2;
  // Accumulators, a vector of each query or weight, and one key or value: 15
  // of 16 registers, 19 of 32. Eight accumulators just hide the time of a sum.
  bool hasManyRegisters = target.vectorBytes == 64;
  tiles.scoreRows = hasManyRegisters ? 8 : 6;
  tiles.valueColumns = hasManyRegisters ? 8 : 6;
  auto getDim = [](Value tensor) {
    return cast<ShapedType>(tensor.getType()).getShape().back();
  };
  int64_t dim = getDim(op.getKey()), valueDim = getDim(op.getValue());
  int64_t ratio = getNumHeads(op.getQuery(), op.getQueryHeadDim()) /
                  getNumHeads(op.getKey(), op.getKeyHeadDim());
  if (few) {
    tiles.setDecode(op, *few, ratio, std::max(dim, valueDim));
    tiles.fitDecode(op, ratio, bytes);
    return tiles;
  }
  if (!usesDots(op, target)) {
    // The number of keys decides the bits of results, so vectors of other
    // widths take as many.
    AttentionTiles widest = tiles;
    widest.lanes = kSumLanes;
    widest.scoreRows = 8;
    widest.setPrefill(op, target, ratio, bytes);
    tiles.keys = widest.keys;
  }
  tiles.setPrefill(op, target, ratio, bytes);
  // After the number of keys is chosen.
  int64_t step = tiles.heads * tiles.getGroup();
  int64_t queries = std::min<int64_t>(tiles.queries, target.attentionQueries);
  tiles.queries = std::max(queries / step, int64_t(1)) * step;
  return tiles;
}

void AttentionTiles::setPrefill(AttentionOp op, const VectorTarget &target,
                                int64_t ratio, int64_t bytes) {
  auto getDim = [](Value tensor) {
    return cast<ShapedType>(tensor.getType()).getShape().back();
  };
  int64_t dim = getDim(op.getKey()), valueDim = getDim(op.getValue());
  // What a query, a key and the table of a group's rotations take, and what it
  // costs to bring a key again for other queries, and to load and store sums
  // again for other keys.
  constexpr int64_t mostQueries = 384;
  int64_t pair = usesDots(op, target) ? 2 : 1, mostKeys = pair == 2 ? 128 : 96;
  int64_t ofQuery =
      4 * (alignTo(dim, lanes) / pair + alignTo(valueDim, lanes) + 2);
  int64_t ofKey =
      4 * (getRowSize(dim / pair) + getRowSize(valueDim) / pair + getGroup());
  // Interleaved lanes each have a cosine and a sine of their own.
  auto isInterleaved = [](std::optional<RotationAttr> rotation) {
    return rotation && rotation->getPairing() == Pairing::Interleaved;
  };
  bool hasTwice = isInterleaved(op.getQueryRotation()) ||
                  isInterleaved(op.getKeyRotation());
  int64_t rest = 4 * (getGroup() + 1) * dim * (hasTwice ? 2 : 1);
  // Rows have no place among keys that are words, or are fewer or shorter.
  int64_t ofRows = 4 * getGroup() * getRowSize(std::max(dim, valueDim));
  auto haveRowsPlace = [&](int64_t number) {
    return pair == 1 && valueDim <= dim && getGroup() <= number;
  };
  SmallVector<int64_t> numbers{keys};
  if (keys == 0) {
    // Multiples of the score rows of 32 and of 64 bytes, unless they are few.
    constexpr int64_t ofBoth = 24;
    numbers.clear();
    for (int64_t count = scoreRows; count <= mostKeys; count += scoreRows)
      if (pair == 2 || count < ofBoth || count % ofBoth == 0)
        numbers.push_back(count);
  }
  double least = std::numeric_limits<double>::infinity();
  heads = 1;
  queries = getGroup();
  keys = numbers.front();
  // Packed keys serve all heads of a task, and so does a query's rotation.
  for (int64_t ofTask : {4, 2, 1}) {
    int64_t step = ofTask * getGroup();
    for (int64_t some = step; ratio % ofTask == 0 && some <= mostQueries;
         some += step)
      for (int64_t number : numbers) {
        double cost = 16.0 / some + 1.0 / number;
        int64_t size = some * ofQuery + number * ofKey + rest +
                       (haveRowsPlace(number) ? 0 : ofRows);
        if (size > bytes || cost >= least)
          continue;
        least = cost;
        heads = ofTask;
        queries = some;
        keys = number;
      }
  }
}

int64_t AttentionTiles::getMostStateSize(int64_t valueDim) const {
  int64_t lanesOfKey = getQueryLanes(kSumLanes);
  int64_t blocks = keyHeads * llvm::divideCeil(getQueriesPerHead(), lanesOfKey);
  return blocks * (lanesOfKey * valueDim + 2 * kSumLanes);
}

void AttentionTiles::setDecode(AttentionOp op, FewTokens few, int64_t ratio,
                               int64_t dim) {
  int64_t tokens = few.most;
  leastTokens = few.least;
  // All heads, in as few tasks as have vectors that are mostly heads: each
  // reads the keys. Those of a sequence of a ragged batch are whole tasks of
  // any number.
  heads = ratio;
  bool areSplit = tokens == 1 && ratio > kSumLanes && !op.arePackedQueries();
  for (int64_t most = kSumLanes; areSplit && most > kSumLanes / 2; --most)
    if (ratio % most == 0) {
      heads = most;
      break;
    }
  // Where the heads of a key stand side by side, as many of them as fit: the
  // memory is fast for whole rows only.
  if (areHeadsTogether(op) && heads == ratio &&
      (tokens > 1 || ratio <= kSumLanes)) {
    int64_t ofHead =
        static_cast<int64_t>(llvm::PowerOf2Ceil(ratio)) * tokens * dim;
    int64_t all = getNumHeads(op.getKey(), op.getKeyHeadDim());
    auto fit = [&](int64_t count) {
      return all % count == 0 && count * ofHead <= kMostFewFloats;
    };
    for (keyHeads = all; keyHeads > 1 && !fit(keyHeads);)
      --keyHeads;
    heads *= keyHeads;
  }
  queries = heads * tokens;
  constexpr int64_t mostVectors = 16;
  int64_t bytes =
      dim *
      getElementTypeOrSelf(op.getKey().getType()).getIntOrFloatBitWidth() / 8;
  int64_t step = getWeightSums();
  keys = step * std::clamp<int64_t>(kPageBytes / bytes / step, 1, mostVectors);
}

int64_t AttentionTiles::getDecodeBytes(AttentionOp op) const {
  int64_t dim = cast<ShapedType>(op.getKey().getType()).getShape().back();
  int64_t valueDim =
      cast<ShapedType>(op.getValue().getType()).getShape().back();
  int64_t lanesOfKey = getQueryLanes(kSumLanes);
  int64_t blocks = llvm::divideCeil(getQueriesPerHead(), lanesOfKey);
  int64_t floats = keyHeads * blocks * lanesOfKey * getRowSize(dim) +
                   keys * lanesOfKey * (kSumLanes / 2 + 1 + blocks) +
                   getMostStateSize(valueDim) * (mostParts > 1 ? 2 : 1);
  if (op.getKeyRotation() || op.getKeyNorm())
    floats += alignTo(keys, 8) * getRowSize(dim);
  // A cosine and a sine of each channel, of a group's queries and of a key.
  if (op.getQueryRotation())
    floats += 2 * vectors * kSumLanes * dim;
  if (op.getKeyRotation())
    floats += 2 * dim;
  return 4 * floats;
}

void AttentionTiles::setParts(AttentionOp op) {
  // There may be as many tasks as tokens.
  if (op.arePackedQueries())
    return;
  constexpr int64_t mostTasks = 8;
  int64_t mostFloats = getSharedBytes(op) / 4;
  int64_t tasks = getNumHeads(op.getQuery(), op.getQueryHeadDim()) / heads;
  int64_t valueDim =
      cast<ShapedType>(op.getValue().getType()).getShape().back();
  mostParts = std::max<int64_t>(
      1, std::min(mostTasks / tasks,
                  mostFloats / (tasks * getMostStateSize(valueDim))));
}

void AttentionTiles::fitDecode(AttentionOp op, int64_t ratio, int64_t bytes) {
  setParts(op);
  int64_t tokens = getTokens();
  auto setHeads = [&](int64_t count, int64_t ofKeys) {
    heads = count;
    keyHeads = ofKeys;
    queries = heads * tokens;
    int64_t step = getWeightSums();
    keys = std::max(keys / step, int64_t(1)) * step;
  };
  auto isTooMuch = [&] { return getDecodeBytes(op) > bytes; };
  // What costs least comes first: whole rows of heads, then parts for threads
  // that have nothing to do, then keys that are read once for all heads.
  int64_t all = getNumHeads(op.getKey(), op.getKeyHeadDim());
  for (int64_t count = keyHeads - 1; count > 0 && isTooMuch(); --count)
    if (all % count == 0) {
      setHeads(count * ratio, count);
      setParts(op);
    }
  if (isTooMuch())
    mostParts = 1;
  for (int64_t count = heads - 1; count > 0 && isTooMuch(); --count) {
    if (ratio % count != 0)
      continue;
    setHeads(count, /*ofKeys=*/1);
    setParts(op);
    if (isTooMuch())
      mostParts = 1;
  }
  for (int64_t step = getWeightSums(); keys > step && isTooMuch();)
    keys -= step;
}

/// Whether one can use the memory of the other.
static bool areAlike(AttentionOp a, AttentionOp b, const VectorTarget &target) {
  if (!llvm::equal(a->getOperandTypes(), b->getOperandTypes()) ||
      areAlwaysFew(a, target) != areAlwaysFew(b, target))
    return false;
  return getFewTokens(a, target).empty() ||
         (a.getQueryHeadDim() == b.getQueryHeadDim() &&
          a.getKeyHeadDim() == b.getKeyHeadDim() &&
          a.getQueryRotation() == b.getQueryRotation() &&
          a.getKeyRotation() == b.getKeyRotation() &&
          !a.getKeyNorm() == !b.getKeyNorm());
}

AttentionScratch::AttentionScratch(ArrayRef<AttentionOp> operations,
                                   const VectorTarget &target) {
  llvm::SmallDenseMap<Operation *, SmallVector<AttentionOp>> kinds;
  for (AttentionOp op : operations) {
    Operation *function = op->getParentOfType<FunctionOpInterface>();
    if (llvm::any_of(kinds[function], [&](AttentionOp other) {
          return areAlike(op, other, target);
        }))
      continue;
    kinds[function].push_back(op);
    ++numShapes[function];
    for (FewTokens few : getFewTokens(op, target)) {
      constexpr int64_t enough = int64_t{1} << 30;
      if (AttentionTiles::get(op, target, enough, few).mostParts == 1)
        continue;
      int64_t &bytes = sharedBytes[function];
      bytes = std::max(bytes, getSharedBytes(op));
    }
  }
}

int64_t AttentionScratch::getMostBytes(AttentionOp op,
                                       const VectorTarget &target,
                                       bool areFew) const {
  // Threads may have stacks of 512 KiB, and the second cache is not larger.
  constexpr int64_t ofFunction = 392 << 10;
  Operation *function = op->getParentOfType<FunctionOpInterface>();
  int64_t shapes = numShapes.lookup(function);
  int64_t bytes = (ofFunction - sharedBytes.lookup(function)) / shapes;
  // Code for few tokens fits into the memory of that for any number, unless
  // that has little.
  if (shapes == 1 || areAlwaysFew(op, target) ||
      getFewTokens(op, target).empty())
    return bytes;
  return areFew ? bytes / 4 : bytes - bytes / 4;
}

Value AttentionScratch::allocate(ImplicitLocOpBuilder &builder, Operation *op,
                                 ArrayRef<int64_t> shape, bool isShared) {
  auto type = MemRefType::get(shape, builder.getF32Type());
  auto getSize = [](const Sequence &sequence) {
    return cast<MemRefType>(sequence.memory.getType()).getNumElements();
  };
  Block &entryBlock =
      op->getParentOfType<FunctionOpInterface>().getFunctionBody().front();
  Sequence *larger = nullptr;
  for (Sequence &sequence : sequences) {
    if (sequence.isUsed || sequence.memory.getParentBlock() != &entryBlock ||
        sequence.isShared != isShared)
      continue;
    if (sequence.memory.getType() == type) {
      sequence.isUsed = true;
      sequence.op = op;
      return sequence.memory;
    }
    if (sequence.op == op && getSize(sequence) >= type.getNumElements() &&
        (!larger || getSize(sequence) < getSize(*larger)))
      larger = &sequence;
  }
  OpBuilder::InsertionGuard guard(builder);
  if (larger) {
    larger->isUsed = true;
    builder.setInsertionPointAfterValue(larger->memory);
    SmallVector<int64_t> strides = type.getStridesAndOffset().first;
    return memref::ReinterpretCastOp::create(builder, type, larger->memory,
                                             /*offset=*/0, shape, strides);
  }
  builder.setInsertionPointToStart(&entryBlock);
  auto memory =
      memref::AllocaOp::create(builder, type, builder.getI64IntegerAttr(64));
  if (isShared)
    memory->setAttr(kSharedAttrName, builder.getUnitAttr());
  sequences.push_back({memory, op, true, isShared});
  return memory;
}

AttentionCode::AttentionCode(ImplicitLocOpBuilder &builder, AttentionOp op,
                             const VectorTarget &target,
                             AttentionScratch &scratch,
                             std::optional<FewTokens> few)
    : op(op),
      tiles(AttentionTiles::get(
          op, target, scratch.getMostBytes(op, target, few.has_value()), few)),
      target(target),
      dim(cast<MemRefType>(op.getKey().getType()).getShape().back()),
      valueDim(cast<MemRefType>(op.getValue().getType()).getShape().back()),
      hasDots(!few && usesDots(op, target)) {
  scratch.reset();
  auto allocate = [&](ArrayRef<int64_t> shape) {
    return scratch.allocate(builder, op, shape);
  };
  int64_t group = tiles.getGroup();
  int64_t numKeys = alignTo(tiles.keys, tiles.scoreRows);
  int64_t pair = getPair();
  keys = allocate({numKeys, getRowSize(dim / pair)});
  if (few) {
    int64_t numRows = tiles.getBlocks() * tiles.getQueryLanes();
    rows = allocate({numRows, getRowSize(dim)});
    decodeSums = allocate({numRows, valueDim});
    if (tiles.mostParts > 1)
      mergedSums = allocate({numRows, valueDim});
    int64_t numScores = tiles.keys * tiles.getQueryLanes();
    decodeProducts = allocate({numScores * kSumLanes / 2});
    decodeScores = allocate({numScores});
    decodeWeights = allocate({tiles.getBlocksPerHead() * numScores});
    decodeState =
        allocate({tiles.getStateVectors() * tiles.getBlocks(), tiles.lanes});
    if (tiles.mostParts == 1)
      return;
    mergedState =
        allocate({tiles.getStateVectors() * tiles.getBlocks(), tiles.lanes});
    partials = scratch.allocate(builder, op, getSharedBytes(op) / 4,
                                /*isShared=*/true);
    return;
  }
  // Rows of queries and results come before and after all keys.
  rows = !hasDots && valueDim <= dim && group <= numKeys
             ? keys
             : allocate({group, getRowSize(std::max(dim, valueDim))});
  queries = allocate({getNumGroups(), alignTo(dim, tiles.lanes) / pair, group});
  sums = allocate({getNumGroups(), alignTo(valueDim, tiles.lanes), group});
  scores = allocate({numKeys, group});
  values = allocate({numKeys / pair, getRowSize(valueDim)});
  if (int64_t count = getDistanceValues(op).size())
    distances = allocate({count, alignTo(numKeys + group - 1, tiles.lanes)});
  maxima = allocate({getNumGroups(), group});
  totals = allocate({getNumGroups(), group});
}

VectorType AttentionCode::getVectorType() const {
  return VectorType::get({tiles.lanes}, Float32Type::get(op->getContext()));
}

int64_t AttentionCode::getHeadTasks() const {
  AttentionOp attention = op;
  return getNumHeads(attention.getQuery(), attention.getQueryHeadDim()) /
         tiles.heads;
}

bool AttentionCode::hasOwnScores() const {
  AttentionOp attention = op;
  Value mask = attention.getMask();
  return !attention.getScore().empty() ||
         (mask && !getElementTypeOrSelf(mask.getType()).isInteger(1));
}

bool AttentionCode::hasOwnPairs() const {
  AttentionOp attention = op;
  return hasOwnScores() || attention.getMask() || !attention.getWhere().empty();
}

bool AttentionCode::hasMasks() const {
  AttentionOp attention = op;
  return hasOwnPairs() || attention.getCausal() || attention.getWindowLeft() ||
         attention.getWindowRight();
}

//===----------------------------------------------------------------------===//
// Small pieces
//===----------------------------------------------------------------------===//

Value mlir::posenc::createIndex(ImplicitLocOpBuilder &builder, int64_t value) {
  return arith::ConstantIndexOp::create(builder, value);
}

Value mlir::posenc::addIndex(ImplicitLocOpBuilder &builder, Value index,
                             int64_t offset) {
  return offset == 0 ? index
                     : addIndex(builder, index, createIndex(builder, offset));
}

Value mlir::posenc::addIndex(ImplicitLocOpBuilder &builder, Value a, Value b) {
  return builder.createOrFold<arith::AddIOp>(a, b);
}

Value mlir::posenc::subIndex(ImplicitLocOpBuilder &builder, Value a, Value b) {
  return builder.createOrFold<arith::SubIOp>(a, b);
}

Value mlir::posenc::mulIndex(ImplicitLocOpBuilder &builder, Value index,
                             int64_t factor) {
  return builder.createOrFold<arith::MulIOp>(index,
                                             createIndex(builder, factor));
}

Value mlir::posenc::minIndex(ImplicitLocOpBuilder &builder, Value a, Value b) {
  return builder.createOrFold<arith::MinSIOp>(a, b);
}

Value mlir::posenc::maxIndex(ImplicitLocOpBuilder &builder, Value a, Value b) {
  return builder.createOrFold<arith::MaxSIOp>(a, b);
}

Value mlir::posenc::createSplat(ImplicitLocOpBuilder &builder, VectorType type,
                                double value) {
  return arith::ConstantOp::create(
      builder, DenseElementsAttr::get(
                   type, builder.getFloatAttr(type.getElementType(), value)));
}

Value mlir::posenc::broadcast(ImplicitLocOpBuilder &builder, VectorType type,
                              Value scalar) {
  return vector::BroadcastOp::create(builder, type, scalar);
}

Value mlir::posenc::loadVector(ImplicitLocOpBuilder &builder, VectorType type,
                               Value memref, ValueRange indices) {
  return vector::LoadOp::create(builder, type, memref, indices);
}

void mlir::posenc::storeVector(ImplicitLocOpBuilder &builder, Value vector,
                               Value memref, ValueRange indices) {
  vector::StoreOp::create(builder, vector, memref, indices);
}

ValueRange mlir::posenc::createLoop(
    ImplicitLocOpBuilder &builder, Value from, Value to, int64_t step,
    ValueRange init, function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop =
      scf::ForOp::create(builder, from, to, createIndex(builder, step), init);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!init.empty())
    scf::YieldOp::create(builder, next);
  return loop.getResults();
}

ValueRange mlir::posenc::createRolledLoop(
    ImplicitLocOpBuilder &builder, Value from, Value to, int64_t step,
    ValueRange init, function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  ValueRange results = createLoop(builder, from, to, step, init, body);
  MLIRContext *context = builder.getContext();
  LLVM::LoopUnrollAttr unroll = LLVM::LoopUnrollAttr::get(
      context, /*disable=*/builder.getBoolAttr(true), {}, {}, {}, {}, {}, {});
  results.front().getDefiningOp()->setAttr(
      "loop_annotation",
      LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, unroll, {}, {}, {}, {},
                                    {}, {}, {}, {}, {}, {}, {}));
  return results;
}

void mlir::posenc::createLoop(ImplicitLocOpBuilder &builder, Value from,
                              Value to, int64_t step,
                              function_ref<void(Value)> body) {
  createLoop(builder, from, to, step, {}, [&](Value index, ValueRange) {
    body(index);
    return SmallVector<Value>();
  });
}

Value mlir::posenc::createMax(ImplicitLocOpBuilder &builder, Value a, Value b) {
  Value isLarger =
      arith::CmpFOp::create(builder, arith::CmpFPredicate::OGT, a, b);
  return arith::SelectOp::create(builder, isLarger, a, b);
}

SmallVector<Value> mlir::posenc::transpose(ImplicitLocOpBuilder &builder,
                                           SmallVector<Value> vectors) {
  int64_t count = vectors.size();
  SmallVector<int64_t> low, high;
  for (int64_t i = 0; i < count / 2; ++i) {
    llvm::append_values(low, i, count + i);
    llvm::append_values(high, count / 2 + i, count + count / 2 + i);
  }
  // Each round moves a bit of the number of the vector into that of the lane.
  for (int64_t round = 1; round < count; round *= 2) {
    SmallVector<Value> next;
    for (int64_t i = 0; i < count / 2; ++i)
      for (ArrayRef<int64_t> mask : {ArrayRef(low), ArrayRef(high)})
        next.push_back(vector::ShuffleOp::create(builder, vectors[i],
                                                 vectors[i + count / 2], mask));
    vectors = std::move(next);
  }
  return vectors;
}

Value mlir::posenc::loadScale(ImplicitLocOpBuilder &builder, AttentionOp op,
                              Value scales, ValueRange keyIndices) {
  if (!scales)
    return {};
  SmallVector<Value> at{keyIndices[op.getKeyHeadDim()],
                        keyIndices[op.getKeyTokenDim()]};
  if (!op.arePackedKeys())
    at.insert(at.begin(), keyIndices.front());
  for (auto [dim, size] :
       llvm::enumerate(cast<MemRefType>(scales.getType()).getShape()))
    if (size == 1)
      at[dim] = createIndex(builder, 0);
  return memref::LoadOp::create(builder, scales, at);
}

SmallVector<Value> mlir::posenc::getRowIndices(Value batch, Value head,
                                               Value token, unsigned headDim) {
  SmallVector<Value> at{token};
  if (batch)
    at.insert(at.begin(), batch);
  at.insert(at.begin() + headDim, head);
  return at;
}

SmallVector<Value> mlir::posenc::getQueryIndices(ImplicitLocOpBuilder &builder,
                                                 AttentionOp op, Value batch,
                                                 Value start, Value head,
                                                 Value token) {
  if (start)
    return getRowIndices(/*batch=*/nullptr, head,
                         addIndex(builder, start, token), op.getQueryHeadDim());
  return getRowIndices(batch, head, token, op.getQueryHeadDim());
}

SmallVector<Value> mlir::posenc::getKeyIndices(ImplicitLocOpBuilder &builder,
                                               AttentionOp op,
                                               const AttentionTask &task,
                                               Value key) {
  Value batch = task.batch;
  if (task.keyStart)
    return getRowIndices(/*batch=*/nullptr, task.keyHead,
                         addIndex(builder, task.keyStart, key),
                         op.getKeyHeadDim());
  if (Value table = op.getBlockTable()) {
    Value size =
        getDimSize(builder, builder.getLoc(), op.getKey(), op.getKeyTokenDim());
    Value number = arith::DivUIOp::create(builder, key, size);
    batch = memref::LoadOp::create(builder, table, ValueRange{batch, number});
    if (!batch.getType().isIndex())
      batch =
          arith::IndexCastOp::create(builder, builder.getIndexType(), batch);
    key = arith::RemUIOp::create(builder, key, size);
  }
  return getRowIndices(batch, task.keyHead, key, op.getKeyHeadDim());
}
