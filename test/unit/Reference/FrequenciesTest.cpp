//===- FrequenciesTest.cpp - scalings against published numbers -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

using namespace posenc::reference;

static void expectFrequencies(const FrequencySpec &spec, int64_t first,
                              const std::vector<long double> &expected,
                              long double bound) {
  ASSERT_EQ(check(spec), "");
  Frequencies frequencies(spec);
  for (size_t k = 0; k < expected.size(); ++k)
    EXPECT_TRUE(
        isClose(frequencies.value(first + int64_t(k)), expected[k], bound))
        << "pair " << first + int64_t(k);
}

TEST(Frequencies, DefaultIsAPowerOfTheBase) {
  FrequencySpec spec = plainSpec(8);
  EXPECT_EQ(Frequencies(spec).size(), 4);
  expectFrequencies(spec, 0, {1.0L, 1e-1L, 1e-2L, 1e-3L}, 0x1p-63L);
  EXPECT_EQ(Frequencies(spec).value(0), 1.0L);
  EXPECT_EQ(Frequencies(spec).attentionFactor(), 1.0L);
}

TEST(Frequencies, LinearDividesByTheFactor) {
  FrequencySpec spec = plainSpec(8);
  spec.kind = ScalingKind::Linear;
  spec.factor = 4;
  expectFrequencies(spec, 0, {.25L, .25e-1L, .25e-2L, .25e-3L}, 0x1p-63L);
}

/// Compares with decimal numbers of 30 digits.
static void expectDigits(const FrequencySpec &spec,
                         const std::vector<const char *> &expected) {
  ASSERT_EQ(check(spec), "");
  Frequencies frequencies(spec);
  ASSERT_EQ(frequencies.size(), int64_t(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) {
    Real digits;
    ASSERT_EQ(mpfr_set_str(digits.get(), expected[i], 10, MPFR_RNDN), 0);
    Real error = frequencies[int64_t(i)] / digits - Real(1);
    EXPECT_LT(std::fabs(error.toLongDouble()), 5e-30L) << "pair " << i;
  }
  EXPECT_EQ(frequencies.attentionFactor(), 1.0L);
}

static FrequencySpec geometricSpec(double base, double shift,
                                   double scale = 1) {
  FrequencySpec spec = plainSpec(8, base);
  spec.kind = ScalingKind::Geometric;
  spec.shift = shift;
  spec.scale = scale;
  return spec;
}

TEST(Frequencies, GeometricGolden) {
  // Whisper; tensor2tensor with timescales from 0.5 to 10000; time steps of
  // diffusers with downscale_freq_shift = 0.5 and scale = 1000; DiT.
  expectDigits(geometricSpec(10000, 1),
               {"1.0", "0.0464158883361277889241007635092",
                "0.00215443469003188372175929356652", "0.0001"});
  expectDigits(geometricSpec(20000, 1, 0.5),
               {"0.5", "0.0184201574932019330288991141679",
                "0.00067860440414872664287952236742", "0.000025"});
  expectDigits(geometricSpec(10000, 0.5, 1000),
               {"1000.0", "71.9685673001152019928786424963",
                "5.17947467923121113475517467796",
                "0.372759372031494016617249060947"});
  expectDigits(geometricSpec(10000, 0), {"1.0", "0.1", "0.01", "0.001"});
}

TEST(Frequencies, GeometricOfOnePairIsItsScale) {
  FrequencySpec spec = geometricSpec(10000, 1, 0.25);
  spec.dim = 2;
  expectDigits(spec, {"0.25"});
}

TEST(Frequencies, GeometricChecksItsNumbers) {
  EXPECT_NE(check(geometricSpec(10000, 4)), "");
  EXPECT_EQ(check(geometricSpec(10000, 3.9)), "");
  EXPECT_NE(check(geometricSpec(10000, INFINITY)), "");
  EXPECT_NE(check(geometricSpec(10000, 1, 0)), "");
  EXPECT_NE(check(geometricSpec(0, 1)), "");
}

TEST(Frequencies, YarnGolden) {
  FrequencySpec spec = yarnSpec();
  expectFrequencies(spec, 0,
                    {1.0L, .316227766L, .1L, .025693506L, .00625L,
                     .00138349648L, .00025L, 7.90569415e-5L},
                    5e-9L);
  EXPECT_TRUE(
      isClose(Frequencies(spec).attentionFactor(), 1.13862943611L, 1e-11L));
}

TEST(Frequencies, YarnGoldenWithoutTruncation) {
  FrequencySpec spec = yarnSpec();
  spec.truncate = false;
  expectFrequencies(spec, 3, {.0286136088L, .00655697152L, .00128563203L},
                    2e-9L);
}

TEST(Frequencies, YarnEqualEndsMakeAStep) {
  FrequencySpec spec = yarnSpec();
  spec.betaFast = spec.betaSlow = 4096;
  spec.truncate = false;
  Frequencies equalEnds(spec), plain(plainSpec(16));
  EXPECT_EQ(check(spec), "");
  // Both ends are negative; only the lower one is clamped to 0, as published,
  // so the ramp is 0 everywhere.
  for (int64_t i = 0; i < 8; ++i)
    EXPECT_EQ(equalEnds.value(i), plain.value(i));
  // Equal ends inside the range give a step between two pairs.
  spec.betaFast = spec.betaSlow = 32;
  Frequencies step(spec);
  for (int64_t i = 0; i < 8; ++i)
    EXPECT_EQ(step.value(i), plain.value(i) / (i <= 2 ? 1 : 4)) << i;
}

TEST(Frequencies, YarnRampEndsBelowTheDimension) {
  // low = 4, and high = 17 is clamped to d - 1 = 15: the ramp at pair 5 is
  // 1/11.
  FrequencySpec spec = yarnSpec();
  spec.originalMaxPosition = 1e9;
  spec.betaFast = 1e6;
  Frequencies frequencies(spec), plain(plainSpec(16));
  EXPECT_EQ(frequencies.value(4), plain.value(4));
  EXPECT_TRUE(isClose(frequencies.value(5), plain.value(5) * 41 / 44, 1e-18L));
}

TEST(Frequencies, YarnAttentionFactor) {
  FrequencySpec spec = yarnSpec();
  spec.mscale = 0.707;
  // A single weight or a zero is ignored.
  EXPECT_TRUE(
      isClose(Frequencies(spec).attentionFactor(), 1.13862943611L, 1e-11L));
  spec.mscaleAllDim = 0.0;
  EXPECT_TRUE(
      isClose(Frequencies(spec).attentionFactor(), 1.13862943611L, 1e-11L));
  std::swap(spec.mscale, spec.mscaleAllDim);
  EXPECT_TRUE(
      isClose(Frequencies(spec).attentionFactor(), 1.13862943611L, 1e-11L));
  spec.mscale = spec.mscaleAllDim;
  EXPECT_EQ(Frequencies(spec).attentionFactor(), 1.0L);
  spec.mscale = 1.0;
  spec.mscaleAllDim = 2.0;
  EXPECT_TRUE(isClose(Frequencies(spec).attentionFactor(),
                      1.13862943611L / 1.27725887222L, 1e-11L));
  spec.attentionFactor = 0.5;
  EXPECT_EQ(Frequencies(spec).attentionFactor(), 0.5L);

  FrequencySpec shrunk = yarnSpec();
  shrunk.factor = 0.5;
  EXPECT_EQ(Frequencies(shrunk).attentionFactor(), 1.0L);
}

static FrequencySpec llama3Spec() {
  FrequencySpec spec = plainSpec(16, 500000.0);
  spec.kind = ScalingKind::Llama3;
  spec.factor = 8;
  spec.lowFreqFactor = 1;
  spec.highFreqFactor = 4;
  spec.originalMaxPosition = 8192;
  return spec;
}

TEST(Frequencies, Llama3Golden) {
  expectFrequencies(llama3Spec(), 0,
                    {1.0L, .193922745L, .0376060309L, .00729266474L,
                     .000524846161L, 3.4281022e-5L, 6.64786987e-6L,
                     1.28917317e-6L},
                    1e-8L);
}

TEST(Frequencies, Llama3EmptyMiddleBand) {
  FrequencySpec spec = llama3Spec();
  spec.lowFreqFactor = spec.highFreqFactor = 4;
  ASSERT_EQ(check(spec), "");
  Frequencies scaled(spec), plain(plainSpec(16, 500000.0));
  for (int64_t i = 0; i < 8; ++i) {
    long double divisor = i < 4 ? 1 : 8;
    EXPECT_EQ(scaled.value(i), plain.value(i) / divisor) << "pair " << i;
  }
}

TEST(Frequencies, ExplicitListIsUnchanged) {
  FrequencySpec spec = plainSpec(6);
  spec.kind = ScalingKind::Explicit;
  spec.list = {0.1, 0.0, -2.5};
  spec.attentionFactor = 1.5;
  Frequencies frequencies(spec);
  EXPECT_EQ(frequencies.value(0), 0.1);
  EXPECT_EQ(frequencies.value(1), 0.0);
  EXPECT_EQ(frequencies.value(2), -2.5);
  EXPECT_EQ(frequencies.attentionFactor(), 1.5L);
}

static void expectRejected(const FrequencySpec &spec, const char *part) {
  EXPECT_NE(check(spec).find(part), std::string::npos)
      << '"' << check(spec) << "\" does not name " << part;
}

TEST(Frequencies, RejectsInvalidSpecs) {
  expectRejected(plainSpec(7), "even");
  expectRejected(plainSpec(0), "even");
  expectRejected(plainSpec(8, 0.0), "base");
  expectRejected(plainSpec(8, NAN), "base");
  FrequencySpec spec = plainSpec(8);
  spec.kind = ScalingKind::Linear;
  spec.factor = -1;
  expectRejected(spec, "factor");
  spec = plainSpec(8);
  spec.attentionFactor = INFINITY;
  expectRejected(spec, "attention");
  spec = plainSpec(8);
  spec.kind = ScalingKind(99);
  expectRejected(spec, "unknown");
  spec.kind = ScalingKind::Explicit;
  spec.list = {1, 2, 3};
  expectRejected(spec, "got 3");
  spec.list = {1, 2, 3, INFINITY};
  expectRejected(spec, "finite");
}

TEST(Frequencies, RejectsWrongLlama3) {
  FrequencySpec spec = llama3Spec();
  spec.highFreqFactor = 0.5;
  expectRejected(spec, "highFreqFactor");
  spec = llama3Spec();
  spec.originalMaxPosition = 0;
  expectRejected(spec, "originalMaxPosition");
  spec = llama3Spec();
  spec.lowFreqFactor = 0;
  expectRejected(spec, "lowFreqFactor");
}

TEST(Frequencies, RejectsWrongYarn) {
  FrequencySpec spec = yarnSpec();
  spec.base = 1;
  expectRejected(spec, "base");
  spec = yarnSpec();
  spec.betaFast = 0.5;
  expectRejected(spec, "betaFast");
  spec = yarnSpec();
  spec.originalMaxPosition = 0;
  expectRejected(spec, "originalMaxPosition");
  spec = yarnSpec();
  spec.mscale = NAN;
  expectRejected(spec, "mscale");
}
