//===- LayerTypes.cpp - rotations by layer type -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerTypes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <tuple>

using namespace posenc::frontend;
using llvm::StringRef;

bool Scaling::operator==(const Scaling &other) const {
  auto tie = [](const Scaling &s) {
    return std::tie(s.kind, s.factor, s.lowFreqFactor, s.highFreqFactor,
                    s.betaFast, s.betaSlow, s.originalMaxPosition, s.truncate,
                    s.attentionFactor, s.mscale, s.mscaleAllDim, s.list);
  };
  return tie(*this) == tie(other);
}

bool posenc::frontend::addLayerType(ConfigReader &reader, StringRef key,
                                    StringRef name, const json::Value &at,
                                    std::vector<std::string> &names) {
  if (llvm::is_contained(names, name))
    return true;
  constexpr size_t maxTypes = 8;
  if (name.empty() || !llvm::all_of(name, [](char c) {
        return llvm::isAlnum(c) || c == '_';
      })) {
    reader.error(at, "'" + key + "' holds " + quoted(name) +
                         ", which cannot be part of a name in C");
    return false;
  }
  if (names.size() == maxTypes) {
    reader.error(at, "'" + key + "' holds more than 8 names");
    return false;
  }
  names.push_back(name.str());
  return true;
}

/// The different names in `layer_types`, in order.
static std::vector<std::string> readLayerTypes(ConfigReader &reader,
                                               const json::Value &config) {
  std::vector<std::string> names;
  StringRef key = "layer_types";
  const json::Member *types = ConfigReader::given(config, key);
  if (!types)
    return {};
  if (!types->value.isArray()) {
    reader.error(types->value, "'" + key + "' must be a list of strings, not " +
                                   json::describeKind(types->value));
    return {};
  }
  for (const json::Value &type : types->value.elements()) {
    if (!type.isString()) {
      reader.error(type, "'" + key + "' must hold strings, not " +
                             json::describeKind(type));
      return {};
    }
    if (!addLayerType(reader, key, type.string(), type, names))
      return {};
  }
  return names;
}

//===----------------------------------------------------------------------===//
// Rotations
//===----------------------------------------------------------------------===//

namespace {

class RotationReader {
public:
  RotationReader(ConfigReader &reader, const json::Value &config,
                 const ModelRow &row, const RopeDictionaries &dicts,
                 HeadSize head, ModelConfig &result)
      : reader(reader), config(config), row(row), dicts(dicts), head(head),
        result(result) {}

  void read();

private:
  bool readOne(const RopeDictionaries &dicts, llvm::ArrayRef<Place> thetaPlaces,
               LayerRotation &rotation);
  llvm::SmallVector<Place, 4> slidingPlaces() const;
  bool hasSlidingKey() const;
  std::optional<double> readSlidingTheta();
  bool areAllFull() const;
  bool hasWindow() const;
  bool slidesInPart() const;
  bool mayLack(StringRef type) const;
  bool hasDefault(StringRef type) const;
  std::vector<std::string> findTypes() const;
  const LayerDictionary *findLayer(StringRef type) const;
  void reportLack(StringRef type);
  bool readLayer(const LayerDictionary *layer, LayerRotation &rotation);
  void readSliding(std::vector<std::string> types);
  void readLayers(std::vector<std::string> types);
  void setRotations(std::vector<LayerRotation> rotations);

  ConfigReader &reader;
  const json::Value &config;
  const ModelRow &row;
  const RopeDictionaries &dicts;
  HeadSize head;
  ModelConfig &result;
  Field<int64_t> maxPosition, original;
};

} // namespace

/// A base may stand outside the dictionaries, too. `rotation` begins with the
/// default. Returns false after an error.
bool RotationReader::readOne(const RopeDictionaries &dicts,
                             llvm::ArrayRef<Place> thetaPlaces,
                             LayerRotation &rotation) {
  llvm::SmallVector<Place, 4> all(thetaPlaces);
  all.push_back({dicts.scaling, "rope_theta"});
  all.push_back({dicts.parameters, "rope_theta"});
  Field<double> theta = reader.divisor(reader.number(all));
  rotation.theta = theta.value.value_or(rotation.theta);
  rotation.rotaryDim = readRotaryDim(
      reader, config, {dicts.scaling, dicts.parameters}, row, head);
  const RopeType *type = readRopeType(reader, dicts);
  if (type && dicts.main) {
    RopeContext context{reader, *dicts.main, theta, maxPosition, original};
    rotation.scaling = readScaling(*type, context);
  }
  return type && !theta.bad();
}

/// Where a base stands that the sliding layers have of their own.
llvm::SmallVector<Place, 4> RotationReader::slidingPlaces() const {
  return {{&config, "rope_local_base_freq"}, {&config, "local_rope_theta"}};
}

bool RotationReader::hasSlidingKey() const {
  return llvm::any_of(slidingPlaces(), [](const Place &place) {
    return ConfigReader::given(*place.object, place.key);
  });
}

/// The base that the sliding layers have of their own, by a key or by the
/// model's code.
std::optional<double> RotationReader::readSlidingTheta() {
  Field<double> own = reader.divisor(reader.number(slidingPlaces()));
  if (!own.given() && row.slidingTheta == 0)
    return std::nullopt;
  return own.value.value_or(row.slidingTheta);
}

/// Whether the model's code lets all layers see everything, where there are no
/// `layer_types`.
bool RotationReader::areAllFull() const {
  const json::Member *pattern =
      ConfigReader::given(config, "sliding_window_pattern");
  return pattern && pattern->value.isNumber() && pattern->value.number() == 1;
}

/// Whether some layers see a part of the keys, as the keys say; what is wrong
/// with these is reported by whoever needs the window's size.
bool RotationReader::hasWindow() const {
  const json::Member *isUsed =
      ConfigReader::given(config, "use_sliding_window");
  if (isUsed && isUsed->value.isBool() ? !isUsed->value.boolean()
                                       : row.attention.slidesOnRequest)
    return false;
  const json::Member *window = config.find(row.keys->window[0]);
  return window ? !window->value.isNull() : row.attention.defaultWindow != 0;
}

/// Whether the model's code makes layers of both types where there are no
/// `layer_types`.
bool RotationReader::slidesInPart() const {
  switch (row.attention.sliding) {
  case SlidingLayers::All:
    return false;
  case SlidingLayers::EveryNth:
    return !areAllFull();
  case SlidingLayers::FromMaxWindow:
    return hasWindow();
  case SlidingLayers::Unrotated:
    return false;
  }
  return false;
}

/// As one rotation where they are alike.
void RotationReader::setRotations(std::vector<LayerRotation> rotations) {
  if (rotations.empty())
    return;
  // The full layers' is the model's.
  const LayerRotation *main = &rotations.front();
  for (const LayerRotation &rotation : rotations)
    if (rotation.type == kFullLayers)
      main = &rotation;
  result.ropeTheta = main->theta;
  result.scaling = main->scaling;
  result.rotaryDim = main->rotaryDim;
  if (!llvm::all_of(rotations, [&](const LayerRotation &rotation) {
        return rotation.isLike(*main);
      }))
    result.rotations = std::move(rotations);
}

/// One rotation for all layers, but perhaps for those that slide.
void RotationReader::readSliding(std::vector<std::string> types) {
  LayerRotation sliding{kSlidingLayers.str(), result.ropeTheta, result.scaling,
                        result.rotaryDim};
  std::optional<double> theta = readSlidingTheta();
  sliding.theta = theta.value_or(sliding.theta);
  if (theta || row.slidingUnscaled)
    sliding.scaling = Scaling();
  if (types.empty() && !areAllFull())
    types = {kSlidingLayers.str(), kFullLayers.str()};
  std::vector<LayerRotation> rotations;
  for (const std::string &type : types) {
    rotations.push_back(
        {type, result.ropeTheta, result.scaling, result.rotaryDim});
    if (type == kSlidingLayers)
      rotations.back() = sliding;
  }
  setRotations(std::move(rotations));
}

/// The types of layers that need a dictionary, where there are no
/// `layer_types`: those that have one, or null instead, and those that the
/// model's code makes.
std::vector<std::string> RotationReader::findTypes() const {
  std::vector<std::string> types;
  for (const json::Member &member : dicts.byType->members())
    types.push_back(member.name().str());
  if (slidesInPart())
    for (StringRef type : {kSlidingLayers, kFullLayers})
      if (!llvm::is_contained(types, type))
        types.push_back(type.str());
  return types;
}

bool posenc::frontend::hasNoKeys(StringRef type) {
  return llvm::is_contained(
      {"conv", "linear_attention", "mamba", "moe", "recurrent"}, type);
}

/// Whether there are no layers of the type that rotate.
bool RotationReader::mayLack(StringRef type) const {
  if (type == kSlidingLayers)
    return areAllFull() && !ConfigReader::given(config, "layer_types");
  if (type == kFullLayers)
    return row.attention.rotatesSlidingOnly && hasWindow();
  // Of a type that is not known, nothing can be told.
  return hasNoKeys(type);
}

/// Whether layers of the type rotate as they do by default, with a base from
/// outside, where they have no dictionary.
bool RotationReader::hasDefault(StringRef type) const {
  // Models that have two bases take them so. Of others, a base of their own
  // says enough: who has it takes no part in a scaling.
  if (row.slidingTheta != 0)
    return type == kSlidingLayers || type == kFullLayers;
  return type == kSlidingLayers && hasSlidingKey();
}

const LayerDictionary *RotationReader::findLayer(StringRef type) const {
  auto found = llvm::find_if(
      dicts.layers, [&](const LayerDictionary &l) { return l.type == type; });
  return found == dicts.layers.end() ? nullptr : &*found;
}

void RotationReader::reportLack(StringRef type) {
  const json::Member *null = dicts.byType->find(type);
  const json::Member *types = ConfigReader::given(config, "layer_types");
  reader.error(null    ? null->value
               : types ? types->value
                       : *dicts.byType,
               "'" + dicts.name + "' lacks the layer type '" + type + "'");
}

/// The rotation of one type, from its dictionary or, if that is null, from the
/// keys outside. Returns false after an error.
bool RotationReader::readLayer(const LayerDictionary *layer,
                               LayerRotation &rotation) {
  rotation.theta = row.defaultTheta;
  llvm::SmallVector<Place, 4> thetas = places(config, row.keys->theta);
  // The full layers' base is that of the sliding ones, too, unless these have
  // one of their own.
  bool hasOwn = row.slidingTheta != 0 || hasSlidingKey() ||
                (layer && ConfigReader::given(*layer->dict, "rope_theta"));
  if (rotation.type == kSlidingLayers && hasOwn) {
    thetas = slidingPlaces();
    if (row.slidingTheta != 0)
      rotation.theta = row.slidingTheta;
  }
  return readOne(layer ? getLayer(dicts, *layer) : RopeDictionaries(), thetas,
                 rotation);
}

/// A dictionary for each type of layers.
void RotationReader::readLayers(std::vector<std::string> types) {
  if (types.empty())
    types = findTypes();
  std::vector<LayerRotation> rotations;
  bool isGood = !dicts.broken;
  for (const std::string &type : types) {
    const LayerDictionary *layer = findLayer(type);
    if (!layer) {
      if (dicts.broken || mayLack(type))
        continue;
      if (!hasDefault(type)) {
        reportLack(type);
        isGood = false;
        continue;
      }
    }
    LayerRotation rotation;
    rotation.type = type;
    isGood &= readLayer(layer, rotation);
    rotations.push_back(std::move(rotation));
  }
  if (isGood && rotations.empty())
    reader.error(*dicts.byType,
                 "'" + dicts.name + "' has none of the types in 'layer_types'");
  if (isGood)
    setRotations(std::move(rotations));
}

void RotationReader::read() {
  maxPosition = reader.count(places(config, row.keys->maxPosition));
  original = reader.count(config, "original_max_position_embeddings");
  std::vector<std::string> types = readLayerTypes(reader, config);
  if (types.size() > 1)
    result.layerTypes = types;
  if (!dicts.layers.empty())
    return readLayers(std::move(types));
  LayerRotation rotation{"", row.defaultTheta, {}};
  bool isGood = readOne(dicts, places(config, row.keys->theta), rotation);
  result.ropeTheta = rotation.theta;
  result.scaling = rotation.scaling;
  result.rotaryDim = rotation.rotaryDim;
  if (isGood)
    readSliding(std::move(types));
}

void posenc::frontend::readRotations(ConfigReader &reader,
                                     const json::Value &config,
                                     const ModelRow &row,
                                     const RopeDictionaries &dicts,
                                     HeadSize head, ModelConfig &result) {
  RotationReader(reader, config, row, dicts, head, result).read();
}
