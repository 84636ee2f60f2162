//===- RopeTypes.cpp - frequency scalings that a config can name ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RopeTypes.h"

#include "PositionKeys.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace posenc::frontend;
using llvm::StringLiteral;
using llvm::StringRef;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Keys that several scalings share
//===----------------------------------------------------------------------===//

static Field<double> readFactor(RopeContext &context, StringRef key) {
  Field<double> factor =
      context.reader.divisor(context.reader.number(context.dict, key));
  if (!factor.given())
    context.reader.missing(context.dict, key);
  return factor;
}

static void warnIfBelowOne(RopeContext &context, const json::Value &at,
                           double factor) {
  if (factor < 1)
    context.reader.warning(at, "'factor' is " + spelled(factor) +
                                   ", less than 1: it shortens the context");
}

/// Reads the context length of the pretraining, from the dictionary or from the
/// config. The default is the maximum length of the config.
static Field<int64_t> readOriginalLength(RopeContext &context) {
  ConfigReader &reader = context.reader;
  const Field<int64_t> &original = context.original;
  if (!original.given()) {
    if (!context.maxPosition.given())
      reader.error(context.dict,
                   "missing key '" + kOriginalLengthKey +
                       "', and no 'max_position_embeddings' as its default");
    return context.maxPosition;
  }
  const Field<int64_t> &whole = context.maxPosition;
  if (original.value && whole.value && *original.value >= *whole.value)
    reader.warning(original.at(), "'" + kOriginalLengthKey + "' (" +
                                      Twine(*original.value) +
                                      ") is not less than '" + whole.name() +
                                      "' (" + Twine(*whole.value) + ")");
  return original;
}

//===----------------------------------------------------------------------===//
// One function per scaling
//===----------------------------------------------------------------------===//

static void readDefault(RopeContext &, Scaling &) {}

static void readLinear(RopeContext &context, Scaling &scaling) {
  scaling.kind = Scaling::Kind::Linear;
  Field<double> factor = readFactor(context, "factor");
  if (!factor.value)
    return;
  scaling.factor = *factor.value;
  warnIfBelowOne(context, factor.at(), scaling.factor);
}

static void readLlama3(RopeContext &context, Scaling &scaling) {
  scaling.kind = Scaling::Kind::Llama3;
  Field<double> factor = readFactor(context, "factor");
  Field<double> low = readFactor(context, "low_freq_factor");
  Field<double> high = readFactor(context, "high_freq_factor");
  Field<int64_t> original = readOriginalLength(context);
  if (factor.value)
    warnIfBelowOne(context, factor.at(), *factor.value);
  if (low.value && high.value && *high.value < *low.value)
    context.reader.error(high.at(), "'high_freq_factor' (" +
                                        spelled(*high.value) +
                                        ") is less than 'low_freq_factor' (" +
                                        spelled(*low.value) + ")");
  scaling.factor = factor.value.value_or(1);
  scaling.lowFreqFactor = low.value.value_or(1);
  scaling.highFreqFactor = high.value.value_or(1);
  scaling.originalMaxPosition = original.value.value_or(0);
}

/// Reads the factor of YaRN. If it is null, it is the maximum length divided by
/// the original length.
static double readYarnFactor(RopeContext &context,
                             const Field<int64_t> &original) {
  ConfigReader &reader = context.reader;
  const Field<int64_t> &whole = context.maxPosition;
  std::optional<double> ratio;
  if (whole.value && original.value)
    ratio = double(*whole.value) / double(*original.value);

  const json::Member *member = context.dict.find("factor");
  if (member && member->value.isNull()) {
    if (ratio)
      warnIfBelowOne(context, member->value, *ratio);
    else if (!whole.given())
      reader.error(member->value, "'factor' is null, and no "
                                  "'max_position_embeddings' to derive it "
                                  "from");
    return ratio.value_or(1);
  }
  Field<double> factor = readFactor(context, "factor");
  if (!factor.value)
    return 1;
  warnIfBelowOne(context, factor.at(), *factor.value);
  bool ratioGiven = ratio && original.member != whole.member;
  if (ratioGiven && *ratio != *factor.value)
    reader.warning(factor.at(), "'factor' is " + spelled(*factor.value) +
                                    ", but '" + whole.name() + "' / '" +
                                    kOriginalLengthKey + "' is " +
                                    spelled(*ratio));
  return *factor.value;
}

/// Reads a number that must not be negative. Zero counts as not given.
static Field<double> readUnlessZero(RopeContext &context, StringRef key) {
  Field<double> field = context.reader.number(context.dict, key);
  if (!field.value)
    return field;
  if (*field.value == 0)
    return {};
  if (*field.value < 0) {
    context.reader.error(field.at(), "'" + key + "' must not be negative");
    field.value.reset();
  }
  return field;
}

static void readYarn(RopeContext &context, Scaling &scaling) {
  ConfigReader &reader = context.reader;
  scaling.kind = Scaling::Kind::Yarn;
  Field<int64_t> original = readOriginalLength(context);
  scaling.originalMaxPosition = original.value.value_or(0);
  scaling.factor = readYarnFactor(context, original);

  Field<double> fast = readUnlessZero(context, "beta_fast");
  Field<double> slow = readUnlessZero(context, "beta_slow");
  scaling.betaFast = fast.value.value_or(scaling.betaFast);
  scaling.betaSlow = slow.value.value_or(scaling.betaSlow);
  if (!fast.bad() && !slow.bad() && scaling.betaFast < scaling.betaSlow)
    reader.error(fast.given() ? fast.at() : slow.at(),
                 "'beta_fast' (" + spelled(scaling.betaFast) +
                     ") is less than 'beta_slow' (" +
                     spelled(scaling.betaSlow) + ")");

  scaling.attentionFactor =
      reader.positive(context.dict, "attention_factor").value;
  scaling.mscale = readUnlessZero(context, "mscale").value;
  scaling.mscaleAllDim = readUnlessZero(context, "mscale_all_dim").value;
  scaling.truncate =
      reader.boolean(context.dict, "truncate").value.value_or(true);
  // Keys of vLLM.
  scaling.attnFactor = reader.positive(context.dict, "attn_factor").value;
  Field<double> extrapolation =
      reader.positive(context.dict, "extrapolation_factor");
  if (extrapolation.value && *extrapolation.value > 1)
    reader.error(extrapolation.at(),
                 "'extrapolation_factor' must be at most 1");
  scaling.extFactor = extrapolation.value;

  // The ends of the ramp are divided by the logarithm of the base.
  const Field<double> &theta = context.theta;
  if (theta.value && *theta.value > 0 && *theta.value <= 1)
    reader.error(theta.at(), "'" + theta.name() +
                                 "' must be greater than 1 for rope type "
                                 "'yarn', not " +
                                 spelled(*theta.value));
}

/// Reads a factor that, unlike those of the other scalings, may be absent.
static std::optional<double> readOptionalFactor(RopeContext &context,
                                                StringRef key) {
  return context.reader.divisor(context.reader.number(context.dict, key)).value;
}

/// Reports a rotary dimension that has a single pair: the exponent d/(d-2) of
/// the base is not defined for it.
static void requireTwoPairs(RopeContext &context) {
  if (context.rotaryDim == 2)
    context.reader.error(context.dict,
                         "the rotary dimension must be at least 4 for this "
                         "rope type, not 2");
}

/// Returns the length that the kernels are built for, if it is given.
static std::optional<double> readLength(RopeContext &context) {
  return context.length ? std::optional<double>(*context.length) : std::nullopt;
}

static void readNtk(RopeContext &context, Scaling &scaling) {
  scaling.kind = Scaling::Kind::Ntk;
  Field<double> factor = readFactor(context, "factor");
  scaling.factor = factor.value.value_or(1);
  if (factor.value)
    warnIfBelowOne(context, factor.at(), *factor.value);
  // Without the exponent, the form of vLLM and of GTE's own code is that of the
  // exponent 1, theta^(-2i/d) * factor^(-2(i+1)/d). #posenc.ntk without it is
  // another one.
  Field<double> mixed = context.reader.positive(context.dict, "mixed_b");
  scaling.mixedB = mixed.value.value_or(1);
}

static void readDynamic(RopeContext &context, Scaling &scaling) {
  requireTwoPairs(context);
  // The factor of the base itself, for every length (Hunyuan).
  if (std::optional<double> alpha = readOptionalFactor(context, "alpha")) {
    scaling.kind = Scaling::Kind::Ntk;
    scaling.factor = *alpha;
    return;
  }
  scaling.kind = Scaling::Kind::Dynamic;
  Field<double> factor = readFactor(context, "factor");
  scaling.factor = factor.value.value_or(1);
  if (factor.value)
    warnIfBelowOne(context, factor.at(), *factor.value);
  if (!context.maxPosition.given())
    context.reader.error(context.dict,
                         "rope type 'dynamic' needs 'max_position_embeddings'");
  scaling.maxPosition = double(context.maxPosition.value.value_or(1));
  scaling.length = readLength(context);
}

/// Reads a list with a divisor for each pair.
static std::vector<double> readDivisors(RopeContext &context, StringRef key) {
  ConfigReader &reader = context.reader;
  const json::Member *member = ConfigReader::given(context.dict, key);
  if (!member) {
    reader.missing(context.dict, key);
    return {};
  }
  if (!member->value.isArray()) {
    reader.error(member->value, "'" + key +
                                    "' must be a list of numbers, not " +
                                    json::describeKind(member->value));
    return {};
  }
  std::vector<double> result;
  for (const json::Value &element : member->value.elements()) {
    if (!element.isNumber() || !std::isfinite(element.number()) ||
        element.number() < 0x1p-64) {
      reader.error(element, "'" + key +
                                "' must hold finite numbers of at least "
                                "2^-64");
      return {};
    }
    result.push_back(element.number());
  }
  int64_t pairs = context.rotaryDim / 2;
  if (pairs && int64_t(result.size()) != pairs)
    reader.error(member->value, "'" + key + "' must have " + Twine(pairs) +
                                    " numbers, one for each pair of channels, "
                                    "not " +
                                    Twine(result.size()));
  return result;
}

static void readLongrope(RopeContext &context, Scaling &scaling) {
  ConfigReader &reader = context.reader;
  scaling.kind = Scaling::Kind::Longrope;
  scaling.list = readDivisors(context, "short_factor");
  scaling.longList = readDivisors(context, "long_factor");
  Field<int64_t> original = readOriginalLength(context);
  if (original.value && *original.value < 2)
    reader.error(original.at(), "'" + kOriginalLengthKey +
                                    "' must be at least 2 for rope type "
                                    "'longrope'");
  scaling.originalMaxPosition = double(original.value.value_or(2));
  scaling.factor = 1;
  if (std::optional<double> factor = readOptionalFactor(context, "factor"))
    scaling.factor = *factor;
  else if (original.value && context.maxPosition.value)
    scaling.factor =
        double(*context.maxPosition.value) / double(*original.value);
  scaling.attentionFactor =
      reader.positive(context.dict, "attention_factor").value;
  // Separate attention factors of the two lists (Phi 3.5 MoE).
  Field<double> ofShort = reader.positive(context.dict, "short_mscale");
  Field<double> ofLong = reader.positive(context.dict, "long_mscale");
  scaling.length = readLength(context);
  if (!scaling.length && ofShort.value != ofLong.value)
    reader.error(ofLong.given() ? ofLong.at() : ofShort.at(),
                 "'short_mscale' and 'long_mscale' differ, so that the "
                 "attention factor depends on the length of the sequence, "
                 "which is supported for a known length only: pass "
                 "--rope-length=N");
  bool isLong = scaling.length.value_or(0) > scaling.originalMaxPosition;
  if (std::optional<double> own = isLong ? ofLong.value : ofShort.value)
    scaling.attentionFactor = own;
}

static void readProportional(RopeContext &context, Scaling &scaling) {
  scaling.kind = Scaling::Kind::Proportional;
  scaling.factor = readOptionalFactor(context, "factor").value_or(1);
  // `partial_rotary_factor` counts pairs here; all channels have a pair.
  scaling.rotatedPairs = context.rotaryDim / 2;
  if (context.rotaryDim)
    context.rotaryDim = context.headDim;
}

//===----------------------------------------------------------------------===//
// Table of rope types
//===----------------------------------------------------------------------===//

static constexpr StringLiteral commonKeys[] = {
    "rope_type", "type", "rope_theta", "partial_rotary_factor", "mrope_section",
    "mrope_interleaved",
    // Keys of Ministral 3 that do not concern the frequencies.
    "llama_4_scaling_beta", "max_position_embeddings"};
static constexpr StringLiteral linearKeys[] = {"factor"};
static constexpr StringLiteral llama3Keys[] = {
    "factor", "low_freq_factor", "high_freq_factor", kOriginalLengthKey};
static constexpr StringLiteral yarnKeys[] = {
    "factor",      "attention_factor",    "beta_fast", "beta_slow",
    "mscale",      "mscale_all_dim",      "truncate",  kOriginalLengthKey,
    "attn_factor", "extrapolation_factor"};
static constexpr StringLiteral ntkKeys[] = {"factor", "mixed_b"};
// Configs of Hunyuan also have YaRN's keys, which its model ignores.
static constexpr StringLiteral dynamicKeys[] = {
    "factor", "alpha",          "beta_fast",       "beta_slow",
    "mscale", "mscale_all_dim", kOriginalLengthKey};
static constexpr StringLiteral longropeKeys[] = {
    "factor",       "attention_factor", "short_factor",    "long_factor",
    "short_mscale", "long_mscale",      kOriginalLengthKey};
static constexpr StringLiteral proportionalKeys[] = {"factor"};

static constexpr RopeType types[] = {
    {"default", readDefault, {}},
    {"linear", readLinear, linearKeys},
    {"llama3", readLlama3, llama3Keys},
    {"yarn", readYarn, yarnKeys},
    {"dynamic", readDynamic, dynamicKeys},
    {"longrope", readLongrope, longropeKeys},
    {"mrope", readDefault, {}},
    {"ntk", readNtk, ntkKeys},
    {"proportional", readProportional, proportionalKeys},
    // The older name of longrope.
    {"su", readLongrope, longropeKeys},
};

bool RopeType::knowsKey(StringRef key) const {
  return llvm::is_contained(commonKeys, key) || llvm::is_contained(keys, key);
}

const RopeType *posenc::frontend::findRopeType(StringRef name) {
  const RopeType *found = llvm::find_if(
      types, [&](const RopeType &type) { return type.name == name; });
  return found == std::end(types) ? nullptr : found;
}

Scaling posenc::frontend::readScaling(const RopeType &type,
                                      RopeContext &context) {
  Scaling scaling;
  type.read(context, scaling);
  for (const json::Member &member : context.dict.members()) {
    if (type.knowsKey(member.name()) || isUnreadDictionaryKey(member.name()))
      continue;
    context.reader.warning(member.key, "unknown key " + quoted(member.name()) +
                                           " for rope type '" + type.name +
                                           "' is ignored");
    if (member.value.isNumber() && !std::isfinite(member.value.number()))
      context.reader.error(member.value,
                           quoted(member.name()) + " must be a finite number");
  }
  return scaling;
}
