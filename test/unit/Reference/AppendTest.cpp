//===- AppendTest.cpp - new rows of KV caches -----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTestUtils.h"

#include "posenc/Reference/Compare.h"

#include <tuple>

using namespace posenc::reference;

namespace {
/// Two sequences of three new tokens and caches of eight tokens, token-major.
class Append : public ::testing::Test {
protected:
  Caches caches{randomArray({2, 8, 2, 4}, DType::F32, 1),
                randomArray({2, 8, 2, 6}, DType::F32, 2)};
  Array keys = randomArray({2, 3, 2, 4}, DType::F32, 3);
  Array values = randomArray({2, 3, 2, 6}, DType::F32, 4);
  AppendSpec spec;

  Append() { spec.slots = {4, 5, 6, 8 + 7, 8 + 0, 8 + 2}; }

  std::string check() const { return checkAppend(caches, keys, values, spec); }
  Caches run() const {
    EXPECT_EQ(check(), "");
    return append(caches, keys, values, spec);
  }
};
} // namespace

TEST_F(Append, CopiesRowsToTheirSlots) {
  Caches result = run();
  Caches expected = caches;
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t t = 0; t < 3; ++t) {
      int64_t slot = spec.slots[size_t(b * 3 + t)];
      std::copy_n(&keys.values[rowOf(keys, b, t, 0)], 2 * 4,
                  &expected.keys.values[size_t(slot * 2 * 4)]);
      std::copy_n(&values.values[rowOf(values, b, t, 0)], 2 * 6,
                  &expected.values.values[size_t(slot * 2 * 6)]);
    }
  EXPECT_EQ(result.keys.values, expected.keys.values);
  EXPECT_EQ(result.values.values, expected.values.values);
  // All elements must match bit for bit.
  for (const Array *cache : {&result.keys, &result.values})
    for (long double magnitude : cache->magnitude)
      EXPECT_EQ(magnitude, -1);
}

TEST_F(Append, EndsWithWrongArguments) {
  spec.slots.pop_back();
  std::string reason = check();
  EXPECT_NE(reason, "");
  EXPECT_DEATH(append(caches, keys, values, spec), "");
}

TEST_F(Append, DropsNegativeSlots) {
  spec.slots.assign(6, -1);
  EXPECT_EQ(run().keys.values, caches.keys.values);
  EXPECT_EQ(run().values.values, caches.values.values);
}

TEST_F(Append, LayoutsAgree) {
  spec.keyRotation = rotationOf(4, {1, 2, 3, 4, 5, 6});
  Caches expected = run();
  caches.keys = transposed(caches.keys);
  caches.values = transposed(caches.values);
  spec.cacheLayout = TokenLayout::HeadMajor;
  Caches result = run();
  EXPECT_EQ(transposed(result.keys).values, expected.keys.values);
  EXPECT_EQ(transposed(result.values).values, expected.values.values);
  keys = transposed(keys);
  values = transposed(values);
  spec.rowLayout = TokenLayout::HeadMajor;
  EXPECT_EQ(run().keys.values, result.keys.values);
  EXPECT_EQ(run().values.values, result.values.values);
}

TEST_F(Append, RowsWithoutSequences) {
  spec.keyRotation = rotationOf(4, {1, 2, 3, 4, 5, 6});
  Caches expected = run();
  keys.shape = {6, 2, 4};
  values.shape = {6, 2, 6};
  EXPECT_EQ(run().keys.values, expected.keys.values);
  EXPECT_EQ(run().values.values, expected.values.values);
}

TEST_F(Append, RotatesKeys) {
  const std::vector<int64_t> positions{4, 5, 6, 7, 0, 2};
  Rotation rotation = rotationOf(2, positions);
  rotation.interleaved = true;
  rotation.windowOffset = 1;
  spec.keyRotation = rotation;
  Caches result = run();
  RotateOptions options = rotateAlong({0, 1}, true);
  options.windowOffset = 1;
  Array rotated = rope(keys, plainSpec(2), {}, positions, options);
  for (int64_t t = 0; t < 6; ++t)
    for (int64_t n = 0; n < 8; ++n) {
      size_t from = size_t(t * 8 + n);
      size_t to = size_t(spec.slots[size_t(t)] * 8 + n);
      EXPECT_EQ(result.keys.values[to], rotated.values[from]);
      EXPECT_EQ(result.keys.magnitude[to], rotated.magnitude[from]);
    }
  // A correctly rounded cache is within the limits of a rotation. A cache with
  // a change in another row is not.
  auto measured = [&](const Array &got) {
    return compare(DType::F32, toBytes(DType::F32, got).data(), result.keys);
  };
  EXPECT_TRUE(measured(result.keys).within(0.5L));
  Array faulty = result.keys;
  faulty.values[0] += 0x1p-20L;
  EXPECT_TRUE(measured(faulty).mismatch);
  faulty = result.keys;
  std::swap(faulty.values[4 * 8 + 1], faulty.values[4 * 8 + 2]);
  EXPECT_FALSE(measured(faulty).within(4));
}

TEST_F(Append, NormsKeysBeforeTheRotation) {
  spec.keyNorm = RmsNorm{{2, 2, 2, 2}, 0};
  spec.keyRotation = rotationOf(2, {4, 5, 6, 7, 0, 2});
  Caches result = run();
  for (int64_t slot : spec.slots)
    for (int64_t head = 0; head < 2; ++head) {
      long double squares = 0;
      for (int64_t d = 0; d < 4; ++d) {
        size_t at = size_t((slot * 2 + head) * 4 + d);
        squares += result.keys.values[at] * result.keys.values[at];
        EXPECT_GE(result.keys.magnitude[at], std::fabs(result.keys.values[at]));
      }
      EXPECT_TRUE(isClose(squares, 16, 1e-17L));
    }
  EXPECT_EQ(result.keys.magnitude[0], -1);
}

TEST_F(Append, ThenAttendEqualsRotatingOnLoad) {
  // A cache of rotated keys against raw keys that attention rotates.
  const Array queries = randomArray({2, 1, 4, 4}, DType::F32, 5);
  const Array raw = randomArray({2, 8, 2, 4}, DType::F32, 6);
  const Array rows = randomArray({2, 8, 2, 6}, DType::F32, 7);
  AttentionSpec onLoad;
  onLoad.queryRotation = onLoad.keyRotation = rotationOf(4);
  AttentionSpec stored = onLoad;
  stored.keyRotation = {};
  keys = raw;
  values = rows;
  spec.slots.clear();
  spec.keyRotation = rotationOf(4);
  for (int64_t slot = 0; slot < 16; ++slot) {
    spec.slots.push_back(slot);
    spec.keyRotation->positions.push_back(slot % 8);
  }
  Caches filled = run();
  expectSame(attend({queries, filled.keys, filled.values}, stored),
             attend({queries, raw, rows}, onLoad));
}

TEST_F(Append, RejectsInvalidArguments) {
  auto expectRejected = [&](auto change) {
    const auto saved = std::make_tuple(caches, keys, values, spec);
    change();
    EXPECT_NE(check(), "");
    std::tie(caches, keys, values, spec) = saved;
    EXPECT_EQ(check(), "");
  };
  expectRejected([&] { caches.keys.shape = {16, 2, 4}; });
  expectRejected([&] { keys.shape = {12, 4}; });
  expectRejected([&] { keys.shape[1] = -3; });
  expectRejected([&] { keys.values.pop_back(); });
  expectRejected([&] { keys = randomArray({2, 3, 1, 4}, DType::F32); });
  expectRejected([&] { keys = randomArray({2, 3, 2, 6}, DType::F32); });
  expectRejected([&] { values = randomArray({1, 6, 2, 6}, DType::F32); });
  expectRejected(
      [&] { caches.values = randomArray({4, 4, 2, 6}, DType::F32); });
  expectRejected([&] { spec.slots.pop_back(); });
  expectRejected([&] { spec.slots[0] = 16; });
  expectRejected([&] { spec.slots[0] = 5; });
  expectRejected([&] { spec.keyNorm = RmsNorm{{1}, 0}; });
  expectRejected([&] { spec.keyRotation = rotationOf(6, spec.slots); });
  expectRejected([&] { spec.keyRotation = rotationOf(4); });
}
