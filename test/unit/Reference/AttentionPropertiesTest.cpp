//===- AttentionPropertiesTest.cpp - algebraic properties of attention ----===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTestUtils.h"

#include <numeric>

using namespace posenc::reference;

static AttentionSpec rotating(int64_t dim = 8) {
  AttentionSpec spec;
  spec.causal = true;
  spec.queryRotation = spec.keyRotation = rotationOf(dim);
  return spec;
}

TEST(AttentionProperties, WeightsSumToOne) {
  Operands x = randomOperands({});
  std::fill(x.v.values.begin(), x.v.values.end(), 1.0L);
  AttentionResult result = attend(x, rotating());
  expectNear(result.output.values,
             std::vector<long double>(result.output.values.size(), 1));
}

TEST(AttentionProperties, OrderOfKeysDoesNotMatter) {
  Operands x = randomOperands({}), y = x;
  auto reversed = [](const Array &a) {
    return pickRows(a, {a.shape[0], a.shape[1], a.shape[2]},
                    [&](int64_t b, int64_t t, int64_t h) {
                      return rowOf(a, b, a.shape[1] - 1 - t, h);
                    });
  };
  y.k = reversed(x.k);
  y.v = reversed(x.v);
  expectSame(attend(x, AttentionSpec()), attend(y, AttentionSpec()));
  EXPECT_TRUE(differ(attend(x, rotating()), attend(y, rotating())));
}

TEST(AttentionProperties, CausalRowsDependOnTheirPrefixOnly) {
  Sizes sizes{1, 7, 7};
  Operands x = randomOperands(sizes);
  AttentionResult whole = attend(x, rotating());
  for (int64_t n = 1; n <= sizes.queries; ++n) {
    Operands prefix{tokensOf(x.q, 0, 0, n), tokensOf(x.k, 0, 0, n),
                    tokensOf(x.v, 0, 0, n)};
    AttentionResult some = attend(prefix, rotating());
    expectNear(some.output.values, {whole.output.values.begin(),
                                    whole.output.values.begin() +
                                        int64_t(some.output.values.size())});
    // Decoding the last token against all keys gives the last row.
    prefix.q = tokensOf(x.q, 0, n - 1, n);
    AttentionResult last = attend(prefix, rotating());
    expectNear(last.output.values,
               {some.output.values.end() - int64_t(last.output.values.size()),
                some.output.values.end()});
  }
}

TEST(AttentionProperties, ScoresDependOnRelativePositionsOnly) {
  Operands x = randomOperands({1, 5, 9});
  AttentionResult byDefault = attend(x, rotating());
  for (int64_t shift :
       {int64_t(0), int64_t(1), int64_t(2147483000), int64_t(-5000000000)}) {
    AttentionSpec spec = rotating();
    Positions &keys = spec.keyRotation->positions;
    keys.resize(9);
    std::iota(keys.begin(), keys.end(), shift);
    spec.queryRotation->positions.assign(keys.begin() + 4, keys.end());
    expectSame(attend(x, spec), byDefault);
    // Moving only the keys changes the result.
    if (shift) {
      spec.queryRotation->positions.clear();
      EXPECT_TRUE(differ(attend(x, spec), byDefault));
    }
  }
}

TEST(AttentionProperties, RotationInsideIsRotationBefore) {
  Operands x = randomOperands({});
  AttentionSpec spec = rotating(4);
  for (bool interleaved : {false, true})
    for (bool inverse : {false, true}) {
      std::vector<int64_t> positions(10), keyPositions(9);
      std::iota(positions.begin(), positions.end(), 100);
      std::iota(keyPositions.begin(), keyPositions.end(), 50);
      Rotation rotation = rotationOf(4);
      rotation.frequencies = scaledSpec(4);
      rotation.interleaved = interleaved;
      rotation.inverse = inverse;
      rotation.windowOffset = 3;
      spec.queryRotation = spec.keyRotation = rotation;
      spec.queryRotation->positions = positions;
      spec.keyRotation->positions = keyPositions;
      RotateOptions options = rotateAlong({0, 1}, interleaved);
      options.windowOffset = 3;
      options.inverse = inverse;
      Operands y = x;
      y.q = rope(x.q, scaledSpec(4), {}, positions, options);
      options.positionDims = {1};
      y.k = rope(x.k, scaledSpec(4), {}, keyPositions, options);
      AttentionSpec plain;
      plain.causal = true;
      expectSame(attend(x, spec), attend(y, plain));
    }
}

TEST(AttentionProperties, AxesRotateTheirOwnPairs) {
  Operands x = randomOperands({2, 4, 4});
  AxesSpec axes{AxesKind::Sections, {1, 3}};
  std::vector<int64_t> positions{3, 1, 4, 1, 5, 9, 2, 6,
                                 2, 7, 1, 8, 2, 8, 1, 8};
  AttentionSpec spec = rotating();
  for (Rotation *rotation : {&*spec.queryRotation, &*spec.keyRotation}) {
    rotation->axes = axes;
    rotation->positions = positions;
  }
  Operands y = x;
  y.q = rope(x.q, plainSpec(8), axes, positions, rotateAlong({0, 1}));
  y.k = rope(x.k, plainSpec(8), axes, positions, rotateAlong({0, 1}));
  AttentionSpec plain;
  plain.causal = true;
  expectSame(attend(x, spec), attend(y, plain));
}

TEST(AttentionProperties, NormInsideIsNormBefore) {
  Operands x = randomOperands({}), y = x;
  AttentionSpec spec = rotating(), plain = rotating();
  spec.queryNorm = RmsNorm{{1, 2, 3, 4, 5, 6, 7, 8}, 1e-6};
  spec.keyNorm = RmsNorm{{8, 7, 6, 5, 4, 3, 2, 1}, 1e-5};
  auto norm = [](Array &a, const RmsNorm &norm) {
    for (size_t row = 0; row < a.values.size(); row += 8) {
      long double squares = 0;
      for (size_t d = 0; d < 8; ++d)
        squares += a.values[row + d] * a.values[row + d] / 8;
      for (size_t d = 0; d < 8; ++d)
        a.values[row + d] *= norm.weight[d] / std::sqrt(squares + norm.epsilon);
    }
  };
  norm(y.q, *spec.queryNorm);
  norm(y.k, *spec.keyNorm);
  expectSame(attend(x, spec), attend(y, plain));
}

TEST(AttentionProperties, GroupedQueriesAreRepeatedHeads) {
  Sizes sizes;
  sizes.heads = 6;
  Operands x = randomOperands(sizes), y = x;
  auto repeated = [](const Array &a) {
    return pickRows(
        a, {a.shape[0], a.shape[1], 6},
        [&](int64_t b, int64_t t, int64_t h) { return rowOf(a, b, t, h / 3); });
  };
  y.k = repeated(x.k);
  y.v = repeated(x.v);
  expectSame(attend(x, rotating()), attend(y, rotating()));
}

TEST(AttentionProperties, LayoutsAgree) {
  Operands x = randomOperands({});
  AttentionSpec spec = rotating();
  AttentionResult expected = attend(x, spec);
  Operands y = x;
  y.k = transposed(x.k);
  y.v = transposed(x.v);
  spec.keyLayout = TokenLayout::HeadMajor;
  expectSame(attend(y, spec), expected);
  y.q = transposed(x.q);
  spec.queryLayout = TokenLayout::HeadMajor;
  AttentionResult result = attend(y, spec);
  EXPECT_EQ(result.output.shape, (std::vector<int64_t>{2, 4, 5, 6}));
  expectNear(transposed(result.output).values, expected.output.values);
  result.logSumExp.shape.push_back(1);
  expectNear(transposed(result.logSumExp).values, expected.logSumExp.values);
}

TEST(AttentionProperties, LengthsCutTheKeys) {
  Operands x = randomOperands({4, 2, 9});
  // Keys and values beyond a length are not read.
  const std::vector<int64_t> lengths{9, 5, 1, 0};
  for (int64_t b = 0; b < 4; ++b)
    for (int64_t t = lengths[size_t(b)]; t < 9; ++t)
      x.k.values[rowOf(x.k, b, t, 1)] = x.v.values[rowOf(x.v, b, t, 0)] = NAN;
  AttentionSpec spec = rotating();
  spec.keyLengths = lengths;
  AttentionResult result = attend(x, spec);
  const int64_t rowsOfOne = 2 * 4, size = rowsOfOne * 6;
  for (int64_t b = 0; b < 4; ++b) {
    int64_t length = lengths[size_t(b)];
    AttentionResult one =
        attend({tokensOf(x.q, b, 0, 2), tokensOf(x.k, b, 0, length),
                tokensOf(x.v, b, 0, length)},
               rotating());
    auto from = result.output.values.begin() + b * size;
    expectNear({from, from + size}, one.output.values);
    for (int64_t i = 0; i < rowsOfOne; ++i)
      EXPECT_EQ(result.largestValue[size_t(b * rowsOfOne + i)],
                one.largestValue[size_t(i)]);
  }
  EXPECT_EQ(result.output.values.back(), 0);
  EXPECT_EQ(result.output.magnitude.back(), -1);
}

namespace {
/// Three sequences with queries and keys; the second has no keys.
class Packed : public ::testing::Test {
protected:
  static constexpr int64_t sequences = 3, capacity = 8;
  const std::vector<int64_t> queryLengths{3, 1, 4}, keyLengths{5, 0, 7};
  Operands x = randomOperands({sequences, 4, capacity});

  static Array packed(const Array &a, const std::vector<int64_t> &lengths) {
    Array result;
    result.shape = {0, a.shape[2], a.shape[3]};
    for (int64_t b = 0; b < sequences; ++b) {
      Array part = tokensOf(a, b, 0, lengths[size_t(b)]);
      result.shape[0] += part.shape[1];
      result.values.insert(result.values.end(), part.values.begin(),
                           part.values.end());
    }
    return result;
  }
  static std::vector<int64_t> startsOf(const std::vector<int64_t> &lengths) {
    std::vector<int64_t> starts{0};
    for (int64_t length : lengths)
      starts.push_back(starts.back() + length);
    return starts;
  }
  /// Returns the concatenated outputs of a separate attention per sequence.
  std::vector<long double> separately(const AttentionSpec &spec) const {
    std::vector<long double> result;
    for (int64_t b = 0; b < sequences; ++b) {
      int64_t keys = keyLengths[size_t(b)];
      AttentionResult one =
          attend({tokensOf(x.q, b, 0, queryLengths[size_t(b)]),
                  tokensOf(x.k, b, 0, keys), tokensOf(x.v, b, 0, keys)},
                 spec);
      result.insert(result.end(), one.output.values.begin(),
                    one.output.values.end());
    }
    return result;
  }
};
} // namespace

TEST_F(Packed, RaggedSequencesAreIndependent) {
  AttentionSpec spec = rotating();
  spec.left = 4;
  std::vector<long double> expected = separately(spec);
  spec.queryStarts = startsOf(queryLengths);
  spec.keyStarts = startsOf(keyLengths);
  Operands y{packed(x.q, queryLengths), packed(x.k, keyLengths),
             packed(x.v, keyLengths)};
  AttentionResult result = attend(y, spec);
  EXPECT_EQ(result.output.shape, (std::vector<int64_t>{8, 4, 6}));
  expectNear(result.output.values, expected);

  // Explicit positions of packed rows that equal the default ones.
  spec.queryRotation->positions = {2, 3, 4, -1, 3, 4, 5, 6};
  spec.keyRotation->positions = {0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6};
  expectNear(attend(y, spec).output.values, expected);

  // Head-major: heads first, then all rows.
  auto headsFirst = [](const Array &a) {
    Array wide = a;
    wide.shape.insert(wide.shape.begin(), 1);
    wide = transposed(wide);
    wide.shape.erase(wide.shape.begin());
    return wide;
  };
  spec.queryLayout = spec.keyLayout = TokenLayout::HeadMajor;
  Operands z{headsFirst(y.q), headsFirst(y.k), headsFirst(y.v)};
  Array output = attend(z, spec).output;
  EXPECT_EQ(output.shape, (std::vector<int64_t>{4, 8, 6}));
  expectNear(headsFirst(output).values, expected);
}

TEST_F(Packed, RowsOutsideOfSequencesAreZero) {
  AttentionSpec spec;
  spec.queryStarts = {0, 1};
  spec.keyStarts = {0, 2};
  AttentionResult result =
      attend({packed(x.q, queryLengths), packed(x.k, keyLengths),
              packed(x.v, keyLengths)},
             spec);
  EXPECT_NE(result.output.values[0], 0);
  for (size_t i = 4 * 6; i < result.output.values.size(); ++i)
    EXPECT_EQ(result.output.values[i], 0);
  for (size_t i = 4; i < result.logSumExp.values.size(); ++i)
    EXPECT_EQ(result.logSumExp.values[i], -INFINITY);
  // As for other queries without keys, the denominator is the sink alone.
  spec.sinks = {1, 2, 3, 4};
  result = attend({packed(x.q, queryLengths), packed(x.k, keyLengths),
                   packed(x.v, keyLengths)},
                  spec);
  for (size_t i = 4; i < result.logSumExp.values.size(); ++i)
    EXPECT_EQ(result.logSumExp.values[i], spec.sinks[i % 4]);
}

TEST_F(Packed, PagedIsContiguous) {
  AttentionSpec spec = rotating();
  std::vector<long double> expected = separately(spec);
  // Pages of three tokens in arbitrary order; pages 2 and 6 are unused.
  constexpr int64_t pageSize = 3, blocks = 3, pages = 8;
  spec.blockTable = BlockTable{{5, 0, -1, -1, -1, 99, 7, 3, 1}, blocks};
  spec.keyLengths = keyLengths;
  auto paged = [&](const Array &a) {
    Array result{{pages, pageSize, a.shape[2], a.shape[3]}, {}, {}};
    result.values.assign(size_t(numElements(result.shape)), NAN);
    for (int64_t b = 0; b < sequences; ++b)
      for (int64_t t = 0; t < keyLengths[size_t(b)]; ++t) {
        int64_t page =
            spec.blockTable->pages[size_t(b * blocks + t / pageSize)];
        std::copy_n(&a.values[rowOf(a, b, t, 0)], a.shape[2] * a.shape[3],
                    &result.values[rowOf(result, page, t % pageSize, 0)]);
      }
    return result;
  };
  spec.queryStarts = startsOf(queryLengths);
  Operands y{packed(x.q, queryLengths), paged(x.k), paged(x.v)};
  expectNear(attend(y, spec).output.values, expected);
  spec.keyLayout = TokenLayout::HeadMajor;
  y.k = transposed(y.k);
  y.v = transposed(y.v);
  expectNear(attend(y, spec).output.values, expected);
  // Pages also work with padded queries.
  spec.queryStarts.clear();
  y.q = tokensOf(x.q, 0, 0, 3);
  spec.blockTable->pages.resize(size_t(blocks));
  spec.keyLengths.resize(1);
  expectNear(attend(y, spec).output.values,
             {expected.begin(), expected.begin() + 3 * 4 * 6});
}

TEST(AttentionProperties, WindowIsAMask) {
  Operands x = randomOperands({});
  AttentionSpec window, function, table, additive;
  window.causal = true;
  window.left = 2;
  function.sees = [](int64_t, int64_t, int64_t i, int64_t j) {
    return j <= i && j >= i - 2;
  };
  // Query 0 of 5 has position 4 of 9.
  Array mask{{5, 9}, {}, {}};
  for (int64_t i = 4; i < 9; ++i)
    for (int64_t j = 0; j < 9; ++j)
      mask.values.push_back(j <= i && j >= i - 2);
  table.mask = AttentionMask{mask, true};
  for (long double &value : mask.values)
    value = value != 0 ? 0 : -INFINITY;
  additive.mask = AttentionMask{mask, false};
  AttentionResult expected = attend(x, window);
  expectSame(attend(x, function), expected);
  expectSame(attend(x, table), expected);
  expectSame(attend(x, additive), expected);
}

TEST(AttentionProperties, MasksAreBroadcast) {
  Operands x = randomOperands({});
  for (std::vector<int64_t> shape :
       std::vector<std::vector<int64_t>>{{},
                                         {9},
                                         {5, 1},
                                         {5, 9},
                                         {4, 1, 9},
                                         {4, 5, 9},
                                         {2, 1, 1, 9},
                                         {1, 4, 5, 1},
                                         {2, 4, 5, 9}}) {
    Array mask = randomArray(shape, DType::F32, 5);
    AttentionSpec operand, function;
    operand.mask = AttentionMask{mask, false};
    function.score = [&](double s, int64_t b, int64_t h, int64_t i, int64_t j) {
      const int64_t index[] = {b, h, i - 4, j};
      int64_t flat = 0;
      for (size_t d = 0; d < shape.size(); ++d)
        flat =
            flat * shape[d] + (shape[d] == 1 ? 0 : index[4 - shape.size() + d]);
      return s + double(mask.values[size_t(flat)]);
    };
    AttentionResult expected = attend(x, function);
    expectSame(attend(x, operand), expected);
    if (!shape.empty())
      EXPECT_TRUE(shape == std::vector<int64_t>({5, 1}) ||
                  shape == std::vector<int64_t>({1, 4, 5, 1}) ||
                  differ(expected, attend(x, AttentionSpec())));
  }
}

TEST(AttentionProperties, AdditiveMasksFollowTheScoreFunction) {
  Operands x = randomOperands({});
  AttentionSpec spec, expected;
  spec.mask = AttentionMask{randomArray({5, 9}, DType::F32, 5), false};
  spec.score = [](double s, int64_t, int64_t, int64_t, int64_t) {
    return std::tanh(s);
  };
  expected.score = [&](double s, int64_t, int64_t, int64_t i, int64_t j) {
    return std::tanh(s) +
           double(spec.mask->array.values[size_t((i - 4) * 9 + j)]);
  };
  expectSame(attend(x, spec), attend(x, expected));
}

TEST(AttentionProperties, SinkIsAKeyOfValueZero) {
  Sizes sizes{1, 5, 9, 1, 1};
  Operands x = randomOperands(sizes), y = x;
  AttentionSpec sink, key;
  sink.sinks = {0.75};
  y.k.shape[1] = y.v.shape[1] = 10;
  y.k.values.resize(10 * 8, 0);
  y.v.values.resize(10 * 6, 0);
  key.score = [](double s, int64_t, int64_t, int64_t, int64_t j) {
    return j == 9 ? 0.75 : s;
  };
  expectSame(attend(x, sink), attend(y, key));
}

TEST(AttentionProperties, LargeSoftCapHasNoEffect) {
  Operands x = randomOperands({});
  AttentionSpec capped;
  double cap = 1e9;
  capped.score = [&](double s, int64_t, int64_t, int64_t, int64_t) {
    return cap * std::tanh(s / cap);
  };
  expectSame(attend(x, capped), attend(x, AttentionSpec()));
  // A tiny soft cap makes all weights equal.
  cap = 1e-20;
  Array mean = attend(x, capped).output;
  AttentionSpec flat;
  flat.scale = 0.0;
  expectNear(mean.values, attend(x, flat).output.values);
}

TEST(AttentionProperties, ScoreFunctionsGetTheirIndices) {
  // Each score selects one value by its indices.
  Operands x = randomOperands({});
  AttentionSpec spec;
  spec.score = [](double, int64_t b, int64_t h, int64_t i, int64_t j) {
    return j == (b + h + i) % 9 ? 1e3 : 0.0;
  };
  Array output = attend(x, spec).output;
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t i = 0; i < 5; ++i)
      for (int64_t h = 0; h < 4; ++h)
        for (size_t d = 0; d < 6; ++d)
          EXPECT_EQ(output.values[rowOf(output, b, i, h) + d],
                    x.v.values[rowOf(x.v, b, (b + h + i + 4) % 9, h / 2) + d]);
}
