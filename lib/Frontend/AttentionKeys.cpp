//===- AttentionKeys.cpp - attention keys of a config ---------------------===//
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
using llvm::StringRef;

namespace {

class AttentionReader {
public:
  AttentionReader(ConfigReader &reader, const json::Value &config,
                  const ModelRow &row, bool isDecoder, ModelConfig &model)
      : reader(reader), config(config), row(row), traits(row.attention),
        isDecoder(isDecoder), model(model) {}

  bool read(bool qkNorm, AttentionConfig &result);

private:
  /// Whether `use_bidirectional_attention` makes a causal model bidirectional.
  /// Its window then counts the keys of both sides.
  bool isBidirectional() const {
    const json::Member *member =
        ConfigReader::given(config, "use_bidirectional_attention");
    if (!member)
      return false;
    // "vision" concerns the tokens of images alone.
    if (member->value.isString())
      return member->value.string() == "all";
    return member->value.isBool() && member->value.boolean();
  }
  bool isCausal();
  bool readTemperature(AttentionConfig &result);
  bool readChunkedTemperature(AttentionConfig &result);
  void readNorm(AttentionConfig &result);
  bool readLatentShape(AttentionConfig &result);
  void readScale(AttentionConfig &result);
  std::optional<double> getLatentScale(const AttentionConfig &result) const;
  void readSoftCap(AttentionConfig &result);
  std::optional<int64_t> readWindow(bool causal);
  std::optional<int64_t> readChunk();
  std::vector<std::string> deriveTypes(bool hasWindow);
  std::vector<bool> readRotating(size_t numTypes);
  void splitLayers(std::vector<LayerAttention> &layers, bool hasWindow);
  int64_t readCount(StringRef key, int64_t absent);
  bool readLayers(AttentionConfig &result);
  void addEncoder(AttentionConfig &result);

  ConfigReader &reader;
  const json::Value &config;
  const ModelRow &row;
  const AttentionRow &traits;
  /// The config is that of the decoder of an encoder-decoder model.
  bool isDecoder;
  ModelConfig &model;
};

/// Reads a count, or returns `absent` if the key is absent.
int64_t AttentionReader::readCount(StringRef key, int64_t absent) {
  return reader.count(config, key).value.value_or(absent);
}

/// Reads the head sizes of multi-head latent attention after keys and values
/// are expanded. The rotated channels come last, as in transformers.
bool AttentionReader::readLatentShape(AttentionConfig &result) {
  int64_t plain = readCount("qk_nope_head_dim", traits.defaultNopeDim);
  result.valueDim = readCount("v_head_dim", traits.defaultValueDim);
  if (result.valueDim == kFromHidden) {
    int64_t hidden = readCount("hidden_size", 0);
    result.valueDim = model.numHeads && hidden % model.numHeads == 0
                          ? hidden / model.numHeads
                          : 0;
  }
  if (plain == 0 || result.valueDim == 0)
    return false;
  result.numKeyValueHeads = model.numHeads;
  result.headDim = plain + model.headDim;
  result.rotaryOffset = plain + model.rotaryOffset;
  return true;
}

/// Returns the scale with the square of YaRN's attention factor, which latent
/// attention applies to the scores instead of the tables.
std::optional<double>
AttentionReader::getLatentScale(const AttentionConfig &result) const {
  auto yarn =
      llvm::dyn_cast_or_null<mlir::posenc::YarnScalingAttr>(model.scaling);
  if (!yarn || !yarn.getMscaleAllDim())
    return std::nullopt;
  double factor = yarn.getFactor().getValueAsDouble();
  if (!(factor > 1))
    return std::nullopt;
  double g =
      0.1 * yarn.getMscaleAllDim().getValueAsDouble() * std::log(factor) + 1;
  return g * g / std::sqrt(double(result.headDim));
}

void AttentionReader::readScale(AttentionConfig &result) {
  Field<double> multiplier = reader.positive(config, "attention_multiplier");
  Field<double> scalar = reader.positive(config, "query_pre_attn_scalar");
  if (multiplier.value)
    result.scale = multiplier.value;
  else if (traits.defaultMultiplier != 0)
    result.scale = traits.defaultMultiplier;
  else if (scalar.value)
    result.scale = 1 / std::sqrt(*scalar.value);
  else if (traits.defaultQueryScalar != 0)
    result.scale = 1 / std::sqrt(traits.defaultQueryScalar);
  else if (traits.isScaledByHalfHead)
    result.scale = 1 / std::sqrt(double(result.headDim) / 2);
  else if (row.isLatent())
    result.scale = getLatentScale(result);
}

void AttentionReader::readSoftCap(AttentionConfig &result) {
  StringRef key = "attn_logit_softcapping";
  result.softCap = reader.positive(config, key).value;
  // An explicit null disables the default.
  if (traits.defaultSoftCap != 0 && !config.find(key))
    result.softCap = traits.defaultSoftCap;
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// Returns the number of keys visible on each side, with that of the query.
std::optional<int64_t> AttentionReader::readWindow(bool causal) {
  Field<bool> isUsed = reader.boolean(config, "use_sliding_window");
  StringRef key = row.keys->window[0];
  if (const json::Member *none = config.find(key);
      none && ConfigReader::saysNone(none->value))
    return std::nullopt;
  Field<int64_t> window = reader.count(config, key);
  if (!isUsed.value.value_or(!traits.slidesOnRequest))
    return std::nullopt;
  std::optional<int64_t> size = window.value;
  if (!config.find(key) && traits.defaultWindow != 0)
    size = traits.defaultWindow;
  if (size && (traits.isTwoSidedWindow || isBidirectional()))
    size = *size / 2 + 1;
  else if (size && !causal) // The largest distance, which is included.
    size = *size + 1;
  if (size && traits.hasHalfWindow)
    size = std::max<int64_t>(*size / 2, 1);
  return size;
}

/// Returns the size of the chunks that some layers see, or nullopt if there are
/// none.
std::optional<int64_t> AttentionReader::readChunk() {
  StringRef key = "attention_chunk_size";
  constexpr int64_t defaultSize = 8192;
  if (!traits.isChunked)
    return std::nullopt;
  Field<int64_t> size = reader.count(config, key);
  return config.find(key) ? size.value : defaultSize;
}

/// Returns the layer types of a config without `layer_types`, or an empty list
/// if all layers are alike.
std::vector<std::string> AttentionReader::deriveTypes(bool hasWindow) {
  std::vector<std::string> rotating;
  for (const LayerRotation &rotation : model.rotations)
    rotating.push_back(rotation.type);
  if (!hasWindow || !rotating.empty())
    return rotating;
  std::string full = kFullLayers.str(), sliding = kSlidingLayers.str();
  switch (traits.sliding) {
  case SlidingLayers::All:
    return {};
  case SlidingLayers::EveryNth: {
    // A string such as "LLLG" denotes the default pattern.
    StringRef key = "sliding_window_pattern";
    const json::Member *pattern = ConfigReader::given(config, key);
    if (pattern && !pattern->value.isString() &&
        readCount(key, traits.slidingPattern) == 1)
      return {full};
    return {sliding, full};
  }
  case SlidingLayers::FromMaxWindow: {
    // This key may be 0, which ConfigReader::count rejects.
    Field<double> first = reader.number(config, "max_window_layers");
    Field<int64_t> layers = reader.count(config, "num_hidden_layers");
    if (first.value && (*first.value < 0 || !first.at().isIntegral()))
      reader.error(first.at(),
                   "'max_window_layers' must be an integer from 0 on, not " +
                       spelled(*first.value));
    if (first.value.value_or(1) <= 0)
      return {sliding};
    if (first.value && layers.value && *first.value >= double(*layers.value))
      return {full};
    return {full, sliding};
  }
  case SlidingLayers::Unrotated:
    return {full, sliding};
  }
  return {};
}

/// Returns the type of each layer from `layer_types`, which LayerTypes.cpp has
/// checked already.
static std::vector<StringRef> findTypes(const json::Value &config) {
  std::vector<StringRef> names;
  const json::Member *types = ConfigReader::given(config, "layer_types");
  if (!types || !types->value.isArray())
    return names;
  for (const json::Value &type : types->value.elements())
    if (type.isString())
      names.push_back(type.string());
  return names;
}

//===----------------------------------------------------------------------===//
// Layers that do not rotate
//===----------------------------------------------------------------------===//

/// Returns for each layer whether it rotates, or an empty list if all do. The
/// list has `numTypes` elements; if `numTypes` is 0, it may stop after one
/// period of the pattern.
std::vector<bool> AttentionReader::readRotating(size_t numTypes) {
  std::vector<bool> rotating;
  // Unknown models are read by their key alone.
  if (traits.unrotatedInterval == 0 && !row.type.empty())
    return rotating;
  StringRef key = "no_rope_layers";
  const json::Member *list = ConfigReader::given(config, key);
  // Despite the name of the key, a layer rotates if its element is 1.
  if (list && list->value.isArray() && !list->value.elements().empty()) {
    for (const json::Value &value : list->value.elements()) {
      bool isFlag =
          value.isBool() ||
          (value.isNumber() && (value.number() == 0 || value.number() == 1));
      if (!isFlag) {
        reader.error(value, "'" + key + "' must hold 0 and 1");
        return {};
      }
      rotating.push_back(value.isBool() ? value.boolean()
                                        : value.number() == 1);
    }
    size_t layers =
        numTypes ? numTypes : readCount("num_hidden_layers", rotating.size());
    if (rotating.size() < layers)
      reader.error(list->value,
                   "'" + key + "' has " + llvm::Twine(rotating.size()) +
                       " elements for " + llvm::Twine(layers) + " layers");
    rotating.resize(std::min(rotating.size(), layers));
    return rotating;
  }
  if (list && !list->value.isArray())
    reader.error(list->value, "'" + key + "' must be a list, not " +
                                  json::describeKind(list->value));
  if (traits.unrotatedInterval == 0)
    return rotating;
  int64_t interval =
      readCount("no_rope_layer_interval", traits.unrotatedInterval);
  int64_t layers = readCount("num_hidden_layers", interval);
  int64_t count = numTypes ? int64_t(numTypes) : std::min(layers, interval);
  for (int64_t layer = 1; layer <= std::min<int64_t>(count, 65536); ++layer)
    rotating.push_back(layer % interval != 0);
  return rotating;
}

/// Splits each type of which only some layers rotate: those that do not rotate
/// get a type of their own with the suffix `nope`.
void AttentionReader::splitLayers(std::vector<LayerAttention> &layers,
                                  bool hasWindow) {
  std::vector<StringRef> types = findTypes(config);
  std::vector<bool> rotating = readRotating(types.size());
  bool areChunksDerived =
      types.empty() && !layers.empty() && layers.front().chunk;
  bool slideUnrotated =
      traits.sliding == SlidingLayers::Unrotated && hasWindow && types.empty();
  std::vector<LayerAttention> split;
  for (LayerAttention &layer : layers) {
    bool anyRotates = false, anyDoesNot = false;
    for (auto [number, rotates] : llvm::enumerate(rotating)) {
      StringRef type;
      if (areChunksDerived)
        type = rotates ? kChunkedLayers : kFullLayers;
      else if (slideUnrotated)
        type = rotates ? kFullLayers : kSlidingLayers;
      else if (number < types.size())
        type = types[number];
      if (layer.type.empty() || layer.type == type)
        (rotates ? anyRotates : anyDoesNot) = true;
    }
    // A type that deriveTypes() returned may have no layers.
    if (!rotating.empty() && !anyRotates && !anyDoesNot)
      continue;
    bool isSplit = anyRotates && anyDoesNot;
    if (anyDoesNot)
      layer.rotates &= isSplit;
    split.push_back(layer);
    if (!isSplit)
      continue;
    layer.type += layer.type.empty() ? "nope" : "_nope";
    layer.rotates = false;
    split.push_back(layer);
  }
  layers = std::move(split);
}

/// Returns false if no layer has a supported attention.
bool AttentionReader::readLayers(AttentionConfig &result) {
  std::optional<int64_t> window = readWindow(result.isCausal);
  std::optional<int64_t> chunk = readChunk();
  std::vector<std::string> types;
  for (StringRef type : findTypes(config))
    if (!llvm::is_contained(types, type))
      types.push_back(type.str());
  bool areGiven = !types.empty();
  const json::Member *given = ConfigReader::given(config, "layer_types");
  if (!areGiven) {
    // The config names no types: the first layer has the window of the config
    // and no name. The types of the model's implementation follow.
    if (model.rotations.empty() && !chunk &&
        !(window && traits.sliding == SlidingLayers::Unrotated))
      result.layers.emplace_back().window = window;
    types = deriveTypes(window.has_value());
    if (chunk)
      types = {kChunkedLayers.str(), kFullLayers.str()};
    if (types.size() == 1 && types.front() == kFullLayers &&
        !result.layers.empty())
      result.layers.front().window.reset();
  }
  for (const std::string &type : types) {
    bool slides = type == kSlidingLayers;
    bool isChunked = type == kChunkedLayers && traits.isChunked;
    if (!slides && !isChunked && type != kFullLayers && type != "attention") {
      // Unknown types may have other masks.
      // After an error, the type may have no functions at all.
      if (!hasNoKeys(type) && !reader.hasErrors())
        reader.warning(given ? given->value : config,
                       "no attention functions for the unknown layer type " +
                           quoted(type));
      continue;
    }
    LayerAttention layer;
    layer.type = type;
    layer.rotates = slides || rotatesFullLayers(config, row);
    if (slides || traits.slidesInFull)
      layer.window = window;
    if (isChunked)
      layer.chunk = chunk;
    if (isChunked && !chunk && !reader.hasErrors())
      reader.missing(config, "attention_chunk_size");
    if (slides && !window && areGiven && !config.find(row.keys->window[0]))
      reader.missing(config, row.keys->window[0]);
    result.layers.push_back(layer);
  }
  if (areGiven && types.size() == 1 && !result.layers.empty())
    result.layers[0].type.clear();
  splitLayers(result.layers, window.has_value());
  return !result.layers.empty();
}

/// Reads the factor of queries of the layers that do not rotate, of a model
/// with chunks. Returns false after an error.
bool AttentionReader::readChunkedTemperature(AttentionConfig &result) {
  constexpr double defaultBeta = 0.1;
  constexpr int64_t defaultLength = 8192;
  StringRef key = "attn_temperature_tuning";
  const json::Member *tuning = ConfigReader::given(config, key);
  // Early configs have a number, which counts as true unless it is 0.
  bool isUsed = true;
  if (tuning && tuning->value.isNumber())
    isUsed = tuning->value.number() != 0;
  else if (tuning)
    isUsed = reader.boolean(config, key).value.value_or(true);
  Field<double> beta = reader.number(config, "attn_scale");
  Field<int64_t> length = reader.count(config, "floor_scale");
  if (beta.value && *beta.value < 0)
    reader.error(beta.at(), "'attn_scale' must not be negative, and is " +
                                spelled(*beta.value));
  if (beta.bad() || length.bad() || reader.hasErrors())
    return false;
  double factor = beta.value.value_or(defaultBeta);
  if (isUsed && factor != 0)
    result.temperature = {factor, length.value.value_or(defaultLength),
                          /*offset=*/1, /*isOfUnrotated=*/true};
  return true;
}

/// Reads the factor of queries that depends on their position. The rope
/// dictionary has it; a config without one has that of its model type. Returns
/// false after an error.
bool AttentionReader::readTemperature(AttentionConfig &result) {
  if (traits.isChunked)
    return readChunkedTemperature(result);
  bool hasDictionary = false;
  for (StringRef key : {"rope_parameters", "rope_scaling"}) {
    const json::Member *dict = ConfigReader::given(config, key);
    if (!dict || !dict->value.isObject())
      continue;
    hasDictionary = true;
    Field<double> beta = reader.positive(dict->value, "llama_4_scaling_beta");
    if (!beta.given())
      continue;
    Field<int64_t> length =
        reader.count(dict->value, "original_max_position_embeddings");
    if (!length.given())
      reader.error(beta.at(), "'llama_4_scaling_beta' needs "
                              "'original_max_position_embeddings'");
    if (!beta.value || !length.value)
      return false;
    result.temperature = {*beta.value, *length.value};
    return true;
  }
  // Without a dictionary, the scaling is that of the row.
  auto yarn =
      llvm::dyn_cast_or_null<mlir::posenc::YarnScalingAttr>(model.scaling);
  if (traits.hasTemperature && !hasDictionary && yarn)
    result.temperature = {
        0.1,
        static_cast<int64_t>(yarn.getOriginalMaxPosition().getValueAsDouble())};
  return true;
}

/// Whether tokens see earlier tokens only.
bool AttentionReader::isCausal() {
  StringRef key = "use_bidirectional_attention";
  const json::Member *member = ConfigReader::given(config, key);
  if (member && !member->value.isBool() &&
      !(member->value.isString() &&
        llvm::is_contained({"all", "vision"}, member->value.string())))
    reader.error(member->value,
                 "'" + key + "' must be true, false, 'all' or 'vision'");
  // transformers reads this key for all models.
  Field<bool> isGivenCausal = reader.boolean(config, "is_causal");
  if (isDecoder)
    return true;
  bool causal = traits.isCausal && isGivenCausal.value.value_or(true);
  if (!traits.causalKey.empty())
    causal |= reader.boolean(config, traits.causalKey).value.value_or(false);
  return causal && !isBidirectional();
}

/// Adds the layers of an encoder whose heads are those of the decoder.
void AttentionReader::addEncoder(AttentionConfig &result) {
  Field<int64_t> heads = reader.count(config, "encoder_num_attention_heads");
  Field<int64_t> keyHeads = reader.count(config, "encoder_num_key_value_heads");
  if (heads.bad() || keyHeads.bad())
    return;
  if (model.numHeads == 0)
    return;
  int64_t numHeads = heads.value.value_or(model.numHeads);
  if (numHeads != model.numHeads ||
      keyHeads.value.value_or(numHeads) != result.numKeyValueHeads)
    return reader.warning(heads.given() ? heads.at() : config,
                          "no attention functions for the encoder: its heads "
                          "differ from those of the decoder");
  LayerAttention layer = result.layers.front();
  result.layers.front().type = "decoder";
  layer.type = "encoder";
  layer.isEncoder = true;
  result.layers.insert(result.layers.begin(), layer);
}

/// Reads the norms of queries and keys for --qk-norm, or reports an error if
/// the model has none or unsupported ones.
void AttentionReader::readNorm(AttentionConfig &result) {
  const QkNormRow &norm = traits.norm;
  const json::Member *type = ConfigReader::given(config, "model_type");
  const json::Value &at = type ? type->value : config;
  if (row.type.empty())
    return reader.error(at, "--qk-norm needs a known 'model_type', which says "
                            "how queries and keys are normed");
  std::string models = "models of type '" + row.type.str() + "' ";
  if (norm.kind == QkNormKind::None)
    return reader.error(at, "--qk-norm: " + models +
                                "do not norm queries and keys");
  if (!norm.enablingKey.empty()) {
    Field<bool> isEnabled = reader.boolean(config, norm.enablingKey);
    if (isEnabled.bad())
      return;
    if (!isEnabled.value.value_or(false))
      return reader.error(isEnabled.given() ? isEnabled.at() : at,
                          "--qk-norm: " + models +
                              "do not norm queries and keys unless '" +
                              norm.enablingKey + "' is true");
  }
  if (norm.kind == QkNormKind::Unsupported)
    return reader.error(at, "--qk-norm: " + models + norm.description +
                                ", which is not supported");
  Field<double> epsilon = reader.positive(config, norm.epsKey);
  if (epsilon.bad())
    return;
  result.norm.emplace();
  result.norm->eps = epsilon.value.value_or(norm.defaultEps);
  result.norm->weightOffset = norm.kind == QkNormKind::EachHeadPlusOne ? 1 : 0;
  result.norm->allHeads = norm.kind == QkNormKind::AllHeads;
}

bool AttentionReader::read(bool qkNorm, AttentionConfig &result) {
  if (qkNorm)
    readNorm(result);
  if (!traits.isSupported) {
    reader.warning(config,
                   "no attention functions: the attention of 'model_type' '" +
                       row.type + "' is not supported yet");
    return false;
  }
  if (!readTemperature(result))
    return false;
  if (!traits.unsupportedKey.empty()) {
    Field<bool> key = reader.boolean(config, traits.unsupportedKey);
    if (key.value.value_or(false)) {
      reader.warning(key.at(), "no attention functions: '" +
                                   traits.unsupportedKey +
                                   "' is not supported");
      return false;
    }
  }
  result.numKeyValueHeads = model.numKeyValueHeads;
  result.headDim = result.valueDim = model.headDim;
  result.rotaryOffset = model.rotaryOffset;
  result.isCausal = isCausal();
  result.hasSinks = traits.hasSinks;
  if (row.isLatent() && !readLatentShape(result)) {
    reader.warning(config, "no attention functions: expected the keys "
                           "'qk_nope_head_dim' and 'v_head_dim'");
    return false;
  }
  readScale(result);
  readSoftCap(result);
  if (!readLayers(result))
    return false;
  if (traits.hasEncoder)
    addEncoder(result);
  return true;
}

} // namespace

void posenc::frontend::readAttention(ConfigReader &reader,
                                     const json::Value &config,
                                     const ModelRow &row, bool isDecoder,
                                     bool qkNorm, ModelConfig &result) {
  AttentionConfig attention;
  AttentionReader attentionReader(reader, config, row, isDecoder, result);
  if (attentionReader.read(qkNorm, attention))
    result.attention = std::move(attention);
}
