//===- LayerTypes.cpp - one rotation for all layers -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerTypes.h"

#include "llvm/ADT/STLExtras.h"

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
