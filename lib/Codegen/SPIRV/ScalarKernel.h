//===- ScalarKernel.h - kernels without vectors -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_SPIRV_SCALARKERNEL_H
#define POSENC_LIB_CODEGEN_SPIRV_SCALARKERNEL_H

#include "KernelBuffers.h"

namespace mlir::posenc {

/// Rebuilds a kernel on scalars: a vector becomes one value for each lane, and
/// memory becomes a KernelBuffer.
class ScalarKernel {
public:
  ScalarKernel(gpu::GPUFuncOp kernel, const KernelConstants &constants,
               bool isFused)
      : kernel(kernel), constants(constants), isFused(isFused),
        builder(kernel.getContext()) {}

  /// Creates the new kernel after the old one, with the same name. Emits an
  /// error at an operation without a SPIR-V form.
  LogicalResult build();

private:
  LogicalResult addArguments(gpu::GPUFuncOp scalar);
  LogicalResult addShared(BlockArgument attribution);
  Value addScalar(Location loc, Type type, Value words, int64_t &next);

  LogicalResult visitBlock(Block &block);
  LogicalResult visit(Operation *op);
  LogicalResult visitIf(Operation *op);
  LogicalResult visitFor(Operation *op);
  LogicalResult visitWhile(Operation *op);
  LogicalResult visitAccess(Operation *op);
  LogicalResult visitConstant(Operation *op);
  LogicalResult visitConversion(Operation *op);
  LogicalResult visitShape(Operation *op);
  LogicalResult visitReduction(Operation *op);
  LogicalResult visitLanes(Operation *op);

  SmallVector<Value> getLanes(ValueRange values) const;
  ArrayRef<Value> getLanes(Value value) const;
  Value getScalar(Value value) const { return getLanes(value).front(); }
  void setLanes(Value value, ValueRange lanes);
  SmallVector<Type> getLaneTypes(TypeRange types) const;
  /// Maps `from`, results or arguments, to the values of their lanes, in order.
  void setAllLanes(ValueRange from, ValueRange lanes);

  gpu::GPUFuncOp kernel;
  const KernelConstants &constants;
  bool isFused;
  OpBuilder builder;
  /// The buffer of the module's constants, or null.
  Value constantWords;
  /// The index of the launch's first block.
  Value firstBlock;
  DenseMap<Value, SmallVector<Value>> lanes;
  DenseMap<Value, KernelBuffer> buffers;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_SPIRV_SCALARKERNEL_H
