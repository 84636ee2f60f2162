//===- GoldenFrequenciesTest.cpp - frequencies to 32 digits ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The frequencies of 8 pairs and the attention factor of each scaling to 32
// digits, computed from the formulas of the language reference with mpmath at
// 400 bits.
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

#include <cstdlib>

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::BigFloat;

namespace {

struct Golden {
  const char *fields;
  const char *frequencies[8];
  const char *attentionFactor;
};

const Golden kGoldens[] = {
    {"base = 1.0e4",
     {"1.0000000000000000000000000000000",
      "3.1622776601683793319988935444327e-1",
      "1.0000000000000000000000000000000e-1",
      "3.1622776601683793319988935444327e-2",
      "1.0000000000000000000000000000000e-2",
      "3.1622776601683793319988935444327e-3",
      "1.0000000000000000000000000000000e-3",
      "3.1622776601683793319988935444327e-4"},
     "1.0000000000000000000000000000000"},
    {"base = 1.0e4, scaling = #posenc.linear<factor = 3>",
     {"3.3333333333333333333333333333333e-1",
      "1.0540925533894597773329645148109e-1",
      "3.3333333333333333333333333333333e-2",
      "1.0540925533894597773329645148109e-2",
      "3.3333333333333333333333333333333e-3",
      "1.0540925533894597773329645148109e-3",
      "3.3333333333333333333333333333333e-4",
      "1.0540925533894597773329645148109e-4"},
     "1.0000000000000000000000000000000"},
    {"base = 5.0e5, scaling = #posenc.llama3<factor = 8, low_freq_factor = 1, "
     "high_freq_factor = 4, original_max_position = 8192>",
     {"1.0000000000000000000000000000000",
      "1.9392274474868577334259385567372e-1",
      "3.7606030930863935681246092345172e-2",
      "7.2926647372171090477661219433790e-3",
      "5.2484616099295466972729108986784e-4",
      "3.4281021959525914781665330915829e-5",
      "6.6478698711812357703128035722581e-6",
      "1.2891731721515573574762659040423e-6"},
     "1.0000000000000000000000000000000"},
    {"base = 1.0e4, scaling = #posenc.yarn<factor = 4, original_max_position = "
     "4096>",
     {"1.0000000000000000000000000000000",
      "3.1622776601683793319988935444327e-1",
      "1.0000000000000000000000000000000e-1",
      "2.5693505988868082072491010048516e-2",
      "6.2500000000000000000000000000000e-3",
      "1.3834964763236659577495159256893e-3",
      "2.5000000000000000000000000000000e-4",
      "7.9056941504209483299972338610818e-5"},
     "1.1386294361119890618834464242916"},
    {"base = 1.0e4, scaling = #posenc.yarn<factor = 4, original_max_position = "
     "4096, truncate = false, mscale = 0.5, mscale_all_dim = 2>",
     {"1.0000000000000000000000000000000",
      "3.1622776601683793319988935444327e-1",
      "1.0000000000000000000000000000000e-1",
      "2.8613608811988895644422406366623e-2",
      "6.5569715211294347593241227688698e-3",
      "1.2856320307266880340580980120903e-3",
      "2.5000000000000000000000000000000e-4",
      "7.9056941504209483299972338610818e-5"},
     "8.3719498162035954895393886722717e-1"},
    {"base = 1.0e4, scaling = #posenc.yarn<factor = 4, original_max_position = "
     "4096, ext_factor = 0.5, attn_factor = 2>",
     {"6.2500000000000000000000000000000e-1",
      "1.9764235376052370824993084652704e-1",
      "6.2500000000000000000000000000000e-2",
      "1.6799600069644515201244121954799e-2",
      "4.3750000000000000000000000000000e-3",
      "1.0870329456828803953746196558987e-3",
      "2.5000000000000000000000000000000e-4",
      "7.9056941504209483299972338610818e-5"},
     "2.2772588722239781237668928485833"},
    {"base = 1.0e4, scaling = #posenc.ntk<factor = 4>",
     {"1.0000000000000000000000000000000",
      "2.5941281701492277383680495055987e-1",
      "6.7295009631617806597141630187547e-2",
      "1.7457188019584335685803937793243e-2",
      "4.5286183213195333579708643660755e-3",
      "1.1747816359188908525189540163718e-3",
      "3.0475341355111886022792275064814e-4",
      "7.9056941504209483299972338610818e-5"},
     "1.0000000000000000000000000000000"},
    {"base = 1.0e4, scaling = #posenc.ntk<factor = 4, mixed_b = 0.625>",
     {"6.8527080701484140026617040913874e-1",
      "1.7654887550978206150373822124117e-1",
      "4.7190661190966804633033962527531e-2",
      "1.2871003087481246536905478195477e-2",
      "3.5578502997841619980116647310380e-3",
      "9.9315558376141998297838554182991e-4",
      "2.7934868533221908607941930493437e-4",
      "7.9056941504209483299972338610818e-5"},
     "1.0000000000000000000000000000000"},
    {"base = 1.0e4, scaling = #posenc.dynamic<factor = 2, max_position = 4096, "
     "length = 16384>",
     {"1.0000000000000000000000000000000",
      "2.3948135600598381995412381081716e-1",
      "5.7351319874464762633382662114007e-2",
      "1.3734571852269751101920770525447e-2",
      "3.2891738913431768767814392953976e-3",
      "7.8769582363834248416306636305781e-4",
      "1.8863846396516054168704676164289e-4",
      "4.5175395145262561885698479206182e-5"},
     "1.0000000000000000000000000000000"},
    {"base = 1.0e4, scaling = #posenc.longrope<short_factors = [1, 1, 1, 1, 1, "
     "1, 1, 1], long_factors = [1, 2.5, 4, 8.75, 16.25, 32.5, 64.75, 127], "
     "original_max_position = 4096, length = 8192, factor = 32>",
     {"1.0000000000000000000000000000000",
      "1.2649110640673517327995574177731e-1",
      "2.5000000000000000000000000000000e-2",
      "3.6140316116210049508558783364945e-3",
      "6.1538461538461538461538461538462e-4",
      "9.7300851082103979446119801367161e-5",
      "1.5444015444015444015444015444015e-5",
      "2.4899824095814010488180264129391e-6"},
     "1.1902380714238083329998999685612"},
    {"base = 1.0e6, scaling = #posenc.proportional<rotated_pairs = 2, factor = "
     "8>",
     {"1.2500000000000000000000000000000e-1",
      "2.2228492625486535015317764939909e-2", "0.0", "0.0", "0.0", "0.0", "0.0",
      "0.0"},
     "1.0000000000000000000000000000000"},
    {"base = 1.0e4, scaling = #posenc.divisors<values = [1, 2.5, 4, 8.75, "
     "16.25, 32.5, 64.75, 127]>",
     {"1.0000000000000000000000000000000",
      "1.2649110640673517327995574177731e-1",
      "2.5000000000000000000000000000000e-2",
      "3.6140316116210049508558783364945e-3",
      "6.1538461538461538461538461538462e-4",
      "9.7300851082103979446119801367161e-5",
      "1.5444015444015444015444015444015e-5",
      "2.4899824095814010488180264129391e-6"},
     "1.0000000000000000000000000000000"},
    {"base = 1.0e4, scaling = #posenc.geometric<shift = 1, scale = 0.5>",
     {"5.0000000000000000000000000000000e-1",
      "1.3413478976398628738494013403138e-1",
      "3.5984283650057600996439321248173e-2",
      "9.6534886444162508350353739992009e-3",
      "2.5897373396156055673775873389805e-3",
      "6.9474774718656881856499260867651e-4",
      "1.8637968601574700830862453047365e-4",
      "5.0000000000000000000000000000000e-5"},
     "1.0000000000000000000000000000000"},
};

/// Returns the number that decimal digits with a point and an optional exponent
/// stand for.
BigFloat parseDecimal(StringRef text) {
  auto [digits, exponent] = text.split('e');
  BigFloat value(0.0), ten(10.0);
  int scale = exponent.empty() ? 0 : std::atoi(exponent.str().c_str());
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
  return value;
}

/// Whether the numbers agree to 30 digits.
bool areNear(const BigFloat &actual, const BigFloat &expected) {
  BigFloat bound = expected * BigFloat(1e-30);
  return !(actual > expected + bound) && !(actual < expected - bound);
}

struct GoldenFrequenciesTest : AttrTest {
  FrequenciesAttr frequencies(const Golden &golden) {
    return parse<FrequenciesAttr>("#posenc.frequencies<dim = 16, " +
                                  std::string(golden.fields) + ">");
  }
};

TEST_F(GoldenFrequenciesTest, AgreeTo30Digits) {
  for (const Golden &golden : kGoldens) {
    FrequenciesAttr attr = frequencies(golden);
    SmallVector<BigFloat> values = attr.computeFrequencies();
    ASSERT_EQ(values.size(), 8u);
    for (size_t pair = 0; pair < 8; ++pair)
      EXPECT_TRUE(areNear(values[pair], parseDecimal(golden.frequencies[pair])))
          << golden.fields << ", pair " << pair;
    EXPECT_TRUE(areNear(attr.computeAttentionFactor(),
                        parseDecimal(golden.attentionFactor)))
        << golden.fields;
  }
}

// Control: a change of the last digit but two is noticed.
TEST_F(GoldenFrequenciesTest, ComparisonNoticesTheLastDigits) {
  BigFloat value = parseDecimal("3.1622776601683793319988935444327e-1");
  EXPECT_TRUE(
      areNear(value, parseDecimal("3.1622776601683793319988935444328e-1")));
  EXPECT_FALSE(
      areNear(value, parseDecimal("3.1622776601683793319988935444377e-1")));
  EXPECT_TRUE(parseDecimal("1.25e-1") == BigFloat(0.125));
}

} // namespace
