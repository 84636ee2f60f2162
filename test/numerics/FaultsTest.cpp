//===- FaultsTest.cpp - seeded faults in rope kernels ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests the checks of this folder: each fault is seeded into a kernel's source
// or generated code, and the error of the result must exceed the limit that the
// unchanged kernel keeps.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

using namespace posenc;
using namespace posenc::test;

namespace {

const char kRight[] = R"(
func.func @f(%x: tensor<?x4x40xf32>, %p: tensor<?xi64>) -> tensor<?x4x40xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 32, base = 500000, scaling = #posenc.linear<factor = 4>>
    ins(%x : tensor<?x4x40xf32>) positions(%p : tensor<?xi64>) dims = [0] offset = 4 outs(%x : tensor<?x4x40xf32>)
  return %r : tensor<?x4x40xf32>
}
)";

const Fault kFaults[] = {
    {"Control", "", ""},
    {"Pairing", "rope half", "rope interleaved"},
    {"Direction", "rope half", "rope half inverse"},
    {"Base", "base = 500000", "base = 500001"},
    {"Factor", "factor = 4", "factor = 4.00001"},
    {"NoScaling", ", scaling = #posenc.linear<factor = 4>", ""},
    {"WindowBefore", "offset = 4", "offset = 3"},
    {"WindowAfter", "offset = 4", "offset = 5"},
    {"WindowNarrow", "dim = 32", "dim = 30"},
    {"WindowWide", "dim = 32", "dim = 34"},
};

/// Faults seeded into the code printed at the vector stage.
const Fault kCodeFaults[] = {
    {"Control", "", ""},
    {"Sign", "dense<-9223372036854775808>", "dense<0>"},
    {"HalfPi", "dense<1.5707963267881>", "dense<1.57079>"},
    {"One", "dense<1.000000e+00>", "dense<1.000001>"},
    {"CosCoefficient", "dense<-1.2337005493742192>", "dense<-1.2335>"},
    {"SinCoefficient", "dense<-0.6459640961467954>", "dense<-0.645967>"},
    {"Run", "arith.constant -16 : i64", "arith.constant -64 : i64"},
    {"StepInRun", "arith.constant 15 : i64", "arith.constant 7 : i64"},
    {"Eighth", "dense<536870912>", "dense<0>"},
    {"PartnerLane", "arith.constant 20 : index", "arith.constant 21 : index"},
    {"PassThroughLane", "arith.constant 36 : index",
     "arith.constant 35 : index"},
    {"Minus", "arith.negf", "math.absf"},
    {"SwappedTables", "arith.cmpi slt", "arith.cmpi sge"},
};

class FaultTest : public testing::TestWithParam<Fault> {};
class CodeFaultTest : public testing::TestWithParam<Fault> {};

/// Calls a kernel with `positions` and compares its result with the oracle's
/// for kRight and `expectedPositions`.
reference::Comparison check(const Kernel &kernel,
                            const std::vector<int64_t> &positions,
                            const std::vector<int64_t> &expectedPositions) {
  int64_t count = expectedPositions.size();
  runtime::Array x = makeRandom(POSENC_F32, {count, 4, 40}, 21);
  runtime::Array p = makePositions(POSENC_I64, {count}, positions);
  std::vector<runtime::Array> results =
      kernel.call("f", {x.value(), p.value()});
  if (results.empty())
    return {};
  reference::FrequencySpec spec{};
  spec.dim = 32;
  spec.base = 500000;
  spec.kind = reference::ScalingKind::Linear;
  spec.factor = 4;
  reference::RotateOptions options;
  options.windowOffset = 4;
  options.positionDims = {0};
  return reference::compare(
      reference::DType::F32, results.front().data(),
      reference::rope(toReference(x), spec, {}, expectedPositions, options));
}

long double getLimit() {
  return reference::defaultLimitUlp(reference::ResultKind::Rotated,
                                    reference::DType::F32, false);
}

TEST_P(FaultTest, IsCaught) {
  std::vector<int64_t> positions = hardPositions(40);
  reference::Comparison comparison =
      check(Kernel(replace(kRight, GetParam())), positions, positions);
  EXPECT_EQ(comparison.within(getLimit()),
            std::string(GetParam().name) == "Control")
      << static_cast<double>(comparison.maxUlp);
}
INSTANTIATE_TEST_SUITE_P(Source, FaultTest, testing::ValuesIn(kFaults),
                         getFaultName);

TEST_P(CodeFaultTest, IsCaught) {
  std::vector<int64_t> positions = hardPositions(40);
  // A fixed vector width gives the same text on every machine.
  std::string code =
      lowerToText(kRight, mlir::posenc::Stage::Vector, /*vectorBytes=*/32);
  reference::Comparison comparison =
      check(Kernel(replace(code, GetParam())), positions, positions);
  EXPECT_EQ(comparison.within(getLimit()),
            std::string(GetParam().name) == "Control")
      << static_cast<double>(comparison.maxUlp);
}
INSTANTIATE_TEST_SUITE_P(Code, CodeFaultTest, testing::ValuesIn(kCodeFaults),
                         getFaultName);

TEST(FaultTest, OffByOnePositionIsCaught) {
  std::vector<int64_t> positions = hardPositions(40), shifted = positions;
  Kernel kernel(kRight);
  for (size_t i = 0; i < positions.size(); ++i) {
    ++shifted[i];
    EXPECT_FALSE(check(kernel, shifted, positions).within(getLimit())) << i;
    --shifted[i];
  }
}

} // namespace
