//===- AttentionFaultsTest.cpp - detection of faults in attention ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// As in FaultsTest.cpp, each test injects a fault into a correct result, for
// every element type of attention.

#include "AttentionTestUtils.h"

#include "posenc/Reference/CompareAttention.h"

#include <limits>

using namespace posenc::reference;

namespace {

class AttentionFaults : public ::testing::TestWithParam<DType> {
protected:
  static constexpr Sizes sizes{2, 24, 40, 4, 2, 32, 16};

  AttentionFaults() : type(GetParam()), x(randomOperands(sizes, type)) {
    spec.causal = true;
    spec.left = 30;
    // Scores of a standard deviation of 2.
    spec.scale = 2 / std::sqrt(32.0);
    spec.queryRotation = spec.keyRotation = rotationOf(32);
    ref = attend(x, spec);
  }

  AttentionComparison compareWith(const Array &got) const {
    return compareAttention(type, toBytes(type, got).data(), ref);
  }
  bool passes(const Array &got) const {
    return compareWith(got).within(defaultLimitRelative(type));
  }
  void expectCaught(const Array &faulty) const {
    EXPECT_TRUE(passes(ref.output)) << "the control";
    EXPECT_FALSE(passes(faulty)) << "the fault";
  }
  void expectCaught(const AttentionSpec &faulty) const {
    expectCaught(attend(x, faulty).output);
  }
  size_t at(int64_t sequence, int64_t query, int64_t head) const {
    return rowOf(ref.output, sequence, query, head);
  }

  DType type;
  Operands x;
  AttentionSpec spec;
  AttentionResult ref;
};

constexpr Sizes AttentionFaults::sizes;

} // namespace

TEST_P(AttentionFaults, Control) {
  AttentionComparison control = compareWith(ref.output);
  EXPECT_FALSE(control.mismatch);
  EXPECT_GT(control.relative, 0);
  EXPECT_LE(control.relative, defaultLimitRelative(type) / 2);
  EXPECT_GT(control.maxRatio, 0);
  EXPECT_LE(control.maxRatio, 0.1);
  EXPECT_EQ(control.index.size(), 4u);
}

TEST_P(AttentionFaults, SwappedLanes) {
  Array faulty = ref.output;
  size_t lane = at(1, 7, 2);
  std::swap(faulty.values[lane + 3], faulty.values[lane + 4]);
  expectCaught(faulty);
}

TEST_P(AttentionFaults, SwappedHeadsOfOneRow) {
  Array faulty = ref.output;
  std::swap_ranges(&faulty.values[at(0, 3, 0)], &faulty.values[at(0, 3, 1)],
                   &faulty.values[at(0, 3, 1)]);
  expectCaught(faulty);
}

TEST_P(AttentionFaults, DroppedKey) {
  // One key is missing in all rows.
  AttentionSpec faulty = spec;
  faulty.sees = [](int64_t, int64_t, int64_t, int64_t j) { return j != 20; };
  expectCaught(faulty);
  // In one row, the key with the largest weight is missing: the bound for bf16
  // is 1/16 of mag, so other keys may go unnoticed.
  auto isRow = [](int64_t b, int64_t h, int64_t i) {
    return b == 1 && h == 3 && i == 21;
  };
  double largest = 0;
  int64_t heaviest = -1;
  faulty = spec;
  faulty.score = [&](double s, int64_t b, int64_t h, int64_t i, int64_t j) {
    if (isRow(b, h, i) && s > largest) {
      largest = s;
      heaviest = j;
    }
    return s;
  };
  attend(x, faulty);
  ASSERT_GE(heaviest, 0);
  faulty.score = {};
  faulty.sees = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    return !(isRow(b, h, i) && j == heaviest);
  };
  expectCaught(faulty);
}

TEST_P(AttentionFaults, MaskOffByOne) {
  AttentionSpec faulty = spec;
  faulty.causal = false;
  faulty.right = 1;
  expectCaught(faulty);
  faulty = spec;
  faulty.sees = [](int64_t, int64_t, int64_t i, int64_t j) { return j < i; };
  expectCaught(faulty);
  for (int64_t left : {29, 31}) {
    faulty = spec;
    faulty.left = left;
    expectCaught(faulty);
  }
}

TEST_P(AttentionFaults, CausalAlignedAtTheBeginning) {
  AttentionSpec faulty = spec;
  faulty.sees = [](int64_t, int64_t, int64_t i, int64_t j) {
    return j <= i - 16;
  };
  expectCaught(faulty);
}

TEST_P(AttentionFaults, WrongScale) {
  AttentionSpec faulty = spec;
  faulty.scale = {};
  expectCaught(faulty);
  // exp2 instead of exp.
  faulty.scale = *spec.scale * std::log(2.0);
  expectCaught(faulty);
  faulty.scale = *spec.scale * 1.1;
  expectCaught(faulty);
}

TEST_P(AttentionFaults, WrongHeadGroup) {
  Operands faulty = x;
  auto regrouped = [&](const Array &a) {
    return pickRows(
        a, {sizes.sequences, sizes.keys, sizes.heads},
        [&](int64_t b, int64_t t, int64_t h) { return rowOf(a, b, t, h % 2); });
  };
  faulty.k = regrouped(x.k);
  faulty.v = regrouped(x.v);
  expectCaught(attend(faulty, spec).output);
}

TEST_P(AttentionFaults, WrongRotation) {
  AttentionSpec faulty = spec;
  faulty.keyRotation->inverse = true;
  expectCaught(faulty);
  faulty = spec;
  faulty.keyRotation->interleaved = true;
  expectCaught(faulty);
  faulty = spec;
  faulty.keyRotation = {};
  expectCaught(faulty);
  // Query positions counted from 0 instead of from the end of the keys.
  faulty = spec;
  for (int64_t i = 0; i < sizes.queries; ++i)
    faulty.queryRotation->positions.push_back(i);
  expectCaught(faulty);
}

TEST_P(AttentionFaults, WrongDenominator) {
  // The denominator lacks the weight of a sink.
  AttentionSpec sinks = spec;
  sinks.sinks = {1, 1, 1, 1};
  Array faulty = ref.output;
  ref = attend(x, sinks);
  expectCaught(faulty);
  faulty = ref.output;
  for (size_t d = 0; d < 16; ++d)
    faulty.values[at(0, 0, 0) + d] *= 1.2L;
  expectCaught(faulty);
}

TEST_P(AttentionFaults, SpecialValues) {
  for (long double bad : {std::numeric_limits<long double>::quiet_NaN(),
                          std::numeric_limits<long double>::infinity()}) {
    Array faulty = ref.output;
    faulty.values[at(1, 2, 3) + 4] = bad;
    expectCaught(faulty);
    AttentionComparison comparison = compareWith(faulty);
    EXPECT_TRUE(comparison.mismatch);
    EXPECT_EQ(comparison.index, (std::vector<int64_t>{1, 2, 3, 4}));
  }
  // A number instead of a NaN.
  Array before = ref.output;
  x.v.values[5] = std::numeric_limits<long double>::quiet_NaN();
  spec.left = {};
  ref = attend(x, spec);
  expectCaught(before);
}

TEST_P(AttentionFaults, RowThatSeesNoKey) {
  spec.sees = [](int64_t, int64_t, int64_t i, int64_t) { return i != 18; };
  Array before = ref.output;
  ref = attend(x, spec);
  Array faulty = ref.output;
  // Uniform weights, as masking by -1e30 gives, and any other nonzero value.
  std::copy_n(&before.values[at(0, 2, 0)], 16, &faulty.values[at(0, 2, 0)]);
  expectCaught(faulty);
  faulty = ref.output;
  faulty.values[at(0, 2, 0)] = 0x1p-20L;
  expectCaught(faulty);
  faulty.values[at(0, 2, 0)] = -0.0L;
  EXPECT_TRUE(passes(faulty));
}

namespace {
enum class Fault {
  None,
  MissingMax,     ///< exp(s) instead of exp(s - max).
  MissingRescale, ///< Accumulators are not rescaled if the maximum grows.
  DroppedTile,
  MissingTail, ///< The keys after the last whole tile.
  StaleDenominator,
};
} // namespace

/// FlashAttention in f32 with tiles of 8 keys, for one sequence without grouped
/// queries.
static Array online(const Operands &x, float scale, Fault fault) {
  const int64_t keys = x.k.shape[1], width = x.k.shape[3];
  const int64_t valueWidth = x.v.shape[3], tile = 8;
  Array result{x.q.shape, {}, {}};
  result.shape[3] = valueWidth;
  for (int64_t i = 0; i < x.q.shape[1]; ++i)
    for (int64_t h = 0; h < x.q.shape[2]; ++h) {
      float max = -std::numeric_limits<float>::infinity(), sum = 0;
      std::vector<float> acc(size_t(valueWidth), 0);
      for (int64_t begin = 0; begin < keys; begin += tile) {
        int64_t end = std::min(begin + tile, keys);
        if ((fault == Fault::DroppedTile && begin == 2 * tile) ||
            (fault == Fault::MissingTail && end - begin < tile))
          continue;
        std::vector<float> scores;
        float newMax = max;
        for (int64_t j = begin; j < end; ++j) {
          float score = 0;
          for (int64_t d = 0; d < width; ++d)
            score += float(x.q.values[rowOf(x.q, 0, i, h) + size_t(d)]) *
                     float(x.k.values[rowOf(x.k, 0, j, h) + size_t(d)]);
          scores.push_back(score * scale);
          newMax = std::max(newMax, scores.back());
        }
        if (fault == Fault::MissingMax)
          newMax = 0;
        float rescale = begin == 0 ? 0 : std::exp(max - newMax);
        if (fault == Fault::MissingRescale)
          rescale = 1;
        sum *= fault == Fault::StaleDenominator ? 1 : rescale;
        for (float &value : acc)
          value *= rescale;
        for (int64_t j = begin; j < end; ++j) {
          float weight = std::exp(scores[size_t(j - begin)] - newMax);
          sum += weight;
          for (int64_t d = 0; d < valueWidth; ++d)
            acc[size_t(d)] +=
                weight * float(x.v.values[rowOf(x.v, 0, j, h) + size_t(d)]);
        }
        max = newMax;
      }
      for (float value : acc)
        result.values.push_back(value / sum);
    }
  return result;
}

TEST_P(AttentionFaults, OnlineSoftmax) {
  x = randomOperands({1, 24, 43, 2, 2, 32, 16}, type);
  spec = {};
  spec.scale = 3 / std::sqrt(32.0);
  ref = attend(x, spec);
  auto run = [&](Fault fault) { return online(x, float(*spec.scale), fault); };
  EXPECT_TRUE(passes(run(Fault::None)));
  for (Fault fault : {Fault::MissingRescale, Fault::DroppedTile,
                      Fault::MissingTail, Fault::StaleDenominator})
    EXPECT_FALSE(passes(run(fault))) << int(fault);
  // Without the maximum, the result is correct until it overflows.
  EXPECT_TRUE(passes(run(Fault::MissingMax)));
  spec.scale = 40.0;
  ref = attend(x, spec);
  EXPECT_TRUE(compareWith(run(Fault::MissingMax)).mismatch);
}

static std::string nameOf(const ::testing::TestParamInfo<DType> &type) {
  const char *names[] = {"F64", "F32", "F16", "BF16"};
  return names[int(type.param)];
}

INSTANTIATE_TEST_SUITE_P(AllTypes, AttentionFaults,
                         ::testing::Values(DType::F32, DType::F16, DType::BF16),
                         nameOf);
