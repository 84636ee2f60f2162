//===- FaultsTest.cpp - detection of faults in rotations ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Each test injects a fault into a correctly rounded result, for every type.
// The comparison must reject it at the default limit, and must accept the
// result without the fault.

#include "TestUtils.h"

#include <functional>

using namespace posenc::reference;

namespace {

/// A rotation of 4 heads with copied channels on both sides.
class Faults : public ::testing::TestWithParam<DType> {
protected:
  static constexpr int64_t tokens = 6, heads = 4, width = 40, dim = 32;
  static constexpr int64_t offset = 4;

  Faults() : type(GetParam()) {
    x = randomArray({tokens, heads, width}, type);
    for (int64_t i = 0; i < tokens; ++i)
      positions.push_back(100 + i);
    options = rotateAlong({0});
    options.windowOffset = offset;
    spec = scaledSpec(dim);
    ref = rope(x, spec, {}, positions, options);
    limit = defaultLimitUlp(ResultKind::Rotated, type, true);
  }

  static size_t at(int64_t token, int64_t head, int64_t channel) {
    return size_t((token * heads + head) * width + channel);
  }

  Comparison compareWith(const Array &faulty) const {
    return compare(type, toBytes(type, faulty).data(), ref);
  }
  void expectCaught(const Array &faulty) const {
    EXPECT_TRUE(compareWith(ref).within(limit)) << "the control";
    EXPECT_FALSE(compareWith(faulty).within(limit)) << "the fault";
  }
  /// Applies a change to the reference.
  void expectCaught(const std::function<void(Array &)> &fault) const {
    Array faulty = ref;
    fault(faulty);
    expectCaught(faulty);
  }

  DType type;
  Array x, ref;
  std::vector<int64_t> positions;
  RotateOptions options;
  FrequencySpec spec;
  long double limit;
};

} // namespace

TEST_P(Faults, Control) {
  Comparison control = compareWith(ref);
  EXPECT_FALSE(control.mismatch);
  EXPECT_LE(control.maxUlp, 0.5L);
  EXPECT_GT(control.maxUlp, 0.1L);
}

TEST_P(Faults, SwappedLanes) {
  expectCaught([](Array &a) {
    std::swap(a.values[at(3, 1, offset)], a.values[at(3, 1, offset + 1)]);
  });
}

TEST_P(Faults, PositionOffByOne) {
  // Only one token is wrong, and its lowest frequency hardly changes.
  std::vector<int64_t> wrong = positions;
  ++wrong[5];
  expectCaught(rope(x, spec, {}, wrong, options));
}

TEST_P(Faults, SignOfTheSine) {
  RotateOptions backwards = options;
  backwards.inverse = true;
  CosSinTable table = sincos(spec, {}, positions, {tokens});
  expectCaught(rotate(x, table.cos, table.sin, backwards));
}

TEST_P(Faults, WrongAttentionFactor) {
  FrequencySpec wrong = spec;
  wrong.attentionFactor = Real(1.0);
  expectCaught(rope(x, wrong, {}, positions, options));
  // An inverse rotation with the right direction, but with att instead of
  // 1/att.
  RotateOptions inverse = options;
  inverse.inverse = true;
  Array undone = rope(x, spec, {}, positions, inverse);
  CosSinTable table = sincos(spec, {}, positions, {tokens});
  Array faulty = rotate(x, table.cos, table.sin, inverse);
  EXPECT_FALSE(
      compare(type, toBytes(type, faulty).data(), undone).within(limit));
}

TEST_P(Faults, LaneOfAnotherHead) {
  expectCaught([](Array &a) {
    a.values[at(2, 3, offset + 9)] = a.values[at(2, 2, offset + 9)];
  });
}

TEST_P(Faults, WrongPairing) {
  RotateOptions wrong = options;
  wrong.interleaved = true;
  expectCaught(rope(x, spec, {}, positions, wrong));
}

TEST_P(Faults, WrongWindow) {
  RotateOptions wrong = options;
  wrong.windowOffset = offset + 1;
  expectCaught(rope(x, spec, {}, positions, wrong));
}

TEST_P(Faults, OneUlpTooMany) {
  // Chooses the larger lane of a pair, whose unit is that of the magnitude. Its
  // rounding error is at most half a unit.
  size_t lane = at(0, 0, offset);
  for (int64_t i = 0; i < dim; ++i)
    if (std::fabs(ref.values[at(0, 0, offset + i)]) >
        0.9L * ref.magnitude[at(0, 0, offset + i)])
      lane = at(0, 0, offset + i);
  long double unit = ulp(type, ref.magnitude[lane]);
  long double wrongBy = std::floor(limit) + 1;
  long double rounded = roundTo(type, ref.values[lane]);
  long double direction = rounded >= ref.values[lane] ? 1 : -1;
  expectCaught(
      [&](Array &a) { a.values[lane] = rounded + direction * wrongBy * unit; });
}

TEST_P(Faults, NaNInsteadOfANumber) {
  expectCaught([](Array &a) { a.values[at(1, 1, offset + 3)] = NAN; });
  expectCaught([](Array &a) { a.values[at(1, 1, offset + 3)] = INFINITY; });
}

TEST_P(Faults, NumberInsteadOfANaN) {
  x.values[at(1, 1, offset + 3)] = NAN;
  Array before = ref;
  ref = rope(x, spec, {}, positions, options);
  expectCaught(before);
}

TEST_P(Faults, ChangedCopiedChannel) {
  for (int64_t channel : {int64_t(0), offset - 1, offset + dim, width - 1}) {
    size_t lane = at(4, 2, channel);
    expectCaught([&](Array &a) {
      a.values[lane] += ulp(type, std::fabs(a.values[lane]));
    });
    expectCaught([&](Array &a) { a.values[lane] = -a.values[lane]; });
    // The channel is scaled like a rotated one.
    expectCaught([&](Array &a) { a.values[lane] *= 1.13862943611L; });
  }
}

TEST_P(Faults, RoundedTooCoarsely) {
  // The result was rounded to bf16 first.
  if (type == DType::BF16)
    return;
  expectCaught([](Array &a) {
    for (size_t i = 0; i < a.values.size(); ++i)
      if (a.magnitude[i] >= 0)
        a.values[i] = roundTo(DType::BF16, a.values[i]);
  });
}

static std::string nameOf(const ::testing::TestParamInfo<DType> &type) {
  const char *names[] = {"F64", "F32", "F16", "BF16"};
  return names[int(type.param)];
}

INSTANTIATE_TEST_SUITE_P(AllTypes, Faults,
                         ::testing::Values(DType::F64, DType::F32, DType::F16,
                                           DType::BF16),
                         nameOf);

TEST(TableFaults, NearAZeroOfTheSine) {
  // The position below 2^31 nearest to a zero for f = 1. An angle with an error
  // of 2^-53 is wrong by many units there, which an f32 table must show.
  CosSinTable table = sincos(plainSpec(2), {}, {411557987}, {1});
  CompareOptions options;
  options.absoluteSlack = 0x1p-61L;
  long double limit = defaultLimitUlp(ResultKind::Table, DType::F32, false);
  auto measured = [&](const Array &got) {
    return compare(DType::F32, toBytes(DType::F32, got).data(), table.sin,
                   options);
  };
  EXPECT_TRUE(measured(table.sin).within(limit));
  Array faulty = table.sin;
  faulty.values[0] += 0x1p-50L;
  EXPECT_FALSE(measured(faulty).within(limit));
  faulty = table.sin;
  faulty.values[0] += 1.6L * ulp(DType::F32, faulty.values[0]);
  EXPECT_FALSE(measured(faulty).within(limit));
}
