//===- InputOptions.cpp - flags that affect the loaded module -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Driver/Input.h"

#include "posenc/Driver/Options.h"

using namespace mlir::posenc;

void mlir::posenc::addInputOptions(OptionParser &parser,
                                   InputOptions &options) {
  parser.add("dtype", "TYPE",
             "for a config.json: element type f32, bf16, f16 or f64 (default: "
             "the config's)",
             options.dtype);
  parser.add("pairing", "PAIRING",
             "for a config.json: pairing of channels, half or interleaved "
             "(default: the model's)",
             options.pairing);
  parser.add(
      "k-cache", "KIND",
      "for a config.json: whether the cached keys that @decode reads are "
      "rotated or raw (default: rotated)",
      options.keyCache);
  parser.add(
      "cache-dtype", "TYPE",
      "for a config.json: element type of the KV cache that @decode reads, "
      "f16, bf16, i8, f8e4m3 or f8e5m2; i8 and f8 caches take f32 scales as "
      "further arguments (default: the type of the queries)",
      options.cacheType);
  parser.add("cache-scales", "KIND",
             "for a config.json: row for i8 and f8 caches with a scale of each "
             "token and head, or tensor for one scale of all keys and one of "
             "all values, which append is given (default: row)",
             options.cacheScales);
  parser.add("decode-tokens", "N",
             "for a config.json: queries per sequence in a call of @decode "
             "(default: 1)",
             options.decodeTokens);
  parser.add("rope-length", "N|input",
             "for a config.json: length of the sequences, for rope types whose "
             "frequencies depend on it (dynamic, longrope); input: functions "
             "take it as the argument rope_length (default: one more than the "
             "largest position of a call)",
             options.ropeLength);
  parser.add(
      "precision", "PRECISION",
      "exact, or hf_f32 for angles that are rounded as in transformers; for a "
      "module that spells rotations out, cos and sin of known frequencies are "
      "computed with these angles (default: exact for a config.json, else the "
      "tables of the module)",
      options.precision);
  parser.add("qk-norm",
             "for a config.json: attention normalizes queries and keys as the "
             "model does, with the checkpoint's weights q_norm and k_norm",
             options.qkNorm);
  parser.add("index-type", "TYPE",
             "for a config.json: type of positions, lengths, slots and "
             "cu_seqlens, i64 or i32 (default: i64)",
             options.indexType);
  parser.add("lse",
             "for a config.json: functions with attention have a last result "
             "lse, the log-sum-exp of the scores of each query",
             options.logSumExp);
  parser.add("rotation", "KIND",
             "for a config.json: model, or none for functions that take "
             "queries and keys as they are (default: model)",
             options.rotation);
  parser.add("causal", "KIND",
             "for a config.json: model, or no for attention in which queries "
             "see later keys, too (default: model)",
             options.causal);
  parser.add("raise", "yes|no",
             "whether rotary embeddings and attention that a module spells out "
             "in linalg become posenc operations (default: yes)",
             options.raise);
  parser.add("assert", "check|drop",
             "whether calls check the assertions of a module, or nothing does "
             "(default: check)",
             options.assertions);
  parser.add(
      "stack-limit", "BYTES",
      "maximum stack use of a function per thread; a function that needs "
      "more takes a workspace argument (default: no limit)",
      options.stackLimit);
}

void mlir::posenc::addKernelsOption(OptionParser &parser,
                                    InputOptions &options) {
  parser.add("kernels", "NAME,...",
             "functions to compile; for a config.json also 'serving', "
             "those that a server calls (default: all of a module; sincos, "
             "rope, attention and decode of a config.json)",
             [&options](llvm::StringRef text) -> std::optional<std::string> {
               llvm::SmallVector<llvm::StringRef> names;
               text.split(names, ',');
               for (llvm::StringRef name : names) {
                 if (name.empty())
                   return "has an empty name";
                 options.kernels.push_back(name.str());
               }
               return std::nullopt;
             });
}

void mlir::posenc::addOptLevelOption(OptionParser &parser,
                                     std::optional<OptLevel> &level) {
  parser.add("opt-level", "0|3",
             "how much LLVM optimizes code for CPUs; 0 compiles faster, to "
             "slower code that needs more stack, with bitwise equal results "
             "(default: 3)",
             [&level](llvm::StringRef text) -> std::optional<std::string> {
               if (text != "0" && text != "3")
                 return "needs 0 or 3";
               level = text == "0" ? OptLevel::O0 : OptLevel::O3;
               return std::nullopt;
             });
}

std::vector<std::string>
mlir::posenc::getInputFlags(const InputOptions &options) {
  std::vector<std::string> flags;
  auto add = [&](const char *flag, const std::optional<std::string> &value) {
    if (value)
      flags.push_back(flag + *value);
  };
  add("--dtype=", options.dtype);
  add("--pairing=", options.pairing);
  add("--k-cache=", options.keyCache);
  add("--cache-dtype=", options.cacheType);
  add("--cache-scales=", options.cacheScales);
  add("--decode-tokens=", options.decodeTokens);
  add("--rope-length=", options.ropeLength);
  add("--precision=", options.precision);
  if (options.qkNorm)
    flags.push_back("--qk-norm");
  add("--index-type=", options.indexType);
  if (options.logSumExp)
    flags.push_back("--lse");
  add("--rotation=", options.rotation);
  add("--causal=", options.causal);
  add("--raise=", options.raise);
  add("--assert=", options.assertions);
  add("--stack-limit=", options.stackLimit);
  return flags;
}
