//===- PositionRunsTest.cpp - positions in any order ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels compute the cos and sin of a run of positions by angle addition from
// the run's base position, two positions at a time in a complete run. The
// result for a position must not depend on its neighbours: it has the same bits
// in any order of positions.
//
//===----------------------------------------------------------------------===//

#include "Draw.h"
#include "Faults.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

using namespace posenc;
using namespace posenc::test;
namespace arith = mlir::arith;

namespace {

struct RunsCase {
  const char *op; // rope, sincos, interleaved, sin_cos or cos_sin
  posenc_dtype dtype;
  int64_t dim;
  Route route = Route::Direct;
  posenc_dtype positions = POSENC_I64;
};

std::string getName(const testing::TestParamInfo<RunsCase> &info) {
  const RunsCase &c = info.param;
  return std::string(c.op) + "_" + posenc_dtype_name(c.dtype) + "_" +
         std::to_string(c.dim) + "_" + test::getName(c.route) + "_" +
         posenc_dtype_name(c.positions);
}

std::string getModule(const RunsCase &c) {
  bool isSincos = std::string(c.op) == "sincos";
  std::string type = "tensor<?x" +
                     std::to_string(isSincos ? c.dim / 2 : c.dim) + "x" +
                     posenc_dtype_name(c.dtype) + ">";
  std::string positions =
      std::string("tensor<?x") + posenc_dtype_name(c.positions) + ">";
  // The attention factor of YaRN makes table elements greater than 1.
  std::string frequencies =
      "#posenc.frequencies<dim = " + std::to_string(c.dim) +
      (isSincos ? ", scaling = #posenc.yarn<factor = 8, original_max_position "
                  "= 4096>>"
                : ">");
  std::string code = "func.func @f(%p: " + positions + ") -> (" + type +
                     (isSincos ? ", " + type : "") +
                     ") {\n  %c0 = arith.constant 0 : index\n  %n = tensor.dim "
                     "%p, %c0 : " +
                     positions + "\n  %e = tensor.empty(%n) : " + type + "\n";
  if (std::string(c.op) == "rope")
    return code +
           "  %one = arith.constant 1.0 : " + posenc_dtype_name(c.dtype) +
           "\n  %x = tensor.splat %one[%n] : " + type +
           "\n  %r = posenc.rope half " + frequencies + " ins(%x : " + type +
           ") positions(%p : " + positions + ") dims = [0] outs(%e : " + type +
           ")\n  return %r : " + type + "\n}\n";
  if (isSincos)
    return code + "  %r:2 = posenc.sincos " + frequencies +
           " positions(%p : " + positions + ") outs(%e, %e : " + type + ", " +
           type + ")\n  return %r#0, %r#1 : " + type + ", " + type + "\n}\n";
  return code + "  %r = posenc.sinusoidal " + c.op + " " + frequencies +
         " positions(%p : " + positions + ") outs(%e : " + type +
         ")\n  return %r : " + type + "\n}\n";
}

/// Returns sequences of consecutive positions: longer than a run, across 0 and
/// 2^32, across the largest position, and shorter than a run.
std::vector<int64_t> getPositions(posenc_dtype dtype) {
  std::vector<int64_t> positions;
  auto addRun = [&](int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      positions.push_back(
          static_cast<int64_t>(static_cast<uint64_t>(first) + i));
  };
  addRun(-5, 1205);
  addRun(2147483600 - 100, 67);
  addRun(7, 9);
  addRun(3, 3);
  addRun(-2147483000, 48);
  if (dtype == POSENC_I64) {
    addRun((int64_t{1} << 32) - 20, 64);
    addRun(INT64_MAX - 39, 60); // wraps around to INT64_MIN
    addRun(-(int64_t{1} << 45), 33);
  }
  return positions;
}

/// Whether row `i` of `b` has the bits of row `order[i]` of `a`, for all `i`.
bool areSameRows(const runtime::Array &a, const runtime::Array &b,
                 const std::vector<size_t> &order) {
  size_t bytes = a.sizeInBytes() / order.size();
  const char *rows = static_cast<const char *>(a.data());
  const char *others = static_cast<const char *>(b.data());
  for (size_t row = 0; row < order.size(); ++row)
    if (std::memcmp(rows + order[row] * bytes, others + row * bytes, bytes))
      return false;
  return true;
}

/// Calls a kernel with positions in their order and in a shuffled one.
struct BothOrders {
  BothOrders(const Kernel &kernel, posenc_dtype dtype)
      : positions(getPositions(dtype)), order(positions.size()) {
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(11));
    std::vector<int64_t> shuffled;
    for (size_t row : order)
      shuffled.push_back(positions[row]);
    int64_t count = positions.size();
    runtime::Array p = makePositions(dtype, {count}, positions);
    runtime::Array q = makePositions(dtype, {count}, shuffled);
    orderedResults = kernel.call("f", {p.value()});
    shuffledResults = kernel.call("f", {q.value()});
  }

  bool areSame() const {
    if (orderedResults.empty() ||
        orderedResults.size() != shuffledResults.size())
      return false;
    for (size_t i = 0; i < orderedResults.size(); ++i)
      if (!areSameRows(orderedResults[i], shuffledResults[i], order))
        return false;
    return true;
  }

  std::vector<int64_t> positions;
  std::vector<size_t> order;
  std::vector<runtime::Array> orderedResults, shuffledResults;
};

class PositionRunsTest : public testing::TestWithParam<RunsCase> {};

TEST_P(PositionRunsTest, HaveTheSameBitsInAnyOrder) {
  Kernel kernel(getModule(GetParam()), GetParam().route);
  EXPECT_TRUE(BothOrders(kernel, GetParam().positions).areSame());
}

std::vector<RunsCase> makeCases() {
  std::vector<RunsCase> cases;
  const Route routes[] = {Route::Vectors128, Route::Vectors512, Route::LLVM};
  size_t numOps = 0;
  for (const char *op :
       {"rope", "sincos", "interleaved", "sin_cos", "cos_sin"}) {
    size_t route = numOps++;
    for (posenc_dtype dtype : {POSENC_F32, POSENC_F16, POSENC_BF16}) {
      // Remainders of vector loops do not depend on the rounding to 16 bits.
      std::vector<int64_t> dims = {30, 600};
      if (dtype == POSENC_F32)
        dims = {6, 30, 128, 600};
      for (int64_t dim : dims)
        cases.push_back({op, dtype, dim});
      // Each route with each operation and with each type.
      cases.push_back({op, dtype, 70, routes[route++ % 3]});
      cases.push_back({op, dtype, 22, Route::Direct, POSENC_I32});
    }
    cases.push_back({op, POSENC_F64, 22});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Tables, PositionRunsTest,
                         testing::ValuesIn(drawCases("Tables/PositionRunsTest",
                                                     makeCases(), 2, getName)),
                         getName);

/// Returns the largest error in units in the last place of a table of `dim`, at
/// 2000 positions from `first` on and at some positions near multiples of pi.
long double getMaxUlp(const Kernel &kernel, int64_t dim, int64_t first) {
  std::vector<int64_t> positions(2000);
  std::iota(positions.begin(), positions.end(), first);
  for (int64_t next : {355, 710, 103993, 104348, 312689, 1146408, 5419351})
    positions.push_back(next);
  reference::FrequencySpec spec{};
  spec.dim = dim;
  spec.base = 10000;
  runtime::Array p = makePositions(
      POSENC_I64, {static_cast<int64_t>(positions.size())}, positions);
  std::vector<runtime::Array> results = kernel.call("f", {p.value()});
  if (results.size() != 1)
    return HUGE_VALL;
  reference::CompareOptions options;
  options.shape = results[0].shape();
  return reference::compare(
             getReferenceType(results[0].dtype()), results[0].data(),
             reference::sinusoidal(spec, positions,
                                   reference::SinusoidalOrder::Interleaved),
             options)
      .maxUlp;
}

/// Elements near zeros included.
TEST(PositionRunsTest, AreWithin0p6Ulp) {
  for (posenc_dtype dtype : {POSENC_F32, POSENC_F16, POSENC_BF16})
    for (int64_t first : {0, 1000000, 2147480000})
      EXPECT_LE(
          getMaxUlp(Kernel(getModule({"interleaved", dtype, 96})), 96, first),
          0.6L)
          << posenc_dtype_name(dtype) << " from " << first;
}

/// Is a fault in a table. Results must then depend on the order of the
/// positions, or be less accurate.
struct RunsFault {
  posenc_dtype dtype;
  Fault fault;
};
void PrintTo(const RunsFault &fault, std::ostream *os) {
  *os << posenc_dtype_name(fault.dtype) << " " << fault.fault.name;
}

class PositionRunsFaultTest : public testing::TestWithParam<RunsFault> {};

TEST_P(PositionRunsFaultTest, IsCaught) {
  const auto &[dtype, fault] = GetParam();
  LoweredModule module(getModule({"interleaved", dtype, 96}),
                       mlir::posenc::Stage::Vector, /*vectorBytes=*/32);
  Kernel kernel = compileWithFault(module, fault);
  bool isRight = BothOrders(kernel, POSENC_I64).areSame() &&
                 getMaxUlp(kernel, 96, 1000000) <= 0.6L;
  EXPECT_EQ(isRight, fault.isControl());
}

bool isMinimum(mlir::Operation *op) {
  auto reduction = mlir::dyn_cast<mlir::vector::ReductionOp>(op);
  return reduction && reduction.getKind() == mlir::vector::CombiningKind::MINUI;
}
void setMaximum(mlir::vector::ReductionOp op) {
  op.setKind(mlir::vector::CombiningKind::MAXUI);
}

std::vector<RunsFault> makeFaults() {
  using arith::CmpIPredicate;
  std::vector<RunsFault> faults = {
      // A zero is near if an element is below a limit.
      {POSENC_BF16, {"LimitOfSums", splat(964689920), setConstant(0)}},
      {POSENC_BF16,
       {"LimitOfResults", integerConstant(16, 29441), setConstant(0)}},
      {POSENC_BF16,
       {"SmallestElement", isMinimum,
        change<mlir::vector::ReductionOp>(setMaximum)}},
      // A stretch has four runs. A run has 64 positions, or 32 for f32.
      {POSENC_BF16, {"Stretch", integerConstant(64, -256), setConstant(-512)}},
      {POSENC_BF16, {"Run", integerConstant(64, -64), setConstant(-128)}},
      {POSENC_BF16, {"IndexOfRun", integerConstant(64, 6), setConstant(7)}},
      {POSENC_BF16, {"IndexInRun", integerConstant(64, 63), setConstant(31)}},
      // A position is on one side of the middle of its run.
      {POSENC_BF16,
       {"Side", integerConstant(32, std::numeric_limits<int32_t>::min()),
        setConstant(0)}},
      {POSENC_F32, {"Stretch", integerConstant(64, -128), setConstant(-256)}},
      {POSENC_F32, {"Run", integerConstant(64, -32), setConstant(-64)}},
      {POSENC_F32, {"IndexOfRun", integerConstant(64, 5), setConstant(6)}}};
  for (posenc_dtype dtype : {POSENC_BF16, POSENC_F32}) {
    faults.push_back({dtype, control()});
    // The base position may be the one that is kept in memory.
    faults.push_back({dtype,
                      {"KeptBasePosition", cmpi(CmpIPredicate::ne),
                       setPredicate(CmpIPredicate::sgt)}});
    faults.push_back({dtype,
                      {"RotationSign", op<arith::NegFOp>(),
                       replaceWith<mlir::math::AbsFOp>()}});
  }
  return faults;
}
INSTANTIATE_TEST_SUITE_P(Faults, PositionRunsFaultTest,
                         testing::ValuesIn(makeFaults()), [](const auto &info) {
                           return std::string(
                                      posenc_dtype_name(info.param.dtype)) +
                                  "_" + info.param.fault.name;
                         });

} // namespace
