//===- MergePieces.cpp - results of pieces of the keys --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MergePieces.h"

#include "GpuKernel.h"
#include "ThreadSoftmax.h"

#include "posenc/IR/CreateIndex.h"
#include "posenc/Transforms/AttentionNest.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

#include <tuple>

using namespace mlir;
using namespace mlir::posenc;

static constexpr int64_t kMergeThreads = 128;

namespace {
/// Emits the code of a thread, which computes one channel of a row.
class PieceMerge {
public:
  PieceMerge(OpBuilder &host, GpuKernel &kernel, const AttentionResults &pieces,
             const AttentionResults &results, const RaggedPieces &ragged)
      : host(host), kernel(kernel), b(kernel.getFunction()), pieces(pieces),
        results(results), ragged(ragged),
        sum(cast<FloatType>(getElementTypeOrSelf(pieces.output.getType()))) {}

  void emit();

private:
  void emitRow(ArrayRef<Value> indices, ArrayRef<Value> inPieces);
  void emitRaggedRow(SmallVector<Value> indices);
  Value load(const GpuKernel::Tensor &tensor, Value piece,
             ArrayRef<Value> indices);
  void store(Value value, const GpuKernel::Tensor &tensor,
             ArrayRef<Value> indices);

  OpBuilder &host;
  GpuKernel &kernel;
  ThreadBuilder b;
  AttentionResults pieces, results;
  RaggedPieces ragged;
  FloatType sum;
  Value numPieces;
  /// The first token of each ragged sequence, the number of the sequence of the
  /// tokens behind the last one, and the number of all tokens.
  GpuKernel::Tensor starts;
  Value lastSequence, numTokens;
  GpuKernel::Tensor outputs, logSums, output, logSum;
};
} // namespace

Value PieceMerge::load(const GpuKernel::Tensor &tensor, Value piece,
                       ArrayRef<Value> indices) {
  SmallVector<Value> at{piece};
  llvm::append_range(at, indices);
  return memref::LoadOp::create(b, tensor.memref,
                                getOffset(b, b.getLoc(), at, tensor.strides));
}

void PieceMerge::store(Value value, const GpuKernel::Tensor &tensor,
                       ArrayRef<Value> indices) {
  value = b.convert(value, getElementTypeOrSelf(tensor.memref.getType()));
  memref::StoreOp::create(b, value, tensor.memref,
                          getOffset(b, b.getLoc(), indices, tensor.strides));
}

/// Emits the sums of the channel at `indices` of the results, which is at
/// `inPieces` in each piece: a piece is a state with its log-sum-exp as running
/// max, 1 as running sum, and its output as accumulator.
void PieceMerge::emitRow(ArrayRef<Value> indices, ArrayRef<Value> inPieces) {
  ArrayRef<Value> row = indices.drop_back(), rowInPieces = inPieces.drop_back();
  ThreadSoftmax softmax(b, sum, /*unit=*/1);
  Value zero = softmax.number(0), infinity = softmax.number(softmax.start);
  Value first = createIndex(b, b.getLoc(), 0),
        step = createIndex(b, b.getLoc(), 1);
  Value maximum = b.emitLoop(
      first, numPieces, step, infinity,
      [&](Value piece, ValueRange carried) -> SmallVector<Value> {
        return {softmax.max(carried[0], load(logSums, piece, rowInPieces))};
      })[0];
  SmallVector<Value> totals = b.emitLoop(
      first, numPieces, step, {zero, zero},
      [&](Value piece, ValueRange carried) -> SmallVector<Value> {
        Value own = load(logSums, piece, rowInPieces);
        Value isEmpty =
            arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, own, infinity);
        return b.emitIf(
            isEmpty, carried.getTypes(),
            [&] { return llvm::to_vector(carried); },
            [&]() -> SmallVector<Value> {
              Value weight = emitExp(softmax, own, maximum);
              Value x = load(outputs, piece, inPieces);
              return {b.fma(weight, x, carried[0]), b.addf(carried[1], weight)};
            });
      });
  store(emitQuotient(softmax, totals[0], totals[1]), output, indices);
  if (!results.logSums)
    return;
  Value isFirst = b.compare(arith::CmpIPredicate::eq, indices.back(), first);
  b.emitIf(isFirst, [&] {
    // The logarithm of a single piece is kept bit for bit.
    store(emitLogSum(softmax, {maximum, totals[1]}), logSum, row);
  });
}

/// Emits the sums of the channel at `indices`, which has `maxQueries` tokens of
/// each sequence, if the token exists. Starts are clamped as the nest does.
void PieceMerge::emitRaggedRow(SmallVector<Value> indices) {
  Location loc = b.getLoc();
  Value &token = indices[ragged.tokenDim];
  Value maxQueries = createIndex(b, loc, ragged.maxQueries);
  Value sequence, number;
  std::tie(sequence, number) = divide32(b, loc, token, maxQueries);
  auto loadStart = [&](Value at) -> Value {
    Value start = memref::LoadOp::create(b, starts.memref,
                                         getOffset(b, loc, at, starts.strides));
    return b.createOrFold<arith::IndexCastOp>(b.getIndexType(), start);
  };
  auto clamp = [&](Value value, Value min) -> Value {
    Value upper = arith::MinSIOp::create(b, value, numTokens);
    return arith::MaxSIOp::create(b, upper, min);
  };
  Value begin = clamp(loadStart(sequence), createIndex(b, loc, 0));
  Value isLast = b.compare(arith::CmpIPredicate::eq, sequence, lastSequence);
  Value next = b.select(isLast, lastSequence, b.add(sequence, 1));
  Value end = b.select(isLast, numTokens, loadStart(next));
  Value count = b.sub(clamp(end, begin), begin);
  Value exists = b.both(b.compare(arith::CmpIPredicate::sle, count, maxQueries),
                        b.compare(arith::CmpIPredicate::slt, number, count));
  b.emitIf(exists, [&] {
    SmallVector<Value> inPieces(indices);
    inPieces[ragged.tokenDim] = b.add(
        createPieceRow(b, loc, sequence, begin, ragged.maxQueries), number);
    token = b.add(begin, number);
    emitRow(indices, inPieces);
  });
}

void PieceMerge::emit() {
  Location loc = b.getLoc();
  outputs = kernel.addTensor(host, pieces.output);
  logSums = kernel.addTensor(host, pieces.logSums);
  output = kernel.addTensor(host, results.output);
  if (results.logSums)
    logSum = kernel.addTensor(host, results.logSums);
  numPieces = kernel.addIndex(
      host, host.createOrFold<memref::DimOp>(loc, pieces.output, 0));
  SmallVector<Value> sizes;
  Value count = createIndex(host, loc, 1);
  int64_t rank = cast<MemRefType>(results.output.getType()).getRank();
  for (int64_t dim = 0; dim < rank; ++dim) {
    Value size = host.createOrFold<memref::DimOp>(loc, results.output, dim);
    if (ragged && dim == ragged.tokenDim) {
      Value sequences = host.createOrFold<memref::DimOp>(loc, ragged.starts, 0);
      starts = kernel.addTensor(host, ragged.starts);
      numTokens = kernel.addIndex(host, size);
      lastSequence =
          kernel.addIndex(host, host.createOrFold<arith::SubIOp>(
                                    loc, sequences, createIndex(host, loc, 1)));
      size = host.createOrFold<arith::MulIOp>(
          loc, sequences, createIndex(host, loc, ragged.maxQueries));
    }
    count = host.createOrFold<arith::MulIOp>(loc, count, size);
    sizes.push_back(kernel.addIndex(host, size));
  }
  Value end = kernel.addIndex(host, count);
  Value number =
      b.add(b.mul(gpu::BlockIdOp::create(b, gpu::Dimension::x), kMergeThreads),
            gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  b.emitIf(b.compare(arith::CmpIPredicate::ult, number, end), [&] {
    SmallVector<Value> indices(rank);
    Value rest = number;
    for (int64_t dim = rank; dim-- > 1;)
      std::tie(rest, indices[dim]) = divide32(b, loc, rest, sizes[dim]);
    indices.front() = rest;
    if (ragged)
      emitRaggedRow(indices);
    else
      emitRow(indices, indices);
  });
  kernel.getBody().setInsertionPointToEnd(
      &kernel.getFunction().getBody().front());
  Value blocks = host.createOrFold<arith::CeilDivUIOp>(
      loc, count, createIndex(host, loc, kMergeThreads));
  kernel.launch(host, blocks);
}

void mlir::posenc::mergePieces(OpBuilder &host, Operation *op,
                               const AttentionResults &pieces,
                               const AttentionResults &results,
                               const RaggedPieces &ragged) {
  GpuKernel kernel(op, "_merge_pieces", kMergeThreads);
  PieceMerge(host, kernel, pieces, results, ragged).emit();
}
