//===- CreateGeneric.cpp - structured operations --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/CreateGeneric.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

Value mlir::posenc::createParallelGeneric(
    OpBuilder &builder, Location loc, ValueRange inputs, Value init,
    ArrayRef<AffineMap> maps,
    function_ref<Value(OpBuilder &, Location, ValueRange)> body) {
  int64_t rank = maps.empty() ? cast<RankedTensorType>(init.getType()).getRank()
                              : int64_t(maps.front().getNumDims());
  SmallVector<AffineMap> identities(inputs.size() + 1,
                                    builder.getMultiDimIdentityMap(rank));
  return linalg::GenericOp::create(
             builder, loc, init.getType(), inputs, init,
             maps.empty() ? identities : maps,
             SmallVector<utils::IteratorType>(rank,
                                              utils::IteratorType::parallel),
             [&](OpBuilder &b, Location l, ValueRange args) {
               linalg::YieldOp::create(b, l, body(b, l, args));
             })
      .getResult(0);
}
