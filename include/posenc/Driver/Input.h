//===- Input.h - modules from files -----------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_DRIVER_INPUT_H
#define POSENC_DRIVER_INPUT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::posenc {

/// Options that change the module that is read, most of them one made from a
/// config.json.
struct InputOptions {
  /// f32, bf16, f16 or f64; the config's own type if absent.
  std::optional<std::string> dtype;
  /// half or interleaved; the model's own pairing if absent.
  std::optional<std::string> pairing;
  /// rotated or raw: what a cache of keys holds; rotated if absent.
  std::optional<std::string> keyCache;
  /// f16, bf16, i8, f8e4m3 or f8e5m2: the element type of caches; that of the
  /// queries if absent.
  std::optional<std::string> cacheType;
  /// How many queries of a sequence are decoded at a time; 1 if absent.
  std::optional<std::string> decodeTokens;
  /// Attention norms its queries and keys.
  bool qkNorm = false;
  /// The bytes of stack that a function may need; any number if absent.
  std::optional<std::string> stackLimit;
  /// Print no warnings of a config.json.
  bool noWarnings = false;
  /// Functions to keep; those that there are by default if empty.
  std::vector<std::string> kernels;
};

class OptionParser;

/// Adds the flags of these options, but for the functions to keep.
void addInputOptions(OptionParser &parser, InputOptions &options);

/// The flags that say the same, as those that were given.
std::vector<std::string> getInputFlags(const InputOptions &options);

/// Reads `.mlir` (text, generic form or bytecode) or a model's `.json`, `-` is
/// standard input (as MLIR). Prints `file:line:col: error:` and returns null
/// on failure.
OwningOpRef<ModuleOp> loadModule(StringRef path, const InputOptions &options,
                                 MLIRContext &context);

} // namespace mlir::posenc

#endif // POSENC_DRIVER_INPUT_H
