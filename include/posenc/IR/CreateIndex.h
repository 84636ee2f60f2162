//===- CreateIndex.h - integer constants ------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_CREATEINDEX_H
#define POSENC_IR_CREATEINDEX_H

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::posenc {

/// Creates an `arith.constant` of type `index`.
inline Value createIndex(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

/// Creates an `arith.constant` of type `i64`.
inline Value createI64(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, value, 64);
}

} // namespace mlir::posenc

#endif // POSENC_IR_CREATEINDEX_H
