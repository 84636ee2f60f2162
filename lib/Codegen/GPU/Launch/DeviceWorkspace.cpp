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

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Lifetimes
//===----------------------------------------------------------------------===//

namespace {
/// The numbers of the operations of a block that use memory first and last.
struct Lifetime {
  unsigned begin = UINT_MAX, end = 0;
};
} // namespace

/// Extends a lifetime by the uses of a memref and of all views of it.
static void addUses(Value memref, Block *block,
                    const DenseMap<Operation *, unsigned> &numbers,
                    Lifetime &lifetime) {
  for (Operation *user : memref.getUsers()) {
    // Operations between this one and its views need no memory.
    bool isView = false;
    for (Value result : user->getResults())
      if (isa<MemRefType>(result.getType())) {
        addUses(result, block, numbers, lifetime);
        isView = true;
      }
    if (isView || isa<memref::DimOp>(user))
      continue;
    unsigned number = numbers.lookup(block->findAncestorOpInBlock(*user));
    lifetime.begin = std::min(lifetime.begin, number);
    lifetime.end = std::max(lifetime.end, number);
  }
}

SmallVector<DeviceMemory>
mlir::posenc::planDeviceMemory(func::FuncOp function) {
  Block *block = &function.getBody().front();
  DenseMap<Operation *, unsigned> numbers;
  for (auto [number, op] : llvm::enumerate(*block))
    numbers[&op] = number;
  SmallVector<DeviceMemory> plan;
  SmallVector<Lifetime> lifetimes;
  SmallVector<bool> isTakenOver;
  auto haveSameBytes = [](memref::AllocOp a, memref::AllocOp b) {
    return getStaticFactor(a.getType()) == getStaticFactor(b.getType()) &&
           a.getDynamicSizes() == b.getDynamicSizes();
  };
  for (auto alloc : block->getOps<memref::AllocOp>()) {
    Lifetime lifetime;
    addUses(alloc, block, numbers, lifetime);
    DeviceMemory memory{alloc, std::nullopt};
    for (size_t i = 0; i < plan.size() && !memory.predecessor; ++i)
      if (!isTakenOver[i] && lifetimes[i].end < lifetime.begin &&
          haveSameBytes(plan[i].alloc, alloc)) {
        memory.predecessor = i;
        isTakenOver[i] = true;
      }
    plan.push_back(memory);
    lifetimes.push_back(lifetime);
    isTakenOver.push_back(false);
  }
  return plan;
}
