//===- AttentionFaults.cpp - seeded faults in attention -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionFaults.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <memory>
#include <optional>

using namespace posenc;
using namespace posenc::test;
namespace arith = mlir::arith;
namespace vector = mlir::vector;

LoweredAttention::LoweredAttention(const AttentionSubject &subject)
    : module(getModule(subject.attention), subject.stage,
             /*vectorBytes=*/subject.products == Products::F32 ? 32 : 64,
             subject.products),
      data(subject.attention, subject.sizes, /*seed=*/5) {
  switch (subject.keyValues) {
  case KeyValues::Finite:
    break;
  case KeyValues::SomeNonFinite:
    data.spoilSome(/*seed=*/5);
    break;
  case KeyValues::UnseenNonFinite:
    EXPECT_GT(data.spoilUnseen(/*seed=*/5), 0u);
    break;
  }
}

void posenc::test::PrintTo(const AttentionFault &fault, std::ostream *os) {
  PrintTo(fault.fault, os);
}

std::string posenc::test::getAttentionFaultName(
    const testing::TestParamInfo<AttentionFault> &info) {
  return info.param.fault.name;
}

std::vector<AttentionFault>
posenc::test::withSubject(const AttentionSubject &subject,
                          llvm::ArrayRef<Fault> faults) {
  auto lowered = std::make_shared<std::optional<LoweredAttention>>();
  auto getAttention = [=]() -> const LoweredAttention & {
    if (!*lowered)
      lowered->emplace(subject);
    return **lowered;
  };
  std::vector<AttentionFault> result;
  for (const Fault &fault : faults)
    result.push_back({getAttention, fault});
  return result;
}

TEST_P(AttentionFaultTest, IsCaught) {
  const auto &[getAttention, fault] = GetParam();
  const LoweredAttention &attention = getAttention();
  Kernel kernel = compileWithFault(attention.module, fault);
  std::string error =
      attention.data.check(kernel.call("f", attention.data.getInputs()));
  EXPECT_EQ(error.empty(), fault.isControl()) << error;
}

AttentionCase test::getAllFeaturesCase() {
  AttentionCase c;
  c.heads = 6;
  c.causal = c.norms = c.alibi = c.softCap = c.sinks = c.logSums = true;
  c.lengths = true;
  c.left = 30;
  c.scale = 0.25;
  c.queryAngles = c.keyAngles = Angles::TokenIndices;
  return c;
}

AttentionCase test::getPrefillCase() {
  AttentionCase c;
  c.heads = 6;
  c.causal = c.norms = c.sinks = c.logSums = c.lengths = true;
  c.left = 150;
  c.scale = 0.25;
  c.queryAngles = Angles::Positions;
  c.keyAngles = Angles::TokenIndices;
  return c;
}

Matcher test::isExponent() {
  // Every exponential first raises its argument to -127.
  return op<arith::SubFOp>(
      onVectors(),
      usedBy(cmpf(arith::CmpFPredicate::OGT, operand(0, constant(-127.0)))));
}

bool test::isI64(mlir::Operation *op) {
  return op->getNumResults() > 0 && op->getResult(0).getType().isInteger(64);
}

Matcher test::isStoredAsSum() {
  return usedBy<vector::StoreOp>(operand(2, constant(1)),
                                 operand(3, constant(0)));
}

Matcher test::isStoredAsAccumulator() {
  return usedBy<vector::StoreOp>(operand(2, op<arith::ConstantOp>()),
                                 operand(3, inductionVariable()));
}

Matcher test::isWeightZero() {
  return cmpf(arith::CmpFPredicate::OEQ, onVectors(), operand(1, constant(0.0)),
              usedBy<arith::SelectOp>(operand(2, op<mlir::math::FmaOp>())));
}
