//===- MetadataTest.cpp - Parsing metadata --------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MemoryLibrary.h"
#include "Signature.h"
#include "Support.h"

#include <gtest/gtest.h>

using namespace posenc::runtime;
using namespace posenc::test;

namespace {

std::string parse(const std::string &text) {
  Metadata metadata;
  std::string error;
  return parseMetadata(text.data(), text.size(), metadata, error) ? "" : error;
}

/// Parses a library with one function and returns the error, or "".
std::string function(const std::string &inputs, const std::string &outputs,
                     const std::string &sizes) {
  return parse(libraryJson(functionJson("f", inputs, outputs, sizes)));
}

/// Metadata with every feature.
std::string rich() {
  return libraryJson(
      functionJson("f",
                   tensorJson("q", "bf16", "\"n0\",\"n1\",32,128") + "," +
                       scalarJson("count", "i64"),
                   tensorJson("out", "f32", "\"count\",\"n1\",0"),
                   "\"n0\",\"n1\"") +
          "," + functionJson("g", "", "", ""),
      "\"x86-64-v3\"");
}

TEST(Metadata, Good) {
  EXPECT_EQ(parse(rich()), "");
  EXPECT_EQ(parse("{\"posenc\":\"9\",\"abi\":1,\"prefix\":\"p\","
                  "\"functions\":[],\"later\":{\"x\":[1.5,null]}}"),
            "");
  // Keys that later compilers may add.
  std::string newer = rich();
  for (const char *place : {"\"symbol\":", "\"dtype\":"})
    for (size_t at = newer.find(place); at != std::string::npos;
         at = newer.find(place, at + 20))
      newer.insert(at, "\"later\":{},");
  EXPECT_GT(newer.size(), rich().size() + 40);
  EXPECT_EQ(parse(newer), "");
}

TEST(Metadata, TopLevel) {
  EXPECT_EQ(parse("[]"), "not an object");
  EXPECT_EQ(parse("{}"), "no 'abi'");
  EXPECT_EQ(parse("{\"abi\":\"1\"}"), "'abi' is not an integer");
  EXPECT_EQ(parse("{\"abi\":1.0}"), "'abi' is not an integer");
  EXPECT_EQ(parse("{\"abi\":0}"), "abi 0 is unknown; this runtime knows abi 1");
  EXPECT_EQ(parse("{\"abi\":1}"), "no 'posenc'");
  EXPECT_EQ(parse("{\"abi\":1,\"posenc\":1}"), "'posenc' is not a string");
  EXPECT_EQ(parse("{\"abi\":1,\"posenc\":\"1\"}"), "no 'prefix'");
  std::string head = "{\"abi\":1,\"posenc\":\"1\",\"prefix\":";
  EXPECT_EQ(parse(head + "\"a-b\",\"functions\":[]}"),
            "the prefix 'a-b' cannot be part of a C identifier");
  EXPECT_EQ(parse(head + "\"\",\"functions\":[]}"),
            "'prefix' is empty or has control characters");
  EXPECT_EQ(parse(head + "\"p\"}"), "no 'functions'");
  EXPECT_EQ(parse(head + "\"p\",\"functions\":{}}"),
            "'functions' is not an array");
  EXPECT_EQ(parse(head + "\"p\",\"functions\":[1]}"),
            "functions[0]: not an object");
  EXPECT_EQ(parse(head + "\"p\",\"targets\":[1],\"functions\":[]}"),
            "targets[0]: not a name");
  EXPECT_EQ(parse(head + "\"p\",\"llvm\":22,\"functions\":[]}"),
            "'llvm' is not a string");
}

TEST(Metadata, Weights) {
  auto withWeights = [](const std::string &weights) {
    return parse(
        "{\"abi\":1,\"posenc\":\"1\",\"prefix\":\"p\",\"functions\":[],"
        "\"weights\":" +
        weights + "}");
  };
  EXPECT_EQ(withWeights("{\"file\":\"p.safetensors\","
                        "\"symbol\":\"p_weights_open\"}"),
            "");
  EXPECT_EQ(withWeights("1"), "'weights' is not an object");
  EXPECT_EQ(withWeights("{}"), "weights: no 'symbol'");
  EXPECT_EQ(withWeights("{\"symbol\":\"system\"}"),
            "weights: the symbol 'system' is not a C identifier that starts "
            "with 'p_'");
}

TEST(Metadata, Functions) {
  std::string one = functionJson("f", "", "", "");
  EXPECT_EQ(parse(libraryJson(one + "," + one)),
            "functions[1]: the name 'f' is used twice");
  auto withSymbol = [](const std::string &symbol) {
    return parse(libraryJson("{\"name\":\"f\",\"symbol\":\"" + symbol +
                             "\",\"inputs\":[],\"outputs\":[],\"sizes\":[]}"));
  };
  EXPECT_EQ(withSymbol("m_x"), "");
  // The symbol must not be a function of the C library.
  for (const char *symbol : {"system", "m", "mm_f", "m_f-g", "m_f\\u00e9"})
    EXPECT_NE(withSymbol(symbol), "") << symbol;
  EXPECT_EQ(parse(libraryJson("{\"symbol\":\"m_f\"}")),
            "functions[0]: no 'name'");
  EXPECT_EQ(parse(libraryJson("{\"name\":\"a\\nb\"}")),
            "functions[0]: 'name' is empty or has control characters");
  EXPECT_EQ(parse(libraryJson("{\"name\":\"f\",\"symbol\":\"m_f\"}")),
            "functions[0]: no 'inputs'");
}

TEST(Metadata, Arguments) {
  EXPECT_EQ(function("1", "", ""), "functions[0].inputs[0]: not an object");
  EXPECT_EQ(function("{}", "", ""), "functions[0].inputs[0]: no 'name'");
  EXPECT_EQ(function(tensorJson("x", "f31", ""), "", ""),
            "functions[0].inputs[0]: unknown dtype 'f31'");
  EXPECT_EQ(
      function("{\"name\":\"x\",\"kind\":\"what\",\"dtype\":\"f32\"}", "", ""),
      "functions[0].inputs[0]: unknown kind 'what'");
  for (const char *dtype : {"i64", "i32", "index", "f64", "f32"})
    EXPECT_EQ(function(scalarJson("x", dtype), "", ""), "") << dtype;
  for (const char *dtype : {"f16", "bf16", "i8", "i1"})
    EXPECT_EQ(function(scalarJson("x", dtype), "", ""),
              std::string("functions[0].inputs[0]: a scalar of dtype '") +
                  dtype + "'");
  EXPECT_EQ(function("", scalarJson("x", "i64"), ""),
            "functions[0].outputs[0]: an output is a scalar");
  EXPECT_EQ(
      function(tensorJson("x", "f32", ""), tensorJson("x", "f32", ""), ""),
      "functions[0].outputs[0]: the name 'x' is used twice");
  EXPECT_EQ(function("{\"name\":\"x\",\"kind\":\"tensor\",\"dtype\":\"f32\"}",
                     "", ""),
            "functions[0].inputs[0]: no 'shape'");
}

TEST(Metadata, ShapeOnly) {
  auto withFlag = [](std::string argument, const char *value) {
    argument.insert(argument.size() - 1,
                    std::string(",\"shape_only\":") + value);
    return argument;
  };
  std::string tensor = tensorJson("x", "f32", "4");
  EXPECT_EQ(function(withFlag(tensor, "true"), "", ""), "");
  EXPECT_EQ(
      function(withFlag(tensor, "1"), "", ""),
      "functions[0].inputs[0]: 'shape_only' is not a boolean of a tensor");
  EXPECT_EQ(
      function(withFlag(scalarJson("x", "i64"), "true"), "", ""),
      "functions[0].inputs[0]: 'shape_only' is not a boolean of a tensor");
  EXPECT_EQ(function("", withFlag(tensor, "true"), ""),
            "functions[0].outputs[0]: an output is 'shape_only'");
}

TEST(Metadata, Shapes) {
  auto shape = [](const std::string &text, const std::string &sizes = "") {
    return function(tensorJson("x", "f32", text), "", sizes);
  };
  EXPECT_EQ(shape("0"), "");
  EXPECT_EQ(shape("9223372036854775807"), "");
  for (const char *bad : {"-1", "1.5", "null", "[]", "\"\"", "true"})
    EXPECT_EQ(shape(bad),
              "functions[0].inputs[0].shape[0]: neither a size nor a name");
  EXPECT_EQ(shape("\"n\""),
            "functions[0]: the shape of 'x' names 'n', which is neither a size "
            "nor a scalar input");
  EXPECT_EQ(shape("\"x\""),
            "functions[0]: the shape of 'x' names 'x', which is neither a size "
            "nor a scalar input");
  EXPECT_EQ(shape("\"n\"", "\"n\",\"n\""),
            "functions[0].sizes[1]: 'n' is listed twice");
  EXPECT_EQ(shape("\"n\"", "\"n\",\"m\""),
            "functions[0].sizes[1]: no tensor has the size 'm'");
  EXPECT_EQ(shape("\"n\"", "1"), "functions[0].sizes[0]: not a name");
  EXPECT_EQ(
      function(scalarJson("n", "i64") + "," + tensorJson("x", "f32", "\"n\""),
               "", "\"n\""),
      "functions[0]: 'n' is both a size and a scalar input");
  std::string many = "1";
  for (int i = 0; i < 32; ++i)
    many += ",1";
  EXPECT_EQ(shape(many), "functions[0].inputs[0]: rank 33 is more than 32");
}

/// Sizes that are neither names nor numbers are computed by a function of the
/// library; they are those of outputs.
TEST(Metadata, ComputedSizes) {
  auto json = [](const char *size, const char *more, const char *value = "",
                 const char *input = "\"n\"") {
    std::string function = functionJson(
        "f", tensorJson("t", "i64", "1") + "," + tensorJson("x", "f32", input),
        tensorJson("y", "f32", size), "\"n\"");
    function.insert(function.size() - 1, more);
    size_t at = function.find("\"kind\"");
    return parse(libraryJson(function.insert(at, value)));
  };
  const char *symbol = R"(,"output_sizes_by_values":"m_f_sizes")";
  for (const char *size : {R"("t[0]")", "\"max(n, 2 * t[0] - 1)\""}) {
    EXPECT_EQ(json(size, symbol), "");
    EXPECT_NE(json(size, ""), "");
  }
  EXPECT_EQ(json(R"("t[0]")", ""),
            "functions[0]: the shape of 'y' names 't[0]', which is neither a "
            "size nor a scalar input, and the library has no "
            "'output_sizes_by_values': compile it with this version");
  EXPECT_NE(json("1", symbol, "", R"("2 * n")"), "");
  EXPECT_EQ(json("1", R"(,"output_sizes_by_values":"puts")"),
            "functions[0]: the symbol 'puts' is not a C identifier that starts "
            "with 'm_'");
  EXPECT_EQ(json("1", R"(,"output_sizes_by_values":"m_f")"),
            "functions[0]: the symbol 'm_f' is used twice");
  EXPECT_EQ(json("1", "", R"("size_value":true,)"), "");
  EXPECT_EQ(json("1", "", R"("size_value":1,)"),
            "functions[0].inputs[0]: 'size_value' is not a boolean of an "
            "integer");
}

TEST(Metadata, CodeForGpus) {
  // Parses a function with these keys in a library with this value of "vulkan".
  auto gpu = [](const std::string &keys, const std::string &vulkan = "") {
    std::string text =
        libraryJson("{\"name\":\"f\"," + keys +
                    "\"inputs\":[],\"outputs\":[],\"sizes\":[]}");
    if (!vulkan.empty())
      text.insert(1, "\"vulkan\":" + vulkan + ",");
    return parse(text);
  };
  std::string code = "{\"symbol\":\"m_vulkan_code\",\"bytes\":64}";
  EXPECT_EQ(gpu("\"cuda\":\"m_f_cuda\","), "");
  EXPECT_EQ(gpu("\"vulkan\":\"m_f_vulkan\",", code), "");
  EXPECT_EQ(
      gpu("\"symbol\":\"m_f\",\"cuda\":\"m_c\",\"vulkan\":\"m_v\",", code), "");
  EXPECT_EQ(gpu(""), "functions[0]: no 'symbol'");
  EXPECT_EQ(gpu("\"vulkan\":1,", code),
            "functions[0]: 'vulkan' is not a string");
  EXPECT_NE(gpu("\"vulkan\":\"system\",", code), "");
  EXPECT_EQ(gpu("\"cuda\":\"m_f\",\"vulkan\":\"m_f\",", code),
            "functions[0]: the symbol 'm_f' is used twice");
  EXPECT_EQ(
      gpu("\"vulkan\":\"m_f_vulkan\","),
      "functions[0]: it has code for Vulkan, but the library has no 'vulkan'");
  std::string f = "\"symbol\":\"m_f\",";
  EXPECT_EQ(gpu(f, "[]"), "'vulkan' is not an object");
  EXPECT_EQ(gpu(f, "{}"), "vulkan: no 'bytes'");
  EXPECT_EQ(gpu(f, "{\"bytes\":4}"), "vulkan: no 'symbol'");
  EXPECT_NE(gpu(f, "{\"bytes\":4,\"symbol\":\"environ\"}"), "");
  for (const char *bytes : {"0", "-4", "5"})
    EXPECT_EQ(
        gpu(f, std::string("{\"bytes\":") + bytes + ",\"symbol\":\"m_x\"}"),
        "vulkan: 'bytes' is not a positive multiple of 4");
}

TEST(Metadata, SizeIsBounded) {
  std::string text = rich() + std::string(maxMetadataSize, ' ');
  EXPECT_EQ(parse(text), "more than 16777216 bytes");
}

TEST(Metadata, NotJson) {
  for (const char *bad : {"", " ", "{", "[1,]", "{}}", "tru", "01", "1e400",
                          "\"\x80\"", "\"\\ud800\"", "\"a\nb\""})
    EXPECT_EQ(parse(bad), "not valid JSON") << bad;
}

TEST(Metadata, DeepNesting) {
  size_t depth = 1000000;
  std::string open(depth, '['), close(depth, ']');
  EXPECT_EQ(parse(open), "not valid JSON");
  EXPECT_EQ(parse(open + close), "not an object");
}

TEST(Metadata, IntegersBeyond64Bits) {
  for (const char *abi : {"18446744073709551615", "9223372036854775808",
                          "18446744073709551617", "-9223372036854775809"})
    EXPECT_NE(parse(std::string("{\"abi\":") + abi + "}"), "") << abi;
  for (const char *size : {"18446744073709551615", "9223372036854775808"})
    EXPECT_EQ(function(tensorJson("x", "f32", size), "", ""),
              "functions[0].inputs[0].shape[0]: neither a size nor a name");
}

/// A name with a NUL would be truncated by the C interface.
TEST(Metadata, ControlCharactersInNames) {
  for (const char *name : {"a\\u0000b", "\\n", "\\u007f"})
    EXPECT_EQ(function(tensorJson(name, "f32", "1"), "", ""),
              "functions[0].inputs[0]: 'name' is empty or has control "
              "characters");
}

TEST(Metadata, EveryTruncationIsAnError) {
  std::string text = rich();
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_NE(parse(text.substr(0, length)), "") << length;
}

int32_t nothing() { return 0; }

void *lookupAny(void *, const char *) { return addressOf(nothing); }

/// Metadata that is accepted after a change must be usable.
TEST(Metadata, MutationsNeverCrash) {
  std::mt19937 random(7);
  std::string text = rich();
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string error;
    Library library =
        Library::fromSymbols(mutate(text, random), lookupAny, nullptr, error);
    if (!library) {
      EXPECT_NE(error, "");
      continue;
    }
    ++accepted;
    for (size_t f = 0; f < library.numFunctions(); ++f)
      for (size_t a = 0; a < library.function(f).numInputs(); ++a)
        EXPECT_NE(library.function(f).input(a).type(), "");
  }
  EXPECT_GT(accepted, 0);
}

/// Deletes, duplicates and swaps tokens, which random bytes rarely do.
TEST(Metadata, TokenMutationsNeverCrash) {
  std::vector<std::string> tokens(1);
  for (char c : rich()) {
    if (std::string("{}[]:,").find(c) != std::string::npos) {
      tokens.push_back(std::string(1, c));
      tokens.emplace_back();
    } else {
      tokens.back().push_back(c);
    }
  }
  std::mt19937 random(8);
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::string> list = tokens;
    size_t a = random() % list.size(), b = random() % list.size();
    switch (random() % 3) {
    case 0:
      std::swap(list[a], list[b]);
      break;
    case 1:
      list.erase(list.begin() + static_cast<ptrdiff_t>(a));
      break;
    default:
      list.insert(list.begin() + static_cast<ptrdiff_t>(a), list[b]);
    }
    std::string text;
    for (const std::string &token : list)
      text += token;
    parse(text);
  }
}

} // namespace
