//===- LayerTypes.cpp - one rotation for all layers -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerTypes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace posenc::frontend;
using llvm::StringRef;

static constexpr llvm::StringLiteral unsupported =
    "parameters per layer type are not supported yet";

/// Whether the config says that every layer is of the kind that the usual
/// keys speak of.
static bool allFullAttention(const json::Value &config) {
  const json::Member *types = ConfigReader::given(config, "layer_types");
  return types && types->value.isArray() && !types->value.elements().empty() &&
         llvm::all_of(types->value.elements(), [](const json::Value &type) {
           return type.isString() && type.string() == "full_attention";
         });
}

/// The sliding layers' own base, and with it their lack of a scaling.
static bool checkSlidingTheta(ConfigReader &reader, const json::Value &config,
                              const ModelRow &row, const ModelConfig &result) {
  Field<double> own;
  StringRef key = "rope_local_base_freq";
  for (StringRef name : {"local_rope_theta", "rope_local_base_freq"})
    if (Field<double> field = reader.number(config, name); field.given())
      own = field, key = name;
  if (own.bad() || (!own.given() && row.slidingTheta == 0))
    return true;
  double theta = own.value.value_or(row.slidingTheta);
  if (theta == result.ropeTheta &&
      result.scaling.kind == Scaling::Kind::Default)
    return true;
  reader.error(own.given() ? own.at() : config,
               "the sliding layers have a base of their own, '" + key + "' (" +
                   spelled(theta) + "): " + unsupported);
  return false;
}

void posenc::frontend::checkLayerTypes(ConfigReader &reader,
                                       const json::Value &config,
                                       const ModelRow &row,
                                       const RopeDictionaries &dicts,
                                       const ModelConfig &result) {
  // A dictionary keyed by layer type has been compared layer by layer.
  if (dicts.perLayerType || allFullAttention(config))
    return;
  if (!checkSlidingTheta(reader, config, row, result))
    return;
  if (row.slidingUnscaled && result.scaling.kind != Scaling::Kind::Default)
    reader.error(*dicts.main, "'" + dicts.name +
                                  "' does not apply to the sliding layers of "
                                  "'model_type' '" +
                                  row.type + "': " + unsupported);
}

void posenc::frontend::readLayerTypes(ConfigReader &reader,
                                      const json::Value &config,
                                      ModelConfig &result) {
  const json::Member *types = ConfigReader::given(config, "layer_types");
  if (!types)
    return;
  if (!types->value.isArray())
    return reader.error(types->value,
                        "'layer_types' must be a list of strings, not " +
                            json::describeKind(types->value));
  constexpr size_t maxTypes = 8;
  std::vector<std::string> names;
  for (const json::Value &type : types->value.elements()) {
    if (!type.isString())
      return reader.error(type, "'layer_types' must hold strings, not " +
                                    json::describeKind(type));
    StringRef name = type.string();
    if (llvm::is_contained(names, name))
      continue;
    if (name.empty() || !llvm::all_of(name, [](char c) {
          return llvm::isAlnum(c) || c == '_';
        }))
      return reader.error(type, "'layer_types' holds " + quoted(name) +
                                    ", which cannot be part of a name in C");
    if (names.size() == maxTypes)
      return reader.error(type, "'layer_types' holds more than 8 names");
    names.push_back(name.str());
  }
  if (names.size() > 1)
    result.layerTypes = std::move(names);
}
