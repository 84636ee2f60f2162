//===- ConfigOptions.cpp - flags that apply to a config.json --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConfigOptions.h"

#include "posenc/Driver/Diagnostics.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::frontend::DType;
namespace frontend = ::posenc::frontend;

static bool refuse(const Twine &message) {
  getErrorStream() << "error: " << message << "\n";
  return false;
}

/// Sets `to` to the choice of the option `name`, if it is given. Returns false
/// after an error, which lists the choices.
template <typename T, typename Target>
static bool choose(StringRef name, const std::optional<std::string> &option,
                   std::initializer_list<std::pair<StringRef, T>> choices,
                   Target &to) {
  if (!option)
    return true;
  std::string words;
  for (const auto &[word, value] : choices) {
    if (word == *option) {
      to = value;
      return true;
    }
    words += words.empty()                           ? ""
             : &word == &std::rbegin(choices)->first ? " or "
                                                     : ", ";
    words += word;
  }
  return refuse("unknown " + name + " '" + *option + "': expected " + words);
}

bool mlir::posenc::parseConfigOptions(const InputOptions &options,
                                      frontend::ReadOptions &readOptions,
                                      ModuleBuilderOptions &builderOptions) {
  if (!choose<DType>("dtype", options.dtype,
                     {{"f32", DType::F32},
                      {"bf16", DType::BF16},
                      {"f16", DType::F16},
                      {"f64", DType::F64}},
                     builderOptions.dtype) ||
      !choose<frontend::Pairing>(
          "pairing", options.pairing,
          {{"half", frontend::Pairing::Half},
           {"interleaved", frontend::Pairing::Interleaved}},
          readOptions.pairing) ||
      !choose<KeyCache>(
          "k-cache", options.keyCache,
          {{"rotated", KeyCache::Rotated}, {"raw", KeyCache::Raw}},
          builderOptions.keyCache) ||
      !choose<CacheType>("cache-dtype", options.cacheType,
                         {{"f16", CacheType::F16},
                          {"bf16", CacheType::BF16},
                          {"i8", CacheType::I8},
                          {"f8e4m3", CacheType::F8E4M3},
                          {"f8e5m2", CacheType::F8E5M2}},
                         builderOptions.cacheType) ||
      !choose<CacheScales>(
          "cache-scales", options.cacheScales,
          {{"row", CacheScales::Row}, {"tensor", CacheScales::Tensor}},
          builderOptions.cacheScales))
    return false;
  if (options.cacheScales &&
      (!builderOptions.cacheType || *builderOptions.cacheType < CacheType::I8))
    return refuse("--cache-scales needs --cache-dtype=i8, f8e4m3 or f8e5m2");
  if (options.decodeTokens) {
    constexpr int64_t maxTokens = 1024;
    int64_t &tokens = builderOptions.decodeTokens;
    if (StringRef(*options.decodeTokens).getAsInteger(10, tokens) ||
        tokens < 1 || tokens > maxTokens)
      return refuse("decode-tokens '" + *options.decodeTokens +
                    "' is not an integer from 1 to " + Twine(maxTokens));
  }
  if (options.ropeLength) {
    int64_t length;
    builderOptions.ropeLengthInput = *options.ropeLength == "input";
    if (!builderOptions.ropeLengthInput) {
      if (StringRef(*options.ropeLength).getAsInteger(10, length) ||
          length < 1 || length > INT32_MAX)
        return refuse("rope-length '" + *options.ropeLength +
                      "' is neither 'input' nor an integer from 1 to 2^31-1");
      readOptions.ropeLength = length;
    }
  }
  if (!choose<Precision>(
          "precision", options.precision,
          {{"exact", Precision::Exact}, {"hf_f32", Precision::HfF32}},
          builderOptions.precision) ||
      !choose<unsigned>("index-type", options.indexType,
                        {{"i64", 64}, {"i32", 32}},
                        builderOptions.indexWidth) ||
      !choose<bool>("rotation", options.rotation,
                    {{"model", true}, {"none", false}},
                    builderOptions.rotates) ||
      !choose<bool>("causal", options.causal, {{"model", true}, {"no", false}},
                    builderOptions.masksLaterKeys))
    return false;
  builderOptions.logSumExp = options.logSumExp;
  readOptions.qkNorm = options.qkNorm;
  return true;
}
