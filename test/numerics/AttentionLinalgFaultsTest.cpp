//===- AttentionLinalgFaultsTest.cpp - faults in linalg -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Faults in attention after posenc-to-linalg.
//
//===----------------------------------------------------------------------===//

#include "AttentionFaults.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace posenc;
using namespace posenc::test;
namespace affine = mlir::affine;
namespace arith = mlir::arith;
namespace linalg = mlir::linalg;
namespace math = mlir::math;
using arith::CmpFPredicate;
using arith::CmpIPredicate;

namespace {

/// Matches the element of an input of a linalg.generic, or the old element of
/// an output.
ValueMatcher isElement(bool ofOutput) {
  return [=](mlir::Value value) {
    auto argument = mlir::dyn_cast<mlir::BlockArgument>(value);
    if (!argument)
      return false;
    auto generic =
        mlir::dyn_cast<linalg::GenericOp>(argument.getOwner()->getParentOp());
    return generic &&
           (argument.getArgNumber() >= generic.getNumDpsInputs()) == ofOutput;
  };
}
ValueMatcher inputElement() { return isElement(/*ofOutput=*/false); }
ValueMatcher outputElement() { return isElement(/*ofOutput=*/true); }

const Fault kLinalgFaults[] = {
    control(),
    {"HeadGroup", op<affine::AffineApplyOp>(mapConstant(3)),
     setMapConstant(3, 6)},
    {"WindowConstant", indexConstant(30), setConstant(29)},
    {"KeysOfTile", op<affine::AffineMinOp>(mapConstant(32)),
     setMapConstant(32, 31)},
    {"QueriesOfTile", op<affine::AffineMinOp>(mapConstant(16)),
     setMapConstant(16, 15)},
    {"Step", op<mlir::scf::ForOp>(operand(2, constant(32))), setOperand(2, 30)},
    {"MaxIsMin", cmpf(CmpFPredicate::OGT), setPredicate(CmpFPredicate::OLT)},
    {"ExpInBase2", op<math::ExpOp>(), replaceWith<math::Exp2Op>()},
    {"DiagonalMasked", cmpi(CmpIPredicate::sle, operand(1, constant(0))),
     setPredicate(CmpIPredicate::slt)},
    {"LogInBase2", op<math::LogOp>(), replaceWith<math::Log2Op>()},
    {"NoRescaling", op<math::FmaOp>(operand(1, outputElement())),
     replaceWith<arith::AddFOp>({1, 2})},
    {"SumIsMax",
     op<arith::AddFOp>(operand(0, inputElement()), operand(1, outputElement())),
     replaceWith<arith::MaximumFOp>()},
    {"NormRoot", op<math::SqrtOp>(), replaceWith<math::AbsFOp>()},
    {"WindowInverted", cmpi(CmpIPredicate::sle, operand(1, constant(30))),
     setPredicate(CmpIPredicate::sge)},
    {"NothingMasked",
     op<arith::SelectOp>(
         operand(2, constant(-std::numeric_limits<double>::infinity())),
         usedBy<linalg::YieldOp>()),
     forward(1)},
};
INSTANTIATE_TEST_SUITE_P(
    Linalg, AttentionFaultTest,
    testing::ValuesIn(withSubject({getAllFeaturesCase(),
                                   {3, 37, 75},
                                   KeyValues::Finite,
                                   mlir::posenc::Stage::Linalg},
                                  kLinalgFaults)),
    getAttentionFaultName);

} // namespace
