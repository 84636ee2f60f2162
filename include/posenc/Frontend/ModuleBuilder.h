//===- ModuleBuilder.h - a model's kernels as a module ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_FRONTEND_MODULEBUILDER_H
#define POSENC_FRONTEND_MODULEBUILDER_H

#include "posenc/Frontend/ModelConfig.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::posenc {

/// What a cache of keys holds: keys that are normed and rotated, or as they
/// were before both.
enum class KeyCache { Rotated, Raw };

/// Other element types of caches than the queries'. The last three are
/// quantized, with scales beside them.
enum class CacheType { F16, BF16, I8, F8E4M3, F8E5M2 };

struct ModuleBuilderOptions {
  /// The element type of queries and keys; the config's own if absent.
  std::optional<::posenc::frontend::DType> dtype;
  /// Where diagnostics point: the config, as a module has no text of its own.
  std::optional<Location> location;
  KeyCache keyCache = KeyCache::Rotated;
  /// The element type of caches; that of queries if absent.
  std::optional<CacheType> cacheType;
  /// The queries of a sequence in a call of @decode.
  int64_t decodeTokens = 1;
};

/// Builds the functions of a model:
///   @sincos(positions) -> (cos, sin), tables of f32 whatever the model's type
///   @rope(q, k, positions) -> (q_out, k_out), over batch, sequence, head, dim
/// and, if the config has an attention,
///   @attention(q, k, v, positions) -> o, of the same layout
///   @decode(q, k_cache, v_cache, lengths) -> o, the last query of a sequence,
///     or the last few, over caches of batch, head, key, dim; a quantized one
///     has its scales, of batch, head, key, right behind it among the arguments
/// with more operands where the model has them: sinks, and with norms q_norm
/// and k_norm, which @decode needs for raw keys only. Where types of layers
/// differ each has functions with its name as a suffix, and where some layers
/// of a type do not rotate these have their own, with `_nope` behind it.
/// Null after an error diagnostic.
OwningOpRef<ModuleOp> buildModule(MLIRContext &context,
                                  const ::posenc::frontend::ModelConfig &config,
                                  const ModuleBuilderOptions &options = {});

} // namespace mlir::posenc

#endif // POSENC_FRONTEND_MODULEBUILDER_H
