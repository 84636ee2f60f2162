//===- BiasTest.cpp - ALiBi slopes and T5 thresholds ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::posenc;

namespace {

struct BiasTest : AttrTest {
  SmallVector<int64_t> thresholds(bool bidirectional, int64_t buckets,
                                  int64_t maxDistance) {
    OpBuilder builder(&context);
    Location loc = builder.getUnknownLoc();
    OwningOpRef<Operation *> zero(
        arith::ConstantIndexOp::create(builder, loc, 0));
    OwningOpRef<T5BucketOp> op(T5BucketOp::create(
        builder, loc, builder.getIndexType(), zero.get()->getResult(0),
        bidirectional, buckets, maxDistance));
    SmallVector<int64_t> result = op->getThresholds();
    op = nullptr;
    return result;
  }

  double slope(int64_t heads, int64_t head) {
    OpBuilder builder(&context);
    Location loc = builder.getUnknownLoc();
    OwningOpRef<Operation *> zero(
        arith::ConstantIndexOp::create(builder, loc, 0));
    Value index = zero.get()->getResult(0);
    OwningOpRef<AlibiOp> op(AlibiOp::create(builder, loc, builder.getF32Type(),
                                            index, index, index, heads));
    double result = op->getSlope(head);
    op = nullptr;
    return result;
  }
};

TEST_F(BiasTest, Thresholds) {
  EXPECT_EQ(thresholds(true, 32, 128),
            (SmallVector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46,
                                  64, 91}));
  EXPECT_EQ(thresholds(false, 32, 128),
            (SmallVector<int64_t>{1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                  12, 13, 14, 15, 16, 19, 21, 24, 27, 31, 35,
                                  40, 46, 52, 59, 67, 77, 87, 99, 113}));
  EXPECT_EQ(thresholds(false, 2, 2), (SmallVector<int64_t>{1}));
  // These thresholds are powers of 3 times 4, which a logarithm may round down.
  EXPECT_EQ(thresholds(false, 8, 324),
            (SmallVector<int64_t>{1, 2, 3, 4, 12, 36, 108}));
}

TEST_F(BiasTest, ThresholdsAreSorted) {
  for (bool bidirectional : {false, true})
    for (int64_t buckets : {4, 6, 32, 66, 1024})
      for (int64_t maxDistance : {513, 1000, 65536, 2147483647}) {
        SmallVector<int64_t> all =
            thresholds(bidirectional, buckets, maxDistance);
        EXPECT_EQ(static_cast<int64_t>(all.size()),
                  buckets / (bidirectional ? 2 : 1) - 1);
        EXPECT_TRUE(llvm::is_sorted(all));
        EXPECT_LE(all.back(), maxDistance);
      }
}

TEST_F(BiasTest, Slopes) {
  for (int64_t head = 0; head < 8; ++head)
    EXPECT_EQ(slope(8, head), std::ldexp(1.0, -1 - head));
  EXPECT_EQ(slope(1, 0), std::ldexp(1.0, -8));
  // Twelve heads have the slopes of 8 heads and every other one of 16 heads.
  EXPECT_EQ(slope(12, 7), std::ldexp(1.0, -8));
  EXPECT_EQ(slope(12, 8), std::sqrt(0.5));
  EXPECT_EQ(slope(12, 10), std::ldexp(std::sqrt(0.5), -2));
  EXPECT_EQ(slope(16, 1), 0.5);
}

} // namespace
