//===- LayerSets.cpp - layers that share a config -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerSets.h"

#include "LayerTypes.h"

#include "llvm/ADT/STLExtras.h"

using namespace posenc::frontend;
using llvm::StringRef;

/// The key with which the readers of a set of layers that rotates know that all
/// do, for models that leave out some layers by default.
static constexpr llvm::StringLiteral kRotatingKey = "no_rope_layers";

static bool haveSameValues(const Layer &a, const Layer &b) {
  return a.values.size() == b.values.size() &&
         llvm::all_of(a.values, [&](const LayerValue &own) {
           return llvm::any_of(b.values, [&](const LayerValue &other) {
             return own.key == other.key &&
                    json::deepEqual(own.value, other.value);
           });
         });
}

static void setMember(llvm::SmallVectorImpl<json::Member> &members,
                      StringRef key, const json::Value &value) {
  auto found = llvm::find_if(
      members, [&](const json::Member &one) { return one.name() == key; });
  if (found != members.end())
    found->value = value;
  else
    members.push_back({json::Value::makeString(value.offset(), key), value});
}

/// Returns the members of the config, with those of a layer in the place of
/// those that give them.
static llvm::SmallVector<json::Member> getMembers(const json::Value &config,
                                                  const Layers &layers,
                                                  const Layer &layer) {
  llvm::SmallVector<json::Member> members;
  llvm::copy_if(config.members(), std::back_inserter(members),
                [&](const json::Member &member) {
                  return !llvm::is_contained(layers.replaced, member.name());
                });
  for (const LayerValue &own : layer.values)
    setMember(members, own.key, own.value);
  return members;
}

json::Value posenc::frontend::replaceSharedValues(ConfigReader &reader,
                                                  const json::Value &config,
                                                  const Layers &layers) {
  const Layer *first = llvm::find_if(llvm::ArrayRef(layers.layers),
                                     [](const Layer &l) { return l.hasKeys; });
  if (first == llvm::ArrayRef(layers.layers).end() ||
      (layers.replaced.empty() && first->values.empty()))
    return config;
  llvm::SmallVector<json::Member> members = getMembers(config, layers, *first);
  if (layers.areTypesRenamed) {
    std::vector<json::Value> types;
    for (const Layer &layer : layers.layers)
      types.push_back(json::Value::makeString(config.offset(), layer.type));
    setMember(members, "layer_types", reader.makeArray(config.offset(), types));
  }
  return reader.makeObject(config.offset(), members);
}

std::vector<LayerSet> posenc::frontend::divideLayers(ConfigReader &reader,
                                                     const json::Value &config,
                                                     const Layers &layers) {
  llvm::SmallVector<const Layer *> first;
  std::vector<LayerSet> sets;
  for (auto [number, layer] : llvm::enumerate(layers.layers)) {
    if (!layer.hasKeys)
      continue;
    auto same = llvm::find_if(first, [&layer = layer](const Layer *other) {
      return layer.type == other->type && layer.rotates == other->rotates &&
             haveSameValues(layer, *other);
    });
    if (same == first.end()) {
      first.push_back(&layer);
      sets.push_back({layer.type, layer.rotates, {}, {}});
      same = std::prev(first.end());
    }
    if (layers.areNumbered)
      sets[same - first.begin()].numbers.push_back(number);
  }
  if (!layers.hasZeroBases && llvm::all_of(first, [&](const Layer *layer) {
        return haveSameValues(*layer, *first.front());
      }))
    return {};
  // Each set has a copy of the config, and functions of its own.
  constexpr size_t maxSets = 64, maxKeys = 10000;
  if (sets.size() > maxSets || config.members().size() > maxKeys) {
    reader.error(config, "expected at most " + llvm::Twine(maxSets) +
                             " different sets of layers, and " +
                             llvm::Twine(maxKeys) +
                             " keys in a config whose layers differ, got " +
                             llvm::Twine(sets.size()) + " and " +
                             llvm::Twine(config.members().size()));
    return {};
  }
  for (auto [set, layer] : llvm::zip_equal(sets, first)) {
    llvm::SmallVector<json::Member> members =
        getMembers(config, layers, *layer);
    uint32_t at = config.offset();
    llvm::erase_if(members, [](const json::Member &member) {
      return member.name() == "num_hidden_layers";
    });
    if (!set.type.empty())
      setMember(members, "layer_types",
                reader.makeArray(at, json::Value::makeString(at, set.type)));
    if (layers.readsRotating)
      setMember(members, kRotatingKey,
                reader.makeArray(at, json::Value::makeBool(at, true)));
    set.config = reader.makeObject(at, members);
  }
  return sets;
}

std::string posenc::frontend::spellLayers(llvm::ArrayRef<int64_t> numbers) {
  std::string text;
  for (size_t first = 0, end; first < numbers.size(); first = end) {
    for (end = first + 1;
         end < numbers.size() && numbers[end] == numbers[end - 1] + 1;)
      ++end;
    text += (first ? ", " : "") + std::to_string(numbers[first]);
    if (end - first > 1)
      text += (end - first > 2 ? "-" : ", ") + std::to_string(numbers[end - 1]);
  }
  return text;
}

std::vector<NamedLayers> posenc::frontend::nameLayers(const Layers &layers) {
  struct Numbers {
    StringRef type;
    std::vector<int64_t> rotating, unrotated;
  };
  std::vector<Numbers> types;
  for (auto [number, layer] : llvm::enumerate(layers.layers)) {
    if (!layer.hasKeys)
      continue;
    auto found = llvm::find_if(types, [&layer = layer](const Numbers &one) {
      return one.type == layer.type;
    });
    if (found == types.end())
      found = types.insert(found, {layer.type, {}, {}});
    (layer.rotates ? found->rotating : found->unrotated).push_back(number);
  }
  std::vector<NamedLayers> result;
  auto add = [&](const std::string &suffix, std::vector<int64_t> &numbers) {
    if (layers.areNumbered && !numbers.empty())
      result.push_back({suffix, std::move(numbers)});
  };
  for (Numbers &one : types) {
    bool isSplit = !one.rotating.empty() && !one.unrotated.empty();
    std::string type = one.type.str();
    add(isSplit ? type + (type.empty() ? "nope" : "_nope") : type,
        one.unrotated);
    add(type, one.rotating);
  }
  // A single suffix would be for all layers.
  if (result.size() < 2)
    result.clear();
  return result;
}

//===----------------------------------------------------------------------===//
// Merging
//===----------------------------------------------------------------------===//

bool AttentionConfig::isLike(const AttentionConfig &other) const {
  return numKeyValueHeads == other.numKeyValueHeads &&
         headDim == other.headDim && valueDim == other.valueDim &&
         rotaryOffset == other.rotaryOffset && scale == other.scale &&
         softCap == other.softCap && norm == other.norm &&
         isCausal == other.isCausal && hasSinks == other.hasSinks &&
         layers.size() == other.layers.size() &&
         llvm::all_of(llvm::zip(layers, other.layers), [](auto pair) {
           auto &[one, another] = pair;
           return one.isLike(another);
         });
}

static bool haveSameFunctions(const ModelConfig &a, const ModelConfig &b) {
  return a.ropesLike(b) && a.attention.has_value() == b.attention.has_value() &&
         (!a.attention || a.attention->isLike(*b.attention));
}

/// The functions of a set are named after its type, or after its first layer if
/// there are other sets of the type.
static std::string nameSet(const LayerSet &set,
                           const std::vector<LayerSet> &sets) {
  bool isOnly = llvm::none_of(sets, [&](const LayerSet &other) {
    return &other != &set && other.type == set.type &&
           other.rotates == set.rotates;
  });
  bool isUnrotated = !set.rotates;
  std::string suffix;
  if (!isOnly || (set.type.empty() && set.rotates))
    suffix = "_layer_" + std::to_string(set.numbers.front());
  else if (!set.type.empty())
    suffix = "_" + set.type.str();
  // Layers that do not rotate need no mark if the type alone tells them.
  bool isMarked = isUnrotated && llvm::any_of(sets, [&](const LayerSet &other) {
                    return other.type == set.type && other.rotates;
                  });
  return isMarked || (isUnrotated && suffix.empty()) ? suffix + "_nope"
                                                     : suffix;
}

/// Adds layers to those of a suffix.
static void addLayers(std::vector<NamedLayers> &namedLayers, StringRef suffix,
                      llvm::ArrayRef<int64_t> numbers) {
  auto found = llvm::find_if(namedLayers, [&](const NamedLayers &named) {
    return named.suffix == suffix;
  });
  if (found == namedLayers.end())
    found = namedLayers.insert(found, {suffix.str(), {}});
  llvm::append_range(found->layers, numbers);
  llvm::sort(found->layers);
}

ModelConfig posenc::frontend::mergeSets(std::vector<ModelConfig> configs,
                                        llvm::ArrayRef<LayerSet> layers) {
  std::vector<LayerSet> sets;
  std::vector<ModelConfig> merged;
  for (auto [config, set] : llvm::zip_equal(configs, layers)) {
    bool isMerged = false;
    for (auto [other, kept] : llvm::zip_equal(merged, sets)) {
      if (kept.type != set.type || kept.rotates != set.rotates ||
          !haveSameFunctions(config, other))
        continue;
      llvm::append_range(kept.numbers, set.numbers);
      llvm::sort(kept.numbers);
      isMerged = true;
      break;
    }
    if (isMerged)
      continue;
    merged.push_back(std::move(config));
    sets.push_back(set);
  }
  if (merged.size() == 1)
    return std::move(merged.front());
  std::vector<NamedLayers> namedLayers;
  for (auto [config, set] : llvm::zip_equal(merged, sets)) {
    config.suffix = nameSet(set, sets);
    config.layerType = set.type.str();
    if (set.numbers.empty())
      continue;
    std::string suffix = StringRef(config.suffix).drop_front().str();
    namedLayers.push_back({suffix, set.numbers});
    // Functions for several sets of a type.
    if (set.rotates && !set.type.empty() && suffix != set.type)
      addLayers(namedLayers, set.type, set.numbers);
  }
  // The model itself has the values of its full-attention layers.
  ModelConfig result = merged.front();
  for (auto [config, set] : llvm::zip_equal(merged, sets))
    if (set.type == kFullLayers) {
      result = config;
      break;
    }
  result.suffix.clear();
  for (ModelConfig &config : merged)
    config.namedLayers = namedLayers;
  result.namedLayers = std::move(namedLayers);
  result.sets = std::move(merged);
  return result;
}
