//===- RopeDictionary.cpp - rope_scaling and rope_parameters of a config --===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RopeDictionary.h"

#include "LayerTypes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace posenc::frontend;
using llvm::StringRef;

bool posenc::frontend::isSharedRopeKey(StringRef key) {
  return key == "rope_theta" || key == "partial_rotary_factor" ||
         key == kOriginalLengthKey;
}

bool posenc::frontend::isPerLayerType(const json::Value &dict) {
  for (StringRef key : {"rope_type", "type", "factor"})
    if (dict.find(key))
      return false;
  return llvm::any_of(dict.members(), [](const json::Member &member) {
    return member.value.isObject();
  });
}

/// Returns the dictionary of a type with the shared values of `dict`.
static json::Value addShared(ConfigReader &reader, const json::Value &dict,
                             const json::Value &own) {
  llvm::SmallVector<json::Member> members(own.members());
  for (const json::Member &member : dict.members())
    if (isSharedRopeKey(member.name()) && !own.find(member.name()))
      members.push_back(member);
  return reader.makeObject(own.offset(), members);
}

/// Reads the dictionaries per layer type. Equal ones are not merged, since the
/// keys outside of them can differ between the types.
static void readLayers(ConfigReader &reader, StringRef name,
                       const json::Value &dict, RopeDictionaries &result) {
  result.name = name;
  result.byType = &dict;
  result.layers.clear();
  std::vector<std::string> names;
  for (const json::Member &member : dict.members()) {
    if (member.value.isNull() || isSharedRopeKey(member.name()))
      continue;
    if (!addLayerType(reader, name, member.name(), member.key, names)) {
      result.broken = true;
      continue;
    }
    if (!member.value.isObject()) {
      reader.error(member.value, "'" + name + "' of the layer type " +
                                     quoted(member.name()) +
                                     " must be an object, not " +
                                     json::describeKind(member.value));
      result.broken = true;
      continue;
    }
    result.layers.push_back(
        {member.name(), addShared(reader, dict, member.value)});
  }
}

static const json::Value *findDictionary(ConfigReader &reader,
                                         const json::Value &config,
                                         StringRef name,
                                         RopeDictionaries &result) {
  Field<const json::Value *> field = reader.object(config, name);
  if (field.bad())
    result.broken = true;
  if (!field.value || (*field.value)->members().empty())
    return nullptr;
  if (!isPerLayerType(**field.value))
    return *field.value;
  readLayers(reader, name, **field.value, result);
  return nullptr;
}

/// Returns the members of a dictionary that describe the scaling, under their
/// current names. Leaves out the base and the fraction, which are compared with
/// the keys outside of the dictionary when they are read.
static llvm::StringMap<const json::Value *>
canonicalMembers(const json::Value &dict) {
  llvm::StringMap<const json::Value *> members;
  for (const json::Member &member : dict.members()) {
    StringRef key = member.name();
    if (!member.value.isNull() && key != "rope_theta" &&
        key != "partial_rotary_factor")
      members.try_emplace(key == "type" ? "rope_type" : key, &member.value);
  }
  return members;
}

static bool sameScaling(const json::Value &a, const json::Value &b) {
  auto x = canonicalMembers(a), y = canonicalMembers(b);
  return x.size() == y.size() && llvm::all_of(x, [&](const auto &member) {
           auto other = y.find(member.getKey());
           return other != y.end() &&
                  json::deepEqual(*member.getValue(), *other->getValue());
         });
}

RopeDictionaries
posenc::frontend::findRopeDictionaries(ConfigReader &reader,
                                       const json::Value &config) {
  RopeDictionaries result;
  result.scaling = findDictionary(reader, config, "rope_scaling", result);
  result.parameters = findDictionary(reader, config, "rope_parameters", result);
  if (!result.layers.empty()) {
    const json::Member *older = ConfigReader::given(config, "rope_scaling");
    const json::Member *newer = ConfigReader::given(config, "rope_parameters");
    if (older && newer && !json::deepEqual(older->value, newer->value))
      reader.error(newer->value,
                   "'rope_parameters' differs from 'rope_scaling'");
    result.scaling = result.parameters = nullptr;
    return result;
  }
  result.main = result.parameters ? result.parameters : result.scaling;
  result.name = result.parameters ? "rope_parameters" : "rope_scaling";
  if (result.scaling && result.parameters &&
      !sameScaling(*result.scaling, *result.parameters))
    reader.error(*result.parameters,
                 "'rope_parameters' differs from 'rope_scaling'");
  return result;
}

RopeDictionaries
posenc::frontend::getLayerDictionaries(const RopeDictionaries &dicts,
                                       const LayerDictionary &layer) {
  RopeDictionaries result;
  result.parameters = result.main = &layer.dict;
  result.name = dicts.name;
  return result;
}

/// Whether two names denote the same scaling. Multimodal models call the
/// default one `mrope` in one key and `default` in the other.
static bool isSameType(StringRef a, StringRef b) {
  auto canonical = [](StringRef name) {
    return name == "mrope" ? StringRef("default") : name;
  };
  return canonical(a) == canonical(b);
}

/// Returns the value of `rope_type` or of its older name `type`. Sets `bad`
/// after an error, such as two different values.
static Field<StringRef> readTypeName(ConfigReader &reader,
                                     const json::Value &dict, bool &bad) {
  Field<StringRef> newer = reader.string(dict, "rope_type");
  Field<StringRef> older = reader.string(dict, "type");
  bad = newer.bad() || older.bad();
  if (newer.value && older.value && !isSameType(*newer.value, *older.value)) {
    reader.error(newer.at().offset() > older.at().offset() ? newer.at()
                                                           : older.at(),
                 "'rope_type' is " + quoted(*newer.value) + ", but 'type' is " +
                     quoted(*older.value));
    bad = true;
  }
  return newer.given() ? newer : older;
}

const RopeType *posenc::frontend::readRopeType(ConfigReader &reader,
                                               const RopeDictionaries &dicts,
                                               bool arePatches) {
  if (!dicts.main)
    return dicts.broken ? nullptr : findRopeType("default");
  const json::Value &dict = *dicts.main;
  bool bad = false;
  Field<StringRef> name = readTypeName(reader, dict, bad);
  if (bad)
    return nullptr;
  if (!name.given()) {
    bool onlyTheta = llvm::all_of(dict.members(), [](const json::Member &m) {
      return m.value.isNull() || m.name() == "rope_theta";
    });
    if (onlyTheta)
      return findRopeType("default");
    reader.error(dict, "missing key 'rope_type' beside the other keys of '" +
                           dicts.name + "'");
    return nullptr;
  }
  if (arePatches && *name.value == "axial")
    return findRopeType("default");
  const RopeType *type = findRopeType(*name.value);
  if (!type)
    reader.error(name.at(), "unknown rope type " + quoted(*name.value) +
                                " in '" + name.name() + "'");
  else if (!type->read)
    reader.error(name.at(), "rope type " + quoted(*name.value) + " in '" +
                                name.name() + "' is not supported yet");
  return type && type->read ? type : nullptr;
}
