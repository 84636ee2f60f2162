//===- StackUse.h - how much stack the entry points of a library need -----===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_TARGET_STACKUSE_H
#define POSENC_LIB_TARGET_STACKUSE_H

#include "posenc/Target/LLVMErrors.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Module.h"

#include <optional>

namespace mlir::posenc {

/// Makes the backend report the frame of each function to LLVMErrors.
void requestFrames(llvm::Module &module);

/// The most stack that a call of `entry` takes on any thread, in bytes: all
/// frames on the deepest way through the call graph, where a call by a pointer
/// reaches every function that the constants of `entry` name, and memory for
/// the thread itself and for what the system's libraries do. Nothing if there
/// is no bound: for recursion, and allocas whose size or number is not
/// constant.
std::optional<int64_t> getStackBytes(const llvm::Module &module,
                                     StringRef entry, const Frames &frames);

} // namespace mlir::posenc

#endif // POSENC_LIB_TARGET_STACKUSE_H
