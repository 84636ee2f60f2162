//===- CodeCache.h - code that was compiled before --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TARGET_CODECACHE_H
#define POSENC_TARGET_CODECACHE_H

#include "posenc/Target/KernelCode.h"

namespace mlir::posenc {

/// Code that was compiled before, in a folder that processes share. A cache is
/// never in the way: where it cannot be read or written, all is compiled.
class CodeCache {
public:
  /// One that has nothing and keeps nothing.
  CodeCache() = default;
  /// One in the folder that the environment names: POSENC_CACHE (`off`: none),
  /// else `posenc` in XDG_CACHE_HOME, else in `.cache` at HOME.
  static CodeCache fromEnvironment();

  /// A name for all that the code depends on: the module but for its
  /// locations, the options, and the build of this compiler. Empty if there is
  /// no cache for it.
  std::string getKey(ModuleOp module, const CodeOptions &options,
                     CodeKind kind) const;
  /// Nothing unless what the folder has of this name is whole.
  std::optional<KernelCode> load(StringRef key) const;
  /// Keeps the code, and removes the oldest if there is too much.
  void store(StringRef key, const KernelCode &code) const;

private:
  /// Empty if there is none.
  std::string folder;
};

} // namespace mlir::posenc

#endif // POSENC_TARGET_CODECACHE_H
