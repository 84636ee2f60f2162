//===- KernelPositions.cpp - positions in a kernel ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelPositions.h"

#include "GPU/Threads/ElementKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::posenc;

linalg::GenericOp mlir::posenc::findPositionsProducer(Value positions) {
  auto memory = positions.getDefiningOp<memref::AllocOp>();
  if (!memory)
    return nullptr;
  linalg::GenericOp producer;
  for (Operation *user : memory->getUsers()) {
    auto generic = dyn_cast<linalg::GenericOp>(user);
    if (generic && !producer)
      producer = generic;
    else if (!isa<PositionalOpInterface, memref::DimOp>(user))
      return nullptr;
  }
  auto isOwn = [&](Value value) {
    return value.getParentBlock() == producer.getBody();
  };
  bool isPlain =
      producer && producer.getDpsInits().size() == 1 &&
      producer.getDpsInits().front() == positions &&
      linalg::isElementwise(producer) &&
      llvm::all_of(producer.getIndexingMapsArray(),
                   [](AffineMap map) { return map.isIdentity(); }) &&
      llvm::all_of(
          producer.getDpsInputs(),
          [](Value input) { return isa<MemRefType>(input.getType()); }) &&
      llvm::all_of(producer.getBody()->getOperations(),
                   [&](Operation &op) {
                     return llvm::all_of(op.getOperands(), isOwn) &&
                            (isa<arith::ArithDialect>(op.getDialect()) ||
                             isa<linalg::YieldOp>(op));
                   }) &&
      producer.getRegionOutputArgs().front().use_empty();
  return isPlain ? producer : nullptr;
}

void mlir::posenc::eraseProducers(ModuleOp module) {
  SmallVector<linalg::GenericOp> unread;
  module.walk([&](linalg::GenericOp generic) {
    auto inits = generic.getDpsInits();
    if (inits.size() == 1 && findPositionsProducer(inits.front()) == generic &&
        inits.front().hasOneUse())
      unread.push_back(generic);
  });
  for (linalg::GenericOp generic : unread) {
    Operation *memory = generic.getDpsInits().front().getDefiningOp();
    generic.erase();
    memory->erase();
  }
}

/// Returns the memref, or for index elements a view of the memory as i64, since
/// an index in a kernel may have 32 bits.
static Value getIntegers(OpBuilder &host, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.getElementType().isIndex())
    return memref;
  Type integers = MemRefType::Builder(type).setElementType(host.getI64Type());
  return UnrealizedConversionCastOp::create(host, memref.getLoc(), integers,
                                            memref)
      .getResult(0);
}

KernelPositions::KernelPositions(OpBuilder &host, GpuKernel &kernel,
                                 Value positions, AxesAttr axes)
    : axes(axes), producer(findPositionsProducer(positions)) {
  if (producer)
    for (Value input : producer.getDpsInputs())
      tensors.push_back(kernel.addTensor(host, getIntegers(host, input)));
  else if (isa<MemRefType>(positions.getType()))
    tensors.push_back(kernel.addTensor(host, getIntegers(host, positions)));
  else
    scalar = kernel.addIndex(host, positions);
}

ExactPhase::Position KernelPositions::load(OpBuilder &builder, Location loc,
                                           const ExactPhase &phases,
                                           ValueRange loops) const {
  if (scalar)
    return phases.loadPosition(builder, loc, scalar, loops);
  SmallVector<Value> values;
  for (int64_t axis = 0, e = axes ? axes.getNumAxes() : 1; axis < e; ++axis) {
    SmallVector<Value> indices;
    if (axes)
      indices.push_back(arith::ConstantIndexOp::create(builder, loc, axis));
    llvm::append_range(indices, loops);
    SmallVector<Value> elements;
    for (const GpuKernel::Tensor &tensor : tensors)
      elements.push_back(memref::LoadOp::create(
          builder, loc, tensor.memref,
          getOffset(builder, loc, indices, tensor.strides)));
    if (!producer) {
      values.push_back(elements.front());
      continue;
    }
    IRMapping mapping;
    Block *body = const_cast<linalg::GenericOp &>(producer).getBody();
    for (auto [argument, element] : llvm::zip(body->getArguments(), elements))
      mapping.map(argument, element);
    for (Operation &op : body->without_terminator())
      cloneScalar(builder, &op, mapping);
    values.push_back(mapping.lookup(body->getTerminator()->getOperand(0)));
  }
  return phases.createPosition(builder, loc, values);
}
