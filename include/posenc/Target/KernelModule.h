//===- KernelModule.h - from MLIR to a kernel library -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TARGET_KERNELMODULE_H
#define POSENC_TARGET_KERNELMODULE_H

#include "posenc/ABI/CInterface.h"
#include "posenc/Target/GpuCode.h"
#include "posenc/TargetInfo/TargetSpec.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/Module.h"

namespace mlir::posenc {

/// How far to lower a module.
enum class Stage { Posenc, Linalg, Tiled, Vector, Llvm };

/// Lowers a module in place. It may be at any earlier stage; one that `from`
/// says it has reached is not gone through again. Errors are diagnostics.
LogicalResult lowerModule(ModuleOp module, Stage to, const TargetSpec &target,
                          Stage from = Stage::Posenc);

/// How a library starts threads where the host sets no loop of its own.
enum class Threads { None, OpenMP };

/// What a library is made of.
struct LibraryParts {
  /// At the LLVM stage, one for each target, best first; none if there is no
  /// code for CPUs.
  llvm::SmallVector<ModuleOp> modules;
  llvm::ArrayRef<TargetSpec> targets;
  /// Null if there is no code for GPUs.
  const GpuCode *gpu = nullptr;
  std::string prefix;
  Threads threads = Threads::OpenMP;

  /// Gives a function a workspace in all parts if it has one in any.
  void unifyWorkspaces();
  /// The functions, and where there is code for each.
  llvm::SmallVector<LibraryKernel> getKernels() const;
  /// The JSON of the metadata that the library has.
  std::string createMetadata(llvm::ArrayRef<LibraryKernel> kernels) const;
};

/// Makes one library of its parts: emits the C interface into the modules,
/// translates and links them with the kernel support library, and optimizes
/// each function for its target. Null after an error diagnostic.
std::unique_ptr<llvm::Module> translateLibrary(const LibraryParts &parts,
                                               llvm::LLVMContext &context);

} // namespace mlir::posenc

#endif // POSENC_TARGET_KERNELMODULE_H
