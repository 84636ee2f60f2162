//===- LayerTypes.cpp - rotations by layer type ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerTypes.h"
#include "RopeTypes.h"

#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace posenc::frontend;
using llvm::StringRef;

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
                         ", which cannot be part of a C identifier");
    return false;
  }
  if (names.size() == maxTypes) {
    reader.error(at, "'" + key + "' holds more than 8 names");
    return false;
  }
  names.push_back(name.str());
  return true;
}

/// Returns the distinct names in `layer_types`, in order of appearance.
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
  size_t count = types->value.elements().size();
  Field<int64_t> layers = reader.count(config, "num_hidden_layers");
  if (count != 0 && layers.value && size_t(*layers.value) != count)
    reader.error(types->value, "'" + key + "' has " + llvm::Twine(count) +
                                   " elements for " +
                                   llvm::Twine(*layers.value) + " layers");
  return names;
}

/// Whether the config gives some layers a sliding window. Does not report
/// errors in these keys: AttentionKeys.cpp does.
bool posenc::frontend::hasWindow(const json::Value &config,
                                 const ModelRow &row) {
  const json::Member *isUsed =
      ConfigReader::given(config, "use_sliding_window");
  if (isUsed && isUsed->value.isBool() ? !isUsed->value.boolean()
                                       : row.attention.slidesOnRequest)
    return false;
  const json::Member *window = config.find(row.keys->window[0]);
  return window ? !ConfigReader::saysNone(window->value)
                : row.attention.defaultWindow != 0;
}

bool posenc::frontend::rotatesFullLayers(const json::Value &config,
                                         const ModelRow &row) {
  if (row.nullIsUnrotated)
    for (StringRef key : {"rope_parameters", "rope_scaling"})
      if (const json::Member *dict = ConfigReader::given(config, key))
        if (dict->value.isObject())
          if (const json::Member *own = dict->value.find(kFullLayers))
            return !own->value.isNull();
  return !row.attention.rotatesSlidingOnly || !hasWindow(config, row);
}

//===----------------------------------------------------------------------===//
// Rotations
//===----------------------------------------------------------------------===//

namespace {

class RotationReader {
public:
  RotationReader(ConfigReader &reader, const json::Value &config,
                 const ModelRow &row, const RopeDictionaries &dicts,
                 HeadSize head, std::optional<int64_t> ropeLength,
                 ModelConfig &result)
      : reader(reader), config(config), row(row), dicts(dicts), head(head),
        ropeLength(ropeLength), result(result) {}

  void read();

private:
  bool readRotation(const RopeDictionaries &dicts,
                    llvm::ArrayRef<KeyRef> thetaKeys, LayerRotation &rotation);
  llvm::SmallVector<KeyRef, 4> slidingThetaKeys() const;
  bool hasSlidingKey() const;
  std::optional<double> readSlidingTheta();
  void setDefaults(LayerRotation &rotation) const;
  void readDefaults(std::vector<std::string> types);
  bool areAllLayersFull() const;
  bool hasBothLayerTypes() const;
  bool mayBeAbsent(StringRef type) const;
  bool hasDefaultRotation(StringRef type) const;
  std::vector<std::string> findTypes() const;
  const LayerDictionary *findLayer(StringRef type) const;
  void reportMissingType(StringRef type);
  bool readLayer(const LayerDictionary *layer, LayerRotation &rotation);
  void readSliding(std::vector<std::string> types);
  void readLayers(std::vector<std::string> types);
  void setRotations(std::vector<LayerRotation> rotations);

  ConfigReader &reader;
  const json::Value &config;
  const ModelRow &row;
  const RopeDictionaries &dicts;
  HeadSize head;
  std::optional<int64_t> ropeLength;
  ModelConfig &result;
};

} // namespace

/// Reads one rotation from the dictionaries. The base may also be outside of
/// them, under one of `thetaKeys`. `rotation` holds the default base on
/// entry. Returns false after an error.
bool RotationReader::readRotation(const RopeDictionaries &dicts,
                                  llvm::ArrayRef<KeyRef> thetaKeys,
                                  LayerRotation &rotation) {
  llvm::SmallVector<KeyRef, 4> all(thetaKeys);
  all.push_back({dicts.scaling, "rope_theta"});
  all.push_back({dicts.parameters, "rope_theta"});
  Field<double> theta = reader.divisor(reader.number(all));
  rotation.theta = theta.value.value_or(rotation.theta);
  rotation.rotaryDim = readRotaryDim(
      reader, config, {dicts.scaling, dicts.parameters}, row, head);
  const RopeType *type = readRopeType(reader, dicts, row.axes.arePatches);
  if (type && dicts.main) {
    RopeContext context{reader, *dicts.main, theta,     {},
                        {},     ropeLength,  head.size, rotation.rotaryDim};
    if (type->knowsKey(kOriginalLengthKey)) {
      context.maxPosition =
          reader.count(keyRefs(config, row.keys->maxPosition));
      KeyRef originalKeys[] = {{dicts.main, kOriginalLengthKey},
                               {&config, kOriginalLengthKey}};
      context.original = reader.count(originalKeys);
    }
    rotation.scaling = readScaling(*type, context);
  }
  return type && !theta.bad();
}

/// Reads the rotations of a model with a rotation for each layer type from a
/// config without dictionaries.
void RotationReader::readDefaults(std::vector<std::string> types) {
  if (types.empty())
    types = {kSlidingLayers.str(), kFullLayers.str()};
  std::vector<LayerRotation> rotations;
  bool isGood = true;
  for (const std::string &type : types) {
    LayerRotation rotation;
    rotation.type = type;
    isGood &= readLayer(nullptr, rotation);
    rotations.push_back(std::move(rotation));
  }
  if (isGood)
    setRotations(std::move(rotations));
}

/// Returns the keys that may hold a separate base of the sliding layers.
llvm::SmallVector<KeyRef, 4> RotationReader::slidingThetaKeys() const {
  llvm::SmallVector<KeyRef, 4> keys = {{&config, "rope_local_base_freq"},
                                       {&config, "local_rope_theta"}};
  // Replaces the default of the row. LayerValues.cpp reads it for all models.
  if (row.slidingTheta != 0)
    keys.push_back({&config, "swa_rope_theta"});
  return keys;
}

bool RotationReader::hasSlidingKey() const {
  return llvm::any_of(slidingThetaKeys(), [](const KeyRef &place) {
    return ConfigReader::given(*place.object, place.key);
  });
}

/// Returns the separate base of the sliding layers, from a key or from the row
/// of the model, or nullopt if they have none.
std::optional<double> RotationReader::readSlidingTheta() {
  Field<double> own = reader.divisor(reader.number(slidingThetaKeys()));
  if (!own.given() && row.slidingTheta == 0)
    return std::nullopt;
  return own.value.value_or(row.slidingTheta);
}

/// Sets the scaling and the base of a config without a dictionary.
void RotationReader::setDefaults(LayerRotation &rotation) const {
  if (!row.defaultScaling.empty())
    rotation.scaling = llvm::cast<Scaling>(
        mlir::parseAttribute(row.defaultScaling, reader.getContext()));
  if (row.aloneTheta != 0)
    rotation.theta = row.aloneTheta;
}

/// Whether the pattern 1 makes all layers full-attention layers. It applies
/// only without `layer_types`.
bool RotationReader::areAllLayersFull() const {
  const json::Member *pattern =
      ConfigReader::given(config, "sliding_window_pattern");
  return pattern && pattern->value.isNumber() && pattern->value.number() == 1;
}

/// Whether the model has both full and sliding layers if there are no
/// `layer_types`.
bool RotationReader::hasBothLayerTypes() const {
  switch (row.attention.sliding) {
  case SlidingLayers::All:
    return false;
  case SlidingLayers::EveryNth:
    return !areAllLayersFull() &&
           (!row.attention.slidesOnRequest || hasWindow(config, row));
  case SlidingLayers::FromMaxWindow:
    return hasWindow(config, row);
  case SlidingLayers::Unrotated:
    return false;
  }
  return false;
}

/// Stores the rotations of the layer types; as a single one if they are alike.
void RotationReader::setRotations(std::vector<LayerRotation> rotations) {
  if (rotations.empty())
    return;
  // The rotation of the full-attention layers is also that of the model.
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

/// Derives the rotations from a single dictionary: all layers share the one of
/// `result`, except that sliding layers may have their own base or no scaling.
void RotationReader::readSliding(std::vector<std::string> types) {
  LayerRotation sliding{kSlidingLayers.str(), result.ropeTheta, result.scaling,
                        result.rotaryDim};
  std::optional<double> theta = readSlidingTheta();
  sliding.theta = theta.value_or(sliding.theta);
  if ((theta && !row.slidingScaled) || row.slidingUnscaled)
    sliding.scaling = nullptr;
  if (types.empty() && !areAllLayersFull())
    types = {kSlidingLayers.str(), kFullLayers.str()};
  std::vector<LayerRotation> rotations;
  for (const std::string &type : types) {
    if (hasNoKeys(type))
      continue;
    rotations.push_back(
        {type, result.ropeTheta, result.scaling, result.rotaryDim});
    if (type == kSlidingLayers)
      rotations.back() = sliding;
  }
  setRotations(std::move(rotations));
}

/// Returns the layer types that need a dictionary if there are no
/// `layer_types`: those with a dictionary or a null, and those that the model
/// has by default.
std::vector<std::string> RotationReader::findTypes() const {
  std::vector<std::string> types;
  for (const json::Member &member : dicts.byType->members())
    if (!isSharedRopeKey(member.name()))
      types.push_back(member.name().str());
  if (hasBothLayerTypes())
    for (StringRef type : {kSlidingLayers, kFullLayers})
      if (!llvm::is_contained(types, type))
        types.push_back(type.str());
  return types;
}

bool posenc::frontend::hasNoKeys(StringRef type) {
  return llvm::is_contained(
      {"conv", "linear_attention", "mamba", "mlp", "moe", "recurrent"}, type);
}

/// Whether a type needs no dictionary, because it has no layers that rotate.
bool RotationReader::mayBeAbsent(StringRef type) const {
  if (type == kSlidingLayers)
    return areAllLayersFull() && !ConfigReader::given(config, "layer_types");
  if (type == kFullLayers)
    return !rotatesFullLayers(config, row);
  // Unknown types are assumed to rotate.
  return hasNoKeys(type);
}

/// Whether a type without a dictionary uses the default rotation, with a base
/// from outside the dictionaries.
bool RotationReader::hasDefaultRotation(StringRef type) const {
  // Models with two bases define both types. In other models, sliding layers
  // with a separate base are not scaled.
  if (row.slidingTheta != 0)
    return type == kSlidingLayers || type == kFullLayers;
  return type == kSlidingLayers && hasSlidingKey();
}

const LayerDictionary *RotationReader::findLayer(StringRef type) const {
  auto found = llvm::find_if(
      dicts.layers, [&](const LayerDictionary &l) { return l.type == type; });
  return found == dicts.layers.end() ? nullptr : &*found;
}

void RotationReader::reportMissingType(StringRef type) {
  const json::Member *null = dicts.byType->find(type);
  const json::Member *types = ConfigReader::given(config, "layer_types");
  reader.error(null    ? null->value
               : types ? types->value
                       : *dicts.byType,
               "'" + dicts.name + "' has no object for the layer type '" +
                   type + "'");
}

/// Reads the rotation of one type, from its dictionary or, if `layer` is null,
/// from the keys outside. Returns false after an error.
bool RotationReader::readLayer(const LayerDictionary *layer,
                               LayerRotation &rotation) {
  rotation.theta = row.defaultTheta;
  llvm::SmallVector<KeyRef, 4> thetas =
      nestedKeyRefs(config, *row.keys, row.keys->theta);
  // Sliding layers share the base of the full-attention layers unless they have
  // a separate one.
  bool hasOwn = row.slidingTheta != 0 || hasSlidingKey() ||
                (layer && ConfigReader::given(layer->dict, "rope_theta"));
  if (rotation.type == kSlidingLayers && hasOwn) {
    thetas = slidingThetaKeys();
    if (row.slidingTheta != 0)
      rotation.theta = row.slidingTheta;
  }
  if (layer)
    return readRotation(getLayerDictionaries(dicts, *layer), thetas, rotation);
  bool isGood = readRotation(RopeDictionaries(), thetas, rotation);
  // By default, a quarter of the pairs of the heads of Gemma 4 rotates.
  if (row.fullHeadDim != 0 && rotation.type == kFullLayers)
    rotation.scaling = mlir::posenc::ProportionalScalingAttr::get(
        reader.getContext(), rotation.rotaryDim / 8, reader.real(1));
  return isGood;
}

/// Reads the rotations from one dictionary per layer type.
void RotationReader::readLayers(std::vector<std::string> types) {
  if (types.empty())
    types = findTypes();
  std::vector<LayerRotation> rotations;
  bool isGood = !dicts.broken;
  for (const std::string &type : types) {
    const LayerDictionary *layer = findLayer(type);
    if (!layer) {
      if (dicts.broken || mayBeAbsent(type))
        continue;
      if (!hasDefaultRotation(type)) {
        reportMissingType(type);
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
  // Two different lengths are an error only for a scaling that needs one.
  for (const KeyRef &key : keyRefs(config, row.keys->maxPosition))
    if (!key.key.empty())
      reader.count(config, key.key);
  reader.count(config, kOriginalLengthKey);
  std::vector<std::string> types = readLayerTypes(reader, config);
  // Layers without keys or without rotation have no functions of it.
  bool rotatesFull = rotatesFullLayers(config, row);
  if (types.size() > 1)
    llvm::copy_if(
        types, std::back_inserter(result.layerTypes), [&](StringRef type) {
          return !hasNoKeys(type) && (rotatesFull || type != kFullLayers);
        });
  if (!dicts.layers.empty())
    return readLayers(std::move(types));
  if (row.fullHeadDim != 0) {
    if (!dicts.main)
      return readDefaults(std::move(types));
    return reader.error(*dicts.main, "'" + dicts.name +
                                         "' must have an object for each layer "
                                         "type, since their heads differ");
  }
  LayerRotation rotation{"", row.defaultTheta, {}};
  if (!dicts.main && !dicts.broken)
    setDefaults(rotation);
  if (!row.thetaFactorKey.empty()) {
    Field<double> factor =
        reader.divisor(reader.number(config, row.thetaFactorKey));
    rotation.theta *= factor.value.value_or(1);
  }
  bool isGood = readRotation(
      dicts, nestedKeyRefs(config, *row.keys, row.keys->theta), rotation);
  // The scalings of dictionaries check this themselves.
  bool isDefault =
      !dicts.main &&
      llvm::isa_and_nonnull<mlir::posenc::YarnScalingAttr>(rotation.scaling);
  if (isGood && isDefault && rotation.theta <= 1)
    reader.error(config, "'" + row.keys->theta[0] +
                             "' must be greater than 1 for the model's "
                             "default rope type 'yarn', not " +
                             spelled(rotation.theta));
  result.ropeTheta = rotation.theta;
  result.scaling = rotation.scaling;
  result.rotaryDim = rotation.rotaryDim;
  if (isGood)
    readSliding(std::move(types));
}

void posenc::frontend::readRotations(
    ConfigReader &reader, const json::Value &config, const ModelRow &row,
    const RopeDictionaries &dicts, HeadSize head,
    std::optional<int64_t> ropeLength, ModelConfig &result) {
  RotationReader(reader, config, row, dicts, head, ropeLength, result).read();
}
