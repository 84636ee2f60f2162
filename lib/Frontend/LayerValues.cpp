//===- LayerValues.cpp - keys whose values differ by layer ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerValues.h"

#include "LayerOrder.h"
#include "LayerTypes.h"
#include "PositionKeys.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace posenc::frontend;
using llvm::StringRef;
using llvm::Twine;

namespace {

class LayersReader {
public:
  LayersReader(ConfigReader &reader, const json::Value &config,
               const ModelRow &row)
      : reader(reader), config(config), row(row), keys(*row.keys) {
    findKeys();
  }

  Layers read();

private:
  void findKeys();
  bool isKey(StringRef name) const { return llvm::is_contained(names, name); }
  StringRef findTarget(StringRef name, bool isList) const;
  std::optional<int64_t> findCount() const;
  bool fits(StringRef name, const json::Value &list) {
    return fitsLayers(reader, config, name, list, result.layers.size());
  }
  void readObjects();
  void readBlocks(const json::Member &member);
  void readBlock(size_t number, const json::Value &block);
  void readGroupSize(size_t number, const json::Member &member);
  void readLists();
  void dropSharedBase();
  bool readObject(const json::Member &member, StringRef target);
  void readUnscaledLayers();
  void readTypeKeys();
  void readFullHeads();
  void readSlidingKeyHeads();
  void setForType(StringRef type, StringRef key, const json::Value &value);
  void set(size_t layer, StringRef key, const json::Value &value);
  void dropCommon();
  std::optional<size_t> parseLayer(const json::Member &member,
                                   StringRef within);
  json::Value makeUnscaled(const json::Value &dict);

  ConfigReader &reader;
  const json::Value &config;
  const ModelRow &row;
  const KeyNames &keys;
  /// The keys that may differ by layer.
  llvm::SmallVector<StringRef, 32> names;
  Layers result;
};

} // namespace

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

void LayersReader::findKeys() {
  for (const Names *quantity :
       {&keys.heads, &keys.keyHeads, &keys.headDim, &keys.theta, &keys.partial,
        &keys.rotaryDim, &keys.window})
    for (StringRef name : *quantity)
      if (!name.empty() && !isKey(name))
        names.push_back(name);
  for (StringRef name :
       {"attention_chunk_size", "attention_multiplier",
        "attn_logit_softcapping", "head_dim", "num_attention_heads",
        "num_key_value_heads", "partial_rotary_factor", "qk_nope_head_dim",
        "qk_rope_head_dim", "query_pre_attn_scalar", "rope_parameters",
        "rope_scaling", "rope_theta", "sliding_window", "v_head_dim"})
    if (!isKey(name))
      names.push_back(name);
}

/// Returns the key whose values the member `name` lists, or an empty string.
/// Lists are also under longer names and under the plural.
StringRef LayersReader::findTarget(StringRef name, bool isList) const {
  StringRef stem = name;
  if (isKey(name))
    return name;
  if (!stem.consume_back("_per_layer") && !stem.consume_front("per_layer_") &&
      !(isList && (stem.consume_front("layer_") || stem.consume_back("s"))))
    return "";
  if (stem == "num_kv_heads")
    return keys.keyHeads[0];
  return isKey(stem) ? stem : StringRef();
}

/// Returns the number of layers, which the first list by layer tells if the
/// config does not give it.
std::optional<int64_t> LayersReader::findCount() const {
  for (const json::Member &member : config.members())
    if (member.value.isArray() && !findTarget(member.name(), true).empty())
      return countLayers(config, member.value.elements().size());
  return countLayers(config, 0);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void LayersReader::set(size_t layer, StringRef key, const json::Value &value) {
  for (const LayerValue &other : result.layers[layer].values) {
    if (other.key != key)
      continue;
    if (!json::deepEqual(other.value, value))
      reader.error(value, "'" + key + "' of layer " + Twine(layer) +
                              " differs from that at " +
                              reader.describePlace(other.value));
    return;
  }
  result.layers[layer].values.push_back({key, value});
}

void LayersReader::setForType(StringRef type, StringRef key,
                              const json::Value &value) {
  for (auto [number, layer] : llvm::enumerate(result.layers))
    if (layer.type == type)
      set(number, key, value);
}

/// Returns the layer that a key names, which may have leading zeros.
std::optional<size_t> LayersReader::parseLayer(const json::Member &member,
                                               StringRef within) {
  size_t number;
  if (!member.name().getAsInteger(10, number) && number < result.layers.size())
    return number;
  reader.error(member.key, "'" + within +
                               "' must have the numbers of layers, " + "0 to " +
                               Twine(result.layers.size() - 1) +
                               ", as keys, not " + quoted(member.name()));
  return std::nullopt;
}

/// Reads the members of `per_layer_config`. Those that concern other parts of a
/// layer, such as its size, are ignored.
void LayersReader::readObjects() {
  StringRef name = "per_layer_config";
  Field<const json::Value *> objects = reader.object(config, name);
  if (!objects.value)
    return;
  result.replaced.push_back(name);
  for (const json::Member &member : (*objects.value)->members()) {
    std::optional<size_t> number = parseLayer(member, name);
    if (!number || member.value.isNull())
      continue;
    if (!member.value.isObject()) {
      reader.error(member.value, "'" + name + "' must hold objects, not " +
                                     json::describeKind(member.value));
      continue;
    }
    for (const json::Member &own : member.value.members()) {
      if (own.name() == "skip") {
        for (const json::Value &part : own.value.elements())
          if (part.isString() &&
              llvm::is_contained({"attention", "attn", "self_attn", "mixer"},
                                 part.string()))
            result.layers[*number].hasKeys = false;
        continue;
      }
      if (isKey(own.name()) || isPositionKey(own.name()))
        set(*number, own.name(), own.value);
    }
  }
}

/// Reads a list of objects with the keys of each layer, which may be in another
/// object `attention`.
void LayersReader::readBlocks(const json::Member &member) {
  result.replaced.push_back(member.name());
  if (!fits(member.name(), member.value))
    return;
  for (auto [number, block] : llvm::enumerate(member.value.elements())) {
    if (number == result.layers.size())
      break;
    if (!block.isObject()) {
      reader.error(block, "'" + member.name() + "' must hold objects, not " +
                              json::describeKind(block));
      continue;
    }
    readBlock(number, block);
    if (const json::Member *inner = ConfigReader::given(block, "attention"))
      readBlock(number, inner->value);
  }
}

void LayersReader::readBlock(size_t number, const json::Value &block) {
  for (const json::Member &member : block.members()) {
    StringRef name = member.name();
    bool isTrue = member.value.isBool() && member.value.boolean();
    if (name == "no_op" || name == "replace_with_linear")
      result.layers[number].hasKeys &= !isTrue;
    else if (name == "n_heads_in_group" && !member.value.isNull())
      readGroupSize(number, member);
    else if (name == "window_length")
      set(number, keys.window[0], member.value);
    else if (name == "num_sink_tokens" && member.value.isNumber() &&
             member.value.number() != 0)
      reader.error(member.value, "'num_sink_tokens' is not supported");
    else if (isKey(name))
      set(number, name, member.value);
  }
}

/// Reads the number of query heads for each key head.
void LayersReader::readGroupSize(size_t number, const json::Member &member) {
  std::optional<int64_t> heads, group = member.value.integer();
  for (StringRef key : keys.heads)
    if (const json::Member *given = ConfigReader::given(config, key))
      heads = given->value.integer();
  if (!heads || !group || *group < 1 || *heads % *group != 0)
    return reader.error(member.value, "'" + member.name() +
                                          "' must be a number that divides '" +
                                          keys.heads[0] + "'");
  set(number, keys.keyHeads[0],
      json::Value::makeNumber(member.value.offset(), *heads / *group,
                              *heads / *group, /*integral=*/true));
}

/// Reads the lists and objects that hold the values of one key.
void LayersReader::readLists() {
  for (const json::Member &member : config.members()) {
    const json::Value &value = member.value;
    if (value.isArray() &&
        llvm::is_contained({"block_configs", "layer_configs"}, member.name())) {
      readBlocks(member);
      continue;
    }
    StringRef target = findTarget(member.name(), value.isArray());
    if (target.empty())
      continue;
    if (value.isObject()) {
      if (readObject(member, target))
        result.replaced.push_back(member.name());
      continue;
    }
    // Elements that are lists themselves are of another kind.
    if (!value.isArray() ||
        llvm::any_of(value.elements(),
                     [](const json::Value &one) { return one.isArray(); }))
      continue;
    result.replaced.push_back(member.name());
    if (!fits(member.name(), value))
      continue;
    bool isBase = llvm::is_contained(keys.theta, target);
    for (auto [number, own] :
         llvm::enumerate(value.elements().take_front(result.layers.size()))) {
      // Layers with the base 0 do not rotate.
      if (isBase && own.isNumber() && own.number() == 0) {
        result.layers[number].rotates = false;
        result.hasZeroBases = true;
      } else if (!isBase || row.layerBases != LayerBases::Zeros) {
        set(number, target, own);
      }
    }
    if (isBase && row.layerBases == LayerBases::Override)
      dropSharedBase();
  }
}

/// Removes the base of all layers from the dictionaries of the rotation.
void LayersReader::dropSharedBase() {
  for (StringRef key : {"rope_scaling", "rope_parameters"}) {
    const json::Member *dict = ConfigReader::given(config, key);
    if (!dict || !dict->value.isObject() || !dict->value.find("rope_theta"))
      continue;
    llvm::SmallVector<json::Member> members(dict->value.members());
    llvm::erase_if(members, [](const json::Member &member) {
      return member.name() == "rope_theta";
    });
    json::Value own = reader.makeObject(dict->value.offset(), members);
    for (size_t number = 0; number < result.layers.size(); ++number)
      set(number, key, own);
  }
}

/// Reads an object whose keys are the numbers of layers or, except for the
/// dictionaries of rotations, layer types. Returns false for other objects.
bool LayersReader::readObject(const json::Member &member, StringRef target) {
  llvm::ArrayRef<json::Member> own = member.value.members();
  auto isNumber = [](const json::Member &one) {
    return llvm::all_of(one.name(), llvm::isDigit) && !one.name().empty();
  };
  auto isType = [&](const json::Member &one) {
    return llvm::any_of(result.layers, [&](const Layer &layer) {
      return layer.type == one.name();
    });
  };
  bool isDictionary = target == "rope_scaling" || target == "rope_parameters";
  if (own.empty() || result.layers.empty())
    return false;
  if (llvm::all_of(own, isNumber)) {
    llvm::SmallVector<bool> isGiven(result.layers.size());
    for (const json::Member &one : own)
      if (std::optional<size_t> number = parseLayer(one, member.name())) {
        isGiven[*number] = true;
        set(*number, target, one.value);
      }
    // Otherwise the key without the suffix has the values of the others.
    const bool *absent = llvm::find(isGiven, false);
    if (target == member.name() && absent != isGiven.end())
      reader.error(member.value, "'" + member.name() + "' has no value for " +
                                     "layer " +
                                     Twine(absent - isGiven.begin()));
    return true;
  }
  if (isDictionary || !llvm::any_of(own, isType))
    return false;
  for (const json::Member &one : own)
    setForType(one.name(), target, one.value);
  for (const Layer &layer : result.layers)
    if (target == member.name() && layer.hasKeys &&
        !member.value.find(layer.type)) {
      reader.error(member.value, "'" + member.name() + "' has no value for '" +
                                     layer.type + "'");
      break;
    }
  return true;
}

//===----------------------------------------------------------------------===//
// Keys of one type
//===----------------------------------------------------------------------===//

/// Reads the keys that hold for layers of one type, such as `swa_head_dim`.
void LayersReader::readTypeKeys() {
  for (const json::Member &member : config.members()) {
    StringRef name = member.name();
    if (name.consume_front("swa_") && isKey(name) && !member.value.isNull())
      setForType(kSlidingLayers, name, member.value);
  }
  const json::Member *other =
      ConfigReader::given(config, "attention_other_setting");
  if (!other || !other->value.isObject())
    return;
  StringRef type = kSlidingLayers;
  if (const json::Member *given =
          ConfigReader::given(other->value, "attention_type"))
    if (given->value.isString())
      type = given->value.string();
  for (const json::Member &member : other->value.members()) {
    if (member.name() == "num_attention_groups")
      setForType(type, keys.keyHeads[0], member.value);
    else if (isKey(member.name()))
      setForType(type, member.name(), member.value);
  }
}

/// Reads the heads of the full-attention layers of models in which they differ.
/// `per_layer_config` replaces the defaults.
void LayersReader::readFullHeads() {
  if (row.fullHeadDim == 0)
    return;
  Field<int64_t> size = reader.count(config, "global_head_dim");
  Field<int64_t> keyHeads = reader.count(config, "num_global_key_value_heads");
  Field<bool> isShared = reader.boolean(config, "attention_k_eq_v");
  if (size.value)
    setForType(kFullLayers, keys.headDim[0], size.at());
  else if (!size.given() && !ConfigReader::given(config, "per_layer_config"))
    setForType(kFullLayers, keys.headDim[0],
               json::Value::makeNumber(config.offset(), row.fullHeadDim,
                                       row.fullHeadDim, /*integral=*/true));
  // Only then do keys and values share their projection.
  if (keyHeads.value && isShared.value.value_or(false))
    setForType(kFullLayers, keys.keyHeads[0], keyHeads.at());
}

/// Multiplies the key heads of the sliding layers of models in which they
/// differ.
void LayersReader::readSlidingKeyHeads() {
  if (row.slidingKeyHeadFactor == 1 ||
      ConfigReader::given(config, "swa_num_key_value_heads"))
    return;
  Field<int64_t> given = reader.count(config, keys.keyHeads[0]);
  if (given.bad())
    return;
  if (llvm::all_of(result.layers,
                   [](const Layer &layer) { return layer.type.empty(); }))
    return reader.missing(config, "layer_types");
  int64_t count =
      given.value.value_or(row.defaultKeyHeads) * row.slidingKeyHeadFactor;
  setForType(kSlidingLayers, keys.keyHeads[0],
             json::Value::makeNumber(given.given() ? given.at().offset()
                                                   : config.offset(),
                                     count, count, /*integral=*/true));
}

/// Returns a dictionary of a rotation without its scaling.
json::Value LayersReader::makeUnscaled(const json::Value &dict) {
  llvm::SmallVector<json::Member> members;
  for (const json::Member &member : dict.members())
    if (member.name() == "rope_theta" ||
        member.name() == "partial_rotary_factor")
      members.push_back(member);
  members.push_back({json::Value::makeString(dict.offset(), "rope_type"),
                     json::Value::makeString(dict.offset(), "default")});
  return reader.makeObject(dict.offset(), members);
}

/// Reads `rope_scaling_layers`, the numbers of the layers whose frequencies are
/// scaled.
void LayersReader::readUnscaledLayers() {
  StringRef name = "rope_scaling_layers";
  const json::Member *list = ConfigReader::given(config, name);
  if (!list)
    return;
  result.replaced.push_back(name);
  if (!list->value.isArray())
    return reader.error(list->value, "'" + name + "' must be a list, not " +
                                         json::describeKind(list->value));
  llvm::SmallVector<bool> isScaled(result.layers.size());
  for (const json::Value &value : list->value.elements()) {
    std::optional<int64_t> number = value.integer();
    if (!number || *number < 0 || *number >= int64_t(isScaled.size()))
      return reader.error(value, "'" + name + "' must hold the numbers of " +
                                     "layers, 0 to " +
                                     Twine(isScaled.size() - 1));
    isScaled[*number] = true;
  }
  for (StringRef key : {"rope_scaling", "rope_parameters"}) {
    const json::Member *dict = ConfigReader::given(config, key);
    if (!dict || !dict->value.isObject())
      continue;
    json::Value unscaled = makeUnscaled(dict->value);
    for (auto [number, scaled] : llvm::enumerate(isScaled))
      if (!scaled)
        set(number, key, unscaled);
  }
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

/// Removes the values that the config itself has.
void LayersReader::dropCommon() {
  for (Layer &layer : result.layers)
    llvm::erase_if(layer.values, [&](const LayerValue &own) {
      if (llvm::is_contained(result.replaced, own.key))
        return false;
      const json::Member *member = config.find(own.key);
      return member ? json::deepEqual(member->value, own.value)
                    : own.value.isNull();
    });
}

Layers LayersReader::read() {
  std::optional<int64_t> count = findCount();
  if (!count) {
    // Layers without numbers: one of each type.
    if (row.fullHeadDim != 0) {
      result.layers.resize(2);
      result.layers[0].type = kSlidingLayers;
      result.layers[1].type = kFullLayers;
      result.areNumbered = false;
      readFullHeads();
      dropCommon();
    }
    for (StringRef key : {"per_layer_config", "rope_scaling_layers"})
      if (const json::Member *member = ConfigReader::given(config, key))
        reader.error(member->key, "'" + key +
                                      "' needs 'num_hidden_layers', a "
                                      "number up to " +
                                      Twine(kMaxLayers));
    return std::move(result);
  }
  result.layers.resize(*count);
  readLayerOrder(reader, config, row, result);
  readObjects();
  readLists();
  readUnscaledLayers();
  readTypeKeys();
  readFullHeads();
  readSlidingKeyHeads();
  dropCommon();
  return std::move(result);
}

Layers posenc::frontend::readLayers(ConfigReader &reader,
                                    const json::Value &config,
                                    const ModelRow &row) {
  return LayersReader(reader, config, row).read();
}
