//===- KernelCode.h - code of a kernel library ------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TARGET_KERNELCODE_H
#define POSENC_TARGET_KERNELCODE_H

#include "posenc/Target/KernelModule.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mlir::posenc {

class CodeCache;

/// Where the weights of a library are, unless all stay in its code.
struct WeightsOptions {
  /// The name of the file beside the library.
  std::string name;
  /// Weights stay in the code if they have at most this many bytes together.
  int64_t maxEmbeddedBytes = 0;
  /// Files of the model whose tensors may stay in them.
  std::vector<ModelFile> modelFiles = {};
  /// Creates the file, when there are weights for it, and returns the path to
  /// write it to.
  std::function<llvm::Expected<std::string>()> create = {};
};

/// Options of a kernel library.
struct CodeOptions {
  /// Best first, of one architecture, as TargetSpec::parseAll gives them. If
  /// there is no code for CPUs, the first says where that for GPUs is called.
  std::vector<TargetSpec> targets;
  bool hasCpuCode = true;
  GpuTargets gpus;
  /// Functions that there is an error for if a GPU has no code for them.
  std::vector<std::string> neededOnGpu;
  /// The prefix of exported symbols.
  std::string prefix = "posenc";
  Threads threads = Threads::OpenMP;
  OptLevel optLevel = OptLevel::O3;
  std::optional<WeightsOptions> weights;
};

/// PTX and cubins are of the first target for CUDA, and without a header.
enum class CodeKind { LlvmIR, Asm, Object, Ptx, Cubin };

/// One file that has all of a library's code, and the C header to it.
struct KernelCode {
  std::string code, header;
  /// Whether a file of weights belongs to it.
  bool hasWeights = false;
  /// Whether some weights are in files of the model.
  bool refersToModel = false;
};

/// A module as its file has it.
std::string printModule(ModuleOp module);

/// Takes the text of a stage on the way, and a suffix for its file.
using StageHandler = llvm::function_ref<void(StringRef suffix, StringRef text)>;

/// Compiles a module at any stage, and may lower it in place. The code may come
/// from the cache. Returns nullopt after an error diagnostic.
std::optional<KernelCode> generateKernelCode(ModuleOp module,
                                             const CodeOptions &options,
                                             CodeKind kind,
                                             const CodeCache &cache);

/// Does the same without a cache, and passes every stage to a callback.
std::optional<KernelCode> generateKernelCode(ModuleOp module,
                                             const CodeOptions &options,
                                             CodeKind kind,
                                             StageHandler showStage);

} // namespace mlir::posenc

#endif // POSENC_TARGET_KERNELCODE_H
