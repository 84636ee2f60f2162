//===- ModelConfig.cpp - reading a model's config.json --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Frontend/ModelConfig.h"

#include "AttentionKeys.h"
#include "BiasModels.h"
#include "ConfigReader.h"
#include "HeadShape.h"
#include "LayerSets.h"
#include "LayerTypes.h"
#include "ModelTable.h"
#include "PositionAxes.h"
#include "PositionKeys.h"
#include "QwenKeys.h"
#include "RopeDictionary.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

#include <tuple>

using namespace posenc::frontend;
using llvm::StringLiteral;
using llvm::StringRef;

/// Reports keys that occur twice in an object with different values. The
/// maximum depth of the parser bounds the recursion.
static void reportDuplicates(ConfigReader &reader, const json::Value &value) {
  if (value.isArray())
    for (const json::Value &element : value.elements())
      reportDuplicates(reader, element);
  if (!value.isObject())
    return;
  llvm::StringMap<const json::Value *> first;
  for (const json::Member &member : value.members()) {
    auto [it, isNew] = first.try_emplace(member.name(), &member.value);
    if (!isNew && !json::deepEqual(*it->second, member.value))
      reader.error(member.key, "duplicate key " + quoted(member.name()) +
                                   " with a different value");
    reportDuplicates(reader, member.value);
  }
}

namespace {

class ModelReader {
public:
  ModelReader(ConfigReader &reader, const json::Value &root,
              const ReadOptions &options)
      : reader(reader), root(root), options(options) {}

  void read(ModelConfig &result);

private:
  void findTextConfig();
  bool enterDecoder();
  bool findRow();
  bool rotates();
  void reportRequired();
  bool hasRopeKey() const;
  void readLayer(const json::Value &layer, ModelConfig &result);
  static void removeRotation(ModelConfig &result);
  void readPairing(ModelConfig &result);
  bool mayNorm() const;
  std::optional<DType> readDType(const json::Value &object);
  DType readModelDType();
  bool readBiasAttention(ModelConfig &result);

  ConfigReader &reader;
  const json::Value &root;
  const ReadOptions &options;
  /// The object with the keys of the text model: the root or a nested object.
  const json::Value *config = nullptr;
  /// Whether `config` is the decoder of an encoder-decoder model.
  bool isDecoder = false;
  /// Whether a nested config is no object.
  bool isBroken = false;
  const json::Member *typeMember = nullptr;
  StringRef modelType;
  const ModelRow *row = nullptr;
  bool isKnown = false;
  /// Whether the model has attention, but no rotary embedding.
  bool isUnrotated = false;
};

/// Returns whether an object has the number of heads.
static bool hasHeads(const json::Value &object, const json::Member *type) {
  const ModelRow *row = nullptr;
  if (type && type->value.isString())
    row = findModel(type->value.string());
  return llvm::any_of((row ? row : &unknownModel())->keys->heads,
                      [&](StringRef key) { return object.find(key); });
}

/// Finds the config of the text model, which multimodal models keep in a nested
/// object, also in that of a thinker. Without a text model, the vision encoder
/// of Pixtral is what a config means.
void ModelReader::findTextConfig() {
  config = &root;
  typeMember = ConfigReader::given(root, "model_type");
  auto enter = [&](StringRef key) {
    // Other values are errors where the sizes would be.
    Field<const json::Value *> nested = reader.object(*config, key);
    isBroken |= nested.bad();
    if (!nested.value)
      return false;
    config = *nested.value;
    if (const json::Member *type = ConfigReader::given(*config, "model_type"))
      typeMember = type;
    return true;
  };
  auto enterAny = [&] {
    return llvm::any_of(llvm::ArrayRef<StringRef>{"text_config", "llm_config",
                                                  "language_config",
                                                  "thinker_config",
                                                  "vlm_config"},
                        enter);
  };
  // The maximum depth of the parser bounds the loop.
  while (!hasHeads(*config, typeMember) && enterAny())
    continue;
  if (config != &root)
    return;
  if (enterDecoder() || typeMember)
    return;
  const json::Member *vision = ConfigReader::given(root, "vision_config");
  if (!vision || !vision->value.isObject())
    return;
  const json::Member *type = ConfigReader::given(vision->value, "model_type");
  if (type && type->value.isString() && type->value.string() == "pixtral")
    enter("vision_config");
}

/// Enters the decoder of an encoder-decoder model. Returns false for other
/// models.
bool ModelReader::enterDecoder() {
  bool isRefused = typeMember && typeMember->value.isString() &&
                   !findRefusal(typeMember->value.string()).empty();
  if (isRefused || hasHeads(root, typeMember))
    return false;
  for (StringRef key : {"decoder", "decoder_config"}) {
    Field<const json::Value *> nested = reader.object(root, key);
    isBroken |= nested.bad();
    if (!nested.value)
      continue;
    config = *nested.value;
    isDecoder = true;
    if (const json::Member *type = ConfigReader::given(*config, "model_type"))
      typeMember = type;
    std::string encoder = key == "decoder" ? "encoder" : "encoder_config";
    if (ConfigReader::given(root, encoder))
      reader.warning(nested.member->key,
                     "the functions are those of '" + key +
                         "'; for the encoder, pass the object '" + encoder +
                         "' as a config of its own");
    return true;
  }
  return false;
}

bool ModelReader::hasRopeKey() const {
  return llvm::any_of(
      llvm::ArrayRef<StringRef>{"rope_theta", "rope_scaling", "rope_parameters",
                                "partial_rotary_factor", "rotary_pct",
                                "rotary_emb_base", "rotary_dim"},
      [&](StringRef key) { return config->find(key); });
}

/// Finds the row of the model type. Returns false if reading cannot continue.
bool ModelReader::findRow() {
  row = &unknownModel();
  if (typeMember) {
    if (!typeMember->value.isString()) {
      reader.error(typeMember->value,
                   "'model_type' must be a string, not " +
                       json::describeKind(typeMember->value));
      return false;
    }
    modelType = typeMember->value.string();
    if (const ModelRow *known = findModel(modelType)) {
      row = known;
      isKnown = true;
      return true;
    }
    // Some models rotate under the type of a model that does not.
    const json::Member *position =
        ConfigReader::given(*config, "position_embedding_type");
    bool isRotary = position && position->value.isString() &&
                    position->value.string() == "rotary";
    StringRef reason = findRefusal(modelType);
    if (!reason.empty() && !isRotary) {
      reader.error(typeMember->value,
                   "'model_type' " + quoted(modelType) + " " + reason);
      return false;
    }
  }
  const json::Value &at = typeMember ? typeMember->value : *config;
  std::string what = typeMember ? "unknown 'model_type' " + quoted(modelType)
                                : std::string("missing key 'model_type'");
  if (!hasRopeKey()) {
    reader.error(at, what + ", and no key of a rotary embedding such as "
                            "'rope_theta'");
    return false;
  }
  std::string assumed = "half pairing and the usual defaults";
  if (options.attention && options.assumeAttention)
    assumed += "; that attention is causal, over all keys unless the config "
               "has a window, without sinks and biases; and that queries and "
               "keys come normed";
  else if (options.attention)
    assumed += "; attention functions are built only if --kernels names them";
  reader.warning(at, what + ": assuming " + assumed);
  return true;
}

/// Returns false, after an error, if the model does not use a rotary embedding
/// and has no functions without one. Sets `isUnrotated`.
/// Some model types rotate or not depending on a key.
bool ModelReader::rotates() {
  if (Field<bool> alibi = reader.boolean(*config, "alibi");
      alibi.value.value_or(false)) {
    reader.error(alibi.at(), "'alibi' is true: the model has no rotary "
                             "embedding");
    return false;
  }
  if (!row->rotationKey.empty()) {
    Field<bool> isUsed = reader.boolean(*config, row->rotationKey);
    if (!isUsed.bad() && !isUsed.value.value_or(false))
      reader.error(isUsed.given() ? isUsed.at() : *config,
                   "'model_type' " + quoted(modelType) +
                       " has no rotary embedding unless '" + row->rotationKey +
                       "' is true");
    return isUsed.value.value_or(false);
  }
  StringLiteral key = "position_embedding_type";
  const json::Member *member = ConfigReader::given(*config, key);
  if (row->positionType.empty() && isKnown)
    return true;
  if (row->positionType.empty()) {
    if (!member || !member->value.isString() ||
        !llvm::is_contained({"absolute", "alibi", "learned", "learned_absolute",
                             "nope", "relative_key", "relative_key_query"},
                            member->value.string()))
      return true;
    reader.error(member->value, "'" + key + "' " +
                                    quoted(member->value.string()) +
                                    " is not a rotary embedding");
    return false;
  }
  Field<StringRef> kind = reader.string(*config, key);
  isUnrotated = row->attendsUnrotated && options.attention &&
                !options.rotation && !kind.bad() &&
                kind.value != StringRef(row->positionType);
  if (isUnrotated)
    return true;
  if (!kind.given() || (kind.value && *kind.value != row->positionType))
    reader.error(member ? member->value : *config,
                 "'model_type' " + quoted(modelType) +
                     " has no rotary embedding unless '" + key + "' is '" +
                     row->positionType + "'");
  return kind.value && *kind.value == row->positionType;
}

/// Reports the absence of keys that the row requires.
void ModelReader::reportRequired() {
  for (StringRef key : row->requiredKeys) {
    if (key.empty())
      continue;
    const json::Member *member = ConfigReader::given(*config, key);
    if (!member)
      reader.missing(*config, key);
    else if (key == "rope_parameters" && member->value.isObject() &&
             member->value.members().empty())
      reader.error(member->value, "'" + key + "' must not be empty");
  }
}

void ModelReader::readPairing(ModelConfig &result) {
  result.interleaved = row->isInterleaved;
  if (row->interleaveKey.empty())
    return;
  Field<bool> interleave = reader.boolean(*config, row->interleaveKey);
  result.interleaved = interleave.value.value_or(result.interleaved);
}

static std::optional<DType> parseDType(StringRef name) {
  name.consume_front("torch.");
  return llvm::StringSwitch<std::optional<DType>>(name)
      .Cases({"float32", "float"}, DType::F32)
      .Case("bfloat16", DType::BF16)
      .Cases({"float16", "half"}, DType::F16)
      .Cases({"float64", "double"}, DType::F64)
      .Default(std::nullopt);
}

std::optional<DType> ModelReader::readDType(const json::Value &object) {
  std::optional<DType> first;
  for (StringRef key : {"torch_dtype", "dtype"}) {
    Field<StringRef> name = reader.string(object, key);
    if (!name.value || *name.value == "auto")
      continue;
    std::optional<DType> type = parseDType(*name.value);
    if (!type)
      reader.error(name.at(),
                   "'" + key + "' " + quoted(*name.value) +
                       " is none of float32, bfloat16, float16 and float64");
    else if (first && *first != *type)
      reader.error(name.at(), "'dtype' differs from 'torch_dtype'");
    else
      first = type;
  }
  return first;
}

DType ModelReader::readModelDType() {
  std::optional<DType> dtype = readDType(*config);
  if (!dtype && config != &root)
    dtype = readDType(root);
  return dtype.value_or(DType::F32);
}

/// Reads a model that has a bias instead of a rotation. Returns false for other
/// models.
bool ModelReader::readBiasAttention(ModelConfig &result) {
  if (!typeMember || !typeMember->value.isString())
    return false;
  const ModelRow *biased = findBiasModel(*config, typeMember->value.string());
  if (!biased)
    return false;
  Layers layers = readLayers(reader, *config, *biased);
  if (!divideLayers(reader, *config, layers).empty()) {
    reader.error(*config, "models of type '" + biased->type +
                              "', which have a bias, are not supported with "
                              "layers that differ");
    return true;
  }
  json::Value shared = replaceSharedValues(reader, *config, layers);
  reportPositionKeys(reader, shared, *biased, RopeDictionaries());
  readBiasModel(reader, shared, *biased, *typeMember, options, result);
  return true;
}

/// Whether the model normalizes queries and keys before the rotation. True for
/// unknown models.
bool ModelReader::mayNorm() const {
  const QkNormRow &norm = row->attention.norm;
  if (!isKnown)
    return true;
  if (norm.kind == QkNormKind::None || row->isLatent())
    return false;
  if (norm.enablingKey.empty())
    return true;
  const json::Member *member = ConfigReader::given(*config, norm.enablingKey);
  return member && member->value.isBool() && member->value.boolean();
}

void ModelReader::read(ModelConfig &result) {
  findTextConfig();
  if (isBroken)
    return;
  if (readBiasAttention(result)) {
    result.dtype = readModelDType();
    return;
  }
  if (!findRow() || !rotates())
    return;
  reportRequired();
  reportUnreadKeys(reader, *config, *row);
  Layers layers = readLayers(reader, *config, *row);
  std::vector<LayerSet> sets = divideLayers(reader, *config, layers);
  if (sets.empty()) {
    readLayer(replaceSharedValues(reader, *config, layers), result);
    result.namedLayers = nameLayers(layers);
    return;
  }
  std::vector<ModelConfig> configs;
  for (const LayerSet &set : sets) {
    ModelConfig &own = configs.emplace_back();
    readLayer(set.config, own);
    if (!set.rotates)
      removeRotation(own);
  }
  result = mergeSets(std::move(configs), sets);
}

/// Reads a config whose layers differ by their type at most.
void ModelReader::readLayer(const json::Value &layer, ModelConfig &result) {
  RopeDictionaries dicts = findRopeDictionaries(reader, layer);
  if (!reportPositionKeys(reader, layer, *row, dicts))
    return;
  result.modelType = modelType.str();
  readPairing(result);
  result.mayNorm = mayNorm();
  const json::Value &at = readHeadShape(reader, layer, *row,
                                        /*isNested=*/config != &root, result);
  if (!isUnrotated) {
    readRotations(reader, layer, *row, dicts, {result.headDim, &at},
                  options.ropeLength, result);
    readPositionAxes(reader, layer, *row, dicts, at, result);
  }
  if (options.attention && (isKnown || options.assumeAttention))
    readAttention(reader, layer, *row, isDecoder, options.qkNorm, result);
  if (row->changesWithLength)
    readQwenKeys(reader, layer, options.ropeLength, result);
  if (isUnrotated)
    removeRotation(result);
  result.dtype = readModelDType();
}

/// Makes a config that of layers without rotation, which have the functions of
/// the attention alone.
void ModelReader::removeRotation(ModelConfig &result) {
  result.rotaryDim = result.rotaryOffset = 0;
  result.rotations.clear();
  if (result.attention)
    for (LayerAttention &layer : result.attention->layers)
      layer.rotates = false;
}

} // namespace

std::optional<ModelConfig> posenc::frontend::readModelConfig(
    mlir::MLIRContext &context, StringRef text, StringRef fileName,
    llvm::SmallVectorImpl<Diagnostic> &diags, const ReadOptions &options) {
  json::ParseError error;
  std::unique_ptr<json::Document> document = json::Document::parse(text, error);
  if (!document) {
    diags.push_back({Severity::Error, fileName.str(), error.position.line,
                     error.position.col, error.message});
    return std::nullopt;
  }
  size_t firstOwn = diags.size();
  context.loadDialect<mlir::posenc::PosencDialect>();
  ConfigReader reader(context, *document, fileName, diags);
  ModelConfig result;
  if (document->root().isObject()) {
    reportDuplicates(reader, document->root());
    ModelReader(reader, document->root(), options).read(result);
  } else {
    reader.error(document->root(), "a config must be an object, not " +
                                       json::describeKind(document->root()));
  }
  // Sorts by all fields, so that the order is the same on every platform, and
  // removes duplicates: keys that hold for several layer types are read, and
  // their errors reported, once per type.
  auto tie = [](const Diagnostic &d) {
    return std::tie(d.line, d.col, d.severity, d.message);
  };
  llvm::sort(diags.begin() + firstOwn, diags.end(),
             [&](const Diagnostic &a, const Diagnostic &b) {
               return tie(a) < tie(b);
             });
  diags.erase(std::unique(diags.begin() + firstOwn, diags.end(),
                          [&](const Diagnostic &a, const Diagnostic &b) {
                            return tie(a) == tie(b);
                          }),
              diags.end());
  if (reader.hasErrors())
    return std::nullopt;
  if (options.pairing)
    result.interleaved = *options.pairing == Pairing::Interleaved;
  return result;
}
