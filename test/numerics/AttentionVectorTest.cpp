//===- AttentionVectorTest.cpp - vectorized attention ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vectorized attention against the oracle: sizes around those of query tiles,
// key tiles and rows of scores, and every feature that can change a score.
//
//===----------------------------------------------------------------------===//

#include "AttentionVectorCase.h"
#include "Faults.h"

#include <cmath>
#include <limits>

using namespace posenc;
using namespace posenc::test;
using namespace posenc::test::vectors;
namespace arith = mlir::arith;

namespace {

/// Subtracts a bias proportional to |j - i| and to the head.
const char kBias[] = R"(
    score(%s, %b, %h, %i, %j) {
      %d = arith.subi %j, %i : index
      %d32 = arith.index_cast %d : index to i32
      %f = arith.sitofp %d32 : i32 to f32
      %h32 = arith.index_cast %h : index to i32
      %g = arith.sitofp %h32 : i32 to f32
      %slope = arith.constant 0.03 : f32
      %a = math.absf %f : f32
      %e = arith.mulf %g, %slope : f32
      %m = arith.mulf %a, %e : f32
      %y = arith.subf %s, %m : f32
      posenc.yield %y : f32
    })";

const char kDocuments[] = R"(
    where(%b, %h, %i, %j) {
      %zero = arith.constant 0 : index
      %at = arith.maxsi %i, %zero : index
      %x = tensor.extract %x0[%at] : tensor<?xi32>
      %y = tensor.extract %x0[%j] : tensor<?xi32>
      %same = arith.cmpi eq, %x, %y : i32
      posenc.yield %same : i1
    })";

std::vector<Operand> makeDocuments(posenc_dtype) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < 101; ++i)
    numbers.push_back(i / 29);
  std::vector<Operand> operands;
  operands.push_back(
      {"tensor<?xi32>", makePositions(POSENC_I32, {101}, numbers)});
  return operands;
}

/// Makes a mask of all heads and queries, or one shared by them. Some elements
/// are minus infinity.
std::vector<Operand> makeMask(bool isWhole) {
  std::vector<Operand> operands;
  std::vector<int64_t> shape{2, 4, 37, 101};
  if (!isWhole)
    shape = {2, 1, 1, 101};
  runtime::Array mask = makeRandom(POSENC_F32, shape, 5);
  for (size_t i = 0; i < mask.numElements(); i += 7)
    mask.dataAs<float>()[i] = i % 2 ? -std::numeric_limits<float>::infinity()
                                    : std::numeric_limits<float>::lowest();
  operands.push_back({isWhole ? "tensor<?x4x?x?xf32>" : "tensor<?x1x1x?xf32>",
                      std::move(mask)});
  return operands;
}

const Case kCases[] = {
    Case{"Plain", {}},
    Case{"HeadMajor", {}}.causal().headMajor(),
    Case{"FiveKeys", sized(16, 5)},
    Case{"RowOfScores", sized(17, 6)},
    Case{"KeyTile", sized(9, 96)},
    Case{"BeyondKeyTile", sized(9, 97)},
    Case{"NoKeys", sized(10, 0)}.withLogSum(),
    Case{"NoQueries", sized(0, 7)},
    Case{"SeveralQueryTiles", sized(300, 40)},
    Case{"ManyKeys", sized(11, 1000)},
    Case{"OneHead", headed(1, 1, 128, 128)}.causal(),
    Case{"ThreeHeads", headed(3, 1, 40, 24)}.causal(),
    Case{"EightHeads", headed(8, 1, 96, 80)}.causal(),
    Case{"WideHead", headed(4, 2, 256, 8)}.causal(),
    Case{"WideValues", headed(2, 2, 8, 256)}.causal(),
    Case{"Causal", {}}.causal(),
    Case{"CausalSquare", sized(300, 300)}.causal(),
    Case{"MoreQueriesThanKeys", sized(150, 40)}.causal().withLogSum(),
    Case{"WindowLeft", sized(120, 130), "window_left = 20", "", "",
         window(20, std::nullopt)},
    Case{"WindowRight", sized(120, 130), "window_right = 20", "", "",
         window(std::nullopt, 20)},
    Case{"WindowBoth", sized(120, 130), "window_left = 3 window_right = 5", "",
         "", window(3, 5)},
    Case{"WindowCausal", sized(300, 300), "causal window_left = 70", "", "",
         window(70, std::nullopt, true)},
    Case{"WindowZero", sized(40, 40), "window_left = 0 window_right = 0", "",
         "", window(0, 0)},
    Case{
        "WindowHuge",
        {},
        "window_left = 9223372036854775807 window_right = 9223372036854775807"},
    Case{"Scale",
         {},
         "scale = 0.3",
         "",
         "",
         [](reference::AttentionSpec &spec) { spec.scale = 0.3; }},
    Case{"LogSum", {}}.causal().withLogSum(),
    Case{"LogSumHeadMajor", {}}.causal().headMajor().withLogSum(),
    Case{"Rotation", {}, kRotated, "", "", setRotated},
    Case{"RotationWindow",
         {},
         "query_rotation = <pairing = interleaved, frequencies = "
         "#posenc.frequencies<dim = 24, base = 10000>, offset = 40> "
         "key_rotation = "
         "<pairing = half, frequencies = #posenc.frequencies<dim = 32, base = "
         "500>, offset = 8>",
         "",
         "",
         [](reference::AttentionSpec &spec) {
           spec.queryRotation = makeRotation(24, 10000, true, 40);
           spec.keyRotation = makeRotation(32, 500, false, 8);
         }},
    Case{"RotationPositions",
         {},
         "query_rotation = <pairing = interleaved, frequencies = "
         "#posenc.frequencies<dim = 64, base = 10000>>",
         "query_positions(%x0 : tensor<?x?xi64>)",
         "",
         [](reference::AttentionSpec &spec) {
           spec.queryRotation = makeRotation(64, 10000, true, 0);
           spec.queryRotation->positions = hardPositions(2 * 37);
         },
         [](posenc_dtype) {
           std::vector<Operand> operands;
           operands.push_back(
               {"tensor<?x?xi64>",
                makePositions(POSENC_I64, {2, 37}, hardPositions(2 * 37))});
           return operands;
         }},
    Case{"Norms",
         {},
         "norm_eps = 0.01",
         "query_norm(%x0 : tensor<64xf32>) key_norm(%x1 : tensor<64xf32>)",
         "",
         setNorms,
         makeNorms},
    Case{"Lengths",
         {},
         "",
         "lengths(%x0 : tensor<?xi64>)",
         "",
         setLengths,
         makeLengths}
        .causal()
        .headMajor()
        .withLogSum(),
    Case{"Paged", paged(40), "causal", kPages, "", setPages, makePages}
        .withLogSum(),
    Case{"SoftCap", {}, "", "", kSoftCap, setSoftCap}.causal(),
    Case{"Bias",
         {},
         "",
         "",
         kBias,
         [](reference::AttentionSpec &spec) {
           spec.score = [](double s, int64_t, int64_t h, int64_t i, int64_t j) {
             return s - std::fabs(double(j - i)) * h * 0.03;
           };
         }}
        .causal(),
    Case{"Alibi",
         {},
         "",
         "",
         R"(
    score(%s, %b, %h, %i, %j) {
      %bias = posenc.alibi(%h, %i, %j) heads = 4 : f32
      %y = arith.addf %s, %bias : f32
      posenc.yield %y : f32
    })",
         [](reference::AttentionSpec &spec) {
           spec.score = [](double s, int64_t, int64_t h, int64_t i, int64_t j) {
             return s - std::exp2(-2.0 * (h + 1)) * std::fabs(double(j - i));
           };
         }}
        .causal(),
    Case{"Where",
         {},
         "",
         "",
         kDocuments,
         [](reference::AttentionSpec &spec) {
           spec.sees = [](int64_t, int64_t, int64_t i, int64_t j) {
             return std::max<int64_t>(i, 0) / 29 == j / 29;
           };
         },
         makeDocuments},
    Case{"WhereMoreQueries", sized(150, 101), "", "", kDocuments,
         [](reference::AttentionSpec &spec) {
           spec.sees = [](int64_t, int64_t, int64_t i, int64_t j) {
             return std::max<int64_t>(i, 0) / 29 == j / 29;
           };
         },
         makeDocuments},
    Case{"Mask",
         {},
         "",
         "mask(%x0 : tensor<?x4x?x?xf32>)",
         "",
         [](reference::AttentionSpec &spec) {
           spec.mask = {toReference(makeMask(true)[0].array), false};
         },
         [](posenc_dtype) { return makeMask(true); }},
    Case{"MaskOfKeys",
         {},
         "",
         "mask(%x0 : tensor<?x1x1x?xf32>)",
         "",
         [](reference::AttentionSpec &spec) {
           spec.mask = {toReference(makeMask(false)[0].array), false};
         },
         [](posenc_dtype) { return makeMask(false); }}
        .headMajor(),
    Case{"Sinks", {}, "", "sinks(%x0 : tensor<4xf32>)", "", setSinks, makeSinks}
        .causal()
        .withLogSum(),
};

/// Cases that are also compiled for other element types and vector widths.
const Case kForms[] = {
    Case{"Plain", {}}.withLogSum(),
    Case{"Rotation", headed(4, 1, 64, 40), kRotated, "", "", setRotated}
        .headMajor(),
    Case{"OneQuery", decodeSizes(1, 203, 8, 2, 64, 80)}
        .headMajor()
        .withLogSum(),
    Case{"MultiToken", decodeSizes(3, 203, 6, 2, 64, 80),
         "causal window_left = 30", "", "", window(30, std::nullopt, true)}
        .headMajor()
        .withLogSum(),
    Case{"EightQueries", decodeSizes(8, 133, 8, 2, 128, 64)}
        .causal()
        .withLogSum(),
    Case{"Bias",
         {},
         "causal window_left = 50",
         "",
         kBias,
         [](reference::AttentionSpec &spec) {
           spec.causal = true;
           spec.left = 50;
           spec.score = [](double s, int64_t, int64_t h, int64_t i, int64_t j) {
             return s - std::fabs(double(j - i)) * h * 0.03;
           };
         }},
};

class AttentionVectorTest : public testing::TestWithParam<Case> {};
class AttentionFormTest : public testing::TestWithParam<Case> {};

TEST_P(AttentionVectorTest, MatchesOracle) {
  expectMatchesOracle(GetParam(), POSENC_F32, Route::Direct);
}
INSTANTIATE_TEST_SUITE_P(All, AttentionVectorTest, testing::ValuesIn(kCases),
                         getCaseName);

TEST_P(AttentionFormTest, MatchesOracle) {
  for (posenc_dtype dtype : {POSENC_F16, POSENC_BF16})
    expectMatchesOracle(GetParam(), dtype, Route::Direct);
  for (Route route : {Route::Vectors128, Route::Vectors512, Route::Vector})
    expectMatchesOracle(GetParam(), POSENC_F32, route);
}
INSTANTIATE_TEST_SUITE_P(Some, AttentionFormTest, testing::ValuesIn(kForms),
                         getCaseName);

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

const Fault kFaults[] = {
    control(),
    {"Scale", splat(0.180336878), setConstant(0.18035)},
    {"ExpCoefficient", splat(0.240222424), setConstant(0.2403)},
    {"ExpRounding", splat(0x1.8p23 + 127), setConstant(0x1.8p23 + 128)},
    {"ExpExponent", splat(23), setConstant(22)},
    {"MaxIsMin", cmpf(arith::CmpFPredicate::OGT),
     setPredicate(arith::CmpFPredicate::OLT)},
    {"AlmostCausal", cmpi(arith::CmpIPredicate::slt, onVectors()),
     setPredicate(arith::CmpIPredicate::sle)},
    {"Lane", denseConstant({0, 1, 2, 3, 4, 5, 6, 7}),
     setElements({0, 1, 2, 3, 5, 4, 6, 7})},
    {"Transposition", shuffle({0, 8, 1, 9, 2, 10, 3, 11}),
     setMask({0, 8, 1, 9, 2, 10, 11, 3})},
};

class AttentionExpFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(AttentionExpFaultTest, IsCaught) {
  expectFaultIsCaught(Case{"Fault", {}}.causal(), GetParam());
}
INSTANTIATE_TEST_SUITE_P(Vector, AttentionExpFaultTest,
                         testing::ValuesIn(kFaults), getFaultName);

} // namespace
