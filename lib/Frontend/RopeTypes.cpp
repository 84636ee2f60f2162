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

using namespace mlir::posenc;
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

/// Reads `factor` as an argument of an attribute; 1 after an error.
static mlir::FloatAttr readScalingFactor(RopeContext &context) {
  Field<double> factor = readFactor(context, "factor");
  if (factor.value)
    warnIfBelowOne(context, factor.at(), *factor.value);
  return context.reader.real(factor.value.value_or(1));
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

static Scaling readDefault(RopeContext &) { return nullptr; }

static Scaling readLinear(RopeContext &context) {
  return LinearScalingAttr::get(context.reader.getContext(),
                                readScalingFactor(context));
}

static Scaling readLlama3(RopeContext &context) {
  ConfigReader &reader = context.reader;
  mlir::FloatAttr factor = readScalingFactor(context);
  Field<double> low = readFactor(context, "low_freq_factor");
  Field<double> high = readFactor(context, "high_freq_factor");
  Field<int64_t> original = readOriginalLength(context);
  if (low.value && high.value && *high.value < *low.value)
    reader.error(high.at(), "'high_freq_factor' (" + spelled(*high.value) +
                                ") is less than 'low_freq_factor' (" +
                                spelled(*low.value) + ")");
  return Llama3ScalingAttr::get(reader.getContext(), factor,
                                reader.real(low.value.value_or(1)),
                                reader.real(high.value.value_or(1)),
                                reader.real(original.value.value_or(0)));
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

static Scaling readYarn(RopeContext &context) {
  ConfigReader &reader = context.reader;
  Field<int64_t> original = readOriginalLength(context);
  double factor = readYarnFactor(context, original);

  Field<double> fast = readUnlessZero(context, "beta_fast");
  Field<double> slow = readUnlessZero(context, "beta_slow");
  double betaFast = fast.value.value_or(32);
  double betaSlow = slow.value.value_or(1);
  if (!fast.bad() && !slow.bad() && betaFast < betaSlow)
    reader.error(fast.given() ? fast.at() : slow.at(),
                 "'beta_fast' (" + spelled(betaFast) +
                     ") is less than 'beta_slow' (" + spelled(betaSlow) + ")");

  Field<double> attention = reader.positive(context.dict, "attention_factor");
  Field<double> mscale = readUnlessZero(context, "mscale");
  Field<double> mscaleAllDim = readUnlessZero(context, "mscale_all_dim");
  Field<bool> truncate = reader.boolean(context.dict, "truncate");
  // Keys of vLLM.
  Field<double> attnFactor = reader.positive(context.dict, "attn_factor");
  Field<double> extrapolation =
      reader.positive(context.dict, "extrapolation_factor");
  if (extrapolation.value && *extrapolation.value > 1)
    reader.error(extrapolation.at(),
                 "'extrapolation_factor' must be at most 1");

  // The ends of the ramp are divided by the logarithm of the base.
  const Field<double> &theta = context.theta;
  if (theta.value && *theta.value > 0 && *theta.value <= 1)
    reader.error(theta.at(), "'" + theta.name() +
                                 "' must be greater than 1 for rope type "
                                 "'yarn', not " +
                                 spelled(*theta.value));
  return YarnScalingAttr::get(
      reader.getContext(), reader.real(factor),
      reader.real(original.value.value_or(0)), reader.real(betaFast),
      reader.real(betaSlow), truncate.value.value_or(true),
      reader.real(attention.value), reader.real(mscale.value),
      reader.real(mscaleAllDim.value), reader.real(extrapolation.value),
      reader.real(attnFactor.value));
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
static mlir::FloatAttr readLength(RopeContext &context) {
  return context.length ? context.reader.real(*context.length) : nullptr;
}

static Scaling readNtk(RopeContext &context) {
  ConfigReader &reader = context.reader;
  mlir::FloatAttr factor = readScalingFactor(context);
  // Without the exponent, the form of vLLM and of GTE's own code is that of the
  // exponent 1, theta^(-2i/d) * factor^(-2(i+1)/d). #posenc.ntk without it is
  // another one.
  Field<double> mixed = reader.positive(context.dict, "mixed_b");
  return NtkScalingAttr::get(reader.getContext(), factor,
                             reader.real(mixed.value.value_or(1)));
}

static Scaling readDynamic(RopeContext &context) {
  ConfigReader &reader = context.reader;
  requireTwoPairs(context);
  // The factor of the base itself, for every length (Hunyuan).
  if (std::optional<double> alpha = readOptionalFactor(context, "alpha"))
    return NtkScalingAttr::get(reader.getContext(), reader.real(alpha),
                               /*mixed_b=*/nullptr);
  mlir::FloatAttr factor = readScalingFactor(context);
  if (!context.maxPosition.given())
    reader.error(context.dict,
                 "rope type 'dynamic' needs 'max_position_embeddings'");
  return DynamicScalingAttr::get(
      reader.getContext(), factor,
      reader.real(context.maxPosition.value.value_or(1)), readLength(context));
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

static Scaling readLongrope(RopeContext &context) {
  ConfigReader &reader = context.reader;
  std::vector<double> shortList = readDivisors(context, "short_factor");
  std::vector<double> longList = readDivisors(context, "long_factor");
  Field<int64_t> original = readOriginalLength(context);
  if (original.value && *original.value < 2)
    reader.error(original.at(), "'" + kOriginalLengthKey +
                                    "' must be at least 2 for rope type "
                                    "'longrope'");
  int64_t originalLength = original.value.value_or(2);
  std::optional<double> factor = readOptionalFactor(context, "factor");
  if (!factor && original.value && context.maxPosition.value)
    factor = double(*context.maxPosition.value) / double(*original.value);
  std::optional<double> attention =
      reader.positive(context.dict, "attention_factor").value;
  // Separate attention factors of the two lists (Phi 3.5 MoE).
  Field<double> ofShort = reader.positive(context.dict, "short_mscale");
  Field<double> ofLong = reader.positive(context.dict, "long_mscale");
  if (!context.length && ofShort.value != ofLong.value)
    reader.error(ofLong.given() ? ofLong.at() : ofShort.at(),
                 "'short_mscale' and 'long_mscale' differ, so that the "
                 "attention factor depends on the length of the sequence, "
                 "which is supported for a known length only: pass "
                 "--rope-length=N");
  bool isLong = context.length.value_or(0) > originalLength;
  if (std::optional<double> own = isLong ? ofLong.value : ofShort.value)
    attention = own;
  mlir::MLIRContext *owner = reader.getContext();
  return LongropeScalingAttr::get(
      owner, mlir::DenseF64ArrayAttr::get(owner, shortList),
      mlir::DenseF64ArrayAttr::get(owner, longList),
      reader.real(originalLength), readLength(context),
      reader.real(factor.value_or(1)), reader.real(attention));
}

static Scaling readProportional(RopeContext &context) {
  ConfigReader &reader = context.reader;
  std::optional<double> factor = readOptionalFactor(context, "factor");
  // `partial_rotary_factor` counts pairs here; all channels have a pair.
  int64_t rotatedPairs = context.rotaryDim / 2;
  if (context.rotaryDim)
    context.rotaryDim = context.headDim;
  return ProportionalScalingAttr::get(reader.getContext(), rotatedPairs,
                                      reader.real(factor.value_or(1)));
}

//===----------------------------------------------------------------------===//
// Table of rope types
//===----------------------------------------------------------------------===//

// The keys that every type has; PositionKeyTable.cpp describes them.
static constexpr StringLiteral commonKeys[] = {
    "rope_type", "type", "rope_theta", "partial_rotary_factor", "mrope_section",
    "mrope_interleaved",
    // Keys of Ministral 3 that do not concern the frequencies.
    "llama_4_scaling_beta", "max_position_embeddings"};

// Keys of several types.
static constexpr RopeKey factorKey = {
    "factor", "is the factor by which contexts are extended"};
static constexpr RopeKey originalLengthKey = {
    kOriginalLengthKey, "is the length of the training before the scaling"};
static constexpr RopeKey attentionFactorKey = {"attention_factor",
                                               "multiplies cos and sin"};
static constexpr RopeKey betaFastKey = {
    "beta_fast", "bounds the frequencies that yarn scales"};
static constexpr RopeKey betaSlowKey = {
    "beta_slow", "bounds the frequencies that yarn scales"};
static constexpr RopeKey mscaleKey = {"mscale",
                                      "sets the factor of cos and sin of yarn"};
static constexpr RopeKey mscaleAllDimKey = {
    "mscale_all_dim", "sets the factor of cos and sin of yarn, and that of the "
                      "scores of latent attention"};

static constexpr RopeKey linearKeys[] = {factorKey};
static constexpr RopeKey llama3Keys[] = {
    factorKey,
    {"low_freq_factor", "bounds the frequencies that llama3 scales"},
    {"high_freq_factor", "bounds the frequencies that llama3 scales"},
    originalLengthKey};
static constexpr RopeKey yarnKeys[] = {
    factorKey,
    attentionFactorKey,
    betaFastKey,
    betaSlowKey,
    mscaleKey,
    mscaleAllDimKey,
    {"truncate", "rounds the bounds of yarn to whole pairs"},
    originalLengthKey,
    {"attn_factor", "multiplies cos and sin of yarn"},
    {"extrapolation_factor", "weakens the interpolation of yarn"}};
static constexpr RopeKey ntkKeys[] = {
    factorKey, {"mixed_b", "is the exponent of ntk; 1 if absent"}};
// Configs of Hunyuan also have YaRN's keys, which its model ignores.
static constexpr RopeKey dynamicKeys[] = {
    factorKey,        {"alpha", "is the factor of the base of dynamic"},
    betaFastKey,      betaSlowKey,
    mscaleKey,        mscaleAllDimKey,
    originalLengthKey};
static constexpr RopeKey longropeKeys[] = {
    factorKey,
    attentionFactorKey,
    {"short_factor", "lists the divisors of longrope for short sequences"},
    {"long_factor", "lists the divisors of longrope for long sequences"},
    {"short_mscale", "multiplies cos and sin of longrope for short sequences"},
    {"long_mscale", "multiplies cos and sin of longrope for long sequences"},
    originalLengthKey};
static constexpr RopeKey proportionalKeys[] = {factorKey};

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
  return llvm::is_contained(commonKeys, key) ||
         llvm::any_of(keys,
                      [&](const RopeKey &known) { return known.name == key; });
}

std::vector<RopeKey> posenc::frontend::getRopeKeys() {
  std::vector<RopeKey> result;
  for (const RopeType &type : types)
    for (const RopeKey &key : type.keys)
      if (llvm::none_of(result, [&](const RopeKey &other) {
            return other.name == key.name;
          }))
        result.push_back(key);
  return result;
}

const RopeType *posenc::frontend::findRopeType(StringRef name) {
  const RopeType *found = llvm::find_if(
      types, [&](const RopeType &type) { return type.name == name; });
  return found == std::end(types) ? nullptr : found;
}

Scaling posenc::frontend::readScaling(const RopeType &type,
                                      RopeContext &context) {
  Scaling scaling = type.read(context);
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
