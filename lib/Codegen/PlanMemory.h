//===- PlanMemory.h - intermediate tensors that share memory ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The intermediate tensors of a function, `memref.alloc` in its own block, are
// parts of a workspace that the caller provides. Two of them share a part if
// the first is not needed any more when the second is written, so that the
// workspace of a model does not grow with the number of its layers.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_PLANMEMORY_H
#define POSENC_LIB_CODEGEN_PLANMEMORY_H

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::posenc {

/// An intermediate tensor, and the index of an earlier one of the same function
/// whose memory it takes over, since no operation needs that tensor any more.
/// They have the same number of bytes, and no third tensor takes over the
/// memory of the earlier one.
struct PlannedMemory {
  memref::AllocOp alloc;
  std::optional<size_t> predecessor;
};

/// Moves the allocations and views in the only block of a function to their
/// first users, so that allocations are in the order in which they are needed.
void sinkMemory(FunctionOpInterface function);

/// Returns the intermediate tensors of the only block of a function in order.
/// The operations of that block must run one after the other. More tensors
/// share memory behind sinkMemory.
SmallVector<PlannedMemory> planMemory(FunctionOpInterface function);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_PLANMEMORY_H
