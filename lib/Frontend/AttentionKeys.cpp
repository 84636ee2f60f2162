//===- AttentionKeys.cpp - what a config says of its attention --*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionKeys.h"

#include "HeadShape.h"
#include "LayerTypes.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace posenc::frontend;
using llvm::StringLiteral;
using llvm::StringRef;

namespace {

class AttentionReader {
public:
  AttentionReader(ConfigReader &reader, const json::Value &config,
                  const ModelRow &row, ModelConfig &model)
      : reader(reader), config(config), row(row), facts(row.attention),
        model(model) {}

  bool read(bool qkNorm, AttentionConfig &result);

private:
  bool isLatent() const { return row.keys->keyHeadRule == KeyHeads::One; }
  bool readLatentShape(AttentionConfig &result);
  void readScale(AttentionConfig &result);
  std::optional<double> getLatentScale(const AttentionConfig &result) const;
  void readSoftCap(AttentionConfig &result);
  std::optional<int64_t> readWindow();
  std::vector<std::string> deriveTypes(bool hasWindow);
  int64_t readCount(StringRef key, int64_t absent);
  bool readLayers(AttentionConfig &result);

  ConfigReader &reader;
  const json::Value &config;
  const ModelRow &row;
  const AttentionRow &facts;
  ModelConfig &model;
};

/// A key whose absence means a number.
int64_t AttentionReader::readCount(StringRef key, int64_t absent) {
  return reader.count(config, key).value.value_or(absent);
}

/// Of a latent attention after its keys and values are expanded, as
/// transformers keeps them: the channels that rotate come last.
bool AttentionReader::readLatentShape(AttentionConfig &result) {
  int64_t plain = readCount("qk_nope_head_dim", facts.defaultPlainDim);
  result.valueDim = readCount("v_head_dim", facts.defaultValueDim);
  if (plain == 0 || result.valueDim == 0)
    return false;
  result.numKeyValueHeads = model.numHeads;
  result.headDim = plain + model.headDim;
  result.rotaryOffset = plain + model.rotaryOffset;
  return true;
}

/// YaRN's temperature goes to the scores, squared, where it does not go to the
/// tables.
std::optional<double>
AttentionReader::getLatentScale(const AttentionConfig &result) const {
  const Scaling &scaling = model.scaling;
  if (scaling.kind != Scaling::Kind::Yarn || !scaling.mscaleAllDim ||
      !(scaling.factor > 1))
    return std::nullopt;
  double g = 0.1 * *scaling.mscaleAllDim * std::log(scaling.factor) + 1;
  return g * g / std::sqrt(double(result.headDim));
}

void AttentionReader::readScale(AttentionConfig &result) {
  Field<double> multiplier = reader.positive(config, "attention_multiplier");
  Field<double> scalar = reader.positive(config, "query_pre_attn_scalar");
  if (multiplier.value)
    result.scale = multiplier.value;
  else if (facts.defaultMultiplier != 0)
    result.scale = facts.defaultMultiplier;
  else if (scalar.value)
    result.scale = 1 / std::sqrt(*scalar.value);
  else if (facts.defaultQueryScalar != 0)
    result.scale = 1 / std::sqrt(facts.defaultQueryScalar);
  else if (isLatent())
    result.scale = getLatentScale(result);
}

void AttentionReader::readSoftCap(AttentionConfig &result) {
  StringRef key = "attn_logit_softcapping";
  result.softCap = reader.positive(config, key).value;
  // Null says that there is none.
  if (facts.defaultSoftCap != 0 && !config.find(key))
    result.softCap = facts.defaultSoftCap;
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

std::optional<int64_t> AttentionReader::readWindow() {
  Field<bool> isUsed = reader.boolean(config, "use_sliding_window");
  StringRef key = row.keys->window[0];
  Field<int64_t> window = reader.count(config, key);
  if (!isUsed.value.value_or(!facts.slidesOnRequest))
    return std::nullopt;
  std::optional<int64_t> size = window.value;
  if (!config.find(key) && facts.defaultWindow != 0)
    size = facts.defaultWindow;
  if (size && facts.hasWholeWindow)
    size = *size / 2 + 1;
  return size;
}

/// The types of the layers where `layer_types` does not say them; nothing if
/// all are alike.
std::vector<std::string> AttentionReader::deriveTypes(bool hasWindow) {
  std::vector<std::string> rotating;
  for (const LayerRotation &rotation : model.rotations)
    rotating.push_back(rotation.type);
  if (!hasWindow || !rotating.empty())
    return rotating;
  std::string full = kFullLayers.str(), sliding = kSlidingLayers.str();
  switch (facts.sliding) {
  case SlidingLayers::All:
    return {};
  case SlidingLayers::EveryNth: {
    // As letters, "LLLG", it says the same as the default.
    StringRef key = "sliding_window_pattern";
    const json::Member *pattern = ConfigReader::given(config, key);
    if (pattern && !pattern->value.isString() &&
        readCount(key, facts.slidingPattern) == 1)
      return {full};
    return {sliding, full};
  }
  case SlidingLayers::FromMaxWindow: {
    // 0 is a count like others here.
    Field<double> first = reader.number(config, "max_window_layers");
    Field<int64_t> layers = reader.count(config, "num_hidden_layers");
    if (first.value.value_or(1) <= 0)
      return {sliding};
    if (first.value && layers.value && *first.value >= double(*layers.value))
      return {full};
    return {full, sliding};
  }
  }
  return {};
}

/// The different names in `layer_types`, which have been checked.
static std::vector<std::string> findTypes(const json::Value &config) {
  std::vector<std::string> names;
  const json::Member *types = ConfigReader::given(config, "layer_types");
  if (!types || !types->value.isArray())
    return names;
  for (const json::Value &type : types->value.elements())
    if (type.isString() && !llvm::is_contained(names, type.string()))
      names.push_back(type.string().str());
  return names;
}

/// Returns false if no layer attends in a way that there are functions for.
bool AttentionReader::readLayers(AttentionConfig &result) {
  std::optional<int64_t> window = readWindow();
  std::vector<std::string> types = findTypes(config);
  bool areGiven = !types.empty();
  if (!areGiven) {
    // What the keys say comes without a name, as the config gives none; the
    // types that the model's code makes of them come with theirs.
    if (model.rotations.empty())
      result.layers.push_back({"", window});
    types = deriveTypes(window.has_value());
  }
  for (const std::string &type : types) {
    bool slides = type == kSlidingLayers;
    // Others have a state instead of keys, or see chunks of them.
    if (!slides && type != kFullLayers && type != "attention")
      continue;
    LayerAttention layer;
    layer.type = type;
    layer.rotates = slides || !facts.rotatesSlidingOnly || !window;
    if (slides)
      layer.window = window;
    if (slides && !window && areGiven && !config.find(row.keys->window[0]))
      reader.missing(config, row.keys->window[0]);
    result.layers.push_back(layer);
  }
  if (areGiven && types.size() == 1 && !result.layers.empty())
    result.layers[0].type.clear();
  return !result.layers.empty();
}

bool AttentionReader::read(bool qkNorm, AttentionConfig &result) {
  if (!facts.isSupported)
    return false;
  result.numKeyValueHeads = model.numKeyValueHeads;
  result.headDim = result.valueDim = model.headDim;
  result.rotaryOffset = model.rotaryOffset;
  result.isCausal = facts.isCausal;
  result.hasSinks = facts.hasSinks;
  if (isLatent() && !readLatentShape(result))
    return false;
  readScale(result);
  readSoftCap(result);
  if (qkNorm) {
    Field<double> epsilon = reader.positive(config, "rms_norm_eps");
    if (!epsilon.given())
      reader.missing(config, "rms_norm_eps");
    result.normEps = epsilon.value;
  }
  return readLayers(result);
}

} // namespace

void posenc::frontend::readAttention(ConfigReader &reader,
                                     const json::Value &config,
                                     const ModelRow &row, bool qkNorm,
                                     ModelConfig &result) {
  AttentionConfig attention;
  if (AttentionReader(reader, config, row, result).read(qkNorm, attention))
    result.attention = std::move(attention);
}
