//===- ElementKernel.h - operations element by element ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ELEMENTKERNEL_H
#define POSENC_LIB_CODEGEN_GPU_ELEMENTKERNEL_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::posenc {

/// Whether kernels for all GPUs can have the type in memory.
bool isElementOnGpu(Type type);

/// Whether an operation on scalars has the bits of the CPU on the GPU. Quotients
/// and functions do on NVIDIA GPUs, but not on all devices for Vulkan.
bool hasGpuForm(Operation *op, bool hasFunctions);

/// Whether a GPU kernel can compute each output element of a linalg operation
/// on memrefs in a thread of its own, with the CPU's bits; see hasGpuForm.
bool hasElementKernel(linalg::LinalgOp op, bool hasFunctions);

/// Clones an operation on scalars into a kernel, where `mapping` has all of its
/// operands. Arithmetic in 16 bits is in f32, and rounded; indices are i64, as
/// they are on the CPU.
void cloneScalar(OpBuilder &builder, Operation *op, IRMapping &mapping);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ELEMENTKERNEL_H
