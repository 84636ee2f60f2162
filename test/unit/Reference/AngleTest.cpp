//===- AngleTest.cpp - exact angles against independent arithmetic --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Reference/Angle.h"
#include "TestUtils.h"

using namespace posenc::reference;

namespace {
struct Golden {
  double base;
  int64_t pair;
  int64_t dim;
  int64_t position;
  long double cos;
  long double sin;
};
} // namespace

// Computed in decimal arithmetic of 160 digits (Machin's formula and Taylor
// series), independently of MPFR. The last four rows of each group are the
// positions nearest to a zero of sin or cos below 2^31 and 2^63.
static const Golden goldens[] = {
    {10000, 0, 16, 1, 5.403023058681397174009366e-1L,
     8.414709848078965066525023e-1L},
    {10000, 0, 16, 2147483647, -6.888366918779438346797582e-1L,
     -7.249165551445563905482933e-1L},
    {10000, 0, 16, -2147483648, 2.378161945728033571536873e-1L,
     9.713101757929392428251452e-1L},
    {10000, 0, 16, 9223372036854775807, 8.477880073480187828081561e-1L,
     5.303352662202237992215657e-1L},
    {10000, 0, 16, INT64_MIN, 1.180007651280023668442039e-2L,
     -9.999303766734422296178565e-1L},
    {10000, 0, 16, 411557987, 9.999999999999999967825358e-1L,
     2.536716051963676479648990e-9L},
    {10000, 0, 16, 534483448, -5.223166395368816938259035e-10L,
     -9.999999999999999998635927e-1L},
    {10000, 0, 16, 2646693125139304345, -1.000000000000000000000000L,
     1.188488579586842482197671e-20L},
    {10000, 0, 16, -1538352035865186794, 5.865860207926762214500125e-19L,
     1.000000000000000000000000L},
    {10000, 3, 16, 1, 9.995000416652778025790895e-1L,
     3.161750640243371009517348e-2L},
    {10000, 3, 16, 2147483647, 9.996963908178936411418787e-1L,
     -2.463993071575604946442681e-2L},
    {10000, 3, 16, -2147483648, 9.999756374422734759074296e-1L,
     -6.980295260146894883792829e-3L},
    {10000, 3, 16, 9223372036854775807, 3.268997143522622315352330e-1L,
     9.450590334769618815783965e-1L},
    {10000, 3, 16, INT64_MIN, 2.968558680738178562365531e-1L,
     -9.549222971478569723870878e-1L},
    {10000, 3, 16, 221478035, -9.999999999999999979751664e-1L,
     -2.012378481603073293158897e-9L},
    {10000, 3, 16, 843762414, 5.742014043251155518081302e-10L,
     -9.999999999999999998351464e-1L},
    {10000, 3, 16, 77847512631053, -1.000000000000000000000000L,
     -5.173767474001024635273482e-15L},
    {10000, 3, 16, -1473408808580420049, -5.389580324297684255262288e-20L,
     1.000000000000000000000000L},
    {10000, 63, 128, 1, 9.999999933323928465928774e-1L,
     1.154781982122913971278600e-4L},
    {10000, 63, 128, 2147483647, -9.371242803736637618084393e-1L,
     3.489958210840680429804597e-1L},
    {10000, 63, 128, -2147483648, -9.371645755338896137520593e-1L,
     -3.488876013337024689305008e-1L},
    {10000, 63, 128, 9223372036854775807, 8.748575061801274918789610e-1L,
     4.843803710724539541134485e-1L},
    {10000, 63, 128, INT64_MIN, 8.748015649744204773646517e-1L,
     -4.844813948113021066892052e-1L},
    {10000, 63, 128, 42575937, -9.999999999999998136163236e-1L,
     -1.930718396744874607522944e-8L},
    {10000, 63, 128, 1058127656, -2.140426669568588462091665e-10L,
     9.999999999999999999770929e-1L},
    {10000, 63, 128, 5509143444722643569, 1.000000000000000000000000L,
     1.412922499380233838656929e-19L},
    {10000, 63, 128, -8219977323532386264, 7.430869071046382757286886e-20L,
     -1.000000000000000000000000L},
    {500000, 17, 64, 1, 9.999995596334296486760357e-1L,
     9.384737325998696516107088e-4L},
    {500000, 17, 64, 2147483647, 8.916995012532883847568096e-1L,
     4.526278818904517578198574e-1L},
    {500000, 17, 64, -2147483648, 8.912743292008407286539525e-1L,
     -4.534645191275623800343524e-1L},
    {500000, 17, 64, 9223372036854775807, -4.968375903330129847097523e-1L,
     8.678435393733626005746540e-1L},
    {500000, 17, 64, INT64_MIN, -4.976518199080557096874816e-1L,
     -8.673768881761838175619984e-1L},
    {500000, 17, 64, 1613280361, 9.999999999999999999630568e-1L,
     -2.718205564883996388256324e-10L},
    {500000, 17, 64, 910921532, 8.201854811083211840155961e-10L,
     -9.999999999999999996636479e-1L},
    {500000, 17, 64, 906335408643298507, -1.000000000000000000000000L,
     -3.398674510400748494486333e-19L},
    {500000, 17, 64, -4306825741415415881, 1.181090785656244653279608e-19L,
     -1.000000000000000000000000L},
    {1000000, 31, 64, 1, 9.999999999988143131471694e-1L,
     1.539926526058883366025061e-6L},
    {1000000, 31, 64, 2147483647, -4.266309246094110381021495e-1L,
     9.044258146287726539120127e-1L},
    {1000000, 31, 64, -2147483648, -4.266323173582079866853180e-1L,
     -9.044251576474226450545350e-1L},
    {1000000, 31, 64, 9223372036854775807, 9.453566497173865636523255e-1L,
     3.260380420060188049794279e-1L},
    {1000000, 31, 64, INT64_MIN, 9.453561476416362773326928e-1L,
     -3.260394977854137119192531e-1L},
    {1000000, 31, 64, 597747121, -9.999999999999999984097554e-1L,
     -1.783392618765518747591435e-9L},
    {1000000, 31, 64, 702811888, 5.310051394710743546314373e-10L,
     9.999999999999999998590168e-1L},
    {1000000, 31, 64, 8790786022922578271, 1.000000000000000000000000L,
     9.528902142089754923694724e-20L},
    {1000000, 31, 64, -3259532234064664122, -1.433544948807704073300545e-19L,
     1.000000000000000000000000L},
};

TEST(Angle, GoldenOverTheWholeRange) {
  for (const Golden &golden : goldens) {
    PairTable pairs(plainSpec(golden.dim, golden.base), {});
    CosSin result =
        cosSin(golden.position, pairs.frequency(golden.pair), Real(1));
    EXPECT_TRUE(isClose(result.cos, golden.cos, 0x1p-63L))
        << "cos at " << golden.position << ", pair " << golden.pair;
    EXPECT_TRUE(isClose(result.sin, golden.sin, 0x1p-63L))
        << "sin at " << golden.position << ", pair " << golden.pair;
  }
}

TEST(Angle, ZeroAndTinyAngles) {
  CosSin zero = cosSin(0, Real(0.1), Real(1));
  EXPECT_EQ(zero.cos, 1.0L);
  EXPECT_EQ(zero.sin, 0.0L);
  CosSin constant = cosSin(INT64_MIN, Real(0), Real(1));
  EXPECT_EQ(constant.cos, 1.0L);
  EXPECT_EQ(constant.sin, 0.0L);
  // Below 2^-32 the sine equals the angle to within half a unit.
  CosSin tiny = cosSin(-3, Real(0x1p-40), Real(1));
  EXPECT_EQ(tiny.cos, 1.0L);
  EXPECT_EQ(tiny.sin, -0x3p-40L);
  CosSin denormal = cosSin(1, Real(0x1p-1074), Real(1));
  EXPECT_EQ(denormal.sin, 0x1p-1074L);
}

TEST(Angle, ScaleIsAppliedBeforeRounding) {
  // cos(1e-20 rad) is 1 - 5e-41: times 3 and rounded, it is 3 again.
  EXPECT_EQ(cosSin(1, Real(1e-20), Real(3)).cos, 3.0L);
  Real third = Real(1) / Real(3);
  CosSin scaled = cosSin(12345, Real(0.1), third);
  CosSin plain = cosSin(12345, Real(0.1), Real(1));
  EXPECT_TRUE(isClose(scaled.cos, plain.cos / 3, 0x1p-63L));
  EXPECT_TRUE(isClose(scaled.sin, plain.sin / 3, 0x1p-63L));
}

TEST(Angle, NegativePositionsMirror) {
  PairTable pairs(plainSpec(64), {});
  for (int64_t i = 0; i < pairs.size(); ++i) {
    CosSin plus = cosSin(2147483647, pairs.frequency(i), Real(1));
    CosSin minus = cosSin(-2147483647, pairs.frequency(i), Real(1));
    EXPECT_EQ(plus.cos, minus.cos);
    EXPECT_EQ(plus.sin, -minus.sin);
  }
}

TEST(Angle, F32AnglesHaveThePublishedErrors) {
  // The largest error of cosine and sine if inverse frequencies and angles are
  // rounded to f32, as LlamaRotaryEmbedding does, for base 1e4 and d = 128.
  struct {
    int64_t position;
    long double error;
  } const rows[] = {{100, 3.2e-6L},     {4095, 1.4e-4L},   {131071, 4.2e-3L},
                    {1048576, 2.3e-2L}, {16777215, 0.37L}, {2147483647, 1.99L}};
  PairTable pairs(plainSpec(128), {});
  for (const auto &row : rows) {
    long double worst = 0;
    for (int64_t i = 0; i < 64; ++i) {
      float inverse = 1.0f / std::pow(10000.0f, float(2 * i) / 128.0f);
      float angle = float(row.position) * inverse;
      CosSin exact = cosSin(row.position, pairs.frequency(i), Real(1));
      worst =
          std::fmax(worst, std::fabs(std::cos((long double)angle) - exact.cos));
      worst =
          std::fmax(worst, std::fabs(std::sin((long double)angle) - exact.sin));
    }
    EXPECT_TRUE(isClose(worst, row.error, 0.03L)) << "at " << row.position;
  }
}
