//===- ModuleBuilder.h - module with the kernels of a model -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_FRONTEND_MODULEBUILDER_H
#define POSENC_FRONTEND_MODULEBUILDER_H

#include "posenc/Frontend/ModelConfig.h"
#include "posenc/IR/Posenc.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::posenc {

/// The state of the keys in a KV cache: after norm and rotation, or before
/// both.
enum class KeyCache { Rotated, Raw };

/// Element types of KV caches that differ from the queries' type. The last
/// three are quantized, with an operand of scales per cache.
enum class CacheType { F16, BF16, I8, F8E4M3, F8E5M2 };

/// Parts of a quantized cache that have a scale of their own: each row (a token
/// and a head), whose scale is computed, or the whole cache, whose scale is
/// given.
enum class CacheScales { Row, Tensor };

struct ModuleBuilderOptions {
  /// The element type of queries and keys; that of the config if absent.
  std::optional<::posenc::frontend::DType> dtype;
  /// The location of all operations and diagnostics. It is usually the config,
  /// since the module is not parsed from text.
  std::optional<Location> location;
  KeyCache keyCache = KeyCache::Rotated;
  /// The element type of KV caches; that of the queries if absent.
  std::optional<CacheType> cacheType;
  CacheScales cacheScales = CacheScales::Row;
  /// Number of queries per sequence in a call of @decode.
  int64_t decodeTokens = 1;
  /// Whether to build the functions of a server as well.
  bool serving = false;
  /// Whether functions whose frequencies depend on a length that is known at
  /// run time have it as an argument. Otherwise it is 1 + the largest position.
  bool ropeLengthInput = false;
  /// How angles are computed. For `HfF32`, frequencies that depend on a length
  /// need one.
  Precision precision = Precision::Exact;
  /// The width of positions, lengths, slots and cu_seqlens: 64 or 32 bits.
  unsigned indexWidth = 64;
  /// Whether functions with attention also return the log-sum-exp of the
  /// scores.
  bool logSumExp = false;
  /// Whether functions rotate queries and keys. Otherwise the caller does, if
  /// the model needs it.
  bool rotates = true;
  /// Whether attention has the causal mask of the model. Without it, models
  /// that are bidirectional have the functions of a cache, too.
  bool masksLaterKeys = true;
};

/// The names of the function families that `ModuleBuilderOptions::serving`
/// adds.
inline constexpr StringLiteral kServingFamilies[] = {
    "append", "append_paged", "attention_ragged", "attention_paged"};

/// Builds the functions of a model:
///   @sincos(positions) -> (cos, sin): tables of f32 for every element type
///   @rope(q, k, positions) -> (q_out, k_out): batch x tokens x heads x dim
/// and, if the config has an attention,
///   @attention(q, k, v, positions) -> o: batch x tokens x heads x dim
///   @decode(q, k_cache, v_cache, lengths) -> o: attention of the last
///     `decodeTokens` queries of each sequence to caches of batch x heads x
///     capacity x dim. A quantized cache is followed by an argument with its
///     scales, batch x heads x capacity, or 1 x 1 x 1 for
///     `CacheScales::Tensor`.
/// With `serving`, also
///   @append(k, v, lengths, k_cache, v_cache) -> caches: writes the newest
///     keys, rotated unless the cache is raw, and values of each sequence
///   @append_paged(k, v, positions, slots, k_pages, v_pages) -> pages: writes
///     tokens x heads x dim into the slots of a paged cache, pages x heads x
///     slots x dim
///   @attention_ragged(q, k, v, positions, cu_seqlens) -> o: @attention of
///     sequences that follow each other, tokens x heads x dim
///   @attention_paged(q, positions, k_pages, v_pages, block_table, cu_seqlens,
///     lengths) -> o: attention of the last queries of each sequence, any
///     number of them, to its pages
/// Models with several position axes have positions with a leading dimension of
/// axes, also as an argument of @decode after `lengths`, since the lengths do
/// not tell them; raw keys are an error. Models without rotary embedding have
/// no @sincos and @rope. With `ropeLengthInput`, `rope_length` follows
/// `positions`, or `lengths` where the positions follow from them. An
/// encoder-decoder model has @attention_encoder and
/// @attention_decoder instead of @attention.
/// @decode and these are built for causal models only, unless `masksLaterKeys`
/// is false. With `logSumExp`, `lse` is the last result of functions with the
/// result `o`. Without `rotates` there is no @sincos and no @rope, and
/// functions have positions only if queries are multiplied by a factor of
/// their position. Models with attention
/// sinks add an operand `sinks`; norms add `q_norm` and `k_norm`, where @decode
/// has `k_norm` for raw keys only; a learned bias adds `rel_bias`. If layer
/// types differ, each type has functions with its name as a suffix. Layers of a
/// type that do not rotate, while others do, have functions with the further
/// suffix `_nope`. Returns null after an error diagnostic.
OwningOpRef<ModuleOp> buildModule(MLIRContext &context,
                                  const ::posenc::frontend::ModelConfig &config,
                                  const ModuleBuilderOptions &options = {});

} // namespace mlir::posenc

#endif // POSENC_FRONTEND_MODULEBUILDER_H
