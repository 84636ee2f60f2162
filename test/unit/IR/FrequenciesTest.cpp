//===- FrequenciesTest.cpp - frequencies of each scaling ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The expected numbers were computed independently in arbitrary precision and
// have the published number of digits.
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

using namespace mlir;
using namespace mlir::posenc;

namespace {

struct FrequenciesTest : AttrTest {
  FrequenciesAttr frequencies(const std::string &fields) {
    return parse<FrequenciesAttr>("#posenc.frequencies<" + fields + ">");
  }
  double attention(const std::string &fields) {
    return frequencies(fields).computeAttentionFactor().toDouble();
  }
};

TEST_F(FrequenciesTest, Plain) {
  auto attr = frequencies("dim = 16, base = 10000.0");
  expectNear(attr.computeFrequencies(),
             {1.0, 0.316227766016838, 0.1, 0.0316227766016838, 0.01,
              0.00316227766016838, 0.001, 0.000316227766016838},
             1e-14);
  EXPECT_TRUE(attr.hasUnitAttentionFactor());
  EXPECT_EQ(attr.getNumPairs(), 8);
  EXPECT_FALSE(attr.getScalingRule());
  // The first frequency is exact, and the power of the base is correctly
  // rounded to 256 bits.
  EXPECT_TRUE(attr.computeFrequencies()[0] == ::posenc::BigFloat(1.0));
  EXPECT_TRUE(attr.computeFrequencies()[4] ==
              ::posenc::BigFloat(1.0) / ::posenc::BigFloat(100.0));
}

TEST_F(FrequenciesTest, OtherBases) {
  auto attr = frequencies("dim = 16, base = 1000000.0");
  EXPECT_NEAR(attr.computeFrequencies()[1].toDouble(), 0.177827941, 1e-9);
  // The frequencies of a base below 1 increase.
  expectNear(frequencies("dim = 4, base = 0.25").computeFrequencies(),
             {1.0, 2.0}, 1e-15);
}

TEST_F(FrequenciesTest, MinAndMaxDim) {
  EXPECT_EQ(frequencies("dim = 2").computeFrequencies().size(), 1u);
  auto all = frequencies("dim = 65536").computeFrequencies();
  ASSERT_EQ(all.size(), 32768u);
  EXPECT_NEAR(all.back().toDouble(), std::pow(10000.0, -65534.0 / 65536.0),
              1e-18);
}

TEST_F(FrequenciesTest, RestartOnAnAxis) {
  auto attr = frequencies("dim = 16, base = 10000.0");
  expectNear(attr.computeAxisFrequencies(4), {1.0, 0.1, 0.01, 0.001}, 1e-14);
}

TEST_F(FrequenciesTest, Linear) {
  auto attr = frequencies("dim = 16, scaling = #posenc.linear<factor = 4.0>");
  auto plain = frequencies("dim = 16").computeFrequencies();
  auto scaled = attr.computeFrequencies();
  ASSERT_EQ(scaled.size(), plain.size());
  for (auto [f, unscaled] : llvm::zip_equal(scaled, plain))
    EXPECT_TRUE(f * ::posenc::BigFloat(4.0) == unscaled);
  EXPECT_TRUE(attr.hasUnitAttentionFactor());
}

TEST_F(FrequenciesTest, Geometric) {
  // Whisper: from 1 to 1/base. The first frequency is exact.
  auto whisper = frequencies("dim = 8, scaling = #posenc.geometric<shift = 1>")
                     .computeFrequencies();
  expectNear(whisper,
             {1.0, 0.04641588833612778892, 0.002154434690031883722, 1e-4},
             1e-17);
  EXPECT_TRUE(whisper[0] == ::posenc::BigFloat(1.0));
  // With shift = 0 and scale = 1 these are the unscaled frequencies, even those
  // of a short axis.
  auto shifted = frequencies("dim = 8, scaling = #posenc.geometric<shift = 0>");
  auto plain = frequencies("dim = 8");
  for (auto [f, unscaled] : llvm::zip_equal(shifted.computeFrequencies(),
                                            plain.computeFrequencies()))
    EXPECT_TRUE(f == unscaled);
  for (auto [f, unscaled] : llvm::zip_equal(shifted.computeAxisFrequencies(3),
                                            plain.computeAxisFrequencies(3)))
    EXPECT_NEAR(f.toDouble(), unscaled.toDouble(), 1e-17);
  // A single pair has no exponent.
  EXPECT_TRUE(frequencies("dim = 2, scaling = "
                          "#posenc.geometric<shift = 1, scale = 0.25>")
                  .computeFrequencies()[0] == ::posenc::BigFloat(0.25));
}

TEST_F(FrequenciesTest, Llama3) {
  auto attr = frequencies(
      "dim = 16, base = 500000.0, scaling = #posenc.llama3<factor = 8.0, "
      "low_freq_factor = 1.0, high_freq_factor = 4.0, "
      "original_max_position = 8192>");
  expectNear(attr.computeFrequencies(),
             {1.0, 0.193922745, 0.0376060309, 0.00729266474, 0.000524846161,
              3.4281022e-5, 6.64786987e-6, 1.28917317e-6},
             5e-9);
  EXPECT_TRUE(attr.hasUnitAttentionFactor());
}

TEST_F(FrequenciesTest, Llama3WithAnEmptyBand) {
  auto attr = frequencies(
      "dim = 16, base = 500000.0, scaling = #posenc.llama3<factor = 8.0, "
      "low_freq_factor = 2.0, high_freq_factor = 2.0, "
      "original_max_position = 8192>");
  auto plain = frequencies("dim = 16, base = 500000.0").computeFrequencies();
  auto scaled = attr.computeFrequencies();
  for (auto [i, f] : llvm::enumerate(scaled)) {
    bool isSlow = plain[i].toDouble() * 8192 / (2 * M_PI) < 2.0;
    ::posenc::BigFloat factor(isSlow ? 8.0 : 1.0);
    EXPECT_TRUE(f * factor == plain[i]) << "pair " << i;
  }
}

const char *const kYarn = "dim = 16, base = 10000.0, scaling = #posenc.yarn<"
                          "factor = 4.0, original_max_position = 4096";

TEST_F(FrequenciesTest, Yarn) {
  auto attr = frequencies(std::string(kYarn) + ">");
  expectNear(attr.computeFrequencies(),
             {1.0, 0.316227766, 0.1, 0.025693506, 0.00625, 0.00138349648,
              0.00025, 7.90569415e-5},
             5e-9);
  EXPECT_NEAR(attr.computeAttentionFactor().toDouble(), 1.13862943611, 1e-11);
  EXPECT_FALSE(attr.hasUnitAttentionFactor());
}

TEST_F(FrequenciesTest, YarnNotTruncated) {
  auto f = frequencies(std::string(kYarn) + ", truncate = false>")
               .computeFrequencies();
  ASSERT_EQ(f.size(), 8u);
  EXPECT_NEAR(f[3].toDouble(), 0.0286136088, 1e-10);
  EXPECT_NEAR(f[4].toDouble(), 0.00655697152, 1e-11);
  EXPECT_NEAR(f[5].toDouble(), 0.00128563203, 1e-11);
}

TEST_F(FrequenciesTest, YarnWithEqualBounds) {
  // Both ends of the ramp are clamped to pair 0, so it has the width 0.001.
  auto attr = frequencies("dim = 16, scaling = #posenc.yarn<factor = 4.0, "
                          "original_max_position = 6, beta_slow = 1>");
  auto plain = frequencies("dim = 16").computeFrequencies();
  auto scaled = attr.computeFrequencies();
  EXPECT_TRUE(scaled[0] == plain[0]);
  for (size_t i = 1; i < plain.size(); ++i)
    EXPECT_TRUE(scaled[i] * ::posenc::BigFloat(4.0) == plain[i]) << i;
}

TEST_F(FrequenciesTest, YarnAttention) {
  std::string yarn = kYarn;
  EXPECT_DOUBLE_EQ(attention(yarn + ", attention_factor = 0.7>"), 0.7);
  // A given factor overrides both weights.
  EXPECT_DOUBLE_EQ(attention(yarn + ", mscale = 2.0, mscale_all_dim = 3.0, "
                                    "attention_factor = 0.7>"),
                   0.7);
  double log4 = std::log(4.0);
  EXPECT_DOUBLE_EQ(attention(yarn + ", mscale = 2.0, mscale_all_dim = 3.0>"),
                   (0.2 * log4 + 1) / (0.3 * log4 + 1));
  EXPECT_EQ(attention(yarn + ", mscale = 1.5, mscale_all_dim = 1.5>"), 1.0);
  // A single weight is ignored.
  EXPECT_NEAR(attention(yarn + ", mscale = 2.0>"), 1.13862943611, 1e-11);
  EXPECT_NEAR(attention(yarn + ", mscale_all_dim = 2.0>"), 1.13862943611,
              1e-11);
  // Factors of at most 1 have the attention factor 1.
  EXPECT_EQ(attention("dim = 16, scaling = #posenc.yarn<factor = 1.0, "
                      "original_max_position = 4096>"),
            1.0);
  EXPECT_EQ(attention("dim = 16, scaling = #posenc.yarn<factor = 0.5, "
                      "original_max_position = 4096>"),
            1.0);
}

TEST_F(FrequenciesTest, Explicit) {
  auto attr = frequencies("dim = 8, base = 7.0, scaling = #posenc.explicit<"
                          "values = [1.0, -0.25, 0.0, 3.0e300]>");
  expectNear(attr.computeFrequencies(), {1.0, -0.25, 0.0, 3e300}, 0.0);
  EXPECT_TRUE(attr.hasUnitAttentionFactor());
  EXPECT_EQ(attention("dim = 2, scaling = #posenc.explicit<values = [1.0], "
                      "attention_factor = 1.25>"),
            1.25);
}

TEST_F(FrequenciesTest, FactorOfOneIsUnit) {
  EXPECT_TRUE(frequencies("dim = 2, scaling = #posenc.explicit<values = [2], "
                          "attention_factor = 1.0>")
                  .hasUnitAttentionFactor());
  EXPECT_FALSE(frequencies("dim = 2, scaling = #posenc.explicit<values = [2], "
                           "attention_factor = 1.0000000000000002>")
                   .hasUnitAttentionFactor());
}

/// The verifier rejects float attributes of other types, which the textual form
/// cannot express.
TEST_F(FrequenciesTest, VerifierRejectsOtherFloatTypes) {
  Builder b(&context);
  std::vector<std::string> errors;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    errors.push_back(diagnostic.str());
    return success();
  });
  auto emitError = [&] { return mlir::emitError(b.getUnknownLoc()); };
  FloatAttr narrow = b.getF32FloatAttr(4.0f), wide = b.getF64FloatAttr(4.0);
  auto check = [&](FloatAttr base, Attribute scaling, StringRef constraint) {
    errors.clear();
    EXPECT_FALSE(FrequenciesAttr::getChecked(emitError, &context, int64_t{4},
                                             base, scaling, Precision::Exact));
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_TRUE(StringRef(errors[0]).ends_with(constraint)) << errors[0];
  };
  check(narrow, nullptr, "(frequencies_c2)");
  check(nullptr, nullptr, "(frequencies_c2)");
  check(wide, LinearScalingAttr::get(&context, narrow), "(linear_c1)");
  check(wide, Llama3ScalingAttr::get(&context, narrow, wide, wide, wide),
        "(llama3_c1)");
  check(wide, Llama3ScalingAttr::get(&context, wide, narrow, wide, wide),
        "(llama3_c2)");
  check(wide, Llama3ScalingAttr::get(&context, wide, wide, wide, narrow),
        "(llama3_c3)");
  auto yarn = [&](FloatAttr factor, FloatAttr original, FloatAttr fast,
                  FloatAttr attention) {
    return YarnScalingAttr::get(&context, factor, original, fast, wide, true,
                                attention, nullptr, nullptr, nullptr, nullptr);
  };
  check(wide, yarn(narrow, wide, wide, nullptr), "(yarn_c1)");
  check(wide, yarn(wide, wide, narrow, nullptr), "(yarn_c2)");
  check(wide, yarn(wide, narrow, wide, nullptr), "(yarn_c3)");
  check(wide, yarn(wide, wide, wide, narrow), "(yarn_c5)");
  check(wide,
        ExplicitScalingAttr::get(&context, b.getDenseF64ArrayAttr({1.0, 2.0}),
                                 narrow),
        "(explicit_c3)");
}

TEST_F(FrequenciesTest, Ntk) {
  expectNear(frequencies("dim = 16, scaling = #posenc.ntk<factor = 4>")
                 .computeFrequencies(),
             {1.0, 0.259412817014923, 0.0672950096316178, 0.0174571880195843,
              0.00452861832131953, 0.00117478163591889, 0.000304753413551119,
              7.90569415042095e-05},
             1e-14);
  expectNear(frequencies(
                 "dim = 16, scaling = #posenc.ntk<factor = 4, mixed_b = 0.625>")
                 .computeFrequencies(),
             {0.685270807014841, 0.176548875509782, 0.0471906611909668,
              0.0128710030874812, 0.00355785029978416, 0.00099315558376142,
              0.000279348685332219, 7.90569415042095e-05},
             1e-14);
}

TEST_F(FrequenciesTest, Dynamic) {
  std::string most = "dim = 16, scaling = #posenc.dynamic<factor = 2, "
                     "max_position = 4096, length = ";
  expectNear(frequencies(most + "16384>").computeFrequencies(),
             {1.0, 0.239481356005984, 0.0573513198744648, 0.0137345718522698,
              0.00328917389134318, 0.000787695823638343, 0.000188638463965161,
              4.51753951452626e-05},
             1e-14);
  auto plain = frequencies("dim = 16").computeFrequencies();
  for (auto [f, unscaled] :
       llvm::zip_equal(frequencies(most + "4096>").computeFrequencies(), plain))
    EXPECT_TRUE(f == unscaled);
}

TEST_F(FrequenciesTest, Longrope) {
  std::string most =
      "dim = 4, scaling = #posenc.longrope<short_factors = [1.0, 2.0], "
      "long_factors = [4.0, 8.0], original_max_position = 4096, ";
  expectNear(frequencies(most + "length = 4096>").computeFrequencies(),
             {1.0, 0.005}, 1e-16);
  expectNear(frequencies(most + "length = 4097>").computeFrequencies(),
             {0.25, 0.00125}, 1e-16);
  EXPECT_NEAR(attention(most + "length = 1, factor = 32>"), 1.19023807142381,
              1e-14);
  EXPECT_EQ(attention(most + "length = 1, factor = 0.5>"), 1.0);
  EXPECT_EQ(attention(most + "length = 1, attention_factor = 1.25>"), 1.25);
}

TEST_F(FrequenciesTest, ProportionalAndDivisors) {
  expectNear(frequencies("dim = 16, base = 1000000.0, scaling = "
                         "#posenc.proportional<rotated_pairs = 2>")
                 .computeFrequencies(),
             {1.0, 0.177827941003892, 0, 0, 0, 0, 0, 0}, 1e-14);
  expectNear(frequencies("dim = 4, scaling = #posenc.divisors<values = [2.0, "
                         "8.0]>")
                 .computeFrequencies(),
             {0.5, 0.00125}, 1e-16);
}

} // namespace
