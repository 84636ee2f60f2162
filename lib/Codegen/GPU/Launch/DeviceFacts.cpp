//===- DeviceFacts.cpp - facts about the device, for host code ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceFacts.h"

#include "posenc/IR/CreateIndex.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace mlir::posenc;

Value mlir::posenc::callSupport(OpBuilder &builder, Operation *op,
                                StringRef function, Type result,
                                ValueRange arguments) {
  auto module = op->getParentOfType<ModuleOp>();
  if (!module.lookupSymbol(function)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    func::FuncOp::create(builder, op->getLoc(), function,
                         builder.getFunctionType(arguments.getTypes(), result))
        .setPrivate();
  }
  return func::CallOp::create(builder, op->getLoc(), function, result,
                              arguments)
      .getResult(0);
}

Value mlir::posenc::limitBlocks(OpBuilder &builder, Operation *op, Value blocks,
                                int64_t perMultiprocessor) {
  Location loc = op->getLoc();
  Value multiprocessors = builder.createOrFold<arith::IndexCastOp>(
      loc, builder.getIndexType(),
      callSupport(builder, op, kMultiprocessorsFunction, builder.getI64Type(),
                  {}));
  return builder.createOrFold<arith::MinUIOp>(
      loc, blocks,
      builder.createOrFold<arith::MulIOp>(
          loc, multiprocessors, createIndex(builder, loc, perMultiprocessor)));
}
