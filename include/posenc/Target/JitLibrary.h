//===- JitLibrary.h - in-memory compilation ---------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TARGET_JITLIBRARY_H
#define POSENC_TARGET_JITLIBRARY_H

#include "posenc/Target/CodeCache.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace mlir::posenc {

/// Options of a library that is compiled in memory.
struct JitOptions {
  /// Replaces this machine's defaults.
  std::optional<Tuning> tuning;
  /// Replaces this machine as the target, whose CPU must be able to run the
  /// code. Has a tuning of its own.
  std::optional<TargetSpec> target;
  GpuTargets gpus;
  bool hasCpuCode = true;
  OptLevel optLevel = OptLevel::O3;
  /// With OpenMP, the process must have loaded libgomp globally.
  Threads threads = Threads::None;
};

/// The symbols of a kernel library, compiled in memory for this machine.
class JitLibrary {
public:
  /// Lowers and compiles a module at any stage, in place. Returns null after an
  /// error diagnostic. Exported symbols have the prefix `posenc`.
  static std::unique_ptr<JitLibrary> create(ModuleOp module,
                                            const CodeCache &cache = {},
                                            const JitOptions &options = {});
  ~JitLibrary();

  /// The address of an exported symbol, or null.
  void *lookup(llvm::StringRef symbol);
  /// Returns the library's metadata, as `posenc_metadata()` does.
  const char *getMetadata();

private:
  struct Impl;
  explicit JitLibrary(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace mlir::posenc

#endif // POSENC_TARGET_JITLIBRARY_H
