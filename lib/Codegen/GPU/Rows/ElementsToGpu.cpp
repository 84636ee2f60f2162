//===- ElementsToGpu.cpp - elementwise linalg to GPU kernels --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GPU/Launch/GpuKernel.h"
#include "GPU/Threads/ElementKernel.h"
#include "LoopSizes.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/Numerics/MathExpansion.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_CONVERTPOSENCELEMENTSTOGPUPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

static constexpr int64_t kElementThreads = 256;

bool mlir::posenc::isElementOnGpu(Type type) {
  return type.isF64() || type.isF32() || isNarrowFloat(type) ||
         type.isInteger(64) || type.isInteger(32);
}

bool mlir::posenc::hasGpuForm(Operation *op, bool hasFunctions) {
  if (isa<linalg::IndexOp, linalg::YieldOp, arith::ConstantOp>(op))
    return true;
  auto isKnown = [&](Type type) {
    return isElementOnGpu(type) || type.isIndex() || type.isInteger(1) ||
           (hasFunctions && (type.isInteger(8) || type.isInteger(16) ||
                             isa<Float8E4M3FNType, Float8E5M2Type>(type)));
  };
  if (!llvm::all_of(op->getOperandTypes(), isKnown) ||
      !llvm::all_of(op->getResultTypes(), isKnown))
    return false;
  // Kernels truncate f64 to 16 bits by way of f32, which would round twice.
  if (isa<arith::TruncFOp>(op) && op->getOperand(0).getType().isF64())
    return !isNarrowFloat(op->getResult(0).getType());
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op))
    return !isNarrowFloat(op->getResult(0).getType());
  if (isa<arith::DivFOp>(op) || isa<math::MathDialect>(op->getDialect()))
    return hasFunctions && (isa<arith::DivFOp>(op) || hasMathExpansion(op));
  // posenc-expand-arith expands these in kernels for NVIDIA GPUs only.
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
          arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp>(op))
    return hasFunctions;
  if (isa<arith::FPToSIOp, arith::FPToUIOp, arith::MaxNumFOp, arith::MinNumFOp,
          arith::MaximumFOp, arith::MinimumFOp, arith::MaxUIOp, arith::MinUIOp,
          arith::RemFOp>(op))
    return hasFunctions;
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp,
             arith::CmpFOp, arith::ExtFOp, arith::TruncFOp, arith::AddIOp,
             arith::SubIOp, arith::MulIOp, arith::AndIOp, arith::OrIOp,
             arith::XOrIOp, arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp,
             arith::BitcastOp, arith::CmpIOp, arith::MaxSIOp, arith::MinSIOp,
             arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp,
             arith::IndexCastOp, arith::IndexCastUIOp, arith::SelectOp>(op);
}

bool mlir::posenc::hasElementKernel(linalg::LinalgOp op, bool hasFunctions) {
  if (!op.hasPureBufferSemantics() || op.getNumReductionLoops() ||
      op.getNumParallelLoops() != op.getNumLoops())
    return false;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!type ? op.isDpsInit(&operand) : !isElementOnGpu(type.getElementType()))
      return false;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (type && (op.isDpsInit(&operand) ? !map.isPermutation()
                                        : !map.isProjectedPermutation()))
      return false;
  }
  // Values from outside of the body are passed as arguments, so they must be
  // indices, i64 or constants.
  auto isPassed = [&](Value value) {
    return value.getType().isIndex() || value.getType().isInteger(64) ||
           value.getType().isInteger(32) || matchPattern(value, m_Constant()) ||
           (hasFunctions && isDeviceScalar(value));
  };
  for (Value input : op.getDpsInputs())
    if (!isa<MemRefType>(input.getType()) && !isPassed(input))
      return false;
  for (Operation &inner : *op.getBlock()) {
    if (!hasGpuForm(&inner, hasFunctions) || inner.getNumRegions())
      return false;
    for (Value operand : inner.getOperands())
      if (operand.getParentBlock() != op.getBlock() && !isPassed(operand))
        return false;
  }
  return true;
}

/// Passes an index as i64, as an index of a kernel may have 32 bits.
static Value takeIndex(OpBuilder &builder, Location loc, Value value) {
  if (!value.getType().isIndex())
    return value;
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), value);
}

/// Casts between index, which is i64 in kernels, and an integer type.
static Value castInteger(OpBuilder &builder, Location loc, Value value,
                         Type type, bool isSigned) {
  if (type.isIndex())
    type = builder.getI64Type();
  unsigned from = value.getType().getIntOrFloatBitWidth();
  unsigned to = type.getIntOrFloatBitWidth();
  if (from == to)
    return value;
  if (from > to)
    return arith::TruncIOp::create(builder, loc, type, value);
  if (isSigned)
    return arith::ExtSIOp::create(builder, loc, type, value);
  return arith::ExtUIOp::create(builder, loc, type, value);
}

void mlir::posenc::cloneScalar(OpBuilder &builder, Operation *op,
                               IRMapping &mapping) {
  Location loc = op->getLoc();
  for (Value operand : op->getOperands())
    mapping.map(operand, takeIndex(builder, loc, mapping.lookup(operand)));
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op)) {
    Value result = op->getResult(0);
    mapping.map(result,
                castInteger(builder, loc, mapping.lookup(op->getOperand(0)),
                            result.getType(), isa<arith::IndexCastOp>(op)));
    return;
  }
  if (auto constant = dyn_cast<arith::ConstantIndexOp>(op)) {
    mapping.map(constant.getResult(), Value(arith::ConstantIntOp::create(
                                          builder, loc, constant.value(), 64)));
    return;
  }
  bool isPlain =
      isa<arith::ExtFOp, arith::TruncFOp, arith::ConstantOp, arith::SelectOp>(
          op) ||
      (llvm::none_of(op->getOperandTypes(), isNarrowFloat) &&
       llvm::none_of(op->getResultTypes(), isNarrowFloat));
  Operation *clone = builder.clone(*op, mapping);
  for (Value result : clone->getResults())
    if (result.getType().isIndex())
      result.setType(builder.getI64Type());
  if (isPlain)
    return;
  Type f32 = builder.getF32Type();
  builder.setInsertionPoint(clone);
  // Keeps constants constant: a power is expanded differently for a constant
  // exponent.
  for (OpOperand &operand : clone->getOpOperands())
    if (isNarrowFloat(operand.get().getType()))
      operand.set(builder.createOrFold<arith::ExtFOp>(loc, f32, operand.get()));
  builder.setInsertionPointAfter(clone);
  for (auto [old, result] :
       llvm::zip_equal(op->getResults(), clone->getResults())) {
    if (!isNarrowFloat(old.getType()))
      continue;
    result.setType(f32);
    mapping.map(old, Value(arith::TruncFOp::create(builder, loc, old.getType(),
                                                   result)));
  }
}

bool mlir::posenc::isDeviceScalar(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<memref::LoadOp>(op))
    return true;
  return op && isa<arith::ArithDialect>(op->getDialect()) &&
         llvm::any_of(op->getOperands(), isDeviceScalar);
}

Value mlir::posenc::passScalar(OpBuilder &host, GpuKernel &kernel, Value value,
                               IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  if (!isDeviceScalar(value)) {
    mapping.map(value, value.getType().isIndex() ? kernel.addIndex(host, value)
                                                 : kernel.addScalar(value));
    return mapping.lookup(value);
  }
  OpBuilder &body = kernel.getBody();
  Operation *op = value.getDefiningOp();
  Location loc = op->getLoc();
  for (Value operand : op->getOperands())
    if (!isa<MemRefType>(operand.getType()))
      passScalar(host, kernel, operand, mapping);
  auto load = dyn_cast<memref::LoadOp>(op);
  if (!load) {
    cloneScalar(body, op, mapping);
    return mapping.lookup(value);
  }
  GpuKernel::Tensor tensor = kernel.addTensor(host, load.getMemRef());
  auto indices = llvm::map_to_vector(load.getIndices(), [&](Value index) {
    return body.createOrFold<arith::IndexCastOp>(loc, body.getIndexType(),
                                                 mapping.lookup(index));
  });
  mapping.map(value, Value(memref::LoadOp::create(
                         body, loc, tensor.memref,
                         getOffset(body, loc, indices, tensor.strides))));
  return mapping.lookup(value);
}

/// Emits the operation's body for one element.
static void emitElement(OpBuilder &builder, GpuKernel &kernel,
                        linalg::LinalgOp op,
                        ArrayRef<GpuKernel::Tensor> tensors, IRMapping &mapping,
                        ValueRange loops) {
  Location loc = op.getLoc();
  auto getElementOffset = [&](OpOperand &operand) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    const GpuKernel::Tensor &tensor = tensors[operand.getOperandNumber()];
    SmallVector<Value> indices;
    for (AffineExpr result : map.getResults())
      indices.push_back(loops[cast<AffineDimExpr>(result).getPosition()]);
    return getOffset(builder, loc, indices, tensor.strides);
  };
  Block *block = op.getBlock();
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    const GpuKernel::Tensor &tensor = tensors[operand.getOperandNumber()];
    if (tensor.memref && !argument.use_empty())
      mapping.map(argument,
                  Value(memref::LoadOp::create(builder, loc, tensor.memref,
                                               getElementOffset(operand))));
  }
  for (Operation &inner : block->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner))
      mapping.map(index.getResult(), loops[index.getDim()]);
    else
      cloneScalar(builder, &inner, mapping);
  }
  for (auto [init, value] : llvm::zip_equal(
           op.getDpsInitsMutable(), block->getTerminator()->getOperands()))
    memref::StoreOp::create(builder, loc, mapping.lookup(value),
                            tensors[init.getOperandNumber()].memref,
                            getElementOffset(init));
}

Value mlir::posenc::skipCopyToItself(OpBuilder &host, linalg::LinalgOp op,
                                     Value blocks) {
  Block &body = *op.getBlock();
  bool copiesArgument =
      op->getNumOperands() == 2 && isa<BlockArgument>(op->getOperand(0)) &&
      isa<BlockArgument>(op->getOperand(1)) &&
      isa<MemRefType>(op->getOperand(0).getType()) &&
      op->getOperand(0).getType() == op->getOperand(1).getType() &&
      body.getTerminator()->getOperand(0) == body.getArgument(0);
  if (!copiesArgument)
    return blocks;
  Location loc = op.getLoc();
  Value differs =
      haveDifferentAddresses(host, loc, op->getOperand(0), op->getOperand(1));
  return arith::SelectOp::create(host, loc, differs, blocks,
                                 arith::ConstantIndexOp::create(host, loc, 0));
}

static void convert(linalg::LinalgOp op) {
  Location loc = op.getLoc();
  OpBuilder host(op);
  GpuKernel kernel(op, "_elements", kElementThreads);
  OpBuilder &b = kernel.getBody();
  SmallVector<GpuKernel::Tensor> tensors(op->getNumOperands());
  IRMapping mapping;
  auto pass = [&](Value value) {
    return passScalar(host, kernel, value, mapping);
  };
  for (OpOperand &operand : op->getOpOperands()) {
    if (isa<MemRefType>(operand.get().getType()))
      tensors[operand.getOperandNumber()] =
          kernel.addTensor(host, operand.get());
    else
      mapping.map(op.getMatchingBlockArgument(&operand), pass(operand.get()));
  }
  for (Operation &inner : *op.getBlock())
    for (Value operand : inner.getOperands())
      if (operand.getParentBlock() != op.getBlock())
        pass(operand);

  SmallVector<Value> sizes;
  Value count = arith::ConstantIndexOp::create(host, loc, 1);
  for (Range range : op.createLoopRanges(host, loc)) {
    Value size = getValueOrCreateConstantIndexOp(host, loc, range.size);
    count = host.createOrFold<arith::MulIOp>(loc, count, size);
    sizes.push_back(kernel.addIndex(host, size));
  }
  Value end = kernel.addIndex(host, count);
  Value block = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
  Value number = arith::MulIOp::create(
      b, loc, block, arith::ConstantIndexOp::create(b, loc, kElementThreads));
  number = arith::AddIOp::create(
      b, loc, number, gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x));
  Value exists =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, number, end);
  scf::IfOp::create(b, loc, exists, [&](OpBuilder &inner, Location) {
    SmallVector<Value> loops(sizes.size());
    for (size_t loop = sizes.size(); loop-- > 1;) {
      loops[loop] = arith::RemUIOp::create(inner, loc, number, sizes[loop]);
      number = arith::DivUIOp::create(inner, loc, number, sizes[loop]);
    }
    if (!loops.empty())
      loops.front() = number;
    emitElement(inner, kernel, op, tensors, mapping, loops);
    scf::YieldOp::create(inner, loc);
  });
  Value blocks = host.createOrFold<arith::CeilDivUIOp>(
      loc, count, arith::ConstantIndexOp::create(host, loc, kElementThreads));
  kernel.launch(host, skipCopyToItself(host, op, blocks));
}

namespace {
struct ConvertPosencElementsToGpu final
    : mlir::posenc::impl::ConvertPosencElementsToGpuPassBase<
          ConvertPosencElementsToGpu> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> operations;
    getOperation().walk([&](Operation *op) {
      OpBuilder builder(op);
      if (auto copy = dyn_cast<memref::CopyOp>(op)) {
        if (!isElementOnGpu(getElementTypeOrSelf(copy.getTarget().getType())))
          return;
        operations.push_back(linalg::makeMemRefCopyOp(
            builder, op->getLoc(), copy.getSource(), copy.getTarget()));
        copy.erase();
      } else if (auto loops = dyn_cast<linalg::LinalgOp>(op)) {
        if (hasElementKernel(loops, /*hasFunctions=*/true))
          operations.push_back(loops);
      }
    });
    for (linalg::LinalgOp op : operations) {
      convert(op);
      op.erase();
    }
  }
};
} // namespace
