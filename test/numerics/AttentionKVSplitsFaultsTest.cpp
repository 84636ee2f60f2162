//===- AttentionKVSplitsFaultsTest.cpp - faults in KV splits --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Faults in the vector code of decode where the keys of a head are split, and
// the results of the splits are merged.
//
//===----------------------------------------------------------------------===//

#include "AttentionFaults.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace posenc;
using namespace posenc::test;
namespace arith = mlir::arith;
namespace math = mlir::math;
namespace scf = mlir::scf;
namespace vector = mlir::vector;
using arith::CmpIPredicate;

namespace {

/// Returns a case with one key head, so that there are more tasks than heads.
AttentionCase getSplitsCase() {
  AttentionCase c;
  c.staticQueries = 1;
  c.keyHeadMajor = c.sinks = true;
  c.heads = 4;
  c.keyHeads = 1;
  c.dim = c.valueDim = 64;
  return c;
}

/// Matches `merged * factor + split * factor`.
template <typename... Conditions> Matcher isMerged(Conditions... conditions) {
  return op<math::FmaOp>(operand(2, op<arith::MulFOp>()), conditions...);
}

/// Matches `split * factor`.
template <typename... Conditions> Matcher isSplit(Conditions... conditions) {
  return op<arith::MulFOp>(operand(0, op<vector::LoadOp>()),
                           usedBy(isMerged(conditions...)));
}

/// Matches the test for the first split.
Matcher isFirstSplit() {
  return cmpi(CmpIPredicate::eq, operand(0, inductionVariable()),
              operand(1, constant(0)), usedBy<arith::SelectOp>());
}

/// Matches the first key of a split, which is at most the number of keys.
template <typename Split> Matcher isFirstKey(Split split) {
  return op<arith::MinSIOp>(
      operand(1, op<arith::MulIOp>(operand(
                     0, op<arith::DivUIOp>(operand(
                            0, op<arith::MulIOp>(operand(1, split))))))));
}

const Fault kSplitsFaults[] = {
    control(),
    {"InitialMax", splat(-std::numeric_limits<float>::max()),
     setConstant(std::numeric_limits<float>::max())},
    {"NoRescalingOfMergedSums", isMerged(isStoredAsSum()),
     replaceWith<arith::AddFOp>({0, 2})},
    {"NoRescalingOfMergedAccumulators", isMerged(isStoredAsAccumulator()),
     replaceWith<arith::AddFOp>({0, 2})},
    {"NoRescalingOfSums", isSplit(isStoredAsSum()), forward(0)},
    {"NoRescalingOfAccumulators", isSplit(isStoredAsAccumulator()), forward(0)},
    {"SinkInEverySplit", isFirstSplit(), setPredicate(CmpIPredicate::sge)},
    {"SinkInNoSplit", isFirstSplit(), setPredicate(CmpIPredicate::slt)},
    {"BeginOfSplit", isFirstKey(inductionVariable()), setOperand(1, 0)},
    {"EndOfSplit", isFirstKey(op<arith::AddIOp>()),
     replaceWith<arith::MaxSIOp>()},
};
// The workspace has no room for so many sequences, so that one task does all
// splits of a sequence.
INSTANTIATE_TEST_SUITE_P(KVSplitsOfOneTask, AttentionFaultTest,
                         testing::ValuesIn(withSubject(
                             {getSplitsCase(), {20, 1, 600}}, kSplitsFaults)),
                         getAttentionFaultName);
// Tasks leave their splits in the workspace, where another task merges them.
INSTANTIATE_TEST_SUITE_P(KVSplitsOfManyTasks, AttentionFaultTest,
                         testing::ValuesIn(withSubject(
                             {getSplitsCase(), {2, 1, 1300}}, kSplitsFaults)),
                         getAttentionFaultName);

const Fault kWorkspaceFaults[] = {
    {"FirstSplitDropped", op<scf::ForOp>(operand(1, op<arith::MaxSIOp>())),
     setOperand(0, 1)},
    {"SplitsShareWorkspace",
     op<arith::AddIOp>(usedBy<arith::MulIOp>(operand(1, constant(280)))),
     forward(0)},
    {"OffsetOfAccumulators",
     op<arith::AddIOp>(operand(0, op<arith::MulIOp>()),
                       operand(1, constant(24)),
                       usedBy<arith::AddIOp>(operand(1, inductionVariable()))),
     setOperand(1, 8)},
    {"MergedIsLast", isMerged(isStoredAsAccumulator()), forward(2)},
};
INSTANTIATE_TEST_SUITE_P(KVSplitsWorkspace, AttentionFaultTest,
                         testing::ValuesIn(withSubject({getSplitsCase(),
                                                        {2, 1, 1300}},
                                                       kWorkspaceFaults)),
                         getAttentionFaultName);

} // namespace
