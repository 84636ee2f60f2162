//===- VectorLoops.cpp - loops over positions and vectors -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VectorLoops.h"
#include "posenc/IR/CreateIndex.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::posenc;

SmallVector<std::pair<int64_t, int64_t>>
mlir::posenc::splitIntoVectors(int64_t count, int64_t lanes) {
  SmallVector<std::pair<int64_t, int64_t>> result;
  int64_t first = 0;
  for (; first + lanes <= count; first += lanes)
    result.push_back({first, lanes});
  while (first < count) {
    int64_t length = llvm::bit_floor(static_cast<uint64_t>(count - first));
    result.push_back({first, length});
    first += length;
  }
  return result;
}

void mlir::posenc::forEachVector(
    OpBuilder &builder, Location loc, int64_t count, int64_t lanes,
    function_ref<void(OpBuilder &, Location, Value, int64_t)> body) {
  int64_t first = count / lanes * lanes;
  if (first == lanes) {
    body(builder, loc, createIndex(builder, loc, 0), lanes);
  } else if (first > 0) {
    scf::ForOp::create(
        builder, loc, createIndex(builder, loc, 0),
        createIndex(builder, loc, first), createIndex(builder, loc, lanes),
        ValueRange(),
        [&](OpBuilder &nested, Location nestedLoc, Value lane, ValueRange) {
          body(nested, nestedLoc, lane, lanes);
          scf::YieldOp::create(nested, nestedLoc);
        });
  }
  for (auto [rest, length] : splitIntoVectors(count - first, lanes))
    body(builder, loc, createIndex(builder, loc, first + rest), length);
}

void mlir::posenc::forEachIndex(
    OpBuilder &builder, Location loc, ValueRange sizes,
    function_ref<void(OpBuilder &, Location, ValueRange)> body) {
  SmallVector<Value> indices;
  Value zero = createIndex(builder, loc, 0), one = createIndex(builder, loc, 1);
  OpBuilder::InsertionGuard guard(builder);
  for (Value size : sizes) {
    if (getConstantIntValue(size) == 1) {
      indices.push_back(zero);
      continue;
    }
    auto loop = scf::ForOp::create(builder, loc, zero, size, one);
    builder.setInsertionPointToStart(loop.getBody());
    indices.push_back(loop.getInductionVar());
  }
  body(builder, loc, indices);
}

LogicalResult mlir::posenc::checkConvertible(Operation *op,
                                             const VectorTarget &target) {
  int64_t vectorBytes = target.vectorBytes;
  if (vectorBytes != 16 && vectorBytes != 32 && vectorBytes != 64)
    return op->emitOpError() << "cannot use vectors of " << vectorBytes
                             << " bytes: expected 16, 32 or 64";
  return checkBuffers(op);
}

SmallVector<int64_t> mlir::posenc::getHalvesOrder(int64_t count,
                                                  int64_t lanes) {
  SmallVector<int64_t> order;
  for (auto [first, length] : splitIntoVectors(count, lanes))
    for (int64_t odd : {0, 1})
      for (int64_t number = odd; number < length; number += 2)
        order.push_back(first + number);
  return order;
}
