//===- LayerValues.cpp - keys whose values differ by layer ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerValues.h"

#include "LayerTypes.h"
#include "PositionKeys.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace posenc::frontend;
using llvm::StringLiteral;
using llvm::StringRef;
using llvm::Twine;

/// The maximum number of layers of a config whose layers differ. Published
/// models have at most a few hundred.
static constexpr int64_t kMaxLayers = 4096;

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
  bool fits(StringRef name, const json::Value &list);
  const json::Value *findTypeList() const;
  void readTypes();
  void readTypeNames();
  void deriveTypes();
  void readUnrotated();
  void readObjects();
  void readBlocks(const json::Member &member);
  void readBlock(size_t number, const json::Value &block);
  void readGroupSize(size_t number, const json::Member &member);
  void readLists();
  bool readObject(const json::Member &member, StringRef target);
  void readUnscaledLayers();
  void readTypeKeys();
  void readFullHeads();
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

//===----------------------------------------------------------------------===//
// Number and types of layers
//===----------------------------------------------------------------------===//

/// Returns the list of the layer types, or null.
const json::Value *LayersReader::findTypeList() const {
  for (StringRef key : {"layer_types", "layers_block_type"})
    if (const json::Member *list = ConfigReader::given(config, key))
      if (list->value.isArray())
        return &list->value;
  return nullptr;
}

std::optional<int64_t> LayersReader::findCount() const {
  for (StringRef key : {"num_hidden_layers", "n_layer", "n_layers",
                        "num_layers", "num_transformer_layers"})
    if (const json::Member *member = ConfigReader::given(config, key)) {
      std::optional<int64_t> count = member->value.integer();
      return count && *count >= 1 && *count <= kMaxLayers ? count
                                                          : std::nullopt;
    }
  if (const json::Value *types = findTypeList())
    return std::min<int64_t>(types->elements().size(), kMaxLayers);
  // Otherwise the first list by layer tells it.
  for (const json::Member &member : config.members())
    if (member.value.isArray() && !findTarget(member.name(), true).empty())
      return std::min<int64_t>(member.value.elements().size(), kMaxLayers);
  return std::nullopt;
}

/// Whether a list has an element for each layer. Lists may go on with those of
/// the layers that predict further tokens, which are not read.
bool LayersReader::fits(StringRef name, const json::Value &list) {
  size_t count = result.layers.size(), size = list.elements().size();
  const json::Member *more =
      ConfigReader::given(config, "num_nextn_predict_layers");
  std::optional<int64_t> extra =
      more ? more->value.integer() : std::optional<int64_t>();
  if (size == count || (extra && *extra > 0 && size == count + size_t(*extra)))
    return true;
  reader.error(list, "'" + name + "' has " + Twine(size) + " elements for " +
                         Twine(count) + " layers");
  return false;
}

/// Returns the type of a layer with full attention unless it is `other`.
static StringRef name(bool isOther, StringRef other) {
  return isOther ? other : StringRef(kFullLayers);
}

void LayersReader::readTypes() {
  readTypeNames();
  // Gemma 4 ends with full attention in any case.
  if (row.fullHeadDim != 0 && !result.layers.back().type.empty())
    result.layers.back().type = kFullLayers;
  if (row.attention.rotatesSlidingOnly && hasWindow(config, row))
    for (Layer &layer : result.layers)
      layer.rotates &= layer.type != kFullLayers;
}

void LayersReader::readTypeNames() {
  if (const json::Value *types = findTypeList()) {
    for (auto [layer, type] : llvm::zip(result.layers, types->elements()))
      if (type.isString()) {
        layer.type = type.string();
        layer.hasKeys = !hasNoKeys(layer.type);
      }
    return;
  }
  // MiMo marks the layers with a window by 1.
  const json::Member *pattern =
      ConfigReader::given(config, "hybrid_layer_pattern");
  if (pattern && pattern->value.isArray() &&
      fits(pattern->name(), pattern->value)) {
    for (auto [layer, value] :
         llvm::zip(result.layers, pattern->value.elements())) {
      std::optional<int64_t> slides = value.integer();
      if (slides != 0 && slides != 1)
        return reader.error(value, "'hybrid_layer_pattern' must hold 0 and 1");
      layer.type = name(slides == 1, kSlidingLayers);
    }
    return;
  }
  deriveTypes();
}

/// Sets the types that the model's implementation gives to layers if the config
/// has no `layer_types`.
void LayersReader::deriveTypes() {
  auto number = [&](StringRef key, int64_t absent) {
    const json::Member *member = ConfigReader::given(config, key);
    return member ? member->value.integer().value_or(absent) : absent;
  };
  const AttentionRow &traits = row.attention;
  if (traits.sliding != SlidingLayers::EveryNth && !traits.isChunked &&
      !hasWindow(config, row))
    return;
  for (auto [i, layer] : llvm::enumerate(result.layers)) {
    if (traits.isChunked) {
      layer.type = name(layer.rotates, kChunkedLayers);
    } else if (traits.sliding == SlidingLayers::EveryNth) {
      int64_t period = number("sliding_window_pattern", traits.slidingPattern);
      period = number("global_attn_every_n_layers", period);
      if (period < 1)
        return;
      int64_t full = traits.isFirstFull ? 0 : period - 1;
      bool isBeyond = int64_t(i) >= number("max_window_layers", kMaxLayers);
      layer.type =
          name(int64_t(i) % period != full && !isBeyond, kSlidingLayers);
    } else if (traits.sliding == SlidingLayers::FromMaxWindow) {
      int64_t first = number("max_window_layers", -1);
      if (first < 0)
        return;
      layer.type = name(int64_t(i) >= first, kSlidingLayers);
    } else if (traits.sliding == SlidingLayers::Unrotated) {
      layer.type = name(!layer.rotates, kSlidingLayers);
    }
  }
}

/// Reads which layers do not rotate. AttentionKeys.cpp reports errors in these
/// keys.
void LayersReader::readUnrotated() {
  int64_t interval = row.attention.unrotatedInterval;
  if (interval == 0 && !row.type.empty())
    return;
  const json::Member *list = ConfigReader::given(config, "no_rope_layers");
  result.readsRotating = interval != 0 || list;
  if (list && list->value.isArray() && !list->value.elements().empty()) {
    for (auto [layer, value] : llvm::zip(result.layers, list->value.elements()))
      layer.rotates = value.isBool() ? value.boolean() : value.integer() != 0;
    return;
  }
  if (const json::Member *member =
          ConfigReader::given(config, "no_rope_layer_interval"))
    interval = member->value.integer().value_or(interval);
  if (interval > 0)
    for (auto [i, layer] : llvm::enumerate(result.layers))
      layer.rotates = (i + 1) % interval != 0;
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
    for (auto [number, own] :
         llvm::enumerate(value.elements().take_front(result.layers.size()))) {
      bool isBase = llvm::is_contained(keys.theta, target);
      // Layers with the base 0 do not rotate.
      if (isBase && own.isNumber() && own.number() == 0)
        result.layers[number].rotates = false;
      else
        set(number, target, own);
    }
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
  readUnrotated();
  readTypes();
  readObjects();
  readLists();
  readUnscaledLayers();
  readTypeKeys();
  readFullHeads();
  dropCommon();
  return std::move(result);
}

Layers posenc::frontend::readLayers(ConfigReader &reader,
                                    const json::Value &config,
                                    const ModelRow &row) {
  return LayersReader(reader, config, row).read();
}
