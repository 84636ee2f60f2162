//===- ConfigOptions.cpp - flags that apply to a config.json --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConfigOptions.h"

#include "posenc/Driver/Diagnostics.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::frontend::DType;
namespace frontend = ::posenc::frontend;

static std::optional<DType> parseDType(StringRef name) {
  return llvm::StringSwitch<std::optional<DType>>(name)
      .Case("f32", DType::F32)
      .Case("bf16", DType::BF16)
      .Case("f16", DType::F16)
      .Case("f64", DType::F64)
      .Default(std::nullopt);
}

static std::optional<frontend::Pairing> parsePairing(StringRef name) {
  return llvm::StringSwitch<std::optional<frontend::Pairing>>(name)
      .Case("half", frontend::Pairing::Half)
      .Case("interleaved", frontend::Pairing::Interleaved)
      .Default(std::nullopt);
}

static std::optional<KeyCache> parseKeyCache(StringRef name) {
  return llvm::StringSwitch<std::optional<KeyCache>>(name)
      .Case("rotated", KeyCache::Rotated)
      .Case("raw", KeyCache::Raw)
      .Default(std::nullopt);
}

static std::optional<CacheType> parseCacheType(StringRef name) {
  return llvm::StringSwitch<std::optional<CacheType>>(name)
      .Case("f16", CacheType::F16)
      .Case("bf16", CacheType::BF16)
      .Case("i8", CacheType::I8)
      .Case("f8e4m3", CacheType::F8E4M3)
      .Case("f8e5m2", CacheType::F8E5M2)
      .Default(std::nullopt);
}

static bool fail(const Twine &message) {
  getErrorStream() << "error: " << message << "\n";
  return false;
}

bool mlir::posenc::parseConfigOptions(const InputOptions &options,
                                      frontend::ReadOptions &readOptions,
                                      ModuleBuilderOptions &builderOptions) {
  if (options.dtype) {
    builderOptions.dtype = parseDType(*options.dtype);
    if (!builderOptions.dtype)
      return fail("unknown dtype '" + *options.dtype +
                  "': expected f32, bf16, f16 or f64");
  }
  if (options.pairing) {
    readOptions.pairing = parsePairing(*options.pairing);
    if (!readOptions.pairing)
      return fail("unknown pairing '" + *options.pairing +
                  "': expected half or interleaved");
  }
  if (options.keyCache) {
    std::optional<KeyCache> cache = parseKeyCache(*options.keyCache);
    if (!cache)
      return fail("unknown k-cache '" + *options.keyCache +
                  "': expected rotated or raw");
    builderOptions.keyCache = *cache;
  }
  if (options.cacheType) {
    builderOptions.cacheType = parseCacheType(*options.cacheType);
    if (!builderOptions.cacheType)
      return fail("unknown cache-dtype '" + *options.cacheType +
                  "': expected f16, bf16, i8, f8e4m3 or f8e5m2");
  }
  if (options.cacheScales) {
    StringRef kind = *options.cacheScales;
    if (kind != "row" && kind != "tensor")
      return fail("unknown cache-scales '" + kind +
                  "': expected row or tensor");
    if (!builderOptions.cacheType || *builderOptions.cacheType < CacheType::I8)
      return fail("--cache-scales needs --cache-dtype=i8, f8e4m3 or f8e5m2");
    builderOptions.cacheScales =
        kind == "row" ? CacheScales::Row : CacheScales::Tensor;
  }
  if (options.decodeTokens) {
    constexpr int64_t maxTokens = 1024;
    int64_t &tokens = builderOptions.decodeTokens;
    if (StringRef(*options.decodeTokens).getAsInteger(10, tokens) ||
        tokens < 1 || tokens > maxTokens)
      return fail("decode-tokens '" + *options.decodeTokens +
                  "' is not an integer from 1 to " + Twine(maxTokens));
  }
  if (options.ropeLength) {
    int64_t length;
    builderOptions.ropeLengthInput = *options.ropeLength == "input";
    if (!builderOptions.ropeLengthInput) {
      if (StringRef(*options.ropeLength).getAsInteger(10, length) ||
          length < 1 || length > INT32_MAX)
        return fail("rope-length '" + *options.ropeLength +
                    "' is neither 'input' nor an integer from 1 to 2^31-1");
      readOptions.ropeLength = length;
    }
  }
  if (options.precision) {
    std::optional<Precision> precision = symbolizePrecision(*options.precision);
    if (!precision)
      return fail("unknown precision '" + *options.precision +
                  "': expected exact or hf_f32");
    builderOptions.precision = *precision;
  }
  if (options.indexType) {
    if (*options.indexType != "i64" && *options.indexType != "i32")
      return fail("unknown index-type '" + *options.indexType +
                  "': expected i64 or i32");
    builderOptions.indexWidth = *options.indexType == "i64" ? 64 : 32;
  }
  if (options.rotation) {
    if (*options.rotation != "model" && *options.rotation != "none")
      return fail("unknown rotation '" + *options.rotation +
                  "': expected model or none");
    builderOptions.rotates = *options.rotation == "model";
  }
  if (options.causal) {
    if (*options.causal != "model" && *options.causal != "no")
      return fail("unknown causal '" + *options.causal +
                  "': expected model or no");
    builderOptions.masksLaterKeys = *options.causal == "model";
  }
  builderOptions.logSumExp = options.logSumExp;
  readOptions.qkNorm = options.qkNorm;
  return true;
}

StringRef mlir::posenc::findConfigFlag(const InputOptions &options) {
  return options.dtype          ? "--dtype"
         : options.pairing      ? "--pairing"
         : options.keyCache     ? "--k-cache"
         : options.cacheType    ? "--cache-dtype"
         : options.cacheScales  ? "--cache-scales"
         : options.decodeTokens ? "--decode-tokens"
         : options.ropeLength   ? "--rope-length"
         : options.qkNorm       ? "--qk-norm"
         : options.indexType    ? "--index-type"
         : options.logSumExp    ? "--lse"
         : options.rotation     ? "--rotation"
         : options.causal       ? "--causal"
                                : "";
}
