//===- TableErrorsTest.cpp - the reference of exhaustive tests ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `make test-exhaustive` compares tables with TableErrors. Here it agrees with
// MPFR, and finds an element that is wrong by two units in the last place.
//
//===----------------------------------------------------------------------===//

#include "TableErrors.h"
#include "Harness.h"

#include <cmath>

using namespace posenc;
using namespace posenc::test;

namespace {

const char *const kFrequencies[] = {
    "dim = 64, base = 10000",
    "dim = 16, base = 1.5",
    ("dim = 64, base = 10000, scaling = #posenc.yarn<factor = 40, "
     "original_max_position = 4096>"),
    "dim = 64, base = 10000, precision = hf_f32",
};

class TableErrorsTest : public testing::TestWithParam<const char *> {};

TEST_P(TableErrorsTest, AgreesWithMpfr) {
  TableErrors errors(getFrequencies(GetParam()));
  std::vector<int64_t> positions = {0, 1, 2, 355, 103993, (1 << 20) - 1};
  for (int64_t i = 0; i < 100; ++i)
    positions.push_back(i * i * 97 % (1 << 20));
  EXPECT_LT(errors.compareWithMpfr(positions), 1e-6);
}

TEST_P(TableErrorsTest, FindsAWrongElement) {
  constexpr int64_t kFirst = (1 << 20) - 256, kRows = 256;
  TableErrors errors(getFrequencies(GetParam()));
  std::string pairs = std::to_string(errors.numPairs());
  std::string type = "tensor<?x" + pairs + "xf32>";
  std::string module =
      "func.func @f(%p: tensor<?xi64>) -> (" + type + ", " + type +
      ") {\n  %c0 = arith.constant 0 : index\n  %n = tensor.dim %p, %c0 : "
      "tensor<?xi64>\n  %e = tensor.empty(%n) : " +
      type + "\n  %r:2 = posenc.sincos #posenc.frequencies<" + GetParam() +
      "> positions(%p : tensor<?xi64>) outs(%e, %e : " + type + ", " + type +
      ")\n  return %r#0, %r#1 : " + type + ", " + type + "\n}\n";
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < kRows; ++i)
    positions.push_back(kFirst + i);
  runtime::Array p = makePositions(POSENC_I64, {kRows}, positions);
  std::vector<runtime::Array> results = Kernel(module).call("f", {p.value()});
  ASSERT_EQ(results.size(), 2u);
  auto *cos = static_cast<float *>(results[0].data());
  auto *sin = static_cast<float *>(results[1].data());
  TableError right = errors.findLargest(kFirst, kRows, cos, sin);
  EXPECT_GT(right.ulp, 0);
  // With an attention factor there are two roundings.
  EXPECT_LE(right.ulp, 1.25);
  float &element =
      (right.isSine
           ? sin
           : cos)[(right.position - kFirst) * errors.numPairs() + right.pair];
  EXPECT_NEAR(errors.measureByMpfr(right, element), right.ulp, 1e-6);
  for (float *wrong : {&cos[7 * errors.numPairs() + 1],
                       &sin[(kRows - 1) * errors.numPairs() + 2]}) {
    float original = *wrong;
    *wrong = std::nextafter(std::nextafter(original, 2.0f), 2.0f);
    TableError found = errors.findLargest(kFirst, kRows, cos, sin);
    int64_t index = wrong - (found.isSine ? sin : cos);
    EXPECT_GE(found.ulp, 1.4);
    EXPECT_EQ(index,
              (found.position - kFirst) * errors.numPairs() + found.pair);
    *wrong = NAN;
    EXPECT_EQ(errors.findLargest(kFirst, kRows, cos, sin).ulp, HUGE_VAL);
    *wrong = original;
  }
}

INSTANTIATE_TEST_SUITE_P(Frequencies, TableErrorsTest,
                         testing::ValuesIn(kFrequencies), [](const auto &info) {
                           return "Case" + std::to_string(info.index);
                         });

} // namespace
