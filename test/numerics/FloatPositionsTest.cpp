//===- FloatPositionsTest.cpp - positions and angles that are floats ------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tables and rotations at positions of f32 and f64, and those whose angles are
// rounded to f32, against the oracle, on all routes with the same bits.
//
//===----------------------------------------------------------------------===//

#include "Faults.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace posenc;
using namespace posenc::test;
namespace arith = mlir::arith;

namespace {

struct FloatCase {
  const char *name;
  posenc_dtype dtype;     // of the tables
  posenc_dtype positions; // f32, f64 or, with rounded angles, i64
  const char *scaling = "";
  bool hasAxes = false;
};

const char kAxes[] = "#posenc.axes<axial, [10, 8]>";
const char kScale[] =
    ", scaling = #posenc.geometric<shift = 0.0, scale = 1000.0>";
const char kYarn[] =
    ", scaling = #posenc.yarn<factor = 8, original_max_position = 4096>";
const char kRounded[] = ", precision = hf_f32";
const char kRoundedYarn[] =
    ", scaling = #posenc.yarn<factor = 8, original_max_position = 4096>, "
    "precision = hf_f32";

const FloatCase kCases[] = {
    {"F32", POSENC_F32, POSENC_F32},
    {"F32AtF64", POSENC_F32, POSENC_F64},
    {"F64", POSENC_F64, POSENC_F64},
    {"F64AtF32", POSENC_F64, POSENC_F32},
    {"BF16", POSENC_BF16, POSENC_F32},
    {"F16", POSENC_F16, POSENC_F32},
    {"WholeTurns", POSENC_F32, POSENC_F32, kScale},
    {"WholeTurnsF64", POSENC_F64, POSENC_F64, kScale},
    {"Yarn", POSENC_F32, POSENC_F32, kYarn},
    {"Axes", POSENC_F32, POSENC_F32, "", true},
    {"AxesWholeTurns", POSENC_F32, POSENC_F64, kScale, true},
    {"Rounded", POSENC_F32, POSENC_I64, kRounded},
    {"RoundedI32", POSENC_F32, POSENC_I32, kRounded},
    {"RoundedF64", POSENC_F64, POSENC_I64, kRounded},
    {"RoundedBF16", POSENC_BF16, POSENC_I64, kRounded},
    {"RoundedYarn", POSENC_F32, POSENC_I64, kRoundedYarn},
    {"RoundedAxes", POSENC_F32, POSENC_I64, kRounded, true},
    {"RoundedFloats", POSENC_F32, POSENC_F64, kRounded},
};

std::string replaceAll(
    std::string text,
    std::initializer_list<std::pair<const char *, std::string>> replacements) {
  for (auto &[from, to] : replacements)
    for (size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, std::strlen(from), to);
  return text;
}

/// A table @table, rows @rows, a rotation @rope and its inverse @inverse.
std::string getModule(const FloatCase &c) {
  return replaceAll(
      R"(
#f = #posenc.frequencies<dim = 36SCALING>
func.func @table(%p: tensor<POSITION>) -> (tensor<?x18xTYPE>, tensor<?x18xTYPE>) {
  %axis = arith.constant LAST : index
  %n = tensor.dim %p, %axis : tensor<POSITION>
  %e = tensor.empty(%n) : tensor<?x18xTYPE>
  %r:2 = posenc.sincos #f AXES positions(%p : tensor<POSITION>)
    outs(%e, %e : tensor<?x18xTYPE>, tensor<?x18xTYPE>)
  return %r#0, %r#1 : tensor<?x18xTYPE>, tensor<?x18xTYPE>
}
func.func @rows(%p: tensor<POSITION>) -> tensor<?x36xTYPE> {
  %axis = arith.constant LAST : index
  %n = tensor.dim %p, %axis : tensor<POSITION>
  %e = tensor.empty(%n) : tensor<?x36xTYPE>
  %r = posenc.sinusoidal interleaved #f AXES positions(%p : tensor<POSITION>)
    outs(%e : tensor<?x36xTYPE>)
  return %r : tensor<?x36xTYPE>
}
func.func @rope(%x: tensor<?x3x40xTYPE>, %p: tensor<POSITION>) -> tensor<?x3x40xTYPE> {
  %r = posenc.rope half #f AXES ins(%x : tensor<?x3x40xTYPE>)
    positions(%p : tensor<POSITION>) dims = [0] offset = 2 outs(%x : tensor<?x3x40xTYPE>)
  return %r : tensor<?x3x40xTYPE>
}
func.func @inverse(%x: tensor<?x3x40xTYPE>, %p: tensor<POSITION>) -> tensor<?x3x40xTYPE> {
  %r = posenc.rope interleaved inverse #f AXES ins(%x : tensor<?x3x40xTYPE>)
    positions(%p : tensor<POSITION>) dims = [0] outs(%x : tensor<?x3x40xTYPE>)
  return %r : tensor<?x3x40xTYPE>
}
)",
      {{"SCALING", c.scaling},
       {"AXES", c.hasAxes ? std::string("axes ") + kAxes : ""},
       {"LAST", c.hasAxes ? "1" : "0"},
       {"POSITION", (c.hasAxes ? "2x?x" : "?x") +
                        std::string(posenc_dtype_name(c.positions))},
       {"TYPE", posenc_dtype_name(c.dtype)}});
}

reference::FrequencySpec getSpec(const FloatCase &c) {
  return getFrequencies("dim = 36" + std::string(c.scaling),
                        c.hasAxes ? kAxes : "");
}

reference::AxesSpec getAxes(const FloatCase &c) {
  reference::AxesSpec axes;
  if (c.hasAxes) {
    axes.kind = reference::AxesKind::Axial;
    axes.sections = {10, 8};
  }
  return axes;
}

/// Numbers of all magnitudes below 2^31, and numbers without an angle.
std::vector<double> getNumbers(int64_t count, uint64_t seed) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  std::vector<double> numbers = {
      0.0,          -0.0,      0.5,        -0.5,   1e-30,     -1e-30,
      0x1p-149,     0x1p-64,   -0x1p-63,   0x1p31, -0x1p31,   16777215.5,
      8388607.75,   inf,       -inf,       0x1p63, -0x1p63,   1e30,
      std::nan(""), 0x1.8p-41, 3.14159274, 355.0,  -103993.0, 1.57079637};
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> mantissa(1, 2), exponent(-70, 31);
  while (int64_t(numbers.size()) < count)
    numbers.push_back(
        std::ldexp(random() % 2 ? mantissa(random) : -mantissa(random),
                   int(std::floor(exponent(random)))));
  return numbers;
}

/// The positions of a case as an array, and as the operations read them.
struct Positions {
  Positions(const FloatCase &c, int64_t rows) {
    int64_t count = c.hasAxes ? 2 * rows : rows;
    std::vector<int64_t> shape = {rows};
    if (c.hasAxes)
      shape = {2, rows};
    if (c.positions == POSENC_I64 || c.positions == POSENC_I32) {
      std::vector<int64_t> integers = hardPositions(count);
      array = makePositions(c.positions, shape, integers);
      values = integers;
      return;
    }
    array = makeRandom(c.positions, shape, 1);
    for (auto [i, number] : llvm::enumerate(getNumbers(count, 3))) {
      double value = number;
      if (c.positions == POSENC_F32)
        value = array.dataAs<float>()[i] = float(number);
      else
        array.dataAs<double>()[i] = number;
      values.push_back(std::fabs(value) < 0x1p63 ? value : std::nan(""));
    }
  }
  runtime::Array array;
  reference::Positions values;
};

/// The error of the angles that the comparison allows: that of the fraction of
/// a position, for the largest frequency, besides that of the phase.
reference::CompareOptions getOptions(const FloatCase &c) {
  reference::CompareOptions options;
  options.absoluteSlack = c.dtype == POSENC_F64 ? 0x1p-60 : 0x1p-61;
  options.absoluteSlack += c.scaling == kScale ? 1000 * 0x1p-64 : 0;
  return options;
}

constexpr int64_t kRows = 211;

void checkTables(const FloatCase &c, const Kernel &kernel,
                 const Positions &positions) {
  reference::DType type = getReferenceType(c.dtype);
  reference::FrequencySpec spec = getSpec(c);
  auto check = [&](const runtime::Array &result,
                   const reference::Array &expected) {
    reference::Comparison comparison =
        reference::compare(type, result.data(), expected, getOptions(c));
    long double limit = reference::defaultLimitUlp(
        reference::ResultKind::Table, type,
        c.scaling == kYarn || c.scaling == kRoundedYarn);
    EXPECT_TRUE(comparison.within(limit))
        << comparison.reason << comparison.maxUlp;
  };
  reference::CosSinTable expected =
      reference::sincos(spec, getAxes(c), positions.values, {kRows});
  std::vector<runtime::Array> results =
      kernel.call("table", {positions.array.value()});
  ASSERT_EQ(results.size(), 2u);
  check(results[0], expected.cos);
  check(results[1], expected.sin);
  results = kernel.call("rows", {positions.array.value()});
  ASSERT_EQ(results.size(), 1u);
  check(results[0],
        reference::sinusoidal(spec, getAxes(c), positions.values, {kRows},
                              reference::SinusoidalOptions()));
}

void checkRotations(const FloatCase &c, const Kernel &kernel,
                    const Positions &positions, const runtime::Array &x) {
  for (bool inverse : {false, true}) {
    reference::RotateOptions options;
    options.positionDims = {0};
    options.windowOffset = inverse ? 0 : 2;
    options.interleaved = options.inverse = inverse;
    std::vector<runtime::Array> results = kernel.call(
        inverse ? "inverse" : "rope", {x.value(), positions.array.value()});
    ASSERT_EQ(results.size(), 1u);
    expectClose(results[0],
                reference::rope(toReference(x), getSpec(c), getAxes(c),
                                positions.values, options),
                reference::ResultKind::Rotated);
  }
}

class FloatPositionsTest : public testing::TestWithParam<FloatCase> {};

TEST_P(FloatPositionsTest, MatchOracle) {
  const FloatCase &c = GetParam();
  Positions positions(c, kRows);
  runtime::Array x = makeRandom(c.dtype, {kRows, 3, 40}, 5);
  std::vector<runtime::Array> expected;
  for (Route route : {Route::Direct, Route::Linalg, Route::Vectors128}) {
    SCOPED_TRACE(getName(route));
    Kernel kernel(getModule(c), route);
    checkTables(c, kernel, positions);
    checkRotations(c, kernel, positions, x);
    // The lowering through linalg rounds tables before it rotates by them.
    if (route == Route::Linalg)
      continue;
    // All vector widths give the same bits.
    std::vector<runtime::Array> results =
        kernel.call("table", {positions.array.value()});
    for (const char *name : {"rope", "inverse"})
      for (runtime::Array &result :
           kernel.call(name, {x.value(), positions.array.value()}))
        results.push_back(std::move(result));
    ASSERT_EQ(results.size(), 4u);
    if (expected.empty())
      expected = std::move(results);
    else
      for (size_t i = 0; i < results.size(); ++i)
        EXPECT_EQ(std::memcmp(results[i].data(), expected[i].data(),
                              results[i].sizeInBytes()),
                  0)
            << "result " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, FloatPositionsTest, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<FloatCase> &info) {
                           return info.param.name;
                         });

// The tables of integers are those of the same positions as floats.
TEST(FloatPositionsTest, IntegersAndFloatsAgree) {
  FloatCase floats{"", POSENC_F32, POSENC_F64},
      integers{"", POSENC_F32, POSENC_I64};
  std::vector<int64_t> values = hardPositions(500);
  runtime::Array p = makePositions(POSENC_I64, {500}, values);
  runtime::Array q = makeRandom(POSENC_F64, {500}, 1);
  for (size_t i = 0; i < values.size(); ++i)
    q.dataAs<double>()[i] = double(values[i]);
  std::vector<runtime::Array> a =
      Kernel(getModule(integers)).call("table", {p.value()});
  std::vector<runtime::Array> b =
      Kernel(getModule(floats)).call("table", {q.value()});
  ASSERT_EQ(a.size(), 2u);
  ASSERT_EQ(b.size(), 2u);
  int64_t different = 0;
  for (size_t which = 0; which < 2; ++which)
    for (int64_t i = 0, e = a[which].numElements(); i < e; ++i)
      different += std::fabs(a[which].dataAs<float>()[i] -
                             b[which].dataAs<float>()[i]) > 0x1p-24f;
  EXPECT_EQ(different, 0);
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

constexpr int64_t kBitsOf2To62 = 0x43d0000000000000;
constexpr int64_t kBitsOf2To63 = 0x43e0000000000000;

/// Matches the product of the fraction and the whole turns, which are loaded.
bool isProductOfTurns(mlir::Operation *candidate) {
  return candidate->getOperand(1).getDefiningOp<mlir::vector::LoadOp>();
}

const Fault kFaults[] = {
    control(),
    {"Exponent", splat(1075), setConstant(1074)},
    {"ExponentOfFraction", splat(1011), setConstant(1010)},
    {"LeadingOne", splat(int64_t(1) << 52), setConstant(0)},
    {"Mantissa", splat((int64_t(1) << 52) - 1),
     setConstant((int64_t(1) << 51) - 1)},
    {"Sign", op<arith::ShRSIOp>(operand(1, splat(63))),
     replaceWith<arith::ShRUIOp>()},
    {"FractionOfInteger",
     cmpi(arith::CmpIPredicate::sgt, operand(1, splat(63))),
     setPredicate(arith::CmpIPredicate::slt)},
    {"Largest", splat(kBitsOf2To63), setConstant(kBitsOf2To62)},
    {"NotANumber", splat(kBitsOf2To63), setConstant(INT64_MAX)},
    {"WholeTurns", op<arith::MulIOp>(usedBy<arith::AddIOp>(), isProductOfTurns),
     replaceWith<arith::OrIOp>()},
};

class FloatPositionsFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(FloatPositionsFaultTest, IsCaught) {
  FloatCase c{"", POSENC_F32, POSENC_F64, kScale};
  Positions positions(c, 211);
  // Beyond the other positions, and not near 2^63.
  positions.array.dataAs<double>()[0] = 0x1.5p62;
  positions.values[0] = 0x1.5p62L;
  LoweredModule module(getModule(c), mlir::posenc::Stage::Vector,
                       /*vectorBytes=*/32);
  std::vector<runtime::Array> results =
      compileWithFault(module, GetParam())
          .call("table", {positions.array.value()});
  ASSERT_EQ(results.size(), 2u);
  reference::CompareOptions options = getOptions(c);
  options.absoluteSlack += 0x1.5p62L * 0x1p-94L * 1000;
  reference::CosSinTable expected =
      reference::sincos(getSpec(c), getAxes(c), positions.values, {211});
  bool isRight = true;
  for (auto [result, table] :
       {std::pair(&results[0], &expected.cos), {&results[1], &expected.sin}})
    isRight &= reference::compare(reference::DType::F32, result->data(), *table,
                                  options)
                   .within(1);
  EXPECT_EQ(isRight, GetParam().isControl());
}
INSTANTIATE_TEST_SUITE_P(Vector, FloatPositionsFaultTest,
                         testing::ValuesIn(kFaults), getFaultName);

} // namespace
