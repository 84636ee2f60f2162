//===- RotateTest.cpp - rotation of channel pairs -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

#include <limits>

using namespace posenc::reference;

TEST(Rotate, HalfAndInterleavedByHand) {
  Array x{{1, 4}, {1, 2, 3, 4}, {}};
  Array cos{{1, 2}, {0.5L, 0.25L}, {}}, sin{{1, 2}, {2, 4}, {}};
  Array half = rotate(x, cos, sin, rotateAlong({0}));
  EXPECT_EQ(half.values,
            (std::vector<long double>{1 * 0.5L - 3 * 2, 2 * 0.25L - 4 * 4,
                                      3 * 0.5L + 1 * 2, 4 * 0.25L + 2 * 4}));
  Array interleaved = rotate(x, cos, sin, rotateAlong({0}, true));
  EXPECT_EQ(interleaved.values,
            (std::vector<long double>{1 * 0.5L - 2 * 2, 2 * 0.5L + 1 * 2,
                                      3 * 0.25L - 4 * 4, 4 * 0.25L + 3 * 4}));
  RotateOptions inverse = rotateAlong({0});
  inverse.inverse = true;
  EXPECT_EQ(rotate(x, cos, sin, inverse).values,
            (std::vector<long double>{1 * 0.5L + 3 * 2, 2 * 0.25L + 4 * 4,
                                      3 * 0.5L - 1 * 2, 4 * 0.25L - 2 * 4}));
}

TEST(Rotate, OtherChannelsAreCopied) {
  Array x = randomArray({2, 10}, DType::F32);
  CosSinTable table = sincos(plainSpec(4), {}, {5, 6}, {2});
  for (int64_t offset : {0, 3, 6}) {
    RotateOptions options = rotateAlong({0});
    options.windowOffset = offset;
    Array result = rotate(x, table.cos, table.sin, options);
    for (int64_t i = 0; i < 20; ++i) {
      int64_t channel = i % 10;
      bool inside = channel >= offset && channel < offset + 4;
      EXPECT_EQ(result.magnitude[size_t(i)] >= 0, inside);
      EXPECT_EQ(result.values[size_t(i)] != x.values[size_t(i)], inside);
    }
  }
}

TEST(Rotate, MagnitudeIsThatOfTheScaledPair) {
  // This rotation moves the whole pair into one lane.
  Array x{{2}, {3, 4}, {}};
  Array cos{{1}, {0.6L * 2}, {}}, sin{{1}, {-0.8L * 2}, {}};
  Array result = rotate(x, cos, sin, rotateAlong({}));
  EXPECT_TRUE(isClose(result.values[0], 10.0L, 0x1p-60L));
  EXPECT_LT(std::fabs(result.values[1]), 0x1p-60L);
  EXPECT_TRUE(isClose(result.magnitude[0], 10.0L, 0x1p-60L));
  EXPECT_TRUE(isClose(result.magnitude[1], 10.0L, 0x1p-60L));
}

TEST(Rotate, PositionDimensionsInAnyOrder) {
  // The layouts are batch x sequence x head x dim and sequence x head x batch x
  // dim.
  const int64_t batch = 2, sequence = 3, heads = 2, dim = 4;
  Array x = randomArray({batch, sequence, heads, dim}, DType::F32);
  CosSinTable table =
      sincos(plainSpec(dim), {}, {1, 2, 3, 40, 50, 60}, {batch, sequence});
  Array expected = rotate(x, table.cos, table.sin, rotateAlong({0, 1}));

  Array moved = x;
  moved.shape = {sequence, heads, batch, dim};
  auto at = [&](int64_t b, int64_t s, int64_t h, int64_t c) {
    return size_t(((b * sequence + s) * heads + h) * dim + c);
  };
  auto movedAt = [&](int64_t b, int64_t s, int64_t h, int64_t c) {
    return size_t(((s * heads + h) * batch + b) * dim + c);
  };
  auto forAll = [&](auto body) {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t s = 0; s < sequence; ++s)
        for (int64_t h = 0; h < heads; ++h)
          for (int64_t c = 0; c < dim; ++c)
            body(b, s, h, c);
  };
  forAll([&](auto... index) {
    moved.values[movedAt(index...)] = x.values[at(index...)];
  });
  Array result = rotate(moved, table.cos, table.sin, rotateAlong({2, 0}));
  forAll([&](auto... index) {
    EXPECT_EQ(result.values[movedAt(index...)], expected.values[at(index...)]);
  });
}

TEST(Rotate, SpecialInputsFollowTheArithmetic) {
  const long double infinity = std::numeric_limits<long double>::infinity();
  CosSinTable table = sincos(plainSpec(2), {}, {1}, {});
  auto rotated = [&](long double u, long double v) {
    Array x{{2}, {u, v}, {}};
    return rotate(x, table.cos, table.sin, rotateAlong({})).values;
  };
  EXPECT_EQ(rotated(infinity, 1),
            (std::vector<long double>{infinity, infinity}));
  EXPECT_TRUE(std::isnan(rotated(infinity, infinity)[0]));
  EXPECT_EQ(rotated(infinity, infinity)[1], infinity);
  EXPECT_TRUE(std::isnan(rotated(NAN, 1)[0]));
  EXPECT_TRUE(std::isnan(rotated(NAN, 1)[1]));
  // The square of the smallest subnormal of f64 does not underflow.
  EXPECT_TRUE(isClose(rotated(0x1p-1074L, 0)[1],
                      0x1p-1074L * table.sin.values[0], 0x1p-60L));
}

TEST(Rotate, EmptyTensors) {
  Array x{{0, 4}, {}, {}};
  CosSinTable table = sincos(plainSpec(4), {}, {}, {0});
  Array result = rotate(x, table.cos, table.sin, rotateAlong({0}));
  EXPECT_EQ(result.shape, x.shape);
  EXPECT_TRUE(result.values.empty());
}

TEST(Rotate, RejectsMismatchedOperands) {
  Array x = randomArray({2, 3, 4}, DType::F32);
  CosSinTable table = sincos(plainSpec(4), {}, {1, 2}, {2});
  auto reason = [&](const RotateOptions &options) {
    return checkRotate(x, table.cos, table.sin, options);
  };
  EXPECT_EQ(reason(rotateAlong({0})), "");
  EXPECT_NE(reason(rotateAlong({1})), "");
  EXPECT_NE(reason(rotateAlong({2})), "");
  EXPECT_NE(reason(rotateAlong({-1})), "");
  EXPECT_NE(reason(rotateAlong({})), "");
  EXPECT_NE(reason(rotateAlong({0, 0})), "");
  RotateOptions shifted = rotateAlong({0});
  shifted.windowOffset = 1;
  EXPECT_NE(reason(shifted), "");
  shifted.windowOffset = -1;
  EXPECT_NE(reason(shifted), "");
  Array shorter = table.sin;
  shorter.shape = {1, 2};
  EXPECT_NE(checkRotate(x, table.cos, shorter, rotateAlong({0})), "");
  EXPECT_NE(checkRope(x, plainSpec(4), {}, {1}, rotateAlong({0})), "");
  EXPECT_NE(checkRope(x, plainSpec(6), {}, {1, 2}, rotateAlong({0})), "");
  EXPECT_EQ(checkRope(x, plainSpec(4), {}, {1, 2}, rotateAlong({0})), "");
}
