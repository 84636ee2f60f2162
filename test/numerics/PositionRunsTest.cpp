//===- PositionRunsTest.cpp - positions in any order ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The positions of a run have their cos and sin from its middle, and two at a
// time where the run is whole. Nothing of that may show: a position has the
// same row next to its neighbours and elsewhere.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

using namespace posenc;
using namespace posenc::test;

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
  // The factor makes entries greater than 1.
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

/// Runs of all kinds: longer than one anchor lasts, across 0 and 2^32, up to
/// the greatest position, a run that breaks off, and single ones.
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
    addRun(INT64_MAX - 39, 60); // and on from the least one
    addRun(-(int64_t{1} << 45), 33);
  }
  return positions;
}

/// Whether the rows of both are the same bits, the second in the order `order`.
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

/// Calls a kernel with positions as they are, and in another order.
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
    inOrder = kernel.call("f", {p.value()});
    inDisorder = kernel.call("f", {q.value()});
  }

  bool areSame() const {
    if (inOrder.empty() || inOrder.size() != inDisorder.size())
      return false;
    for (size_t i = 0; i < inOrder.size(); ++i)
      if (!areSameRows(inOrder[i], inDisorder[i], order))
        return false;
    return true;
  }

  std::vector<int64_t> positions;
  std::vector<size_t> order;
  std::vector<runtime::Array> inOrder, inDisorder;
};

class PositionRunsTest : public testing::TestWithParam<RunsCase> {};

TEST_P(PositionRunsTest, HaveTheSameBitsInAnyOrder) {
  Kernel kernel(getModule(GetParam()), GetParam().route);
  EXPECT_TRUE(BothOrders(kernel, GetParam().positions).areSame());
}

std::vector<RunsCase> makeCases() {
  std::vector<RunsCase> cases;
  for (const char *op :
       {"rope", "sincos", "interleaved", "sin_cos", "cos_sin"}) {
    for (posenc_dtype dtype : {POSENC_F32, POSENC_F16, POSENC_BF16}) {
      for (int64_t dim : {6, 30, 128, 600})
        cases.push_back({op, dtype, dim});
      for (Route route : {Route::Vectors128, Route::Vectors512, Route::LLVM})
        cases.push_back({op, dtype, 70, route});
      cases.push_back({op, dtype, 22, Route::Direct, POSENC_I32});
    }
    cases.push_back({op, POSENC_F64, 22});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Tables, PositionRunsTest,
                         testing::ValuesIn(makeCases()), getName);

/// The largest error of a table of `dim`, at positions `first` and on and at
/// some that are nearly multiples of pi, in units in the last place.
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

/// Next to zeros, too.
TEST(PositionRunsTest, AreNearlyTheNearestNumbers) {
  for (posenc_dtype dtype : {POSENC_F32, POSENC_F16, POSENC_BF16})
    for (int64_t first : {0, 1000000, 2147480000})
      EXPECT_LE(
          getMaxUlp(Kernel(getModule({"interleaved", dtype, 96})), 96, first),
          0.6L)
          << posenc_dtype_name(dtype) << " from " << first;
}

/// What tables of a type rely on, taken away: each must show, in the bits or
/// the error.
bool survives(posenc_dtype dtype, const Fault &fault) {
  std::string code = lowerToText(getModule({"interleaved", dtype, 96}),
                                 mlir::posenc::Stage::Vector,
                                 /*vectorBytes=*/32);
  Kernel kernel(replace(code, fault));
  return BothOrders(kernel, POSENC_I64).areSame() &&
         getMaxUlp(kernel, 96, 1000000) <= 0.6L;
}

struct RunsFault {
  posenc_dtype dtype;
  Fault fault;
};

std::string getFaultOfTypeName(const testing::TestParamInfo<RunsFault> &info) {
  return std::string(posenc_dtype_name(info.param.dtype)) + "_" +
         info.param.fault.name;
}

class PositionRunsFaultTest : public testing::TestWithParam<RunsFault> {};

TEST_P(PositionRunsFaultTest, IsCaught) {
  EXPECT_EQ(survives(GetParam().dtype, GetParam().fault),
            std::string(GetParam().fault.name) == "Control");
}

std::vector<RunsFault> makeFaults() {
  std::vector<RunsFault> faults;
  // What is next to zero, in sums and in what is written; a stretch, a run, the
  // place of each, and on which side of the middle it is.
  for (Fault fault :
       {Fault{"Limit", "dense<964689920>", "dense<0>"},
        Fault{"Marks", "arith.constant 29441 : i16", "arith.constant 0 : i16"},
        Fault{"LeastMark", "vector.reduction <minui>",
              "vector.reduction <maxui>"},
        Fault{"Stretch", "arith.constant -256 : i64",
              "arith.constant -512 : i64"},
        Fault{"Run", "arith.constant -64 : i64", "arith.constant -128 : i64"},
        Fault{"PlaceOfRun", "arith.constant 6 : i64", "arith.constant 7 : i64"},
        Fault{"Place", "arith.constant 63 : i64", "arith.constant 31 : i64"},
        Fault{"Side", "arith.constant -2147483648 : i32",
              "arith.constant 0 : i32"}})
    faults.push_back({POSENC_BF16, fault});
  for (Fault fault :
       {Fault{"Stretch", "arith.constant -128 : i64",
              "arith.constant -256 : i64"},
        Fault{"Run", "arith.constant -32 : i64", "arith.constant -64 : i64"},
        Fault{"PlaceOfRun", "arith.constant 5 : i64",
              "arith.constant 6 : i64"}})
    faults.push_back({POSENC_F32, fault});
  // Which anchor is in memory; the rotation.
  for (posenc_dtype dtype : {POSENC_BF16, POSENC_F32})
    for (Fault fault : {Fault{"Control", "", ""},
                        Fault{"Kept", "arith.cmpi ne", "arith.cmpi sgt"},
                        Fault{"Minus", "arith.negf", "math.absf"}})
      faults.push_back({dtype, fault});
  return faults;
}
INSTANTIATE_TEST_SUITE_P(Faults, PositionRunsFaultTest,
                         testing::ValuesIn(makeFaults()), getFaultOfTypeName);

} // namespace
