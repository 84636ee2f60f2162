//===- AttentionDecodeFaultsTest.cpp - faults in decode -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Faults in the vector code of decode, of one query and of several of each
// sequence.
//
//===----------------------------------------------------------------------===//

#include "AttentionFaults.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace posenc;
using namespace posenc::test;
namespace arith = mlir::arith;
namespace math = mlir::math;
namespace memref = mlir::memref;
namespace scf = mlir::scf;
namespace vector = mlir::vector;
using arith::CmpFPredicate;
using arith::CmpIPredicate;

namespace {

//===----------------------------------------------------------------------===//
// One query
//===----------------------------------------------------------------------===//

AttentionCase getDecodeCase() {
  AttentionCase c = getPrefillCase();
  c.staticQueries = 1;
  c.heads = 4;
  return c;
}

/// Matches the scf.if for tiles that raise a running max. It rescales the sums
/// and accumulators in memory and computes the weights of the tile again.
Matcher isNewMax() {
  return op<scf::IfOp>(operand(0, op<vector::ReductionOp>()));
}

/// Matches the product of numbers in memory and the factor of a new max.
template <typename... Conditions> Matcher isRescaled(Conditions... conditions) {
  return op<arith::MulFOp>(operand(0, op<vector::LoadOp>()), conditions...);
}

/// Yields the sums of the weights that the old max gave.
void yieldOldSums(scf::IfOp op) {
  op.thenYield()->setOperands(op.elseYield()->getOperands());
}

const Fault kDecodeFaults[] = {
    control(),
    {"Scale", splat(0.360673755), setConstant(0.3608)},
    {"NoMax", isExponent(), forward(0)},
    {"MaxIsMin", cmpf(CmpFPredicate::OGT), setPredicate(CmpFPredicate::OLT)},
    {"NoRescalingOfAccumulators", isRescaled(isStoredAsAccumulator()),
     forward(0)},
    {"NoRescalingOfSums", isRescaled(isStoredAsSum()), forward(0)},
    {"SumsOfOldWeights", isNewMax(), change<scf::IfOp>(yieldOldSums)},
    {"ExpExponent", splat(23), setConstant(22)},
    {"KeyAfterLast",
     cmpi(CmpIPredicate::sgt, onVectors(), operand(1, op<arith::ConstantOp>())),
     setPredicate(CmpIPredicate::sge)},
    {"LanesOfScores", shuffle({0, 8, 1, 9, 4, 12, 5, 13}),
     setMask({8, 0, 1, 9, 4, 12, 5, 13})},
    {"AcrossKeys", shuffle({4, 5, 6, 7, 0, 1, 2, 3}),
     setMask({0, 1, 2, 3, 4, 5, 6, 7})},
    {"TileDropped", op<scf::ForOp>(operand(2, constant(64))), doubleOperand(2)},
    {"WindowNarrow", indexConstant(-151), setConstant(-150)},
    {"ValuesAreKeys", op<vector::LoadOp>(operand(0, argument(2))),
     setOperandToArgument(0, 1)},
    {"SinkInBase2", splat(1.44269502), setConstant(1.0)},
    {"LogOf2", splat(0.693147182), setConstant(0.6932)},
    {"RotationSign", op<arith::NegFOp>(), replaceWith<math::AbsFOp>()},
    {"NormEpsilon", constant(1e-5), setConstant(1e-3)},
    {"KeyPosition", op<arith::IndexCastOp>(onIndices(), isI64),
     addToOperand(0, 1)},
};
INSTANTIATE_TEST_SUITE_P(Decode, AttentionFaultTest,
                         testing::ValuesIn(withSubject(
                             {getDecodeCase(), {3, 1, 331}}, kDecodeFaults)),
                         getAttentionFaultName);

//===----------------------------------------------------------------------===//
// Three queries
//===----------------------------------------------------------------------===//

/// Returns a case with three queries in each sequence. A key head has four
/// register tiles of queries, of which the last is not full. Only the first and
/// the last tile of keys have masked keys.
AttentionCase getSpeculativeCase() {
  AttentionCase c;
  c.staticQueries = 3;
  c.heads = 10;
  c.causal = c.sinks = c.logSums = c.lengths = true;
  c.left = 157;
  c.scale = 0.25;
  return c;
}

/// Matches the token of a query. A key head has 5 queries of each token.
template <typename... Conditions> Matcher isToken(Conditions... conditions) {
  return op<arith::DivUIOp>(operand(1, constant(5)), conditions...);
}

const Fault kSpeculativeFaults[] = {
    control(),
    {"TokenOfLane", op<arith::DivUIOp>(onVectors()),
     replaceWith<arith::MinUIOp>()},
    {"QueryOfLane", denseConstant({0, 1, 2, 3, 0, 1, 2, 3}),
     setElements({3, 1, 2, 0, 3, 1, 2, 0})},
    {"KeyOfLane", denseConstant({0, 0, 0, 0, 1, 1, 1, 1}),
     setElements({0, 0, 0, 0, 0, 0, 0, 0})},
    {"AlmostCausal",
     cmpi(CmpIPredicate::sgt, onVectors(), operand(0, op<arith::MinSIOp>())),
     setPredicate(CmpIPredicate::sge)},
    {"WindowNarrow", cmpi(CmpIPredicate::sle, onVectors()),
     setPredicate(CmpIPredicate::slt)},
    {"OneMaskSuffices",
     op<arith::AndIOp>(onVectors(), usedBy<arith::SelectOp>()),
     replaceWith<arith::OrIOp>()},
    {"WindowUnmasked", cmpi(CmpIPredicate::sge, onIndices()),
     setPredicate(CmpIPredicate::ne)},
    {"DiagonalUnmasked", indexConstant(-2), setConstant(0)},
    {"QueryDropped", op<scf::ForOp>(operand(1, constant(15))),
     setOperand(1, 8)},
    {"QueryOfOtherToken", isToken(operand(0, inductionVariable())),
     replaceWithMin(2)},
    {"QueriesOfKeyHead",
     op<arith::MulIOp>(operand(0, inductionVariable()),
                       operand(1, constant(16))),
     setOperand(1, 8)},
    {"WeightsOfFirstTile",
     op<arith::RemUIOp>(usedBy<arith::MulIOp>(operand(1, constant(128)))),
     replaceWithMin(0)},
    {"MaxOfFirstTile",
     op<arith::MulIOp>(operand(1, constant(2)), usedBy<vector::LoadOp>()),
     setOperand(1, 0)},
    {"HeadOfSink",
     op<arith::RemUIOp>(operand(1, constant(5)),
                        usedBy<arith::AddIOp>(usedBy<memref::LoadOp>())),
     replaceWithMin(4)},
    {"ResultOfOtherToken", isToken(usedBy<memref::StoreOp>()),
     replaceWithMin(2)},
    {"ResultDropped",
     op<arith::MinSIOp>(operand(1, constant(4)), usedBy<scf::ForOp>()),
     setOperand(1, 2)},
    {"KeyHeadOfTile",
     op<arith::DivUIOp>(operand(1, constant(4)),
                        usedBy<vector::LoadOp>(operand(0, argument(1)))),
     setOperand(1, 8)},
};
INSTANTIATE_TEST_SUITE_P(Speculative, AttentionFaultTest,
                         testing::ValuesIn(withSubject({getSpeculativeCase(),
                                                        {3, 3, 331}},
                                                       kSpeculativeFaults)),
                         getAttentionFaultName);

const Fault kNonFiniteFaults[] = {
    control(),
    {"ZeroWeightCounts", isWeightZero(), setPredicate(CmpFPredicate::OLT)},
};
INSTANTIATE_TEST_SUITE_P(
    SpeculativeNonFinite, AttentionFaultTest,
    testing::ValuesIn(withSubject(
        {getSpeculativeCase(), {40, 3, 40}, KeyValues::SomeNonFinite},
        kNonFiniteFaults)),
    getAttentionFaultName);

//===----------------------------------------------------------------------===//
// Any number of queries
//===----------------------------------------------------------------------===//

AttentionCase getDynamicQueriesCase() {
  AttentionCase c = getSpeculativeCase();
  c.staticQueries = 0;
  return c;
}

const Fault kDynamicQueriesFaults[] = {
    control(),
    {"LastTileDropped", op<arith::CeilDivUIOp>(operand(1, constant(4))),
     replaceWith<arith::DivUIOp>()},
    {"QueriesOf4Heads",
     op<arith::MulIOp>(operand(1, constant(5)), usedBy<arith::CeilDivUIOp>()),
     setOperand(1, 4)},
};
INSTANTIATE_TEST_SUITE_P(DynamicQueries, AttentionFaultTest,
                         testing::ValuesIn(withSubject({getDynamicQueriesCase(),
                                                        {3, 3, 331}},
                                                       kDynamicQueriesFaults)),
                         getAttentionFaultName);

//===----------------------------------------------------------------------===//
// score_mod, mask_mod and a mask that is added
//===----------------------------------------------------------------------===//

AttentionCase getModsCase() {
  AttentionCase c;
  c.staticQueries = 3;
  c.heads = 10;
  c.softCap = c.alibi = c.where = c.document = true;
  c.mask = Mask::Added;
  return c;
}

const Fault kModsFaults[] = {
    control(),
    {"AlibiSign", op<arith::NegFOp>(onVectors()), replaceWith<math::AbsFOp>()},
    {"TwiceTheSoftCap", splat(2.5), setConstant(5.0)},
    {"ScoreNotInBase2", splat(1.44269502), setConstant(1.0)},
    {"MaskInverted", cmpf(CmpFPredicate::UNE),
     setPredicate(CmpFPredicate::UEQ)},
    {"MaskSign", op<arith::AddFOp>(operandUsedBy(1, cmpf(CmpFPredicate::UNE))),
     replaceWith<arith::SubFOp>()},
    {"MaskModInverted",
     cmpi(CmpIPredicate::ne, onVectors(), operand(0, op<arith::RemSIOp>())),
     setPredicate(CmpIPredicate::eq)},
    {"ZeroWeightCounts", isWeightZero(), setPredicate(CmpFPredicate::OLT)},
};
INSTANTIATE_TEST_SUITE_P(
    Mods, AttentionFaultTest,
    testing::ValuesIn(withSubject(
        {getModsCase(), {3, 3, 331}, KeyValues::UnseenNonFinite}, kModsFaults)),
    getAttentionFaultName);

} // namespace
