//===- PositionKeys.cpp - checks the keys that change rotations -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionKeys.h"

#include "BiasModels.h"
#include "RopeTypes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <tuple>

using namespace posenc::frontend;
using llvm::StringLiteral;
using llvm::StringRef;

/// Whether the row of a model type names the key.
static bool isNamedBy(const ModelRow &row, StringRef key) {
  const KeyNames &keys = *row.keys;
  for (const Names *names : {&keys.theta, &keys.partial, &keys.rotaryDim,
                             &keys.window, &keys.headDim, &keys.maxPosition})
    if (llvm::is_contained(*names, key))
      return true;
  if (key == "position_embedding_type" && !row.positionType.empty())
    return true;
  return llvm::is_contained({row.interleaveKey, row.thetaFactorKey,
                             row.rotationKey, row.attention.causalKey,
                             row.attention.unsupportedKey},
                            key);
}

bool PositionKey::isReadBy(const ModelRow &row) const {
  if (isRead || isNamedBy(row, name))
    return true;
  return row.type.empty() ? isReadForUnknown
                          : llvm::is_contained(readTypes, row.type);
}

/// Returns a dictionary of the rotation; null if there is none, or an empty
/// one.
static const json::Value *findDictionary(const json::Value &config,
                                         StringRef name) {
  const json::Member *member = ConfigReader::given(config, name);
  bool isGiven =
      member && member->value.isObject() && !member->value.members().empty();
  return isGiven ? &member->value : nullptr;
}

bool PositionKey::isReadByModel(const ModelRow &row,
                                const json::Value &config) const {
  const json::Value *dict = findDictionary(config, "rope_parameters");
  bool isAlone = !dict && !findDictionary(config, "rope_scaling");
  return (knownTypes.empty() || llvm::is_contained(knownTypes, row.type)) &&
         !llvm::is_contained(ignoringTypes, row.type) &&
         !(isAlone && llvm::is_contained(ignoringAloneTypes, row.type)) &&
         !(dict && !isPerLayerType(*dict) &&
           llvm::is_contained(ignoringFlatTypes, row.type));
}

bool PositionKey::isNeutral(const json::Value &object,
                            const json::Value &value) const {
  const json::Member *same = sameAs.empty() ? nullptr : object.find(sameAs);
  if (value.isNull() || (same && json::deepEqual(same->value, value)))
    return true;
  if (value.isBool())
    return neutral & (value.boolean() ? kTrue : kFalse);
  if (value.isNumber())
    return ((neutral & kZero) && value.number() == 0) ||
           ((neutral & kOne) && value.number() == 1) ||
           ((neutral & kNegative) && value.number() < 0);
  if (!(neutral & kEmpty))
    return false;
  if (value.isString())
    return value.string().empty();
  return value.isArray() ? value.elements().empty() : value.members().empty();
}

/// Names the values by which a key changes nothing, without null.
static std::string spellNeutral(const PositionKey &key) {
  static constexpr std::pair<Neutral, StringLiteral> names[] = {
      {kFalse, "false"}, {kTrue, "true"},         {kZero, "0"},
      {kOne, "1"},       {kNegative, "negative"}, {kEmpty, "empty"},
  };
  llvm::SmallVector<StringRef> values;
  for (const auto &[flag, name] : names)
    if (key.neutral & flag)
      values.push_back(name);
  std::string same = "that of '" + key.sameAs.str() + "'";
  if (!key.sameAs.empty())
    values.push_back(same);
  return llvm::join(values, ", ");
}

static const PositionKey *findKey(StringRef name, bool isOfDictionary) {
  llvm::ArrayRef<PositionKey> rows = getPositionKeyRows();
  const PositionKey *found = llvm::find_if(rows, [&](const PositionKey &key) {
    return key.name == name && key.isOfDictionary == isOfDictionary;
  });
  return found == rows.end() ? nullptr : found;
}

bool posenc::frontend::isPositionKey(StringRef name) {
  return findKey(name, /*isOfDictionary=*/false);
}

bool posenc::frontend::isUnreadDictionaryKey(StringRef name) {
  const PositionKey *key = findKey(name, /*isOfDictionary=*/true);
  return key && !key->isRead;
}

/// Returns the key that gives the fraction of a head that rotates, in a config
/// of an unknown type or in its dictionary; empty if there is none.
static StringRef findFraction(const json::Value &config,
                              const RopeDictionaries &dicts) {
  for (StringRef key : unknownModel().keys->partial)
    if (ConfigReader::given(config, key))
      return key;
  StringRef key = "partial_rotary_factor";
  return dicts.main && ConfigReader::given(*dicts.main, key) ? key : "";
}

/// Reports a key that is not read and not neutral. `fraction` is the key of
/// the fraction of a head that rotates. Returns false if reading cannot
/// continue.
static bool reportKey(ConfigReader &reader, const json::Member &member,
                      const ModelRow &row, const PositionKey &key,
                      StringRef fraction) {
  std::string name = "'" + key.name.str() + "'";
  if (row.type.empty()) {
    if (key.name == "qk_rope_head_dim" && !fraction.empty())
      reader.error(member.key, name + " and '" + fraction +
                                   "' need a known 'model_type': both set the "
                                   "number of channels that rotate");
    else if (key.needsType)
      reader.error(member.key,
                   name + " needs a known 'model_type': it " + key.effect);
    else
      reader.warning(member.key, name +
                                     " is ignored, because 'model_type' is "
                                     "unknown: it " +
                                     key.effect);
    return !key.needsType;
  }
  std::string advice = key.advice.str();
  if (advice.empty())
    advice = "remove it if the implementation of the model does not use it";
  reader.error(member.key, name + " is not supported for models of type '" +
                               row.type + "': it " + key.effect + "; " +
                               advice);
  return true;
}

/// Whether the value of a key, a number or a dictionary, gives a rotation that
/// the model does not have without it. Others are errors elsewhere.
static bool changesRotation(StringRef key, const json::Value &value,
                            const ModelRow &row) {
  double base = row.aloneTheta != 0 ? row.aloneTheta : row.defaultTheta;
  if (value.isNumber())
    return value.number() != (key == "rope_theta" ? base : row.slidingTheta);
  if (!value.isObject())
    return false;
  for (StringRef name : {"rope_type", "type"})
    if (const json::Member *type = ConfigReader::given(value, name))
      if (!type->value.isString() || type->value.string() != "default")
        return true;
  const json::Member *own = ConfigReader::given(value, "rope_theta");
  return own && own->value.isNumber() && own->value.number() != base;
}

void posenc::frontend::reportUnreadKeys(ConfigReader &reader,
                                        const json::Value &config,
                                        const ModelRow &row) {
  // The code of unknown types may read all keys.
  if (row.type.empty())
    return;
  for (const json::Member &member : config.members()) {
    const PositionKey *key = findKey(member.name(), /*isOfDictionary=*/false);
    if (!key || !key->isReadBy(row) || key->isReadByModel(row, config) ||
        !changesRotation(key->name, member.value, row))
      continue;
    bool readsTypes = llvm::is_contained(key->ignoringFlatTypes, row.type);
    reader.warning(member.value,
                   "'" + key->name + "' is read, but the code of '" + row.type +
                       "' in transformers " +
                       (readsTypes ? "reads only a dictionary for each layer "
                                     "type"
                                   : "is not known to read it"));
  }
}

static bool reportMembers(ConfigReader &reader, const json::Value &object,
                          const ModelRow &row, bool isOfDictionary,
                          StringRef fraction = "") {
  bool canContinue = true;
  for (const json::Member &member : object.members()) {
    const PositionKey *key = findKey(member.name(), isOfDictionary);
    if (!key || key->isReadBy(row) || key->isNeutral(object, member.value))
      continue;
    bool isKnown = !row.type.empty();
    if (isKnown && !key->isRefused &&
        !llvm::is_contained(key->refusedTypes, row.type))
      continue;
    canContinue &= reportKey(reader, member, row, *key, fraction);
  }
  return canContinue;
}

/// Reports full-attention layers of Cohere 2 MoE that rotate unlike the others:
/// those with a dense MLP, if the pattern of their windows is 1, the default.
static void reportDenseLayers(ConfigReader &reader, const json::Value &config) {
  const json::Member *pattern =
      ConfigReader::given(config, "prefix_dense_sliding_window_pattern");
  if (pattern && !(pattern->value.isNumber() && pattern->value.number() == 1))
    return;
  const json::Member *prefix =
      ConfigReader::given(config, "first_k_dense_replace");
  const json::Member *dense = ConfigReader::given(config, "mlp_layer_types");
  const json::Member *types = ConfigReader::given(config, "layer_types");
  auto isFull = [&](size_t layer) {
    return !types || !types->value.isArray() ||
           layer >= types->value.elements().size() ||
           !types->value.elements()[layer].isString() ||
           types->value.elements()[layer].string() == "full_attention";
  };
  bool rotates = !dense && prefix && prefix->value.isNumber() &&
                 prefix->value.number() > 0 && isFull(0);
  if (dense && dense->value.isArray())
    for (auto [layer, type] : llvm::enumerate(dense->value.elements()))
      rotates |= type.isString() && type.string() == "dense" && isFull(layer);
  if (rotates)
    reader.error(dense ? dense->key : prefix->key,
                 "'" + (dense ? dense : prefix)->name() +
                     "' has dense layers with full attention, which rotate "
                     "unlike the other layers with full attention; this is not "
                     "supported");
}

bool posenc::frontend::reportPositionKeys(ConfigReader &reader,
                                          const json::Value &config,
                                          const ModelRow &row,
                                          const RopeDictionaries &dicts) {
  if (row.type == "cohere2_moe")
    reportDenseLayers(reader, config);
  bool canContinue =
      reportMembers(reader, config, row, /*isOfDictionary=*/false,
                    findFraction(config, dicts));
  if (dicts.main)
    canContinue &= reportMembers(reader, *dicts.main, row,
                                 /*isOfDictionary=*/true);
  for (const LayerDictionary &layer : dicts.layers)
    canContinue &= reportMembers(reader, layer.dict, row,
                                 /*isOfDictionary=*/true);
  return canContinue;
}

//===----------------------------------------------------------------------===//
// Listing
//===----------------------------------------------------------------------===//

/// Says which types read the partial factor.
static std::string describeFraction() {
  llvm::SmallVector<StringRef> readers, latent;
  for (const ModelRow &row : getModels())
    if (row.isLatent())
      latent.push_back(row.type);
    else if (row.readsPartial)
      readers.push_back(row.type);
  llvm::sort(readers);
  llvm::sort(latent);
  return "read for " + llvm::join(readers, ", ") + "; ignored for " +
         llvm::join(latent, ", ") + "; else read with a warning";
}

/// Says for which types a key is read, and what it is for others.
static std::string describeReading(const PositionKey &key) {
  if (key.name == "partial_rotary_factor")
    return describeFraction();
  auto list = [](StringRef before, llvm::ArrayRef<StringLiteral> types) {
    return types.empty() ? std::string()
                         : (before + llvm::join(types, ", ")).str();
  };
  std::string unread = list("; read with a warning for ", key.ignoringTypes) +
                       list("; without a dictionary, read with a warning for ",
                            key.ignoringAloneTypes) +
                       list("; without layer types, read with a warning for ",
                            key.ignoringFlatTypes);
  if (!key.knownTypes.empty())
    return list("read for ", key.knownTypes) + "; else read with a warning";
  if (key.isRead)
    return "read" + unread;
  llvm::SmallVector<StringRef> types;
  for (llvm::ArrayRef<ModelRow> rows : {getModels(), getBiasModels()})
    for (const ModelRow &row : rows)
      if (key.isReadBy(row) && !llvm::is_contained(key.ignoringTypes, row.type))
        types.push_back(row.type);
  llvm::sort(types);
  std::string result;
  if (!types.empty())
    result = "read for " + llvm::join(types, ", ") + unread + "; ";
  if (!key.refusedTypes.empty())
    result += "error for " + llvm::join(key.refusedTypes, ", ") + "; ";
  return result + (result.empty() ? "" : "else ") +
         (key.isRefused ? "error" : "ignored");
}

std::vector<ConfigKey> posenc::frontend::getPositionKeys() {
  std::vector<ConfigKey> result;
  auto add = [&](const PositionKey &key) {
    result.push_back({key.name, key.isOfDictionary, key.effect,
                      spellNeutral(key), describeReading(key)});
  };
  llvm::for_each(getPositionKeyRows(), add);
  for (const RopeKey &key : getRopeKeys())
    add(PositionKey(key.name, key.effect).inDictionary().read());
  llvm::sort(result, [](const ConfigKey &a, const ConfigKey &b) {
    return std::tie(a.isOfDictionary, a.name) <
           std::tie(b.isOfDictionary, b.name);
  });
  return result;
}
