//===- AttentionAMXFaultsTest.cpp - faults in AMX ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Faults in the vector code of a prefill that uses AMX tiles.
//
//===----------------------------------------------------------------------===//

#include "AttentionFaults.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace posenc;
using namespace posenc::test;
namespace amx = mlir::amx;
namespace arith = mlir::arith;
namespace vector = mlir::vector;
using arith::CmpFPredicate;

namespace {

/// Scores exceed those of the first keys by far, and blocks are cut short by
/// the mask.
AttentionCase getStepsCase() {
  AttentionCase c;
  c.dtype = POSENC_BF16;
  c.heads = 2, c.keyHeads = 1, c.dim = 32, c.valueDim = 128;
  c.causal = c.lengths = true;
  c.scale = 40;
  // Without a decode kernel, a tile of keys has room for several blocks.
  c.staticQueries = 70;
  return c;
}

/// A row sees few keys, so that few rows see a NaN.
AttentionCase getWindowCase() {
  AttentionCase c;
  c.dtype = POSENC_BF16;
  c.heads = 2, c.keyHeads = 1, c.dim = 32, c.valueDim = 64;
  c.left = c.right = 3;
  return c;
}

/// Sinks and log-sum-exp outputs, which need exact sums, and a score_mod that
/// loads elements.
AttentionCase getExactCase() {
  AttentionCase c;
  c.dtype = POSENC_BF16;
  c.heads = 2, c.keyHeads = 1, c.dim = 32, c.valueDim = 64;
  c.causal = c.lengths = c.t5 = c.sinks = c.logSums = true;
  return c;
}

/// Whether the tile is one of f32.
bool isF32(mlir::Value tile) {
  return mlir::cast<amx::TileType>(tile.getType()).getElementType().isF32();
}

bool loadsSums(mlir::Operation *load) { return isF32(load->getResult(0)); }

bool isProductOfLoads(mlir::Operation *product) {
  return product->getOperand(2).getDefiningOp<amx::TileLoadOp>() != nullptr;
}

/// Replaces loaded accumulators by zeros.
void dropSums(mlir::Operation *load) {
  mlir::OpBuilder builder(load);
  load->getResult(0).replaceAllUsesWith(amx::TileZeroOp::create(
      builder, load->getLoc(), load->getResult(0).getType()));
}

/// Whether the value is one of two buffers: of scores, or of the weights of a
/// block of four steps.
bool isChosen(mlir::Operation *select, int64_t firstSize) {
  auto type = mlir::dyn_cast<mlir::MemRefType>(select->getResult(0).getType());
  return type && type.getDimSize(0) == firstSize;
}
bool choosesScores(mlir::Operation *select) { return isChosen(select, 2); }
bool choosesWeights(mlir::Operation *select) { return isChosen(select, 4); }

/// Whether products are the only part of a loop.
bool isDrain(mlir::Operation *loop) {
  auto products = mlir::cast<mlir::scf::ForOp>(loop);
  return products.getInitArgs().empty() &&
         !products.getBody()->getOps<amx::TileMulFOp>().empty();
}

/// Whether the operation belongs to the raise of offsets, which computes
/// weights again in a branch of a loop.
bool isInRaise(mlir::Operation *op) {
  for (auto branch = op->getParentOfType<mlir::scf::IfOp>(); branch;
       branch = branch->getParentOfType<mlir::scf::IfOp>())
    for (auto loop : branch.thenBlock()->getOps<mlir::scf::ForOp>())
      if (!loop.getOps<mlir::scf::IfOp>().empty() &&
          loop.getOps<amx::TileMulFOp>().empty())
        return true;
  return false;
}

/// Requires an index of tiles.
bool onTiles(mlir::Operation *select) {
  return select->getResult(0).getType().isIndex();
}

/// Requires that an operand is a memref of that shape.
Matcher operandType(unsigned number, std::vector<int64_t> shape) {
  return [=](mlir::Operation *op) {
    auto type =
        mlir::dyn_cast<mlir::MemRefType>(op->getOperand(number).getType());
    return type && type.getShape() == llvm::ArrayRef(shape);
  };
}

/// Requires that the result is stored to a memref of that rank.
Matcher isStoredToRank(int64_t rank) {
  return usedBy<vector::StoreOp>([=](mlir::Operation *store) {
    auto type = mlir::cast<mlir::MemRefType>(store->getOperand(1).getType());
    return type.getRank() == rank;
  });
}

/// Whether the loop multiplies words of weights, or fills them with zeros.
bool scalesWords(mlir::Operation *loop) {
  auto body = mlir::cast<mlir::scf::ForOp>(loop).getBody();
  return !body->getOps<vector::StoreOp>().empty() &&
         !body->getOps<arith::ShLIOp>().empty() &&
         !body->getOps<arith::MulFOp>().empty();
}
bool fillsWords(mlir::Operation *loop) {
  constexpr size_t rows = 32;
  auto body = mlir::cast<mlir::scf::ForOp>(loop).getBody();
  return body->getOperations().size() == rows + 1 &&
         llvm::range_size(body->getOps<vector::StoreOp>()) == rows;
}

/// Whether both operands are weights before they are rounded.
bool addsExactWeights(mlir::Operation *add) {
  return llvm::all_of(add->getOperands(), [](mlir::Value operand) {
    return operand.getDefiningOp<mlir::LLVM::CallIntrinsicOp>() != nullptr;
  });
}

/// Rounds an operand to bf16.
void roundOperand(mlir::Operation *add) {
  mlir::OpBuilder builder(add);
  mlir::Value weight = add->getOperand(0);
  auto type = mlir::cast<mlir::VectorType>(weight.getType());
  mlir::Value narrow = arith::TruncFOp::create(
      builder, add->getLoc(), type.clone(builder.getBF16Type()), weight);
  add->setOperand(0,
                  arith::ExtFOp::create(builder, add->getLoc(), type, narrow));
}

const Fault kStepsFaults[] = {
    control(),
    {"MaxNeverRaised",
     cmpf(CmpFPredicate::OGT, onVectors(), operand(1, splat(1.5))),
     setPredicate(CmpFPredicate::AlwaysFalse)},
    {"SumsNotTested", cmpi(arith::CmpIPredicate::ne, onVectors()),
     setPredicate(arith::CmpIPredicate::slt)},
    {"StaleMax",
     op<arith::SelectOp>(
         isInRaise, operand(1, op<arith::SubFOp>(operand(0, splat(-30.0))))),
     forward(2)},
    {"SumsNotScaled", op<arith::MulFOp>(isInRaise, isStoredToRank(4)),
     forward(0)},
    {"AccumulatorsNotScaled", op<arith::MulFOp>(isInRaise, isStoredToRank(6)),
     forward(0)},
    {"WeightsOfBlockNotScaled",
     op<mlir::scf::ForOp>(scalesWords, operand(1, inductionVariable())),
     setOperand(1, 0)},
    {"WeightsOfBlockBeforeNotScaled",
     op<arith::SelectOp>(operand(1, indexConstant(4)),
                         operand(2, indexConstant(0))),
     setOperand(1, 0)},
    {"WeightsOfOtherTileScaled",
     op<arith::SelectOp>(operand(1, indexConstant(4)),
                         operand(2, indexConstant(0))),
     setOperand(2, 4)},
    {"ScoresOfThisStepOverwritten",
     op<arith::SelectOp>(choosesScores, usedBy<amx::TileStoreOp>()),
     swapOperands(1, 2)},
    {"ScoresOfStepBeforeRead",
     op<arith::SelectOp>(choosesScores, usedBy<vector::LoadOp>()),
     swapOperands(1, 2)},
    {"ScoresOfSameTile",
     op<arith::SelectOp>(usedBy<amx::TileLoadOp>(), onTiles), forward(1)},
    {"WeightsOfAnotherBlock",
     op<arith::SelectOp>(choosesWeights, usedBy<amx::TileLoadOp>()),
     swapOperands(1, 2)},
    {"BuffersNotExchanged",
     op<arith::SubIOp>(operand(0, indexConstant(1)),
                       usedBy<mlir::scf::YieldOp>()),
     forward(1)},
    {"BlockSkipped", op<mlir::scf::ForOp>(isDrain), setOperand(0, 4)},
    {"EndOfBlockNotCleared",
     op<mlir::scf::ForOp>(fillsWords, operand(0, op<arith::MinSIOp>())),
     setOperand(0, 4)},
    {"SumsDropped", op<amx::TileLoadOp>(loadsSums), dropSums},
    {"OneProductLess", op<amx::TileMulFOp>(isProductOfLoads), forward(2)},
};
INSTANTIATE_TEST_SUITE_P(
    AMXSteps, AttentionFaultTest,
    testing::ValuesIn(withSubject({getStepsCase(),
                                   {3, 70, 331},
                                   KeyValues::Finite,
                                   mlir::posenc::Stage::Vector,
                                   Products::AMX},
                                  kStepsFaults)),
    getAttentionFaultName);

const Fault kExactFaults[] = {
    control(),
    {"ExactSumsRounded", op<arith::AddFOp>(addsExactWeights), roundOperand},
    {"RelativePositionsOfNextRow", op<vector::LoadOp>(operandType(0, {1, 64})),
     addToOperand(2, 1)},
};
INSTANTIATE_TEST_SUITE_P(
    AMXExactSums, AttentionFaultTest,
    testing::ValuesIn(withSubject({getExactCase(),
                                   {2, 40, 70},
                                   KeyValues::Finite,
                                   mlir::posenc::Stage::Vector,
                                   Products::AMX},
                                  kExactFaults)),
    getAttentionFaultName);

/// A few queries, whose heads are rows of the same tiles, and KV splits.
AttentionCase getFewCase() {
  AttentionCase c;
  c.dtype = POSENC_BF16;
  c.heads = 5, c.keyHeads = 1, c.dim = 32, c.valueDim = 64;
  c.causal = c.lengths = c.sinks = c.logSums = c.alibi = true;
  c.staticQueries = 5;
  return c;
}

const Fault kFewFaults[] = {
    control(),
    {"HeadOfRow", op<arith::RemUIOp>(operand(1, constant(5))),
     setOperand(1, 4)},
    {"TokenOfRow", op<arith::DivUIOp>(operand(1, constant(5))),
     setOperand(1, 6)},
    {"KeysOfSeveralSplits",
     cmpi(mlir::arith::CmpIPredicate::eq,
          operand(0, op<arith::RemUIOp>(operand(1, constant(8))))),
     setPredicate(mlir::arith::CmpIPredicate::uge)},
    {"MergedIsFirst",
     op<mlir::math::FmaOp>(
         operand(2, op<arith::MulFOp>(operand(0, op<vector::LoadOp>())))),
     forward(2)},
};
INSTANTIATE_TEST_SUITE_P(
    AMXFewQueries, AttentionFaultTest,
    testing::ValuesIn(withSubject({getFewCase(),
                                   {1, 5, 600},
                                   KeyValues::Finite,
                                   mlir::posenc::Stage::Vector,
                                   Products::AMX},
                                  kFewFaults)),
    getAttentionFaultName);

/// Whether the branch adds the products of values that are infinite or NaN.
bool addsUnsafe(mlir::Operation *compare) {
  return compare->hasOneUse() &&
         mlir::isa<mlir::scf::IfOp>(*compare->getUsers().begin());
}

const Fault kUnsafeFaults[] = {
    control(),
    {"UnsafeValuesDropped", cmpf(CmpFPredicate::UNE, addsUnsafe),
     setPredicate(CmpFPredicate::AlwaysFalse)},
    {"UnseenValuesAdded", cmpf(CmpFPredicate::UNE, addsUnsafe),
     setPredicate(CmpFPredicate::AlwaysTrue)},
};
INSTANTIATE_TEST_SUITE_P(
    AMXUnsafeValues, AttentionFaultTest,
    testing::ValuesIn(withSubject({getWindowCase(),
                                   {2, 70, 70},
                                   KeyValues::SomeNonFinite,
                                   mlir::posenc::Stage::Vector,
                                   Products::AMX},
                                  kUnsafeFaults)),
    getAttentionFaultName);

} // namespace
