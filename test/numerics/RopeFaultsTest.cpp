//===- RopeFaultsTest.cpp - seeded faults in posenc.rope ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Faults in the attributes of posenc.rope, and in the vector code made of it.
// Each must be beyond the limit that the control keeps.
//
//===----------------------------------------------------------------------===//

#include "Faults.h"

#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace posenc;
using namespace posenc::test;
namespace arith = mlir::arith;
using mlir::Builder;
using mlir::posenc::FrequenciesAttr;
using mlir::posenc::LinearScalingAttr;
using mlir::posenc::RopeOp;

namespace {

const char kRope[] = R"(
func.func @f(%x: tensor<?x4x40xf32>, %p: tensor<?xi64>) -> tensor<?x4x40xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 32, base = 500000, scaling = #posenc.linear<factor = 4>>
    ins(%x : tensor<?x4x40xf32>) positions(%p : tensor<?xi64>) dims = [0] offset = 4 outs(%x : tensor<?x4x40xf32>)
  return %r : tensor<?x4x40xf32>
}
)";

Edit setFrequencies(int64_t dim, double base) {
  return changeAttrs<FrequenciesAttr>([=](FrequenciesAttr frequencies) {
    Builder builder(frequencies.getContext());
    return FrequenciesAttr::get(
        builder.getContext(), dim, builder.getF64FloatAttr(base),
        frequencies.getScaling(), frequencies.getPrecision());
  });
}

const Fault kSourceFaults[] = {
    control(),
    {"Pairing", op<RopeOp>(), change<RopeOp>([](RopeOp op) {
       op.setPairing(mlir::posenc::Pairing::Interleaved);
     })},
    {"Direction", op<RopeOp>(),
     change<RopeOp>([](RopeOp op) { op.setInverse(true); })},
    {"Base", op<RopeOp>(), setFrequencies(32, 500001)},
    {"Factor", op<RopeOp>(),
     changeAttrs<LinearScalingAttr>([](LinearScalingAttr scaling) {
       Builder builder(scaling.getContext());
       return LinearScalingAttr::get(builder.getContext(),
                                     builder.getF64FloatAttr(4.00001));
     })},
    {"NoScaling", op<RopeOp>(),
     changeAttrs<FrequenciesAttr>([](FrequenciesAttr frequencies) {
       return FrequenciesAttr::get(frequencies.getContext(),
                                   frequencies.getDim(), frequencies.getBase(),
                                   /*scaling=*/{}, frequencies.getPrecision());
     })},
    {"OffsetBefore", op<RopeOp>(), setAttr("offset", 3)},
    {"OffsetAfter", op<RopeOp>(), setAttr("offset", 5)},
    {"DimNarrow", op<RopeOp>(), setFrequencies(30, 500000)},
    {"DimWide", op<RopeOp>(), setFrequencies(34, 500000)},
};

const Fault kVectorFaults[] = {
    control(),
    {"Sign", splat(std::numeric_limits<int64_t>::min()), setConstant(0)},
    {"HalfPi", splat(1.5707963267881), setConstant(1.57079)},
    {"One", splat(1.0), setConstant(1.000001)},
    {"CosCoefficient", splat(-1.2337005493742192), setConstant(-1.2335)},
    {"SinCoefficient", splat(-0.6459640961467954), setConstant(-0.645967)},
    // Runs have 16 positions.
    {"Run", integerConstant(64, -16), setConstant(-64)},
    {"IndexInRun", integerConstant(64, 15), setConstant(7)},
    {"EighthOfATurn", splat(536870912), setConstant(0)},
    {"PartnerLane", indexConstant(20), setConstant(21)},
    {"PassThroughLane", indexConstant(36), setConstant(35)},
    {"RotationSign", op<arith::NegFOp>(), replaceWith<mlir::math::AbsFOp>()},
    {"SwappedTables", cmpi(arith::CmpIPredicate::slt),
     setPredicate(arith::CmpIPredicate::sge)},
};

/// Compares the results at the positions `given` with those that the oracle
/// has at the positions `meant`.
reference::Comparison check(const Kernel &kernel,
                            const std::vector<int64_t> &given,
                            const std::vector<int64_t> &meant) {
  int64_t count = meant.size();
  runtime::Array x = makeRandom(POSENC_F32, {count, 4, 40}, 21);
  runtime::Array p = makePositions(POSENC_I64, {count}, given);
  std::vector<runtime::Array> results =
      kernel.call("f", {x.value(), p.value()});
  if (results.empty())
    return {};
  reference::FrequencySpec spec = getFrequencies(
      "dim = 32, base = 500000, scaling = #posenc.linear<factor = 4>");
  reference::RotateOptions options;
  options.windowOffset = 4;
  options.positionDims = {0};
  return reference::compare(
      reference::DType::F32, results.front().data(),
      reference::rope(toReference(x), spec, {}, meant, options));
}

long double getLimit() {
  return reference::defaultLimitUlp(reference::ResultKind::Rotated,
                                    reference::DType::F32, false);
}

void expectCaught(const LoweredModule &module, const Fault &fault) {
  std::vector<int64_t> positions = hardPositions(40);
  reference::Comparison comparison =
      check(compileWithFault(module, fault), positions, positions);
  EXPECT_EQ(comparison.within(getLimit()), fault.isControl())
      << static_cast<double>(comparison.maxUlp);
}

class RopeFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(RopeFaultTest, IsCaught) {
  expectCaught(LoweredModule(kRope, mlir::posenc::Stage::Posenc), GetParam());
}
INSTANTIATE_TEST_SUITE_P(Source, RopeFaultTest,
                         testing::ValuesIn(kSourceFaults), getFaultName);

class RopeVectorFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(RopeVectorFaultTest, IsCaught) {
  // Vectors have a fixed width, so that the IR is the same on every machine.
  expectCaught(LoweredModule(kRope, mlir::posenc::Stage::Vector,
                             /*vectorBytes=*/32),
               GetParam());
}
INSTANTIATE_TEST_SUITE_P(Vector, RopeVectorFaultTest,
                         testing::ValuesIn(kVectorFaults), getFaultName);

TEST(RopeFaultTest, OffByOnePositionIsCaught) {
  std::vector<int64_t> positions = hardPositions(40), shifted = positions;
  Kernel kernel(kRope);
  for (size_t i = 0; i < positions.size(); ++i) {
    ++shifted[i];
    EXPECT_FALSE(check(kernel, shifted, positions).within(getLimit())) << i;
    --shifted[i];
  }
}

} // namespace
