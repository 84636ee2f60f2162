//===- InputTextTest.cpp - parser of --input values -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InputText.h"

#include <gtest/gtest.h>

using namespace mlir::posenc;

namespace {

/// Returns a description of the parsed text, or the error.
std::string describe(llvm::StringRef text) {
  llvm::Expected<InputText> input = parseInputText(text);
  if (!input)
    return llvm::toString(input.takeError());
  if (input->kind == InputText::Kind::File)
    return "file " + input->path;
  std::string shape;
  for (int64_t size : input->shape)
    shape += std::to_string(size) + "x";
  shape += posenc_dtype_name(input->dtype);
  switch (input->kind) {
  case InputText::Kind::Random:
    return shape + " random" +
           (input->seed ? " " + std::to_string(*input->seed) : "");
  case InputText::Kind::Iota:
    return shape + " iota";
  default:
    return shape + " value " + input->value;
  }
}

TEST(InputTextTest, Forms) {
  EXPECT_EQ(describe("@a=b.npy"), "file a=b.npy");
  EXPECT_EQ(describe("1x32x0xbf16=random"), "1x32x0xbf16 random");
  EXPECT_EQ(describe("4xf32=random:seed=18446744073709551615"),
            "4xf32 random 18446744073709551615");
  EXPECT_EQ(describe("4xindex=iota"), "4xindex iota");
  EXPECT_EQ(describe("f64=-1e-3"), "f64 value -1e-3");
  EXPECT_EQ(describe("i64=5"), "i64 value 5");
  EXPECT_EQ(describe("-5"), "invalid value -5");
  EXPECT_EQ(describe("9223372036854775807x2xi32=1"),
            "9223372036854775807x2xi32 value 1");
}

TEST(InputTextTest, Errors) {
  EXPECT_EQ(describe("1e18xf32=0"), "expected a size, got '1e18'");
  EXPECT_EQ(describe("9223372036854775808xf32=0"),
            "expected a size, got '9223372036854775808'");
  EXPECT_EQ(describe("-1xf32=0"), "the size -1 is negative");
  EXPECT_EQ(describe("?xf32=0"), "expected a size, got '?'");
  EXPECT_EQ(describe("xf32=0"), "unknown element type 'xf32'");
  EXPECT_EQ(describe("4=0"), "expected a size, got '4'");
  EXPECT_EQ(describe("4x=0"), "unknown element type ''");
  EXPECT_EQ(describe("4xF32=0"), "unknown element type 'F32'");
  EXPECT_EQ(describe("4xf32=random:"),
            "expected random:seed=N, N a number from 0 to 2^64-1");
  EXPECT_EQ(describe("4xf32=random:seed=nan"),
            "expected random:seed=N, N a number from 0 to 2^64-1");
  EXPECT_EQ(describe("4xf32=random:seed=18446744073709551616"),
            "expected random:seed=N, N a number from 0 to 2^64-1");
  for (const char *text : {"", "-", "x.npy", "4xf32", "1.5x", "5 "})
    EXPECT_EQ(describe(text),
              "expected @FILE.npy, SHAPExTYPE=random, =iota or =VALUE, or a "
              "number")
        << text;
}

TEST(InputTextTest, LongTextsAreTruncated) {
  std::string rank;
  for (int i = 0; i < 33; ++i)
    rank += "1x";
  EXPECT_EQ(describe(rank + "f32=0"), "the rank exceeds 32");
  EXPECT_LT(describe(std::string(100000, '7') + "xf32=0").size(), 100u);
  EXPECT_LT(describe(std::string(100000, 'q') + "=0").size(), 100u);
}

} // namespace
