//===- ElementKernel.h - elementwise kernels --------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_THREADS_ELEMENTKERNEL_H
#define POSENC_LIB_CODEGEN_GPU_THREADS_ELEMENTKERNEL_H

#include "GPU/Launch/GpuKernel.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::posenc {

/// Whether kernels on all GPUs can load and store the type.
bool isElementOnGpu(Type type);

/// Whether a scalar operation gives the same bits on the GPU as on the CPU.
/// Divisions and math functions do on NVIDIA GPUs (`hasFunctions`), but not on
/// all Vulkan devices, for which integer divisions are not expanded either.
bool hasGpuForm(Operation *op, bool hasFunctions);

/// Whether a GPU kernel can compute each output element of a linalg operation
/// on memrefs in a thread of its own, with the CPU's bits; see hasGpuForm.
bool hasElementKernel(linalg::LinalgOp op, bool hasFunctions);

/// Returns `blocks`, or 0 where the operation copies an argument of the
/// function to itself, as where caches are appended to in place.
Value skipCopyToItself(OpBuilder &host, linalg::LinalgOp op, Value blocks);

/// Clones an operation on scalars into a kernel, where `mapping` has all of its
/// operands. Arithmetic in 16 bits is in f32, and rounded; indices are i64, as
/// they are on the CPU.
void cloneScalar(OpBuilder &builder, Operation *op, IRMapping &mapping);

/// Whether a scalar of the host depends on an element of a tensor. The host
/// cannot read it, as it is in the memory of the device.
bool isDeviceScalar(Value value);

/// Passes a scalar to a kernel; emits code that computes it there if it depends
/// on an element of a tensor. `mapping` has the scalars passed so far.
Value passScalar(OpBuilder &host, GpuKernel &kernel, Value value,
                 IRMapping &mapping);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_THREADS_ELEMENTKERNEL_H
