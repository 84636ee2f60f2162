//===- JsonTest.cpp - The JSON reader ---------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Json.h"
#include "Support.h"

#include <gtest/gtest.h>

using namespace posenc::runtime;
using namespace posenc::test;

namespace {

bool parse(const std::string &text, JsonValue &value, std::string &error) {
  return parseJson(text.data(), text.size(), value, error);
}

bool accepts(const std::string &text) {
  JsonValue value;
  std::string error;
  return parse(text, value, error);
}

TEST(Json, Values) {
  JsonValue value;
  std::string error;
  ASSERT_TRUE(parse(" { \"a\" : [ 1 , -2.5e+3 , true , false , null ] , "
                    "\"b\":{}, \"c\":[] }\n",
                    value, error))
      << error;
  const JsonValue *list = value.find("a");
  ASSERT_TRUE(list && list->isArray());
  ASSERT_EQ(list->items.size(), 5u);
  EXPECT_EQ(list->items[0].integer, 1);
  EXPECT_EQ(list->items[1].kind, JsonValue::Kind::Real);
  EXPECT_TRUE(list->items[2].boolean);
  EXPECT_FALSE(list->items[3].boolean);
  EXPECT_EQ(list->items[4].kind, JsonValue::Kind::Null);
  EXPECT_TRUE(value.find("b")->isObject());
  EXPECT_EQ(value.find("d"), nullptr);
}

TEST(Json, Strings) {
  JsonValue value;
  std::string error;
  ASSERT_TRUE(parse("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC"
                    "\\ud83d\\ude00\xC3\xA9\xF0\x9F\x98\x80\"",
                    value, error))
      << error;
  EXPECT_EQ(value.string, "\"\\/\b\f\n\r\tA\xC3\xA9\xE2\x82\xAC"
                          "\xF0\x9F\x98\x80\xC3\xA9\xF0\x9F\x98\x80");
  for (const char *bad : {"\"",
                          "\"\\",
                          "\"\\x\"",
                          "\"\\u12\"",
                          "\"\\u123g\"",
                          "\"\\ud800\"",
                          "\"\\udc00\"",
                          "\"\\ud800\\u0041\"",
                          "\"\\ud800x\"",
                          "\"\\u0000\"",
                          "\"\n\"",
                          "\"\x80\"",
                          "\"\xC0\x80\"",
                          "\"\xC3\"",
                          "\"\xE0\x80\x80\"",
                          "\"\xED\xA0\x80\"",
                          "\"\xF4\x90\x80\x80\"",
                          "\"\xF8\x88\x80\x80\x80\"",
                          "\"\xE2\x82\"",
                          "\"\xC3"})
    EXPECT_FALSE(accepts(bad)) << bad;
  EXPECT_FALSE(accepts(std::string("\"a\0b\"", 5)));
}

TEST(Json, Numbers) {
  JsonValue value;
  std::string error;
  for (int64_t number : {int64_t(0), int64_t(-1), INT64_MAX, INT64_MIN}) {
    ASSERT_TRUE(parse(std::to_string(number), value, error)) << error;
    EXPECT_EQ(value.integer, number);
  }
  EXPECT_TRUE(accepts("-0"));
  EXPECT_TRUE(accepts("1e400"));
  EXPECT_TRUE(accepts("99999999999999999999.5"));
  for (const char *bad :
       {"9223372036854775808", "-9223372036854775809", "01", "-01", "+1", "-",
        ".5", "1.", "1e", "1e+", "1x", "NaN", "Infinity", "0x10"})
    EXPECT_FALSE(accepts(bad)) << bad;
}

TEST(Json, Structure) {
  for (const char *bad : {"",
                          " ",
                          "{",
                          "[",
                          "[1",
                          "[1,",
                          "[1,]",
                          "{\"a\"}",
                          "{\"a\":}",
                          "{\"a\":1,}",
                          "{a:1}",
                          "{\"a\":1 \"b\":2}",
                          "[1 2]",
                          "1 2",
                          "]",
                          "tru",
                          "nul",
                          "{\"a\":1}}",
                          "//",
                          "'a'",
                          "{\"a\":1,\"a\":2}",
                          "{\"\":1,\"b\":2,\"\":3}"})
    EXPECT_FALSE(accepts(bad)) << bad;
  EXPECT_FALSE(accepts(std::string("1\0", 2)));
}

TEST(Json, DepthIsBounded) {
  auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(accepts(nested(32)));
  EXPECT_FALSE(accepts(nested(34)));
  EXPECT_FALSE(accepts(nested(1000000)));
  EXPECT_FALSE(accepts(std::string(1000000, '[')));
}

TEST(Json, ErrorsTellThePlace) {
  JsonValue value;
  std::string error;
  EXPECT_FALSE(parse("{\"a\": x}", value, error));
  EXPECT_EQ(error, "expected a value at byte 6");
}

} // namespace
