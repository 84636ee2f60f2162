//===- Alibi.cpp - the ALiBi bias -----------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/Alibi.h"

#include "posenc/Numerics/ConstantTables.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::posenc;

SmallVector<double> mlir::posenc::getAlibiSlopes(AlibiOp op) {
  SmallVector<double> slopes;
  for (int64_t head = 0, heads = op.getHeads(); head < heads; ++head)
    slopes.push_back(op.getSlope(head));
  return slopes;
}

Value mlir::posenc::emitAlibiSlopes(OpBuilder &builder, Operation *user,
                                    AlibiOp op) {
  SmallVector<double> slopes = getAlibiSlopes(op);
  std::string table =
      createConstants<double>(builder, user, "alibi_slopes", slopes);
  auto type = MemRefType::get({static_cast<int64_t>(slopes.size())},
                              builder.getF64Type());
  return memref::GetGlobalOp::create(builder, op.getLoc(), type, table);
}

Value mlir::posenc::emitAlibiDistance(ElementwiseBuilder &b, Type element,
                                      Value difference) {
  return b.cast<arith::SIToFPOp>(
      element, math::AbsIOp::create(b.builder, b.loc, difference));
}

Value mlir::posenc::emitAlibi(ElementwiseBuilder &b, Value slope,
                              Value distance) {
  return b.neg(b.mul(slope, distance));
}
