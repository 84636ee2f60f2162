//===- DeviceWorkspace.cpp - memory of intermediate tensors ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceWorkspace.h"

#include "LoopSizes.h"

#include "posenc/IR/KernelConfig.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::posenc;

/// Whether a size follows from the sizes of the function's tensors.
static bool followsFromSizes(Value value) {
  if (isa<BlockArgument>(value))
    return isa<MemRefType>(value.getType());
  Operation *op = value.getDefiningOp();
  return (isPure(op) || isa<memref::AllocOp>(op)) && op->getNumRegions() == 0 &&
         llvm::all_of(op->getOperands(), followsFromSizes);
}

/// Whether a size of the signature is, or is computed from, a scalar argument.
static bool hasScalarSizes(AbiAttr abi) {
  auto isInput = [&](int64_t symbol) {
    return symbol >= abi.getInputSymbol(0) && symbol < abi.getTermSymbol(0);
  };
  return llvm::any_of(abi.getSizes(), [](int64_t size) { return size >= 0; }) ||
         llvm::any_of(abi.getTerms(), [&](TermAttr term) {
           AffineMap map = term.getOperands();
           for (unsigned i = 0; i < map.getNumSymbols(); ++i)
             if (isInput(i) && map.isFunctionOfSymbol(i))
               return true;
           return false;
         });
}

std::optional<StringRef>
mlir::posenc::getWorkspaceObstacle(memref::AllocOp memory) {
  auto function = dyn_cast<func::FuncOp>(memory->getParentOp());
  if (!function)
    return "it is allocated within a loop or a branch";
  AbiAttr abi = getAbi(function);
  bool isKnown = llvm::all_of(memory.getDynamicSizes(), followsFromSizes);
  if (!memory.getType().hasStaticShape() && abi)
    isKnown &= !hasScalarSizes(abi);
  if (!isKnown)
    return "its size depends on a scalar argument, but the size of a workspace "
           "is computed from the sizes of tensors";
  return std::nullopt;
}

namespace {
/// Emits arithmetic on sizes as i64 that saturates at INT64_MAX.
class SaturatingSizes {
public:
  SaturatingSizes(OpBuilder &builder, Location loc)
      : builder(builder), loc(loc) {}

  Value constant(int64_t value) {
    return arith::ConstantIntOp::create(builder, loc, builder.getI64Type(),
                                        value);
  }
  Value emit(Value size);
  Value multiply(Value a, Value b);

private:
  Value add(Value a, Value b);
  /// Selects INT64_MAX if the value, as a signed number, is negative.
  Value saturate(Value value, Value isTooLarge = {});

  OpBuilder &builder;
  Location loc;
};
} // namespace

Value SaturatingSizes::saturate(Value value, Value isTooLarge) {
  Value isNegative = arith::CmpIOp::create(
      builder, loc, arith::CmpIPredicate::slt, value, constant(0));
  if (isTooLarge)
    isNegative = arith::OrIOp::create(builder, loc, isNegative, isTooLarge);
  return arith::SelectOp::create(builder, loc, isNegative, constant(INT64_MAX),
                                 value);
}

Value SaturatingSizes::add(Value a, Value b) {
  return saturate(arith::AddIOp::create(builder, loc, a, b));
}

Value SaturatingSizes::multiply(Value a, Value b) {
  auto product = arith::MulUIExtendedOp::create(builder, loc, a, b);
  return saturate(product.getLow(),
                  arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                        product.getHigh(), constant(0)));
}

/// Other operations than sums and products, such as quotients, have results
/// that are not larger than an operand.
Value SaturatingSizes::emit(Value size) {
  if (auto sum = size.getDefiningOp<arith::AddIOp>())
    return add(emit(sum.getLhs()), emit(sum.getRhs()));
  if (auto product = size.getDefiningOp<arith::MulIOp>())
    return multiply(emit(product.getLhs()), emit(product.getRhs()));
  if (size.getType().isIndex())
    return builder.createOrFold<arith::IndexCastOp>(loc, builder.getI64Type(),
                                                    size);
  return size;
}

static int64_t getStaticFactor(MemRefType type) {
  return getStaticBytes(type).value_or(INT64_MAX);
}

Value mlir::posenc::emitByteSize(OpBuilder &builder, memref::AllocOp memory) {
  SaturatingSizes sizes(builder, memory.getLoc());
  Value bytes = sizes.constant(getStaticFactor(memory.getType()));
  for (Value size : memory.getDynamicSizes())
    bytes = sizes.multiply(bytes, sizes.emit(size));
  return bytes;
}
