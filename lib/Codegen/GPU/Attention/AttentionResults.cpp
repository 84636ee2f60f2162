//===- AttentionResults.cpp - results of GPU attention --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionKernel.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

/// Returns the map from the loops (heads, queries, channels) to the dimensions
/// of the result.
static AffineMap getOrder(linalg::GenericOp compute) {
  return compute.getMatchingIndexingMap(compute.getDpsInitOperand(0));
}

/// Emits the operation that computes an element of a result from the
/// accumulator, which is null for the log-sum-exp, and from the row's maximum
/// and sum. Products with the reciprocal, of which a row has one, replace
/// quotients by the sum.
Value AttentionKernel::emitResult(const AttentionNestParts::Output &output,
                                  Value accumulator, const RowSums &sums) {
  linalg::GenericOp compute = output.compute;
  Block &body = *compute.getBody();
  Value parts[] = {accumulator, sums.maximum, sums.sum}, result;
  reader.withScope([&] {
    Value divisor;
    for (auto [argument, part] : llvm::zip(body.getArguments(), output.parts)) {
      reader.getScalars().map(argument, parts[part]);
      if (part == 2)
        divisor = argument;
    }
    for (Operation &inner : body.without_terminator()) {
      auto quotient = dyn_cast<arith::DivFOp>(inner);
      if (quotient && quotient.getRhs() == divisor)
        reader.getScalars().map(
            quotient.getResult(),
            b.mulf(reader.get(quotient.getLhs()), sums.reciprocal));
      else
        reader.cloneScalar(inner);
    }
    result = reader.get(body.getTerminator()->getOperand(0));
  });
  return result;
}

std::optional<Value>
AttentionKernel::getNumQueries(const AttentionNestParts::Output &output) {
  // Only a list of ragged sequences decides that there are none.
  scf::ForallOp loops = nest.loops;
  if (loops.getBody()->getOps<tensor::ExtractOp>().empty())
    return std::nullopt;
  linalg::GenericOp compute = output.compute;
  for (auto [dim, expr] : llvm::enumerate(getOrder(compute).getResults()))
    if (cast<AffineDimExpr>(expr).getPosition() == 1)
      return reader.getSize(compute.getResult(0), dim);
  return std::nullopt;
}

/// Emits an i1: whether a row stands for an existing query; null if all do.
Value AttentionKernel::emitExists(const AttentionNestParts::Output &output,
                                  const Row &row) {
  // The tensor that is inserted has the existing heads and queries.
  linalg::GenericOp compute = output.compute;
  AffineMap order = getOrder(compute);
  Value indices[] = {row.head, row.query};
  Value exists = row.exists;
  for (auto [dim, expr] : llvm::enumerate(order.getResults())) {
    int64_t loop = cast<AffineDimExpr>(expr).getPosition();
    if (loop < 2)
      exists =
          b.both(exists,
                 b.compare(arith::CmpIPredicate::slt, indices[loop],
                           b.toI32(reader.getSize(compute.getResult(0), dim))));
  }
  return exists;
}

/// Emits the indices of a row's first element in the destination.
SmallVector<Value>
AttentionKernel::emitIndices(const AttentionNestParts::Output &output,
                             const Row &row) {
  tensor::ParallelInsertSliceOp insert = output.insert;
  AffineMap order = getOrder(output.compute);
  Value indices[] = {row.head, row.query};
  llvm::SmallBitVector dropped = insert.getDroppedDims();
  SmallVector<Value> at;
  int64_t dim = 0;
  for (auto [axis, offset] : llvm::enumerate(insert.getMixedOffsets())) {
    Value index = reader.get(offset);
    if (!dropped[axis]) {
      int64_t loop = cast<AffineDimExpr>(order.getResult(dim++)).getPosition();
      if (loop < 2)
        index = b.add(index, b.toIndex(indices[loop]));
    }
    at.push_back(index);
  }
  return at;
}

/// Emits code for a row that stands for an existing query, with the indices of
/// the row's first element in the destination.
void AttentionKernel::ifStored(const AttentionNestParts::Output &output,
                               const Row &row,
                               function_ref<void(ArrayRef<Value>)> body) {
  b.emitIf(emitExists(output, row), [&] { body(emitIndices(output, row)); });
}

/// Emits, for each pair of the thread's channels in a row that the result has,
/// code that gets the first channel and the two elements.
void AttentionKernel::forEachPair(
    const AttentionNestParts::Output &output, const State &state,
    const RowSums &sums, int64_t row,
    function_ref<void(Value channel, Value pair)> body) {
  int64_t channels = tiles.getValueChannels(sizes), count = getNumChannels();
  Value first = b.add(b.mul(valuePart, channels), b.mul(laneColumn, 2));
  for (int64_t column = 0; column < count; column += 2) {
    int64_t offset = getColumnKey(column);
    if (tiles.valueParts == 1 && offset >= sizes.valueDim)
      break;
    Value channel = b.add(first, offset);
    auto emit = [&] {
      SmallVector<Value> both;
      for (int64_t i : {0, 1})
        both.push_back(emitResult(
            output, state.accumulators[getIndex(row, column + i, count)],
            sums));
      body(channel, vector::FromElementsOp::create(
                        b, VectorType::get({2}, both.front().getType()), both));
    };
    if (tiles.valueParts == 1 || tiles.valueParts * channels == sizes.valueDim)
      emit();
    else
      b.emitIf(
          b.compare(arith::CmpIPredicate::ult, channel, b.i32(sizes.valueDim)),
          emit);
  }
}

/// Stores the outputs by way of the shared memory of the warp's own queries and
/// channels, so that threads write 16 bytes at a time.
void AttentionKernel::storeStaged(const AttentionNestParts::Output &output,
                                  const State &state, ArrayRef<RowSums> sums) {
  syncRows();
  for (int64_t row = 0; row < getNumRows(); ++row)
    forEachPair(output, state, sums[row], row, [&](Value channel, Value pair) {
      b.store(pair, getQuery(rows[row].number, channel),
              2 * sizes.elementBytes);
    });
  NVVM::SyncWarpOp::create(b, b.i32(-1));
  int64_t lanes = 16 / sizes.elementBytes, dim = sizes.valueDim;
  int64_t channels =
      tiles.valueParts == 1 ? dim : tiles.getValueChannels(sizes);
  int64_t columns = channels / lanes;
  auto type = VectorType::get({lanes}, element);
  b.emitLoop(lane, b.i32(tiles.getRowsPerWarp() * columns),
             b.i32(GpuAttentionTiles::kWarp), {},
             [&](Value item, ValueRange) -> SmallVector<Value> {
               Row row = getRow(b.add(warpRow, b.div(item, columns)));
               Value channel = b.add(b.mul(valuePart, channels),
                                     b.mul(b.rem(item, columns), lanes));
               if (tiles.valueParts * channels != dim)
                 row.exists =
                     b.both(row.exists, b.compare(arith::CmpIPredicate::ult,
                                                  channel, b.i32(dim)));
               ifStored(output, row, [&](ArrayRef<Value> at) {
                 Value vector = b.load(getQuery(row.number, channel), type, 16);
                 SmallVector<Value> indices(at);
                 indices.back() = b.add(at.back(), b.toIndex(channel));
                 reader.storeElements(vector, output.getDestination(), indices);
               });
               return {};
             });
}

/// Stores a result whose rows have one element.
void AttentionKernel::storeSums(const AttentionNestParts::Output &output,
                                ArrayRef<RowSums> sums) {
  Value isFirst = b.compare(arith::CmpIPredicate::eq, laneColumn, b.i32(0));
  if (tiles.valueParts > 1)
    isFirst = b.both(isFirst,
                     b.compare(arith::CmpIPredicate::eq, valuePart, b.i32(0)));
  b.emitIf(isFirst, [&] {
    for (auto [row, parts] : llvm::zip_equal(rows, sums)) {
      Value element = emitResult(output, {}, parts);
      ifStored(output, row, [&](ArrayRef<Value> at) {
        reader.storeElements(element, output.getDestination(), at);
      });
    }
  });
}

SmallVector<AttentionKernel::RowSums>
AttentionKernel::emitRowSums(const State &state) {
  SmallVector<RowSums> sums;
  for (int64_t row = 0; row < getNumRows(); ++row) {
    Value total = state.sums[row];
    for (int64_t mask : {1, 2})
      total = b.addf(total, b.shuffleXor(total, mask));
    Value maximum = state.maxima[row];
    if (!hasOwnScores()) {
      // A maximum that no key has raised is the sink, bit for bit.
      Value init = getInit(1, rows[row]);
      Value isInit = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ,
                                           maximum, scaleInit(init));
      maximum =
          b.select(isInit, init, b.mulf(maximum, b.real(sum, getScoreUnit())));
    }
    sums.push_back(
        {maximum, total, arith::DivFOp::create(b, b.real(sum, 1.0), total)});
  }
  return sums;
}

void AttentionKernel::storeResults(const State &state) {
  SmallVector<RowSums> sums = emitRowSums(state);
  for (const AttentionNestParts::Output &output : nest.outputs) {
    linalg::GenericOp compute = output.compute;
    bool hasChannels = compute.getNumLoops() == 3;
    bool isStaged =
        isWide && !keepsQueries() && (tiles.valueParts == 1 || stagesParts()) &&
        getElementTypeOrSelf(output.getDestination().getType()) == element &&
        sizes.valueDim <= sizes.keyDim &&
        sizes.valueDim % (16 / sizes.elementBytes) == 0;
    if (!hasChannels) {
      storeSums(output, sums);
    } else if (isStaged) {
      storeStaged(output, state, sums);
    } else {
      for (int64_t row = 0; row < getNumRows(); ++row)
        ifStored(output, rows[row], [&](ArrayRef<Value> at) {
          forEachPair(
              output, state, sums[row], row, [&](Value channel, Value pair) {
                SmallVector<Value> indices(at);
                indices.back() = b.add(at.back(), b.toIndex(channel));
                reader.storeElements(pair, output.getDestination(), indices);
              });
        });
    }
  }
}
