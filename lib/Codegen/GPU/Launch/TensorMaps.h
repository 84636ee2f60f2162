//===- TensorMaps.h - descriptors of tensors for bulk copies ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tensor map describes a tensor in global memory and the box of it that one
// bulk copy (TMA) moves. The host creates it by `nvgpu.tma.create.descriptor`
// from a strided memref, and passes it to a kernel, whose argument has the same
// type: 128 bytes, by value.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_LAUNCH_TENSORMAPS_H
#define POSENC_LIB_CODEGEN_GPU_LAUNCH_TENSORMAPS_H

#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/Builders.h"

namespace mlir::posenc {

/// Bytes of a tensor map and its alignment, as a CUtensorMap has them.
inline constexpr int64_t kTensorMapBytes = 128, kTensorMapAlignment = 64;

/// Emits an error if the driver could not encode the map for any tensor, or if
/// the tensor is no ranked memref before a cast.
LogicalResult checkTensorMap(nvgpu::TmaCreateDescriptorOp op);

/// Emits the description of a map that is checked, as i64 values: `struct
/// TensorMapWords` of the kernel support library.
SmallVector<Value> emitTensorMapWords(OpBuilder &builder,
                                      nvgpu::TmaCreateDescriptorOp op);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_LAUNCH_TENSORMAPS_H
