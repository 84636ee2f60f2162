//===- InputOptions.cpp - flags that affect the loaded module -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Driver/Input.h"

#include "ConfigOptions.h"

#include "posenc/Driver/Options.h"

using namespace mlir::posenc;
using llvm::StringLiteral;
using llvm::StringRef;

namespace {
/// A flag of InputOptions.
struct InputFlag {
  StringLiteral name;
  /// Stands for its value in the help; empty for a flag without one.
  StringLiteral value;
  /// Whether it applies only to a module that is built from a config.json.
  bool isForConfig;
  StringLiteral help;
  std::optional<std::string> InputOptions::*text;
  bool InputOptions::*isSet = nullptr;
};
} // namespace

static constexpr InputFlag inputFlags[] = {
    {"--dtype", "TYPE", /*isForConfig=*/true,
     "element type f32, bf16, f16 or f64 (default: the config's)",
     &InputOptions::dtype},
    {"--pairing", "PAIRING", /*isForConfig=*/true,
     "pairing of channels, half or interleaved (default: the model's)",
     &InputOptions::pairing},
    {"--k-cache", "KIND", /*isForConfig=*/true,
     "whether the cached keys that @decode reads are rotated or raw "
     "(default: rotated)",
     &InputOptions::keyCache},
    {"--cache-dtype", "TYPE", /*isForConfig=*/true,
     "element type of the KV cache that @decode reads, f16, bf16, i8, "
     "f8e4m3 or f8e5m2; i8 and f8 caches take f32 scales as further "
     "arguments (default: the type of the queries)",
     &InputOptions::cacheType},
    {"--cache-scales", "KIND", /*isForConfig=*/true,
     "row for i8 and f8 caches with a scale of each token and head, or "
     "tensor for one scale of all keys and one of all values, which append "
     "is given (default: row)",
     &InputOptions::cacheScales},
    {"--decode-tokens", "N", /*isForConfig=*/true,
     "queries per sequence in a call of @decode (default: 1)",
     &InputOptions::decodeTokens},
    {"--rope-length", "N|input", /*isForConfig=*/true,
     "length of the sequences, for rope types whose frequencies depend on "
     "it (dynamic, longrope); input: functions take it as the argument "
     "rope_length (default: one more than the largest position of a call)",
     &InputOptions::ropeLength},
    {"--precision", "PRECISION", /*isForConfig=*/false,
     "exact, or hf_f32 for angles that are rounded as in transformers; for "
     "a module that spells rotations out, cos and sin of known frequencies "
     "are computed with these angles (default: exact for a config.json, "
     "else the tables of the module)",
     &InputOptions::precision},
    {"--qk-norm", "", /*isForConfig=*/true,
     "attention normalizes queries and keys as the model does, with the "
     "checkpoint's weights q_norm and k_norm",
     /*text=*/nullptr, &InputOptions::qkNorm},
    {"--index-type", "TYPE", /*isForConfig=*/true,
     "type of positions, lengths, slots and cu_seqlens, i64 or i32 "
     "(default: i64)",
     &InputOptions::indexType},
    {"--lse", "", /*isForConfig=*/true,
     "functions with attention have a last result lse, the log-sum-exp of "
     "the scores of each query",
     /*text=*/nullptr, &InputOptions::logSumExp},
    {"--rotation", "KIND", /*isForConfig=*/true,
     "model, or none for functions that take queries and keys as they are "
     "(default: model)",
     &InputOptions::rotation},
    {"--causal", "KIND", /*isForConfig=*/true,
     "model, or no for attention in which queries see later keys, too "
     "(default: model)",
     &InputOptions::causal},
    {"--raise", "yes|no", /*isForConfig=*/false,
     "whether rotary embeddings, attention and sinusoidal tables that a "
     "module spells out in linalg become posenc operations (default: yes)",
     &InputOptions::raise},
    {"--assert", "check|drop", /*isForConfig=*/false,
     "whether calls check the assertions of a module, or nothing does "
     "(default: check)",
     &InputOptions::assertions},
    {"--constants", "FILE", /*isForConfig=*/false,
     "file of the safetensors format, whose tensors replace the arguments of "
     "a module that have their names",
     &InputOptions::constants},
    {"--stack-limit", "BYTES", /*isForConfig=*/false,
     "maximum stack use of a function per thread; a function that needs "
     "more takes a workspace argument (default: no limit)",
     &InputOptions::stackLimit},
};

void mlir::posenc::addInputOptions(OptionParser &parser,
                                   InputOptions &options) {
  for (const InputFlag &flag : inputFlags) {
    StringRef name = flag.name.drop_front(2);
    std::string help = flag.help.str();
    if (flag.isForConfig)
      help = "for a config.json: " + help;
    if (flag.isSet)
      parser.add(name, help, options.*flag.isSet);
    else
      parser.add(name, flag.value, help, options.*flag.text);
  }
}

StringRef mlir::posenc::findConfigFlag(const InputOptions &options) {
  for (const InputFlag &flag : inputFlags)
    if (flag.isForConfig &&
        (flag.isSet ? options.*flag.isSet : (options.*flag.text).has_value()))
      return flag.name;
  return "";
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
  for (const InputFlag &flag : inputFlags) {
    if (flag.isSet && options.*flag.isSet)
      flags.push_back(flag.name.str());
    else if (flag.text && options.*flag.text)
      flags.push_back(flag.name.str() + "=" + *(options.*flag.text));
  }
  return flags;
}
