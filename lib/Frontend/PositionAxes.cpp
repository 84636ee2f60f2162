//===- PositionAxes.cpp - position axes of configs ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionAxes.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <numeric>

using namespace posenc::frontend;
using llvm::StringLiteral;
using llvm::StringRef;
using llvm::Twine;

static constexpr StringLiteral sectionsKey = "mrope_section";

/// Reads the list of sections. Returns an empty list after an error.
static std::vector<int64_t> readSections(ConfigReader &reader,
                                         const json::Value &list) {
  constexpr size_t minAxes = 2, maxAxes = 8;
  // The limit of #posenc.axes (axes_c2).
  constexpr int64_t maxPairs = 32768;
  std::string quotedKey = "'" + sectionsKey.str() + "'";
  if (!list.isArray()) {
    reader.error(list, quotedKey + " must be a list of integers, not " +
                           json::describeKind(list));
    return {};
  }
  size_t count = list.elements().size();
  if (count < minAxes || count > maxAxes) {
    reader.error(list, quotedKey +
                           " must have 2 to 8 elements, one for each "
                           "position axis, not " +
                           Twine(count));
    return {};
  }
  std::vector<int64_t> sections;
  for (const json::Value &element : list.elements()) {
    if (!element.isNumber()) {
      reader.error(element, quotedKey + " must hold integers, not " +
                                json::describeKind(element));
      continue;
    }
    std::optional<int64_t> pairs = element.integer();
    if (!element.isIntegral() || !pairs || *pairs < 1 || *pairs > maxPairs)
      reader.error(element, quotedKey + " must hold integers from 1 to " +
                                Twine(maxPairs) + ", not " +
                                spelled(element.number()));
    else
      sections.push_back(*pairs);
  }
  if (sections.size() != count)
    sections.clear();
  return sections;
}

/// Sets the two axes of the patches of an image.
static void readPatchAxes(ConfigReader &reader, const ModelRow &row,
                          const json::Value &headSource, ModelConfig &result) {
  int64_t pairs = result.rotaryDim / 2;
  if (row.axes.areCoordinates) {
    if (pairs % 2 != 0)
      return reader.error(headSource,
                          "'head_dim' must be a multiple of 4, half of it for "
                          "each axis, not " +
                              Twine(result.rotaryDim));
    if (result.scaling)
      return reader.error(
          headSource, "'rope_type' must be default, because the model has no "
                      "scaling of coordinates");
    result.axes = {PositionAxes::Layout::Coordinates, {pairs / 2, pairs / 2}};
    result.scaling = mlir::posenc::GeometricScalingAttr::get(
        reader.getContext(), /*shift=*/reader.real(0),
        /*scale=*/reader.real(2 * M_PI));
    for (LayerRotation &rotation : result.rotations)
      rotation.scaling = result.scaling;
    return;
  }
  if (pairs == 1)
    return reader.error(headSource,
                        "'head_dim' must be at least 4, because rows and "
                        "columns rotate different channels, not 2");
  result.axes = {PositionAxes::Layout::Alternating,
                 {(pairs + 1) / 2, pairs / 2}};
}

/// Whether a dictionary names the type that requires sections.
static bool isNamedMrope(const json::Value &dict) {
  return llvm::any_of(
      llvm::ArrayRef<StringRef>{"rope_type", "type"}, [&](StringRef key) {
        const json::Member *type = ConfigReader::given(dict, key);
        return type && type->value.isString() &&
               type->value.string() == "mrope";
      });
}

/// Returns the dictionary that has the sections. Those of layer types must all
/// have the same.
static const json::Value *findSectionDictionary(const ModelRow &row,
                                                const RopeDictionaries &dicts) {
  if (!row.axes.areRequired || dicts.layers.empty())
    return dicts.main;
  auto sections = [](const LayerDictionary &layer) {
    return ConfigReader::given(layer.dict, sectionsKey);
  };
  const json::Member *first = sections(dicts.layers.front());
  bool areShared =
      first && llvm::all_of(dicts.layers, [&](const LayerDictionary &layer) {
        const json::Member *own = sections(layer);
        return own && json::deepEqual(own->value, first->value);
      });
  return areShared ? &dicts.layers.front().dict : nullptr;
}

/// Reports sections in the dictionaries of layer types.
static void reportLayerSections(ConfigReader &reader,
                                const RopeDictionaries &dicts) {
  for (const LayerDictionary &layer : dicts.layers) {
    const json::Member *member = ConfigReader::given(layer.dict, sectionsKey);
    if (member || isNamedMrope(layer.dict))
      reader.error(member ? member->key : layer.dict,
                   "'" + sectionsKey +
                       "' in the dictionary of a layer type is not supported: "
                       "expected a single dictionary for all layers");
  }
}

void posenc::frontend::readPositionAxes(ConfigReader &reader,
                                        const json::Value &config,
                                        const ModelRow &row,
                                        const RopeDictionaries &dicts,
                                        const json::Value &headSource,
                                        ModelConfig &result) {
  const json::Value *dict = findSectionDictionary(row, dicts);
  if (!dict)
    reportLayerSections(reader, dicts);
  if (row.axes.arePatches) {
    if (result.rotaryDim)
      readPatchAxes(reader, row, headSource, result);
    return;
  }
  const json::Member *member =
      dict ? ConfigReader::given(*dict, sectionsKey) : nullptr;
  PositionAxes axes;
  axes.layout = row.axes.areInterleaved ? PositionAxes::Layout::Interleaved
                                        : PositionAxes::Layout::Contiguous;
  const json::Value *at = &headSource;
  if (member) {
    at = &member->value;
    axes.sections = readSections(reader, *at);
    Field<bool> interleaved = reader.boolean(*dict, "mrope_interleaved");
    if (interleaved.value)
      axes.layout = *interleaved.value ? PositionAxes::Layout::Interleaved
                                       : PositionAxes::Layout::Contiguous;
  } else if (row.axes.areRequired) {
    axes.sections.assign(row.axes.defaultSections.begin(),
                         row.axes.defaultSections.end());
  } else if (dict && isNamedMrope(*dict)) {
    if (!dicts.broken)
      reader.missing(*dict, sectionsKey);
    return;
  }
  if (axes.sections.empty())
    return;
  int64_t sum =
      std::accumulate(axes.sections.begin(), axes.sections.end(), int64_t{0});
  if (result.rotaryDim && sum != result.rotaryDim / 2)
    return reader.error(
        *at, "the sum of '" + sectionsKey +
                 "' must be the number of pairs of "
                 "a head, " +
                 Twine(result.rotaryDim / 2) + ", but " +
                 (member ? "it is " : "the sum of the model's default is ") +
                 Twine(sum));
  result.axes = std::move(axes);
}
