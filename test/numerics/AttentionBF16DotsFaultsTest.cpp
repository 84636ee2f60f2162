//===- AttentionBF16DotsFaultsTest.cpp - faults in bf16 dots --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Faults in the vector code of a prefill that uses bf16 dot products.
//
//===----------------------------------------------------------------------===//

#include "AttentionFaults.h"

#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace posenc;
using namespace posenc::test;
namespace arith = mlir::arith;
using arith::CmpFPredicate;

namespace {

AttentionCase getDotsCase() {
  AttentionCase c;
  c.dtype = POSENC_BF16;
  c.causal = c.lengths = c.sinks = true;
  c.keyAngles = Angles::TokenIndices;
  return c;
}

/// Swaps the halves of a pair of bf16. The operand `shifted` is the one that is
/// shifted to its half.
Edit swapHalves(unsigned shifted) {
  return [=](mlir::Operation *op) {
    mlir::OpOperand &half = op->getOpOperand(1 - shifted);
    mlir::OpOperand &other =
        op->getOperand(shifted).getDefiningOp()->getOpOperand(0);
    mlir::Value value = half.get();
    half.set(other.get());
    other.set(value);
  };
}

const Fault kDotsFaults[] = {
    control(),
    {"SwappedQueries",
     op<arith::OrIOp>(onVectors(), operand(1, op<arith::ShLIOp>())),
     swapHalves(1)},
    {"SwappedWeights",
     op<arith::OrIOp>(onVectors(), operand(0, op<arith::ShRUIOp>())),
     swapHalves(0)},
    {"OddValuesDropped",
     op<arith::ShLIOp>(onVectors(), usedBy<arith::SelectOp>()),
     replaceWith<arith::ShRUIOp>()},
    {"OtherFactor", op<mlir::x86vector::DotBF16Op>(), copyOperand(1, 2)},
    {"OddWeightsNotInSum",
     op<arith::AddFOp>(
         operand(0, op<arith::AddFOp>(operand(0, loopCarried())))),
     replaceWith<arith::MaximumFOp>()},
};
INSTANTIATE_TEST_SUITE_P(
    BF16Dots, AttentionFaultTest,
    testing::ValuesIn(withSubject({getDotsCase(),
                                   {3, 40, 331},
                                   KeyValues::Finite,
                                   mlir::posenc::Stage::Vector,
                                   Products::BF16Dots},
                                  kDotsFaults)),
    getAttentionFaultName);

const Fault kNonFiniteDotsFaults[] = {
    control(),
    {"NonFiniteNotDetected", cmpf(CmpFPredicate::UNO),
     setPredicate(CmpFPredicate::ONE)},
    {"ZeroWeightCounts", isWeightZero(), setPredicate(CmpFPredicate::ONE)},
};
INSTANTIATE_TEST_SUITE_P(
    BF16DotsNonFinite, AttentionFaultTest,
    testing::ValuesIn(withSubject({getDotsCase(),
                                   {3, 40, 331},
                                   KeyValues::SomeNonFinite,
                                   mlir::posenc::Stage::Vector,
                                   Products::BF16Dots},
                                  kNonFiniteDotsFaults)),
    getAttentionFaultName);

} // namespace
