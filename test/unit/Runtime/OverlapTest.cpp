//===- OverlapTest.cpp - Overlap of tensors -------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MemoryLibrary.h"

#include <gtest/gtest.h>

using namespace posenc::runtime;
using namespace posenc::test;

namespace {

int32_t nothing() { return 0; }

/// f(a: f32[n,4], b: f32[n,4], c: i32[n,4], d: f32[n,2,2])
///   -> (x: f32[n,4], y: f32[n,4])
class Overlap : public testing::Test {
protected:
  void SetUp() override {
    library = openMemory(
        libraryJson(functionJson("f",
                                 tensorJson("a", "f32", "\"n\",4") + "," +
                                     tensorJson("b", "f32", "\"n\",4") + "," +
                                     tensorJson("c", "i32", "\"n\",4") + "," +
                                     tensorJson("d", "f32", "\"n\",2,2"),
                                 tensorJson("x", "f32", "\"n\",4") + "," +
                                     tensorJson("y", "f32", "\"n\",4"),
                                 "\"n\"")),
        {{"m_f", addressOf(nothing)}}, error);
    ASSERT_TRUE(library) << error;
  }

  /// Calls f with tensors at these elements of one buffer. Returns the error,
  /// or "".
  std::string call(int a, int b, int c, int d, int x, int y, int64_t n = 1) {
    std::vector<int64_t> flat = {n, 4}, cube = {n, 2, 2};
    std::vector<posenc_value> inputs = {
        view(buffer + a, POSENC_F32, flat), view(buffer + b, POSENC_F32, flat),
        view(buffer + c, POSENC_I32, flat), view(buffer + d, POSENC_F32, cube)};
    std::vector<posenc_value> outputs = {view(buffer + x, POSENC_F32, flat),
                                         view(buffer + y, POSENC_F32, flat)};
    error.clear();
    library.function(0).call(inputs, outputs, error);
    return error;
  }

  Library library;
  std::string error;
  float buffer[64] = {};
};

TEST_F(Overlap, Neighbours) { EXPECT_EQ(call(0, 4, 8, 12, 16, 20), ""); }

TEST_F(Overlap, InputsMayOverlap) {
  EXPECT_EQ(call(0, 0, 0, 0, 16, 20), "");
  EXPECT_EQ(call(0, 2, 1, 3, 16, 20), "");
}

TEST_F(Overlap, InPlace) {
  EXPECT_EQ(call(0, 4, 8, 12, 0, 4), "");
  EXPECT_EQ(call(0, 4, 8, 12, 4, 0), "");
}

TEST_F(Overlap, Shifted) {
  for (int shift : {-3, -1, 1, 3})
    EXPECT_EQ(call(8, 16, 24, 32, 8 + shift, 40),
              "f: output 'x' overlaps input 'a' in memory without being "
              "exactly the same tensor");
  EXPECT_EQ(call(8, 16, 24, 32, 4, 40), "");
  EXPECT_EQ(call(8, 16, 24, 32, 12, 40), "");
}

TEST_F(Overlap, SameMemoryOtherTypeOrShape) {
  EXPECT_EQ(call(0, 4, 8, 12, 8, 20),
            "f: output 'x' overlaps input 'c' in memory without being exactly "
            "the same tensor");
  EXPECT_EQ(call(0, 4, 8, 12, 12, 20),
            "f: output 'x' overlaps input 'd' in memory without being exactly "
            "the same tensor");
}

TEST_F(Overlap, Outputs) {
  EXPECT_EQ(call(0, 4, 8, 12, 16, 16),
            "f: outputs 'y' and 'x' overlap in memory");
  EXPECT_EQ(call(0, 4, 8, 12, 16, 19),
            "f: outputs 'y' and 'x' overlap in memory");
  EXPECT_EQ(call(0, 4, 8, 12, 0, 0),
            "f: outputs 'y' and 'x' overlap in memory");
}

TEST_F(Overlap, InPlaceOfTwoInputs) {
  EXPECT_EQ(call(0, 0, 8, 12, 0, 20),
            "f: output 'x' is in place of two inputs, 'b' and another");
  EXPECT_EQ(call(0, 2, 8, 12, 0, 20),
            "f: output 'x' overlaps input 'b' in memory without being exactly "
            "the same tensor");
}

TEST_F(Overlap, EmptyTensorsOverlapNothing) {
  EXPECT_EQ(call(0, 0, 0, 0, 0, 0, 0), "");
}

} // namespace
