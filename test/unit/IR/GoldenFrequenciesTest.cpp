//===- GoldenFrequenciesTest.cpp - frequencies to 39 digits ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares the frequencies and the attention factor of each scaling with those
// that test/IR/golden-frequencies.py computes from the papers' formulas. The
// oracle takes the frequencies of scalings from the attributes, so only this
// test would find a wrong formula.
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::BigFloat;

namespace {

/// Returns the number that decimal digits with a point and an exponent stand
/// for.
BigFloat parseDecimal(StringRef text) {
  bool isNegative = text.consume_front("-");
  auto [digits, exponent] = text.split('e');
  BigFloat value(0.0), ten(10.0);
  int scale = 0;
  llvm::to_integer(exponent.ltrim('+'), scale, 10);
  bool isFraction = false;
  for (char c : digits) {
    if (c == '.') {
      isFraction = true;
      continue;
    }
    value = value * ten + BigFloat(c - '0');
    scale -= isFraction;
  }
  for (; scale < 0; ++scale)
    value = value / ten;
  for (; scale > 0; --scale)
    value = value * ten;
  return isNegative ? BigFloat(0.0) - value : value;
}

/// Whether the numbers agree to 39 digits. Zeros must be equal.
bool areNear(const BigFloat &actual, const BigFloat &expected) {
  BigFloat error = actual - expected, bound = expected * BigFloat(1e-39);
  if (bound < BigFloat(0.0))
    bound = BigFloat(0.0) - bound;
  return !(error > bound) && !(error < BigFloat(0.0) - bound);
}

using GoldenFrequenciesTest = AttrTest;

TEST_F(GoldenFrequenciesTest, AgreeTo39Digits) {
  auto buffer = llvm::MemoryBuffer::getFile(POSENC_SOURCE_DIR
                                            "/test/IR/golden-frequencies.txt");
  ASSERT_TRUE(bool(buffer));
  SmallVector<StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);
  ASSERT_EQ(lines.size() % 2, 0u);
  for (size_t line = 0; line < lines.size(); line += 2) {
    SCOPED_TRACE(lines[line].str());
    auto attr = parse<FrequenciesAttr>(
        ("#posenc.frequencies<" + lines[line] + ">").str());
    ASSERT_TRUE(attr);
    SmallVector<StringRef> expected;
    lines[line + 1].split(expected, ' ');
    SmallVector<BigFloat> actual = attr.computeFrequencies();
    ASSERT_EQ(actual.size() + 1, expected.size());
    actual.insert(actual.begin(), attr.computeAttentionFactor());
    for (auto [number, text] : llvm::enumerate(expected))
      EXPECT_TRUE(areNear(actual[number], parseDecimal(text)))
          << "number " << number;
  }
}

// Control: a change of the last digit but one is noticed.
TEST_F(GoldenFrequenciesTest, ComparisonNoticesTheLastDigits) {
  BigFloat value =
      parseDecimal("-3.162277660168379331998893544432718533720e-1");
  EXPECT_TRUE(areNear(
      value, parseDecimal("-3.162277660168379331998893544432718533721e-1")));
  EXPECT_FALSE(areNear(
      value, parseDecimal("-3.162277660168379331998893544432718533760e-1")));
  EXPECT_FALSE(areNear(value, parseDecimal("0.0e+0")));
  EXPECT_FALSE(areNear(BigFloat(1e-60), BigFloat(0.0)));
}

} // namespace
