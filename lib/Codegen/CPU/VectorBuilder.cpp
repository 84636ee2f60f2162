//===- VectorBuilder.cpp - vectors, loops and branches --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VectorBuilder.h"

#include "posenc/IR/IndexArithmetic.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

Value mlir::posenc::createSplat(ImplicitLocOpBuilder &builder, VectorType type,
                                double value) {
  return arith::ConstantOp::create(
      builder, DenseElementsAttr::get(
                   type, builder.getFloatAttr(type.getElementType(), value)));
}

Value mlir::posenc::broadcast(ImplicitLocOpBuilder &builder, VectorType type,
                              Value scalar) {
  return vector::BroadcastOp::create(builder, type, scalar);
}

Value mlir::posenc::loadVector(ImplicitLocOpBuilder &builder, VectorType type,
                               Value memref, ValueRange indices) {
  return vector::LoadOp::create(builder, type, memref, indices);
}

void mlir::posenc::storeVector(ImplicitLocOpBuilder &builder, Value vector,
                               Value memref, ValueRange indices) {
  vector::StoreOp::create(builder, vector, memref, indices);
}

ValueRange mlir::posenc::createLoop(
    ImplicitLocOpBuilder &builder, Value from, Value to, int64_t step,
    ValueRange init, function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop =
      scf::ForOp::create(builder, from, to, createIndex(builder, step), init);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!init.empty())
    scf::YieldOp::create(builder, next);
  return loop.getResults();
}

ValueRange mlir::posenc::createRolledLoop(
    ImplicitLocOpBuilder &builder, Value from, Value to, int64_t step,
    ValueRange init, function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  ValueRange results = createLoop(builder, from, to, step, init, body);
  MLIRContext *context = builder.getContext();
  LLVM::LoopUnrollAttr unroll = LLVM::LoopUnrollAttr::get(
      context, /*disable=*/builder.getBoolAttr(true), {}, {}, {}, {}, {}, {});
  results.front().getDefiningOp()->setAttr(
      "loop_annotation",
      LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, unroll, {}, {}, {}, {},
                                    {}, {}, {}, {}, {}, {}, {}));
  return results;
}

void mlir::posenc::createLoop(ImplicitLocOpBuilder &builder, Value from,
                              Value to, int64_t step,
                              function_ref<void(Value)> body) {
  createLoop(builder, from, to, step, {}, [&](Value index, ValueRange) {
    body(index);
    return SmallVector<Value>();
  });
}

void mlir::posenc::emitIf(ImplicitLocOpBuilder &builder, Value condition,
                          function_ref<void()> then,
                          function_ref<void()> otherwise) {
  auto branch =
      scf::IfOp::create(builder, condition,
                        /*withElseRegion=*/static_cast<bool>(otherwise));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  then();
  if (!otherwise)
    return;
  builder.setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

SmallVector<Value> mlir::posenc::transpose(ImplicitLocOpBuilder &builder,
                                           SmallVector<Value> vectors) {
  int64_t count = vectors.size();
  SmallVector<int64_t> low, high;
  for (int64_t i = 0; i < count / 2; ++i) {
    llvm::append_values(low, i, count + i);
    llvm::append_values(high, count / 2 + i, count + count / 2 + i);
  }
  // Each round exchanges one bit of the vector index with one bit of the lane
  // index.
  for (int64_t round = 1; round < count; round *= 2) {
    SmallVector<Value> next;
    for (int64_t i = 0; i < count / 2; ++i)
      for (ArrayRef<int64_t> mask : {ArrayRef(low), ArrayRef(high)})
        next.push_back(vector::ShuffleOp::create(builder, vectors[i],
                                                 vectors[i + count / 2], mask));
    vectors = std::move(next);
  }
  return vectors;
}
