//===- KernelModule.h - LLVM module of a kernel library ---------*- C++ -*-===//
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
#include "posenc/Target/WeightsFile.h"
#include "posenc/TargetInfo/TargetSpec.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/Module.h"

namespace mlir::posenc {

/// The stages of lowering.
enum class Stage { Posenc, Linalg, Tiled, Vector, Llvm };

/// Lowers a module to a stage, in place. `from` is the stage that the module
/// has already reached. Emits a diagnostic on failure.
LogicalResult lowerModule(ModuleOp module, Stage to, const TargetSpec &target,
                          Stage from = Stage::Posenc);

/// How a library starts threads if the host does not set a parallel loop.
enum class Threads { None, OpenMP };

/// How much LLVM optimizes code for CPUs: nothing, or everything. Results are
/// bitwise equal. O0 compiles in less than half of the time, to slower code
/// that needs more stack.
enum class OptLevel { O0, O3 };

/// The parts of a library.
struct LibraryParts {
  /// Modules at the LLVM stage, one for each target, best first; empty if there
  /// is no CPU code.
  llvm::SmallVector<ModuleOp> modules;
  llvm::ArrayRef<TargetSpec> targets;
  /// Null if there is no code for GPUs.
  const GpuCode *gpu = nullptr;
  std::string prefix;
  Threads threads = Threads::OpenMP;
  OptLevel optLevel = OptLevel::O3;
  /// The weights that are in a file, and its name; null if there are none.
  const WeightsFile *weights = nullptr;
  std::string weightsName;

  /// Makes a function take a workspace, or read weights, in all modules if it
  /// does so in any module. The workspace of GPU code is independent of it.
  void unifyKernels();
  /// The functions, and where there is code for each.
  llvm::SmallVector<LibraryKernel> getKernels() const;
  /// The JSON of the metadata that the library has.
  std::string createMetadata(llvm::ArrayRef<LibraryKernel> kernels) const;
};

/// Builds a library from its parts: emits the C interface, translates the
/// modules, links them with the kernel support library, and optimizes each
/// function for its target. Returns null after an error diagnostic.
std::unique_ptr<llvm::Module> translateLibrary(const LibraryParts &parts,
                                               llvm::LLVMContext &context);

} // namespace mlir::posenc

#endif // POSENC_TARGET_KERNELMODULE_H
