//===- ScalarKernel.cpp - kernels without vectors -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarKernel.h"

#include "posenc/Codegen/SpirvKernels.h"
#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVAttributes.h"
#include "mlir/Dialect/SPIRV/IR/TargetAndABI.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::posenc;

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

ArrayRef<Value> ScalarKernel::getLanes(Value value) const {
  return lanes.find(value)->second;
}

SmallVector<Value> ScalarKernel::getLanes(ValueRange values) const {
  SmallVector<Value> all;
  for (Value value : values)
    llvm::append_range(all, getLanes(value));
  return all;
}

void ScalarKernel::setLanes(Value value, ValueRange scalars) {
  lanes[value] = llvm::to_vector(scalars);
}

SmallVector<Type> ScalarKernel::getLaneTypes(TypeRange types) const {
  SmallVector<Type> all;
  for (Type type : types) {
    auto vector = dyn_cast<VectorType>(type);
    all.append(vector ? vector.getNumElements() : 1,
               getLaneType(vector ? vector.getElementType() : type));
  }
  return all;
}

void ScalarKernel::setAllLanes(ValueRange from, ValueRange scalars) {
  for (Value value : from) {
    auto vector = dyn_cast<VectorType>(value.getType());
    size_t count = vector ? vector.getNumElements() : 1;
    setLanes(value, scalars.take_front(count));
    scalars = scalars.drop_front(count);
  }
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

LogicalResult ScalarKernel::build() {
  for (Block &block : kernel.getBody())
    if (&block != &kernel.getBody().front())
      return kernel.emitOpError("cannot have branches in SPIR-V");
  builder.setInsertionPointAfter(kernel);
  auto scalar =
      gpu::GPUFuncOp::create(builder, kernel.getLoc(), kernel.getName(),
                             builder.getFunctionType({}, {}));
  scalar->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                  builder.getUnitAttr());
  scalar->setAttr(PosencDialect::kKernelTypeAttrName,
                  TypeAttr::get(kernel.getFunctionType()));
  SmallVector<int32_t> threads{1, 1, 1};
  if (auto known = kernel.getKnownBlockSizeAttr())
    threads.assign(known.asArrayRef().begin(), known.asArrayRef().end());
  scalar->setAttr(spirv::getEntryPointABIAttrName(),
                  spirv::getEntryPointABIAttr(builder.getContext(), threads));
  builder.setInsertionPointToStart(&scalar.getBody().front());
  if (failed(addArguments(scalar)))
    return failure();
  for (BlockArgument attribution : kernel.getWorkgroupAttributions())
    if (failed(addShared(attribution)))
      return failure();
  if (kernel.getNumPrivateAttributions())
    return kernel.emitOpError("cannot have private memory in SPIR-V");
  return visitBlock(kernel.getBody().front());
}

LogicalResult ScalarKernel::addArguments(gpu::GPUFuncOp scalar) {
  MLIRContext *context = builder.getContext();
  Location loc = kernel.getLoc();
  SpirvKernelAbi abi(kernel.getFunctionType(), !constants.isEmpty());
  Block &body = scalar.getBody().front();
  // The block's arguments include shared memory, which is not passed.
  auto arguments = kernel.getBody().getArguments().take_front(
      kernel.getFunctionType().getNumInputs());
  auto add = [&](int64_t granule, int64_t size, spirv::StorageClass storage) {
    MemRefType type = getGranulesType(context, granule, size, storage);
    return body.addArgument(type, loc);
  };
  for (BlockArgument argument : arguments) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!type)
      continue;
    if (type.getRank() != 1 || !getElementBytes(type.getElementType()))
      return kernel.emitOpError("cannot have an argument of type ")
             << type << " in SPIR-V";
    FailureOr<int64_t> granule = findGranule(argument);
    if (failed(granule))
      return failure();
    KernelBuffer &buffer = buffers[argument];
    buffer.element = type.getElementType();
    buffer.granule = *granule;
    buffer.memref =
        add(*granule, ShapedType::kDynamic, spirv::StorageClass::StorageBuffer);
  }
  if (!constants.isEmpty())
    constantWords =
        add(4, ShapedType::kDynamic, spirv::StorageClass::StorageBuffer);
  Value words = add(4, abi.numWords,
                    abi.isPushed() ? spirv::StorageClass::PushConstant
                                   : spirv::StorageClass::StorageBuffer);
  scalar.setFunctionType(builder.getFunctionType(body.getArgumentTypes(), {}));

  int64_t next = 0;
  firstBlock = addScalar(loc, builder.getIndexType(), words, next);
  for (BlockArgument argument : arguments) {
    Type type = argument.getType();
    if (!isa<MemRefType>(type)) {
      setLanes(argument, addScalar(loc, type, words, next));
      continue;
    }
    buffers[argument].offset =
        addScalar(loc, builder.getIndexType(), words, next);
  }
  return success();
}

/// Reads a scalar argument from the words that a launch passes.
Value ScalarKernel::addScalar(Location loc, Type type, Value words,
                              int64_t &next) {
  KernelBuffer source;
  source.memref = words;
  source.granule = 4;
  bool isIndex = type.isIndex();
  source.element = isIndex ? builder.getI32Type() : type;
  int64_t count = SpirvKernelAbi::countWords(type);
  if (!isIndex && getElementBytes(type) < 4)
    source.element = builder.getI32Type();
  // An i64 is read as two words, as its offset may not be a multiple of 8
  // bytes.
  Value at = arith::ConstantIndexOp::create(builder, loc, next);
  Value value;
  if (count == 1) {
    value = source.load(builder, loc, at, 1).front();
  } else {
    source.element = builder.getI32Type();
    SmallVector<Value> pair = source.load(builder, loc, at, 2);
    auto both = VectorType::get({2}, builder.getI32Type());
    Value joined = vector::BitCastOp::create(
        builder, loc, VectorType::get({1}, type),
        vector::FromElementsOp::create(builder, loc, both, pair));
    value = vector::ExtractOp::create(builder, loc, joined, 0);
  }
  next += count;
  if (isIndex)
    return arith::IndexCastUIOp::create(builder, loc, type, value);
  Type lane = getLaneType(type);
  if (value.getType() != lane && isa<IntegerType>(lane))
    value = arith::TruncIOp::create(builder, loc, lane, value);
  return value;
}

LogicalResult ScalarKernel::addShared(BlockArgument attribution) {
  auto type = cast<MemRefType>(attribution.getType());
  Type lane = getLaneType(type.getElementType());
  if (type.getRank() != 1 || !type.hasStaticShape())
    return kernel.emitOpError("cannot have shared memory of type ")
           << type << " in SPIR-V";
  auto shared = MemRefType::get(
      type.getShape(), lane, MemRefLayoutAttrInterface(),
      spirv::StorageClassAttr::get(builder.getContext(),
                                   spirv::StorageClass::Workgroup));
  KernelBuffer &buffer = buffers[attribution];
  buffer.memref = memref::AllocOp::create(builder, kernel.getLoc(), shared);
  buffer.element = type.getElementType();
  buffer.granule = getElementBytes(buffer.element);
  buffer.isShared = true;
  return success();
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

LogicalResult ScalarKernel::visitBlock(Block &block) {
  for (Operation &op : block)
    if (failed(visit(&op)))
      return failure();
  return success();
}

LogicalResult ScalarKernel::visitIf(Operation *op) {
  auto branch = cast<scf::IfOp>(op);
  bool hasElse = !branch.getElseRegion().empty();
  auto scalar = scf::IfOp::create(builder, op->getLoc(),
                                  getLaneTypes(op->getResultTypes()),
                                  getScalar(branch.getCondition()), hasElse);
  // Blocks of operations without results already have a terminator.
  auto fill = [&](Block &from, Block &to) {
    OpBuilder::InsertionGuard guard(builder);
    to.clear();
    builder.setInsertionPointToStart(&to);
    return visitBlock(from);
  };
  if (failed(fill(*branch.thenBlock(), *scalar.thenBlock())) ||
      (hasElse && failed(fill(*branch.elseBlock(), *scalar.elseBlock()))))
    return failure();
  setAllLanes(op->getResults(), scalar.getResults());
  return success();
}

LogicalResult ScalarKernel::visitFor(Operation *op) {
  auto loop = cast<scf::ForOp>(op);
  auto scalar = scf::ForOp::create(
      builder, op->getLoc(), getScalar(loop.getLowerBound()),
      getScalar(loop.getUpperBound()), getScalar(loop.getStep()),
      getLanes(loop.getInitArgs()), nullptr, loop.getUnsignedCmp());
  OpBuilder::InsertionGuard guard(builder);
  scalar.getBody()->clear();
  builder.setInsertionPointToStart(scalar.getBody());
  setLanes(loop.getInductionVar(), scalar.getInductionVar());
  setAllLanes(loop.getRegionIterArgs(), scalar.getRegionIterArgs());
  if (failed(visitBlock(*loop.getBody())))
    return failure();
  setAllLanes(op->getResults(), scalar.getResults());
  return success();
}

LogicalResult ScalarKernel::visitWhile(Operation *op) {
  auto loop = cast<scf::WhileOp>(op);
  SmallVector<Value> inits = getLanes(loop.getInits());
  auto scalar = scf::WhileOp::create(builder, op->getLoc(),
                                     getLaneTypes(op->getResultTypes()), inits);
  auto fill = [&](Block &from, Region &to) {
    OpBuilder::InsertionGuard guard(builder);
    SmallVector<Type> types = getLaneTypes(from.getArgumentTypes());
    Block *block =
        builder.createBlock(&to, to.end(), types,
                            SmallVector<Location>(types.size(), op->getLoc()));
    setAllLanes(from.getArguments(), block->getArguments());
    return visitBlock(from);
  };
  if (failed(fill(*loop.getBeforeBody(), scalar.getBefore())) ||
      failed(fill(*loop.getAfterBody(), scalar.getAfter())))
    return failure();
  setAllLanes(op->getResults(), scalar.getResults());
  return success();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

LogicalResult ScalarKernel::visitAccess(Operation *op) {
  Location loc = op->getLoc();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<vector::LoadOp, memref::LoadOp>([&](auto load) {
        const KernelBuffer &buffer = buffers.find(op->getOperand(0))->second;
        auto vector = dyn_cast<VectorType>(load.getType());
        setLanes(load.getResult(),
                 buffer.load(builder, loc, getScalar(load.getIndices().front()),
                             vector ? vector.getNumElements() : 1));
        return success();
      })
      .Case<vector::StoreOp, memref::StoreOp>([&](auto store) {
        buffers.find(store->getOperand(1))
            ->second.store(builder, loc, getScalar(store.getIndices().front()),
                           getLanes(store->getOperand(0)));
        return success();
      })
      .Case([&](memref::GetGlobalOp global) -> LogicalResult {
        std::optional<int64_t> wordOffset = constants.find(global.getName());
        if (!wordOffset)
          return op->emitOpError("expected a global with constant values");
        KernelBuffer buffer;
        buffer.element = global.getType().getElementType();
        int64_t bytes = getElementBytes(buffer.element);
        buffer.memref = constantWords;
        buffer.granule = 4;
        buffer.offset = arith::ConstantIndexOp::create(builder, loc,
                                                       *wordOffset * 4 / bytes);
        buffers[global.getResult()] = buffer;
        return success();
      })
      .Default([&](Operation *) {
        buffers[op->getResult(0)] = buffers.find(op->getOperand(0))->second;
        return success();
      });
}

LogicalResult ScalarKernel::visit(Operation *op) {
  Location loc = op->getLoc();
  // Drops operations that only order loads.
  if (op->getName().getStringRef() == "nvvm.bar.warp.sync")
    return success();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](scf::IfOp) { return visitIf(op); })
      .Case([&](scf::ForOp) { return visitFor(op); })
      .Case([&](scf::WhileOp) { return visitWhile(op); })
      .Case([&](scf::YieldOp) {
        scf::YieldOp::create(builder, loc, getLanes(op->getOperands()));
        return success();
      })
      .Case([&](scf::ConditionOp condition) {
        scf::ConditionOp::create(builder, loc,
                                 getScalar(condition.getCondition()),
                                 getLanes(condition.getArgs()));
        return success();
      })
      .Case([&](gpu::ReturnOp) {
        gpu::ReturnOp::create(builder, loc);
        return success();
      })
      .Case([&](gpu::BlockIdOp id) -> LogicalResult {
        if (id.getDimension() != gpu::Dimension::x)
          return visitLanes(op);
        Value blockId = gpu::BlockIdOp::create(builder, loc, gpu::Dimension::x);
        setLanes(id, Value(arith::AddIOp::create(builder, loc, firstBlock,
                                                 blockId)));
        return success();
      })
      .Case<gpu::GridDimOp, gpu::GlobalIdOp>([&](auto) {
        return op->emitOpError("is not supported: a grid is launched in "
                               "slices along x");
      })
      .Case([&](gpu::BarrierOp) {
        gpu::BarrierOp::create(builder, loc);
        return success();
      })
      .Case<vector::LoadOp, memref::LoadOp, vector::StoreOp, memref::StoreOp,
            memref::GetGlobalOp, memref::CastOp, memref::MemorySpaceCastOp,
            memref::AssumeAlignmentOp>([&](auto) { return visitAccess(op); })
      .Case([&](arith::ConstantOp) { return visitConstant(op); })
      .Case<arith::ExtFOp, arith::TruncFOp, arith::BitcastOp, math::FmaOp>(
          [&](auto) { return visitConversion(op); })
      .Default([&](Operation *) { return visitLanes(op); });
}
