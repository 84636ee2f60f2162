//===- QwenKeys.cpp - lengths of Qwen 1 -----------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Beyond `seq_length` tokens L, Qwen 1 changes two things. With
// `use_dynamic_ntk`, a sequence of n tokens has the base
// b * alpha^(d/(d-2)), alpha = 2^ceil(log2(n/L) + 1) - 1. With
// `use_logn_attn`, queries at position p are multiplied by ln(p+1) / ln(L).
//
//===----------------------------------------------------------------------===//

#include "QwenKeys.h"

#include <cmath>

using namespace posenc::frontend;
using llvm::StringRef;
using llvm::Twine;

/// Returns the factor of the base, as an argument of #posenc.ntk, for sequences
/// of `length` tokens.
static double getBaseFactor(int64_t length, int64_t trained) {
  double doublings = std::ceil(std::log2(double(length) / double(trained)) + 1);
  return std::max(std::exp2(doublings) - 1, 1.0);
}

void posenc::frontend::readQwenKeys(ConfigReader &reader,
                                    const json::Value &config,
                                    std::optional<int64_t> ropeLength,
                                    ModelConfig &result) {
  StringRef lengthKey = "seq_length";
  Field<int64_t> trained = reader.count(config, lengthKey);
  Field<bool> dynamic = reader.boolean(config, "use_dynamic_ntk");
  Field<bool> logN = reader.boolean(config, "use_logn_attn");
  if (trained.bad() || dynamic.bad() || logN.bad())
    return;
  bool isDynamic = dynamic.value.value_or(false);
  bool isLogN = logN.value.value_or(false);
  if (!dynamic.given() || !logN.given())
    reader.warning(config,
                   Twine("missing key '") +
                       (dynamic.given() ? "use_logn_attn" : "use_dynamic_ntk") +
                       "', which the model takes as true: the "
                       "functions are those of false, which are the "
                       "same for up to '" +
                       lengthKey + "' tokens");
  if (!isDynamic && !isLogN)
    return;
  if (!trained.given())
    return reader.missing(config, lengthKey);
  if (*trained.value < 2)
    return reader.error(trained.at(), "'" + lengthKey + "' must be at least 2");

  if (isLogN && result.attention)
    result.attention->temperature = {/*beta=*/0, *trained.value, /*offset=*/1,
                                     /*isOfUnrotated=*/false, /*isLogN=*/true};
  if (!isDynamic)
    return;
  if (!ropeLength)
    return reader.error(
        dynamic.at(), "'use_dynamic_ntk' is true: the rotation changes with "
                      "the length of the sequence beyond '" +
                          lengthKey + "' (" + Twine(*trained.value) +
                          ") tokens; pass --rope-length=N, or set it to false "
                          "if no sequence is longer");
  double factor = getBaseFactor(*ropeLength, *trained.value);
  if (factor == 1)
    return;
  if (result.scaling)
    return reader.error(dynamic.at(), "'use_dynamic_ntk' is true beside "
                                      "another scaling of the frequencies");
  if (result.rotaryDim == 2)
    return reader.error(dynamic.at(),
                        "'use_dynamic_ntk' is true, but the rotary dimension "
                        "must be at least 4 for it, not 2");
  result.scaling = mlir::posenc::NtkScalingAttr::get(
      reader.getContext(), reader.real(factor), /*mixed_b=*/nullptr);
}
