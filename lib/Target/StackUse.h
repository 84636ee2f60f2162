//===- StackUse.h - stack use of entry points -------------------*- C++ -*-===//
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

/// Returns the maximum stack use of a call of `entry` on any thread, in bytes:
/// the frames on the deepest path through the call graph, plus a reserve for
/// the thread itself and for system libraries. An indirect call may reach every
/// function that the constants of `entry` refer to. Returns nullopt for
/// recursion, and for allocas whose size or number is not constant.
std::optional<int64_t> getStackBytes(const llvm::Module &module,
                                     StringRef entry, const Frames &frames);

} // namespace mlir::posenc

#endif // POSENC_LIB_TARGET_STACKUSE_H
