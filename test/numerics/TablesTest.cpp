//===- TablesTest.cpp - compiled tables against the oracle ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Draw.h"
#include "Faults.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <cmath>

using namespace posenc;
using namespace posenc::test;

namespace {

struct TableCase {
  const char *op; // sincos, interleaved, sin_cos or cos_sin
  posenc_dtype dtype;
  int64_t dim;
  double base;
  Route route = Route::Direct;
};

std::string getName(const testing::TestParamInfo<TableCase> &info) {
  const TableCase &c = info.param;
  std::string name = c.op;
  name += "_" + std::string(posenc_dtype_name(c.dtype)) + "_" +
          std::to_string(c.dim) + "_" +
          std::to_string(static_cast<int64_t>(c.base)) + "_" +
          test::getName(c.route);
  return name;
}

/// Returns MLIR of a function `f` of positions with one op.
std::string getModule(const TableCase &c, const std::string &scaling = "") {
  bool isSincos = std::string(c.op) == "sincos";
  std::string type = "tensor<?x" +
                     std::to_string(isSincos ? c.dim / 2 : c.dim) + "x" +
                     posenc_dtype_name(c.dtype) + ">";
  std::string frequencies =
      "#posenc.frequencies<dim = " + std::to_string(c.dim) +
      ", base = " + std::to_string(c.base) + scaling + ">";
  std::string head = "func.func @f(%p: tensor<?xi64>) -> ";
  std::string empty = "  %c0 = arith.constant 0 : index\n  %n = tensor.dim %p, "
                      "%c0 : tensor<?xi64>\n  %e = tensor.empty(%n) : " +
                      type + "\n";
  if (isSincos)
    return head + "(" + type + ", " + type + ") {\n" + empty +
           "  %r:2 = posenc.sincos " + frequencies +
           " positions(%p : tensor<?xi64>) outs(%e, %e : " + type + ", " +
           type + ")\n  return %r#0, %r#1 : " + type + ", " + type + "\n}\n";
  return head + type + " {\n" + empty + "  %r = posenc.sinusoidal " + c.op +
         " " + frequencies +
         " positions(%p : tensor<?xi64>) outs(%e : " + type +
         ")\n  return %r : " + type + "\n}\n";
}

class TableTest : public testing::TestWithParam<TableCase> {};

TEST_P(TableTest, MatchesOracleAtHardPositions) {
  const TableCase &c = GetParam();
  // Rows do not depend on each other, and most of the angles of a wide row are
  // those of other rows: 36 positions have all magnitudes.
  std::vector<int64_t> positions = hardPositions(c.dim > 1000 ? 36 : 400);
  int64_t count = positions.size();
  runtime::Array p = makePositions(POSENC_I64, {count}, positions);
  Kernel kernel(getModule(c), c.route);
  std::vector<runtime::Array> results = kernel.call("f", {p.value()});
  reference::FrequencySpec spec{};
  spec.dim = c.dim;
  spec.base = c.base;
  if (std::string(c.op) == "sincos") {
    ASSERT_EQ(results.size(), 2u);
    reference::CosSinTable table =
        reference::sincos(spec, {}, positions, {count});
    expectClose(results[0], table.cos, reference::ResultKind::Table);
    expectClose(results[1], table.sin, reference::ResultKind::Table);
    return;
  }
  ASSERT_EQ(results.size(), 1u);
  reference::SinusoidalOrder order =
      std::string(c.op) == "interleaved"
          ? reference::SinusoidalOrder::Interleaved
      : std::string(c.op) == "sin_cos" ? reference::SinusoidalOrder::SinCos
                                       : reference::SinusoidalOrder::CosSin;
  expectClose(results[0], reference::sinusoidal(spec, positions, order),
              reference::ResultKind::Table);
}

std::vector<TableCase> makeCases() {
  std::vector<TableCase> cases;
  for (const char *op : {"sincos", "interleaved", "sin_cos", "cos_sin"}) {
    for (posenc_dtype dtype : {POSENC_F32, POSENC_F64, POSENC_F16, POSENC_BF16})
      for (int64_t dim : {2, 10, 128})
        cases.push_back({op, dtype, dim, 10000});
    cases.push_back({op, POSENC_F32, 64, 1.5});
    cases.push_back({op, POSENC_F32, 64, 1e6});
    cases.push_back({op, POSENC_F32, 4096, 10000});
    for (Route route : {Route::Linalg, Route::Vector, Route::LLVM,
                        Route::Vectors128, Route::Vectors512})
      cases.push_back({op, POSENC_F32, 10, 10000, route});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Tables, TableTest,
                         testing::ValuesIn(drawCases("Tables/TableTest",
                                                     makeCases(), 3, getName)),
                         getName);

/// Returns the positions below 2^31 nearest to multiples of a quarter turn: the
/// convergents of the continued fraction of f/(pi/2). There, a phase with
/// slightly too few bits gives errors of thousands of units in the last place.
std::vector<int64_t> nearQuarterTurns(long double frequency) {
  std::vector<int64_t> positions;
  long double x = frequency / 1.5707963267948966192313216916397514L;
  int64_t previous = 0, current = 1;
  for (int i = 0; i < 24; ++i) {
    long double whole = std::floor(x);
    if (x - whole < 1e-17L)
      break;
    x = 1 / (x - whole);
    long double next = std::floor(x) * current + previous;
    if (next > 2147483647.0L)
      break;
    previous = current;
    current = static_cast<int64_t>(next);
    positions.push_back(current);
    positions.push_back(-current);
  }
  return positions;
}

/// A table whose elements near zeros are checked.
struct NearZeros {
  NearZeros() {
    spec.dim = 128;
    spec.base = 500000;
    for (const reference::Real &frequency :
         reference::computeFrequencies(spec.dim, spec.base))
      for (int64_t position : nearQuarterTurns(frequency.toLongDouble()))
        positions.push_back(position);
    int64_t count = positions.size();
    argument = makePositions(POSENC_I64, {count}, positions);
    table = reference::sincos(spec, {}, positions, {count});
  }

  static TableCase getCase(posenc_dtype dtype) {
    return {"sincos", dtype, 128, 500000};
  }

  reference::FrequencySpec spec{};
  std::vector<int64_t> positions;
  runtime::Array argument;
  reference::CosSinTable table;
};

TEST(TableTest, HoldsNextToQuarterTurns) {
  NearZeros near;
  ASSERT_GT(near.positions.size(), 1000u);
  for (posenc_dtype dtype : {POSENC_F32, POSENC_F64, POSENC_F16, POSENC_BF16}) {
    std::vector<runtime::Array> results =
        Kernel(getModule(near.getCase(dtype)))
            .call("f", {near.argument.value()});
    ASSERT_EQ(results.size(), 2u);
    expectClose(results[0], near.table.cos, reference::ResultKind::Table);
    expectClose(results[1], near.table.sin, reference::ResultKind::Table);
  }
}

/// Without the low words of the frequencies, and with a rounding constant that
/// is a little off, errors must show at the same positions.
const Fault kNearZeroFaults[] = {
    control(),
    {"LowWords",
     [](mlir::Operation *op) {
       auto global = mlir::dyn_cast<mlir::memref::GlobalOp>(op);
       return global && global.getSymName() == "frequencies_low";
     },
     change<mlir::memref::GlobalOp>([](mlir::memref::GlobalOp op) {
       mlir::Builder builder(op);
       auto values =
           mlir::cast<mlir::DenseElementsAttr>(op.getInitialValueAttr());
       op.setInitialValueAttr(mlir::DenseElementsAttr::get(
           values.getType(), mlir::Attribute(builder.getI64IntegerAttr(0))));
     })},
    {"Rounding", splat(2.44140625E-4), setConstant(2.4414062501E-4)},
};

class TableFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(TableFaultTest, IsCaughtNextToQuarterTurns) {
  NearZeros near;
  LoweredModule module(getModule(near.getCase(POSENC_F32)),
                       mlir::posenc::Stage::Vector, /*vectorBytes=*/32);
  std::vector<runtime::Array> results =
      compileWithFault(module, GetParam()).call("f", {near.argument.value()});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(reference::compare(reference::DType::F32, results[0].data(),
                               near.table.cos)
                .within(1),
            GetParam().isControl());
}
INSTANTIATE_TEST_SUITE_P(Faults, TableFaultTest,
                         testing::ValuesIn(kNearZeroFaults), getFaultName);

TEST(TableTest, HoldsBeyond32Bits) {
  // Beyond 2^31, the absolute error bound grows by |p|*2^-94 radians.
  TableCase c{"sincos", POSENC_F32, 16, 10000};
  std::vector<int64_t> positions = {
      int64_t{1} << 40, -(int64_t{1} << 47), (int64_t{1} << 53) + 1,
      INT64_MAX,        INT64_MIN,           INT64_MIN + 1};
  reference::FrequencySpec spec{};
  spec.dim = c.dim;
  spec.base = c.base;
  runtime::Array p = makePositions(POSENC_I64, {6}, positions);
  std::vector<runtime::Array> results =
      Kernel(getModule(c)).call("f", {p.value()});
  ASSERT_EQ(results.size(), 2u);
  reference::CosSinTable table = reference::sincos(spec, {}, positions, {6});
  reference::CompareOptions options;
  options.absoluteSlack = std::ldexp(1.0L, 63 - 94) + std::ldexp(1.0L, -61);
  for (auto [result, expected] :
       {std::pair(&results[0], &table.cos), std::pair(&results[1], &table.sin)})
    EXPECT_TRUE(reference::compare(reference::DType::F32, result->data(),
                                   *expected, options)
                    .within(1));
}

TEST(TableTest, AttentionFactorCostsNoRounding) {
  TableCase c{"sincos", POSENC_F32, 64, 10000};
  std::vector<int64_t> positions = hardPositions(400);
  const std::string yarn = ", scaling = #posenc.yarn<factor = 40, "
                           "original_max_position = 4096>";
  reference::FrequencySpec spec =
      getFrequencies("dim = 64, base = 10000" + yarn);
  runtime::Array p = makePositions(POSENC_I64, {400}, positions);
  for (posenc_dtype dtype : {POSENC_F32, POSENC_F64, POSENC_F16, POSENC_BF16}) {
    c.dtype = dtype;
    std::vector<runtime::Array> results =
        Kernel(getModule(c, yarn)).call("f", {p.value()});
    ASSERT_EQ(results.size(), 2u);
    reference::CosSinTable table =
        reference::sincos(spec, {}, positions, {400});
    EXPECT_LE(expectClose(results[0], table.cos, reference::ResultKind::Table,
                          /*withAttention=*/true)
                  .maxUlp,
              dtype == POSENC_F32 ? 1.25L : 2.0L);
    expectClose(results[1], table.sin, reference::ResultKind::Table,
                /*withAttention=*/true);
  }
}

} // namespace
