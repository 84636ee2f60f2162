//===- GpuKernel.h - construction of a kernel and its launch ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arguments of a kernel: for each tensor a flat memref of its elements and the
// strides of its non-contiguous dimensions. All accesses of a kernel to a
// tensor have the same number of elements and are aligned to it; the host
// launches the kernel with the widest accesses that addresses and strides
// allow.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_LAUNCH_GPUKERNEL_H
#define POSENC_LIB_CODEGEN_GPU_LAUNCH_GPUKERNEL_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"

namespace mlir::posenc {

/// A `gpu.func` in the gpu.module that belongs to the operation's module.
class GpuKernel {
public:
  /// Begins a kernel for `op` of `threads` threads a block. `suffix` follows
  /// the function's name.
  GpuKernel(Operation *op, StringRef suffix, int64_t threads);

  /// A tensor in the kernel.
  struct Tensor {
    Value memref;
    /// Strides of all dimensions, in elements.
    SmallVector<Value> strides;
  };
  /// Passes a memref of the host as an argument. A memref with constant values
  /// becomes a constant of the kernel module instead.
  Tensor addTensor(OpBuilder &host, Value memref);
  /// Passes memrefs with contiguous elements; returns them in the kernel.
  SmallVector<Value> addTensors(OpBuilder &host, ValueRange memrefs);
  /// Passes an index as an argument; a constant is cloned into the kernel.
  Value addIndex(OpBuilder &host, Value value);
  /// Passes a scalar as an argument; a constant is cloned into the kernel.
  Value addScalar(Value value);
  /// Alignment of shared memory in bytes.
  static constexpr int64_t kSharedAlignment = 16;
  /// Adds shared memory of a block. Must be called after all arguments are
  /// added.
  Value addShared(ArrayRef<int64_t> shape, Type element);

  /// Returns the builder of the body.
  OpBuilder &getBody() { return body; }
  gpu::GPUFuncOp getFunction() const { return function; }
  int64_t getNumThreads() const { return threads; }

  /// Ends the body and emits the launch of `blocks` blocks at `host`.
  /// `sharedBytes` is the size of the kernel's dynamic shared memory.
  void launch(OpBuilder &host, Value blocks, int64_t sharedBytes = 0);

private:
  void setType();
  /// Appends an argument for a value of the host.
  Value addArgument(Value operand);

  gpu::GPUFuncOp function;
  OpBuilder body;
  SmallVector<Value> operands;
  int64_t threads;
};

/// Returns the constant values of a whole memref; null if it is not, or not
/// always, a constant.
DenseElementsAttr getConstantValues(Value memref);

/// Returns the largest number of elements that fit in an access of 16 bytes and
/// divide all of `sizes`.
int64_t getAccessLanes(Type element, ArrayRef<int64_t> sizes);

/// Emits an i1 on the host: whether accesses of `lanes` elements to rows of the
/// memrefs are aligned.
Value areAligned(OpBuilder &builder, Location loc, ValueRange memrefs,
                 int64_t lanes);

/// Stores a vector to the flat memref in accesses of `accessLanes`.
void storeLanes(OpBuilder &builder, Location loc, Value vector, Value memref,
                Value first, int64_t accessLanes);

/// Emits `lhs / rhs` and `lhs % rhs` for values that fit in 32 bits. This takes
/// an eighth of the instructions of a 64-bit division.
std::pair<Value, Value> divide32(OpBuilder &builder, Location loc, Value lhs,
                                 Value rhs);

/// Emits the sum of the products of indices and strides.
Value getOffset(OpBuilder &builder, Location loc, ValueRange indices,
                ValueRange strides);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_LAUNCH_GPUKERNEL_H
