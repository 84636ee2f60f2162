//===- LoopSizes.cpp - sizes and addresses of memrefs ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopSizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace mlir::posenc;

Value mlir::posenc::getDimSize(OpBuilder &builder, Location loc, Value memref,
                               int64_t dim) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.isDynamicDim(dim))
    return arith::ConstantIndexOp::create(builder, loc, type.getDimSize(dim));
  return memref::DimOp::create(builder, loc, memref, dim);
}

int64_t mlir::posenc::getElementBytes(Value memref) {
  return getElementTypeOrSelf(memref.getType()).getIntOrFloatBitWidth() / 8;
}

std::optional<int64_t> mlir::posenc::getStaticBytes(MemRefType type) {
  if (!type.getElementType().isIntOrIndexOrFloat())
    return std::nullopt;
  std::optional<int64_t> bytes =
      type.getElementType().isIndex()
          ? 8
          : llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (int64_t size : type.getShape())
    if (bytes && !ShapedType::isDynamic(size))
      bytes = llvm::checkedMul(*bytes, size);
  return bytes;
}

Value mlir::posenc::haveDifferentAddresses(OpBuilder &builder, Location loc,
                                           Value a, Value b) {
  auto getAddress = [&](Value memref) -> Value {
    Value bytes =
        arith::ConstantIndexOp::create(builder, loc, getElementBytes(memref));
    auto metadata =
        memref::ExtractStridedMetadataOp::create(builder, loc, memref);
    return arith::AddIOp::create(
        builder, loc,
        memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, memref),
        arith::MulIOp::create(builder, loc, metadata.getOffset(), bytes));
  };
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                               getAddress(a), getAddress(b));
}

SmallVector<Value> mlir::posenc::getLoopSizes(OpBuilder &builder,
                                              PositionalOpInterface op) {
  SmallVector<Value> sizes(op.getNumLoops());
  OpOperand &init = *cast<DestinationStyleOpInterface>(op.getOperation())
                         .getDpsInitsMutable()
                         .begin();
  for (auto [dim, symbol] :
       llvm::enumerate(op.getDimSymbols(init.getOperandNumber())))
    if (symbol >= 0 && symbol < op.getNumLoops())
      sizes[symbol] = getDimSize(builder, op.getLoc(), init.get(), dim);
  return sizes;
}

LogicalResult mlir::posenc::checkBuffers(Operation *op) {
  if (!op->getParentOfType<FunctionOpInterface>() ||
      !op->getParentOfType<ModuleOp>())
    return op->emitOpError("expected to be in a function of a module");
  for (Value operand : op->getOperands()) {
    if (isa<TensorType>(operand.getType()))
      return op->emitOpError("expected memrefs, got tensors: bufferize first");
    auto type = dyn_cast<MemRefType>(operand.getType());
    if (type && type.getRank() > 0 && !type.isLastDimUnitStride())
      return op->emitOpError("expected a contiguous last dimension, got ")
             << type;
  }
  return success();
}
