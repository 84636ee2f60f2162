//===- CodeCache.h - cache of compiled code ---------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TARGET_CODECACHE_H
#define POSENC_TARGET_CODECACHE_H

#include "posenc/Target/KernelCode.h"

#include "llvm/Support/Error.h"

namespace mlir::posenc {

/// A cache of compiled code in a folder that processes share. The folder and
/// its entries must be files of the user or of root that nobody else can write.
/// Errors of the cache are never fatal: the code is compiled without it.
class CodeCache {
public:
  /// Creates a cache that stores nothing.
  CodeCache() = default;
  /// Creates a cache in the folder given by the environment: POSENC_CACHE
  /// (`off` disables it), else `posenc` in XDG_CACHE_HOME, else in `.cache` in
  /// HOME.
  static CodeCache fromEnvironment();

  /// A name for all that the code depends on: the module but for its
  /// locations, the options, the CPU and features of each target (those of this
  /// machine for `host`), and the build of this compiler. Empty if there is no
  /// cache for it.
  std::string getKey(ModuleOp module, const CodeOptions &options,
                     CodeKind kind) const;
  /// Returns the code for a key; nullopt if there is none or the file is
  /// corrupt. It is an error if others may have written the folder or the
  /// entry.
  llvm::Expected<std::optional<KernelCode>> load(StringRef key) const;
  /// Keeps the code, and removes the oldest if there is too much.
  llvm::Error store(StringRef key, const KernelCode &code) const;

private:
  /// Empty if the cache is disabled.
  std::string folder;
};

} // namespace mlir::posenc

#endif // POSENC_TARGET_CODECACHE_H
