//===- LayerOrder.cpp - number and types of the layers of a config --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerOrder.h"

#include "LayerTypes.h"

#include "llvm/ADT/STLExtras.h"

using namespace posenc::frontend;
using llvm::StringRef;
using llvm::Twine;

/// Returns the first of the lists, or null.
static const json::Value *findList(const json::Value &config,
                                   llvm::ArrayRef<StringRef> keys) {
  for (StringRef key : keys)
    if (const json::Member *list = ConfigReader::given(config, key))
      if (list->value.isArray())
        return &list->value;
  return nullptr;
}

std::optional<int64_t> posenc::frontend::countLayers(const json::Value &config,
                                                     size_t listed) {
  for (StringRef key : {"num_hidden_layers", "n_layer", "n_layers",
                        "num_layers", "num_transformer_layers"})
    if (const json::Member *member = ConfigReader::given(config, key)) {
      std::optional<int64_t> count = member->value.integer();
      return count && *count >= 1 && *count <= kMaxLayers ? count
                                                          : std::nullopt;
    }
  if (const json::Value *types = findList(
          config, {"layer_types", "layers_block_type", "hybrid_layer_pattern"}))
    listed = types->elements().size();
  if (listed == 0)
    return std::nullopt;
  return std::min<int64_t>(listed, kMaxLayers);
}

bool posenc::frontend::fitsLayers(ConfigReader &reader,
                                  const json::Value &config, StringRef name,
                                  const json::Value &list, size_t count) {
  size_t size = list.elements().size();
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

namespace {

class OrderReader {
public:
  OrderReader(ConfigReader &reader, const json::Value &config,
              const ModelRow &row, Layers &result)
      : reader(reader), config(config), row(row), result(result) {}

  void readUnrotated();
  void readTypes();

private:
  void readTypeNames();
  void deriveTypes();

  ConfigReader &reader;
  const json::Value &config;
  const ModelRow &row;
  Layers &result;
};

} // namespace

void OrderReader::readTypes() {
  readTypeNames();
  // Gemma 4 ends with full attention in any case.
  if (row.fullHeadDim != 0 && !result.layers.back().type.empty())
    result.layers.back().type = kFullLayers;
  if (!rotatesFullLayers(config, row))
    for (Layer &layer : result.layers)
      layer.rotates &= layer.type != kFullLayers;
}

void OrderReader::readTypeNames() {
  if (const json::Value *types =
          findList(config, {"layer_types", "layers_block_type"})) {
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
      fitsLayers(reader, config, pattern->name(), pattern->value,
                 result.layers.size())) {
    for (auto [layer, value] :
         llvm::zip(result.layers, pattern->value.elements())) {
      std::optional<int64_t> slides = value.integer();
      if (slides != 0 && slides != 1)
        return reader.error(value, "'hybrid_layer_pattern' must hold 0 and 1");
      layer.type = name(slides == 1, kSlidingLayers);
    }
    result.replaced.push_back(pattern->name());
    result.areTypesRenamed = true;
    return;
  }
  deriveTypes();
}

/// Sets the types that the model's implementation gives to layers if the config
/// has no `layer_types`.
void OrderReader::deriveTypes() {
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
void OrderReader::readUnrotated() {
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

void posenc::frontend::readLayerOrder(ConfigReader &reader,
                                      const json::Value &config,
                                      const ModelRow &row, Layers &result) {
  OrderReader order(reader, config, row, result);
  order.readUnrotated();
  order.readTypes();
}
