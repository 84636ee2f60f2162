//===- KernelModule.h - from MLIR to a kernel library -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TARGET_KERNELMODULE_H
#define POSENC_TARGET_KERNELMODULE_H

#include "posenc/Target/TargetSpec.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/Module.h"

namespace mlir::posenc {

/// How far to lower a module.
enum class Stage { Posenc, Linalg, Vector, Llvm };

/// Lowers a module, which may be at any earlier stage, in place. Errors are
/// diagnostics.
LogicalResult lowerModule(ModuleOp module, Stage stage,
                          const TargetSpec &target);

/// How a library starts threads where the host sets no loop of its own.
enum class Threads { None, OpenMP };

/// Emits the C interface into a module at the LLVM stage, translates it, links
/// the prelude and optimizes for the target. Null after an error diagnostic.
std::unique_ptr<llvm::Module> translateModule(ModuleOp module,
                                              llvm::LLVMContext &context,
                                              const TargetSpec &target,
                                              llvm::StringRef prefix,
                                              Threads threads);

} // namespace mlir::posenc

#endif // POSENC_TARGET_KERNELMODULE_H
