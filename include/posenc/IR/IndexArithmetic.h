//===- IndexArithmetic.h - arithmetic of indices ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Constants of type `index`, and operations on them that fold constants.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_INDEXARITHMETIC_H
#define POSENC_IR_INDEXARITHMETIC_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::posenc {

inline Value createIndex(ImplicitLocOpBuilder &builder, int64_t value) {
  return arith::ConstantIndexOp::create(builder, value);
}

inline Value addIndex(ImplicitLocOpBuilder &builder, Value a, Value b) {
  return builder.createOrFold<arith::AddIOp>(a, b);
}

inline Value addIndex(ImplicitLocOpBuilder &builder, Value index,
                      int64_t offset) {
  return offset == 0 ? index
                     : addIndex(builder, index, createIndex(builder, offset));
}

inline Value subIndex(ImplicitLocOpBuilder &builder, Value a, Value b) {
  return builder.createOrFold<arith::SubIOp>(a, b);
}

inline Value mulIndex(ImplicitLocOpBuilder &builder, Value index,
                      int64_t factor) {
  return builder.createOrFold<arith::MulIOp>(index,
                                             createIndex(builder, factor));
}

/// Returns the quotient of an index that is not negative.
inline Value divIndex(ImplicitLocOpBuilder &builder, Value index,
                      int64_t divisor) {
  return builder.createOrFold<arith::DivUIOp>(index,
                                              createIndex(builder, divisor));
}

/// Returns the remainder of an index that is not negative.
inline Value remIndex(ImplicitLocOpBuilder &builder, Value index,
                      int64_t divisor) {
  return builder.createOrFold<arith::RemUIOp>(index,
                                              createIndex(builder, divisor));
}

inline Value minIndex(ImplicitLocOpBuilder &builder, Value a, Value b) {
  return builder.createOrFold<arith::MinSIOp>(a, b);
}

inline Value maxIndex(ImplicitLocOpBuilder &builder, Value a, Value b) {
  return builder.createOrFold<arith::MaxSIOp>(a, b);
}

} // namespace mlir::posenc

#endif // POSENC_IR_INDEXARITHMETIC_H
