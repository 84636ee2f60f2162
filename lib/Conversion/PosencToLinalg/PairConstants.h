//===- PairConstants.h - constants with one element per pair ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CONVERSION_POSENCTOLINALG_PAIRCONSTANTS_H
#define POSENC_LIB_CONVERSION_POSENCTOLINALG_PAIRCONSTANTS_H

#include "posenc/Support/BigFloat.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::posenc {

/// Creates a constant tensor with one element per pair.
template <typename T>
Value createPairConstant(OpBuilder &builder, Location loc, Type element,
                         ArrayRef<T> elements) {
  auto type =
      RankedTensorType::get({static_cast<int64_t>(elements.size())}, element);
  return arith::ConstantOp::create(builder, loc,
                                   DenseElementsAttr::get(type, elements));
}

/// Creates the constants of both parts of the frequencies in turns, as i64, and
/// appends them; for positions that are floats, also the whole turns.
inline void appendTurns(OpBuilder &builder, Location loc,
                        ArrayRef<::posenc::BigFloat> frequencies,
                        SmallVectorImpl<Value> &constants,
                        bool hasFloatPositions = false) {
  SmallVector<int64_t> high, low, whole;
  for (const ::posenc::BigFloat &frequency : frequencies) {
    auto turns = ::posenc::Turns::fromRadians(frequency);
    high.push_back(static_cast<int64_t>(turns.high));
    low.push_back(turns.low);
    whole.push_back(static_cast<int64_t>(turns.whole));
  }
  SmallVector<ArrayRef<int64_t>> parts = {high, low};
  if (hasFloatPositions)
    parts.push_back(whole);
  for (ArrayRef<int64_t> part : parts)
    constants.push_back(
        createPairConstant(builder, loc, builder.getI64Type(), part));
}

} // namespace mlir::posenc

#endif // POSENC_LIB_CONVERSION_POSENCTOLINALG_PAIRCONSTANTS_H
