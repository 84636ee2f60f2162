//===- JsonTest.cpp - grammar, positions and bounds of JSON ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Frontend/Json.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace posenc::frontend::json;

namespace {

struct Parsed {
  ParseError error; // must be initialized before `document`
  std::unique_ptr<Document> document;

  explicit Parsed(llvm::StringRef text, const ParseOptions &options = {})
      : document(Document::parse(text, error, options)) {}
  const Value &root() const { return document->root(); }
};

TEST(JsonTest, Values) {
  Parsed p(R"( {"a": [1, -2.5e1, true, false, null], "b": {}, "c": ""} )");
  ASSERT_TRUE(p.document) << p.error.message;
  ASSERT_TRUE(p.root().isObject());
  const Value &a = p.root().find("a")->value;
  ASSERT_EQ(a.elements().size(), 5u);
  EXPECT_EQ(a.elements()[0].integer(), 1);
  EXPECT_EQ(a.elements()[1].number(), -25.0);
  EXPECT_EQ(a.elements()[1].integer(), -25);
  EXPECT_TRUE(a.elements()[2].boolean());
  EXPECT_FALSE(a.elements()[3].boolean());
  EXPECT_TRUE(a.elements()[4].isNull());
  EXPECT_TRUE(p.root().find("b")->value.members().empty());
  EXPECT_EQ(p.root().find("c")->value.string(), "");
  EXPECT_EQ(p.root().find("d"), nullptr);
}

TEST(JsonTest, Positions) {
  Parsed p("\xEF\xBB\xBF{\"a\": 1,\r\n\t\"b\":\n  [2, \"\xC3\xA9\", 3]}");
  ASSERT_TRUE(p.document) << p.error.message;
  auto expect = [&](const Value &value, unsigned line, unsigned col) {
    Position position = p.document->position(value);
    EXPECT_EQ(position.line, line);
    EXPECT_EQ(position.col, col);
  };
  expect(p.root(), 1, 1);
  expect(p.root().find("a")->key, 1, 2);
  expect(p.root().find("a")->value, 1, 7);
  expect(p.root().find("b")->key, 2, 2);
  const Value &b = p.root().find("b")->value;
  expect(b, 3, 3);
  expect(b.elements()[1], 3, 7);
  expect(b.elements()[2], 3, 13); // the letter takes two bytes
}

TEST(JsonTest, DuplicateKeysAreKept) {
  Parsed p(R"({"a": 1, "a": 2})");
  ASSERT_EQ(p.root().members().size(), 2u);
  EXPECT_EQ(p.root().find("a")->value.integer(), 1);
}

TEST(JsonTest, Strings) {
  Parsed p(R"(["\"\\\/\b\f\n\r\t", "\u00e9\u4e2d\ud83d\ude00", "é中😀",
               "a\u0000b"])");
  ASSERT_TRUE(p.document) << p.error.message;
  EXPECT_EQ(p.root().elements()[0].string(), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(p.root().elements()[1].string(), "é中😀");
  EXPECT_EQ(p.root().elements()[2].string(), "é中😀");
  EXPECT_EQ(p.root().elements()[3].string(), llvm::StringRef("a\0b", 3));
}

struct NumberCase {
  const char *text;
  double real;
  bool integral;
  std::optional<int64_t> integer;
};

const NumberCase numbers[] = {
    {"0", 0, true, 0},
    {"-0", -0.0, true, 0},
    {"-0.0e5", -0.0, true, 0},
    {"4096.0", 4096, true, 4096},
    {"4096.5", 4096.5, false, {}},
    {"4.096e3", 4096, true, 4096},
    {"4096000E-3", 4096, true, 4096},
    {"1e+2", 100, true, 100},
    {"0.1", 0.1, false, {}},
    // Not an integer, although the nearest double is one.
    {"1.00000000000000000000001", 1, false, {}},
    {"9223372036854775807", 9223372036854775807.0, true, INT64_MAX},
    {"-9223372036854775808", -9223372036854775808.0, true, INT64_MIN},
    {"9223372036854775808", 9223372036854775808.0, true, {}},
    {"9007199254740993", 9007199254740992.0, true, 9007199254740993},
    {"1e400", HUGE_VAL, true, {}},
    {"-1e400", -HUGE_VAL, true, {}},
    {"1e-400", 0, false, {}},
    {"1e99999999999999999999", HUGE_VAL, true, {}},
    {"1e-99999999999999999999", 0, false, {}},
    {"0e99999999999999999999", 0, true, 0},
    {"2.2250738585072011e-308", 2.2250738585072011e-308, false, {}},
    {"5e-324", 5e-324, false, {}},
    {"1.7976931348623157e308", 1.7976931348623157e308, true, {}},
    {"Infinity", HUGE_VAL, false, {}},
    {"-Infinity", -HUGE_VAL, false, {}},
};

TEST(JsonTest, Numbers) {
  for (const NumberCase &number : numbers) {
    SCOPED_TRACE(number.text);
    Parsed p(number.text);
    ASSERT_TRUE(p.document) << p.error.message;
    EXPECT_EQ(p.root().number(), number.real);
    EXPECT_EQ(std::signbit(p.root().number()), std::signbit(number.real));
    EXPECT_EQ(p.root().isIntegral(), number.integral);
    EXPECT_EQ(p.root().integer(), number.integer);
  }
  EXPECT_TRUE(std::isnan(Parsed("NaN").root().number()));
}

TEST(JsonTest, LongNumbers) {
  std::string digits(1 << 20, '7');
  EXPECT_EQ(Parsed(digits).root().number(), HUGE_VAL);
  EXPECT_EQ(Parsed("0." + digits).root().number(), 0.77777777777777777778);
  std::string one = "1" + std::string(1 << 20, '0');
  EXPECT_EQ(Parsed(one + "e-1048576").root().integer(), 1);
  EXPECT_EQ(Parsed(one + "e-1048576").root().number(), 1);
}

struct BadCase {
  llvm::StringRef text;
  unsigned line, col;
  const char *message;
};

const BadCase bad[] = {
    {"", 1, 1, "the file is empty"},
    {" \n ", 2, 2, "the file is empty"},
    {"\xEF\xBB\xBF", 1, 1, "the file is empty"},
    {"{", 1, 2, "unexpected end of file in an object"},
    {"[", 1, 2, "unexpected end of file, expected a value"},
    {"[1", 1, 3, "unexpected end of file in an array"},
    {"[1,", 1, 4, "expected a value"},
    {"[1,]", 1, 4, "unexpected ']'"},
    {"[1 2]", 1, 4, "expected ',' or ']'"},
    {"[,]", 1, 2, "unexpected ','"},
    {"{\"a\"", 1, 5, "expected ':'"},
    {"{\"a\" 1}", 1, 6, "expected ':'"},
    {"{\"a\":}", 1, 6, "expected a value"},
    {"{\"a\":1,}", 1, 8, "expected a key"},
    {"{a:1}", 1, 2, "expected a key"},
    {"{'a':1}", 1, 2, "expected a key"},
    {"{\"a\":1\n\"b\":2}", 2, 1, "expected ',' or '}'"},
    {"{} {}", 1, 4, "after the end"},
    {"{}x", 1, 3, "after the end"},
    {llvm::StringRef("{}\0", 3), 1, 3, "byte 0x00"},
    {llvm::StringRef("\0", 1), 1, 1, "byte 0x00"},
    {"\xFF\xFE{", 1, 1, "byte 0xff"},
    {"// no\n{}", 1, 1, "unexpected '/'"},
    // Text of YAML that is no JSON.
    {"a: 1", 1, 1, "unexpected 'a'"},
    {"[1] # no", 1, 5, "after the end"},
    {"{\"a\": &x 1}", 1, 7, "unexpected '&'"},
    {"{\"a\": !!str 1}", 1, 7, "unexpected '!'"},
    {"{\"a\"}", 1, 5, "expected ':'"},
    {"{}\n---\n{}", 2, 1, "after the end"},
    {"['a']", 1, 2, "expected a value"},
    {"nul", 1, 1, "unexpected 'n'"},
    {"nulls", 1, 1, "unexpected 'n'"},
    {"True", 1, 1, "unexpected 'T'"},
    {"nan", 1, 1, "unexpected 'n'"},
    {"-NaN", 1, 2, "expected a digit"},
    {"-Infinite", 1, 1, "unexpected '-'"},
    {"+1", 1, 1, "unexpected '+'"},
    {"01", 1, 1, "leading zeros"},
    {"-01", 1, 2, "leading zeros"},
    {".5", 1, 1, "unexpected '.'"},
    {"1.", 1, 3, "after the decimal point"},
    {"1.e5", 1, 3, "after the decimal point"},
    {"1e", 1, 3, "in the exponent"},
    {"1e+", 1, 4, "in the exponent"},
    {"-", 1, 2, "expected a digit"},
    {"0x10", 1, 2, "after the end"},
    {"\"a", 1, 3, "unexpected end of file in a string"},
    {"\"a\\", 1, 4, "unexpected end of file in a string"},
    {"\"a\nb\"", 1, 3, "control character"},
    {llvm::StringRef("\"\0\"", 3), 1, 2, "control character"},
    {"\"\\x41\"", 1, 2, "unknown escape"},
    {"\"\\u12g4\"", 1, 2, "four hexadecimal digits"},
    {"\"\\u12", 1, 2, "four hexadecimal digits"},
    {"\"\\ud800\"", 1, 2, "lone surrogate"},
    {"\"\\ud800\\u0041\"", 1, 2, "lone surrogate"},
    {"\"\\udc00\"", 1, 2, "lone surrogate"},
    {"\"\xC0\xAF\"", 1, 2, "not valid UTF-8"},
    {"\"\xED\xA0\x80\"", 1, 2, "not valid UTF-8"},
    {"\"\xE4\xB8\"", 1, 2, "not valid UTF-8"},
    {"\"\xF0\x9F", 1, 2, "not valid UTF-8"},
    {"\"\x80\"", 1, 2, "not valid UTF-8"},
    {"\"\xF5\x80\x80\x80\"", 1, 2, "not valid UTF-8"},
};

TEST(JsonTest, SyntaxErrors) {
  for (const BadCase &text : bad) {
    SCOPED_TRACE(text.text.str());
    Parsed p(text.text);
    ASSERT_FALSE(p.document);
    EXPECT_EQ(p.error.position.line, text.line);
    EXPECT_EQ(p.error.position.col, text.col);
    EXPECT_NE(p.error.message.find(text.message), std::string::npos)
        << p.error.message;
  }
}

TEST(JsonTest, Bounds) {
  std::string at(64, '['), over(65, '[');
  EXPECT_TRUE(Parsed(at + std::string(64, ']')).document);
  Parsed deep(over + std::string(65, ']'));
  ASSERT_FALSE(deep.document);
  EXPECT_EQ(deep.error.message, "nested deeper than 64 levels");
  EXPECT_EQ(deep.error.position.col, 65u);

  ParseOptions small;
  small.maxBytes = 4;
  EXPECT_TRUE(Parsed("[10]", small).document);
  EXPECT_FALSE(Parsed("[100]", small).document);
  ParseOptions few;
  few.maxValues = 3;
  EXPECT_TRUE(Parsed("[1,2]", few).document);
  EXPECT_FALSE(Parsed("[1,2,3]", few).document);
}

TEST(JsonTest, DeepEqual) {
  auto equal = [](llvm::StringRef a, llvm::StringRef b) {
    Parsed x(a), y(b);
    return deepEqual(x.root(), y.root());
  };
  EXPECT_TRUE(equal("1", "1.0"));
  EXPECT_TRUE(equal("NaN", "NaN"));
  EXPECT_FALSE(equal("9007199254740993", "9007199254740992"));
  EXPECT_FALSE(equal("1", "true"));
  EXPECT_FALSE(equal("null", "0"));
  EXPECT_TRUE(equal(R"({"a": 1, "b": [2, "x"]})", R"({"b":[2,"x"],"a":1e0})"));
  EXPECT_FALSE(equal(R"({"a": 1, "b": 2})", R"({"a": 1, "c": 2})"));
  EXPECT_FALSE(equal("[1, 2]", "[2, 1]"));
  EXPECT_FALSE(equal("[1, 2]", "[1]"));
}

} // namespace
