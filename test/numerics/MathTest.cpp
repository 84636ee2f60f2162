//===- MathTest.cpp - math functions without libm -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Faults.h"
#include "MathFunctions.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>

using namespace posenc;
using namespace posenc::test;

namespace {

/// Returns the functions of a type, which are compiled once.
const Kernel &getKernel(posenc_dtype dtype) {
  static std::map<posenc_dtype, Kernel> kernels;
  auto it = kernels.find(dtype);
  if (it == kernels.end())
    it = kernels.try_emplace(dtype, makeMathModule(dtype)).first;
  return it->second;
}

runtime::Array call(const Kernel &kernel, const MathFunction &function,
                    const runtime::Array &x, const runtime::Array &y) {
  std::vector<posenc_value> inputs{x.value()};
  if (function.arity == 2)
    inputs.push_back(y.value());
  std::vector<runtime::Array> results = kernel.call(function.name, inputs);
  EXPECT_EQ(results.size(), 1u);
  return results.empty() ? makeRandom(POSENC_F32, {0}, 1)
                         : std::move(results.front());
}

const MathFunction &findFunction(const std::string &name) {
  for (const MathFunction &function : getMathFunctions())
    if (function.name == name)
      return function;
  ADD_FAILURE() << "no function " << name;
  return getMathFunctions().front();
}

/// Arguments of a function of f32 or f64, whose results are compared with
/// MPFR's. `y` is empty for functions of one argument.
struct MathCase {
  posenc_dtype dtype;
  std::vector<double> x, y;

  reference::Comparison compare(const MathFunction &function,
                                const runtime::Array &result) const {
    reference::Array expected;
    expected.shape = {static_cast<int64_t>(x.size())};
    for (size_t i = 0; i < x.size(); ++i)
      expected.values.push_back(evaluate(function, x[i], y.empty() ? 0 : y[i]));
    return reference::compare(getReferenceType(dtype), result.data(), expected);
  }
};

MathCase makeUnaryCase(posenc_dtype dtype) {
  return {dtype, makeHardArguments(dtype == POSENC_F32), {}};
}

/// Returns pairs of special numbers, pairs of a number near 1 and a large
/// exponent, and random pairs.
MathCase makeBinaryCase(posenc_dtype dtype) {
  bool isF32 = dtype == POSENC_F32;
  double infinity = std::numeric_limits<double>::infinity();
  double minNumber = isF32 ? 0x1p-149 : 0x1p-1074;
  double maxNumber = isF32 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
  std::vector<double> special = {
      0,      minNumber, maxNumber, infinity, std::nan(""), 1,      2,
      3,      0.5,       1.5,       -0.75,    1.0 / 3,      0x1p31, 0x1p53,
      0x1p54, 0x1p-7,    1e-30,     1e30,     127,          1023,   0x1p24 + 2,
      5,      7,         0.9999,    1.0001,   10,           1e5,    M_PI};
  MathCase result{dtype, {}, {}};
  auto add = [&](double x, double y) {
    result.x.push_back(isF32 ? double(float(x)) : x);
    result.y.push_back(isF32 ? double(float(y)) : y);
  };
  for (double x : special)
    for (double y : special)
      for (int signs = 0; signs < 4; ++signs)
        add(signs & 1 ? -x : x, signs & 2 ? -y : y);
  std::mt19937_64 random(17);
  auto draw = [&](double lo, double hi) {
    return std::uniform_real_distribution<double>(lo, hi)(random);
  };
  double range = isF32 ? 140 : 1050;
  for (int i = 0; i < 8000; ++i) {
    double exponent = draw(-range, range);
    add(std::exp2(exponent), draw(-1.1, 1.1) * range / exponent);
    double nearOne = draw(-1, 1) * std::exp2(draw(isF32 ? -20 : -45, -1));
    add(1 + nearOne, range / nearOne * draw(-0.8, 0.8));
    add(draw(-3, 3), draw(-3, 3));
    add(draw(-20, 20), std::floor(draw(-30, 30)));
    add(std::exp2(draw(-range, range)), -std::exp2(draw(-range, range)));
  }
  return result;
}

std::string describe(const MathCase &numbers,
                     const reference::Comparison &comparison) {
  std::ostringstream os;
  os << comparison.reason << " " << static_cast<double>(comparison.maxUlp)
     << " ulp";
  if (!comparison.index.empty()) {
    size_t at = static_cast<size_t>(comparison.index[0]);
    os << " at " << std::hexfloat << numbers.x[at];
    if (!numbers.y.empty())
      os << ", " << numbers.y[at];
  }
  return os.str();
}

using Parameter = std::tuple<MathFunction, posenc_dtype>;

class Math : public testing::TestWithParam<Parameter> {};

std::string getCaseName(const testing::TestParamInfo<Parameter> &info) {
  return std::string(std::get<0>(info.param).name) + "_" +
         posenc_dtype_name(std::get<1>(info.param));
}

TEST_P(Math, IsWithin4Ulp) {
  auto [function, dtype] = GetParam();
  MathCase numbers =
      function.arity == 2 ? makeBinaryCase(dtype) : makeUnaryCase(dtype);
  runtime::Array x = toArray(dtype, numbers.x), y = toArray(dtype, numbers.y);
  runtime::Array result = call(getKernel(dtype), function, x, y);
  reference::Comparison comparison = numbers.compare(function, result);
  EXPECT_TRUE(comparison.within(4)) << describe(numbers, comparison);
  RecordProperty("ulp", std::to_string(comparison.maxUlp));
  // The error in ulp does not see the sign of a zero.
  reference::DType type = getReferenceType(dtype);
  for (size_t i = 0; i < numbers.x.size(); ++i) {
    long double value = reference::decode(
        type, reference::loadBits(type, result.data(), int64_t(i)));
    if (value != 0)
      continue;
    double yi = numbers.y.empty() ? 0 : numbers.y[i];
    EXPECT_EQ(std::signbit(value),
              std::signbit(evaluate(function, numbers.x[i], yi)))
        << "the zero at " << numbers.x[i] << ", " << yi;
  }
}

// Vector loops and their scalar or masked remainders, for arrays of any length.
TEST_P(Math, HasTheSameBitsAtAnyLength) {
  auto [function, dtype] = GetParam();
  MathCase numbers =
      function.arity == 2 ? makeBinaryCase(dtype) : makeUnaryCase(dtype);
  runtime::Array whole =
      call(getKernel(dtype), function, toArray(dtype, numbers.x),
           toArray(dtype, numbers.y));
  size_t width = dtype == POSENC_F32 ? 4 : 8;
  std::vector<uint8_t> bytes(whole.sizeInBytes());
  size_t begin = 0;
  for (size_t size = 1; begin + size < 2000; size = size % 67 + 1) {
    auto slice = [&](const std::vector<double> &values) {
      if (values.empty())
        return values;
      return std::vector<double>(values.begin() + begin,
                                 values.begin() + begin + size);
    };
    runtime::Array part =
        call(getKernel(dtype), function, toArray(dtype, slice(numbers.x)),
             toArray(dtype, slice(numbers.y)));
    ASSERT_EQ(std::memcmp(part.data(),
                          static_cast<char *>(whole.data()) + begin * width,
                          size * width),
              0)
        << "from " << begin << " on, " << size;
    begin += size;
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, Math,
                         testing::Combine(testing::ValuesIn(getMathFunctions()),
                                          testing::Values(POSENC_F32,
                                                          POSENC_F64)),
                         getCaseName);

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

/// Is a fault in the LLVM dialect of a function.
struct MathFault {
  const char *function;
  posenc_dtype dtype;
  Fault fault;
};
void PrintTo(const MathFault &fault, std::ostream *os) {
  *os << fault.function << " " << fault.fault.name;
}

class MathFaultTest : public testing::TestWithParam<MathFault> {};

TEST_P(MathFaultTest, IsCaught) {
  const auto &[name, dtype, fault] = GetParam();
  const MathFunction &function = findFunction(name);
  std::string type = std::string("tensor<?x") + posenc_dtype_name(dtype) + ">";
  bool isBinary = function.arity == 2;
  LoweredModule module("func.func @" + std::string(function.name) +
                           "(%x: " + type + (isBinary ? ", %y: " + type : "") +
                           ") -> " + type + " {\n  %r = math." + function.name +
                           " %x" + (isBinary ? ", %y" : "") + " : " + type +
                           "\n  return %r : " + type + "\n}\n",
                       mlir::posenc::Stage::Llvm);
  Kernel kernel = compileWithFault(module, fault);
  MathCase numbers = isBinary ? makeBinaryCase(dtype) : makeUnaryCase(dtype);
  runtime::Array result = call(kernel, function, toArray(dtype, numbers.x),
                               toArray(dtype, numbers.y));
  EXPECT_EQ(numbers.compare(function, result).within(4), fault.isControl());
}

const MathFault kMathFaults[] = {
    {"sin", POSENC_F32, control()},
    // This is the last of 53 bits of 1/pi.
    {"sin",
     POSENC_F32,
     {"OneByPi", constant(0.31830988618379069),
      setConstant(0.31830988618379063)}},
    // Large arguments need this part of 1/pi.
    {"cos",
     POSENC_F32,
     {"OneByPiOfLargeArguments", constant(5.7943566767140717E-44),
      setConstant(5.0E-44)}},
    // This is the last bit of a word of 2/pi.
    {"sin",
     POSENC_F64,
     {"TwoByPi", constant(-121206125134887583),
      setConstant(-121206125134887584)}},
    {"log",
     POSENC_F64,
     {"Ln2", constant(-2.1219444005469057E-4), setConstant(-2.12194440054E-4)}},
    {"log",
     POSENC_F32,
     {"NaN", constant(std::numeric_limits<double>::quiet_NaN()),
      setConstant(std::numeric_limits<double>::infinity())}},
    {"powf",
     POSENC_F64,
     {"TwoThirds", constant(0.66666666666666663),
      setConstant(0.66666666666666652)}},
    {"atan2",
     POSENC_F64,
     {"Pi", constant(3.1415926535897931), setConstant(3.14159265358979)}},
    {"tanh", POSENC_F32, {"Limit", constant(9.02), setConstant(6.5)}},
};
INSTANTIATE_TEST_SUITE_P(Math, MathFaultTest, testing::ValuesIn(kMathFaults),
                         [](const auto &info) {
                           return std::string(info.param.function) + "_" +
                                  info.param.fault.name;
                         });

//===----------------------------------------------------------------------===//
// 16-bit types
//===----------------------------------------------------------------------===//

class MathNarrow : public testing::TestWithParam<Parameter> {};

// Results of f16 and bf16 are those of f32, rounded to nearest, ties to even.
// AVX512-BF16 flushes subnormal bf16 results to zero, which is accepted.
TEST_P(MathNarrow, IsF32Rounded) {
  auto [function, dtype] = GetParam();
  reference::DType type = getReferenceType(dtype);
  std::vector<double> x, y;
  for (uint64_t bits = 0; bits < 0x10000; ++bits) {
    x.push_back(reference::decode(type, bits));
    if (function.arity == 2)
      y.push_back(reference::decode(type, bits * 40503 % 0x10000));
  }
  runtime::Array narrow =
      call(getKernel(dtype), function, toArray(dtype, x), toArray(dtype, y));
  runtime::Array wide = call(getKernel(POSENC_F32), function,
                             toArray(POSENC_F32, x), toArray(POSENC_F32, y));
  const auto *values = static_cast<const float *>(wide.data());
  for (int64_t i = 0; i < 0x10000; ++i) {
    uint64_t bits = reference::loadBits(type, narrow.data(), i);
    if (std::isnan(values[i]))
      ASSERT_TRUE(std::isnan(reference::decode(type, bits))) << x[i];
    else if (dtype != POSENC_BF16 || bits & 0x7fff ||
             std::fabs(values[i]) >= 0x1p-126f)
      ASSERT_EQ(bits, reference::encode(type, values[i])) << x[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, MathNarrow,
                         testing::Combine(testing::ValuesIn(getMathFunctions()),
                                          testing::Values(POSENC_F16,
                                                          POSENC_BF16)),
                         getCaseName);

//===----------------------------------------------------------------------===//
// Powers of integers
//===----------------------------------------------------------------------===//

class MathPowers : public testing::TestWithParam<posenc_dtype> {};

/// Constant exponents: small ones are computed by products, others by
/// logarithms.
constexpr int64_t kExponents[] = {-70, -64, -7, -3, -2, -1, 0,  1,
                                  2,   3,   4,  5,  8,  33, 64, 101};

TEST_P(MathPowers, AreWithin4Ulp) {
  posenc_dtype dtype = GetParam();
  std::string element = posenc_dtype_name(dtype);
  std::string type = "tensor<?x" + element + ">", text;
  auto getName = [](const char *of, int64_t n) {
    return std::string(of) + (n < 0 ? "m" : "") + std::to_string(std::abs(n));
  };
  auto addFunction = [&](const std::string &name, const std::string &arguments,
                         const std::string &body) {
    text += "func.func @" + name + "(%x: " + type + arguments + ") -> " + type +
            " {\n" + body + "  return %r : " + type + "\n}\n";
  };
  auto map = [&](const std::string &constant, const std::string &op) {
    return "  %c = arith.constant " + constant +
           "\n  %r = linalg.map ins(%x : " + type + ") outs(%x : " + type +
           ") (%a: " + element + ", %o: " + element + ") {\n" +
           "    %p = " + op + "\n    linalg.yield %p : " + element + "\n  }\n";
  };
  for (int64_t n : kExponents) {
    addFunction(getName("integer", n), "",
                map(std::to_string(n) + " : i32",
                    "math.fpowi %a, %c : " + element + ", i32"));
    addFunction(getName("real", n), "",
                map(std::to_string(n) + ".0 : " + element,
                    "math.powf %a, %c : " + element));
  }
  for (const char *half : {"0.5", "-0.5"})
    addFunction(std::string("real") + (half[0] == '-' ? "mhalf" : "half"), "",
                map(std::string(half) + " : " + element,
                    "math.powf %a, %c : " + element));
  addFunction("variable", ", %n: tensor<?xi64>",
              "  %r = math.fpowi %x, %n : " + type + ", tensor<?xi64>\n");
  Kernel kernel(text);
  const MathFunction &power = findFunction("powf");
  MathCase numbers = makeUnaryCase(dtype);
  runtime::Array x = toArray(dtype, numbers.x);
  auto check = [&](const std::string &name, double n,
                   std::vector<posenc_value> inputs) {
    numbers.y.assign(numbers.x.size(), n);
    std::vector<runtime::Array> results = kernel.call(name, inputs);
    ASSERT_EQ(results.size(), 1u);
    reference::Comparison comparison = numbers.compare(power, results[0]);
    EXPECT_TRUE(comparison.within(4))
        << name << " " << describe(numbers, comparison);
  };
  for (int64_t n : kExponents) {
    check(getName("integer", n), double(n), {x.value()});
    check(getName("real", n), double(n), {x.value()});
    runtime::Array exponents =
        makePositions(POSENC_I64, {static_cast<int64_t>(numbers.x.size())},
                      std::vector<int64_t>(numbers.x.size(), n));
    check("variable", double(n), {x.value(), exponents.value()});
  }
  check("realhalf", 0.5, {x.value()});
  check("realmhalf", -0.5, {x.value()});
}

INSTANTIATE_TEST_SUITE_P(Types, MathPowers,
                         testing::Values(POSENC_F32, POSENC_F64),
                         [](const auto &info) {
                           return posenc_dtype_name(info.param);
                         });

} // namespace
