//===- Input.h - loading of input modules -----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_DRIVER_INPUT_H
#define POSENC_DRIVER_INPUT_H

#include "posenc/Target/KernelModule.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mlir::posenc {

/// Options that affect the loaded module. Most of them apply only to a module
/// built from a model's config.json.
struct InputOptions {
  /// f32, bf16, f16 or f64. Default: the config's type.
  std::optional<std::string> dtype;
  /// half or interleaved. Default: the model's pairing.
  std::optional<std::string> pairing;
  /// rotated or raw: whether the keys in the cache are rotated. Default:
  /// rotated.
  std::optional<std::string> keyCache;
  /// f16, bf16, i8, f8e4m3 or f8e5m2: the element type of the KV cache.
  /// Default: the type of the queries.
  std::optional<std::string> cacheType;
  /// row or tensor: what has a scale in i8 and f8 caches. Default: row.
  std::optional<std::string> cacheScales;
  /// Queries per sequence in a call of `@decode`. Default: 1.
  std::optional<std::string> decodeTokens;
  /// The length that rotations which depend on it are built for.
  std::optional<std::string> ropeLength;
  /// exact or hf_f32: how angles are computed. Default: exact for a
  /// config.json; modules that spell rotations out keep their tables.
  std::optional<std::string> precision;
  /// Whether attention normalizes its queries and keys.
  bool qkNorm = false;
  /// i64 or i32: the type of positions, lengths, slots and cu_seqlens. Default:
  /// i64.
  std::optional<std::string> indexType;
  /// Whether functions with attention also return the log-sum-exp.
  bool logSumExp = false;
  /// model or none: whether functions rotate as the model does. Default: model.
  std::optional<std::string> rotation;
  /// model or no: whether attention has the causal mask of the model. Default:
  /// model.
  std::optional<std::string> causal;
  /// yes or no: whether rotations, attention and sinusoidal tables in linalg
  /// are raised to posenc. Default: yes. Applies to modules, not to a
  /// config.json.
  std::optional<std::string> raise;
  /// check or drop: what becomes of cf.assert. Default: check, by the entry
  /// points, which is possible for comparisons of sizes only.
  std::optional<std::string> assertions;
  /// A file of the safetensors format, whose tensors replace the arguments with
  /// their names. Applies to modules.
  std::optional<std::string> constants;
  /// Maximum stack use of a function in bytes. Default: unlimited.
  std::optional<std::string> stackLimit;
  /// Whether to suppress warnings.
  bool noWarnings = false;
  /// Names of the functions to keep. Default: all.
  std::vector<std::string> kernels;
  /// Whether a name in `kernels` that is one of a function means that one
  /// alone. Otherwise it also means the function of the layers that do not
  /// rotate.
  bool namesOneFunction = false;
};

class OptionParser;

/// Adds the flags of `options` to the parser, except for `noWarnings` and
/// `kernels`. `options` must outlive the parser.
void addInputOptions(OptionParser &parser, InputOptions &options);

/// Adds the flag `--kernels`, which sets `options.kernels`. `options` must
/// outlive the parser.
void addKernelsOption(OptionParser &parser, InputOptions &options);

/// Adds the flag of the optimization level. `level` must outlive the parser.
void addOptLevelOption(OptionParser &parser, std::optional<OptLevel> &level);

/// Returns the command-line flags that `options` was parsed from, without those
/// of `noWarnings` and `kernels`.
std::vector<std::string> getInputFlags(const InputOptions &options);

/// Functions that loadModule() calls on the way; each may be empty.
struct LoadHooks {
  /// Takes the bytes of the input.
  std::function<void(StringRef)> onRead;
  /// Takes the module as it was read or built.
  std::function<void(ModuleOp)> onBuilt;
  /// Takes the module in MLIR's own dialects, before it is raised.
  std::function<void(ModuleOp)> onImported;
  /// Takes each file of external data of an ONNX model, by its path without
  /// links, and its memory.
  std::function<void(StringRef, std::shared_ptr<llvm::MemoryBuffer>)>
      onExternalData;
};

/// Loads a model's config from a path that ends with `.json`, an ONNX model
/// from one that ends with `.onnx`, and MLIR (text or bytecode) from any other;
/// `-` is MLIR on standard input. On failure, prints `file:line:col: error:
/// text` and returns null.
OwningOpRef<ModuleOp> loadModule(StringRef path, const InputOptions &options,
                                 MLIRContext &context,
                                 const LoadHooks &hooks = {});

/// Loads a module from a text, or the bytes of MLIR's bytecode. `name` stands
/// for the path: in diagnostics, and as its suffix says what the text is.
OwningOpRef<ModuleOp> loadModuleFromText(StringRef name, StringRef text,
                                         const InputOptions &options,
                                         MLIRContext &context,
                                         const LoadHooks &hooks = {});

} // namespace mlir::posenc

#endif // POSENC_DRIVER_INPUT_H
