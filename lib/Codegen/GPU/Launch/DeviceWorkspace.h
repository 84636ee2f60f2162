//===- DeviceWorkspace.h - memory of intermediate tensors -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A GPU function allocates nothing. Its intermediate tensors, `memref.alloc` in
// its own block, are parts of a workspace that the caller provides. The same
// host code computes their sizes for a call and for the size of the workspace,
// which callers ask for before they have tensors. So the sizes must follow from
// those of the arguments.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_LAUNCH_DEVICEWORKSPACE_H
#define POSENC_LIB_CODEGEN_GPU_LAUNCH_DEVICEWORKSPACE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::posenc {

/// Returns why a function's memory cannot be in its workspace; nullopt if it
/// can.
std::optional<StringRef> getWorkspaceObstacle(memref::AllocOp memory);

/// Emits the bytes of an intermediate tensor as i64. If they overflow, or a
/// product or sum among its sizes does, the result is INT64_MAX.
Value emitByteSize(OpBuilder &builder, memref::AllocOp memory);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_LAUNCH_DEVICEWORKSPACE_H
