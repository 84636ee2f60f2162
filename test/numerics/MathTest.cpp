//===- MathTest.cpp - functions without a libm ------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include <cmath>
#include <limits>
#include <random>

using namespace posenc;
using namespace posenc::test;

namespace {

struct Function {
  const char *name;
  long double (*real)(long double);
  double least, most; // Of the arguments, or of their exponents for log.
};

long double exp2Of(long double x) { return std::exp2(x); }

const Function kFunctions[] = {{"exp", expl, -800, 800},
                               {"exp2", exp2Of, -1100, 1100},
                               {"log", logl, -1080, 1020},
                               {"log2", log2l, -1080, 1020},
                               {"tanh", tanhl, -25, 25}};

class MathTest
    : public testing::TestWithParam<std::tuple<Function, posenc_dtype>> {};

TEST_P(MathTest, IsNearTheReal) {
  auto [function, dtype] = GetParam();
  std::string name = function.name, element = posenc_dtype_name(dtype);
  std::string type = "tensor<?x" + element + ">";
  Kernel kernel("func.func @f(%x: " + type + ") -> " + type +
                " {\n  %r = math." + name + " %x : " + type +
                "\n  return %r : " + type + "\n}\n");
  bool wide = dtype == POSENC_F64, isLog = name.substr(0, 3) == "log";
  double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> arguments{
      0,        -0.0,      1,      -1,
      infinity, -infinity, 0.625,  -0.625,
      1e-30,    88.7,      -103.9, std::numeric_limits<double>::quiet_NaN(),
      5e-324,   1e-45};
  std::mt19937_64 generator(3);
  double shrink = wide ? 1 : 0.12;
  std::uniform_real_distribution<double> spread(function.least * shrink,
                                                function.most * shrink);
  std::uniform_real_distribution<double> small(-1, 1);
  for (int i = 0; i < 20000; ++i) {
    double x = i % 2 ? spread(generator) : small(generator);
    arguments.push_back(isLog ? std::exp2(x) : x);
  }
  int64_t count = arguments.size();
  runtime::Array x = makeRandom(dtype, {count}, 1);
  reference::DType oracleType = getReferenceType(dtype);
  for (int64_t i = 0; i < count; ++i)
    reference::storeBits(oracleType, x.data(), i,
                         reference::encode(oracleType, arguments[i]));
  std::vector<runtime::Array> results = kernel.call("f", {x.value()});
  ASSERT_EQ(results.size(), 1u);
  reference::Array expected = toReference(x);
  for (long double &value : expected.values)
    value = function.real(value);
  reference::Comparison comparison =
      reference::compare(oracleType, results[0].data(), expected);
  EXPECT_TRUE(comparison.within(4))
      << comparison.reason << " " << static_cast<double>(comparison.maxUlp)
      << " at "
      << (comparison.index.empty()
              ? 0
              : static_cast<double>(
                    toReference(x).values[comparison.index[0]]));
}

INSTANTIATE_TEST_SUITE_P(Functions, MathTest,
                         testing::Combine(testing::ValuesIn(kFunctions),
                                          testing::Values(POSENC_F32,
                                                          POSENC_F64)),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param).name) +
                                  posenc_dtype_name(std::get<1>(info.param));
                         });

} // namespace
