//===- MergeSplits.cpp - results of KV splits -----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MergeSplits.h"

#include "GPU/Launch/DeviceFacts.h"
#include "GPU/Launch/GpuKernel.h"
#include "GPU/Threads/LoadGroup.h"
#include "GPU/Threads/TileReader.h"
#include "GpuAttention.h"
#include "ThreadSoftmax.h"

#include "posenc/IR/CreateIndex.h"
#include "posenc/Transforms/AttentionIndices.h"
#include "posenc/Transforms/AttentionNest.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

/// The channels that a thread merges at a time. Rows have a multiple of it.
static constexpr int64_t kChannels = 4;

/// Groups of splits whose log-sum-exps, or also outputs, are loaded at once if
/// they fit in as many registers: 32 numbers, and 80.
static constexpr int64_t kGroupsOfSums = 4, kGroupsOfOutputs = 2,
                         kMaxLoadRegisters = 96;

namespace {
/// Emits the code of a thread, which computes some channels of a row at a time.
class SplitMerge {
public:
  SplitMerge(OpBuilder &host, GpuKernel &kernel, AttentionOp op,
             const AttentionResults &splits, const AttentionResults &results,
             int64_t maxQueries)
      : host(host), kernel(kernel), b(kernel.getFunction()),
        reader(host, kernel, b, /*isWide=*/false), op(op), splits(splits),
        results(results), maxQueries(maxQueries),
        sum(cast<FloatType>(getElementTypeOrSelf(splits.output.getType()))),
        softmax(b, sum, /*unit=*/1),
        keysPerSplit(getKeysPerSplit(getAttentionSizes(op))) {}

  void emit();

private:
  void createLoops();
  void emitItem(Value number, ArrayRef<Value> sizes);
  void emitRow(ArrayRef<Value> indices, ArrayRef<Value> inSplits);
  void emitRaggedRow(SmallVector<Value> indices);
  void takeRow(Value batch, Value query);
  Value getOffsetInSplits(const GpuKernel::Tensor &tensor, Value split,
                          ArrayRef<Value> indices);
  /// The log-sum-exp and the outputs of some keys.
  struct Part {
    Value logSum;
    SmallVector<Value> outputs;
  };
  Part loadSplit(Value split, ArrayRef<Value> indices, bool hasOutputs);
  SmallVector<Value> loadChannels(Value offset);
  Part emitGroup(Value group, ArrayRef<Value> indices, bool hasOutputs);
  SmallVector<Value> addGroup(const Part &part, Value maximum,
                              ArrayRef<Value> before);
  void store(Value value, const GpuKernel::Tensor &tensor,
             ArrayRef<Value> indices);

  OpBuilder &host;
  GpuKernel &kernel;
  ThreadBuilder b;
  TileReader reader;
  AttentionOp op;
  AttentionResults splits, results;
  int64_t maxQueries;
  FloatType sum;
  ThreadSoftmax softmax;
  int64_t keysPerSplit;
  /// The first split with keys of the row after split 0, and the end of those
  /// with keys, at least that.
  Value secondSplit, endOfSplits;
  /// The channels of a row of splits that no group's state has, the offset of
  /// the first of these rows, and the number of the last one, an i32.
  int64_t numChannels = 0;
  Value firstSplitRow, lastSplitRow;
  /// Loops of the host over sequences and queries, whose scalars are cloned
  /// into the kernel: the sequence, and the KV splits with keys of a query.
  scf::ForallOp loops;
  AttentionSequence sequence;
  SplitRange range;
  GpuKernel::Tensor outputs, logSums, output, logSum;
};
} // namespace

/// Creates the loops at the host.
void SplitMerge::createLoops() {
  Location loc = op.getLoc();
  ImplicitLocOpBuilder outside(loc, host);
  Value numQueries = outside.createOrFold<memref::DimOp>(op.getQuery(),
                                                         op.getQueryTokenDim()),
        numKeys = outside.createOrFold<memref::DimOp>(op.getKey(),
                                                      op.getKeyTokenDim());
  SmallVector<OpFoldResult> bounds(2, host.getIndexAttr(1));
  loops = scf::ForallOp::create(host, loc, bounds, ValueRange(),
                                /*mapping=*/std::nullopt);
  ImplicitLocOpBuilder inside(loc, host);
  inside.setInsertionPoint(loops.getTerminator());
  sequence = emitBoundedSequence(inside, op, loops.getInductionVars()[0],
                                 numQueries, numKeys);
  Value position =
      sequence.emitPosition(inside, op, loops.getInductionVars()[1]);
  PositionMask mask(op);
  Value first = mask.emitFirstKey(inside, position);
  Value end = mask.emitEndKey(inside, position, sequence.numKeys);
  range = createSplitRange(inside, first, end, keysPerSplit);
}

/// Clones the scalars of the loops for a query of a sequence.
void SplitMerge::takeRow(Value batch, Value query) {
  reader.getScalars().map(loops.getInductionVars(), ValueRange{batch, query});
  reader.cloneScalars(*loops.getBody());
}

Value SplitMerge::getOffsetInSplits(const GpuKernel::Tensor &tensor,
                                    Value split, ArrayRef<Value> indices) {
  SmallVector<Value> at{split};
  llvm::append_range(at, indices);
  return getOffset(b, b.getLoc(), at, tensor.strides);
}

/// Returns the numbers of the thread's channels from an offset on.
SmallVector<Value> SplitMerge::loadChannels(Value offset) {
  Value vector = vector::LoadOp::create(
      b, VectorType::get({kChannels}, sum), outputs.memref, ValueRange(offset),
      /*nontemporal=*/false, llvm::MaybeAlign(kChannels * sum.getWidth() / 8));
  SmallVector<Value> values;
  for (int64_t i = 0; i < kChannels; ++i)
    values.push_back(vector::ExtractOp::create(b, vector, i));
  return values;
}

void SplitMerge::store(Value value, const GpuKernel::Tensor &tensor,
                       ArrayRef<Value> indices) {
  value = b.convert(value, getElementTypeOrSelf(tensor.memref.getType()));
  memref::StoreOp::create(b, value, tensor.memref,
                          getOffset(b, b.getLoc(), indices, tensor.strides));
}

/// Emits an i1: whether a split with this log-sum-exp has a visible
/// key.
static Value hasKeys(ThreadSoftmax &softmax, Value logSum) {
  return softmax.compare(arith::CmpFPredicate::UNE, logSum,
                         softmax.number(softmax.start));
}

SmallVector<Value> mlir::posenc::addSplit(ThreadSoftmax &softmax, Value logSum,
                                          ValueRange outputs, Value exists,
                                          ArrayRef<Value> before) {
  ThreadBuilder &b = softmax.getThread();
  Value isAdded = b.both(exists, hasKeys(softmax, logSum));
  Value max = softmax.max(before[0], logSum);
  Value factor = emitExp(softmax, before[0], max),
        weight = emitExp(softmax, logSum, max);
  SmallVector<Value> after{max, b.fma(before[1], factor, weight)};
  for (auto [x, accumulator] : llvm::zip_equal(outputs, before.drop_front(2)))
    after.push_back(b.fma(weight, x, b.mulf(accumulator, factor)));
  for (auto [value, kept] : llvm::zip_equal(after, before))
    value = b.select(isAdded, value, kept);
  return after;
}

/// Returns a split that is a group.
SplitMerge::Part SplitMerge::loadSplit(Value split, ArrayRef<Value> indices,
                                       bool hasOutputs) {
  Part part{memref::LoadOp::create(
                b, logSums.memref,
                getOffsetInSplits(logSums, split, indices.drop_back())),
            {}};
  if (hasOutputs)
    part.outputs = loadChannels(getOffsetInSplits(outputs, split, indices));
  return part;
}

/// Emits the log-sum-exp and, with `hasOutputs`, the outputs of a group of
/// splits, which are added in their order. All loads precede the first sum; the
/// outputs of splits that other warps than that of the group have computed wait
/// for their numbers.
SplitMerge::Part SplitMerge::emitGroup(Value group, ArrayRef<Value> indices,
                                       bool hasOutputs) {
  if (!splits.numGroups)
    return loadSplit(group, indices, hasOutputs);
  Value first = b.mul(group, kSplitsPerGroup);
  auto loadPair = [&](Value split) -> std::pair<Value, Value> {
    Value offset = getOffsetInSplits(logSums, split, indices.drop_back());
    Value pair = vector::LoadOp::create(
        b, VectorType::get({2}, sum), logSums.memref,
        ValueRange(b.mul(offset, 2)), /*nontemporal=*/false,
        llvm::MaybeAlign(2 * sum.getWidth() / 8));
    return {vector::ExtractOp::create(b, pair, 0),
            vector::ExtractOp::create(b, pair, 1)};
  };
  auto [max, total] = loadPair(first);
  SmallVector<Value> state{max, total};
  Value offsetOfGroup = getOffsetInSplits(outputs, group, indices);
  if (hasOutputs)
    llvm::append_range(state, loadChannels(offsetOfGroup));
  for (int64_t i = 1; i < kSplitsPerGroup; ++i) {
    Value split = b.add(first, i);
    Value exists =
        b.both(b.compare(arith::CmpIPredicate::uge, split, secondSplit),
               b.compare(arith::CmpIPredicate::ult, split, endOfSplits));
    auto [own, number] = loadPair(b.select(exists, split, first));
    SmallVector<Value> channels;
    if (hasOutputs) {
      // Splits that the state has, or that do not exist, have no row.
      Value hasRow = b.both(exists, hasKeys(softmax, own));
      Value row = arith::MinUIOp::create(
          b, arith::FPToSIOp::create(b, b.getI32Type(), number), lastSplitRow);
      Value offset = b.add(b.mul(b.toIndex(row), numChannels), indices.back());
      channels = loadChannels(
          b.select(hasRow, b.add(firstSplitRow, offset), offsetOfGroup));
    }
    state = addSplit(softmax, own, channels, exists, state);
  }
  Part part{emitLogSum(softmax, {state[0], state[1]}), {}};
  for (Value accumulator : ArrayRef(state).drop_front(2))
    part.outputs.push_back(emitQuotient(softmax, accumulator, state[1]));
  return part;
}

/// Adds a group to the sum of weights and those of outputs by weights.
SmallVector<Value> SplitMerge::addGroup(const Part &part, Value maximum,
                                        ArrayRef<Value> before) {
  Value isEmpty = arith::CmpFOp::create(
      b, arith::CmpFPredicate::OEQ, part.logSum, softmax.number(softmax.start));
  Value weight = emitExp(softmax, part.logSum, maximum);
  SmallVector<Value> after{b.addf(before[0], weight)};
  for (auto [x, sum] : llvm::zip_equal(part.outputs, before.drop_front()))
    after.push_back(b.fma(weight, x, sum));
  for (auto [value, kept] : llvm::zip_equal(after, before))
    value = b.select(isEmpty, kept, value);
  return after;
}

/// Emits the sums of the channels from `indices` on of the results, which are
/// at `inSplits` in each split. The row's scalars have been cloned. A short row
/// has one group, whose splits a thread loads at once; of longer ones, it loads
/// those of several groups.
void SplitMerge::emitRow(ArrayRef<Value> indices, ArrayRef<Value> inSplits) {
  ArrayRef<Value> row = indices.drop_back();
  int64_t splitsPerGroup = kKeysPerGroup / keysPerSplit;
  Value infinity = softmax.number(softmax.start);
  Value first = createIndex(b, b.getLoc(), 0),
        one = createIndex(b, b.getLoc(), 1);
  secondSplit = reader.get(range.begin);
  endOfSplits = reader.get(range.end);
  // The first group is followed by the ones with keys.
  Value second =
      arith::MaxUIOp::create(b, b.div(secondSplit, splitsPerGroup), one);
  Value end = arith::MaxUIOp::create(
      b, b.div(b.add(endOfSplits, splitsPerGroup - 1), splitsPerGroup), second);
  // The state of a group without splits has not been written.
  end = b.select(b.compare(arith::CmpIPredicate::ugt, endOfSplits, secondSplit),
                 end, second);
  Part firstPart;
  {
    LoadGroup loads(b, kMaxLoadRegisters);
    firstPart = emitGroup(first, inSplits, /*hasOutputs=*/true);
  }
  // Emits a loop over the other groups, of which each iteration loads `count`.
  // The last one takes groups without keys, too, which add nothing.
  auto forEachGroup =
      [&](int64_t count, bool hasOutputs, ValueRange inits,
          function_ref<SmallVector<Value>(const Part &, ArrayRef<Value>)> add) {
        return b.emitLoop(
            second, end, createIndex(b, b.getLoc(), count), inits,
            [&](Value group, ValueRange carried) {
              SmallVector<Value> state(carried);
              LoadGroup loads(b, kMaxLoadRegisters);
              for (int64_t i = 0; i < count; ++i) {
                Value number = b.add(group, i);
                Value exists =
                    b.compare(arith::CmpIPredicate::ult, number, end);
                Part part = emitGroup(b.select(exists, number, group), inSplits,
                                      hasOutputs);
                part.logSum = b.select(exists, part.logSum, infinity);
                state = add(part, state);
                loads.endItem();
              }
              return state;
            });
      };
  Value maximum = forEachGroup(
      kGroupsOfSums, /*hasOutputs=*/false, firstPart.logSum,
      [&](const Part &part, ArrayRef<Value> before) -> SmallVector<Value> {
        return {softmax.max(before[0], part.logSum)};
      })[0];
  SmallVector<Value> none(1 + kChannels, softmax.number(0));
  SmallVector<Value> totals = forEachGroup(
      kGroupsOfOutputs, /*hasOutputs=*/true, addGroup(firstPart, maximum, none),
      [&](const Part &part, ArrayRef<Value> before) {
        return addGroup(part, maximum, before);
      });
  for (int64_t i = 0; i < kChannels; ++i) {
    SmallVector<Value> at(indices);
    at.back() = b.add(at.back(), i);
    store(emitQuotient(softmax, totals[1 + i], totals[0]), output, at);
  }
  if (!results.logSums)
    return;
  Value isFirst = b.compare(arith::CmpIPredicate::eq, indices.back(), first);
  b.emitIf(isFirst, [&] {
    // The logarithm of a single split is kept bit for bit.
    store(emitLogSum(softmax, {maximum, totals[0]}), logSum, row);
  });
}

/// Emits the sums of the channels from `indices` on, which has `maxQueries`
/// tokens of each sequence, if the token exists.
void SplitMerge::emitRaggedRow(SmallVector<Value> indices) {
  Location loc = b.getLoc();
  Value &token = indices[op.getQueryTokenDim()];
  Value batch = b.div(token, maxQueries), number = b.rem(token, maxQueries);
  takeRow(batch, number);
  Value begin = reader.get(sequence.queryStart),
        count = reader.get(sequence.numQueries);
  Value exists = b.both(b.compare(arith::CmpIPredicate::sle, count,
                                  createIndex(b, loc, maxQueries)),
                        b.compare(arith::CmpIPredicate::slt, number, count));
  b.emitIf(exists, [&] {
    SmallVector<Value> inSplits(indices);
    inSplits[op.getQueryTokenDim()] =
        b.add(createSplitRow(b, loc, batch, begin, maxQueries), number);
    token = b.add(begin, number);
    emitRow(indices, inSplits);
  });
}

/// Emits the channels of an item with a number, of results that have these
/// sizes.
void SplitMerge::emitItem(Value number, ArrayRef<Value> sizes) {
  SmallVector<Value> indices(sizes.size());
  Value rest = number;
  // Quotients of 64 bits by sizes that are static take no division.
  for (size_t dim = sizes.size(); dim-- > 1;) {
    indices[dim] = b.createOrFold<arith::RemUIOp>(rest, sizes[dim]);
    rest = b.createOrFold<arith::DivUIOp>(rest, sizes[dim]);
  }
  indices.front() = rest;
  indices.back() = b.mul(indices.back(), kChannels);
  reader.withScope([&] {
    if (op.hasRaggedQueries())
      return emitRaggedRow(indices);
    takeRow(indices.front(), indices[op.getQueryTokenDim()]);
    emitRow(indices, indices);
  });
}

void SplitMerge::emit() {
  Location loc = b.getLoc();
  createLoops();
  reader.captureOperands(loops);
  outputs = kernel.addTensor(host, splits.output);
  logSums = kernel.addTensor(host, splits.logSums);
  if (splits.numGroups) {
    auto type = cast<MemRefType>(splits.output.getType());
    numChannels = type.getShape().back();
    Value groups = kernel.addIndex(host, splits.numGroups);
    firstSplitRow = b.mul(groups, outputs.strides[0]);
    Value rows = kernel.addIndex(host, splits.numRows);
    lastSplitRow = b.add(b.toI32(rows), -1);
  }
  output = kernel.addTensor(host, results.output);
  if (results.logSums)
    logSum = kernel.addTensor(host, results.logSums);
  SmallVector<Value> sizes;
  Value count = createIndex(host, loc, 1);
  ArrayRef<int64_t> shape =
      cast<MemRefType>(results.output.getType()).getShape();
  for (unsigned dim = 0; dim < shape.size(); ++dim) {
    Value size = host.createOrFold<memref::DimOp>(loc, results.output, dim);
    if (op.hasRaggedQueries() && dim == op.getQueryTokenDim()) {
      Value sequences =
          host.createOrFold<memref::DimOp>(loc, op.getCuSeqlens()[0], 0);
      size = host.createOrFold<arith::MulIOp>(
          loc, sequences, createIndex(host, loc, maxQueries));
    } else if (dim + 1 == shape.size()) {
      size = createIndex(host, loc, shape[dim] / kChannels);
    }
    count = host.createOrFold<arith::MulIOp>(loc, count, size);
    sizes.push_back(kernel.addIndex(host, size));
  }
  Value end = kernel.addIndex(host, count);
  Value first =
      b.add(b.mul(gpu::BlockIdOp::create(b, gpu::Dimension::x), kHelperThreads),
            gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  Value step =
      b.mul(gpu::GridDimOp::create(b, gpu::Dimension::x), kHelperThreads);
  b.emitLoop(first, end, step, {},
             [&](Value number, ValueRange) -> SmallVector<Value> {
               emitItem(number, sizes);
               return {};
             });
  kernel.getBody().setInsertionPointToEnd(
      &kernel.getFunction().getBody().front());
  Value blocks = host.createOrFold<arith::CeilDivUIOp>(
      loc, count, createIndex(host, loc, kHelperThreads));
  kernel.launch(host, limitBlocks(host, op, blocks, kHelperBlocks));
  loops.erase();
}

void mlir::posenc::mergeSplits(OpBuilder &host, AttentionOp op,
                               const AttentionResults &splits,
                               const AttentionResults &results,
                               int64_t maxQueries) {
  GpuKernel kernel(op, "_merge_splits", kHelperThreads);
  // Without it, ptxas may spill so that more blocks fit in the registers.
  kernel.getFunction()->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                                host.getI32IntegerAttr(1));
  SplitMerge(host, kernel, op, splits, results, maxQueries).emit();
}
