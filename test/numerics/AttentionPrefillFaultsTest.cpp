//===- AttentionPrefillFaultsTest.cpp - faults in prefill -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Faults in the vector code of prefill, of contiguous and of paged keys.
//
//===----------------------------------------------------------------------===//

#include "AttentionFaults.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

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
// Prefill
//===----------------------------------------------------------------------===//

/// Matches a load or store of vectors of a memref of this rank.
template <typename OpTy> Matcher hasRank(int64_t rank) {
  return [=](mlir::Operation *candidate) {
    auto access = mlir::dyn_cast<OpTy>(candidate);
    return access && access.getMemRefType().getRank() == rank;
  };
}

/// Matches `old * factor + sum` that is stored where `old` was. Accumulators
/// have 3 dimensions, running sums have 2.
Matcher isRescaled(int64_t rank) {
  return op<math::FmaOp>(operand(0, op<vector::LoadOp>()),
                         usedBy(hasRank<vector::StoreOp>(rank)));
}

/// Matches the size of a tile in a loop over tiles. The last one may be
/// smaller.
Matcher isTileSize() {
  return op<arith::MinSIOp>(
      operand(0, op<arith::SubIOp>(operand(1, inductionVariable()))),
      operand(1, op<arith::ConstantOp>()));
}

/// Matches a loop over tiles.
bool isTileLoop(mlir::Operation *candidate) {
  auto loop = mlir::dyn_cast<scf::ForOp>(candidate);
  return loop && llvm::any_of(*loop.getBody(), [](mlir::Operation &child) {
           return isTileSize()(&child);
         });
}

const Fault kPrefillFaults[] = {
    control(),
    {"Scale", splat(0.360673755), setConstant(0.3608)},
    {"NoMax", isExponent(), forward(0)},
    {"MaxIsMin", cmpf(CmpFPredicate::OGT), setPredicate(CmpFPredicate::OLT)},
    {"InitialMax", splat(-std::numeric_limits<float>::max()),
     setConstant(std::numeric_limits<float>::max())},
    {"NoRescalingOfAccumulators", isRescaled(3),
     replaceWith<arith::AddFOp>({0, 2})},
    {"NoRescalingOfSums", isRescaled(2), replaceWith<arith::AddFOp>({0, 2})},
    {"SumIsMax",
     op<arith::AddFOp>(onVectors(), operand(0, loopCarried()),
                       usedBy<scf::YieldOp>()),
     replaceWith<arith::MaximumFOp>()},
    {"NoDivision", op<arith::DivFOp>(onVectors()),
     replaceWith<arith::MulFOp>()},
    {"ExpExponent", splat(23), setConstant(22)},
    {"ExpRounding", splat(0x1.8p23 + 127), setConstant(0x1.8p23 + 128)},
    {"ExpCoefficient", splat(0.0555073395), setConstant(0.0556)},
    {"LogOf2", splat(0.693147182), setConstant(0.6932)},
    {"LogExponent", splat(0.693145751), setConstant(0.6932)},
    {"LogMantissa", splat(8388607), setConstant(4194303)},
    {"LogSeries", splat(0.666666686), setConstant(0.66)},
    {"SinkInBase2", splat(1.44269502), setConstant(1.0)},
    {"AlmostCausal",
     cmpi(CmpIPredicate::slt, operand(0, op<vector::BroadcastOp>())),
     setPredicate(CmpIPredicate::sle)},
    {"WindowLanes", cmpi(CmpIPredicate::sge, onVectors()),
     setPredicate(CmpIPredicate::sgt)},
    {"WindowNarrow", indexConstant(-150), setConstant(-149)},
    {"WindowWide", indexConstant(-150), setConstant(-151)},
    {"KeysOfTile", isTileSize(), setOperand(1, 1)},
    {"TileDropped", isTileLoop, doubleOperand(2)},
    {"QueryTail", op<arith::CeilDivSIOp>(operand(1, constant(16))),
     replaceWith<arith::DivSIOp>()},
    {"DiagonalUnmasked",
     cmpi(CmpIPredicate::slt, onIndices(), usedBy<arith::OrIOp>()),
     setPredicate(CmpIPredicate::sgt)},
    {"WindowUnmasked",
     cmpi(CmpIPredicate::sgt, onIndices(), usedBy<arith::OrIOp>()),
     setPredicate(CmpIPredicate::slt)},
    {"HeadGroup", op<arith::DivUIOp>(onIndices(), operand(1, constant(3))),
     setOperand(1, 6)},
    {"Lane", denseConstant({0, 1, 2, 3, 4, 5, 6, 7}),
     setElements({0, 1, 2, 3, 5, 4, 6, 7})},
    {"Transposition", shuffle({4, 12, 5, 13, 6, 14, 7, 15}),
     setMask({4, 12, 5, 13, 7, 14, 6, 15})},
    {"ValuesAreKeys", op<vector::LoadOp>(operand(0, argument(2))),
     setOperandToArgument(0, 1)},
    {"OtherVector",
     op<vector::LoadOp>(hasRank<vector::LoadOp>(3), operand(3, constant(8))),
     setOperand(3, 0)},
    {"RotationSign", op<arith::NegFOp>(), replaceWith<math::AbsFOp>()},
    {"RotationEighth", splat(536870912), setConstant(0)},
    {"KeyPosition", op<arith::IndexCastOp>(onIndices(), isI64),
     addToOperand(0, 1)},
    {"QueryPosition",
     op<arith::SubIOp>(operand(1, op<memref::DimOp>(operand(0, argument(0))))),
     setOperand(1, 1)},
    {"NormMean", constant(0.0625), setConstant(0.063)},
    {"NormRoot", op<math::SqrtOp>(), replaceWith<math::AbsFOp>()},
    {"NormEpsilon", constant(1e-5), setConstant(1e-3)},
};
INSTANTIATE_TEST_SUITE_P(Prefill, AttentionFaultTest,
                         testing::ValuesIn(withSubject(
                             {getPrefillCase(), {3, 40, 331}}, kPrefillFaults)),
                         getAttentionFaultName);

//===----------------------------------------------------------------------===//
// Infinities and NaNs in some keys and values
//===----------------------------------------------------------------------===//

const Fault kNonFiniteFaults[] = {
    control(),
    {"NonFiniteNotDetected", cmpf(CmpFPredicate::UNO),
     setPredicate(CmpFPredicate::ONE)},
    {"ZeroWeightCounts", isWeightZero(), setPredicate(CmpFPredicate::ONE)},
};
INSTANTIATE_TEST_SUITE_P(
    PrefillNonFinite, AttentionFaultTest,
    testing::ValuesIn(
        withSubject({getPrefillCase(), {3, 40, 331}, KeyValues::SomeNonFinite},
                    kNonFiniteFaults)),
    getAttentionFaultName);

//===----------------------------------------------------------------------===//
// Paged keys, and a mask that is added
//===----------------------------------------------------------------------===//

AttentionCase getPagedCase() {
  AttentionCase c;
  c.form = Form::Paged;
  c.causal = true;
  c.mask = Mask::Added;
  return c;
}

/// Matches the slot of a key in its page.
Matcher isSlot() { return op<arith::RemUIOp>(operand(1, op<memref::DimOp>())); }

const Fault kPagedFaults[] = {
    control(),
    {"PagesOfFirstSequence", op<memref::LoadOp>(operand(0, argument(4))),
     setOperand(1, 0)},
    {"SlotIs0", isSlot(), replaceWithMin(0)},
    {"SlotIsAtMost1", isSlot(), replaceWithMin(1)},
    {"MaskSign", op<arith::AddFOp>(operandUsedBy(1, cmpf(CmpFPredicate::UNE))),
     replaceWith<arith::SubFOp>()},
    {"MaskInverted", cmpf(CmpFPredicate::UNE),
     setPredicate(CmpFPredicate::UEQ)},
};
INSTANTIATE_TEST_SUITE_P(
    Paged, AttentionFaultTest,
    testing::ValuesIn(withSubject({getPagedCase(), {3, 40, 43}}, kPagedFaults)),
    getAttentionFaultName);

} // namespace
