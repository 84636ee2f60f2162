//===- SinusoidalTest.cpp - sinusoidal tables -----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

using namespace posenc::reference;

TEST(Sinusoidal, OrdersHoldTheSameNumbers) {
  const int64_t dim = 8;
  std::vector<int64_t> positions{0, 1, 1000};
  CosSinTable table = sincos(plainSpec(dim), {}, positions, {3});
  Array mixed =
      sinusoidal(plainSpec(dim), positions, SinusoidalOrder::Interleaved);
  Array sinCos = sinusoidal(plainSpec(dim), positions, SinusoidalOrder::SinCos);
  Array cosSin = sinusoidal(plainSpec(dim), positions, SinusoidalOrder::CosSin);
  EXPECT_EQ(mixed.shape, (std::vector<int64_t>{3, dim}));
  for (size_t row = 0; row < 3; ++row) {
    for (size_t i = 0; i < 4; ++i) {
      long double sine = table.sin.values[row * 4 + i];
      long double cosine = table.cos.values[row * 4 + i];
      EXPECT_EQ(mixed.values[row * 8 + 2 * i], sine);
      EXPECT_EQ(mixed.values[row * 8 + 2 * i + 1], cosine);
      EXPECT_EQ(sinCos.values[row * 8 + i], sine);
      EXPECT_EQ(sinCos.values[row * 8 + 4 + i], cosine);
      EXPECT_EQ(cosSin.values[row * 8 + i], cosine);
      EXPECT_EQ(cosSin.values[row * 8 + 4 + i], sine);
    }
  }
}

TEST(Sinusoidal, FirstRowsByHand) {
  Array rows = sinusoidal(plainSpec(4), {0, 1}, SinusoidalOrder::Interleaved);
  EXPECT_EQ(rows.values[0], 0.0L);
  EXPECT_EQ(rows.values[1], 1.0L);
  EXPECT_TRUE(isClose(rows.values[4], std::sin(1.0L), 0x1p-62L));
  EXPECT_TRUE(isClose(rows.values[5], std::cos(1.0L), 0x1p-62L));
  EXPECT_TRUE(isClose(rows.values[6], std::sin(0.01L), 0x1p-62L));
  EXPECT_TRUE(isClose(rows.values[7], std::cos(0.01L), 0x1p-62L));
}

static void expectShift(SinusoidalOrder order, bool interleaved, int64_t from,
                        int64_t to, int64_t rotation) {
  FrequencySpec spec = plainSpec(64);
  RotateOptions options = rotateAlong({0}, interleaved);
  Array row = sinusoidal(spec, std::vector<int64_t>{from}, order);
  Array turned = rope(row, spec, {}, std::vector<int64_t>{rotation}, options);
  Array expected = sinusoidal(spec, std::vector<int64_t>{to}, order);
  for (size_t i = 0; i < 64; ++i)
    EXPECT_LE(std::fabs(turned.values[i] - expected.values[i]), 0x1p-62L);
}

TEST(Sinusoidal, ShiftIsARotation) {
  // A pair (sin, cos) rotates by the negative angle, and (cos, sin) by the
  // positive angle.
  expectShift(SinusoidalOrder::Interleaved, true, 7, 10, -3);
  expectShift(SinusoidalOrder::SinCos, false, 7, 10, -3);
  expectShift(SinusoidalOrder::CosSin, false, 7, 10, 3);
  expectShift(SinusoidalOrder::CosSin, false, 2147483647,
              int64_t(2147483647) - 1000000, -1000000);
}

TEST(Sinusoidal, Golden) {
  // Position 7 of Whisper's table with 8 channels, whose frequencies are
  // 10000^(-i/3).
  FrequencySpec spec = plainSpec(8);
  for (int i = 0; i < 4; ++i)
    spec.list.push_back(exp(log(Real(10000)) * Real(-i) / Real(3)));
  Array row = sinusoidal(spec, {7}, SinusoidalOrder::SinCos);
  const long double expected[] = {
      .656986598718789090396999091594L,  .319224650606314860340261137633L,
      .0150804711700574161425416942012L, .000699999942833334733916650326528L,
      .753902254343304638141197521719L,  .94767907143994490634635598298L,
      .999886283228892517997340916941L,  .999999755000010004166503265279L};
  for (size_t i = 0; i < 8; ++i)
    EXPECT_TRUE(isClose(row.values[i], expected[i], 0x1p-63L)) << i;
}

TEST(Sinusoidal, PaddingRowIsZero) {
  SinusoidalOptions options;
  options.zeroPad = true;
  options.paddingPosition = 1;
  Array rows = sinusoidal(plainSpec(4), {}, {1, 2}, {2}, options);
  Array plain = sinusoidal(plainSpec(4), {2}, SinusoidalOrder::Interleaved);
  EXPECT_EQ(rows.shape, (std::vector<int64_t>{2, 5}));
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(rows.values[i], 0.0L);
    EXPECT_LT(rows.magnitude[i], 0.0L);
  }
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(rows.values[5 + i], plain.values[i]);
    EXPECT_EQ(rows.magnitude[5 + i], std::fabs(plain.values[i]));
  }
  EXPECT_EQ(rows.values[9], 0.0L);
  EXPECT_LT(rows.magnitude[9], 0.0L);
}

TEST(Sinusoidal, AxesAreRowsOneAfterTheOther) {
  AxesSpec axes;
  axes.kind = AxesKind::Axial;
  axes.sections = {2, 3};
  for (SinusoidalOrder order :
       {SinusoidalOrder::Interleaved, SinusoidalOrder::SinCos,
        SinusoidalOrder::CosSin}) {
    SinusoidalOptions options;
    options.order = order;
    Array row = sinusoidal(plainSpec(10), axes, {5, 9}, {1}, options);
    Array first = sinusoidal(plainSpec(4), {5}, order);
    Array second = sinusoidal(plainSpec(6), {9}, order);
    for (size_t i = 0; i < 4; ++i)
      EXPECT_EQ(row.values[i], first.values[i]);
    for (size_t i = 0; i < 6; ++i)
      EXPECT_EQ(row.values[4 + i], second.values[i]);
  }
}

TEST(Sinusoidal, ChecksAxes) {
  AxesSpec axes;
  axes.kind = AxesKind::Sections;
  axes.sections = {1, 1};
  EXPECT_NE(checkSinusoidal(plainSpec(4), axes, {1, 2}, {1}, {}), "");
  axes.kind = AxesKind::Axial;
  EXPECT_EQ(checkSinusoidal(plainSpec(4), axes, {1, 2}, {1}, {}), "");
  SinusoidalOptions options;
  options.paddingPosition = 1;
  EXPECT_NE(checkSinusoidal(plainSpec(4), axes, {1, 2}, {1}, options), "");
}
