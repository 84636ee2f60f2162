//===- AttentionCode.cpp - tiles and buffers of attention -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionCode.h"
#include "AttentionAMXSteps.h"

#include "posenc/ABI/CInterface.h"
#include "posenc/Numerics/ElementwiseBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::posenc;

/// Whether two ops can use the same buffers.
static bool areAlike(AttentionOp a, AttentionOp b, const VectorTarget &target) {
  if (!llvm::equal(a->getOperandTypes(), b->getOperandTypes()) ||
      isAlwaysDecode(a, target) != isAlwaysDecode(b, target))
    return false;
  return getDecodeRanges(a, target).empty() ||
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
    for (DecodeRange range : getDecodeRanges(op, target)) {
      constexpr int64_t enough = int64_t{1} << 30;
      if (AttentionTiles::get(op, target, enough, range).maxSplits == 1)
        continue;
      int64_t &bytes = sharedBytes[function];
      bytes = std::max(bytes, getSharedBytes(op));
    }
  }
}

int64_t AttentionScratch::getMaxBytes(AttentionOp op,
                                      const VectorTarget &target,
                                      bool isDecode) const {
  // Threads may have stacks of 512 KiB, and the L2 cache may be as small. CPUs
  // with AMX have larger caches; only the tiles whose sizes change no bit may
  // follow from the target.
  bool hasAMXSteps = !isDecode && usesAMXSteps(op, target);
  int64_t functionBytes = hasAMXSteps ? target.attentionTileBytes : 392 << 10;
  Operation *function = op->getParentOfType<FunctionOpInterface>();
  int64_t shapes = numShapes.lookup(function);
  int64_t bytes = (functionBytes - sharedBytes.lookup(function)) / shapes;
  // The decode kernel's buffers fit in those of the prefill kernel, unless
  // these are small.
  if (shapes == 1 || isAlwaysDecode(op, target) ||
      getDecodeRanges(op, target).empty())
    return bytes;
  return isDecode ? bytes / 4 : bytes - bytes / 4;
}

Value AttentionScratch::allocate(ImplicitLocOpBuilder &builder, Operation *op,
                                 ArrayRef<int64_t> shape, bool isShared) {
  auto type = MemRefType::get(shape, builder.getF32Type());
  auto getSize = [](const Buffer &buffer) {
    return cast<MemRefType>(buffer.memory.getType()).getNumElements();
  };
  Block &entryBlock =
      op->getParentOfType<FunctionOpInterface>().getFunctionBody().front();
  Buffer *larger = nullptr;
  for (Buffer &buffer : buffers) {
    if (buffer.isUsed || buffer.memory.getParentBlock() != &entryBlock ||
        buffer.isShared != isShared)
      continue;
    if (buffer.memory.getType() == type) {
      buffer.isUsed = true;
      buffer.op = op;
      return buffer.memory;
    }
    if (buffer.op == op && getSize(buffer) >= type.getNumElements() &&
        (!larger || getSize(buffer) < getSize(*larger)))
      larger = &buffer;
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
    memory->setAttr(PosencDialect::kSharedBufferAttrName,
                    builder.getUnitAttr());
  buffers.push_back({memory, op, true, isShared});
  return memory;
}

AttentionCode::AttentionCode(ImplicitLocOpBuilder &builder, AttentionOp op,
                             const VectorTarget &target,
                             AttentionScratch &scratch,
                             std::optional<DecodeRange> range)
    : op(op), tiles(AttentionTiles::get(
                  op, target,
                  scratch.getMaxBytes(op, target, range.has_value()), range)),
      target(target),
      dim(cast<MemRefType>(op.getKey().getType()).getShape().back()),
      valueDim(cast<MemRefType>(op.getValue().getType()).getShape().back()),
      hasBF16Dots(tiles.hasAMXSteps() || (!range && usesBF16Dots(op, target))) {
  scratch.reset();
  auto allocate = [&](ArrayRef<int64_t> shape) {
    return scratch.allocate(builder, op, shape);
  };
  if (tiles.hasAMXSteps()) {
    allocateAMXSteps(*this, builder, scratch);
    return;
  }
  int64_t queryTile = tiles.getQueryTile();
  int64_t numKeys = alignTo(tiles.keys, tiles.scoreRows);
  int64_t pair = getDotWidth();
  keys = allocate({numKeys, getRowSize(dim / pair)});
  if (range) {
    int64_t numRows = tiles.getBlocks() * tiles.getQueryLanes();
    rows = allocate({numRows, getRowSize(dim)});
    decodeAcc = allocate({numRows, valueDim});
    if (tiles.maxSplits > 1)
      mergedAcc = allocate({numRows, valueDim});
    int64_t numScores = tiles.keys * tiles.getQueryLanes();
    decodeProducts = allocate({numScores * kSumLanes / 2});
    decodeScores = allocate({numScores});
    decodeWeights = allocate({tiles.getBlocksPerHead() * numScores});
    decodeState =
        allocate({tiles.getStateVectors() * tiles.getBlocks(), tiles.lanes});
    if (tiles.maxSplits == 1)
      return;
    mergedState =
        allocate({tiles.getStateVectors() * tiles.getBlocks(), tiles.lanes});
    partials = scratch.allocate(builder, op, getSharedBytes(op) / 4,
                                /*isShared=*/true);
    return;
  }
  // `rows` is used before the first and after the last tile of keys, so it can
  // share their buffer.
  rows = !hasBF16Dots && valueDim <= dim && queryTile <= numKeys
             ? keys
             : allocate({queryTile, getRowSize(std::max(dim, valueDim))});
  queries = allocate(
      {getNumQueryTiles(), alignTo(dim, tiles.lanes) / pair, queryTile});
  acc =
      allocate({getNumQueryTiles(), alignTo(valueDim, tiles.lanes), queryTile});
  scores = allocate({numKeys, queryTile});
  values = allocate({numKeys / pair, getRowSize(valueDim)});
  if (int64_t count = getRelativeValues(op).size())
    relativeValues =
        allocate({count, alignTo(numKeys + queryTile - 1, tiles.lanes)});
  rowMax = allocate({getNumQueryTiles(), queryTile});
  rowSum = allocate({getNumQueryTiles(), queryTile});
  if (hasBF16Dots && hasExactSums())
    exactSum = allocate({getNumQueryTiles(), queryTile});
}

VectorType AttentionCode::getVectorType() const {
  return VectorType::get({tiles.lanes}, Float32Type::get(op->getContext()));
}

int64_t AttentionCode::getHeadTasks() const {
  AttentionOp attention = op;
  auto query = cast<ShapedType>(attention.getQuery().getType());
  return query.getDimSize(attention.getQueryHeadDim()) / tiles.heads;
}

bool AttentionCode::hasOwnScores() const {
  AttentionOp attention = op;
  Value mask = attention.getMask();
  return !attention.getScore().empty() ||
         (mask && !getElementTypeOrSelf(mask.getType()).isInteger(1));
}

double AttentionCode::getExponentScale() const {
  AttentionOp attention = op;
  // exp(x) = 2^(x * log2(e)).
  return attention.getScoreScale() *
         (hasOwnScores() ? 1 : llvm::numbers::log2e);
}

bool AttentionCode::hasOwnPairs() const {
  AttentionOp attention = op;
  return hasOwnScores() || attention.getMask() || !attention.getWhere().empty();
}

bool AttentionCode::loadsPairElements() const {
  AttentionOp attention = op;
  auto hasLoads = [](Region &region) {
    return !region.empty() && !region.front().getOps<memref::LoadOp>().empty();
  };
  return attention.getMask() || hasLoads(attention.getScore()) ||
         hasLoads(attention.getWhere());
}

bool AttentionCode::hasExactSums() const {
  AttentionOp attention = op;
  return attention.getSinks() || attention.getLogSumInit();
}

bool AttentionCode::hasMasks() const {
  AttentionOp attention = op;
  return hasOwnPairs() || attention.getCausal() || attention.getWindowLeft() ||
         attention.getWindowRight();
}

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

AttentionBlock mlir::posenc::emitQueryBlock(ImplicitLocOpBuilder &builder,
                                            const AttentionCode &code,
                                            const AttentionTask &task,
                                            Value head, Value number,
                                            Value &count) {
  const AttentionTiles &tiles = code.tiles;
  Value first = mulIndex(builder, number, tiles.getQueryTile());
  count = minIndex(builder, createIndex(builder, tiles.getQueryTile()),
                   subIndex(builder, task.numTokens, first));
  AttentionBlock block;
  block.batch = task.batch;
  block.queryStart = task.queryStart;
  block.queryHead = addIndex(builder, task.queryHead, head);
  block.queryTile = addIndex(
      builder, mulIndex(builder, head, tiles.getQueryTilesPerHead()), number);
  block.token = addIndex(builder, task.firstToken, first);
  block.position = addIndex(builder, task.firstPosition, first);
  Value last = addIndex(builder, count, -1);
  block.lastToken = addIndex(builder, block.token, last);
  block.lastPosition = addIndex(builder, block.position, last);
  return block;
}

Value mlir::posenc::loadScale(ImplicitLocOpBuilder &builder, AttentionOp op,
                              Value scales, ValueRange keyIndices) {
  if (!scales)
    return {};
  SmallVector<Value> at{keyIndices[op.getKeyHeadDim()],
                        keyIndices[op.getKeyTokenDim()]};
  if (!op.hasRaggedKeys())
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
    PagedKey found = emitPagedKey(builder, table, batch, key, size);
    batch = found.page;
    key = found.slot;
  }
  return getRowIndices(batch, task.keyHead, key, op.getKeyHeadDim());
}
