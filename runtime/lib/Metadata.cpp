//===- Metadata.cpp - Reads the metadata of a library -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Json.h"
#include "Signature.h"

#include <set>

using namespace posenc::runtime;

namespace {
/// Every member returns false after it has set the error.
class Reader {
public:
  explicit Reader(std::string &error) : error(error) {}

  bool metadata(const JsonValue &json, Metadata &out);

private:
  bool fail(const std::string &where, const std::string &what) {
    error = (where.empty() ? "" : where + ": ") + what;
    return false;
  }
  const JsonValue *get(const JsonValue &json, const std::string &where,
                       const char *key, JsonValue::Kind kind,
                       const char *kindName);
  const JsonValue *getArray(const JsonValue &json, const std::string &where,
                            const char *key) {
    return get(json, where, key, JsonValue::Kind::Array, "an array");
  }
  bool getString(const JsonValue &json, const std::string &where,
                 const char *key, std::string &out);
  bool nameList(const JsonValue &json, const std::string &where,
                const char *key, std::vector<std::string> &out);
  bool symbol(const JsonValue &json, const std::string &where, const char *key,
              const std::string &prefix, std::string &out);
  bool function(const JsonValue &json, const std::string &where,
                const std::string &prefix, posenc_function &out);
  bool argument(const JsonValue &json, const std::string &where,
                posenc_argument &out);
  bool shape(const JsonValue &json, const std::string &where,
             posenc_argument &out);
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

static std::string quoted(const std::string &text) { return "'" + text + "'"; }

static bool isIdentifier(const std::string &text) {
  for (char c : text)
    if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
        !(c >= '0' && c <= '9') && c != '_')
      return false;
  return !text.empty();
}

/// Names end up in messages on a terminal.
static bool isName(const std::string &text) {
  for (unsigned char c : text)
    if (c < 0x20 || c == 0x7F)
      return false;
  return !text.empty();
}

const JsonValue *Reader::get(const JsonValue &json, const std::string &where,
                             const char *key, JsonValue::Kind kind,
                             const char *kindName) {
  const JsonValue *value = json.find(key);
  if (!value)
    fail(where, "no " + quoted(key));
  else if (value->kind != kind)
    fail(where, quoted(key) + " is not " + kindName);
  else
    return value;
  return nullptr;
}

bool Reader::getString(const JsonValue &json, const std::string &where,
                       const char *key, std::string &out) {
  const JsonValue *value =
      get(json, where, key, JsonValue::Kind::String, "a string");
  if (!value)
    return false;
  if (!isName(value->string))
    return fail(where, quoted(key) + " is empty or has control characters");
  out = value->string;
  return true;
}

bool Reader::nameList(const JsonValue &json, const std::string &where,
                      const char *key, std::vector<std::string> &out) {
  const JsonValue *list = getArray(json, where, key);
  if (!list)
    return false;
  std::set<std::string> seen;
  for (size_t i = 0; i < list->items.size(); ++i) {
    const JsonValue &item = list->items[i];
    if (!item.isString() || !isName(item.string))
      return fail(element(where, key, i), "not a name");
    if (!seen.insert(item.string).second)
      return fail(element(where, key, i), quoted(item.string) + " again");
    out.push_back(item.string);
  }
  return true;
}

bool Reader::shape(const JsonValue &json, const std::string &where,
                   posenc_argument &out) {
  const JsonValue *list = getArray(json, where, "shape");
  if (!list)
    return false;
  if (list->items.size() > POSENC_MAX_RANK)
    return fail(where, "rank " + std::to_string(list->items.size()) +
                           " is more than " + std::to_string(POSENC_MAX_RANK));
  for (size_t i = 0; i < list->items.size(); ++i) {
    const JsonValue &item = list->items[i];
    Dim dim;
    if (item.isInteger() && item.integer >= 0) {
      dim.value = item.integer;
    } else if (item.isString() && isName(item.string)) {
      dim.kind = Dim::Kind::Size;
      dim.name = item.string;
    } else {
      return fail(element(where, "shape", i), "neither a size nor a name");
    }
    out.shape.push_back(dim);
  }
  return true;
}

bool Reader::argument(const JsonValue &json, const std::string &where,
                      posenc_argument &out) {
  if (!json.isObject())
    return fail(where, "not an object");
  std::string kind, dtype;
  if (!getString(json, where, "name", out.name) ||
      !getString(json, where, "kind", kind) ||
      !getString(json, where, "dtype", dtype))
    return false;
  out.dtype = posenc_dtype_from_name(dtype.c_str());
  if (out.dtype == POSENC_DTYPE_INVALID)
    return fail(where, "unknown dtype " + quoted(dtype));
  if (const JsonValue *shapeOnly = json.find("shape_only")) {
    if (shapeOnly->kind != JsonValue::Kind::Bool || kind != "tensor")
      return fail(where, "'shape_only' is not a boolean of a tensor");
    out.isShapeOnly = shapeOnly->boolean;
  }
  if (kind == "tensor")
    return shape(json, where, out);
  if (kind != "scalar")
    return fail(where, "unknown kind " + quoted(kind));
  out.kind = POSENC_SCALAR;
  if (out.dtype != POSENC_I64 && out.dtype != POSENC_I32 &&
      out.dtype != POSENC_INDEX && !isRealScalar(out))
    return fail(where, "a scalar of dtype " + quoted(dtype));
  return true;
}

bool Reader::resolveShapes(std::vector<posenc_argument> &arguments,
                           const std::string &where,
                           const posenc_function &function,
                           std::vector<bool> &used) {
  auto findName =
      [&](const std::string &name) -> std::optional<SizeExpression::Source> {
    for (size_t i = 0; i < function.sizes.size(); ++i)
      if (function.sizes[i] == name)
        return SizeExpression::Source{false, static_cast<int64_t>(i)};
    for (size_t i = 0; i < function.inputs.size(); ++i)
      if (function.inputs[i].kind == POSENC_SCALAR &&
          function.inputs[i].name == name)
        return SizeExpression::Source{true, static_cast<int64_t>(i)};
    return std::nullopt;
  };
  for (posenc_argument &argument : arguments)
    for (Dim &dim : argument.shape) {
      if (dim.kind == Dim::Kind::Static)
        continue;
      if (&arguments == &function.outputs && !findName(dim.name)) {
        dim.expression = SizeExpression::parse(dim.name, findName);
        if (dim.expression) {
          dim.kind = Dim::Kind::Expression;
          for (const SizeExpression::Source &source : dim.expression->sources())
            if (!source.isScalar)
              used[source.index] = true;
          continue;
        }
      }
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
                      quoted(dim.name) + " is both a size and a scalar input");
        dim.kind = Dim::Kind::Scalar;
        dim.value = static_cast<int64_t>(i);
      }
      if (dim.value < 0)
        return fail(where, "the shape of " + quoted(argument.name) + " names " +
                               quoted(dim.name) +
                               ", which is neither a size nor a scalar input");
    }
  return true;
}

bool Reader::symbol(const JsonValue &json, const std::string &where,
                    const char *key, const std::string &prefix,
                    std::string &out) {
  if (!getString(json, where, key, out))
    return false;
  // Anything else could be a function of the C library.
  if (!isIdentifier(out) || out.rfind(prefix + "_", 0) != 0)
    return fail(where, "the symbol " + quoted(out) +
                           " is not a C identifier that starts with " +
                           quoted(prefix + "_"));
  return true;
}

bool Reader::function(const JsonValue &json, const std::string &where,
                      const std::string &prefix, posenc_function &out) {
  if (!json.isObject())
    return fail(where, "not an object");
  if (!getString(json, where, "name", out.name))
    return false;
  bool hasGpuCode = json.find("cuda") || json.find("vulkan");
  if (!hasGpuCode || json.find("symbol"))
    if (!symbol(json, where, "symbol", prefix, out.symbol))
      return false;
  if (json.find("cuda") && !symbol(json, where, "cuda", prefix, out.cudaSymbol))
    return false;
  if (json.find("vulkan") &&
      !symbol(json, where, "vulkan", prefix, out.vulkanSymbol))
    return false;

  std::set<std::string> names;
  auto arguments = [&](const char *key, std::vector<posenc_argument> &list) {
    const JsonValue *items = getArray(json, where, key);
    for (size_t i = 0; items && i < items->items.size(); ++i) {
      list.emplace_back();
      if (!argument(items->items[i], element(where, key, i), list.back()))
        return false;
      if (!names.insert(list.back().name).second)
        return fail(element(where, key, i),
                    "the name " + quoted(list.back().name) + " again");
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
      return fail(element(where, "outputs", i), "an output is never written");
  }

  std::vector<bool> used(out.sizes.size());
  if (!resolveShapes(out.inputs, where, out, used) ||
      !resolveShapes(out.outputs, where, out, used))
    return false;
  for (size_t i = 0; i < used.size(); ++i)
    if (!used[i])
      return fail(element(where, "sizes", i),
                  "no tensor has the size " + quoted(out.sizes[i]));
  return true;
}

bool Reader::metadata(const JsonValue &json, Metadata &out) {
  if (!json.isObject())
    return fail("", "not an object");
  const JsonValue *abi =
      get(json, "", "abi", JsonValue::Kind::Integer, "an integer");
  if (!abi)
    return false;
  if (abi->integer != POSENC_ABI)
    return fail("", "abi " + std::to_string(abi->integer) +
                        " is unknown; this runtime knows abi " +
                        std::to_string(POSENC_ABI));
  std::string version, llvm;
  if (!getString(json, "", "posenc", version) ||
      !getString(json, "", "prefix", out.prefix) ||
      (json.find("llvm") && !getString(json, "", "llvm", llvm)) ||
      (json.find("targets") && !nameList(json, "", "targets", out.targets)))
    return false;
  if (!isIdentifier(out.prefix))
    return fail("", "the prefix " + quoted(out.prefix) +
                        " cannot be part of a C identifier");

  if (json.find("vulkan")) {
    const JsonValue *code =
        get(json, "", "vulkan", JsonValue::Kind::Object, "an object");
    const JsonValue *bytes = code ? get(*code, "vulkan", "bytes",
                                        JsonValue::Kind::Integer, "an integer")
                                  : nullptr;
    if (!bytes ||
        !symbol(*code, "vulkan", "symbol", out.prefix, out.vulkanCode))
      return false;
    if (bytes->integer <= 0 || bytes->integer % 4)
      return fail("vulkan", "'bytes' is not that of words");
    out.vulkanBytes = static_cast<uint64_t>(bytes->integer);
  }
  const JsonValue *list = getArray(json, "", "functions");
  if (!list)
    return false;
  std::set<std::string> names, symbols;
  for (size_t i = 0; i < list->items.size(); ++i) {
    std::string where = element("", "functions", i);
    out.functions.emplace_back();
    posenc_function &last = out.functions.back();
    if (!function(list->items[i], where, out.prefix, last))
      return false;
    if (!names.insert(last.name).second)
      return fail(where, "the function " + quoted(last.name) + " again");
    if (!last.vulkanSymbol.empty() && out.vulkanCode.empty())
      return fail(where, "it runs on Vulkan, for which there are no kernels");
    for (const std::string *symbol :
         {&last.symbol, &last.cudaSymbol, &last.vulkanSymbol})
      if (!symbol->empty() && !symbols.insert(*symbol).second)
        return fail(where, "the symbol " + quoted(*symbol) + " again");
  }
  return true;
}

bool posenc::runtime::parseMetadata(const char *text, size_t size,
                                    Metadata &out, std::string &error) {
  if (size > maxMetadataSize) {
    error = "more than " + std::to_string(maxMetadataSize) + " bytes";
    return false;
  }
  JsonValue json;
  if (!parseJson(text, size, json, error))
    return false;
  out = Metadata();
  return Reader(error).metadata(json, out);
}
