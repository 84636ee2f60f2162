//===- Metadata.cpp - Reads the metadata of a library ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Error.h"
#include "Signature.h"

#include <nlohmann/json.hpp>
#include <set>

using namespace posenc::runtime;
using Json = nlohmann::json;

namespace {
/// Reads the metadata of a library. Functions return false, or null, after they
/// have set `error`. `where` names the JSON value for error texts
/// ("functions[0].inputs[1]").
class Reader {
public:
  explicit Reader(std::string &error) : error(error) {}

  bool metadata(const Json &json, Metadata &out);

private:
  using IsKind = bool (Json::*)() const noexcept;

  bool fail(const std::string &where, const std::string &what) {
    return posenc::runtime::fail(error,
                                 (where.empty() ? "" : where + ": ") + what);
  }
  const Json *get(const Json &json, const std::string &where, const char *key,
                  IsKind isKind, const char *kindName);
  const Json *getArray(const Json &json, const std::string &where,
                       const char *key) {
    return get(json, where, key, &Json::is_array, "an array");
  }
  bool getString(const Json &json, const std::string &where, const char *key,
                 std::string &out);
  bool nameList(const Json &json, const std::string &where, const char *key,
                std::vector<std::string> &out);
  bool symbol(const Json &json, const std::string &where, const char *key,
              const std::string &prefix, std::string &out);
  bool function(const Json &json, const std::string &where,
                const std::string &prefix, posenc_function &out);
  bool argument(const Json &json, const std::string &where,
                posenc_argument &out);
  bool shape(const Json &json, const std::string &where, posenc_argument &out);
  bool resolveShapes(std::vector<posenc_argument> &arguments,
                     const std::string &where, const posenc_function &function,
                     std::vector<bool> &used);

  std::string &error;
};
} // namespace

static std::string element(const std::string &where, const char *key,
                           size_t index) {
  return where + (where.empty() ? "" : ".") + key + "[" +
         std::to_string(index) + "]";
}

static const std::string &stringOf(const Json &json) {
  return json.get_ref<const std::string &>();
}

static std::string quote(const std::string &text) { return "'" + text + "'"; }

static bool isIdentifier(const std::string &text) {
  for (char c : text)
    if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
        !(c >= '0' && c <= '9') && c != '_')
      return false;
  return !text.empty();
}

/// Control characters would reach a terminal through error texts.
static bool isName(const std::string &text) {
  for (unsigned char c : text)
    if (c < 0x20 || c == 0x7F)
      return false;
  return !text.empty();
}

const Json *Reader::get(const Json &json, const std::string &where,
                        const char *key, IsKind isKind, const char *kindName) {
  auto value = json.find(key);
  if (value == json.end())
    fail(where, "no " + quote(key));
  else if (!((*value).*isKind)())
    fail(where, quote(key) + " is not " + kindName);
  else
    return &*value;
  return nullptr;
}

bool Reader::getString(const Json &json, const std::string &where,
                       const char *key, std::string &out) {
  const Json *value = get(json, where, key, &Json::is_string, "a string");
  if (!value)
    return false;
  if (!isName(stringOf(*value)))
    return fail(where, quote(key) + " is empty or has control characters");
  out = stringOf(*value);
  return true;
}

bool Reader::nameList(const Json &json, const std::string &where,
                      const char *key, std::vector<std::string> &out) {
  const Json *list = getArray(json, where, key);
  if (!list)
    return false;
  std::set<std::string> seen;
  for (size_t i = 0; i < list->size(); ++i) {
    const Json &item = (*list)[i];
    if (!item.is_string() || !isName(stringOf(item)))
      return fail(element(where, key, i), "not a name");
    if (!seen.insert(stringOf(item)).second)
      return fail(element(where, key, i),
                  quote(stringOf(item)) + " is listed twice");
    out.push_back(stringOf(item));
  }
  return true;
}

bool Reader::shape(const Json &json, const std::string &where,
                   posenc_argument &out) {
  const Json *list = getArray(json, where, "shape");
  if (!list)
    return false;
  if (list->size() > POSENC_MAX_RANK)
    return fail(where, "rank " + std::to_string(list->size()) +
                           " is more than " + std::to_string(POSENC_MAX_RANK));
  for (size_t i = 0; i < list->size(); ++i) {
    const Json &item = (*list)[i];
    Dim dim;
    // An integer above INT64_MAX wraps around to a negative one.
    if (item.is_number_integer() && item.get<int64_t>() >= 0) {
      dim.value = item.get<int64_t>();
    } else if (item.is_string() && isName(stringOf(item))) {
      dim.kind = Dim::Kind::Size;
      dim.name = stringOf(item);
    } else {
      return fail(element(where, "shape", i), "neither a size nor a name");
    }
    out.shape.push_back(dim);
  }
  return true;
}

/// Whether the argument is an integer, or a tensor of a single one.
static bool isInteger(const posenc_argument &argument) {
  if (argument.kind == POSENC_SCALAR)
    return !isRealScalar(argument);
  bool hasOne = argument.dtype == POSENC_I64 || argument.dtype == POSENC_I32;
  for (const Dim &dim : argument.shape)
    hasOne &= dim.kind == Dim::Kind::Static && dim.value == 1;
  return hasOne;
}

bool Reader::argument(const Json &json, const std::string &where,
                      posenc_argument &out) {
  if (!json.is_object())
    return fail(where, "not an object");
  std::string kind, dtype;
  if (!getString(json, where, "name", out.name) ||
      !getString(json, where, "kind", kind) ||
      !getString(json, where, "dtype", dtype))
    return false;
  out.dtype = posenc_dtype_from_name(dtype.c_str());
  if (out.dtype == POSENC_DTYPE_INVALID)
    return fail(where, "unknown dtype " + quote(dtype));
  if (auto shapeOnly = json.find("shape_only"); shapeOnly != json.end()) {
    if (!shapeOnly->is_boolean() || kind != "tensor")
      return fail(where, "'shape_only' is not a boolean of a tensor");
    out.isShapeOnly = shapeOnly->get<bool>();
  }
  if (kind == "tensor") {
    if (!shape(json, where, out))
      return false;
  } else if (kind == "scalar") {
    out.kind = POSENC_SCALAR;
    if (out.dtype != POSENC_I64 && out.dtype != POSENC_I32 &&
        out.dtype != POSENC_INDEX && !isRealScalar(out))
      return fail(where, "a scalar of dtype " + quote(dtype));
  } else {
    return fail(where, "unknown kind " + quote(kind));
  }
  if (auto value = json.find("size_value"); value != json.end()) {
    if (!value->is_boolean() || !isInteger(out))
      return fail(where, "'size_value' is not a boolean of an integer");
    out.isSizeValue = value->get<bool>();
  }
  return true;
}

bool Reader::resolveShapes(std::vector<posenc_argument> &arguments,
                           const std::string &where,
                           const posenc_function &function,
                           std::vector<bool> &used) {
  bool areOutputs = &arguments == &function.outputs;
  int64_t number = -1;
  for (posenc_argument &argument : arguments)
    for (Dim &dim : argument.shape) {
      ++number;
      if (dim.kind == Dim::Kind::Static)
        continue;
      dim.value = -1;
      for (size_t i = 0; i < function.sizes.size(); ++i)
        if (function.sizes[i] == dim.name) {
          dim.value = static_cast<int64_t>(i);
          used[i] = true;
        }
      for (size_t i = 0; i < function.inputs.size(); ++i) {
        const posenc_argument &input = function.inputs[i];
        if (input.kind != POSENC_SCALAR || isRealScalar(input) ||
            input.name != dim.name)
          continue;
        if (dim.value >= 0)
          return fail(where,
                      quote(dim.name) + " is both a size and a scalar input");
        dim.kind = Dim::Kind::Scalar;
        dim.value = static_cast<int64_t>(i);
      }
      if (dim.value < 0 && areOutputs && !function.outputSizesSymbol.empty()) {
        dim.kind = Dim::Kind::Computed;
        dim.value = number;
      }
      if (dim.value < 0)
        return fail(where,
                    "the shape of " + quote(argument.name) + " names " +
                        quote(dim.name) +
                        ", which is neither a size nor a scalar input" +
                        (areOutputs ? ", and the library has no "
                                      "'output_sizes_by_values': compile "
                                      "it with this version"
                                    : ""));
    }
  return true;
}

bool Reader::symbol(const Json &json, const std::string &where, const char *key,
                    const std::string &prefix, std::string &out) {
  if (!getString(json, where, key, out))
    return false;
  // Any other symbol could be a function of the C library.
  if (!isIdentifier(out) || out.rfind(prefix + "_", 0) != 0)
    return fail(where, "the symbol " + quote(out) +
                           " is not a C identifier that starts with " +
                           quote(prefix + "_"));
  return true;
}

bool Reader::function(const Json &json, const std::string &where,
                      const std::string &prefix, posenc_function &out) {
  if (!json.is_object())
    return fail(where, "not an object");
  if (!getString(json, where, "name", out.name))
    return false;
  bool hasGpuCode = json.contains("cuda") || json.contains("vulkan");
  if (!hasGpuCode || json.contains("symbol"))
    if (!symbol(json, where, "symbol", prefix, out.symbol))
      return false;
  if (json.contains("cuda") &&
      !symbol(json, where, "cuda", prefix, out.cudaSymbol))
    return false;
  if (json.contains("cuda_workspace") &&
      !symbol(json, where, "cuda_workspace", prefix, out.cudaWorkspaceSymbol))
    return false;
  if (json.contains("vulkan") &&
      !symbol(json, where, "vulkan", prefix, out.vulkanSymbol))
    return false;
  const char *sizes = "output_sizes_by_values";
  if (json.contains(sizes) &&
      !symbol(json, where, sizes, prefix, out.outputSizesSymbol))
    return false;

  std::set<std::string> names;
  auto arguments = [&](const char *key, std::vector<posenc_argument> &list) {
    const Json *items = getArray(json, where, key);
    for (size_t i = 0; items && i < items->size(); ++i) {
      list.emplace_back();
      if (!argument((*items)[i], element(where, key, i), list.back()))
        return false;
      if (!names.insert(list.back().name).second)
        return fail(element(where, key, i),
                    "the name " + quote(list.back().name) + " is used twice");
    }
    return items != nullptr;
  };
  if (!arguments("inputs", out.inputs) || !arguments("outputs", out.outputs) ||
      !nameList(json, where, "sizes", out.sizes))
    return false;
  for (size_t i = 0; i < out.outputs.size(); ++i) {
    if (out.outputs[i].kind == POSENC_SCALAR)
      return fail(element(where, "outputs", i), "an output is a scalar");
    if (out.outputs[i].isShapeOnly)
      return fail(element(where, "outputs", i), "an output is 'shape_only'");
  }

  std::vector<bool> used(out.sizes.size());
  if (!resolveShapes(out.inputs, where, out, used) ||
      !resolveShapes(out.outputs, where, out, used))
    return false;
  for (size_t i = 0; i < used.size(); ++i)
    if (!used[i])
      return fail(element(where, "sizes", i),
                  "no tensor has the size " + quote(out.sizes[i]));
  return true;
}

bool Reader::metadata(const Json &json, Metadata &out) {
  if (!json.is_object())
    return fail("", "not an object");
  const Json *abi =
      get(json, "", "abi", &Json::is_number_integer, "an integer");
  if (!abi)
    return false;
  if (abi->get<int64_t>() != POSENC_ABI)
    return fail("", "abi " + std::to_string(abi->get<int64_t>()) +
                        " is unknown; this runtime knows abi " +
                        std::to_string(POSENC_ABI));
  std::string version, llvm;
  if (!getString(json, "", "posenc", version) ||
      !getString(json, "", "prefix", out.prefix) ||
      (json.contains("llvm") && !getString(json, "", "llvm", llvm)) ||
      (json.contains("targets") && !nameList(json, "", "targets", out.targets)))
    return false;
  if (!isIdentifier(out.prefix))
    return fail("", "the prefix " + quote(out.prefix) +
                        " cannot be part of a C identifier");

  if (json.contains("vulkan")) {
    const Json *code = get(json, "", "vulkan", &Json::is_object, "an object");
    const Json *bytes = code ? get(*code, "vulkan", "bytes",
                                   &Json::is_number_integer, "an integer")
                             : nullptr;
    if (!bytes ||
        !symbol(*code, "vulkan", "symbol", out.prefix, out.vulkanCode))
      return false;
    if (bytes->get<int64_t>() <= 0 || bytes->get<int64_t>() % 4)
      return fail("vulkan", "'bytes' is not a positive multiple of 4");
    out.vulkanBytes = static_cast<uint64_t>(bytes->get<int64_t>());
  }
  if (json.contains("weights")) {
    const Json *weights =
        get(json, "", "weights", &Json::is_object, "an object");
    if (!weights ||
        !symbol(*weights, "weights", "symbol", out.prefix, out.weightsSymbol))
      return false;
  }
  const Json *list = getArray(json, "", "functions");
  if (!list)
    return false;
  std::set<std::string> names, symbols;
  for (size_t i = 0; i < list->size(); ++i) {
    std::string where = element("", "functions", i);
    out.functions.emplace_back();
    posenc_function &last = out.functions.back();
    if (!function((*list)[i], where, out.prefix, last))
      return false;
    if (!names.insert(last.name).second)
      return fail(where, "the name " + quote(last.name) + " is used twice");
    if (!last.vulkanSymbol.empty() && out.vulkanCode.empty())
      return fail(where,
                  "it has code for Vulkan, but the library has no 'vulkan'");
    for (const std::string *symbol :
         {&last.symbol, &last.cudaSymbol, &last.cudaWorkspaceSymbol,
          &last.vulkanSymbol, &last.outputSizesSymbol})
      if (!symbol->empty() && !symbols.insert(*symbol).second)
        return fail(where, "the symbol " + quote(*symbol) + " is used twice");
  }
  return true;
}

bool posenc::runtime::parseMetadata(const char *text, size_t size,
                                    Metadata &out, std::string &error) {
  if (size > maxMetadataSize)
    return fail(error,
                "more than " + std::to_string(maxMetadataSize) + " bytes");
  // Neither the parser nor the destructor of the result recurses, so deep
  // nesting does not overflow the stack. The last one of duplicate keys counts.
  Json json = Json::parse(text, text + size, nullptr,
                          /*allow_exceptions=*/false);
  if (json.is_discarded())
    return fail(error, "not valid JSON");
  out = Metadata();
  return Reader(error).metadata(json, out);
}
