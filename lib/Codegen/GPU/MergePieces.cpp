//===- MergePieces.cpp - results of pieces of the keys --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MergePieces.h"

#include "GpuAttention.h"
#include "GpuKernel.h"
#include "ThreadSoftmax.h"
#include "TileReader.h"

#include "posenc/IR/CreateIndex.h"
#include "posenc/Transforms/AttentionIndices.h"
#include "posenc/Transforms/AttentionNest.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

#include <tuple>

using namespace mlir;
using namespace mlir::posenc;

namespace {
/// Emits the code of a thread, which computes one channel of a row at a time.
class PieceMerge {
public:
  PieceMerge(OpBuilder &host, GpuKernel &kernel, AttentionOp op,
             const AttentionResults &pieces, const AttentionResults &results,
             int64_t maxQueries)
      : host(host), kernel(kernel), b(kernel.getFunction()),
        reader(host, kernel, b, /*isWide=*/false), op(op), pieces(pieces),
        results(results), maxQueries(maxQueries),
        sum(cast<FloatType>(getElementTypeOrSelf(pieces.output.getType()))) {}

  void emit();

private:
  void createLoops();
  void emitElement(Value number, ArrayRef<Value> sizes);
  void emitRow(ArrayRef<Value> indices, ArrayRef<Value> inPieces);
  void emitRaggedRow(SmallVector<Value> indices);
  void takeRow(Value batch, Value query);
  Value load(const GpuKernel::Tensor &tensor, Value piece,
             ArrayRef<Value> indices);
  void store(Value value, const GpuKernel::Tensor &tensor,
             ArrayRef<Value> indices);

  OpBuilder &host;
  GpuKernel &kernel;
  ThreadBuilder b;
  TileReader reader;
  AttentionOp op;
  AttentionResults pieces, results;
  int64_t maxQueries;
  FloatType sum;
  /// Loops of the host over sequences and queries, whose scalars are cloned
  /// into the kernel: the sequence, and the pieces with keys of a query.
  scf::ForallOp loops;
  AttentionSequence sequence;
  Value firstPiece, endPiece;
  GpuKernel::Tensor outputs, logSums, output, logSum;
};
} // namespace

/// Creates the loops at the host.
void PieceMerge::createLoops() {
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
  Value keys = createIndex(inside, loc, kKeysPerPiece);
  firstPiece = arith::DivUIOp::create(inside, first, keys);
  Value hasKeys =
      arith::CmpIOp::create(inside, arith::CmpIPredicate::slt, first, end);
  endPiece = arith::SelectOp::create(
      inside, hasKeys, arith::CeilDivUIOp::create(inside, end, keys),
      firstPiece);
}

/// Clones the scalars of the loops for a query of a sequence.
void PieceMerge::takeRow(Value batch, Value query) {
  reader.getScalars().map(loops.getInductionVars(), ValueRange{batch, query});
  reader.cloneScalars(*loops.getBody());
}

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
/// max, 1 as running sum, and its output as accumulator. The row's scalars have
/// been cloned.
void PieceMerge::emitRow(ArrayRef<Value> indices, ArrayRef<Value> inPieces) {
  ArrayRef<Value> row = indices.drop_back(), rowInPieces = inPieces.drop_back();
  ThreadSoftmax softmax(b, sum, /*unit=*/1);
  Value zero = softmax.number(0), infinity = softmax.number(softmax.start);
  Value first = createIndex(b, b.getLoc(), 0),
        step = createIndex(b, b.getLoc(), 1);
  // The first piece is followed by the ones with keys.
  Value second = arith::MaxUIOp::create(b, reader.get(firstPiece), step);
  Value end = arith::MaxUIOp::create(b, reader.get(endPiece), second);
  Value count = b.add(b.sub(end, second), 1);
  auto getPiece = [&](Value number) {
    Value isFirst = b.compare(arith::CmpIPredicate::eq, number, first);
    return b.select(isFirst, first, b.add(b.sub(number, step), second));
  };
  Value maximum = b.emitLoop(
      first, count, step, infinity,
      [&](Value number, ValueRange carried) -> SmallVector<Value> {
        return {softmax.max(carried[0],
                            load(logSums, getPiece(number), rowInPieces))};
      })[0];
  SmallVector<Value> totals = b.emitLoop(
      first, count, step, {zero, zero},
      [&](Value number, ValueRange carried) -> SmallVector<Value> {
        Value piece = getPiece(number);
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
/// each sequence, if the token exists.
void PieceMerge::emitRaggedRow(SmallVector<Value> indices) {
  Location loc = b.getLoc();
  Value &token = indices[op.getQueryTokenDim()];
  Value batch, number;
  std::tie(batch, number) =
      divide32(b, loc, token, createIndex(b, loc, maxQueries));
  takeRow(batch, number);
  Value begin = reader.get(sequence.queryStart),
        count = reader.get(sequence.numQueries);
  Value exists = b.both(b.compare(arith::CmpIPredicate::sle, count,
                                  createIndex(b, loc, maxQueries)),
                        b.compare(arith::CmpIPredicate::slt, number, count));
  b.emitIf(exists, [&] {
    SmallVector<Value> inPieces(indices);
    inPieces[op.getQueryTokenDim()] =
        b.add(createPieceRow(b, loc, batch, begin, maxQueries), number);
    token = b.add(begin, number);
    emitRow(indices, inPieces);
  });
}

/// Emits the element with a number, of results that have these sizes.
void PieceMerge::emitElement(Value number, ArrayRef<Value> sizes) {
  SmallVector<Value> indices(sizes.size());
  Value rest = number;
  for (size_t dim = sizes.size(); dim-- > 1;)
    std::tie(rest, indices[dim]) = divide32(b, b.getLoc(), rest, sizes[dim]);
  indices.front() = rest;
  reader.withScope([&] {
    if (op.hasRaggedQueries())
      return emitRaggedRow(indices);
    takeRow(indices.front(), indices[op.getQueryTokenDim()]);
    emitRow(indices, indices);
  });
}

void PieceMerge::emit() {
  Location loc = b.getLoc();
  createLoops();
  reader.captureOperands(loops);
  outputs = kernel.addTensor(host, pieces.output);
  logSums = kernel.addTensor(host, pieces.logSums);
  output = kernel.addTensor(host, results.output);
  if (results.logSums)
    logSum = kernel.addTensor(host, results.logSums);
  SmallVector<Value> sizes;
  Value count = createIndex(host, loc, 1);
  unsigned rank = cast<MemRefType>(results.output.getType()).getRank();
  for (unsigned dim = 0; dim < rank; ++dim) {
    Value size = host.createOrFold<memref::DimOp>(loc, results.output, dim);
    if (op.hasRaggedQueries() && dim == op.getQueryTokenDim()) {
      Value sequences =
          host.createOrFold<memref::DimOp>(loc, op.getCuSeqlens()[0], 0);
      size = host.createOrFold<arith::MulIOp>(
          loc, sequences, createIndex(host, loc, maxQueries));
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
               emitElement(number, sizes);
               return {};
             });
  kernel.getBody().setInsertionPointToEnd(
      &kernel.getFunction().getBody().front());
  Value blocks = host.createOrFold<arith::CeilDivUIOp>(
      loc, count, createIndex(host, loc, kHelperThreads));
  kernel.launch(host, limitBlocks(host, op, blocks, kHelperBlocks));
  loops.erase();
}

void mlir::posenc::mergePieces(OpBuilder &host, AttentionOp op,
                               const AttentionResults &pieces,
                               const AttentionResults &results,
                               int64_t maxQueries) {
  GpuKernel kernel(op, "_merge_pieces", kHelperThreads);
  PieceMerge(host, kernel, op, pieces, results, maxQueries).emit();
}
