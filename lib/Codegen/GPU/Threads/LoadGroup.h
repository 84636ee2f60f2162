//===- LoadGroup.h - loads that are under way at once -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_THREADS_LOADGROUP_H
#define POSENC_LIB_CODEGEN_GPU_THREADS_LOADGROUP_H

#include "ThreadBuilder.h"

namespace mlir::posenc {

/// Code in which a thread waits for global memory once rather than for each of
/// its loads: those of all items come before the first use of any of them, as
/// far as no load needs the result of another. The code must not store to
/// global memory, and must have its loads outside of branches and loops.
class LoadGroup {
public:
  /// Begins at the insertion point. Loads that take more than `maxRegisters`
  /// registers of 32 bits end before a later item.
  LoadGroup(ThreadBuilder &builder, int64_t maxRegisters);
  ~LoadGroup() { finish(); }
  /// Ends an item: those that follow may wait for its loads.
  void endItem();

private:
  SmallVector<Operation *> getOperations();
  void start();
  void finish();

  ThreadBuilder &b;
  int64_t maxRegisters;
  Block *block;
  /// The operation before the group; null if it is the first of the block.
  Operation *before;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_THREADS_LOADGROUP_H
