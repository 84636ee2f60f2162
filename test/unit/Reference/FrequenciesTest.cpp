//===- FrequenciesTest.cpp - frequencies of channel pairs -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

using namespace posenc::reference;

TEST(Frequencies, ArePowersOfTheBase) {
  std::vector<Real> frequencies = computeFrequencies(16, 500000);
  ASSERT_EQ(frequencies.size(), 8u);
  EXPECT_TRUE(frequencies[0] == Real(1));
  // 500000^(-1/8) and 500000^(-7/8).
  for (auto [pair, digits] :
       {std::pair(1, "0.1939227447486857733425938556737172409298"),
        std::pair(7, "1.031338537721245885981012723233848879550e-5")}) {
    Real expected;
    ASSERT_EQ(mpfr_set_str(expected.get(), digits, 10, MPFR_RNDN), 0);
    Real error = frequencies[size_t(pair)] / expected - Real(1);
    EXPECT_LT(std::fabs(error.toLongDouble()), 1e-38L);
  }
}

TEST(Frequencies, ListIsUnchanged) {
  FrequencySpec spec = plainSpec(6);
  spec.list = {Real(0.1), Real(0), Real(-2.5)};
  spec.attentionFactor = Real(1.5);
  ASSERT_EQ(check(spec), "");
  PairTable table(spec, {});
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_TRUE(table.frequency(i) == spec.list[size_t(i)]);
  EXPECT_TRUE(table.attention() == Real(1.5));
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
  spec.attentionFactor = Real(INFINITY);
  expectRejected(spec, "attention");
  spec = plainSpec(8);
  spec.list = {Real(1), Real(2), Real(3)};
  expectRejected(spec, "got 3");
  spec.list.emplace_back(INFINITY);
  expectRejected(spec, "finite");
  spec.list.clear();
  spec.roundsAngles = true;
  expectRejected(spec, "list");
}
